//! Everything that is text: the header, the cards, the tables and the configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::hardware::{HARDWARE_METRICS, HardwareMetric};
use super::super::headline::{Contest, contest};
use super::super::report::{Dependencies, Due, ReplayMode, Report, Run, WorkloadKind};
use super::super::segment_use::SEGMENT_METRICS;
use crate::format::{bytes, count, factor, optional, percent};
use crate::page::{chip, escape, open_section};
use imbrex_core::counters::Counter;

/// The sentence, and right under it what was replayed and whether it was real.
pub(super) fn header(report: &Report, body: &mut String) {
    let workload = &report.workload;
    let class = match workload.kind {
        WorkloadKind::Captured => "captured",
        WorkloadKind::Recorded => "recorded",
        WorkloadKind::Synthetic => "synthetic",
        WorkloadKind::Live => "live",
        WorkloadKind::ClosedForm => "closed form",
    };
    let _ = writeln!(
        body,
        "<header>\n<p class=\"eyebrow\">Imbrex report</p>\n<h1>{}</h1>\n<p class=\"workload\">\
         <span class=\"kind {class}\">{class}</span><code>{}</code><span>{} requests, {}</span></p>",
        escape(&report.headline()),
        escape(&workload.path),
        count(workload.requests),
        workload.describe(),
    );
    for line in report.notices() {
        notice(&line, body);
    }
    body.push_str("</header>\n");
}

/// Notices that are longer than so many characters are folded: those of a sweep name each of its runs.
const NOTICE_MAX: usize = 320;
/// What is seen of a folded one.
const NOTICE_SEEN: usize = 140;

fn notice(line: &str, body: &mut String) {
    let _ = match line.chars().count() > NOTICE_MAX {
        false => writeln!(body, "<p class=\"notice\">{}</p>", escape(line)),
        true => {
            let seen: String = line.chars().take(NOTICE_SEEN).collect();
            writeln!(
                body,
                "<details class=\"notice\"><summary>{} ...</summary>{}</details>",
                escape(seen.trim_end()),
                escape(line)
            )
        }
    };
}

/// How many numbers stand at the top.
const CARDS: usize = 4;

/// Four numbers that matter, each with what it is compared with.
pub(super) fn cards(report: &Report, body: &mut String) {
    let contest = contest(report);
    let Some(run) = contest.map(|contest| contest.best).or(report.runs.first()) else {
        return;
    };
    let metrics: [(&str, &str, Metric); CARDS] = [
        ("Write amplification", "home bytes per host byte", |run| {
            run.rewrites.write_amplification.host
        }),
        ("I/O time", "s", |run| run.time(run.costs.io_time_s.total)),
        ("99.9th percentile response", "ms", |run| run.costs.response_ms.p99_9),
        ("Write hit ratio", "%", |run| {
            let ratio = run.cache.capacity_blocks.and(run.hits.write_hit_ratio)?;
            Some(100.0 * ratio)
        }),
    ];
    // Where segments are rewritten in place of bands, their figures stand in for those that no run has.
    let segments = SEGMENT_METRICS.iter().map(|metric| (metric.name, metric.unit, metric.value));
    let is_known = |metric: Metric| {
        let reference = contest.map(|contest| contest.reference);
        metric(run).or(reference.and_then(metric)).is_some()
    };
    let shown = metrics.into_iter().chain(segments);
    let shown = shown.filter(|(_, _, metric)| is_known(*metric)).take(CARDS);
    body.push_str("<div class=\"cards\">\n");
    for (name, unit, metric) in shown {
        let small = if unit.len() <= 2 { format!("<small>{unit}</small>") } else { String::new() };
        let note = match contest {
            Some(Contest { reference, .. }) => {
                format!(
                    "{}, against {} of {}",
                    run.label(),
                    optional(metric(reference)),
                    reference.label()
                )
            }
            None => run.label(),
        };
        let note = if unit.len() > 2 { format!("{unit}; {note}") } else { note };
        let _ = writeln!(
            body,
            "<div class=\"card\"><div class=\"name\">{name}</div><div class=\"value\">{}{small}</div>\
             <div class=\"note\">{}</div></div>",
            optional(metric(run)),
            escape(&note),
        );
    }
    body.push_str("</div>\n");
}

type Metric = fn(&Run) -> Option<f64>;

/// The value of a run in a column, which may compare it with other runs of the report.
type Value<'a> = Box<dyn Fn(&Run) -> Option<f64> + 'a>;

/// A column of the comparison: header, unit, value, how to show it, and which extreme is best.
struct Column<'a> {
    name: &'static str,
    unit: &'static str,
    value: Value<'a>,
    show: fn(Option<f64>) -> String,
    best: Best,
}

impl Column<'_> {
    /// Whether a run has the best value of several; equal as shown is equally good.
    fn is_best(&self, report: &Report, run: &Run) -> bool {
        let all = report.runs.iter().filter_map(&self.value);
        let best = match self.best {
            Best::Least => all.reduce(f64::min),
            Best::Most => all.reduce(f64::max),
            Best::None => None,
        };
        let shown = (self.show)((self.value)(run));
        best.is_some() && shown == (self.show)(best) && report.runs.len() > 1
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Best {
    Least,
    Most,
    None,
}

fn columns(report: &Report) -> Vec<Column<'_>> {
    let whole: fn(Option<f64>) -> String =
        |value| value.map_or_else(|| "-".to_string(), |value| count(value as u64));
    let column = |name, unit, show, best, value: Metric| Column {
        name,
        unit,
        value: Box::new(value),
        show,
        best,
    };
    let speed_up = Column {
        name: "speed-up",
        unit: "x",
        value: Box::new(|run| run.speed_up(report.runs.first()?)),
        show: |value| value.map_or_else(|| "-".to_string(), factor),
        best: Best::Most,
    };
    vec![
        column("read hits", "%", percent, Best::Most, |run| {
            run.cache.capacity_blocks.and(run.hits.read_hit_ratio)
        }),
        column("write hits", "%", percent, Best::Most, |run| {
            run.cache.capacity_blocks.and(run.hits.write_hit_ratio)
        }),
        column("WA host", "x", optional, Best::Least, |run| run.rewrites.write_amplification.host),
        column("home per merged", "x", optional, Best::Least, |run| {
            run.rewrites.write_amplification.evicted
        }),
        column("bands rewritten", "count", whole, Best::Least, |run| {
            run.log.bands.map(|_| run.rewrites.bands_rewritten as f64)
        }),
        column("home writes", "GiB", optional, Best::Least, |run| {
            run.log.bands.map(|_| run.rewrites.band_bytes_written as f64 / f64::from(1 << 30))
        }),
        column("I/O time", "s", optional, Best::Least, |run| run.time(run.costs.io_time_s.total)),
        speed_up,
        column("seek time", "s", optional, Best::Least, |run| run.time(run.costs.seek_time_s)),
        column("mean", "ms", optional, Best::Least, |run| run.costs.response_ms.mean),
        column("p50", "ms", optional, Best::Least, |run| run.costs.response_ms.p50),
        column("p99", "ms", optional, Best::Least, |run| run.costs.response_ms.p99),
        column("p99.9", "ms", optional, Best::Least, |run| run.costs.response_ms.p99_9),
        column("finish", "s", optional, Best::None, |run| run.time(run.costs.finish_s)),
    ]
}

/// The columns about segments.
fn segment_columns<'a>() -> impl Iterator<Item = Column<'a>> {
    SEGMENT_METRICS.iter().map(|metric| Column {
        name: metric.name,
        unit: metric.unit,
        value: Box::new(metric.value),
        show: optional,
        best: match metric.is_cost {
            Some(true) => Best::Least,
            Some(false) => Best::Most,
            None => Best::None,
        },
    })
}

/// The columns in which some run has something.
fn columns_of(report: &Report) -> Vec<Column<'_>> {
    let mut columns = columns(report);
    if report.has_segments() {
        columns.extend(segment_columns());
    }
    if report.has_bound() {
        columns.push(Column {
            name: "rewrites / bound",
            unit: "x",
            value: Box::new(|run| run.rewrites.over_bound()),
            show: optional,
            best: Best::Least,
        });
    }
    columns.extend(HARDWARE_METRICS.iter().map(|metric| Column {
        name: metric.name,
        unit: metric.unit,
        value: Box::new(|run| metric.value(run)),
        show: HardwareMetric::show,
        best: Best::None,
    }));
    columns.retain(|column| report.runs.iter().any(|run| (column.value)(run).is_some()));
    columns
}

/// What the times of the comparison are.
const TIMES: &str = "Speed-up: how many times as fast as the first row, by the finish times of a replay back \
                     to back, else by the mean responses. Response times from issue to completion.";

/// The same table by itself, for a page of somebody else: it needs no style and no script.
pub(super) fn plain_comparison(report: &Report) -> String {
    let columns = columns_of(report);
    let mut table = "<table><thead><tr><th>system</th>".to_string();
    for Column { name, unit, .. } in &columns {
        let _ = write!(table, "<th>{name}<br><small>{unit}</small></th>");
    }
    table.push_str("</tr></thead>\n<tbody>\n");
    for run in &report.runs {
        let _ = write!(table, "<tr><th>{}</th>", escape(&run.label()));
        for column in &columns {
            let shown = (column.show)((column.value)(run));
            let _ = match column.is_best(report, run) {
                true => write!(table, "<td><b>{shown}</b></td>"),
                false => write!(table, "<td>{shown}</td>"),
            };
        }
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody></table>\n");
    table
}

/// All runs side by side, sortable.
pub(super) fn comparison(report: &Report, body: &mut String) {
    let times = match report.is_untimed() {
        true => "Nothing took time: the runs were counted alone.",
        false => TIMES,
    };
    let _ = write!(
        body,
        "<section>\n<div class=\"top\"><h2>Comparison</h2><button type=\"button\" class=\"export\" \
         data-table=\"comparison\" data-name=\"comparison.csv\">CSV</button></div>\n\
         <p class=\"why\">The best of each column is bold. WA host: bytes written to home bands over \
         bytes the host wrote; home per merged: the same bytes over live bytes merged. {times}</p>\n<div class=\"scroll\"><table class=\"sortable\" id=\"comparison\"><thead><tr>\
         <th scope=\"col\"><button type=\"button\">system</button></th>",
    );
    let columns = columns_of(report);
    for Column { name, unit, .. } in &columns {
        let _ = write!(
            body,
            "<th scope=\"col\" data-value=\"{name} {unit}\"><button type=\"button\">{name}</button>\
             <small>{unit}</small></th>"
        );
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for (index, run) in report.runs.iter().enumerate() {
        let label = escape(&run.label());
        let _ = write!(body, "<tr><td data-value=\"{label}\">{}{label}</td>", chip(index));
        for column in &columns {
            let value = (column.value)(run);
            let class = match column.is_best(report, run) {
                true => " class=\"best\"",
                false => "",
            };
            let raw = value.map_or_else(String::new, |value| value.to_string());
            let _ = write!(body, "<td{class} data-value=\"{raw}\">{}</td>", (column.show)(value));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
    if let Some(times) = report.workload.captured_response_ms {
        let _ = writeln!(
            body,
            "<p class=\"why\">Captured, the response times that the trace itself has: mean {}, p50 {}, p99 {}, \
             p99.9 {}, longest {} ms.</p>",
            optional(times.mean),
            optional(times.p50),
            optional(times.p99),
            optional(times.p99_9),
            optional(times.max)
        );
    }
    if report.runs.len() > CHART_RUNS_MAX {
        let _ = writeln!(
            body,
            "<p class=\"why\">The charts below show the first {CHART_RUNS_MAX} of {} runs.</p>",
            report.runs.len()
        );
    }
    body.push_str("</section>\n");
}

/// Two maps side by side, to be painted by the script.
pub(super) fn heat_map(report: &Report, body: &mut String) {
    let mapped: Vec<usize> = (0..report.runs.len().min(CHART_RUNS_MAX))
        .filter(|index| !report.runs[*index].figures.band_writes.blocks.is_empty())
        .collect();
    if mapped.is_empty() {
        return;
    }
    let position = |run: &Run| report.runs.iter().position(|other| std::ptr::eq(run, other));
    let shown = match contest(report) {
        Some(Contest { reference, best, .. }) => vec![position(reference), position(best)],
        None => vec![mapped.first().copied()],
    };
    let shown: Vec<usize> = shown.into_iter().flatten().filter(|i| mapped.contains(i)).collect();
    let shown = if shown.is_empty() { vec![mapped[0]] } else { shown };
    open_section(
        "Writes to home bands, by address and time",
        "Each dot is a range of addresses in a span of time; the stronger the colour, the more was \
         written home there. Maps side by side share their scales.",
        body,
    );
    body.push_str("<div class=\"maps\">\n");
    for selected in shown {
        body.push_str(
            "<div class=\"map\"><div class=\"head\"><span>address</span>\
             <select aria-label=\"system shown in this map\">",
        );
        for index in &mapped {
            let _ = write!(
                body,
                "<option value=\"{index}\"{}>{}</option>",
                if *index == selected { " selected" } else { "" },
                escape(&report.runs[*index].label())
            );
        }
        body.push_str(
            "</select></div><div class=\"y\"></div><canvas width=\"480\" height=\"250\" role=\"img\" \
             aria-label=\"heat map of writes to home bands\"></canvas>\
             <div class=\"x\"><span>0 s</span><span>time</span><span class=\"end\"></span></div><div class=\"note\"></div></div>\n",
        );
    }
    body.push_str(
        "</div>\n<noscript><p class=\"why\">The maps are painted by the script of this page, which does not run \
         here. band_writes.csv has their values.</p></noscript>\n<div class=\"ramp\"><span>nothing</span><canvas width=\"220\" height=\"10\" \
         role=\"img\" aria-label=\"colour scale, logarithmic\"></canvas><span class=\"most\"></span>\
         <span>(logarithmic)</span></div>\n</section>\n",
    );
}

/// What is needed to judge and to repeat the runs.
pub(super) fn details(report: &Report, body: &mut String) {
    open_section(
        "Configuration",
        "Everything needed to judge these runs and to repeat them.",
        body,
    );
    facts(report, body);
    runs(report, body);
    disks(report, body);
    configurations(report, body);
    body.push_str("</section>\n<footer>Written by Imbrex. This page holds all of its data and loads nothing.</footer>\n");
}

/// What was replayed, on which drives, and what did it.
fn facts(report: &Report, body: &mut String) {
    let workload = &report.workload;
    let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_string());
    let kind = workload.describe();
    let facts = [
        ("workload", format!("{} ({kind})", workload.path)),
        ("format", or_dash(&workload.format)),
        ("sha256", or_dash(&workload.sha256)),
        ("skipped lines", skipped_lines(&workload.skipped_lines)),
        ("seed", report.seed.to_string()),
        ("commit", report.commit.clone()),
        ("schema", report.schema.clone()),
    ];
    body.push_str("<dl>\n");
    for (name, value) in facts {
        let _ = writeln!(body, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    let drives: BTreeMap<&str, &str> = report
        .runs
        .iter()
        .flat_map(|run| &run.disks)
        .filter_map(|disk| Some((disk.drive.as_str(), disk.drive_sha256.as_deref()?)))
        .collect();
    for (drive, sha256) in drives {
        let _ = writeln!(body, "<dt>drive {}</dt><dd>{}</dd>", escape(drive), escape(sha256));
    }
    body.push_str("</dl>\n");
}

/// How many lines of the trace were left out for which reason.
fn skipped_lines(skipped: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> =
        skipped.iter().map(|(reason, lines)| format!("{} {reason}", count(*lines))).collect();
    match reasons.is_empty() {
        true => "none".to_string(),
        false => reasons.join(", "),
    }
}

/// The whole configuration of each run that has one.
fn configurations(report: &Report, body: &mut String) {
    for run in &report.runs {
        if run.configuration.is_null() {
            continue;
        }
        let text = serde_json::to_string_pretty(&run.configuration)
            .expect("a JSON value can be written as JSON");
        let _ = writeln!(
            body,
            "<details><summary>Resolved configuration of {}</summary><pre>{}</pre></details>",
            escape(&run.label()),
            escape(&text)
        );
    }
}

fn runs(report: &Report, body: &mut String) {
    table(
        "Runs",
        &[
            "system",
            "replay",
            "requests",
            "skipped reads",
            "cache",
            "footprint",
            "persistent cache",
            "full, s",
            "scratch",
            "dirty left",
            "forced evictions",
            "band seed",
        ],
        report.runs.iter().map(|run| {
            let size = |value: Option<u64>| value.map_or_else(|| "-".to_string(), bytes);
            vec![
                run.label(),
                replay(&run.inputs.replay),
                count(run.host.requests),
                count(run.host.skipped_reads),
                size(run.cache.capacity_blocks.map(|blocks| blocks * 4096)),
                size(run.inputs.footprint_bytes),
                size(run.log.persistent_cache_bytes),
                optional(run.time(run.log.persistent_cache_full_s)),
                bytes(run.log.scratch_bytes_written),
                bytes(run.cache.dirty_blocks_left * 4096),
                count(run.cache.forced_evictions),
                run.log.band_seed.map_or_else(|| "-".to_string(), |seed| seed.to_string()),
            ]
        }),
        body,
    );
}

fn disks(report: &Report, body: &mut String) {
    table(
        "Disks",
        &["system", "disk", "drive", "write cache", "reads", "writes", "read", "written"],
        report.runs.iter().flat_map(|run| {
            run.disks.iter().map(|disk| {
                let operations = |counter, timed| match run.is_untimed() {
                    true => run.operations(disk, counter).map_or_else(|| "-".to_string(), count),
                    false => count(timed),
                };
                vec![
                    run.label(),
                    disk.name.clone(),
                    disk.drive.clone(),
                    if disk.write_cache { "on" } else { "off" }.to_string(),
                    operations(Counter::Reads, disk.reads),
                    operations(Counter::Writes, disk.writes),
                    bytes(disk.read_bytes.values().iter().sum()),
                    bytes(disk.written_bytes.values().iter().sum()),
                ]
            })
        }),
        body,
    );
}

fn table(title: &str, header: &[&str], rows: impl Iterator<Item = Vec<String>>, body: &mut String) {
    let _ = write!(body, "<h3>{title}</h3>\n<div class=\"scroll\"><table><thead><tr>");
    for name in header {
        let _ = write!(body, "<th scope=\"col\">{name}</th>");
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        body.push_str("<tr>");
        for cell in row {
            let _ = write!(body, "<td>{}</td>", escape(&cell));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
}

fn replay(mode: &ReplayMode) -> String {
    match mode {
        ReplayMode::ClosedLoop { depth: 1 } => "back to back".to_string(),
        ReplayMode::ClosedLoop { depth } => format!("back to back, depth {depth}"),
        ReplayMode::OpenLoop { speed: 1.0 } => "open loop".to_string(),
        ReplayMode::OpenLoop { speed } => format!("open loop, speed {speed}"),
        ReplayMode::Streams { streams, due, dependencies } => {
            let after = match due {
                Due::Absolute => "",
                Due::Shift => ", each request after the one before it",
            };
            let joined = match dependencies {
                Dependencies::InTurn => "",
                Dependencies::Latency => ", joined by recorded latency",
            };
            format!("{streams} streams{after}{joined}")
        }
        ReplayMode::Untimed => "back to back, untimed".to_string(),
        ReplayMode::Live => "live".to_string(),
    }
}
