//! What a campaign says at its end.

use super::campaign::Totals;
use super::fault_points::FaultClass;
use super::image::Mode;
use comfy_table::{CellAlignment, Table, presets};
use imbrex_drives::shell_word;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The whole of a campaign, for `--json`.
#[derive(Serialize)]
pub struct Summary<'a> {
    /// The stack.
    pub stack: &'a str,
    /// Seeds run.
    pub seeds: u64,
    /// Points tried.
    pub points: u64,
    /// Points that failed.
    pub failures: Vec<FailureLine>,
    /// Points by mode.
    pub by_mode: BTreeMap<&'static str, u64>,
    /// Points by class of fault.
    pub by_fault: BTreeMap<&'static str, u64>,
    /// Power cuts that differ from every other of their seed.
    pub distinct_cuts: u64,
    /// Points with a crashed recovery.
    pub crashed_recoveries: u64,
    /// Points that went on after a recovery.
    pub went_on: u64,
    /// Blocks read back and judged after crashes.
    pub blocks_judged: u64,
    /// The least that any seed's workload did.
    pub least: Activity,
    /// By what was pending at the cut, the points of each mode.
    pub coverage: BTreeMap<&'a str, BTreeMap<&'static str, u64>>,
}

/// A failed point.
#[derive(Serialize)]
pub struct FailureLine {
    /// The seed.
    pub seed: u64,
    /// The point; none when the workload itself failed.
    pub point: Option<u64>,
    /// What went wrong.
    pub what: String,
    /// The command that shows it again.
    pub replay: String,
}

/// How busy the workload of a seed was, the least over seeds and members with a journal.
#[derive(Clone, Copy, Serialize)]
pub struct Activity {
    /// Times the journal's ring was written again from end to end.
    pub journal_wraps: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Bands rewritten.
    pub bands_rewritten: u64,
}

/// The least that any seed's workload did.
pub fn least_activity(totals: &Totals) -> Activity {
    let journals = || {
        let all = totals.runs.iter().flat_map(|run| &run.journals);
        all.filter(|journal| journal.blocks > 0)
    };
    let rewritten = totals.runs.iter().map(|run| run.bands_rewritten).min();
    Activity {
        journal_wraps: journals().map(|it| it.wraps).min().unwrap_or(0),
        checkpoints: journals().map(|it| it.checkpoints).min().unwrap_or(0),
        bands_rewritten: rewritten.unwrap_or(0),
    }
}

/// The command that shows a failure again.
pub fn replay_command(stack: &str, seed: u64, point: Option<u64>, more: &str) -> String {
    let point = point.map_or(String::new(), |point| format!(" --point {point}"));
    let stack = shell_word(stack);
    format!("imbrex crashtest --stack {stack} --seed {seed}{point}{more}")
}

impl<'a> Summary<'a> {
    /// The summary of a campaign; `more` are the options that a replay needs beside seed and point.
    pub fn new(stack: &'a str, seeds: u64, totals: &'a Totals, more: &str) -> Summary<'a> {
        let modes = || Mode::ALL.into_iter().map(Mode::name);
        let failure = |failure: &super::campaign::Failure| FailureLine {
            seed: failure.seed,
            point: failure.point,
            what: failure.what.clone(),
            replay: replay_command(stack, failure.seed, failure.point, more),
        };
        Summary {
            stack,
            seeds,
            points: totals.points,
            failures: totals.failures.iter().map(failure).collect(),
            by_mode: modes().zip(totals.by_mode).collect(),
            by_fault: FaultClass::ALL
                .into_iter()
                .map(FaultClass::name)
                .zip(totals.by_fault)
                .collect(),
            distinct_cuts: totals.coverage.distinct_cuts(),
            crashed_recoveries: totals.deep,
            went_on: totals.went_on,
            blocks_judged: totals.blocks_judged,
            least: least_activity(totals),
            coverage: totals
                .coverage
                .rows
                .iter()
                .map(|(name, row)| (name.as_str(), modes().zip(*row).collect()))
                .collect(),
        }
    }

    /// As text: what was pending by mode, the faults, the activity, and the count of failures.
    pub fn to_text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let names = Mode::ALL.into_iter().map(Mode::name);
        table.set_header(["pending at the cut"].into_iter().chain(names));
        for (name, row) in &self.coverage {
            let counts = Mode::ALL.into_iter().map(|mode| row[mode.name()].to_string());
            table.add_row([(*name).to_string()].into_iter().chain(counts));
        }
        let counts = Mode::ALL.into_iter().map(|mode| self.by_mode[mode.name()].to_string());
        table.add_row(["points".to_string()].into_iter().chain(counts));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = format!("{table}\n");
        let faults: Vec<String> = self
            .by_fault
            .iter()
            .filter(|(_, points)| **points > 0)
            .map(|(name, points)| format!("{name} {points}"))
            .collect();
        if !faults.is_empty() {
            let _ = writeln!(text, "faults: {}", faults.join(", "));
        }
        let Activity { journal_wraps, checkpoints, bands_rewritten } = self.least;
        let _ = writeln!(
            text,
            "least of any seed and member: {journal_wraps} journal wraps, {checkpoints} \
             checkpoints, {bands_rewritten} bands rewritten"
        );
        let _ = writeln!(
            text,
            "{} different power cuts, recovery crashed at {} points, requests served after recovery \
             at {}, {} blocks judged",
            self.distinct_cuts, self.crashed_recoveries, self.went_on, self.blocks_judged
        );
        let _ = writeln!(
            text,
            "{}: {} of {} points failed, {} seeds",
            self.stack,
            self.failures.len(),
            self.points,
            self.seeds
        );
        text
    }
}
