//! Where a segment layout keeps what it writes before it rewrites: its journal and its slots.

use super::codec;
use super::settings::SegmentSettings;
use crate::checksums::pages_of;
use crate::durability::superblock::FEATURE_CHECKSUMS;
use crate::durability::{JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::units::BlockCount;

/// Slots for rewrites that are under way. *Estimated*: each waits for the same disk, so a few keep it
/// busy.
pub(super) const SLOTS: u64 = 4;

/// The areas at the start of the node that takes the journal:
///
/// ```text
/// | journal | slot 0 | slot 1 | slot 2 | slot 3 | tables of checksums |
/// ```
///
/// The journal is there in a durable layout alone, the slots where a rewrite is journaled, the tables
/// where checksums are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentAreas {
    /// The journal.
    pub journal: Extent,
    /// Blocks of each place for a checkpoint.
    checkpoint_blocks: u64,
    /// All slots.
    pub slots: Extent,
    /// Blocks of a slot: those of a segment, and the pages of its table.
    slot_blocks: u64,
    /// The tables of the segments, one behind the other; empty without checksums.
    pub tables: Extent,
    /// Pages of the table of a segment; none without checksums.
    pub table_pages: u64,
    /// Blocks of a segment.
    pub segment_blocks: u64,
}

impl SegmentAreas {
    /// The areas of such a layout on a disk of so many blocks. Where it is not said how much is
    /// offered, there are tables for all segments that could have room.
    pub fn new(settings: &SegmentSettings, disk_blocks: BlockCount) -> SegmentAreas {
        let checkpoint = codec::checkpoint_bytes_max(settings.region_tracks);
        let checkpoint_blocks = JournalSettings::checkpoint_blocks_for(checkpoint);
        let area = |it: crate::durability::DurabilitySettings| {
            JournalSettings::area_blocks_for(checkpoint_blocks, it.ring_blocks)
        };
        let journal = settings.journal.notes().map_or(0, area);
        let slots = if settings.journal.has_slots() { SLOTS } else { 0 };
        let segment_blocks = settings.segment_blocks();
        let table_pages = match settings.keeps_sums() {
            true => pages_of(segment_blocks),
            false => 0,
        };
        let segments = match settings.offered {
            Some(offered) => offered.0.div_ceil(segment_blocks),
            None => disk_blocks.0 / segment_blocks,
        };
        let slot_blocks = segment_blocks + table_pages;
        let slots = Extent::new(journal, slots * slot_blocks);
        SegmentAreas {
            journal: Extent::new(0, journal),
            checkpoint_blocks,
            slots,
            slot_blocks,
            tables: Extent::new(slots.end().0, segments * table_pages),
            table_pages,
            segment_blocks,
        }
    }

    /// Blocks of all of them.
    pub fn blocks(&self) -> BlockCount {
        BlockCount(self.tables.end().0)
    }

    /// Blocks of memory that a rewrite needs: those of a segment, and the pages of its table.
    pub(super) fn rewrite_blocks(&self) -> BlockCount {
        BlockCount(self.slot_blocks)
    }

    /// The blocks of a slot.
    pub fn slot(&self, slot: u32) -> Extent {
        let start = self.slots.start.0 + u64::from(slot) * self.slot_blocks;
        Extent::new(start, self.slot_blocks)
    }

    /// The tables of some segments.
    pub fn tables_of(&self, segment: u64, segments: u64) -> Extent {
        let start = self.tables.start.0 + segment * self.table_pages;
        Extent::new(start, segments * self.table_pages)
    }

    /// What the journal must know.
    pub(super) fn journal_settings(
        &self,
        settings: &SegmentSettings,
        member_blocks: BlockCount,
    ) -> JournalSettings {
        JournalSettings {
            layer: LayerKind::Segments,
            port: settings.ports.journal_port(),
            member_blocks,
            area: self.journal,
            checkpoint_blocks: self.checkpoint_blocks,
            required_features: match settings.keeps_sums() {
                true => FEATURE_CHECKSUMS,
                false => 0,
            },
            data: None,
        }
    }
}
