//! The log on the parity disk: what rows are about to have.
//!
//! A row whose parity changes is for a while neither what it was nor what it becomes. With all members there its
//! parity is the sum of what is found. With one missing it is not known what that had: so the new blocks of the row
//! and its new parity are in the log before the row changes.

use crate::extent::Extent;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// Whose an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum Owner {
    /// A write that is not noted yet.
    Coming,
    /// The write with this number.
    Write(u64),
    /// Nobody's any more.
    Nobody,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Entry {
    at: u64,
    /// Its blocks, and those that were left out before it.
    taken: u64,
    owner: Owner,
}

/// Where the entries of the log lie. They are used in turn.
#[derive(Debug, SavedValue)]
pub struct RedoLog {
    area: Extent,
    /// Where the next one begins, if it fits before the end.
    next: u64,
    free: u64,
    entries: VecDeque<Entry>,
}

impl RedoLog {
    /// An empty one in an area of the parity disk.
    pub fn new(area: Extent) -> RedoLog {
        RedoLog { area, next: 0, free: area.blocks.0, entries: VecDeque::new() }
    }

    /// Takes room for an entry: the block of the parity disk where it begins. None while there is no room.
    pub fn take(&mut self, blocks: u64) -> Option<u64> {
        if self.entries.is_empty() {
            (self.next, self.free) = (0, self.area.blocks.0);
        }
        let left = self.area.blocks.0 - self.next;
        let (at, taken) = match blocks <= left {
            true => (self.next, blocks),
            false => (0, left + blocks),
        };
        if taken > self.free {
            return None;
        }
        self.free -= taken;
        self.next = at + blocks;
        let at = self.area.start.0 + at;
        self.entries.push_back(Entry { at, taken, owner: Owner::Coming });
        Some(at)
    }

    /// The write of an entry has a number.
    pub fn number(&mut self, at: u64, number: u64) {
        self.set_owner(at, Owner::Write(number));
    }

    /// The write of an entry does not come.
    pub fn give_back(&mut self, at: u64) {
        self.set_owner(at, Owner::Nobody);
        self.settle(0);
    }

    fn set_owner(&mut self, at: u64, owner: Owner) {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| entry.at == at && entry.owner == Owner::Coming);
        entry.expect("an entry that was taken").owner = owner;
    }

    /// All writes with a smaller number are durable on the members: their entries are not needed any more.
    pub fn settle(&mut self, before: u64) {
        let is_over = |entry: &Entry| match entry.owner {
            Owner::Coming => false,
            Owner::Write(number) => number < before,
            Owner::Nobody => true,
        };
        for entry in &mut self.entries {
            if is_over(entry) {
                entry.owner = Owner::Nobody;
            }
        }
        while let Some(entry) = self.entries.front().filter(|entry| entry.owner == Owner::Nobody) {
            self.free += entry.taken;
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_used_in_turn_and_never_twice() {
        let mut log = RedoLog::new(Extent::new(100, 10));
        assert_eq!((log.take(4), log.take(4), log.take(3)), (Some(100), Some(104), None));
        log.number(100, 0);
        log.number(104, 1);
        // The first is over, and the two blocks behind the second are left out.
        log.settle(1);
        assert_eq!((log.take(5), log.take(4), log.take(1)), (None, Some(100), None));
        log.give_back(100);
        assert_eq!(log.take(1), None);
        log.settle(2);
        assert_eq!(log.take(10), Some(100));
    }
}
