//! How many of the cached blocks may be dirty.

use super::{AccessKind, RideSettings, Split};
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// An epoch, and the memory of blocks that have left, is this part of the capacity.
const EPOCH: u64 = 8;
/// The limit of dirty blocks moves by this part of the capacity, an epoch.
const STEP: u64 = 64;
/// The limit is at least this part of the capacity.
const LEAST: u64 = 16;
/// What a past epoch counts for in the next.
const DECAY: f64 = 0.8;

/// Look-ups in an epoch.
fn epoch_of(capacity_blocks: u64) -> u64 {
    (capacity_blocks / EPOCH).max(1)
}

/// What one kind of block, clean or dirty, is worth.
#[derive(SavedValue)]
struct Side {
    /// The blocks that left last.
    ghost: Ghost,
    /// Look-ups in this epoch that more room for this kind would have answered.
    hits: u64,
    /// What a block more is worth an epoch, in reads.
    gain: f64,
}

impl Side {
    fn new(remembered: u64) -> Side {
        Side { ghost: Ghost::new(remembered), hits: 0, gain: 0.0 }
    }

    fn end_epoch(&mut self, epoch: u64) {
        self.gain = DECAY * self.gain + self.hits as f64 / epoch as f64;
        self.hits = 0;
    }

    fn save(&self, state: &mut StateWriter) {
        state.put_u64(self.hits);
        state.put_u64(self.gain.to_bits());
        self.ghost.save(state);
    }

    fn restore(&mut self, state: &mut StateReader<'_>) -> Result<(), StateError> {
        self.hits = state.take_u64()?;
        self.gain = f64::from_bits(state.take_u64()?);
        let is_gain = self.gain.is_finite() && self.gain.is_sign_positive();
        if self.hits > COUNTED_MAX || !is_gain {
            return Err(StateError::new(OUT_OF_RANGE));
        }
        self.ghost.restore(state)
    }
}

/// Hits and windows of an epoch at most.
const COUNTED_MAX: u64 = u32::MAX as u64;
const OUT_OF_RANGE: &str = "what the saved cache has learnt is out of range";

/// The limit of dirty blocks, and what it is learnt from. A clean block more would have saved the
/// reads that the ghost hits count, a dirty block more some of the windows.
#[derive(SavedValue)]
pub(super) struct Share {
    rewrite_over_read: u64,
    pub capacity_blocks: u64,
    /// Clean blocks leave while no more blocks than this are dirty.
    pub dirty_allowed: u64,
    /// Windows opened in this epoch.
    windows: u64,
    /// The clock at the end of this epoch; never, where nothing is learnt.
    epoch_end: u64,
    clean: Side,
    dirty: Side,
}

impl Share {
    /// All blocks may be dirty.
    pub fn new(settings: &RideSettings, capacity_blocks: u64) -> Share {
        let remembered = capacity_blocks / EPOCH;
        let (clean, dirty) = match settings.split {
            Split::Fixed => (0, 0),
            Split::Adaptive => (remembered, 0),
            Split::TwoGhosts => (remembered, remembered),
        };
        Share {
            rewrite_over_read: settings.rewrite_over_read,
            capacity_blocks,
            dirty_allowed: capacity_blocks,
            windows: 0,
            epoch_end: match settings.split {
                Split::Fixed => u64::MAX,
                Split::Adaptive | Split::TwoGhosts => epoch_of(capacity_blocks),
            },
            clean: Side::new(clean),
            dirty: Side::new(dirty),
        }
    }

    /// Blocks that are remembered at most.
    pub fn remembered_blocks(&self) -> u64 {
        self.clean.ghost.blocks() + self.dirty.ghost.blocks()
    }

    /// A block comes in, because it is read or written.
    pub fn came_in(&mut self, lba: Lba, kind: AccessKind) {
        if kind == AccessKind::Read && self.clean.ghost.remembers(lba) {
            self.clean.hits += 1;
        } else if self.dirty.ghost.remembers(lba) {
            self.dirty.hits += 1;
        }
    }

    /// A clean block leaves.
    pub fn left_clean(&mut self, lba: Lba) {
        self.clean.ghost.remember(lba);
    }

    /// A dirty block leaves, and opens a window or not.
    pub fn left_dirty(&mut self, lba: Lba, opens: bool) {
        self.dirty.ghost.remember(lba);
        self.windows += u64::from(opens);
    }

    /// Moves the limit when an epoch ends with the access of this `clock`.
    #[inline]
    pub fn learn(&mut self, clock: u64, dirty_blocks: u64) {
        if clock == self.epoch_end {
            self.end_epoch(dirty_blocks);
        }
    }

    fn end_epoch(&mut self, dirty_blocks: u64) {
        let epoch = epoch_of(self.capacity_blocks);
        self.epoch_end += epoch;
        let rewrites = (self.windows * self.rewrite_over_read) as f64;
        self.windows = 0;
        self.clean.end_epoch(epoch);
        self.dirty.end_epoch(epoch);
        self.dirty.gain += rewrites / dirty_blocks.max(1) as f64;
        let step = (self.capacity_blocks / STEP).max(1);
        if self.clean.gain > self.dirty.gain {
            let lower = self.dirty_allowed.min(dirty_blocks).saturating_sub(step);
            self.dirty_allowed = lower.max((self.capacity_blocks / LEAST).max(1));
        } else if self.clean.gain < self.dirty.gain {
            self.dirty_allowed = (self.dirty_allowed + step).min(self.capacity_blocks);
        }
    }

    /// Writes everything down.
    pub fn save(&self, state: &mut StateWriter) {
        state.put_u64(self.dirty_allowed);
        state.put_u64(self.windows);
        self.clean.save(state);
        self.dirty.save(state);
    }

    /// Takes back what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// When a number cannot be.
    pub fn restore(&mut self, clock: u64, state: &mut StateReader<'_>) -> Result<(), StateError> {
        self.dirty_allowed = state.take_u64()?;
        self.windows = state.take_u64()?;
        if self.dirty_allowed > self.capacity_blocks || self.windows > COUNTED_MAX {
            return Err(StateError::new(OUT_OF_RANGE));
        }
        if self.epoch_end != u64::MAX {
            let epoch = epoch_of(self.capacity_blocks);
            self.epoch_end = (clock / epoch + 1).saturating_mul(epoch);
        }
        self.clean.restore(state)?;
        self.dirty.restore(state)
    }
}

/// The blocks of a kind that left last, by address. A ring of them, and for each hash value a chain
/// through the ring, the newest first.
#[derive(SavedValue)]
struct Ghost {
    ring: Vec<Remembered>,
    /// First of each chain: its place in the ring, or [`END`].
    chains: Vec<u32>,
    /// Blocks that have been remembered so far.
    count: u64,
}

#[derive(Clone, Copy, SavedValue)]
struct Remembered {
    lba: Lba,
    /// The next older one of the chain: its place in the ring, or [`END`].
    older: u32,
}

const END: u32 = u32::MAX;

impl Ghost {
    fn new(blocks: u64) -> Ghost {
        let nothing = Remembered { lba: Lba(0), older: END };
        Ghost {
            ring: vec![nothing; blocks as usize],
            chains: vec![END; blocks.next_power_of_two() as usize],
            count: 0,
        }
    }

    /// Blocks that it remembers at most.
    fn blocks(&self) -> u64 {
        self.ring.len() as u64
    }

    fn chain(&self, lba: Lba) -> usize {
        // Fibonacci hashing (Knuth, vol. 3, 6.4): the high bits of the product are well mixed.
        let product = lba.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> 32) as usize & (self.chains.len() - 1)
    }

    /// A block leaves.
    fn remember(&mut self, lba: Lba) {
        if self.ring.is_empty() {
            return;
        }
        let place = (self.count % self.blocks()) as u32;
        if self.count >= self.blocks() {
            self.forget(place);
        }
        let chain = self.chain(lba);
        let older = core::mem::replace(&mut self.chains[chain], place);
        self.ring[place as usize] = Remembered { lba, older };
        self.count += 1;
    }

    /// Takes the oldest out of its chain, of which it is the last.
    fn forget(&mut self, place: u32) {
        let chain = self.chain(self.ring[place as usize].lba);
        let mut at = self.chains[chain];
        if at == place {
            self.chains[chain] = END;
            return;
        }
        while self.ring[at as usize].older != place {
            at = self.ring[at as usize].older;
        }
        self.ring[at as usize].older = END;
    }

    /// Whether a block is among the last that left.
    fn remembers(&self, lba: Lba) -> bool {
        let mut at = self.chains[self.chain(lba)];
        while at != END {
            let remembered = self.ring[at as usize];
            if remembered.lba == lba {
                return true;
            }
            at = remembered.older;
        }
        false
    }

    fn save(&self, state: &mut StateWriter) {
        let known = self.count.min(self.blocks());
        state.put_u64(known);
        for number in self.count - known..self.count {
            let place = (number % self.blocks()) as usize;
            state.put_u64(self.ring[place].lba.0);
        }
    }

    fn restore(&mut self, state: &mut StateReader<'_>) -> Result<(), StateError> {
        let known = state.take_u64()?;
        if known > self.blocks() {
            return Err(StateError::new("the saved cache remembers more blocks than it may"));
        }
        for _ in 0..known {
            self.remember(Lba(state.take_u64()?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_blocks_that_left_are_remembered_and_no_older_one() {
        let mut ghost = Ghost::new(3);
        let blocks = [5, 1, 5, 9, 2, 5, 5, 1];
        for (left, lba) in blocks.into_iter().enumerate() {
            ghost.remember(Lba(lba));
            let last = &blocks[left.saturating_sub(2)..=left];
            for lba in 0..10 {
                assert_eq!(ghost.remembers(Lba(lba)), last.contains(&lba), "{lba} after {left}");
            }
        }
    }
}
