//! A recording disk that can go away, or of which some blocks cannot be read.

use crate::crashtest::recording_disk::RecordingDisk;
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::{Instant, Lba};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// What can be done to a disk while it runs.
#[derive(Clone)]
pub struct Strings {
    /// How many more operations it takes; then it is gone.
    pub operations_left: Rc<Cell<u64>>,
    /// Blocks that cannot be read until they are written.
    pub unreadable: Rc<RefCell<BTreeSet<u64>>>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { operations_left: Rc::new(Cell::new(u64::MAX)), unreadable: Rc::default() }
    }
}

impl Strings {
    /// Takes note of an operation. The error with which it ends.
    fn pull(&self, op: &DiskOp) -> Result<(), IoError> {
        match self.operations_left.get() {
            0 => return Err(IoError::Lost),
            u64::MAX => {}
            left => self.operations_left.set(left - 1),
        }
        let unreadable = &mut *self.unreadable.borrow_mut();
        if unreadable.is_empty() {
            return Ok(());
        }
        match op.operation {
            Operation::Read if unreadable.iter().any(|at| op.extent.contains(Lba(*at))) => {
                Err(IoError::Medium)
            }
            Operation::Write { .. } | Operation::Zero { .. } => {
                unreadable.retain(|at| !op.extent.contains(Lba(*at)));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A recording disk with strings to it. When it is gone, every operation ends as one of a lost disk.
pub struct StringedDisk {
    inner: RecordingDisk,
    strings: Strings,
    refused: VecDeque<(Instant, RequestId, IoError)>,
}

impl StringedDisk {
    /// A disk on which such strings pull.
    pub fn new(inner: RecordingDisk, strings: Strings) -> StringedDisk {
        StringedDisk { inner, strings, refused: VecDeque::new() }
    }
}

impl Disk for StringedDisk {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        match self.strings.pull(&op) {
            Ok(()) => self.inner.submit(now, op, buffers),
            Err(error) => self.refused.push_back((now, op.id, error)),
        }
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if let Some((_, id, error)) = self.refused.pop_front() {
            return Some(DiskCompletion { id, result: Err(error) });
        }
        match self.strings.operations_left.get() {
            0 => {
                let id = self.inner.break_off(now)?;
                Some(DiskCompletion { id, result: Err(IoError::Lost) })
            }
            _ => self.inner.poll(now, buffers),
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let refused = self.refused.front().map(|(at, ..)| *at);
        refused.or(self.inner.next_event())
    }
}
