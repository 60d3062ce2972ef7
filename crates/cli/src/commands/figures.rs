//! `index.html` and `results.csv` of `run` and `reproduce`: the figures beside the papers', and all runs in one table.

use super::outputs::{TRACE_FILE, check_file_in_place, write_whole};
use crate::failure::Failure;
use imbrex_drives::shell_word;
use imbrex_report::{ResultsPart, results};
use imbrex_sim::experiment::{Experiment, Found, IndexFigure, IndexPage, Outcome, Row};
use std::fs;
use std::path::{Path, PathBuf};

/// The page of the figures.
pub const INDEX_FILE: &str = "index.html";
/// The table of all runs.
const RESULTS_FILE: &str = "results.csv";
/// The same of what was stopped, where those of what was finished stay.
const STOPPED_INDEX_FILE: &str = "index.stopped.html";
const STOPPED_RESULTS_FILE: &str = "results.stopped.csv";
/// What a page has that says what was left out.
const LEFT_MARK: &str = "id=\"left\"";

/// A figure with what was found.
pub struct FoundFigure<'a> {
    /// The paper, and what it is called.
    pub paper: Option<(&'a str, &'a str)>,
    /// The figure.
    pub figure: &'a str,
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What it found.
    pub outcome: &'a Outcome,
    /// Stated and measured numbers; none of what was stopped.
    pub rows: &'a [Row],
    /// The command that makes it again.
    pub command: String,
    /// Where its results are, below the folder of the page.
    pub folder: PathBuf,
}

impl FoundFigure<'_> {
    fn on_page(&self) -> Result<IndexFigure<'_>, Failure> {
        let is_stopped = !self.outcome.left.is_empty();
        Ok(IndexFigure {
            paper: self.paper,
            figure: self.figure,
            title: &self.experiment.title,
            differs: &self.experiment.differs,
            rows: self.rows,
            // What is drawn is of all the runs.
            charts: if is_stopped { vec![] } else { self.experiment.charts(self.outcome)? },
            command: self.command.clone(),
            files: self.files(),
            is_stopped,
        })
    }

    /// The numbers that a quick look leaves out.
    fn left_out(&self) -> impl Iterator<Item = String> {
        let paper = self.paper.map_or(String::new(), |(paper, _)| format!("{paper} "));
        let of = format!("{paper}{}", self.figure);
        self.experiment.left_out().map(move |stated| format!("{of}: {}", stated.metric))
    }

    /// The page of each workload, or what there is instead.
    fn files(&self) -> Vec<(String, String)> {
        let of_workload = |it: &imbrex_sim::experiment::WorkloadOutcome| {
            let file = match it.found {
                Found::Runs(_) => "report.html",
                Found::Form(_) => "closed_form.html",
                Found::Trace(_) => TRACE_FILE,
            };
            let folder = match self.outcome.has_several {
                true => self.folder.join(&it.name),
                false => self.folder.clone(),
            };
            (it.name.clone(), folder.join(file).display().to_string())
        };
        self.outcome.workloads.iter().map(of_workload).collect()
    }
}

/// Refuses a folder in which the page or the table could not be written over.
pub fn check_index(option: &str, folder: &Path) -> Result<(), Failure> {
    for file in [INDEX_FILE, RESULTS_FILE].map(|name| folder.join(name)) {
        if fs::symlink_metadata(&file).is_ok() {
            check_file_in_place(option, &file)?;
        }
    }
    Ok(())
}

/// Writes the page, and the table where `has_table`; a page of what was finished stays beside one of what was stopped.
pub fn write_index(
    title: &str,
    folder: &Path,
    figures: &[FoundFigure<'_>],
    left: Vec<String>,
    has_table: bool,
) -> Result<(), Failure> {
    let is_stopped = !left.is_empty();
    let left_out = figures.iter().flat_map(FoundFigure::left_out).collect();
    let on_page = figures.iter().map(FoundFigure::on_page).collect::<Result<_, _>>()?;
    let page = IndexPage { title, figures: on_page, left, left_out }.to_html();
    let before = fs::read_to_string(folder.join(INDEX_FILE)).ok();
    let stays = is_stopped && before.is_some_and(|page| !page.contains(LEFT_MARK));
    let (index, results) = match stays {
        true => (STOPPED_INDEX_FILE, STOPPED_RESULTS_FILE),
        false => (INDEX_FILE, RESULTS_FILE),
    };
    write_whole(folder, |folder| {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(index), page)?;
        match has_table {
            true => fs::write(folder.join(results), table(figures)),
            false => Ok(()),
        }
    })
}

/// All runs; those of papers have the paper and the figure first.
fn table(figures: &[FoundFigure<'_>]) -> String {
    let has_papers = figures.iter().any(|figure| figure.paper.is_some());
    let before: &[&str] = if has_papers { &["paper", "figure"] } else { &[] };
    let mut parts = Vec::new();
    for figure in figures {
        let of: Vec<&str> = figure.paper.map_or(vec![], |(paper, _)| vec![paper, figure.figure]);
        let reports = figure.outcome.workloads.iter().filter_map(|it| match &it.found {
            Found::Runs(report) => Some(report),
            _ => None,
        });
        parts.extend(reports.map(|report| ResultsPart { of: of.clone(), report }));
    }
    results(before, &parts).to_csv()
}

/// A command as one types it.
pub fn typed(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}
