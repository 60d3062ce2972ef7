//! A disk that sees what a layer does, and fails when it is told to.

use crate::common::crash_disk::{CrashDisk, Cut, Shared};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::Instant;
use std::cell::RefCell;
use std::rc::Rc;

/// How long a refusal takes.
const REFUSAL_NS: u64 = 300;

/// What happens at an operation of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// It fails, and no other.
    Once,
    /// It fails, and every later one.
    FromThenOn,
    /// The power of all disks is cut.
    PowerCut,
}

/// A failure to come.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The port.
    pub port: usize,
    /// How many operations the port has carried out before.
    pub after: u64,
    pub how: How,
}

/// What was seen below a layer, on all of its ports.
#[derive(Default)]
pub struct Witness {
    /// Operations of each port since the fault was set.
    pub operations: Vec<u64>,
    fault: Option<Fault>,
    /// Operations that have failed.
    pub failures: u64,
    /// Operations that were in flight together and must not be, as they were first seen.
    pub overlap: Option<String>,
    /// Blocks of the buffers of the host's requests in flight.
    pub host_blocks: u64,
    /// Most blocks that the layer's own buffers held.
    pub own_blocks_max: u64,
}

impl Witness {
    /// Counts operations anew, with a failure to come.
    pub fn expect(&mut self, ports: usize, fault: Option<Fault>) {
        self.operations = vec![0; ports];
        self.fault = fault;
    }

    /// Takes an operation of a port into account; says what is to happen with it.
    fn count(&mut self, port: usize) -> Option<How> {
        let number = self.operations[port];
        self.operations[port] += 1;
        let fault = self.fault.filter(|fault| fault.port == port)?;
        let fails = match fault.how {
            How::FromThenOn => number >= fault.after,
            How::Once | How::PowerCut => number == fault.after,
        };
        let cuts = fault.how == How::PowerCut;
        self.failures += u64::from(fails && !cuts);
        fails.then_some(fault.how)
    }

    fn look_at(&mut self, buffers: &Buffers) {
        let own = buffers.allocated_blocks() - self.host_blocks;
        self.own_blocks_max = self.own_blocks_max.max(own);
    }
}

/// What becomes of an operation that fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// Nothing is done.
    Refused,
    /// All is done, and the disk says that it was not.
    Done,
    /// A write stops in the middle: it has destroyed what it overlaps, and what it should write
    /// cannot be read. What a flush should cover will never be durable.
    Spoiled,
}

/// The disk behind a port.
pub struct WatchedDisk {
    disk: CrashDisk,
    shared: Rc<RefCell<Shared>>,
    port: usize,
    witness: Rc<RefCell<Witness>>,
    in_flight: Vec<(RequestId, Operation, Extent)>,
    /// Operations that have failed, and when that is told.
    refused: Vec<(Instant, RequestId)>,
    /// Operations that are carried out and said to have failed.
    denied: Vec<RequestId>,
    /// A write that fails is carried out or not, and destroys nothing.
    pub never_spoils: bool,
}

impl WatchedDisk {
    pub fn new(disk: CrashDisk, port: usize, witness: &Rc<RefCell<Witness>>) -> WatchedDisk {
        WatchedDisk {
            shared: disk.shared(),
            disk,
            port,
            witness: Rc::clone(witness),
            in_flight: Vec::new(),
            refused: Vec::new(),
            denied: Vec::new(),
            never_spoils: false,
        }
    }

    fn check_overlap(&self, op: &DiskOp, witness: &mut Witness) {
        // A flush moves nothing: the blocks it bears are those it is for. Nor does a report of zones.
        let moves =
            |operation: Operation| !matches!(operation, Operation::Flush | Operation::ZoneReport);
        let in_flight = self.in_flight.iter().filter(|other| moves(other.1));
        let other = in_flight.filter(|_| moves(op.operation)).find(|(_, operation, extent)| {
            let changes = *operation != Operation::Read || op.operation != Operation::Read;
            changes && extent.overlaps(op.extent)
        });
        if let Some((_, operation, extent)) = other {
            witness.overlap.get_or_insert(format!(
                "port {}: {:?} of {:?} while {operation:?} of {extent:?} is in flight",
                self.port, op.operation, op.extent
            ));
        }
    }

    /// What becomes of the operation; every kind of failure has its turn.
    fn failure_of(&self, op: &DiskOp) -> Failure {
        let number = self.witness.borrow().operations[self.port];
        match (op.operation, number % 3) {
            (Operation::Read | Operation::ZoneReport, _) | (_, 0) => Failure::Refused,
            (Operation::Write { .. } | Operation::Zero { .. } | Operation::ZoneReset, 1) => {
                Failure::Done
            }
            // It moves no data that could be left in the middle.
            (Operation::ZoneReset, _) => Failure::Refused,
            (Operation::Write { .. } | Operation::Zero { .. }, _) if self.never_spoils => {
                Failure::Refused
            }
            _ => Failure::Spoiled,
        }
    }

    fn forget(&mut self, id: RequestId) {
        self.in_flight.retain(|(other, ..)| *other != id);
    }
}

impl Disk for WatchedDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let witness = Rc::clone(&self.witness);
        let mut witness = witness.borrow_mut();
        witness.look_at(buffers);
        self.check_overlap(&op, &mut witness);
        let fault = witness.count(self.port);
        drop(witness);
        self.in_flight.push((op.id, op.operation, op.extent));
        match fault {
            None => return self.disk.submit(now, op, buffers),
            Some(How::PowerCut) => std::panic::resume_unwind(Box::new(Cut)),
            Some(How::Once | How::FromThenOn) => {}
        }
        let failure = self.failure_of(&op);
        if failure == Failure::Done {
            self.denied.push(op.id);
            return self.disk.submit(now, op, buffers);
        }
        if failure == Failure::Spoiled {
            match op.operation {
                Operation::Flush => self.shared.borrow_mut().forget_pending(),
                _ => self.shared.borrow_mut().spoil(op.extent),
            }
        }
        self.refused.push((Instant(now.0 + REFUSAL_NS), op.id));
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.witness.borrow_mut().look_at(buffers);
        if let Some(at) = self.refused.iter().position(|(told, _)| *told <= now) {
            let id = self.refused.remove(at).1;
            self.forget(id);
            return Some(DiskCompletion { id, result: Err(IoError::Medium) });
        }
        let mut completion = self.disk.poll(now, buffers)?;
        self.forget(completion.id);
        if let Some(at) = self.denied.iter().position(|id| *id == completion.id) {
            self.denied.remove(at);
            completion.result = Err(IoError::Medium);
        }
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        let refused = self.refused.iter().map(|(told, _)| *told);
        refused.chain(self.disk.next_event()).min()
    }
}
