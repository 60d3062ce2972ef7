//! Checksums: what is read is compared, what is written is kept in the pages of its segment.

use super::jobs::{Aim, Purpose};
use super::{Segments, TRIES_MAX};
use crate::buffer::BufferSlice;
use crate::checksums::{BAD, NOTHING, SUMS_PER_PAGE, Verdict, is_right, word_of};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::operation::{Cause, Durability, Operation};
use crate::planted::PlantedBug;
use crate::translation::segment::layout::Place;
use crate::translation::segment::sums::{Check, PageRead, SegmentPage, Waiter};
use crate::units::BlockCount;
use core::ops::Range;

/// Blocks that can be read and are read once more beside one that cannot be.
const PROBES: u32 = 2;

impl Segments {
    /// The place of a block of 4 KiB in its segment.
    fn offset_of(&self, place: Place) -> u64 {
        place.block * self.shape.layout.block() + place.offset
    }

    /// What a part of a read is for. Where checksums are kept it will be compared, and the pages for
    /// that are read meanwhile.
    pub(super) fn aim_of_read(
        &mut self,
        job: u32,
        place: Place,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) -> Aim {
        let offset = self.offset_of(place);
        let Some(sums) = &mut self.sums else {
            return Aim::of(Purpose::Part, job);
        };
        let segment = place.segment;
        let number = sums.checks.add(Check { job, segment, offset, buffer });
        for index in pages_with(offset..offset + u64::from(buffer.blocks)) {
            self.ask(SegmentPage { segment, index }, Waiter::Read(job), ctx);
        }
        Aim { purpose: Purpose::Checked, job, block: u64::from(number) }
    }

    /// Reads a page that is not in memory, for somebody who waits for it with its job.
    fn ask(&mut self, page: SegmentPage, waiter: Waiter, ctx: &mut Context<'_>) -> bool {
        let sums = self.sums.as_mut().expect("checksums");
        let (waits, to_read) = sums.ask(page, waiter, &self.shape.areas);
        if waits && let Waiter::Read(job) = waiter {
            self.jobs.get_mut(job).left += 1;
        }
        if let Some(page) = to_read {
            self.read_page(page, false, ctx);
        }
        waits
    }

    /// Reads a page, from a slot where that could not be written home.
    fn read_page(&mut self, page: SegmentPage, is_again: bool, ctx: &mut Context<'_>) {
        let buffer = ctx.allocate(BlockCount(1));
        let areas = &self.shape.areas;
        let mut stuck = self.stuck.iter().rev();
        let stuck = stuck.find(|it| it.has_page(page.segment, page.index));
        let address = match stuck {
            Some(stuck) => stuck.pages_at + page.index - stuck.pages.start,
            None => areas.tables_of(page.segment, 1).start.0 + page.index,
        };
        let sums = self.sums.as_mut().expect("checksums");
        let number = sums.page_reads.add(PageRead { page, buffer, is_again });
        let aim = Aim { purpose: Purpose::Page, job: 0, block: u64::from(number) };
        self.issue_beside(aim, Operation::Read, (Extent::new(address, 1), buffer), ctx);
    }

    /// Issues an operation on the node that has the journal and the tables.
    fn issue_beside(
        &self,
        aim: Aim,
        operation: Operation,
        (extent, buffer): (Extent, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        ctx.issue(Issue {
            port: self.shape.settings.ports.journal_port(),
            operation,
            extent,
            buffer,
            cause: Cause::Metadata,
            tag: aim.tag(),
        });
    }

    /// A page was read. It is read once more when it is not what it must be; then those who wait for
    /// it go on, or fail.
    pub(super) fn page_read(
        &mut self,
        aim: Aim,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let sums = self.sums.as_mut().expect("checksums");
        let read = sums.page_reads.take(aim.block as u32);
        let areas = &self.shape.areas;
        let result = result.and_then(|()| sums.take_page(&read, areas, ctx));
        ctx.release(read.buffer);
        if result == Err(IoError::Medium) && !read.is_again {
            return self.read_page(read.page, true, ctx);
        }
        loop {
            let sums = self.sums.as_mut().expect("checksums");
            let Some(waiter) = sums.next_waiting(read.page, &self.shape.areas) else {
                return;
            };
            match waiter {
                Waiter::Check(number) => {
                    let check = sums.checks.take(number);
                    match result {
                        Ok(()) => self.compare(check, ctx),
                        Err(error) => self.part_done(check.job, Err(error), ctx),
                    }
                }
                Waiter::Read(job) => self.part_done(job, result, ctx),
                Waiter::Rewrite(job) => self.page_for_rewrite(job, read.page, result, ctx),
            }
        }
    }

    /// Blocks were read that are to be compared.
    pub(super) fn checked_read(
        &mut self,
        aim: Aim,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let sums = self.sums.as_mut().expect("checksums");
        let check = sums.checks.take(aim.block as u32);
        match result {
            Ok(()) => self.compare(check, ctx),
            Err(error) => self.part_done(check.job, Err(error), ctx),
        }
    }

    fn compare(&mut self, check: Check, ctx: &mut Context<'_>) {
        let sums = self.sums.as_mut().expect("checksums");
        match sums.verify(check, &self.shape.areas, ctx) {
            Verdict::Right => self.part_done(check.job, Ok(()), ctx),
            Verdict::Wrong => self.part_done(check.job, Err(IoError::Medium), ctx),
            Verdict::Waits(None) => {}
            Verdict::Waits(Some(page)) => {
                let page = SegmentPage { segment: check.segment, index: page.index };
                self.read_page(page, false, ctx);
            }
        }
    }

    /// Asks for the pages that a rewrite changes, as far as it does not write all that they speak of.
    pub(super) fn read_old_sums(&mut self, job: u32, ctx: &mut Context<'_>) {
        let (length, all) = (self.shape.layout.block(), self.shape.layout.segment_blocks());
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        let (segment, span) = (rewrite.segment, rewrite.span());
        if self.sums.is_none() {
            return;
        }
        let pages = pages_with(span.start * length..span.end * length);
        rewrite.sums.pages = pages.clone();
        for index in pages {
            let from = index as usize * SUMS_PER_PAGE;
            let to = (from + SUMS_PER_PAGE).min(all as usize);
            let rewrite = &self.jobs.get(job).rewrite;
            if rewrite.covered[from..to].iter().all(|covered| *covered) {
                continue;
            }
            let page = SegmentPage { segment, index };
            if self.ask(page, Waiter::Rewrite(job), ctx) {
                self.jobs.get_mut(job).rewrite.left += 1;
            } else {
                self.copy_words(job, page, true);
            }
        }
    }

    fn copy_words(&mut self, job: u32, page: SegmentPage, is_there: bool) {
        let sums = self.sums.as_mut().expect("checksums");
        let words = &mut self.jobs.get_mut(job).rewrite.sums.words;
        sums.copy_words(page, is_there, &self.shape.areas, words);
    }

    /// A rewrite has a page that it waited for. Where that cannot be read, what the rewrite does not
    /// write itself is wrong from now on.
    fn page_for_rewrite(
        &mut self,
        job: u32,
        page: SegmentPage,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let failure = result.err().filter(|error| *error != IoError::Medium);
        self.copy_words(job, page, result.is_ok());
        self.one_read(job, failure, ctx);
    }

    /// The blocks of 4 KiB of a block of a segment.
    fn parts_of(&self, block: u64) -> Range<u64> {
        let length = self.shape.layout.block();
        block * length..(block + 1) * length
    }

    /// A block that a rewrite needs could not be read: its parts are read one by one. False when
    /// that is of no use.
    pub(super) fn needs_parts(&mut self, aim: Aim, result: Result<(), IoError>) -> bool {
        if result != Err(IoError::Medium) || self.sums.is_none() {
            return false;
        }
        let parts = self.parts_of(aim.block);
        let rewrite = &mut self.jobs.get_mut(aim.job).rewrite;
        for at in parts {
            rewrite.sums.unreadable[at as usize] = !rewrite.covered[at as usize];
        }
        true
    }

    /// Compares what a rewrite has read, from the disk or from copies, and reads once more from the
    /// disk what is not right. True when something is being read.
    pub(super) fn reads_again(&mut self, job: u32, ctx: &mut Context<'_>) -> bool {
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        if core::mem::replace(&mut rewrite.sums.is_read_again, true) || self.sums.is_none() {
            return false;
        }
        let is_unreadable = self.jobs.get(job).rewrite.sums.unreadable.contains(&true);
        let mut probes = if is_unreadable { PROBES } else { 0 };
        for block in 0..self.shape.layout.blocks_of_segment() {
            let rewrite = &self.jobs.get(job).rewrite;
            if !rewrite.written[block as usize] {
                continue;
            }
            let mut probe = self.parts_of(block);
            let probe = probe.find(|at| !rewrite.sums.unreadable[*at as usize]);
            let probe = probe.filter(|_| probes > 0);
            probes -= u32::from(probe.is_some());
            for at in self.parts_of(block) {
                if probe == Some(at) || self.is_wrong(job, at, ctx) {
                    self.read_part(job, at, ctx);
                }
            }
        }
        self.jobs.get(job).rewrite.left > 0
    }

    /// True when a rewrite could read nothing of what it has read once more: then the disk itself may be
    /// away for a while, and what is on it is not given up.
    pub(super) fn is_disk_away(&self, job: u32) -> bool {
        let rewrite = &self.jobs.get(job).rewrite;
        let mut unreadable = rewrite.sums.unreadable.iter().zip(&rewrite.covered);
        let needs = unreadable.any(|(unreadable, covered)| *unreadable && !covered);
        needs && !rewrite.sums.is_disk_there
    }

    /// True when a block of 4 KiB that a rewrite has read could not be read, or is not what it must be.
    /// Of one of which it is known that nothing is right there is nothing more to be found out.
    fn is_wrong(&mut self, job: u32, at: u64, ctx: &Context<'_>) -> bool {
        let rewrite = &self.jobs.get(job).rewrite;
        let word = rewrite.sums.words[at as usize];
        if rewrite.covered[at as usize] || word == BAD {
            return false;
        }
        let buffer = rewrite.buffer.part(at, 1);
        let is_unreadable = rewrite.sums.unreadable[at as usize];
        let sums = self.sums.as_mut().expect("checksums");
        is_unreadable || !is_right(word, sums.of(buffer, ctx)[0])
    }

    fn read_part(&mut self, job: u32, at: u64, ctx: &mut Context<'_>) {
        let layout = &self.shape.layout;
        let entry = self.jobs.get_mut(job);
        entry.rewrite.left += 1;
        let segment = entry.rewrite.segment;
        let place = Place { segment, block: at / layout.block(), offset: at % layout.block() };
        let buffer = entry.rewrite.buffer.part(at, 1);
        let aim = Aim { purpose: Purpose::Again, job, block: at };
        let data = (Extent::new(layout.on_disk(place), 1), buffer);
        self.issue(aim, Operation::Read, data, Cause::Cleaning, ctx);
    }

    /// A block of 4 KiB was read once more.
    pub(super) fn part_read_again(
        &mut self,
        aim: Aim,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let rewrite = &mut self.jobs.get_mut(aim.job).rewrite;
        let at = aim.block as usize;
        rewrite.sums.unreadable[at] = result.is_err() && !rewrite.covered[at];
        rewrite.sums.is_disk_there |= result.is_ok();
        let failure = result.err().filter(|error| *error != IoError::Medium);
        self.one_read(aim.job, failure, ctx);
    }

    /// True when something of a block is not what it must be, so that nobody may have a copy of it.
    pub(super) fn is_doubtful(&mut self, job: u32, block: u64, ctx: &Context<'_>) -> bool {
        if self.sums.is_none() {
            return false;
        }
        let words = &self.jobs.get(job).rewrite.sums.words;
        let is_bad = |at: u64| words[at as usize] == BAD;
        self.parts_of(block).any(is_bad)
            || self.parts_of(block).any(|at| self.is_wrong(job, at, ctx))
    }

    /// All that a rewrite writes is in memory. What the requests bring has new checksums. What was
    /// read keeps its own: if it was wrong it stays so, until somebody writes it. The pages lie in the
    /// buffer behind the last block that is written.
    pub(super) fn seal_sums(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.sums.is_none() {
            return;
        }
        for block in 0..self.shape.layout.blocks_of_segment() {
            if self.jobs.get(job).rewrite.written[block as usize] {
                self.sum_block(job, block, ctx);
            }
        }
        let buffer = self.pages_in_buffer(job);
        let rewrite = &self.jobs.get(job).rewrite;
        let (segment, pages) = (rewrite.segment, rewrite.sums.pages.clone());
        let sums = self.sums.as_mut().expect("checksums");
        let words = &rewrite.sums.words;
        sums.seal(segment, pages, words, buffer, &self.shape.areas, ctx);
    }

    fn sum_block(&mut self, job: u32, block: u64, ctx: &mut Context<'_>) {
        let parts = self.parts_of(block);
        let buffer = self.part_of(job, block);
        let trusts = ctx.is_planted(PlantedBug::SumOfWhatWasRead);
        let sums = self.sums.as_mut().expect("checksums");
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        for at in parts.clone() {
            if rewrite.sums.unreadable[at as usize] {
                ctx.zero(rewrite.buffer.part(at, 1));
            }
        }
        let found = sums.of(buffer, ctx);
        for (at, sum) in parts.zip(found) {
            let at = at as usize;
            let word = &mut rewrite.sums.words[at];
            let is_unreadable = rewrite.sums.unreadable[at];
            *word = match *word {
                _ if rewrite.covered[at] || trusts => word_of(*sum),
                NOTHING if is_unreadable => BAD,
                NOTHING => word_of(*sum),
                known => known,
            };
        }
    }

    /// The part of a rewrite's buffer that has its pages.
    fn pages_in_buffer(&self, job: u32) -> BufferSlice {
        let rewrite = &self.jobs.get(job).rewrite;
        let pages = &rewrite.sums.pages;
        let behind = rewrite.span().end * self.shape.layout.block();
        rewrite.buffer.part(behind, pages.end - pages.start)
    }

    /// Of what is written home again: finds out which pages lie in its slot.
    pub(super) fn expect_pages(&mut self, job: u32) {
        let length = self.shape.layout.block();
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        if self.sums.is_some() {
            let span = rewrite.span();
            rewrite.sums.pages = pages_with(span.start * length..span.end * length);
        }
    }

    /// A slot was read whose content goes home again. Its pages say what its blocks are; where one is
    /// damaged nobody knows.
    pub(super) fn mend_pages(&mut self, job: u32, ctx: &mut Context<'_>) {
        let buffer = match self.sums {
            Some(_) => self.pages_in_buffer(job),
            None => return,
        };
        let rewrite = &self.jobs.get(job).rewrite;
        let (segment, pages) = (rewrite.segment, rewrite.sums.pages.clone());
        let sums = self.sums.as_mut().expect("checksums");
        sums.mend(segment, pages, buffer, &self.shape.areas, ctx);
    }

    /// Writes the pages of a rewrite home, or zeroes the tables of the segments that are zeroed.
    pub(super) fn write_pages(&mut self, job: u32, ctx: &mut Context<'_>) {
        let rewrite = &mut self.jobs.get_mut(job).rewrite;
        rewrite.sums.is_writing = self.sums.is_some();
        if self.sums.is_none() {
            return;
        }
        let (segment, zeroed) = (rewrite.segment, rewrite.zeroed);
        let aim = Aim::of(Purpose::Pages, job);
        if zeroed > 0 {
            let tables = self.shape.areas.tables_of(segment, zeroed);
            return self.zero_tables(aim, tables, ctx);
        }
        let buffer = self.pages_in_buffer(job);
        let from = self.jobs.get(job).rewrite.sums.pages.start;
        let start = self.shape.areas.tables_of(segment, 1).start.0 + from;
        let extent = Extent::new(start, u64::from(buffer.blocks));
        self.issue_beside(aim, Operation::WRITE, (extent, buffer), ctx);
    }

    /// Makes tables blank.
    fn zero_tables(&self, aim: Aim, tables: Extent, ctx: &mut Context<'_>) {
        let zero = Operation::Zero { durability: Durability::Cached, may_unmap: true };
        self.issue_beside(aim, zero, (tables, BufferSlice::EMPTY), ctx);
    }

    /// The pages are home. A write that failed is tried again.
    pub(super) fn pages_home(
        &mut self,
        job: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let is_lost = self.is_lost;
        let entry = self.jobs.get_mut(job);
        entry.rewrite.sums.tries += 1;
        if let Err(error) = result {
            if entry.rewrite.sums.tries < TRIES_MAX && !is_lost {
                return self.write_pages(job, ctx);
            }
            entry.failure = entry.failure.or(Some(error));
        }
        entry.rewrite.sums.is_writing = false;
        if entry.rewrite.sums.is_data_home {
            self.all_home(job, ctx);
        }
    }

    /// What is in memory of the tables is that of what has gone home.
    pub(super) fn keep_sums(&mut self, job: u32) {
        let Some(sums) = &mut self.sums else {
            return;
        };
        let rewrite = &self.jobs.get(job).rewrite;
        let (segment, areas) = (rewrite.segment, &self.shape.areas);
        match rewrite.zeroed {
            0 => {
                let (pages, words) = (rewrite.sums.pages.clone(), &rewrite.sums.words);
                sums.keep(segment, pages, words, areas);
            }
            zeroed => sums.forget(areas.tables_of(segment, zeroed)),
        }
    }

    /// The members are being formatted: the tables are blank from now on. The map follows.
    pub(super) fn format_tables(&mut self, ctx: &mut Context<'_>) {
        let tables = self.shape.areas.tables;
        match tables.is_empty() {
            true => self.ledger.begin(self.map(), ctx),
            false => self.zero_tables(Aim::of(Purpose::Formatted, 0), tables, ctx),
        }
    }
}

/// The pages of the table of a segment that speak of some of its blocks of 4 KiB.
fn pages_with(blocks: Range<u64>) -> Range<u64> {
    let sums = SUMS_PER_PAGE as u64;
    blocks.start / sums..blocks.end.div_ceil(sums)
}
