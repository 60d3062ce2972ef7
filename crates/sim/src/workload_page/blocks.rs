//! What needs no times: sizes, how often blocks are written, what a cache would hit.

use imbrex_traces::TraceInfo;
use imbrex_traces::characterise::{Bin, CdfPoint, LruPoint};

use super::Page;
use super::axis::{Axis, Unit};
use super::chart::{Chart, Course, Line};

pub(super) const BLOCK_BYTES: f64 = 4096.0;

/// Sizes of the requests.
pub(super) fn sizes(info: &TraceInfo, page: &mut Page) {
    let sizes = &info.sections.request_sizes;
    let line =
        |name, colour, bins| Line { name, colour, course: Course::Steps, points: cumulative(bins) };
    let mut lines = vec![line("reads", 0, &sizes.read), line("writes", 1, &sizes.write)];
    let values = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    // The axis begins before the least size, so that its step is seen.
    let least = values.clone().fold(f64::INFINITY, f64::min) / 2.0;
    let across = Axis::log("size, logarithmic", Unit::Bytes, values.chain([least]));
    for line in lines.iter_mut().filter(|line| !line.points.is_empty()) {
        line.points.insert(0, (across.from, 0.0));
    }
    Chart {
        title: "Request sizes",
        definition: "Share of the requests of a direction that are at most so large. A steep step is a size \
                     that many requests have."
            .to_string(),
        across,
        up: Axis::linear("share of the requests", Unit::Percent, 100.0),
        is_wide: false,
        lines,
    }
    .section(page);
}

fn cumulative(bins: &[Bin]) -> Vec<(f64, f64)> {
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    let mut sum = 0;
    let mut point = |bin: &Bin| {
        sum += bin.count;
        (bin.to as f64, 100.0 * sum as f64 / total.max(1) as f64)
    };
    bins.iter().map(&mut point).collect()
}

/// What an LRU cache of a size would hit.
pub(super) fn lru(info: &TraceInfo, page: &mut Page) {
    let line = |of: fn(&LruPoint) -> f64| {
        let points = info.sections.reuse.lru.iter();
        points.map(|point| (point.cache_blocks as f64 * BLOCK_BYTES, of(point))).collect()
    };
    let of_direction = |requests: u64, of| if requests > 0 { line(of) } else { vec![] };
    lru_chart(
        line(|point| point.hit_percent),
        of_direction(info.read.requests, |point| point.read_hit_percent),
        of_direction(info.write.requests, |point| point.write_hit_percent),
    )
    .section(page);
}

/// Hits by the size of the cache in bytes: of all accesses, of the reads, of the writes.
pub(super) fn lru_chart(
    all: Vec<(f64, f64)>,
    reads: Vec<(f64, f64)>,
    writes: Vec<(f64, f64)>,
) -> Chart {
    let line = |name, colour, course, points| Line { name, colour, course, points };
    let sizes: Vec<f64> = all.iter().map(|point| point.0).collect();
    let mut lines = vec![line("all", 2, Course::Straight, all)];
    // In a trace of one direction, its line is that of all.
    if !reads.is_empty() && !writes.is_empty() {
        lines.push(line("reads", 0, Course::Straight, reads));
        lines.push(line("writes (dashes)", 1, Course::Dashes, writes));
    }
    Chart {
        title: "Hits of an LRU cache",
        definition:
            "Share of the block accesses that a cache of that size would hit, if it keeps what was \
                     read or written and replaces the least recently used 4 KiB block."
                .to_string(),
        across: Axis::log("size of the cache, logarithmic", Unit::Bytes, sizes.into_iter()),
        up: Axis::linear("hits", Unit::Percent, 100.0),
        is_wide: false,
        lines,
    }
}

/// How often the blocks that were accessed at all were written.
pub(super) fn of_blocks_accessed(info: &TraceInfo, page: &mut Page) {
    counts(
        info,
        "Writes per block, of the blocks accessed",
        "Of the distinct 4 KiB blocks read or written, the share written, or updated, at most so many times. \
         A block that is never written counts as 0 times; one written n times is updated n - 1 times.",
        |point| (point.accessed_written_percent, point.accessed_updated_percent),
        page,
    );
}

/// How often the blocks that were written were written.
pub(super) fn of_blocks_written(info: &TraceInfo, page: &mut Page) {
    counts(
        info,
        "Writes per block, of the blocks written",
        "Of the distinct 4 KiB blocks written at least once, the share written, or updated, at most so many \
         times. The further right a line rises, the more the writes return to the same blocks.",
        |point| (point.written_written_percent, point.written_updated_percent),
        page,
    );
}

/// A chart of shares of blocks by how often they are written: of the written and of the updated.
fn counts(
    info: &TraceInfo,
    title: &'static str,
    definition: &str,
    shares: fn(&CdfPoint) -> (f64, f64),
    page: &mut Page,
) {
    let cdf = &info.sections.popularity.cdf;
    // Shares of no blocks say nothing.
    if info.write.unique_blocks == 0 {
        return;
    }
    let line = |name, colour, of: fn((f64, f64)) -> f64| Line {
        name,
        colour,
        course: Course::Steps,
        points: (cdf.iter()).map(|point| (point.times as f64, of(shares(point)))).collect(),
    };
    let most = cdf.last().map_or(0, |point| point.times);
    Chart {
        title,
        definition: definition.to_string(),
        across: Axis::log_with_zero("times, logarithmic", Unit::Count, most as f64),
        up: Axis::linear("share of the blocks", Unit::Percent, 100.0),
        is_wide: false,
        lines: vec![
            line("written", 1, |(written, _)| written),
            line("updated", 5, |(_, updated)| updated),
        ],
    }
    .section(page);
}
