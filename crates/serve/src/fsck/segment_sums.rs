//! The tables of checksums of a segment layout: what each block of it must be.

use super::member::Member;
use super::segments::{Noted, SegmentsState};
use imbrex_core::durability::block::{self, BlockError, BlockKind, Expected};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::segment::Place;
use imbrex_core::translation::{NOTHING, ZERO_SUM};
use std::rc::Rc;

/// Checksums in a page.
const SUMS_PER_PAGE: u64 = 1008;

/// Compares blocks of the device with the tables.
pub(super) struct SegmentSums {
    state: Rc<SegmentsState>,
    /// The member that has the journal and the tables, and its name in its set.
    member: Member,
    uuid: Uuid,
    /// The word of each block of a page that was never written.
    blank: u32,
    /// The page that was read last: where it lies, and what it says.
    page: Option<(u64, Vec<u32>)>,
}

impl SegmentSums {
    /// The tables, where the layout has any.
    pub fn new(state: &Rc<SegmentsState>, member: &Member, uuid: Uuid) -> Option<SegmentSums> {
        Some(SegmentSums {
            state: Rc::clone(state),
            member: member.clone(),
            uuid,
            blank: state.blank?,
            page: None,
        })
    }

    /// Finds out whether a block of the device is what its table says.
    pub fn compare(&mut self, lba: u64, bytes: &[u8]) -> Result<(), String> {
        let layout = &self.state.geometry.layout;
        let place = layout.place_of(lba);
        let at = place.block * layout.block() + place.offset;
        let word = self.word(place, at)?;
        let found = match crc32c::crc32c(bytes) ^ ZERO_SUM {
            word if word >= NOTHING => word - 2,
            word => word,
        };
        match word == NOTHING || word == found {
            true => Ok(()),
            false => Err(format!(
                "block {at} of segment {} does not match its checksum",
                place.segment
            )),
        }
    }

    /// The word of a block of a segment.
    fn word(&mut self, place: Place, at: u64) -> Result<u32, String> {
        let index = at / SUMS_PER_PAGE;
        let home = self.state.geometry.areas.tables_of(place.segment, 1);
        let home = home.start.0 + index;
        let address = self.in_slot(place.segment, index).unwrap_or(home);
        let is_there = self.page.as_ref().is_some_and(|page| page.0 == address);
        if !is_there {
            let words = self.read_page(address, home, index);
            let words = words.map_err(|problem| {
                let segment = place.segment;
                format!("page {index} of the checksums of segment {segment}: {problem}")
            })?;
            self.page = Some((address, words));
        }
        let words = &self.page.as_ref().expect("a page that was read").1;
        let word = words.get((at % SUMS_PER_PAGE) as usize);
        word.copied().ok_or_else(|| "it has no checksum".to_owned())
    }

    /// Where a noted slot has a page of a segment.
    fn in_slot(&self, segment: u64, index: u64) -> Option<u64> {
        let layout = &self.state.geometry.layout;
        let mut noted = self.state.noted.iter().rev();
        noted.find_map(|(slot, noted)| {
            let Noted::Rewrite {
                segment: of,
                written,
            } = noted
            else {
                return None;
            };
            let first = written.iter().position(|written| *written)? as u64 * layout.block();
            let end = (written.iter().rposition(|written| *written)? as u64 + 1) * layout.block();
            let pages = first / SUMS_PER_PAGE..end.div_ceil(SUMS_PER_PAGE);
            let behind = self.state.geometry.areas.slot(*slot).start.0 + end;
            let has_it = *of == segment && pages.contains(&index);
            has_it.then(|| behind + index - pages.start)
        })
    }

    /// Reads the page that belongs at `home`, wherever it lies.
    fn read_page(&self, address: u64, home: u64, index: u64) -> Result<Vec<u32>, String> {
        let mut bytes = Vec::new();
        let read = self.member.read(address, 1, &mut bytes);
        read.map_err(|error| error.to_string())?;
        let all = self.state.geometry.layout.segment_blocks();
        let sums = (all - index * SUMS_PER_PAGE).min(SUMS_PER_PAGE);
        let expected = Expected::new(BlockKind::ChecksumTable, Some(self.uuid), home);
        let (header, payload) = match block::unseal(&bytes, expected) {
            Ok(found) => found,
            Err(BlockError::Zero) => return Ok(vec![self.blank; sums as usize]),
            Err(error) => return Err(error.message()),
        };
        if header.sequence != index || payload.len() as u64 != 4 * sums {
            return Err("it is another page".to_owned());
        }
        let words = payload.chunks_exact(4);
        Ok(words
            .map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")))
            .collect())
    }
}
