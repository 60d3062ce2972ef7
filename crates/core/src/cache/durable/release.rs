//! How dirty blocks leave the cache: durable below first, then a record that frees them.

use super::codec;
use crate::buffer::BufferSlice;
use crate::cache::Cache;
use crate::cache::entries::Flag;
use crate::cache::jobs::{Event, JobKind};
use crate::durability::Lsn;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::Operation;
use crate::planted::PlantedBug;
use alloc::vec::Vec;

impl Cache {
    /// Notes that somebody waits for an event of an entry.
    #[inline]
    pub(in crate::cache) fn note_wait(&mut self, event: Event) {
        self.destages.batch.is_urgent |= !matches!(event, Event::Slotted | Event::Written);
    }

    /// A destage begins: true when it has to wait for a flush of the flash too, because a power
    /// cut could still take the copies there away.
    ///
    /// A write below that fails leaves its blocks old, new or unreadable. What was durable there is
    /// gone then, so what takes its place must be durable before.
    pub(in crate::cache) fn await_durable_copy(&mut self, id: u32, ctx: &mut Context<'_>) -> bool {
        let durable_before = self.ledger.durable_before();
        let is_unsure = |entry: &u32| {
            self.entries.get(*entry).is(Flag::HoldsData)
                && !self.table.is_durable(self.entries.slot(*entry), durable_before)
        };
        self.jobs.get(id).entries.iter().any(is_unsure)
            && self.ledger.answer_when_flushed(Cache::FLASH, id, ctx) == When::Later
    }

    /// The copies in flash of a destage are durable, or never will be.
    pub(super) fn flash_copy_durable(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get_mut(id);
        job.outstanding -= 1;
        if job.outstanding == 0 {
            self.job_done(id, ctx);
        }
    }

    /// A destage has been written below. Says whether it is as durable there as it must be; when
    /// not, it waits for a flush.
    pub(in crate::cache) fn destage_written(&mut self, id: u32, ctx: &mut Context<'_>) -> When {
        let is_freed_early = ctx.is_planted(PlantedBug::DirtyDroppedBeforeDestinationFlush);
        let job = self.jobs.get_mut(id);
        let buffer = core::mem::replace(&mut job.buffer, BufferSlice::EMPTY);
        let blocks = job.extent.blocks.0;
        ctx.release(buffer);
        if is_freed_early && self.destages.is_joined_when_unblocked() {
            self.destages.batch.freeing.push_back(id);
            return When::Later;
        }
        let waiting = self.destages_awaiting_flush();
        let answer = self.ledger.answer_with_next_flush(Cache::BACKING, id);
        self.destages.batch.add(blocks, waiting);
        answer
    }

    /// Destages that wait for a flush of the backing which has not begun.
    fn destages_awaiting_flush(&mut self) -> usize {
        let flushes = self.ledger.flushes_of(Cache::BACKING);
        flushes.map_or(0, |flushes| flushes.riders_waiting())
    }

    /// True when no destage waits for a flush and no job for records that free its blocks.
    pub(super) fn is_batch_empty(&mut self) -> bool {
        let flushes = self.ledger.flushes_of(Cache::BACKING);
        flushes.is_none_or(|flushes| flushes.has_no_riders())
            && self.destages.batch.freeing.is_empty()
    }

    /// Asks for a flush of the backing when the destages that are written need one by now.
    pub(super) fn flush_batch_if_needed(&mut self) -> bool {
        let waiting = self.destages_awaiting_flush();
        let is_awaited = self.destages.is_full() || self.slots.is_awaited();
        if self.destages.batch.needs_flush(waiting, is_awaited)
            && let Some(flushes) = self.ledger.flushes_of(Cache::BACKING)
            && !flushes.is_wanted()
        {
            flushes.ask();
            return true;
        }
        false
    }

    /// A zeroing or a write around the cache is done below.
    pub(in crate::cache) fn write_around_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let replaces = job.entries.iter().any(|entry| self.is_mapped(*entry));
        let failure = self.ledger.failure();
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(failure);
        if job.error.is_some() {
            return self.below_done(id, ctx);
        }
        let answer = if !replaces {
            // Records that freed these blocks earlier must not be lost either.
            self.ledger.answer_when_written(id)
        } else if ctx.is_planted(PlantedBug::DirtyDroppedBeforeDestinationFlush) {
            self.destages.batch.freeing.push_back(id);
            When::Later
        } else {
            self.ledger.answer_when_flushed(Cache::BACKING, id, ctx)
        };
        if answer == When::Now {
            self.below_done(id, ctx);
        }
    }

    /// Frees the dirty blocks that are durable below, as far as there is room for records. True
    /// when a job has ended or went on.
    pub(super) fn free_below(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(&id) = self.destages.batch.freeing.front() {
            if !self.append_frees(id, ctx) {
                break;
            }
            self.destages.batch.freeing.pop_front();
            moved = true;
            if self.jobs.get(id).kind == JobKind::Destage {
                self.destage_done(id, ctx);
                self.advance_destages(ctx);
            } else if self.ledger.answer_when_written(id) == When::Now {
                self.below_done(id, ctx);
            }
        }
        let is_idle = self.destages.is_empty() && self.is_batch_empty();
        self.destages.batch.is_urgent &= !is_idle;
        moved
    }

    /// Appends the records that free the blocks of a job; false when there is no room for all.
    fn append_frees(&mut self, id: u32, ctx: &mut Context<'_>) -> bool {
        let trims = self.jobs.get(id).kind == JobKind::BackingWrite;
        let kind = if trims { codec::RECORD_DROP } else { codec::RECORD_FREE };
        let mut next = 0;
        loop {
            let mut payload = Vec::new();
            let entries = &self.jobs.get(id).entries;
            let mut slots = Vec::new();
            while next < entries.len() && slots.len() < codec::FREE_SLOTS_MAX {
                if self.is_mapped(entries[next]) {
                    slots.push(self.entries.slot(entries[next]));
                }
                next += 1;
            }
            if slots.is_empty() {
                return true;
            }
            if !self.ledger.has_room_to_finish(1) {
                return false;
            }
            if !trims && ctx.is_planted(PlantedBug::EvictionForgotten) {
                for slot in slots {
                    self.unmap_slot(slot, Lsn(0), trims, ctx);
                    self.table.forget_place(slot);
                }
                continue;
            }
            slots.iter().for_each(|slot| payload.extend_from_slice(&slot.to_le_bytes()));
            let place = self.ledger.record(kind, &payload, ctx);
            for slot in slots {
                self.unmap_slot(slot, place, trims, ctx);
            }
        }
    }

    fn unmap_slot(&mut self, slot: u32, place: Lsn, trims: bool, ctx: &mut Context<'_>) {
        let lba = self.table.unmap(slot, place);
        self.intent.remove_users(Extent::new(lba.0, 1));
        if trims && ctx.is_planted(PlantedBug::TrimReusedEarly) {
            self.table.forget_place(slot);
        }
    }

    /// True when the entry's slot is the newest durable or soon durable place of its block.
    pub(super) fn is_mapped(&self, entry: u32) -> bool {
        let lba = self.entries.get(entry).lba();
        self.table.owner(self.entries.slot(entry)) == Some(lba)
    }

    /// Flushes the ports for the host, the backing where it must be. Where the ledger has nothing to flush, the flush is passed
    /// on.
    pub(in crate::cache) fn flush_ports(&mut self, id: u32, ctx: &mut Context<'_>) {
        let ports = [Cache::FLASH, Cache::BACKING];
        let ports = &ports[..1 + usize::from(self.must_flush_below(id))];
        self.jobs.get_mut(id).outstanding = ports.len() as u32;
        for port in ports.iter().copied() {
            if self.ledger.answer_when_flushed(port, id, ctx) == When::Now {
                let nothing = (Extent::EMPTY, BufferSlice::EMPTY);
                self.issue(id, port, Operation::Flush, nothing, ctx);
            }
        }
    }

    /// One of the members is flushed.
    pub(super) fn flush_part_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get_mut(id);
        job.outstanding -= 1;
        if job.outstanding == 0 {
            self.below_done(id, ctx);
        }
    }
}
