//! Where a durable RAID 4SMR keeps what.

use super::bands::HomeBands;
use crate::array::bits::Bits;
use crate::array::member_record::MEMBER_BYTES;
use crate::array::raid4smr::records::collection_records;
use crate::array::raid4smr::unreadable::UNREADABLE_MAX;
use crate::array::{COLUMNS_MAX, RegionShape};
use crate::checksums::SUMS_PER_PAGE;
use crate::durability::superblock::FEATURE_MIRRORED;
use crate::durability::{DurabilitySettings, JournalSettings, LayerKind};
use crate::extent::Extent;
use crate::layer::Port;
use crate::units::{BlockCount, Duration};
use alloc::vec::Vec;

/// Rows of a region at most: 4 MiB of a member.
const REGION_ROWS_MAX: u64 = 1024;
/// Rows of all bands have at least so many regions, but for long bands whose rows cannot be shared out evenly.
const REGIONS_MIN: u64 = 16;

/// Tables of an array of at least so many rows.
const TABLES_MIN: u64 = 4;

/// How a RAID 4SMR keeps what it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid4SmrKeeping {
    /// Its journal.
    pub durability: DurabilitySettings,
    /// Where that is.
    pub layout: Raid4SmrLayout,
    /// Memory for tables of checksums that are not about to be written.
    pub memory_bytes: u64,
    /// A member of which an operation takes longer is lost.
    pub lost_after: Duration,
}

/// Where a durable RAID 4SMR has everything, as a reader of its members must know it.
#[derive(Clone, Debug)]
pub struct Raid4SmrShape {
    /// Journal, log and rows of the data disk and the parity disk.
    pub layout: Raid4SmrLayout,
    /// The bands of its homes.
    pub bands: HomeBands,
    /// Slots of the data disk.
    pub slots: u64,
    /// Blocks get their places in the order of their first writes; otherwise a place is the address of its block.
    pub appends: bool,
}

/// The journal comes first on the data disk, the parity disk and each spare, then the log on the parity disk, then on
/// both the tables of checksums, then their rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raid4SmrLayout {
    /// Blocks of the area of the journal.
    pub journal_blocks: u64,
    checkpoint_blocks: u64,
    ring_blocks: u64,
    /// Checksums of a row: of every home, and of the slot.
    pub row_words: u64,
    /// Rows of which a table, a block, has the checksums. A small array has several tables too.
    pub table_rows: u64,
    tables: u64,
    /// Rows of a region of which is kept whether a member that was away has missed it. No region has rows of two bands.
    pub region_rows: u64,
    /// Journal blocks for the collection of a band row.
    pub collection_room: u64,
}

impl Raid4SmrLayout {
    /// The layout for so many homes with so many band rows, and so many slots.
    pub fn new(
        durability: &DurabilitySettings,
        homes: usize,
        bands: &HomeBands,
        slots: u64,
    ) -> Raid4SmrLayout {
        let homes = homes as u64;
        let (places, band_rows) = (homes * bands.rows(), bands.band_rows());
        // A run of places has three words, and so has a block that stands alone.
        let of_places = 24 * places;
        let bits = Bits::bytes_max(places) + homes * Bits::bytes_max(bands.rows());
        let of_slots = Bits::bytes_max(slots) + 24 * slots;
        let of_bands = 8 * band_rows * (1 + homes);
        let members = (1 + COLUMNS_MAX * MEMBER_BYTES) as u64;
        let row_words = homes + 1;
        let rows = bands.rows().max(slots);
        let table_rows = (rows / TABLES_MIN).clamp(1, SUMS_PER_PAGE as u64 / row_words);
        let tables = rows.div_ceil(table_rows);
        let of_tables = Bits::bytes_max(tables) + 8 * places.min(UNREADABLE_MAX as u64);
        let region_rows = region_rows(bands);
        let of_regions = 8 + Bits::bytes_max((rows + tables).div_ceil(region_rows));
        let all = [of_places, bits, of_slots, of_bands, of_tables, of_regions];
        let bytes = members + 64 + all.iter().sum::<u64>();
        let checkpoint_blocks = JournalSettings::checkpoint_blocks_for(bytes);
        let ring_blocks = durability.ring_blocks;
        let journal_blocks = JournalSettings::area_blocks_for(checkpoint_blocks, ring_blocks);
        let collection_room = collection_records(bands.band_blocks(), homes);
        Raid4SmrLayout {
            journal_blocks,
            checkpoint_blocks,
            ring_blocks,
            row_words,
            table_rows,
            tables,
            region_rows,
            collection_room,
        }
    }

    /// The log on the parity disk, as long as a ring: an entry has the blocks of a portion of a request at most, and a
    /// parity for each.
    pub fn log(&self) -> Extent {
        Extent::new(self.journal_blocks, self.ring_blocks)
    }

    /// The tables of checksums, on the data disk and on the parity disk.
    pub fn tables(&self) -> Extent {
        Extent::new(self.log().end().0, self.tables)
    }

    /// How words are cut into tables, each a region of which one block is the table.
    pub fn table_shape(&self) -> RegionShape {
        let words = self.table_rows * self.row_words;
        RegionShape::new(self.tables * words, words)
    }

    /// How so many rows, the tables among them, are cut into regions that a member may have missed.
    pub fn missed_shape(&self, rows: u64) -> RegionShape {
        RegionShape::without_tables(rows, self.region_rows)
    }

    /// Where the rows of the data disk and of the parity disk begin. The data disk has nothing in the place of the
    /// log, so that both are alike.
    pub fn first_block(&self) -> u64 {
        self.tables().end().0
    }

    /// Journal blocks for so many blocks that are changed at once, and the collections that they are the cause of.
    /// Each block may be noted by itself, come to nothing, and be flushed by itself.
    pub fn room_for(&self, blocks: u64, collections: u64) -> u64 {
        3 * blocks + self.collection_room * collections + 1
    }

    /// Journal blocks of a request at most, or of a portion of one.
    pub fn room_most(&self) -> u64 {
        self.ring_blocks / 4
    }

    /// Blocks that a ring must have so that a block can be changed: one band row may be collected to make room for it,
    /// and its own be due then.
    pub fn ring_blocks_min(&self) -> u64 {
        4 * self.room_for(1, 2)
    }

    /// The copies of the journal, on the data disk, the parity disk and the spares behind them with so many blocks.
    pub fn copies(&self, homes: usize, members: &[BlockCount]) -> Vec<JournalSettings> {
        let copy = |(at, blocks): (usize, &BlockCount)| JournalSettings {
            layer: LayerKind::Array,
            port: Port((homes + at) as u8),
            member_blocks: *blocks,
            area: Extent::new(0, self.journal_blocks),
            checkpoint_blocks: self.checkpoint_blocks,
            required_features: FEATURE_MIRRORED,
            data: None,
        };
        members.iter().enumerate().map(copy).collect()
    }
}

/// Rows of a region: the most that share out a band evenly. A home is written from some row to the end of a region, and
/// what lies on the next tracks behind that must be of another band, or have been written later.
fn region_rows(bands: &HomeBands) -> u64 {
    let most = (bands.rows() / REGIONS_MIN).clamp(1, REGION_ROWS_MAX).min(bands.band_blocks());
    let shares_out = |rows: &u64| bands.band_blocks().is_multiple_of(*rows);
    let found = (most.div_ceil(4)..=most).rev().find(shares_out);
    found.unwrap_or(bands.band_blocks())
}
