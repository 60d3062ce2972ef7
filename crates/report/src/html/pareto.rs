//! What fast storage buys: each run by what its stack is given and by what it takes, and those that no other one beats in both.

use super::super::hardware::fast_mib;
use super::super::pareto::front;
use super::super::report::{Report, Run};
use super::super::swept::{SWEPT_METRICS, SweptMetric};
use crate::format::{number, optional};
use crate::page::chart::{Across, Chart, ChartKind, ChartSeries};
use crate::page::{COLOURS, chip, escape, open_scroll, open_section};
use std::fmt::Write as _;

/// Different amounts of fast storage that runs have at least, for a choice to be between them.
const AMOUNTS_MIN: usize = 3;
/// An axis that holds so many times its least value is logarithmic.
const LOG_FROM: f64 = 50.0;

/// The figures that fast storage is to make less: I/O time, and the P99.9 of responses.
const BOUGHT: [&SweptMetric; 2] = [&SWEPT_METRICS[0], &SWEPT_METRICS[2]];

/// The section; nothing where stacks are given the same.
pub(in super::super) fn of_runs(report: &Report, body: &mut String) {
    let mut amounts: Vec<u64> = report.runs.iter().filter_map(fast_mib).map(f64::to_bits).collect();
    amounts.sort_unstable();
    amounts.dedup();
    if amounts.len() < AMOUNTS_MIN || report.is_untimed() {
        return;
    }
    let why = "Each run by the flash and the memory that its stack is given, and by what it takes. The line joins the runs \
               that no other one beats in both: whatever is above it pays as much for less.";
    open_section("What fast storage buys", why, body);
    body.push_str("<div class=\"two charts\">\n");
    BOUGHT.iter().for_each(|metric| chart(metric, report).show(body));
    body.push_str("</div>\n");
    table(BOUGHT[0], report, body);
    body.push_str("</section>\n");
}

/// Of each run what it is given, and a figure.
fn points<'a>(metric: &SweptMetric, report: &'a Report) -> Vec<(&'a Run, (f64, f64))> {
    let point = |run: &'a Run| Some((run, (fast_mib(run)?, (metric.value)(run)?)));
    report.runs.iter().filter_map(point).collect()
}

fn chart(metric: &SweptMetric, report: &Report) -> Chart {
    let points = points(metric, report);
    let systems = report.systems();
    let series = systems.iter().take(COLOURS).enumerate().map(|(colour, system)| ChartSeries {
        name: system.to_string(),
        colour,
        points: (points.iter())
            .filter(|(run, _)| run.system == **system)
            .map(|(_, (given, takes))| (*given, Some(*takes)))
            .collect(),
        stated: vec![],
    });
    let is_wide = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        });
        low > 0.0 && high > LOG_FROM * low
    };
    Chart {
        title: metric.name.to_string(),
        kind: ChartKind::Points,
        across: Across::Numbers,
        x_label: "flash and memory, MiB".to_string(),
        y_label: metric.title(),
        x_log: is_wide(&mut points.iter().map(|(_, point)| point.0)),
        y_log: is_wide(&mut points.iter().map(|(_, point)| point.1)),
        series: series.filter(|series| !series.points.is_empty()).collect(),
    }
}

/// The runs of the line.
fn table(metric: &SweptMetric, report: &Report, body: &mut String) {
    let points = points(metric, report);
    let on_line = front(&points.iter().map(|(_, point)| *point).collect::<Vec<_>>());
    let _ = writeln!(
        body,
        "<h3>{} of {} runs are on the line of {}</h3>",
        on_line.len(),
        points.len(),
        metric.name
    );
    open_scroll("runs on the line", body);
    let _ = writeln!(
        body,
        "<table><thead><tr><th>run</th><th>flash and memory, MiB</th><th>{}</th><th>P99.9, ms</th></tr></thead><tbody>",
        metric.title()
    );
    let systems = report.systems();
    for at in on_line {
        let (run, (given, takes)) = points[at];
        let colour = systems.iter().position(|system| *system == run.system).unwrap_or(0);
        let _ = writeln!(
            body,
            "<tr><th>{}{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            chip(colour),
            escape(&run.label()),
            number(given),
            number(takes),
            optional(run.costs.response_ms.p99_9)
        );
    }
    body.push_str("</tbody></table></div>\n");
}
