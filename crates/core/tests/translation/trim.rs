//! Trims: what they take out of the log, and what they spare a band rewrite, on a medium that destroys
//! what a write overlaps.

use crate::common::harness::{Step, play};
use crate::persistent_cache::{
    bands, build, settings, streaming_steps, with_bypass, zeroing_steps,
};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::extent::Extent;
use imbrex_core::map::BandId;
use imbrex_core::rng::Rng;
use imbrex_core::translation::{
    PersistentCacheSettings, RewriteExtent, RewriteMethod, RewriteSettings, TrimMethod,
    UpdateMethod,
};
use imbrex_core::units::{BlockCount, Duration};

const TRIMS: [TrimMethod; 3] = [TrimMethod::None, TrimMethod::FromLog, TrimMethod::Frees];

fn with_trim(trim: TrimMethod, settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings { trim, ..settings }
}

fn variants(trim: TrimMethod) -> [PersistentCacheSettings; 6] {
    let from_first_dirty = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            overhead: Duration::from_us(2),
            ..settings().rewrite
        },
        ..settings()
    };
    let stretches = PersistentCacheSettings {
        rewrite: RewriteSettings {
            merge_buffer_blocks: Some(BlockCount(19)),
            ..from_first_dirty.rewrite
        },
        ..from_first_dirty.clone()
    };
    let in_place = PersistentCacheSettings {
        rewrite: RewriteSettings { method: RewriteMethod::InPlace, ..settings().rewrite },
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
    let streams = PersistentCacheSettings {
        rewrite: RewriteSettings { extent: RewriteExtent::FromFirstDirty, ..with_bypass().rewrite },
        log_blocks: BlockCount(24),
        ..with_bypass()
    };
    [settings(), from_first_dirty, stretches, in_place, to_written, streams]
        .map(|settings| with_trim(trim, settings))
}

/// Streams and random requests, and many trims: of a few blocks, of bands, and to the end of one.
fn trimming_steps(seed: u64, blocks: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 17);
    let table = bands(seed);
    let mut steps = Vec::new();
    for step in streaming_steps(seed, blocks) {
        steps.push(step);
        if rng.below(5) > 0 {
            continue;
        }
        let band = BandId(rng.below(u64::from(table.bands())) as u32);
        let whole = table.extent_of(band);
        let first = rng.below(whole.blocks.0);
        let rest = whole.blocks.0 - first;
        let trimmed = match rng.below(3) {
            0 => whole,
            1 => Extent::new(whole.start.0 + first, rest),
            _ => Extent::new(whole.start.0 + first, 1 + rng.below(rest)),
        };
        steps.push(Step::Zero(trimmed));
    }
    steps
}

#[test]
fn keeps_data_whatever_a_trim_does() {
    for trim in TRIMS {
        let (mut rewritten, mut bypassed) = (0, 0);
        for settings in variants(trim) {
            for seed in 0..200 {
                for workload in [trimming_steps, zeroing_steps] {
                    let (stack, disk, node) = build(seed, &settings);
                    let steps = workload(seed, stack.geometry().blocks.0);
                    let depth = [1, 2, 5, 16][(seed % 4) as usize];
                    match play(stack, vec![disk], steps, depth) {
                        Ok(engine) => {
                            assert_eq!(engine.buffers.allocated(), 0);
                            let counts = engine.stack.counts(node);
                            rewritten += counts.counter(Counter::BandsRewritten);
                            bypassed += counts.counter(Counter::BypassedBlocks);
                        }
                        Err(failure) => {
                            panic!("seed {seed}, depth {depth}, {settings:?}: {failure}")
                        }
                    }
                }
            }
        }
        assert!(rewritten > 10_000, "only {rewritten} bands were rewritten");
        assert!(bypassed > 10_000, "only {bypassed} blocks went home");
    }
}

#[test]
fn loses_nothing_but_failed_writes_when_the_disk_fails_between_trims() {
    let mut faults = 0;
    for trim in TRIMS {
        // What is rewritten in place is lost when that fails.
        let keeps = |it: &PersistentCacheSettings| it.rewrite.method == RewriteMethod::CopyThenHome;
        for settings in variants(trim).into_iter().filter(keeps) {
            for seed in 0..100 {
                let (stack, disk, _) = build(seed, &settings);
                let disk = disk.failing(12, 400);
                let medium = disk.medium();
                let steps = trimming_steps(seed, stack.geometry().blocks.0);
                if let Err(failure) = play(stack, vec![disk], steps, 1 + (seed % 8) as usize) {
                    panic!("seed {seed}, {settings:?}: {failure}");
                }
                faults += medium.borrow().faults;
            }
        }
    }
    assert!(faults > 5_000, "only {faults} operations failed");
}

/// A seed and a band of it that is nine whole tracks of four blocks long.
fn band_of_nine_tracks() -> (u64, BandId) {
    let long = |seed: u64| {
        let table = bands(seed);
        let is_long = |band: &BandId| table.extent_of(*band).blocks.0 == 36;
        (0..table.bands()).map(BandId).find(is_long).map(|band| (seed, band))
    };
    (0..100).find_map(long).expect("a band of nine tracks")
}

/// Blocks read and written home when a band of nine tracks is rewritten of which one block is in the
/// log and these ranges were trimmed before.
fn cost_after(trim: TrimMethod, dirty: u64, trims: &[(u64, u64)]) -> [u64; 2] {
    let (seed, band) = band_of_nine_tracks();
    let settings = PersistentCacheSettings {
        rewrite: RewriteSettings {
            extent: RewriteExtent::FromFirstDirty,
            ..with_trim(trim, settings()).rewrite
        },
        entries_max: Some(1),
        ..with_trim(trim, settings())
    };
    let start = bands(seed).extent_of(band).start.0;
    let other = bands(seed).extent_of(BandId(u32::from(band.0 == 0))).start.0;
    let mut steps: Vec<Step> =
        trims.iter().map(|(from, to)| Step::Zero(Extent::new(start + from, to - from))).collect();
    // The log has one entry: the second write cleans the band for the first.
    steps.push(Step::Write(Extent::new(start + dirty, 1)));
    steps.push(Step::Write(Extent::new(other, 1)));
    let (stack, disk, node) = build(seed, &settings);
    let engine = play(stack, vec![disk], steps, 1).expect("correct");
    let counts = engine.stack.counts(node);
    [Counter::BandBlocksRead, Counter::BandBlocksWritten].map(|it| counts.counter(it))
}

#[test]
fn a_rewrite_ends_where_the_band_is_in_no_use_any_more() {
    let frees = |trims: &[(u64, u64)]| cost_after(TrimMethod::Frees, 9, trims);
    // Block 9 is on the track that begins at 8.
    assert_eq!(frees(&[]), [28, 28]);
    assert_eq!(frees(&[(20, 36)]), [12, 12], "the tail is left out");
    assert_eq!(frees(&[(20, 24), (24, 36)]), [12, 12], "in two trims as well");
    assert_eq!(frees(&[(24, 36), (20, 24)]), [12, 12], "in any order");
    assert_eq!(frees(&[(12, 30)]), [28, 28], "a hole is not");
    assert_eq!(frees(&[(0, 36)]), [0, 2], "nothing but the log is in use");
    let last = cost_after(TrimMethod::Frees, 35, &[]);
    assert_eq!(last, [4, 4], "what the log has overwritten is no trim");
    let from_log = |trims: &[(u64, u64)]| cost_after(TrimMethod::FromLog, 9, trims);
    assert_eq!(from_log(&[(20, 36)]), [28, 28], "the ablation");
    assert_eq!(from_log(&[(0, 36)]), [28, 28], "the ablation");
}

/// Blocks that a second stream over the device sends around the log when it was trimmed between the
/// two in pieces that end inside bands.
fn bypassed_after_trims(trim: TrimMethod) -> u64 {
    let counts = |second: bool| {
        let (stack, disk, node) = build(1, &with_trim(trim, with_bypass()));
        let blocks = stack.geometry().blocks.0;
        let pieces = |step: u64| {
            let starts = (0..blocks).step_by(step as usize);
            starts.map(move |start| Extent::new(start, step.min(blocks - start)))
        };
        let stream = || pieces(4).map(Step::Write);
        let mut steps: Vec<Step> = stream().collect();
        steps.extend((0..6).map(|at| Step::Write(Extent::new(3 + 31 * at, 1))));
        steps.extend(pieces(5).map(Step::Zero));
        if second {
            steps.extend(stream());
        }
        let engine = play(stack, vec![disk], steps, 1).expect("correct");
        let counts = engine.stack.counts(node);
        counts.counter(Counter::BypassedBlocks)
    };
    counts(true) - counts(false)
}

#[test]
fn a_trimmed_drive_is_as_a_fresh_one() {
    let first_band = bands(1).extent_of(BandId(0)).blocks.0;
    let blocks = bands(1).blocks().0;
    let bypassed = bypassed_after_trims(TrimMethod::Frees);
    // The stream needs 12 blocks to be one; the first pass sent all but the first band home.
    assert!(bypassed >= blocks - first_band, "{bypassed} of {blocks} blocks went around the log");
    let of_a_trim_each = bypassed_after_trims(TrimMethod::FromLog);
    assert!(of_a_trim_each < bypassed / 2, "{of_a_trim_each}: the ablation");
    let of_zeroes = bypassed_after_trims(TrimMethod::None);
    assert_eq!(of_zeroes, 0, "zeroes fill bands");
}

#[test]
fn trims_empty_the_log_and_zeroes_fill_it() {
    let counts = |trim: TrimMethod| {
        let (stack, disk, node) = build(1, &with_trim(trim, settings()));
        let mut steps: Vec<Step> = (0..8).map(|at| Step::Write(Extent::new(5 * at, 2))).collect();
        steps.push(Step::Zero(Extent::new(0, 64)));
        steps.push(Step::Read(Extent::new(0, 64)));
        let engine = play(stack, vec![disk], steps, 1).expect("correct");
        let counts = engine.stack.counts(node);
        (
            counts.counter(Counter::PersistentCacheAppendedBlocks),
            counts.gauge(Gauge::PersistentCacheEntries),
        )
    };
    assert_eq!(counts(TrimMethod::Frees), (16, 0));
    assert_eq!(counts(TrimMethod::FromLog), (16, 0));
    let (appended, entries) = counts(TrimMethod::None);
    assert_eq!(appended, 16 + 64);
    assert!(entries > 0, "zeroes are data");
}

#[test]
fn a_short_write_never_goes_around_the_log() {
    let bypassed = |min: u64| {
        let mut settings = with_bypass();
        let bypass = settings.bypass.as_mut().expect("streams go around the log");
        bypass.min_blocks = BlockCount(min);
        let (stack, disk, node) = build(1, &settings);
        let blocks = stack.geometry().blocks.0;
        let starts = (0..blocks).step_by(4);
        let steps = starts.map(|start| Step::Write(Extent::new(start, 4.min(blocks - start))));
        let engine = play(stack, vec![disk], steps.collect(), 1).expect("correct");
        engine.stack.counts(node).counter(Counter::BypassedBlocks)
    };
    assert!(bypassed(4) > 0, "a stream of writes of four blocks");
    assert_eq!(bypassed(5), 0, "which are too short");
}
