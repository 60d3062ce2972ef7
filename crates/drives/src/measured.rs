//! Statistics of a disk that is not simulated.

use super::arm::{AccessTime, Direction};
use super::statistics::{DiskStatistics, Moved, OperationKind};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::Instant;
use std::rc::Rc;

/// A disk that counts what another one does. Busy time is the time in which at least one operation
/// was outstanding, each nanosecond counted for the operation that ended it.
pub struct MeasuredDisk {
    disk: Box<dyn Disk>,
    outstanding: Vec<(DiskOp, Instant)>,
    /// The ids of those, for themselves: a disk may have hundreds of operations, and each end looks for its own.
    ids: Vec<RequestId>,
    busy_until: Instant,
    statistics: Rc<DiskStatistics>,
}

impl MeasuredDisk {
    /// Counts what `disk` does.
    pub fn new(disk: Box<dyn Disk>, statistics: Rc<DiskStatistics>) -> MeasuredDisk {
        let (outstanding, ids, busy_until) = (Vec::new(), Vec::new(), Instant::ZERO);
        MeasuredDisk { disk, outstanding, ids, busy_until, statistics }
    }
}

impl Disk for MeasuredDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if let Some(kind) = OperationKind::of(op.operation) {
            self.statistics.arrived(kind, op.cause, op.extent);
        }
        self.outstanding.push((op, now));
        self.ids.push(op.id);
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let completion = self.disk.poll(now, buffers)?;
        let index = self.ids.iter().position(|id| *id == completion.id);
        let index = index.expect("the disk had the operation");
        self.ids.swap_remove(index);
        let (op, since) = self.outstanding.swap_remove(index);
        let busy = now.since(since.max(self.busy_until));
        self.busy_until = now;
        let direction =
            if op.operation == Operation::Read { Direction::Read } else { Direction::Write };
        if op.operation.has_data() {
            let time = AccessTime { transfer_ns: busy.0, ..AccessTime::default() };
            let (cause, extent, busy_ns, end) = (op.cause, op.extent, busy.0, now);
            self.statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end });
        } else {
            // Flushes are where the writes of a file really take their time.
            self.statistics.waited(direction, op.cause, op.extent, busy.0);
        }
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn abandon(&mut self) {
        self.disk.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::buffer::{BufferSlice, ContentKind};
    use imbrex_core::disk::Media;
    use imbrex_core::extent::Extent;
    use imbrex_core::operation::{Cause, Tag};
    use imbrex_core::stack::{Arrival, StackBuilder};
    use imbrex_core::units::{BlockCount, Duration};
    use std::collections::VecDeque;

    /// Finishes one operation each time it is asked.
    struct OneByOne {
        geometry: Geometry,
        operations: VecDeque<DiskOp>,
    }

    impl Disk for OneByOne {
        fn geometry(&self) -> &Geometry {
            &self.geometry
        }
        fn submit(&mut self, _now: Instant, op: DiskOp, _buffers: &mut Buffers) {
            self.operations.push_back(op);
        }
        fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
            let id = self.operations.pop_front()?.id;
            Some(DiskCompletion { id, result: Ok(()) })
        }
        fn next_event(&self) -> Option<Instant> {
            None
        }
    }

    #[test]
    fn a_nanosecond_is_busy_once_and_a_flush_is_busy_too() {
        let geometry = Geometry::plain(BlockCount(64), Media::Conventional);
        let mut builder = StackBuilder::new(1);
        let top = builder.disk(geometry.clone());
        let mut stack = builder.build(top);
        let statistics = Rc::new(DiskStatistics::default());
        let operations = VecDeque::new();
        let disk = Box::new(OneByOne { geometry, operations });
        let mut disk = MeasuredDisk::new(disk, Rc::clone(&statistics));
        let mut buffers = Buffers::new(ContentKind::Counted);
        let requests = [
            (0, Operation::WRITE, Extent::new(3, 1)),
            (2, Operation::Flush, Extent::EMPTY),
            (4, Operation::Read, Extent::new(9, 1)),
        ];
        for (at, operation, extent) in requests {
            let buffer = match operation {
                Operation::Flush => BufferSlice::EMPTY,
                _ => buffers.allocate(1),
            };
            let arrival = Arrival { tag: Tag(at), operation, extent, buffer };
            stack.handle_request(Instant(at), arrival, &mut buffers);
            let (_, op) = stack.poll_disk_op().expect("sent to the disk");
            disk.submit(Instant(at), op, &mut buffers);
        }
        for now in [10, 35, 41] {
            assert!(disk.poll(Instant(now), &mut buffers).is_some());
        }
        let busy = |direction| statistics.busy(direction, Cause::Host);
        assert_eq!(busy(Direction::Write), Duration(10 + 25));
        assert_eq!(busy(Direction::Read), Duration(6));
        assert_eq!(statistics.busy_total(), Duration(41));
        assert_eq!(statistics.transfer_time(), Duration(16), "a flush moves nothing");
    }
}
