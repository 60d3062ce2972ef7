//! Arrays that lose members, in every phase of their lives.

use super::{EVERY_DAY, JOBS};
use imbrex_core::planted::PlantedBug;
use imbrex_sim::crashtest::product::campaign::{
    CASES, Options, Totals, bugs, cases_to_find, run_seeds,
};
use imbrex_sim::crashtest::product::presence::Presence;
use imbrex_sim::crashtest::product::reached::Reached;
use imbrex_sim::crashtest::product::scrub::{Repaired, scrub_repairs, unreadable_while_rebuilding};
use imbrex_sim::crashtest::product::scrub_parity::{
    scrub_repairs_parity, unreadable_beside_parity, unreadable_while_collecting,
    unreadable_while_scrubbing,
};
use imbrex_sim::crashtest::product::site::Wrong;
use imbrex_sim::crashtest::product::summary::Summary;
use imbrex_sim::crashtest::stacks::{self, SearchedStack};

/// The stacks with arrays of copies.
const COPIES: [&str; 3] = ["raid1", "raid1-three", "raid1-four"];
/// The stacks with arrays that have parity.
const PARITY: [&str; 2] = ["raid4smr", "raid4smr-spare"];
/// Two arrays that share a data disk.
const CHAIN: [&str; 1] = ["raid4smr-chain"];
/// Cases of the everyday suite, of all stacks together.
const CASES_OF_SUITE: u64 = 2_000;
/// Cases of a long run.
const CASES_AT_LENGTH: u64 = 500_000;
/// Cases in which a bug must be found.
const CASES_TO_FIND: u64 = 5_000;

fn stack(name: &str) -> SearchedStack {
    stacks::ready_made_stack(name).expect("a stack that ships")
}

/// The cases that `IMBREX_PRODUCT_CASES` asks for, or else so many.
fn cases_or(ordinary: u64) -> u64 {
    let asked = std::env::var("IMBREX_PRODUCT_CASES").ok();
    asked.map_or(ordinary, |text| text.parse().expect("a number of cases"))
}

fn campaign(name: &str, seeds: std::ops::Range<u64>) -> Totals {
    let options = Options { cases: CASES, wrong: Wrong::default() };
    let totals = run_seeds(&stack(name), seeds, options, JOBS, &|_| ());
    println!("{}", Summary::new(name, &totals, "").to_text());
    totals
}

fn nothing_is_lost(names: &[&str], cases: u64) -> Reached {
    let mut failures = Vec::new();
    let mut all = Totals::default();
    for &name in names {
        let seeds = cases.div_ceil(CASES * names.len() as u64);
        let totals = campaign(name, 0..seeds);
        let failed = totals.failures.iter();
        failures.extend(failed.map(|it| (name, it.seed, it.point, it.what.clone())));
        let below = totals.pairs_below_share();
        assert!(below.is_empty(), "{name}: {below:?}");
        all.add(totals);
    }
    let few: Vec<_> = failures.iter().take(12).collect();
    assert!(failures.is_empty(), "{} lives failed: {few:#?}", failures.len());
    let reached = &all.reached;
    let at = |wanted: &str| Presence::NAMES.iter().position(|it| *it == wanted);
    let at = |wanted: &str| at(wanted).expect("a presence");
    assert!(reached.by_presence.iter().all(|count| *count > 0), "{reached:?}");
    for presence in ["as-described", "after-crashed-openings", "missing"] {
        assert!(reached.degraded[at(presence)] > 0, "{presence}: {reached:?}");
    }
    for presence in ["missing-too-many", "swapped", "foreign", "former", "former-gone-on", "older"]
    {
        assert!(reached.refused[at(presence)] > 0, "{presence}: {reached:?}");
    }
    let others = [
        reached.whole,
        reached.undescribed,
        reached.later_lives,
        reached.ends_lost,
        reached.returned,
        reached.gone_before,
    ];
    assert!(others.iter().all(|count| *count > 0), "{reached:?}");
    all.reached
}

#[test]
fn an_array_of_copies_loses_nothing() {
    nothing_is_lost(&COPIES, cases_or(CASES_OF_SUITE));
}

/// The last whole member was lost just before its spare counted; a new disk came right behind the loss of one
/// whose spare had stepped in; a slot and the homes of its row were together what the slot had before; a table of
/// checksums was written before the records of its words; a stop counted as a promise of what a lost array below
/// a stripe had taken, twice.
#[test]
fn lives_that_once_failed_lose_nothing() {
    let lives = [
        ("raid1-three", 369),
        ("raid1-three", 565),
        ("raid4smr", 8735),
        ("raid4smr-spare", 7116),
        ("raid4smr-chain", 1109),
        ("raid4smr-chain", 1138),
    ];
    for (name, seed) in lives {
        let options = Options { cases: 12, wrong: Wrong::default() };
        let totals = run_seeds(&stack(name), seed..seed + 1, options, JOBS, &|_| ());
        let failures: Vec<_> = totals.failures.iter().map(|it| &it.what).collect();
        assert!(failures.is_empty(), "{name}, seed {seed}: {failures:#?}");
    }
}

#[test]
fn an_array_with_parity_loses_nothing() {
    nothing_is_lost(&PARITY, cases_or(CASES_OF_SUITE));
}

#[test]
fn arrays_that_share_a_disk_lose_nothing() {
    let reached = nothing_is_lost(&CHAIN, cases_or(CASES_OF_SUITE));
    assert!(reached.without_other > 0, "{reached:?}");
}

#[test]
#[ignore = "long: for the soak"]
fn arrays_that_share_a_disk_lose_nothing_at_length() {
    nothing_is_lost(&CHAIN, cases_or(CASES_AT_LENGTH));
}

#[test]
#[ignore = "long: for the soak"]
fn an_array_of_copies_loses_nothing_at_length() {
    nothing_is_lost(&COPIES, cases_or(CASES_AT_LENGTH));
}

#[test]
#[ignore = "long: for the soak"]
fn an_array_with_parity_loses_nothing_at_length() {
    nothing_is_lost(&PARITY, cases_or(CASES_AT_LENGTH));
}

fn all_are_repaired(
    names: &[&str],
    cases: u64,
    play: impl Fn(&SearchedStack, u64) -> Result<Repaired, String>,
) -> Repaired {
    let mut all = Repaired::default();
    for name in names {
        let stack = stack(name);
        let mut repaired = Repaired::default();
        let mut failures = Vec::new();
        for seed in 0..cases {
            match play(&stack, seed) {
                Ok(one) => repaired.add(one),
                Err(what) => failures.push(what),
            }
        }
        println!("{name}: {repaired:?}");
        assert!(failures.is_empty(), "{name}: {} of {cases}: {failures:#?}", failures.len());
        assert_eq!(repaired.noticed, repaired.bad, "{name}");
        all.add(repaired);
    }
    all
}

#[test]
fn a_scrub_mends_all_that_has_rotted_on_a_member() {
    all_are_repaired(&COPIES, 100, scrub_repairs);
}

#[test]
fn a_rebuild_goes_on_past_blocks_that_nobody_has() {
    all_are_repaired(&COPIES, 50, unreadable_while_rebuilding);
}

#[test]
fn a_scrub_mends_all_that_has_rotted_beside_parity() {
    let all = all_are_repaired(&PARITY, 100, |stack, seed| {
        scrub_repairs_parity(stack, seed, Wrong::default())
    });
    assert!(all.bad > all.cases, "{all:?}");
}

#[test]
fn a_rebuild_goes_on_past_what_two_members_have_lost() {
    let all = all_are_repaired(&PARITY, 50, unreadable_beside_parity);
    assert!(all.bad > all.cases, "{all:?}");
}

#[test]
fn a_scrub_lists_what_two_members_have_lost() {
    let all = all_are_repaired(&PARITY, 100, unreadable_while_scrubbing);
    assert!(all.bad > all.cases / 2, "{all:?}");
}

#[test]
fn band_rows_are_collected_past_what_nobody_has() {
    let all = all_are_repaired(&PARITY, 100, unreadable_while_collecting);
    assert!(all.bad > all.cases / 2, "{all:?}");
}

/// Says of each thing that is wrong after how many cases it was found.
fn all_are_found(name: &str, all: impl IntoIterator<Item = (&'static str, Wrong)>) {
    let mut unnoticed = Vec::new();
    for (bug, wrong) in all {
        match cases_to_find(&stack(name), wrong, cases_or(CASES_TO_FIND)) {
            (cases, Some(failure)) => println!("{bug}: {cases} cases, {}", failure.what),
            (_, None) => unnoticed.push(bug),
        }
    }
    assert!(unnoticed.is_empty(), "{name}, not noticed: {unnoticed:?}");
}

#[test]
fn bugs_planted_in_an_array_of_copies_are_found() {
    let with = |bug: PlantedBug| (bug.name(), Wrong { plant: Some(bug), ..Wrong::default() });
    all_are_found("raid1", bugs("raid1").map(with));
}

#[test]
fn bugs_planted_in_an_array_with_parity_are_found() {
    bugs_of_parity_are_found(EVERY_DAY);
}

#[test]
#[ignore = "long: for the soak"]
fn every_bug_planted_in_an_array_with_parity_is_found() {
    bugs_of_parity_are_found(1);
}

fn bugs_of_parity_are_found(one_in: usize) {
    let elsewhere = [
        // Nothing rots by itself in the cases of the campaign.
        PlantedBug::ArrayParityFromCorruptBlock,
        // The check of the command sees it (`cli/tests/it/crashtest.rs`).
        PlantedBug::ArrayCursorAheadOfData,
        // All disks must go while a promise waits.
        PlantedBug::ArrayLossRecordFailureIgnored,
    ];
    let with = |bug: PlantedBug| (bug.name(), Wrong { plant: Some(bug), ..Wrong::default() });
    let here = bugs("raid4smr").filter(|bug| !elsewhere.contains(bug));
    all_are_found("raid4smr", here.step_by(one_in).map(with));
    let ignored = PlantedBug::ArrayLossRecordFailureIgnored;
    let wrong = Wrong { plant: Some(ignored), loses_all: true, ..Wrong::default() };
    all_are_found("raid4smr", [(ignored.name(), wrong)]);
    let wrong = Wrong { plant: Some(PlantedBug::ArrayParityFromCorruptBlock), ..Wrong::default() };
    let stack = stack("raid4smr");
    let found = (0..cases_or(CASES_TO_FIND))
        .find_map(|seed| scrub_repairs_parity(&stack, seed, wrong).err());
    println!("{:?}: {found:?}", wrong.plant);
    assert!(found.is_some(), "parity from a block that is wrong is not noticed");
}

#[test]
fn a_number_that_is_used_again_is_found() {
    let wrong = Wrong { reuses_numbers: true, ..Wrong::default() };
    all_are_found("raid1", [("member-number-reused", wrong)]);
}
