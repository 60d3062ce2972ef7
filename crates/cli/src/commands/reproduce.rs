//! `imbrex reproduce`.

use super::run::{execute_until_stopped, say_what_is_left, write_outcome};
use super::{check_out, emit};
use crate::Failure;
use crate::args::ReproduceArgs;
use imbrex_sim::basis::Tally;
use imbrex_sim::experiment::{Experiment, Row, figures};
use imbrex_sim::report::TableStyle;
use serde_json::json;
use std::process::ExitCode;

/// Runs the shipped experiments and prints what papers state beside what was measured.
pub fn run(args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    check_out(&args.output)?;
    let figures = figures(args.paper.as_deref(), args.figure.as_deref())?;
    let mut experiments = figures
        .iter()
        .map(|figure| figure.experiment())
        .collect::<Result<Vec<Experiment>, _>>()?;
    if let Some(scale) = args.scale {
        let scalable = experiments.iter_mut().filter(|e| e.is_scalable());
        let scaled = scalable
            .map(|e| e.rescale(scale))
            .collect::<Result<Vec<()>, _>>()?;
        if scaled.is_empty() {
            return Err(format!(
                "--scale {scale}: the size of these workloads is what is measured"
            )
            .into());
        }
    }
    let output = &args.output;
    let outcomes = execute_until_stopped(&experiments, &[], output)?;
    let style = TableStyle::detect();
    let mut all_rows: Vec<Row> = Vec::new();
    let mut text = String::new();
    for ((figure, experiment), outcome) in figures.iter().zip(&experiments).zip(&outcomes) {
        if let Some(folder) = &output.out {
            write_outcome(outcome, &folder.join(figure.paper).join(figure.figure))?;
        }
        if !outcome.left.is_empty() {
            // What a paper states is of all the runs.
            let (paper, figure) = (figure.paper, figure.figure);
            text.push_str(&format!("{paper} {figure}: stopped before its end\n\n"));
            continue;
        }
        let rows = experiment.rows(figure.paper, figure.figure, outcome)?;
        text.push_str(&format!(
            "{} {}: {}\n\n{}\n",
            figure.paper,
            figure.figure,
            experiment.title,
            Row::table(&rows, style)
        ));
        if !experiment.differs.is_empty() {
            text.push_str(&format!("{}\n\n", experiment.differs.trim()));
        }
        all_rows.extend(rows);
    }
    let tallies = Row::tallies(&all_rows);
    if output.json {
        let document = json!({"rows": all_rows, "summary": tallies});
        emit(&format!("{document}\n"));
        return Ok(say_what_is_left(&outcomes));
    }
    let agree = all_rows.iter().filter(|row| row.agrees).count();
    emit(&format!(
        "{text}{agree} of {} numbers agree:\n{}",
        all_rows.len(),
        Tally::lines(&tallies)
    ));
    Ok(say_what_is_left(&outcomes))
}
