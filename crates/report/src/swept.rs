//! How figures change over a swept key.

use super::drawn::SWEEP_SETTINGS_MAX;
use super::report::{Report, Run};
use serde_json::Value;

/// A step that saves less than this share of a figure is not worth its price.
const STEP_SAVES_MIN: f64 = 0.05;

/// A figure that is drawn over a swept key.
pub(super) struct SweptMetric {
    /// What it is called.
    pub name: &'static str,
    /// What it is in.
    pub unit: &'static str,
    /// Of a run; none where it has no such figure.
    pub value: fn(&Run) -> Option<f64>,
}

impl SweptMetric {
    /// What it is called, with its unit.
    pub fn title(&self) -> String {
        match self.unit {
            "" => self.name.to_string(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

/// The figures, the one first by which a knee is told.
pub(super) const SWEPT_METRICS: [SweptMetric; 7] = [
    SweptMetric { name: "I/O time", unit: "s", value: |run| run.time(run.costs.io_time_s.total) },
    SweptMetric { name: "mean response", unit: "ms", value: |run| run.costs.response_ms.mean },
    SweptMetric { name: "P99.9 response", unit: "ms", value: |run| run.costs.response_ms.p99_9 },
    SweptMetric {
        name: "bands rewritten",
        unit: "",
        value: |run| run.log.bands.map(|_| run.rewrites.bands_rewritten as f64),
    },
    SweptMetric {
        name: "band bytes for each byte the host wrote",
        unit: "",
        value: |run| run.rewrites.write_amplification.host,
    },
    SweptMetric {
        name: "read hits",
        unit: "%",
        value: |run| of_cache(run, run.hits.read_hit_ratio),
    },
    SweptMetric {
        name: "write hits",
        unit: "%",
        value: |run| of_cache(run, run.hits.write_hit_ratio),
    },
];

/// A ratio in per cent; none of a stack without a cache.
fn of_cache(run: &Run, ratio: Option<f64>) -> Option<f64> {
    run.cache.capacity_blocks.and(ratio).map(|ratio| 100.0 * ratio)
}

/// The runs over a key, at one setting of all other swept keys.
pub(super) struct Sweep<'a> {
    /// The key.
    pub key: &'a str,
    /// Its values, in the order in which they were run.
    pub values: Vec<&'a Value>,
    /// The other keys that were swept, with their values here.
    pub others: Vec<(&'a str, &'a Value)>,
    /// A line for each system that was run with at least two of the values, or without the key.
    pub lines: Vec<SweptLine<'a>>,
}

/// The runs of a system over a key.
pub(super) struct SweptLine<'a> {
    /// Number of the system among those of the report.
    pub index: usize,
    /// The system.
    pub system: &'a str,
    /// By value; a system that has no such key has one run for all of them.
    pub runs: Vec<Option<&'a Run>>,
}

/// A swept or set value as a person would write it.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The last part of a key, as labels of runs have it.
pub(super) fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

impl Report {
    /// The systems, in the order of their first runs.
    pub(super) fn systems(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.system.as_str()))
    }

    /// The keys that runs differ in, in the order of the alphabet.
    pub(super) fn swept_keys(&self) -> Vec<&str> {
        let mut keys =
            distinct(self.runs.iter().flat_map(|run| run.parameters.keys().map(String::as_str)));
        keys.sort_unstable();
        keys
    }

    /// Each key of which there are several values, at each setting of the others.
    pub(super) fn sweeps(&self) -> Vec<Sweep<'_>> {
        let keys = self.swept_keys();
        let several: Vec<&str> =
            keys.iter().copied().filter(|key| self.values_of(key).len() > 1).collect();
        several.iter().flat_map(|key| self.sweeps_of(key, &several)).collect()
    }

    fn values_of(&self, key: &str) -> Vec<&Value> {
        distinct(self.runs.iter().filter_map(|run| run.parameters.get(key)))
    }

    fn sweeps_of<'a>(&'a self, key: &'a str, keys: &[&'a str]) -> Vec<Sweep<'a>> {
        let systems = self.systems();
        let values = self.values_of(key);
        let others = || keys.iter().copied().filter(|other| *other != key);
        let setting = |run: &'a Run| -> Vec<(&'a str, &'a Value)> {
            others().filter_map(|other| Some((other, run.parameters.get(other)?))).collect()
        };
        // Those of runs with the key: a system without it has a line in the chart of each setting it agrees with.
        let with_key = self.runs.iter().filter(|run| run.parameters.contains_key(key));
        let settings = distinct(with_key.map(setting));
        let agrees = |run: &Run, at: &[(&str, &Value)]| {
            at.iter()
                .all(|(other, value)| run.parameters.get(*other).is_none_or(|own| own == *value))
        };
        let sweep_at = |at: Vec<(&'a str, &'a Value)>| {
            let line = |(index, system): (usize, &&'a str)| {
                let runs = self.runs.iter();
                let here: Vec<&Run> =
                    runs.filter(|run| run.system == **system && agrees(run, &at)).collect();
                let runs: Vec<Option<&Run>> = (values.iter())
                    .map(|value| {
                        let has =
                            |run: &&Run| run.parameters.get(key).is_none_or(|own| own == *value);
                        here.iter().copied().find(has)
                    })
                    .collect();
                let drawn = runs.iter().flatten().count() > 1;
                drawn.then_some(SweptLine { index, system, runs })
            };
            let lines = systems.iter().enumerate().filter_map(line).collect();
            Sweep { key, values: values.clone(), others: at, lines }
        };
        settings.into_iter().map(sweep_at).collect()
    }

    /// Where more of each swept key stops to help, a sentence for each sweep of a key whose values grow; of many the
    /// first.
    pub(super) fn knees(&self) -> Vec<String> {
        let sweeps = self.sweeps();
        sweeps.iter().filter_map(Sweep::knees).take(SWEEP_SETTINGS_MAX).collect()
    }
}

impl Sweep<'_> {
    /// The other swept keys with their values.
    pub fn setting(&self) -> String {
        let words =
            self.others.iter().map(|(key, value)| format!("{}={}", short(key), text_of(value)));
        words.collect::<Vec<_>>().join(" ")
    }

    /// From which value on each further one saves little, by system.
    pub fn knees(&self) -> Option<String> {
        let sizes: Option<Vec<f64>> = self.values.iter().map(|value| magnitude(value)).collect();
        if !sizes?.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let told = |metric: &SweptMetric| {
            let of_line = |line: &SweptLine<'_>| {
                let values: Option<Vec<f64>> =
                    line.runs.iter().map(|run| (metric.value)((*run)?)).collect();
                Some(format!("{} {}", line.system, self.words_of(&values?)))
            };
            let with_key = |line: &&SweptLine<'_>| {
                line.runs.iter().flatten().all(|run| run.parameters.contains_key(self.key))
            };
            let lines: Vec<String> =
                self.lines.iter().filter(with_key).filter_map(of_line).collect();
            (!lines.is_empty()).then_some((metric.name, lines))
        };
        // Without times by the bands.
        let (metric, lines) = [&SWEPT_METRICS[0], &SWEPT_METRICS[3]].into_iter().find_map(told)?;
        let at = match self.setting() {
            at if at.is_empty() => at,
            at => format!(" ({at})"),
        };
        Some(format!("{metric} over {}{at}: {}.", self.key, lines.join("; ")))
    }

    fn words_of(&self, values: &[f64]) -> String {
        let saved = |pair: &[f64]| if pair[0] > 0.0 { 1.0 - pair[1] / pair[0] } else { 0.0 };
        let saves: Vec<f64> = values.windows(2).map(saved).collect();
        let least = STEP_SAVES_MIN * 100.0;
        match saves.iter().rposition(|saved| *saved >= STEP_SAVES_MIN) {
            None => format!("saves less than {least:.0} % with each step"),
            Some(last) if last + 1 == saves.len() => {
                let value = text_of(self.values[last + 1]);
                format!("still saves {:.0} % with the last step, to {value}", 100.0 * saves[last])
            }
            Some(last) => {
                format!(
                    "saves less than {least:.0} % with each step beyond {}",
                    text_of(self.values[last + 1])
                )
            }
        }
    }
}

/// A number, a share or a size; none of other values.
fn magnitude(value: &Value) -> Option<f64> {
    let text = match value {
        Value::String(text) => text.trim(),
        other => return other.as_f64(),
    };
    match text.strip_suffix('%') {
        Some(share) => share.trim().parse().ok(),
        None => imbrex_drives::quantity::parse_size(text).ok().map(|bytes| bytes as f64),
    }
}

/// Each once, in the order of their first times.
pub(super) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReplayMode;

    fn run(system: &str, keys: &[(&str, &str)], io_time_s: f64) -> Run {
        let mut run = Run::new(system, ReplayMode::ClosedLoop { depth: 1 });
        let pairs = keys.iter().map(|(key, value)| (key.to_string(), Value::from(*value)));
        run.parameters = pairs.collect();
        run.costs.io_time_s.total = io_time_s;
        run
    }

    fn report(runs: Vec<Run>) -> Report {
        Report::of_runs(runs)
    }

    #[test]
    fn a_knee_is_told_for_each_system_and_setting() {
        let sizes = ["1%", "2%", "5%"];
        let of = |system: &str, times: [f64; 3]| {
            let runs = sizes.iter().zip(times);
            runs.map(|(size, time)| run(system, &[("cache.capacity", size)], time))
                .collect::<Vec<_>>()
        };
        let mut runs = of("lru", [100.0, 80.0, 60.0]);
        runs.extend(of("pore", [100.0, 50.0, 49.0]));
        runs.extend(of("ride", [100.0, 99.0, 98.0]));
        runs.push(run("smr-only", &[], 300.0));
        let report = report(runs);
        assert_eq!(
            report.knees(),
            [
                "I/O time over cache.capacity: lru still saves 25 % with the last step, to 5%; pore saves less than 5 % \
              with each step beyond 2%; ride saves less than 5 % with each step."
            ]
        );
        let sweeps = report.sweeps();
        assert_eq!(sweeps.len(), 1);
        let systems: Vec<&str> = sweeps[0].lines.iter().map(|line| line.system).collect();
        assert_eq!(
            systems,
            ["lru", "pore", "ride", "smr-only"],
            "one without the key has a level line"
        );
        assert!(
            sweeps[0].lines[3]
                .runs
                .iter()
                .all(|it| it.is_some_and(|it| it.costs.io_time_s.total == 300.0))
        );
    }

    #[test]
    fn each_key_is_drawn_at_each_setting_of_the_others() {
        let mut runs = Vec::new();
        for size in ["64MiB", "1GiB"] {
            for mode in ["write-only", "read-write", "x"] {
                runs.push(run("lru", &[("cache.capacity", size), ("cache.mode", mode)], 1.0));
            }
        }
        let report = report(runs);
        let drawn: Vec<(String, String, usize)> = (report.sweeps().iter())
            .map(|sweep| (sweep.key.to_string(), sweep.setting(), sweep.values.len()))
            .collect();
        let row = |key: &str, at: &str, values| (format!("cache.{key}"), at.to_string(), values);
        assert_eq!(
            drawn,
            [
                row("capacity", "mode=write-only", 2),
                row("capacity", "mode=read-write", 2),
                row("capacity", "mode=x", 2),
                row("mode", "capacity=64MiB", 3),
                row("mode", "capacity=1GiB", 3),
            ]
        );
        assert_eq!(report.knees().len(), 3, "words do not grow");
    }
}
