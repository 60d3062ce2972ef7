//! The search for crashes that lose data.

mod cache;
mod hwsr;
mod members;
mod product;
mod toy;

use imbrex_core::planted::PlantedBug;
use imbrex_sim::crashtest::campaign::{
    Options, POINTS, SeedCampaign, points_to_find, run_seeds, steps_of,
};
use imbrex_sim::crashtest::fault_points::{self, Faulty};
use imbrex_sim::crashtest::image::EXHAUSTIVE_PENDING_MAX;
use imbrex_sim::crashtest::short::{error_at_calls, run_short, workloads};
use imbrex_sim::crashtest::shrink::shrink;
use imbrex_sim::crashtest::stacks;
use imbrex_sim::crashtest::summary::Summary;
use imbrex_sim::crashtest::trial::{Setting, is_slip};

const OPTIONS: Options = Options { points: POINTS, mode: None, soak: false, plant: None };

/// Threads of a campaign.
const JOBS: usize = 2;

#[test]
fn every_stack_file_of_the_folder_is_searched() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stacks/crash");
    let files = std::fs::read_dir(folder).expect("the folder").count();
    assert_eq!(stacks::ready_made().count(), files);
    for name in stacks::ready_made() {
        assert_eq!(stacks::ready_made_stack(name).expect("a stack").name(), name);
    }
}

/// The bugs that a layer with nothing but a journal can have.
const BUGS_OF_THE_JOURNAL: [PlantedBug; 18] = [
    PlantedBug::SsdFlushSkipped,
    PlantedBug::AckBeforeJournalFlush,
    PlantedBug::FuaAsPlain,
    PlantedBug::RecordCrcUnchecked,
    PlantedBug::EpochNotBumped,
    PlantedBug::EpochBumpUnflushed,
    PlantedBug::RootBeforePages,
    PlantedBug::JournalFreedEarly,
    PlantedBug::AllSuperblocksInFlight,
    PlantedBug::OldLocationReusedEarly,
    PlantedBug::TrimReusedEarly,
    PlantedBug::TrimForgottenOnReplay,
    PlantedBug::RecoveryNotIdempotent,
    PlantedBug::FlushOwnConnectionOnly,
    PlantedBug::ReplayPastBadRecord,
    PlantedBug::FailedFlushRetried,
    PlantedBug::ReadCrcSkipped,
    PlantedBug::DanglingRecordKept,
];

#[test]
fn the_smallest_durable_layer_loses_nothing() {
    let subject = toy::subject();
    let totals = run_seeds(&subject, 0..8, OPTIONS, JOBS, &|_| ());
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    assert!(totals.by_mode.iter().all(|points| *points >= 8 * 50));
    assert!(totals.deep >= totals.points / 10);
    for run in &totals.runs {
        let journal = run.journals[0];
        assert!(journal.wraps > 0 && journal.checkpoints >= 3, "{run:?}");
    }
}

#[test]
fn bugs_planted_in_the_journal_are_found_through_the_smallest_layer() {
    let subject = toy::subject();
    let mut unnoticed = Vec::new();
    for bug in BUGS_OF_THE_JOURNAL {
        let (points, failure) = points_to_find(&subject, bug, 5_000);
        match failure {
            Some(failure) => println!("{}: {points} points, {}", bug.name(), failure.what),
            None => unnoticed.push(bug.name()),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

/// Seeds of the campaigns against the PORE stack and the zone-LRU buffer.
const SEEDS: std::ops::Range<u64> = 0..20;

#[test]
fn the_pore_stack_loses_nothing() {
    loses_nothing("pore");
}

#[test]
fn the_zone_lru_buffer_loses_nothing() {
    loses_nothing("zone-lru-buffer");
}

fn loses_nothing(name: &str) {
    let subject = stacks::subject(name).expect("a stack");
    let totals = run_seeds(&subject, SEEDS, OPTIONS, JOBS, &|_| ());
    let summary = Summary::new(name, SEEDS.end, &totals, "");
    println!("{}", summary.to_text());
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    let seeds = SEEDS.end;
    assert_eq!(totals.points, seeds * POINTS);
    assert!(totals.by_mode.iter().all(|points| *points >= seeds * 50));
    assert!(totals.by_fault.iter().all(|points| *points >= seeds * 6));
    assert!(totals.deep >= totals.points / 10);
    for run in &totals.runs {
        assert!(run.bands_rewritten >= 10, "{run:?}");
        for journal in &run.journals {
            assert!(journal.wraps >= 1 && journal.checkpoints >= 3, "{run:?}");
        }
    }
}

/// A controller over a durable translation, which answers nothing that it holds.
#[test]
fn a_controller_that_holds_requests_loses_nothing() {
    held_requests_lose_nothing(0..6);
}

#[test]
#[ignore = "long: for the soak"]
fn a_controller_that_holds_requests_loses_nothing_in_more_runs() {
    held_requests_lose_nothing(6..40);
}

fn held_requests_lose_nothing(seeds: std::ops::Range<u64>) {
    let subject = stacks::subject("idler").expect("a stack");
    let runs = seeds.end - seeds.start;
    let totals = run_seeds(&subject, seeds, OPTIONS, JOBS, &|_| ());
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    assert_eq!(totals.points, runs * POINTS);
    assert!(totals.deep >= totals.points / 10);
    for run in &totals.runs {
        assert!(run.bands_rewritten >= 10, "{run:?}");
    }
}

fn other_stacks_lose_nothing(seeds: std::ops::Range<u64>) {
    // Three have tests of their own; a plain disk has no layer that answers for faults.
    let others = ["pore", "idler", "zone-lru-buffer", "cmr-only"];
    for name in stacks::ready_made().filter(|name| !others.contains(name)) {
        let subject = stacks::subject(name).expect("a stack");
        let totals = run_seeds(&subject, seeds.clone(), OPTIONS, JOBS, &|_| ());
        assert!(totals.failures.is_empty(), "{name}: {:?}", totals.failures);
    }
}

#[test]
fn the_other_stacks_lose_nothing() {
    other_stacks_lose_nothing(0..1);
}

#[test]
#[ignore = "long: for the soak"]
fn the_other_stacks_lose_nothing_in_more_runs() {
    other_stacks_lose_nothing(1..20);
}

#[test]
#[ignore = "long: for the soak"]
fn two_stacks_on_shared_disks_lose_nothing_in_many_runs() {
    let subject = stacks::subject("two-on-one").expect("a stack");
    let totals = run_seeds(&subject, 100..140, OPTIONS, JOBS, &|_| ());
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    assert_eq!(totals.points, 40 * POINTS);
    for run in &totals.runs {
        assert!(run.bands_rewritten >= 10, "{run:?}");
    }
}

/// One bug in three every day: that a search would find them does not change with what it searches.
const EVERY_DAY: usize = 3;

/// Points in which a bug must be found. One of a failed flush of a slice shows in one of ten thousand.
const POINTS_TO_FIND: u64 = 30_000;

#[test]
fn planted_bugs_are_found_in_the_pore_stack_or_in_their_own() {
    planted_bugs_are_found(EVERY_DAY);
}

#[test]
#[ignore = "long: for the soak"]
fn every_planted_bug_is_found_in_the_pore_stack_or_in_its_own() {
    planted_bugs_are_found(1);
}

fn planted_bugs_are_found(one_in: usize) {
    let mut unnoticed = Vec::new();
    let searched = PlantedBug::ALL.iter().filter(|bug| bug.is_searched());
    for bug in searched.step_by(one_in) {
        let name = stacks::stack_of(*bug).unwrap_or("pore");
        let subject = stacks::subject(name).expect("a stack");
        let (points, failure) = points_to_find(&subject, *bug, POINTS_TO_FIND);
        match failure {
            Some(failure) => {
                println!("{}: {points} points, {}", bug.name(), failure.what);
                assert!(!is_slip(&failure.what), "{}: {}", bug.name(), failure.what);
            }
            None => unnoticed.push(bug.name()),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

/// The bugs that a translation by S-blocks can have, beside those of its journal.
const BUGS_OF_S_BLOCKS: [PlantedBug; 12] = [
    PlantedBug::SBlockRecordedUnflushed,
    PlantedBug::SBlockRingLeftOut,
    PlantedBug::SBlockReadsIgnored,
    PlantedBug::SmrFlushSkipped,
    PlantedBug::AckBeforeJournalFlush,
    PlantedBug::FuaAsPlain,
    PlantedBug::OldLocationReusedEarly,
    PlantedBug::TrimForgottenOnReplay,
    PlantedBug::DanglingRecordKept,
    PlantedBug::SumOfWhatWasRead,
    PlantedBug::ReadCrcSkipped,
    PlantedBug::CrcWithoutAddress,
];

#[test]
fn the_bugs_that_a_translation_by_s_blocks_can_have_are_found_in_it() {
    let subject = stacks::subject("s-block").expect("a stack");
    let mut unnoticed = Vec::new();
    for bug in BUGS_OF_S_BLOCKS {
        match points_to_find(&subject, bug, 5_000) {
            (points, Some(failure)) => println!("{}: {points}, {}", bug.name(), failure.what),
            (_, None) => unnoticed.push(bug.name()),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

/// The bugs that a translation with its log and its bands on two disks can have, beside those of its
/// journal.
const BUGS_OF_TWO_PORTS: [PlantedBug; 16] = [
    PlantedBug::HomeFlushSkipped,
    PlantedBug::SmrFlushSkipped,
    PlantedBug::AckBeforeJournalFlush,
    PlantedBug::FuaAsPlain,
    PlantedBug::OldLocationReusedEarly,
    PlantedBug::RemapIgnoresOverwrite,
    PlantedBug::BandRewriteWithoutScratch,
    PlantedBug::ScratchReleasedEarly,
    PlantedBug::OverlapNotRestored,
    PlantedBug::ScratchCopyNotRead,
    PlantedBug::BypassOverLiveData,
    PlantedBug::TrimReusedEarly,
    PlantedBug::TrimForgottenOnReplay,
    PlantedBug::FailedFlushRetried,
    PlantedBug::ReadCrcSkipped,
    PlantedBug::DanglingRecordKept,
];

#[test]
fn bugs_planted_in_a_translation_on_two_disks_are_found() {
    let subject = stacks::subject("smr-two-ports").expect("a stack");
    let mut unnoticed = Vec::new();
    for bug in BUGS_OF_TWO_PORTS {
        match points_to_find(&subject, bug, 5_000) {
            (points, Some(failure)) => {
                println!("{}: {points} points, {}", bug.name(), failure.what)
            }
            (_, None) => unnoticed.push(bug.name()),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

/// Of so many calls in a row one fails in the everyday search. A prime, so that it is not the same one
/// of a layer's pattern each time.
const FAILING_CALLS: u64 = 7;

/// Lets calls of a stack fail while it is served the steps of a seed; answers how many.
fn tells_errors(name: &str, seed: u64, choices: u64, every: u64) -> u64 {
    let subject = stacks::subject(name).expect("a stack");
    let setting = Setting { subject: &subject, seed, plant: None };
    let steps = &steps_of(&subject, seed)[..fault_points::STEPS];
    let faulty = Faulty::make(setting, steps).unwrap_or_else(|what| panic!("{name}: {what}"));
    let calls = error_at_calls(&faulty, choices, every);
    let calls = calls.unwrap_or_else(|what| panic!("{name}: {what}"));
    println!("{name}: {calls} calls failed");
    calls
}

#[test]
fn an_error_at_a_call_of_a_translation_on_two_disks_is_told() {
    assert!(tells_errors("smr-two-ports", 3, 3, FAILING_CALLS) > 1_000 / FAILING_CALLS);
}

#[test]
fn an_error_at_a_call_of_the_pore_stack_is_told() {
    assert!(tells_errors("pore", 2, 2, FAILING_CALLS) > 1_000 / FAILING_CALLS);
}

#[test]
#[ignore = "long: for the soak"]
fn an_error_at_any_call_of_a_stack_is_told() {
    assert!(tells_errors("smr-two-ports", 3, 3, 1) > 1_000);
    assert!(tells_errors("pore", 2, 2, 1) > 1_000);
    for name in hwsr::STACKS {
        assert!(tells_errors(name, 1, 7, 1) > 50);
    }
}

/// Plays every workload of one or two requests, and some of three; soak_crashtest.py plays all of those.
fn short_workloads(longer: u64) {
    let subject = stacks::subject("pore").expect("a stack");
    let workloads = workloads(&subject, 2, longer);
    let totals = run_short(&subject, &workloads, EXHAUSTIVE_PENDING_MAX, JOBS, &|_| ());
    println!(
        "{} workloads, {} moments, {} of them with more pending writes, {} points, {} recoveries",
        totals.workloads, totals.windows, totals.windows_left_out, totals.points, totals.recoveries
    );
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    assert_eq!(totals.workloads, 19 + 19 * 19 + longer);
}

#[test]
fn short_workloads_on_the_pore_stack_survive_every_cut() {
    short_workloads(60);
}

#[test]
#[ignore = "long: for the soak"]
fn more_short_workloads_on_the_pore_stack_survive_every_cut() {
    short_workloads(2_000);
}

#[test]
fn a_durable_cache_over_another_durable_layer_loses_nothing() {
    let subject = cache::subject();
    let totals = run_seeds(&subject, 0..4, OPTIONS, JOBS, &|_| ());
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    for run in &totals.runs {
        for journal in &run.journals {
            assert!(journal.wraps > 0 && journal.checkpoints >= 3, "{run:?}");
        }
    }
}

/// The bugs that a cache can have beside those of its journal.
const BUGS_OF_A_CACHE: [PlantedBug; 6] = [
    PlantedBug::FuaAsPlain,
    PlantedBug::OldLocationReusedEarly,
    PlantedBug::DirtyDroppedBeforeDestinationFlush,
    PlantedBug::TrimForgottenOnReplay,
    PlantedBug::DanglingRecordKept,
    PlantedBug::SsdFlushSkipped,
];

#[test]
fn bugs_planted_in_a_cache_are_found() {
    let subject = cache::subject();
    let mut unnoticed = Vec::new();
    for bug in BUGS_OF_A_CACHE {
        if points_to_find(&subject, bug, 5_000).1.is_none() {
            unnoticed.push(bug.name());
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

#[test]
fn a_point_says_the_same_every_time() {
    let subject = toy::subject();
    let options = Options { plant: Some(PlantedBug::OldLocationReusedEarly), ..OPTIONS };
    let totals = run_seeds(&subject, 3..5, options, JOBS, &|_| ());
    for failure in &totals.failures {
        let steps = steps_of(&subject, failure.seed);
        let campaign = SeedCampaign::new(&subject, failure.seed, options, &steps);
        let campaign = campaign.unwrap_or_else(|failure| panic!("{}", failure.what));
        let number = failure.point.expect("a point");
        let again = campaign.outcome(&campaign.point(number)).unwrap_err();
        assert_eq!(again, failure.what);
    }
    assert_eq!(totals.failures.len(), 2);
}

#[test]
fn a_failure_is_made_small() {
    let subject = toy::subject();
    let options = Options { plant: Some(PlantedBug::FuaAsPlain), ..OPTIONS };
    let totals = run_seeds(&subject, 0..1, options, JOBS, &|_| ());
    let failure = &totals.failures[0];
    let shrunk = shrink(&subject, failure, options, steps_of(&subject, failure.seed));
    println!("{shrunk:#?}");
    assert!(shrunk.steps.len() <= 3, "one forced write is enough: {shrunk:#?}");
    assert!(!shrunk.lost_writes.is_empty());
}

#[test]
fn every_short_workload_survives_every_cut() {
    let subject = toy::subject();
    let workloads = workloads(&subject, 2, 300);
    let totals = run_short(&subject, &workloads, EXHAUSTIVE_PENDING_MAX, JOBS, &|_| ());
    println!("{totals:?}");
    assert!(totals.failures.is_empty(), "{:?}", totals.failures);
    assert_eq!(totals.workloads, 19 + 19 * 19 + 300);
    assert!(totals.points > 4 * totals.windows);
}

#[test]
fn an_error_at_any_call_is_told_and_nothing_lies_afterwards() {
    let subject = toy::subject();
    let setting = Setting { subject: &subject, seed: 1, plant: None };
    let steps = &steps_of(&subject, 1)[..fault_points::STEPS];
    let faulty = Faulty::make(setting, steps).unwrap_or_else(|what| panic!("{what}"));
    match error_at_calls(&faulty, 1, 1) {
        Ok(calls) => assert!(calls > 200, "{calls} calls"),
        Err(what) => panic!("{what}"),
    }
}
