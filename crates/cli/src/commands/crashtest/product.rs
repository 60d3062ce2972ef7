//! `imbrex crashtest --product`: members of an array that go in a phase of its life, or with the power.

use super::{emit, stacks};
use crate::args::QuietArgs;
use crate::commands::telling::Telling;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage};
use imbrex_core::planted::PlantedBug;
pub use imbrex_sim::crashtest::product::campaign::Options;
use imbrex_sim::crashtest::product::campaign::{Totals, bugs, cases_to_find, run_case, run_seeds};
use imbrex_sim::crashtest::product::site::Site;
pub use imbrex_sim::crashtest::product::site::Wrong;
use imbrex_sim::crashtest::product::summary::Summary;
use imbrex_sim::crashtest::stacks::SearchedStack;
use std::ops::Range;

/// Cases within which a planted bug must be found.
const CASES_TO_FIND_MAX: u64 = 5_000;

/// The kind of the array of a stack; one without is refused.
pub fn kind_of_array(stack: &SearchedStack) -> Result<&'static str, Failure> {
    match Site::new(stack, 0, Wrong::default())? {
        Some(site) => Ok(site.array.kind),
        None => Err(usage(format!(
            "--stack {}: accepted: with --product a stack with an array that can be rebuilt (for the search \
             alone: {})",
            stack.name(),
            stacks::ready_made()
                .filter(|name| name.starts_with("raid"))
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

fn tell(summary: &Summary<'_>) -> ExitCode {
    for failure in &summary.failures {
        eprintln!("imbrex: {}\n  replay: {}", failure.what, failure.replay);
    }
    match summary.failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Plays the cases of some seeds.
pub fn run(
    stack: &SearchedStack,
    seeds: Range<u64>,
    options: Options,
    jobs: usize,
    (as_json, quiet): (bool, QuietArgs),
    more: &str,
) -> Result<ExitCode, Failure> {
    let telling = Telling::new(quiet);
    let totals = run_seeds(stack, seeds, options, jobs, &|step| telling.step(step));
    drop(telling);
    let summary = Summary::new(stack.asked_as(), &totals, more);
    match as_json {
        true => emit(&format!("{}\n", serde_json::to_string_pretty(&summary)?)),
        false => emit(&summary.to_text()),
    }
    let told = tell(&summary);
    if summary.failures.is_empty() && !summary.below_share.is_empty() {
        let below = summary.below_share.join(", ");
        return Err(format!("pairs with less than their share of the cases: {below}").into());
    }
    Ok(told)
}

/// Plays one case.
pub fn one(
    stack: &SearchedStack,
    seed: u64,
    number: u64,
    options: Options,
    more: &str,
) -> ExitCode {
    let totals: Totals = run_case(stack, seed, number, options);
    let name = stack.asked_as();
    if totals.failures.is_empty() {
        emit(&format!("{name}, seed {seed}, case {number}: passed\n"));
    }
    tell(&Summary::new(name, &totals, more))
}

/// Prints how many cases it takes to find each bug that is looked for here.
pub fn plant_all(stack: &SearchedStack, kind: &str) -> ExitCode {
    emit("| bug | cases to find | found as |\n|---|---|---|\n");
    let bugs: Vec<PlantedBug> = bugs(kind).collect();
    let planted =
        bugs.iter().map(|bug| (bug.name(), Wrong { plant: Some(*bug), ..Wrong::default() }));
    let of_door = [("member-number-reused", Wrong { reuses_numbers: true, ..Wrong::default() })];
    let (mut found, mut all) = (0, 0);
    for (name, wrong) in planted.chain(of_door) {
        all += 1;
        let (cases, failure) = cases_to_find(stack, wrong, CASES_TO_FIND_MAX);
        let line = match failure {
            Some(failure) => {
                found += 1;
                format!("| {name} | {cases} | {} |\n", failure.what)
            }
            None => format!("| {name} | not in {cases} | |\n"),
        };
        emit(&line);
    }
    emit(&format!("{found} of {all} planted bugs found\n"));
    match found == all {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
