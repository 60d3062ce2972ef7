//! A chart of lines over one axis, with its definition beside it and its values as a table below it.

use std::fmt::Write as _;

use serde::Serialize;

use super::Page;
use super::axis::{Axis, Scale, Unit};
use imbrex_report::page::svg::{
    Frame, GRID, HPos, SCALE, WIDTH, area, colour_of, draw, line, text,
};
use imbrex_report::page::{chip, escape, open_scroll, open_section};

/// Width of a chart beside another.
const HALF_WIDTH: i32 = 480 * SCALE;
/// Dashes of a line that may lie on another, so that both are seen.
const DASHES: &str = "10 7";
/// Points of a line that lie closer than this in both directions are drawn as one.
const NEAR: i32 = SCALE;
/// Rows of the table of a chart.
const TABLE_ROWS_MAX: usize = 12;

/// How a line goes from a point to the next.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Course {
    /// It keeps its value up to the next point.
    Steps,
    /// Likewise, with the area below it filled.
    Areas,
    /// It goes straight there.
    Straight,
    /// Likewise, in dashes.
    Dashes,
}

/// A line of a chart.
pub(super) struct Line {
    pub(super) name: &'static str,
    /// Which colour of the style.
    pub(super) colour: usize,
    pub(super) course: Course,
    /// In ascending order of the horizontal axis.
    pub(super) points: Vec<(f64, f64)>,
}

/// Lines on the same axes.
pub(super) struct Chart {
    pub(super) title: &'static str,
    /// What is shown, in a sentence or two.
    pub(super) definition: String,
    pub(super) across: Axis,
    pub(super) up: Axis,
    pub(super) is_wide: bool,
    pub(super) lines: Vec<Line>,
}

/// A chart as the script takes it.
#[derive(Serialize)]
pub(super) struct EmbeddedChart {
    across: EmbeddedAxis,
    up: Unit,
    lines: Vec<EmbeddedLine>,
}

#[derive(Serialize)]
struct EmbeddedAxis {
    unit: Unit,
    scale: Scale,
}

#[derive(Serialize)]
struct EmbeddedLine {
    name: &'static str,
    colour: usize,
    steps: bool,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Line {
    fn has_steps(&self) -> bool {
        matches!(self.course, Course::Steps | Course::Areas)
    }

    /// The value at a place of the horizontal axis; nothing before the first point.
    fn at(&self, x: f64) -> Option<f64> {
        let behind = self.points.partition_point(|point| point.0 <= x);
        let (left, low) = *self.points.get(behind.checked_sub(1)?)?;
        match (self.course, self.points.get(behind)) {
            (Course::Straight | Course::Dashes, Some((right, high))) => {
                Some(low + (high - low) * (x - left) / (right - left))
            }
            _ => Some(low),
        }
    }
}

impl Chart {
    /// Opens a section with the chart and its table; the caller may add to it and closes it. Nothing
    /// and `false` where no line has a point.
    pub(super) fn open(mut self, page: &mut Page) -> bool {
        self.lines.retain(|line| !line.points.is_empty());
        if self.lines.is_empty() {
            return false;
        }
        let frame = self.frame(page.charts.len());
        // The table has the values as they are, the drawing and the script those that can be told apart.
        let mut table = String::new();
        self.table(&mut table);
        for line in &mut self.lines {
            line.points = thinned(&line.points, &frame, &self.across, &self.up);
        }
        open_section(self.title, &self.definition, &mut page.body);
        self.legend(&mut page.body);
        let name = format!("{}. {}. The values are in the table below.", self.title, self.ends());
        let mut drawing = String::new();
        draw(&frame, &name, &mut drawing, |canvas| {
            let most = if self.is_wide { 10 } else { 6 };
            for (value, label) in self.across.marks(most) {
                frame.mark(canvas, self.across.place(value), &label);
            }
            frame.name_axis(canvas, &self.across.name);
            for (value, label) in self.up.marks(5) {
                let at = height_of(&frame, &self.up, value);
                line(canvas, &[(frame.left, at), (frame.right, at)], GRID, 1);
                text(canvas, &label, (frame.left - 8 * SCALE, at), HPos::Right);
            }
            let above = (frame.left, frame.top - 16 * SCALE);
            text(canvas, &self.up.name, above, HPos::Left);
            for drawn in &self.lines {
                let points = drawn.outline(&frame, &self.across, &self.up);
                if drawn.course == Course::Areas {
                    let mut below = vec![(points[0].0, frame.bottom)];
                    below.extend_from_slice(&points);
                    below.push((points[points.len() - 1].0, frame.bottom));
                    area(canvas, below, colour_of(drawn.colour));
                }
                line(canvas, &points, colour_of(drawn.colour), 2);
            }
        });
        for line in (self.lines.iter()).filter(|line| line.course == Course::Dashes) {
            let stroke = format!("stroke=\"var(--s{})\"", line.colour);
            let dashed = format!("{stroke} stroke-dasharray=\"{DASHES}\"");
            drawing = drawing.replace(&stroke, &dashed);
        }
        page.body.push_str(&drawing);
        page.body.push_str(&table);
        page.charts.push(self.embedded());
        true
    }

    /// The chart as a section of its own.
    pub(super) fn section(self, page: &mut Page) {
        if self.open(page) {
            page.close();
        }
    }

    fn frame(&self, index: usize) -> Frame {
        let width = if self.is_wide { WIDTH } else { HALF_WIDTH };
        let bottom = 270 * SCALE;
        Frame {
            reader: index.to_string(),
            left: 62 * SCALE,
            right: width - 26 * SCALE,
            top: 34 * SCALE,
            bottom,
            width,
            height: bottom + 52 * SCALE,
            from: self.across.place(self.across.from),
            to: self.across.place(self.across.to),
        }
    }

    fn legend(&self, body: &mut String) {
        body.push_str("<ul class=\"legend\" aria-label=\"lines\">");
        for line in &self.lines {
            let _ = write!(
                body,
                "<li><button type=\"button\" data-run=\"{}\" aria-pressed=\"true\">{}{}</button></li>",
                line.colour,
                chip(line.colour),
                escape(line.name)
            );
        }
        body.push_str("</ul>\n");
    }

    /// Where each line begins and ends, in words.
    fn ends(&self) -> String {
        let say = |line: &Line| {
            let ((x0, y0), (x1, y1)) = (line.points[0], line.points[line.points.len() - 1]);
            format!(
                "{}: {} at {} to {} at {}",
                line.name,
                self.up.unit.say(y0),
                self.across.unit.say(x0),
                self.up.unit.say(y1),
                self.across.unit.say(x1)
            )
        };
        self.lines.iter().map(say).collect::<Vec<_>>().join("; ")
    }

    /// The values at the marks of the horizontal axis.
    fn table(&self, body: &mut String) {
        body.push_str("<details class=\"values\"><summary>Values of this chart</summary>\n");
        open_scroll("values", body);
        body.push_str("<table><thead><tr>");
        let _ = write!(body, "<th scope=\"col\">{}</th>", escape(&self.across.name));
        for line in &self.lines {
            let _ = write!(body, "<th scope=\"col\">{}</th>", escape(line.name));
        }
        body.push_str("</tr></thead>\n<tbody>\n");
        let marks = self.across.marks(TABLE_ROWS_MAX);
        let last = (self.across.to, String::new());
        let mut rows: Vec<f64> = marks.into_iter().chain([last]).map(|mark| mark.0).collect();
        rows.dedup();
        for x in rows {
            let _ = write!(body, "<tr><td>{}</td>", self.across.unit.say(x));
            for line in &self.lines {
                let value = line.at(x).map(|value| self.up.unit.say(value));
                let _ = write!(body, "<td>{}</td>", value.as_deref().unwrap_or("-"));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div></details>\n");
    }

    fn embedded(&self) -> EmbeddedChart {
        let digits = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
        EmbeddedChart {
            across: EmbeddedAxis { unit: self.across.unit, scale: self.across.scale },
            up: self.up.unit,
            lines: (self.lines.iter())
                .map(|line| EmbeddedLine {
                    name: line.name,
                    colour: line.colour,
                    steps: line.has_steps(),
                    x: line.points.iter().map(|point| digits(point.0)).collect(),
                    y: line.points.iter().map(|point| digits(point.1)).collect(),
                })
                .collect(),
        }
    }
}

impl Line {
    /// The line in the units of the drawing, up to the right end of the axis.
    fn outline(&self, frame: &Frame, across: &Axis, up: &Axis) -> Vec<(i32, i32)> {
        let mut outline: Vec<(i32, i32)> = vec![];
        for (x, y) in &self.points {
            let at = (frame.x(across.place(*x)), height_of(frame, up, *y));
            if let Some((_, before)) = outline.last().copied()
                && self.has_steps()
            {
                outline.push((at.0, before));
            }
            outline.push(at);
        }
        outline.push((frame.right, outline[outline.len() - 1].1));
        outline.dedup();
        outline
    }
}

/// Lets lines that rise from nothing begin at `from`.
pub(super) fn from_zero(lines: &mut [Line], from: f64) {
    for line in lines {
        if line.points.first().is_some_and(|point| point.0 > from) {
            line.points.insert(0, (line.points[0].0, 0.0));
            line.points.insert(0, (from, 0.0));
        }
    }
}

fn height_of(frame: &Frame, up: &Axis, value: f64) -> i32 {
    let share = up.place(value) / up.place(up.to);
    frame.bottom - (share * f64::from(frame.bottom - frame.top)).round() as i32
}

/// `points` without those that cannot be told from the one before; the last stays.
fn thinned(points: &[(f64, f64)], frame: &Frame, across: &Axis, up: &Axis) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = vec![];
    let mut last = None;
    for (index, point) in points.iter().enumerate() {
        let at = (frame.x(across.place(point.0)), height_of(frame, up, point.1));
        let is_near = |(x, y): (i32, i32)| (at.0 - x).abs() < NEAR && (at.1 - y).abs() < NEAR;
        if index + 1 == points.len() || !last.is_some_and(is_near) {
            kept.push(*point);
            last = Some(at);
        }
    }
    kept
}
