//! The tables of checksums of a segment layout: what each block of it must be.

use super::findings::Findings;
use super::member::Member;
use super::segments::{Noted, Place, SegmentsState};
use super::tables::{self, Holes, LastPage, Page, WORDS_PER_PAGE};
use imbrex_core::lifecycle::Uuid;
use std::rc::Rc;

/// The tables of a layout that has some.
pub(super) struct SegmentSums {
    state: Rc<SegmentsState>,
    /// The member that has the journal, the slots and the tables, and its name in its set.
    member: Member,
    uuid: Uuid,
    /// The word of each block of a page that was never written.
    blank: u32,
    last: LastPage,
}

impl SegmentSums {
    /// The tables, where the layout has any.
    pub fn new(state: &Rc<SegmentsState>, member: &Member, uuid: Uuid) -> Option<SegmentSums> {
        Some(SegmentSums {
            state: Rc::clone(state),
            member: member.clone(),
            uuid,
            blank: state.blank?,
            last: LastPage::default(),
        })
    }

    /// Compares a block of the device with its checksum.
    pub fn compare(&mut self, lba: u64, bytes: &[u8]) -> Result<(), String> {
        let per_segment = self.state.geometry.layout.segment_blocks();
        let (segment, at) = (lba / per_segment, lba % per_segment);
        let page = self.page(segment, at / WORDS_PER_PAGE);
        let words = self.last.words(page, &self.member)?;
        tables::compare(words[(at % WORDS_PER_PAGE) as usize], bytes)
    }

    /// A page of the table of a segment: in a slot where that is not yet home.
    fn page(&self, segment: u64, index: u64) -> Page {
        let areas = &self.state.geometry.areas;
        let table = (areas.tables_of(segment, 1).start.0, areas.segment_blocks);
        let page = Page::of_table(self.uuid, table, index);
        Page {
            lies_at: self.in_slot(segment, index).unwrap_or(page.address),
            blank: Some(self.blank),
            ..page
        }
    }

    /// Where a noted slot has a page of a segment: the pages that a rewrite changes follow its blocks.
    fn in_slot(&self, segment: u64, index: u64) -> Option<u64> {
        let geometry = &self.state.geometry;
        let block = geometry.layout.block();
        let mut noted = self.state.noted.iter().rev();
        noted.find_map(|(slot, noted)| {
            let written = match noted {
                Noted::Rewrite { segment: of, written } if *of == segment => written,
                _ => return None,
            };
            let first = written.iter().position(|written| *written)? as u64 * block;
            let end = (written.iter().rposition(|written| *written)? as u64 + 1) * block;
            let pages = first / WORDS_PER_PAGE..end.div_ceil(WORDS_PER_PAGE);
            let behind = geometry.areas.slot(*slot).start.0 + end;
            let has_it = pages.contains(&index);
            has_it.then(|| behind + index - pages.start)
        })
    }

    /// Segments of a device of so many blocks that have tables: a device may offer fewer than the layout
    /// has.
    fn segments(&self, blocks: u64) -> u64 {
        let geometry = &self.state.geometry;
        let with_tables = geometry.areas.tables.blocks.0 / geometry.areas.table_pages.max(1);
        let segments = blocks.div_ceil(geometry.layout.segment_blocks());
        segments.min(with_tables)
    }

    /// Reads the tables of a device of so many blocks.
    pub fn check_tables(&self, blocks: u64, into: &mut Findings) {
        for segment in 0..self.segments(blocks) {
            for index in 0..self.state.geometry.areas.table_pages {
                let whose = || format!("segment {segment}");
                self.page(segment, index).check(&self.member, whose, into);
            }
        }
    }

    /// Reads every block of the device and compares it with its checksum. `home` reads a block of the
    /// disk; `file` is that disk where nothing is between.
    pub fn check_data(
        &self,
        blocks: u64,
        (disk, file): (&str, Option<&Member>),
        home: impl Fn(u64, &mut Vec<u8>) -> Result<(), String>,
        into: &mut Findings,
    ) {
        let mut holes = Holes::new(file);
        let mut bytes = Vec::new();
        let per_segment = self.state.geometry.layout.segment_blocks();
        for (segment, index) in (0..self.segments(blocks)).flat_map(|segment| {
            (0..per_segment.div_ceil(WORDS_PER_PAGE)).map(move |at| (segment, at))
        }) {
            // What is wrong with the page itself was told.
            let Ok(words) = self.page(segment, index).read(&self.member) else {
                continue;
            };
            let first = segment * per_segment + index * WORDS_PER_PAGE;
            for (lba, word) in (first..blocks).zip(words) {
                let read = match self.state.find(lba) {
                    Some(Place::Home(at)) if holes.has_zeroes(word, at) => continue,
                    Some(Place::Home(at)) => home(at, &mut bytes),
                    Some(Place::Slot(at)) => self.state.read_slot(at, &self.member, &mut bytes),
                    Some(Place::Zeroes) | None => continue,
                };
                if let Err(problem) = read.and_then(|()| tables::compare(word, &bytes)) {
                    let at = lba % per_segment;
                    let words = format!("block {lba}, block {at} of segment {segment}: {problem}");
                    into.damage(disk, "data", words);
                }
            }
        }
    }
}
