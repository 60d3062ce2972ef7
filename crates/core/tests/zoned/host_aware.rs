//! The host-aware disk over a shingled medium that destroys what a write overlaps.

use crate::common::check::check;
use crate::common::harness::{MemoryDisk, play};
use crate::host_managed::{BLOCKS, CONVENTIONAL, Host, ZONE, ZONES, sequential_steps, zones};
use imbrex_core::buffer::ContentKind;
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, PolicySettings};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::{Disk, Geometry, Media, TrackTable};
use imbrex_core::error::IoError;
use imbrex_core::map::BandTable;
use imbrex_core::memory_buffer::{
    BufferBelow, BufferPolicy, MemoryBuffer, MemoryBufferError, MemoryBufferSettings, PartialRead,
};
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::translation::{
    HostAware, IdleCleaning, LayoutError, OnArrival, PersistentCache, PersistentCacheSettings,
    Reclaim, RewriteExtent, RewriteMethod, RewriteSettings,
};
use imbrex_core::units::{BlockCount, Duration};
use imbrex_core::zone::{ZoneGeometry, ZoneId, ZoneModel};
use std::sync::Arc;

fn settings(log_blocks: u64) -> PersistentCacheSettings {
    let zones = ZoneGeometry { model: ZoneModel::HostAware, ..zones(None, None) };
    PersistentCacheSettings {
        packet_blocks_max: BlockCount(8),
        rewrite: RewriteSettings {
            method: RewriteMethod::InPlace,
            extent: RewriteExtent::FromFirstDirty,
            ..RewriteSettings::default()
        },
        host_aware: Some(HostAware {
            filled_permille: 0,
            reclaim: Reclaim::Tail,
            zones: Arc::new(zones),
            command: Duration(10),
            report: Duration(100),
        }),
        ..PersistentCacheSettings::new(BlockCount(log_blocks))
    }
}

fn with_idle_cleaning(log_blocks: u64, on_arrival: OnArrival) -> PersistentCacheSettings {
    PersistentCacheSettings {
        idle: Some(IdleCleaning {
            on_arrival,
            ..IdleCleaning::new(Duration(1_500), BlockCount(2), Duration(500))
        }),
        ..settings(log_blocks)
    }
}

/// The space of the log is free when a zone is cleaned.
fn freed_by_zones(mut settings: PersistentCacheSettings) -> PersistentCacheSettings {
    settings.host_aware.as_mut().expect("of a host-aware disk").reclaim = Reclaim::Zone;
    settings
}

fn bands() -> Arc<BandTable> {
    let geometry = zones(None, None);
    let lengths = (0..geometry.zones()).map(|zone| geometry.extent_of(ZoneId(zone)).blocks);
    Arc::new(BandTable::new(lengths))
}

fn shingled_disk(seed: u64) -> MemoryDisk {
    let tracks = TrackTable::new([(24, 6), (90, 4)], BlockCount(24 * 6), 1 + seed % 3);
    let geometry = Geometry {
        tracks: Some(Arc::new(tracks)),
        ..Geometry::plain(BlockCount(24 * 6 + 90 * 4), Media::Shingled)
    };
    MemoryDisk::new(geometry, seed, 1_000).destructive()
}

fn stack(seed: u64, settings: PersistentCacheSettings, disk: &MemoryDisk) -> (Stack, NodeId) {
    let mut builder = StackBuilder::new(seed);
    let below = builder.disk(disk.geometry().clone());
    let (layer, geometry) =
        PersistentCache::new(settings, bands(), disk.geometry()).expect("a layout");
    let node = builder.layer(Box::new(layer), geometry, &[below]);
    (builder.build(node), node)
}

fn host(seed: u64, settings: PersistentCacheSettings) -> Host {
    let disk = shingled_disk(seed);
    let stack = stack(seed, settings, &disk);
    Host::new(stack, Box::new(disk), ContentKind::Stamped)
}

fn non_sequential(host: &Host) -> u64 {
    host.engine.stack.counts(host.node).gauge(Gauge::NonSequentialZones)
}

#[test]
fn random_writes_keep_their_data_on_a_destructive_medium() {
    let variants = [
        ("blocking", settings(40)),
        ("idle, finishing", with_idle_cleaning(40, OnArrival::FinishIfShort)),
        ("idle, stopping", with_idle_cleaning(40, OnArrival::FinishChunk)),
        ("idle, anew", with_idle_cleaning(40, OnArrival::Abort)),
        ("by zones, blocking", freed_by_zones(settings(40))),
        ("by zones, idle", freed_by_zones(with_idle_cleaning(40, OnArrival::FinishIfShort))),
        ("by zones, anew", freed_by_zones(with_idle_cleaning(40, OnArrival::Abort))),
    ];
    for (name, settings) in variants {
        let build = move |seed| {
            let disk = shingled_disk(seed);
            (stack(seed, settings.clone(), &disk).0, vec![disk])
        };
        check(name, &build, 300, 0);
    }
}

#[test]
fn writes_at_the_pointers_go_home_and_keep_their_data() {
    for seed in 0..200 {
        let disk = shingled_disk(seed);
        let (stack, node) = stack(seed, settings(40), &disk);
        let depth = [1, 2, 8, 16][(seed % 4) as usize];
        let engine = play(stack, vec![disk], sequential_steps(seed, 150), depth)
            .unwrap_or_else(|failure| panic!("seed {seed}, queue depth {depth}: {failure}"));
        if depth == 1 {
            let counts = engine.stack.counts(node);
            assert_eq!(counts.counter(Counter::BlocksOutOfSequence), 0, "seed {seed}");
        }
    }
}

#[test]
fn a_write_elsewhere_sends_all_later_ones_to_the_log_until_the_zone_is_clean() {
    let mut host = host(1, settings(90));
    let home = |host: &Host| host.engine.stack.counts(host.node).counter(Counter::BypassedBlocks);
    host.write(2 * ZONE, 5).unwrap();
    assert_eq!((home(&host), non_sequential(&host)), (5, 0));
    host.write(2 * ZONE + 1, 1).unwrap();
    assert_eq!((home(&host), non_sequential(&host)), (5, 1));
    // At the write pointer, but the zone is not sequential any more.
    host.write(2 * ZONE + 5, 3).unwrap();
    assert_eq!((home(&host), non_sequential(&host)), (5, 1));
    assert_eq!(host.read(2 * ZONE, 10).unwrap(), [1, 2, 1, 1, 1, 3, 3, 3, 0, 0]);
    // A write past the pointer leaves a hole of zeroes.
    host.write(3 * ZONE + 4, 2).unwrap();
    assert_eq!(non_sequential(&host), 2);
    // Conventional zones take anything home.
    host.write(7, 3).unwrap();
    host.write(6, 2).unwrap();
    assert_eq!(host.read(5, 6).unwrap(), [0, 6, 6, 5, 5, 0]);
    assert_eq!(non_sequential(&host), 2);
    host.command(Operation::ZoneReset, 2).unwrap();
    assert_eq!(non_sequential(&host), 1);
    assert_eq!(host.read(2 * ZONE, 10).unwrap(), [0; 10]);
    host.write(2 * ZONE, 2).unwrap();
    assert_eq!(home(&host), 7);
    // What is full takes nothing more at its end.
    host.command(Operation::ZoneFinish, 4).unwrap();
    host.write(4 * ZONE, 1).unwrap();
    assert_eq!((home(&host), non_sequential(&host)), (7, 2));
    assert_eq!(host.command(Operation::ZoneOpen, 0), Err(IoError::InvalidField));
}

#[test]
fn a_cleaned_zone_is_sequential_again_and_was_rewritten_up_to_its_pointer_only() {
    // A log of 12 blocks: a write that finds it full cleans the zone of the oldest block.
    let mut host = host(2, settings(12));
    host.write(2 * ZONE, 9).unwrap();
    host.write(2 * ZONE, 1).unwrap();
    host.write(3 * ZONE + 1, 8).unwrap();
    assert_eq!(non_sequential(&host), 2);
    host.write(4 * ZONE + 1, 8).unwrap();
    let counts = host.engine.stack.counts(host.node);
    assert_eq!(counts.counter(Counter::BandsRewritten), 2, "zones 2 and 3");
    let read = counts.counter(Counter::BandBlocksRead);
    assert_eq!(read, 9, "zone 3 had nothing at home");
    let written = counts.counter(Counter::BandBlocksWritten);
    assert_eq!(written, 9 + 9 + 9, "by the host; then each zone up to its pointer");
    assert_eq!(non_sequential(&host), 1);
    let home = counts.counter(Counter::BypassedBlocks);
    host.write(2 * ZONE + 9, 1).unwrap();
    host.write(3 * ZONE + 9, 1).unwrap();
    let counts = host.engine.stack.counts(host.node);
    assert_eq!(counts.counter(Counter::BypassedBlocks), home + 2);
    assert_eq!(host.read(2 * ZONE, 11).unwrap(), [2, 1, 1, 1, 1, 1, 1, 1, 1, 5, 0]);
    assert_eq!(host.read(3 * ZONE, 11).unwrap(), [0, 3, 3, 3, 3, 3, 3, 3, 3, 6, 0]);
}

#[test]
fn random_acts_change_sequence_and_data_as_the_rule_says() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed, 8);
        let mut host = host(seed, settings(4_000 / 50));
        let mut data = vec![0; BLOCKS as usize];
        for _ in 0..60 {
            let zone = rng.below(ZONES);
            let length = ZONE.min(BLOCKS - zone * ZONE);
            let start = zone * ZONE + rng.below(length);
            let blocks = 1 + rng.below((BLOCKS - start).min(12));
            if zone >= CONVENTIONAL && rng.below(8) == 0 {
                host.command(Operation::ZoneReset, zone).unwrap();
                data[(zone * ZONE) as usize..][..length as usize].fill(0);
            } else if rng.below(3) == 0 {
                let read = host.read(start, blocks).unwrap();
                assert_eq!(read, data[start as usize..][..blocks as usize], "seed {seed}");
            } else {
                let version = host.write(start, blocks).unwrap();
                data[start as usize..][..blocks as usize].fill(version);
            }
        }
        assert_eq!(host.read(0, BLOCKS).unwrap(), data, "seed {seed}");
    }
}

#[test]
fn space_is_free_from_the_tail_or_as_soon_as_its_zone_is_empty() {
    let used = |settings: PersistentCacheSettings| {
        let mut host = host(1, settings);
        let zone = |number: u64| (CONVENTIONAL + number) * ZONE;
        let offsets = [zone(0) + 5, zone(1) + 5, zone(1) + 5, zone(1) + 6];
        for start in offsets {
            host.write(start, 1).expect("written");
        }
        host.command(Operation::ZoneReset, CONVENTIONAL + 1).expect("reset");
        host.write(zone(0) + 6, 1).expect("written");
        host.engine.stack.counts(host.node).gauge(Gauge::PersistentCacheUsedBlocks)
    };
    assert_eq!(used(settings(40)), 5, "the oldest slot is live");
    assert_eq!(used(freed_by_zones(settings(40))), 2, "of the zone that has something left");
}

#[test]
fn settings_that_do_not_go_with_zones_are_refused() {
    let disk = shingled_disk(0);
    let refused = |settings, bands| {
        PersistentCache::new(settings, bands, disk.geometry()).map(|_| ()).unwrap_err()
    };
    let copying = PersistentCacheSettings {
        rewrite: RewriteSettings { method: RewriteMethod::CopyThenHome, ..settings(40).rewrite },
        ..settings(40)
    };
    assert_eq!(refused(copying, bands()), LayoutError::ZonesNeed);
    let others = Arc::new(BandTable::new([BlockCount(BLOCKS)]));
    assert_eq!(refused(settings(40), others), LayoutError::ZonesAreNotBands);
    let durable = PersistentCacheSettings {
        durability: Some(imbrex_core::durability::DurabilitySettings::default()),
        ..settings(40)
    };
    assert_eq!(refused(durable, bands()), LayoutError::ZonesNotDurable);
    let mut records = freed_by_zones(settings(40));
    records.map_journal.log_per_flush = BlockCount(1);
    assert_eq!(refused(records, bands()), LayoutError::RecordsOfNoZone(BlockCount(1)));
}

fn cache_settings() -> CacheSettings {
    CacheSettings {
        durability: None,
        destage: Durability::Durable,
        capacity_blocks: 20,
        spare_slots: None,
        destage_slots_max: 4,
        mode: CacheMode::ReadWrite,
        policy: PolicySettings::LRU,
    }
}

fn buffer_settings() -> MemoryBufferSettings {
    MemoryBufferSettings {
        capacity_blocks: 8,
        block: BlockCount(1),
        window_blocks: 2,
        policy: BufferPolicy::LruBlock,
        partial_read: PartialRead::Memory,
        persistence: None,
    }
}

#[test]
fn a_cache_and_a_buffer_over_zones_have_none_and_those_below_still_count() {
    for is_cache in [true, false] {
        let disk = shingled_disk(3);
        let flash = MemoryDisk::new(Geometry::plain(BlockCount(60), Media::SolidState), 3, 1_000);
        let mut builder = StackBuilder::new(3);
        let nodes = [&disk, &flash].map(|disk| builder.disk(disk.geometry().clone()));
        let built = PersistentCache::new(settings(90), bands(), disk.geometry());
        let (layer, zoned) = built.expect("a layout");
        let zones = builder.layer(Box::new(layer), zoned.clone(), &nodes[..1]);
        let (top, above) = match is_cache {
            true => {
                let built = Cache::new(cache_settings(), flash.geometry(), &zoned);
                let (cache, above) = built.expect("settings that fit");
                (builder.layer(Box::new(cache), above.clone(), &[nodes[1], zones]), above)
            }
            false => {
                let below = BufferBelow { log: None, copies: None, below: &zoned };
                let built = MemoryBuffer::new(buffer_settings(), &below);
                let (buffer, above) = built.expect("settings that fit");
                (builder.layer(Box::new(buffer), above.clone(), &[zones]), above)
            }
        };
        assert!(zoned.zones.is_some() && above.zones.is_none());
        assert_eq!(above.blocks, zoned.blocks);
        assert!(above.bands.is_some() && above.log == zoned.log, "they are still told of");
        let stack = (builder.build(top), zones);
        let mut host = Host::new(stack, Box::new(disk), ContentKind::Stamped);
        host.engine.disks.push(Box::new(flash));
        for command in [Operation::ZoneReset, Operation::ZoneOpen, Operation::ZoneFinish] {
            assert_eq!(host.command(command, 2), Err(IoError::NotPermitted), "{command:?}");
        }
        // More than either holds, and out of sequence.
        for start in (0..40).rev() {
            host.write(2 * ZONE + start, 1).unwrap();
        }
        assert_eq!(host.read(2 * ZONE + 39, 1).unwrap(), [1]);
        assert!(non_sequential(&host) > 0, "the zones below have seen it");
    }
}

#[test]
fn a_cache_and_a_buffer_over_zones_that_must_be_written_in_sequence_are_refused() {
    let flash = Geometry::plain(BlockCount(60), Media::SolidState);
    let managed = Geometry {
        zones: Some(Arc::new(zones(None, None))),
        ..Geometry::plain(BlockCount(BLOCKS), Media::Shingled)
    };
    for (flash, backing) in [(&flash, &managed), (&managed, &flash)] {
        let refused = Cache::new(cache_settings(), flash, backing).map(|_| ()).unwrap_err();
        let words = "a cache over zones that must be written in sequence";
        assert!(refused.to_string().starts_with(words), "{refused}");
    }
    let below = BufferBelow { log: None, copies: None, below: &managed };
    let refused = MemoryBuffer::new(buffer_settings(), &below).map(|_| ());
    assert_eq!(refused, Err(MemoryBufferError::Zones));
}
