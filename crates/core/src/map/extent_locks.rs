//! First come, first served locks over block ranges.

use crate::extent::Extent;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Locks over extents, granted in the order of asking: a request waits for every earlier one that
/// shares a block with it, held or waiting, and for nothing else.
///
/// Kept as a list in the order of arrival. The list is as long as the queue is deep, which is
/// short enough that scanning it is faster than any tree.
#[derive(Debug, SavedValue)]
pub struct ExtentLocks<K> {
    entries: Vec<Entry<K>>,
}

#[derive(Debug, SavedValue)]
struct Entry<K> {
    key: K,
    extent: Extent,
    /// It goes together with others that are shared.
    is_shared: bool,
    /// Earlier entries that it waits for.
    blockers: u32,
}

impl<K> Entry<K> {
    /// True when two entries exclude one another.
    #[inline]
    fn excludes(&self, extent: Extent, is_shared: bool) -> bool {
        self.extent.overlaps(extent) && !(self.is_shared && is_shared)
    }
}

impl<K> Default for ExtentLocks<K> {
    fn default() -> ExtentLocks<K> {
        ExtentLocks { entries: Vec::new() }
    }
}

impl<K: Copy + PartialEq> ExtentLocks<K> {
    /// Asks for `extent` in the name of `key`. True when it is granted at once; otherwise
    /// [`unlock`](Self::unlock) will say when.
    #[inline]
    pub fn lock(&mut self, key: K, extent: Extent) -> bool {
        self.enter(key, extent, false)
    }

    /// As [`lock`](Self::lock), for one that goes together with others which are shared.
    #[inline]
    pub fn lock_shared(&mut self, key: K, extent: Extent) -> bool {
        self.enter(key, extent, true)
    }

    #[inline]
    fn enter(&mut self, key: K, extent: Extent, is_shared: bool) -> bool {
        let excluding = |entry: &&Entry<K>| entry.excludes(extent, is_shared);
        let blockers = self.entries.iter().filter(excluding).count() as u32;
        self.entries.push(Entry { key, extent, is_shared, blockers });
        blockers == 0
    }

    /// Gives up the lock of `key` and calls `granted` for each that was waiting for nothing else,
    /// in the order of asking. False when `key` held none.
    #[inline]
    pub fn unlock(&mut self, key: K, mut granted: impl FnMut(K)) -> bool {
        let Some(index) = self.entries.iter().position(|entry| entry.key == key) else {
            return false;
        };
        assert_eq!(self.entries[index].blockers, 0, "a lock was given up before it was granted");
        if index + 1 == self.entries.len() {
            // Nobody came later, who could wait for it.
            self.entries.pop();
            return true;
        }
        let entry = self.entries.remove(index);
        for waiting in &mut self.entries[index..] {
            if waiting.excludes(entry.extent, entry.is_shared) {
                waiting.blockers -= 1;
                if waiting.blockers == 0 {
                    granted(waiting.key);
                }
            }
        }
        true
    }

    /// True when some lock, held or waited for, shares a block with `extent`.
    #[inline]
    pub fn overlaps(&self, extent: Extent) -> bool {
        self.entries.iter().any(|entry| entry.extent.overlaps(extent))
    }

    /// True when nothing is held or waited for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_requests_are_granted_in_the_order_of_asking() {
        let mut locks = ExtentLocks::default();
        assert!(locks.lock('a', Extent::new(0, 4)));
        assert!(!locks.lock('b', Extent::new(3, 4)));
        assert!(!locks.lock('c', Extent::new(6, 2)), "waits for b, which waits for a");
        assert!(locks.lock('d', Extent::new(20, 1)));
        let mut granted = Vec::new();
        assert!(locks.unlock('a', |key| granted.push(key)));
        assert_eq!(granted, ['b']);
        assert!(locks.unlock('b', |key| granted.push(key)));
        assert_eq!(granted, ['b', 'c']);
        assert!(locks.unlock('d', |key| granted.push(key)));
        assert!(locks.unlock('c', |key| granted.push(key)));
        assert!(!locks.unlock('c', |key| granted.push(key)), "given up twice");
        assert_eq!(granted, ['b', 'c']);
        assert!(locks.is_empty());
    }

    #[test]
    fn shared_locks_go_together_and_wait_for_others() {
        let mut locks = ExtentLocks::default();
        assert!(locks.lock_shared('a', Extent::new(0, 4)));
        assert!(locks.lock_shared('b', Extent::new(2, 4)));
        assert!(!locks.lock('c', Extent::new(3, 1)));
        assert!(!locks.lock_shared('d', Extent::new(3, 1)), "waits for c");
        let mut granted = Vec::new();
        locks.unlock('b', |key| granted.push(key));
        assert_eq!(granted, []);
        locks.unlock('a', |key| granted.push(key));
        assert_eq!(granted, ['c']);
        locks.unlock('c', |key| granted.push(key));
        assert_eq!(granted, ['c', 'd']);
    }
}
