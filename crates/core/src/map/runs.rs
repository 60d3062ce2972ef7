//! Runs of blocks at adjoining positions, in the order of their addresses.

use crate::saved::SavedValue;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// First address, and first position, that a run cannot have (16 EiB).
pub(super) const ADDRESSES: u64 = 1 << ADDRESS_BITS;
/// Blocks of the longest run (64 GiB).
pub(super) const RUN_BLOCKS_MAX: u64 = (1 << (2 * LENGTH_SHARE)) - 1;

const ADDRESS_BITS: u32 = 52;
/// Bits of a length that share a word with an address or a position.
const LENGTH_SHARE: u32 = u64::BITS - ADDRESS_BITS;
const LENGTH_MASK: u64 = (1 << LENGTH_SHARE) - 1;

/// Runs that one leaf holds at most.
const LEAF_RUNS_MAX: usize = 64;
/// A leaf of fewer is joined with one beside it, when they have half of the most together.
const LEAF_RUNS_MIN: usize = 16;
/// A leaf has room for so many runs more than it holds, at most, when it grows.
const LEAF_STEP: usize = 8;

/// So many blocks from `start` on, at the positions from `position` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub start: u64,
    pub blocks: u64,
    pub position: u64,
}

/// A run in 16 bytes.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Packed {
    /// The address, and the upper half of the length below it.
    start: u64,
    /// The position, and the lower half of the length below it.
    position: u64,
}

impl Packed {
    #[inline]
    fn new(run: Run) -> Packed {
        let Run { start, blocks, position } = run;
        assert!(
            start < ADDRESSES && position < ADDRESSES && blocks <= RUN_BLOCKS_MAX,
            "a run behind the end of any device"
        );
        Packed {
            start: start << LENGTH_SHARE | blocks >> LENGTH_SHARE,
            position: position << LENGTH_SHARE | blocks & LENGTH_MASK,
        }
    }

    /// Gives the run another position.
    #[inline]
    pub fn set_position(&mut self, position: u64) {
        *self = Packed::new(Run { position, ..self.run() });
    }

    #[inline]
    fn start(self) -> u64 {
        self.start >> LENGTH_SHARE
    }

    /// The run.
    #[inline]
    pub fn run(self) -> Run {
        Run {
            start: self.start(),
            blocks: (self.start & LENGTH_MASK) << LENGTH_SHARE | self.position & LENGTH_MASK,
            position: self.position >> LENGTH_SHARE,
        }
    }
}

/// A sorted map from the first blocks of runs to their lengths and positions.
///
/// A sorted map of single runs has nodes that are two thirds full, of entries half as large again. Here it is one of
/// leaves, which have hardly more room than they need.
#[derive(Clone, Debug, Default, SavedValue)]
pub(super) struct Runs {
    /// The runs from an address on, up to that of the next leaf. The first one is there as soon as there was a run, and
    /// begins at 0; no other is empty.
    leaves: BTreeMap<u64, Vec<Packed>>,
    len: u64,
}

impl Runs {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The last run that begins before an address.
    #[inline]
    pub fn last_before(&self, end: u64) -> Option<Run> {
        // All of a leaf may lie behind the address, and then the leaf before it has the run.
        let mut leaves = self.leaves.range(..end).rev();
        leaves.find_map(|(_, leaf)| Some(leaf[last_index_before(leaf, end)?].run()))
    }

    /// The last run that begins before an address, to be given another position.
    #[inline]
    pub fn last_before_mut(&mut self, end: u64) -> Option<&mut Packed> {
        let mut leaves = self.leaves.range_mut(..end).rev();
        leaves.find_map(|(_, leaf)| {
            let at = last_index_before(leaf, end)?;
            Some(&mut leaf[at])
        })
    }

    /// Adds a run that begins where none does.
    pub fn insert(&mut self, run: Run) {
        let packed = Packed::new(run);
        self.len += 1;
        let Some((_, leaf)) = self.leaves.range_mut(..=run.start).next_back() else {
            self.leaves.insert(0, Vec::from([packed]));
            return;
        };
        let at = leaf.partition_point(|other| other.start() < run.start);
        if leaf.len() < LEAF_RUNS_MAX {
            return insert_into(leaf, at, packed);
        }
        if at == LEAF_RUNS_MAX {
            // Runs that come in the order of their addresses leave full leaves behind.
            self.leaves.insert(run.start, Vec::from([packed]));
            return;
        }
        let half = LEAF_RUNS_MAX / 2;
        let mut upper = leaf.split_off(half);
        leaf.shrink_to(half + LEAF_STEP);
        match at.checked_sub(half) {
            Some(at) if at > 0 => insert_into(&mut upper, at, packed),
            _ => insert_into(leaf, at, packed),
        }
        self.leaves.insert(upper[0].start(), upper);
    }

    /// Takes out the run that begins at an address.
    pub fn remove(&mut self, start: u64) {
        let found = self.leaves.range_mut(..=start).next_back();
        let (fence, leaf) = found.expect("the leaf of a run that is there");
        let fence = *fence;
        let at = leaf.partition_point(|other| other.start() < start);
        let removed = leaf.remove(at);
        assert_eq!(removed.start(), start, "no run begins there");
        self.len -= 1;
        let len = leaf.len();
        if leaf.capacity() > len + 3 * LEAF_STEP {
            leaf.shrink_to(len + LEAF_STEP);
        }
        if len == 0 && fence > 0 {
            self.leaves.remove(&fence);
        } else if len < LEAF_RUNS_MIN {
            let before = self.leaves.range(..fence).next_back().map(|(before, _)| *before);
            if !self.merge_with_next(fence)
                && let Some(before) = before
            {
                self.merge_with_next(before);
            }
        }
    }

    /// Makes one leaf of a leaf and the next, if they have few runs. True when it did.
    fn merge_with_next(&mut self, fence: u64) -> bool {
        let mut leaves = self.leaves.range_mut(fence..);
        let Some(((_, leaf), (next, others))) = leaves.next().zip(leaves.next()) else {
            return false;
        };
        if leaf.len() + others.len() > LEAF_RUNS_MAX / 2 {
            return false;
        }
        leaf.reserve_exact(others.len());
        leaf.append(others);
        let next = *next;
        self.leaves.remove(&next);
        true
    }

    /// The last run that begins at an address or before it, and all behind it.
    pub fn from(&self, at: u64) -> impl Iterator<Item = Run> + '_ {
        let fence = self.leaves.range(..=at).next_back().map_or(0, |(fence, _)| *fence);
        let mut rest = self.leaves.range(fence..);
        let leaf = rest.next().map_or(&[][..], |(_, leaf)| leaf);
        let behind = leaf.partition_point(|run| run.start() <= at);
        let first = match behind {
            0 => self.leaves.range(..fence).next_back().and_then(|(_, leaf)| leaf.last()),
            _ => None,
        };
        let leaf = first.into_iter().chain(&leaf[behind.saturating_sub(1)..]);
        leaf.chain(rest.flat_map(|(_, leaf)| leaf)).map(|packed| packed.run())
    }
}

/// The place in a leaf of the last run that begins before an address.
#[inline]
fn last_index_before(leaf: &[Packed], end: u64) -> Option<usize> {
    leaf.partition_point(|run| run.start() < end).checked_sub(1)
}

fn insert_into(leaf: &mut Vec<Packed>, at: usize, packed: Packed) {
    if leaf.len() == leaf.capacity() {
        leaf.reserve_exact(LEAF_STEP);
    }
    leaf.insert(at, packed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::{SavedReader, SavedWriter};
    use proptest::prelude::*;

    type Model = BTreeMap<u64, (u64, u64)>;

    fn check(runs: &Runs, model: &Model) {
        assert_eq!(runs.len(), model.len() as u64);
        let expected = |start: &u64| {
            let (blocks, position) = model[start];
            Run { start: *start, blocks, position }
        };
        assert!(runs.from(0).eq(model.keys().map(expected)));
        for (fence, leaf) in &runs.leaves {
            assert!(leaf.len() <= LEAF_RUNS_MAX && (*fence == 0 || !leaf.is_empty()));
            assert!(leaf.capacity() <= leaf.len().max(LEAF_RUNS_MIN) + 3 * LEAF_STEP);
        }
    }

    fn add(runs: &mut Runs, model: &mut Model, start: u64, blocks: u64) {
        let run = Run { start, blocks, position: start * 7 + blocks };
        if model.insert(start, (blocks, run.position)).is_some() {
            runs.remove(start);
        }
        runs.insert(run);
    }

    #[test]
    fn a_run_takes_16_bytes_and_reaches_to_the_ends() {
        assert_eq!(size_of::<Packed>(), 16);
        let (last, blocks) = (ADDRESSES - 1, RUN_BLOCKS_MAX);
        for (start, blocks, position) in [(last, 1, 0), (0, blocks, last), (last, blocks, last)] {
            let run = Run { start, blocks, position };
            assert_eq!(Packed::new(run).run(), run);
        }
    }

    #[test]
    #[should_panic(expected = "behind the end of any device")]
    fn a_run_that_has_no_room_is_refused() {
        Packed::new(Run { start: 0, blocks: 1, position: ADDRESSES });
    }

    #[test]
    fn runs_that_come_in_order_fill_their_leaves() {
        let (mut runs, mut model) = (Runs::default(), Model::new());
        (0..1000).for_each(|start| add(&mut runs, &mut model, start, 1));
        check(&runs, &model);
        assert_eq!(runs.leaves.len(), 1000_usize.div_ceil(LEAF_RUNS_MAX));
    }

    #[test]
    fn leaves_are_few_when_most_runs_have_gone() {
        let (mut runs, mut model) = (Runs::default(), Model::new());
        (0..6400).rev().for_each(|start| add(&mut runs, &mut model, start, 1));
        for start in (0..6400).filter(|start| start % 16 > 0) {
            runs.remove(start);
            model.remove(&start);
        }
        check(&runs, &model);
        assert!(runs.leaves.len() <= 2 * 400 / LEAF_RUNS_MIN, "{}", runs.leaves.len());
    }

    proptest! {
        /// Runs agree with a sorted map, and so do those of a saved state.
        #[test]
        fn agrees_with_a_sorted_map(
            steps in prop::collection::vec((0u8..8, 0u64..700, 1u64..5), 1..3000)
        ) {
            let (mut runs, mut model) = (Runs::default(), Model::new());
            for (at, (step, start, blocks)) in steps.into_iter().enumerate() {
                // There are times in which most runs go, and times in which most come.
                let is_added = (step < 6) == (at / 1000 != 1);
                match (is_added, model.contains_key(&start)) {
                    (true, _) => add(&mut runs, &mut model, start, blocks),
                    (false, true) => {
                        runs.remove(start);
                        model.remove(&start);
                    }
                    (false, false) => {}
                }
                let last = model.range(..start).next_back();
                prop_assert_eq!(runs.last_before(start).map(|run| run.start), last.map(|run| *run.0));
                let first = model.range(..=start).next_back().map_or(start, |run| *run.0);
                prop_assert!(runs.from(start).take(3).map(|run| run.start).eq(
                    model.range(first..).take(3).map(|run| *run.0)
                ));
                if let Some((_, position)) = model.get_mut(&start) {
                    *position = at as u64;
                    runs.last_before_mut(start + 1).expect("a run").set_position(*position);
                }
            }
            check(&runs, &model);
            let mut to = SavedWriter::default();
            runs.put_into(&mut to);
            let bytes = to.into_bytes();
            let taken = Runs::take_from(&mut SavedReader::new(&bytes)).expect("a state");
            prop_assert!(taken.len() == runs.len() && taken.from(0).eq(runs.from(0)));
        }
    }
}
