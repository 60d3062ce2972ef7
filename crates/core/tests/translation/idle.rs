//! Cleaning in idle time, over a shingled medium that destroys what a write overlaps: pauses that
//! begin and end at any moment of a rewrite.

use crate::common::harness::{Step, play_with_pauses, random_steps};
use crate::persistent_cache::{build, settings, streaming_steps, with_bypass};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::extent::Extent;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::translation::{
    IdleCleaning, IdlePiece, OnArrival, PersistentCacheSettings, RewriteExtent, RewriteMethod,
    RewriteSettings, UpdateMethod, Victim,
};
use imbrex_core::units::{BlockCount, Duration};
use std::collections::BTreeMap;

/// Longer than it takes to clean everything.
const FOR_EVER_NS: u64 = 1_000_000_000;
/// The disk takes up to 1 us for an operation.
const AFTER: Duration = Duration::from_us(3);

fn idle() -> IdleCleaning {
    IdleCleaning::new(AFTER, BlockCount(1), Duration::from_us(1))
}

fn with(idle: IdleCleaning, settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings { idle: Some(idle), ..settings }
}

/// Pauses before about one step in eight, most of them long enough for a part of a rewrite, and
/// one for ever behind the last step.
fn pauses(seed: u64, steps: usize) -> BTreeMap<usize, u64> {
    let mut rng = Rng::new(seed, 23);
    let mut pauses = BTreeMap::new();
    for step in 0..steps {
        if rng.below(8) == 0 {
            pauses.insert(step, rng.below(60_000));
        }
    }
    pauses.insert(steps, FOR_EVER_NS);
    pauses
}

/// Every setting that changes what is done in idle time, over each way to rewrite.
fn variants() -> Vec<PersistentCacheSettings> {
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
    // A rewrite takes one to three stretches.
    let in_stretches = PersistentCacheSettings {
        rewrite: RewriteSettings {
            merge_buffer_blocks: Some(BlockCount(16)),
            ..from_first_dirty.rewrite
        },
        ..from_first_dirty.clone()
    };
    let in_place_in_stretches = PersistentCacheSettings {
        rewrite: RewriteSettings { merge_buffer_blocks: Some(BlockCount(16)), ..in_place.rewrite },
        ..in_place.clone()
    };
    let limited =
        PersistentCacheSettings { entries_max: Some(6), log_blocks: BlockCount(16), ..settings() };
    let short = IdleCleaning { finish_within: Duration::from_us(20), ..idle() };
    let on_arrival = |on_arrival| IdleCleaning { on_arrival, ..idle() };
    let loses_progress = IdleCleaning { resumes: false, ..idle() };
    let victim = |victim| IdleCleaning { victim, ..short };
    let by_track = |idle| IdleCleaning { piece: IdlePiece::Track, ..idle };
    let mut variants = Vec::new();
    for base in [
        settings(),
        from_first_dirty,
        in_stretches,
        in_place,
        in_place_in_stretches,
        limited,
        with_bypass(),
    ] {
        for idle in [
            short,
            on_arrival(OnArrival::Abort),
            on_arrival(OnArrival::FinishChunk),
            on_arrival(OnArrival::FinishBand),
            loses_progress,
            victim(Victim::MostDirty),
            victim(Victim::Lba),
            by_track(short),
            by_track(on_arrival(OnArrival::Abort)),
        ] {
            variants.push(with(idle, base.clone()));
        }
    }
    variants
}

#[test]
fn keeps_data_when_cleaning_is_interrupted_anywhere() {
    for (number, settings) in variants().into_iter().enumerate() {
        let mut rewritten = 0;
        for seed in 0..24 {
            let seed = seed + 24 * number as u64;
            let (stack, disk, node) = build(seed, &settings);
            let blocks = stack.geometry().blocks.0;
            let steps = match settings.bypass.is_some() {
                true => streaming_steps(seed, blocks),
                false => random_steps(seed, 160, blocks, 12),
            };
            let depth = [1, 2, 5, 16][(seed % 4) as usize];
            let pauses = pauses(seed, steps.len());
            match play_with_pauses(stack, vec![disk], steps, depth, pauses) {
                Ok(engine) => {
                    let counts = engine.stack.counts(node);
                    let entries = counts.gauge(Gauge::PersistentCacheEntries);
                    assert_eq!(entries, 0, "seed {seed}, {settings:?}: not all is clean");
                    assert_eq!(engine.buffers.allocated(), 0, "seed {seed}, {settings:?}");
                    rewritten += counts.counter(Counter::BandsRewritten);
                }
                Err(failure) => panic!("seed {seed}, queue depth {depth}, {settings:?}: {failure}"),
            }
        }
        assert!(rewritten > 24 * 20, "{rewritten} bands with {settings:?}");
    }
}

#[test]
fn loses_nothing_but_failed_writes_when_the_disk_fails() {
    let mut faults = 0;
    for (number, settings) in variants().into_iter().enumerate() {
        if settings.rewrite.method == RewriteMethod::InPlace {
            continue;
        }
        for seed in 0..20 {
            let seed = seed + 20 * number as u64;
            let (stack, disk, _) = build(seed, &settings);
            let disk = disk.failing(20, 500);
            let medium = disk.medium();
            let steps = random_steps(seed, 200, stack.geometry().blocks.0, 12);
            let pauses = pauses(seed, steps.len());
            if let Err(failure) = play_with_pauses(stack, vec![disk], steps, 4, pauses) {
                panic!("seed {seed}, {settings:?}: {failure}");
            }
            faults += medium.borrow().faults;
        }
    }
    assert!(faults > 2_000, "only {faults} operations failed");
}

#[test]
fn planted_bugs_are_found() {
    let settings = with(idle(), settings());
    for bug in [
        PlantedBug::OverlapNotRestored,
        PlantedBug::RemapIgnoresOverwrite,
        PlantedBug::ScratchCopyNotRead,
    ] {
        let found = (0..200u64).find(|&seed| {
            let (mut stack, disk, _) = build(seed, &settings);
            stack.plant(bug);
            let steps = random_steps(seed, 120, stack.geometry().blocks.0, 12);
            let pauses = pauses(seed, steps.len());
            play_with_pauses(stack, vec![disk], steps, 16, pauses).is_err()
        });
        assert!(found.is_some(), "{bug:?} was not found in 200 cases");
    }
}

/// Writes to eight bands with a pause after each, then a look at what the log holds.
fn left_after_pauses(settings: &PersistentCacheSettings, pause_ns: u64) -> (u64, u64) {
    let (stack, disk, node) = build(1, settings);
    let blocks = stack.geometry().blocks.0;
    let steps: Vec<Step> = (0..8).map(|at| Step::Write(Extent::new(at * blocks / 8, 1))).collect();
    let pauses = (1..=8).map(|step| (step, pause_ns)).collect();
    let engine = play_with_pauses(stack, vec![disk], steps, 1, pauses).expect("correct");
    let counts = engine.stack.counts(node);
    (counts.gauge(Gauge::PersistentCacheEntries), counts.counter(Counter::BandsRewritten))
}

#[test]
fn a_pause_below_the_trigger_leaves_the_log_as_it_is() {
    let settings = with(idle(), settings());
    let (entries, rewritten) = left_after_pauses(&settings, AFTER.0 - 1);
    assert_eq!((entries, rewritten), (8, 0));
    let (entries, rewritten) = left_after_pauses(&settings, 400_000);
    assert_eq!((entries, rewritten), (0, 8));
}

#[test]
fn short_pauses_clean_a_band_together_only_if_progress_is_kept() {
    let kept = IdleCleaning { on_arrival: OnArrival::FinishChunk, ..idle() };
    let lost = IdleCleaning { resumes: false, ..kept };
    for (idle, cleans) in [(kept, true), (lost, false)] {
        let (stack, disk, node) = build(1, &with(idle, settings()));
        let blocks = stack.geometry().blocks.0;
        let mut steps = vec![Step::Write(Extent::new(0, 1))];
        steps.extend((0..100).map(|_| Step::Read(Extent::new(blocks - 1, 1))));
        // A band of 16 blocks and more takes some 50 operations.
        let pauses = (1..=100).map(|step| (step, AFTER.0 + 2_000)).collect();
        let engine = play_with_pauses(stack, vec![disk], steps, 1, pauses).expect("correct");
        let rewritten = engine.stack.counts(node).counter(Counter::BandsRewritten);
        assert_eq!(rewritten > 0, cleans, "{idle:?}");
    }
}
