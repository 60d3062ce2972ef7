//! Bars, stacked bars and lines over an axis of names or numbers, with values marked that somebody states.

use super::svg::{Canvas, Frame, GRID, HPos, INK, SCALE, WIDTH, bar, colour_of, dot, draw, ink};
use super::svg::{line, ring, text, ticks};
use super::{chip, escape, open_scroll};
use crate::format::{number, optional, short};
use crate::pareto::front;
use std::fmt::Write as _;

/// Bars in a chart of half the width at most; one that has more takes the whole.
const HALF_BARS_MAX: usize = 20;
/// Stated values in a chart at most that are written beside their marks; the table has all.
const LABELS_MAX: usize = 8;
/// About how wide a character is.
const CHARACTER: i32 = 8 * SCALE;
/// Decades of a logarithmic axis at most.
const DECADES_MAX: f64 = 12.0;

/// How the values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartKind {
    /// A bar for each series, side by side.
    Bars,
    /// The series one on the other.
    Stacked,
    /// A line for each series, with a dot for each value.
    Lines,
    /// A line for each series without dots.
    Curves,
    /// A dot for each value, and a line that joins those that no other one is below and left of.
    Points,
    /// Numbers alone.
    Table,
}

/// The horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Across {
    /// Names at even distances; a point at 0 belongs to the first.
    Names(Vec<String>),
    /// Numbers.
    Numbers,
}

/// A value that somebody states for a point of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct StatedMark {
    /// Where it is on the horizontal axis.
    pub x: f64,
    /// The value.
    pub value: f64,
    /// `<= ` or `>= ` when it is a bound.
    pub sign: &'static str,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartSeries {
    /// What the legend calls it.
    pub name: String,
    /// Its colour, by number: the same in every chart of a figure.
    pub colour: usize,
    /// Its points from left to right; a gap where there is no value.
    pub points: Vec<(f64, Option<f64>)>,
    /// What is stated of them.
    pub stated: Vec<StatedMark>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How.
    pub kind: ChartKind,
    /// The horizontal axis.
    pub across: Across,
    /// What the horizontal axis is.
    pub x_label: String,
    /// What the vertical axis is, with its unit.
    pub y_label: String,
    /// Whether the horizontal axis is logarithmic.
    pub x_log: bool,
    /// Whether the vertical axis is.
    pub y_log: bool,
    /// The series.
    pub series: Vec<ChartSeries>,
}

/// The span of an axis, and whether it is logarithmic.
#[derive(Clone, Copy, Debug)]
struct Scale {
    from: f64,
    to: f64,
    is_log: bool,
}

impl Scale {
    /// An axis that holds `values`: a linear one starts at zero unless `is_tight`, a logarithmic one has whole decades.
    fn of(values: impl Iterator<Item = f64> + Clone, is_log: bool, is_tight: bool) -> Scale {
        let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
        if is_log {
            let low = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
            let (low, high) =
                if low.is_finite() { (low.log10(), high.log10()) } else { (0.0, 1.0) };
            let to = (high - 1e-9).ceil();
            let from = (low + 1e-9).floor().clamp(to - DECADES_MAX, to - 1.0);
            return Scale { from, to, is_log };
        }
        let low = values.fold(f64::INFINITY, f64::min);
        let from = if is_tight { low } else { low.min(0.0) };
        match high > from {
            true => Scale { from, to: high, is_log },
            false => Scale { from: from.min(0.0), to: from.max(1.0), is_log },
        }
    }

    /// Where a value lies, from 0 to 1; none where the axis has no place for it.
    fn share(&self, value: f64) -> Option<f64> {
        let value = match self.is_log {
            false => value,
            true if value > 0.0 => value.log10(),
            true => return None,
        };
        Some(((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0))
    }

    /// The values that have a line of the grid.
    fn ticks(&self, most: f64) -> Vec<f64> {
        if self.is_log {
            let step = ((self.to - self.from) / most).ceil().max(1.0) as i32;
            let decades = (self.from as i32..=self.to as i32).step_by(step as usize);
            return decades.map(|decade| 10f64.powi(decade)).collect();
        }
        if self.from >= 0.0 {
            return ticks(self.to, most).into_iter().filter(|tick| *tick >= self.from).collect();
        }
        let reach = self.to.max(-self.from);
        let both = ticks(reach, most / 2.0);
        let below = both.iter().rev().map(|tick| -tick).filter(|tick| *tick < 0.0);
        let all = below.chain(both.iter().copied());
        all.filter(|tick| (self.from..=self.to).contains(tick)).collect()
    }
}

impl Chart {
    /// The chart with its legend, and its values as a table.
    pub fn show(&self, body: &mut String) {
        // One of half the width does not grow where it is alone.
        let width = if self.is_wide() { "grid-column:1/-1" } else { "max-width:620px" };
        // On a narrow screen the picture scrolls, and not the page.
        let _ =
            writeln!(body, "<div style=\"min-width:0;{width}\"><h3>{}</h3>", escape(&self.title));
        match self.kind {
            ChartKind::Table => self.table(body),
            _ if self.values().next().is_none() => {
                body.push_str("<p class=\"why\">There is no value to draw.</p>\n");
            }
            _ => {
                self.legend(body);
                self.picture(body);
                if !matches!(self.kind, ChartKind::Curves | ChartKind::Points) {
                    body.push_str("<details class=\"values\"><summary>Values</summary>\n");
                    self.table(body);
                    body.push_str("</details>\n");
                }
            }
        }
        body.push_str("</div>\n");
    }

    /// Whether it takes the whole width of a section.
    fn is_wide(&self) -> bool {
        let names = self.names().len();
        match self.kind {
            ChartKind::Table => true,
            ChartKind::Bars => names * self.series.len() > HALF_BARS_MAX,
            _ => names > HALF_BARS_MAX,
        }
    }

    fn names(&self) -> &[String] {
        match &self.across {
            Across::Names(names) => names,
            Across::Numbers => &[],
        }
    }

    fn marks(&self) -> impl Iterator<Item = &StatedMark> + Clone {
        self.series.iter().flat_map(|series| &series.stated)
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.filter_map(|(x, value)| Some((*x, (*value)?)))
    }

    /// All values, those that are stated among them.
    fn values(&self) -> impl Iterator<Item = f64> + Clone {
        self.points().map(|(_, value)| value).chain(self.marks().map(|mark| mark.value))
    }

    fn legend(&self, body: &mut String) {
        body.push_str("<ul class=\"legend\">");
        for series in &self.series {
            let _ = write!(body, "<li>{}{}</li>", chip(series.colour), escape(&series.name));
        }
        if self.marks().next().is_some() {
            let sign = match self.kind {
                ChartKind::Lines => "background:none;border:2px solid var(--ink);border-radius:50%",
                _ => "height:3px;border-radius:0;background:var(--ink);vertical-align:3px",
            };
            let _ =
                write!(body, "<li><i class=\"chip\" style=\"{sign}\"></i>stated by the paper</li>");
        }
        body.push_str("</ul>\n");
    }

    /// The sum of what is stacked at each name.
    fn stacks(&self) -> impl Iterator<Item = f64> + Clone {
        (0..self.names().len()).map(|at| {
            let of_name = self.series.iter().filter_map(move |series| series.points.get(at)?.1);
            of_name.sum()
        })
    }

    fn up(&self) -> Scale {
        match self.kind {
            ChartKind::Stacked => Scale::of(self.stacks().chain(self.values()), false, false),
            _ => Scale::of(self.values(), self.y_log, false),
        }
    }

    fn frame(&self) -> (Frame, Scale) {
        let width = if self.is_wide() { WIDTH } else { WIDTH / 2 };
        let names = self.names();
        let across = match names.len() {
            0 => Scale::of(self.points().map(|(x, _)| x), self.x_log, true),
            // Half a name beside the first and the last.
            count => Scale { from: -0.5, to: count as f64 - 0.5, is_log: false },
        };
        let frame = Frame {
            reader: String::new(),
            left: 76 * SCALE,
            right: width - 20 * SCALE,
            top: 34 * SCALE,
            bottom: 250 * SCALE,
            width,
            height: (250 + 56) * SCALE,
            from: across.from,
            to: across.to,
        };
        (frame, across)
    }

    fn picture(&self, body: &mut String) {
        let ((frame, across), up) = (self.frame(), self.up());
        let place = Place { frame: &frame, across, up };
        draw(&frame, &format!("{}: {}", self.title, self.y_label), body, |canvas| {
            self.axes(canvas, &place);
            match self.kind {
                ChartKind::Bars => self.bars(canvas, &place),
                ChartKind::Stacked => self.stacked(canvas, &place),
                ChartKind::Lines | ChartKind::Curves => self.lines(canvas, &place),
                ChartKind::Points => self.dots(canvas, &place),
                ChartKind::Table => {}
            }
        });
    }

    fn axes(&self, canvas: &Canvas<'_>, place: &Place<'_>) {
        let frame = place.frame;
        ink(canvas, &self.y_label, (8 * SCALE, 12 * SCALE), HPos::Left);
        for tick in place.up.ticks(5.0) {
            let Some(y) = place.y(tick) else { continue };
            line(canvas, &[(frame.left, y), (frame.right, y)], GRID, 1);
            text(canvas, &short(tick), (frame.left - 8 * SCALE, y), HPos::Right);
        }
        let names = self.names();
        let below = frame.bottom + 16 * SCALE;
        if names.is_empty() {
            for tick in place.across.ticks(6.0) {
                let Some(x) = place.x(tick) else { continue };
                line(canvas, &[(x, frame.top), (x, frame.bottom)], GRID, 1);
                text(canvas, &short(tick), (x, below), HPos::Center);
            }
        }
        let slot = (frame.right - frame.left) / names.len().max(1) as i32;
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        // Long names stand in two rows, so that they do not meet.
        let is_staggered = widest as i32 * CHARACTER > slot;
        let placed = names.iter().enumerate().filter_map(|(at, name)| {
            let row = if is_staggered { at as i32 % 2 } else { 0 };
            Some(((place.x(at as f64)?, below + row * 15 * SCALE), name.clone()))
        });
        frame.names(canvas, &placed.collect::<Vec<_>>());
        line(canvas, &[(frame.left, frame.bottom), (frame.right, frame.bottom)], INK, 1);
        let row = if is_staggered { 46 } else { 38 } * SCALE;
        let middle = ((frame.left + frame.right) / 2, frame.bottom + row);
        frame.name_below(canvas, &self.x_label, middle);
    }

    fn bars(&self, canvas: &Canvas<'_>, place: &Place<'_>) {
        let slot = place.slot(self.names().len());
        let width = (f64::from(slot) * 0.8 / self.series.len() as f64) as i32;
        let left_of = |x: f64, index: usize| {
            let middle = place.x(x)?;
            Some(middle - width * self.series.len() as i32 / 2 + width * index as i32)
        };
        for (index, series) in self.series.iter().enumerate() {
            for (x, value) in &series.points {
                let top = value.and_then(|value| place.y(value));
                if let (Some(left), Some(top)) = (left_of(*x, index), top) {
                    let to = (left + width - SCALE, place.zero());
                    bar(canvas, (left, top), to, colour_of(series.colour));
                }
            }
            for mark in &series.stated {
                if let (Some(left), Some(y)) = (left_of(mark.x, index), place.y(mark.value)) {
                    let overhang = 3 * SCALE;
                    let ends = [(left - overhang, y), (left + width + overhang, y)];
                    line(canvas, &ends, INK, 2);
                    // The number stands above the bar, where it can be read.
                    let values = series.points.iter().filter(|(x, _)| *x == mark.x);
                    let top = values.filter_map(|(_, value)| place.y((*value)?)).min();
                    let above = top.map_or(y, |top| top.min(y));
                    self.label(canvas, mark, (left + width / 2, above));
                }
            }
        }
    }

    fn stacked(&self, canvas: &Canvas<'_>, place: &Place<'_>) {
        let width = (f64::from(place.slot(self.names().len())) * 0.6) as i32;
        for at in 0..self.names().len() {
            let Some(middle) = place.x(at as f64) else { continue };
            let mut sum = 0.0;
            for series in &self.series {
                let Some((_, Some(value))) = series.points.get(at) else { continue };
                let ends = (place.y(sum + value), place.y(sum));
                if let (Some(top), Some(bottom)) = ends {
                    let (left, right) = (middle - width / 2, middle + width / 2);
                    bar(canvas, (left, top), (right, bottom), colour_of(series.colour));
                }
                sum += value;
            }
        }
    }

    fn lines(&self, canvas: &Canvas<'_>, place: &Place<'_>) {
        let is_dotted = self.kind == ChartKind::Lines;
        for series in &self.series {
            let mut before = None;
            for (x, value) in &series.points {
                let at = value.and_then(|value| Some((place.x(*x)?, place.y(value)?)));
                if let (Some(before), Some(at)) = (before, at) {
                    line(canvas, &[before, at], colour_of(series.colour), 2);
                }
                if let (Some(at), true) = (at, is_dotted) {
                    dot(canvas, at, colour_of(series.colour));
                }
                before = at;
            }
        }
        for series in &self.series {
            for mark in &series.stated {
                if let (Some(x), Some(y)) = (place.x(mark.x), place.y(mark.value)) {
                    ring(canvas, (x, y), colour_of(series.colour));
                    self.label(canvas, mark, (x, y));
                }
            }
        }
    }

    /// The dots, and from each on the line straight to the next one and down to it.
    fn dots(&self, canvas: &Canvas<'_>, place: &Place<'_>) {
        let all: Vec<(f64, f64)> = self.points().collect();
        let at = |(x, value): (f64, f64)| Some((place.x(x)?, place.y(value)?));
        let on_line: Vec<_> = front(&all).into_iter().filter_map(|index| at(all[index])).collect();
        let steps = on_line.windows(2).flat_map(|two| [two[0], (two[1].0, two[0].1)]);
        let steps: Vec<_> = steps.chain(on_line.last().copied()).collect();
        if steps.len() > 1 {
            line(canvas, &steps, INK, 1);
        }
        for series in &self.series {
            for (x, value) in &series.points {
                if let Some(at) = value.and_then(|value| at((*x, value))) {
                    dot(canvas, at, colour_of(series.colour));
                }
            }
        }
    }

    /// The value of a mark above it, where there are few.
    fn label(&self, canvas: &Canvas<'_>, mark: &StatedMark, at: (i32, i32)) {
        if self.marks().count() <= LABELS_MAX {
            let words = format!("{}{}", mark.sign, short(mark.value));
            ink(canvas, &words, (at.0, at.1 - 11 * SCALE), HPos::Center);
        }
    }

    /// A row for each place on the horizontal axis, a column for each series; what is stated in brackets.
    fn table(&self, body: &mut String) {
        open_scroll(&self.title, body);
        let _ = write!(body, "<table><thead><tr><th>{}</th>", escape(&self.x_label));
        for series in &self.series {
            let _ = write!(body, "<th>{}</th>", escape(&series.name));
        }
        body.push_str("</tr></thead><tbody>\n");
        let longest = self.series.iter().max_by_key(|series| series.points.len());
        for (at, (x, _)) in longest.into_iter().flat_map(|it| it.points.iter().enumerate()) {
            let name = self.names().get(at).map_or_else(|| number(*x), Clone::clone);
            let _ = write!(body, "<tr><th>{}</th>", escape(&name));
            for series in &self.series {
                let value = series.points.get(at).and_then(|point| point.1);
                let stated = series.stated.iter().find(|mark| mark.x == *x);
                let stated = stated.map_or(String::new(), |mark| {
                    format!(" <small>({}{} stated)</small>", escape(mark.sign), number(mark.value))
                });
                let _ = write!(body, "<td>{}{stated}</td>", optional(value));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div>\n");
        if self.marks().next().is_some() {
            body.push_str("<p class=\"why\">In brackets what the paper states.</p>\n");
        }
    }
}

/// Where values lie.
struct Place<'a> {
    frame: &'a Frame,
    across: Scale,
    up: Scale,
}

impl Place<'_> {
    fn x(&self, value: f64) -> Option<i32> {
        let width = f64::from(self.frame.right - self.frame.left);
        Some(self.frame.left + (self.across.share(value)? * width).round() as i32)
    }

    fn y(&self, value: f64) -> Option<i32> {
        let height = f64::from(self.frame.bottom - self.frame.top);
        Some(self.frame.bottom - (self.up.share(value)? * height).round() as i32)
    }

    /// Where bars start: at zero, or at the bottom of an axis that has no zero.
    fn zero(&self) -> i32 {
        self.y(0.0).unwrap_or(self.frame.bottom)
    }

    /// How much of the width a name has.
    fn slot(&self, names: usize) -> i32 {
        (self.frame.right - self.frame.left) / names.max(1) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(kind: ChartKind, values: &[f64]) -> Chart {
        let names = values.iter().map(|value| format!("at {value}")).collect();
        let points = values.iter().enumerate().map(|(at, value)| (at as f64, Some(*value)));
        Chart {
            title: "a < b".into(),
            kind,
            across: Across::Names(names),
            x_label: "load".into(),
            y_label: "time, s".into(),
            x_log: false,
            y_log: false,
            series: vec![ChartSeries {
                name: "one".into(),
                colour: 0,
                points: points.collect(),
                stated: vec![StatedMark { x: 0.0, value: 2.5, sign: ">= " }],
            }],
        }
    }

    #[test]
    fn a_chart_has_its_values_and_what_is_stated_as_a_table_too() {
        for kind in [ChartKind::Bars, ChartKind::Stacked, ChartKind::Lines, ChartKind::Table] {
            let mut body = String::new();
            chart(kind, &[1.0, 2.0]).show(&mut body);
            assert_eq!(body.matches("<svg").count(), usize::from(kind != ChartKind::Table));
            assert!(body.contains("a &lt; b"), "{body}");
            assert!(body.contains("<td>1.00 <small>(&gt;= 2.50 stated)</small></td>"), "{body}");
        }
    }

    #[test]
    fn axes_hold_all_values_and_logarithmic_ones_have_whole_decades() {
        let linear = Scale::of([2.0, 8.0].into_iter(), false, false);
        assert_eq!((linear.share(0.0), linear.share(8.0)), (Some(0.0), Some(1.0)));
        let log = Scale::of([0.2, 80.0].into_iter(), true, false);
        assert_eq!(log.ticks(9.0), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(log.share(0.0), None);
        let below = Scale::of([-4.0, 2.0].into_iter(), false, false);
        assert!(below.ticks(5.0).contains(&-4.0), "{:?}", below.ticks(5.0));
        let one = Scale::of([10.0].into_iter(), true, false);
        assert_eq!((one.from, one.to), (0.0, 1.0));
    }

    #[test]
    fn a_chart_without_values_says_so() {
        let mut body = String::new();
        let mut empty = chart(ChartKind::Bars, &[]);
        empty.series[0].stated.clear();
        empty.show(&mut body);
        assert!(body.contains("no value to draw") && !body.contains("<svg"));
    }
}
