//! Zones that are rewritten: of a zone of which many blocks leave together, the others are brought into
//! flash too. Then the zone is reset, and all of it leaves like any dirty block.
//!
//! ```text
//! decided -> fetches: home -> flash -> all durable in flash -> zone reset -> destages in order
//! ```
//!
//! What a fetch brings is as dirty as what was evicted: in a durable cache a record maps it. So the
//! map says at any time where the zone is, a power cut behind the reset is like any other, and recovery
//! knows nothing of rewrites. A rewrite that cannot go on, because a block of the zone cannot be read
//! or written to flash, leaves out the reset alone.
//!
//! All entries are made when the zone is chosen. From then on whoever asks for a block of it waits until
//! the block is home, and whoever wants to write or read below in the rest of the zone waits for the
//! reset.

use super::Cache;
use super::destage::DESTAGE_RUN_BLOCKS_MAX;
use super::entries::{Flag, NONE};
use super::jobs::{Event, JobKind, Waiter};
use super::left_below::LeftBelow;
use super::zone_books::ZoneBooks;
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::When;
use crate::operation::{Cause, Completion, Operation, Tag};
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Lba};
use crate::zone::{ZoneId, next_to_report};
use alloc::vec::Vec;
use core::mem;

/// Fetches of a rewrite under way at once, which bounds their buffers.
const FETCHES_MAX: usize = 4;
/// The tag of the report of zones.
const REPORT_TAG: Tag = Tag(1 << 60);

/// What a cache knows of the zones below, and the rewrites under way.
#[derive(Debug, Default, Saved)]
pub(super) struct Rewriting {
    /// None where the node below shows no zones, or nobody would rewrite one.
    #[saved(each)]
    pub books: Option<ZoneBooks>,
    /// A zone is rewritten when more blocks of it leave together.
    rewrite_blocks: u64,
    /// Zones whose reset is still to come, each with its job.
    pending: Vec<Pending>,
    /// Jobs that wait for the end of another.
    after: Vec<After>,
    /// Used within one call only: the fetches of a rewrite, each with its last entry.
    fetches: Vec<(u32, u32)>,
    /// The report of zones that was asked for: of those from one on, and its buffer.
    report: (ZoneId, BufferSlice),
    /// Somebody waits for that report to come up.
    opens: bool,
    /// It is to be asked for at the first write: nothing is cached yet that could leave.
    pub asks_at_write: bool,
    /// What needs a flush below.
    pub left_below: LeftBelow,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Pending {
    zone: Extent,
    reset: u32,
}

/// A job that is blocked once until another has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
struct After {
    ended: u32,
    then: u32,
}

/// A zone that is to be rewritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewrite {
    zone: Extent,
    /// From its start to the last block that was or will be written.
    part: Extent,
}

impl Rewriting {
    /// No zone is being rewritten, and nothing is known of those below but that they are there.
    pub fn new(books: Option<ZoneBooks>, rewrite_blocks: u64) -> Rewriting {
        let asks_at_write = books.is_some();
        Rewriting { books, rewrite_blocks, asks_at_write, ..Rewriting::default() }
    }

    /// Blocks are about to be written below.
    pub fn write(&mut self, extent: Extent) {
        if let Some(books) = &mut self.books {
            books.write(extent);
        }
    }
}

impl Cache {
    /// The cache comes up with blocks that may leave at once: true when it asks for the zones first.
    pub(super) fn ask_to_come_up(&mut self, ctx: &mut Context<'_>) -> bool {
        // Nothing leaves a stack that is only read.
        let asks = self.replacement.cached_blocks > 0 && !ctx.is_read_only();
        self.rewriting.opens = asks && self.ask_for_zones(ctx);
        self.rewriting.opens
    }

    /// Asks the node below for its zones, once; false where nobody needs to know them.
    pub(super) fn ask_for_zones(&mut self, ctx: &mut Context<'_>) -> bool {
        mem::take(&mut self.rewriting.asks_at_write) && self.ask_for_zones_from(ZoneId(0), ctx)
    }

    /// Asks for the zones from one on; false when there are none.
    fn ask_for_zones_from(&mut self, first: ZoneId, ctx: &mut Context<'_>) -> bool {
        let books = self.rewriting.books.as_ref();
        let Some(extent) = books.and_then(|books| books.report_extent(first)) else {
            return false;
        };
        let buffer = ctx.allocate(extent.blocks);
        self.rewriting.report = (first, buffer);
        ctx.issue(Issue {
            port: Cache::BACKING,
            operation: Operation::ZoneReport,
            extent,
            buffer,
            cause: Cause::Metadata,
            tag: REPORT_TAG,
        });
        true
    }

    /// Takes a report of zones; false when the completion is of something else. Of zones that were not reported none is
    /// known to have a pointer, and none is rewritten. So a report that has failed is asked for again with the next write.
    pub(super) fn zones_reported(&mut self, completion: Completion, ctx: &mut Context<'_>) -> bool {
        if completion.tag != REPORT_TAG {
            return false;
        }
        let (first, buffer) = mem::take(&mut self.rewriting.report);
        let mut next = None;
        match (completion.result, ctx.metadata(buffer), &mut self.rewriting.books) {
            (Ok(()), Some(report), Some(books)) => {
                books.take_report(report);
                next = next_to_report(report, first);
            }
            _ => {
                ctx.count(Counter::ZoneReportsFailed, 1);
                self.rewriting.asks_at_write = true;
            }
        }
        ctx.release(buffer);
        if next.is_some_and(|next| self.ask_for_zones_from(next, ctx)) {
            return true;
        }
        if mem::take(&mut self.rewriting.opens) {
            self.come_up(ctx);
        }
        true
    }

    /// The zone of the victims, which are all that is cached of it, if it is to be rewritten. Victims
    /// that continue it go home anyhow and do not count.
    #[inline(always)]
    pub(super) fn zone_to_rewrite(&self, victims: &[u32]) -> Option<Rewrite> {
        // Most caches know no zones, and ask for each block that leaves.
        self.zone_known_to_rewrite(self.rewriting.books.as_ref()?, victims)
    }

    fn zone_known_to_rewrite(&self, books: &ZoneBooks, victims: &[u32]) -> Option<Rewrite> {
        let lba = |entry: Option<&u32>| entry.map(|entry| self.entries.get(*entry).lba());
        let (first, last) = (lba(victims.first())?, lba(victims.last())?);
        let zone = books.zone_with_pointer(first)?;
        let continuing = match books.continues(first) {
            true => self.run_below(victims, Flag::Cached),
            false => 0,
        };
        if (victims.len() - continuing) as u64 <= self.rewriting.rewrite_blocks {
            return None;
        }
        let end = books.written_end(first).max(last + BlockCount(1));
        let part = Extent::between(zone.start, end);
        let fetched = part.blocks.0 - victims.len() as u64;
        // Behind the blocks that are served a durable cache keeps pages of its own.
        let is_served = zone.end().0 <= self.backing_blocks;
        let is_free = !self.is_changed_below(zone) && self.has_staging_for(fetched);
        (is_served && is_free).then_some(Rewrite { zone, part })
    }

    /// True while a zone waits for its reset, or a host changes some of it around the cache.
    fn is_changed_below(&self, zone: Extent) -> bool {
        let goes_around =
            |kind: JobKind, extent: Extent| kind == JobKind::BackingWrite && extent.overlaps(zone);
        self.rewriting.pending.iter().any(|pending| pending.zone == zone)
            || self.jobs.iter().any(|job| goes_around(job.kind, job.extent))
    }

    /// True when so many blocks will have slots, once the rewrites under way have ended. A recovery, or
    /// a rewrite that has failed, leaves blocks in the cache that hold such slots.
    fn has_staging_for(&self, blocks: u64) -> bool {
        let slots = self.entries.cached().map(|(id, _)| self.entries.slot(id));
        let held = slots.filter(|slot| self.slots.is_staging(*slot)).count();
        blocks + held as u64 <= u64::from(self.slots.staging())
    }

    /// Takes the cached blocks of a zone out of the map, to rewrite it.
    pub(super) fn evict_by_rewrite(
        &mut self,
        rewrite: Rewrite,
        open: &mut Option<u32>,
        ctx: &mut Context<'_>,
    ) {
        self.close_destage(open, ctx);
        let Rewrite { zone, part } = rewrite;
        if let Some(books) = &mut self.rewriting.books {
            books.reset(zone.start);
            books.write(part);
        }
        let reset = self.jobs.open(JobKind::ZoneReset, NONE, Operation::Flush, Cause::Destage);
        self.jobs.get_mut(reset).extent = zone;
        self.destages.add(reset);
        self.wait_for_reads_below(reset, zone);
        self.rewriting.pending.push(Pending { zone, reset });
        let (mut destage, mut fetch) = (NONE, NONE);
        let mut dirty = 0;
        for block in part.start.0..part.end().0 {
            let lba = Lba(block);
            if (block - part.start.0).is_multiple_of(DESTAGE_RUN_BLOCKS_MAX) {
                // The end of the reset unblocks it.
                destage = self.open_destage(lba);
                self.destages.add(destage);
                self.jobs.get_mut(reset).entries.push(destage);
                fetch = NONE;
            }
            match self.cached_entry(lba) {
                Some(id) => {
                    fetch = NONE;
                    dirty += 1;
                    self.remove_from_map(id);
                    self.add_to_destage(destage, id);
                    let has_older = self.entries.get(id).is(Flag::HasOlder);
                    if self.entries.writes(id) > 0 || has_older {
                        self.block_on(reset, id, Event::Settled);
                    }
                }
                None => {
                    fetch = self.fetch_block(lba, fetch);
                    let id = self.rewriting.fetches.last().expect("a fetch").1;
                    self.add_to_destage(destage, id);
                }
            }
        }
        ctx.count(Counter::DirtyEvictions, dirty);
        ctx.count(Counter::RewriteFetchedBlocks, part.blocks.0 - dirty);
        self.start_fetches(reset, ctx);
        self.unblock(reset, ctx);
    }

    /// Puts a block of a zone that is not cached into a fetch, a new one where there is [`NONE`].
    fn fetch_block(&mut self, lba: Lba, fetch: u32) -> u32 {
        let id = self.add_entry(lba);
        let slot = self.slots.hold_staging();
        self.entries.pin_to_write(id);
        if let Some(slot) = slot {
            self.entries.replace_slot(id, slot);
        }
        let entry = self.entries.get_mut(id);
        entry.clear(Flag::Cached);
        entry.set(Flag::Leaving);
        entry.set(Flag::AwaitsData);
        if slot.is_none() {
            entry.set(Flag::AwaitsSlot);
            self.slots.wait_for_staging(id);
        }
        let has_older = entry.is(Flag::HasOlder);
        let fetch = match fetch {
            NONE => {
                let job = self.jobs.open(JobKind::Fetch, NONE, Operation::WRITE, Cause::Destage);
                self.jobs.get_mut(job).extent = Extent::new(lba.0, 0);
                self.rewriting.fetches.push((job, id));
                job
            }
            fetch => fetch,
        };
        let job = self.jobs.get_mut(fetch);
        job.extent.blocks.0 += 1;
        job.entries.push(id);
        self.rewriting.fetches.last_mut().expect("a fetch").1 = id;
        if slot.is_none() {
            self.block_on(fetch, id, Event::Slotted);
        }
        if has_older {
            // What is at home is older, until that has come there.
            self.block_on(fetch, id, Event::Alone);
        }
        fetch
    }

    /// Lets the fetches of a rewrite begin, so many at once; its reset waits for all of them.
    fn start_fetches(&mut self, reset: u32, ctx: &mut Context<'_>) {
        let mut fetches = mem::take(&mut self.rewriting.fetches);
        for (at, (fetch, last)) in fetches.iter().enumerate() {
            if let Some(before) = at.checked_sub(FETCHES_MAX) {
                self.wait_until_settled(*fetch, fetches[before].1);
            }
            self.wait_until_settled(reset, *last);
        }
        for (fetch, _) in fetches.drain(..) {
            self.unblock(fetch, ctx);
        }
        self.rewriting.fetches = fetches;
    }

    /// As [`block_on`](Self::block_on), but nothing below is hurried for it.
    fn wait_until_settled(&mut self, job: u32, entry: u32) {
        self.jobs.get_mut(job).blocked += 1;
        self.waits.add(&mut self.entries, entry, Event::Settled, Waiter::Job(job));
    }

    /// Nothing holds a fetch up.
    pub(super) fn start_fetch(&mut self, id: u32, ctx: &mut Context<'_>) {
        let failure = self.ledger.failure();
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(failure);
        if job.error.is_some() {
            return self.fetch_failed(id, ctx);
        }
        job.buffer = ctx.allocate(job.extent.blocks);
        job.outstanding = 1;
        let place = (job.extent, job.buffer);
        self.issue(id, Cache::BACKING, Operation::Read, place, ctx);
    }

    /// Blocks of a zone have come from below, or cannot be read; they go to flash.
    pub(super) fn fetched(&mut self, id: u32, ctx: &mut Context<'_>) {
        if self.jobs.get(id).error.is_some() {
            let buffer = mem::replace(&mut self.jobs.get_mut(id).buffer, BufferSlice::EMPTY);
            ctx.release(buffer);
            return self.fetch_failed(id, ctx);
        }
        let entries = self.jobs.take_entries(id);
        entries.iter().for_each(|entry| self.entries.get_mut(*entry).clear(Flag::AwaitsData));
        let is_recorded = self.host_writes.kind == JobKind::FreshWrite;
        if is_recorded {
            let write = self.host_writes.fresh(id);
            write.begin();
            write.slots.extend(entries.iter().map(|entry| self.entries.slot(*entry)));
        }
        self.jobs.get_mut(id).entries = entries;
        if is_recorded {
            self.jobs.get_mut(id).kind = JobKind::FreshWrite;
            return self.queue_write(id);
        }
        self.jobs.get_mut(id).kind = JobKind::Fill;
        let issued = self.issue_flash_runs(id, Operation::WRITE, Some(Flag::Leaving), ctx);
        self.jobs.get_mut(id).outstanding = issued;
    }

    /// The blocks of a fetch stay where they are.
    fn fetch_failed(&mut self, id: u32, ctx: &mut Context<'_>) {
        let entries = self.jobs.take_entries(id);
        entries.iter().for_each(|entry| self.entries.get_mut(*entry).clear(Flag::AwaitsData));
        self.jobs.get_mut(id).entries = entries;
        self.flash_write_done(id, ctx);
    }

    /// All of a zone that could be brought to flash is there: it must be durable before the zone is
    /// reset.
    pub(super) fn make_zone_durable(&mut self, id: u32, ctx: &mut Context<'_>) {
        if !self.is_whole_in_flash(id) {
            return self.end_reset(id, ctx);
        }
        if ctx.is_planted(PlantedBug::ZoneResetBeforeFlush) {
            return self.reset_zone(id, ctx);
        }
        if self.ledger.answer_when_flushed(Cache::FLASH, id, ctx) == When::Now {
            self.jobs.get_mut(id).outstanding = 1;
            let nothing = (Extent::EMPTY, BufferSlice::EMPTY);
            self.issue(id, Cache::FLASH, Operation::Flush, nothing, ctx);
        }
    }

    fn is_whole_in_flash(&self, reset: u32) -> bool {
        let reset = self.jobs.get(reset);
        let mut destages = reset.entries.iter().map(|job| self.jobs.get(*job));
        let holds_data = |entry: &u32| self.entries.get(*entry).is(Flag::HoldsData);
        reset.error.is_none()
            && destages.all(|job| job.error.is_none() && job.entries.iter().all(holds_data))
    }

    /// Resets a zone that is durable in flash.
    pub(super) fn reset_zone(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get_mut(id);
        job.operation = Operation::ZoneReset;
        job.outstanding = 1;
        let place = (job.extent, BufferSlice::EMPTY);
        self.issue(id, Cache::BACKING, Operation::ZoneReset, place, ctx);
    }

    /// The flash is flushed, or the zone is reset.
    pub(super) fn reset_step_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        match (job.operation, job.error) {
            (Operation::Flush, None) => self.reset_zone(id, ctx),
            _ => self.end_reset(id, ctx),
        }
    }

    /// Lets the destages of a zone begin, whether it was reset or not: all that is written below is newer
    /// there, or the same.
    pub(super) fn end_reset(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.rewriting.pending.retain(|pending| pending.reset != id);
        let job = self.jobs.get(id);
        match (job.operation, job.error, &mut self.rewriting.books) {
            (Operation::ZoneReset, None, _) => ctx.count(Counter::ZonesRewritten, 1),
            (_, _, Some(books)) => books.disturb(job.extent.start),
            (_, _, None) => {}
        }
        let destages = self.jobs.take_entries(id);
        for destage in &destages {
            self.unblock(*destage, ctx);
        }
        self.end_waits_for(id, ctx);
        self.jobs.close(id, destages);
    }

    /// Reads below that have begun, or wait for something, take what is there before the reset.
    fn wait_for_reads_below(&mut self, reset: u32, zone: Extent) {
        for ended in 0..self.jobs.high_water() {
            let job = self.jobs.get(ended);
            if job.kind == JobKind::MissRead && job.extent.overlaps(zone) {
                self.wait_for_end(After { ended, then: reset });
            }
        }
    }

    /// Lets a job that goes below wait for the reset of a zone that it touches.
    #[inline]
    pub(super) fn wait_for_reset(&mut self, job: u32, extent: Extent) {
        for at in 0..self.rewriting.pending.len() {
            let Pending { zone, reset } = self.rewriting.pending[at];
            if zone.overlaps(extent) {
                self.wait_for_end(After { ended: reset, then: job });
            }
        }
    }

    fn wait_for_end(&mut self, after: After) {
        if !self.rewriting.after.contains(&after) {
            self.rewriting.after.push(after);
            self.jobs.get_mut(after.then).blocked += 1;
        }
    }

    /// A job is about to end.
    #[inline]
    pub(super) fn end_waits_for(&mut self, id: u32, ctx: &mut Context<'_>) {
        while let Some(at) = self.rewriting.after.iter().position(|after| after.ended == id) {
            let After { then, .. } = self.rewriting.after.remove(at);
            self.unblock(then, ctx);
        }
    }

    /// True when a flush of the host must go below.
    pub(super) fn must_flush_below(&mut self, job: u32) -> bool {
        !self.settings.is_zone_buffer() || self.rewriting.left_below.begin_flush(job)
    }
}
