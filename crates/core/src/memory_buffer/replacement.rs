//! Which blocks leave when there is no room: the policies of Luo et al. (HWSR, TPDS 2016, 4.4).

use super::recency::Recency;
use super::segments::{Count, Rank, Segments};
use crate::saved::Saved;
use alloc::vec::Vec;

/// Who leaves first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferPolicy {
    /// The segment with most blocks in the window: least write amplification.
    Lwa(Scope),
    /// The segment with most blocks in memory.
    Most,
    /// The least recently used block alone.
    LruBlock,
    /// The segment whose most recently used block is the oldest.
    LruSegment,
}

crate::words! {
    /// Which blocks of the chosen segment leave.
    pub enum Scope {
        /// Those in the window.
        Window = "window",
        /// All.
        WholeBuffer = "whole-buffer",
    }
}

/// The blocks in memory by recency and by segment. Blocks are named by small numbers.
///
/// Using a block takes constant time with [`BufferPolicy::LruBlock`], and otherwise the logarithm of
/// the number of segments in memory: of two segments with equally many blocks the one with the oldest
/// block leaves, which no list by count can say at once.
#[derive(Debug, Saved)]
pub(super) struct Replacement {
    #[saved(keep)]
    policy: BufferPolicy,
    recency: Recency,
    /// None with [`BufferPolicy::LruBlock`], which knows no segments.
    #[saved(each)]
    segments: Option<Segments>,
    numbers: Vec<u64>,
    /// Counts the uses.
    now: u64,
}

impl Replacement {
    /// Of an empty memory of so many blocks, with a window of so many.
    pub fn new(policy: BufferPolicy, blocks: u32, window: u32) -> Replacement {
        let by: Option<fn(Count) -> Rank> = match policy {
            BufferPolicy::Lwa(_) => {
                Some(|count| Rank { blocks: count.in_window, age: u64::MAX - count.oldest_at })
            }
            BufferPolicy::Most => {
                Some(|count| Rank { blocks: count.entries, age: u64::MAX - count.oldest_at })
            }
            BufferPolicy::LruSegment => {
                Some(|count| Rank { blocks: 0, age: u64::MAX - count.newest_at })
            }
            BufferPolicy::LruBlock => None,
        };
        Replacement {
            policy,
            recency: Recency::new(window),
            segments: by.map(|by| Segments::new(blocks as usize, by)),
            numbers: Vec::with_capacity(blocks as usize),
            now: 0,
        }
    }

    /// A block of a segment has come, as the most recently used one.
    pub fn insert(&mut self, entry: u32, segment: u64) {
        if entry as usize >= self.numbers.len() {
            self.numbers.resize(entry as usize + 1, 0);
        }
        self.numbers[entry as usize] = segment;
        self.push_newest(entry);
    }

    /// A block was used.
    pub fn touch(&mut self, entry: u32) {
        self.remove(entry);
        self.push_newest(entry);
    }

    fn push_newest(&mut self, entry: u32) {
        self.now += 1;
        self.recency.push_newest(entry);
        if let Some(segments) = &mut self.segments {
            let is_in_window = self.recency.is_in_window(entry);
            segments.push_newest(entry, self.numbers[entry as usize], self.now, is_in_window);
        }
    }

    /// A block has left.
    pub fn remove(&mut self, entry: u32) {
        let was_in_window = self.recency.is_in_window(entry);
        let comes_in = self.recency.remove(entry);
        if let Some(segments) = &mut self.segments {
            segments.remove(entry, was_in_window);
            if let Some(other) = comes_in {
                segments.comes_into_window(other);
            }
        }
    }

    /// Who leaves now, all of one segment. Nobody when there is no block.
    pub fn victims(&self, out: &mut Vec<u32>) {
        match (&self.segments, self.policy) {
            (None, _) => out.extend(self.recency.oldest()),
            (Some(segments), BufferPolicy::Lwa(Scope::Window)) => {
                let inside = |entry: &u32| self.recency.is_in_window(*entry);
                out.extend(segments.first().take_while(inside));
            }
            (Some(segments), _) => out.extend(segments.first()),
        }
    }

    /// Every block, the least recently used first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        self.recency.oldest_first()
    }
}

#[cfg(test)]
#[path = "replacement_tests.rs"]
mod tests;
