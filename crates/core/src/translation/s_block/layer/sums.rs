//! The checksums of a rewrite: what was read goes back with the checksum that it had.

use super::SBlocks;
use crate::checksums::{BAD, PageRead, is_right, word_of};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::translation::s_block::rewrite::Source;
use crate::translation::s_block::work::{OldPart, Op};
use crate::units::BlockCount;

impl SBlocks {
    /// Begins with the checksums that the S-block has: those in memory are taken, the others read.
    pub(super) fn begin_words(&mut self, index: u8, ctx: &mut Context<'_>) {
        if !self.layout.has_sums() {
            return;
        }
        let segment = self.layout.segment as usize;
        let write = &mut self.writes[index];
        let is_new = write.sources.iter().all(|it| *it == Source::Requests);
        write.sums.known.resize(segment, None);
        let (region, number) = (write.region, write.segment);
        let slot = self.places[region as usize].region.slot_of(number);
        let Some(position) = slot.filter(|_| !is_new) else {
            return;
        };
        let position = self.layout.position_number(region, position);
        for page in self.tables.pages_of(position) {
            if let Some(known) = self.tables.known(&page) {
                take_words(&mut self.writes[index].sums.known, page.first(), known);
                continue;
            }
            self.writes[index].left += 1;
            let buffer = ctx.allocate(BlockCount(1));
            let read = PageRead { page, buffer };
            self.read_old_words(region, (read, false), ctx);
        }
    }

    fn read_old_words(
        &mut self,
        region: u32,
        (page, is_again): (PageRead, bool),
        ctx: &mut Context<'_>,
    ) {
        let op = Op::OldSums { region, page, is_again };
        let what = (page.extent(), page.buffer);
        self.issue(op, Operation::Read, what, Cause::Metadata, ctx);
    }

    /// A page of the old table was read. One that cannot be read, or is not what it must be, is read
    /// once more; then its blocks have no checksum that they can have.
    pub(super) fn old_sums_read(
        &mut self,
        region: u32,
        (page, is_again): (PageRead, bool),
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let index = self.places[region as usize].write.expect("a write");
        let known = match result {
            Ok(()) => self.tables.take_page(&page, ctx),
            Err(_) => None,
        };
        let result = match (known, result) {
            (Some(known), _) => {
                take_words(&mut self.writes[index].sums.known, page.page.first(), known);
                Ok(())
            }
            (None, Err(IoError::Medium) | Ok(())) if !is_again => {
                return self.read_old_words(region, (page, true), ctx);
            }
            (None, Err(IoError::Medium) | Ok(())) => {
                let blocks = (page.page.first() as u64, page.page.len() as u64);
                self.set_words(index, blocks, Some(BAD));
                Ok(())
            }
            (None, error) => error,
        };
        ctx.release(page.buffer);
        self.step_done(region, result);
    }

    /// The words of some blocks of the S-block; none where they follow from the data.
    pub(super) fn set_words(&mut self, index: u8, (from, blocks): (u64, u64), word: Option<u32>) {
        let known = &mut self.writes[index].sums.known;
        if !known.is_empty() {
            known[from as usize..(from + blocks) as usize].fill(word);
        }
    }

    /// Blocks come from a place of the ring, and have the checksums from there.
    pub(super) fn take_ring_words(&mut self, index: u8, place: u32, offset: u64) {
        let write = &mut self.writes[index];
        if write.sums.are_none() {
            return;
        }
        let ring = self.places[write.region as usize].ring.as_ref();
        let ring = ring.expect("a ring");
        let valid = ring.slot(place).valid;
        let parts = (0..self.layout.block).filter(|part| valid >> part & 1 == 1);
        for (part, sum) in parts.zip(ring.sums_of(place, valid)) {
            write.sums.known[(offset + part) as usize] = Some(word_of(sum));
        }
    }

    /// Blocks that a rewrite needs were read. Where there are checksums, those that cannot be read are
    /// no reason to fail: each is read by itself, and goes back as one that has no checksum it can have.
    pub(super) fn old_read(
        &mut self,
        part: OldPart,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let OldPart { region, there, from, is_again } = part;
        let index = self.places[region as usize].write.expect("a write");
        if result != Err(IoError::Medium) || self.writes[index].sums.are_none() {
            return self.step_done(region, result);
        }
        let buffer = self.writes[index].buffer.part(from, there.blocks.0);
        if is_again {
            ctx.zero(buffer);
            self.set_words(index, (from, there.blocks.0), Some(BAD));
            return self.step_done(region, Ok(()));
        }
        self.writes[index].left += there.blocks.0 as u32 - 1;
        for at in 0..there.blocks.0 {
            let one = Extent::new(there.start.0 + at, 1);
            let op = Op::Old(OldPart { region, there: one, from: from + at, is_again: true });
            let what = (one, buffer.part(at, 1));
            self.issue(op, Operation::Read, what, self.cause(index), ctx);
        }
    }

    /// True unless the S-block lies nowhere and has checksums: then a copy could not be compared with
    /// anything, and what nobody wrote is zeroes.
    pub(super) fn has_home_to_compare(&self, index: u8) -> bool {
        let write = &self.writes[index];
        let region = &self.places[write.region as usize].region;
        write.sums.are_none() || region.slot_of(write.segment).is_some()
    }

    /// A block of the store of copies that is not what it must be is read from the disk.
    pub(super) fn check_copies(&mut self, index: u8, ctx: &Context<'_>) {
        for at in 0..self.writes[index].sources.len() {
            let is_copy = self.writes[index].sources[at] == Source::Copy;
            if is_copy && !self.holds_right_block(index, at as u64, false, ctx) {
                self.writes[index].sources[at] = Source::Old;
            }
        }
    }

    /// True when a block of the S-block in the buffer is what it must be. Parts that the ring or a
    /// request brings are left out where they are not `in_place` yet.
    pub(super) fn holds_right_block(
        &mut self,
        index: u8,
        at: u64,
        in_place: bool,
        ctx: &Context<'_>,
    ) -> bool {
        let block = self.layout.block;
        let write = &self.writes[index];
        if write.sums.are_none() {
            return true;
        }
        self.todo.sums.clear();
        ctx.checksum(write.buffer.part(at * block, block), &mut self.todo.sums);
        let own = (at * block) as usize..((at + 1) * block) as usize;
        let known = &write.sums.known[own.clone()];
        let parts = write.dirty[own].iter().zip(known).zip(&self.todo.sums);
        parts.into_iter().all(|((is_dirty, word), sum)| {
            let is_left_out = *is_dirty && !in_place;
            is_left_out || word.is_none_or(|word| is_right(word, *sum))
        })
    }

    /// Writes the table of the S-block that goes to the head.
    pub(super) fn write_table(&mut self, index: u8, ctx: &mut Context<'_>) {
        if self.writes[index].sums.are_none() {
            return;
        }
        let pages = ctx.allocate(BlockCount(self.layout.table_blocks));
        let takes_all = ctx.is_planted(PlantedBug::SumOfWhatWasRead);
        let write = &mut self.writes[index];
        let (new, data) = (&mut write.sums, write.buffer);
        new.words.clear();
        let is_of_data = |word: &Option<u32>| takes_all || word.is_none();
        for run in new.known.chunk_by(|one, other| is_of_data(one) == is_of_data(other)) {
            let from = new.words.len();
            match is_of_data(&run[0]) {
                false => new.words.extend(run.iter().flatten()),
                true => {
                    ctx.checksum(data.part(from as u64, run.len() as u64), &mut new.words);
                    for word in &mut new.words[from..] {
                        *word = word_of(*word);
                    }
                }
            }
        }
        new.pages = pages;
        new.generation = self.tables.next_generation();
        write.left += 1;
        let (region, generation) = (write.region, new.generation);
        let number = self.layout.position_number(region, write.position);
        let words = core::mem::take(&mut new.words);
        let extent = self.tables.seal((number, generation), &words, pages, ctx);
        self.writes[index].sums.words = words;
        let what = (extent, pages);
        let op = Op::Rewrite { region };
        self.issue(op, Operation::WRITE, what, Cause::Metadata, ctx);
    }

    /// The S-block at the head is durable, and its table is: it has that from now on.
    pub(super) fn table_is_written(&mut self, index: u8) -> Option<u64> {
        let write = &self.writes[index];
        if write.sums.are_none() {
            return None;
        }
        let generation = write.sums.generation;
        let number = self.layout.position_number(write.region, write.position);
        self.tables.written(number, generation, &write.sums.words);
        Some(generation)
    }
}

/// The blocks from `first` on have these words; where none is known, they follow from what was read.
fn take_words(known: &mut [Option<u32>], first: usize, words: &[u32]) {
    for (known, word) in known[first..].iter_mut().zip(words) {
        *known = Some(*word);
    }
}
