//! Eviction, and how dirty data gets below: read from flash in any order, written in the order of
//! the decisions.

use super::Cache;
use super::entries::{Flag, NONE};
use super::jobs::{Event, JobKind, Waiter};
use super::policy::{AccessKind, PolicyEvents};
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::units::Lba;
use core::mem;

/// Blocks written below in one operation (4 MiB), which bounds the buffer.
pub(super) const DESTAGE_RUN_BLOCKS_MAX: u64 = 1024;

impl Cache {
    /// Evicts until there is room for one block. `open` is the destage that blocks evicted for the
    /// same request may still join. True when something leaves that waits for a write, or for an older version of its block.
    pub(super) fn make_room(
        &mut self,
        open: &mut Option<u32>,
        events: &mut PolicyEvents,
        ctx: &mut Context<'_>,
    ) -> bool {
        self.evict_down_to(self.settings.capacity_blocks - 1, open, events, ctx)
    }

    #[inline(always)]
    fn evict_down_to(
        &mut self,
        blocks: u64,
        open: &mut Option<u32>,
        events: &mut PolicyEvents,
        ctx: &mut Context<'_>,
    ) -> bool {
        let mut has_unsettled = false;
        while self.replacement.cached_blocks > blocks {
            let mut victims = mem::take(&mut self.replacement.victims);
            self.replacement.policy.victims(&mut victims, events);
            assert!(!victims.is_empty(), "a full cache without a victim");
            match self.zone_to_rewrite(&victims) {
                None => has_unsettled |= self.evict(&victims, open, ctx),
                Some(rewrite) => {
                    self.evict_by_rewrite(rewrite, open, ctx);
                    has_unsettled = true;
                }
            }
            victims.clear();
            self.replacement.victims = victims;
        }
        has_unsettled
    }

    /// A recovery or failed destages have left more blocks in the cache than it may hold: some
    /// leave. True when there were.
    pub(super) fn evict_excess(&mut self, ctx: &mut Context<'_>) -> bool {
        let capacity = self.settings.capacity_blocks;
        let needed = self.destages.failure.is_none() && !ctx.is_read_only();
        if !needed || self.replacement.cached_blocks <= capacity {
            return false;
        }
        let (mut open, mut events) = (None, PolicyEvents::default());
        self.evict_down_to(capacity, &mut open, &mut events, ctx);
        self.close_destage(&mut open, ctx);
        Cache::count_events(&events, ctx);
        self.set_gauges(ctx);
        true
    }

    /// Takes the victims out of the map; dirty ones that adjoin below become one destage, with those
    /// evicted for an earlier block of the same request. True when one of them is unsettled.
    fn evict(&mut self, victims: &[u32], open: &mut Option<u32>, ctx: &mut Context<'_>) -> bool {
        let (mut dirty_evictions, mut clean_evictions) = (0, 0);
        let mut has_unsettled = false;
        for &id in victims {
            let entry = *self.entries.get(id);
            if !entry.is(Flag::Cached) {
                // A request that had failed already went with an earlier victim's slot.
                continue;
            }
            self.remove_from_map(id);
            if !entry.is(Flag::Dirty) {
                clean_evictions += 1;
                if entry.is(Flag::AwaitsData) {
                    self.give_up_slot(id, ctx);
                }
                self.retire(id, ctx);
                continue;
            }
            dirty_evictions += 1;
            let unsettled = self.entries.writes_of(&entry) > 0 || entry.is(Flag::HasOlder);
            let lba = entry.lba();
            // What it waits for may itself wait for a slot of the open destage, which therefore
            // must not wait for it.
            let adjoins = open.filter(|job| {
                let extent = self.jobs.get(*job).extent;
                !unsettled && extent.end() == lba && extent.blocks.0 < DESTAGE_RUN_BLOCKS_MAX
            });
            let job = adjoins.unwrap_or_else(|| {
                self.close_destage(open, ctx);
                let job = self.open_destage(lba);
                self.destages.add(job);
                job
            });
            *open = Some(job);
            self.add_to_destage(job, id);
            let block = Extent::new(lba.0, 1);
            self.wait_for_reset(job, block);
            self.rewriting.write(block);
            has_unsettled |= unsettled;
            if unsettled {
                self.block_on(job, id, Event::Settled);
                if self.destages.is_joined_when_unblocked() {
                    // What joined it would wait with it, and somebody may need its slot.
                    self.close_destage(open, ctx);
                }
            }
        }
        if dirty_evictions > 0 {
            ctx.count(Counter::DirtyEvictions, dirty_evictions);
        }
        if clean_evictions > 0 {
            ctx.count(Counter::CleanEvictions, clean_evictions);
        }
        has_unsettled
    }

    /// Lets a destage begin that nothing will join any more.
    pub(super) fn close_destage(&mut self, open: &mut Option<u32>, ctx: &mut Context<'_>) {
        if let Some(job) = open.take() {
            self.unblock(job, ctx);
        }
    }

    /// A destage, or a write around the cache, waits for nothing any more.
    pub(super) fn unblocked_in_queue(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.destages.unblocked(job);
        self.advance_destages(ctx);
    }

    /// A destage without blocks yet, to be put in the queue.
    pub(super) fn open_destage(&mut self, first: Lba) -> u32 {
        let operation = self.destages.operation;
        let job = self.jobs.open(JobKind::Destage, NONE, operation, Cause::Destage);
        self.jobs.get_mut(job).extent = Extent::new(first.0, 0);
        job
    }

    pub(super) fn add_to_destage(&mut self, job: u32, id: u32) {
        self.jobs.get_mut(job).extent.blocks.0 += 1;
        self.keep_aside(job, id);
    }

    /// Starts reading what may be read, and issues the writes whose turn has come.
    pub(super) fn advance_destages(&mut self, ctx: &mut Context<'_>) {
        loop {
            while let Some(id) = self.destages.next_to_start() {
                let job = self.jobs.get_mut(id);
                if job.blocked > 0 {
                    break;
                }
                if job.kind != JobKind::Destage {
                    job.ready = true;
                } else if !self.destages.is_full() {
                    self.read_evicted(id, ctx);
                } else {
                    break;
                }
                self.destages.start_next();
            }
            let Some(id) = self.destages.in_turn() else {
                return;
            };
            if !self.jobs.get(id).ready {
                return;
            }
            self.destages.take_turn();
            self.write_in_turn(id, ctx);
        }
    }

    fn read_evicted(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.destages.begin();
        let blocks = self.jobs.get(id).extent.blocks;
        self.jobs.get_mut(id).buffer = ctx.allocate(blocks);
        let issued = self.issue_flash_runs(id, Operation::Read, Some(Flag::HoldsData), ctx);
        let awaited = self.await_durable_copy(id, ctx);
        let job = self.jobs.get_mut(id);
        job.outstanding = issued + u32::from(awaited);
        job.ready = job.outstanding == 0;
        let is_freed_early = ctx.is_planted(PlantedBug::DirtyDroppedBeforeDestinationFlush);
        if is_freed_early && !self.destages.is_joined_when_unblocked() {
            self.free_slots_early(id, ctx);
        }
    }

    /// The planted bug: the slots of a destage go to newcomers as soon as it has begun.
    fn free_slots_early(&mut self, id: u32, ctx: &mut Context<'_>) {
        let entries = self.jobs.take_entries(id);
        for entry in &entries {
            if self.entries.pins(*entry) == 1 {
                self.release_slot(*entry, ctx);
            }
        }
        self.jobs.get_mut(id).entries = entries;
    }

    fn write_in_turn(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let (operation, buffer) = (job.operation, job.buffer);
        if job.kind == JobKind::BackingWrite {
            let place = (job.extent, buffer);
            self.jobs.get_mut(id).outstanding = 1;
            self.issue(id, Cache::BACKING, operation, place, ctx);
            return;
        }
        if job.kind == JobKind::ZoneReset {
            return self.make_zone_durable(id, ctx);
        }
        if job.error.is_some() {
            return self.destage_done(id, ctx);
        }
        let entries = self.jobs.take_entries(id);
        let mut issued = 0;
        let mut first = 0;
        while first < entries.len() {
            let length = self.run_below(&entries[first..], Flag::HoldsData);
            if length == 0 {
                first += 1;
                continue;
            }
            let lba = self.entries.get(entries[first]).lba();
            let place =
                (Extent::new(lba.0, length as u64), buffer.part(first as u64, length as u64));
            self.issue(id, Cache::BACKING, operation, place, ctx);
            issued += 1;
            first += length;
        }
        self.jobs.get_mut(id).outstanding = issued;
        self.jobs.get_mut(id).entries = entries;
        if issued == 0 {
            self.destage_done(id, ctx);
        }
    }

    /// The reads or the writes of a destage have finished.
    pub(super) fn destage_step_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let failure = self.ledger.failure();
        let job = self.jobs.get_mut(id);
        let is_written = job.ready;
        job.ready = true;
        if is_written {
            job.error = job.error.or(failure);
            if job.error.is_some() || self.destage_written(id, ctx) == When::Now {
                self.destage_done(id, ctx);
            }
        } else if job.error.is_none() && self.count_changed(id, false, ctx) > 0 {
            self.jobs.get_mut(id).error = Some(IoError::Medium);
        }
        self.advance_destages(ctx);
    }

    /// A destage is durable below, or has failed.
    pub(super) fn destage_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.destages.end();
        let job = self.jobs.get(id);
        let (error, buffer) = (job.error, job.buffer);
        ctx.release(buffer);
        let entries = self.jobs.take_entries(id);
        for id in &entries {
            match error {
                Some(error) if self.entries.get(*id).is(Flag::HoldsData) => {
                    self.keep_after_failure(*id, error, ctx);
                }
                _ => self.entries.get_mut(*id).clear(Flag::Destaging),
            }
            self.unpin(*id, ctx);
        }
        self.jobs.close(id, entries);
        if let Some(error) = error {
            self.destages.failure = Some(error);
            self.set_gauges(ctx);
        }
    }

    /// Data that could not be written below stays in the cache, dirty, unless something newer
    /// has taken its place. It is evicted again later, which is the next attempt.
    fn keep_after_failure(&mut self, id: u32, error: IoError, ctx: &mut Context<'_>) {
        self.entries.get_mut(id).clear(Flag::Destaging);
        let overwriting = |waiter: &Waiter| match waiter {
            Waiter::Job(job) => self.jobs.get(*job).kind == JobKind::BackingWrite,
            Waiter::Successor(_) => true,
        };
        let newer = self.waits.of(self.entries.waits(id), Event::Gone).find(overwriting);
        match newer {
            Some(Waiter::Successor(newer)) => self.keep_for_successor(id, newer, error, ctx),
            Some(Waiter::Job(job)) => {
                self.keep_aside(job, id);
                self.notify(id, Event::Gone, None, ctx);
            }
            None => {
                self.put_back(id, error, ctx);
                // Reads that came for the copy below would get older data: they go to flash.
                self.notify(id, Event::Gone, Some(error), ctx);
            }
        }
    }

    /// Keeps the data of `old`, which could not be written below, until `newer` holds its own.
    fn keep_for_successor(&mut self, old: u32, newer: u32, error: IoError, ctx: &mut Context<'_>) {
        let entry = self.entries.get(newer);
        if entry.is(Flag::HoldsData) {
            return;
        }
        let being_written = entry.is(Flag::Dirty) || entry.is(Flag::Destaging);
        // The one write that is to come brings what is below, so it waits for the old data.
        let writes = self.entries.writes(newer);
        let is_fetched = entry.is(Flag::AwaitsData) && writes == 1;
        if !being_written || writes == 0 || is_fetched {
            return self.hand_over(old, newer, error, ctx);
        }
        if entry.is(Flag::AwaitsSlot) {
            // It may wait for this very slot: its write fails instead.
            self.entries.get_mut(newer).clear(Flag::AwaitsSlot);
            self.slots.stop_waiting(newer);
            self.notify(newer, Event::Slotted, Some(error), ctx);
            return self.hand_over(old, newer, error, ctx);
        }
        // Until its write has succeeded, the old data is tried again, before anything that may
        // wait for the old entry to go.
        let job = self.open_destage(self.entries.get(old).lba());
        self.destages.add_next(job);
        self.add_to_destage(job, old);
        self.block_on(job, newer, Event::Written);
        self.unblock(job, ctx);
    }

    /// Gives the data of `old` to `newer`, which has none of its own: a read brought it into the
    /// map and waits for the copy below, or its write has failed.
    fn hand_over(&mut self, old: u32, newer: u32, error: IoError, ctx: &mut Context<'_>) {
        if self.entries.get(newer).is(Flag::AwaitsData) {
            self.give_up_slot(newer, ctx);
        }
        self.release_slot(newer, ctx);
        let slot = self.entries.replace_slot(old, NONE);
        self.entries.replace_slot(newer, slot);
        let entry = self.entries.get_mut(newer);
        entry.set(Flag::HoldsData);
        if entry.is(Flag::Cached) {
            entry.set(Flag::Dirty);
            self.replacement.dirty_blocks += 1;
            let mut events = PolicyEvents::default();
            self.replacement.policy.on_access(newer, AccessKind::Write, &mut events);
            Cache::count_events(&events, ctx);
        } else if !entry.is(Flag::Destaging) {
            self.keep_after_failure(newer, error, ctx);
        }
        self.notify(newer, Event::Alone, Some(error), ctx);
    }

    /// Keeps a leaving entry's data in its slot until `job`, which makes it obsolete, has ended.
    #[inline]
    pub(super) fn keep_aside(&mut self, job: u32, id: u32) {
        self.entries.pin(id);
        self.entries.get_mut(id).set(Flag::Destaging);
        self.jobs.get_mut(job).entries.push(id);
    }

    /// Makes a leaving entry that holds data a cached dirty one again. The cache may be over its
    /// capacity afterwards; the next insertion evicts as many more.
    pub(super) fn put_back(&mut self, id: u32, error: IoError, ctx: &mut Context<'_>) {
        self.destages.failure = Some(error);
        let newest = self.entries.find(self.entries.get(id).lba());
        assert_eq!(newest, Some(id), "a superseded block was put back");
        let has_slot = self.entries.slot(id) != NONE;
        let entry = self.entries.get_mut(id);
        assert!(entry.is(Flag::Leaving) && has_slot, "a block without data was put back");
        entry.clear(Flag::Leaving);
        entry.set(Flag::Cached);
        entry.set(Flag::Dirty);
        self.replacement.cached_blocks += 1;
        self.replacement.dirty_blocks += 1;
        let (lba, mut events) = (entry.lba(), PolicyEvents::default());
        self.replacement.policy.on_insert(id, lba, AccessKind::Write, &mut events);
        Cache::count_events(&events, ctx);
    }

    /// After a failed destage: when nothing is under way that could free a slot, those who wait
    /// for one get none, one after another until something moves again: reads do without, and
    /// writes fail.
    pub(super) fn deny_slots_when_stuck(&mut self, ctx: &mut Context<'_>) {
        let Some(error) = self.destages.failure else {
            return;
        };
        while self.jobs.operations_in_flight == 0
            && let Some(waiter) = self.slots.pop_waiting()
        {
            self.deny_slot(waiter, error, ctx);
        }
        if !self.slots.is_awaited() {
            self.destages.failure = None;
        }
        self.set_gauges(ctx);
    }
}
