//! What was done on a disk, or on a part of it, by who wanted it and how.

use super::arm::{AccessTime, Direction};
use super::statistics::OperationKind;
use imbrex_core::operation::Cause;
use imbrex_core::units::Duration;
use std::cell::Cell;

const CAUSES: usize = Cause::ALL.len();

#[derive(Debug, Default)]
struct Tally {
    operations: Cell<u64>,
    blocks: Cell<u64>,
}

/// Counters of a disk or of a part of it.
///
/// Operations and blocks are counted when they arrive; busy time when the medium moves blocks, which
/// for cached writes is later.
#[derive(Debug, Default)]
pub struct Tallies {
    tallies: [[Tally; CAUSES]; 4],
    busy_ns: [[Cell<u64>; CAUSES]; 2],
    seek_ns: Cell<u64>,
    seek_tracks: Cell<u64>,
    rotation_ns: Cell<u64>,
    transfer_ns: Cell<u64>,
}

#[inline]
pub(super) fn add(cell: &Cell<u64>, amount: u64) {
    cell.set(cell.get() + amount);
}

impl Tallies {
    /// Operations of a kind that arrived for a cause.
    pub fn operations(&self, kind: OperationKind, cause: Cause) -> u64 {
        self.tallies[kind as usize][cause as usize].operations.get()
    }

    /// Operations of a kind that arrived, whoever wanted them.
    pub fn operations_of(&self, kind: OperationKind) -> u64 {
        let of_cause = |cause: &Cause| self.operations(kind, *cause);
        Cause::ALL.iter().map(of_cause).sum()
    }

    /// Blocks of the operations of a kind that arrived for a cause.
    pub fn blocks(&self, kind: OperationKind, cause: Cause) -> u64 {
        self.tallies[kind as usize][cause as usize].blocks.get()
    }

    /// Blocks of the operations of a kind that arrived, whoever wanted them.
    pub fn blocks_of(&self, kind: OperationKind) -> u64 {
        let of_cause = |cause: &Cause| self.blocks(kind, *cause);
        Cause::ALL.iter().map(of_cause).sum()
    }

    /// Time the medium was busy in a direction for a cause.
    pub fn busy(&self, direction: Direction, cause: Cause) -> Duration {
        Duration(self.busy_ns[direction as usize][cause as usize].get())
    }

    /// Time the medium was busy. Where operations overlap, as on a solid-state disk, time counts
    /// once.
    pub fn busy_total(&self) -> Duration {
        Duration(self.busy_ns.iter().flatten().map(Cell::get).sum())
    }

    /// Time spent moving the arm, switching heads and settling.
    pub fn seek_time(&self) -> Duration {
        Duration(self.seek_ns.get())
    }

    /// Cylinders that the arm passed.
    pub fn seek_tracks(&self) -> u64 {
        self.seek_tracks.get()
    }

    /// Time spent waiting for blocks to come round.
    pub fn rotation_time(&self) -> Duration {
        Duration(self.rotation_ns.get())
    }

    /// Time blocks spent under the heads, or on the channels of a solid-state disk.
    pub fn transfer_time(&self) -> Duration {
        Duration(self.transfer_ns.get())
    }

    /// All of it is forgotten.
    pub(super) fn restart(&self) {
        for tally in self.tallies.iter().flatten() {
            tally.operations.set(0);
            tally.blocks.set(0);
        }
        let times = [&self.seek_ns, &self.seek_tracks, &self.rotation_ns, &self.transfer_ns];
        self.busy_ns.iter().flatten().chain(times).for_each(|cell| cell.set(0));
    }

    #[inline]
    pub(super) fn arrived(&self, kind: OperationKind, cause: Cause, blocks: u64) {
        let tally = &self.tallies[kind as usize][cause as usize];
        add(&tally.operations, 1);
        add(&tally.blocks, blocks);
    }

    #[inline]
    pub(super) fn waited(&self, direction: Direction, cause: Cause, busy_ns: u64) {
        add(&self.busy_ns[direction as usize][cause as usize], busy_ns);
    }

    #[inline]
    pub(super) fn moved(&self, direction: Direction, cause: Cause, busy_ns: u64, time: AccessTime) {
        self.waited(direction, cause, busy_ns);
        add(&self.seek_ns, time.seek_ns);
        add(&self.seek_tracks, time.seek_tracks);
        add(&self.rotation_ns, time.rotation_ns);
        add(&self.transfer_ns, time.transfer_ns);
    }
}
