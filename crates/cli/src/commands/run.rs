//! `imbrex run`.

pub mod kept;
pub mod stopped;

use super::figures::{self, FoundFigure};
use super::outputs::{TRACE_FILE, check_folder, check_room, write_whole};
use super::stack::settings;
use crate::args::RunArgs;
use crate::caller::Caller;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage};
use imbrex_report::TableStyle;
use imbrex_sim::experiment::{Experiment, Found, Outcome, Row};
use kept::Keeping;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use stopped::{execute_until_stopped, say_what_is_left};

/// Runs one experiment.
pub fn run(args: &RunArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let mut experiment = Experiment::open(&args.file)?;
    experiment.brought.clone_from(caller.policies());
    if let Some(scale) = args.scale {
        experiment.rescale(scale)?;
    }
    let output = &args.output;
    // A program has the answer, and files only where it wants them.
    let out = output.out.clone();
    let folder = match caller.is_shell() {
        true => Some(out.unwrap_or_else(|| PathBuf::from("results").join(&experiment.name))),
        false => out,
    };
    if args.resume && folder.is_none() {
        return Err(usage(
            "--resume: finished runs are kept beside the results; accepted: with --out",
        ));
    }
    let folder = folder.as_deref();
    if let Some(folder) = folder {
        check_folders("--out", &experiment, folder)?;
    }
    let keeping = folder.map(|folder| Keeping::beside(folder, args.resume)).transpose()?;
    let settings = settings(&args.set)?;
    let experiments = [experiment];
    let outcomes =
        execute_until_stopped(&experiments, &settings, output, keeping.as_ref(), caller)?;
    let ([experiment], [outcome]) = (experiments, outcomes.as_slice()) else {
        unreachable!("one experiment has one outcome");
    };
    let written = match folder {
        Some(folder) if !outcome.workloads.is_empty() => {
            write_outcome(outcome, folder).map(|written| {
                if !output.quiet.quiet {
                    caller.remark(&format!("results are in {}", written.display()));
                }
                stopped::say_what_stays(&written, folder, caller);
                Some(written)
            })
        }
        _ => Ok(None),
    };
    // What papers state is of all the runs.
    let rows = match outcome.left.is_empty() {
        true => experiment.rows("", &experiment.name, outcome)?,
        false => vec![],
    };
    let written = match written {
        Ok(Some(folder)) => write_page(args, &experiment, outcome, &rows, &folder),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if output.json {
        caller
            .emit(&format!("{}\n", serde_json::to_string(&document(&experiment, outcome, &rows))?));
    } else {
        caller.emit(&table(&experiment, outcome, &rows));
    }
    let status = say_what_is_left(&outcomes, caller);
    if let Some(keeping) = keeping {
        let is_whole = outcomes.iter().all(|outcome| outcome.left.is_empty());
        keeping.end(is_whole, written.is_ok(), caller);
    }
    // What could not be written has been printed.
    written?;
    Ok(status)
}

/// Writes the page of the figure, and the table of all runs where each workload has its own.
fn write_page(
    args: &RunArgs,
    experiment: &Experiment,
    outcome: &Outcome,
    rows: &[Row],
    folder: &Path,
) -> Result<(), Failure> {
    let mut command = vec!["imbrex".into(), "run".into(), args.file.display().to_string()];
    command.extend(args.set.iter().flat_map(|it| ["--set".to_string(), it.clone()]));
    command.extend(args.scale.iter().flat_map(|it| ["--scale".to_string(), it.to_string()]));
    command.extend(args.output.seed.iter().flat_map(|it| ["--seed".to_string(), it.to_string()]));
    let figure = FoundFigure {
        paper: None,
        figure: &experiment.name,
        experiment,
        outcome,
        rows,
        command: figures::typed(&command),
        folder: PathBuf::new(),
    };
    let left = stopped::names_left([outcome]);
    let is_runs = outcome.workloads.iter().any(|it| matches!(it.found, Found::Runs(_)));
    let has_table = outcome.has_several && is_runs;
    figures::write_index(&experiment.title, folder, &[figure], left, has_table)
}

/// Refuses a folder into which the results of an experiment could not be written.
pub fn check_folders(option: &str, experiment: &Experiment, folder: &Path) -> Result<(), Failure> {
    figures::check_index(option, folder)?;
    if !experiment.has_several_workloads() {
        return check_folder(option, folder);
    }
    check_room(option, folder)?;
    let workloads = experiment.workload.iter();
    let mut folders = workloads.map(|workload| folder.join(workload.name()));
    folders.try_for_each(|folder| check_folder(option, &folder))
}

/// Writes the files of every workload; each into a folder of its own when there are several. Gives the
/// folder in which all are: what was stopped does not take the place of what was finished.
pub fn write_outcome(outcome: &Outcome, folder: &Path) -> Result<PathBuf, Failure> {
    let mut folders = outcome.workloads.iter().map(|it| folder_of(outcome, folder, &it.name));
    let folder = match !outcome.left.is_empty() && folders.any(|it| stopped::is_finished(&it)) {
        false => folder.to_path_buf(),
        true => stopped::folder_beside(folder)?,
    };
    for workload in &outcome.workloads {
        let folder = folder_of(outcome, &folder, &workload.name);
        write_whole(&folder, |folder| match &workload.found {
            Found::Runs(report) => report.write_to(folder).map(drop),
            Found::Form(table) => table.write_to(folder),
            Found::Trace(values) => {
                std::fs::create_dir_all(folder)?;
                std::fs::write(folder.join(TRACE_FILE), format!("{values:#}\n"))
            }
        })?;
    }
    Ok(folder)
}

fn folder_of(outcome: &Outcome, folder: &Path, workload: &str) -> PathBuf {
    match outcome.has_several {
        false => folder.to_path_buf(),
        true => folder.join(workload),
    }
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
    let mut document = json!({
        "schema": "imbrex.experiment/1", "name": experiment.name, "title": experiment.title,
        "reports": reports, "rows": rows,
    });
    stopped::add_left(&mut document, [outcome]);
    document
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
