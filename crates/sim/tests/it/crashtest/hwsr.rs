//! Whole stacks of HWSR and of its baseline: a write buffer with its log, a read cache, a translation.

use super::{FAILING_CALLS, JOBS, OPTIONS, tells_errors};
use imbrex_core::planted::PlantedBug;
use imbrex_sim::crashtest::campaign::{POINTS, points_to_find, run_seeds};
use imbrex_sim::crashtest::image::EXHAUSTIVE_PENDING_MAX;
use imbrex_sim::crashtest::short::{run_short, workloads};
use imbrex_sim::crashtest::stacks;
use imbrex_sim::crashtest::summary::Summary;

/// The seeds of the everyday search.
const SEEDS: u64 = 6;
/// Those of the soak.
const MORE_SEEDS: u64 = 20;
/// The stacks.
pub const STACKS: [&str; 2] = ["hwsr", "s-block"];

fn lose_nothing(seeds: u64) {
    for name in STACKS {
        let subject = stacks::subject(name).expect("a stack");
        let totals = run_seeds(&subject, 0..seeds, OPTIONS, JOBS, &|_| ());
        println!("{}", Summary::new(name, seeds, &totals, "").to_text());
        assert!(totals.failures.is_empty(), "{:?}", totals.failures);
        assert_eq!(totals.points, seeds * POINTS, "{name}");
        assert!(totals.deep >= totals.points / 20, "{name}");
        for run in &totals.runs {
            assert!(run.bands_rewritten >= 10, "{name}: {run:?}");
        }
    }
}

#[test]
fn the_stacks_lose_nothing() {
    lose_nothing(SEEDS);
}

#[test]
#[ignore = "long: for the soak"]
fn the_stacks_lose_nothing_in_more_runs() {
    lose_nothing(MORE_SEEDS);
}

#[test]
fn the_bugs_that_they_can_have_are_found() {
    let bugs = [
        PlantedBug::SegmentTailLeftOut,
        PlantedBug::SegmentWrittenBeforeSlot,
        PlantedBug::SegmentSlotFreedEarly,
        PlantedBug::StaleCopyKept,
        PlantedBug::FillOverWritten,
        PlantedBug::SsdFlushSkipped,
        PlantedBug::FuaAsPlain,
        PlantedBug::AckBeforeJournalFlush,
    ];
    let subject = stacks::subject("hwsr").expect("a stack");
    for bug in bugs {
        let (points, failure) = points_to_find(&subject, bug, 5_000);
        let what = failure.map(|failure| failure.what);
        assert!(what.is_some(), "{} is not noticed", bug.name());
        println!("{}: {points} points", bug.name());
    }
}

/// Plays every workload of one request, and some of two.
fn survive_every_cut(longer: u64) {
    for name in STACKS {
        let subject = stacks::subject(name).expect("a stack");
        let workloads = workloads(&subject, 1, longer);
        let totals = run_short(&subject, &workloads, EXHAUSTIVE_PENDING_MAX, JOBS, &|_| ());
        assert!(totals.failures.is_empty(), "{name}: {:?}", totals.failures);
        assert!(totals.points > totals.windows, "{name}: {totals:?}");
    }
}

#[test]
fn short_workloads_survive_every_cut() {
    survive_every_cut(10);
}

#[test]
#[ignore = "long: for the soak"]
fn more_short_workloads_survive_every_cut() {
    survive_every_cut(40);
}

#[test]
fn an_error_at_a_call_is_told() {
    for name in STACKS {
        assert!(tells_errors(name, 1, 7, FAILING_CALLS) > 50 / FAILING_CALLS);
    }
}
