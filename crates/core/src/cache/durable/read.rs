//! What is read from flash is compared with its checksum before anybody gets it.

use crate::cache::Cache;
use crate::cache::entries::{Flag, NONE};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::Operation;
use crate::planted::PlantedBug;

impl Cache {
    /// Notes the checksums of what was written to the slots of a job's entries; its buffer is in
    /// their order.
    pub(in crate::cache) fn note_checksums(&mut self, id: u32, ctx: &Context<'_>) {
        let job = self.jobs.get(id);
        let checksums = self.ledger.checksums_of(job.buffer, ctx);
        for (entry, checksum) in job.entries.iter().zip(checksums) {
            let slot = self.entries.slot(*entry);
            if slot != NONE {
                self.table.set_checksum(slot, *checksum);
            }
        }
    }

    /// A read of cached blocks for the host has finished. Clean blocks that could not be read or
    /// have changed are dropped and read below; dirty ones fail. Without checksums nobody knows
    /// better than the flash.
    pub(in crate::cache) fn check_flash_read(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let error = job.error;
        let repeated = job.ready;
        let stale = repeated && ctx.is_planted(PlantedBug::DeadSsdServedStale);
        let sound = error.is_none() && (stale || self.count_changed(id, repeated, ctx) == 0);
        if sound {
            return self.flash_read_done(id, ctx);
        }
        if repeated || !self.table.keeps_checksums() {
            let job = self.jobs.get_mut(id);
            job.error = job.error.or(Some(IoError::Medium));
            return self.flash_read_done(id, ctx);
        }
        self.read_again(id, ctx);
    }

    /// How many blocks of a job's buffer differ from the checksums of their slots: of all that
    /// hold data, or only of the dirty ones.
    pub(in crate::cache) fn count_changed(
        &mut self,
        id: u32,
        dirty_only: bool,
        ctx: &Context<'_>,
    ) -> usize {
        if ctx.is_planted(PlantedBug::ReadCrcSkipped) {
            return 0;
        }
        let job = self.jobs.get(id);
        let checksums = self.ledger.checksums_of(job.buffer, ctx);
        let changed = |(entry, found): &(&u32, &u32)| {
            let (entry, slot) = (self.entries.get(**entry), self.entries.slot(**entry));
            let dirty = self.table.owner(slot) == Some(entry.lba());
            entry.is(Flag::HoldsData)
                && (dirty || !dirty_only)
                && self.table.checksum(slot) != **found
        };
        job.entries.iter().zip(checksums).filter(changed).count()
    }

    /// Reads what a job could not read as it should, block by block: clean blocks below, dirty ones
    /// once more.
    fn read_again(&mut self, id: u32, ctx: &mut Context<'_>) {
        let failed = self.jobs.get_mut(id).error.take();
        self.jobs.get_mut(id).ready = true;
        let stale = ctx.is_planted(PlantedBug::DeadSsdServedStale);
        let buffer = self.jobs.get(id).buffer;
        let entries = self.jobs.take_entries(id);
        let mut issued = 0;
        for (at, entry) in entries.iter().enumerate() {
            let slot = self.entries.slot(*entry);
            let lba = self.entries.get(*entry).lba();
            let wanted = self.table.checksum(slot);
            let part = buffer.part(at as u64, 1);
            if failed.is_none() && self.ledger.checksums_of(part, ctx) == [wanted] {
                continue;
            }
            if self.is_mapped(*entry) && !stale {
                let place = self.slots.place(slot, 1);
                self.issue(id, Cache::FLASH, Operation::Read, (place, part), ctx);
            } else {
                if self.entries.get(*entry).is(Flag::Cached) && !self.is_mapped(*entry) {
                    self.remove_from_map(*entry);
                }
                let place = Extent::new(lba.0, 1);
                self.issue(id, Cache::BACKING, Operation::Read, (place, part), ctx);
            }
            issued += 1;
        }
        let job = self.jobs.get_mut(id);
        job.entries = entries;
        job.outstanding = issued;
        assert!(issued > 0, "a read that was sound was read again");
        self.set_gauges(ctx);
    }
}
