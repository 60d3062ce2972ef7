//! The whole state of a durable translation as the words of a checkpoint: [`codec`](super::codec) has
//! its fields.

use super::bypass::OpenBand;
use super::checksums::Table;
use super::log_replay::LogReplay;
use crate::extent::Extent;
use crate::lifecycle::OpenError;
use crate::map::{BandId, ExtentSet};
use crate::state::{StateError, StateReader, StateWriter};
use crate::translation::log::PACKET_BLOCKS_MAX;
use crate::translation::persistent_cache::PersistentCache;
use crate::translation::stretch::Salvage;
use alloc::vec::Vec;

/// Changes whenever the words do.
const CHECKPOINT_VERSION: u64 = 1;
/// How the scratch band is held: not at all, by the rest of a band, or by a stretch of one.
const NOT_HELD: u64 = 0;
const HOLDS_REST: u64 = 1;
const HOLDS_STRETCH: u64 = 2;
/// Tables are never counted further in the life of a device.
pub(super) const GENERATION_MAX: u64 = u64::MAX / 4;
/// Bits of the first word of an entry that hold its length.
const RUN_BITS: u32 = PACKET_BLOCKS_MAX.count_ones();

fn damaged(detail: &'static str) -> OpenError {
    OpenError::damaged("checkpoint", detail)
}

fn too_short(error: StateError) -> OpenError {
    OpenError::damaged("checkpoint", error.message)
}

impl PersistentCache {
    /// What must be equal for a checkpoint to fit, with the words used in errors.
    fn durable_identity(&self) -> [(&'static str, u64); 6] {
        let areas = self.layout.areas();
        let mut sum = 0;
        for band in 0..self.bands.bands() {
            let blocks = self.bands.extent_of(BandId(band)).blocks.0;
            sum = crc32c::crc32c_append(sum, &blocks.to_le_bytes());
        }
        [
            ("persistent cache blocks", self.settings.log_blocks.0),
            ("blocks of all bands", self.bands.blocks().0),
            ("number of bands", u64::from(self.bands.bands())),
            ("checksum of the band lengths", u64::from(sum)),
            ("first block of the scratch band", areas.scratch.start.0),
            ("end of the bands on the disk", areas.bands.end().0),
        ]
    }

    /// The state with every record so far in it. No write is in flight.
    pub(super) fn encode_checkpoint(&self) -> Vec<u8> {
        assert_eq!(
            self.writes_in_flight, 0,
            "a checkpoint of a write in flight"
        );
        let durable = self.durable.as_ref().expect("a durable translation");
        let mut state = StateWriter::default();
        state.put_u64(CHECKPOINT_VERSION);
        for (_, word) in self.durable_identity() {
            state.put_u64(word);
        }
        state.put_u64(durable.generation);
        state.put_u64(self.log.head());
        state.put_u64(self.log.tail());
        let whole = Extent::new(0, self.bands.blocks().0);
        let map = self.log.map();
        state.put_u64(map.entries());
        for entry in map.pieces(whole) {
            state.put_u64(entry.extent.start.0 << RUN_BITS | entry.extent.blocks.0);
            state.put_u64(entry.position);
            let slot = self.log.slot(entry.position) as usize;
            let sums = &durable.slot_sums[slot..slot + entry.extent.blocks.0 as usize];
            put_sums(&mut state, sums);
        }
        put_ranges(&mut state, &self.zeroed);
        put_ranges(&mut state, &self.lost);
        match self.salvage {
            None => state.put_u64(NOT_HELD),
            Some(salvage) => {
                let place = self.recorded_place(salvage.place);
                state.put_u64(place.map_or(HOLDS_REST, |_| HOLDS_STRETCH));
                state.put_u64(u64::from(salvage.band.0));
                state.put_u64(salvage.from);
                state.put_u64(salvage.blocks);
                if let Some(place) = place {
                    state.put_u64(place);
                }
            }
        }
        for (band, table) in (0..).map(BandId).zip(&durable.tables) {
            let blocks = self.bands.extent_of(band).blocks.0;
            state.put_u64(table.word());
            state.put_u64(u64::from(self.write_pointers[band.0 as usize]));
            // What a reader without the layout must know.
            state.put_u64(self.layout.home(band, 0, blocks).start.0);
            state.put_u64(blocks);
        }
        state.put_u64(durable.open.len() as u64);
        for open in &durable.open {
            state.put_u64(u64::from(open.band.0));
            state.put_u64(open.sums.len() as u64);
            put_sums(&mut state, &open.sums);
        }
        state.into_bytes()
    }

    /// Takes a checkpoint back; what it says of the log is for the replay to go on with.
    pub(super) fn decode_checkpoint(&mut self, bytes: &[u8]) -> Result<LogReplay, OpenError> {
        let mut state = StateReader::new(bytes);
        let mut take = || state.take_u64().map_err(too_short);
        if take()? != CHECKPOINT_VERSION {
            return Err(damaged("it is of another version"));
        }
        for (name, expected) in self.durable_identity() {
            let found = take()?;
            if found != expected {
                return Err(OpenError::Settings {
                    name,
                    found,
                    expected,
                });
            }
        }
        let generation = take()?;
        if generation > GENERATION_MAX {
            return Err(damaged("it counts further than a device can come"));
        }
        self.durable().generation = generation;
        let log = self.take_log(&mut state)?;
        self.zeroed = self.take_ranges(&mut state)?;
        self.lost = self.take_ranges(&mut state)?;
        self.salvage = self.take_salvage_words(&mut state)?;
        self.take_bands(&mut state)?;
        match state.is_at_end() {
            true => Ok(log),
            false => Err(damaged("it is longer than what it says")),
        }
    }

    fn take_log(&mut self, state: &mut StateReader<'_>) -> Result<LogReplay, OpenError> {
        let capacity = self.settings.log_blocks.0;
        let mut take = || state.take_u64().map_err(too_short);
        let (head, tail, entries) = (take()?, take()?, take()?);
        if tail.checked_sub(head).is_none_or(|used| used > capacity) {
            return Err(damaged("the log ends before it begins, or is too long"));
        }
        let mut log = LogReplay::new(capacity, head);
        log.reach(tail);
        for _ in 0..entries {
            let packed = state.take_u64().map_err(too_short)?;
            let position = state.take_u64().map_err(too_short)?;
            let extent = Extent::new(packed >> RUN_BITS, packed & PACKET_BLOCKS_MAX);
            let end = position.saturating_add(extent.blocks.0);
            let slot = position % capacity;
            let fits = !extent.is_empty()
                && extent.end().0 <= self.bands.blocks().0
                && head <= position
                && end <= tail
                && slot + extent.blocks.0 <= capacity;
            if !fits {
                return Err(damaged("an entry lies outside the log or the bands"));
            }
            let mut sums = Vec::new();
            take_sums(state, extent.blocks.0, &mut sums)?;
            let slot = slot as usize;
            self.durable().slot_sums[slot..slot + sums.len()].copy_from_slice(&sums);
            log.append(extent, position);
        }
        Ok(log)
    }

    fn take_ranges(&self, state: &mut StateReader<'_>) -> Result<ExtentSet, OpenError> {
        let mut set = ExtentSet::new();
        for _ in 0..state.take_u64().map_err(too_short)? {
            let start = state.take_u64().map_err(too_short)?;
            let blocks = state.take_u64().map_err(too_short)?;
            let end = start.checked_add(blocks);
            if end.is_none_or(|end| end > self.bands.blocks().0) {
                return Err(damaged("a range lies outside the bands"));
            }
            set.insert(Extent::new(start, blocks));
        }
        Ok(set)
    }

    fn take_salvage_words(
        &self,
        state: &mut StateReader<'_>,
    ) -> Result<Option<Salvage>, OpenError> {
        let mut take = || state.take_u64().map_err(too_short);
        let held = take()?;
        if held == NOT_HELD {
            return Ok(None);
        }
        let (band, from, blocks) = (take()?, take()?, take()?);
        let place = match held {
            HOLDS_REST => None,
            HOLDS_STRETCH => Some(take()?),
            _ => return Err(damaged("the scratch band is held in no known way")),
        };
        let band = self.band_numbered(band)?;
        let salvage = self.salvage_of(band, from, blocks, place);
        let other = damaged("the scratch band holds what no rewrite would put there");
        salvage.map(Some).ok_or(other)
    }

    /// What the scratch band holds of a band; `None` when no rewrite of the band would put these
    /// blocks there.
    pub(super) fn salvage_of(
        &self,
        band: BandId,
        from: u64,
        blocks: u64,
        place: Option<u64>,
    ) -> Option<Salvage> {
        let end_of_rewrite = self.bands.extent_of(band).blocks.0;
        if from >= end_of_rewrite {
            return None;
        }
        let (place, rewritten) = match place {
            None if !self.layout.has_stretches() => (0, end_of_rewrite - from),
            Some(place) if from == self.layout.track_start(band, from) => {
                let place = self.layout.scratch_place(place)?;
                (
                    place,
                    self.layout.stretch(band, from, end_of_rewrite).blocks,
                )
            }
            _ => return None,
        };
        (blocks == rewritten).then_some(Salvage {
            band,
            from,
            blocks,
            end_of_rewrite,
            place,
            at: 0,
        })
    }

    /// The first block of a place of the scratch band, as it is written down: not where a band
    /// always goes there whole.
    pub(super) fn recorded_place(&self, place: usize) -> Option<u64> {
        let has_stretches = self.layout.has_stretches();
        has_stretches.then(|| self.layout.scratch(place, 0, 0).start.0)
    }

    fn band_numbered(&self, band: u64) -> Result<BandId, OpenError> {
        match u32::try_from(band) {
            Ok(band) if band < self.bands.bands() => Ok(BandId(band)),
            _ => Err(damaged("there is no such band")),
        }
    }

    fn take_bands(&mut self, state: &mut StateReader<'_>) -> Result<(), OpenError> {
        for band in 0..self.bands.bands() {
            let table = Table::from_word(state.take_u64().map_err(too_short)?);
            let pointer = state.take_u64().map_err(too_short)?;
            let home = state.take_u64().map_err(too_short)?;
            let found = Extent::new(home, state.take_u64().map_err(too_short)?);
            let whole = self.bands.extent_of(BandId(band));
            if found != self.layout.home(BandId(band), 0, whole.blocks.0)
                || found.blocks != whole.blocks
            {
                return Err(damaged("a band lies elsewhere on the disk"));
            }
            if pointer > whole.blocks.0 {
                return Err(damaged("a write pointer lies past its band"));
            }
            self.durable().tables[band as usize] = table;
            self.write_pointers[band as usize] = pointer as u32;
        }
        for _ in 0..state.take_u64().map_err(too_short)? {
            let band = self.band_numbered(state.take_u64().map_err(too_short)?)?;
            let count = state.take_u64().map_err(too_short)?;
            if count != self.readable_blocks(band) {
                return Err(damaged("an open band has not as many checksums as blocks"));
            }
            let mut sums = Vec::new();
            take_sums(state, count, &mut sums)?;
            self.durable().open.push(OpenBand::new(band, sums));
        }
        let durable = self.durable();
        let newest = durable.tables.iter().map(|table| table.generation()).max();
        if newest > Some(durable.generation) {
            return Err(damaged("a table is newer than the newest"));
        }
        Ok(())
    }
}

fn put_ranges(state: &mut StateWriter, set: &ExtentSet) {
    state.put_u64(set.len() as u64);
    for range in set.ranges() {
        state.put_u64(range.start.0);
        state.put_u64(range.blocks.0);
    }
}

fn put_sums(state: &mut StateWriter, sums: &[u32]) {
    for pair in sums.chunks(2) {
        let high = pair.get(1).copied().unwrap_or(0);
        state.put_u64(u64::from(high) << 32 | u64::from(pair[0]));
    }
}

fn take_sums(
    state: &mut StateReader<'_>,
    count: u64,
    sums: &mut Vec<u32>,
) -> Result<(), OpenError> {
    for at in 0..count.div_ceil(2) {
        let word = state.take_u64().map_err(too_short)?;
        sums.push(word as u32);
        if 2 * at + 1 < count {
            sums.push((word >> 32) as u32);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_come_back_two_to_a_word() {
        for sums in [&[][..], &[1], &[1, 2], &[1, u32::MAX, 3]] {
            let mut state = StateWriter::default();
            put_sums(&mut state, sums);
            let bytes = state.into_bytes();
            assert_eq!(bytes.len(), sums.len().div_ceil(2) * 8);
            let mut found = Vec::new();
            let mut reader = StateReader::new(&bytes);
            take_sums(&mut reader, sums.len() as u64, &mut found).expect("whole");
            assert_eq!(found, sums);
        }
    }
}
