//! What makes the persistent cache outlive a crash.
//!
//! The map is a function of the newest checkpoint of the [journal](crate::durability) and of the
//! [records](records) after it. The order in which things become durable:
//!
//! * A write goes to its slots in the log, then its record is appended, then it is answered; a
//!   record whose data is not there at recovery is not applied, so the block is what it was before.
//! * A slot is used again only when the record that superseded it is durable, so what a block was
//!   before is still there when a record is not applied.
//! * A band rewrite makes its scratch copy and the new table of checksums durable, then the record
//!   that says so, then the band at home, then the record that ends it. Only when that is durable
//!   may the scratch band, the old table and the gathered slots be used again. In stretches, the next
//!   one goes to the other place of the scratch band and of the table.
//! * The bypass writes home where nothing can be read, durably so: at the write pointer, and not
//!   while the trim that lowered a pointer can still be undone by a crash.
//!
//! For each band the translation keeps a *write pointer*: the number of blocks from its start that
//! can be read at home. What lies above reads as zeroes without being read.
//!
//! Blocks in the log have their checksums in memory, bands have theirs in tables on the disk, and
//! bands that the bypass is filling have theirs in memory until they are full.

mod areas;
mod bypass;
mod checkpoint;
mod checksums;
pub mod codec;
mod events;
mod log_replay;
pub mod records;
mod replay;
mod rewrite;
mod verify;
mod write;
mod zero;

pub use areas::{DurableAreas, conventional_blocks_needed, conventional_zone_blocks};
pub(super) use verify::{Check, PageRead};
pub(super) use write::SUPERSEDES_NOTHING;
pub(super) use zero::Zeroed;

use crate::buffer::BufferSlice;
use crate::durability::{DurabilitySettings, FlushTicket, Journal, Lsn, LsnQueue};
use crate::error::IoError;
use crate::map::BandTable;
use crate::translation::settings::PersistentCacheSettings;
use crate::units::BlockCount;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bypass::{OpenBand, TableWrite};
use checksums::{PageCache, Table};
use verify::Unverified;

/// Ranges in the set of zeroed blocks beyond which a zero is served by appending zeroes to the log.
const ZEROED_RANGES_MAX: usize = 4096;
/// Blocks that may be lost at once, those of writes that may yet fail among them; also the ranges
/// of lost blocks that a checkpoint has room for.
const LOST_BLOCKS_MAX: u64 = 4096;
/// Blocks whose write has failed beyond which the translation takes no more writes: one more may
/// fail then.
const LOST_BLOCKS_TAKEN: u64 = LOST_BLOCKS_MAX - DATA_BLOCKS_MAX;
/// Bands that the bypass fills at once.
const OPEN_BANDS_MAX: usize = 8;
/// Longest run of data that one record speaks of.
pub(super) const DATA_BLOCKS_MAX: u64 = 960;

/// How far the life of a durable translation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Opening,
    Running,
    Closing,
}

/// What a durable translation has beside what every translation has.
#[derive(Debug)]
pub(super) struct Durable {
    stage: Stage,
    pub journal: Journal,
    areas: DurableAreas,
    /// Why no write is taken any more, beside a failure of the journal.
    failed: Option<IoError>,
    /// The journal has said that it failed.
    has_failed: bool,

    /// The checksum of the block in each slot of the log.
    slot_sums: Vec<u32>,
    /// The table of each band.
    tables: Vec<Table>,
    /// The newest generation of a table.
    generation: u64,
    /// The bands that the bypass is filling.
    open: Vec<OpenBand>,
    table_write: Option<TableWrite>,
    pages: PageCache,
    /// Reads of home blocks that wait for pages.
    unverified: Vec<Unverified>,
    /// Scratch space.
    sums: Vec<u32>,

    /// Of each write in flight, the lowest log position that it supersedes.
    superseding: Vec<u64>,
    /// Flushes in flight and the log position before which slots are free when they are done.
    releases: VecDeque<(FlushTicket, u64)>,
    /// The same for the checkpoint in flight.
    checkpoint_release: u64,
    /// The flush for which writes without room wait.
    room_flush: Option<FlushTicket>,
    /// Blocks of data written since a flush was last begun, and how many there may be.
    unflushed_blocks: u64,
    unflushed_blocks_max: u64,

    /// Blocks of the writes in flight, each of which may be lost.
    in_flight_blocks: u64,
    /// Blocks that are lost by the newest checkpoint or by any record since: a power cut may undo
    /// the writes that have taken their place.
    lost_since: u64,
    /// How much less that is when the checkpoint in flight is done.
    checkpoint_forgets: u64,

    /// The place of the newest record.
    last_record: Lsn,
    /// The newest zero.
    zeroed_at: Option<Lsn>,
    /// The end of the last band rewrite.
    home_at: Option<Lsn>,
    /// Jobs that are answered when a record is written.
    answers: LsnQueue<u32>,
    /// Jobs that are answered when a flush is done.
    flushes: VecDeque<(FlushTicket, u32)>,

    rewrite: rewrite::Work,
}

impl Durable {
    /// A translation that is not opened yet, on a disk of `disk_blocks`.
    pub fn new(
        settings: &PersistentCacheSettings,
        durability: &DurabilitySettings,
        bands: &BandTable,
        disk_blocks: BlockCount,
    ) -> Durable {
        let areas = DurableAreas::new(settings, durability, bands);
        Durable {
            stage: Stage::Opening,
            journal: Journal::new(areas.journal_settings(disk_blocks)),
            areas,
            failed: None,
            has_failed: false,
            slot_sums: vec![0; settings.log_blocks.0 as usize],
            tables: vec![Table::NONE; bands.bands() as usize],
            generation: 0,
            open: Vec::new(),
            table_write: None,
            pages: PageCache::default(),
            unverified: Vec::new(),
            sums: Vec::new(),
            superseding: Vec::new(),
            releases: VecDeque::new(),
            checkpoint_release: 0,
            room_flush: None,
            unflushed_blocks: 0,
            unflushed_blocks_max: durability.unflushed_blocks_max,
            in_flight_blocks: 0,
            lost_since: 0,
            checkpoint_forgets: 0,
            last_record: Lsn(0),
            zeroed_at: None,
            home_at: None,
            answers: LsnQueue::default(),
            flushes: VecDeque::new(),
            rewrite: rewrite::Work::new(BufferSlice::EMPTY),
        }
    }

    /// Why nothing can be written any more.
    pub fn failure(&self) -> Option<IoError> {
        self.journal.failure().or(self.failed)
    }

    /// True when work in the background may begin.
    pub fn is_running(&self) -> bool {
        self.stage == Stage::Running && self.failure().is_none()
    }

    /// True when a record is there that a power cut could still undo.
    fn is_unsure(&self, record: Option<Lsn>) -> bool {
        record.is_some_and(|record| record >= self.journal.durable_before())
    }
}
