//! Statistics of a disk that is not simulated.

use super::arm::{AccessTime, Direction};
use super::statistics::{DiskStatistics, OperationKind};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::operation::Operation;
use imbrex_core::units::Instant;
use std::rc::Rc;

/// A disk that counts what another one does. Busy time is the time in which at least one operation
/// was outstanding, each nanosecond counted for the operation that ended it.
pub struct MeasuredDisk {
    disk: Box<dyn Disk>,
    outstanding: Vec<(DiskOp, Instant)>,
    busy_until: Instant,
    statistics: Rc<DiskStatistics>,
}

impl MeasuredDisk {
    /// Counts what `disk` does.
    pub fn new(disk: Box<dyn Disk>, statistics: Rc<DiskStatistics>) -> MeasuredDisk {
        let (outstanding, busy_until) = (Vec::new(), Instant::ZERO);
        MeasuredDisk {
            disk,
            outstanding,
            busy_until,
            statistics,
        }
    }
}

impl Disk for MeasuredDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if let Some(kind) = OperationKind::of(op.operation) {
            self.statistics.arrived(kind, op.cause, op.extent.blocks.0);
        }
        self.outstanding.push((op, now));
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let completion = self.disk.poll(now, buffers)?;
        let index = self
            .outstanding
            .iter()
            .position(|(op, _)| op.id == completion.id);
        let (op, since) = self
            .outstanding
            .swap_remove(index.expect("the disk had the operation"));
        let busy = now.since(since.max(self.busy_until));
        self.busy_until = now;
        let direction = if op.operation == Operation::Read {
            Direction::Read
        } else {
            Direction::Write
        };
        if op.operation.has_data() {
            let time = AccessTime {
                seek_ns: 0,
                rotation_ns: 0,
                transfer_ns: busy.0,
            };
            self.statistics
                .moved(direction, op.cause, op.extent, busy.0, time, now);
        }
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }
}
