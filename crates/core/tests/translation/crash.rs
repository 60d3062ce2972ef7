//! The durable persistent cache under power cuts, on a shingled medium that destroys what a write
//! overlaps.

use crate::common::crash_disk::{CrashDisk, Cut, Medium};
use crate::common::crash_host::CrashHost;
use crate::common::harness::JumpingClock;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::Counter;
use imbrex_core::disk::{Geometry, Media, Survival, TrackTable};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::durability::superblock::Superblock;
use imbrex_core::engine::Engine;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::map::BandTable;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::translation::{
    BlockingCleaning, BypassSettings, CleanTo, DurableAreas, IdleCleaning, MapJournalSettings,
    PersistentCache, PersistentCacheSettings, RewriteExtent, RewriteSettings, TrimMethod,
    conventional_blocks_needed,
};
use imbrex_core::units::{BlockCount, Duration};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

pub const SET: Uuid = Uuid([9; 16]);

/// Eight bands of 3 to 7 tracks of 4 blocks, not all of them full.
pub fn bands(seed: u64) -> Arc<BandTable> {
    let mut rng = Rng::new(seed, 31);
    let lengths = (0..8).map(|_| BlockCount(4 * (3 + rng.below(5)) - rng.below(4)));
    Arc::new(BandTable::new(lengths))
}

pub fn settings() -> PersistentCacheSettings {
    PersistentCacheSettings {
        packet_blocks_max: BlockCount(8),
        durability: Some(DurabilitySettings { ring_blocks: 24, unflushed_blocks_max: 40 }),
        ..PersistentCacheSettings::new(BlockCount(40))
    }
}

pub fn variants() -> [PersistentCacheSettings; 9] {
    let bypass = PersistentCacheSettings {
        bypass: Some(BypassSettings::after(BlockCount(4))),
        ..settings()
    };
    let from_first_dirty = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            overhead: Duration::from_us(2),
            ..settings().rewrite
        },
        map_journal: MapJournalSettings {
            every_records: 5,
            stall: Duration::from_us(2),
            log_per_flush: BlockCount(3),
            transaction: BlockCount(5),
            flush_overhead: Duration::from_us(1),
            ..MapJournalSettings::default()
        },
        ..settings()
    };
    // Bands are rewritten in up to three stretches.
    let in_stretches = |settings: PersistentCacheSettings| PersistentCacheSettings {
        rewrite: RewriteSettings { merge_buffer_blocks: Some(BlockCount(16)), ..settings.rewrite },
        ..settings
    };
    [
        settings(),
        in_stretches(from_first_dirty.clone()),
        PersistentCacheSettings {
            idle: Some(IdleCleaning {
                resumes: false,
                ..IdleCleaning::new(Duration(400), BlockCount(1), Duration::from_us(1))
            }),
            blocking: BlockingCleaning {
                low_permille: 500,
                slice: Some(Duration::from_us(8)),
                to: CleanTo::Home,
            },
            ..in_stretches(bypass.clone())
        },
        in_stretches(bypass.clone()),
        from_first_dirty.clone(),
        bypass,
        PersistentCacheSettings { entries_max: Some(6), log_blocks: BlockCount(12), ..settings() },
        PersistentCacheSettings {
            bypass: Some(BypassSettings::after(BlockCount(3))),
            log_blocks: BlockCount(16),
            trim: TrimMethod::Frees,
            ..from_first_dirty.clone()
        },
        PersistentCacheSettings {
            blocking: BlockingCleaning { to: CleanTo::Log, ..settings().blocking },
            ..from_first_dirty
        },
    ]
}

pub fn geometry(seed: u64, settings: &PersistentCacheSettings) -> Geometry {
    let conventional = conventional_blocks_needed(settings, &bands(seed), BlockCount(6));
    let conventional_tracks = conventional.0.div_ceil(6);
    let runs = [(conventional_tracks, 6), (100, 4)];
    let tracks = TrackTable::new(runs, BlockCount(conventional_tracks * 6), 1 + seed % 3);
    Geometry {
        blocks: BlockCount(tracks.blocks()),
        media: Media::Shingled,
        tracks: Some(Arc::new(tracks)),
        bands: None,
        zones: None,
        log: None,
        survives: Survival::Power,
        is_blank: false,
        rewrite_block: None,
        tells_copies: false,
        copies: None,
    }
}

/// A stack with the layer over the medium.
pub fn engine(
    seed: u64,
    settings: &PersistentCacheSettings,
    disk: CrashDisk,
    bug: Option<PlantedBug>,
) -> (Engine, NodeId) {
    let geometry = geometry(seed, settings);
    let mut builder = StackBuilder::new(seed);
    let below = builder.disk(geometry.clone());
    let (layer, above) =
        PersistentCache::new(settings.clone(), bands(seed), &geometry).expect("a layout");
    let node = builder.layer(Box::new(layer), above, &[below]);
    let mut stack = builder.build(node);
    if let Some(bug) = bug {
        stack.plant(bug);
    }
    let engine = Engine {
        stack,
        disks: vec![Box::new(disk)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 64,
    };
    (engine, node)
}

#[derive(Default, Debug)]
struct Totals {
    rewritten: u64,
    bypassed: u64,
    crashes: u64,
    /// Crashes after which the newest checkpoint had records behind its map.
    record_parts: u64,
    generations: u64,
}

/// Formats, and then cuts the power again and again: in the middle of work and of recoveries.
fn campaign(
    seed: u64,
    settings: &PersistentCacheSettings,
    bug: Option<PlantedBug>,
    totals: &mut Totals,
) -> Result<(), String> {
    let mut rng = Rng::new(seed, 3);
    let blocks = bands(seed).blocks().0;
    let mut medium = Medium::new(geometry(seed, settings));
    let mut host = CrashHost::new(blocks);
    let mut start = Start::Format(SET);
    let mut formatted = false;
    for round in 0..6 {
        let operations = match (formatted, rng.below(4)) {
            (false, _) => u64::MAX,
            (true, 0) => rng.below(60),
            (true, _) => 30 + rng.below(2_500),
        };
        let disk = CrashDisk::new(&medium, seed * 31 + round, operations);
        let shared = disk.shared();
        let counts = Rc::new(Cell::new([0; 2]));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (mut engine, node) = engine(seed, settings, disk, bug);
            let mut clock = JumpingClock::default();
            let counted = Rc::clone(&counts);
            host.watched = Rc::new(move |stack| {
                let counts = stack.counts(node);
                let counters = [Counter::BandsRewritten, Counter::BypassedBlocks];
                counted.set(counters.map(|counter| counts.counter(counter)));
            });
            engine
                .open(&mut clock, start)
                .map_err(|(_, error)| format!("round {round}: it does not open: {error}"))?;
            if !formatted {
                shared.borrow_mut().operations_left = 100 + Rng::new(seed, 8).below(2_500);
                formatted = true;
            }
            host.look_around(&mut engine, &mut clock)
                .map_err(|error| format!("round {round}: {error}"))?;
            let run = (|| {
                host.work(&mut engine, &mut clock, seed * 7 + round, 150)?;
                engine.close(&mut clock).map_err(|(_, error)| format!("close: {error}"))?;
                host.closed();
                Ok(())
            })();
            run.map_err(|error: String| format!("round {round}: {error}"))
        }));
        let [rewritten, bypassed] = counts.get();
        totals.rewritten += rewritten;
        totals.bypassed += bypassed;
        match outcome {
            Ok(result) => result?,
            Err(panic) if panic.is::<Cut>() => totals.crashes += 1,
            Err(panic) => {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
                return Err(format!("round {round}: panic: {words:?}"));
            }
        }
        host.forget_requests();
        medium = shared.borrow_mut().after_the_cut(&mut rng);
        let root = Superblock::decode(&medium.block(0), 0, false);
        totals.record_parts += u64::from(root.is_ok_and(|root| root.has_record_parts()));
        totals.generations += 1;
        start = Start::Recover(Some(SET));
    }
    Ok(())
}

fn check(name: &str, settings: &PersistentCacheSettings, seeds: u64) -> Totals {
    let mut totals = Totals::default();
    for seed in 0..seeds {
        if let Err(failure) = campaign(seed, settings, None, &mut totals) {
            panic!("{name}, seed {seed}: {failure}");
        }
    }
    println!("{name}: {totals:?}");
    totals
}

const SEEDS: u64 = 40;

#[test]
fn loses_nothing_durable_when_the_power_is_cut() {
    for (index, settings) in variants().iter().enumerate() {
        let totals = check(&format!("variant {index}"), settings, SEEDS);
        assert!(totals.crashes > SEEDS * 2, "{totals:?}");
        assert!(totals.record_parts > SEEDS / 2, "{totals:?}");
        assert!(settings.bypass.is_some() || totals.rewritten > SEEDS * 3, "{totals:?}");
        assert!(settings.bypass.is_none() || totals.bypassed > SEEDS * 10, "{totals:?}");
    }
}

/// What a translation has counted of its work.
fn counted(engine: &Engine, node: NodeId) -> Vec<u64> {
    let counts = engine.stack.counts(node);
    [
        Counter::PersistentCacheAppendedBlocks,
        Counter::PersistentCacheUpdatedBlocks,
        Counter::PersistentCacheMergedBlocks,
        Counter::BandsRewritten,
        Counter::BandBlocksRead,
        Counter::BandBlocksWritten,
        Counter::BypassedBlocks,
    ]
    .map(|counter| counts.counter(counter))
    .to_vec()
}

#[test]
fn goes_on_after_a_clean_shutdown_as_if_there_had_been_none() {
    let mut rewritten = 0;
    for seed in 0..60 {
        // Whether a stream is under way is not remembered, nor what has moved, nor the room of the newest record.
        let mut variants = Vec::from(variants());
        variants.retain(|variant| variant.bypass.is_none() && variant.blocking.to == CleanTo::Home);
        for variant in &mut variants {
            variant.map_journal = MapJournalSettings::default();
        }
        let settings = &variants[(seed % variants.len() as u64) as usize];
        let run = |stops_between: bool| {
            let disk = CrashDisk::new(&Medium::new(geometry(seed, settings)), seed, u64::MAX);
            let mut host = CrashHost::new(bands(seed).blocks().0);
            let mut clock = JumpingClock::default();
            let shared = disk.shared();
            let (mut engine, node) = self::engine(seed, settings, disk, None);
            let opened = engine.open(&mut clock, Start::Format(SET));
            opened.expect("a new device opens");
            // A queue depth of one, for which the order of things is certain.
            let before = host.work(&mut engine, &mut clock, 4 * seed, 200);
            before.expect("nothing is wrong yet");
            let mut totals = vec![0; 7];
            if stops_between {
                engine.close(&mut clock).expect("it closes");
                totals = counted(&engine, node);
                let medium = shared.borrow_mut().after_the_cut(&mut Rng::new(seed, 2));
                let disk = CrashDisk::new(&medium, seed, u64::MAX);
                engine = self::engine(seed, settings, disk, None).0;
                let opened = engine.open(&mut clock, Start::Recover(Some(SET)));
                opened.expect("a closed device opens");
            }
            let after = host.work(&mut engine, &mut clock, 4 * seed + 4, 200);
            after.expect("nothing is lost");
            for (total, count) in totals.iter_mut().zip(counted(&engine, node)) {
                *total += count;
            }
            totals
        };
        let expected = run(false);
        assert_eq!(run(true), expected, "seed {seed}, {settings:?}");
        rewritten += expected[3];
    }
    assert!(rewritten > 300, "only {rewritten} bands were rewritten");
}

/// What the device holds after some work and a clean shutdown, and a host that knows it.
fn closed_device(seed: u64, settings: &PersistentCacheSettings) -> (Medium, CrashHost) {
    let medium = Medium::new(geometry(seed, settings));
    let mut host = CrashHost::new(bands(seed).blocks().0);
    let disk = CrashDisk::new(&medium, seed, u64::MAX);
    let shared = disk.shared();
    let (mut engine, _) = engine(seed, settings, disk, None);
    let mut clock = JumpingClock::default();
    engine.open(&mut clock, Start::Format(SET)).expect("a new device opens");
    host.work(&mut engine, &mut clock, seed, 250).expect("nothing is wrong yet");
    engine.close(&mut clock).expect("it closes");
    host.closed();
    let medium = shared.borrow_mut().after_the_cut(&mut Rng::new(seed, 2));
    (medium, host)
}

#[test]
fn a_flipped_bit_of_data_or_of_a_table_is_an_error_and_never_wrong_data() {
    let (mut flipped, mut failed) = (0, 0);
    for (seed, settings) in (0..).zip(variants()) {
        let (medium, host) = closed_device(seed, &settings);
        let geometry = geometry(seed, &settings);
        let (layer, _) =
            PersistentCache::new(settings.clone(), bands(seed), &geometry).expect("a layout");
        let areas = layer.areas();
        let durability = settings.durability.as_ref().expect("durable");
        let tables = DurableAreas::new(&settings, durability, &bands(seed)).tables;
        for block in (tables.start.0..areas.bands.extent.end().0).step_by(3) {
            let mut damaged = medium.clone();
            damaged.flip(block);
            let disk = CrashDisk::new(&damaged, seed, u64::MAX);
            let (mut engine, _) = engine(seed, &settings, disk, None);
            let mut clock = JumpingClock::default();
            engine.open(&mut clock, Start::Recover(Some(SET))).expect("its journal is whole");
            let mut host = host.clone();
            host.may_fail = true;
            host.look_around(&mut engine, &mut clock)
                .unwrap_or_else(|error| panic!("block {block} flipped: {error}"));
            flipped += 1;
            failed += u64::from(!host.unreadable.is_empty());
        }
    }
    assert!(failed > flipped / 4, "{failed} of {flipped} were noticed");
}

#[test]
fn planted_bugs_are_found_by_power_cuts() {
    let bugs = [
        PlantedBug::RemapIgnoresOverwrite,
        PlantedBug::BandRewriteWithoutScratch,
        PlantedBug::ScratchReleasedEarly,
        PlantedBug::OverlapNotRestored,
        PlantedBug::BypassOverLiveData,
        PlantedBug::TrimReusedEarly,
        PlantedBug::TrimForgottenOnReplay,
        PlantedBug::OldLocationReusedEarly,
        PlantedBug::FuaAsPlain,
        PlantedBug::RecordLeftOut,
        PlantedBug::CheckpointPageLeftOut,
    ];
    let mut missed = Vec::new();
    for bug in bugs {
        let mut found = None;
        for seed in 0..40u64 {
            for (index, settings) in variants().iter().enumerate() {
                if found.is_some() {
                    break;
                }
                let outcome = campaign(seed, settings, Some(bug), &mut Totals::default());
                if let Err(failure) = outcome {
                    found = found.or(Some((seed, index, failure)));
                }
            }
            if found.is_some() {
                break;
            }
        }
        println!("{bug:?}: {found:?}");
        if found.is_none() {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
