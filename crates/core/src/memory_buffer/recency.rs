//! The order of the blocks by recency, and which of them are the last ones.

use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Stands for no entry.
const NONE: u32 = u32::MAX;

/// A doubly linked list over entry numbers, from the least to the most recently used, whose oldest
/// entries are the *window*. Every operation takes constant time, and none allocates once the highest
/// number was seen.
#[derive(Debug, SavedValue)]
pub(super) struct Recency {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
    /// The newest entry of the window.
    edge: u32,
    /// Entries in the window, and how many there are when the list is long enough.
    in_window: u32,
    window: u32,
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Link {
    older: u32,
    newer: u32,
    is_in_window: bool,
}

const UNLINKED: Link = Link { older: NONE, newer: NONE, is_in_window: false };

impl Recency {
    /// An empty list with a window of so many entries.
    pub fn new(window: u32) -> Recency {
        Recency { links: Vec::new(), oldest: NONE, newest: NONE, edge: NONE, in_window: 0, window }
    }

    /// True when an entry of the list is among the oldest.
    #[inline]
    pub fn is_in_window(&self, entry: u32) -> bool {
        self.links[entry as usize].is_in_window
    }

    /// The least recently used entry.
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The entry used next after `entry`.
    #[inline]
    pub fn next_newer(&self, entry: u32) -> Option<u32> {
        let newer = self.links[entry as usize].newer;
        (newer != NONE).then_some(newer)
    }

    /// Adds an entry as the most recently used one.
    pub fn push_newest(&mut self, entry: u32) {
        if entry as usize >= self.links.len() {
            self.links.resize(entry as usize + 1, UNLINKED);
        }
        let is_in_window = self.in_window < self.window;
        self.links[entry as usize] = Link { older: self.newest, newer: NONE, is_in_window };
        match self.newest {
            NONE => self.oldest = entry,
            newest => self.links[newest as usize].newer = entry,
        }
        self.newest = entry;
        if is_in_window {
            self.in_window += 1;
            self.edge = entry;
        }
    }

    /// Takes an entry out. Returns the one that comes into the window instead, if one does.
    pub fn remove(&mut self, entry: u32) -> Option<u32> {
        let link = self.links[entry as usize];
        match link.older {
            NONE => self.oldest = link.newer,
            older => self.links[older as usize].newer = link.newer,
        }
        match link.newer {
            NONE => self.newest = link.older,
            newer => self.links[newer as usize].older = link.older,
        }
        if !link.is_in_window {
            return None;
        }
        self.in_window -= 1;
        let after_edge = self.links[self.edge as usize].newer;
        if self.edge == entry {
            self.edge = link.older;
        }
        self.links[entry as usize].is_in_window = false;
        if after_edge == NONE {
            return None;
        }
        self.links[after_edge as usize].is_in_window = true;
        self.in_window += 1;
        self.edge = after_edge;
        Some(after_edge)
    }

    /// Every entry, the least recently used first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.oldest(), |entry| self.next_newer(*entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_window_is_always_the_oldest_entries() {
        for window in 1..6 {
            let mut list = Recency::new(window);
            let mut naive: Vec<u32> = Vec::new();
            let mut rng = Rng::new(u64::from(window), 3);
            for _ in 0..2000 {
                let entry = rng.below(9) as u32;
                match naive.iter().position(|it| *it == entry) {
                    None => naive.push(entry),
                    Some(at) => {
                        naive.remove(at);
                        list.remove(entry);
                        if rng.below(3) > 0 {
                            naive.push(entry);
                        }
                    }
                }
                if naive.last() == Some(&entry) {
                    list.push_newest(entry);
                }
                assert!(list.oldest_first().eq(naive.iter().copied()));
                for (at, entry) in naive.iter().enumerate() {
                    assert_eq!(list.is_in_window(*entry), at < window as usize);
                }
            }
        }
    }
}
