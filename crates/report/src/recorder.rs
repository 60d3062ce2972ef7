//! What a run must remember while it lasts, in constant memory.

use super::histogram::LatencyHistogram;
use super::report::{Figures, Run};
use super::series::{GaugeSeries, SumSeries};
use imbrex_drives::HeatMap;
use std::collections::BTreeMap;

/// Buckets of a time series at most.
pub const SERIES_BUCKETS: usize = 512;

/// The fill of the persistent cache is kept in millionths.
const FILL_SCALE: u64 = 1_000_000;

const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

/// Collects latencies and series of one run, in simulation and in service alike.
///
/// Call [`read_completed`](Recorder::read_completed),
/// [`write_completed`](Recorder::write_completed) or
/// [`other_completed`](Recorder::other_completed) for each host request,
/// [`persistent_cache_used`](Recorder::persistent_cache_used) when the fill changes, and
/// [`finish`](Recorder::finish) once. Instants are nanoseconds from the start of the run. A request
/// allocates nothing.
pub struct Recorder {
    reads: LatencyHistogram,
    writes: LatencyHistogram,
    others: LatencyHistogram,
    read_bytes: SumSeries,
    written_bytes: SumSeries,
    requests: SumSeries,
    fill: GaugeSeries,
    has_fill: bool,
}

impl Recorder {
    /// A recorder in which nothing has happened, about 1.2 MB.
    pub fn new() -> Recorder {
        Recorder {
            reads: LatencyHistogram::new(),
            writes: LatencyHistogram::new(),
            others: LatencyHistogram::new(),
            read_bytes: SumSeries::new(SERIES_BUCKETS),
            written_bytes: SumSeries::new(SERIES_BUCKETS),
            requests: SumSeries::new(SERIES_BUCKETS),
            fill: GaugeSeries::new(SERIES_BUCKETS),
            has_fill: false,
        }
    }

    /// A host read of `bytes` bytes took `latency_ns` and completed at `now_ns`.
    pub fn read_completed(&mut self, now_ns: u64, latency_ns: u64, bytes: u64) {
        self.reads.record(latency_ns);
        self.read_bytes.add(now_ns, bytes);
        self.requests.add(now_ns, 1);
    }

    /// A host write of `bytes` bytes took `latency_ns` and completed at `now_ns`.
    pub fn write_completed(&mut self, now_ns: u64, latency_ns: u64, bytes: u64) {
        self.writes.record(latency_ns);
        self.written_bytes.add(now_ns, bytes);
        self.requests.add(now_ns, 1);
    }

    /// A host request that moves no data (flush, write of zeroes, trim) took `latency_ns` and
    /// completed at `now_ns`. It counts as a request, and neither as a read nor as a write.
    pub fn other_completed(&mut self, now_ns: u64, latency_ns: u64) {
        self.others.record(latency_ns);
        self.requests.add(now_ns, 1);
    }

    /// From `now_ns` on, `used` of `capacity` of the persistent cache (bytes or entries, whichever
    /// is nearer its limit) is in use; instants must not decrease.
    pub fn persistent_cache_used(&mut self, now_ns: u64, used: u64, capacity: u64) {
        // Saturates beyond 18 million million, which no persistent cache holds.
        let millionths = used.saturating_mul(FILL_SCALE) / capacity.max(1);
        self.fill.set(now_ns, millionths);
        self.has_fill = true;
    }

    /// Fills in the response times and the finish time of a run whose last answer so far came at
    /// `end_ns`, without ending it. Answers the latencies of all its requests.
    pub fn describe_so_far(&self, end_ns: u64, run: &mut Run) -> LatencyHistogram {
        run.costs.read_response_ms = self.reads.response_times();
        run.costs.write_response_ms = self.writes.response_times();
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all.add(&self.others);
        run.costs.response_ms = all.response_times();
        run.costs.finish_s = end_ns as f64 / 1e9;
        all
    }

    /// Ends the run at `end_ns` and fills in its response times, finish time and figures, all but
    /// the map of writes to bands and what nodes have to tell.
    pub fn finish(mut self, end_ns: u64, run: &mut Run) {
        let all = self.describe_so_far(end_ns, run);
        run.figures = Figures {
            read_mib_per_s: self.read_bytes.rates(end_ns, 1.0 / BYTES_PER_MIB),
            write_mib_per_s: self.written_bytes.rates(end_ns, 1.0 / BYTES_PER_MIB),
            requests_per_s: self.requests.rates(end_ns, 1.0),
            persistent_cache_fill: if self.has_fill {
                self.fill.means(end_ns, 1.0 / FILL_SCALE as f64)
            } else {
                Default::default()
            },
            latency_cdf: all.cdf(),
            // The disks know where they were written.
            band_writes: HeatMap::default(),
            series: BTreeMap::new(),
            // The stack knows what its nodes have to tell.
            tables: Vec::new(),
        };
    }
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::ReplayMode;
    use super::*;

    #[test]
    fn a_recorder_fills_the_run() {
        let mut recorder = Recorder::new();
        recorder.write_completed(1_000_000_000, 2_000_000, 1 << 20);
        recorder.read_completed(2_000_000_000, 4_000_000, 1 << 20);
        recorder.other_completed(2_000_000_000, 9_000_000);
        recorder.persistent_cache_used(0, 1, 2);
        let mut run = Run::new("lru", ReplayMode::Live);
        recorder.finish(2_000_000_000, &mut run);
        assert_eq!(run.costs.finish_s, 2.0);
        assert_eq!(run.costs.response_ms.mean, Some(5.0));
        assert_eq!(run.costs.response_ms.max, Some(9.0));
        assert_eq!(run.costs.read_response_ms.max, Some(4.0));
        assert_eq!(run.costs.write_response_ms.max, Some(2.0));
        let figures = run.figures;
        let requests: f64 =
            figures.requests_per_s.values.iter().sum::<f64>() * figures.requests_per_s.bucket_s;
        assert!((requests - 3.0).abs() < 1e-3, "{requests}");
        let mib: f64 =
            figures.write_mib_per_s.values.iter().sum::<f64>() * figures.write_mib_per_s.bucket_s;
        assert!((mib - 1.0).abs() < 1e-3, "{mib}");
        assert!(figures.persistent_cache_fill.values.iter().all(|fill| *fill == 0.5));
    }
}
