//! Cleaning for want of room that alternates with requests and goes on until a share is free.

use crate::common::harness::{Step, play, play_with_pauses, random_steps};
use crate::persistent_cache::{build, settings, streaming_steps, with_bypass};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::extent::Extent;
use imbrex_core::planted::PlantedBug;
use imbrex_core::translation::{
    BlockingCleaning, CleanTo, IdleCleaning, PersistentCacheSettings, RewriteExtent, RewriteMethod,
    RewriteSettings, UpdateMethod,
};
use imbrex_core::units::{BlockCount, Duration};

/// The disk takes up to 1 us for an operation, a rewrite some 50 of them.
const SLICE: Duration = Duration::from_us(8);

fn blocking(low_permille: u32, slice: Option<Duration>) -> BlockingCleaning {
    BlockingCleaning { low_permille, slice, to: CleanTo::Home }
}

fn variants() -> Vec<PersistentCacheSettings> {
    let from_first_dirty = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            overhead: Duration::from_us(20),
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
    let idle = PersistentCacheSettings {
        idle: Some(IdleCleaning::new(Duration::from_us(3), BlockCount(1), Duration::from_us(1))),
        ..limited.clone()
    };
    let mut variants = Vec::new();
    for base in [
        settings(),
        from_first_dirty,
        in_stretches,
        in_place,
        in_place_in_stretches,
        limited,
        with_bypass(),
        idle,
    ] {
        for blocking in [
            blocking(900, None),
            blocking(0, None),
            blocking(1000, Some(SLICE)),
            blocking(500, Some(SLICE)),
            blocking(900, Some(Duration::ZERO)),
        ] {
            variants.push(PersistentCacheSettings { blocking, ..base.clone() });
        }
    }
    variants
}

#[test]
fn keeps_data_when_cleaning_alternates_with_requests() {
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
            let pauses = (0..steps.len()).step_by(29).map(|step| (step, 30_000));
            match play_with_pauses(stack, vec![disk], steps, depth, pauses.collect()) {
                Ok(engine) => {
                    rewritten += engine.stack.counts(node).counter(Counter::BandsRewritten);
                }
                Err(failure) => panic!("seed {seed}, queue depth {depth}, {settings:?}: {failure}"),
            }
        }
        assert!(rewritten > 24 * 4, "{rewritten} bands with {settings:?}");
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
            if let Err(failure) = play(stack, vec![disk], steps, 4) {
                panic!("seed {seed}, {settings:?}: {failure}");
            }
            faults += medium.borrow().faults;
        }
    }
    assert!(faults > 2_000, "only {faults} operations failed");
}

#[test]
fn a_read_that_goes_home_in_a_sliced_clean_is_found() {
    let settings = PersistentCacheSettings { blocking: blocking(500, Some(SLICE)), ..settings() };
    let found = (0..200u64).any(|seed| {
        let (mut stack, disk, _) = build(seed, &settings);
        stack.plant(PlantedBug::ScratchCopyNotRead);
        let steps = random_steps(seed, 200, stack.geometry().blocks.0, 12);
        play(stack, vec![disk], steps, 16).is_err()
    });
    assert!(found, "not found in 200 cases");
}

#[test]
fn cleaning_goes_on_until_the_share_is_free() {
    // 64 slots in blocks that lie in all twelve bands: the write after them has no room.
    let left = |low_permille| {
        let settings =
            PersistentCacheSettings { blocking: blocking(low_permille, None), ..settings() };
        let (stack, disk, node) = build(1, &settings);
        let blocks = stack.geometry().blocks.0;
        let steps = (0..65).map(|at| Step::Write(Extent::new(at * 37 % blocks, 1)));
        let engine = play(stack, vec![disk], steps.collect(), 1).expect("correct");
        let counts = engine.stack.counts(node);
        let used = counts.gauge(Gauge::PersistentCacheUsedBlocks);
        (used, counts.counter(Counter::BandsRewritten))
    };
    let (used, rewritten) = left(1000);
    assert_eq!(rewritten, 1);
    assert!(used > 58, "{used} slots");
    let (used, rewritten) = left(500);
    assert!(rewritten > 3, "{rewritten} bands");
    assert!(used <= 32, "{used} slots");
    let (used, rewritten) = left(0);
    assert!(used == 0 && rewritten >= 12, "{used} slots, {rewritten} bands");
}
