//! What a stack of segments did: segments or S-blocks rewritten, the write buffer and the read cache.

use super::drawn::CHART_RUNS_MAX;
use super::ratio;
use super::report::{Report, Run};

/// What a run says in one number of its segments; none where the stack has no such nodes.
pub(super) struct SegmentMetric {
    /// Two lines of the header on a terminal.
    pub header: &'static str,
    /// Name in the page.
    pub name: &'static str,
    /// Unit in the page.
    pub unit: &'static str,
    /// Column of the CSV file.
    pub csv: &'static str,
    /// Whether less is better; none where neither is.
    pub is_cost: Option<bool>,
    /// The number; a share is in per cent.
    pub value: fn(&Run) -> Option<f64>,
}

/// In the order of the columns.
pub(super) const SEGMENT_METRICS: [SegmentMetric; 4] = [
    SegmentMetric {
        header: "segs\n/10k",
        name: "segments rewritten",
        unit: "per 10,000 requests",
        csv: "segments_per_10000_requests",
        is_cost: Some(true),
        value: |run| {
            let segments = run.counter("segments_rewritten")?;
            ratio(segments * 10_000, run.host.requests)
        },
    },
    SegmentMetric {
        header: "blks\n/seg",
        name: "blocks per rewrite",
        unit: "blocks",
        csv: "blocks_per_rewrite",
        is_cost: None,
        value: |run| {
            let written =
                run.counter("destaged_blocks")? + run.counter("rewrite_blocks_written")?;
            ratio(written, run.counter("segments_rewritten")?)
        },
    },
    SegmentMetric {
        header: "buf\nhit %",
        name: "buffer hits",
        unit: "%",
        csv: "buffer_hit_percent",
        is_cost: Some(false),
        value: |run| {
            let hits = run.counter("hit_block_reads")? + run.counter("hit_block_writes")?;
            let looked_up = run.counter("block_reads")? + run.counter("block_writes")?;
            ratio(100 * hits, looked_up)
        },
    },
    SegmentMetric {
        header: "ssd\nhit %",
        name: "read-cache hits",
        unit: "%",
        csv: "read_cache_hit_percent",
        is_cost: Some(false),
        value: |run| {
            let hits = run.counter("hit_blocks")?;
            ratio(100 * hits, hits + run.counter("miss_blocks")?)
        },
    },
];

impl Run {
    /// A counter of the only node that has it.
    fn counter(&self, name: &str) -> Option<u64> {
        let mut found = self.nodes.values().filter_map(|node| node.get(name));
        let first = found.next().copied()?;
        found.next().is_none().then_some(first)
    }

    /// Segments rewritten; none for a stack without segments.
    pub(super) fn segments_rewritten(&self) -> Option<u64> {
        self.counter("segments_rewritten")
    }
}

impl Report {
    /// Whether some run has a number about segments.
    pub(super) fn has_segments(&self) -> bool {
        let has_one =
            |run: &Run| (SEGMENT_METRICS.iter()).any(|metric| (metric.value)(run).is_some());
        self.runs.iter().any(has_one)
    }

    /// The numbers of the runs that are drawn and have one, each with the place and the label of its run.
    pub(super) fn segment_bars(&self, metric: &SegmentMetric) -> Vec<(usize, String, f64)> {
        let drawn = self.runs.iter().take(CHART_RUNS_MAX).enumerate();
        drawn.filter_map(|(i, run)| Some((i, run.label(), (metric.value)(run)?))).collect()
    }
}
