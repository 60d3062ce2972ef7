//! What a campaign says at its end.

use super::campaign::Totals;
use super::happening::Happening;
use crate::crashtest::summary::{FailureLine, replay_command};
use comfy_table::{CellAlignment, Table, presets};
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
    /// Cases tried.
    pub cases: u64,
    /// Those that differ from every other of their seed.
    pub distinct: u64,
    /// Cases that failed.
    pub failures: Vec<FailureLine>,
    /// By happening.
    pub by_happening: BTreeMap<&'static str, Row>,
}

/// What has come of the cases of one happening.
#[derive(Clone, Copy, Serialize)]
pub struct Row {
    /// Cases that went as they should.
    pub cases: u64,
    /// The start was refused with the name of the disk.
    pub refused: u64,
    /// Every block was served.
    pub served_whole: u64,
    /// Some blocks could not be read.
    pub served_with_errors: u64,
    /// The disk as it was before was refused, because the one in its place had gone on.
    pub put_back_refused: u64,
}

impl<'a> Summary<'a> {
    /// The summary of a campaign; `more` are the options that a replay needs beside seed and case.
    pub fn new(stack: &'a str, seeds: u64, totals: &Totals, more: &str) -> Summary<'a> {
        let failure = |failure: &crate::crashtest::campaign::Failure| FailureLine {
            seed: failure.seed,
            point: failure.point,
            what: failure.what.clone(),
            replay: replay_command(stack, failure.seed, failure.point, more),
        };
        let rows = Happening::ALL.into_iter().zip(totals.by_happening);
        let row = |(happening, counts): (Happening, super::campaign::Counts)| {
            let row = Row {
                cases: counts.cases,
                refused: counts.refused,
                served_whole: counts.whole,
                served_with_errors: counts.errors,
                put_back_refused: counts.back_refused,
            };
            (happening.name(), row)
        };
        Summary {
            stack,
            seeds,
            cases: totals.cases,
            distinct: totals.distinct,
            failures: totals.failures.iter().map(failure).collect(),
            by_happening: rows.map(row).collect(),
        }
    }

    /// As text: a line for each happening, and the count of failures.
    pub fn to_text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "disk",
            "cases",
            "refused",
            "served whole",
            "served with errors",
            "put back: refused",
        ]);
        for happening in Happening::ALL {
            let row = self.by_happening[happening.name()];
            let counts = [
                row.cases,
                row.refused,
                row.served_whole,
                row.served_with_errors,
                row.put_back_refused,
            ];
            let counts = counts.map(|count| count.to_string());
            table.add_row([happening.name().to_string()].into_iter().chain(counts));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = format!("{table}\n");
        let _ = writeln!(
            text,
            "{}: {} of {} cases failed, {} different, {} seeds",
            self.stack,
            self.failures.len(),
            self.cases,
            self.distinct,
            self.seeds
        );
        text
    }
}
