//! The distribution of response times as lines.

use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{LatencyCdf, Report};
use crate::page::svg::{Canvas, Frame, GRID, HPos, SCALE, WIDTH, colour_of, draw, line, text};
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
pub(super) fn time_label(decade: i32) -> String {
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
