//! By how much each row moves when a number of a drive file that is nobody's measurement is a tenth
//! smaller or larger.

use super::gates::MEASUREMENTS;
use super::row::{Measurement, Row};
use super::run::{BenchOptions, in_parallel};
use super::subject::{BenchError, Subject};
use crate::format::number;
use imbrex_core::units::{BLOCK_BYTES, Duration};
use imbrex_drives::Drive;
use imbrex_drives::quantity::{Rate, Size, Span};
use imbrex_drives::toml_error::nearest;
use serde::Serialize;
use std::path::Path;

/// What marks a value in a drive file that is nobody's measurement.
const ESTIMATED: &str = "*estimated*";
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
}

/// An estimated value of a drive file: where it stands, and with what in its place.
struct Estimated {
    /// `table.key`.
    parameter: String,
    value: String,
    line: usize,
}

impl Estimated {
    /// The values of a file that are marked so and are one number.
    fn all(text: &str) -> Vec<Estimated> {
        let mut table = String::new();
        let mut found = Vec::new();
        for (line, content) in text.lines().enumerate() {
            if let Some(name) = content.trim().strip_prefix('[') {
                table = name.trim_end_matches(']').to_string();
            }
            let Some((code, comment)) = content.split_once('#') else {
                continue;
            };
            let Some((key, value)) = code.split_once('=') else {
                continue;
            };
            if comment.contains(ESTIMATED) && scaled(value.trim(), 1.1).is_some() {
                let key = key.trim();
                found.push(Estimated {
                    parameter: match table.is_empty() {
                        true => key.to_string(),
                        false => format!("{table}.{key}"),
                    },
                    value: value.trim().to_string(),
                    line,
                });
            }
        }
        found
    }

    /// The file with this value times `factor`.
    fn changed(&self, text: &str, factor: f64) -> String {
        let lines = text.lines().enumerate().map(|(line, content)| {
            if line != self.line {
                return content.to_string();
            }
            let (key, _) = content.split_once('=').expect("a line with a value");
            let value = scaled(&self.value, factor).expect("it was scaled before");
            format!("{key}= {value}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A TOML value that is one number, with or without unit, times `factor`; sizes stay whole blocks and
/// counts whole numbers.
fn scaled(value: &str, factor: f64) -> Option<String> {
    let times = |number: u64| (number as f64 * factor).round() as u64;
    if let Some(text) = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
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

/// A drive to measure.
struct Variant {
    /// What is done to it.
    measurement: &'static Measurement,
    /// Name in the library, or path of the file with one value changed.
    drive: String,
    /// `None` for the drive as its file in the library says.
    change: Option<Change>,
}

/// What one file says otherwise than that of the library.
struct Change {
    /// `table.key`.
    parameter: String,
    /// In the file of the library.
    value: String,
    /// What it is multiplied by, one of [`FACTORS`].
    factor: f64,
}

impl Variant {
    /// The drive of a measurement as its file says, then with each estimated value a tenth smaller
    /// and a tenth larger. Writes the files that differ to `folder`.
    fn all_of(
        measurement: &'static Measurement,
        folder: &Path,
    ) -> Result<Vec<Variant>, BenchError> {
        // A row about a formula has no drive file, and so no parameter.
        let Ok(text) = Drive::text_of_library(measurement.drive) else {
            return Ok(Vec::new());
        };
        let mut variants = vec![Variant {
            measurement,
            drive: measurement.drive.to_string(),
            change: None,
        }];
        for (place, estimated) in Estimated::all(text).into_iter().enumerate() {
            for factor in FACTORS {
                let path = folder.join(format!("{}-{place}-{factor}.toml", measurement.drive));
                std::fs::write(&path, estimated.changed(text, factor))
                    .map_err(|error| BenchError::Words(format!("{}: {error}", path.display())))?;
                variants.push(Variant {
                    measurement,
                    drive: path.to_string_lossy().into_owned(),
                    change: Some(Change {
                        parameter: estimated.parameter.clone(),
                        value: estimated.value.clone(),
                        factor,
                    }),
                });
            }
        }
        Ok(variants)
    }

    /// Its rows; `None` when such a drive cannot exist.
    fn rows(&self, options: &BenchOptions) -> Result<Option<Vec<Row>>, BenchError> {
        let subject = Subject {
            drive: self.drive.clone(),
            ..options.subject(self.measurement.drive)
        };
        let rows = self.measurement.rows(&subject);
        match self.change {
            None => rows.map(Some),
            // A drive that cannot be built with a tenth more or less has no number.
            Some(_) => Ok(rows.ok()),
        }
    }
}

/// Measures every row anew for each estimated number of its drive, smaller and larger. Drive files
/// that differ lie in `folder` meanwhile.
///
/// # Errors
/// When a drive is not in order or `folder` cannot be written to.
pub fn sensitivity(
    options: &BenchOptions,
    folder: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Sensitivity>, BenchError> {
    let drives = options.drive_names()?;
    check_published(&drives)?;
    let wanted = |drive: &str| drives.is_empty() || drives.iter().any(|d| d == drive);
    let mut variants = Vec::new();
    for measurement in MEASUREMENTS.iter().filter(|m| wanted(m.drive)) {
        variants.extend(Variant::all_of(measurement, folder)?);
    }
    let measured = in_parallel(options.jobs, &variants, &|variant| {
        let rows = variant.rows(options);
        progress(&variant.drive);
        rows
    });
    let measured = measured.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(compared(&variants, &measured))
}

/// An error for the first drive of which no figure was published.
fn check_published(drives: &[String]) -> Result<(), BenchError> {
    let published = || MEASUREMENTS.iter().map(|measurement| measurement.drive);
    let Some(drive) = drives
        .iter()
        .find(|drive| !published().any(|known| known == *drive))
    else {
        return Ok(());
    };
    let hint = nearest(drive, published())
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Err(BenchError::Words(format!(
        "nothing was published of a drive `{drive}`, so no row of it can move{hint}"
    )))
}

/// One entry for each pair of parameter and row, from the rows of each variant: those of a drive as
/// its file says come before those of its changes, and less before more.
fn compared(variants: &[Variant], measured: &[Option<Vec<Row>>]) -> Vec<Sensitivity> {
    let mut found: Vec<Sensitivity> = Vec::new();
    let mut base: &[Row] = &[];
    for (variant, rows) in variants.iter().zip(measured) {
        let Some(change) = &variant.change else {
            base = rows.as_deref().unwrap_or_default();
            continue;
        };
        for (place, row) in base.iter().enumerate() {
            let moved = rows.as_ref().and_then(|rows| rows[place].model);
            if change.factor < 1.0 {
                found.push(change.less(row, moved));
            } else {
                let of_less = found.len() - base.len() + place;
                found[of_less].more = moved;
            }
        }
    }
    found
}

impl Change {
    /// The entry for a row, of which the number with a tenth more is still to come.
    fn less(&self, row: &Row, moved: Option<f64>) -> Sensitivity {
        Sensitivity {
            drive: row.drive.clone(),
            parameter: self.parameter.clone(),
            value: self.value.clone(),
            id: row.id.clone(),
            metric: row.metric.clone(),
            unit: row.unit.clone(),
            less: moved,
            model: row.model,
            more: None,
        }
    }
}

impl Sensitivity {
    /// By how much the row moves, in percent of what the file gives, for less and for more.
    fn changes(&self) -> [Option<f64>; 2] {
        [self.less, self.more].map(|moved| match (moved, self.model) {
            (Some(moved), Some(model)) if moved == model => Some(0.0),
            (Some(moved), Some(model)) if model != 0.0 => Some((moved / model - 1.0) * 100.0),
            _ => None,
        })
    }

    /// A Markdown table for each drive: what moves by at least one percent, the most sensitive first,
    /// and how many pairs of parameter and row do not.
    pub fn markdown(rows: &[Sensitivity]) -> String {
        let mut text = String::new();
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let count = rest
                .iter()
                .take_while(|row| row.drive == first.drive)
                .count();
            let (mine, others) = rest.split_at(count);
            rest = others;
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
                first.drive
            ));
            for row in &moving {
                let cell = |change: Option<f64>| {
                    change.map_or("-".to_string(), |change| format!("{change:+.1} %"))
                };
                let [less, more] = row.changes().map(cell);
                text.push_str(&format!(
                    "| `{}` | {} | {} {} | {} {} | {less} | {more} |\n",
                    row.parameter,
                    row.value,
                    row.id,
                    row.metric,
                    row.model.map_or("-".to_string(), number),
                    row.unit
                ));
            }
            text.push_str(&format!(
                "\n{} other pairs of parameter and row move by less than 1 %.\n",
                mine.len() - moving.len()
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_in_their_own_units() {
        assert_eq!(scaled("\"0.8 ms\"", 1.1).as_deref(), Some("\"880000 ns\""));
        assert_eq!(scaled("\"64 MiB\"", 0.9).as_deref(), Some("\"60399616 B\""));
        assert_eq!(
            scaled("\"600 MB/s\"", 1.1).as_deref(),
            Some("\"660000000 B/s\"")
        );
        assert_eq!(scaled("8", 0.9).as_deref(), Some("7"));
        for (count, less, more) in [("0", "0", "1"), ("1", "0", "2"), ("4", "3", "5")] {
            assert_eq!(scaled(count, 0.9).as_deref(), Some(less));
            assert_eq!(scaled(count, 1.1).as_deref(), Some(more));
        }
        assert_eq!(
            scaled("0.15", 1.1).map(|v| v[..5].to_string()).as_deref(),
            Some("0.165")
        );
        assert_eq!(scaled("\"surface-by-surface\"", 1.1), None);
        assert_eq!(scaled("\"uniform:17MiB..36MiB\"", 1.1), None);
        assert_eq!(scaled("true", 1.1), None);
    }

    #[test]
    fn only_what_is_marked_is_changed() {
        let text = "a = 10 # datasheet\n[t]\nb = 10 # *estimated*: so\nc = \"x\" # *estimated*\n";
        let found = Estimated::all(text);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].parameter.as_str(), found[0].value.as_str()),
            ("t.b", "10")
        );
        assert_eq!(
            found[0].changed(text, 1.1),
            "a = 10 # datasheet\n[t]\nb = 11\nc = \"x\" # *estimated*"
        );
    }
}
