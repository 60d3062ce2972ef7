//! `imbrex run`.

use super::{batch_jobs, emit, progress, settings};
use crate::Failure;
use crate::args::RunArgs;
use imbrex_sim::experiment::{Experiment, Found, Outcome, Row, execute};
use imbrex_sim::report::TableStyle;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Runs one experiment.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut experiment = Experiment::open(&args.file)?;
    if let Some(scale) = args.scale {
        experiment.rescale(scale)?;
    }
    let settings = settings(&args.set)?;
    let experiments = [experiment];
    let output = &args.output;
    let outcomes = execute(
        &experiments,
        &settings,
        output.seed,
        batch_jobs(output),
        &progress,
    )?;
    let ([experiment], [outcome]) = (experiments, outcomes.as_slice()) else {
        unreachable!("one experiment has one outcome");
    };
    let rows = experiment.rows("", &experiment.name, outcome)?;
    let folder = output
        .out
        .clone()
        .unwrap_or_else(|| PathBuf::from("results").join(&experiment.name));
    write_outcome(outcome, &folder)?;
    eprintln!("results are in {}", folder.display());
    if output.json {
        emit(&format!(
            "{}\n",
            serde_json::to_string(&document(&experiment, outcome, &rows))?
        ));
    } else {
        emit(&table(&experiment, outcome, &rows));
    }
    Ok(())
}

/// Writes the files of every workload; each into a folder of its own when there are several.
pub fn write_outcome(outcome: &Outcome, folder: &Path) -> Result<(), Failure> {
    for workload in &outcome.workloads {
        let folder = match outcome.workloads.len() {
            1 => folder.to_path_buf(),
            _ => folder.join(&workload.name),
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
