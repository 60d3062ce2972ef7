//! How a band rewrite sends off its operations: each phase whole, or in chunks between which a
//! request can come first.

use super::persistent_cache::{Part, PersistentCache};
use super::rewrite::{Phase, Rewrite};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};

/// Chunks of an idle clean that are under way at a time: the disk goes on with the second where
/// the first ends, without losing a revolution.
const CHUNKS_IN_FLIGHT: u32 = 2;

/// Reads of the log that are under way at a time while a clean for want of room is made of slices:
/// about as many as a disk needs to choose a short way between them.
const GATHERS_IN_FLIGHT: u32 = 16;

impl PersistentCache {
    /// Sends off what may be sent of the present phase. When all of it is done, the next phase
    /// begins; when the rest has to wait, the rewrite is paused.
    pub(super) fn go_on(&mut self, ctx: &mut Context<'_>) {
        if self.may_go_on(ctx) {
            self.send_steps(ctx);
            if self.rewriting().outstanding == 0 {
                self.end_phase(ctx);
            }
        } else if self.rewriting().outstanding == 0 {
            self.interrupt_rewrite(ctx);
        }
    }

    /// Sends off what may be sent of the present phase.
    pub(super) fn send_steps(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        let in_chunks = rewrite.is_idle || self.settings.blocking.slice.is_some();
        let (longest, in_flight_max) = match rewrite.phase {
            _ if !in_chunks => (u64::MAX, u32::MAX),
            // Each costs a seek, so that a second one would double the wait of a request.
            Phase::Gathering if rewrite.is_idle => (self.chunk_blocks, 1),
            Phase::Gathering => (u64::MAX, GATHERS_IN_FLIGHT),
            _ => (self.chunk_blocks, CHUNKS_IN_FLIGHT),
        };
        loop {
            let rewrite = self.rewriting();
            let is_full = rewrite.steps_in_flight >= in_flight_max;
            if rewrite.next >= rewrite.end || is_full || rewrite.is_out_of_order {
                return;
            }
            if rewrite.phase == Phase::Gathering {
                self.send_gather_step(ctx);
            } else if !in_chunks && rewrite.steps_in_flight > 0 {
                // The rest goes off as a whole, behind the chunks of idle time.
                return;
            } else {
                let blocks = longest.min(rewrite.end - rewrite.next);
                self.send_blocks(&rewrite, blocks, ctx);
            }
        }
    }

    /// Reads or writes the next blocks of the band.
    fn send_blocks(&mut self, rewrite: &Rewrite, blocks: u64, ctx: &mut Context<'_>) {
        let from = rewrite.next;
        let write = match self.durable {
            Some(_) => Operation::WRITE,
            None => Operation::WRITE_DURABLE,
        };
        // What was carried on is in memory.
        let from = match rewrite.phase {
            Phase::Reading => from + rewrite.carried,
            _ => from,
        };
        let layout = &self.layout;
        let home = || layout.home(rewrite.band, rewrite.from + from, blocks);
        let (operation, extent) = match rewrite.phase {
            Phase::Reading if rewrite.is_in_scratch => {
                let at = self.salvage.map_or(0, |salvage| salvage.at);
                (
                    Operation::Read,
                    layout.scratch(rewrite.place, at + from, blocks),
                )
            }
            Phase::Reading => (Operation::Read, home()),
            Phase::WritingScratch => (write, layout.scratch(rewrite.place, from, blocks)),
            Phase::WritingHome => (write, home()),
            phase => unreachable!("{phase:?} has no blocks to move"),
        };
        let buffer = rewrite.buffer.part(from, blocks);
        self.advance_by(blocks);
        self.issue_for_rewrite(operation, extent, buffer, Cause::Cleaning, ctx);
    }

    /// Reads the next run of what the log holds of the band. A run that the end of the ring cuts
    /// takes two reads.
    fn send_gather_step(&mut self, ctx: &mut Context<'_>) {
        let rewrite = self.rewriting();
        let piece = self.gathered[rewrite.next as usize];
        let start = self.bands.extent_of(rewrite.band).start.0 + rewrite.from;
        self.advance_by(1);
        let end = piece.position + piece.extent.blocks.0;
        let mut next = piece.position;
        while next < end {
            let slots = self.log_extent_to(next, end);
            let from = piece.extent.start.0 + (next - piece.position) - start;
            let part = rewrite.buffer.part(from, slots.blocks.0);
            self.issue_for_rewrite(Operation::Read, slots, part, Cause::Cleaning, ctx);
            next += slots.blocks.0;
        }
    }

    fn advance_by(&mut self, steps: u64) {
        self.rewrite.as_mut().expect("a rewrite in progress").next += steps;
    }

    /// The chunks in flight count as not done.
    pub(super) fn take_back_chunks(&mut self) {
        let chunk = self.chunk_blocks;
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        let in_flight = u64::from(rewrite.steps_in_flight);
        rewrite.next = match rewrite.phase {
            Phase::Gathering => rewrite.next.saturating_sub(in_flight),
            _ => rewrite.next.div_ceil(chunk).saturating_sub(in_flight) * chunk,
        };
    }

    /// Issues an operation of the rewrite.
    pub(super) fn issue_for_rewrite(
        &mut self,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        let rewrite = self.rewrite.as_mut().expect("a rewrite in progress");
        rewrite.outstanding += 1;
        rewrite.steps_in_flight += 1;
        let end = rewrite.next;
        self.issue(Part::Rewrite { end }, operation, extent, buffer, cause, ctx);
    }
}
