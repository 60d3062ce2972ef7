//! The pages of tables of checksums that are in memory.

use super::page::PageId;
use crate::map::{AddressMap, LruList, address_map};
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// A page in memory.
#[derive(Debug, SavedValue)]
struct Frame {
    id: PageId,
    /// Empty when the buffers of the engine hold no bytes, so that nothing can be compared.
    sums: Vec<u32>,
}

/// The pages that were used last. Finding one takes constant time, and nothing is allocated once as
/// many are there as there may be.
#[derive(Debug, SavedValue)]
pub(super) struct PageCache {
    frames: Vec<Frame>,
    /// Frames by the address of their page.
    by_address: AddressMap<u32>,
    /// The frames that hold a page.
    recency: LruList,
    /// The frames that hold none.
    free: Vec<u32>,
    pages_max: usize,
}

impl PageCache {
    /// An empty one with room for so many pages, and for one at least.
    pub fn new(pages_max: usize) -> PageCache {
        let pages_max = pages_max.max(1);
        PageCache {
            frames: Vec::new(),
            by_address: address_map(pages_max),
            recency: LruList::new(),
            free: Vec::new(),
            pages_max,
        }
    }

    /// The checksums of a page when it is in memory; it counts as used now.
    pub fn get(&mut self, id: PageId) -> Option<&mut Vec<u32>> {
        let frame = *self.by_address.get(&id.address)?;
        let found = &mut self.frames[frame as usize];
        if found.id != id {
            return None;
        }
        self.recency.touch(frame);
        Some(&mut found.sums)
    }

    /// Takes in a page, in the place of the one that was not used for longest where there is no room,
    /// and lets `fill` put its checksums there. False when `fill` says so: the page is not taken in.
    pub fn insert(&mut self, id: PageId, fill: impl FnOnce(&mut Vec<u32>) -> bool) -> bool {
        self.forget(id.address);
        let frame = self.free_frame();
        let found = &mut self.frames[frame as usize];
        found.id = id;
        found.sums.clear();
        if !fill(&mut found.sums) {
            self.free.push(frame);
            return false;
        }
        self.by_address.insert(id.address, frame);
        self.recency.push_newest(frame);
        true
    }

    /// Nothing is known of the page at an address any more.
    pub fn forget(&mut self, address: u64) {
        if let Some(frame) = self.by_address.remove(&address) {
            self.recency.remove(frame);
            self.free.push(frame);
        }
    }

    fn free_frame(&mut self) -> u32 {
        if let Some(frame) = self.free.pop() {
            return frame;
        }
        if self.frames.len() < self.pages_max {
            let id = PageId { address: 0, generation: 0 };
            let sums = Vec::new();
            self.frames.push(Frame { id, sums });
            return (self.frames.len() - 1) as u32;
        }
        let oldest = self.recency.oldest().expect("there are pages");
        self.forget(self.frames[oldest as usize].id.address);
        self.free.pop().expect("the frame of the oldest page")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(address: u64, generation: u64) -> PageId {
        PageId { address, generation }
    }

    fn insert(cache: &mut PageCache, id: PageId) {
        assert!(cache.insert(id, |sums| {
            sums.push(id.address as u32);
            true
        }));
    }

    #[test]
    fn the_page_that_was_not_used_for_longest_leaves() {
        let mut cache = PageCache::new(2);
        insert(&mut cache, id(10, 1));
        insert(&mut cache, id(20, 1));
        assert_eq!(cache.get(id(10, 1)), Some(&mut Vec::from([10])));
        insert(&mut cache, id(30, 1));
        assert!(cache.get(id(20, 1)).is_none() && cache.get(id(10, 1)).is_some());
        assert!(cache.get(id(10, 2)).is_none(), "another generation");
        // The new generation takes the place of the old one.
        insert(&mut cache, id(10, 2));
        assert!(cache.get(id(10, 1)).is_none() && cache.get(id(30, 1)).is_some());
        assert!(!cache.insert(id(40, 1), |_| false));
        assert!(cache.get(id(40, 1)).is_none());
        cache.forget(30);
        assert!(cache.get(id(30, 1)).is_none());
    }

    #[test]
    fn finding_a_page_goes_right_for_any_run_of_pages() {
        let mut rng = crate::rng::Rng::new(3, 9);
        let mut cache = PageCache::new(50);
        let mut used: Vec<u64> = Vec::new();
        for _ in 0..20_000 {
            let address = rng.below(80) * 3;
            let is_there = used.contains(&address);
            assert_eq!(cache.get(id(address, 0)).is_some(), is_there);
            if !is_there {
                insert(&mut cache, id(address, 0));
            }
            used.retain(|known| *known != address);
            used.push(address);
            if used.len() > 50 {
                used.remove(0);
            }
        }
    }
}
