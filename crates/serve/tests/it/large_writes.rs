//! Large writes to a file, which are made in portions.

use crate::held::extent;
use crate::support::plain;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{Clock, Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::{Arrival, StackBuilder};
use imbrex_core::units::Instant;
use imbrex_serve::clock::WallClock;
use imbrex_serve::disk::{DirectIo, FileDisk};
use std::fs::{self, File};
use tempfile::TempDir;

const BLOCKS: u64 = 4096;
/// Where the writes go and how long they are.
const WRITES: [(u64, u64); 3] = [(0, 150), (1000, 60), (2000, 1)];

/// Which write has ended, how and when.
type Ended = (u64, Result<(), IoError>, Instant);

/// A clock that goes on by one at each wait.
struct Steps(u64);

impl Clock for Steps {
    fn wait(&mut self, _until: Option<Instant>) -> Instant {
        self.0 += 1;
        Instant(self.0)
    }
}

/// Sends all writes at once, and notes how and when each ended.
#[derive(Default)]
struct AtOnce {
    buffers: Vec<BufferSlice>,
    ended: Vec<Ended>,
}

impl Frontend for AtOnce {
    fn next_arrival(&self) -> Option<Instant> {
        (self.buffers.len() < WRITES.len()).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        let number = self.buffers.len();
        let &(start, blocks) = WRITES.get(number)?;
        let buffer = buffers.allocate(blocks);
        let bytes = buffers.bytes_mut(buffer).expect("bytes");
        for (index, block) in bytes.chunks_mut(4096).enumerate() {
            block.fill(value(number, index));
        }
        self.buffers.push(buffer);
        let (tag, operation) = (Tag(number as u64), Operation::WRITE);
        Some(Arrival { tag, operation, extent: extent(start, blocks), buffer })
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        buffers.release(self.buffers[completion.tag.0 as usize]);
        self.ended.push((completion.tag.0, completion.result, now));
    }

    fn finished(&self) -> bool {
        self.ended.len() == WRITES.len()
    }
}

/// What a block of a write is filled with.
fn value(number: usize, block: usize) -> u8 {
    (number * 80 + block + 1) as u8
}

/// A disk that is given up at an instant, when there is one.
struct GivenUp {
    disk: FileDisk,
    at: Option<Instant>,
}

impl Disk for GivenUp {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if self.at.take_if(|at| *at <= now).is_some() {
            self.disk.abandon();
        }
        self.disk.poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        self.disk.next_event()
    }

    fn abandon(&mut self) {
        self.disk.abandon();
    }
}

/// Makes the writes. How and when each ended, and what is in the file then.
fn make(given_up_at: Option<Instant>) -> (Vec<Ended>, Vec<u8>) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("disk.img");
    File::create(&path).expect("a file").set_len(BLOCKS * 4096).expect("a length");
    let (_, waker) = WallClock::alone().expect("an epoll instance");
    let disk = FileDisk::open(&path, plain(BLOCKS), DirectIo::Off, waker).expect("a disk");
    let mut builder = StackBuilder::new(0);
    let top = builder.disk(plain(BLOCKS));
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(GivenUp { disk, at: given_up_at })],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 8,
    };
    let mut frontend = AtOnce::default();
    engine.run(&mut Steps(0), &mut frontend, &mut |_, _| {});
    (frontend.ended, fs::read(&path).expect("the content"))
}

#[test]
fn a_large_write_takes_several_instants_and_a_small_one_waits_for_none() {
    let (ended, content) = make(None);
    let all_is_well = ended.iter().map(|(number, result, at)| (*number, *result, at.0));
    // 64 blocks at an instant: the second write begins where the first ends.
    let expected = [(2, Ok(()), 1), (0, Ok(()), 3), (1, Ok(()), 4)];
    assert_eq!(all_is_well.collect::<Vec<_>>(), expected);
    for (number, (start, blocks)) in WRITES.into_iter().enumerate() {
        for block in 0..blocks {
            let from = (start + block) as usize * 4096;
            let written = &content[from..from + 4096];
            assert!(written == [value(number, block as usize); 4096], "{block} of {number}");
        }
    }
}

#[test]
fn what_a_disk_has_yet_to_write_when_it_is_given_up_fails_and_is_not_written() {
    let (ended, content) = make(Some(Instant(2)));
    let results = ended.iter().map(|(number, result, _)| (*number, *result));
    let expected = [(2, Ok(())), (0, Err(IoError::Lost)), (1, Err(IoError::Lost))];
    assert_eq!(results.collect::<Vec<_>>(), expected);
    let first_of = |block: usize| content[block * 4096];
    assert_eq!(first_of(63), value(0, 63), "written at the first instant");
    assert_eq!((first_of(64), first_of(1000), first_of(2000)), (0, 0, value(2, 0)));
}
