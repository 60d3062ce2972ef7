//! `[[plot]]`: how a figure of an experiment is drawn, and what can be found wrong in it before anything is run.

use super::experiment::Experiment;
use super::expression::{Expression, Quantity};
use super::stated::{check_names, check_quantities, is_key};
use super::sweep::text_of;
use imbrex_drives::toml_error::{listed, nearest};
use imbrex_report::page::COLOURS;
use imbrex_stack::ConfigError;
use serde::Deserialize;

/// The horizontal axis that has the workloads.
pub(super) const OVER_WORKLOADS: &str = "workload";
/// What stands for a text of `x` in a measure.
pub(super) const PLACEHOLDER: &str = "{x}";
/// The key of a run under which its distribution of response times is drawn.
pub(super) const RESPONSE_TIMES: &str = "latency_cdf";

/// One chart of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What it shows; the title of the experiment when absent.
    pub title: Option<String>,
    /// How it is drawn.
    pub kind: PlotKind,
    /// What is across: `workload`, a swept key, or texts each of which stands for `{x}` in the measures; the workloads
    /// when absent. A distribution has none.
    pub x: Option<Across>,
    /// What the horizontal axis is called; what is across when absent.
    pub x_label: Option<String>,
    /// What the vertical axis is, with its unit; a table has none.
    #[serde(default)]
    pub y_label: String,
    /// Which axes are logarithmic; none when absent.
    #[serde(default)]
    pub log: LogAxes,
    /// The workloads that are drawn; all when absent.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Whether the mean of the workloads stands behind them.
    #[serde(default)]
    pub mean: bool,
    /// What is drawn.
    pub series: Vec<PlotSeries>,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// A bar for each series, side by side.
    Bars,
    /// The series one on the other.
    Stacked,
    /// A line for each series.
    Lines,
    /// How many per cent are at most so large: of response times, or of a list that a look at a trace has.
    Cdf,
    /// Numbers.
    Table,
}

/// What is across.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Across {
    /// `workload`, or a swept key.
    Key(String),
    /// Texts, each of which stands for `{x}` in the measures.
    Texts(Vec<String>),
}

/// Which axes are logarithmic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogAxes {
    /// None.
    #[default]
    None,
    /// The horizontal one.
    X,
    /// The vertical one.
    Y,
    /// Both.
    Xy,
}

/// One series of a chart.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSeries {
    /// What it is called.
    pub name: String,
    /// Its values: an expression as that of `[[stated]]`.
    pub measure: String,
}

impl Plot {
    /// What is across.
    pub(super) fn across(&self) -> Across {
        self.x.clone().unwrap_or_else(|| Across::Key(OVER_WORKLOADS.to_string()))
    }

    /// The texts that stand for `{x}`, or one that stands for nothing.
    fn texts(&self) -> Vec<String> {
        match &self.x {
            Some(Across::Texts(texts)) => texts.clone(),
            _ => vec![String::new()],
        }
    }

    /// Finds what can be found wrong before anything is run. `number` counts the plots of the file from 1.
    pub(super) fn check(&self, experiment: &Experiment, number: usize) -> Result<(), ConfigError> {
        let wrong = |words: String| {
            ConfigError::words(format!("{}: [[plot]] {number}: {words}", experiment.file))
        };
        self.check_axes(experiment).map_err(wrong)?;
        check_names(experiment, &self.workloads).map_err(wrong)?;
        if self.series.is_empty() || self.series.len() > COLOURS {
            return Err(wrong(format!(
                "series has {} entries; accepted: 1 to {COLOURS}, each as {{ name = \"LRU\", measure = \
                 \"lru.io_time_s.total\" }}",
                self.series.len()
            )));
        }
        for series in &self.series {
            for text in self.texts() {
                let measure = series.measure.replace(PLACEHOLDER, &text);
                self.check_measure(experiment, &measure).map_err(|words| {
                    wrong(format!("`{}`: measure = \"{measure}\": {words}", series.name))
                })?;
            }
        }
        Ok(())
    }

    fn check_axes(&self, experiment: &Experiment) -> Result<(), String> {
        let has_placeholder = self.series.iter().any(|it| it.measure.contains(PLACEHOLDER));
        match &self.x {
            Some(_) if self.kind == PlotKind::Cdf => {
                return Err("x: a distribution has its values across; leave it out".into());
            }
            Some(Across::Texts(texts)) if texts.is_empty() => {
                return Err(
                    "x = []: accepted: one text or more, each of which stands for `{x}` in a \
                            measure"
                        .into(),
                );
            }
            Some(Across::Texts(_)) if !has_placeholder => {
                return Err(
                    "x is a list, and no measure has `{x}`, for which its texts stand".into()
                );
            }
            Some(Across::Key(key)) if key != OVER_WORKLOADS => {
                let swept: Vec<&String> = experiment.sweep.keys().collect();
                if !swept.iter().any(|swept| is_key(swept, key)) {
                    let known = swept.iter().map(|key| key.as_str()).chain([OVER_WORKLOADS]);
                    return Err(format!(
                        "x = \"{key}\": accepted: {}, or a list of texts that stand for `{{x}}`",
                        listed(known)
                    ));
                }
            }
            _ => {}
        }
        if has_placeholder && !matches!(self.x, Some(Across::Texts(_))) {
            return Err("a measure has `{x}`; accepted: with x = [\"...\", ...]".into());
        }
        if self.y_label.is_empty() && self.kind != PlotKind::Table {
            return Err(
                "y_label is missing; accepted: what is up, with its unit, as \"time, s\"".into()
            );
        }
        if self.mean && (self.kind == PlotKind::Cdf || self.across() != Across::workloads()) {
            return Err("mean = true: accepted: where the workloads are across".into());
        }
        if self.kind == PlotKind::Stacked && matches!(self.log, LogAxes::Y | LogAxes::Xy) {
            return Err(
                "log: what is stacked has no logarithmic axis; accepted: kind = \"bars\"".into()
            );
        }
        Ok(())
    }

    fn check_measure(&self, experiment: &Experiment, measure: &str) -> Result<(), String> {
        let expression = Expression::parse(measure)?;
        check_quantities(experiment, &expression)?;
        for quantity in expression.quantities() {
            check_system(experiment, quantity)?;
        }
        if let Across::Key(key) = self.across()
            && let Some(quantity) = expression
                .quantities()
                .iter()
                .find(|it| it.at.iter().any(|(at, _)| is_key(&key, at)))
        {
            return Err(format!("`{}` fixes `{key}`, which is across", quantity.system));
        }
        if self.kind == PlotKind::Cdf {
            let is_drawn = |path: &[String]| {
                path == [RESPONSE_TIMES] || matches!(path, [.., list, _] if list == "cdf")
            };
            return match &expression {
                Expression::Quantity(quantity) if is_drawn(&quantity.path) => Ok(()),
                _ => Err(format!(
                    "no distribution; accepted: SYSTEM.{RESPONSE_TIMES}, or of `characteristics` \
                     trace.popularity.cdf.KEY"
                )),
            };
        }
        Ok(())
    }
}

impl Across {
    /// The workloads.
    pub(super) fn workloads() -> Across {
        Across::Key(OVER_WORKLOADS.to_string())
    }
}

/// Finds a system that the experiment does not have. Names of stacks in files are known when they are read.
fn check_system(experiment: &Experiment, quantity: &Quantity) -> Result<(), String> {
    let mut known = experiment.system_names();
    if known.iter().any(|name| name.ends_with(".toml")) {
        return Ok(());
    }
    if !experiment.node.is_empty() {
        known.push(experiment.stack.as_ref().unwrap_or(&experiment.name).clone());
    }
    if experiment.analysis.is_some() {
        known.push("trace".to_string());
    }
    known.extend(experiment.closed_form.iter().map(|it| it.form.name().to_string()));
    if known.contains(&quantity.system) {
        return Ok(());
    }
    let hint = nearest(&quantity.system, known.iter().map(String::as_str))
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Err(format!("no run has the system `{}`{hint} (accepted: {})", quantity.system, listed(&known)))
}

impl Experiment {
    /// What is across, as a swept key in full.
    pub(super) fn swept_key(&self, short: &str) -> Option<&String> {
        self.sweep.keys().find(|swept| is_key(swept, short))
    }

    /// The values of a swept key as texts.
    pub(super) fn swept_texts(&self, key: &str) -> Vec<String> {
        self.sweep[key].iter().map(text_of).collect()
    }
}
