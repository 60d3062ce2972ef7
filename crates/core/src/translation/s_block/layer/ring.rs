//! Writes to the ring of a region.

use super::SBlocks;
use super::rewrite::Progress;
use crate::buffer::BufferSlice;
use crate::durability::Lsn;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::WrittenData;
use crate::operation::Operation;
use crate::translation::s_block::records::{Entry as Record, RING};
use crate::translation::s_block::ring::{Found, Ring};
use crate::translation::s_block::work::{Held, Op, Part};
use crate::units::BlockCount;

/// The parts `from .. from + count` of a block.
fn parts_of(from: u64, count: u64) -> u64 {
    (u64::MAX >> (64 - count)) << from
}

/// The runs of ones in a word: the first bit of each, and how many there are.
pub(super) fn runs(mut word: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut before = 0;
    core::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let gap = u64::from(word.trailing_zeros());
        let shifted = word >> gap;
        let ones = u64::from(shifted.trailing_ones());
        let run = (before + gap, ones);
        before += gap + ones;
        word = shifted.checked_shr(ones as u32).unwrap_or(0);
        Some(run)
    })
}

impl SBlocks {
    pub(super) fn new_ring(&self) -> Ring {
        let layout = &self.layout;
        let ring = Ring::new(layout.ring_blocks, layout.ring_places, self.life.in_place);
        match layout.has_sums() {
            true => ring.with_sums(layout.block),
            false => ring,
        }
    }

    /// The number of the block in its region, and the parts of it.
    fn block_of(&self, region: u32, extent: Extent) -> (u32, u64) {
        let first = self.layout.places[region as usize].first_segment;
        let inside = extent.start.0 - u64::from(first) * self.layout.segment;
        let from = inside % self.layout.block;
        let block = (inside / self.layout.block) as u32;
        (block, parts_of(from, extent.blocks.0))
    }

    /// Writes a part of a block to the ring, or has room made there.
    pub(super) fn begin_ring_write(
        &mut self,
        region: u32,
        task: u32,
        ctx: &mut Context<'_>,
    ) -> Progress {
        let part = self.tasks[task].parts[0];
        let (block, parts) = self.block_of(region, part.extent);
        // A store of copies has the data still.
        if self.requests[part.request].copies > 0 {
            return Progress::Waits;
        }
        if self.places[region as usize].ring.is_none() {
            self.places[region as usize].ring = Some(self.new_ring());
        }
        if !self.ledger.reserve(1) {
            return Progress::Waits;
        }
        let ring = self.places[region as usize].ring.as_mut().expect("a ring");
        match ring.place_for(block, parts) {
            Found::Place(place) => {
                self.next_task(region);
                self.write_to_ring(region, task, (part, place), ctx);
                Progress::Done
            }
            Found::Later => {
                self.ledger.release_reserved(1);
                self.ledger_frees_places(ctx);
                Progress::Waits
            }
            Found::Full => {
                self.ledger.release_reserved(1);
                self.empty_ring(region)
            }
        }
    }

    /// Begins the rewrite of the S-block with the most blocks in the ring.
    fn empty_ring(&mut self, region: u32) -> Progress {
        if self.places[region as usize].ring_writes > 0 {
            return Progress::OnItsWay;
        }
        let blocks = (self.layout.segment / self.layout.block) as u32;
        let ring = self.places[region as usize].ring.as_ref().expect("a ring");
        let fullest = ring.fullest(blocks, &mut self.todo.scratch);
        let segment = fullest.expect("a full ring");
        self.begin_job(region, segment as u16, None);
        Progress::Done
    }

    fn write_to_ring(
        &mut self,
        region: u32,
        task: u32,
        (part, place): (Part, u32),
        ctx: &mut Context<'_>,
    ) {
        self.places[region as usize].ring_writes += 1;
        let request = self.requests[part.request].request;
        let blocks = part.extent.blocks.0;
        let (data, own) = match request.operation {
            Operation::Write { .. } => {
                let from = part.extent.start.0 - request.extent.start.0;
                (request.buffer.part(from, blocks), BufferSlice::EMPTY)
            }
            _ => {
                let zeroes = ctx.allocate(BlockCount(blocks));
                ctx.zero(zeroes);
                (zeroes, zeroes)
            }
        };
        let is_forced = self.life.in_place && request.operation.is_durable();
        let operation = match is_forced {
            true => Operation::WRITE_DURABLE,
            false => Operation::WRITE,
        };
        let op = Op::Ring { region, task, place, buffer: own };
        let what = (self.in_ring(region, place, part.extent), data);
        self.issue(op, operation, what, request.cause, ctx);
    }

    /// Where a part of a block lies in a place.
    fn in_ring(&self, region: u32, place: u32, extent: Extent) -> Extent {
        let start = self.layout.ring_place(region, place).start.0;
        Extent::new(start + extent.start.0 % self.layout.block, extent.blocks.0)
    }

    /// A write to the ring has ended.
    pub(super) fn ring_written(
        &mut self,
        region: u32,
        task: u32,
        (place, own): (u32, BufferSlice),
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        self.ledger.release_reserved(1);
        self.places[region as usize].ring_writes -= 1;
        self.list(region);
        let part = self.tasks[task].parts[0];
        let result = result.and(self.ledger.failure().map_or(Ok(()), Err));
        match result {
            Err(_) => {
                let ring = self.places[region as usize].ring.as_mut().expect("a ring");
                ring.failed(place);
            }
            Ok(()) => self.record_ring_write(region, part, (place, own), ctx),
        }
        ctx.release(own);
        self.task_done(task, result, ctx);
    }

    fn record_ring_write(
        &mut self,
        region: u32,
        part: Part,
        (place, own): (u32, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        let (block, parts) = self.block_of(region, part.extent);
        let request = self.requests[part.request].request;
        let from = part.extent.start.0 - request.extent.start.0;
        let buffer = match own.blocks {
            0 => request.buffer.part(from, part.extent.blocks.0),
            _ => own,
        };
        let data = WrittenData { place: self.in_ring(region, place, part.extent), buffer };
        let payload = Record::ring_payload(region, block);
        let (record, sums) = self.ledger.record_write(RING, &payload, data, ctx);
        let until = Lsn(record.0 + 1);
        let mut freed = core::mem::take(&mut self.todo.freed);
        let ring = self.places[region as usize].ring.as_mut().expect("a ring");
        for (at, sum) in (part.extent.start.0 % self.layout.block..).zip(sums) {
            ring.set_sum(place, at, *sum);
        }
        ring.written(place, parts, |place| freed.push(place));
        self.todo.freed = freed;
        self.free_ring_places(region, until, ctx);
        if self.ledger.has_too_much_unflushed() {
            self.ledger.flush_for_itself(ctx);
        }
    }

    /// Blocks leave the ring: they are elsewhere, or nowhere.
    pub(super) fn forget_ring(
        &mut self,
        region: u32,
        (from, to): (u32, u32),
        until: Lsn,
        ctx: &mut Context<'_>,
    ) {
        let mut freed = core::mem::take(&mut self.todo.freed);
        if let Some(ring) = &mut self.places[region as usize].ring {
            ring.forget(from, to, |place| freed.push(place));
        }
        self.todo.freed = freed;
        self.free_ring_places(region, until, ctx);
    }

    fn free_ring_places(&mut self, region: u32, until: Lsn, ctx: &mut Context<'_>) {
        while let Some(place) = self.todo.freed.pop() {
            self.free_later(region, Held::Ring(place), until, ctx);
        }
    }
}
