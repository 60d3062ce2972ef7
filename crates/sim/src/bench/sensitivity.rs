//! By how much each row moves when a number of a drive file that is nobody's measurement is a tenth
//! smaller or larger.

use super::row::Row;
use super::run::BenchOptions;
use super::subject::BenchError;
use super::variants::{Change, Estimated, compare};
use crate::progress::Progress;
use imbrex_core::units::{BLOCK_BYTES, Duration};
use imbrex_drives::quantity::{Rate, Size, Span};
use imbrex_report::format::number;
use serde::Serialize;
use std::path::Path;

const FACTORS: [f64; 2] = [0.9, 1.1];

/// One parameter, one row.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sensitivity {
    /// The drive.
    pub drive: String,
    /// The key of its file.
    pub parameter: String,
    /// Its value there.
    pub value: String,
    /// Of the row.
    pub id: String,
    /// Of the row.
    pub metric: String,
    /// Of the three numbers below.
    pub unit: String,
    /// With a tenth less; `None` where such a drive cannot exist or nothing was measured.
    pub less: Option<f64>,
    /// As the file says.
    pub model: Option<f64>,
    /// With a tenth more.
    pub more: Option<f64>,
    /// Whether the row passes with a tenth less, as the file says, and with a tenth more.
    pub passes: [Option<bool>; 3],
}

/// A TOML value that is one number, with or without unit, times `factor`; sizes stay whole blocks and
/// counts whole numbers.
fn scaled(value: &str, factor: f64) -> Option<String> {
    let times = |number: u64| (number as f64 * factor).round() as u64;
    if let Some(text) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        if let Ok(Span(Duration(ns))) = text.parse::<Span>() {
            return Some(format!("\"{} ns\"", times(ns)));
        }
        if let Ok(Rate(bytes)) = text.parse::<Rate>() {
            return Some(format!("\"{} B/s\"", times(bytes)));
        }
        let Size(bytes) = text.parse::<Size>().ok()?;
        let blocks = (bytes as f64 * factor / BLOCK_BYTES as f64).round() as u64;
        return Some(format!("\"{} B\"", blocks * BLOCK_BYTES));
    }
    if let Ok(count) = value.parse::<u64>() {
        let by_one = match factor < 1.0 {
            true => count.saturating_sub(1),
            false => count + 1,
        };
        // A tenth of a small number is less than one.
        let moved = times(count);
        return Some(if moved == count { by_one } else { moved }.to_string());
    }
    let number: f64 = value.parse().ok()?;
    Some((number * factor).to_string())
}

/// A tenth less and a tenth more of an estimated number; nothing for a word.
fn tenths(estimated: &Estimated) -> Vec<String> {
    let factors = FACTORS.into_iter();
    factors.filter_map(|factor| scaled(&estimated.value, factor)).collect()
}

/// Measures every row anew for each estimated number of its drive, smaller and larger. Drive files
/// that differ lie in `folder` meanwhile.
///
/// # Errors
/// When a drive is not in order or `folder` cannot be written to.
pub fn sensitivity(
    options: &BenchOptions,
    folder: &Path,
    progress: Progress<'_>,
) -> Result<Vec<Sensitivity>, BenchError> {
    let mut found = Vec::new();
    for of_drive in compare(options, folder, progress, &tenths)? {
        for pair in of_drive.changed.chunks_exact(FACTORS.len()) {
            let [(change, less), (_, more)] = pair else {
                unreachable!("less and more of each number");
            };
            for (place, row) in of_drive.base.iter().enumerate() {
                let moved = [less, more].map(|rows| rows.as_ref().map(|rows| &rows[place]));
                found.push(Sensitivity::of(change, row, moved));
            }
        }
    }
    Ok(found)
}

impl Sensitivity {
    /// What a row becomes with less and with more.
    fn of(change: &Change, row: &Row, [less, more]: [Option<&Row>; 2]) -> Sensitivity {
        let passes = |row: Option<&Row>| row.and_then(|row| row.pass);
        Sensitivity {
            drive: row.drive.clone(),
            parameter: change.parameter.clone(),
            value: change.value.clone(),
            id: row.id.clone(),
            metric: row.metric.clone(),
            unit: row.unit.clone(),
            less: less.and_then(|row| row.model),
            model: row.model,
            more: more.and_then(|row| row.model),
            passes: [passes(less), row.pass, passes(more)],
        }
    }

    /// By how much the row moves, in percent of what the file gives, for less and for more.
    fn changes(&self) -> [Option<f64>; 2] {
        [self.less, self.more].map(|moved| percent_moved(self.model, moved))
    }

    /// A Markdown table for each drive: what moves by at least one percent, the most sensitive first,
    /// with a `!` where a row that passes no longer does or the other way round, and how many pairs of
    /// parameter and row do not move.
    pub fn markdown(rows: &[Sensitivity]) -> String {
        let mut text = String::new();
        for mine in rows.chunk_by(|a, b| a.drive == b.drive) {
            let largest = |row: &Sensitivity| {
                let changes = row.changes().into_iter().flatten();
                changes.map(f64::abs).fold(0.0, f64::max)
            };
            let mut moving: Vec<&Sensitivity> = mine
                .iter()
                .filter(|row| largest(row) >= 1.0 || row.changes().contains(&None))
                .collect();
            moving.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
            text.push_str(&format!(
                "\n## {}\n\n| Parameter | Value | Row | Model | -10 % | +10 % |\n|---|---|---|---|---|---|\n",
                mine[0].drive
            ));
            for row in &moving {
                text.push_str(&row.line());
            }
            text.push_str(&format!(
                "\n{} other pairs of parameter and row move by less than 1 %.\n",
                mine.len() - moving.len()
            ));
        }
        text
    }

    fn line(&self) -> String {
        let [less, model, more] = self.passes;
        let cell = |change: Option<f64>, passes: Option<bool>| match change {
            None => "-".to_string(),
            Some(change) if passes != model => format!("{change:+.1} % !"),
            Some(change) => format!("{change:+.1} %"),
        };
        let changes = self.changes();
        format!(
            "| `{}` | {} | {} {} | {} {} | {} | {} |\n",
            self.parameter,
            self.value,
            self.id,
            self.metric,
            self.model.map_or("-".to_string(), number),
            self.unit,
            cell(changes[0], less),
            cell(changes[1], more),
        )
    }
}

/// By how much a number moves, in percent of what it was; `None` of what cannot be compared.
pub(super) fn percent_moved(model: Option<f64>, moved: Option<f64>) -> Option<f64> {
    match (moved, model) {
        (Some(moved), Some(model)) if moved == model => Some(0.0),
        (Some(moved), Some(model)) if model != 0.0 => Some((moved / model - 1.0) * 100.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_in_their_own_units() {
        assert_eq!(scaled("\"0.8 ms\"", 1.1).as_deref(), Some("\"880000 ns\""));
        assert_eq!(scaled("\"64 MiB\"", 0.9).as_deref(), Some("\"60399616 B\""));
        assert_eq!(scaled("\"600 MB/s\"", 1.1).as_deref(), Some("\"660000000 B/s\""));
        assert_eq!(scaled("8", 0.9).as_deref(), Some("7"));
        for (count, less, more) in [("0", "0", "1"), ("1", "0", "2"), ("4", "3", "5")] {
            assert_eq!(scaled(count, 0.9).as_deref(), Some(less));
            assert_eq!(scaled(count, 1.1).as_deref(), Some(more));
        }
        assert_eq!(scaled("0.15", 1.1).map(|v| v[..5].to_string()).as_deref(), Some("0.165"));
        assert_eq!(scaled("\"surface-by-surface\"", 1.1), None);
        assert_eq!(scaled("\"uniform:17MiB..36MiB\"", 1.1), None);
        assert_eq!(scaled("true", 1.1), None);
    }

    #[test]
    fn a_verdict_that_turns_is_marked() {
        let row = Sensitivity {
            drive: "a".to_string(),
            parameter: "t.b".to_string(),
            value: "10".to_string(),
            id: "V00".to_string(),
            metric: "a rate".to_string(),
            unit: "MB/s".to_string(),
            less: Some(80.0),
            model: Some(100.0),
            more: Some(110.0),
            passes: [Some(false), Some(true), Some(true)],
        };
        let text = Sensitivity::markdown(&[row]);
        let line = "| `t.b` | 10 | V00 a rate | 100 MB/s | -20.0 % ! | +10.0 % |";
        assert!(text.contains(line), "{text}");
    }
}
