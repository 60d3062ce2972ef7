//! Disks that hold their writes back while a stack comes up.

use crate::support::plain;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::{Arrival, StackBuilder};
use imbrex_core::units::Instant;
use imbrex_serve::clock::WallClock;
use imbrex_serve::disk::{DirectIo, FileDisk, HeldWrites};
use std::fs;
use std::path::Path;

const BLOCKS: u64 = 16;

/// Sends requests one after another and keeps what the reads found.
struct Script<'a> {
    requests: &'a [(Operation, Extent, u8)],
    sent: usize,
    answered: usize,
    buffer: BufferSlice,
    found: Vec<Vec<u8>>,
    results: Vec<Result<(), IoError>>,
}

impl Frontend for Script<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        (self.sent == self.answered && !self.finished()).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        let (operation, extent, fill) = self.requests[self.sent];
        let buffer = match operation {
            Operation::Read | Operation::Write { .. } => buffers.allocate(extent.blocks.0),
            _ => BufferSlice::EMPTY,
        };
        if matches!(operation, Operation::Write { .. }) {
            buffers.bytes_mut(buffer).expect("bytes").fill(fill);
        }
        (self.sent, self.buffer) = (self.sent + 1, buffer);
        Some(Arrival { tag: Tag(0), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        self.results.push(completion.result);
        let (operation, ..) = self.requests[self.answered];
        self.answered += 1;
        if operation == Operation::Read {
            // The first byte of each block tells the whole, because blocks are filled.
            let bytes = buffers.bytes(self.buffer).expect("bytes");
            self.found.push(bytes.chunks(4096).map(|block| block[0]).collect());
        }
        buffers.release(self.buffer);
    }

    fn finished(&self) -> bool {
        self.answered == self.requests.len()
    }
}

fn carry_out(
    engine: &mut Engine,
    clock: &mut WallClock,
    requests: &[(Operation, Extent, u8)],
) -> Vec<Vec<u8>> {
    let (results, found) = results_of(engine, clock, requests);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    found
}

/// How each request ended, and for each read the first byte of each block.
pub fn results_of(
    engine: &mut Engine,
    clock: &mut WallClock,
    requests: &[(Operation, Extent, u8)],
) -> (Vec<Result<(), IoError>>, Vec<Vec<u8>>) {
    let mut script = Script {
        requests,
        sent: 0,
        answered: 0,
        buffer: BufferSlice::EMPTY,
        found: Vec::new(),
        results: Vec::new(),
    };
    engine.run(clock, &mut script, &mut |_, _| {});
    (script.results, script.found)
}

fn held_disk(path: &Path) -> (Engine, WallClock, HeldWrites) {
    let (clock, waker) = WallClock::alone().expect("an epoll instance");
    let held = HeldWrites::default();
    let disk = FileDisk::open(path, plain(BLOCKS), DirectIo::Off, waker).expect("a disk");
    let mut builder = StackBuilder::new(0);
    let top = builder.disk(plain(BLOCKS));
    let engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(held.hold(disk))],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    (engine, clock, held)
}

pub const ZERO: Operation =
    Operation::Zero { durability: imbrex_core::operation::Durability::Cached, may_unmap: false };

pub const WRITES: [(Operation, Extent, u8); 5] = [
    (Operation::WRITE, extent(2, 6), 7),
    (Operation::Flush, Extent::EMPTY, 0),
    (ZERO, extent(3, 2), 0),
    (Operation::WRITE, extent(4, 1), 8),
    (Operation::Flush, Extent::EMPTY, 0),
];

pub const fn extent(start: u64, blocks: u64) -> Extent {
    Extent::new(start, blocks)
}

#[test]
fn held_writes_can_be_read_and_are_not_in_the_file_before_they_are_released() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk.img");
    let before = vec![1; 4096 * BLOCKS as usize];
    fs::write(&path, &before).expect("a file");
    let read = [(Operation::Read, extent(0, 10), 0)];
    let expected = vec![vec![1, 1, 7, 0, 8, 7, 7, 7, 1, 1]];

    let (mut engine, mut clock, held) = held_disk(&path);
    carry_out(&mut engine, &mut clock, &WRITES);
    assert_eq!(carry_out(&mut engine, &mut clock, &read), expected);
    assert!(fs::read(&path).expect("the file") == before, "not yet");

    held.release().expect("a good disk");
    assert_eq!(carry_out(&mut engine, &mut clock, &read), expected);
    let file = fs::read(&path).expect("the file");
    let blocks: Vec<u8> = file.chunks(4096).map(|block| block[0]).collect();
    assert_eq!(blocks[..10], expected[0]);
    let more = [(Operation::WRITE, extent(15, 1), 9)];
    carry_out(&mut engine, &mut clock, &more);
    assert_eq!(fs::read(&path).expect("the file")[15 * 4096], 9);
}

#[test]
fn held_writes_that_are_never_released_are_never_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk.img");
    let before = vec![1; 4096 * BLOCKS as usize];
    fs::write(&path, &before).expect("a file");
    let (mut engine, mut clock, held) = held_disk(&path);
    carry_out(&mut engine, &mut clock, &WRITES);
    drop((engine, held));
    assert!(fs::read(&path).expect("the file") == before);
}

/// Submits a read to its disk, releases the writes before it has ended, and takes what it found then.
struct ReleasesEarly {
    disk: imbrex_serve::disk::HeldDisk,
    held: Option<HeldWrites>,
}

impl Disk for ReleasesEarly {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let is_read = op.operation == Operation::Read;
        self.disk.submit(now, op, buffers);
        if is_read && let Some(held) = self.held.take() {
            held.release().expect("a good disk");
        }
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.disk.poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn abandon(&mut self) {
        self.disk.abandon();
    }
}

/// A stack that comes up may begin to read at once, for a rebuild: what it has written must be there when the read ends
/// behind the release.
#[test]
fn a_read_that_began_before_the_release_finds_what_was_held_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk.img");
    fs::write(&path, vec![1; 4096 * BLOCKS as usize]).expect("a file");
    let (mut clock, waker) = WallClock::alone().expect("an epoll instance");
    let held = HeldWrites::default();
    let disk = FileDisk::open(&path, plain(BLOCKS), DirectIo::Off, waker).expect("a disk");
    let disk = ReleasesEarly { disk: held.hold(disk), held: Some(held) };
    let mut builder = StackBuilder::new(0);
    let top = builder.disk(plain(BLOCKS));
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(disk)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    carry_out(&mut engine, &mut clock, &WRITES);
    let read = [(Operation::Read, extent(0, 10), 0)];
    let expected = vec![vec![1, 1, 7, 0, 8, 7, 7, 7, 1, 1]];
    assert_eq!(carry_out(&mut engine, &mut clock, &read), expected, "it began before");
    let after = [(Operation::WRITE, extent(4, 2), 9), read[0]];
    let expected = vec![vec![1, 1, 7, 0, 9, 9, 7, 7, 1, 1]];
    assert_eq!(carry_out(&mut engine, &mut clock, &after), expected, "nothing is held any more");
}
