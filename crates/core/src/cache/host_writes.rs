//! How host writes get into flash: in place, or to fresh slots that a record names.

use super::entries::NONE;
use super::jobs::JobKind;
use crate::saved::{Saved, SavedValue};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Blocks written to flash at once for one job.
const PORTION_BLOCKS_MAX: u64 = 1024;

/// Where a write to fresh slots stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
enum Step {
    /// It has not asked for its turn, or it has ended.
    #[default]
    Idle,
    /// It waits for its turn, a portion of it is on its way, or all its records are appended.
    UnderWay,
}

/// What a write to fresh slots keeps beside its job. It is written in portions, each as long as its
/// regions are marked and as there is room for its records.
#[derive(Debug, Default, SavedValue)]
pub(super) struct FreshWrite {
    step: Step,
    /// The slot that each entry goes to; [`NONE`] stands for the entry's own, which it waits for.
    pub slots: Vec<u32>,
    /// First entry that has no record yet, and the first behind the portion on its way.
    pub next: usize,
    pub end: usize,
    /// Journal blocks kept for the records of the portion.
    pub reserved: u64,
}

impl FreshWrite {
    /// Begins anew.
    pub fn begin(&mut self) {
        self.slots.clear();
        self.next = 0;
    }

    /// The write has asked for its turn.
    pub fn ask_for_turn(&mut self) {
        assert!(!self.slots.contains(&NONE), "a write without a slot");
        self.step = Step::UnderWay;
    }

    /// The write ends. True when it had asked for its turn.
    pub fn end(&mut self) -> bool {
        core::mem::take(&mut self.step) == Step::UnderWay
    }
}

/// The host writes in hand.
#[derive(Debug, Saved)]
pub(super) struct HostWrites {
    /// The kind of their jobs: [`JobKind::FlashWrite`] or [`JobKind::FreshWrite`].
    pub kind: JobKind,
    /// What writes to fresh slots keep, by job.
    fresh: Vec<FreshWrite>,
    /// Writes to fresh slots that wait for their turn to be issued.
    pub turns: VecDeque<u32>,
    /// Most blocks issued for a write at once.
    pub portion_blocks: u64,
    /// Scratch space for the checksums of a record.
    pub checksums: Vec<u32>,
}

impl HostWrites {
    /// A block is written over where it lies.
    pub fn in_place() -> HostWrites {
        HostWrites {
            kind: JobKind::FlashWrite,
            fresh: Vec::new(),
            turns: VecDeque::new(),
            portion_blocks: 0,
            checksums: Vec::new(),
        }
    }

    /// A block is never written over; the records of the writes go to a ring of `ring_blocks`.
    pub fn to_fresh_slots(ring_blocks: u64) -> HostWrites {
        // 70 blocks need one journal block, whatever their slots. The records of a portion fit what
        // a small ring has free.
        let portion = 70 * (ring_blocks / 8).max(1);
        HostWrites {
            kind: JobKind::FreshWrite,
            portion_blocks: portion.min(PORTION_BLOCKS_MAX),
            ..HostWrites::in_place()
        }
    }

    /// True when a block is written over where it lies.
    #[inline]
    pub fn are_in_place(&self) -> bool {
        self.kind == JobKind::FlashWrite
    }

    /// What a write to fresh slots keeps of its own.
    pub fn fresh(&mut self, job: u32) -> &mut FreshWrite {
        let index = job as usize;
        if index >= self.fresh.len() {
            self.fresh.resize_with(index + 1, FreshWrite::default);
        }
        &mut self.fresh[index]
    }
}
