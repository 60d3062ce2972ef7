//! Reads: nothing is handed up whose checksum is not the one that was kept.

use super::checksums::{Known, SUMS_PER_PAGE, Table, TablePlace, pages_of};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::persistent_cache::{Part, PersistentCache, remove_one};
use crate::units::{BLOCK_BYTES, BlockCount};

/// What the blocks of a read must be.
#[derive(Clone, Copy, Debug)]
pub(in crate::translation) enum Check {
    /// What was written to the log at this position and after.
    Slots(u64),
    /// What is at home in a band from this offset on.
    Home(BandId, u64),
}

/// Blocks that were read at home and are not verified yet, because a page is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unverified {
    job: u32,
    band: BandId,
    offset: u64,
    buffer: BufferSlice,
}

/// A page of a table that is being read.
#[derive(Clone, Copy, Debug)]
pub(in crate::translation) struct PageRead {
    band: BandId,
    table: Table,
    index: u64,
    buffer: BufferSlice,
}

impl PersistentCache {
    /// A read of blocks below has finished.
    pub(in crate::translation) fn checked_read_done(
        &mut self,
        job: u32,
        check: Check,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let skipped = ctx.is_planted(PlantedBug::ReadCrcSkipped);
        match check {
            Check::Slots(position) => {
                let result = match result {
                    Ok(()) if !skipped => self.verify_slots(position, buffer, ctx),
                    result => result,
                };
                self.part_done(job, result, ctx);
            }
            Check::Home(band, offset) => {
                let read = Unverified {
                    job,
                    band,
                    offset,
                    buffer,
                };
                match result {
                    Ok(()) if !skipped => self.verify_home(read, ctx),
                    result => self.home_read_done(&read, result, ctx),
                }
            }
        }
    }

    fn home_read_done(
        &mut self,
        read: &Unverified,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        remove_one(&mut self.home_reads, read.band);
        self.part_done(read.job, result, ctx);
    }

    fn verify_slots(
        &mut self,
        position: u64,
        buffer: BufferSlice,
        ctx: &Context<'_>,
    ) -> Result<(), IoError> {
        let slot = self.log.slot(position) as usize;
        let durable = self.durable();
        durable.sums.clear();
        ctx.checksum(buffer, &mut durable.sums);
        let kept = &durable.slot_sums[slot..slot + durable.sums.len()];
        match kept == durable.sums {
            true => Ok(()),
            false => Err(IoError::Medium),
        }
    }

    /// Compares as many blocks as there are pages in memory, and asks for the next page.
    fn verify_home(&mut self, mut read: Unverified, ctx: &mut Context<'_>) {
        let mut sums = core::mem::take(&mut self.durable().sums);
        sums.clear();
        ctx.checksum(read.buffer, &mut sums);
        let mut outcome = Some(Ok(()));
        for (at, sum) in (0..).zip(&sums) {
            match self.home_sum(read.band, read.offset + at) {
                Some(known) if known == Known::Sum(*sum) || known == Known::Nothing => {}
                Some(_) => {
                    outcome = Some(Err(IoError::Medium));
                    break;
                }
                None => {
                    read.buffer = read.buffer.part(at, u64::from(read.buffer.blocks) - at);
                    read.offset += at;
                    outcome = None;
                    break;
                }
            }
        }
        self.durable().sums = sums;
        match outcome {
            Some(result) => self.home_read_done(&read, result, ctx),
            None => {
                self.durable().unverified.push(read);
                let waiting = |other: &Unverified| {
                    (other.band, other.offset / SUMS_PER_PAGE as u64)
                        == (read.band, read.offset / SUMS_PER_PAGE as u64)
                };
                let waiting = self
                    .durable()
                    .unverified
                    .iter()
                    .filter(|r| waiting(r))
                    .count();
                if waiting == 1 {
                    self.read_page(read.band, read.offset / SUMS_PER_PAGE as u64, ctx);
                }
            }
        }
    }

    /// The checksum of a block at home; `None` when its page must be read first.
    fn home_sum(&mut self, band: BandId, offset: u64) -> Option<Known> {
        if let Some(open) = self.open_band(band) {
            let sum = open.sums.get(offset as usize);
            return Some(sum.map_or(Known::Wrong, |sum| Known::Sum(*sum)));
        }
        let durable = self.durable();
        let table = durable.tables[band.0 as usize];
        let index = offset / SUMS_PER_PAGE as u64;
        let there = durable.pages.touch(band, table, index);
        there.then(|| durable.pages.sum(band, table, offset))
    }

    fn read_page(&mut self, band: BandId, index: u64, ctx: &mut Context<'_>) {
        let buffer = ctx.allocate(BlockCount(1));
        let durable = self.durable();
        let table = durable.tables[band.0 as usize];
        let address = durable.areas.table_start(band, table.place()) + index;
        let part = Part::Page(PageRead {
            band,
            table,
            index,
            buffer,
        });
        let (read, place) = (Operation::Read, Extent::new(address, 1));
        self.issue(part, read, place, buffer, Cause::Metadata, ctx);
    }

    /// A page has been read: those that wait for it go on, or fail with it.
    pub(in crate::translation) fn page_read_done(
        &mut self,
        page: PageRead,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let blocks = self.bands.extent_of(page.band).blocks.0;
        let durable = self.durable();
        let place = TablePlace {
            areas: &durable.areas,
            member: durable.journal.member(),
            band: page.band,
            table: page.table,
            blocks,
            ignore_address: ctx.is_planted(PlantedBug::CrcWithoutAddress),
        };
        let taken = durable
            .pages
            .insert(page.band, page.table, page.index, |sums| {
                match ctx.metadata(page.buffer) {
                    _ if result.is_err() => false,
                    Some(bytes) => place.unseal_page(page.index, bytes, sums),
                    None => true,
                }
            });
        ctx.release(page.buffer);
        let waits = |read: &Unverified| {
            read.band == page.band && read.offset / SUMS_PER_PAGE as u64 == page.index
        };
        while let Some(at) = self.durable().unverified.iter().position(waits) {
            let read = self.durable().unverified.swap_remove(at);
            if taken {
                self.verify_home(read, ctx);
            } else {
                self.home_read_done(&read, Err(IoError::Medium), ctx);
            }
        }
    }

    /// Takes the checksums of the first blocks of a band out of the pages of its table, which were
    /// read at once; nothing is appended when the buffers hold no bytes.
    pub(super) fn take_table(
        &mut self,
        band: BandId,
        pages: BufferSlice,
        sums: &mut alloc::vec::Vec<u32>,
        ctx: &Context<'_>,
    ) -> Result<(), IoError> {
        let blocks = self.bands.extent_of(band).blocks.0;
        let durable = self.durable();
        let place = TablePlace {
            areas: &durable.areas,
            member: durable.journal.member(),
            band,
            table: durable.tables[band.0 as usize],
            blocks,
            ignore_address: ctx.is_planted(PlantedBug::CrcWithoutAddress),
        };
        let Some(bytes) = ctx.metadata(pages) else {
            return Ok(());
        };
        for (index, page) in (0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
            if !place.unseal_page(index, page, sums) {
                return Err(IoError::Medium);
            }
        }
        Ok(())
    }

    /// Seals the checksums of a whole band into `pages` and writes them to the place of `table`.
    pub(super) fn write_table(
        &mut self,
        part: Part,
        (band, table): (BandId, Table),
        sums: &[u32],
        pages: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        let mut block = alloc::vec![0; BLOCK_BYTES as usize];
        let durable = self.durable();
        let place = TablePlace {
            areas: &durable.areas,
            member: durable.journal.member(),
            band,
            table,
            blocks: sums.len() as u64,
            ignore_address: false,
        };
        let count = pages_of(sums.len() as u64);
        for page in 0..count {
            place.seal_page(page, sums, &mut block);
            ctx.fill_metadata(pages.part(page, 1), &block);
        }
        let start = durable.areas.table_start(band, table.place());
        let (extent, buffer) = (Extent::new(start, count), pages.part(0, count));
        self.issue(part, Operation::WRITE, extent, buffer, Cause::Metadata, ctx);
    }
}
