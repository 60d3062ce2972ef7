//! Rates, active periods and gaps, as the requests come.

use imbrex_drives::time_buckets::{Buckets, halve};

use super::access::Access;
use super::arrivals::{Activity, Gaps, Idle, LoadSeries, Peak};
use super::histogram::Histogram;
use super::{percent, ratio};

const NS_PER_S: u64 = 1_000_000_000;
/// Lengths of the intervals of peaks, seconds.
const PEAK_INTERVALS_S: [u64; 3] = [1, 60, 600];
/// Length of the intervals that are active or not (Li et al.), seconds.
const ACTIVE_INTERVAL_S: u64 = 600;
/// Gaps that are idle, milliseconds.
const IDLE_MS: [u64; 4] = [100, 1000, 10_000, 60_000];
/// A gap that ends a burst of writes.
const BURST_ENDS_NS: u64 = NS_PER_S;
/// Windows of the series, at most.
const WINDOWS: usize = 512;

/// The fullest interval of one length so far.
#[derive(Default)]
struct Fullest {
    interval: u64,
    requests: u64,
    written_bytes: u64,
    most_requests: u64,
    most_written_bytes: u64,
}

impl Fullest {
    fn add(&mut self, interval: u64, written_bytes: u64) {
        if interval != self.interval {
            self.interval = interval;
            (self.requests, self.written_bytes) = (0, 0);
        }
        self.requests += 1;
        self.written_bytes += written_bytes;
        self.most_requests = self.most_requests.max(self.requests);
        self.most_written_bytes = self.most_written_bytes.max(self.written_bytes);
    }
}

/// Counts the intervals something happens in.
#[derive(Default)]
struct Active {
    last: Option<u64>,
    intervals: u64,
}

impl Active {
    fn add(&mut self, interval: u64) {
        if self.last != Some(interval) {
            self.last = Some(interval);
            self.intervals += 1;
        }
    }
}

/// Follows the arrivals. Times never decrease.
pub(super) struct Arrivals {
    fullest: [Fullest; PEAK_INTERVALS_S.len()],
    any_active: Active,
    /// Reads, writes.
    active: [Active; 2],
    requests: u64,
    last_ns: Option<u64>,
    gaps: Histogram,
    /// Number and sum of the gaps of at least each length.
    idle: [(u64, u128); IDLE_MS.len()],
    burst_bytes: u64,
    largest_burst_bytes: u64,
    buckets: Buckets,
    windows: Vec<Window>,
}

#[derive(Clone, Copy, Default)]
struct Window {
    requests: [u64; 2],
    bytes: [u64; 2],
}

impl Window {
    fn merged(first: Self, second: Self) -> Self {
        Self {
            requests: [0, 1].map(|i| first.requests[i] + second.requests[i]),
            bytes: [0, 1].map(|i| first.bytes[i] + second.bytes[i]),
        }
    }
}

impl Arrivals {
    pub(super) fn new() -> Self {
        Self {
            fullest: Default::default(),
            any_active: Active::default(),
            active: Default::default(),
            requests: 0,
            last_ns: None,
            gaps: Histogram::default(),
            idle: Default::default(),
            burst_bytes: 0,
            largest_burst_bytes: 0,
            buckets: Buckets::new(WINDOWS),
            windows: vec![Window::default(); WINDOWS],
        }
    }

    /// A record of any kind arrives.
    pub(super) fn arrive(&mut self, at_ns: u64) {
        let Some(last_ns) = self.last_ns.replace(at_ns) else {
            return;
        };
        let gap_ns = at_ns - last_ns;
        self.gaps.add(gap_ns, 1);
        for (idle, least_ms) in self.idle.iter_mut().zip(IDLE_MS) {
            if gap_ns < least_ms * 1_000_000 {
                break;
            }
            idle.0 += 1;
            idle.1 += u128::from(gap_ns);
        }
        if gap_ns >= BURST_ENDS_NS {
            self.burst_bytes = 0;
        }
    }

    /// Counts a read or write that has arrived.
    pub(super) fn add(&mut self, access: &Access) {
        let second = access.time_ns / NS_PER_S;
        let written_bytes = if access.write { access.length_bytes } else { 0 };
        for (fullest, length_s) in self.fullest.iter_mut().zip(PEAK_INTERVALS_S) {
            fullest.add(second / length_s, written_bytes);
        }
        self.any_active.add(second / ACTIVE_INTERVAL_S);
        self.active[access.direction()].add(second / ACTIVE_INTERVAL_S);
        self.requests += 1;
        self.burst_bytes += written_bytes;
        self.largest_burst_bytes = self.largest_burst_bytes.max(self.burst_bytes);
        self.reach(access.time_ns);
        let window = &mut self.windows[self.buckets.index(access.time_ns)];
        window.requests[access.direction()] += 1;
        window.bytes[access.direction()] += access.length_bytes;
    }

    fn reach(&mut self, at_ns: u64) {
        while !self.buckets.reach(at_ns) {
            halve(&mut self.windows, Window::merged);
            self.buckets.width_ns *= 2;
        }
    }

    /// How intense the load was until the last record, at `end_ns`.
    pub(super) fn activity(&self, end_ns: u64) -> Activity {
        let mean = match end_ns {
            0 => 0.0,
            _ => self.requests as f64 * NS_PER_S as f64 / end_ns as f64,
        };
        let intervals = end_ns / (ACTIVE_INTERVAL_S * NS_PER_S) + 1;
        let peaks = self.fullest.iter().zip(PEAK_INTERVALS_S);
        Activity {
            mean_requests_per_s: mean,
            peaks: peaks
                .map(|(fullest, interval_s)| {
                    let requests_per_s = ratio(fullest.most_requests, interval_s);
                    Peak {
                        interval_s,
                        requests_per_s,
                        burstiness_ratio: if mean > 0.0 { requests_per_s / mean } else { 0.0 },
                        written_bytes: fullest.most_written_bytes,
                    }
                })
                .collect(),
            active_intervals: self.any_active.intervals,
            read_active_intervals: self.active[0].intervals,
            write_active_intervals: self.active[1].intervals,
            intervals,
            active_percent: percent(self.any_active.intervals, intervals),
        }
    }

    /// The load over time until `end_ns`.
    pub(super) fn load(&mut self, end_ns: u64) -> LoadSeries {
        self.reach(end_ns);
        let windows = &self.windows[..self.buckets.used(end_ns.saturating_add(1))];
        let of = |value: fn(&Window) -> u64| windows.iter().map(value).collect();
        LoadSeries {
            window_s: self.buckets.width_ns as f64 / NS_PER_S as f64,
            reads: of(|window| window.requests[0]),
            writes: of(|window| window.requests[1]),
            read_bytes: of(|window| window.bytes[0]),
            written_bytes: of(|window| window.bytes[1]),
        }
    }

    /// The gaps until `end_ns`.
    pub(super) fn gaps(&self, end_ns: u64) -> Gaps {
        let idle = self.idle.iter().zip(IDLE_MS);
        Gaps {
            inter_arrival_ns: self.gaps.distribution(),
            idle: idle
                .map(|(&(gaps, sum_ns), least_ms)| Idle {
                    at_least_s: least_ms as f64 / 1e3,
                    gaps,
                    total_s: sum_ns as f64 / 1e9,
                    time_percent: if end_ns == 0 {
                        0.0
                    } else {
                        100.0 * sum_ns as f64 / end_ns as f64
                    },
                })
                .collect(),
            largest_write_burst_bytes: self.largest_burst_bytes,
        }
    }
}
