//! Drives of the library with one value changed, and their rows.

use super::gates::MEASUREMENTS;
use super::row::{Measurement, Row};
use super::run::{BenchOptions, in_parallel};
use super::subject::{BenchError, Subject};
use crate::progress::Progress;
use imbrex_drives::Drive;
use imbrex_drives::toml_error::nearest;
use std::path::Path;

/// What marks a value in a drive file that is nobody's measurement.
const ESTIMATED: &str = "*estimated*";

/// An estimated value of a drive file: where it stands, and what else it could be.
pub(super) struct Estimated {
    /// `table.key`.
    pub parameter: String,
    /// As TOML.
    pub value: String,
    /// What the comment beside it says that it could be instead, as TOML: `*estimated*, 8 to 32: why`
    /// gives both ends of the range, `*estimated*, or "in-place": why` each other word. Without the
    /// value itself, which may be an end.
    pub others: Vec<String>,
    line: usize,
}

impl Estimated {
    /// The values of a file that are marked so.
    pub fn all(text: &str) -> Vec<Estimated> {
        let mut table = String::new();
        let mut found = Vec::new();
        for (line, content) in text.lines().enumerate() {
            if let Some(name) = content.trim().strip_prefix('[') {
                table = name.trim_end_matches(']').to_string();
            }
            let Some((code, comment)) = content.split_once('#') else {
                continue;
            };
            let (Some((key, value)), Some((_, reason))) =
                (code.split_once('='), comment.split_once(ESTIMATED))
            else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let mut others = others(reason);
            others.retain(|other| other != value);
            found.push(Estimated {
                parameter: match table.is_empty() {
                    true => key.to_string(),
                    false => format!("{table}.{key}"),
                },
                value: value.to_string(),
                others,
                line,
            });
        }
        found
    }

    /// The file with another value here.
    fn changed(&self, text: &str, value: &str) -> String {
        let lines = text.lines().enumerate().map(|(line, content)| {
            if line != self.line {
                return content.to_string();
            }
            let (key, _) = content.split_once('=').expect("a line with a value");
            format!("{key}= {value}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The values that stand between the mark and the colon: `, A to B` or `, or A, B`.
fn others(reason: &str) -> Vec<String> {
    let clause = reason.split_once(": ").map_or(reason, |(clause, _)| clause);
    let Some(clause) = clause.trim().strip_prefix(',') else {
        return Vec::new();
    };
    let list = clause.trim();
    let values: Vec<&str> = match list.strip_prefix("or ") {
        Some(words) => words.split(", ").collect(),
        None => list.split(" to ").collect(),
    };
    values.iter().map(|value| value.trim().to_string()).collect()
}

/// What one file says otherwise than that of the library.
#[derive(Clone)]
pub(super) struct Change {
    /// `table.key`.
    pub parameter: String,
    /// In the file of the library, as TOML.
    pub value: String,
    /// In this file, as TOML.
    pub instead: String,
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

/// The rows of a measurement for the drive as its file says, and for each change of it.
pub(super) struct Compared {
    /// Of the library.
    pub base: Vec<Row>,
    /// A change and what it gives; `None` when such a drive cannot exist.
    pub changed: Vec<(Change, Option<Vec<Row>>)>,
}

/// Measures the rows of the wanted drives, as their files say and with each change that `changes`
/// finds for an estimated value. Drive files that differ lie in `folder` meanwhile.
///
/// # Errors
/// When a drive is not in order or `folder` cannot be written to.
pub(super) fn compare(
    options: &BenchOptions,
    folder: &Path,
    progress: Progress<'_>,
    changes: &dyn Fn(&Estimated) -> Vec<String>,
) -> Result<Vec<Compared>, BenchError> {
    let drives = options.drive_names()?;
    check_published(&drives)?;
    let wanted = |drive: &str| drives.is_empty() || drives.iter().any(|d| d == drive);
    let mut variants = Vec::new();
    for measurement in MEASUREMENTS.iter().filter(|m| wanted(m.drive)) {
        variants.extend(Variant::all_of(measurement, folder, changes)?);
    }
    let name = |variant: &Variant| variant.drive.clone();
    let measured =
        in_parallel(options.jobs, &variants, progress, &name, &|variant| variant.rows(options));
    let mut compared: Vec<Compared> = Vec::new();
    for (variant, rows) in variants.into_iter().zip(measured) {
        let rows = rows?;
        match variant.change {
            None => compared.push(Compared { base: rows.unwrap_or_default(), changed: Vec::new() }),
            Some(change) => {
                let of_drive = compared.last_mut().expect("the drive itself comes first");
                of_drive.changed.push((change, rows));
            }
        }
    }
    Ok(compared)
}

impl Variant {
    /// The drive of a measurement as its file says, then with each change of each estimated value.
    /// Writes the files that differ to `folder`.
    fn all_of(
        measurement: &'static Measurement,
        folder: &Path,
        changes: &dyn Fn(&Estimated) -> Vec<String>,
    ) -> Result<Vec<Variant>, BenchError> {
        // A row about a formula has no drive file, and so no parameter.
        let Ok(text) = Drive::text_of_library(measurement.drive) else {
            return Ok(Vec::new());
        };
        let mut variants =
            vec![Variant { measurement, drive: measurement.drive.to_string(), change: None }];
        for (place, estimated) in Estimated::all(text).into_iter().enumerate() {
            for (number, instead) in changes(&estimated).into_iter().enumerate() {
                let path = folder.join(format!("{}-{place}-{number}.toml", measurement.drive));
                std::fs::write(&path, estimated.changed(text, &instead))
                    .map_err(|error| BenchError::Words(format!("{}: {error}", path.display())))?;
                variants.push(Variant {
                    measurement,
                    drive: path.to_string_lossy().into_owned(),
                    change: Some(Change {
                        parameter: estimated.parameter.clone(),
                        value: estimated.value.clone(),
                        instead,
                    }),
                });
            }
        }
        Ok(variants)
    }

    /// Its rows; `None` when such a drive cannot exist.
    fn rows(&self, options: &BenchOptions) -> Result<Option<Vec<Row>>, BenchError> {
        let subject =
            Subject { drive: self.drive.clone(), ..options.subject(self.measurement.drive) };
        let rows = self.measurement.rows_of_one_seed(&subject);
        match self.change {
            None => rows.map(Some),
            // A drive that cannot be built with another value has no number.
            Some(_) => Ok(rows.ok()),
        }
    }
}

/// An error for the first drive of which no figure was published.
fn check_published(drives: &[String]) -> Result<(), BenchError> {
    let published = || MEASUREMENTS.iter().map(|measurement| measurement.drive);
    let Some(drive) = drives.iter().find(|drive| !published().any(|known| known == *drive)) else {
        return Ok(());
    };
    let hint = nearest(drive, published())
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Err(BenchError::Words(format!(
        "nothing was published of a drive `{drive}`, so no row of it can move{hint}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_is_changed() {
        let text = "a = 10 # datasheet\n[t]\nb = 10 # *estimated*: so\nc = \"x\" # *estimated*\n";
        let found = Estimated::all(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].parameter.as_str(), found[0].value.as_str()), ("t.b", "10"));
        assert!(found.iter().all(|estimated| estimated.others.is_empty()));
        assert_eq!(
            found[0].changed(text, "11"),
            "a = 10 # datasheet\n[t]\nb = 11\nc = \"x\" # *estimated*"
        );
    }

    #[test]
    fn a_comment_states_the_range_or_the_other_words() {
        assert_eq!(others(", 8 to 32: queued commands"), ["8", "32"]);
        assert_eq!(others(", \"0.5 ms\" to \"1 ms\": of its time"), ["\"0.5 ms\"", "\"1 ms\""]);
        assert_eq!(others(", or \"a\", \"b\": why"), ["\"a\"", "\"b\""]);
        assert!(others(": 0.5 to 1.0 ms on drives of its time").is_empty());
    }

    /// A range that no drive could be built with would be an empty word.
    #[test]
    fn what_an_estimate_could_be_instead_is_a_drive_too() {
        let folder = tempfile::tempdir().unwrap();
        let stated = |estimated: &Estimated| estimated.others.clone();
        let mut built = 0;
        for measurement in MEASUREMENTS {
            for variant in Variant::all_of(measurement, folder.path(), &stated).unwrap() {
                let Some(change) = &variant.change else {
                    continue;
                };
                let subject = Subject {
                    drive: variant.drive.clone(),
                    settings: Vec::new(),
                    seed: 1,
                    quick: true,
                    traces: None,
                };
                let Change { parameter, instead, .. } = change;
                if let Err(error) = subject.scaled_session(8) {
                    panic!("{}: {parameter} = {instead}: {error}", measurement.drive);
                }
                built += 1;
            }
        }
        assert!(built > 0);
    }
}
