//! What needs times: rates, the working set and the map over time, gaps and intervals.

use std::fmt::Write as _;

use imbrex_traces::TraceInfo;
use imbrex_traces::characterise::{Bin, Distribution};

use super::Page;
use super::axis::{Axis, Unit};
use super::chart::{Chart, Course, Line, from_zero};
use imbrex_report::format::{count, duration, number, short_duration};
use imbrex_report::page::{PackedHeatMap, open_scroll, open_section};

const BLOCK_BYTES: f64 = 4096.0;
const NS_PER_S: f64 = 1e9;

/// The trace's length where things happen in it over time.
fn length_s(info: &TraceInfo) -> Option<f64> {
    info.duration_s.filter(|seconds| *seconds > 0.0)
}

/// A step for each window, `scale` times its value.
fn windows(name: &'static str, colour: usize, window_s: f64, values: &[u64], scale: f64) -> Line {
    let point = |(index, value): (usize, &u64)| (index as f64 * window_s, *value as f64 * scale);
    Line {
        name,
        colour,
        course: Course::Areas,
        points: values.iter().enumerate().map(point).collect(),
    }
}

fn greatest(lines: &[Line]) -> f64 {
    let points = lines.iter().flat_map(|line| &line.points);
    points.map(|point| point.1).fold(0.0, f64::max)
}

/// How a length of time is named in a sentence.
fn each(window_s: f64) -> String {
    format!("Each step is {}.", short_duration(window_s))
}

/// Requests per second.
pub(super) fn requests(info: &TraceInfo, page: &mut Page) {
    let (Some(load), Some(length_s)) = (&info.sections.load, length_s(info)) else {
        return;
    };
    let per_s = 1.0 / load.window_s;
    let lines = vec![
        windows("reads", 0, load.window_s, &load.reads, per_s),
        windows("writes", 1, load.window_s, &load.writes, per_s),
    ];
    Chart {
        title: "Request rate over time",
        definition: format!("Requests that arrive per second. {}", each(load.window_s)),
        across: Axis::linear("time", Unit::Seconds, length_s),
        up: Axis::linear("requests", Unit::RequestRate, greatest(&lines)),
        is_wide: false,
        lines,
    }
    .section(page);
}

/// Bytes per second.
pub(super) fn bytes(info: &TraceInfo, page: &mut Page) {
    let (Some(load), Some(length_s)) = (&info.sections.load, length_s(info)) else {
        return;
    };
    let per_s = 1.0 / load.window_s;
    let lines = vec![
        windows("read", 0, load.window_s, &load.read_bytes, per_s),
        windows("written", 1, load.window_s, &load.written_bytes, per_s),
    ];
    Chart {
        title: "Data rate over time",
        definition: format!("Bytes asked for per second. {}", each(load.window_s)),
        across: Axis::linear("time", Unit::Seconds, length_s),
        up: Axis::linear("data", Unit::ByteRate, greatest(&lines)),
        is_wide: false,
        lines,
    }
    .section(page);
}

/// Distinct blocks over time.
pub(super) fn working_set(info: &TraceInfo, page: &mut Page) {
    let (Some(set), Some(length_s)) = (&info.sections.working_set, length_s(info)) else {
        return;
    };
    let line = |name, colour, values| {
        let mut line = windows(name, colour, set.window_s, values, BLOCK_BYTES);
        line.course = Course::Steps;
        line
    };
    let mut lines = vec![
        line("accessed since the start", 2, &set.cumulative_blocks),
        line("written since the start (dashes)", 1, &set.cumulative_written_blocks),
        line("accessed in the window", 0, &set.blocks),
    ];
    // What was accessed by the end of a window is known at its end.
    for line in &mut lines[..2] {
        for point in &mut line.points {
            point.0 = (point.0 + set.window_s).min(length_s);
        }
        line.points.insert(0, (0.0, 0.0));
        line.course = Course::Straight;
    }
    lines[1].course = Course::Dashes;
    Chart {
        title: "Working set over time",
        definition: format!(
            "Size of the distinct 4 KiB blocks accessed from the start of the trace to an instant, of those \
             written, and of those accessed within one window of {}.",
            short_duration(set.window_s)
        ),
        across: Axis::linear("time", Unit::Seconds, length_s),
        up: Axis::linear("distinct blocks", Unit::Bytes, greatest(&lines)),
        is_wide: true,
        lines,
    }
    .section(page);
}

/// Two maps, to be painted by the script.
pub(super) fn heat(info: &TraceInfo, page: &mut Page) {
    let (Some(heat), Some(length_s)) = (&info.sections.heat, length_s(info)) else {
        return;
    };
    if heat.read.blocks.is_empty() && heat.write.blocks.is_empty() {
        return;
    }
    open_section(
        "Accesses by address and time",
        "Each dot is a range of addresses in a span of time; the stronger the colour, the more was read \
         or written there. Both maps share their scales. Devices lie on top of each other.",
        &mut page.body,
    );
    page.body.push_str("<div class=\"maps\">\n");
    for (name, done, map, info) in
        [("reads", "read", &heat.read, &info.read), ("writes", "written", &heat.write, &info.write)]
    {
        if map.blocks.is_empty() {
            continue;
        }
        let _ = writeln!(
            page.body,
            "<div class=\"map\" data-map=\"{}\" data-done=\"{done}\"><div class=\"head\"><span>address</span><b>{name}</b></div>\
             <div class=\"y\"></div>\
             <canvas width=\"480\" height=\"250\" role=\"img\" aria-label=\"heat map of {name} by address \
             and time: {} {name}, {} distinct blocks\"></canvas>\
             <div class=\"x\"><span>0 s</span><span>time</span><span class=\"end\"></span></div><div class=\"note\"></div></div>",
            page.heat.len(),
            count(info.requests),
            count(info.unique_blocks),
        );
        page.heat.push(PackedHeatMap::of(map, length_s));
    }
    page.body.push_str(
        "</div>\n<noscript><p class=\"why\">The maps are painted by the script of this page.</p></noscript>\n\
         <div class=\"ramp\"><span>nothing</span><canvas width=\"220\" height=\"10\" \
         role=\"img\" aria-label=\"colour scale, logarithmic\"></canvas><span class=\"most\"></span>\
         <span>(logarithmic)</span></div>\n",
    );
    page.close();
}

/// A cumulative distribution of times, per cent of `weight` of each bar.
fn cumulative(bins: &[Bin], weight: impl Fn(&Bin) -> f64) -> Vec<(f64, f64)> {
    let total: f64 = bins.iter().map(&weight).sum();
    if total <= 0.0 {
        return vec![];
    }
    let mut points: Vec<(f64, f64)> = vec![];
    let mut sum = 0.0;
    for bin in bins {
        points.push((bin.from as f64 / NS_PER_S, 100.0 * sum / total));
        sum += weight(bin);
        points.push((bin.to as f64 / NS_PER_S, 100.0 * sum / total));
    }
    points
}

fn times_of(lines: &mut [Line]) -> Axis {
    let times = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let across = Axis::log("time, logarithmic", Unit::Seconds, times);
    from_zero(lines, across.from);
    across
}

/// Times between arrivals, and how much of the trace lies in which gaps.
pub(super) fn gaps(info: &TraceInfo, page: &mut Page) {
    let Some(gaps) = &info.sections.gaps else {
        return;
    };
    let bins = &gaps.inter_arrival_ns.histogram;
    let middle = |bin: &Bin| (bin.from as f64 + bin.to as f64) / 2.0;
    let line = |name, colour, points| Line { name, colour, course: Course::Straight, points };
    let mut lines = vec![
        line("gaps", 0, cumulative(bins, |bin| bin.count as f64)),
        line("time in gaps", 2, cumulative(bins, |bin| bin.count as f64 * middle(bin))),
    ];
    let chart = Chart {
        title: "Gaps between arrivals",
        definition: "Share of the gaps between a request and the next that are at most so long, and share \
                     of the time that lies in them. Gaps at the right of the second line are where a drive \
                     can clean up."
            .to_string(),
                across: times_of(&mut lines),
        up: Axis::linear("share", Unit::Percent, 100.0),
        is_wide: false,
        lines,
    };
    if !chart.open(page) {
        return;
    }
    page.body.push_str("<h3>Idle gaps</h3>\n");
    open_scroll("idle gaps", &mut page.body);
    page.body.push_str(
        "<table><thead><tr><th scope=\"col\">at least</th><th scope=\"col\">gaps</th>\
         <th scope=\"col\">together</th><th scope=\"col\">of the time</th></tr></thead>\n<tbody>\n",
    );
    for idle in &gaps.idle {
        let _ = writeln!(
            page.body,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} %</td></tr>",
            short_duration(idle.at_least_s),
            count(idle.gaps),
            duration(idle.total_s),
            number(idle.time_percent)
        );
    }
    page.body.push_str("</tbody></table></div>\n");
    page.close();
}

/// Times between accesses of the same block.
pub(super) fn intervals(info: &TraceInfo, page: &mut Page) {
    let adjacent = &info.sections.adjacent_accesses;
    let line = |name, colour, times: &Option<Distribution>| Line {
        name,
        colour,
        // All updates of a block that is never read between are writes after writes.
        course: match colour {
            7 => Course::Dashes,
            _ => Course::Straight,
        },
        points: times
            .as_ref()
            .map_or_else(Vec::new, |times| cumulative(&times.histogram, |bin| bin.count as f64)),
    };
    let mut lines = vec![
        line("read after write", 0, &adjacent.read_after_write.time_ns),
        line("write after write", 1, &adjacent.write_after_write.time_ns),
        line("read after read", 2, &adjacent.read_after_read.time_ns),
        line("write after read", 3, &adjacent.write_after_read.time_ns),
        line("update interval (dashes)", 7, &adjacent.update_interval.time_ns),
    ];
    Chart {
        title: "Intervals between accesses of a block",
        definition: "Of the pairs of accesses to the same 4 KiB block with none between, the share that are \
                     at most so far apart. The update interval goes from a write to the next write, whatever \
                     was read between."
            .to_string(),
                across: times_of(&mut lines),
        up: Axis::linear("share of the pairs", Unit::Percent, 100.0),
        is_wide: false,
        lines,
    }
    .section(page);
}
