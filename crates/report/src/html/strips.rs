//! Strips over time: what each run had, one below the other on the same axes.

use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{Figures, ReplayMode, Report, Run};
use super::super::series::Series;
use crate::format::{number, short};
use crate::page::svg::{
    Canvas, Frame, GRID, HPos, INK, SCALE, WIDTH, area, colour_of, dot, draw, ink, line, text,
    ticks,
};
use crate::page::{chip, escape, open_section};

/// Share of the buckets that the scale of a chart shows whole where the others would flatten them.
const SHOWN_SHARE: f64 = 0.98;
/// A peak flattens a chart when it is so many times what this share of the buckets does not exceed.
const FLATTENS: f64 = 3.0;

/// The scale is logarithmic where the mean of a run is more than so many times that of another: on a linear one the lesser would lie
/// on the axis.
const DIFFER: f64 = 20.0;

/// Height of a strip.
const STRIP: i32 = 46 * SCALE;
/// What lies above and below a strip.
const MARGIN: i32 = 9 * SCALE;
/// What the labels of the time take below the last strip.
const TIME_AXIS: i32 = 52 * SCALE;
/// What the labels of its own scale take at the left of a strip.
const SCALE_LABELS: i32 = 78 * SCALE;

/// Host throughput of each run over time, reads and writes together.
pub(super) fn throughput(report: &Report, body: &mut String) {
    let strips = strips(report, |run| {
        let series = total_mib_per_s(&run.figures);
        let summary = mean_and_peak(&series, run, " MiB/s");
        (series, summary)
    });
    let chart = Panels {
        reader: "throughput",
        title: "Throughput over time",
        full: Full::Usual,
        full_label: &|most| format!("{} MiB/s", short(most)),
    };
    let why = "Host reads and writes completed, on one scale; the mean is at the right. A run \
               that ends early did the same work in less time.";
    section(&chart, why, &strips, body);
}

/// How many requests of each run were under way over time; nothing where all were replayed back to back, which keeps as many
/// under way as its depth says.
pub(super) fn under_way(report: &Report, body: &mut String) {
    let by_depth = |run: &Run| matches!(run.inputs.replay, ReplayMode::ClosedLoop { .. });
    if report.runs.iter().all(by_depth) {
        return;
    }
    let strips = strips(report, |run| {
        let series = run.figures.requests_under_way.clone();
        let summary = mean_and_peak(&series, run, "");
        (series, summary)
    });
    let chart = Panels {
        reader: "under-way",
        title: "Requests under way over time",
        full: Full::Usual,
        full_label: &number,
    };
    let why = "Host requests that had been issued and not answered, on one scale; the mean is at the right. Where \
               requests come by the clock, a stall piles them up.";
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
        full: Full::At(1.0),
        full_label: &|_| "100 %".to_string(),
    };
    let why = "Share of the drive's persistent cache in use. At the top line it is full and \
               writes wait for a band rewrite.";
    section(&chart, why, &strips, body);
}

/// The mean of a series and its greatest value with its time.
fn mean_and_peak(series: &Series, run: &Run, unit: &str) -> String {
    let mean = mean(series, run.costs.finish_s);
    let (at, most) = peak(series);
    let at = number(at as f64 * series.bucket_s);
    format!("{}{unit}\npeak {} at {at} s", number(mean), number(most))
}

/// The bucket of the greatest value, the first of several, and that value.
fn peak(series: &Series) -> (usize, f64) {
    let values = series.values.iter().copied().enumerate();
    values.fold((0, 0.0), |most, value| if value.1 > most.1 { value } else { most })
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
    /// Which value is at the top of a strip that has none of its own.
    pub full: Full,
    /// What stands at the top, by its value.
    pub full_label: &'a dyn Fn(f64) -> String,
}

/// Which value is at the top of the strips of a chart.
#[derive(Clone, Copy)]
pub(super) enum Full {
    /// This one.
    At(f64),
    /// The greatest of all, unless it flattens the others: then what nearly all buckets do not exceed. What is
    /// higher is cut, and its peak marked. Where the means differ too much for that, the scale is logarithmic.
    Usual,
}

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
    /// What is said of them at the right, line by line.
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
    let shared = shared_scale(chart, strips);
    let end_s = strips.iter().map(|strip| strip.finish_s).fold(0.0, f64::max);
    let axes = Axes { title: chart.title, height: STRIP, end_s };
    axes.strips(
        strips,
        |strip| strip.said(chart.reader),
        body,
        |canvas, frame, strip| {
            let scale = strip.full.map_or(shared, ValueScale::linear);
            let label = |value| match strip.full {
                Some(_) => number(value),
                None => (chart.full_label)(value),
            };
            let beside = frame.left - 8 * SCALE;
            text(canvas, &label(scale.full), (beside, frame.top), HPos::Right);
            let low = scale.low.map_or("0".to_string(), label);
            text(canvas, &low, (beside, frame.bottom), HPos::Right);
            strip.draw(canvas, frame, scale, chart.full_label);
        },
    );
    let most = strips.iter().map(|strip| peak(&strip.series).1).fold(0.0, f64::max);
    let full = escape(&(chart.full_label)(shared.full));
    let said = match shared.low {
        _ if strips.iter().all(|strip| strip.full.is_some()) => return,
        Some(low) => format!(
            "The scale is logarithmic, because the runs differ so much: from {}, or less, to {full}.",
            escape(&(chart.full_label)(low))
        ),
        None if shared.full < most => format!(
            "The scale ends at {full}, 20 % above what {} % of the values do not exceed. What is higher is cut, and its \
             peak is marked with its value.",
            100.0 * SHOWN_SHARE
        ),
        None => return,
    };
    let _ = writeln!(body, "<p class=\"why below\">{said}</p>");
}

/// The values between the lower and the upper edge of a strip.
#[derive(Clone, Copy)]
struct ValueScale {
    /// At the lower edge of a logarithmic scale; what is less lies there too. A linear one begins at 0.
    low: Option<f64>,
    full: f64,
}

impl ValueScale {
    fn linear(full: f64) -> ValueScale {
        ValueScale { low: None, full: full.max(f64::MIN_POSITIVE) }
    }

    /// How far up a value is, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        match self.low {
            None => value.min(self.full) / self.full,
            Some(low) => (value.clamp(low, self.full) / low).log10() / (self.full / low).log10(),
        }
    }
}

/// The scale of the strips that have none of their own.
fn shared_scale(chart: &Panels<'_>, strips: &[Strip]) -> ValueScale {
    if let Full::At(full) = chart.full {
        return ValueScale::linear(full);
    }
    let values = || strips.iter().flat_map(|strip| strip.series.values.iter().copied());
    let most = values().fold(0.0, f64::max);
    let means = strips.iter().map(|strip| mean(&strip.series, strip.finish_s));
    let (least, greatest) = (means.filter(|mean| *mean > 0.0))
        .fold((f64::INFINITY, 0.0f64), |(least, greatest), mean| {
            (least.min(mean), greatest.max(mean))
        });
    match greatest > DIFFER * least {
        true => ValueScale {
            low: Some(10f64.powf((least / 10.0).log10().ceil())),
            full: 10f64.powf(most.log10().ceil()),
        },
        false => ValueScale::linear(usual(values()).unwrap_or(most)),
    }
}

/// What the scale shows whole where the greatest value would flatten the others.
fn usual(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    values.sort_by(f64::total_cmp);
    let usual = *values.get(((values.len() as f64 * SHOWN_SHARE) as usize).checked_sub(1)?)?;
    (values[values.len() - 1] > FLATTENS * usual).then_some(1.2 * usual)
}

/// The axes that strips share: what they are called, how high each is and until when the time goes.
pub(super) struct Axes<'a> {
    pub title: &'a str,
    pub height: i32,
    pub end_s: f64,
}

/// What stands beside a strip.
pub(super) struct Said<'a> {
    /// Of the run in the report.
    pub index: usize,
    /// Which values the script reads out there.
    pub reader: String,
    pub name: &'a str,
    pub summary: &'a str,
}

impl Axes<'_> {
    /// A list of strips, each with what is said of it. `paint` draws into the frame of one.
    pub fn strips<'s, S>(
        &self,
        strips: &'s [S],
        said: impl Fn(&'s S) -> Said<'s>,
        body: &mut String,
        paint: impl Fn(&Canvas<'_>, &Frame, &'s S),
    ) {
        body.push_str("<div class=\"strips\">\n");
        for (position, strip) in strips.iter().enumerate() {
            let Said { index, reader, name, summary } = said(strip);
            let is_last = position + 1 == strips.len();
            let frame = self.frame(reader, is_last);
            let _ = write!(
                body,
                "<div class=\"strip\"><span class=\"who\">{}<span>{}</span></span>",
                chip(index),
                escape(name)
            );
            draw(&frame, &format!("{}: {name}", self.title), body, |canvas| {
                for tick in ticks(frame.to, 10.0) {
                    match is_last {
                        true => frame.mark(canvas, tick, &short(tick)),
                        false => frame.rule(canvas, tick),
                    }
                }
                if is_last {
                    frame.name_axis(canvas, "time, s");
                }
                for edge in [frame.top, frame.bottom] {
                    line(canvas, &[(frame.left, edge), (frame.right, edge)], GRID, 1);
                }
                paint(canvas, &frame, strip);
            });
            let _ = writeln!(
                body,
                "<span class=\"sum\">{}</span></div>",
                escape(summary).replace('\n', "<br>")
            );
        }
        body.push_str("</div>\n");
    }

    /// From the start to the end of the longest run, with labels of the time below the last strip.
    fn frame(&self, reader: String, is_last: bool) -> Frame {
        let bottom = MARGIN + self.height;
        Frame {
            reader,
            left: SCALE_LABELS,
            right: WIDTH - 10 * SCALE,
            top: MARGIN,
            bottom,
            width: WIDTH,
            height: bottom + if is_last { TIME_AXIS } else { MARGIN },
            from: 0.0,
            to: self.end_s.max(1e-9),
        }
    }
}

impl Strip {
    fn said(&self, reader: &str) -> Said<'_> {
        let Strip { index, name, summary, .. } = self;
        Said { index: *index, reader: reader.to_string(), name, summary }
    }

    /// The values as a filled area, and the peak of those that are cut.
    fn draw(
        &self,
        canvas: &Canvas<'_>,
        frame: &Frame,
        scale: ValueScale,
        label: &dyn Fn(f64) -> String,
    ) {
        let high = f64::from(frame.bottom - frame.top);
        let y = |value: f64| frame.bottom - (scale.share(value) * high) as i32;
        let outline = outline(&self.series, self.finish_s, frame, y);
        let mut below = vec![(outline[0].0, frame.bottom)];
        below.extend_from_slice(&outline);
        below.push((below[below.len() - 1].0, frame.bottom));
        let colour = colour_of(self.index);
        area(canvas, below, colour);
        line(canvas, &outline, colour, 1);
        let (at, most) = peak(&self.series);
        if most > scale.full {
            let x = frame.x(((at as f64 + 0.5) * self.series.bucket_s).min(self.finish_s));
            dot(canvas, (x, frame.top), INK);
            let (beside, anchor) = match 3 * (x - frame.left) < 2 * (frame.right - frame.left) {
                true => (x + 8 * SCALE, HPos::Left),
                false => (x - 8 * SCALE, HPos::Right),
            };
            ink(canvas, &label(most), (beside, frame.top + 8 * SCALE), anchor);
        }
    }
}

/// A step for each bucket; the last reaches to the end of the run.
pub(super) fn outline(
    Series { bucket_s, values }: &Series,
    finish_s: f64,
    frame: &Frame,
    y: impl Fn(f64) -> i32,
) -> Vec<(i32, i32)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_too_much_have_a_logarithmic_scale() {
        let strip = |value: f64| Strip {
            index: 0,
            name: String::new(),
            finish_s: 2.0,
            series: Series { bucket_s: 1.0, values: vec![value, value] },
            summary: String::new(),
            full: None,
        };
        let chart = |full| Panels { reader: "", title: "", full, full_label: &number };
        let near = shared_scale(&chart(Full::Usual), &[strip(2.0), strip(30.0), strip(0.0)]);
        assert_eq!((near.low, near.full, near.share(15.0)), (None, 30.0, 0.5));
        let far = shared_scale(&chart(Full::Usual), &[strip(0.5), strip(300.0)]);
        assert_eq!((far.low, far.full), (Some(0.1), 1000.0));
        assert_eq!([0.0, 0.1, 10.0, 1000.0].map(|value| far.share(value)), [0.0, 0.0, 0.5, 1.0]);
        let fixed = shared_scale(&chart(Full::At(100.0)), &[strip(0.5), strip(300.0)]);
        assert_eq!((fixed.low, fixed.full), (None, 100.0));
        assert_eq!(shared_scale(&chart(Full::Usual), &[strip(0.0)]).share(0.0), 0.0);
    }

    #[test]
    fn a_peak_that_flattens_the_others_is_cut() {
        let level = std::iter::repeat_n(10.0, 200);
        assert_eq!(usual(level.clone()), None);
        assert_eq!(usual(level.clone().chain([20.0])), None, "the others are still seen");
        assert_eq!(usual(level.clone().chain([1000.0])), Some(12.0));
        assert_eq!(usual([5.0].into_iter()), None);
        assert_eq!(usual(std::iter::empty()), None);
        let bursts = level.chain(std::iter::repeat_n(1000.0, 50));
        assert_eq!(usual(bursts), None, "what comes often is not a peak");
    }
}
