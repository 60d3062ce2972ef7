//! Two swept keys against each other: a table for each system, whose cells are the darker the more a run takes.

use super::super::drawn::SWEEP_SETTINGS_MAX;
use super::super::report::{Report, Run};
use super::super::swept::{SWEPT_METRICS, distinct, short, text_of};
use crate::format;
use crate::page::{escape, open_scroll, open_section};
use serde_json::Value;
use std::fmt::Write as _;

/// Runs that differ by less than this share are drawn alike.
const DIFFERS_FROM: f64 = 0.01;
/// Share of the colour in the cell that takes the most.
const DARKEST_PERCENT: f64 = 70.0;

/// A system over two keys, at one setting of the others.
struct Matrix<'a> {
    system: &'a str,
    keys: (&'a str, &'a str),
    /// The other keys with their values.
    others: Vec<(&'a str, &'a Value)>,
    runs: Vec<&'a Run>,
}

/// A section for each two keys that are swept together; nothing where there are none.
pub(in super::super) fn of_pairs(report: &Report, body: &mut String) {
    // Without times, the bands.
    let has = |metric: &&super::super::swept::SweptMetric| {
        report.runs.iter().any(|run| (metric.value)(run).is_some())
    };
    let Some(metric) = [&SWEPT_METRICS[0], &SWEPT_METRICS[3]].into_iter().find(has) else {
        return;
    };
    let keys = report.swept_keys();
    for (at, first) in keys.iter().enumerate() {
        for second in &keys[at + 1..] {
            let matrices = matrices(report, (first, second));
            if matrices.is_empty() {
                continue;
            }
            let title = format!("{}: {} and {}", metric.title(), short(first), short(second));
            let why = "A row for each value of the first key, a column for each of the second. The darker the more, on one \
                       scale for all tables.";
            open_section(&title, why, body);
            let all = matrices.iter().flat_map(|matrix| &matrix.runs);
            let values = all.filter_map(|run| (metric.value)(run));
            let (least, most) = values
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                    (low.min(value), high.max(value))
                });
            let shade = |value: f64| match most - least > DIFFERS_FROM * most {
                true => DARKEST_PERCENT * (value - least) / (most - least),
                false => 0.0,
            };
            body.push_str("<div class=\"two\">\n");
            for matrix in matrices.iter().take(SWEEP_SETTINGS_MAX) {
                matrix.show(metric.value, &shade, body);
            }
            body.push_str("</div>\n");
            if matrices.len() > SWEEP_SETTINGS_MAX {
                let _ = writeln!(
                    body,
                    "<p>The first {SWEEP_SETTINGS_MAX} of {} tables; results.csv has all.</p>",
                    matrices.len()
                );
            }
            body.push_str("</section>\n");
        }
    }
}

/// A matrix for each system and setting of the other keys, of those that have several values of both keys.
fn matrices<'a>(report: &'a Report, keys: (&'a str, &'a str)) -> Vec<Matrix<'a>> {
    let mut matrices: Vec<Matrix<'a>> = Vec::new();
    for run in &report.runs {
        if !run.parameters.contains_key(keys.0) || !run.parameters.contains_key(keys.1) {
            continue;
        }
        let others = run.parameters.iter().filter(|(key, _)| **key != keys.0 && **key != keys.1);
        let others: Vec<_> = others.map(|(key, value)| (key.as_str(), value)).collect();
        let same = |it: &&mut Matrix<'_>| it.system == run.system && it.others == others;
        match matrices.iter_mut().find(same) {
            Some(matrix) => matrix.runs.push(run),
            None => matrices.push(Matrix { system: &run.system, keys, others, runs: vec![run] }),
        }
    }
    matrices.retain(|matrix| {
        matrix.values(matrix.keys.0).len() > 1 && matrix.values(matrix.keys.1).len() > 1
    });
    matrices
}

impl<'a> Matrix<'a> {
    fn values(&self, key: &str) -> Vec<&'a Value> {
        distinct(self.runs.iter().filter_map(|run| run.parameters.get(key)))
    }

    fn show(
        &self,
        value_of: fn(&Run) -> Option<f64>,
        shade: &dyn Fn(f64) -> f64,
        body: &mut String,
    ) {
        let others = self.others.iter().map(|(key, of)| format!(" {}={}", short(key), text_of(of)));
        let title = format!("{}{}", self.system, others.collect::<String>());
        let _ = writeln!(body, "<div style=\"min-width:0\"><h3>{}</h3>", escape(&title));
        open_scroll(&title, body);
        let columns = self.values(self.keys.1);
        let _ = write!(
            body,
            "<table><thead><tr><th>{} \\ {}</th>",
            escape(short(self.keys.0)),
            escape(short(self.keys.1))
        );
        for column in &columns {
            let _ = write!(body, "<th>{}</th>", escape(&text_of(column)));
        }
        body.push_str("</tr></thead><tbody>\n");
        for row in self.values(self.keys.0) {
            let _ = write!(body, "<tr><th>{}</th>", escape(&text_of(row)));
            for column in &columns {
                let here = |run: &&&Run| {
                    run.parameters.get(self.keys.0) == Some(row)
                        && run.parameters.get(self.keys.1) == Some(*column)
                };
                let value = self.runs.iter().find(here).and_then(|run| value_of(run));
                let share = value.map_or(0.0, shade);
                let _ = write!(
                    body,
                    "<td style=\"background:color-mix(in srgb,var(--s0) {share:.0}%,transparent)\">{}</td>",
                    format::optional(value)
                );
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div></div>\n");
    }
}
