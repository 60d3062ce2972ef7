//! What the host felt while arrays had lost members, and how rebuilds went on.

use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::phases::{Phase, PhaseUse, Phases};
use super::super::report::{Report, Run};
use super::super::response_times::ResponseTimes;
use super::super::series::Series;
use super::strips::{Full, Panels, Strip, panels};
use crate::format::{count, number, optional};
use crate::page::{chip, escape, open_scroll, open_section};

/// Which values the script reads out in the chart of rebuilds.
pub(super) const REBUILD_READER: &str = "rebuild";

/// Strips of the chart at most.
const STRIPS_MAX: usize = CHART_RUNS_MAX;

/// The section; nothing where no array lost a member.
pub(super) fn of_arrays(report: &Report, body: &mut String) {
    let rows = rows(report);
    if rows.is_empty() {
        return;
    }
    open_section(
        "Phases of arrays",
        "What the host felt before a member of an array was lost, while it was missing, while it was \
         rebuilt, and after. A request counts to the phase in which it was answered; a phase that came \
         several times adds up.",
        body,
    );
    table(&rows, body);
    let strips = rebuilds(report);
    if !strips.is_empty() {
        body.push_str("<h3>Progress of rebuilds</h3>\n");
        let chart = Panels {
            reader: REBUILD_READER,
            title: "Progress of rebuilds over time",
            full: Full::At(100.0),
            full_label: &|_| "100 %".to_string(),
        };
        panels(&chart, &strips, body);
    }
    body.push_str("</section>\n");
}

/// A phase of a run, with the number of the run.
type Row<'a> = (usize, &'a Run, Phase, &'a PhaseUse);

fn rows(report: &Report) -> Vec<Row<'_>> {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let rows = runs.flat_map(|(index, run)| {
        let phases = run.phases.iter().flat_map(Phases::iter);
        phases.map(move |(phase, of)| (index, run, phase, of))
    });
    rows.collect()
}

fn table(rows: &[Row<'_>], body: &mut String) {
    open_scroll("Phases of arrays", body);
    body.push_str(
        "<table><thead><tr><th scope=\"col\">system</th><th scope=\"col\" class=\"text\">phase</th>",
    );
    let of_times = ["mean", "p50", "p99", "max"];
    let of_times =
        ["read", "write"].map(|which| of_times.map(|of| (format!("{which} {of}"), "ms")));
    let own = [("began", "s"), ("lasted", "s"), ("requests", "number")];
    let own = own.map(|(name, unit)| (name.to_string(), unit));
    for (name, unit) in own.into_iter().chain(of_times.into_iter().flatten()) {
        let _ = write!(body, "<th scope=\"col\">{name}<small>{unit}</small></th>");
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for (index, run, phase, of) in rows {
        let label = escape(&run.label());
        let _ = write!(
            body,
            "<tr><td>{}{label}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td>",
            chip(*index),
            phase.name(),
            number(of.start_s),
            number(of.total_s),
            count(of.requests)
        );
        for ResponseTimes { mean, p50, p99, max, .. } in [of.read_response_ms, of.write_response_ms]
        {
            for value in [mean, p50, p99, max] {
                let _ = write!(body, "<td>{}</td>", optional(value));
            }
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
}

/// A strip of each array in which a member was rebuilt, in per cent.
pub(super) fn rebuilds(report: &Report) -> Vec<Strip> {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let strips = runs.flat_map(|(index, run)| {
        run.figures.rebuild_progress.iter().map(move |(node, series)| {
            let values = series.values.iter().map(|share| 100.0 * share).collect();
            let rebuilding = run.phases.as_ref().and_then(|phases| phases.rebuilding.as_ref());
            // A rebuild may outlast the workload.
            let last_s = series.values.len().saturating_sub(1) as f64 * series.bucket_s;
            let finish_s = match last_s < run.costs.finish_s {
                true => run.costs.finish_s,
                false => last_s + series.bucket_s,
            };
            let rebuilt_s = rebuilding.map_or(0.0, |of| of.total_s);
            Strip {
                index,
                name: match report.runs.len() {
                    1 => node.clone(),
                    _ => format!("{node}, {}", run.label()),
                },
                finish_s,
                series: Series { bucket_s: series.bucket_s, values },
                summary: format!("rebuilt for {} s", number(rebuilt_s)),
                full: None,
            }
        })
    });
    strips.take(STRIPS_MAX).collect()
}
