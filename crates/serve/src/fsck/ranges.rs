//! A set of block addresses, kept as runs.

use std::collections::BTreeMap;

/// Runs that neither overlap nor adjoin, by their first block, with their end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranges {
    runs: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds the blocks from `start` to `end`.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((from, to)) = self.last_up_to(end)
            && to >= start
        {
            self.runs.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.runs.insert(start, end);
    }

    /// Takes the blocks from `start` to `end` out.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        while let Some((from, to)) = self.last_up_to(end - 1)
            && to > start
        {
            self.runs.remove(&from);
            if from < start {
                self.runs.insert(from, start);
            }
            if to > end {
                self.runs.insert(end, to);
            }
        }
    }

    /// True when the block is in it.
    pub fn contains(&self, block: u64) -> bool {
        self.last_up_to(block).is_some_and(|(_, end)| block < end)
    }

    /// True when one of the blocks from `start` to `end` is in it.
    pub(super) fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.last_up_to(end - 1).is_some_and(|(_, to)| to > start)
    }

    /// The blocks from `start` to `end` that are not in it: first block and end of each run.
    pub(super) fn gaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let (mut gaps, mut at) = (Vec::new(), start);
        let before = self.last_up_to(start).map_or(start, |(from, _)| from);
        for (from, to) in self.runs.range(before..end.max(before)) {
            if at < *from {
                gaps.push((at, *from));
            }
            at = at.max(*to);
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }

    /// The runs in order: first block and end.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.runs.iter().map(|(start, end)| (*start, *end))
    }

    /// Blocks in all.
    pub fn blocks(&self) -> u64 {
        self.runs().map(|(start, end)| end - start).sum()
    }

    /// The last run that begins at or before a block.
    fn last_up_to(&self, block: u64) -> Option<(u64, u64)> {
        let run = self.runs.range(..=block).next_back();
        run.map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn runs_are_what_a_plain_set_would_hold() {
        let mut ranges = Ranges::default();
        let mut plain = BTreeSet::new();
        let mut state = 1u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let start = state >> 40 & 63;
            let end = start + (state >> 50 & 15);
            if state >> 60 & 1 == 0 {
                ranges.insert(start, end);
                plain.extend(start..end);
            } else {
                ranges.remove(start, end);
                (start..end).for_each(|block| {
                    plain.remove(&block);
                });
            }
            let found: BTreeSet<u64> = ranges.runs().flat_map(|(from, to)| from..to).collect();
            assert_eq!(found, plain);
            assert!((0..80).all(|block| ranges.contains(block) == plain.contains(&block)));
            let between = state >> 20 & 63;
            let gaps = ranges.gaps(start, start + between);
            let outside: Vec<u64> = gaps.iter().flat_map(|(from, to)| *from..*to).collect();
            let is_out = |block: &u64| !plain.contains(block);
            assert_eq!(outside, (start..start + between).filter(is_out).collect::<Vec<_>>());
            let has_some = outside.len() < between as usize;
            assert_eq!(ranges.overlaps(start, start + between), has_some);
            let runs: Vec<(u64, u64)> = ranges.runs().collect();
            assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "runs adjoin");
            assert_eq!(ranges.blocks(), plain.len() as u64);
        }
    }
}
