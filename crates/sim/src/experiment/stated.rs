//! Numbers a paper states, and the rows in which they stand beside ours.

use super::execute::{Found, Outcome, WorkloadOutcome};
use super::experiment::Experiment;
use super::expression::{Expression, Quantity};
use super::known::{is_key, same, text_of};
use super::sweep::{Point, points};
use crate::basis::Basis;
use crate::reason::Reason;
use imbrex_drives::toml_error::listed;
use imbrex_report::{FormPoint, LatencyCdf, Run, WorkloadKind};
use imbrex_stack::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// By how much a measured number may differ from the stated one when the row does not say.
const TOLERANCE_DEFAULT: f64 = 0.25;

/// The unit of a ratio of two numbers of one kind.
const RATIO: &str = "x";

/// One `[[stated]]` of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// What the number is.
    pub metric: String,
    /// Its unit; `x` for a ratio.
    pub unit: String,
    /// What is stated: one number, or one for each workload.
    pub stated: StatedValue,
    /// Share of the stated number by which the measured one may differ (or, for a bound, pass it);
    /// a quarter when absent, nothing for a bound.
    pub tolerance: Option<f64>,
    /// Whether the number is a value or a bound.
    #[serde(default)]
    pub comparison: Comparison,
    /// How it is measured: an expression (see `expression.rs` and `experiments/README.md`).
    pub measure: String,
    /// How the workloads and the swept points become one number.
    #[serde(default)]
    pub over: Over,
    /// The workloads it is about; all when absent.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// On what the number rests.
    #[serde(default)]
    pub basis: Basis,
    /// Why the measured number disagrees, where it does. It changes nothing of one that agrees.
    pub reason: Option<Reason>,
    /// Whether it takes the full size of the loads: a quick look leaves it out.
    #[serde(default)]
    pub full_size: bool,
}

/// What is stated.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum StatedValue {
    /// One number.
    One(f64),
    /// A number for each workload, which makes a row of each.
    OfWorkloads(BTreeMap<String, f64>),
}

/// Whether a stated number is a value or a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The measured number is to be near it.
    #[default]
    About,
    /// It is not to be above it.
    AtMost,
    /// It is not to be below it.
    AtLeast,
}

/// How the workloads and the swept points become one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The mean of the expression over them.
    #[default]
    Mean,
    /// The expression of the means: every quantity is averaged first.
    OfMeans,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
    /// The greatest less the least.
    Spread,
    /// The value of the only swept key at which the mean over the workloads is least.
    LeastAt,
    /// Of the workloads and swept points, the number at which the expression is above 1.
    AboveOne,
}

/// A stated number beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The paper.
    pub paper: String,
    /// Its figure or table.
    pub figure: String,
    /// What the number is.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// What the paper states.
    pub stated: f64,
    /// What was measured; null when a part of it is undefined, as a ratio without reads.
    pub measured: Option<f64>,
    /// Share of `stated` by which `measured` may differ.
    pub tolerance: f64,
    /// Whether `stated` is a value or a bound.
    pub comparison: Comparison,
    /// Whether they agree.
    pub agrees: bool,
    /// The workloads, each with its scale.
    pub workload: String,
    /// Their names in the experiment.
    #[serde(skip)]
    pub names: Vec<String>,
    /// How they came to be.
    pub workload_kind: WorkloadKind,
    /// On what the stated number rests.
    pub basis: Basis,
    /// Why they disagree; null when they agree.
    pub reason: Option<Reason>,
}

impl Stated {
    /// Finds what can be found wrong before anything is run.
    pub(super) fn check(&self, experiment: &Experiment) -> Result<(), ConfigError> {
        let wrong = |message: String| {
            Err(ConfigError::words(format!(
                "{}: [[stated]] `{}`: {message}",
                experiment.file, self.metric
            )))
        };
        let expression = match Expression::parse(&self.measure) {
            Ok(expression) => expression,
            Err(message) => return wrong(format!("measure = \"{}\": {message}", self.measure)),
        };
        let known = experiment.known();
        let of_values: Vec<&String> = match &self.stated {
            StatedValue::One(_) => vec![],
            StatedValue::OfWorkloads(values) => values.keys().collect(),
        };
        known.check_workloads(self.workloads.iter().chain(of_values)).or_else(wrong)?;
        known.check_quantities(&expression).or_else(wrong)?;
        if self.over == Over::LeastAt && experiment.node_sweep().len() != 1 {
            return wrong("over = \"least-at\" needs a sweep of exactly one key".to_string());
        }
        // With a tolerance of 1 even nothing at all would be about the stated number.
        let below = match self.comparison {
            Comparison::About => 1.0,
            Comparison::AtMost | Comparison::AtLeast => 1e9,
        };
        match self.tolerance {
            Some(tolerance) if !(0.0..below).contains(&tolerance) => wrong(format!(
                "tolerance = {tolerance}; accepted: a share of the stated number, 0 or more and, unless \
                 it is a bound, below 1"
            )),
            _ => Ok(()),
        }
    }

    /// True when a measured number is as stated.
    fn agrees(&self, measured: f64, stated: f64, slack: f64) -> bool {
        match self.comparison {
            Comparison::About => {
                // A ratio says which of two is larger, and that must be so whatever the tolerance.
                let is_same_side =
                    self.unit != RATIO || stated == 1.0 || (measured - 1.0) * (stated - 1.0) > 0.0;
                is_same_side && (measured - stated).abs() <= slack
            }
            Comparison::AtMost => measured <= stated + slack,
            Comparison::AtLeast => measured >= stated - slack,
        }
    }

    /// The rows of this statement.
    fn rows(&self, of: &Evaluation<'_>) -> Result<Vec<Row>, ConfigError> {
        let expression = Expression::parse(&self.measure).expect("checked when it was read");
        let chosen: Vec<&Sample<'_>> = of
            .samples
            .iter()
            .filter(|s| self.workloads.is_empty() || self.workloads.contains(&s.workload.name))
            .collect();
        let groups: Vec<(f64, Vec<&Sample<'_>>)> = match &self.stated {
            StatedValue::One(stated) => vec![(*stated, chosen)],
            StatedValue::OfWorkloads(values) => chosen
                .into_iter()
                .filter_map(|s| Some((*values.get(&s.workload.name)?, vec![s])))
                .collect(),
        };
        let without_reason = match of.experiment.is_divided {
            true => Reason::SmallerScale,
            false => Reason::Unexplained,
        };
        let row = |(stated, samples): (f64, Vec<&Sample<'_>>)| {
            let measured =
                measured(self.over, &expression, &samples, &of.points).map_err(|message| {
                    ConfigError::words(format!(
                        "{}: [[stated]] `{}`: {message}",
                        of.experiment.file, self.metric
                    ))
                })?;
            let tolerance = self.tolerance.unwrap_or(match self.comparison {
                Comparison::About => TOLERANCE_DEFAULT,
                Comparison::AtMost | Comparison::AtLeast => 0.0,
            });
            let slack = tolerance * stated.abs();
            let agrees = measured.is_some_and(|measured| self.agrees(measured, stated, slack));
            let labels: Vec<&str> = samples.iter().map(|s| s.workload.path.as_str()).collect();
            Ok(Row {
                paper: of.paper.to_string(),
                figure: of.figure.to_string(),
                metric: self.metric.clone(),
                unit: self.unit.clone(),
                stated,
                measured,
                tolerance,
                comparison: self.comparison,
                agrees,
                workload: labels.join(", "),
                names: samples.iter().map(|s| s.workload.name.clone()).collect(),
                workload_kind: samples[0].workload.kind,
                basis: self.basis,
                reason: (!agrees).then(|| self.reason.unwrap_or(without_reason)),
            })
        };
        groups.into_iter().map(row).collect()
    }

    /// What stands before the number of a bound.
    pub(super) fn sign(&self) -> &'static str {
        self.comparison.sign()
    }
}

impl Comparison {
    /// What stands before the number of a bound.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::About => "",
            Comparison::AtMost => "<= ",
            Comparison::AtLeast => ">= ",
        }
    }
}

/// The number that an expression makes of workloads and swept points.
pub(super) fn measured(
    over: Over,
    expression: &Expression,
    samples: &[&Sample<'_>],
    points: &[Point],
) -> Result<Option<f64>, String> {
    if over == Over::OfMeans {
        return expression.value(&|part| {
            let values = samples
                .iter()
                .flat_map(|sample| points.iter().map(|point| sample.look_up(part, point)))
                .collect::<Result<Option<Vec<f64>>, String>>()?;
            Ok(values.map(|values| mean(&values)))
        });
    }
    let at = |point: &Point| {
        samples
            .iter()
            .map(|sample| expression.value(&|part| sample.look_up(part, point)))
            .collect::<Result<Option<Vec<f64>>, String>>()
    };
    let by_point = points.iter().map(at).collect::<Result<Option<Vec<_>>, String>>()?;
    let Some(by_point) = by_point else {
        return Ok(None);
    };
    let all: Vec<f64> = by_point.iter().flatten().copied().collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(Some(match over {
        Over::Mean | Over::OfMeans => mean(&all),
        Over::Least => least,
        Over::Greatest => greatest,
        Over::Spread => greatest - least,
        Over::AboveOne => all.iter().filter(|value| **value > 1.0).count() as f64,
        Over::LeastAt => {
            let means: Vec<f64> = by_point.iter().map(|values| mean(values)).collect();
            let best = (0..means.len())
                .min_by(|a, b| means[*a].total_cmp(&means[*b]))
                .expect("a sweep has points");
            let (key, value) = points[best].iter().next().expect("one key is swept");
            let text = text_of(value);
            let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
            text[..digits.unwrap_or(text.len())]
                .parse()
                .map_err(|_| format!("{key} = {text} has no number to be least at"))?
        }
    }))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// What was found on a workload, as values that keys lead into.
pub(super) struct Sample<'a> {
    /// The workload.
    pub workload: &'a WorkloadOutcome,
    systems: Vec<System<'a>>,
}

/// What was found of one system.
pub(super) struct System<'a> {
    name: String,
    parameters: BTreeMap<String, Value>,
    /// All that a key leads to.
    pub values: Value,
    /// The distribution of response times of a run.
    pub cdf: Option<&'a LatencyCdf>,
}

impl Sample<'_> {
    pub fn of(workload: &WorkloadOutcome) -> Sample<'_> {
        let systems = match &workload.found {
            Found::Trace(values) => vec![System {
                name: "trace".to_string(),
                parameters: BTreeMap::new(),
                values: values.clone(),
                cdf: None,
            }],
            Found::Runs(report) => report.runs.iter().map(System::of).collect(),
            Found::Form(table) => {
                let system = |point: &FormPoint| System {
                    name: table.form.to_string(),
                    parameters: point
                        .parameters
                        .iter()
                        .map(|(key, value)| (key.clone(), Value::from(*value)))
                        .collect(),
                    values: point.values_json(),
                    cdf: None,
                };
                table.points.iter().map(system).collect()
            }
        };
        Sample { workload, systems }
    }

    fn look_up(&self, part: &Expression, point: &Point) -> Result<Option<f64>, String> {
        match part {
            Expression::Scale => Ok(Some(self.workload.scale)),
            Expression::Quantity(quantity) => self.quantity(quantity, point),
            Expression::Number(number) => Ok(Some(*number)),
            Expression::Binary(..) => part.value(&|part| self.look_up(part, point)),
        }
    }

    /// The run of the system that a quantity names, at the values that it fixes and else at those of the point.
    pub fn system(&self, quantity: &Quantity, point: &Point) -> Result<&System<'_>, String> {
        let wanted = |swept: &str| {
            let at = quantity.at.iter().find(|(key, _)| is_key(swept, key));
            at.map(|(_, value)| value.clone()).or_else(|| point.get(swept).map(text_of))
        };
        let mut of_name = self.systems.iter().filter(|s| s.name == quantity.system).peekable();
        if of_name.peek().is_none() {
            let mut names: Vec<&str> = self.systems.iter().map(|s| s.name.as_str()).collect();
            names.dedup();
            return Err(format!("no system `{}`; there are {}", quantity.system, listed(&names)));
        }
        let found = of_name.find(|system| {
            system.parameters.iter().all(|(key, value)| {
                let value = match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                wanted(key).is_some_and(|wanted| same(&wanted, &value))
            })
        });
        found.ok_or_else(|| format!("`{}` leaves a swept key open", quantity.system))
    }

    fn quantity(&self, quantity: &Quantity, point: &Point) -> Result<Option<f64>, String> {
        let mut value = &self.system(quantity, point)?.values;
        for key in &quantity.path {
            value = member(value, key).ok_or_else(|| {
                format!("`{key}` of `{}` is not in a report", quantity.path.join("."))
            })?;
        }
        match value {
            Value::Null => Ok(None),
            value => value
                .as_f64()
                .map(Some)
                .ok_or_else(|| format!("`{}` is no number", quantity.path.join("."))),
        }
    }
}

/// A member of an object by its key, or of a list by its `name`.
fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.iter().find(|item| item["name"] == key),
        other => other.get(key),
    }
}

impl System<'_> {
    /// A run as values. Series are left out, but for the write rate that a drive settles to.
    fn of(run: &Run) -> System<'_> {
        let writes = &run.figures.write_mib_per_s;
        let settled = &writes.values[writes.values.len() / 2..];
        let settled = (!settled.is_empty()).then(|| mean(settled) * (1u64 << 20) as f64 / 1e6);
        let mut small = run.clone();
        small.figures = Default::default();
        let mut values = serde_json::to_value(small).expect("a run has only string keys");
        values["settled_write_mb_per_s"] = Value::from(settled);
        System {
            name: run.system.clone(),
            parameters: run.parameters.clone(),
            values,
            cdf: Some(&run.figures.latency_cdf),
        }
    }
}

struct Evaluation<'a> {
    experiment: &'a Experiment,
    paper: &'a str,
    figure: &'a str,
    points: Vec<Point>,
    samples: Vec<Sample<'a>>,
}

impl Experiment {
    /// What the paper states beside what was found.
    ///
    /// # Errors
    /// When a statement names a system or a key that is not there.
    pub fn rows(
        &self,
        paper: &str,
        figure: &str,
        outcome: &Outcome,
    ) -> Result<Vec<Row>, ConfigError> {
        let evaluation = Evaluation {
            experiment: self,
            paper,
            figure,
            points: points(&self.node_sweep()),
            samples: outcome.workloads.iter().map(Sample::of).collect(),
        };
        let mut rows = Vec::new();
        for stated in self.stated.iter().filter(|stated| !self.leaves_out(stated)) {
            rows.extend(stated.rows(&evaluation)?);
        }
        Ok(rows)
    }
}
