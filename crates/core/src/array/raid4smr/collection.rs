//! One band row on its way to the spare one.

use super::directory::{Decision, Place};
use super::home_reads::HomeReads;
use crate::buffer::BufferSlice;
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Step {
    /// It is not its turn.
    Due,
    /// Writes of requests that may have to do with it come to an end.
    Waiting,
    /// The slots in rows of the spare band row are read.
    ReadingSlots,
    /// That the parity of the spare band row is about to change, and what these slots have, becomes durable.
    Announcing,
    /// The homes of the spare band row are taken out of the parity.
    Clearing,
    /// This becomes durable.
    FlushingCleared,
    /// That it is becomes durable.
    NotingCleared,
    /// The blocks of a home are read, from its band and from the data disk.
    ReadingBand,
    /// The zone of a home is emptied.
    Resetting,
    /// The band of a home is written.
    WritingBand,
    /// Their checksums are written.
    WritingTables,
    /// The homes are flushed.
    FlushingHomes,
    /// That they have what they will have becomes durable.
    NotingHomes,
    /// The homes are added to the parity of the spare band row.
    Summing,
    /// All members are flushed.
    Flushing,
    /// That the band row lies elsewhere becomes durable.
    Recording,
    /// Reads of what is to be the next spare band row come to an end.
    Draining,
}

/// A write that waits until the collection is done.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Waiting {
    /// The part of the request.
    pub task: u32,
    /// The place of its first row, where it goes home.
    pub goes_home: Option<Place>,
}

/// A band row on its way.
#[derive(Debug, SavedValue)]
pub struct Collection {
    /// Which one it is, in the order of the decisions.
    pub number: u64,
    pub decision: Decision,
    pub step: Step,
    /// The home that is worked on.
    pub home: usize,
    /// Operations in flight.
    pub outstanding: u32,
    /// The band of the home, from its first block on; before that the slots in rows of the spare band row, from
    /// `first_slot` on.
    pub band: BufferSlice,
    pub first_slot: u64,
    /// The sum of the bands that were written.
    pub sum: BufferSlice,
    /// What is read of the home, and then of the data disk for it.
    pub reads: HomeReads,
    /// Places whose blocks no member can give: the homes have nothing there in the end.
    pub unreadable: Vec<Place>,
    /// The blocks of the home that were on the data disk, in the order of their slots: slot and place in the
    /// band.
    pub slots: Vec<(u64, u64)>,
    /// Where they are read to.
    pub slot_blocks: BufferSlice,
    /// For each place of the band of the home whether it gets a block.
    pub is_copied: Vec<bool>,
    /// Which places of the band of the home are written.
    pub written: Range<u64>,
    /// For each home and place whether something is there in the end, row by row.
    pub held: Vec<bool>,
    /// Homes of the spare band row were taken out of the parity.
    pub has_cleared: bool,
    /// Writes with a smaller number are durable when the members were flushed.
    pub settles: u64,
    /// Something could not be read or written.
    pub has_failed: bool,
    /// Writes that wait for its end.
    pub waiting: Vec<Waiting>,
}

impl Collection {
    /// One that was decided.
    pub fn new(number: u64, decision: Decision) -> Collection {
        let places = decision.live.len();
        Collection {
            number,
            decision,
            step: Step::Due,
            home: 0,
            outstanding: 0,
            band: BufferSlice::EMPTY,
            first_slot: 0,
            sum: BufferSlice::EMPTY,
            reads: HomeReads::default(),
            unreadable: Vec::new(),
            slots: Vec::new(),
            slot_blocks: BufferSlice::EMPTY,
            is_copied: Vec::new(),
            written: 0..0,
            held: vec![false; places],
            has_cleared: false,
            settles: 0,
            has_failed: false,
            waiting: Vec::new(),
        }
    }

    /// True when it must come to its end: the parity is about to change, or has.
    pub fn is_final(&self) -> bool {
        matches!(self.step, Step::Summing | Step::Flushing | Step::Recording | Step::Draining)
    }
}
