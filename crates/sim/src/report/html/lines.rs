//! Line charts as SVG. Colours are placeholders while plotters draws and become CSS variables
//! afterwards, so that one picture serves light and dark pages.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::format::number;
use super::super::report::{Figures, LatencyCdf, Report, Run, Series};
use super::{CHART_RUNS_MAX, chip, escape, open_section};

/// The SVG is drawn at twice the size it is shown at, because plotters rounds to whole units.
const SCALE: i32 = 2;
const WIDTH: i32 = 1070 * SCALE;
/// Why drawing has no error to report.
const IN_MEMORY: &str = "drawing into a string cannot fail";

const FONT: i32 = 15 * SCALE;

/// Placeholder colours: red and green say "a variable", blue says which.
const INK: RGBColor = RGBColor(1, 2, 250);
const MUTED: RGBColor = RGBColor(1, 2, 251);
const GRID: RGBColor = RGBColor(1, 2, 252);

const fn run_colour(index: usize) -> RGBColor {
    RGBColor(1, 2, index as u8)
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Where a chart lies in its SVG and what its horizontal axis spans, for the script.
struct Frame {
    reader: &'static str,
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    height: i32,
    from: f64,
    to: f64,
}

impl Frame {
    fn x(&self, value: f64) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    /// A line of the grid at a value of the horizontal axis, with its label.
    fn mark(&self, canvas: &Canvas<'_>, value: f64, label: &str) {
        let at = self.x(value);
        line(canvas, &[(at, self.top), (at, self.bottom)], GRID, 1);
        text(canvas, label, (at, self.bottom + 18 * SCALE), HPos::Center);
    }

    /// What the horizontal axis shows.
    fn name_axis(&self, canvas: &Canvas<'_>, name: &str) {
        let middle = ((self.left + self.right) / 2, self.bottom + 40 * SCALE);
        text(canvas, name, middle, HPos::Center);
    }
}

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
    draw(
        &axes.frame,
        "Distribution of response times",
        body,
        |canvas| {
            axes.draw(canvas);
            for (index, cdf) in &runs {
                line(canvas, &axes.points(cdf), run_colour(*index), 2);
            }
        },
    );
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
                reader: "latency",
                left: 84 * SCALE,
                right: WIDTH - 12 * SCALE,
                top: 12 * SCALE,
                bottom: 330 * SCALE,
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
    let show = |run: &Run| total_mib_per_s(&run.figures);
    let summary = |run: &Run, series: &Series| {
        // The last bucket reaches to the end of the run, whatever the width of the others.
        let (last, others) = series.values.split_last().expect("strips have values");
        let others_s = others.len() as f64 * series.bucket_s;
        let total =
            others.iter().sum::<f64>() * series.bucket_s + last * (run.costs.finish_s - others_s);
        format!(
            "{} MiB/s",
            number(if run.costs.finish_s > 0.0 {
                total / run.costs.finish_s
            } else {
                0.0
            })
        )
    };
    panels(
        report,
        &Panels {
            reader: "throughput",
            title: "Throughput over time",
            why: "Host reads and writes completed, on one scale; the mean is at the right. A run \
                  that ends early did the same work in less time.",
            full: None,
            full_label: &|most| format!("{} MiB/s", number(most)),
        },
        show,
        summary,
        body,
    );
}

/// How full the persistent cache of each run was.
pub(super) fn persistent_cache_fill(report: &Report, body: &mut String) {
    let show = |run: &Run| run.figures.persistent_cache_fill.clone();
    let summary = |run: &Run, _: &Series| match run.log.persistent_cache_full_s {
        0.0 => "never full".to_string(),
        full_s => format!("full for {} s", number(full_s)),
    };
    panels(
        report,
        &Panels {
            reader: "fill",
            title: "Persistent cache fill over time",
            why: "Share of the drive's persistent cache in use. At the top line it is full and \
                  writes wait for a band rewrite.",
            full: Some(1.0),
            full_label: &|_| "100 %".to_string(),
        },
        show,
        summary,
        body,
    );
}

/// Reads plus writes, bucket by bucket.
pub(super) fn total_mib_per_s(figures: &Figures) -> Series {
    let (reads, writes) = (&figures.read_mib_per_s, &figures.write_mib_per_s);
    let values = (0..reads.values.len().max(writes.values.len())).map(|i| {
        reads.values.get(i).copied().unwrap_or(0.0) + writes.values.get(i).copied().unwrap_or(0.0)
    });
    Series {
        bucket_s: reads.bucket_s.max(writes.bucket_s),
        values: values.collect(),
    }
}

/// A chart of one strip a run, all on the same axes.
struct Panels<'a> {
    reader: &'static str,
    title: &'a str,
    why: &'a str,
    /// Value at the top of a strip; the largest value when not given.
    full: Option<f64>,
    full_label: &'a dyn Fn(f64) -> String,
}

const STRIP: i32 = 46 * SCALE;
const STRIP_GAP: i32 = 14 * SCALE;

/// What a run has in a chart of strips.
struct Strip<'a> {
    /// Of the run in the report.
    index: usize,
    run: &'a Run,
    series: Series,
}

fn panels(
    report: &Report,
    chart: &Panels<'_>,
    show: impl Fn(&Run) -> Series,
    summary: impl Fn(&Run, &Series) -> String,
    body: &mut String,
) {
    let runs = report.runs.iter().take(CHART_RUNS_MAX).enumerate();
    let strips: Vec<Strip<'_>> = runs
        .map(|(index, run)| Strip {
            index,
            run,
            series: show(run),
        })
        .filter(|strip| !strip.series.values.is_empty())
        .collect();
    if strips.is_empty() {
        return;
    }
    open_section(chart.title, chart.why, body);
    let values = strips.iter().flat_map(|strip| &strip.series.values);
    let most = values.copied().fold(0.0, f64::max);
    let full = chart.full.unwrap_or(most).max(f64::MIN_POSITIVE);
    let frame = chart.frame(&strips);
    draw(&frame, chart.title, body, |canvas| {
        for tick in ticks(frame.to) {
            frame.mark(canvas, tick, &number(tick));
        }
        frame.name_axis(canvas, "time, s");
        let label = (chart.full_label)(full);
        let above = (frame.left, frame.top - 10 * SCALE);
        text(canvas, &label, above, HPos::Left);
        for (position, strip) in strips.iter().enumerate() {
            let low = frame.top + position as i32 * (STRIP + STRIP_GAP) + STRIP;
            strip.draw(canvas, &frame, low, full);
            let centre = (frame.right + 12 * SCALE, low - STRIP / 2);
            text(
                canvas,
                &summary(strip.run, &strip.series),
                centre,
                HPos::Left,
            );
        }
    });
    body.push_str("</section>\n");
}

impl Panels<'_> {
    /// The strips one below the other, from the start to the end of the longest run.
    fn frame(&self, strips: &[Strip<'_>]) -> Frame {
        let ends_s = strips.iter().map(|strip| strip.run.costs.finish_s);
        let top = 24 * SCALE;
        let bottom = top + strips.len() as i32 * (STRIP + STRIP_GAP) - STRIP_GAP;
        Frame {
            reader: self.reader,
            left: 150 * SCALE,
            right: WIDTH - 118 * SCALE,
            top,
            bottom,
            height: bottom + 52 * SCALE,
            from: 0.0,
            to: ends_s.fold(0.0, f64::max).max(1e-9),
        }
    }
}

impl Strip<'_> {
    /// The strip whose lower edge is at `low` and whose upper edge stands for `full`: its edges, its
    /// values as a filled area, and the name of the run at the left.
    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame, low: i32, full: f64) {
        for edge in [low - STRIP, low] {
            line(canvas, &[(frame.left, edge), (frame.right, edge)], GRID, 1);
        }
        let y = |value: f64| low - (value.min(full) / full * f64::from(STRIP)) as i32;
        let outline = self.outline(frame, y);
        let mut area = vec![(outline[0].0, low)];
        area.extend_from_slice(&outline);
        area.push((area[area.len() - 1].0, low));
        let colour = run_colour(self.index);
        canvas
            .draw(&Polygon::new(area, colour.mix(0.22).filled()))
            .expect(IN_MEMORY);
        line(canvas, &outline, colour, 1);
        let name: String = self.run.label().chars().take(22).collect();
        let centre = (frame.left - 14 * SCALE, low - STRIP / 2);
        ink(canvas, &name, centre, HPos::Right);
    }

    /// A step for each bucket; the last reaches to the end of the run.
    fn outline(&self, frame: &Frame, y: impl Fn(f64) -> i32) -> Vec<(i32, i32)> {
        let Series { bucket_s, values } = &self.series;
        let finish_s = self.run.costs.finish_s;
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

/// Draws into an SVG of the frame's size and appends it, made accessible and themeable.
fn draw(frame: &Frame, title: &str, body: &mut String, paint: impl FnOnce(&Canvas<'_>)) {
    let mut svg = String::new();
    let canvas =
        SVGBackend::with_string(&mut svg, (WIDTH as u32, frame.height as u32)).into_drawing_area();
    paint(&canvas);
    canvas.present().expect(IN_MEMORY);
    drop(canvas);
    // The size and the namespace in the opening tag are for files; the page sets its own.
    let content = svg.split_once('>').map_or("", |(_, content)| content);
    let mut content = content
        .replace("\"#0102FA\"", "\"var(--ink)\"")
        .replace("\"#0102FB\"", "\"var(--muted)\"")
        .replace("\"#0102FC\"", "\"var(--grid)\"")
        .replace("opacity=\"1\" ", "")
        .replace(" />", "/>")
        .replace('\n', "");
    for index in 0..CHART_RUNS_MAX {
        content = content.replace(
            &format!("\"#0102{index:02X}\""),
            &format!("\"var(--s{index})\""),
        );
    }
    let share = |value: i32, whole: i32| f64::from(value) / f64::from(whole);
    let _ = writeln!(
        body,
        "<div class=\"plot\" data-reader=\"{}\" data-left=\"{:.5}\" data-right=\"{:.5}\" \
         data-top=\"{:.5}\" data-bottom=\"{:.5}\" data-from=\"{}\" data-to=\"{}\">\
         <svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{}\">{content}</div>",
        frame.reader,
        share(frame.left, WIDTH),
        share(frame.right, WIDTH),
        share(frame.top, frame.height),
        share(frame.bottom, frame.height),
        frame.from,
        frame.to,
        frame.height,
        escape(title),
    );
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

fn line(canvas: &Canvas<'_>, points: &[(i32, i32)], colour: RGBColor, width: i32) {
    let style = colour.stroke_width((width * SCALE) as u32);
    canvas
        .draw(&PathElement::new(points.to_vec(), style))
        .expect(IN_MEMORY);
}

fn text(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos) {
    label_in(canvas, label, at, anchor, MUTED);
}

fn ink(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos) {
    label_in(canvas, label, at, anchor, INK);
}

fn label_in(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos, colour: RGBColor) {
    let style = TextStyle::from(("inherit", FONT).into_font())
        .color(&colour)
        .pos(Pos::new(anchor, VPos::Center));
    canvas
        .draw(&Text::new(label.to_string(), at, style))
        .expect(IN_MEMORY);
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

/// Round values from 0 to `end`, five to ten of them.
fn ticks(end: f64) -> Vec<f64> {
    let magnitude = 10f64.powf(end.log10().floor());
    let step = [0.1, 0.2, 0.5, 1.0]
        .map(|share| share * magnitude)
        .into_iter()
        .find(|step| end / step <= 10.0)
        .unwrap_or(magnitude);
    (0..=(end / step) as usize)
        .map(|i| i as f64 * step)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(100.0).len(), 11);
        assert_eq!(
            ticks(730.0),
            [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0]
        );
        for end in [1e-9, 0.3, 1.7, 12.0, 99.0, 4321.0] {
            let ticks = ticks(end);
            assert!((4..=11).contains(&ticks.len()), "{end}: {ticks:?}");
            assert!(ticks[ticks.len() - 1] <= end * 1.000001);
        }
    }

    #[test]
    fn times_use_the_nearest_unit() {
        let shown: Vec<String> = (-5..=4).map(time_label).collect();
        let expected = [
            "10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s", "10 s",
        ];
        assert_eq!(shown, expected);
    }
}
