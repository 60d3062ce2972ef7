//! What a persistent cache remembers over a clean shutdown.

use super::persistent_cache::PersistentCache;
use super::rewrite::Salvage;
use crate::extent::Extent;
use crate::map::{BandId, ExtentSet, Piece};
use crate::state::{StateError, StateReader, StateWriter};
use alloc::format;
use alloc::vec::Vec;

/// Changes whenever the words below do.
const STATE_VERSION: u64 = 1;

impl PersistentCache {
    pub(super) fn save_state(&self, state: &mut StateWriter) {
        state.put_u64(STATE_VERSION);
        for word in self.identity() {
            state.put_u64(word);
        }
        state.put_u64(self.notes);
        state.put_u64(self.log.head());
        let runs: Vec<Extent> = self.log.runs().collect();
        put_extents(state, &runs);
        let whole = Extent::new(0, self.bands.blocks().0);
        let mut entries: Vec<Piece> = self.log.map().pieces(whole).collect();
        entries.sort_unstable_by_key(|piece| piece.position);
        state.put_u64(entries.len() as u64);
        for entry in entries {
            state.put_u64(entry.extent.start.0);
            state.put_u64(entry.extent.blocks.0);
            state.put_u64(entry.position);
        }
        put_extents(state, &self.zeroed.ranges().collect::<Vec<_>>());
        put_extents(state, &self.lost.ranges().collect::<Vec<_>>());
        state.put_u64(u64::from(self.salvage.is_some()));
        if let Some(salvage) = self.salvage {
            state.put_u64(u64::from(salvage.band.0));
            state.put_u64(salvage.from);
            state.put_u64(salvage.blocks);
        }
        state.put_u64(self.write_pointers.len() as u64);
        for pointer in &self.write_pointers {
            state.put_u64(u64::from(*pointer));
        }
    }

    pub(super) fn restore_state(&mut self, state: &mut StateReader<'_>) -> Result<(), StateError> {
        let version = state.take_u64()?;
        if version != STATE_VERSION {
            return Err(StateError::new(format!(
                "the persistent cache's state has version {version}, expected {STATE_VERSION}"
            )));
        }
        for expected in self.identity() {
            let found = state.take_u64()?;
            if found != expected {
                return Err(StateError::new(format!(
                    "the persistent cache was built with other settings: found {found}, \
                     expected {expected}"
                )));
            }
        }
        self.notes = state.take_u64()?;
        let head = state.take_u64()?;
        let runs = self.take_extents(state)?;
        let count = state.take_u64()?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let extent = self.take_extent(state)?;
            let position = state.take_u64()?;
            entries.push(Piece { extent, position });
        }
        if !self.log.restore(head, &runs, &entries) {
            return Err(damaged());
        }
        self.zeroed = set_of(&self.take_extents(state)?);
        self.lost = set_of(&self.take_extents(state)?);
        if state.take_u64()? != 0 {
            self.salvage = Some(self.take_salvage(state)?);
        }
        let pointers = state.take_u64()?;
        if pointers != self.write_pointers.len() as u64 {
            return Err(StateError::new(
                "the persistent cache was built with another setting of the bypass",
            ));
        }
        for (band, pointer) in self.write_pointers.iter_mut().enumerate() {
            let blocks = self.bands.extent_of(BandId(band as u32)).blocks.0;
            let found = state.take_u64()?;
            if found > blocks {
                return Err(damaged());
            }
            *pointer = found as u32;
        }
        Ok(())
    }

    /// What must be equal for a state to fit.
    fn identity(&self) -> [u64; 4] {
        let areas = self.layout.areas();
        [
            self.settings.log_blocks.0,
            self.bands.blocks().0,
            u64::from(self.bands.bands()),
            areas.bands.end().0,
        ]
    }

    fn take_salvage(&self, state: &mut StateReader<'_>) -> Result<Salvage, StateError> {
        let (band, from, blocks) = (state.take_u64()?, state.take_u64()?, state.take_u64()?);
        if band >= u64::from(self.bands.bands()) {
            return Err(damaged());
        }
        let band = BandId(band as u32);
        let length = self.bands.extent_of(band).blocks.0;
        if from.checked_add(blocks) != Some(length) {
            return Err(damaged());
        }
        Ok(Salvage { band, from, blocks })
    }

    fn take_extents(&self, state: &mut StateReader<'_>) -> Result<Vec<Extent>, StateError> {
        let count = state.take_u64()?;
        let mut extents = Vec::new();
        for _ in 0..count {
            extents.push(self.take_extent(state)?);
        }
        Ok(extents)
    }

    fn take_extent(&self, state: &mut StateReader<'_>) -> Result<Extent, StateError> {
        let (start, blocks) = (state.take_u64()?, state.take_u64()?);
        let end = start.checked_add(blocks).ok_or_else(damaged)?;
        if blocks == 0 || end > self.bands.blocks().0 {
            return Err(damaged());
        }
        Ok(Extent::new(start, blocks))
    }
}

fn put_extents(state: &mut StateWriter, extents: &[Extent]) {
    state.put_u64(extents.len() as u64);
    for extent in extents {
        state.put_u64(extent.start.0);
        state.put_u64(extent.blocks.0);
    }
}

fn set_of(extents: &[Extent]) -> ExtentSet {
    let mut set = ExtentSet::new();
    for extent in extents {
        set.insert(*extent);
    }
    set
}

fn damaged() -> StateError {
    StateError::new("the persistent cache's state is damaged")
}
