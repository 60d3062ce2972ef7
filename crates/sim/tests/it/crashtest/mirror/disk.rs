//! A recording disk that can go away: from then on every operation ends as one of a lost disk.

use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::operation::RequestId;
use imbrex_core::units::Instant;
use imbrex_sim::crashtest::recording_disk::RecordingDisk;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// How many more operations a disk takes.
pub type OperationsLeft = Rc<Cell<u64>>;

pub struct VanishingDisk {
    inner: RecordingDisk,
    left: OperationsLeft,
    refused: VecDeque<(Instant, RequestId)>,
}

impl VanishingDisk {
    pub fn new(inner: RecordingDisk, left: OperationsLeft) -> VanishingDisk {
        VanishingDisk { inner, left, refused: VecDeque::new() }
    }
}

impl Disk for VanishingDisk {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        match self.left.get() {
            0 => self.refused.push_back((now, op.id)),
            u64::MAX => self.inner.submit(now, op, buffers),
            left => {
                self.left.set(left - 1);
                self.inner.submit(now, op, buffers);
            }
        }
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if let Some((_, id)) = self.refused.pop_front() {
            let result = Err(IoError::Lost);
            return Some(DiskCompletion { id, result });
        }
        let completion = self.inner.poll(now, buffers)?;
        let result = match self.left.get() {
            0 => Err(IoError::Lost),
            _ => completion.result,
        };
        Some(DiskCompletion { result, ..completion })
    }

    fn next_event(&self) -> Option<Instant> {
        let refused = self.refused.front().map(|(at, _)| *at);
        refused.or(self.inner.next_event())
    }
}
