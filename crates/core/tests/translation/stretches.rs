//! Bands that are rewritten in stretches, through a memory that does not hold them: on a medium
//! that destroys the tracks behind each stretch.

use crate::common::check::check;
use crate::common::harness::{Step, play, play_with_pauses, random_steps};
use crate::persistent_cache::{
    bands, build, settings, shingled_disk, streaming_steps, with_bypass,
};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::disk::Disk;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::extent::Extent;
use imbrex_core::map::BandId;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::translation::{
    BlockingCleaning, CleanTo, CoveredBlocks, IdleCleaning, LayoutError, OnArrival,
    PersistentCache, PersistentCacheSettings, RewriteExtent, RewriteMethod, RewriteSettings,
    UpdateMethod,
};
use imbrex_core::units::{BlockCount, Duration};
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of the tracks under the bands.
const TRACK: u64 = 4;

/// How many tracks the disk of a seed destroys behind one that is written.
fn overlap(seed: u64) -> u64 {
    1 + seed % 3
}

fn through(blocks: u64, settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        rewrite: RewriteSettings {
            merge_buffer_blocks: Some(BlockCount(blocks)),
            ..settings.rewrite
        },
        ..settings
    }
}

/// The smallest buffer that the disk of a seed takes, or a little more.
fn smallest(seed: u64) -> u64 {
    TRACK * (overlap(seed) + 1) + seed / 3 % 4
}

fn variants() -> [PersistentCacheSettings; 8] {
    let from_first_dirty = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            overhead: Duration::from_us(2),
            ..settings().rewrite
        },
        ..settings()
    };
    let in_place = PersistentCacheSettings {
        rewrite: RewriteSettings { method: RewriteMethod::InPlace, ..settings().rewrite },
        update: UpdateMethod::InPlace,
        ..settings()
    };
    let updated = PersistentCacheSettings {
        update: UpdateMethod::InPlace,
        log_blocks: BlockCount(16),
        ..settings()
    };
    let to_written = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirtyToWritten,
            ..with_bypass().rewrite
        },
        log_blocks: BlockCount(24),
        ..with_bypass()
    };
    let to_written_in_place = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirtyToWritten,
            ..in_place.rewrite
        },
        ..in_place.clone()
    };
    let [logged, logged_to_written] =
        [&from_first_dirty, &to_written].map(|it| PersistentCacheSettings {
            rewrite: RewriteSettings { covered: CoveredBlocks::FromLog, ..it.rewrite },
            log_blocks: BlockCount(48),
            ..it.clone()
        });
    [
        settings(),
        from_first_dirty,
        in_place,
        updated,
        to_written,
        to_written_in_place,
        logged,
        logged_to_written,
    ]
}

/// The variants, cleaned in idle time by single blocks and, while a write waits, in slices.
fn interrupted(settings: PersistentCacheSettings, resumes: bool) -> PersistentCacheSettings {
    let idle = IdleCleaning::new(Duration::from_us(3), BlockCount(1), Duration::from_us(1));
    PersistentCacheSettings {
        idle: Some(IdleCleaning { on_arrival: OnArrival::FinishChunk, resumes, ..idle }),
        blocking: BlockingCleaning {
            low_permille: 500,
            slice: Some(Duration::from_us(8)),
            to: CleanTo::Home,
        },
        ..settings
    }
}

#[test]
fn keeps_data_through_any_buffer() {
    for settings in variants() {
        let build = move |seed| {
            let (stack, disk, _) = build(seed, &through(smallest(seed), settings.clone()));
            (stack, vec![disk])
        };
        check("the smallest buffer", &build, 400, 0);
    }
}

#[test]
fn keeps_data_when_a_rewrite_stops_between_any_two_chunks() {
    for (settings, resumes) in
        variants().into_iter().flat_map(|it| [(it.clone(), true), (it, false)])
    {
        let mut rewritten = 0;
        for seed in 0..60 {
            let settings = interrupted(through(smallest(seed), settings.clone()), resumes);
            let (stack, disk, node) = build(seed, &settings);
            let blocks = stack.geometry().blocks.0;
            let steps = match settings.bypass.is_some() {
                true => streaming_steps(seed, blocks),
                false => random_steps(seed, 160, blocks, 12),
            };
            let mut rng = Rng::new(seed, 29);
            // Long enough for anything from one chunk to a few bands.
            let mut pauses: BTreeMap<usize, u64> = (0..steps.len())
                .filter(|step| step % 5 == 0)
                .map(|step| {
                    let scale = 1 << rng.below(17);
                    (step, 3_000 + rng.below(scale))
                })
                .collect();
            pauses.insert(steps.len(), 1_000_000_000);
            let depth = [1, 2, 5, 16][(seed % 4) as usize];
            match play_with_pauses(stack, vec![disk], steps, depth, pauses) {
                Ok(engine) => {
                    let counts = engine.stack.counts(node);
                    rewritten += counts.counter(Counter::BandsRewritten);
                    assert_eq!(engine.buffers.allocated(), 0, "seed {seed}, {settings:?}");
                }
                Err(failure) => panic!("seed {seed}, queue depth {depth}, {settings:?}: {failure}"),
            }
        }
        assert!(rewritten > 60 * 20, "{rewritten} bands with {settings:?}");
    }
}

/// One band written in the log, and rewritten by itself in the pause that follows, with every
/// operation of that failing once.
#[test]
fn a_rewrite_that_fails_at_any_operation_is_brought_home() {
    for seed in 0..12 {
        let [whole, from_first_dirty, _, _, to_written, _, logged, logged_to_written] = variants();
        // Every fifth block, or whole stretches.
        for (settings, step) in [
            (whole, 5),
            (from_first_dirty, 5),
            (to_written, 5),
            (logged, 1),
            (logged_to_written, 1),
        ] {
            let settings = interrupted(through(smallest(seed), settings), seed % 2 == 0);
            let band = (0..12).max_by_key(|band| bands(seed).extent_of(BandId(*band)).blocks);
            let band = bands(seed).extent_of(BandId(band.expect("bands")));
            // All of it goes home, then some blocks of it are written again.
            let all = (band.start.0..band.end().0).map(|block| Extent::new(block, 1));
            let mut steps: Vec<Step> = all.map(Step::Write).collect();
            let mut pauses = BTreeMap::from([(steps.len(), 1_000_000_000)]);
            let again = (0..band.blocks.0).step_by(step).skip(1 + seed as usize % 3);
            steps.extend(again.map(|at| Step::Write(Extent::new(band.start.0 + at, 1))));
            // The rest of the rewrite is tried again after each of these.
            for _ in 0..4 {
                pauses.insert(steps.len(), 1_000_000_000);
                steps.push(Step::Read(band));
            }
            let (mut at, mut failed) = (0, 0);
            loop {
                let (stack, disk, node) = build(seed, &settings);
                let disk = disk.failing_at(at);
                let medium = disk.medium();
                let played = play_with_pauses(stack, vec![disk], steps.clone(), 1, pauses.clone());
                let engine = played.unwrap_or_else(|failure| {
                    panic!("seed {seed}, operation {at}, {settings:?}: {failure}")
                });
                let counts = engine.stack.counts(node);
                assert!(counts.counter(Counter::BandsRewritten) >= 1);
                let left = counts.gauge(Gauge::PersistentCacheEntries);
                assert_eq!(left, 0, "seed {seed}, operation {at}, {settings:?}");
                let faults = medium.borrow().faults;
                if faults == 0 {
                    break;
                }
                failed += faults;
                at += 1;
            }
            assert!(failed > 100, "{failed} operations");
        }
    }
}

#[test]
fn loses_nothing_but_failed_writes_when_the_disk_fails() {
    let mut faults = 0;
    for settings in
        variants().into_iter().filter(|it| it.rewrite.method == RewriteMethod::CopyThenHome)
    {
        for seed in 0..200 {
            let settings = through(smallest(seed), settings.clone());
            let settings = match seed % 2 {
                0 => settings,
                _ => interrupted(settings, seed % 4 == 1),
            };
            let (stack, disk, _) = build(seed, &settings);
            let disk = disk.failing(15, 500);
            let medium = disk.medium();
            let steps = random_steps(seed, 250, stack.geometry().blocks.0, 12);
            let pauses = (0..steps.len()).step_by(23).map(|step| (step, 30_000));
            if let Err(failure) = play_with_pauses(stack, vec![disk], steps, 4, pauses.collect()) {
                panic!("seed {seed}, {settings:?}: {failure}");
            }
            faults += medium.borrow().faults;
        }
    }
    assert!(faults > 5_000, "only {faults} operations failed");
}

/// The bug is planted where a stretch ends: the tracks behind it are forgotten.
#[test]
fn carried_tracks_that_are_forgotten_are_missed() {
    for settings in variants() {
        let found = (0..60u64).find(|&seed| {
            // The disk destroys one track, so every band takes two stretches and more.
            let settings = through(2 * TRACK, settings.clone());
            let (mut stack, disk, _) = build(3 * seed, &settings);
            stack.plant(PlantedBug::OverlapNotRestored);
            let steps = random_steps(seed, 120, stack.geometry().blocks.0, 12);
            play(stack, vec![disk], steps, 16).is_err()
        });
        assert!(found.is_some(), "not found in 60 cases with {settings:?}");
    }
}

/// A seed whose disk destroys one track and has a band of nine, and that band.
fn band_of_nine_tracks() -> (u64, u32) {
    (0..)
        .step_by(3)
        .find_map(|seed| {
            let nine = |band: &u32| bands(seed).extent_of(BandId(*band)).blocks.0 == 9 * TRACK;
            (0..12).find(nine).map(|band| (seed, band))
        })
        .expect("a band of nine tracks")
}

/// What a rewrite of a band of nine tracks with one dirty block costs.
fn counts_of_a_rewrite(buffer: u64, rewrite: RewriteMethod) -> [u64; 4] {
    let (seed, band) = band_of_nine_tracks();
    let settings = PersistentCacheSettings {
        rewrite: RewriteSettings { method: rewrite, ..through(buffer, settings()).rewrite },
        entries_max: Some(1),
        ..through(buffer, settings())
    };
    let (stack, disk, node) = build(seed, &settings);
    let start = bands(seed).extent_of(BandId(band)).start.0;
    let steps = [start + 7, start + 9].map(|block| Step::Write(Extent::new(block, 1)));
    let engine = play(stack, vec![disk], steps.to_vec(), 1).expect("correct");
    let counts = engine.stack.counts(node);
    assert_eq!(counts.counter(Counter::BandsRewritten), 1);
    assert_eq!(counts.counter(Counter::PersistentCacheMergedBlocks), 1);
    [
        counts.counter(Counter::BandBlocksRead),
        counts.counter(Counter::ScratchBlocksWritten),
        counts.counter(Counter::BandBlocksWritten),
        counts.counter(Counter::BandRewriteNs),
    ]
}

#[test]
fn carried_tracks_are_read_and_written_home_once_and_to_the_scratch_band_twice() {
    let copy = |buffer| counts_of_a_rewrite(buffer, RewriteMethod::CopyThenHome);
    let [read, scratch, home, whole_ns] = copy(36);
    assert_eq!([read, scratch, home], [36, 36, 36], "one stretch");
    // Five tracks, with one to be carried, and the four left.
    let [read, scratch, home, two_ns] = copy(20);
    assert_eq!([read, scratch, home], [36, 40, 36], "two stretches");
    // Three, three and three.
    let [read, scratch, home, three_ns] = copy(12);
    assert_eq!([read, scratch, home], [36, 44, 36], "three stretches");
    assert!(whole_ns < two_ns && two_ns < three_ns, "each stretch takes accesses");
    let [read, scratch, home, _] = counts_of_a_rewrite(12, RewriteMethod::InPlace);
    assert_eq!([read, scratch, home], [36, 0, 36], "without a scratch copy");
}

/// What the rewrite of a band of nine tracks reads at home, copies and writes home, of which the log
/// holds `logged`, as offsets.
fn counts_of_a_rewrite_from_the_log(logged: Range<u64>, covered: CoveredBlocks) -> [u64; 3] {
    let (seed, band) = band_of_nine_tracks();
    let settings = PersistentCacheSettings {
        rewrite: RewriteSettings { covered, ..through(3 * TRACK, settings()).rewrite },
        log_blocks: BlockCount(logged.end - logged.start),
        ..through(3 * TRACK, settings())
    };
    let (stack, disk, node) = build(seed, &settings);
    let start = bands(seed).extent_of(BandId(band)).start.0;
    let mut steps: Vec<Step> = logged.map(|at| Step::Write(Extent::new(start + at, 1))).collect();
    // It has no room.
    steps.push(Step::Write(Extent::new(start, 1)));
    let engine = play(stack, vec![disk], steps, 1).expect("correct");
    let counts = engine.stack.counts(node);
    assert_eq!(counts.counter(Counter::BandsRewritten), 1);
    [Counter::BandBlocksRead, Counter::ScratchBlocksWritten, Counter::BandBlocksWritten]
        .map(|it| counts.counter(it))
}

#[test]
fn what_the_log_holds_is_neither_read_at_home_nor_copied() {
    use CoveredBlocks::{AsOthers, FromLog};
    let counts = counts_of_a_rewrite_from_the_log;
    // Stretches of three tracks, the first two with one to be carried.
    assert_eq!(counts(0..36, AsOthers), [36, 44, 36]);
    assert_eq!(counts(0..36, FromLog), [0, 0, 36], "all of it");
    assert_eq!(counts(0..16, FromLog), [20, 28, 36], "the first stretch");
    assert_eq!(counts(0..15, FromLog), [21, 44, 36], "not what it destroys");
    assert_eq!(counts(12..28, FromLog), [20, 28, 36], "the second stretch");
    assert_eq!(counts(13..28, FromLog), [21, 44, 36], "not what it takes over");
    assert_eq!(counts(5..8, FromLog), [36, 44, 36], "less than a track");
}

/// Blocks read and written home when a band of nine tracks is rewritten that was written before up to
/// `written` blocks from its start, and of which block 9 is in the log.
fn cost_up_to(written: u64, buffer: Option<u64>) -> [u64; 2] {
    let (seed, band) = band_of_nine_tracks();
    let settings = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirtyToWritten,
            merge_buffer_blocks: buffer.map(BlockCount),
            ..settings().rewrite
        },
        entries_max: Some(1),
        ..settings()
    };
    let start = bands(seed).extent_of(BandId(band)).start.0;
    // The log has one entry: each write cleans the band for the one before.
    let before = [written - 1, 9, 20].map(|at| Step::Write(Extent::new(start + at, 1)));
    let counts = |steps: &[Step]| {
        let (stack, disk, node) = build(seed, &settings);
        let engine = play(stack, vec![disk], steps.to_vec(), 1).expect("correct");
        let counts = engine.stack.counts(node);
        [Counter::BandBlocksRead, Counter::BandBlocksWritten].map(|it| counts.counter(it))
    };
    let (one, two) = (counts(&before[..2]), counts(&before));
    [two[0] - one[0], two[1] - one[1]]
}

#[test]
fn a_rewrite_costs_what_lies_between_the_first_dirty_track_and_the_write_pointer() {
    // Block 9 is on the track that begins at 8.
    assert_eq!(cost_up_to(12, None), [4, 4]);
    assert_eq!(cost_up_to(26, None), [18, 18]);
    assert_eq!(cost_up_to(36, None), [28, 28]);
    assert_eq!(cost_up_to(26, Some(8)), [18, 18]);
    assert_eq!(cost_up_to(36, Some(8)), [28, 28]);
    // Nothing was at home behind the first track, and nothing of it is read.
    assert_eq!(cost_up_to(1, None), [0, 2]);
}

/// What `settings` are refused with on the disk of a seed; none when they are not.
fn refusal(seed: u64, settings: PersistentCacheSettings) -> Option<LayoutError> {
    let disk = shingled_disk(seed);
    PersistentCache::new(settings, bands(seed), disk.geometry()).err()
}

#[test]
fn a_buffer_that_cannot_be_used_is_refused() {
    for seed in 0..3 {
        let needed = TRACK * (overlap(seed) + 1);
        assert_eq!(refusal(seed, through(needed, settings())), None);
        let error = refusal(seed, through(needed - 1, settings())).expect("too small");
        let (buffer, needed) = (BlockCount(needed - 1), BlockCount(needed));
        assert_eq!(error, LayoutError::MergeBufferTooSmall { buffer, needed });
        let text = error.to_string();
        assert!(text.contains("merge_buffer") && text.contains("accepted:"), "{text}");
    }
    let durable = PersistentCacheSettings {
        durability: Some(DurabilitySettings { unflushed_blocks_max: 64, ring_blocks: 64 }),
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirtyToWritten,
            ..settings().rewrite
        },
        ..settings()
    };
    assert_eq!(refusal(0, durable), Some(LayoutError::ExtentNotDurable));
}
