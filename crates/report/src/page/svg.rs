//! Charts as SVG. Colours are placeholders while plotters draws and become CSS variables
//! afterwards, so that one picture serves light and dark pages.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::prelude::*;
pub use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::{Pos, VPos};

use super::{COLOURS, escape};

/// The SVG is drawn at twice the size it is shown at, because plotters rounds to whole units.
pub const SCALE: i32 = 2;
/// Width of a chart that takes the whole width of a section.
pub const WIDTH: i32 = 1070 * SCALE;
/// Why drawing has no error to report.
const IN_MEMORY: &str = "drawing into a string cannot fail";

const FONT: i32 = 15 * SCALE;

// Placeholder colours: red and green say "a variable", blue says which.
/// The colour of text and axes.
pub const INK: RGBColor = RGBColor(1, 2, 250);
/// The colour of what is said beside.
pub const MUTED: RGBColor = RGBColor(1, 2, 251);
/// The colour of the lines of a grid.
pub const GRID: RGBColor = RGBColor(1, 2, 252);

/// The colour of run or line `index`.
pub const fn colour_of(index: usize) -> RGBColor {
    RGBColor(1, 2, index as u8)
}

/// What charts are drawn on.
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Where a chart lies in its SVG and what its horizontal axis spans, for the script.
pub struct Frame {
    /// Which values the script reads out here.
    pub reader: String,
    /// Its left edge, in units of the SVG as all lengths here.
    pub left: i32,
    /// Its right edge.
    pub right: i32,
    /// Its upper edge.
    pub top: i32,
    /// Its lower edge.
    pub bottom: i32,
    /// Width of the SVG.
    pub width: i32,
    /// Height of the SVG.
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
        let at = self.x(value);
        line(canvas, &[(at, self.top), (at, self.bottom)], GRID, 1);
        text(canvas, label, (at, self.bottom + 18 * SCALE), HPos::Center);
    }

    /// What the horizontal axis shows.
    pub fn name_axis(&self, canvas: &Canvas<'_>, name: &str) {
        let middle = ((self.left + self.right) / 2, self.bottom + 40 * SCALE);
        text(canvas, name, middle, HPos::Center);
    }
}

/// Draws into an SVG of the frame's size and appends it, made accessible and themeable.
pub fn draw(frame: &Frame, title: &str, body: &mut String, paint: impl FnOnce(&Canvas<'_>)) {
    let mut svg = String::new();
    let canvas = SVGBackend::with_string(&mut svg, (frame.width as u32, frame.height as u32))
        .into_drawing_area();
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
    for index in 0..COLOURS {
        content =
            content.replace(&format!("\"#0102{index:02X}\""), &format!("\"var(--s{index})\""));
    }
    let share = |value: i32, whole: i32| f64::from(value) / f64::from(whole);
    let _ = writeln!(
        body,
        "<div class=\"plot\" data-reader=\"{}\" data-left=\"{:.5}\" data-right=\"{:.5}\" \
         data-top=\"{:.5}\" data-bottom=\"{:.5}\" data-from=\"{}\" data-to=\"{}\">\
         <svg{} viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{content}</div>",
        frame.reader,
        share(frame.left, frame.width),
        share(frame.right, frame.width),
        share(frame.top, frame.height),
        share(frame.bottom, frame.height),
        frame.from,
        frame.to,
        // It fits on a narrow screen, where a wide one scrolls.
        if frame.width < WIDTH { " class=\"half\"" } else { "" },
        frame.width,
        frame.height,
        escape(title),
    );
}

/// Joins `points`.
pub fn line(canvas: &Canvas<'_>, points: &[(i32, i32)], colour: RGBColor, width: i32) {
    let style = colour.stroke_width((width * SCALE) as u32);
    canvas.draw(&PathElement::new(points.to_vec(), style)).expect(IN_MEMORY);
}

/// Marks a point.
pub fn dot(canvas: &Canvas<'_>, at: (i32, i32), colour: RGBColor) {
    canvas.draw(&Circle::new(at, 3 * SCALE, colour.filled())).expect(IN_MEMORY);
}

/// Marks a point by a ring around it.
pub fn ring(canvas: &Canvas<'_>, at: (i32, i32), colour: RGBColor) {
    let style = colour.stroke_width((2 * SCALE) as u32);
    canvas.draw(&Circle::new(at, 6 * SCALE, style)).expect(IN_MEMORY);
}

/// Fills a rectangle between two corners.
pub fn bar(canvas: &Canvas<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) {
    canvas.draw(&Rectangle::new([from, to], colour.filled())).expect(IN_MEMORY);
}

/// A label of an axis.
pub fn text(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos) {
    label_in(canvas, label, at, anchor, MUTED);
}

/// A label that names something.
pub fn ink(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos) {
    label_in(canvas, label, at, anchor, INK);
}

/// Fills what `points` enclose, so thinly that the grid shows through.
pub fn area(canvas: &Canvas<'_>, points: Vec<(i32, i32)>, colour: RGBColor) {
    canvas.draw(&Polygon::new(points, colour.mix(0.22).filled())).expect(IN_MEMORY);
}

fn label_in(canvas: &Canvas<'_>, label: &str, at: (i32, i32), anchor: HPos, colour: RGBColor) {
    let style = TextStyle::from(("inherit", FONT).into_font())
        .color(&colour)
        .pos(Pos::new(anchor, VPos::Center));
    canvas.draw(&Text::new(label.to_string(), at, style)).expect(IN_MEMORY);
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
}
