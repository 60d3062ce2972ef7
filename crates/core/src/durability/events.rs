//! What a journal tells its layer.

use super::ids::{FlushTicket, Lsn};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Port;
use crate::lifecycle::OpenError;
use crate::saved::SavedValue;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Something a layer that owns a journal must know.
#[derive(Debug)]
pub enum JournalEvent {
    /// Everything that recovery needs was read; the layer takes it back and answers with
    /// [`Journal::begin`](super::Journal::begin).
    Recovered(Box<Recovery>),
    /// The journal takes records from now on: after a format or a recovery.
    Opened,
    /// The member cannot be opened. Nothing was written.
    Refused(OpenError),
    /// Every record up to and with this place has been handed to the disk.
    Written(Lsn),
    /// Which copies are in is recorded, and answers that waited for that may go out. Told where no record was ever
    /// written; otherwise [`Written`](Self::Written) is.
    AnswersReleased,
    /// A flush has completed: the records appended and the data completed before it was asked for
    /// are durable.
    Flushed {
        /// Every ticket up to and with this one is done.
        ticket: FlushTicket,
        /// Every record before this place is durable.
        durable_before: Lsn,
    },
    /// The layer hands over the next piece of the checkpoint that is being written:
    /// [`Journal::take_piece`](super::Journal::take_piece).
    PieceWanted,
    /// A checkpoint has become durable, and with it every record before it; there is room again.
    Checkpointed {
        /// Every record before this place is durable.
        durable_before: Lsn,
    },
    /// The copy behind this port is in, and all copies say so durably.
    CopyAdmitted(Port),
    /// An operation of the copy behind this port has failed, and the copy is out. Told at once;
    /// what is said to be written or durable afterwards comes when that is recorded.
    CopyOut(Port),
    /// The closing checkpoint is durable.
    Closed,
    /// A write or flush of the journal has failed. Nothing can be made durable any more: whatever
    /// waits for a place or a ticket fails, and so does every later write and flush. Told again
    /// when the layer commits or flushes afterwards.
    Failed(IoError),
}

/// What recovery has found.
#[derive(Debug)]
pub struct Recovery {
    /// The bytes that the layer gave for the newest checkpoint, parts included; where the parts are
    /// records, for the map before them.
    pub checkpoint: Vec<u8>,
    /// The records after it, in their order: those of the parts, then those of the journal.
    pub records: Vec<Replayed>,
    /// The device was shut down in good order: there are no records.
    pub clean: bool,
    /// The generation of the checkpoint.
    pub generation: u64,
}

/// A record that is replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// What it says.
    pub kind: u8,
    /// The words that belong to it.
    pub payload: Vec<u8>,
    /// Where its data lies.
    pub data: Option<Extent>,
    /// The checksum of each block of the data.
    pub checksums: Vec<u32>,
    /// Which blocks of the data are there.
    pub intact: Intact,
}

/// Which blocks of a record's data are there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Intact {
    /// All: a flush covered the record, or it has no data, or every block was read and is right.
    All,
    /// By block: a block that is not there must be rolled back to what it was before.
    Blocks(Vec<bool>),
}

impl Intact {
    /// True when the block of the data with this index is there.
    pub fn block(&self, index: usize) -> bool {
        match self {
            Intact::All => true,
            Intact::Blocks(blocks) => blocks[index],
        }
    }
}

/// Things that wait for a place in the journal, in the order of their places.
#[derive(Debug, SavedValue)]
pub struct LsnQueue<T> {
    queue: VecDeque<(Lsn, T)>,
}

impl<T> Default for LsnQueue<T> {
    fn default() -> LsnQueue<T> {
        LsnQueue { queue: VecDeque::new() }
    }
}

impl<T> LsnQueue<T> {
    /// Lets something wait for a place that is not before that of any other.
    pub fn push(&mut self, lsn: Lsn, thing: T) {
        debug_assert!(self.queue.back().is_none_or(|(last, _)| *last <= lsn));
        self.queue.push_back((lsn, thing));
    }

    /// The next thing whose place is at or before `lsn`.
    pub fn pop_up_to(&mut self, lsn: Lsn) -> Option<T> {
        self.queue.front().filter(|(place, _)| *place <= lsn)?;
        self.pop()
    }

    /// The next thing whose place is before `lsn`.
    pub fn pop_before(&mut self, lsn: Lsn) -> Option<T> {
        self.queue.front().filter(|(place, _)| *place < lsn)?;
        self.pop()
    }

    /// The next thing, whatever it waits for.
    pub fn pop(&mut self) -> Option<T> {
        self.queue.pop_front().map(|(_, thing)| thing)
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many things wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
}
