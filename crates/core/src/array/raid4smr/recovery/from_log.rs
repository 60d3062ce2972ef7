//! What the log on the parity disk says of rows that were perhaps being written.

use super::doubt::{Doubt, READS_MAX};
use crate::array::Rows;
use crate::array::raid4smr::contents::Contents;
use crate::array::raid4smr::records::{Logged, Said, Written, WrittenBlock};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::units::BlockCount;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// What the log has of a write.
#[derive(Debug)]
struct Entry {
    record: usize,
    /// Which blocks of the record it has, in their order.
    blocks: Vec<usize>,
    buffer: BufferSlice,
    /// It is what the record says, and so are those before it in its rows.
    is_whole: bool,
    /// It is not, and its write may have begun all the same: nothing else stood in its rows.
    may_have_begun: bool,
}

/// What a row gets.
#[derive(Debug, Default)]
struct Fix {
    parity: BufferSlice,
    /// What its slot has, and the checksum of that.
    slot: Option<(BufferSlice, u32)>,
    /// The last block for each home.
    homes: Vec<Doubt>,
    /// What is taken out of the parity, or into it: blocks that are not at home, and what is there instead.
    changes: Vec<BufferSlice>,
}

/// Where a block is, as the log says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The log has nothing of its row: there was nothing else in it.
    NotInLog,
    /// It was not written, or something else was since.
    Nowhere,
    /// In its slot.
    InSlot,
    /// In the parity, and at home if the home says so.
    AtHome,
}

/// The entries of the log that are needed.
#[derive(Debug)]
pub struct FromLog {
    log: Extent,
    entries: Vec<Entry>,
    asked: usize,
    /// What rows get that were not given it yet.
    fixes: BTreeMap<u64, Fix>,
    /// The parity of those that were.
    parity: Vec<BufferSlice>,
}

impl FromLog {
    /// The entries of records in doubt, in such a log.
    pub fn new(log: Extent, said: &[Said], doubts: &[Doubt]) -> FromLog {
        let mut entries: Vec<Entry> = Vec::new();
        for doubt in doubts {
            let (record, at) = doubt.of;
            if logged_of(said, record).is_none_or(|logged| !logged.has(doubt.row)) {
                continue;
            }
            if entries.last().is_none_or(|last| last.record != record) {
                entries.push(Entry {
                    record,
                    blocks: Vec::new(),
                    buffer: BufferSlice::EMPTY,
                    is_whole: false,
                    may_have_begun: false,
                });
            }
            entries.last_mut().expect("an entry").blocks.push(at);
        }
        FromLog { log, entries, asked: 0, fixes: BTreeMap::new(), parity: Vec::new() }
    }

    /// Reads more of the log. Returns how many operations have begun.
    pub fn read_more(
        &mut self,
        word: u64,
        (in_flight, said): (u32, &[Said]),
        parity: usize,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let mut issued = 0;
        while ((in_flight + issued) as usize) < READS_MAX && self.asked < self.entries.len() {
            let entry = &mut self.entries[self.asked];
            let logged = logged_of(said, entry.record).expect("an entry");
            let blocks = entry.blocks.len() + logged.parity_sums.len();
            if logged.at + blocks as u64 > self.log.end().0 {
                // It is not what it says.
                self.asked += 1;
                continue;
            }
            entry.buffer = ctx.allocate(BlockCount(blocks as u64));
            let place = (Extent::new(logged.at, blocks as u64), entry.buffer);
            let operation = (Operation::Read, Cause::Metadata);
            rows.issue_at(word | self.asked as u64, parity, operation, place, ctx);
            self.asked += 1;
            issued += 1;
        }
        issued
    }

    /// An entry was read, or could not be.
    pub fn entry_read(
        &mut self,
        at: usize,
        result: Result<(), IoError>,
        said: &[Said],
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.entries[at];
        let mut found = Vec::new();
        if result.is_ok() {
            ctx.checksum(entry.buffer, &mut found);
        }
        let written = written_of(said, entry.record).expect("an entry");
        let parity = written.logged.iter().flat_map(|logged| &logged.parity_sums);
        let data = entry.blocks.iter().map(|at| &written.blocks[*at].sum);
        entry.is_whole = found.iter().eq(data.chain(parity));
    }

    /// Every entry was read: the last one of a row says what that gets. `has_waited` says of each record whether its
    /// write has waited until its entry was durable.
    pub fn sort_out(&mut self, said: &[Said], doubts: &[Doubt], has_waited: &[bool]) {
        self.leave_out_unbegun(said, has_waited);
        for doubt in doubts {
            let Some((entry, in_entry)) = self.find(said, doubt) else { continue };
            if !entry.is_whole {
                continue;
            }
            let logged = logged_of(said, entry.record).expect("an entry");
            let index = logged.index_of(doubt.row).expect("a row of the entry");
            let parity = entry.buffer.part((entry.blocks.len() + index) as u64, 1);
            let data = entry.buffer.part(in_entry as u64, 1);
            let block = block_of(said, doubt);
            let fix = self.fixes.entry(doubt.row).or_default();
            fix.parity = parity;
            if block.slot.is_some() {
                fix.slot = Some((data, block.sum));
            } else {
                fix.homes.retain(|other| other.column != doubt.column);
                fix.homes.push(*doubt);
            }
        }
    }

    /// A write that changes what stands waits until its entry is durable, and with it all entries before it. So behind
    /// an entry that is not whole no other one of its rows has come to anything.
    fn leave_out_unbegun(&mut self, said: &[Said], has_waited: &[bool]) {
        let mut unbegun: BTreeSet<u64> = BTreeSet::new();
        for entry in &mut self.entries {
            let rows = logged_of(said, entry.record).expect("an entry").all_rows();
            let is_behind = rows.clone().any(|row| unbegun.contains(&row));
            if is_behind || !entry.is_whole {
                entry.is_whole = false;
                entry.may_have_begun = !is_behind && !has_waited[entry.record];
                unbegun.extend(rows);
            }
        }
    }

    /// The entry with a block, and which of its blocks that is.
    fn find(&self, said: &[Said], doubt: &Doubt) -> Option<(&Entry, usize)> {
        let (record, at) = doubt.of;
        logged_of(said, record).filter(|logged| logged.has(doubt.row))?;
        let entry = self.entries.binary_search_by_key(&record, |entry| entry.record).ok()?;
        let entry = &self.entries[entry];
        let in_entry = entry.blocks.iter().position(|block| *block == at)?;
        Some((entry, in_entry))
    }

    /// Where a block is.
    pub fn verdict(&self, said: &[Said], doubt: &Doubt) -> Verdict {
        let block = block_of(said, doubt);
        match self.find(said, doubt) {
            None => Verdict::NotInLog,
            Some((entry, _)) if entry.may_have_begun => Verdict::NotInLog,
            Some((entry, _)) if !entry.is_whole => Verdict::Nowhere,
            Some(_) if block.slot.is_none() => Verdict::AtHome,
            Some(_) => {
                let slot = self.fixes.get(&doubt.row).and_then(|fix| fix.slot);
                match slot.is_some_and(|(_, sum)| sum == block.sum) {
                    true => Verdict::InSlot,
                    false => Verdict::Nowhere,
                }
            }
        }
    }

    /// Of each home and each row the last block.
    pub fn last_at_home(&self) -> Vec<Doubt> {
        self.fixes.values().flat_map(|fix| &fix.homes).copied().collect()
    }

    /// A block is not at home. What was there before is, where it had anything that counts.
    pub fn take_out(&mut self, said: &[Said], doubt: &Doubt, before: Option<BufferSlice>) {
        let found = self.find(said, doubt);
        let data = found.map(|(entry, in_entry)| entry.buffer.part(in_entry as u64, 1));
        if let Some(fix) = self.fixes.get_mut(&doubt.row) {
            fix.changes.extend(data.into_iter().chain(before));
        }
    }

    /// In some rows the homes have nothing.
    pub fn leave_out_homes(&mut self, rows: Extent) {
        for (_, fix) in self.fixes.range_mut(rows.start.0..rows.end().0) {
            if let Some((slot, _)) = fix.slot {
                (fix.parity, fix.changes) = (slot, Vec::new());
            }
        }
    }

    /// True of a row that gets what the log says.
    pub fn has(&self, row: u64) -> bool {
        self.fixes.contains_key(&row)
    }

    /// Writes more of the rows. Returns how many operations have begun.
    pub fn write_more(
        &mut self,
        word: u64,
        in_flight: u32,
        contents: &Contents,
        rows: &mut Rows,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let mut issued = 0;
        while ((in_flight + issued) as usize) < READS_MAX
            && let Some((row, fix)) = self.fixes.pop_first()
        {
            let parity = ctx.allocate(BlockCount(1));
            ctx.copy(fix.parity, parity);
            fix.changes.iter().for_each(|data| ctx.xor(*data, parity));
            self.parity.push(parity);
            let slot = fix.slot.map(|(data, _)| (contents.data(), data));
            for (column, data) in [(contents.parity(), parity)].into_iter().chain(slot) {
                if rows.members.with_row(row).has(column) {
                    let operation = (Operation::WRITE, Cause::Parity);
                    let at = Extent::new(row, 1);
                    issued += rows.issue(word, column, operation, at, data, contents, ctx);
                }
            }
        }
        issued
    }

    /// Gives its memory back.
    pub fn release(&mut self, ctx: &mut Context<'_>) {
        self.parity.drain(..).for_each(|buffer| ctx.release(buffer));
        for entry in &mut self.entries {
            if entry.buffer.blocks > 0 {
                ctx.release(core::mem::take(&mut entry.buffer));
            }
        }
    }
}

fn written_of(said: &[Said], record: usize) -> Option<&Written> {
    match &said[record] {
        Said::Write(written) => Some(written),
        _ => None,
    }
}

fn logged_of(said: &[Said], record: usize) -> Option<&Logged> {
    written_of(said, record)?.logged.as_ref()
}

fn block_of<'a>(said: &'a [Said], doubt: &Doubt) -> &'a WrittenBlock {
    let (record, at) = doubt.of;
    &written_of(said, record).expect("a write").blocks[at]
}
