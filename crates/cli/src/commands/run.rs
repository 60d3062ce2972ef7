//! `imbrex run`.

use super::outputs::check_folder;
use super::{batch_jobs, complain, emit, settings, tell_progress};
use crate::Failure;
use crate::args::{OutputArgs, RunArgs};
use imbrex_serve::signals::{STOPPED_EXIT_STATUS, set_on_signals};
use imbrex_sim::experiment::{Experiment, Found, Outcome, Row, Setting, Watch, execute};
use imbrex_sim::report::TableStyle;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs one experiment.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let mut experiment = Experiment::open(&args.file)?;
    if let Some(scale) = args.scale {
        experiment.rescale(scale)?;
    }
    let output = &args.output;
    let folder = output
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("results").join(&experiment.name));
    check_folder("--out", &folder)?;
    let settings = settings(&args.set)?;
    let experiments = [experiment];
    let outcomes = execute_until_stopped(&experiments, &settings, output)?;
    let ([experiment], [outcome]) = (experiments, outcomes.as_slice()) else {
        unreachable!("one experiment has one outcome");
    };
    // What papers state is of all the runs.
    let rows = match outcome.left.is_empty() {
        true => experiment.rows("", &experiment.name, outcome)?,
        false => vec![],
    };
    if !outcome.workloads.is_empty() {
        write_outcome(outcome, &folder)?;
        eprintln!("results are in {}", folder.display());
    }
    if output.json {
        emit(&format!(
            "{}\n",
            serde_json::to_string(&document(&experiment, outcome, &rows))?
        ));
    } else {
        emit(&table(&experiment, outcome, &rows));
    }
    Ok(say_what_is_left(&outcomes))
}

/// Makes the runs of experiments, and keeps those that are finished when a signal stops them.
pub fn execute_until_stopped(
    experiments: &[Experiment],
    settings: &[Setting],
    output: &OutputArgs,
) -> Result<Vec<Outcome>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    set_on_signals(&stop, |_| Ok(()))?;
    let watch = Watch {
        progress: &tell_progress,
        stop: &stop,
    };
    let jobs = batch_jobs(output);
    Ok(execute(experiments, settings, output.seed, jobs, &watch)?)
}

/// Names of what is left on one line at most; more are counted.
const LEFT_NAMED_MAX: usize = 20;

/// Says which runs were not made because a signal stopped them, if there are any, and gives the exit
/// status.
pub fn say_what_is_left(outcomes: &[Outcome]) -> ExitCode {
    let left: Vec<&String> = outcomes.iter().flat_map(|outcome| &outcome.left).collect();
    if left.is_empty() {
        return ExitCode::SUCCESS;
    }
    let mut text = format!("stopped; {} not run to the end:", left.len());
    for name in left.iter().take(LEFT_NAMED_MAX) {
        text.push_str(&format!("\n  {name}"));
    }
    match left.len().saturating_sub(LEFT_NAMED_MAX) {
        0 => {}
        more => text.push_str(&format!("\n  and {more} more")),
    }
    complain(&text);
    ExitCode::from(STOPPED_EXIT_STATUS)
}

/// Writes the files of every workload; each into a folder of its own when there are several.
pub fn write_outcome(outcome: &Outcome, folder: &Path) -> Result<(), Failure> {
    for workload in &outcome.workloads {
        let folder = match outcome.has_several {
            false => folder.to_path_buf(),
            true => folder.join(&workload.name),
        };
        match &workload.found {
            Found::Runs(report) => {
                report.write_to(&folder)?;
            }
            Found::Form(table) => table.write_to(&folder)?,
            Found::Trace(values) => {
                let path = folder.join("trace.json");
                std::fs::create_dir_all(&folder)
                    .and_then(|()| std::fs::write(&path, format!("{values:#}\n")))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// The report itself when there is one; else a list of reports, or of what was found in traces.
fn document(experiment: &Experiment, outcome: &Outcome, rows: &[Row]) -> Value {
    if let [workload] = outcome.workloads.as_slice()
        && !outcome.has_several
        && let Found::Runs(report) = &workload.found
    {
        return json!(report);
    }
    let reports: Vec<Value> = outcome
        .workloads
        .iter()
        .map(|workload| match &workload.found {
            Found::Runs(report) => json!(report),
            Found::Form(table) => json!({"kind": workload.kind, "closed_form": table.to_json()}),
            Found::Trace(values) => json!({
                "workload": {"path": workload.path, "kind": workload.kind}, "trace": values
            }),
        })
        .collect();
    json!({
        "schema": "imbrex.experiment/1", "name": experiment.name, "title": experiment.title,
        "reports": reports, "rows": rows,
    })
}

fn table(experiment: &Experiment, outcome: &Outcome, rows: &[Row]) -> String {
    let style = TableStyle::detect();
    let mut text = format!("{}: {}\n", experiment.name, experiment.title);
    for workload in &outcome.workloads {
        text.push('\n');
        match &workload.found {
            Found::Runs(report) => text.push_str(&report.to_table(style)),
            Found::Form(table) => text.push_str(&format!("{}:\n{}", table.title, table.to_csv())),
            Found::Trace(values) => text.push_str(&format!("{}:\n{values:#}\n", workload.path)),
        }
    }
    if !rows.is_empty() {
        text.push_str(&format!("\n{}", Row::table(rows, style)));
    }
    text
}
