//! From `[[plot]]` and what was found to charts, with the numbers marked that a paper states.

use super::execute::Outcome;
use super::experiment::Experiment;
use super::expression::{Expression, Quantity};
use super::known::{is_key, same, text_of};
use super::plot::{Across, LogAxes, PLACEHOLDER, Plot, PlotKind, PlotSeries, RESPONSE_TIMES};
use super::stated::{Over, Sample, Stated, StatedValue, measured};
use super::sweep::{Point, points};
use imbrex_report::page::COLOURS;
use imbrex_report::page::chart::{self, Chart, ChartKind, ChartSeries, StatedMark};
use imbrex_stack::ConfigError;
use serde_json::Value;

/// Name of the place behind the workloads that has their mean.
const MEAN: &str = "mean";

impl Experiment {
    /// The charts of an outcome that came to its end.
    ///
    /// # Errors
    /// When a measure has a key that no run has.
    pub fn charts(&self, outcome: &Outcome) -> Result<Vec<Chart>, ConfigError> {
        let all: Vec<Sample<'_>> = outcome.workloads.iter().map(Sample::of).collect();
        let chart = |(at, plot): (usize, &Plot)| {
            let samples = all.iter().filter(|sample| {
                plot.workloads.is_empty() || plot.workloads.contains(&sample.workload.name)
            });
            let plotting = Plotting {
                experiment: self,
                plot,
                samples: samples.collect(),
                points: points(&self.node_sweep()),
            };
            plotting.chart().map_err(|words| {
                ConfigError::words(format!("{}: [[plot]] {}: {words}", self.file, at + 1))
            })
        };
        let charts = self.plot.iter().enumerate().map(chart);
        let mut charts = charts.collect::<Result<Vec<Chart>, ConfigError>>()?;
        // A name has one colour in all charts of a figure, as far as there are colours.
        let mut names: Vec<String> = Vec::new();
        for series in charts.iter_mut().flat_map(|chart| &mut chart.series) {
            let known = names.iter().position(|name| *name == series.name);
            series.colour = known.unwrap_or(names.len()) % COLOURS;
            if known.is_none() {
                names.push(series.name.clone());
            }
        }
        Ok(charts)
    }
}

impl Experiment {
    /// What is across, as a swept key in full.
    fn swept_key(&self, short: &str) -> Option<&String> {
        self.sweep.keys().find(|swept| is_key(swept, short))
    }

    /// The values of a swept key as texts.
    fn swept_texts(&self, key: &str) -> Vec<String> {
        self.sweep[key].iter().map(text_of).collect()
    }
}

struct Plotting<'a> {
    experiment: &'a Experiment,
    plot: &'a Plot,
    samples: Vec<&'a Sample<'a>>,
    points: Vec<Point>,
}

/// A place on the horizontal axis: its name, and what is measured there.
struct PlaceAcross<'a> {
    name: String,
    /// What stands for `{x}`.
    text: String,
    /// The swept key that is fixed here, and its value.
    fixed: Option<(String, String)>,
    samples: Vec<&'a Sample<'a>>,
    points: Vec<Point>,
}

impl<'a> Plotting<'a> {
    fn chart(&self) -> Result<Chart, String> {
        let plot = self.plot;
        let is_cdf = plot.kind == PlotKind::Cdf;
        let (across, series) = match is_cdf {
            true => (chart::Across::Numbers, self.distributions()?),
            false => self.over_places()?,
        };
        let across_name = match (&plot.x, is_cdf) {
            (_, true) => "value".to_string(),
            (Some(Across::Key(key)), _) => key.rsplit('.').next().unwrap_or(key).replace('_', " "),
            (Some(Across::Texts(_)), _) => String::new(),
            (None, _) => "workload".to_string(),
        };
        Ok(Chart {
            title: plot.title.clone().unwrap_or_else(|| self.experiment.title.clone()),
            kind: match plot.kind {
                PlotKind::Bars => ChartKind::Bars,
                PlotKind::Stacked => ChartKind::Stacked,
                PlotKind::Lines => ChartKind::Lines,
                PlotKind::Cdf => ChartKind::Curves,
                PlotKind::Table => ChartKind::Table,
            },
            across,
            x_label: plot.x_label.clone().unwrap_or(across_name),
            y_label: plot.y_label.clone(),
            x_log: matches!(plot.log, LogAxes::X | LogAxes::Xy),
            y_log: matches!(plot.log, LogAxes::Y | LogAxes::Xy),
            series,
        })
    }

    fn over_places(&self) -> Result<(chart::Across, Vec<ChartSeries>), String> {
        let places = self.places();
        let names: Vec<String> = places.iter().map(|place| place.name.clone()).collect();
        let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
        let numbers = numbers.filter(|_| self.plot.kind == PlotKind::Lines);
        let x_of = |at: usize| numbers.as_ref().map_or(at as f64, |numbers| numbers[at]);
        let series =
            |series: &PlotSeries| {
                let mut drawn = ChartSeries {
                    name: series.name.clone(),
                    colour: 0,
                    points: vec![],
                    stated: vec![],
                };
                for (at, place) in places.iter().enumerate() {
                    let expression = place.expression(series);
                    let value = measured(Over::Mean, &expression, &place.samples, &place.points)
                        .map_err(|words| {
                            format!("`{}`: measure = \"{}\": {words}", series.name, series.measure)
                        })?;
                    drawn.points.push((x_of(at), value));
                    let stated = self
                        .stated_at(place, &expression)
                        .map(|(value, sign)| StatedMark { x: x_of(at), value, sign });
                    drawn.stated.extend(stated);
                }
                Ok(drawn)
            };
        let series = self.plot.series.iter().map(series).collect::<Result<_, String>>()?;
        let across = match numbers {
            Some(_) => chart::Across::Numbers,
            None => chart::Across::Names(without_common_parts(names)),
        };
        Ok((across, series))
    }

    fn places(&self) -> Vec<PlaceAcross<'a>> {
        let place = |name: &str| PlaceAcross {
            name: name.to_string(),
            text: String::new(),
            fixed: None,
            samples: self.samples.clone(),
            points: self.points.clone(),
        };
        match self.plot.across() {
            Across::Texts(texts) => {
                let of_text = |text: &String| PlaceAcross { text: text.clone(), ..place(text) };
                texts.iter().map(of_text).collect()
            }
            Across::Key(key) => match self.experiment.swept_key(&key) {
                Some(key) => self
                    .experiment
                    .swept_texts(key)
                    .iter()
                    .map(|value| {
                        let is_here = |point: &&Point| text_of(&point[key]) == *value;
                        PlaceAcross {
                            fixed: Some((key.clone(), value.clone())),
                            points: self.points.iter().filter(is_here).cloned().collect(),
                            ..place(value)
                        }
                    })
                    .collect(),
                None => {
                    let of_workload = |sample: &&'a Sample<'a>| PlaceAcross {
                        samples: vec![*sample],
                        ..place(&sample.workload.name)
                    };
                    let mut places: Vec<_> = self.samples.iter().map(of_workload).collect();
                    places.extend(self.plot.mean.then(|| place(MEAN)));
                    places
                }
            },
        }
    }

    /// What is stated of a place, and the sign of a bound: by the statement that measures the same there.
    fn stated_at(
        &self,
        place: &PlaceAcross<'_>,
        expression: &Expression,
    ) -> Option<(f64, &'static str)> {
        let fixed = self.fixed(expression, place.fixed.as_ref());
        let here: Vec<&str> = place.samples.iter().map(|it| it.workload.name.as_str()).collect();
        let found = |stated: &Stated| {
            let measure = Expression::parse(&stated.measure).ok()?;
            let is_mean = matches!(stated.over, Over::Mean | Over::OfMeans)
                || (here.len() == 1 && self.points.len() == 1);
            if !is_mean || !is_same(&fixed, &self.fixed(&measure, None)) {
                return None;
            }
            let of_all = || self.experiment.workload.iter().map(|it| it.name());
            let value = match (&stated.stated, here.as_slice()) {
                (StatedValue::OfWorkloads(values), [one]) => *values.get(*one)?,
                (StatedValue::OfWorkloads(_), _) => return None,
                (StatedValue::One(value), _) => {
                    let about: Vec<String> = match stated.workloads.is_empty() {
                        true => of_all().collect(),
                        false => stated.workloads.clone(),
                    };
                    // A closed form has no workload, and one place.
                    let is_form = about.is_empty();
                    if !is_form && about != here {
                        return None;
                    }
                    *value
                }
            };
            Some((value, stated.sign()))
        };
        self.experiment.stated.iter().find_map(found)
    }

    /// The expression with swept keys in full and in order, and one more that is fixed.
    fn fixed(&self, expression: &Expression, more: Option<&(String, String)>) -> Expression {
        match expression {
            Expression::Quantity(quantity) => {
                let full = |(key, value): &(String, String)| {
                    let key = self.experiment.swept_key(key).unwrap_or(key).clone();
                    (key, value.clone())
                };
                let mut at: Vec<_> = quantity.at.iter().chain(more).map(full).collect();
                at.sort();
                Expression::Quantity(Quantity { at, ..quantity.clone() })
            }
            Expression::Binary(left, operator, right) => Expression::Binary(
                Box::new(self.fixed(left, more)),
                *operator,
                Box::new(self.fixed(right, more)),
            ),
            other => other.clone(),
        }
    }

    /// The distributions of all workloads, a line for each of a series and a workload.
    fn distributions(&self) -> Result<Vec<ChartSeries>, String> {
        let mut lines = Vec::new();
        for sample in &self.samples {
            for series in &self.plot.series {
                let Ok(Expression::Quantity(quantity)) = Expression::parse(&series.measure) else {
                    unreachable!("checked when it was read");
                };
                let points = distribution(sample, &quantity).map_err(|words| {
                    format!("`{}`: measure = \"{}\": {words}", series.name, series.measure)
                })?;
                let workload = &sample.workload.name;
                let name = match (self.samples.len(), self.plot.series.len()) {
                    (1, _) => series.name.clone(),
                    (_, 1) => workload.clone(),
                    _ => format!("{}, {workload}", series.name),
                };
                lines.push(ChartSeries { name, colour: 0, points, stated: vec![] });
            }
        }
        let names = without_common_parts(lines.iter().map(|line| line.name.clone()).collect());
        lines.iter_mut().zip(names).for_each(|(line, name)| line.name = name);
        Ok(lines)
    }
}

impl PlaceAcross<'_> {
    fn expression(&self, series: &PlotSeries) -> Expression {
        let measure = series.measure.replace(PLACEHOLDER, &self.text);
        Expression::parse(&measure).expect("checked when it was read")
    }
}

/// How many per cent are at most so large.
fn distribution(
    sample: &Sample<'_>,
    quantity: &Quantity,
) -> Result<Vec<(f64, Option<f64>)>, String> {
    let system = sample.system(quantity, &Point::new())?;
    if quantity.path == [RESPONSE_TIMES] {
        let cdf = system.cdf.ok_or("a look at a trace has no response times")?;
        let point = |(ms, tail): (&f64, &f64)| (*ms, Some(100.0 * (1.0 - tail)));
        return Ok(cdf.ms.iter().zip(&cdf.tail).map(point).collect());
    }
    let (key, path) = quantity.path.split_last().ok_or("no key")?;
    let list = path.iter().try_fold(&system.values, |value, key| value.get(key));
    let list = list.and_then(Value::as_array);
    let list = list.ok_or_else(|| format!("`{}` is not there", path.join(".")))?;
    let point = |item: &Value| {
        let times = item["times"].as_f64().ok_or("it does not tell how often")?;
        let share = item[key.as_str()].as_f64().ok_or_else(|| format!("it has no `{key}`"))?;
        Ok((times, Some(share)))
    };
    list.iter().map(point).collect()
}

/// True when two expressions measure the same.
fn is_same(a: &Expression, b: &Expression) -> bool {
    match (a, b) {
        (Expression::Quantity(a), Expression::Quantity(b)) => {
            a.system == b.system
                && a.path == b.path
                && a.at.len() == b.at.len()
                && a.at.iter().zip(&b.at).all(|(a, b)| is_key(&a.0, &b.0) && same(&a.1, &b.1))
        }
        (Expression::Binary(a, one, b), Expression::Binary(c, other, d)) => {
            one == other && is_same(a, c) && is_same(b, d)
        }
        (a, b) => a == b,
    }
}

/// The names without what all of them start or end with, as `hwsr-` or `-like`.
fn without_common_parts(names: Vec<String>) -> Vec<String> {
    let cuttable: Vec<&String> = names.iter().filter(|name| *name != MEAN).collect();
    let [first, _, ..] = cuttable.as_slice() else {
        return names;
    };
    let start = first.find('-').map_or("", |at| &first[..=at]).to_string();
    let end = first.rfind('-').map_or("", |at| &first[at..]).to_string();
    let all = |has: &dyn Fn(&str) -> bool| cuttable.iter().all(|name| has(name));
    let all_start = all(&|name| name.len() > start.len() && name.starts_with(&start));
    let all_end = all(&|name| name.len() > end.len() && name.ends_with(&end));
    let cut = |name: String| {
        if name == MEAN {
            return name;
        }
        let name = if all_start { name[start.len()..].to_string() } else { name };
        match all_end && name.len() > end.len() {
            true => name[..name.len() - end.len()].to_string(),
            false => name,
        }
    };
    names.into_iter().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_names_have_is_cut() {
        let cut = |names: &[&str]| {
            without_common_parts(names.iter().map(|name| name.to_string()).collect())
        };
        assert_eq!(cut(&["hwsr-mds0", "hwsr-prn1", "mean"]), ["mds0", "prn1", "mean"]);
        assert_eq!(cut(&["hwsr-financial1", "hwsr-mds0"]), ["financial1", "mds0"]);
        assert_eq!(cut(&["ts-like", "usr-like"]), ["ts", "usr"]);
        assert_eq!(cut(&["hwsr-mds0", "financial1-dense"]), ["hwsr-mds0", "financial1-dense"]);
        assert_eq!(cut(&["1 %", "2 %"]), ["1 %", "2 %"]);
        assert_eq!(cut(&["hwsr-mds0"]), ["hwsr-mds0"]);
    }
}
