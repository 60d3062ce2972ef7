//! What makes a cache outlive a crash.
//!
//! The cache keeps a [journal](Journal) at the start of its flash; the slots lie behind it. Its
//! durable state is which *dirty* blocks lie in which slots, with their checksums: a table that
//! changes at the moment a record is appended, so that a checkpoint can be taken at any time.
//!
//! * A host write goes to fresh slots, never over data that may still be needed. When the data is
//!   written, a record maps the blocks to their new slots; the host is answered when the record is
//!   written, a forced write when it is flushed.
//! * A slot whose block went elsewhere waits in a quarantine until the record that says so is
//!   durable.
//! * A destage makes its blocks durable in flash, for a write below that fails may take what was
//!   there away; then it writes below, then flushes the backing, and only then frees the blocks, by a
//!   record.
//! * Before the first block of a region may become dirty, the region's bit in the
//!   [write-intent page](intent) below is durable.
//!
//! A failed write or flush of the journal, or a failed flush of the backing, is sticky: writes and
//! flushes fail from then on, and reads go on as far as what they read is known to be the newest.

mod checkpoint;
pub mod codec;
mod fail;
mod flushes;
pub(super) mod intent;
mod open;
mod read;
mod release;
mod replay;
mod table;
mod turn;
mod write;

use super::Cache;
use crate::buffer::BufferSlice;
use crate::durability::{DurabilitySettings, FlushTicket, Journal, JournalSettings, Lsn, LsnQueue};
use crate::error::IoError;
use crate::layer::Context;
use crate::operation::{Operation, Request};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use checkpoint::Checkpointing;
pub(super) use checkpoint::checkpoint_blocks;
use flushes::{BackingFlushes, BackingTicket};
use intent::{IntentPage, WriteIntent};
use open::{Closing, Opening};
use release::Batch;
use table::SlotTable;
use write::Work;

/// Tags with this bit belong to the durable parts of the cache, and not to a job.
pub(super) const SERVICE_BIT: u64 = 1 << 62;

/// What an operation of the durable parts is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Service {
    /// A flush of the backing for whoever asked.
    BackingFlush,
    /// The newest write-intent page.
    IntentWrite,
    /// A write-intent page, by its number, when the cache comes up.
    IntentRead(u64),
}

impl Service {
    fn tag(self) -> u64 {
        SERVICE_BIT
            | match self {
                Service::BackingFlush => 0,
                Service::IntentWrite => 1,
                Service::IntentRead(page) => 2 + page,
            }
    }

    fn from_tag(tag: u64) -> Service {
        match tag & !SERVICE_BIT {
            0 => Service::BackingFlush,
            1 => Service::IntentWrite,
            page => Service::IntentRead(page - 2),
        }
    }
}

/// How far the life of the cache has come.
#[derive(Debug)]
enum Life {
    /// Not up yet, or down.
    Shut,
    Opening(Box<Opening>),
    Running,
    /// The flash cannot be read; what lies below outside the marked regions is served.
    Degraded(IntentPage),
    /// The last destages are brought to an end, then the closing checkpoint is written.
    Closing(Closing),
}

/// The durable parts of a cache.
#[derive(Debug)]
pub(super) struct Durable {
    settings: DurabilitySettings,
    journal: Journal,
    table: SlotTable,
    intent: WriteIntent,
    flushes: BackingFlushes,
    life: Life,
    checkpointing: Checkpointing,
    /// A flush of the backing has failed.
    failed: Option<IoError>,
    /// What host writes in hand keep of their own, by job.
    works: Vec<Work>,
    /// Host writes that wait for their turn to be issued.
    gate: VecDeque<u32>,
    /// Most blocks issued for a host write at once.
    portion_blocks: u64,
    /// Journal blocks that writes in flight may need.
    reserved: u64,
    /// Every record was appended before this place.
    appended: Lsn,
    /// Every record before it has been written.
    written: Lsn,
    /// Jobs that end when a record is written.
    after_written: LsnQueue<u32>,
    /// Jobs that end or go on when a flush of the journal is done.
    after_flushed: VecDeque<(FlushTicket, u32)>,
    /// Jobs that go on when a flush of the backing is done.
    after_backing: VecDeque<(BackingTicket, u32)>,
    /// Blocks of data written since the last flush of the journal.
    unflushed: u64,
    /// A flush of the journal that nobody but the cache itself waits for.
    own_flush: Option<FlushTicket>,
    batch: Batch,
    /// The write-intent page in flight.
    page: BufferSlice,
    checksums: Vec<u32>,
}

impl Durable {
    /// The durable parts of a cache with `slots` slots over `blocks` blocks.
    pub fn new(
        settings: DurabilitySettings,
        journal: JournalSettings,
        slots: u32,
        blocks: u64,
        batch_blocks_max: u64,
    ) -> Durable {
        let ring = journal.ring().blocks.0;
        Durable {
            settings,
            journal: Journal::new(journal),
            table: SlotTable::new(slots),
            intent: WriteIntent::new(blocks),
            flushes: BackingFlushes::default(),
            life: Life::Shut,
            checkpointing: Checkpointing::No,
            failed: None,
            works: Vec::new(),
            gate: VecDeque::new(),
            portion_blocks: write::portion_blocks(ring),
            reserved: 0,
            appended: Lsn(0),
            written: Lsn(0),
            after_written: LsnQueue::default(),
            after_flushed: VecDeque::new(),
            after_backing: VecDeque::new(),
            unflushed: 0,
            own_flush: None,
            batch: Batch::new(batch_blocks_max),
            page: BufferSlice::EMPTY,
            checksums: Vec::new(),
        }
    }

    /// Why nothing can be made durable any more, if that is so. Sticky.
    pub fn failure(&self) -> Option<IoError> {
        self.failed.or(self.journal.failure())
    }

    /// Asks for a flush of the journal and of the data before it.
    fn flush_journal(&mut self, ctx: &mut Context<'_>) -> FlushTicket {
        self.unflushed = 0;
        self.journal.flush(ctx)
    }

    /// What a host write keeps of its own.
    fn work(&mut self, job: u32) -> &mut Work {
        let index = job as usize;
        if index >= self.works.len() {
            self.works.resize_with(index + 1, Work::default);
        }
        &mut self.works[index]
    }

    /// True when nothing is under way that could set something else going.
    fn is_still(&self) -> bool {
        self.journal.is_idle()
            && self.flushes.is_idle()
            && self.intent.is_settled()
            && self.batch.is_empty()
            && self.table.quarantined() == 0
            && self.checkpointing == Checkpointing::No
    }
}

impl Cache {
    /// The durable parts, where they are known to be there.
    fn durable(&mut self) -> &mut Durable {
        self.durable.as_deref_mut().expect("a durable cache")
    }

    /// Why a durable cache cannot make anything durable any more.
    #[inline]
    pub(super) fn durable_failure(&self) -> Option<IoError> {
        self.durable.as_deref().and_then(Durable::failure)
    }
}

impl Cache {
    /// A request to a cache that cannot make anything durable any more, or that is not up.
    pub(super) fn submit_failed(&mut self, request: Request, ctx: &mut Context<'_>) {
        let is_shut = self.durable().is_shut();
        let readable = request.operation == Operation::Read && !is_shut;
        if readable && self.is_newest_below(request.extent, ctx) {
            return self.read_unchanged(request, ctx);
        }
        let error = if is_shut {
            IoError::ShutDown
        } else {
            self.durable_failure().unwrap_or(IoError::Medium)
        };
        ctx.finish(request.id, Err(error));
    }
}
