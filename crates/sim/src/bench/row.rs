//! What was published, and the row in which it stands beside the model.

use super::subject::{BenchError, Subject};
use crate::basis::{Basis, Tally};
use serde::{Serialize, Serializer};

/// What somebody measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Published {
    /// One number.
    Number(f64),
    /// Something between two numbers.
    Between(f64, f64),
    /// Words: what was seen has no number.
    Words(&'static str),
    /// Nothing: the row describes the model.
    Nothing,
}

impl Serialize for Published {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Published::Number(number) => serializer.serialize_f64(*number),
            Published::Between(low, high) => [*low, *high].serialize(serializer),
            Published::Words(words) => serializer.serialize_str(words),
            Published::Nothing => serializer.serialize_none(),
        }
    }
}

/// Which models pass.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accepted {
    /// As far from the published number, or from the nearer of two, as this share of it.
    Share(f64),
    /// From the first to the second number, both included.
    Between(f64, f64),
    /// No more than this share of the published number, nor less than one over it.
    Factor(f64),
    /// The published number and no other.
    Exactly,
    /// Every one: the row describes the model.
    Any,
}

/// What a row is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The model has to pass.
    Gate,
    /// Printed beside the published figure, which is too uncertain to insist on it.
    Report,
    /// Describes the model: nothing was published.
    Model,
}

/// A published figure and how near a model has to come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gate {
    /// Name in `docs/models/validation.md`; the same for all rows of one measurement there.
    pub id: &'static str,
    /// What is measured, in a few words.
    pub metric: &'static str,
    /// How exactly: workload, what is counted, over which part of the run.
    pub definition: &'static str,
    /// Unit of both numbers.
    pub unit: &'static str,
    /// What was measured on the real drive.
    pub published: Published,
    /// Which models pass.
    pub accepted: Accepted,
    /// Whether it has to.
    pub role: Role,
    /// On what the comparison rests: what it means when the model passes.
    pub basis: Basis,
    /// Who measured it.
    pub source: &'static str,
}

/// How many seeds a row is measured with that draws random numbers.
const SEEDS: u64 = 8;

/// Whether a measurement draws random numbers: then its rows are means over eight seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Draws {
    /// It does not.
    Nothing,
    /// It does, and takes no time worth saving.
    Briefly,
    /// It does, and takes long: one seed has to do when it is to be quick.
    AtLength,
}

/// Something that is done to a drive.
#[derive(Clone, Copy)]
pub struct Measurement {
    /// Name in the library.
    pub drive: &'static str,
    /// What is compared.
    pub gates: &'static [Gate],
    /// Whether it draws random numbers.
    pub draws: Draws,
    /// Replays recorded traces, and so cannot be done without their folder.
    pub needs_traces: bool,
    /// Does it and returns a number for each gate; none where what the gate is about did not happen.
    pub measure: fn(&Subject) -> Result<Vec<Option<f64>>, BenchError>,
}

/// A published figure beside the model's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// See [`Gate::id`].
    pub id: String,
    /// The drive.
    pub drive: String,
    /// See [`Gate::metric`].
    pub metric: String,
    /// See [`Gate::definition`].
    pub definition: String,
    /// Of both numbers.
    pub unit: String,
    /// On the real drive: a number, two for a range, or words.
    pub published: Published,
    /// On the model, the mean over the seeds; `None` where it could not be measured here, or did not
    /// happen.
    pub model: Option<f64>,
    /// The smallest and the largest over the seeds; `None` where there was one.
    pub over_seeds: Option<[f64; 2]>,
    /// Which models pass, in words.
    pub tolerance: String,
    /// The smallest and largest number that pass, where there are such.
    pub accepted: Option<[f64; 2]>,
    /// Whether the model does; `None` where there is nothing to compare.
    pub pass: Option<bool>,
    /// What the row is for.
    pub role: Role,
    /// The drive was calibrated on this row.
    pub calibrated: bool,
    /// On what the comparison rests; `None` where the row only describes the model.
    pub basis: Option<Basis>,
    /// Who measured it.
    pub source: String,
    /// Of a row about a cliff: GB written up to the end of each span of the writes, and the MB/s in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<[f64; 2]>,
}

/// A gate that checks a model that was not made from it.
pub(super) const fn gate(
    id: &'static str,
    metric: &'static str,
    definition: &'static str,
    unit: &'static str,
    (published, accepted): (Published, Accepted),
    (role, source): (Role, &'static str),
) -> Gate {
    Gate {
        id,
        metric,
        definition,
        unit,
        published,
        accepted,
        role,
        basis: Basis::Published,
        source,
    }
}

/// The same, of a drive of which a parameter was chosen so that it holds: no prediction.
pub(super) const fn calibrated(mut gate: Gate) -> Gate {
    gate.basis = Basis::Calibrated;
    gate
}

/// The same, of a drive whose file states the published number, or numbers that give it by
/// arithmetic: it shows that nothing in the model hides it.
pub(super) const fn by_construction(mut gate: Gate) -> Gate {
    gate.basis = Basis::Construction;
    gate
}

/// The same, where no number was published for it: the bound is ours.
pub(super) const fn own_bound(mut gate: Gate) -> Gate {
    gate.basis = Basis::Own;
    gate
}

impl Gate {
    /// The smallest and the largest number that pass.
    pub fn range(&self) -> Option<[f64; 2]> {
        let (low, high) = match self.published {
            Published::Number(number) => (number, number),
            Published::Between(low, high) => (low, high),
            Published::Words(_) | Published::Nothing => match self.accepted {
                Accepted::Between(low, high) => return Some([low, high]),
                _ => return None,
            },
        };
        match self.accepted {
            Accepted::Share(share) => Some([low - share * low.abs(), high + share * high.abs()]),
            Accepted::Between(low, high) => Some([low, high]),
            Accepted::Factor(factor) => Some([low / factor, high * factor]),
            Accepted::Exactly => Some([low, high]),
            Accepted::Any => None,
        }
    }

    fn tolerance(&self) -> String {
        match self.accepted {
            Accepted::Share(share) => format!("+-{} %", share * 100.0),
            Accepted::Between(low, high) if high == f64::INFINITY => format!(">= {low}"),
            Accepted::Between(low, high) if low == f64::NEG_INFINITY => format!("<= {high}"),
            Accepted::Between(low, high) => format!("{low} to {high}"),
            Accepted::Factor(factor) => format!("x{factor}"),
            Accepted::Exactly => "exact".to_string(),
            Accepted::Any => String::new(),
        }
    }

    /// The row of this gate for a model; it does not pass where what it is about did not happen.
    pub fn row(&self, drive: &str, model: Option<f64>) -> Row {
        let pass = self
            .range()
            .map(|[low, high]| model.is_some_and(|model| (low..=high).contains(&model)));
        self.row_with(drive, model, pass)
    }

    /// The row of this gate for what the model gave with each seed: their mean has to pass.
    fn row_over(&self, drive: &str, models: &[Option<f64>]) -> Row {
        let models: Option<Vec<f64>> = models.iter().copied().collect();
        let Some(models) = models else {
            return self.row(drive, None);
        };
        let mean = models.iter().sum::<f64>() / models.len() as f64;
        let lowest = models.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = models.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // A mean of equal numbers may differ from them in its last place.
        let mean = mean.clamp(lowest, highest);
        Row {
            over_seeds: (models.len() > 1).then_some([lowest, highest]),
            ..self.row(drive, Some(mean))
        }
    }

    /// The row of this gate where nothing was measured.
    pub fn row_not_measured(&self, drive: &str) -> Row {
        self.row_with(drive, None, None)
    }

    fn row_with(&self, drive: &str, model: Option<f64>, pass: Option<bool>) -> Row {
        let range = self.range();
        Row {
            id: self.id.to_string(),
            drive: drive.to_string(),
            metric: self.metric.to_string(),
            definition: self.definition.to_string(),
            unit: self.unit.to_string(),
            published: self.published,
            model,
            over_seeds: None,
            tolerance: self.tolerance(),
            // JSON has no infinity: an open end is the largest number there is.
            accepted: range.map(|ends| ends.map(|end| end.clamp(f64::MIN, f64::MAX))),
            pass,
            role: self.role,
            calibrated: self.basis == Basis::Calibrated,
            basis: (self.role != Role::Model).then_some(self.basis),
            source: self.source.to_string(),
            curve: Vec::new(),
        }
    }
}

impl Measurement {
    /// The subjects that it is done to: one, or one for each seed from that of `subject` on.
    pub(super) fn subjects(&self, subject: &Subject) -> Vec<Subject> {
        let seeds = match (self.draws, subject.quick) {
            (Draws::Nothing, _) | (Draws::AtLength, true) => 1,
            (Draws::Briefly, _) | (Draws::AtLength, false) => SEEDS,
        };
        let of_seed =
            |number: u64| Subject { seed: subject.seed.wrapping_add(number), ..subject.clone() };
        (0..seeds).map(of_seed).collect()
    }

    /// Measures once: a number for each gate; `None` without the traces that it needs.
    ///
    /// # Errors
    /// When the drive cannot be built, or fails a request.
    pub(super) fn values(&self, subject: &Subject) -> Result<Option<Vec<Option<f64>>>, BenchError> {
        if self.needs_traces && subject.traces.is_none() {
            return Ok(None);
        }
        let values = (self.measure)(subject)?;
        assert_eq!(values.len(), self.gates.len(), "a value for each gate");
        Ok(Some(values))
    }

    /// Puts what came out with each seed beside what was published.
    pub(super) fn rows_of(&self, of_seeds: &[Option<Vec<Option<f64>>>]) -> Vec<Row> {
        let of_seeds: Option<Vec<_>> = of_seeds.iter().map(Option::as_ref).collect();
        let gates = self.gates.iter().enumerate();
        gates
            .map(|(place, gate)| match &of_seeds {
                None => gate.row_not_measured(self.drive),
                Some(of_seeds) => {
                    let models: Vec<_> = of_seeds.iter().map(|values| values[place]).collect();
                    gate.row_over(self.drive, &models)
                }
            })
            .collect()
    }

    /// Measures with the seed of the subject alone, and puts what came out beside what was published.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub fn rows_of_one_seed(&self, subject: &Subject) -> Result<Vec<Row>, BenchError> {
        Ok(self.rows_of(&[self.values(subject)?]))
    }
}

impl Row {
    /// True when it has to pass and does not.
    pub fn fails(&self) -> bool {
        self.role == Role::Gate && self.pass == Some(false)
    }

    /// How many gates of each basis there are, and how many of them hold; those that could not be
    /// measured hold not.
    pub fn tallies(rows: &[Row]) -> Vec<Tally> {
        let gates = rows.iter().filter(|row| row.role == Role::Gate);
        Tally::of(gates.filter_map(|row| Some((row.basis?, row.pass == Some(true)))))
    }

    /// How many gates hold, and in the same breath how many of the rows that are no gates differ from
    /// what was published: one number says nothing without the other.
    pub fn verdict(rows: &[Row]) -> String {
        let of_role = |role: Role| rows.iter().filter(move |row| row.role == role);
        let passed = |row: &&Row| row.pass == Some(true);
        let ungated = of_role(Role::Report).filter(|row| row.pass.is_some());
        let gates = match of_role(Role::Gate).count() {
            0 => "no gates".to_string(),
            gates => {
                format!("{} of {gates} gates hold", of_role(Role::Gate).filter(passed).count())
            }
        };
        let mut text = format!(
            "{gates}, {} of {} ungated rows differ",
            ungated.clone().filter(|row| !passed(row)).count(),
            ungated.count()
        );
        let unmeasured = of_role(Role::Gate).chain(of_role(Role::Report));
        match unmeasured.filter(|row| row.pass.is_none()).count() {
            0 => {}
            unmeasured => text.push_str(&format!(", {unmeasured} could not be measured here")),
        }
        text
    }

    /// By how much the model is off, as a share of the published number.
    pub fn error(&self) -> Option<f64> {
        match (self.published, self.model) {
            (Published::Number(published), Some(model)) if published != 0.0 => {
                Some(model / published - 1.0)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(published: Published, accepted: Accepted) -> Gate {
        gate("V00", "a rate", "", "MB/s", (published, accepted), (Role::Gate, "nobody"))
    }

    #[test]
    fn a_model_passes_inside_its_tolerance_and_nowhere_else() {
        let share = made_up(Published::Number(100.0), Accepted::Share(0.1));
        for (model, pass) in [(89.0, false), (91.0, true), (109.0, true), (111.0, false)] {
            let row = share.row("drive", Some(model));
            assert_eq!((row.pass, row.fails()), (Some(pass), !pass), "{model}");
        }
        let range = made_up(Published::Between(187.0, 200.0), Accepted::Share(0.1));
        let [low, high] = range.range().expect("two ends");
        assert!((low - 168.3).abs() < 1e-9 && (high - 220.0).abs() < 1e-9);
        let factor = made_up(Published::Number(4.0), Accepted::Factor(2.0));
        assert_eq!(factor.range(), Some([2.0, 8.0]));
        let exact = made_up(Published::Number(240.0), Accepted::Exactly);
        assert_eq!(exact.row("drive", Some(240.5)).pass, Some(false));
        let words = made_up(Published::Words("a cliff"), Accepted::Between(3.0, f64::INFINITY));
        assert_eq!(words.row("drive", Some(7.0)).pass, Some(true));
        assert_eq!(words.row("drive", Some(2.0)).pass, Some(false));
    }

    #[test]
    fn what_a_gate_rests_on_is_counted_apart_and_reports_are_not_counted() {
        let of = |gate: Gate, model: f64| gate.row("drive", Some(model));
        let one = made_up(Published::Number(1.0), Accepted::Share(0.1));
        let [report, described] = [Role::Report, Role::Model].map(|role| Gate { role, ..one });
        let rows = [
            of(one, 1.0),
            of(one, 2.0),
            of(calibrated(one), 1.0),
            of(by_construction(one), 1.0),
            of(own_bound(one), 1.0),
            of(report, 1.0),
            of(described, 1.0),
        ];
        let tallies = Row::tallies(&rows);
        let counts: Vec<_> = tallies.iter().map(|t| (t.rows, t.agree)).collect();
        assert_eq!(counts, [(2, 1), (1, 1), (1, 1), (1, 1)]);
        let calibrated: Vec<bool> = rows.iter().map(|row| row.calibrated).collect();
        assert_eq!(calibrated.iter().filter(|is| **is).count(), 1);
        assert_eq!(rows[6].basis, None);
    }

    #[test]
    fn the_verdict_counts_the_ungated_rows_that_differ_beside_the_gates_that_hold() {
        let one = made_up(Published::Number(1.0), Accepted::Share(0.1));
        let [report, described] = [Role::Report, Role::Model].map(|role| Gate { role, ..one });
        let mut rows = vec![
            one.row("drive", Some(1.0)),
            report.row("drive", Some(1.0)),
            report.row("drive", Some(7.0)),
            described.row("drive", Some(7.0)),
        ];
        let verdict = "1 of 1 gates hold, 1 of 2 ungated rows differ";
        assert_eq!(Row::verdict(&rows), verdict);
        let table = Row::bench_table(&rows, imbrex_report::TableStyle::Plain);
        assert!(table.contains(&format!("\n{verdict}:\n")), "{table}");
        let page = Row::bench_page(&rows);
        assert!(page.contains(&format!("<h1>{verdict}</h1>")));
        rows.push(one.row_not_measured("drive"));
        rows.push(report.row_not_measured("drive"));
        assert_eq!(
            Row::verdict(&rows),
            "1 of 2 gates hold, 1 of 2 ungated rows differ, 2 could not be measured here"
        );
    }

    #[test]
    fn without_gates_the_table_says_so_and_announces_nothing() {
        let report =
            Gate { role: Role::Report, ..made_up(Published::Number(1.0), Accepted::Share(0.1)) };
        let rows = [report.row("drive", Some(1.0)), report.row("drive", Some(7.0))];
        let table = Row::bench_table(&rows, imbrex_report::TableStyle::Plain);
        let end = "\nno gates, 1 of 2 ungated rows differ\n";
        assert!(table.ends_with(end), "{table}");
        let page = Row::bench_page(&rows);
        assert!(!page.contains("Of the gates hold"), "{page}");
    }

    #[test]
    fn a_row_over_seeds_is_their_mean_and_tells_their_range() {
        let gate = made_up(Published::Number(100.0), Accepted::Share(0.1));
        let row = gate.row_over("drive", &[Some(85.0), Some(111.0)]);
        assert_eq!((row.model, row.pass), (Some(98.0), Some(true)));
        assert_eq!(row.over_seeds, Some([85.0, 111.0]));
        let one = gate.row_over("drive", &[Some(85.0)]);
        assert_eq!((one.pass, one.over_seeds), (Some(false), None));
        let once = gate.row_over("drive", &[Some(100.0), None]);
        assert_eq!((once.model, once.pass), (None, Some(false)));
        let tenths = gate.row_over("drive", &[Some(0.1); 3]);
        assert_eq!(tenths.model, Some(0.1));
    }

    #[test]
    fn what_did_not_happen_fails_and_what_was_not_measured_does_not() {
        let gate = made_up(Published::Number(1.0), Accepted::Share(0.1));
        let row = gate.row("drive", None);
        assert_eq!((row.pass, row.fails(), row.error()), (Some(false), true, None));
        let row = gate.row_not_measured("drive");
        assert_eq!((row.pass, row.fails(), row.error()), (None, false, None));
    }
}
