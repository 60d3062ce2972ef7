//! Reads: each run of blocks where it is now, and compared with its checksums.

use super::SBlocks;
use crate::checksums::{Page, PageRead, Verdict};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::translation::s_block::work::{Held, Op, ReadPart};
use crate::units::BlockCount;

/// Where blocks are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Nowhere: they read as zeroes.
    Nowhere,
    Position(u16),
    Ring(u32),
}

impl SBlocks {
    /// Serves a read whose turn has come.
    pub(super) fn read(&mut self, number: u32, ctx: &mut Context<'_>) {
        let whole = self.requests[number].request.extent;
        let (segment, block) = (self.layout.segment, self.layout.block);
        let mut start = whole.start.0;
        while start < whole.end().0 {
            let of_segment = start / segment;
            let end = whole.end().0.min((of_segment + 1) * segment);
            let (region, index) = self.layout.region_of(of_segment as u32);
            let slot = self.places[region as usize].region.slot_of(index);
            let below = slot.map_or(Source::Nowhere, Source::Position);
            let first = u64::from(index) * segment / block;
            let mut run = (start, below);
            let in_segment = |at: u64| at - of_segment * segment;
            for at in start..end {
                let of_block = first + in_segment(at) / block;
                let part = in_segment(at) % block;
                let source = self.ring_source(region, of_block as u32, part).unwrap_or(below);
                // Blocks of one place of a ring are as far apart there as here.
                if source != run.1 || (matches!(source, Source::Ring(_)) && part == 0) {
                    self.read_run(number, region, (run.0, at, of_segment), run.1, ctx);
                    run = (at, source);
                }
            }
            self.read_run(number, region, (run.0, end, of_segment), run.1, ctx);
            start = end;
        }
        self.part_done(number, Ok(()), ctx);
    }

    fn ring_source(&self, region: u32, block: u32, part: u64) -> Option<Source> {
        let ring = self.places[region as usize].ring.as_ref()?;
        let place = ring.place_with(block, part)?;
        Some(Source::Ring(place))
    }

    /// Reads blocks `from .. to` of an S-block, which are in one place.
    fn read_run(
        &mut self,
        number: u32,
        region: u32,
        (from, to, of_segment): (u64, u64, u64),
        source: Source,
        ctx: &mut Context<'_>,
    ) {
        if from == to {
            return;
        }
        let request = self.requests[number].request;
        let buffer = request.buffer.part(from - request.extent.start.0, to - from);
        let offset = from - of_segment * self.layout.segment;
        let (start, held) = match source {
            Source::Nowhere => return ctx.zero(buffer),
            Source::Position(position) => {
                let there = self.layout.position(region, position);
                (there.start.0 + offset, Held::Position(position))
            }
            Source::Ring(place) => {
                let there = self.layout.ring_place(region, place);
                (there.start.0 + offset % self.layout.block, Held::Ring(place))
            }
        };
        self.hold(region, held);
        self.requests[number].left += 1;
        let inside = match held {
            Held::Position(_) => offset,
            Held::Ring(_) => offset % self.layout.block,
        };
        let op = Op::Read(ReadPart { request: number, region, held, offset: inside, buffer });
        let what = (Extent::new(start, to - from), buffer);
        self.issue(op, Operation::Read, what, request.cause, ctx);
    }

    /// A read has ended, or the page that it has waited for is there.
    pub(super) fn read_done(
        &mut self,
        read: ReadPart,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let result = match result.map(|()| self.verify(read, ctx)) {
            Ok(Verdict::Right) => Ok(()),
            Ok(Verdict::Wrong) => Err(IoError::Medium),
            Ok(Verdict::Waits(page)) => {
                if let Some(page) = page {
                    self.read_page(page, ctx);
                }
                return;
            }
            Err(error) => Err(error),
        };
        self.release(read.region, read.held);
        self.part_done(read.request, result, ctx);
    }

    fn verify(&mut self, read: ReadPart, ctx: &Context<'_>) -> Verdict {
        match read.held {
            Held::Position(position) => {
                let number = self.layout.position_number(read.region, position);
                self.tables.verify(number, read, ctx)
            }
            Held::Ring(place) => {
                let ring = self.places[read.region as usize].ring.as_ref();
                let known = ring.expect("a ring").sums(place, read.offset);
                self.tables.verify_ring(known, read.buffer, ctx)
            }
        }
    }

    fn read_page(&mut self, page: Page, ctx: &mut Context<'_>) {
        let buffer = ctx.allocate(BlockCount(1));
        let page = PageRead { page, buffer };
        let what = (page.extent(), buffer);
        self.issue(Op::Page(page), Operation::Read, what, Cause::Metadata, ctx);
    }

    /// A page of a table was read: those who wait for it go on.
    pub(super) fn page_read(
        &mut self,
        page: PageRead,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let is_there = result.is_ok() && self.tables.take_page(&page, ctx).is_some();
        ctx.release(page.buffer);
        let result = match is_there {
            true => Ok(()),
            false => Err(result.err().unwrap_or(IoError::Medium)),
        };
        while let Some(read) = self.tables.next_waiting(&page) {
            self.read_done(read, result, ctx);
        }
    }
}
