//! The tables of the checksums of bands: which of its two places holds a table.

use super::areas::DurableAreas;
use crate::checksums::{Page, PageId};
use crate::lifecycle::Uuid;
use crate::map::BandId;
use crate::saved::SavedValue;

/// The table of a band: which of its two places holds it, and the generation that its pages must
/// have. The word of a band without a table is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub(super) struct Table(u64);

impl Table {
    /// No table.
    pub const NONE: Table = Table(0);

    /// The table that replaces this one: in the other place.
    pub fn successor(self, generation: u64) -> Table {
        let place = if self == Table::NONE { 0 } else { 1 - self.place() };
        Table(generation << 1 | place)
    }

    /// As it is written down.
    pub fn word(self) -> u64 {
        self.0
    }

    /// Back from a word.
    pub fn from_word(word: u64) -> Table {
        Table(word)
    }

    /// Counts the tables that were ever written.
    pub fn generation(self) -> u64 {
        self.0 >> 1
    }

    /// The place: 0 or 1.
    pub fn place(self) -> u64 {
        self.0 & 1
    }
}

/// Whose table it is, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePlace<'a> {
    pub areas: &'a DurableAreas,
    pub member: Uuid,
    pub band: BandId,
    pub table: Table,
    /// Blocks of the band, and so checksums in the table.
    pub blocks: u64,
}

impl TablePlace<'_> {
    /// A page of it.
    pub fn page(&self, index: u64) -> Page {
        let start = self.areas.table_start(self.band, self.table.place());
        Page {
            member: self.member,
            id: PageId { address: start + index, generation: self.table.generation() },
            index,
            sums: self.blocks,
        }
    }
}
