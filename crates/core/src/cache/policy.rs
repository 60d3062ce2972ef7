//! What chooses the blocks that leave a full cache.

use crate::counters::{Counter, Gauge};
use crate::error::BroughtFailure;
use crate::extent::Extent;
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// How a block was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum AccessKind {
    /// Its data was wanted.
    Read,
    /// It was given new data, and is dirty from then on.
    Write,
}

/// What a policy did beyond choosing victims, for the counters of the cache: each policy has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PolicyEvents {
    /// The counters of the policy, once it has counted something.
    counters: &'static [Counter],
    /// By counter: how much is to be added.
    amounts: [u32; PolicyEvents::COUNTERS_MAX],
    /// What the policy tells of its state, once it has told something.
    pub gauge: Option<(Gauge, u64)>,
}

impl PolicyEvents {
    /// Counters of a policy at most.
    pub const COUNTERS_MAX: usize = 8;

    /// Adds one to a counter of a policy that has these `counters`.
    pub fn count(&mut self, counters: &'static [Counter], index: usize) {
        self.counters = counters;
        self.amounts[index] += 1;
    }

    /// True when the policy has nothing to tell.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.gauge.is_none()
    }

    /// What was counted, by counter.
    pub fn counted(&self) -> impl Iterator<Item = (Counter, u64)> {
        self.counters.iter().copied().zip(self.amounts.map(u64::from))
    }

    /// What was counted by the counter.
    pub fn amount(&self, counter: Counter) -> u64 {
        self.counted().filter(|(known, _)| *known == counter).map(|(_, amount)| amount).sum()
    }
}

/// Chooses which blocks leave a full cache.
///
/// The cache names its blocks by small dense numbers, which it uses again after a removal. A
/// policy keeps its state in arrays over them, and knows the blocks between
/// [`on_insert`](Self::on_insert) and [`on_remove`](Self::on_remove).
pub trait EvictionPolicy: Saved {
    /// A block that was looked up and is not here is about to come in: said before the cache makes room
    /// for it, since who leaves may depend on it. A block that is put back is not announced.
    fn before_insert(&mut self, _lba: Lba) {}

    /// A block came in; a block that was written is dirty.
    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, events: &mut PolicyEvents);

    /// A block was found in the cache; a block that was written is dirty from now on.
    fn on_access(&mut self, entry: u32, kind: AccessKind, events: &mut PolicyEvents);

    /// A request writes blocks below that go around the cache. None of them is cached any more.
    fn on_write_around(&mut self, _extent: Extent, _events: &mut PolicyEvents) {}

    /// Appends the blocks that are to leave now, at least one, in the order of leaving. The cache
    /// removes each of them.
    fn victims(&mut self, victims: &mut Vec<u32>, events: &mut PolicyEvents);

    /// A block leaves.
    fn on_remove(&mut self, entry: u32);

    /// Why the policy cannot go on, if code that a program [brought](super::BroughtPolicy) has failed. The cache
    /// refuses every request from then on.
    fn failure(&self) -> Option<BroughtFailure> {
        None
    }

    /// Writes down what the policy must know again. `numbers` says, by entry, by which number to
    /// call a block there: they are dense, whatever entries are in use.
    fn save(&self, numbers: &[u32], state: &mut StateWriter);

    /// Takes back what [`save`](Self::save) wrote. The saved numbers are the entries from now on;
    /// `cached` holds the blocks by them.
    ///
    /// # Errors
    /// When the state is damaged.
    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError>;
}

/// A block of a saved cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedBlock {
    /// Its address.
    pub lba: Lba,
    /// True when it is newer than the copy below.
    pub dirty: bool,
}
