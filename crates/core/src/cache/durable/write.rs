//! Host writes to fresh slots: the data, then a record, then the answer.

use super::codec::{self, Mapping};
use crate::buffer::BufferSlice;
use crate::cache::Cache;
use crate::cache::entries::{Flag, NONE};
use crate::cache::jobs::JobKind;
use crate::cache::slots::{SlotWaiter, Wish};
use crate::durability::Lsn;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::{When, WrittenData};
use crate::operation::Operation;
use crate::planted::PlantedBug;
use crate::units::BlockCount;
use core::mem;

impl Cache {
    /// A host write is about to name another entry, and takes a slot for it: the entry's own, when
    /// it has just come in and there is no `wish`, or else a fresh one. Returns it, if there is one.
    ///
    /// Slots are taken here, in the order of admission, and not when the write is issued: so whoever
    /// waits for one waits only for what was decided earlier.
    pub(in crate::cache) fn take_write_slot(
        &mut self,
        id: u32,
        entry: u32,
        wish: Option<Wish>,
    ) -> Option<u32> {
        let slot = match wish {
            None => Some(self.entries.slot(entry)),
            Some(wish) => self.slots.take(wish),
        };
        let is_first = self.jobs.get(id).entries.is_empty();
        let write = self.host_writes.fresh(id);
        if is_first {
            write.begin();
        }
        if let Some(slot) = slot {
            write.slots.push(slot);
            return Some(slot).filter(|slot| *slot != NONE);
        }
        assert!(is_first, "a run of blocks in which one waits for a slot");
        self.jobs.get_mut(id).blocked += 1;
        self.slots.wait(SlotWaiter::Job(id));
        None
    }

    /// A host write gets the slot it has waited for.
    pub(in crate::cache) fn grant_slot(&mut self, id: u32, slot: u32, ctx: &mut Context<'_>) {
        self.host_writes.fresh(id).slots.push(slot);
        self.unblock(id, ctx);
    }

    /// Lets a host write that nothing else holds up wait for its turn.
    pub(in crate::cache) fn queue_write(&mut self, id: u32) {
        let job = self.jobs.get(id);
        let write = self.host_writes.fresh(id);
        assert_eq!(write.slots.len(), job.entries.len(), "a slot for each block");
        for (slot, entry) in write.slots.iter_mut().zip(&job.entries) {
            if *slot == NONE {
                *slot = self.entries.slot(*entry);
            }
        }
        write.ask_for_turn();
        self.intent.add_users(job.extent);
        self.host_writes.turns.push_back(id);
    }

    /// Issues what may be issued, in turn. True when something was.
    pub(super) fn issue_writes_in_turn(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(id) = self.host_writes.turns.pop_front() {
            if !self.issue_portion(id, ctx) {
                self.host_writes.turns.push_front(id);
                break;
            }
            moved = true;
        }
        moved
    }

    /// Issues the next portion of a host write; false when its regions are not marked yet or the
    /// journal is short of room.
    fn issue_portion(&mut self, id: u32, ctx: &mut Context<'_>) -> bool {
        let job = self.jobs.get(id);
        let (extent, buffer) = (job.extent, job.buffer);
        let portion_blocks = self.host_writes.portion_blocks;
        let write = self.host_writes.fresh(id);
        let next = write.next;
        let length = (extent.blocks.0 - next as u64).min(portion_blocks);
        let rest = Extent::new(extent.start.0 + next as u64, length);
        let length = self.intent.ready_blocks(rest);
        let reserved = codec::journal_blocks_for(length);
        if length == 0 || !self.ledger.reserve(reserved) {
            return false;
        }
        write.reserved = reserved;
        write.end = next + length as usize;
        let data = buffer.part(next as u64, length);
        let slots = mem::take(&mut write.slots);
        let is_mapped_first = ctx.is_planted(PlantedBug::MapBeforeData);
        let (carrier, data) = match is_mapped_first {
            true => self.copy_of(id, data, ctx),
            false => (id, data),
        };
        let portion = &slots[next..next + length as usize];
        let mut issued = 0;
        let mut first = 0;
        while first < portion.len() {
            let run = run_of(&portion[first..], usize::MAX);
            let place = self.slots.place(portion[first], run as u64);
            let part = data.part(first as u64, run as u64);
            self.issue(carrier, Cache::FLASH, Operation::WRITE, (place, part), ctx);
            issued += 1;
            first += run;
        }
        self.host_writes.fresh(id).slots = slots;
        self.jobs.get_mut(carrier).outstanding = issued;
        if is_mapped_first {
            self.portion_done(id, ctx);
        }
        true
    }

    /// The planted bug: data goes to flash in a job of its own, for which nobody waits.
    fn copy_of(&mut self, id: u32, data: BufferSlice, ctx: &mut Context<'_>) -> (u32, BufferSlice) {
        let cause = self.jobs.get(id).cause;
        let carrier = self.jobs.open(JobKind::Fill, NONE, Operation::WRITE, cause);
        let copy = ctx.allocate(BlockCount(u64::from(data.blocks)));
        ctx.copy(data, copy);
        self.jobs.get_mut(carrier).buffer = copy;
        (carrier, copy)
    }

    /// The operations of a portion have finished, or the write failed before it could begin.
    pub(in crate::cache) fn portion_done(&mut self, id: u32, ctx: &mut Context<'_>) {
        let error = self.jobs.get(id).error.or(self.ledger.failure());
        let reserved = mem::take(&mut self.host_writes.fresh(id).reserved);
        self.ledger.release_reserved(reserved);
        if let Some(error) = error {
            return self.fail_write(id, error, ctx);
        }
        self.record_portion(id, ctx);
        let entries = self.jobs.get(id).entries.len();
        if self.host_writes.fresh(id).next < entries {
            self.host_writes.turns.push_front(id);
        } else if self.ledger.answer_when_written(id) == When::Now {
            self.end_write(id, ctx);
        }
    }

    /// Appends the records of a portion whose data is written, and lets its entries move to their
    /// new slots.
    fn record_portion(&mut self, id: u32, ctx: &mut Context<'_>) {
        let buffer = self.jobs.get(id).buffer;
        let write = self.host_writes.fresh(id);
        let slots = mem::take(&mut write.slots);
        let (next, end) = (write.next, write.end);
        write.next = end;
        let entries = self.jobs.take_entries(id);
        let mut checksums = mem::take(&mut self.host_writes.checksums);
        let is_fetched = self.jobs.get(id).host == NONE;
        let mut first = next;
        while first < end {
            let mut blocks = run_of(&slots[first..end], codec::MAP_BLOCKS_MAX);
            if is_fetched {
                blocks = self.not_overtaken(&entries[first..first + blocks]);
                if blocks == 0 {
                    let data = buffer.part(first as u64, 1);
                    self.keep_unrecorded(entries[first], data, ctx);
                    first += 1;
                    continue;
                }
            }
            let run = first..first + blocks;
            let lba = self.entries.get(entries[first]).lba().0;
            let blocks = run.len() as u64;
            let data = WrittenData {
                place: self.slots.place(slots[first], blocks),
                buffer: buffer.part(first as u64, blocks),
            };
            let payload = lba.to_le_bytes();
            let (record, found) = self.ledger.record_write(codec::RECORD_MAP, &payload, data, ctx);
            checksums.clear();
            checksums.extend_from_slice(found);
            for (block, at) in run.clone().enumerate() {
                let mapping = Mapping {
                    lba: lba + block as u64,
                    slot: slots[at],
                    checksum: checksums[block],
                };
                self.move_to_slot(entries[at], mapping, record, ctx);
            }
            first = run.end;
        }
        self.jobs.get_mut(id).entries = entries;
        self.host_writes.checksums = checksums;
        self.host_writes.fresh(id).slots = slots;
    }

    /// How many of the first entries have no newer version that a record has mapped. What was fetched for a
    /// rewrite may be overtaken so: the host does not wait for it.
    fn not_overtaken(&self, entries: &[u32]) -> usize {
        let lba = |entry: &u32| self.entries.get(*entry).lba();
        entries.iter().take_while(|entry| !self.table.has_block(lba(entry))).count()
    }

    /// What was fetched of a block is in its slot, for the rewrite alone: the newer version is what a
    /// recovery must find.
    fn keep_unrecorded(&mut self, entry: u32, data: BufferSlice, ctx: &mut Context<'_>) {
        let checksum = self.ledger.checksums_of(data, ctx)[0];
        self.table.set_checksum(self.entries.slot(entry), checksum);
        let entry = self.entries.get_mut(entry);
        entry.set(Flag::HoldsData);
        self.intent.remove_users(Extent::new(entry.lba().0, 1));
    }

    /// An entry's data is in its new slot, and a record at `place` says so.
    fn move_to_slot(&mut self, entry: u32, mapping: Mapping, place: Lsn, ctx: &mut Context<'_>) {
        if let Some(superseded) = self.table.map(mapping, place) {
            // The block was among the users of its region already.
            self.intent.remove_users(Extent::new(mapping.lba, 1));
            if ctx.is_planted(PlantedBug::OldLocationReusedEarly) {
                self.table.forget_place(superseded);
            }
        }
        self.entries.get_mut(entry).set(Flag::HoldsData);
        let old = self.entries.replace_slot(entry, mapping.slot);
        if old != mapping.slot {
            self.give_back_slot(old, ctx);
        }
    }

    /// Ends a host write with an error: what has no record yet keeps its old slot and data.
    pub(super) fn fail_write(&mut self, id: u32, error: IoError, ctx: &mut Context<'_>) {
        let extent = self.jobs.get(id).extent;
        let write = self.host_writes.fresh(id);
        let next = write.next;
        let had_users = write.end();
        let slots = mem::take(&mut write.slots);
        if had_users {
            let rest = Extent::new(extent.start.0 + next as u64, extent.blocks.0 - next as u64);
            self.intent.remove_users(rest);
        }
        for (at, slot) in slots.iter().enumerate().skip(next) {
            let entry = self.jobs.get(id).entries[at];
            if *slot != NONE && self.entries.slot(entry) != *slot {
                self.give_back_slot(*slot, ctx);
            }
        }
        self.host_writes.fresh(id).slots = slots;
        let job = self.jobs.get_mut(id);
        job.error = job.error.or(Some(error));
        self.flash_write_done(id, ctx);
    }

    /// A host write is durable as far as it must be.
    pub(super) fn end_write(&mut self, id: u32, ctx: &mut Context<'_>) {
        self.host_writes.fresh(id).end();
        self.flash_write_done(id, ctx);
    }

    /// Nobody uses a slot any more: it goes to whoever waits for one, now or when the record that
    /// freed it is durable.
    #[inline]
    pub(in crate::cache) fn give_back_slot(&mut self, slot: u32, ctx: &mut Context<'_>) {
        if self.table.give_back(slot, self.ledger.durable_before()) {
            self.slots.free(slot);
        }
        self.grant_slots(ctx);
    }

    /// Gives out the slots whose records have become durable.
    pub(super) fn empty_quarantine(&mut self, ctx: &mut Context<'_>) {
        while let Some(slot) = self.table.next_free(self.ledger.durable_before()) {
            self.slots.free(slot);
        }
        // When all are free: those who wait find places that adjoin.
        self.grant_slots(ctx);
    }
}

/// How many of the first slots adjoin, at most `max`.
fn run_of(slots: &[u32], max: usize) -> usize {
    let first = slots[0];
    let adjoins = |(at, slot): &(u32, &u32)| **slot == first + at;
    (0..).zip(slots.iter().take(max)).take_while(adjoins).count()
}
