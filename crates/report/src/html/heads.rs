//! The way of the heads: the addresses of requests in the order in which they came and in that in which they went.

use super::super::drawn::CHART_RUNS_MAX;
use super::super::heads::Head;
use super::super::report::Report;
use crate::format::short;
use crate::page::svg::{
    Canvas, Frame, GRID, HPos, MUTED, SCALE, WIDTH, colour_of, draw, ink, line, text, ticks,
};
use crate::page::{escape, open_section};
use imbrex_core::units::BLOCK_BYTES;

/// Dispatches of a disk that are drawn at most: more cannot be told apart.
const DRAWN_MAX: usize = 120;
/// Charts of a page at most.
const CHARTS_MAX: usize = 16;

const BYTES_PER_GB: f64 = 1e9;

/// The section; nothing where nobody asked for dispatches.
pub(super) fn of_disks(report: &Report, body: &mut String) {
    let mut charts = Vec::new();
    for (index, run) in report.runs.iter().take(CHART_RUNS_MAX).enumerate() {
        for of_disk in run.figures.heads.dispatches.chunk_by(|a, b| a.disk == b.disk) {
            charts.push((index, run.label(), &of_disk[..of_disk.len().min(DRAWN_MAX)]));
        }
    }
    if charts.is_empty() {
        return;
    }
    open_section(
        "Ways of the heads",
        &format!(
            "Addresses of the first {DRAWN_MAX} requests that went to each disk in the time that was asked for, at most: the \
             thin line in the order in which they came, the thick one in the order in which they went. heads.csv \
             has all that were kept."
        ),
        body,
    );
    for (index, label, dispatches) in charts.into_iter().take(CHARTS_MAX) {
        chart(index, &label, dispatches, body);
    }
    body.push_str("</section>\n");
}

fn chart(index: usize, label: &str, dispatches: &[Head], body: &mut String) {
    let name = format!("{label}, {}", dispatches[0].disk);
    body.push_str(&format!("<h3>{}</h3>\n", escape(&name)));
    let gb = |head: &Head| head.address_block as f64 * BLOCK_BYTES as f64 / BYTES_PER_GB;
    let highest = dispatches.iter().map(gb).fold(1e-6, f64::max);
    let frame = Frame {
        reader: String::new(),
        left: 84 * SCALE,
        right: WIDTH - 12 * SCALE,
        top: 12 * SCALE,
        bottom: 170 * SCALE,
        width: WIDTH,
        height: 222 * SCALE,
        from: 0.0,
        to: dispatches.len().saturating_sub(1).max(1) as f64,
    };
    let y = |gb: f64| frame.bottom - (gb / highest * f64::from(frame.bottom - frame.top)) as i32;
    let points = |order: &[&Head]| -> Vec<(i32, i32)> {
        let points = order.iter().enumerate();
        points.map(|(place, head)| (frame.x(place as f64), y(gb(head)))).collect()
    };
    let went: Vec<&Head> = dispatches.iter().collect();
    let mut came = went.clone();
    came.sort_by(|a, b| a.arrived_s.total_cmp(&b.arrived_s));
    draw(&frame, &format!("Way of the head of {name}"), body, |canvas: &Canvas<'_>| {
        for gb in ticks(highest, 4.0) {
            line(canvas, &[(frame.left, y(gb)), (frame.right, y(gb))], GRID, 1);
            text(canvas, &short(gb), (frame.left - 8 * SCALE, y(gb)), HPos::Right);
        }
        ink(canvas, "GB", (8 * SCALE, frame.top), HPos::Left);
        frame.name_axis(canvas, "requests, one after another");
        line(canvas, &points(&came), MUTED, 1);
        line(canvas, &points(&went), colour_of(index), 2);
    });
}
