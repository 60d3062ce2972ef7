//! Distinct blocks over time.

use imbrex_drives::time_buckets::{Buckets, halve};
use serde::Serialize;

/// Distinct blocks in windows of equal length, at most 512. Windows double when there are too many.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct WorkingSetSeries {
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Distinct blocks accessed in each window.
    pub blocks: Vec<u64>,
    /// Distinct blocks accessed from the start to the end of each window.
    pub cumulative_blocks: Vec<u64>,
    /// Distinct blocks written from the start to the end of each window.
    pub cumulative_written_blocks: Vec<u64>,
}

/// Windows at most.
const WINDOWS: usize = 512;
/// Bits of a window's number.
const LEVELS: usize = WINDOWS.ilog2() as usize;

/// One window while it is recorded.
#[derive(Clone, Copy, Default)]
struct Window {
    /// Distinct blocks in it.
    blocks: u64,
    /// Of them, those never accessed before.
    new: u64,
    /// Blocks written in it for the first time.
    new_written: u64,
    /// Of its blocks, those accessed before in the window that becomes one with this after so many doublings, less one.
    shared: [u64; LEVELS],
}

impl Window {
    /// Two neighbours as one: what the second shares with the first counts once.
    fn merged(first: Self, second: Self) -> Self {
        let mut shared = [0; LEVELS];
        for level in 1..LEVELS {
            shared[level - 1] = first.shared[level] + second.shared[level];
        }
        Self {
            blocks: (first.blocks + second.blocks).saturating_sub(second.shared[0]),
            new: first.new + second.new,
            new_written: first.new_written + second.new_written,
            shared,
        }
    }
}

/// Counts distinct blocks per window while windows double.
pub(super) struct WorkingSetRecorder {
    buckets: Buckets,
    windows: Vec<Window>,
    current: usize,
}

impl WorkingSetRecorder {
    pub(super) fn new() -> Self {
        Self {
            buckets: Buckets::new(WINDOWS),
            windows: vec![Window::default(); WINDOWS],
            current: 0,
        }
    }

    fn reach(&mut self, at_ns: u64) {
        while !self.buckets.reach(at_ns) {
            halve(&mut self.windows, Window::merged);
            self.buckets.width_ns *= 2;
        }
        self.current = self.buckets.index(at_ns);
    }

    /// A block's first access.
    pub(super) fn first(&mut self, at_ns: u64, weight: u64) {
        self.reach(at_ns);
        let window = &mut self.windows[self.current];
        window.blocks += weight;
        window.new += weight;
    }

    /// A later access to a block.
    #[inline]
    pub(super) fn again(&mut self, last_ns: u64, at_ns: u64, weight: u64) {
        self.reach(at_ns);
        let last = self.buckets.index(last_ns);
        if last != self.current {
            let level = (last ^ self.current).ilog2() as usize;
            let window = &mut self.windows[self.current];
            window.blocks += weight;
            window.shared[level] += weight;
        }
    }

    /// The access just counted is the first write to its block.
    pub(super) fn written(&mut self, weight: u64) {
        self.windows[self.current].new_written += weight;
    }

    /// The series of a trace whose last record is at `end_ns`.
    pub(super) fn finish(&mut self, end_ns: u64) -> WorkingSetSeries {
        self.reach(end_ns);
        let windows = &self.windows[..self.buckets.used(end_ns.saturating_add(1))];
        let summed = |value: fn(&Window) -> u64| {
            let sums = windows.iter().scan(0, |sum, window| {
                *sum += value(window);
                Some(*sum)
            });
            sums.collect()
        };
        WorkingSetSeries {
            window_s: self.buckets.width_ns as f64 / 1e9,
            blocks: windows.iter().map(|window| window.blocks).collect(),
            cumulative_blocks: summed(|window| window.new),
            cumulative_written_blocks: summed(|window| window.new_written),
        }
    }
}
