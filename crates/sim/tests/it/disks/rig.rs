//! One simulated disk under a stack without layers, driven by hand.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind, Stamp};
use imbrex_core::disk::Disk;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, Tag};
use imbrex_core::stack::{Arrival, DiskId, Stack, StackBuilder};
use imbrex_core::units::{Instant, Lba};
use imbrex_drives::{DiskOptions, DiskStatistics, Drive, SimulatedDisk};
use std::rc::Rc;

/// What a closed loop measured.
pub struct Measured {
    /// Response times in the order of completion, nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// From the first arrival to the last completion.
    pub elapsed_s: f64,
}

impl Measured {
    pub fn per_second(&self) -> f64 {
        self.latencies_ns.len() as f64 / self.elapsed_s
    }

    pub fn mean_ms(&self) -> f64 {
        self.latencies_ns.iter().sum::<u64>() as f64 / self.latencies_ns.len() as f64 / 1e6
    }
}

struct InFlight {
    since: Instant,
    buffer: BufferSlice,
}

/// An answered operation.
pub struct Answer {
    pub latency_ns: u64,
    pub result: Result<(), IoError>,
    /// The stamps read or written.
    pub stamps: Vec<Stamp>,
    /// The bytes read or written.
    pub bytes: Vec<u8>,
}

pub struct Rig {
    stack: Stack,
    disk: SimulatedDisk,
    buffers: Buffers,
    pub now: Instant,
    pub statistics: Rc<DiskStatistics>,
    /// By tag.
    in_flight: Vec<Option<InFlight>>,
}

impl Rig {
    pub fn new(drive: &str, options: DiskOptions) -> Rig {
        Rig::of(&Drive::open(drive).unwrap(), options)
    }

    pub fn of(drive: &Drive, options: DiskOptions) -> Rig {
        let disk = SimulatedDisk::new(drive, &options).unwrap();
        let mut builder = StackBuilder::new(1);
        let node = builder.disk(disk.geometry().clone());
        Rig {
            stack: builder.build(node),
            statistics: disk.statistics(),
            disk,
            buffers: Buffers::new(options.contents),
            now: Instant::ZERO,
            in_flight: Vec::new(),
        }
    }

    pub fn disk(&self) -> &SimulatedDisk {
        &self.disk
    }

    pub fn blocks(&self) -> u64 {
        self.disk.geometry().blocks.0
    }

    /// Hands the disk an operation now. A write's blocks are stamped with their address and
    /// `version`, or filled with it.
    pub fn submit(&mut self, operation: Operation, extent: Extent, version: u64) {
        let blocks = if operation.has_data() { extent.blocks.0 } else { 0 };
        let buffer = self.buffers.allocate(blocks);
        if self.buffers.kind() == ContentKind::Stamped
            && let Some(stamps) = self.buffers.stamps_mut(buffer)
        {
            for (i, stamp) in stamps.iter_mut().enumerate() {
                let lba = Lba(extent.start.0 + i as u64);
                *stamp = Stamp { lba, version };
            }
        } else if let Some(bytes) = self.buffers.bytes_mut(buffer) {
            bytes.fill(version as u8);
        }
        let free = self.in_flight.iter().position(Option::is_none);
        let tag = free.unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        self.in_flight[tag] = Some(InFlight { since: self.now, buffer });
        let arrival = Arrival { tag: Tag(tag as u64), operation, extent, buffer };
        self.stack.handle_request(self.now, arrival, &mut self.buffers);
        while let Some((_, op)) = self.stack.poll_disk_op() {
            self.disk.submit(self.now, op, &mut self.buffers);
        }
    }

    /// Moves time on to the next answer.
    pub fn next_answer(&mut self) -> Answer {
        loop {
            while let Some(completion) = self.disk.poll(self.now, &mut self.buffers) {
                let disk = DiskId(0);
                self.stack.handle_disk_completion(self.now, disk, completion, &mut self.buffers);
            }
            while let Some((_, op)) = self.stack.poll_disk_op() {
                self.disk.submit(self.now, op, &mut self.buffers);
            }
            if let Some(completion) = self.stack.poll_reply() {
                let entry = &mut self.in_flight[completion.tag.0 as usize];
                let InFlight { since, buffer } = entry.take().expect("a known tag");
                let answer = Answer {
                    latency_ns: self.now.since(since).0,
                    result: completion.result,
                    stamps: self.buffers.stamps(buffer).unwrap_or(&[]).to_vec(),
                    bytes: self.buffers.bytes(buffer).unwrap_or(&[]).to_vec(),
                };
                self.buffers.release(buffer);
                return answer;
            }
            let next = self.disk.next_event().expect("an operation is in flight");
            assert!(next >= self.now, "time goes back");
            self.now = next;
        }
    }

    /// One operation from its arrival to its answer.
    pub fn one(&mut self, operation: Operation, extent: Extent, version: u64) -> Answer {
        self.submit(operation, extent, version);
        self.next_answer()
    }

    pub fn write(&mut self, extent: Extent, version: u64) {
        self.one(Operation::WRITE, extent, version).result.unwrap();
    }

    pub fn read(&mut self, extent: Extent) -> Vec<Stamp> {
        let answer = self.one(Operation::Read, extent, 0);
        answer.result.unwrap();
        answer.stamps
    }

    /// `count` operations, `depth` of them in flight at a time.
    pub fn closed_loop(
        &mut self,
        depth: usize,
        count: usize,
        mut next: impl FnMut(usize) -> (Operation, Extent),
    ) -> Measured {
        let begin = self.now;
        let mut latencies_ns = Vec::with_capacity(count);
        let mut submitted = 0;
        while latencies_ns.len() < count {
            while submitted < count && submitted - latencies_ns.len() < depth {
                let (operation, extent) = next(submitted);
                self.submit(operation, extent, 1);
                submitted += 1;
            }
            latencies_ns.push(self.next_answer().latency_ns);
        }
        Measured { latencies_ns, elapsed_s: self.now.since(begin).as_seconds() }
    }
}
