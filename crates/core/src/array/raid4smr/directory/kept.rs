//! What a durable array keeps of where each block is, and how it takes that back.

use super::{Directory, Place};
use crate::array::bits::Bits;
use crate::extent::Extent;
use crate::map::ExtentMap;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Directory {
    /// Adds everything to a checkpoint.
    pub fn put(&self, words: &mut StateWriter) {
        words.put_u64(self.next_place);
        let (run, first) = self.last_run;
        let all = Extent::new(0, u64::MAX);
        let runs: Vec<_> = self.places.pieces(all).map(|it| (it.extent, it.position)).collect();
        let last = (!run.is_empty()).then_some((run, first));
        words.put_u64((runs.len() + usize::from(last.is_some())) as u64);
        for (run, first) in runs.into_iter().chain(last) {
            words.put_u64(run.start.0);
            words.put_u64(run.blocks.0);
            words.put_u64(first);
        }
        self.live.put(words);
        self.slots.put(words);
        let mut slots: Vec<(Place, u64)> =
            self.slot_of.iter().map(|(place, slot)| (*place, *slot)).collect();
        slots.sort_unstable();
        words.put_u64(slots.len() as u64);
        for (place, slot) in slots {
            words.put_u64(place);
            words.put_u64(slot);
        }
        words.put_u64(self.spare);
        self.band_rows.iter().chain(&self.written_ends).for_each(|word| words.put_u64(*word));
    }

    /// Takes everything back from a checkpoint.
    ///
    /// # Errors
    /// When it is not that of an array with these bands and slots.
    pub fn take(&mut self, words: &mut StateReader<'_>) -> Result<(), StateError> {
        let other = || StateError::new("a place or a slot that is not there");
        let places = self.places_in_all();
        self.next_place = words.take_u64()?;
        for _ in 0..words.take_u64()? {
            let (start, blocks, first) = (words.take_u64()?, words.take_u64()?, words.take_u64()?);
            let reaches_beyond =
                |first: u64, end| first.checked_add(blocks).is_none_or(|behind| behind > end);
            if reaches_beyond(first, places)
                || reaches_beyond(start, ExtentMap::ADDRESSES)
                || blocks == 0
            {
                return Err(other());
            }
            self.places.insert(Extent::new(start, blocks), first);
        }
        self.live = Bits::take(places, words)?;
        self.slots.take_state(words)?;
        for _ in 0..words.take_u64()? {
            let (place, slot) = (words.take_u64()?, words.take_u64()?);
            if place >= places || slot >= self.slots.capacity() {
                return Err(other());
            }
            self.slot_of.insert(place, slot);
            self.mapped[(place / self.homes / self.band_blocks) as usize] += 1;
        }
        self.slots_peak = self.map_entries();
        self.spare = words.take_u64()?;
        let mut seen = Bits::default();
        seen.set(self.spare, true);
        for band_row in &mut self.band_rows {
            *band_row = words.take_u64()?;
            if seen.get(*band_row) {
                return Err(StateError::new("two band rows in one place"));
            }
            seen.set(*band_row, true);
        }
        if seen.runs().next() != Some((0, self.band_rows.len() as u64 + 1)) {
            return Err(StateError::new("a band row that is not there"));
        }
        for end in &mut self.written_ends {
            *end = words.take_u64()?;
        }
        Ok(())
    }

    /// A record says that a block has a place, at home or in a slot. `is_written` when the block is there.
    ///
    /// # Errors
    /// When there is no such place or slot.
    pub fn replay_write(
        &mut self,
        (block, place): (u64, Place),
        slot: Option<u64>,
        is_written: bool,
    ) -> Result<(), StateError> {
        let is_there = place < self.places_in_all()
            && block < ExtentMap::ADDRESSES
            && slot.is_none_or(|slot| slot < self.slots.capacity());
        if !is_there || !self.appends() && place != block {
            return Err(StateError::new("a place or a slot that is not there"));
        }
        if self.appends() {
            if self.places.get(Lba(block)).is_none() {
                self.places.insert(Extent::new(block, 1), place);
            }
            self.next_place = self.next_place.max(place + 1);
        }
        if slot.is_none() {
            let index = (self.band_row_of(place) * self.homes + place % self.homes) as usize;
            self.written_ends[index] = self.written_ends[index].max(self.offset_of(place) + 1);
        }
        if !is_written {
            return Ok(());
        }
        self.live.set(place, true);
        let Some(slot) = slot else { return Ok(()) };
        match self.slot_of.insert(place, slot) {
            Some(before) if before != slot => self.slots.free(before),
            Some(_) => return Ok(()),
            None => self.mapped[(place / self.homes / self.band_blocks) as usize] += 1,
        }
        self.slots.claim(slot);
        Ok(())
    }

    /// All records were taken in.
    ///
    /// # Errors
    /// When two places have one slot.
    pub fn end_replay(&mut self) -> Result<(), StateError> {
        let mut taken = BTreeSet::new();
        if !self.slot_of.values().all(|slot| taken.insert(*slot)) {
            return Err(StateError::new("a slot that two places have"));
        }
        self.slots.keep_free(&taken);
        Ok(())
    }

    /// A record says that a band row lies elsewhere, where the homes have the places `held`, counted from its
    /// first. Places in it have no slots from then on, but for those that are `redirected` since.
    ///
    /// # Errors
    /// When there is no such band row or place in it, or what it goes to was not spare.
    pub fn replay_collected(
        &mut self,
        (band_row, to): (u64, u64),
        held: &[Place],
        redirected: impl Fn(Place) -> bool,
    ) -> Result<(), StateError> {
        if band_row as usize >= self.band_rows.len() || self.spare != to {
            return Err(StateError::new("a band row that is not there"));
        }
        self.spare = core::mem::replace(&mut self.band_rows[band_row as usize], to);
        let places = self.places_of(band_row);
        if held.iter().any(|place| *place >= places.blocks.0) {
            return Err(StateError::new("a place that is not there"));
        }
        for place in places.start.0..places.end().0 {
            if !redirected(place)
                && let Some(slot) = self.slot_of.remove(&place)
            {
                self.slots.free(slot);
                self.mapped[band_row as usize] -= 1;
            }
        }
        if !self.appends() {
            // Not what is live: a block that was zeroed while its band row was collected is there still, and in the
            // parity.
            let ends = (band_row * self.homes) as usize;
            let ends = &mut self.written_ends[ends..ends + self.homes as usize];
            ends.fill(0);
            for place in held {
                let end = &mut ends[(place % self.homes) as usize];
                *end = (*end).max(place / self.homes + 1);
            }
        }
        Ok(())
    }

    /// Where the band rows lie, in the order of the places.
    pub fn band_rows(&self) -> &[u64] {
        &self.band_rows
    }

    /// The row of a place on its home, when nothing is decided and not done.
    pub fn row_of(&self, place: Place) -> u64 {
        self.band_rows[self.band_row_of(place) as usize] * self.band_blocks + self.offset_of(place)
    }

    /// The band row that is spare.
    pub fn spare(&self) -> u64 {
        self.spare
    }
}
