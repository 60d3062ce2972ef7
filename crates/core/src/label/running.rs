//! The labels of a stack that runs: moves of the count beside the operations of the layers.

use super::moving::{LabelWrite, Move, Step};
use super::store::{CannotMove, Labels};
use crate::buffer::{BufferSlice, Buffers};
use crate::disk::DiskOp;
use crate::error::IoError;
use crate::extent::Extent;
use crate::operation::{Cause, Operation, RequestId};
use crate::rng::Rng;
use crate::units::{Duration, Instant};
use alloc::vec::Vec;

/// In the ids of operations on labels. No operation of a layer has it.
const LABEL_INDEX: u32 = u32::MAX;
/// The stream of random numbers that marks are made of.
const STREAM: u64 = 0x6d61_726b;

/// What is done on a disk of a move.
enum Stage {
    /// The count moves.
    Move(Move),
    /// A disk has gone while it did. What was written on the others must not be torn together with what
    /// follows it, so that is made durable first.
    Settle,
}

/// An operation on a label that a disk has.
struct InFlight {
    serial: u32,
    disk: usize,
    /// `None`: a flush.
    write: Option<LabelWrite>,
    buffer: BufferSlice,
    /// When the disk was asked for it.
    since: Instant,
    /// The move waits for it. It does not once the disk is lost.
    is_awaited: bool,
}

/// How a move goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It waits for disks.
    Waits,
    /// The label is durable on all disks, or there was nothing to be moved.
    Ended,
    /// The count cannot move any more.
    Impossible,
}

/// What is around the labels.
pub(crate) struct Surroundings<'a> {
    pub now: Instant,
    /// By the place of a disk: it is lost.
    pub is_lost: &'a dyn Fn(usize) -> bool,
    /// By the place of a disk: it takes no part.
    pub is_held: &'a dyn Fn(usize) -> bool,
    pub buffers: &'a mut Buffers,
    /// Takes operations for the disk at a place.
    pub submit: &'a mut dyn FnMut(usize, DiskOp),
}

/// The labels of a stack that runs, and the move that is under way.
pub(crate) struct RunningLabels {
    pub labels: Labels,
    rng: Rng,
    stage: Option<Stage>,
    /// A disk has gone that took part.
    is_broken: bool,
    in_flight: Vec<InFlight>,
    serial: u32,
}

impl RunningLabels {
    /// Labels that were compared, with random numbers from a seed.
    pub fn new(labels: Labels, seed: u64) -> RunningLabels {
        RunningLabels {
            labels,
            rng: Rng::new(seed, STREAM),
            stage: None,
            is_broken: false,
            in_flight: Vec::new(),
            serial: 0,
        }
    }

    /// True of the id of an operation on a label.
    #[inline]
    pub fn is_own(id: RequestId) -> bool {
        id.index() == LABEL_INDEX
    }

    /// A random number for a mark.
    pub fn random(&mut self) -> u32 {
        self.rng.next_u64() as u32
    }

    /// True while a move is under way.
    pub fn is_moving(&self) -> bool {
        self.stage.is_some()
    }

    /// True when no disk has an operation on a label.
    pub fn is_quiet(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Operations on labels that a disk has.
    pub fn in_flight(&self, disk: usize) -> usize {
        self.in_flight.iter().filter(|it| it.disk == disk).count()
    }

    /// Begins a move of the disks that are there.
    pub fn begin(&mut self, around: &mut Surroundings<'_>) -> Progress {
        self.labels.lose_absent(around.is_lost);
        self.labels.hold(around.is_held);
        let random = self.random();
        match self.labels.begin(random) {
            Ok(None) => {
                self.stage = None;
                Progress::Ended
            }
            Ok(Some(moving)) => {
                self.stage = Some(Stage::Move(moving));
                self.go_on(around)
            }
            Err(CannotMove::CountUsedUp | CannotMove::TooManyMarks(_)) => {
                self.stage = None;
                Progress::Impossible
            }
        }
    }

    /// Goes on with a move as far as disks have done what they were asked for. Those that are lost now
    /// take no part any more.
    pub fn go_on(&mut self, around: &mut Surroundings<'_>) -> Progress {
        loop {
            self.is_broken |= self.labels.lose_absent(around.is_lost);
            for it in &mut self.in_flight {
                it.is_awaited &= !(around.is_lost)(it.disk);
            }
            if self.in_flight.iter().any(|it| it.is_awaited) {
                return Progress::Waits;
            }
            if core::mem::take(&mut self.is_broken) {
                self.stage = Some(Stage::Settle);
                let present: Vec<usize> = self.labels.present().collect();
                for disk in present {
                    self.issue(Step::Flush(disk), around);
                }
                continue;
            }
            let steps = match &mut self.stage {
                None => return Progress::Ended,
                Some(Stage::Settle) => return self.begin(around),
                Some(Stage::Move(moving)) => moving.next_steps(),
            };
            if steps.is_empty() {
                if let Some(Stage::Move(moving)) = self.stage.take() {
                    self.labels.end(&moving);
                }
                return Progress::Ended;
            }
            for step in steps {
                self.issue(step, around);
            }
        }
    }

    fn issue(&mut self, step: Step, around: &mut Surroundings<'_>) {
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let id = RequestId::new(LABEL_INDEX, serial);
        let cause = Cause::Metadata;
        let (disk, write, op) = match step {
            Step::Flush(disk) => {
                let (operation, extent, buffer) =
                    (Operation::Flush, Extent::EMPTY, BufferSlice::EMPTY);
                (disk, None, DiskOp { id, operation, extent, buffer, cause })
            }
            Step::Write(write) => {
                let sealed = self.labels.sealed(&write);
                let (address, block) = sealed.expect("a block holds the copies of a move");
                let buffer = around.buffers.allocate(1);
                let bytes = around.buffers.bytes_mut(buffer);
                bytes.expect("labels are kept on disks that hold bytes").copy_from_slice(&block);
                let (operation, extent) = (Operation::WRITE, Extent::new(address, 1));
                (write.index, Some(write), DiskOp { id, operation, extent, buffer, cause })
            }
        };
        let buffer = op.buffer;
        let since = around.now;
        self.in_flight.push(InFlight { serial, disk, write, buffer, since, is_awaited: true });
        (around.submit)(disk, op);
    }

    /// When a disk will have taken too long for its label, by the places of disks of which that is known.
    pub fn late_at(
        &self,
        patience: impl Fn(usize) -> Option<Duration>,
    ) -> Option<(Instant, usize)> {
        let awaited = self.in_flight.iter().filter(|it| it.is_awaited);
        let late = awaited.filter_map(|it| Some((it.since + patience(it.disk)?, it.disk)));
        late.min()
    }

    /// A disk has ended an operation on its label. True when it is of no use any more: the operation has
    /// failed.
    pub fn ended(
        &mut self,
        id: RequestId,
        result: Result<(), IoError>,
        buffers: &mut Buffers,
    ) -> bool {
        let at = self.in_flight.iter().position(|it| it.serial == id.generation());
        let at = at.expect("an operation on a label was answered twice");
        let InFlight { disk, write, buffer, is_awaited, .. } = self.in_flight.swap_remove(at);
        buffers.release(buffer);
        if !is_awaited {
            return false;
        }
        match (result, write) {
            (Err(_), _) => {
                self.labels.lose(disk);
                self.is_broken = true;
                return true;
            }
            (Ok(()), Some(write)) => self.labels.wrote(write),
            (Ok(()), None) => {}
        }
        false
    }
}
