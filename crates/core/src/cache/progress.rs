//! Jobs on their way: what starts them, what their operations bring, and what ends them.

use super::Cache;
use super::entries::{Flag, NONE};
use super::flash_runs::FlashRuns;
use super::jobs::{Event, JobKind, Waiter};
use super::slots::SlotWaiter;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::operation::{Completion, Operation, Tag};
use crate::units::BlockCount;

impl Cache {
    /// Lets a job wait for an event of an entry.
    pub(super) fn block_on(&mut self, job: u32, entry: u32, event: Event) {
        self.jobs.get_mut(job).blocked += 1;
        self.note_wait(event);
        self.waits.add(&mut self.entries, entry, event, Waiter::Job(job));
    }

    /// One thing less for a job to wait for; after the last one it starts.
    #[inline]
    pub(super) fn unblock(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get_mut(id);
        job.blocked -= 1;
        if job.blocked == 0 {
            self.start(id, ctx);
        }
    }

    /// Tells those who wait for an event of an entry that it has happened, or, with an error,
    /// that it never will.
    #[inline]
    pub(super) fn notify(
        &mut self,
        entry: u32,
        event: Event,
        error: Option<IoError>,
        ctx: &mut Context<'_>,
    ) {
        if self.entries.waits(entry) != NONE {
            self.notify_waiting(entry, event, error, ctx);
        }
    }

    fn notify_waiting(
        &mut self,
        entry: u32,
        event: Event,
        error: Option<IoError>,
        ctx: &mut Context<'_>,
    ) {
        let mut woken = core::mem::take(&mut self.waits.woken);
        self.waits.take(&mut self.entries, entry, event, &mut woken);
        for waiter in woken.drain(..) {
            match waiter {
                Waiter::Job(job) => {
                    let waiting = self.jobs.get_mut(job);
                    waiting.error = waiting.error.or(error);
                    self.unblock(job, ctx);
                }
                Waiter::Successor(entry) => {
                    self.entries.get_mut(entry).clear(Flag::HasOlder);
                    self.notify(entry, Event::Alone, None, ctx);
                    self.check_settled(entry, ctx);
                    self.retire(entry, ctx);
                }
            }
        }
        self.waits.woken = woken;
    }

    /// Everything a job waited for has happened.
    fn start(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        match job.kind {
            JobKind::Destage | JobKind::BackingWrite | JobKind::ZoneReset => {
                return self.unblocked_in_queue(id, ctx);
            }
            JobKind::Fetch => return self.start_fetch(id, ctx),
            JobKind::Flush => return self.flush_ports(id, ctx),
            JobKind::FreshWrite => return self.start_fresh_write(id, ctx),
            _ => {}
        }
        let lacks_data = job.kind == JobKind::FlashRead
            && job.entries.iter().any(|entry| !self.entries.get(*entry).is(Flag::HoldsData));
        if job.error.is_some() || lacks_data {
            return match job.kind {
                JobKind::FlashWrite => self.job_done(id, ctx),
                _ => self.read_where_it_is(id, ctx),
            };
        }
        let (kind, operation, place) = (job.kind, job.operation, (job.extent, job.buffer));
        let issued = match kind {
            JobKind::MissRead => {
                self.issue(id, Cache::BACKING, operation, place, ctx);
                1
            }
            _ => self.issue_flash_runs(id, operation, None, ctx),
        };
        self.jobs.get_mut(id).outstanding = issued;
    }

    /// Nothing holds a write to fresh slots up, unless something went wrong meanwhile.
    fn start_fresh_write(&mut self, id: u32, ctx: &mut Context<'_>) {
        let failure = self.ledger.failure();
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(failure);
        match job.error {
            Some(_) => self.job_done(id, ctx),
            None => self.queue_write(id),
        }
    }

    /// Issues an operation of a job; the caller counts it as outstanding.
    pub(super) fn issue(
        &mut self,
        id: u32,
        port: Port,
        operation: Operation,
        place: (Extent, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        self.jobs.operations_in_flight += 1;
        ctx.issue(Issue {
            port,
            operation,
            extent: place.0,
            buffer: place.1,
            cause: self.jobs.get(id).cause,
            tag: Tag(u64::from(id)),
        });
    }

    /// Issues one operation for each run of adjoining slots under the entries of a job that
    /// `wanted` holds for, all of them where it is none, the buffer in the order of the entries. Returns
    /// how many.
    pub(super) fn issue_flash_runs(
        &mut self,
        id: u32,
        operation: Operation,
        wanted: Option<Flag>,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let job = self.jobs.get(id);
        let mut issued = 0;
        for run in FlashRuns::new(&self.entries, &job.entries, wanted) {
            ctx.issue(Issue {
                port: Cache::FLASH,
                operation,
                extent: self.slots.place(run.slot, run.blocks),
                buffer: job.buffer.part(run.first, run.blocks),
                cause: job.cause,
                tag: Tag(u64::from(id)),
            });
            issued += 1;
        }
        self.jobs.operations_in_flight += u64::from(issued);
        issued
    }

    /// How many of the first entries have the property and adjoin below.
    pub(super) fn run_below(&self, entries: &[u32], wanted: Flag) -> usize {
        let first = self.entries.get(entries[0]).lba();
        let adjoins = |(at, id): &(u64, &u32)| {
            let entry = self.entries.get(**id);
            entry.is(wanted) && entry.lba() == first + BlockCount(*at)
        };
        (0..).zip(entries).take_while(adjoins).count()
    }

    /// An operation has finished; its tag is the job.
    pub(super) fn operation_done(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        self.jobs.operations_in_flight -= 1;
        let id = completion.tag.0 as u32;
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(completion.result.err());
        job.outstanding -= 1;
        if job.outstanding == 0 {
            self.job_done(id, ctx);
        }
    }

    /// The last outstanding operation of a job has finished, or it cannot start.
    pub(super) fn job_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        match self.jobs.get(id).kind {
            JobKind::FlashRead => self.check_flash_read(id, ctx),
            JobKind::FreshWrite => self.portion_done(id, ctx),
            JobKind::FlashWrite => self.flash_write_done(id, ctx),
            JobKind::MissRead => self.miss_read_done(id, ctx),
            JobKind::Fill => {
                if self.jobs.get(id).error.is_none() {
                    self.note_checksums(id, ctx);
                }
                ctx.release(self.jobs.get(id).buffer);
                self.flash_write_done(id, ctx);
            }
            JobKind::Destage => self.destage_step_done(id, ctx),
            JobKind::BackingWrite => self.write_around_done(id, ctx),
            JobKind::Flush => self.below_done(id, ctx),
            JobKind::Fetch => self.fetched(id, ctx),
            JobKind::ZoneReset => self.reset_step_done(id, ctx),
        }
    }

    /// A host write around the cache, a zeroing or a flush has ended.
    pub(super) fn below_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let (host, error) = (job.host, job.error);
        match job.kind {
            JobKind::Flush => self.rewriting.left_below.end_flush(id, error.is_some()),
            _ => self.rewriting.left_below.add(),
        }
        let entries = self.jobs.take_entries(id);
        for entry in &entries {
            self.entries.get_mut(*entry).clear(Flag::Destaging);
            if let Some(error) = error {
                self.put_back(*entry, error, ctx);
            }
            self.unpin(*entry, ctx);
        }
        if error.is_some() {
            self.set_gauges(ctx);
        }
        self.jobs.close(id, entries);
        self.end_part(host, error, ctx);
    }

    /// A part of a host request has ended; the last one answers it.
    #[inline]
    pub(super) fn end_part(&mut self, host: u32, error: Option<IoError>, ctx: &mut Context<'_>) {
        if host != NONE
            && let Some((request, result)) = self.hosts.end_part(host, error)
        {
            ctx.finish(request, result);
        }
    }

    pub(super) fn flash_read_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let (host, error) = (job.host, job.error);
        let entries = self.jobs.take_entries(id);
        for entry in &entries {
            self.unpin(*entry, ctx);
        }
        self.jobs.close(id, entries);
        self.end_part(host, error, ctx);
    }

    /// A host write or a fill has reached flash, or failed to.
    pub(super) fn flash_write_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let (host, error) = (job.host, job.error);
        if job.kind == JobKind::FreshWrite && host == NONE {
            // What was fetched has a buffer of its own.
            ctx.release(job.buffer);
        }
        let entries = self.jobs.take_entries(id);
        for entry in &entries {
            self.written(*entry, error, ctx);
        }
        if error.is_some() {
            self.set_gauges(ctx);
        }
        self.jobs.close(id, entries);
        self.end_part(host, error, ctx);
    }

    /// A write to the slot of an entry has ended, and who has written names the entry no longer.
    #[inline]
    pub(super) fn written(&mut self, id: u32, error: Option<IoError>, ctx: &mut Context<'_>) {
        if error.is_some() || !self.entries.end_plain_write(id) {
            self.end_awaited_write(id, error, ctx);
        }
    }

    /// The same of a write that has failed, or to an entry that leaves or has a record.
    #[inline(never)]
    fn end_awaited_write(&mut self, id: u32, error: Option<IoError>, ctx: &mut Context<'_>) {
        self.entries.end_write(id);
        let entry = self.entries.get_mut(id);
        if error.is_none() {
            entry.set(Flag::HoldsData);
        } else if !entry.is(Flag::HoldsData)
            && entry.is(Flag::Cached)
            && self.entries.writes(id) == 0
        {
            // The slot holds another block's data or none: the copy below is the newest.
            self.remove_from_map(id);
        }
        if self.entries.waits(id) != NONE {
            self.notify_waiting(id, Event::Written, None, ctx);
            self.check_settled(id, ctx);
        }
        self.unpin(id, ctx);
    }

    /// Missing blocks have come from below. They are copied, so that the host need not wait until
    /// they are in flash.
    fn miss_read_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.end_waits_for(id, ctx);
        let job = self.jobs.get(id);
        let (host, error, data, extent) = (job.host, job.error, job.buffer, job.extent);
        let mut entries = self.jobs.take_entries(id);
        let mut kept = 0;
        for at in 0..entries.len() {
            let id = entries[at];
            let awaited = self.entries.get(id).is(Flag::AwaitsData);
            if awaited && error.is_none() {
                entries[kept] = id;
                kept += 1;
                continue;
            }
            self.forget_miss(id, ctx);
        }
        entries.truncate(kept);
        if entries.is_empty() {
            self.jobs.close(id, entries);
        } else {
            let own = ctx.allocate(BlockCount(entries.len() as u64));
            let mut first = 0;
            while first < entries.len() {
                let length = self.run_below(&entries[first..], Flag::AwaitsData);
                let lba = self.entries.get(entries[first]).lba();
                let from = data.part(lba.offset_from(extent.start), length as u64);
                ctx.copy(from, own.part(first as u64, length as u64));
                first += length;
            }
            for entry in &entries {
                self.entries.get_mut(*entry).clear(Flag::AwaitsData);
            }
            let job = self.jobs.get_mut(id);
            job.kind = JobKind::Fill;
            job.host = NONE;
            job.buffer = own;
            job.entries = entries;
            let issued = self.issue_flash_runs(id, Operation::WRITE, Some(Flag::Cached), ctx);
            self.jobs.get_mut(id).outstanding = issued;
        }
        if error.is_some() {
            self.set_gauges(ctx);
        }
        self.end_part(host, error, ctx);
    }

    /// A read below does not bring the data of an entry any more: unless it has some by now, it
    /// leaves.
    pub(super) fn forget_miss(&mut self, id: u32, ctx: &mut Context<'_>) {
        if self.entries.get(id).is(Flag::AwaitsData) {
            self.remove_from_map(id);
            self.give_up_slot(id, ctx);
        }
        if self.entries.writes(id) > 0 {
            self.entries.end_write(id);
        }
        self.check_settled(id, ctx);
        self.unpin(id, ctx);
    }

    /// Takes a cached entry out of the map; it is leaving, and its data is not wanted any more.
    pub(super) fn remove_from_map(&mut self, id: u32) {
        self.replacement.policy.on_remove(id);
        let entry = self.entries.get_mut(id);
        entry.clear(Flag::Cached);
        entry.set(Flag::Leaving);
        self.replacement.cached_blocks -= 1;
        if entry.is(Flag::Dirty) {
            entry.clear(Flag::Dirty);
            self.replacement.dirty_blocks -= 1;
        }
    }

    /// Gives up the slot, or the place in the queue for one, of an entry whose data has not come:
    /// nothing was issued for the slot, and a newcomer may be waiting for it.
    pub(super) fn give_up_slot(&mut self, id: u32, ctx: &mut Context<'_>) {
        let entry = self.entries.get_mut(id);
        entry.clear(Flag::AwaitsData);
        if entry.is(Flag::AwaitsSlot) {
            entry.clear(Flag::AwaitsSlot);
            self.slots.stop_waiting(id);
            self.notify(id, Event::Slotted, None, ctx);
        } else {
            self.release_slot(id, ctx);
        }
    }

    /// Frees the slot of an entry, which goes to the newcomer that has waited longest.
    pub(super) fn release_slot(&mut self, id: u32, ctx: &mut Context<'_>) {
        let slot = self.entries.replace_slot(id, NONE);
        if slot == NONE {
            return;
        }
        self.slots.let_go(slot);
        self.give_back_slot(slot, ctx);
    }

    /// Gives free slots to those who have waited longest.
    #[inline]
    pub(super) fn grant_slots(&mut self, ctx: &mut Context<'_>) {
        while self.slots.is_awaited()
            && let Some((waiter, slot)) = self.slots.grant()
        {
            match waiter {
                SlotWaiter::Entry(newcomer) => {
                    self.entries.replace_slot(newcomer, slot);
                    self.entries.get_mut(newcomer).clear(Flag::AwaitsSlot);
                    self.notify(newcomer, Event::Slotted, None, ctx);
                }
                SlotWaiter::Job(job) => self.grant_slot(job, slot, ctx),
            }
        }
    }

    pub(super) fn check_settled(&mut self, id: u32, ctx: &mut Context<'_>) {
        let entries = &self.entries;
        let is_settled = || entries.writes(id) == 0 && !entries.get(id).is(Flag::HasOlder);
        if entries.waits(id) != NONE && is_settled() {
            self.notify(id, Event::Settled, None, ctx);
        }
    }

    /// A job no longer names an entry.
    #[inline]
    pub(super) fn unpin(&mut self, id: u32, ctx: &mut Context<'_>) {
        if self.entries.unpin(id) {
            self.retire(id, ctx);
        }
    }

    /// Lets a leaving entry go as far as it can: its slot when no job uses it, and the entry when
    /// no older version of its block is left either.
    pub(super) fn retire(&mut self, id: u32, ctx: &mut Context<'_>) {
        let entry = self.entries.get(id);
        let is_needed = self.entries.pins_of(entry) > 0 || entry.is(Flag::Destaging);
        if !entry.is(Flag::Leaving) || is_needed {
            return;
        }
        self.release_slot(id, ctx);
        // A newcomer that got the slot may have set things going, but never for this block.
        if !self.entries.get(id).is(Flag::HasOlder) {
            self.entries.unlink(id);
            self.notify(id, Event::Gone, None, ctx);
            self.entries.free(id);
        }
    }
}
