//! The blocks in memory, and which parts of each are valid.

use crate::buffer::BufferSlice;
use crate::map::{AddressMap, address_map};
use crate::saved::SavedValue;
use alloc::vec::Vec;
use core::ops::Range;

/// Stands for no entry and no task.
pub(super) const NONE: u32 = u32::MAX;

/// Which of the two bitmaps of a block.
///
/// Requests are decided when they arrive and their data moves later, so what a block has by decision
/// runs ahead of what it has in fact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Valid {
    /// When all that was decided so far has been done.
    Decided,
    /// Now.
    InFact,
}

/// Where an entry stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum State {
    /// It names no block.
    Unused,
    /// Requests find it.
    Resident,
    /// It is on its way down; requests do not find it.
    Leaving,
}

/// One version of a block in memory.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Entry {
    /// The number of the block: its address over the parts of a block.
    pub block: u64,
    /// Where its data is; empty while it waits for memory.
    pub slot: BufferSlice,
    /// Where it stands.
    pub state: State,
    /// The write that waits until it has memory.
    pub writer: u32,
}

/// The entries, and the block each is of.
#[derive(Debug, SavedValue)]
pub(super) struct Blocks {
    parts: u64,
    device_parts: u64,
    words: usize,
    entries: Vec<Entry>,
    bits: Vec<u64>,
    unused: Vec<u32>,
    by_block: AddressMap<u32>,
    residents: u32,
}

impl Blocks {
    /// No blocks yet. Blocks have so many parts, and the device that many in all.
    pub fn new(parts: u64, device_parts: u64, capacity: u32) -> Blocks {
        Blocks {
            parts,
            device_parts,
            words: (parts as usize).div_ceil(64),
            entries: Vec::with_capacity(2 * capacity as usize),
            bits: Vec::new(),
            unused: Vec::new(),
            by_block: address_map(capacity as usize),
            residents: 0,
        }
    }

    /// Parts of a block; the last one of the device may be shorter.
    #[inline]
    pub fn parts_of(&self, block: u64) -> u64 {
        self.parts.min(self.device_parts - block * self.parts)
    }

    /// Parts of the device.
    pub fn device_parts(&self) -> u64 {
        self.device_parts
    }

    /// Blocks that requests find.
    #[inline]
    pub fn residents(&self) -> u32 {
        self.residents
    }

    /// Bytes of the tables.
    pub fn table_bytes(&self) -> u64 {
        let entry = size_of::<Entry>() + size_of::<(u64, u32)>();
        (self.entries.len() * entry + self.bits.len() * 8) as u64
    }

    /// The entry of a block that requests find.
    #[inline]
    pub fn find(&self, block: u64) -> Option<u32> {
        self.by_block.get(&block).copied()
    }

    /// What is known of an entry.
    #[inline]
    pub fn entry(&mut self, entry: u32) -> &mut Entry {
        &mut self.entries[entry as usize]
    }

    /// A new entry of a block, without memory and without valid parts.
    pub fn add(&mut self, block: u64) -> u32 {
        let new = Entry { block, slot: BufferSlice::EMPTY, state: State::Leaving, writer: NONE };
        let entry = match self.unused.pop() {
            Some(entry) => {
                self.entries[entry as usize] = new;
                entry
            }
            None => {
                self.entries.push(new);
                self.bits.resize(self.bits.len() + 2 * self.words, 0);
                self.entries.len() as u32 - 1
            }
        };
        let at = entry as usize * 2 * self.words;
        self.bits[at..at + 2 * self.words].fill(0);
        self.link(entry);
        entry
    }

    /// Requests find the entry from now on.
    pub fn link(&mut self, entry: u32) {
        let it = &mut self.entries[entry as usize];
        assert_eq!(it.state, State::Leaving, "an entry that is not there yet");
        it.state = State::Resident;
        self.by_block.insert(it.block, entry);
        self.residents += 1;
    }

    /// Requests do not find the entry any more.
    pub fn unlink(&mut self, entry: u32) {
        let it = &mut self.entries[entry as usize];
        assert_eq!(it.state, State::Resident, "an entry that is there");
        it.state = State::Leaving;
        self.by_block.remove(&it.block);
        self.residents -= 1;
    }

    /// Nobody knows the entry any more. Returns its memory.
    pub fn free(&mut self, entry: u32) -> BufferSlice {
        if self.entries[entry as usize].state == State::Resident {
            self.unlink(entry);
        }
        let it = &mut self.entries[entry as usize];
        assert_eq!(it.state, State::Leaving, "an entry is freed twice");
        it.state = State::Unused;
        self.unused.push(entry);
        core::mem::take(&mut it.slot)
    }

    fn words_at(&self, entry: u32, which: Valid) -> usize {
        (entry as usize * 2 + usize::from(which == Valid::InFact)) * self.words
    }

    /// Makes parts valid, or invalid.
    pub fn set(&mut self, entry: u32, which: Valid, parts: Range<u64>, valid: bool) {
        let at = self.words_at(entry, which);
        for (word, mask) in masks(parts) {
            match valid {
                true => self.bits[at + word] |= mask,
                false => self.bits[at + word] &= !mask,
            }
        }
    }

    /// True when all of the parts are valid.
    pub fn has_all(&self, entry: u32, which: Valid, parts: Range<u64>) -> bool {
        let at = self.words_at(entry, which);
        masks(parts).into_iter().all(|(word, mask)| self.bits[at + word] & mask == mask)
    }

    /// True when every part of the block is valid.
    pub fn is_whole(&self, entry: u32, which: Valid) -> bool {
        let parts = self.parts_of(self.entries[entry as usize].block);
        self.has_all(entry, which, 0..parts)
    }

    /// True when no part is valid.
    pub fn is_empty(&self, entry: u32, which: Valid) -> bool {
        let at = self.words_at(entry, which);
        self.bits[at..at + self.words].iter().all(|word| *word == 0)
    }

    /// True when a part is valid.
    #[inline]
    pub fn has(&self, entry: u32, which: Valid, part: u64) -> bool {
        let at = self.words_at(entry, which);
        self.bits[at + (part / 64) as usize] & 1 << (part % 64) != 0
    }

    /// The next run of parts inside `parts` that are all valid, or all not.
    pub fn next_run(&self, entry: u32, parts: Range<u64>, valid: bool) -> Option<Range<u64>> {
        next_such(parts, |part| self.has(entry, Valid::InFact, part) == valid)
    }

    /// Takes over what another entry of the same block has in fact; this one had nothing.
    pub fn take_over(&mut self, from: u32, to: u32) {
        let slot = core::mem::take(&mut self.entries[from as usize].slot);
        self.entries[to as usize].slot = slot;
        let (source, target) =
            (self.words_at(from, Valid::InFact), self.words_at(to, Valid::InFact));
        let decided = self.words_at(to, Valid::Decided);
        for word in 0..self.words {
            let bits = self.bits[source + word];
            self.bits[target + word] = bits;
            self.bits[decided + word] |= bits;
        }
    }
}

/// The next run of parts inside `parts` that all are such.
pub(super) fn next_such(parts: Range<u64>, is_such: impl Fn(u64) -> bool) -> Option<Range<u64>> {
    let start = parts.clone().find(|part| is_such(*part))?;
    let end = (start..parts.end).find(|part| !is_such(*part));
    Some(start..end.unwrap_or(parts.end))
}

/// The words of a bitmap that hold these parts, each with its bits.
fn masks(parts: Range<u64>) -> impl IntoIterator<Item = (usize, u64)> {
    let words = parts.start / 64..parts.end.div_ceil(64);
    words.map(move |word| {
        let from = parts.start.saturating_sub(word * 64);
        let to = (parts.end - word * 64).min(64);
        let below = |bit: u64| match bit {
            64 => u64::MAX,
            bit => (1 << bit) - 1,
        };
        (word as usize, below(to) & !below(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_valid_by_range() {
        let mut blocks = Blocks::new(130, 1000, 4);
        let entry = blocks.add(1);
        blocks.set(entry, Valid::InFact, 60..129, true);
        assert!(blocks.has_all(entry, Valid::InFact, 60..129));
        assert!(!blocks.has_all(entry, Valid::InFact, 59..129));
        assert!(!blocks.is_whole(entry, Valid::InFact));
        blocks.set(entry, Valid::InFact, 64..65, false);
        assert_eq!(blocks.next_run(entry, 0..130, true), Some(60..64));
        assert_eq!(blocks.next_run(entry, 64..130, true), Some(65..129));
        assert_eq!(blocks.next_run(entry, 60..130, false), Some(64..65));
        assert!(blocks.is_empty(entry, Valid::Decided));
        assert_eq!(blocks.parts_of(7), 90);
    }
}
