//! Where a segment layout keeps what it writes before it rewrites: its journal and its slots.

use super::codec;
use super::settings::SegmentSettings;
use crate::durability::{JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::units::BlockCount;

/// Slots for rewrites that are under way. *Estimated*: each waits for the same disk, so a few keep it
/// busy.
pub(super) const SLOTS: u64 = 4;

/// The areas at the start of the node that takes the journal:
///
/// ```text
/// | journal | slot 0 | slot 1 | slot 2 | slot 3 |
/// ```
///
/// The journal is there in a durable layout alone, the slots where a rewrite is journaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentAreas {
    /// The journal.
    pub journal: Extent,
    /// Blocks of each place for a checkpoint.
    checkpoint_blocks: u64,
    /// All slots.
    pub slots: Extent,
    /// Blocks of a slot: those of a segment.
    slot_blocks: u64,
}

impl SegmentAreas {
    /// The areas of such a layout.
    pub fn new(settings: &SegmentSettings) -> SegmentAreas {
        let checkpoint = codec::checkpoint_bytes_max(settings.region_tracks);
        let checkpoint_blocks = JournalSettings::checkpoint_blocks_for(checkpoint);
        let area = |it: crate::durability::DurabilitySettings| {
            JournalSettings::area_blocks_for(checkpoint_blocks, it.ring_blocks)
        };
        let journal = settings.journal.notes().map_or(0, area);
        let slots = if settings.journal.has_slots() {
            SLOTS
        } else {
            0
        };
        SegmentAreas {
            journal: Extent::new(0, journal),
            checkpoint_blocks,
            slots: Extent::new(journal, slots * settings.segment_blocks()),
            slot_blocks: settings.segment_blocks(),
        }
    }

    /// Blocks of all of them.
    pub fn blocks(&self) -> BlockCount {
        BlockCount(self.slots.end().0)
    }

    /// The blocks of a slot.
    pub fn slot(&self, slot: u32) -> Extent {
        let start = self.slots.start.0 + u64::from(slot) * self.slot_blocks;
        Extent::new(start, self.slot_blocks)
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
            required_features: 0,
            data: None,
        }
    }
}
