//! Charts: lines as SVG, labels as HTML around them. The SVG is stretched over the field between the axes, while labels and
//! margins keep their size, so one picture is readable at any width. Colours are variables of the style, so it serves light
//! and dark pages.

use std::cell::RefCell;
use std::fmt::Write as _;

use super::{COLOURS, HUES, escape};

/// Units of a drawing in a pixel of what lies around the field.
pub const SCALE: i32 = 2;
/// Width of a chart that takes the whole width of a section.
pub const WIDTH: i32 = 1070 * SCALE;

/// Pixels that a chart has at least on a narrow screen, and what a character of a label takes of them.
const NARROW_PX: i32 = 316;
const CHARACTER_PX: i32 = 8;

/// A colour of the style.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// That of text and axes.
    Ink,
    /// That of what is said beside.
    Muted,
    /// That of the lines of a grid.
    Grid,
    /// That of a run or line.
    Of(usize),
}

/// The colour of text and axes.
pub const INK: Colour = Colour::Ink;
/// The colour of what is said beside.
pub const MUTED: Colour = Colour::Muted;
/// The colour of the lines of a grid.
pub const GRID: Colour = Colour::Grid;

/// The colour of run or line `index`.
pub const fn colour_of(index: usize) -> Colour {
    Colour::Of(index % COLOURS)
}

impl Colour {
    fn variable(self) -> String {
        match self {
            Colour::Ink => "var(--ink)".to_string(),
            Colour::Muted => "var(--muted)".to_string(),
            Colour::Grid => "var(--grid)".to_string(),
            Colour::Of(index) => format!("var(--s{index})"),
        }
    }

    /// Which dashes and marks tell it from others of its hue.
    fn style(self) -> usize {
        match self {
            Colour::Of(index) => index / HUES,
            _ => 0,
        }
    }
}

/// Which part of a label is at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HPos {
    /// Its left end.
    Left,
    /// Its right end.
    Right,
    /// Its middle.
    Center,
}

/// What charts are drawn on.
pub struct Canvas<'a> {
    frame: &'a Frame,
    drawn: RefCell<Drawn>,
}

#[derive(Default)]
struct Drawn {
    shapes: String,
    labels: String,
    /// Of the horizontal axis: the place and the text of each.
    marks: Vec<(i32, String)>,
}

/// Where a chart lies in its drawing and what its horizontal axis spans.
pub struct Frame {
    /// Which values the script reads out here.
    pub reader: String,
    /// Its left edge, in units of the drawing as all lengths here.
    pub left: i32,
    /// Its right edge.
    pub right: i32,
    /// Its upper edge.
    pub top: i32,
    /// Its lower edge.
    pub bottom: i32,
    /// Width of the drawing.
    pub width: i32,
    /// Height of the drawing.
    pub height: i32,
    /// The value at the left edge.
    pub from: f64,
    /// The value at the right edge.
    pub to: f64,
}

impl Frame {
    /// The place of a value of the horizontal axis.
    pub fn x(&self, value: f64) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    /// A line of the grid at a value of the horizontal axis, with its label.
    pub fn mark(&self, canvas: &Canvas<'_>, value: f64, label: &str) {
        self.rule(canvas, value);
        canvas.drawn.borrow_mut().marks.push((self.x(value), label.to_string()));
    }

    /// A line of the grid at a value of the horizontal axis.
    pub fn rule(&self, canvas: &Canvas<'_>, value: f64) {
        let at = self.x(value);
        line(canvas, &[(at, self.top), (at, self.bottom)], GRID, 1);
    }

    /// Names below the horizontal axis, each at its place; on a narrow screen they slant where they do not fit.
    pub fn names(&self, canvas: &Canvas<'_>, names: &[((i32, i32), String)]) {
        let marks: Vec<(i32, String)> =
            names.iter().map(|((x, _), name)| (*x, name.clone())).collect();
        let class = if self.labelled_of(&marks) > 1 { " name" } else { "" };
        for (at, name) in names {
            canvas.label(name, *at, HPos::Center, class);
        }
    }

    /// What the horizontal axis shows.
    pub fn name_axis(&self, canvas: &Canvas<'_>, name: &str) {
        let middle = ((self.left + self.right) / 2, self.bottom + 40 * SCALE);
        self.name_below(canvas, name, middle);
    }

    /// The same at another place. It gives way to names that slant.
    pub fn name_below(&self, canvas: &Canvas<'_>, name: &str, at: (i32, i32)) {
        canvas.label(name, at, HPos::Center, " axis");
    }

    /// A horizontal place beside the field or in it, as CSS has it relative to the field.
    fn across(&self, x: i32) -> String {
        match x {
            x if x < self.left => format!("{}px", (x - self.left) / SCALE),
            x if x > self.right => format!("calc(100% + {}px)", (x - self.right) / SCALE),
            x => {
                let share = f64::from(x - self.left) / f64::from(self.right - self.left);
                format!("{:.2}%", 100.0 * share)
            }
        }
    }

    /// Of how many marks one is labelled on a narrow screen, so that labels do not run into each other.
    fn labelled_of(&self, marks: &[(i32, String)]) -> usize {
        let field_px = NARROW_PX - (self.left + self.width - self.right) / SCALE;
        let longest = marks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let label_px = (longest as i32 + 1) * CHARACTER_PX;
        let apart = marks.windows(2).map(|two| (two[1].0 - two[0].0).abs()).min();
        let Some(apart) = apart.filter(|apart| *apart > 0) else {
            return 1;
        };
        let apart_px = f64::from(apart * field_px) / f64::from(self.right - self.left);
        (f64::from(label_px) / apart_px).ceil().max(1.0) as usize
    }
}

/// Draws and appends the chart, which has the name `title` for those who do not see it.
pub fn draw(frame: &Frame, title: &str, body: &mut String, paint: impl FnOnce(&Canvas<'_>)) {
    let canvas = Canvas { frame, drawn: RefCell::default() };
    paint(&canvas);
    let Drawn { shapes, mut labels, marks } = canvas.drawn.into_inner();
    let each = frame.labelled_of(&marks);
    for (index, (x, mark)) in marks.iter().enumerate() {
        let class = if index % each == 0 { "c" } else { "c wide" };
        label(frame, &mut labels, mark, (*x, frame.bottom + 18 * SCALE), class);
    }
    let _ = writeln!(
        body,
        "<div class=\"plot\" data-reader=\"{}\" data-from=\"{}\" data-to=\"{}\" role=\"img\" aria-label=\"{}\" \
         style=\"height:{}px\"><div class=\"field\" style=\"left:{}px;right:{}px;top:{}px;bottom:{}px\">\
         <svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{shapes}</svg>{labels}</div></div>",
        frame.reader,
        frame.from,
        frame.to,
        escape(title),
        frame.height / SCALE,
        frame.left / SCALE,
        (frame.width - frame.right) / SCALE,
        frame.top / SCALE,
        (frame.height - frame.bottom) / SCALE,
        frame.right - frame.left,
        frame.bottom - frame.top,
    );
}

/// Joins `points`. A line that is no thinner than 2 has dashes where another run has its hue.
pub fn line(canvas: &Canvas<'_>, points: &[(i32, i32)], colour: Colour, width: i32) {
    let class = match (width, colour.style()) {
        (2.., style @ 1..) => format!(" class=\"k{style}\""),
        _ => String::new(),
    };
    let path = canvas.path(points);
    let shape = format!(
        "<path{class} d=\"{path}\" stroke=\"{}\" stroke-width=\"{width}\"/>",
        colour.variable()
    );
    canvas.drawn.borrow_mut().shapes.push_str(&shape);
}

/// Marks a point, by a shape of its own where another run has its hue.
pub fn dot(canvas: &Canvas<'_>, at: (i32, i32), colour: Colour) {
    let path = canvas.path(&[at]);
    let (style, colour) = (colour.style(), colour.variable());
    // A line without length that has ends: it keeps its shape when the drawing is stretched.
    let shape = format!("<path class=\"dot d{style}\" d=\"{path}h0\" stroke=\"{colour}\"/>");
    let hole = match style {
        0 | 3 => String::new(),
        _ => format!("<path class=\"hole d{style}\" d=\"{path}h0\" data-of=\"{colour}\"/>"),
    };
    let mut drawn = canvas.drawn.borrow_mut();
    drawn.shapes.push_str(&shape);
    drawn.shapes.push_str(&hole);
}

/// Marks a point by a ring around it, through which a dot shows.
pub fn ring(canvas: &Canvas<'_>, at: (i32, i32), colour: Colour) {
    let path = canvas.path(&[at]);
    let shape = format!("<path class=\"ring\" d=\"{path}h0\" stroke=\"{}\"/>", colour.variable());
    canvas.drawn.borrow_mut().shapes.push_str(&shape);
}

/// Fills a rectangle between two corners.
pub fn bar(canvas: &Canvas<'_>, from: (i32, i32), to: (i32, i32), colour: Colour) {
    let path = canvas.path(&[from, (to.0, from.1), to, (from.0, to.1)]);
    let shape = format!("<path class=\"bar\" d=\"{path}z\" fill=\"{}\"/>", colour.variable());
    canvas.drawn.borrow_mut().shapes.push_str(&shape);
}

/// A label of an axis.
pub fn text(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos) {
    canvas.label(label, at, anchor, "");
}

/// A label that names something.
pub fn ink(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos) {
    canvas.label(label, at, anchor, " ink");
}

/// Fills what `points` enclose, so thinly that the grid shows through.
pub fn area(canvas: &Canvas<'_>, points: Vec<(i32, i32)>, colour: Colour) {
    let path = canvas.path(&points);
    let shape = format!("<path class=\"area\" d=\"{path}z\" fill=\"{}\"/>", colour.variable());
    canvas.drawn.borrow_mut().shapes.push_str(&shape);
}

impl Canvas<'_> {
    /// The points as the data of a path, in units of the field: the first, and from each to the next.
    fn path(&self, points: &[(i32, i32)]) -> String {
        let mut path = String::new();
        let mut before = None;
        for (x, y) in points {
            let (x, y) = (x - self.frame.left, y - self.frame.top);
            let _ = match before.map(|(a, b)| (x - a, y - b)) {
                None => write!(path, "M{x} {y}"),
                Some((across, 0)) => write!(path, "h{across}"),
                Some((0, down)) => write!(path, "v{down}"),
                Some((across, down)) => write!(path, "l{across} {down}"),
            };
            before = Some((x, y));
        }
        path
    }

    fn label(&self, text: &str, at: (i32, i32), anchor: HPos, class: &str) {
        let anchor = match anchor {
            HPos::Left => "l",
            HPos::Right => "r",
            HPos::Center => "c",
        };
        let class = format!("{anchor}{class}");
        label(self.frame, &mut self.drawn.borrow_mut().labels, text, at, &class);
    }
}

fn label(frame: &Frame, labels: &mut String, text: &str, (x, y): (i32, i32), class: &str) {
    let (left, top) = (frame.across(x), (y - frame.top) / SCALE);
    let text = escape(text);
    let _ =
        write!(labels, "<span class=\"{class}\" style=\"left:{left};top:{top}px\">{text}</span>");
}

/// Round values from 0 to `end`, `most` of them at most besides 0.
pub fn ticks(end: f64, most: f64) -> Vec<f64> {
    let magnitude = 10f64.powf(end.log10().floor());
    let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
        .map(|share| share * magnitude)
        .into_iter()
        .find(|step| end / step <= most)
        .unwrap_or(magnitude * 10.0);
    (0..=(end / step) as usize).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let (left, top, width, height) = (10, 20, 2 * (10 + 300), 140);
        Frame {
            reader: "test".into(),
            left,
            right: width - 20,
            top,
            bottom: 120,
            width,
            height,
            from: 0.0,
            to: 10.0,
        }
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(100.0, 10.0).len(), 11);
        assert_eq!(ticks(730.0, 10.0), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0]);
        for end in [1e-9, 0.3, 1.7, 12.0, 99.0, 4321.0] {
            let ticks = ticks(end, 10.0);
            assert!((4..=11).contains(&ticks.len()), "{end}: {ticks:?}");
            assert!(ticks[ticks.len() - 1] <= end * 1.000001);
        }
    }

    #[test]
    fn shapes_lie_in_the_field_and_labels_around_it() {
        let frame = frame();
        let mut body = String::new();
        draw(&frame, "a & b", &mut body, |canvas| {
            line(canvas, &[(10, 20), (10, 120), (600, 120), (305, 70)], colour_of(9), 2);
            dot(canvas, (305, 70), colour_of(1));
            text(canvas, "<0>", (2, 120), HPos::Right);
            ink(canvas, "end", (604, 20), HPos::Left);
        });
        assert!(
            body.contains("aria-label=\"a &amp; b\"") && body.contains("viewBox=\"0 0 590 100\"")
        );
        assert!(
            body.contains("<path class=\"k1\" d=\"M0 0v100h590l-295 -50\" stroke=\"var(--s9)\""),
            "{body}"
        );
        assert!(
            body.contains("<path class=\"dot d0\" d=\"M295 50h0\" stroke=\"var(--s1)\"/>"),
            "{body}"
        );
        assert!(
            body.contains("<span class=\"r\" style=\"left:-4px;top:50px\">&lt;0&gt;</span>"),
            "{body}"
        );
        assert!(
            body.contains("<span class=\"l ink\" style=\"left:calc(100% + 2px);top:0px\">end"),
            "{body}"
        );
    }

    #[test]
    fn marks_that_do_not_fit_a_narrow_screen_are_labelled_on_wide_ones() {
        let mut body = String::new();
        let frame = frame();
        draw(&frame, "", &mut body, |canvas| {
            ticks(10.0, 10.0)
                .iter()
                .for_each(|tick| frame.mark(canvas, *tick, &format!("{tick} s")));
        });
        assert_eq!(body.matches("class=\"c\"").count(), 6, "{body}");
        assert_eq!(body.matches("class=\"c wide\"").count(), 5);
    }
}
