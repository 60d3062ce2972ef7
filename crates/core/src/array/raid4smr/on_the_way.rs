//! Writes on their way to the members, and what waits for them.

use crate::buffer::BufferSlice;
use crate::layer::Port;
use crate::map::{AddressMap, Slab};
use crate::operation::RequestId;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A write that is being written to the log.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Logging {
    /// The parity disk.
    pub port: Port,
    /// The block there where its entry begins.
    pub at: u64,
    /// A bit for each of its rows: whether it is in the entry.
    pub rows: u64,
    pub buffer: BufferSlice,
}

/// A write that waits until it is durable that it comes.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Noted {
    pub task: u32,
    /// The parity disk on which it is in the log. When that goes meanwhile its loss must be durable first: nobody would
    /// know after a crash that the write may have begun.
    pub log_on: Option<Port>,
}

/// A flush of all members.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Flushing {
    pub job: u32,
    /// It makes all writes with a smaller number durable.
    pub before: u64,
    /// No write that had ended when it began has this number or a greater one.
    pub end: u64,
}

/// Writes that have not begun, and flushes that make others durable.
#[derive(Debug, Default, SavedValue)]
pub struct OnTheWay {
    /// By its task.
    pub logging: AddressMap<Logging>,
    /// Writes that are noted and wait until that is durable, by their numbers.
    pub awaiting_note: AddressMap<Noted>,
    /// Writes that wait until others are durable.
    pub awaiting_settling: Vec<u32>,
    /// These are being made durable.
    pub is_settling: bool,
    /// Flushes by their jobs.
    pub flushes: Vec<Flushing>,
    /// Promises that are kept and not recorded: the request, and the number before which all must be settled.
    pub awaiting_record: Vec<(RequestId, u64)>,
    /// Requests that are answered when a flush behind them has ended.
    pub forced: Slab<RequestId>,
}

/// Whether nothing may change, for a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub enum Quiet {
    /// Anything may.
    #[default]
    No,
    /// What is under way comes to its end.
    Wanted,
    /// Tables of checksums are written.
    Tables,
    /// The members are flushed.
    Flushing,
}

/// Lets requests change something, or holds them back for a checkpoint.
#[derive(Debug, Default, SavedValue)]
pub struct Gate {
    /// Requests in hand that change something, and portions of such.
    pub changing: u32,
    /// Those that wait.
    pub held_back: VecDeque<u32>,
    pub quiet: Quiet,
}
