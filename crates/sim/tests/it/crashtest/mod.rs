//! The search for crashes that lose data.

mod cache;
mod toy;

use imbrex_core::planted::PlantedBug;
use imbrex_sim::crashtest::campaign::{Options, Totals, run_seed};

const OPTIONS: Options = Options {
    points: 500,
    mode: None,
    soak: false,
    plant: None,
};

/// The bugs that a layer with nothing but a journal can have.
const BUGS_OF_THE_JOURNAL: [PlantedBug; 13] = [
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
];

#[test]
fn the_smallest_durable_layer_loses_nothing() {
    let subject = toy::subject();
    let mut totals = Totals::default();
    for seed in 0..8 {
        totals.add(run_seed(&subject, seed, OPTIONS));
    }
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
    const SEEDS: u64 = 10;
    let subject = toy::subject();
    let mut unnoticed = Vec::new();
    for bug in BUGS_OF_THE_JOURNAL {
        let options = Options {
            plant: Some(bug),
            ..OPTIONS
        };
        let mut points = 0;
        let failure = (0..SEEDS).find_map(|seed| {
            let totals = run_seed(&subject, seed, options);
            points += totals.points;
            totals.failures.into_iter().next()
        });
        match failure {
            Some(failure) => println!("{}: {points} points, {}", bug.name(), failure.what),
            None => unnoticed.push(bug.name()),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

#[test]
fn a_durable_cache_over_another_durable_layer_loses_nothing() {
    let subject = cache::subject();
    let mut totals = Totals::default();
    for seed in 0..4 {
        totals.add(run_seed(&subject, seed, OPTIONS));
    }
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
    const SEEDS: u64 = 10;
    let subject = cache::subject();
    let mut unnoticed = Vec::new();
    for bug in BUGS_OF_A_CACHE {
        let options = Options {
            plant: Some(bug),
            ..OPTIONS
        };
        let found = (0..SEEDS).any(|seed| !run_seed(&subject, seed, options).failures.is_empty());
        if !found {
            unnoticed.push(bug.name());
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}
