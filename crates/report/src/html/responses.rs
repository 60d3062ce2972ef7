//! Response times over time, of reads and of writes: median, 99th percentile and longest, so that a stall is seen.

use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{Report, Run};
use super::super::series::Series;
use super::lines::time_label;
use super::strips::{Axes, Said, outline};
use crate::format::{duration, number};
use crate::page::open_section;
use crate::page::svg::{Canvas, Frame, GRID, HPos, INK, SCALE, area, colour_of, line, text};

/// Height of a strip.
const STRIP: i32 = 62 * SCALE;
/// Height that a label of the scale takes.
const LABEL: i32 = 16 * SCALE;
/// Strips that are not folded away.
const UNFOLDED_MAX: usize = 8;

/// What is said of a bucket, in the order of the series.
pub(super) const NAMES: [&str; 3] = ["p50", "p99", "longest"];

/// What a run took of one kind.
pub(super) struct Responses<'a> {
    /// Of the run in the report.
    pub index: usize,
    /// Whose it is.
    name: String,
    /// When the run ended.
    pub finish_s: f64,
    /// Median, 99th percentile and longest.
    pub series: [&'a Series; 3],
    summary: String,
}

/// The section; nothing where no run has response times over time.
pub(super) fn over_time(report: &Report, body: &mut String) {
    let kinds = kinds(report);
    if kinds.iter().all(|(_, of)| of.is_empty()) {
        return;
    }
    open_section(
        "Response times over time",
        "Of the requests that ended in each span of time: the median is filled, the line in colour is the 99th percentile, the \
         dark one the longest. The scale is logarithmic, and the same for reads and for writes. Where a line breaks, none ended.",
        body,
    );
    let longest = kinds.iter().flat_map(|(_, of)| of).flat_map(|of| of.series);
    let values = longest.flat_map(|series| &series.values).copied().filter(|ms| *ms > 0.0);
    let (low, high) =
        values.fold((f64::INFINITY, 0.0f64), |(low, high), ms| (low.min(ms), high.max(ms)));
    let low = low.min(high).log10().floor();
    let decades = (low, high.log10().ceil().max(low + 1.0));
    for (kind, of) in &kinds {
        if of.is_empty() {
            continue;
        }
        let _ = writeln!(body, "<h3>{kind}</h3>");
        let (shown, folded) = of.split_at(of.len().min(UNFOLDED_MAX));
        strips(kind, shown, decades, body);
        if !folded.is_empty() {
            let _ = writeln!(body, "<details><summary>{} of {} more</summary>", kind, folded.len());
            strips(kind, folded, decades, body);
            body.push_str("</details>\n");
        }
    }
    body.push_str("</section>\n");
}

/// The runs that have read and those that have written.
pub(super) fn kinds(report: &Report) -> [(&'static str, Vec<Responses<'_>>); 2] {
    let of_runs = |series: fn(&Run) -> [&Series; 3]| -> Vec<Responses<'_>> {
        let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
        let runs = runs.map(|(index, run)| {
            let series = series(run);
            let longest = series[2].values.iter().copied().enumerate();
            let (at, most) = longest.fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
            Responses {
                index,
                name: run.label(),
                finish_s: run.costs.finish_s,
                series,
                summary: format!(
                    "longest {}\nat {} s",
                    duration(most / 1000.0),
                    number(at as f64 * series[2].bucket_s)
                ),
            }
        });
        runs.filter(|of| !of.series[2].values.is_empty()).collect()
    };
    let reads = of_runs(|run| {
        let of = &run.figures.responses;
        [&of.read_p50_ms, &of.read_p99_ms, &of.read_max_ms]
    });
    let writes = of_runs(|run| {
        let of = &run.figures.responses;
        [&of.write_p50_ms, &of.write_p99_ms, &of.write_max_ms]
    });
    [("Reads", reads), ("Writes", writes)]
}

/// Which values the script reads out in the strip of a run.
pub(super) fn reader(kind: &str, index: usize) -> String {
    format!("{kind}-{index}")
}

fn strips(kind: &str, of: &[Responses<'_>], decades: (f64, f64), body: &mut String) {
    let end_s = of.iter().map(|of| of.finish_s).fold(0.0, f64::max);
    let axes = Axes { title: &format!("{kind} over time"), height: STRIP, end_s };
    axes.strips(
        of,
        |of| of.said(kind),
        body,
        |canvas, frame, of| {
            grid(canvas, frame, decades);
            of.draw(canvas, frame, decades);
        },
    );
}

/// A line for each decade, with labels where there is room, the highest first: that is where stalls are.
fn grid(canvas: &Canvas<'_>, frame: &Frame, (low, high): (f64, f64)) {
    let every = ((high - low) * f64::from(LABEL) / f64::from(STRIP)).ceil() as i32;
    for decade in low as i32..=high as i32 {
        let at = y_of(frame, (low, high), 10f64.powi(decade));
        line(canvas, &[(frame.left, at), (frame.right, at)], GRID, 1);
        if (high as i32 - decade) % every == 0 {
            text(canvas, &time_label(decade), (frame.left - 8 * SCALE, at), HPos::Right);
        }
    }
}

fn y_of(frame: &Frame, (low, high): (f64, f64), ms: f64) -> i32 {
    let share = (ms.log10().clamp(low, high) - low) / (high - low);
    frame.bottom - (share * f64::from(frame.bottom - frame.top)).round() as i32
}

impl Responses<'_> {
    fn said(&self, kind: &str) -> Said<'_> {
        let Responses { index, name, summary, .. } = self;
        Said { index: *index, reader: reader(kind, *index), name, summary }
    }

    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame, decades: (f64, f64)) {
        let [p50, p99, longest] = self.series;
        let y = |ms: f64| y_of(frame, decades, ms);
        // Where no request ended there is nothing to join.
        for (from, to) in spans(longest) {
            let part = |series: &Series| {
                let until_s = if to == series.values.len() {
                    self.finish_s
                } else {
                    to as f64 * series.bucket_s
                };
                let before = from as f64 * series.bucket_s;
                let part =
                    Series { bucket_s: series.bucket_s, values: series.values[from..to].to_vec() };
                let mut points = outline(&part, until_s - before, frame, y);
                let shift = frame.x(before) - frame.x(0.0);
                points.iter_mut().for_each(|point| point.0 += shift);
                points
            };
            let median = part(p50);
            let mut below = vec![(median[0].0, frame.bottom)];
            below.extend_from_slice(&median);
            below.push((below[below.len() - 1].0, frame.bottom));
            area(canvas, below, colour_of(self.index));
            line(canvas, &part(longest), INK, 1);
            line(canvas, &part(p99), colour_of(self.index), 1);
        }
    }
}

/// The runs of buckets in which requests ended.
fn spans(longest: &Series) -> Vec<(usize, usize)> {
    let mut spans = vec![];
    let mut at = 0;
    for part in longest.values.chunk_by(|a, b| (*a > 0.0) == (*b > 0.0)) {
        if part[0] > 0.0 {
            spans.push((at, at + part.len()));
        }
        at += part.len();
    }
    spans
}
