//! An order by recency within each zone, linked through arrays.

use super::entries::NONE;
use alloc::vec;
use alloc::vec::Vec;

/// A doubly linked list of entries for each zone, from the least to the most recently used. An
/// entry is in one list at most. Every operation takes constant time, and none allocates once the
/// highest entry number was seen.
pub(super) struct ZoneLists {
    /// By zone.
    ends: Vec<Ends>,
    /// By entry.
    links: Vec<Link>,
}

#[derive(Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
}

#[derive(Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

impl ZoneLists {
    /// An empty list for each of so many zones.
    pub fn new(zones: usize) -> ZoneLists {
        let empty = Ends { oldest: NONE, newest: NONE };
        ZoneLists { ends: vec![empty; zones], links: Vec::new() }
    }

    /// Adds an entry that is in no list as the most recently used of a zone.
    pub fn push_newest(&mut self, zone: usize, entry: u32) {
        let older = core::mem::replace(&mut self.ends[zone].newest, entry);
        match older {
            NONE => self.ends[zone].oldest = entry,
            _ => self.links[older as usize].newer = entry,
        }
        let link = Link { older, newer: NONE };
        if entry as usize >= self.links.len() {
            self.links.resize(entry as usize + 1, link);
        }
        self.links[entry as usize] = link;
    }

    /// Takes an entry out of the list of the zone, in which it is.
    pub fn remove(&mut self, zone: usize, entry: u32) {
        let Link { older, newer } = self.links[entry as usize];
        match older {
            NONE => self.ends[zone].oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.ends[zone].newest = older,
            _ => self.links[newer as usize].older = older,
        }
    }

    /// Makes an entry of the zone its most recently used.
    pub fn touch(&mut self, zone: usize, entry: u32) {
        if self.ends[zone].newest != entry {
            self.remove(zone, entry);
            self.push_newest(zone, entry);
        }
    }

    /// The entries of a zone, the least recently used first.
    pub fn oldest_first(&self, zone: usize) -> impl Iterator<Item = u32> + '_ {
        let some = |entry: u32| (entry != NONE).then_some(entry);
        core::iter::successors(some(self.ends[zone].oldest), move |entry| {
            some(self.links[*entry as usize].newer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_zone_has_an_order_of_its_own() {
        let mut lists = ZoneLists::new(2);
        for (zone, entry) in [(0, 4), (1, 0), (0, 2), (0, 3)] {
            lists.push_newest(zone, entry);
        }
        lists.touch(0, 4);
        lists.touch(1, 0);
        let order = |lists: &ZoneLists, zone| lists.oldest_first(zone).collect::<Vec<_>>();
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![2, 3, 4], vec![0]));
        lists.remove(0, 3);
        lists.remove(1, 0);
        lists.push_newest(1, 3);
        assert_eq!((order(&lists, 0), order(&lists, 1)), (vec![2, 4], vec![3]));
        lists.remove(0, 2);
        lists.remove(0, 4);
        assert_eq!(order(&lists, 0), []);
    }
}
