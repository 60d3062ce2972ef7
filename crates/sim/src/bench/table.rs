//! Rows as text.

use super::row::{Published, Role, Row};
use crate::basis::{Basis, Tally};
use imbrex_report::TableStyle;
use imbrex_report::format::number;

impl Row {
    /// A line for each row, and under it how it was measured, by whom, and whether the drive was
    /// calibrated on it; at the end [`Row::verdict`] and what the gates rest on.
    pub fn bench_table(rows: &[Row], style: TableStyle) -> String {
        let mut text = String::new();
        let mut drive = "";
        for row in rows {
            if row.drive != drive {
                drive = &row.drive;
                let heading = match style {
                    TableStyle::Terminal => format!("\x1b[1m{drive}\x1b[0m"),
                    _ => drive.to_string(),
                };
                text.push_str(&format!("\n{heading}\n"));
            }
            text.push_str(&row.lines());
        }
        if rows.iter().any(|row| row.role != Role::Model) {
            let verdict = Row::verdict(rows);
            text.push_str(&match Row::tallies(rows).as_slice() {
                [] => format!("\n{verdict}\n"),
                tallies => format!("\n{verdict}:\n{}", Tally::lines(tallies)),
            });
        }
        text
    }

    fn lines(&self) -> String {
        let mut line = format!("  {:<5} {:<44}", self.id, self.metric);
        let model = self.model.map_or("-".to_string(), number);
        if self.role == Role::Model {
            line.push_str(&format!(" {model:>10} {}", self.unit));
        } else {
            let error = self
                .error()
                // Adding nothing turns a minus nothing into nothing.
                .map_or(String::new(), |e| format!("{:+.0} %", (e * 100.0).round() + 0.0));
            let verdict = match (self.role, self.pass) {
                (_, None) => "not measured",
                (Role::Gate, Some(true)) => "pass",
                (Role::Gate, Some(false)) => "FAIL",
                (_, Some(true)) => "agrees",
                (_, Some(false)) => "differs",
            };
            line.push_str(&format!(
                " {:>14} {model:>10} {:<6} {error:>7} {:>14}  {verdict}",
                self.published_text(),
                self.unit,
                self.tolerance
            ));
        }
        let mut notes = self.definition.clone();
        if !self.source.is_empty() {
            notes.push_str(&format!(" [{}]", self.source));
        }
        notes.push_str(match self.basis {
            None | Some(Basis::Published) => "",
            Some(Basis::Calibrated) => " The drive was calibrated on this row.",
            Some(Basis::Construction) => " Holds by construction.",
            Some(Basis::Own) => " The bound is ours.",
        });
        notes.push_str(&self.seeds_text());
        format!("{}\n        {}\n", line.trim_end(), notes.trim())
    }

    /// Between what the seeds lie that the model's number is the mean of; nothing of one.
    pub fn seeds_text(&self) -> String {
        self.over_seeds.map_or(String::new(), |[lowest, highest]| {
            format!(" Mean of eight seeds, {} to {}.", number(lowest), number(highest))
        })
    }

    /// The published figure in words.
    pub fn published_text(&self) -> String {
        match self.published {
            Published::Number(published) => number(published),
            Published::Between(low, high) => format!("{}-{}", number(low), number(high)),
            Published::Words(words) => words.to_string(),
            Published::Nothing => String::new(),
        }
    }
}
