//! `imbrex crashtest --members`: disks that were away, are others or were changed between two starts.

use super::{emit, other_subject};
use crate::args::QuietArgs;
use crate::commands::telling::Telling;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_core::planted::PlantedBug;
pub use imbrex_sim::crashtest::members::campaign::Options;
use imbrex_sim::crashtest::members::campaign::{SeedCases, Totals, cases_to_find, run_seeds};
use imbrex_sim::crashtest::members::summary::Summary;
use imbrex_sim::crashtest::subject::Subject;
use std::ops::Range;

/// Cases within which a planted bug must be found.
const CASES_TO_FIND_MAX: u64 = 500;

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
    subject: &Subject,
    seeds: Range<u64>,
    options: Options,
    jobs: usize,
    (as_json, quiet): (bool, QuietArgs),
    more: &str,
) -> Result<ExitCode, Failure> {
    let telling = Telling::new(quiet);
    let totals = run_seeds(subject, seeds.clone(), options, jobs, &|step| telling.step(step));
    drop(telling);
    let summary = Summary::new(&subject.name, seeds.end - seeds.start, &totals, more);
    match as_json {
        true => emit(&format!("{}\n", serde_json::to_string_pretty(&summary)?)),
        false => emit(&summary.to_text()),
    }
    Ok(tell(&summary))
}

/// Plays one case.
pub fn one(subject: &Subject, seed: u64, number: u64, options: Options, more: &str) -> ExitCode {
    let mut totals = Totals::default();
    let played = SeedCases::new(subject, seed, options.plant)
        .and_then(|mut cases| cases.try_alone(number, &mut totals));
    match played {
        Ok(()) => emit(&format!("{}, seed {seed}, case {number}: passed\n", subject.name)),
        Err(failure) => totals.failures.push(failure),
    }
    tell(&Summary::new(&subject.name, 1, &totals, more))
}

/// Prints how many cases it takes to find each bug that is looked for here.
pub fn plant_all(subject: &Subject) -> ExitCode {
    emit("| bug | cases to find | found as |\n|---|---|---|\n");
    let bugs = PlantedBug::ALL.iter().copied();
    let bugs: Vec<PlantedBug> = bugs.filter(|bug| bug.is_of_members()).collect();
    let mut found = 0;
    for bug in &bugs {
        let other = other_subject(*bug, subject);
        let subject = other.as_ref().unwrap_or(subject);
        let (cases, failure) = cases_to_find(subject, *bug, CASES_TO_FIND_MAX);
        let line = match failure {
            Some(failure) => {
                found += 1;
                format!("| {} | {cases} | {} |\n", bug.name(), failure.what)
            }
            None => format!("| {} | not in {cases} | |\n", bug.name()),
        };
        emit(&line);
    }
    emit(&format!("{found} of {} planted bugs found\n", bugs.len()));
    match found == bugs.len() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
