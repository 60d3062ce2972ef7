//! How dirty blocks leave a durable cache: durable below first, then a record that frees them.

use super::{BackingTicket, Cache, codec};
use crate::buffer::BufferSlice;
use crate::cache::entries::Flag;
use crate::cache::jobs::{Event, JobKind};
use crate::durability::Lsn;
use crate::extent::Extent;
use crate::layer::Context;
use crate::planted::PlantedBug;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Journal blocks that are left for the checkpoint that makes room.
const KEPT_BLOCKS: u64 = 2;
/// Destages that wait together for a flush of the backing.
const BATCH_JOBS_MAX: usize = 32;

/// Work that has been written below and is on its way to be freed.
#[derive(Debug)]
pub(super) struct Batch {
    /// Destages that no flush of the backing covers yet.
    pub written: Vec<u32>,
    /// Blocks of them.
    blocks: u64,
    blocks_max: u64,
    /// Destages that the flush in flight covers.
    pub riding: Vec<u32>,
    /// Jobs whose blocks are durable below and need records.
    pub freeing: VecDeque<u32>,
    /// Somebody waits for a block to be gone, so no destage waits for company.
    pub urgent: bool,
}

impl Batch {
    pub fn new(blocks_max: u64) -> Batch {
        Batch {
            written: Vec::new(),
            blocks: 0,
            blocks_max,
            riding: Vec::new(),
            freeing: VecDeque::new(),
            urgent: false,
        }
    }

    /// True when nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.riding.is_empty() && self.freeing.is_empty()
    }
}

impl Cache {
    /// Notes that somebody waits for an event of an entry.
    #[inline]
    pub(in crate::cache) fn note_wait(&mut self, event: Event) {
        if let Some(durable) = &mut self.durable
            && !matches!(event, Event::Slotted | Event::Written)
        {
            durable.batch.urgent = true;
        }
    }

    /// A destage begins: true when it has to wait for a flush of the journal too, because a power
    /// cut could still take the copies in flash away.
    ///
    /// A write below that fails leaves its blocks old, new or unreadable. What was durable there is
    /// gone then, so what takes its place must be durable before.
    pub(in crate::cache) fn await_durable_copy(&mut self, id: u32, ctx: &mut Context<'_>) -> bool {
        let durable = self.durable.as_deref().expect("a durable cache");
        let durable_before = durable.journal.durable_before();
        let is_unsure = |entry: &u32| {
            let entry = self.entries.get(*entry);
            entry.is(Flag::HoldsData) && !durable.table.is_durable(entry.slot, durable_before)
        };
        let unsure = self.jobs.get(id).entries.iter().any(is_unsure);
        if unsure {
            let durable = self.durable();
            let ticket = durable.flush_journal(ctx);
            durable.after_flushed.push_back((ticket, id));
        }
        unsure
    }

    /// The copies in flash of a destage are durable, or never will be.
    pub(super) fn copy_durable(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get_mut(id);
        job.outstanding -= 1;
        if job.outstanding == 0 {
            self.job_done(id, ctx);
        }
    }

    /// A destage has been written below, where it is not durable yet.
    pub(in crate::cache) fn destage_written(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get_mut(id);
        let buffer = core::mem::replace(&mut job.buffer, BufferSlice::EMPTY);
        let blocks = job.extent.blocks.0;
        ctx.release(buffer);
        let batch = &mut self.durable().batch;
        if ctx.is_planted(PlantedBug::DirtyDroppedBeforeDestinationFlush) {
            batch.freeing.push_back(id);
        } else {
            batch.written.push(id);
            batch.blocks += blocks;
        }
    }

    /// Asks for a flush of the backing when the destages that are written need one by now.
    pub(super) fn flush_batch_if_needed(&mut self) -> bool {
        let many = self.destages.is_full();
        let awaited = self.slots.is_awaited();
        let durable = self.durable();
        let batch = &durable.batch;
        let needed = !batch.written.is_empty()
            && (batch.urgent
                || many
                || awaited
                || batch.blocks >= batch.blocks_max
                || batch.written.len() >= BATCH_JOBS_MAX);
        if needed && !durable.flushes.is_wanted() {
            durable.flushes.ask();
            return true;
        }
        false
    }

    /// A flush of the backing begins: it covers every destage that is written.
    pub(super) fn board_batch(&mut self) {
        let batch = &mut self.durable().batch;
        batch.riding.append(&mut batch.written);
        batch.blocks = 0;
    }

    /// A flush of the backing is done.
    pub(super) fn backing_flushed(&mut self, ctx: &mut Context<'_>) {
        let durable = self.durable();
        durable.flushes.complete();
        let batch = &mut durable.batch;
        batch.freeing.extend(batch.riding.drain(..));
        while let Some((ticket, id)) = self.durable().after_backing.front().copied() {
            if !self.durable().flushes.is_done(ticket) {
                break;
            }
            self.durable().after_backing.pop_front();
            match self.jobs.get(id).kind {
                JobKind::BackingWrite => self.durable().batch.freeing.push_back(id),
                _ => self.flush_part_done(id, ctx),
            }
        }
    }

    /// A zeroing or a write around the cache is done below.
    pub(in crate::cache) fn around_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let replaces = job.entries.iter().any(|entry| self.is_mapped(*entry));
        let failure = self.durable_failure();
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(failure);
        if job.error.is_some() {
            return self.below_done(id, ctx);
        }
        let durable = self.durable();
        if !replaces {
            // Records that freed these blocks earlier must not be lost either.
            durable.after_written.push(durable.appended, id);
        } else if ctx.is_planted(PlantedBug::DirtyDroppedBeforeDestinationFlush) {
            durable.batch.freeing.push_back(id);
        } else {
            let ticket = durable.flushes.ask();
            durable.after_backing.push_back((ticket, id));
        }
    }

    /// Frees the dirty blocks that are durable below, as far as there is room for records. True
    /// when a job has ended or went on.
    pub(super) fn free_below(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(&id) = self.durable().batch.freeing.front() {
            if !self.append_frees(id, ctx) {
                break;
            }
            self.durable().batch.freeing.pop_front();
            moved = true;
            if self.jobs.get(id).kind == JobKind::Destage {
                self.destage_done(id, ctx);
                self.pump_destages(ctx);
            } else {
                let durable = self.durable();
                durable.after_written.push(durable.appended, id);
            }
        }
        let destages = self.destages.is_empty();
        let batch = &mut self.durable().batch;
        batch.urgent &= !(destages && batch.is_empty());
        moved
    }

    /// Appends the records that free the blocks of a job; false when there is no room for all.
    fn append_frees(&mut self, id: u32, ctx: &mut Context<'_>) -> bool {
        let trims = self.jobs.get(id).kind == JobKind::BackingWrite;
        let kind = if trims {
            codec::RECORD_DROP
        } else {
            codec::RECORD_FREE
        };
        let mut next = 0;
        loop {
            let mut payload = Vec::new();
            let entries = &self.jobs.get(id).entries;
            let mut slots = Vec::new();
            while next < entries.len() && slots.len() < codec::FREE_SLOTS_MAX {
                if self.is_mapped(entries[next]) {
                    slots.push(self.entries.get(entries[next]).slot);
                }
                next += 1;
            }
            if slots.is_empty() {
                return true;
            }
            let durable = self.durable();
            if !durable
                .journal
                .has_room_for(durable.reserved + 1, KEPT_BLOCKS)
            {
                return false;
            }
            slots
                .iter()
                .for_each(|slot| payload.extend_from_slice(&slot.to_le_bytes()));
            let place = durable.journal.append(kind, &payload, None, ctx);
            durable.appended = Lsn(place.0 + 1);
            for slot in slots {
                self.unmap_slot(slot, place, trims, ctx);
            }
        }
    }

    fn unmap_slot(&mut self, slot: u32, place: Lsn, trims: bool, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let lba = durable.table.unmap(slot, place);
        durable.intent.remove_users(Extent::new(lba.0, 1));
        if trims && ctx.is_planted(PlantedBug::TrimReusedEarly) {
            durable.table.forget_place(slot);
        }
    }

    /// True when the entry's slot is the newest durable or soon durable place of its block.
    pub(super) fn is_mapped(&self, entry: u32) -> bool {
        let entry = self.entries.get(entry);
        let durable = self.durable.as_deref().expect("a durable cache");
        durable.table.owner(entry.slot) == Some(entry.lba)
    }

    /// Flushes both members for the host.
    pub(in crate::cache) fn start_durable_flush(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.jobs.get_mut(id).outstanding = 2;
        let durable = self.durable();
        let flash = durable.flush_journal(ctx);
        durable.after_flushed.push_back((flash, id));
        let backing: BackingTicket = durable.flushes.ask();
        durable.after_backing.push_back((backing, id));
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
