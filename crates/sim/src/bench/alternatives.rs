//! What the rows become with what a drive file says that an estimated value could be instead: whether
//! the measurements prefer the mechanism that was chosen.

use super::row::{Role, Row};
use super::run::BenchOptions;
use super::sensitivity::percent_moved;
use super::subject::BenchError;
use super::variants::{Change, Estimated, compare};
use crate::progress::Progress;
use imbrex_report::format::number;
use serde::Serialize;
use std::path::Path;

/// One parameter with one other value, one row.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Alternative {
    /// The drive.
    pub drive: String,
    /// The key of its file.
    pub parameter: String,
    /// Its value there.
    pub value: String,
    /// The other one.
    pub instead: String,
    /// Of the row.
    pub id: String,
    /// Of the row.
    pub metric: String,
    /// Of both numbers.
    pub unit: String,
    /// As the file says.
    pub model: Option<f64>,
    /// With the other value; `None` where such a drive cannot exist or nothing was measured.
    pub with: Option<f64>,
    /// Whether the row passes as the file says, and with the other value.
    pub passes: [Option<bool>; 2],
    /// Whether the row has to.
    pub is_gate: bool,
}

/// Measures every row anew for each value that a comment of its drive's file states an estimated one
/// could be instead. Drive files that differ lie in `folder` meanwhile.
///
/// # Errors
/// When a drive is not in order or `folder` cannot be written to.
pub fn alternatives(
    options: &BenchOptions,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<Vec<Alternative>, BenchError> {
    let mut found = Vec::new();
    let stated = |estimated: &Estimated| estimated.others.clone();
    for of_drive in compare(options, folder, progress, &stated)? {
        for (change, rows) in &of_drive.changed {
            for (place, row) in of_drive.base.iter().enumerate() {
                let with = rows.as_ref().map(|rows| &rows[place]);
                found.push(Alternative::of(change, row, with));
            }
        }
    }
    Ok(found)
}

impl Alternative {
    fn of(change: &Change, row: &Row, with: Option<&Row>) -> Alternative {
        Alternative {
            drive: row.drive.clone(),
            parameter: change.parameter.clone(),
            value: change.value.clone(),
            instead: change.instead.clone(),
            id: row.id.clone(),
            metric: row.metric.clone(),
            unit: row.unit.clone(),
            model: row.model,
            with: with.and_then(|row| row.model),
            passes: [row.pass, with.and_then(|row| row.pass)],
            is_gate: row.role == Role::Gate,
        }
    }

    /// A Markdown table for each drive: one line for each other value, with the gates that it turns
    /// and the rows that it moves by at least a tenth.
    pub fn markdown(rows: &[Alternative]) -> String {
        let mut tried: Vec<&Alternative> = Vec::new();
        for row in rows {
            if !tried.iter().any(|other| other.is_same_trial(row)) {
                tried.push(row);
            }
        }
        let mut text = String::new();
        for of_drive in tried.chunk_by(|a, b| a.drive == b.drive) {
            text.push_str(&format!(
                "\n## {}\n\n| Parameter | Value | Instead | Gates that turn | Rows that move by 10 % or more |\n\
                 |---|---|---|---|---|\n",
                of_drive[0].drive
            ));
            for first in of_drive {
                let same = rows.iter().filter(|row| row.is_same_trial(first));
                text.push_str(&line(&same.collect::<Vec<_>>()));
            }
        }
        text
    }

    /// True when both rows are of one drive with one other value.
    fn is_same_trial(&self, other: &Alternative) -> bool {
        self.drive == other.drive
            && self.parameter == other.parameter
            && self.instead == other.instead
    }

    /// What becomes of the row, when its verdict is another one and it has to pass.
    fn turned(&self) -> Option<String> {
        let [before, after] = self.passes;
        if !self.is_gate || before == after {
            return None;
        }
        let verdict = match after {
            Some(true) => "holds",
            Some(false) => "fails",
            None => "cannot be measured",
        };
        Some(format!("{} {} {verdict}", self.id, self.metric))
    }

    /// The row with both numbers, when it moves by a tenth.
    fn moved(&self) -> Option<String> {
        let percent = percent_moved(self.model, self.with)?;
        let (model, with) = (self.model.map(number)?, self.with.map(number)?);
        (percent.abs() >= 10.0).then(|| {
            let Alternative { id, metric, unit, .. } = self;
            format!("{id} {metric}: {model} to {with} {unit}").trim_end().to_string()
        })
    }
}

/// The line of one other value.
fn line(tried: &[&Alternative]) -> String {
    let first = tried[0];
    let join = |cells: Vec<String>| match cells.is_empty() {
        true => "none".to_string(),
        false => cells.join("; "),
    };
    let can_be_built = tried.iter().any(|row| row.with.is_some());
    let turned = join(tried.iter().filter_map(|row| row.turned()).collect());
    let moved = join(tried.iter().filter_map(|row| row.moved()).collect());
    let (turned, moved) = match can_be_built {
        true => (turned, moved),
        false => ("such a drive cannot be built".to_string(), String::new()),
    };
    format!(
        "| `{}` | {} | {} | {turned} | {moved} |\n",
        first.parameter, first.value, first.instead
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_turns_and_what_moves() {
        let row = |id: &str, with: f64, after: bool| Alternative {
            drive: "a".to_string(),
            parameter: "t.b".to_string(),
            value: "16".to_string(),
            instead: "8".to_string(),
            id: id.to_string(),
            metric: "a rate".to_string(),
            unit: "MB/s".to_string(),
            model: Some(100.0),
            with: Some(with),
            passes: [Some(true), Some(after)],
            is_gate: true,
        };
        let rows = [row("V01", 105.0, true), row("V02", 70.0, false)];
        let text = Alternative::markdown(&rows);
        let line = "| `t.b` | 16 | 8 | V02 a rate fails | V02 a rate: 100 to 70.0 MB/s |";
        assert!(text.contains(line), "{text}");
    }
}
