//! The whole state of a translation as the words of a checkpoint: [`codec`](super::codec) has its
//! fields.

use super::block_map::BlockMap;
use super::checksums::Checksums;
use super::log::PACKET_BLOCKS_MAX;
use super::log_replay::LogReplay;
use super::salvage::Salvage;
use super::shape::Shape;
use super::table::Table;
use crate::crc;
use crate::extent::Extent;
use crate::lifecycle::OpenError;
use crate::map::{BandId, ExtentMap, ExtentSet};
use crate::state::{StateError, StateReader, StateWriter};
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

/// What must be equal for a checkpoint to fit, with the words used in errors.
fn identity(shape: &Shape) -> [(&'static str, u64); 6] {
    let areas = shape.layout.areas();
    let mut sum = 0;
    for band in 0..shape.bands.bands() {
        let blocks = shape.bands.extent_of(BandId(band)).blocks.0;
        sum = crc::crc32c_append(sum, &blocks.to_le_bytes());
    }
    let scratch = areas.scratch.extent.start.0;
    [
        ("persistent cache blocks", shape.settings.log_blocks.0),
        ("blocks of all bands", shape.bands.blocks().0),
        ("number of bands", u64::from(shape.bands.bands())),
        ("checksum of the band lengths", u64::from(sum)),
        ("first block of the scratch band", scratch),
        ("end of the bands on the disk", areas.bands.extent.end().0),
    ]
}

/// The state with every record so far in it.
pub(super) fn encode_checkpoint(
    shape: &Shape,
    blocks: &BlockMap,
    checksums: &Checksums,
) -> Vec<u8> {
    let mut state = StateWriter::default();
    state.put_u64(CHECKPOINT_VERSION);
    for (_, word) in identity(shape) {
        state.put_u64(word);
    }
    state.put_u64(checksums.generation);
    put_log(&mut state, shape, blocks, checksums);
    put_ranges(&mut state, &blocks.zeroed);
    put_ranges(&mut state, &blocks.lost);
    match blocks.salvage {
        None => state.put_u64(NOT_HELD),
        Some(salvage) => {
            let place = shape.layout.recorded_place(salvage.place);
            state.put_u64(place.map_or(HOLDS_REST, |_| HOLDS_STRETCH));
            state.put_u64(u64::from(salvage.band.0));
            state.put_u64(salvage.from);
            state.put_u64(salvage.blocks);
            if let Some(place) = place {
                state.put_u64(place);
            }
        }
    }
    for (band, table) in (0..).map(BandId).zip(checksums.tables()) {
        let length = shape.bands.extent_of(band).blocks.0;
        state.put_u64(table.word());
        state.put_u64(blocks.readable_blocks(band));
        // What a reader without the layout must know.
        state.put_u64(shape.layout.home(band, 0, length).extent.start.0);
        state.put_u64(length);
    }
    state.put_u64(checksums.open.iter().len() as u64);
    for open in checksums.open.iter() {
        state.put_u64(u64::from(open.band.0));
        state.put_u64(open.sums.len() as u64);
        put_sums(&mut state, &open.sums);
    }
    state.into_bytes()
}

fn put_log(state: &mut StateWriter, shape: &Shape, blocks: &BlockMap, checksums: &Checksums) {
    state.put_u64(blocks.log.head());
    state.put_u64(blocks.log.tail());
    let map = blocks.log.map();
    state.put_u64(map.entries());
    for entry in map.pieces(shape.whole()) {
        let length = entry.extent.blocks.0;
        state.put_u64(entry.extent.start.0 << RUN_BITS | length);
        state.put_u64(entry.position);
        put_sums(state, checksums.slots(shape.slot(entry.position), length));
    }
}

/// Takes a checkpoint back; what it says of the log is for the replay to go on with.
pub(super) fn decode_checkpoint(
    bytes: &[u8],
    shape: &Shape,
    blocks: &mut BlockMap,
    checksums: &mut Checksums,
) -> Result<LogReplay, OpenError> {
    let mut state = StateReader::new(bytes);
    let mut take = || state.take_u64().map_err(too_short);
    if take()? != CHECKPOINT_VERSION {
        return Err(damaged("it is of another version"));
    }
    for (name, expected) in identity(shape) {
        let found = take()?;
        if found != expected {
            return Err(OpenError::Settings { name, found, expected });
        }
    }
    let generation = take()?;
    if generation > GENERATION_MAX {
        return Err(damaged("it counts further than a device can come"));
    }
    checksums.generation = generation;
    let log = take_log(&mut state, shape, checksums)?;
    blocks.zeroed = take_ranges(&mut state, shape)?;
    blocks.lost = take_ranges(&mut state, shape)?;
    blocks.salvage = take_salvage(&mut state, shape)?;
    take_bands(&mut state, shape, blocks, checksums)?;
    take_open_bands(&mut state, shape, blocks, checksums)?;
    match state.is_at_end() {
        true => Ok(log),
        false => Err(damaged("it is longer than what it says")),
    }
}

fn take_log(
    state: &mut StateReader<'_>,
    shape: &Shape,
    checksums: &mut Checksums,
) -> Result<LogReplay, OpenError> {
    let capacity = shape.settings.log_blocks.0;
    let mut take = || state.take_u64().map_err(too_short);
    let (head, tail, entries) = (take()?, take()?, take()?);
    let is_unheard_of = tail >= ExtentMap::ADDRESSES / 2;
    if is_unheard_of || tail.checked_sub(head).is_none_or(|used| used > capacity) {
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
            && extent.end().0 <= shape.bands.blocks().0
            && head <= position
            && end <= tail
            && slot + extent.blocks.0 <= capacity;
        if !fits {
            return Err(damaged("an entry lies outside the log or the bands"));
        }
        let mut sums = Vec::new();
        take_sums(state, extent.blocks.0, &mut sums)?;
        checksums.set_slots(slot, &sums);
        log.append(extent, position);
    }
    Ok(log)
}

fn take_ranges(state: &mut StateReader<'_>, shape: &Shape) -> Result<ExtentSet, OpenError> {
    let mut set = ExtentSet::new();
    for _ in 0..state.take_u64().map_err(too_short)? {
        let start = state.take_u64().map_err(too_short)?;
        let blocks = state.take_u64().map_err(too_short)?;
        let end = start.checked_add(blocks);
        if end.is_none_or(|end| end > shape.bands.blocks().0) {
            return Err(damaged("a range lies outside the bands"));
        }
        set.insert(Extent::new(start, blocks));
    }
    Ok(set)
}

fn take_salvage(state: &mut StateReader<'_>, shape: &Shape) -> Result<Option<Salvage>, OpenError> {
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
    let band = band_numbered(band, shape)?;
    let salvage = Salvage::recorded(shape, band, from, blocks, place);
    let other = damaged("the scratch band holds what no rewrite would put there");
    salvage.map(Some).ok_or(other)
}

fn band_numbered(band: u64, shape: &Shape) -> Result<BandId, OpenError> {
    match u32::try_from(band) {
        Ok(band) if band < shape.bands.bands() => Ok(BandId(band)),
        _ => Err(damaged("there is no such band")),
    }
}

fn take_bands(
    state: &mut StateReader<'_>,
    shape: &Shape,
    blocks: &mut BlockMap,
    checksums: &mut Checksums,
) -> Result<(), OpenError> {
    for band in (0..shape.bands.bands()).map(BandId) {
        let table = Table::from_word(state.take_u64().map_err(too_short)?);
        let pointer = state.take_u64().map_err(too_short)?;
        let home = state.take_u64().map_err(too_short)?;
        let found = Extent::new(home, state.take_u64().map_err(too_short)?);
        let whole = shape.bands.extent_of(band);
        if found != shape.layout.home(band, 0, whole.blocks.0).extent {
            return Err(damaged("a band lies elsewhere on the disk"));
        }
        if pointer > whole.blocks.0 {
            return Err(damaged("a write pointer lies past its band"));
        }
        checksums.set_table(band, table);
        blocks.set_pointer(band, pointer);
    }
    let tables = checksums.tables().iter();
    if tables.map(|table| table.generation()).max() > Some(checksums.generation) {
        return Err(damaged("a table is newer than the newest"));
    }
    Ok(())
}

fn take_open_bands(
    state: &mut StateReader<'_>,
    shape: &Shape,
    blocks: &BlockMap,
    checksums: &mut Checksums,
) -> Result<(), OpenError> {
    for _ in 0..state.take_u64().map_err(too_short)? {
        let band = band_numbered(state.take_u64().map_err(too_short)?, shape)?;
        let count = state.take_u64().map_err(too_short)?;
        if count != blocks.readable_blocks(band) {
            return Err(damaged("an open band has not as many checksums as blocks"));
        }
        let mut sums = Vec::new();
        take_sums(state, count, &mut sums)?;
        checksums.open.insert(band, sums);
    }
    Ok(())
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
