//! What cleaning and holding did to the requests: response times by what was on, and all of it on one time axis.

use std::fmt::Write as _;

use super::super::activity_use::{ActivityFigures, ResponseByActivity};
use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{Report, Run};
use super::super::response_times::ResponseTimes;
use super::super::series::Series;
use super::strips::{Full, Panels, Strip, panels};
use crate::format::{count, number, optional};
use crate::page::{chip, escape, open_scroll, open_section};

/// The section; nothing where nothing cleaned or held requests back.
pub(super) fn of_nodes(report: &Report, body: &mut String) {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let runs: Vec<_> = runs.filter(|(_, run)| run.response_by_activity.is_some()).collect();
    if runs.is_empty() {
        return;
    }
    open_section(
        "Cleaning and holding",
        "Requests by what was on at any time while they were open: a controller held requests back, a translation cleaned \
         because a write had no room, it was cleaning in idle time when the request came, or none of these, which is the \
         time of the queue and of the service. Of several the first counts.",
        body,
    );
    table(&runs, body);
    for chart in charts(report) {
        let name = escape(&report.runs[chart.index].label());
        let _ = writeln!(body, "<h3>Over time: {}{name}</h3>", chip(chart.index));
        let panel = Panels {
            reader: &chart.reader,
            title: "Load, cleaning and response times on one time axis",
            full: Full::Usual,
            full_label: &number,
        };
        panels(&panel, &chart.strips, body);
    }
    body.push_str("</section>\n");
}

fn table(runs: &[(usize, &Run)], body: &mut String) {
    open_scroll("Cleaning and holding", body);
    body.push_str(
        "<table><thead><tr><th scope=\"col\">system</th><th scope=\"col\" class=\"text\">was on</th>",
    );
    let times = ["read", "write"]
        .map(|which| ["mean", "p99", "p99.9", "max"].map(|of| (format!("{which} {of}"), "ms")));
    let own = [("for", "s"), ("requests", "number")];
    let own = own.map(|(name, unit)| (name.to_string(), unit));
    for (name, unit) in own.into_iter().chain(times.into_iter().flatten()) {
        let _ = write!(body, "<th scope=\"col\">{name}<small>{unit}</small></th>");
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for (index, run) in runs {
        for (name, of) in run.response_by_activity.iter().flat_map(ResponseByActivity::iter) {
            let _ = write!(
                body,
                "<tr><td>{}{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td>",
                chip(*index),
                escape(&run.label()),
                name.replace('_', " "),
                optional(of.total_s),
                count(of.requests)
            );
            for ResponseTimes { mean, p99, p99_9, max, .. } in
                [of.read_response_ms, of.write_response_ms]
            {
                for value in [mean, p99, p99_9, max] {
                    let _ = write!(body, "<td>{}</td>", optional(value));
                }
            }
            body.push_str("</tr>\n");
        }
    }
    body.push_str("</tbody></table></div>\n");
}

/// All that a run has over time.
pub(super) struct Chart {
    /// Of the run in the report.
    pub index: usize,
    /// Which values the script reads out there.
    pub reader: String,
    pub strips: Vec<Strip>,
}

/// A chart of each run in which something was on.
pub(super) fn charts(report: &Report) -> Vec<Chart> {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let charts = runs.filter_map(|(index, run)| {
        let figures = run.figures.activities.as_ref()?;
        Some(Chart {
            index,
            reader: format!("activities-{index}"),
            strips: strips(index, run, figures),
        })
    });
    charts.collect()
}

/// What was on and what was felt; nothing of what was never on.
fn strips(index: usize, run: &Run, figures: &ActivityFigures) -> Vec<Strip> {
    let per_cent = |series: &Series| Series {
        values: series.values.iter().map(|share| 100.0 * share).collect(),
        ..series.clone()
    };
    let all = [
        ("requests/s", run.figures.requests_per_s.clone()),
        ("media cache, %", per_cent(&run.figures.persistent_cache_fill)),
        ("held back, % of time", per_cent(&figures.hold)),
        ("held requests", figures.held_requests.clone()),
        ("blocking clean, %", per_cent(&figures.blocking_cleaning)),
        ("idle clean, %", per_cent(&figures.idle_cleaning)),
        ("mean response, ms", figures.response_mean_ms.clone()),
        ("longest response, ms", figures.response_max_ms.clone()),
    ];
    let strip = |(name, series): (&str, Series)| {
        let most = series.values.iter().copied().fold(0.0, f64::max);
        (most > 0.0).then(|| Strip {
            index,
            name: name.to_string(),
            finish_s: run.costs.finish_s,
            series,
            summary: format!("up to {}", number(most)),
            // A share has its whole scale, all else its own.
            full: Some(if name.contains('%') { 100.0 } else { most }),
        })
    };
    all.into_iter().filter_map(strip).collect()
}
