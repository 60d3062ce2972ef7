//! An order of entries by recency, linked through an array.

/// A doubly linked list over entry numbers, from the least to the most recently used. Eight bytes
/// an entry; every operation takes constant time and none allocates once the highest number was
/// seen.
#[derive(Debug, SavedValue)]
pub(crate) struct LruList {
    /// Entry `e` is at `e + 1`; position 0 closes the ring and stands for both ends.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Link {
    older: u32,
    newer: u32,
}

use crate::saved::SavedValue;
use alloc::vec::Vec;

const ENDS: u32 = 0;

impl LruList {
    /// An empty list.
    pub fn new() -> LruList {
        LruList { links: Vec::from([Link { older: ENDS, newer: ENDS }]) }
    }

    /// Adds an entry that is not in the list as the most recently used.
    #[inline]
    pub fn push_newest(&mut self, entry: u32) {
        let at = entry + 1;
        if at as usize >= self.links.len() {
            let unlinked = Link { older: ENDS, newer: ENDS };
            self.links.resize(at as usize + 1, unlinked);
        }
        let newest = self.links[0].older;
        self.links[at as usize] = Link { older: newest, newer: ENDS };
        self.links[newest as usize].newer = at;
        self.links[0].older = at;
    }

    /// Takes an entry out that is in the list.
    #[inline]
    pub fn remove(&mut self, entry: u32) {
        let Link { older, newer } = self.links[entry as usize + 1];
        self.links[older as usize].newer = newer;
        self.links[newer as usize].older = older;
    }

    /// Makes an entry of the list the most recently used.
    #[inline]
    pub fn touch(&mut self, entry: u32) {
        if self.links[0].older != entry + 1 {
            self.remove(entry);
            self.push_newest(entry);
        }
    }

    /// The least recently used entry.
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        self.links[0].newer.checked_sub(1)
    }

    /// The entry used next after `entry`.
    #[inline]
    pub fn next_newer(&self, entry: u32) -> Option<u32> {
        self.links[entry as usize + 1].newer.checked_sub(1)
    }

    /// Every entry, the least recently used first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.oldest(), |entry| self.next_newer(*entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_in_the_order_of_their_last_use() {
        let mut list = LruList::new();
        for entry in [4, 0, 2] {
            list.push_newest(entry);
        }
        list.touch(4);
        list.touch(4);
        assert_eq!(list.oldest_first().collect::<Vec<_>>(), [0, 2, 4]);
        list.remove(2);
        list.push_newest(1);
        assert_eq!(list.oldest_first().collect::<Vec<_>>(), [0, 4, 1]);
        [0, 4, 1].into_iter().for_each(|entry| list.remove(entry));
        assert_eq!(list.oldest(), None);
    }
}
