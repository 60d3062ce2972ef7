//! A part of the device that lies on tracks that do not overlap: every write goes home there.

use crate::common::check::check;
use crate::common::harness::{MemoryDisk, play, random_steps};
use crate::persistent_cache::{bands, settings, with_bypass, zeroing_steps};
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Disk, Geometry, Media, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::translation::{
    Disks, Layout, LayoutError, PersistentCache, PersistentCacheSettings, RewriteExtent,
    RewriteSettings, TrimMethod, conventional_band_blocks, log_blocks_needed,
};
use imbrex_core::units::{BlockCount, Lba};
use std::sync::Arc;

const IN_PLACE: BlockCount = BlockCount(60);

fn with_a_part(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings { in_place_blocks: IN_PLACE, ..settings }
}

/// A shingled disk of which so many blocks at the start do not overlap, rounded up to tracks.
fn disk(seed: u64, conventional: BlockCount) -> MemoryDisk {
    let tracks = conventional.0.div_ceil(6);
    let runs = [(tracks, 6), (170, 4)].into_iter().filter(|(tracks, _)| *tracks > 0);
    let tracks = TrackTable::new(runs, BlockCount(tracks * 6), 1 + seed % 3);
    let geometry = Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    };
    MemoryDisk::new(geometry, seed, 1_000).destructive()
}

/// On two disks, each with no more room that does not overlap than is needed there.
fn on_two(seed: u64, settings: &PersistentCacheSettings) -> (Stack, Vec<MemoryDisk>, NodeId) {
    let table = bands(seed);
    let log = disk(seed, log_blocks_needed(settings, &table, BlockCount(6)));
    let home = disk(seed, conventional_band_blocks(settings, &table));
    let (layer, above) =
        PersistentCache::on_two(settings.clone(), table, log.geometry(), home.geometry())
            .expect("a layout");
    let mut builder = StackBuilder::new(seed);
    let below = [&log, &home].map(|disk| builder.disk(disk.geometry().clone()));
    let node = builder.layer(Box::new(layer), above, &below);
    (builder.build(node), vec![log, home], node)
}

#[test]
fn keeps_data_on_a_destructive_medium() {
    let tail = PersistentCacheSettings {
        rewrite: RewriteSettings { extent: RewriteExtent::FromFirstDirty, ..settings().rewrite },
        ..settings()
    };
    for (name, settings) in [("plain", settings()), ("bypass", with_bypass()), ("tail", tail)] {
        let build = move |seed| {
            let (stack, disks, _) = on_two(seed, &with_a_part(settings.clone()));
            (stack, disks)
        };
        check(name, &build, 400, 0);
    }
}

#[test]
fn zeroes_there_are_overwritten_whatever_a_trim_does() {
    for trim in [TrimMethod::None, TrimMethod::FromLog, TrimMethod::Frees] {
        let settings =
            PersistentCacheSettings { log_blocks: BlockCount(16), trim, ..with_a_part(settings()) };
        for seed in 0..200 {
            let (stack, disks, _) = on_two(seed, &settings);
            let steps = zeroing_steps(seed, stack.geometry().blocks.0 / 4);
            if let Err(failure) = play(stack, disks, steps, 16) {
                panic!("seed {seed}, {trim:?}: {failure}");
            }
        }
    }
}

#[test]
fn what_is_written_there_never_enters_the_log() {
    let settings = PersistentCacheSettings { log_blocks: BlockCount(8), ..with_a_part(settings()) };
    let part = conventional_band_blocks(&settings, &bands(0));
    assert!(part >= IN_PLACE && bands(0).band_of(Lba(IN_PLACE.0 - 1)).0 > 0);
    let (stack, disks, node) = on_two(0, &settings);
    let played = play(stack, disks, random_steps(0, 300, part.0, 6), 8).expect("nothing is lost");
    let counts = played.stack.counts(node);
    assert_eq!(counts.counter(Counter::PersistentCacheAppendedBlocks), 0);
    assert_eq!(counts.counter(Counter::BandsRewritten), 0);
    assert!(counts.counter(Counter::InPlaceBlocks) > 300);
}

#[test]
fn it_is_refused_where_it_cannot_be() {
    let settings = with_a_part(settings());
    let table = bands(0);
    let log = disk(0, log_blocks_needed(&settings, &table, BlockCount(6)));
    let home = disk(0, BlockCount(12));
    let disks = Disks::Two { log: log.geometry(), home: home.geometry() };
    let needed = conventional_band_blocks(&settings, &table);
    assert_eq!(
        Layout::new(&settings, &table, disks).unwrap_err(),
        LayoutError::InPlacePastConventional { needed, conventional: BlockCount(12) }
    );
    let device = table.blocks();
    let in_place = BlockCount(device.0 + 1);
    let more = PersistentCacheSettings { in_place_blocks: in_place, ..settings.clone() };
    assert_eq!(
        Layout::new(&more, &table, disks).unwrap_err(),
        LayoutError::InPlacePastDevice { in_place, device }
    );
    let durable =
        PersistentCacheSettings { durability: Some(DurabilitySettings::default()), ..settings };
    assert_eq!(durable.check().unwrap_err(), LayoutError::InPlaceNotDurable);
}
