//! Line charts: response times, and strips over time.

use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{Figures, LatencyCdf, Report, Run};
use super::super::series::Series;
use crate::format::number;
use crate::page::svg::{
    Canvas, Frame, GRID, HPos, SCALE, WIDTH, area, colour_of, draw, ink, line, text, ticks,
};
use crate::page::{chip, escape, open_section};

/// Response times of all runs: logarithmic time across, nines up.
pub(super) fn latency(report: &Report, body: &mut String) {
    let runs: Vec<(usize, &LatencyCdf)> = report
        .runs
        .iter()
        .take(CHART_RUNS_MAX)
        .map(|run| &run.figures.latency_cdf)
        .enumerate()
        .filter(|(_, cdf)| !cdf.ms.is_empty())
        .collect();
    if runs.is_empty() {
        return;
    }
    open_section(
        "Response times",
        "Share of requests answered within a time. Each step up is ten times rarer, so the top of \
         a line is its slowest requests. A line further left is faster.",
        body,
    );
    legend(report, runs.iter().map(|(index, _)| *index), body);
    let axes = LatencyAxes::of(&runs);
    draw(&axes.frame, "Distribution of response times", body, |canvas| {
        axes.draw(canvas);
        for (index, cdf) in &runs {
            line(canvas, &axes.points(cdf), colour_of(*index), 2);
        }
    });
    body.push_str("</section>\n");
}

/// The axes of the response times: across, the decades of a millisecond that the runs span; up, from
/// all requests to the rarest.
struct LatencyAxes {
    frame: Frame,
    /// How many nines the top stands for.
    decades: f64,
}

impl LatencyAxes {
    fn of(runs: &[(usize, &LatencyCdf)]) -> LatencyAxes {
        let nonzero = |of: fn(&LatencyCdf) -> &[f64]| {
            let values = runs.iter().flat_map(move |(_, cdf)| of(cdf));
            values.copied().filter(|v| *v > 0.0)
        };
        let low = nonzero(|cdf| &cdf.ms).fold(f64::INFINITY, f64::min);
        let high = nonzero(|cdf| &cdf.ms).fold(low.min(1.0), f64::max);
        let low = if low.is_finite() { low } else { high };
        let rarest = nonzero(|cdf| &cdf.tail).fold(1.0, f64::min);
        LatencyAxes {
            frame: Frame {
                reader: "latency".to_string(),
                left: 84 * SCALE,
                right: WIDTH - 12 * SCALE,
                top: 12 * SCALE,
                bottom: 330 * SCALE,
                width: WIDTH,
                height: 382 * SCALE,
                from: low.log10().floor(),
                to: high.log10().ceil().max(low.log10().floor() + 1.0),
            },
            decades: (-rarest.log10()).ceil().clamp(2.0, 6.0),
        }
    }

    fn y(&self, nines: f64) -> i32 {
        let Frame { top, bottom, .. } = self.frame;
        bottom - (nines / self.decades * f64::from(bottom - top)).round() as i32
    }

    /// The grid and its labels.
    fn draw(&self, canvas: &Canvas<'_>) {
        let frame = &self.frame;
        for nines in 0..=self.decades as i32 {
            let at = self.y(f64::from(nines));
            line(canvas, &[(frame.left, at), (frame.right, at)], GRID, 1);
            let share = 100.0 - 100.0 * 0.1f64.powi(nines);
            let digits = (nines - 2).max(0) as usize;
            let label = format!("{share:.digits$} %");
            text(canvas, &label, (frame.left - 8 * SCALE, at), HPos::Right);
        }
        for decade in frame.from as i32..=frame.to as i32 {
            frame.mark(canvas, f64::from(decade), &time_label(decade));
        }
        frame.name_axis(canvas, "response time");
    }

    /// The line of a run.
    fn points(&self, cdf: &LatencyCdf) -> Vec<(i32, i32)> {
        let frame = &self.frame;
        let mut points = vec![];
        for (ms, tail) in cdf.ms.iter().zip(&cdf.tail) {
            let across = frame.x(ms.log10().clamp(frame.from, frame.to));
            // The last step of a distribution is the slowest request: draw it to the top.
            let nines = match *tail > 0.0 {
                true => -tail.log10(),
                false => self.decades,
            };
            if points.is_empty() {
                points.push((across, self.y(0.0)));
            }
            points.push((across, self.y(nines.min(self.decades))));
        }
        points.dedup();
        points
    }
}

/// Host throughput of each run over time, reads and writes together.
pub(super) fn throughput(report: &Report, body: &mut String) {
    let strips = strips(report, |run| {
        let series = total_mib_per_s(&run.figures);
        let mean = mean(&series, run.costs.finish_s);
        (series, format!("{} MiB/s", number(mean)))
    });
    let chart = Panels {
        reader: "throughput",
        title: "Throughput over time",
        full: None,
        full_label: &|most| format!("{} MiB/s", number(most)),
    };
    let why = "Host reads and writes completed, on one scale; the mean is at the right. A run \
               that ends early did the same work in less time.";
    section(&chart, why, &strips, body);
}

/// How full the persistent cache of each run was.
pub(super) fn persistent_cache_fill(report: &Report, body: &mut String) {
    let strips = strips(report, |run| {
        let summary = match run.log.persistent_cache_full_s {
            0.0 => "never full".to_string(),
            full_s => format!("full for {} s", number(full_s)),
        };
        (run.figures.persistent_cache_fill.clone(), summary)
    });
    let chart = Panels {
        reader: "fill",
        title: "Persistent cache fill over time",
        full: Some(1.0),
        full_label: &|_| "100 %".to_string(),
    };
    let why = "Share of the drive's persistent cache in use. At the top line it is full and \
               writes wait for a band rewrite.";
    section(&chart, why, &strips, body);
}

/// The mean of a series over a run that ended at `finish_s`.
pub(super) fn mean(series: &Series, finish_s: f64) -> f64 {
    // The last bucket reaches to the end of the run, whatever the width of the others.
    let Some((last, others)) = series.values.split_last().filter(|_| finish_s > 0.0) else {
        return 0.0;
    };
    let others_s = others.len() as f64 * series.bucket_s;
    let total = others.iter().sum::<f64>() * series.bucket_s + last * (finish_s - others_s);
    total / finish_s
}

/// Reads plus writes, bucket by bucket.
pub(super) fn total_mib_per_s(figures: &Figures) -> Series {
    let (reads, writes) = (&figures.read_mib_per_s, &figures.write_mib_per_s);
    let values = (0..reads.values.len().max(writes.values.len())).map(|i| {
        reads.values.get(i).copied().unwrap_or(0.0) + writes.values.get(i).copied().unwrap_or(0.0)
    });
    Series { bucket_s: reads.bucket_s.max(writes.bucket_s), values: values.collect() }
}

/// A chart of strips, all on the same axes.
pub(super) struct Panels<'a> {
    /// Which values the script reads out there.
    pub reader: &'a str,
    /// What it is called.
    pub title: &'a str,
    /// Value at the top of a strip; the largest value when not given.
    pub full: Option<f64>,
    /// What stands at the top, by its value.
    pub full_label: &'a dyn Fn(f64) -> String,
}

const STRIP: i32 = 46 * SCALE;
const STRIP_GAP: i32 = 14 * SCALE;

/// What a run, or a node of it, has in a chart of strips.
pub(super) struct Strip {
    /// Of the run in the report.
    pub index: usize,
    /// Whose it is.
    pub name: String,
    /// When the run ended.
    pub finish_s: f64,
    /// The values; one at least.
    pub series: Series,
    /// What is said of them at the right.
    pub summary: String,
    /// Value at the top of it; that of the chart when not given.
    pub full: Option<f64>,
}

/// A strip of each run that has something to show, with what is said of it.
fn strips(report: &Report, show: impl Fn(&Run) -> (Series, String)) -> Vec<Strip> {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let strips = runs.map(|(index, run)| {
        let (series, summary) = show(run);
        Strip {
            index,
            name: run.label(),
            finish_s: run.costs.finish_s,
            series,
            summary,
            full: None,
        }
    });
    strips.filter(|strip| !strip.series.values.is_empty()).collect()
}

/// A section with one chart of strips; nothing without strips.
fn section(chart: &Panels<'_>, why: &str, strips: &[Strip], body: &mut String) {
    if strips.is_empty() {
        return;
    }
    open_section(chart.title, why, body);
    panels(chart, strips, body);
    body.push_str("</section>\n");
}

/// The strips one below the other; there is one at least.
pub(super) fn panels(chart: &Panels<'_>, strips: &[Strip], body: &mut String) {
    let values = strips.iter().flat_map(|strip| &strip.series.values);
    let most = values.copied().fold(0.0, f64::max);
    let full = chart.full.unwrap_or(most).max(f64::MIN_POSITIVE);
    let frame = chart.frame(strips);
    draw(&frame, chart.title, body, |canvas| {
        for tick in ticks(frame.to, 10.0) {
            frame.mark(canvas, tick, &number(tick));
        }
        frame.name_axis(canvas, "time, s");
        let label = (chart.full_label)(full);
        let above = (frame.left, frame.top - 10 * SCALE);
        text(canvas, &label, above, HPos::Left);
        for (position, strip) in strips.iter().enumerate() {
            let low = frame.top + position as i32 * (STRIP + STRIP_GAP) + STRIP;
            strip.draw(canvas, &frame, low, strip.full.unwrap_or(full));
            let centre = (frame.right + 12 * SCALE, low - STRIP / 2);
            text(canvas, &strip.summary, centre, HPos::Left);
        }
    });
}

impl Panels<'_> {
    /// The strips one below the other, from the start to the end of the longest run.
    fn frame(&self, strips: &[Strip]) -> Frame {
        let ends_s = strips.iter().map(|strip| strip.finish_s);
        let top = 24 * SCALE;
        let bottom = top + strips.len() as i32 * (STRIP + STRIP_GAP) - STRIP_GAP;
        Frame {
            reader: self.reader.to_string(),
            left: 150 * SCALE,
            right: WIDTH - 118 * SCALE,
            top,
            bottom,
            width: WIDTH,
            height: bottom + 52 * SCALE,
            from: 0.0,
            to: ends_s.fold(0.0, f64::max).max(1e-9),
        }
    }
}

impl Strip {
    /// The strip whose lower edge is at `low` and whose upper edge stands for `full`: its edges, its
    /// values as a filled area, and its name at the left.
    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame, low: i32, full: f64) {
        for edge in [low - STRIP, low] {
            line(canvas, &[(frame.left, edge), (frame.right, edge)], GRID, 1);
        }
        let y = |value: f64| low - (value.min(full) / full * f64::from(STRIP)) as i32;
        let outline = self.outline(frame, y);
        let mut below = vec![(outline[0].0, low)];
        below.extend_from_slice(&outline);
        below.push((below[below.len() - 1].0, low));
        let colour = colour_of(self.index);
        area(canvas, below, colour);
        line(canvas, &outline, colour, 1);
        let name: String = self.name.chars().take(22).collect();
        let centre = (frame.left - 14 * SCALE, low - STRIP / 2);
        ink(canvas, &name, centre, HPos::Right);
    }

    /// A step for each bucket; the last reaches to the end of the run.
    fn outline(&self, frame: &Frame, y: impl Fn(f64) -> i32) -> Vec<(i32, i32)> {
        let Series { bucket_s, values } = &self.series;
        let finish_s = self.finish_s;
        let mut outline = vec![];
        for (i, value) in values.iter().enumerate() {
            let from = frame.x((i as f64 * bucket_s).min(finish_s));
            let is_last = i + 1 == values.len();
            let end = (i + 1) as f64 * bucket_s;
            let to = frame.x(if is_last { finish_s } else { end.min(finish_s) });
            outline.push((from, y(*value)));
            outline.push((to, y(*value)));
        }
        outline.dedup();
        outline
    }
}

fn legend(report: &Report, shown: impl Iterator<Item = usize>, body: &mut String) {
    body.push_str("<ul class=\"legend\" aria-label=\"systems\">");
    for index in shown {
        let _ = write!(
            body,
            "<li><button type=\"button\" data-run=\"{index}\" aria-pressed=\"true\">{}{}</button></li>",
            chip(index),
            escape(&report.runs[index].label())
        );
    }
    body.push_str("</ul>\n");
}

/// `10^decade` milliseconds in the unit people use for it.
fn time_label(decade: i32) -> String {
    let (unit, exponent) = match decade {
        ..-3 => ("ns", decade + 6),
        -3..0 => ("us", decade + 3),
        0..3 => ("ms", decade),
        _ => ("s", decade - 3),
    };
    match exponent {
        0.. => format!("{} {unit}", 10u64.pow(exponent as u32)),
        _ => format!("{} {unit}", 10f64.powi(exponent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_use_the_nearest_unit() {
        let shown: Vec<String> = (-5..=4).map(time_label).collect();
        let expected = [
            "10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s", "10 s",
        ];
        assert_eq!(shown, expected);
    }
}
