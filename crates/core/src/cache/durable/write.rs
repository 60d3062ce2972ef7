//! Host writes of a durable cache: to fresh slots, then a record, then the answer.

use super::codec::{self, Mapping};
use super::{Cache, Durable};
use crate::cache::entries::{Flag, NONE};
use crate::cache::slots::SlotWaiter;
use crate::durability::{DataRef, Lsn};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::Operation;
use crate::planted::PlantedBug;
use alloc::vec::Vec;
use core::mem;

/// Blocks written to flash at once for one job.
const PORTION_BLOCKS_MAX: u64 = 1024;

/// Most blocks issued at once, so that their records fit what a small ring has free.
pub(super) fn portion_blocks(ring_blocks: u64) -> u64 {
    // 70 blocks need one journal block, whatever their slots.
    (70 * (ring_blocks / 8).max(1)).min(PORTION_BLOCKS_MAX)
}

/// Where a host write stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// It is none, or it has not come to the gate.
    #[default]
    Idle,
    /// Waits for its turn.
    Queued,
    /// A portion is on its way to flash.
    Issued,
    /// All its records are appended.
    Recorded,
}

/// What a host write keeps beside its job. It is written in portions, each as long as its regions
/// are marked and as there is room for its records.
#[derive(Debug, Default)]
pub(super) struct Work {
    stage: Stage,
    /// The slot that each entry goes to; [`NONE`] stands for the entry's own, which it waits for.
    fresh: Vec<u32>,
    /// First entry that has no record yet, and the first behind the portion on its way.
    next: usize,
    end: usize,
    /// The checksums of the portion.
    checksums: Vec<u32>,
    /// Journal blocks kept for the records of the portion.
    reserved: u64,
}

impl Cache {
    /// A host write is about to name another entry, and takes a slot for it: the entry's own, when
    /// it has just come in, or else a fresh one.
    ///
    /// Slots are taken here, in the order of admission, and not when the write is issued: so whoever
    /// waits for one waits only for what was decided earlier.
    pub(in crate::cache) fn take_write_slot(&mut self, id: u32, entry: u32, hit: bool) {
        let own = self.entries.get(entry).slot;
        let slot = if hit { self.slots.take() } else { Some(own) };
        let is_first = self.jobs.get(id).entries.is_empty();
        let work = self.durable().work(id);
        if is_first {
            work.fresh.clear();
            work.next = 0;
        }
        if let Some(slot) = slot {
            return work.fresh.push(slot);
        }
        assert!(is_first, "a run of blocks in which one waits for a slot");
        self.jobs.get_mut(id).blocked += 1;
        self.slots.wait(SlotWaiter::Job(id));
    }

    /// A host write gets the slot it has waited for.
    pub(in crate::cache) fn grant_slot(&mut self, id: u32, slot: u32, ctx: &mut Context<'_>) {
        self.durable().works[id as usize].fresh.push(slot);
        self.unblock(id, ctx);
    }

    /// Takes a host write that nothing else holds up to the gate.
    pub(in crate::cache) fn queue_write(&mut self, id: u32) {
        let job = self.jobs.get(id);
        let durable = self.durable.as_deref_mut().expect("a durable cache");
        let work = &mut durable.works[id as usize];
        assert_eq!(work.fresh.len(), job.entries.len(), "a slot for each block");
        for (slot, entry) in work.fresh.iter_mut().zip(&job.entries) {
            if *slot == NONE {
                *slot = self.entries.get(*entry).slot;
            }
            assert!(*slot != NONE, "a write without a slot");
        }
        work.stage = Stage::Queued;
        durable.intent.add_users(job.extent);
        durable.gate.push_back(id);
    }

    /// Issues what may be issued, in turn. True when something was.
    pub(super) fn admit_writes(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(&id) = self.durable().gate.front() {
            if !self.issue_portion(id, ctx) {
                break;
            }
            self.durable().gate.pop_front();
            moved = true;
        }
        moved
    }

    /// Issues the next portion of a host write; false when its regions are not marked yet or the
    /// journal is short of room.
    fn issue_portion(&mut self, id: u32, ctx: &mut Context<'_>) -> bool {
        let job = self.jobs.get(id);
        let (extent, buffer) = (job.extent, job.buffer);
        let durable = self.durable();
        let next = durable.works[id as usize].next;
        let length = (extent.blocks.0 - next as u64).min(durable.portion_blocks);
        let rest = Extent::new(extent.start.0 + next as u64, length);
        let length = durable.intent.ready_blocks(rest);
        let reserved = codec::journal_blocks_for(length);
        let needed = durable.reserved + reserved;
        let kept = durable.journal.reserve();
        if length == 0 || !durable.journal.has_room_for(needed, kept) {
            return false;
        }
        durable.reserved += reserved;
        let work = &mut durable.works[id as usize];
        work.stage = Stage::Issued;
        work.reserved = reserved;
        work.end = next + length as usize;
        work.checksums.clear();
        let data = buffer.part(next as u64, length);
        ctx.checksum(data, &mut work.checksums);
        let fresh = mem::take(&mut work.fresh);
        let portion = &fresh[next..next + length as usize];
        let mut issued = 0;
        let mut first = 0;
        while first < portion.len() {
            let run = run_of(&portion[first..], usize::MAX);
            let place = Extent::new(self.slot_base + u64::from(portion[first]), run as u64);
            let part = data.part(first as u64, run as u64);
            self.issue(id, Cache::FLASH, Operation::WRITE, (place, part), ctx);
            issued += 1;
            first += run;
        }
        self.durable().works[id as usize].fresh = fresh;
        self.jobs.get_mut(id).outstanding = issued;
        true
    }

    /// The operations of a portion have finished, or the write failed before it could begin.
    pub(in crate::cache) fn portion_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let failure = self.durable_failure();
        let error = self.jobs.get(id).error.or(failure);
        let durable = self.durable.as_deref_mut().expect("a durable cache");
        durable.reserved -= mem::take(&mut durable.works[id as usize].reserved);
        if let Some(error) = error {
            return self.fail_write(id, error, ctx);
        }
        self.record_portion(id, ctx);
        let entries = self.jobs.get(id).entries.len();
        let durable = self.durable();
        let work = &mut durable.works[id as usize];
        if work.next < entries {
            work.stage = Stage::Queued;
            durable.gate.push_front(id);
        } else {
            work.stage = Stage::Recorded;
            durable.after_written.push(durable.appended, id);
        }
    }

    /// Appends the records of a portion whose data is written, and lets its entries move to their
    /// new slots.
    fn record_portion(&mut self, id: u32, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let work = &mut durable.works[id as usize];
        let (fresh, checksums) = (mem::take(&mut work.fresh), mem::take(&mut work.checksums));
        let (next, end) = (work.next, work.end);
        work.next = end;
        durable.unflushed += (end - next) as u64;
        let entries = self.jobs.take_entries(id);
        let mut first = next;
        while first < end {
            let run = first..first + run_of(&fresh[first..end], codec::MAP_BLOCKS_MAX);
            let lba = self.entries.get(entries[first]).lba.0;
            let start = self.slot_base + u64::from(fresh[first]);
            let data = DataRef {
                extent: Extent::new(start, run.len() as u64),
                checksums: &checksums[run.start - next..run.end - next],
            };
            let durable = self.durable();
            let payload = lba.to_le_bytes();
            let place = durable
                .journal
                .append(codec::RECORD_MAP, &payload, Some(data), ctx);
            durable.appended = Lsn(place.0 + 1);
            for at in run.clone() {
                let mapping = Mapping {
                    lba: lba + (at - first) as u64,
                    slot: fresh[at],
                    checksum: checksums[at - next],
                };
                self.move_to_slot(entries[at], mapping, place, ctx);
            }
            first = run.end;
        }
        self.jobs.get_mut(id).entries = entries;
        let work = &mut self.durable().works[id as usize];
        (work.fresh, work.checksums) = (fresh, checksums);
    }

    /// An entry's data is in its new slot, and a record at `place` says so.
    fn move_to_slot(&mut self, entry: u32, mapping: Mapping, place: Lsn, ctx: &mut Context<'_>) {
        let durable = self.durable();
        if let Some(superseded) = durable.table.map(mapping, place) {
            // The block was among the users of its region already.
            durable.intent.remove_users(Extent::new(mapping.lba, 1));
            if ctx.is_planted(PlantedBug::OldLocationReusedEarly) {
                durable.table.forget_place(superseded);
            }
        }
        let entry = self.entries.get_mut(entry);
        entry.set(Flag::HoldsData);
        let old = mem::replace(&mut entry.slot, mapping.slot);
        if old != mapping.slot {
            self.give_back_slot(old, ctx);
        }
    }

    /// Ends a host write with an error: what has no record yet keeps its old slot and data.
    pub(super) fn fail_write(&mut self, id: u32, error: IoError, ctx: &mut Context<'_>) {
        let extent = self.jobs.get(id).extent;
        let durable = self.durable();
        let work = &mut durable.works[id as usize];
        let next = work.next;
        let queued = mem::replace(&mut work.stage, Stage::Idle) != Stage::Idle;
        let fresh = mem::take(&mut work.fresh);
        if queued {
            let rest = Extent::new(extent.start.0 + next as u64, extent.blocks.0 - next as u64);
            durable.intent.remove_users(rest);
        }
        for (at, slot) in fresh.iter().enumerate().skip(next) {
            let entry = self.jobs.get(id).entries[at];
            if *slot != NONE && self.entries.get(entry).slot != *slot {
                self.give_back_slot(*slot, ctx);
            }
        }
        self.durable().works[id as usize].fresh = fresh;
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(Some(error));
        self.flash_write_done(id, ctx);
    }

    /// A host write is durable as far as it must be.
    pub(super) fn end_write(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.durable().works[id as usize].stage = Stage::Idle;
        self.flash_write_done(id, ctx);
    }

    /// Nobody uses a slot any more: it goes to whoever waits for one, now or when the record that
    /// freed it is durable.
    pub(in crate::cache) fn give_back_slot(&mut self, slot: u32, ctx: &mut Context<'_>) {
        let durable = self.durable();
        let durable_before = durable.journal.durable_before();
        if durable.table.give_back(slot, durable_before) {
            self.hand_out(slot, ctx);
        }
    }

    /// Gives out the slots whose records have become durable.
    pub(super) fn empty_quarantine(&mut self, ctx: &mut Context<'_>) {
        let durable_before = self.durable().journal.durable_before();
        while let Some(slot) = self.durable().table.next_free(durable_before) {
            self.hand_out(slot, ctx);
        }
    }
}

impl Durable {
    /// Flushes the journal when nobody else does and somebody needs it: those who wait for a slot
    /// of the quarantine, or recovery, which must not have to read too much.
    pub(super) fn flush_if_needed(&mut self, slot_awaited: bool, ctx: &mut Context<'_>) -> bool {
        let slots = slot_awaited && self.table.quarantined() > 0;
        let data = self.unflushed >= self.settings.unflushed_blocks_max;
        let needed = (slots || data) && self.own_flush.is_none();
        if needed {
            self.own_flush = Some(self.flush_journal(ctx));
        }
        needed
    }
}

/// How many of the first slots adjoin, at most `max`.
fn run_of(slots: &[u32], max: usize) -> usize {
    let first = slots[0];
    let adjoins = |(at, slot): &(u32, &u32)| **slot == first + at;
    (0..)
        .zip(slots.iter().take(max))
        .take_while(adjoins)
        .count()
}
