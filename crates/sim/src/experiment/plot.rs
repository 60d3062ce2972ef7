//! `[[plot]]`: how a figure of an experiment is drawn, and what can be found wrong in it before anything is run.

use super::expression::Expression;
use super::known::{Known, is_key};
use imbrex_drives::toml_error::listed;
use imbrex_report::page::COLOURS;
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

    /// Finds what can be found wrong before anything is run.
    pub(super) fn check(&self, known: &Known<'_>) -> Result<(), String> {
        self.check_axes(known)?;
        known.check_workloads(&self.workloads)?;
        if self.series.is_empty() || self.series.len() > COLOURS {
            return Err(format!(
                "series has {} entries; accepted: 1 to {COLOURS}, each as {{ name = \"LRU\", measure = \
                 \"lru.io_time_s.total\" }}",
                self.series.len()
            ));
        }
        for series in &self.series {
            for text in self.texts() {
                let measure = series.measure.replace(PLACEHOLDER, &text);
                self.check_measure(known, &measure).map_err(|words| {
                    format!("`{}`: measure = \"{measure}\": {words}", series.name)
                })?;
            }
        }
        Ok(())
    }

    fn check_axes(&self, known: &Known<'_>) -> Result<(), String> {
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
                let swept: Vec<&String> = known.sweep.keys().collect();
                if !swept.iter().any(|swept| is_key(swept, key)) {
                    let all = swept.iter().map(|key| key.as_str()).chain([OVER_WORKLOADS]);
                    return Err(format!(
                        "x = \"{key}\": accepted: {}, or a list of texts that stand for `{{x}}`",
                        listed(all)
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

    fn check_measure(&self, known: &Known<'_>, measure: &str) -> Result<(), String> {
        let expression = Expression::parse(measure)?;
        known.check_quantities(&expression)?;
        known.check_systems(&expression)?;
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
