//! Models 2 and 3: a write in place, which reads the rest of the band before and writes it back after.

use super::geometry::Geometry;
use super::head::Head;
use super::settings::{RestExtent, RestUnit};
use super::written::{Behind, Written};
use imbrex_drives::Direction;

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

    /// What a write of the blocks from `first` to `last` damages, if that is anything written.
    pub fn rest(&self, written: &Written, first: u64, last: u64) -> Option<Rest> {
        let start = match self.unit {
            // Its last track is damaged too where it also writes the one before.
            RestUnit::Track if !self.geometry.crosses_tracks_of_band(first, last) => {
                self.geometry.track_end(last)
            }
            RestUnit::Track | RestUnit::Block => last + 1,
        };
        let end = self.geometry.band_end(last);
        let behind = written.behind(start, end)?;
        let (blocks, start) = match self.extent {
            RestExtent::Written => (behind.last + 1 - start, Some(start)),
            RestExtent::Band => (end - start, Some(start)),
            RestExtent::Dense => (behind.order.end - behind.order.start, None),
        };
        Some(Rest { start, behind, blocks })
    }

    /// Writes neighbouring blocks at once, with what is to be written back behind them.
    pub fn write(&mut self, run: (u64, u64), rest: Option<&Rest>, written: &Written) {
        let (first, blocks) = run;
        let Some(rest) = rest else {
            self.head.run(first, blocks, Direction::Write);
            return;
        };
        self.rewrites += 1;
        self.rewritten_blocks += u128::from(rest.blocks);
        match self.spill {
            Some(spill) if rest.blocks > spill.buffer_blocks => {
                self.write_with_spill(run, rest, written, spill);
            }
            _ => {
                let all = (0, rest.blocks);
                rest.visit(&mut self.head, written, all, Direction::Read);
                self.head.run(first, blocks, Direction::Write);
                rest.visit(&mut self.head, written, all, Direction::Write);
            }
        }
    }

    fn write_with_spill(&mut self, run: (u64, u64), rest: &Rest, written: &Written, spill: Spill) {
        self.spilled += u128::from(rest.blocks);
        let parts = || {
            (0..rest.blocks.div_ceil(spill.buffer_blocks)).map(|part| {
                let skipped = part * spill.buffer_blocks;
                (skipped, spill.buffer_blocks.min(rest.blocks - skipped))
            })
        };
        let head = &mut self.head;
        for part in parts() {
            rest.visit(head, written, part, Direction::Read);
            head.run(spill.start + part.0, part.1, Direction::Write);
        }
        head.run(run.0, run.1, Direction::Write);
        for part in parts() {
            head.run(spill.start + part.0, part.1, Direction::Read);
            rest.visit(head, written, part, Direction::Write);
        }
    }
}

impl Rest {
    /// Visits a part of it: how many blocks are left out before, and how many are visited.
    fn visit(&self, head: &mut Head, written: &Written, part: (u64, u64), direction: Direction) {
        let (skipped, blocks) = part;
        if let Some(start) = self.start {
            head.run(start + skipped, blocks, direction);
            return;
        }
        let first = self.behind.order.start + skipped;
        head.sweep(&written.sweep(first..first + blocks));
        if let Some(timer) = &mut head.timer {
            written.each_run(first..first + blocks, |first, blocks| {
                timer.run(first, blocks, direction);
            });
        }
    }
}
