//! What becomes of runs that a signal stops before all are made.

use super::kept::Keeping;
use crate::args::{OutputArgs, QuietArgs};
use crate::caller::Caller;
use crate::commands::outputs::TRACE_FILE;
use crate::commands::outputs::jobs;
use crate::commands::telling::Telling;
use crate::commit::commit;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage_if_option};
use imbrex_report::FORM_FILES;
use imbrex_serve::signals::STOPPED_EXIT_STATUS;
use imbrex_sim::experiment::{Experiment, Found, Left, Outcome, Watch, execute};
use imbrex_sim::progress::Step;
use imbrex_stack::Setting;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Makes the runs of experiments, and gives those that are finished when a signal stops them. Each is kept
/// when it ends, where somebody keeps them.
pub fn execute_until_stopped(
    experiments: &[Experiment],
    settings: &[Setting],
    output: &OutputArgs,
    keeping: Option<&Keeping>,
    caller: &Caller,
) -> Result<Vec<Outcome>, Failure> {
    let jobs = jobs(output.jobs);
    let outcomes = until_stopped(output.quiet, keeping, caller, |watch| {
        execute(experiments, settings, output.seed, jobs, watch)
    })?;
    let mut outcomes = outcomes.map_err(usage_if_option)?;
    for workload in outcomes.iter_mut().flat_map(|outcome| &mut outcome.workloads) {
        if let Found::Runs(report) = &mut workload.found {
            report.commit = commit();
        }
    }
    Ok(outcomes)
}

/// How soon a person is told that a signal has come.
const TOLD_WITHIN: Duration = Duration::from_millis(50);

/// Does long work that its caller may stop. Progress is told, and so is to a shell that a signal has come; each run is kept
/// when it ends, where somebody keeps them.
///
/// # Errors
/// When the system does not let signals be caught.
pub fn until_stopped<T>(
    quiet: QuietArgs,
    keeping: Option<&Keeping>,
    caller: &Caller,
    work: impl FnOnce(&Watch<'_>) -> T,
) -> Result<T, Failure> {
    let stop = caller.stop()?;
    let telling = Telling::new(quiet);
    let progress = |step: &Step<'_>| {
        if let Some(keeping) = keeping {
            keeping.tell(step, &telling);
        }
        telling.step(step);
    };
    let finished = keeping.map(|keeping| &keeping.runs);
    let watch = Watch { progress: &progress, stop, finished };
    if !caller.is_shell() {
        return Ok(work(&watch));
    }
    let (has_ended, end) = channel();
    Ok(std::thread::scope(|scope| {
        let telling = &telling;
        scope.spawn(move || say_when_stopping(stop, &end, telling));
        let found = work(&watch);
        drop(has_ended);
        found
    }))
}

/// Says once that a signal has come. Giving up what is under way may take a moment.
fn say_when_stopping(stop: &AtomicBool, end: &Receiver<()>, telling: &Telling) {
    loop {
        let has_ended = end.recv_timeout(TOLD_WITHIN) != Err(RecvTimeoutError::Timeout);
        if stop.load(Ordering::Relaxed) {
            return telling.complain("stopping; a second signal ends the program at once");
        }
        if has_ended {
            return;
        }
    }
}

/// Names of what is left at most, and errors; more names are counted.
const LEFT_NAMED_MAX: usize = 20;

/// Says which runs were not made because a signal stopped them, if there are any, and gives the exit
/// status.
pub fn say_what_is_left(outcomes: &[Outcome], caller: &Caller) -> ExitCode {
    let left = all_left(outcomes);
    if left.is_empty() {
        return ExitCode::SUCCESS;
    }
    caller.complain(&left_text(&left));
    ExitCode::from(STOPPED_EXIT_STATUS)
}

fn left_text(left: &[&Left]) -> String {
    let mut text = format!("stopped; {} not run to the end:", left.len());
    for it in left.iter().take(LEFT_NAMED_MAX) {
        text.push_str(&format!("\n  {}", it.name));
    }
    match left.len().saturating_sub(LEFT_NAMED_MAX) {
        0 => {}
        more => text.push_str(&format!("\n  and {more} more")),
    }
    let failed = left.iter().filter_map(|it| Some((&it.name, it.error.as_ref()?)));
    for (name, error) in failed.take(LEFT_NAMED_MAX) {
        text.push_str(&format!("\n{name} failed: {error}"));
    }
    text
}

/// What is left of all experiments, in its order. Experiments that share a run leave it together.
fn all_left<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<&'a Left> {
    let mut of_number: BTreeMap<usize, &Left> = BTreeMap::new();
    for it in outcomes.into_iter().flat_map(|outcome| &outcome.left) {
        of_number.entry(it.number).or_insert(it);
    }
    of_number.into_values().collect()
}

/// Adds to a document what is left, if anything is.
pub fn add_left<'a>(document: &mut Value, outcomes: impl IntoIterator<Item = &'a Outcome>) {
    let names = names_left(outcomes);
    if !names.is_empty() {
        document["left"] = json!(names);
    }
}

/// The names of what is left, those of a run that several experiments share once.
pub fn names_left<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<String> {
    all_left(outcomes).into_iter().map(|it| it.name.clone()).collect()
}

/// Whether a folder has the results of a run that came to its end, or something that may be such.
pub fn is_finished(folder: &Path) -> bool {
    // Those are written of what has come to its end alone.
    let whole = FORM_FILES.iter().chain([&TRACE_FILE]);
    if whole.into_iter().any(|name| folder.join(name).exists()) {
        return true;
    }
    let report = folder.join("report.json");
    if fs::symlink_metadata(&report).is_err() {
        return false;
    }
    let text = fs::read_to_string(report).unwrap_or_default();
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    document.get("left").is_none()
}

/// The folder for what was stopped, where the one that was meant has what was finished.
pub fn folder_beside(folder: &Path) -> Result<PathBuf, Failure> {
    let named = match folder.file_name() {
        Some(_) => folder.to_path_buf(),
        // Such as `.`, which has another name from above.
        None => {
            fs::canonicalize(folder).map_err(|error| format!("{}: {error}", folder.display()))?
        }
    };
    let name = named.file_name().unwrap_or_default();
    let mut name = name.to_os_string();
    name.push(".stopped");
    Ok(named.with_file_name(name))
}

/// Says why what was written is elsewhere, if it is.
pub fn say_what_stays(written: &Path, meant: &Path, caller: &Caller) {
    if written != meant {
        caller.complain(&format!(
            "{} has the results of a finished run, which stay; those of the stopped one are in {}",
            meant.display(),
            written.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(number: usize, name: &str) -> Left {
        Left { number, name: name.into(), error: None }
    }

    fn outcome(left: Vec<Left>) -> Outcome {
        Outcome { workloads: vec![], has_several: false, left }
    }

    #[test]
    fn a_run_that_several_experiments_share_is_left_once() {
        let outcomes = [
            outcome(vec![left(2, "a, lru"), left(3, "a, pore")]),
            outcome(vec![left(1, "b, lru"), left(3, "a, pore")]),
        ];
        let names: Vec<&str> = all_left(&outcomes).iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b, lru", "a, lru", "a, pore"]);
        let mut document = json!({"rows": []});
        add_left(&mut document, &outcomes);
        assert_eq!(document["left"], json!(["b, lru", "a, lru", "a, pore"]));
        let mut document = json!({"rows": []});
        add_left(&mut document, &[outcome(vec![])]);
        assert!(document.get("left").is_none());
    }

    #[test]
    fn what_failed_before_the_signal_is_told_with_its_error() {
        let failed =
            Left { error: Some("none.csv: no such file".into()), ..left(1, "none.csv, lru") };
        let outcomes = [outcome(vec![left(0, "a, lru"), failed])];
        assert_eq!(
            left_text(&all_left(&outcomes)),
            "stopped; 2 not run to the end:\n  a, lru\n  none.csv, lru\n\
             none.csv, lru failed: none.csv: no such file"
        );
        let many = [outcome((0..23).map(|n| left(n, "a, lru")).collect())];
        assert!(left_text(&all_left(&many)).ends_with("\n  and 3 more"));
    }

    #[test]
    fn a_report_is_finished_unless_it_says_what_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("report.json");
        assert!(!is_finished(folder.path()));
        for (text, expected) in [
            (r#"{"runs": [], "left": ["a, lru"]}"#, false),
            (r#"{"runs": []}"#, true),
            ("no JSON", true),
        ] {
            fs::write(&report, text).expect("a file");
            assert_eq!(is_finished(folder.path()), expected, "{text}");
        }
        fs::remove_file(&report).expect("a file");
        fs::write(folder.path().join("trace.json"), "{}").expect("a file");
        assert!(is_finished(folder.path()));
    }

    #[test]
    fn what_was_stopped_lies_beside_what_was_finished() {
        let beside = |folder: &Path| folder_beside(folder).expect("a name");
        assert_eq!(beside(Path::new("a/out")), Path::new("a/out.stopped"));
        assert_eq!(beside(Path::new("a/out/")), Path::new("a/out.stopped"));
        let folder = tempfile::tempdir().expect("a folder");
        let folder = fs::canonicalize(folder.path()).expect("a folder");
        let mut named = folder.clone().into_os_string();
        named.push(".stopped");
        fs::create_dir(folder.join("in")).expect("a folder");
        assert_eq!(beside(&folder.join("in/..")), Path::new(&named));
    }
}
