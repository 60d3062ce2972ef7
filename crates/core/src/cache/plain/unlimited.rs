//! No block ever leaves: what a cache could do at best if its size were no matter.

use crate::cache::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// Holds every block below, so that it is never asked for a victim.
#[derive(Saved)]
pub(super) struct Unlimited;

impl Unlimited {
    pub(super) fn new(_: u64) -> Unlimited {
        Unlimited
    }
}

impl EvictionPolicy for Unlimited {
    fn on_insert(&mut self, _: u32, _: Lba, _: AccessKind, _: &mut PolicyEvents) {}

    fn on_access(&mut self, _: u32, _: AccessKind, _: &mut PolicyEvents) {}

    fn victims(&mut self, _: &mut Vec<u32>, _: &mut PolicyEvents) {
        unreachable!("a cache as large as the device below is never too full")
    }

    fn on_remove(&mut self, _: u32) {}

    fn save(&self, _: &[u32], _: &mut StateWriter) {}

    fn restore(&mut self, _: &[CachedBlock], _: &mut StateReader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}
