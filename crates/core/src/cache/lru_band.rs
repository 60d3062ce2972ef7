//! With the least recently used block leave all cached blocks of its band, so that one rewrite of
//! the band below serves them all (LRU-band, the rival in PORE, MSST 2017).

use super::entries::NONE;
use super::lru_list::LruList;
use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::policy_state::{restore_order, save_order};
use super::settings_error::{CacheSettingsError, error};
use crate::disk::Geometry;
use crate::map::BandTable;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Least recently used, by whole bands.
pub(super) struct LruBand {
    bands: Arc<BandTable>,
    list: LruList,
    /// A cached block of each band, or [`NONE`].
    first: Vec<u32>,
    members: Vec<Member>,
}

/// A cached block in the list of its band.
#[derive(Clone, Copy)]
struct Member {
    band: u32,
    /// Its place in the band.
    offset: u32,
    previous: u32,
    next: u32,
}

impl LruBand {
    pub fn new(bands: Arc<BandTable>) -> LruBand {
        LruBand {
            list: LruList::new(),
            first: vec![NONE; bands.bands() as usize],
            members: Vec::new(),
            bands,
        }
    }

    fn add(&mut self, entry: u32, lba: Lba) {
        let band = self.bands.band_of(lba);
        let offset = lba.offset_from(self.bands.extent_of(band).start) as u32;
        let next = core::mem::replace(&mut self.first[band.0 as usize], entry);
        let member = Member {
            band: band.0,
            offset,
            previous: NONE,
            next,
        };
        if entry as usize >= self.members.len() {
            self.members.resize(entry as usize + 1, member);
        }
        self.members[entry as usize] = member;
        if next != NONE {
            self.members[next as usize].previous = entry;
        }
        self.list.push_newest(entry);
    }
}

impl LruBand {
    /// The policy over a device: `bands`, or those that the device has.
    ///
    /// # Errors
    /// When there are none, or they do not cover the device.
    pub(super) fn build(
        bands: Option<&Arc<BandTable>>,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        let Some(bands) = bands.or(backing.bands.as_ref()) else {
            return error(
                "the policy lru-band needs bands, and the device below has none: give a band table"
                    .into(),
            );
        };
        if bands.blocks() < backing.blocks {
            return error(format!(
                "the bands of the policy lru-band cover {} blocks, the device below has {}",
                bands.blocks().0,
                backing.blocks.0
            ));
        }
        Ok(Box::new(LruBand::new(Arc::clone(bands))))
    }
}

impl EvictionPolicy for LruBand {
    fn on_insert(&mut self, entry: u32, lba: Lba, _: AccessKind, _: &mut PolicyEvents) {
        self.add(entry, lba);
    }

    fn on_access(&mut self, entry: u32, _: AccessKind, _: &mut PolicyEvents) {
        self.list.touch(entry);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let Some(oldest) = self.list.oldest() else {
            return;
        };
        let from = victims.len();
        let mut entry = self.first[self.members[oldest as usize].band as usize];
        while entry != NONE {
            victims.push(entry);
            entry = self.members[entry as usize].next;
        }
        victims[from..].sort_unstable_by_key(|entry| self.members[*entry as usize].offset);
    }

    fn on_remove(&mut self, entry: u32) {
        let Member {
            band,
            previous,
            next,
            ..
        } = self.members[entry as usize];
        match previous {
            NONE => self.first[band as usize] = next,
            _ => self.members[previous as usize].next = next,
        }
        if next != NONE {
            self.members[next as usize].previous = previous;
        }
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
        restore_order(cached, state, |entry, block| self.add(entry, block.lba))
    }
}
