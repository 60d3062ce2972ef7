//! Models 2 and 3: a write in place, which reads the rest of the band before and writes it back after.

use super::geometry::Geometry;
use super::head::{Head, Sweep};
use super::settings::{RestExtent, RestUnit};
use super::written::{Behind, Written};

/// Where a band's rest goes that the buffer cannot hold.
#[derive(Clone, Copy, Debug)]
pub struct Spill {
    /// Blocks of the buffer.
    pub buffer_blocks: u64,
    /// The first block of the spill area, in which every update begins again.
    pub start: u64,
}

/// A disk that writes in place.
#[derive(Clone, Debug)]
pub struct InPlace {
    pub(super) head: Head,
    geometry: Geometry,
    extent: RestExtent,
    unit: RestUnit,
    /// None for a buffer that holds every band.
    spill: Option<Spill>,
    /// Writes that had something behind them.
    pub(super) rewrites: u64,
    /// Blocks written back behind them.
    pub(super) rewritten_blocks: u128,
    /// Blocks written to the spill area.
    pub(super) spilled: u128,
}

/// What is read and written back around a write.
#[derive(Clone, Debug)]
pub struct Rest {
    /// Neighbouring blocks from here on; none when only written blocks move.
    start: Option<u64>,
    behind: Behind,
    blocks: u64,
}

impl InPlace {
    /// A disk on which nothing is written yet.
    pub fn new(
        head: Head,
        geometry: Geometry,
        (extent, unit): (RestExtent, RestUnit),
        spill: Option<Spill>,
    ) -> InPlace {
        InPlace {
            head,
            geometry,
            extent,
            unit,
            spill,
            rewrites: 0,
            rewritten_blocks: 0,
            spilled: 0,
        }
    }

    /// What a write that ends with `block` damages, if that is anything written.
    pub fn rest(&self, written: &Written, block: u64) -> Option<Rest> {
        let start = match self.unit {
            RestUnit::Track => self.geometry.track_end(block),
            RestUnit::Block => block + 1,
        };
        let end = self.geometry.band_end(block);
        let behind = written.behind(start, end)?;
        let (blocks, start) = match self.extent {
            RestExtent::Written => (behind.last + 1 - start, Some(start)),
            RestExtent::Band => (end - start, Some(start)),
            RestExtent::Dense => (behind.order.end - behind.order.start, None),
        };
        Some(Rest {
            start,
            behind,
            blocks,
        })
    }

    /// Writes neighbouring blocks at once, with what is to be written back behind them.
    pub fn write(&mut self, run: &Sweep, rest: Option<&Rest>, written: &Written) {
        let Some(rest) = rest else {
            self.head.sweep(run);
            return;
        };
        self.rewrites += 1;
        self.rewritten_blocks += u128::from(rest.blocks);
        match self.spill {
            Some(spill) if rest.blocks > spill.buffer_blocks => {
                self.write_with_spill(run, rest, written, spill);
            }
            _ => {
                let rest = rest.part(written, 0, rest.blocks);
                self.head.sweep(&rest);
                self.head.sweep(run);
                self.head.sweep(&rest);
            }
        }
    }

    fn write_with_spill(&mut self, run: &Sweep, rest: &Rest, written: &Written, spill: Spill) {
        self.spilled += u128::from(rest.blocks);
        let parts = || {
            (0..rest.blocks.div_ceil(spill.buffer_blocks)).map(|part| {
                let from = part * spill.buffer_blocks;
                let blocks = spill.buffer_blocks.min(rest.blocks - from);
                let home = rest.part(written, from, blocks);
                (home, Sweep::run(spill.start + from, blocks))
            })
        };
        for (home, spilled) in parts() {
            self.head.sweep(&home);
            self.head.sweep(&spilled);
        }
        self.head.sweep(run);
        for (home, spilled) in parts() {
            self.head.sweep(&spilled);
            self.head.sweep(&home);
        }
    }
}

impl Rest {
    /// `blocks` blocks of it after the first `skipped`.
    fn part(&self, written: &Written, skipped: u64, blocks: u64) -> Sweep {
        match self.start {
            Some(start) => Sweep::run(start + skipped, blocks),
            None => {
                let first = self.behind.order.start + skipped;
                written.sweep(first..first + blocks)
            }
        }
    }
}
