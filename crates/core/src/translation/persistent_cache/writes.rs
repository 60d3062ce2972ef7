//! Writes that are not issued in full, and writes in flight.

use super::block_map::SUPERSEDES_NOTHING;
use super::classifier::Classifier;
use super::settings::BypassSettings;
use super::streams::Streams;
use crate::map::BandId;
use crate::saved::Saved;
use crate::units::{BlockCount, Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What became of the first blocks of a write that are not issued yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FirstBlocks {
    /// This many were issued.
    Issued(BlockCount),
    /// They wait for a rewrite, or for an operation in flight.
    Waits,
}

/// The queue of writes, and what is known of those in flight.
#[derive(Debug, Saved)]
pub(super) struct Writes {
    /// Writes that are not issued in full, in the order in which they may proceed.
    pub queue: VecDeque<u32>,
    /// Since when writes have waited for room.
    waiting_since: Option<Instant>,
    /// None where all writes go to the log.
    #[saved(each)]
    pub streams: Option<Streams>,
    /// Of writes that go around the log one by one.
    #[saved(each)]
    pub classifier: Option<Classifier>,
    /// Writes to the log and of the bypass that are in flight, and their blocks.
    in_flight: u32,
    blocks_in_flight: u64,
    /// The bands with a bypass write in flight.
    bypassing: Vec<BandId>,
    /// Of each write in flight, the lowest log position that it supersedes.
    superseding: Vec<u64>,
}

impl Writes {
    /// No writes yet. Streams are followed where they may go around the log.
    pub fn new(bypass: Option<BypassSettings>, has_records: bool) -> Writes {
        Writes {
            queue: VecDeque::new(),
            waiting_since: None,
            streams: bypass
                .filter(|bypass| bypass.classes.is_none())
                .map(|bypass| Streams::new(bypass, has_records)),
            classifier: bypass.and_then(|bypass| bypass.classes).map(Classifier::new),
            in_flight: 0,
            blocks_in_flight: 0,
            bypassing: Vec::new(),
            superseding: Vec::new(),
        }
    }

    /// Writes wait for room, or do so no longer; returns how long they did when they did.
    pub fn waits_for_room(&mut self, waits: bool, now: Instant) -> Option<Duration> {
        match self.waiting_since {
            None if waits => self.waiting_since = Some(now),
            Some(since) if !waits => {
                self.waiting_since = None;
                return Some(now.since(since));
            }
            _ => {}
        }
        None
    }

    /// Writes to the log and of the bypass that are in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The blocks of these.
    pub fn blocks_in_flight(&self) -> u64 {
        self.blocks_in_flight
    }

    /// A write to the log begins that supersedes the log from the position `supersedes` on.
    pub fn begin(&mut self, blocks: BlockCount, supersedes: u64) {
        self.in_flight += 1;
        self.blocks_in_flight += blocks.0;
        if supersedes != SUPERSEDES_NOTHING {
            self.superseding.push(supersedes);
        }
    }

    /// A write has ended, well or not.
    pub fn end(&mut self, blocks: BlockCount) {
        self.in_flight -= 1;
        self.blocks_in_flight -= blocks.0;
    }

    /// The record of a write is appended, or that of its failure.
    pub fn end_of_superseding(&mut self, supersedes: u64) {
        if supersedes != SUPERSEDES_NOTHING {
            remove_one(&mut self.superseding, supersedes);
        }
    }

    /// The position before which every slot is superseded by what is recorded, when every slot
    /// before `position` is superseded.
    pub fn recorded_before(&self, position: u64) -> u64 {
        let lowest = self.superseding.iter().copied().min();
        lowest.map_or(position, |lowest| lowest.min(position))
    }

    /// A write of the bypass to a band begins.
    pub fn begin_bypass(&mut self, band: BandId) {
        self.bypassing.push(band);
    }

    /// A write of the bypass to a band has ended.
    pub fn end_bypass(&mut self, band: BandId) {
        remove_one(&mut self.bypassing, band);
    }

    /// True while a write of the bypass to the band is in flight.
    pub fn is_bypassing(&self, band: BandId) -> bool {
        self.bypassing.contains(&band)
    }

    /// True while a write of the bypass is in flight to a band of which `is_meant` is true.
    pub fn bypasses_any(&self, is_meant: impl Fn(BandId) -> bool) -> bool {
        self.bypassing.iter().any(|band| is_meant(*band))
    }
}

/// Takes a value out of a list that holds it.
pub(super) fn remove_one<T: PartialEq>(list: &mut Vec<T>, value: T) {
    let index = list.iter().position(|item| *item == value);
    list.swap_remove(index.expect("it was put into the list before"));
}
