//! Figures over swept keys: a line for each system, a chart for each setting of the other keys.

use super::super::drawn::SWEEP_SETTINGS_MAX;
use super::super::report::Report;
use super::super::swept::{SWEPT_METRICS, Sweep, SweptMetric, short, text_of};
use crate::format;
use crate::page::svg::{
    Canvas, Frame, GRID, HPos, SCALE, WIDTH, colour_of, dot, draw, line, text, ticks,
};
use crate::page::{COLOURS, chip, escape, open_section};
use serde::Serialize;
use std::fmt::Write as _;

/// Two charts stand beside each other.
const HALF_WIDTH: i32 = WIDTH / 2;

/// A figure over a key, as the script reads it out.
#[derive(Serialize)]
pub(super) struct SweptChart {
    reader: String,
    title: String,
    unit: &'static str,
    axis: String,
    /// The values of the key.
    values: Vec<String>,
    lines: Vec<ChartLine>,
}

#[derive(Serialize)]
struct ChartLine {
    /// Number of the system among those of the report.
    index: usize,
    name: String,
    /// By value of the key.
    values: Vec<Option<f64>>,
}

/// The charts of a key at one setting of the others.
struct Group<'a> {
    key: &'a str,
    setting: String,
    charts: Vec<SweptChart>,
}

/// All that are drawn.
pub(super) fn charts(report: &Report) -> Vec<SweptChart> {
    groups(report).into_iter().flat_map(|group| group.charts).collect()
}

fn groups(report: &Report) -> Vec<Group<'_>> {
    let sweeps = report.sweeps();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (number, sweep) in sweeps.iter().enumerate() {
        let of_key = groups.iter().filter(|group| group.key == sweep.key).count();
        if of_key < SWEEP_SETTINGS_MAX {
            let chart = |(metric, of): (usize, &SweptMetric)| {
                SweptChart::of(format!("swept-{number}-{metric}"), sweep, of)
            };
            let charts = SWEPT_METRICS.iter().enumerate().filter_map(chart).collect();
            groups.push(Group { key: sweep.key, setting: sweep.setting(), charts });
        }
    }
    groups.retain(|group| !group.charts.is_empty());
    groups
}

/// A section for each swept key; nothing where none is swept.
pub(in super::super) fn over_keys(report: &Report, body: &mut String) {
    let (groups, sweeps) = (groups(report), report.sweeps());
    let mut keys: Vec<&str> = groups.iter().map(|group| group.key).collect();
    keys.dedup();
    for key in keys {
        let why = "A line for each system, from zero. That of a system without the key is level.";
        open_section(&format!("Over {key}"), why, body);
        let knees: Vec<String> =
            sweeps.iter().filter(|it| it.key == key).filter_map(Sweep::knees).collect();
        for knee in knees.iter().take(SWEEP_SETTINGS_MAX) {
            let _ = writeln!(body, "<p>{}</p>", escape(knee));
        }
        legend(report, body);
        for group in groups.iter().filter(|group| group.key == key) {
            if !group.setting.is_empty() {
                let _ = writeln!(body, "<h3>{}</h3>", escape(&group.setting));
            }
            body.push_str("<div class=\"two charts\">\n");
            group.charts.iter().for_each(|chart| chart.draw(body));
            body.push_str("</div>\n");
        }
        let settings = sweeps.iter().filter(|sweep| sweep.key == key).count();
        if settings > SWEEP_SETTINGS_MAX {
            let _ = writeln!(
                body,
                "<p>The first {SWEEP_SETTINGS_MAX} of {settings} settings of the other keys; results.csv has all.</p>",
            );
        }
        body.push_str("</section>\n");
    }
}

fn legend(report: &Report, body: &mut String) {
    body.push_str("<ul class=\"legend\" aria-label=\"systems\">");
    for (index, system) in report.systems().iter().take(COLOURS).enumerate() {
        let _ = write!(body, "<li>{}{}</li>", chip(index), escape(system));
    }
    body.push_str("</ul>\n");
}

impl SweptChart {
    /// None where the figure is the same everywhere, or nowhere there.
    fn of(reader: String, sweep: &Sweep<'_>, metric: &SweptMetric) -> Option<SweptChart> {
        let lines: Vec<ChartLine> = (sweep.lines.iter())
            .filter(|line| line.index < COLOURS)
            .map(|line| ChartLine {
                index: line.index,
                name: line.system.to_string(),
                values: line.runs.iter().map(|run| (metric.value)((*run)?)).collect(),
            })
            .collect();
        let chart = SweptChart {
            reader,
            title: metric.name.to_string(),
            unit: metric.unit,
            axis: sweep.key.to_string(),
            values: sweep.values.iter().map(|value| text_of(value)).collect(),
            lines,
        };
        let least = chart.all_values().fold(f64::INFINITY, f64::min);
        (least < chart.most()).then_some(chart)
    }

    fn all_values(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| &line.values).flatten().copied()
    }

    fn most(&self) -> f64 {
        self.all_values().fold(0.0, f64::max)
    }

    fn draw(&self, body: &mut String) {
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        let title = format!("{}{unit}", self.title);
        let frame = self.frame();
        let _ = writeln!(body, "<div><h4>{}</h4>", escape(&title));
        draw(&frame, &format!("{title} over {}", self.axis), body, |canvas| {
            // A share has its whole scale.
            let top = if self.unit == "%" { 100.0 } else { self.most() };
            let high = f64::from(frame.bottom - frame.top);
            let y = |value: f64| frame.bottom - (value / top * high).round() as i32;
            for tick in ticks(top, 5.0) {
                line(canvas, &[(frame.left, y(tick)), (frame.right, y(tick))], GRID, 1);
                text(canvas, &format::short(tick), (frame.left - 8 * SCALE, y(tick)), HPos::Right);
            }
            for (at, value) in self.values.iter().enumerate() {
                frame.mark(canvas, at as f64, value);
            }
            frame.name_axis(canvas, short(&self.axis));
            self.lines.iter().for_each(|it| it.draw(canvas, &frame, &y));
        });
        body.push_str("</div>\n");
    }

    fn frame(&self) -> Frame {
        Frame {
            reader: self.reader.clone(),
            left: 64 * SCALE,
            right: HALF_WIDTH - 24 * SCALE,
            top: 10 * SCALE,
            bottom: 190 * SCALE,
            width: HALF_WIDTH,
            height: 240 * SCALE,
            from: 0.0,
            to: (self.values.len() - 1).max(1) as f64,
        }
    }
}

impl ChartLine {
    /// The values, each at the same distance, with a dot for each; a gap where there is none.
    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame, y: &dyn Fn(f64) -> i32) {
        let place = |at: usize, value: f64| (frame.x(at as f64), y(value));
        let mut before = None;
        for (at, value) in self.values.iter().enumerate() {
            let here = value.map(|value| place(at, value));
            if let (Some(before), Some(here)) = (before, here) {
                line(canvas, &[before, here], colour_of(self.index), 2);
            }
            if let Some(here) = here {
                dot(canvas, here, colour_of(self.index));
            }
            before = here;
        }
    }
}
