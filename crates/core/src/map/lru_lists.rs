//! Several orders of entries by recency, linked through arrays.

use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Stands for no entry.
const NONE: u32 = u32::MAX;

/// Doubly linked lists over the same entry numbers, each from the least to the most recently used. An
/// entry is in one list at most. Every operation takes constant time, and none allocates once the
/// highest entry number was seen.
#[derive(Debug, SavedValue)]
pub(crate) struct LruLists {
    /// By list.
    ends: Vec<Ends>,
    /// By entry.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Ends {
    oldest: u32,
    newest: u32,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Link {
    older: u32,
    newer: u32,
}

impl LruLists {
    /// So many empty lists.
    pub fn new(lists: usize) -> LruLists {
        let empty = Ends { oldest: NONE, newest: NONE };
        LruLists { ends: vec![empty; lists], links: Vec::new() }
    }

    /// Adds an entry that is in no list as the most recently used of a list.
    pub fn push_newest(&mut self, list: usize, entry: u32) {
        let older = core::mem::replace(&mut self.ends[list].newest, entry);
        match older {
            NONE => self.ends[list].oldest = entry,
            _ => self.links[older as usize].newer = entry,
        }
        let link = Link { older, newer: NONE };
        if entry as usize >= self.links.len() {
            self.links.resize(entry as usize + 1, link);
        }
        self.links[entry as usize] = link;
    }

    /// Takes an entry out of the list in which it is.
    pub fn remove(&mut self, list: usize, entry: u32) {
        let Link { older, newer } = self.links[entry as usize];
        match older {
            NONE => self.ends[list].oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.ends[list].newest = older,
            _ => self.links[newer as usize].older = older,
        }
    }

    /// Makes an entry of a list its most recently used.
    pub fn touch(&mut self, list: usize, entry: u32) {
        if self.ends[list].newest != entry {
            self.remove(list, entry);
            self.push_newest(list, entry);
        }
    }

    /// The most recently used entry of a list.
    #[inline]
    pub fn newest(&self, list: usize) -> Option<u32> {
        Some(self.ends[list].newest).filter(|entry| *entry != NONE)
    }

    /// The entries of a list, the least recently used first.
    pub fn oldest_first(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        let some = |entry: u32| (entry != NONE).then_some(entry);
        core::iter::successors(some(self.ends[list].oldest), move |entry| {
            some(self.links[*entry as usize].newer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_has_an_order_of_its_own() {
        let mut lists = LruLists::new(2);
        for (list, entry) in [(0, 4), (1, 0), (0, 2), (0, 3)] {
            lists.push_newest(list, entry);
        }
        lists.touch(0, 4);
        lists.touch(1, 0);
        let order = |lists: &LruLists, list| lists.oldest_first(list).collect::<Vec<_>>();
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![2, 3, 4], vec![0]));
        assert_eq!([0, 1].map(|list| lists.newest(list)), [Some(4), Some(0)]);
        lists.remove(0, 3);
        lists.remove(1, 0);
        lists.push_newest(1, 3);
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![2, 4], vec![3]));
        lists.remove(0, 2);
        lists.remove(0, 4);
        assert_eq!((order(&lists, 0), lists.newest(0)), (vec![], None));
    }
}
