//! `imbrex reproduce`.

use super::console::emit;
use super::outputs::check_out;
use super::run::kept::Keeping;
use super::run::stopped::{self, execute_until_stopped, say_what_is_left};
use super::run::{check_folders, write_outcome};
use crate::args::ReproduceArgs;
use crate::failure::{Failure, usage};
use imbrex_report::TableStyle;
use imbrex_sim::basis::Tally;
use imbrex_sim::experiment::{Experiment, Figure, Row, figures};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the shipped experiments and prints what papers state beside what was measured.
pub fn run(args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    check_out(&args.output)?;
    let figures = figures(args.paper.as_deref(), args.figure.as_deref())?;
    let experiments = experiments(&figures, args.scale)?;
    let output = &args.output;
    if let Some(out) = &output.out {
        for (figure, experiment) in figures.iter().zip(&experiments) {
            check_folders("--out", experiment, &folder_of(out, figure))?;
        }
    }
    let out = output.out.as_deref();
    let keeping = out.map(|out| Keeping::beside(out, args.resume)).transpose()?;
    let outcomes = execute_until_stopped(&experiments, &[], output, keeping.as_ref())?;
    let mut written = Ok(());
    if let Some(out) = &output.out {
        for (figure, outcome) in figures.iter().zip(&outcomes) {
            let folder = folder_of(out, figure);
            let one = write_outcome(outcome, &folder);
            written = written.and(one.map(|written| stopped::say_what_stays(&written, &folder)));
        }
    }
    let mut all_rows: Vec<Row> = Vec::new();
    let mut text = String::new();
    for ((figure, experiment), outcome) in figures.iter().zip(&experiments).zip(&outcomes) {
        let name = format!("{} {}", figure.paper, figure.figure);
        if !outcome.left.is_empty() {
            // What a paper states is of all the runs.
            text.push_str(&format!("{name}: stopped before its end\n\n"));
            continue;
        }
        let rows = experiment.rows(figure.paper, figure.figure, outcome)?;
        let (title, table) = (&experiment.title, Row::table(&rows, TableStyle::detect()));
        text.push_str(&format!("{name}: {title}\n\n{table}\n"));
        if !experiment.differs.is_empty() {
            text.push_str(&format!("{}\n\n", experiment.differs.trim()));
        }
        all_rows.extend(rows);
    }
    let tallies = Row::tallies(&all_rows);
    if output.json {
        let mut document = json!({"rows": all_rows, "summary": tallies});
        stopped::add_left(&mut document, &outcomes);
        emit(&format!("{document}\n"));
    } else {
        let agree = all_rows.iter().filter(|row| row.agrees).count();
        emit(&format!(
            "{text}{agree} of {} numbers agree:\n{}",
            all_rows.len(),
            Tally::lines(&tallies)
        ));
    }
    let status = say_what_is_left(&outcomes);
    if let Some(keeping) = keeping {
        keeping.end(&outcomes, written.is_ok());
    }
    // What could not be written has been printed.
    written?;
    Ok(status)
}

/// The experiments of figures, those that can be scaled at this scale.
fn experiments(figures: &[Figure], scale: Option<f64>) -> Result<Vec<Experiment>, Failure> {
    let experiments = figures.iter().map(Figure::experiment);
    let mut experiments = experiments.collect::<Result<Vec<Experiment>, _>>()?;
    let Some(scale) = scale else {
        return Ok(experiments);
    };
    let scalable = experiments.iter_mut().filter(|e| e.is_scalable());
    let scaled = scalable.map(|e| e.rescale(scale)).collect::<Result<Vec<()>, _>>()?;
    if scaled.is_empty() {
        return Err(usage(format!(
            "--scale {scale}: the size of these workloads is what is measured"
        )));
    }
    Ok(experiments)
}

fn folder_of(out: &Path, figure: &Figure) -> PathBuf {
    out.join(figure.paper).join(figure.figure)
}
