//! Contents survive on a medium that destroys what a write overlaps: random workloads on the
//! ready-made stacks, over simulated disks that keep a stamp of every block.
//!
//! The disks are tiny, so that every case evicts, rewrites bands and reuses slots. A failure
//! prints its seed; `IMBREX_SEED=<seed>` in the environment replays that case alone.

mod directions;
mod planted;
mod tiny;
mod workload;

use crate::harness::{Step, play_on};
use imbrex_core::counters::Counter;
use imbrex_core::planted::PlantedBug;
use imbrex_stack::{Built, compared};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tiny::TinyStack;

/// Cases of each ready-made stack.
const CASES: u64 = 1_000;
/// The same in the soak.
const CASES_AT_LENGTH: u64 = 20_000;
/// Cases of each variant of a stack.
const CASES_OF_VARIANTS: u64 = 120;
/// Queue depths are drawn from 1 to this.
const QUEUE_DEPTH_MAX: u64 = 16;
/// Threads that share the cases of a stack.
const THREADS: u64 = 2;

/// What happened in one case or several.
#[derive(Clone, Copy, Default)]
struct Seen {
    bands_rewritten: u64,
    evictions: u64,
    bypassed_blocks: u64,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.bands_rewritten += other.bands_rewritten;
        self.evictions += other.evictions;
        self.bypassed_blocks += other.bypassed_blocks;
    }
}

/// How the steps of a case are made from its seed and the blocks of the device.
type Workload = fn(u64, u64) -> Vec<Step>;

/// Plays one case; the error names the queue depth and what went wrong. A broken invariant in a
/// layer is a failure like any other.
fn play_case(
    stack: &TinyStack,
    seed: u64,
    workload: Workload,
    bug: Option<PlantedBug>,
) -> Result<Seen, String> {
    let depth = 1 + seed % QUEUE_DEPTH_MAX;
    let case = || {
        let Built { mut stack, disks, describe } = stack.build(seed);
        if let Some(bug) = bug {
            stack.plant(bug);
        }
        let steps = workload(seed, stack.geometry().blocks.0);
        let engine = play_on(stack, disks, Vec::new(), steps, depth as usize)?;
        if engine.buffers.allocated() != 0 {
            return Err(format!("{} buffers are lost", engine.buffers.allocated()));
        }
        let mut seen = Seen::default();
        if let Some(node) = describe.translation() {
            let counts = engine.stack.counts(node);
            seen.bands_rewritten = counts.counter(Counter::BandsRewritten);
            seen.bypassed_blocks = counts.counter(Counter::BypassedBlocks);
        }
        if let Some(node) = describe.cache() {
            seen.evictions = engine.stack.counts(node).counter(Counter::DirtyEvictions);
        }
        Ok(seen)
    };
    let result = catch_unwind(AssertUnwindSafe(case));
    let result = result.unwrap_or_else(|_| Err("a panic, reported above".to_string()));
    result.map_err(|failure| format!("queue depth {depth}: {failure}"))
}

/// Plays `cases` cases of a stack on all threads; panics at the lowest seed that fails.
fn check(stack: &TinyStack, cases: u64, workload: Workload) -> Seen {
    let only = std::env::var("IMBREX_SEED").ok().map(|seed| {
        let seed = seed.parse::<u64>();
        seed.expect("IMBREX_SEED is the seed of a case")
    });
    let seeds = only.map_or(0..cases, |seed| seed..seed + 1);
    let (next, total) = (AtomicU64::new(seeds.start), Mutex::new(Seen::default()));
    let failed: Mutex<Option<(u64, String)>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut mine = Seen::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let stop = failed.lock().expect("no holder panics").is_some();
                    if stop || !seeds.contains(&seed) {
                        break;
                    }
                    match play_case(stack, seed, workload, None) {
                        Ok(seen) => mine.add(seen),
                        Err(failure) => {
                            let mut failed = failed.lock().expect("no holder panics");
                            if failed.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
                                *failed = Some((seed, failure));
                            }
                        }
                    }
                }
                total.lock().expect("no holder panics").add(mine);
            });
        }
    });
    if let Some((seed, failure)) = failed.into_inner().expect("no holder panics") {
        panic!("{}, seed {seed}, {failure}; IMBREX_SEED={seed} replays it", stack.label);
    }
    let mut total = total.into_inner().expect("no holder panics");
    if only.is_some() {
        // One case need not show everything that many cases must.
        total = Seen { bands_rewritten: u64::MAX, evictions: u64::MAX, bypassed_blocks: u64::MAX };
    }
    total
}

#[test]
fn the_compared_stacks_keep_their_contents() {
    compared_stacks_keep_their_contents(CASES);
}

#[test]
#[ignore = "long: for the soak"]
fn the_compared_stacks_keep_their_contents_at_length() {
    compared_stacks_keep_their_contents(CASES_AT_LENGTH);
}

fn compared_stacks_keep_their_contents(cases: u64) {
    for name in compared() {
        let stack = TinyStack::new(name, &[]);
        let seen = check(&stack, cases, workload::random);
        if stack.has_bands() {
            assert!(seen.bands_rewritten > 5 * cases, "{name} rewrote too little");
        }
        if stack.has_cache() {
            assert!(seen.evictions > 20 * cases, "{name} evicted too little");
        }
    }
}

#[test]
fn variants_of_the_translation_and_the_drive_keep_their_contents() {
    let variants: [&[&str]; 12] = [
        &["translation.rewrite_extent=from-first-dirty"],
        &["translation.merge_buffer=60KiB"],
        &["translation.merge_buffer=72KiB", "translation.rewrite_extent=from-first-dirty"],
        &["translation.update=in-place", "translation.rewrite=in-place"],
        &["translation.entries=7"],
        &["translation.rewrite_covered=from-log"],
        &[
            "translation.rewrite_covered=from-log",
            "translation.merge_buffer=60KiB",
            "translation.rewrite_extent=from-first-dirty",
            "translation.trim=frees",
        ],
        &["translation.trim=frees", "translation.rewrite_extent=from-first-dirty"],
        &["translation.trim=none"],
        &["smr.write_cache=false", "ssd.write_cache=false"],
        &["cache.mode=write-only"],
        &[
            "translation.rewrite_extent=from-first-dirty",
            "translation.update=in-place",
            "translation.entries=12",
            "smr.write_cache=false",
        ],
    ];
    for settings in variants {
        for name in ["smr-only", "lru-band", "pore"] {
            let stack = TinyStack::new(name, settings);
            let seen = check(&stack, CASES_OF_VARIANTS, workload::random);
            assert!(seen.bands_rewritten > CASES_OF_VARIANTS, "{}", stack.label);
        }
    }
}

#[test]
fn streams_around_the_log_keep_their_contents() {
    for (rewrite_extent, trim, covered) in [
        ("band", "from-log", "as-others"),
        ("from-first-dirty", "from-log", "as-others"),
        ("from-first-dirty", "frees", "as-others"),
        ("from-first-dirty", "frees", "from-log"),
    ] {
        let rewrite_extent = format!("translation.rewrite_extent={rewrite_extent}");
        let trim = format!("translation.trim={trim}");
        let covered = format!("translation.rewrite_covered={covered}");
        let settings = ["translation.bypass=on", &rewrite_extent, &trim, &covered];
        for name in ["smr-only", "lru", "pore"] {
            let stack = TinyStack::new(name, &settings).with_a_larger_device();
            let seen = check(&stack, CASES_OF_VARIANTS, workload::streaming);
            assert!(seen.bands_rewritten > CASES_OF_VARIANTS, "{}", stack.label);
            assert!(
                seen.bypassed_blocks > 50 * CASES_OF_VARIANTS,
                "{}: {} blocks went around the log",
                stack.label,
                seen.bypassed_blocks
            );
        }
    }
}
