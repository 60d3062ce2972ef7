//! Flushes and lost nodes under slices and spans, one operation at a time.

use crate::common::harness::{JumpingClock, MemoryDisk};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::planted::PlantedBug;
use imbrex_core::slice::Slice;
use imbrex_core::span::Span;
use imbrex_core::stack::{Arrival, DiskId, Stack, StackBuilder};
use imbrex_core::units::{BlockCount, Instant};

const NOW: Instant = Instant(1);
const MEDIUM: Result<(), IoError> = Err(IoError::Medium);
const LOST: Result<(), IoError> = Err(IoError::Lost);

/// A stack whose disks answer as the test says.
pub struct Bench {
    pub stack: Stack,
    buffers: Buffers,
    /// What reached a disk.
    pub seen: Vec<(DiskId, Operation, Extent)>,
    in_flight: Vec<(DiskId, DiskOp)>,
}

impl Bench {
    pub fn new(stack: Stack) -> Bench {
        Bench {
            stack,
            buffers: Buffers::new(ContentKind::Counted),
            seen: Vec::new(),
            in_flight: Vec::new(),
        }
    }

    pub fn send(&mut self, tag: u64, operation: Operation, extent: Extent) {
        let buffer = match operation.has_data() {
            true => self.buffers.allocate(extent.blocks.0),
            false => BufferSlice::EMPTY,
        };
        let arrival = Arrival { tag: Tag(tag), operation, extent, buffer };
        self.stack.handle_request(NOW, arrival, &mut self.buffers);
        while let Some((disk, op)) = self.stack.poll_disk_op() {
            self.seen.push((disk, op.operation, op.extent));
            self.in_flight.push((disk, op));
        }
    }

    /// Ends the oldest operation of a disk.
    pub fn end(&mut self, disk: u16, result: Result<(), IoError>) {
        let of_disk = |(other, _): &(DiskId, DiskOp)| other.0 == disk;
        let at = self.in_flight.iter().position(of_disk);
        let (disk, op) = self.in_flight.remove(at.expect("an operation"));
        let completion = DiskCompletion { id: op.id, result };
        self.stack.handle_disk_completion(NOW, disk, completion, &mut self.buffers);
    }

    pub fn reply(&mut self) -> Option<(u64, Result<(), IoError>)> {
        let Completion { tag, result } = self.stack.poll_reply()?;
        Some((tag.0, result))
    }

    /// Sends a request whose operations end well but where the disk is lost, and returns its answer.
    pub fn ask(&mut self, operation: Operation, extent: Extent) -> Result<(), IoError> {
        self.send(0, operation, extent);
        while let Some((disk, _)) = self.in_flight.first() {
            let (disk, is_lost) = (disk.0, self.stack.is_disk_lost(*disk));
            self.end(disk, if is_lost { LOST } else { Ok(()) });
        }
        let (_, result) = self.reply().expect("an answer");
        result
    }
}

/// Two slices of one disk under a span.
fn two_slices(bug: Option<PlantedBug>) -> Bench {
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry::plain(BlockCount(100), Media::Conventional);
    let disk = builder.disk(geometry.clone());
    let failure = FlushFailure::default();
    let slices = [Extent::new(10, 30), Extent::new(50, 40)].map(|wanted| {
        let (slice, told) = Slice::new(wanted, &geometry, &failure).expect("a slice");
        builder.part(Box::new(slice), told, disk)
    });
    let below = slices.map(|slice| builder.geometry(slice));
    let (span, told) = Span::new(&below).expect("plain nodes");
    let top = builder.layer(Box::new(span), told, &slices);
    let mut stack = builder.build(top);
    if let Some(bug) = bug {
        stack.plant(bug);
    }
    Bench::new(stack)
}

#[test]
fn requests_are_split_at_a_border_and_flushes_bear_the_blocks_of_their_slice() {
    let mut bench = two_slices(None);
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(28, 4)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::new(30, 40)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::new(5, 2)), Ok(()));
    let disk = DiskId(0);
    assert_eq!(
        bench.seen,
        [
            (disk, Operation::WRITE, Extent::new(38, 2)),
            (disk, Operation::WRITE, Extent::new(50, 2)),
            (disk, Operation::Flush, Extent::new(10, 30)),
            (disk, Operation::Flush, Extent::new(50, 40)),
            (disk, Operation::Flush, Extent::new(50, 40)),
            (disk, Operation::Flush, Extent::new(15, 2)),
        ]
    );
}

/// One flush of the first slice fails, another of the second is under way meanwhile. The answers of
/// that one, of a later flush of the second slice and of a forced write to it.
fn after_a_failed_flush(bug: Option<PlantedBug>) -> [Result<(), IoError>; 3] {
    let mut bench = two_slices(bug);
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(35, 1)), Ok(()));
    bench.send(1, Operation::Flush, Extent::new(0, 30));
    bench.send(2, Operation::Flush, Extent::new(30, 40));
    bench.end(0, MEDIUM);
    assert_eq!(bench.reply(), Some((1, MEDIUM)));
    bench.end(0, Ok(()));
    let (_, meanwhile) = bench.reply().expect("an answer");
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(35, 1)), Ok(()));
    assert_eq!(bench.ask(Operation::Read, Extent::new(35, 1)), Ok(()));
    let later = bench.ask(Operation::Flush, Extent::new(30, 40));
    let forced = bench.ask(Operation::WRITE_DURABLE, Extent::new(35, 1));
    [meanwhile, later, forced]
}

#[test]
fn a_flush_that_fails_through_one_slice_fails_for_all() {
    assert_eq!(after_a_failed_flush(None), [MEDIUM; 3]);
    let bug = Some(PlantedBug::SliceFlushFailureForgotten);
    assert_eq!(after_a_failed_flush(bug), [Ok(()); 3]);
}

/// A span of three disks.
fn three_disks() -> Bench {
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry::plain(BlockCount(10), Media::SolidState);
    let disks = [(); 3].map(|()| builder.disk(geometry.clone()));
    let (span, told) = Span::new(&[&geometry; 3]).expect("plain nodes");
    assert_eq!((told.blocks, told.media), (BlockCount(30), Media::SolidState));
    let top = builder.layer(Box::new(span), told, &disks);
    Bench::new(builder.build(top))
}

#[test]
fn a_lost_node_costs_its_window_and_what_no_flush_had_covered() {
    let mut bench = three_disks();
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(8, 14)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), Ok(()));
    bench.stack.lose_disk(DiskId(1));
    assert_eq!(bench.ask(Operation::Read, Extent::new(3, 7)), Ok(()));
    assert_eq!(bench.ask(Operation::Read, Extent::new(9, 2)), LOST);
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(15, 1)), LOST);
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), Ok(()), "all was covered");

    let mut bench = three_disks();
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), Ok(()));
    assert_eq!(bench.ask(Operation::WRITE, Extent::new(15, 1)), Ok(()));
    assert_eq!(bench.ask(Operation::WRITE_DURABLE, Extent::new(25, 1)), Ok(()));
    bench.stack.lose_disk(DiskId(1));
    bench.stack.lose_disk(DiskId(2));
    assert_eq!(bench.ask(Operation::Flush, Extent::new(0, 10)), Ok(()));
    assert_eq!(bench.ask(Operation::Flush, Extent::new(20, 10)), Ok(()), "it was durable");
    assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), LOST, "it was not");
}

/// A span of a span of two disks and of a third one.
fn span_over_a_span() -> Bench {
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry::plain(BlockCount(10), Media::SolidState);
    let [a, b, c] = [(); 3].map(|()| builder.disk(geometry.clone()));
    let (inner, told) = Span::new(&[&geometry; 2]).expect("plain nodes");
    let inner = builder.layer(Box::new(inner), told.clone(), &[a, b]);
    let (outer, told) = Span::new(&[&told, &geometry]).expect("plain nodes");
    let top = builder.layer(Box::new(outer), told, &[inner, c]);
    Bench::new(builder.build(top))
}

#[test]
fn a_flush_of_some_blocks_of_a_node_covers_no_others_of_it() {
    for (flushed, answer) in [(10, LOST), (20, Ok(()))] {
        let mut bench = span_over_a_span();
        assert_eq!(bench.ask(Operation::WRITE, Extent::new(8, 4)), Ok(()));
        let some = Extent::new(0, flushed);
        assert_eq!(bench.ask(Operation::Flush, some), Ok(()));
        bench.stack.lose_disk(DiskId(0));
        bench.stack.lose_disk(DiskId(1));
        assert_eq!(bench.ask(Operation::Flush, Extent::EMPTY), answer, "{some:?}");
    }
}

#[test]
fn a_span_comes_up_while_one_node_is_left() {
    for lost in 0..=3 {
        let Bench { mut stack, .. } = three_disks();
        let geometry = Geometry::plain(BlockCount(10), Media::SolidState);
        let disk = || Box::new(MemoryDisk::new(geometry.clone(), 1, 0)) as Box<dyn Disk>;
        (0..lost).for_each(|disk| stack.lose_disk(DiskId(disk)));
        let mut engine = Engine {
            stack,
            disks: vec![disk(), disk(), disk()],
            buffers: Buffers::new(ContentKind::Counted),
            in_flight_max: 1,
        };
        let opened = engine.open(&mut JumpingClock::default(), Start::Recover(None));
        let opened = opened.map_err(|(_, error)| error);
        match lost {
            3 => assert_eq!(opened, Err(OpenError::Io(IoError::Lost))),
            _ => assert_eq!(opened, Ok(())),
        }
    }
}
