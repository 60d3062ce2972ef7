//! `imbrex reproduce`.

use super::figures::{FoundFigure, check_index, typed, write_index};
use super::outputs::check_out;
use super::run::kept::Keeping;
use super::run::stopped::{self, execute_until_stopped, say_what_is_left};
use super::run::{check_folders, write_outcome};
use crate::args::ReproduceArgs;
use crate::caller::Caller;
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage};
use imbrex_report::TableStyle;
use imbrex_sim::basis::Tally;
use imbrex_sim::experiment::{Experiment, Figure, Outcome, Row, figures, paper_name};
use imbrex_sim::reason::ReasonTally;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Experiments that set nothing beside a paper.
const NO_PAPER: &str = "ride";

/// Runs the shipped experiments and prints what papers state beside what was measured.
pub fn run(args: &ReproduceArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    check_out(&args.output)?;
    if let Some(out) = &args.output.out {
        check_index("--out", out)?;
    }
    let mut figures = figures(args.paper.as_deref(), args.figure.as_deref())?;
    if args.quick && args.paper.is_none() {
        figures.retain(|figure| figure.paper != NO_PAPER);
    }
    let mut experiments = experiments(&figures, args.scale)?;
    if args.quick {
        experiments.iter_mut().for_each(Experiment::quicken);
    }
    let output = &args.output;
    if let Some(out) = &output.out {
        for (figure, experiment) in figures.iter().zip(&experiments) {
            check_folders("--out", experiment, &folder_of(out, figure))?;
        }
    }
    let out = output.out.as_deref();
    let keeping = out.map(|out| Keeping::beside(out, args.resume)).transpose()?;
    let outcomes = execute_until_stopped(&experiments, &[], output, keeping.as_ref(), caller)?;
    let mut written = Ok(());
    let mut folders: Vec<PathBuf> = Vec::new();
    if let Some(out) = out {
        for (figure, outcome) in figures.iter().zip(&outcomes) {
            let folder = folder_of(out, figure);
            let one = write_outcome(outcome, &folder);
            folders.push(one.as_ref().map_or_else(|_| folder.clone(), PathBuf::clone));
            written =
                written.and(one.map(|written| stopped::say_what_stays(&written, &folder, caller)));
        }
    }
    let mut rows: Vec<Vec<Row>> = Vec::new();
    for ((figure, experiment), outcome) in figures.iter().zip(&experiments).zip(&outcomes) {
        rows.push(match outcome.left.is_empty() {
            true => experiment.rows(figure.paper, figure.figure, outcome)?,
            // What a paper states is of all the runs.
            false => vec![],
        });
    }
    if let Some(out) = out
        && outcomes.iter().any(|outcome| !outcome.workloads.is_empty())
    {
        let found = |at: usize| FoundFigure {
            paper: Some((figures[at].paper, paper_name(figures[at].paper))),
            figure: figures[at].figure,
            experiment: &experiments[at],
            outcome: &outcomes[at],
            rows: &rows[at],
            command: command_of(args, &figures[at], &experiments[at]),
            folder: folders[at].strip_prefix(out).unwrap_or(&folders[at]).to_path_buf(),
        };
        let found: Vec<FoundFigure<'_>> = (0..figures.len()).map(found).collect();
        let left = stopped::names_left(&outcomes);
        let page = write_index("Figures beside the papers'", out, &found, left, true);
        written = written.and(page);
    }
    let text = text(output.json, &figures, &experiments, &outcomes, &rows);
    caller.emit(&text);
    let status = say_what_is_left(&outcomes, caller);
    if let Some(keeping) = keeping {
        let is_whole = outcomes.iter().all(|outcome| outcome.left.is_empty());
        keeping.end(is_whole, written.is_ok(), caller);
    }
    // What could not be written has been printed.
    written?;
    Ok(status)
}

/// What papers state beside what was measured, and how much of it agrees.
fn text(
    as_json: bool,
    figures: &[Figure],
    experiments: &[Experiment],
    outcomes: &[Outcome],
    rows: &[Vec<Row>],
) -> String {
    let all_rows = rows.concat();
    let tallies = Row::tallies(&all_rows);
    let (papers, reasons) = (Row::tallies_of_papers(&all_rows), Row::reasons(&all_rows));
    let left_out: Vec<(&str, &str, &str)> = figures
        .iter()
        .zip(experiments)
        .flat_map(|(it, experiment)| {
            experiment.left_out().map(|stated| (it.paper, it.figure, stated.metric.as_str()))
        })
        .collect();
    if as_json {
        let paper =
            |(paper, summary): &(&str, Vec<Tally>)| json!({"paper": paper, "summary": summary});
        let papers: Vec<Value> = papers.iter().map(paper).collect();
        let mut document =
            json!({"rows": all_rows, "summary": tallies, "papers": papers, "reasons": reasons});
        if !left_out.is_empty() {
            let named = |(paper, figure, metric)| json!({"paper": paper, "figure": figure, "metric": metric});
            let named: Vec<Value> = left_out.into_iter().map(named).collect();
            document["left_out"] = json!(named);
        }
        stopped::add_left(&mut document, outcomes);
        return format!("{document}\n");
    }
    let mut text = String::new();
    for (((figure, experiment), outcome), rows) in
        figures.iter().zip(experiments).zip(outcomes).zip(rows)
    {
        let name = format!("{} {}", figure.paper, figure.figure);
        if !outcome.left.is_empty() {
            text.push_str(&format!("{name}: stopped before its end\n\n"));
            continue;
        }
        let (title, table) = (&experiment.title, Row::table(rows, TableStyle::detect()));
        text.push_str(&format!("{name}: {title}\n\n{table}\n"));
        if !experiment.differs.is_empty() {
            text.push_str(&format!("{}\n\n", experiment.differs.trim()));
        }
    }
    let agree = all_rows.iter().filter(|row| row.agrees).count();
    let total = all_rows.len();
    text.push_str(&format!("{agree} of {total} numbers agree:\n{}", Tally::lines(&tallies)));
    if papers.len() > 1 {
        for (paper, tallies) in papers {
            text.push_str(&format!("of {paper}:\n{}", Tally::lines(&tallies)));
        }
    }
    if !reasons.is_empty() {
        let disagree = total - agree;
        text.push_str(&format!("{disagree} disagree:\n{}", ReasonTally::lines(&reasons)));
    }
    if !left_out.is_empty() {
        text.push_str(&format!("{} left out, which need full size:\n", left_out.len()));
        for (paper, figure, metric) in left_out {
            text.push_str(&format!("  {paper} {figure}: {metric}\n"));
        }
    }
    text
}

/// The command that makes one figure again.
fn command_of(args: &ReproduceArgs, figure: &Figure, experiment: &Experiment) -> String {
    let mut words = ["imbrex", "reproduce", figure.paper, figure.figure].map(String::from).to_vec();
    let scale = args.scale.filter(|_| experiment.is_scalable());
    words.extend(scale.iter().flat_map(|it| ["--scale".to_string(), it.to_string()]));
    words.extend(args.quick.then(|| "--quick".to_string()));
    words.extend(args.output.seed.iter().flat_map(|it| ["--seed".to_string(), it.to_string()]));
    typed(&words)
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
