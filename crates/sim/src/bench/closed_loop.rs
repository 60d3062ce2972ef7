//! A disk that is kept busy with so many requests at a time.

use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::disk::Disk;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, Tag};
use imbrex_core::stack::{Arrival, DiskId, Stack, StackBuilder};
use imbrex_core::units::{Duration, Instant};
use imbrex_drives::{DiskOptions, DiskStatistics, Drive, DriveError, SimulatedDisk};
use std::rc::Rc;

/// What a run of requests took.
#[derive(Clone, Debug)]
pub struct Run {
    /// Responses in ascending order, nanoseconds.
    pub responses_ns: Vec<u64>,
    /// From the first arrival to the last answer.
    pub elapsed: Duration,
}

impl Run {
    /// Requests per second.
    pub fn per_second(&self) -> f64 {
        self.responses_ns.len() as f64 / self.elapsed.as_seconds()
    }

    /// Mean response in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        let sum: u64 = self.responses_ns.iter().sum();
        sum as f64 / self.responses_ns.len().max(1) as f64 / 1e6
    }

    /// The response that a share of `percent` requests do not exceed, in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        let last = self.responses_ns.len().saturating_sub(1);
        let index = (self.responses_ns.len() as f64 * percent / 100.0) as usize;
        let response_ns = self.responses_ns.get(index.min(last));
        response_ns.map_or(0.0, |ns| *ns as f64 / 1e6)
    }
}

/// A disk of a drive model under a stack without layers.
pub struct ClosedLoop {
    disk: SimulatedDisk,
    stack: Stack,
    buffers: Buffers,
    now: Instant,
    /// By tag.
    in_flight: Vec<Option<(Instant, BufferSlice)>>,
    /// The counters of the disk.
    pub statistics: Rc<DiskStatistics>,
}

impl ClosedLoop {
    /// An idle disk at time 0.
    ///
    /// # Errors
    /// When no disk can be made of the drive.
    pub fn new(drive: &Drive, options: &DiskOptions) -> Result<ClosedLoop, DriveError> {
        let disk = SimulatedDisk::new(drive, options)?;
        let mut builder = StackBuilder::new(1);
        let top = builder.disk(disk.geometry().clone());
        Ok(ClosedLoop {
            stack: builder.build(top),
            buffers: Buffers::new(options.contents),
            now: Instant::ZERO,
            in_flight: Vec::new(),
            statistics: disk.statistics(),
            disk,
        })
    }

    /// Blocks of the disk; sectors where the options say so.
    pub fn blocks(&self) -> u64 {
        self.disk.geometry().blocks.0
    }

    /// Lets time pass with nothing in flight.
    pub fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// The response to a single request.
    pub fn one(&mut self, operation: Operation, extent: Extent) -> Duration {
        self.submit(operation, extent);
        self.next_answer()
    }

    /// `count` requests, `depth` of them in flight at a time.
    pub fn run(
        &mut self,
        depth: usize,
        count: usize,
        mut next: impl FnMut(usize) -> (Operation, Extent),
    ) -> Run {
        let begin = self.now;
        let mut responses_ns = Vec::with_capacity(count);
        let mut submitted = 0;
        while responses_ns.len() < count {
            while submitted < count && submitted - responses_ns.len() < depth {
                let (operation, extent) = next(submitted);
                self.submit(operation, extent);
                submitted += 1;
            }
            responses_ns.push(self.next_answer().0);
        }
        responses_ns.sort_unstable();
        Run { responses_ns, elapsed: self.now.since(begin) }
    }

    fn submit(&mut self, operation: Operation, extent: Extent) {
        let blocks = if operation.has_data() { extent.blocks.0 } else { 0 };
        let buffer = self.buffers.allocate(blocks);
        let free = self.in_flight.iter().position(Option::is_none);
        let tag = free.unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        self.in_flight[tag] = Some((self.now, buffer));
        let arrival = Arrival { tag: Tag(tag as u64), operation, extent, buffer };
        self.stack.handle_request(self.now, arrival, &mut self.buffers);
        self.hand_down();
    }

    fn hand_down(&mut self) {
        while let Some((_, op)) = self.stack.poll_disk_op() {
            self.disk.submit(self.now, op, &mut self.buffers);
        }
    }

    /// Moves time on to the next answer and gives the response.
    fn next_answer(&mut self) -> Duration {
        loop {
            while let Some(completion) = self.disk.poll(self.now, &mut self.buffers) {
                let (disk, buffers) = (DiskId(0), &mut self.buffers);
                self.stack.handle_disk_completion(self.now, disk, completion, buffers);
            }
            self.hand_down();
            if let Some(completion) = self.stack.poll_reply() {
                let entry = self.in_flight[completion.tag.0 as usize].take();
                let (since, buffer) = entry.expect("an answer to a request in flight");
                assert_eq!(completion.result, Ok(()), "a disk without faults fails nothing");
                self.buffers.release(buffer);
                return self.now.since(since);
            }
            self.now = self.disk.next_event().expect("a request is in flight");
        }
    }
}
