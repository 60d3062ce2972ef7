//! The persistent cache over a shingled medium that destroys what a write overlaps.

use crate::common::check::check;
use crate::common::harness::{MemoryDisk, Step, play, random_steps};
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::disk::{Disk, Geometry, Media, TrackTable};
use imbrex_core::extent::Extent;
use imbrex_core::map::{BandId, BandTable};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::translation::{
    BypassSettings, PersistentCache, PersistentCacheSettings, RewriteExtent, RewriteMethod,
    RewriteSettings, UpdateMethod,
};
use imbrex_core::units::{BlockCount, Duration, Lba};
use std::sync::Arc;

pub const LOG_BLOCKS: u64 = 64;

/// Twelve bands of 4 to 9 tracks of 4 blocks, not all of them full.
pub fn bands(seed: u64) -> Arc<BandTable> {
    let mut rng = Rng::new(seed, 31);
    let lengths = (0..12).map(|_| BlockCount(4 * (4 + rng.below(6)) - rng.below(4)));
    Arc::new(BandTable::new(lengths))
}

pub fn shingled_disk(seed: u64) -> MemoryDisk {
    let tracks = TrackTable::new([(12, 6), (160, 4)], BlockCount(72), 1 + seed % 3);
    let geometry = Geometry {
        tracks: Some(Arc::new(tracks)),
        ..Geometry::plain(BlockCount(72 + 160 * 4), Media::Shingled)
    };
    MemoryDisk::new(geometry, seed, 1_000).destructive()
}

pub fn settings() -> PersistentCacheSettings {
    PersistentCacheSettings {
        packet_blocks_max: BlockCount(8),
        ..PersistentCacheSettings::new(BlockCount(LOG_BLOCKS))
    }
}

pub fn with_bypass() -> PersistentCacheSettings {
    PersistentCacheSettings { bypass: Some(BypassSettings::after(BlockCount(12))), ..settings() }
}

pub fn build(seed: u64, settings: &PersistentCacheSettings) -> (Stack, MemoryDisk, NodeId) {
    let disk = shingled_disk(seed);
    let mut builder = StackBuilder::new(seed);
    let below = builder.disk(disk.geometry().clone());
    let (layer, geometry) =
        PersistentCache::new(settings.clone(), bands(seed), disk.geometry()).expect("a layout");
    let node = builder.layer(Box::new(layer), geometry, &[below]);
    (builder.build(node), disk, node)
}

pub fn check_with(name: &str, settings: PersistentCacheSettings) {
    let build = move |seed| {
        let (stack, disk, _) = build(seed, &settings);
        (stack, vec![disk])
    };
    check(name, &build, 400, 0);
}

#[test]
fn keeps_data_on_a_destructive_medium() {
    check_with("append, copy then home, whole band", settings());
}

#[test]
fn keeps_data_when_rewriting_from_the_first_dirty_track() {
    let from_first_dirty = PersistentCacheSettings {
        rewrite: RewriteSettings { extent: RewriteExtent::FromFirstDirty, ..settings().rewrite },
        ..settings()
    };
    check_with("from the first dirty track", from_first_dirty);
}

#[test]
fn keeps_data_when_rewriting_in_place() {
    let in_place = PersistentCacheSettings {
        rewrite: RewriteSettings { method: RewriteMethod::InPlace, ..settings().rewrite },
        update: UpdateMethod::InPlace,
        ..settings()
    };
    check_with("in place", in_place);
}

#[test]
fn keeps_data_under_an_entry_limit_and_slow_firmware() {
    let limited = PersistentCacheSettings {
        entries_max: Some(6),
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            overhead: Duration::from_us(2),
            ..settings().rewrite
        },
        ..settings()
    };
    check_with("six entries", limited);
}

#[test]
fn keeps_data_with_a_log_of_one_slot() {
    let tiny = PersistentCacheSettings { log_blocks: BlockCount(1), ..settings() };
    check_with("a log of one slot", tiny);
}

/// Mostly writes and zeroes over a few bands, so that rewrites, zeroed entries and updates meet.
pub fn zeroing_steps(seed: u64, blocks: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 13);
    let mut steps = random_steps(seed, 400, blocks, 6);
    for step in &mut steps {
        if let Step::Read(extent) | Step::Write(extent) = *step
            && rng.below(4) == 0
        {
            *step = Step::Zero(extent);
        }
    }
    steps
}

#[test]
fn keeps_data_when_zeroes_meet_rewrites() {
    let in_place = PersistentCacheSettings { update: UpdateMethod::InPlace, ..settings() };
    for settings in [settings(), in_place, with_bypass()] {
        let settings = PersistentCacheSettings { log_blocks: BlockCount(16), ..settings };
        for seed in 0..400 {
            let (stack, disk, _) = build(seed, &settings);
            let steps = zeroing_steps(seed, stack.geometry().blocks.0 / 4);
            if let Err(failure) = play(stack, vec![disk], steps, 16) {
                panic!("seed {seed}, {settings:?}: {failure}");
            }
        }
    }
}

#[test]
fn loses_nothing_but_failed_writes_when_the_disk_fails() {
    let from_first_dirty = PersistentCacheSettings {
        rewrite: RewriteSettings { extent: RewriteExtent::FromFirstDirty, ..settings().rewrite },
        ..settings()
    };
    let mut faults = 0;
    for settings in [settings(), from_first_dirty, with_bypass()] {
        for seed in 0..300 {
            let (stack, disk, _) = build(seed, &settings);
            let disk = disk.failing(12, 400);
            let medium = disk.medium();
            let blocks = stack.geometry().blocks.0;
            let steps = if settings.bypass.is_some() {
                streaming_steps(seed, blocks)
            } else {
                random_steps(seed, 300, blocks, 12)
            };
            let depth = [1, 2, 5, 16][(seed % 4) as usize];
            match play(stack, vec![disk], steps, depth) {
                Ok(engine) => assert_eq!(engine.buffers.allocated(), 0),
                Err(failure) => panic!("seed {seed}, queue depth {depth}, {settings:?}: {failure}"),
            }
            faults += medium.borrow().faults;
        }
    }
    assert!(faults > 10_000, "only {faults} operations failed");
}

/// Streams, restarted and interrupted at any block, between random requests.
pub fn streaming_steps(seed: u64, blocks: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 9);
    let random = random_steps(seed, 200, blocks, 12);
    let mut random = random.into_iter();
    let mut steps = Vec::new();
    for _ in 0..8 {
        let mut next = rng.below(blocks);
        for _ in 0..rng.below(25) {
            let length = (1 + rng.below(9)).min(blocks - next);
            if length == 0 {
                break;
            }
            steps.push(Step::Write(Extent::new(next, length)));
            next += length;
            if rng.below(6) == 0 {
                steps.extend(random.next());
            }
        }
        if rng.below(3) == 0 {
            let start = rng.below(blocks);
            steps.push(Step::Zero(Extent::new(start, blocks - start)));
        }
        steps.extend(random.by_ref().take(rng.below(6) as usize));
    }
    steps
}

#[test]
fn keeps_data_when_streams_go_around_the_log() {
    let mut bypassed = 0;
    for seed in 0..600 {
        let (stack, disk, node) = build(seed, &with_bypass());
        let steps = streaming_steps(seed, stack.geometry().blocks.0);
        let depth = [1, 2, 5, 16][(seed % 4) as usize];
        match play(stack, vec![disk], steps, depth) {
            Ok(engine) => bypassed += engine.stack.counts(node).counter(Counter::BypassedBlocks),
            Err(failure) => panic!("seed {seed}, queue depth {depth}: {failure}"),
        }
    }
    assert!(bypassed > 600 * 20, "only {bypassed} blocks were bypassed");
}

#[test]
fn a_stream_over_fresh_bands_goes_home_and_one_over_written_bands_does_not() {
    let (stack, disk, node) = build(1, &with_bypass());
    let blocks = stack.geometry().blocks.0;
    let once = (0..blocks).step_by(4).map(|start| Extent::new(start, 4.min(blocks - start)));
    let steps: Vec<Step> = once.clone().map(Step::Write).collect();
    let engine = play(stack, vec![disk], steps.clone(), 4).expect("correct");
    let counts = engine.stack.counts(node);
    let first_band = bands(1).extent_of(BandId(0)).blocks.0;
    assert_eq!(counts.counter(Counter::BypassedBlocks), blocks - first_band);
    assert_eq!(counts.counter(Counter::BandsRewritten), 0);

    let (stack, disk, node) = build(1, &with_bypass());
    let twice = steps.iter().chain(&steps).copied().collect();
    let engine = play(stack, vec![disk], twice, 4).expect("correct");
    let bypassed = engine.stack.counts(node).counter(Counter::BypassedBlocks);
    assert_eq!(bypassed, blocks - first_band, "only the first pass");

    let (stack, disk, node) = build(1, &with_bypass());
    let trim = [Step::Zero(Extent::new(0, blocks))];
    let trimmed = steps.iter().chain(&trim).chain(&steps).copied().collect();
    let engine = play(stack, vec![disk], trimmed, 4).expect("correct");
    let bypassed = engine.stack.counts(node).counter(Counter::BypassedBlocks);
    assert!(bypassed > 3 * (blocks - first_band) / 2, "a trimmed band is fresh");
}

#[test]
fn planted_bugs_are_found() {
    for bug in [
        PlantedBug::OverlapNotRestored,
        PlantedBug::RemapIgnoresOverwrite,
        PlantedBug::OldLocationReusedEarly,
    ] {
        let found = (0..200u64).find(|&seed| {
            let (mut stack, disk, _) = build(seed, &settings());
            stack.plant(bug);
            let steps = random_steps(seed, 120, stack.geometry().blocks.0, 12);
            play(stack, vec![disk], steps, 16).is_err()
        });
        assert!(found.is_some(), "{bug:?} was not found in 200 cases");
    }
}

/// What the untimed algorithm counts: the drive of PORE, block by block.
#[derive(Debug, PartialEq, Eq)]
struct Totals {
    appended: u64,
    updated: u64,
    merged: u64,
    bands_rewritten: u64,
    band_blocks: u64,
    used: u64,
    entries: u64,
}

/// An independent statement of the rules, without time, runs or maps: the log is a list of
/// `(block, entry, live)`, and an entry is counted once for each run of its live blocks.
fn reference(writes: &[Step], bands: &BandTable, settings: &PersistentCacheSettings) -> Totals {
    let capacity = settings.log_blocks.0 as usize;
    let entries_max = settings.entries_max.unwrap_or(u64::MAX);
    let mut log: Vec<(u64, u64, bool)> = Vec::new();
    let (mut appended, mut updated, mut merged, mut rewritten, mut band_blocks) = (0, 0, 0, 0, 0);
    let (mut entry, mut run) = (0u64, 0u64);
    let entries = |log: &[(u64, u64, bool)]| {
        let mut live: Vec<_> = log.iter().filter(|s| s.2).map(|s| (s.1, s.0)).collect();
        live.sort_unstable();
        let follows = |pair: &[(u64, u64)]| pair[0].0 == pair[1].0 && pair[0].1 + 1 == pair[1].1;
        live.len() as u64 - live.windows(2).filter(|pair| follows(pair)).count() as u64
    };
    for step in writes {
        let extent = match step {
            Step::Write(extent) | Step::WriteDurable(extent) => *extent,
            Step::Zero(extent) => {
                let zeroed =
                    |slot: &(u64, u64, bool)| (extent.start.0..extent.end().0).contains(&slot.0);
                log.iter_mut().filter(|slot| zeroed(slot)).for_each(|slot| slot.2 = false);
                continue;
            }
            _ => continue,
        };
        run = 0;
        for block in extent.start.0..extent.end().0 {
            let copy = log.iter().position(|slot| slot.2 && slot.0 == block);
            if settings.update == UpdateMethod::InPlace && copy.is_some() {
                (updated, run) = (updated + 1, 0);
                continue;
            }
            if run == settings.packet_blocks_max.0 || appended % capacity as u64 == 0 {
                run = 0;
            }
            while log.len() == capacity || (run == 0 && entries(&log) >= entries_max) {
                if log[0].2 {
                    let band = bands.extent_of(bands.band_of(Lba(log[0].0)));
                    let inside = |slot: &&mut (u64, u64, bool)| {
                        slot.2 && (band.start.0..band.end().0).contains(&slot.0)
                    };
                    for slot in log.iter_mut().filter(|slot| inside(slot)) {
                        (slot.2, merged) = (false, merged + 1);
                    }
                    (rewritten, band_blocks, run) = (rewritten + 1, band_blocks + band.blocks.0, 0);
                } else {
                    log.remove(0);
                }
            }
            log.iter_mut().filter(|slot| slot.0 == block).for_each(|slot| slot.2 = false);
            entry += u64::from(run == 0);
            log.push((block, entry, true));
            (appended, run) = (appended + 1, run + 1);
        }
    }
    let _ = run;
    Totals {
        appended,
        updated,
        merged,
        bands_rewritten: rewritten,
        band_blocks,
        used: log.len() as u64,
        entries: entries(&log),
    }
}

fn totals(counts: &Counts) -> Totals {
    Totals {
        appended: counts.counter(Counter::PersistentCacheAppendedBlocks),
        updated: counts.counter(Counter::PersistentCacheUpdatedBlocks),
        merged: counts.counter(Counter::PersistentCacheMergedBlocks),
        bands_rewritten: counts.counter(Counter::BandsRewritten),
        band_blocks: counts.counter(Counter::BandBlocksWritten),
        used: counts.gauge(Gauge::PersistentCacheUsedBlocks),
        entries: counts.gauge(Gauge::PersistentCacheEntries),
    }
}

fn variants() -> [PersistentCacheSettings; 5] {
    let limited = |entries| PersistentCacheSettings { entries_max: Some(entries), ..settings() };
    let in_place = PersistentCacheSettings {
        update: UpdateMethod::InPlace,
        rewrite: RewriteSettings { method: RewriteMethod::InPlace, ..settings().rewrite },
        ..settings()
    };
    let limited_in_place = PersistentCacheSettings { entries_max: Some(9), ..in_place.clone() };
    [settings(), limited(5), limited(20), in_place, limited_in_place]
}

#[test]
fn counts_what_the_untimed_algorithm_counts() {
    let variants = variants();
    let mut rewritten = 0;
    for seed in 0..300u64 {
        let settings = &variants[(seed % variants.len() as u64) as usize];
        let (stack, disk, node) = build(seed, settings);
        let longest = [1, 4, 30, 100][(seed / 5 % 4) as usize];
        let steps = random_steps(seed, 300, stack.geometry().blocks.0, longest);
        let expected = reference(&steps, &bands(seed), settings);
        let engine = play(stack, vec![disk], steps, 1).expect("correct");
        let counts = engine.stack.counts(node);
        let totals = totals(counts);
        assert_eq!(totals, expected, "seed {seed}, {settings:?}");
        let read = counts.counter(Counter::BandBlocksRead);
        assert_eq!(read, totals.band_blocks);
        let copies = settings.rewrite.method == RewriteMethod::CopyThenHome;
        let scratch = counts.counter(Counter::ScratchBlocksWritten);
        assert_eq!(scratch, if copies { read } else { 0 });
        rewritten += totals.bands_rewritten;
    }
    assert!(rewritten > 3_000, "only {rewritten} bands were rewritten");
}

#[test]
fn a_write_waits_as_long_as_the_firmware_takes() {
    let slow = PersistentCacheSettings {
        rewrite: RewriteSettings { overhead: Duration::from_ms(700), ..settings().rewrite },
        ..settings()
    };
    let (stack, disk, node) = build(3, &slow);
    let steps = random_steps(3, 200, stack.geometry().blocks.0, 12);
    let engine = play(stack, vec![disk], steps, 1).expect("correct");
    let counts = engine.stack.counts(node);
    let firmware_ns = counts.counter(Counter::BandsRewritten) * 700_000_000;
    let full_ns = counts.counter(Counter::PersistentCacheFullNs);
    assert!(firmware_ns > 0);
    // Each rewrite has some ten operations, of a microsecond each at most, beside.
    assert!((firmware_ns..firmware_ns * 1001 / 1000).contains(&full_ns));
}

#[test]
fn what_adjoins_in_the_log_is_read_at_once() {
    let (stack, disk, _) = build(1, &settings());
    let medium = disk.medium();
    let mut steps: Vec<Step> = (0..20).map(|i| Step::Write(Extent::new(5 + i, 1))).collect();
    steps.push(Step::Read(Extent::new(0, 30)));
    play(stack, vec![disk], steps, 1).expect("correct");
    let log_start = 6;
    let reads = &medium.borrow().read_log;
    assert_eq!(reads[1], Extent::new(log_start, 20), "one read of the log");
}

#[test]
fn a_rewrite_leaves_nothing_of_zeroed_blocks_at_home() {
    let (stack, disk, _) = build(1, &settings());
    let medium = disk.medium();
    let blocks = stack.geometry().blocks.0;
    let elsewhere = |block: u64| Step::Write(Extent::new(blocks / 2 + block % (blocks / 2), 1));
    let full_log = (0..2 * LOG_BLOCKS).map(elsewhere);
    let mut steps = vec![Step::Write(Extent::new(3, 2))];
    steps.extend(full_log.clone());
    steps.push(Step::Zero(Extent::new(3, 1)));
    steps.push(Step::Write(Extent::new(6, 1)));
    steps.extend(full_log);
    play(stack, vec![disk], steps, 1).expect("correct");
    let areas_behind_the_log = 72;
    let at_home = |lba| {
        let medium = medium.borrow();
        let home = medium.blocks.range(areas_behind_the_log..);
        home.filter(|(_, stamp)| stamp.lba == Lba(lba)).count()
    };
    assert!(at_home(4) > 0 && at_home(6) > 0, "the band was rewritten");
    assert_eq!(at_home(3), 0, "the zeroed block was left");
}
