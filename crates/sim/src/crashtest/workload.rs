//! What the host does: one ordinary workload for everything, and every short one.

use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;

/// Connections of the host; the low bit of an arrival's tag says which.
pub const CONNECTIONS: u64 = 2;
/// Longest request.
pub const REQUEST_BLOCKS_MAX: u64 = 16;

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A read.
    Read,
    /// A write, forced or not.
    Write {
        /// Forced unit access.
        durable: bool,
    },
    /// Zeroes, forced or not, as a trim or not.
    Zero {
        /// Forced unit access.
        durable: bool,
        /// A trim.
        may_unmap: bool,
    },
    /// A flush.
    Flush,
}

impl Action {
    /// True when it gives blocks new contents.
    pub fn changes(self) -> bool {
        matches!(self, Action::Write { .. } | Action::Zero { .. })
    }

    /// True when it is durable at its answer.
    pub fn is_durable(self) -> bool {
        self.operation().is_durable()
    }

    /// The operation of the arrival.
    pub fn operation(self) -> Operation {
        let durability = |durable| match durable {
            true => Durability::Durable,
            false => Durability::Cached,
        };
        match self {
            Action::Read => Operation::Read,
            Action::Write { durable } => Operation::Write { durability: durability(durable) },
            Action::Zero { durable, may_unmap } => {
                Operation::Zero { durability: durability(durable), may_unmap }
            }
            Action::Flush => Operation::Flush,
        }
    }
}

/// A request of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Who asks.
    pub connection: u64,
    /// For what.
    pub action: Action,
    /// Where; empty for a flush of everything.
    pub extent: Extent,
    /// The number that a write stamps into its blocks.
    pub version: u64,
    /// Nanoseconds after the step before it, or later when too many are in flight.
    pub delay_ns: u64,
}

impl Step {
    /// In words, for a failure's list.
    pub fn describe(&self) -> String {
        let what = match self.action {
            Action::Read => "read",
            Action::Write { durable: false } => "write",
            Action::Write { durable: true } => "forced write",
            Action::Zero { may_unmap: true, .. } => "trim",
            Action::Zero { durable: true, .. } => "forced zero",
            Action::Zero { .. } => "zero",
            Action::Flush => "flush",
        };
        let connection = self.connection;
        let (start, end) = (self.extent.start.0, self.extent.end().0);
        match self.action {
            Action::Flush if self.extent.is_empty() => format!("connection {connection}: flush"),
            Action::Write { .. } => {
                format!("connection {connection}: {what} {} of {start}..{end}", self.version)
            }
            _ => format!("connection {connection}: {what} of {start}..{end}"),
        }
    }
}

/// What a workload must know of the device.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks of the device.
    pub blocks: u64,
    /// Blocks of a band, about.
    pub band_blocks: u64,
    /// Where the second of two windows begins, which are flushed apart more often than not; none
    /// where every flush is one of the whole device.
    pub border: Option<u64>,
}

/// `steps` requests drawn from a seed. Writes are numbered from `first_version`.
pub fn ordinary(seed: u64, steps: usize, shape: Shape, first_version: u64) -> Vec<Step> {
    let mut maker = Maker {
        rng: Rng::new(seed, 61),
        shape,
        version: first_version,
        steps: Vec::with_capacity(steps + 16),
    };
    while maker.steps.len() < steps {
        maker.next();
    }
    maker.steps.truncate(steps);
    maker.steps
}

struct Maker {
    rng: Rng,
    shape: Shape,
    version: u64,
    steps: Vec<Step>,
}

impl Maker {
    fn next(&mut self) {
        match self.rng.below(100) {
            0..46 => {
                let extent = self.extent();
                self.push(Action::Write { durable: false }, extent);
            }
            46..57 => {
                let extent = self.extent();
                self.push(Action::Write { durable: true }, extent);
            }
            57..71 => {
                let extent = self.extent();
                self.push(Action::Read, extent);
            }
            71..82 => {
                let extent = self.flushed();
                self.push(Action::Flush, extent);
            }
            82..88 => {
                let extent = self.extent();
                self.zero(true, extent);
            }
            88..92 => {
                let extent = self.extent();
                self.zero(false, extent);
            }
            92..95 => {
                let extent = self.band();
                self.zero(true, extent);
            }
            _ => self.stream(),
        }
    }

    /// A few requests in ascending order, from the start of a band more often than not.
    fn stream(&mut self) {
        let band = self.band();
        let mut at = band.start.0;
        let end = (at + self.shape.band_blocks * (1 + self.rng.below(2))).min(self.shape.blocks);
        if self.rng.below(3) == 0 {
            at += self.rng.below(end - at);
        }
        if self.rng.below(3) == 0 {
            self.zero(true, band);
        }
        while at < end {
            let blocks = (1 + self.rng.below(REQUEST_BLOCKS_MAX)).min(end - at);
            let durable = self.rng.below(16) == 0;
            self.push(Action::Write { durable }, Extent::new(at, blocks));
            at += blocks;
        }
    }

    fn zero(&mut self, may_unmap: bool, extent: Extent) {
        let durable = self.rng.below(6) == 0;
        self.push(Action::Zero { durable, may_unmap }, extent);
    }

    fn push(&mut self, action: Action, extent: Extent) {
        let delay_ns = match self.rng.below(100) {
            0..60 => 0,
            60..96 => self.rng.below(150_000),
            _ => self.rng.below(200_000_000),
        };
        let connection = self.rng.below(CONNECTIONS);
        self.version += 1;
        self.steps.push(Step { connection, action, extent, version: self.version, delay_ns });
    }

    /// Half of the requests go to a quarter of the device.
    fn extent(&mut self) -> Extent {
        let blocks = match self.rng.below(10) {
            0..5 => 1,
            5..8 => 1 + self.rng.below(4),
            _ => 1 + self.rng.below(REQUEST_BLOCKS_MAX),
        };
        let range = match self.rng.below(2) {
            0 => self.shape.blocks / 4,
            _ => self.shape.blocks,
        };
        let start = self.rng.below(range.max(1));
        Extent::new(start, blocks.min(self.shape.blocks - start))
    }

    /// What a flush is for.
    fn flushed(&mut self) -> Extent {
        let Some(border) = self.shape.border else {
            return Extent::EMPTY;
        };
        match self.rng.below(3) {
            0 => Extent::EMPTY,
            1 => Extent::new(0, border),
            _ => Extent::new(border, self.shape.blocks - border),
        }
    }

    fn band(&mut self) -> Extent {
        let bands = self.shape.blocks.div_ceil(self.shape.band_blocks);
        let start = self.rng.below(bands) * self.shape.band_blocks;
        let blocks = self.shape.band_blocks.min(self.shape.blocks - start);
        Extent::new(start, blocks)
    }
}

/// The requests that short workloads are made of: each kind of change in the first band, in the
/// second and across the edge between them, and a flush.
pub fn alphabet(shape: Shape) -> Vec<(Action, Extent)> {
    let band = shape.band_blocks;
    let write = Action::Write { durable: false };
    let forced = Action::Write { durable: true };
    let zero = |may_unmap| Action::Zero { durable: false, may_unmap };
    let mut letters = vec![(Action::Flush, Extent::EMPTY)];
    // Fresh blocks follow those of `prologue`.
    for (old, fresh) in [(2, 4), (band + 2, band + 4), (band - 1, band - 3)] {
        letters.extend([
            (write, Extent::new(fresh, 1)),
            (write, Extent::new(old, 2)),
            (forced, Extent::new(old, 2)),
            (zero(true), Extent::new(old, 1)),
            (zero(false), Extent::new(old, 2)),
            (write, Extent::new(old - 1, band.min(12))),
        ]);
    }
    letters
}

/// What the device holds before a short workload: data where the alphabet overwrites.
pub fn prologue(shape: Shape) -> Vec<Step> {
    let band = shape.band_blocks;
    let places = [Extent::new(0, 4), Extent::new(band - 2, 6)];
    let writes = places.map(|extent| (Action::Write { durable: false }, extent));
    let flush = (Action::Flush, Extent::EMPTY);
    spelled(writes.into_iter().chain([flush]), 0)
}

/// The steps of a short workload; writes are numbered from `first_version`.
pub fn spelled(
    letters: impl IntoIterator<Item = (Action, Extent)>,
    first_version: u64,
) -> Vec<Step> {
    (1..)
        .zip(letters)
        .map(|(number, (action, extent))| Step {
            connection: number % CONNECTIONS,
            action,
            extent,
            version: first_version + number,
            delay_ns: 0,
        })
        .collect()
}
