//! What a buffer notes of its coming up and going down, and of the request that zeroes.

use super::codec::Live;
use crate::error::IoError;
use crate::lifecycle::OpenError;
use crate::operation::Request;
use crate::saved::{Saved, SavedValue};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How far going down has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub(super) enum Closing {
    #[default]
    No,
    /// Everything leaves.
    Destaging,
    /// The last flush is on its way.
    Flushing,
    /// The ledger wants the last map.
    Draining,
    /// It has it.
    Closed,
}

/// What a buffer notes of its life.
#[derive(Debug, Default, Saved)]
pub(super) struct Life {
    /// Why nothing can be handed down any more.
    pub failure: Option<IoError>,
    pub closing: Closing,
    /// Requests that wait until a batch and all before it are below.
    pub flushes: Vec<(u32, u64)>,
    /// Requests whose flush below is on its way.
    pub flushing: Vec<u32>,
    /// What is read while the buffer comes up.
    #[saved(absent)]
    pub opening: Option<Box<Opening>>,
}

/// A run of the log that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogRead {
    pub entry: u32,
    pub part: u64,
    pub live: Live,
    pub blocks: u64,
}

/// What is read while the buffer comes up.
#[derive(Debug, Default)]
pub(super) struct Opening {
    pub reads: Vec<LogRead>,
    pub next: usize,
    pub in_flight: u32,
    pub error: Option<OpenError>,
}

/// How far the request that zeroes has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum ZeroStep {
    /// Copies are dropped; the number is that of the next block.
    Dropping(u64),
    /// It is done below.
    Below,
    /// It is flushed there.
    Flushing,
    /// The log is told.
    Recorded,
}

/// The request that zeroes.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Zero {
    pub request: Request,
    pub step: ZeroStep,
    pub left: u32,
}

/// Requests that wait for one that zeroes, and that one.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Held {
    pub zero: Option<Zero>,
    pub queue: VecDeque<Request>,
    /// Scratch space for the entries that a request touches.
    pub touched: Vec<u32>,
}

impl Held {
    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.zero.is_none() && self.queue.is_empty()
    }
}
