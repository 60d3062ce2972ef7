//! With the least recently used block leave all cached blocks of its band, so that one rewrite of
//! the band below serves them all (LRU-band, the rival in PORE, MSST 2017). Where batches are
//! limited, no more than so many dirty blocks leave at once, the least recently used first.

use super::batch::check_batch;
use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::policy_state::{restore_order, save_order};
use super::settings_error::CacheSettingsError;
use super::zones::bands_for;
use crate::disk::Geometry;
use crate::map::BandTable;
use crate::map::{LruList, LruLists};
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Least recently used, by whole bands.
#[derive(Saved)]
pub(super) struct LruBand {
    #[saved(keep)]
    bands: Arc<BandTable>,
    /// Dirty blocks that leave together at most; no limit when absent.
    #[saved(keep)]
    batch: Option<u64>,
    list: LruList,
    /// Two lists for each band: its clean blocks, and behind them its dirty ones.
    members: LruLists,
    blocks: Vec<Block>,
}

/// A cached block.
#[derive(Clone, Copy, SavedValue)]
struct Block {
    band: u32,
    /// Its place in the band.
    offset: u32,
    is_dirty: bool,
}

impl Block {
    /// Its list.
    fn list(self) -> usize {
        list_of(self.band, self.is_dirty)
    }
}

/// The list of the clean or of the dirty blocks of a band.
fn list_of(band: u32, is_dirty: bool) -> usize {
    band as usize * 2 + usize::from(is_dirty)
}

impl LruBand {
    fn new(bands: Arc<BandTable>, batch: Option<u64>) -> LruBand {
        LruBand {
            batch,
            list: LruList::new(),
            members: LruLists::new(list_of(bands.bands(), false)),
            blocks: Vec::new(),
            bands,
        }
    }

    /// The policy over a device: `bands`, or those that the device has.
    ///
    /// # Errors
    /// When there are none, they do not cover the device, or a batch has no block.
    pub(super) fn build(
        bands: Option<&Arc<BandTable>>,
        batch: Option<u64>,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        check_batch("lru-band", batch.unwrap_or(1))?;
        let bands =
            bands_for("lru-band", bands, backing, "put it above a translation, or give it bands")?;
        Ok(Box::new(LruBand::new(bands, batch)))
    }

    fn add(&mut self, entry: u32, lba: Lba, is_dirty: bool) {
        let band = self.bands.band_of(lba);
        let block = Block {
            band: band.0,
            offset: lba.offset_from(self.bands.extent_of(band).start) as u32,
            is_dirty,
        };
        if entry as usize >= self.blocks.len() {
            self.blocks.resize(entry as usize + 1, block);
        }
        self.blocks[entry as usize] = block;
        self.members.push_newest(block.list(), entry);
        self.list.push_newest(entry);
    }
}

impl EvictionPolicy for LruBand {
    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, _: &mut PolicyEvents) {
        self.add(entry, lba, kind == AccessKind::Write);
    }

    fn on_access(&mut self, entry: u32, kind: AccessKind, _: &mut PolicyEvents) {
        self.list.touch(entry);
        let block = &mut self.blocks[entry as usize];
        if kind == AccessKind::Write && !block.is_dirty {
            self.members.remove(block.list(), entry);
            block.is_dirty = true;
            self.members.push_newest(block.list(), entry);
        } else if self.batch.is_some() {
            // Without a limit all of them leave, in whatever order they are.
            self.members.touch(block.list(), entry);
        }
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let Some(oldest) = self.list.oldest() else {
            return;
        };
        let from = victims.len();
        let band = self.blocks[oldest as usize].band;
        let batch = self.batch.unwrap_or(u64::MAX);
        let batch = usize::try_from(batch).unwrap_or(usize::MAX);
        let dirty = self.members.oldest_first(list_of(band, true)).take(batch);
        victims.extend(dirty);
        victims.extend(self.members.oldest_first(list_of(band, false)));
        victims[from..].sort_unstable_by_key(|entry| self.blocks[*entry as usize].offset);
    }

    fn on_remove(&mut self, entry: u32) {
        self.members.remove(self.blocks[entry as usize].list(), entry);
        self.list.remove(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        save_order(&self.list, numbers, state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        restore_order(cached, state, |entry, block| {
            self.add(entry, block.lba, block.dirty);
        })
    }
}
