//! Disks that were away, are others or were changed between two starts.

use super::JOBS;
use imbrex_core::planted::PlantedBug;
use imbrex_sim::crashtest::members::campaign::{CASES, Options, Totals, cases_to_find, run_seeds};
use imbrex_sim::crashtest::members::happening::Happening;
use imbrex_sim::crashtest::members::summary::Summary;
use imbrex_sim::crashtest::stacks;
use std::ops::Range;

/// Cases within which a planted bug must be found.
const CASES_TO_FIND_MAX: u64 = 500;

fn campaign(name: &str, seeds: Range<u64>) -> Totals {
    let subject = stacks::subject(name).expect("a stack");
    let options = Options { cases: CASES, plant: None };
    let totals = run_seeds(&subject, seeds.clone(), options, JOBS, &|_| ());
    let summary = Summary::new(name, seeds.end - seeds.start, &totals, "");
    println!("{}", summary.to_text());
    totals
}

/// Plays the cases of a stack: all of them right, and each happening that can be at least a twentieth.
fn holds(name: &str, seeds: Range<u64>) {
    let count = (seeds.end - seeds.start) * CASES;
    let totals = campaign(name, seeds);
    assert!(totals.failures.is_empty(), "{name}: {:?}", totals.failures);
    assert_eq!((totals.cases, totals.distinct), (count, count), "{name}");
    let members = (stacks::subject(name).expect("a stack").build)(0).members;
    for happening in Happening::ALL {
        let counts = totals.by_happening[happening as usize];
        let least = match happening.is_possible(&members) {
            true => count / 20,
            false => 0,
        };
        assert!(counts.cases >= least, "{name}, {happening:?}: {counts:?}");
    }
}

#[test]
fn no_member_lost_other_or_changed_goes_unnoticed() {
    for name in stacks::ready_made() {
        holds(name, 0..6);
    }
}

#[test]
#[ignore = "long: for the soak"]
fn no_member_lost_other_or_changed_goes_unnoticed_in_many_cases() {
    for name in stacks::ready_made() {
        holds(name, 100..140);
    }
}

/// A rewrite of the last S-block, which reaches past the device, once gave a store of copies blocks that the
/// store had no address for.
#[test]
fn a_last_s_block_that_reaches_past_the_device_is_copied() {
    holds("s-block", 117..118);
    holds("s-block", 120..121);
}

/// The bugs that such cases show, with the stacks that have each.
const BUGS: [(PlantedBug, &str); 6] = [
    (PlantedBug::UpOverLostNode, "s-block"),
    (PlantedBug::LabelNotCompared, "spanned"),
    (PlantedBug::LabelNotCompared, "hwsr"),
    (PlantedBug::CountMovedAfterFirstWrite, "spanned"),
    (PlantedBug::CountMovedAfterFirstWrite, "hwsr"),
    (PlantedBug::SumOfWhatWasRead, "segments-only"),
];

#[test]
fn bugs_that_show_where_something_happens_to_a_member_are_found() {
    let mut unnoticed = Vec::new();
    for (bug, name) in BUGS {
        let subject = stacks::subject(name).expect("a stack");
        match cases_to_find(&subject, bug, CASES_TO_FIND_MAX) {
            (cases, Some(failure)) => println!("{}: {cases} cases, {}", bug.name(), failure.what),
            (_, None) => unnoticed.push((bug.name(), name)),
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}
