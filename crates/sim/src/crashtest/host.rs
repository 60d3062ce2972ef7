//! The host of a trial: it plays a workload and checks what it reads, and knows no time but the
//! trial's own.

use super::oracle::{Leniency, Oracle, ReadBack, Violation};
use super::recording_disk::World;
use super::stamp;
use super::workload::{Action, REQUEST_BLOCKS_MAX, Step};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::{Clock, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Instants of a trial before it is declared to be going in circles.
const INSTANTS_MAX: u64 = 100_000;

/// Virtual time that never waits for anything outside.
#[derive(Default)]
pub struct TrialClock {
    now: Instant,
    instants: u64,
}

impl Clock for TrialClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        let until = until.expect("the stack is stuck: requests wait and nothing is due");
        self.instants += 1;
        assert!(
            self.instants < INSTANTS_MAX,
            "the stack goes in circles: {INSTANTS_MAX} instants have passed"
        );
        self.now = self.now.max(until);
        self.now
    }
}

/// Plays a workload.
pub struct Host<'a> {
    steps: std::slice::Iter<'a, Step>,
    world: Rc<RefCell<World>>,
    oracle: &'a mut Oracle,
    seed: u64,
    /// When the next step may come.
    next_at: Instant,
    last_at: Instant,
    /// By the oracle's number of the request.
    in_flight: BTreeMap<usize, (Step, BufferSlice)>,
    leniency: Leniency,
    /// The first thing that was wrong.
    pub violation: Option<Violation>,
}

impl<'a> Host<'a> {
    /// A host that has asked for nothing yet.
    pub fn new(
        steps: &'a [Step],
        world: Rc<RefCell<World>>,
        oracle: &'a mut Oracle,
        seed: u64,
    ) -> Host<'a> {
        let mut host = Host {
            steps: steps.iter(),
            world,
            oracle,
            seed,
            next_at: Instant::ZERO,
            last_at: Instant::ZERO,
            in_flight: BTreeMap::new(),
            leniency: Leniency::default(),
            violation: None,
        };
        host.schedule();
        host
    }

    /// Lets reads fail, once something was broken on purpose.
    pub fn lenient(mut self, leniency: Leniency) -> Host<'a> {
        self.leniency = leniency;
        self
    }

    fn schedule(&mut self) {
        if let Some(step) = self.steps.as_slice().first() {
            self.next_at = self.last_at + Duration(step.delay_ns);
        }
    }

    fn note(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    fn judge(&mut self, number: usize, step: &Step, result: Result<(), IoError>, bytes: &[u8]) {
        let leniency = match self.world.borrow().faults.is_to_come() {
            true => Leniency::default(),
            false => self.leniency,
        };
        if step.action != Action::Read {
            if let Err(error) = result
                && !leniency.failed_writes
            {
                self.note(Violation {
                    lba: step.extent.start.0,
                    detail: format!("{}: {error}, without any fault", step.describe()),
                });
            }
            return;
        }
        if result.is_err() && self.oracle.meets_failed_write(number) {
            return;
        }
        for (block, bytes) in (step.extent.start.0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize))
        {
            let found = result.map(|()| stamp::read(bytes, block, self.seed));
            let judged = self.oracle.judge_live(number, block, found, leniency);
            if let Err(violation) = judged {
                self.note(violation);
            }
        }
    }
}

impl Frontend for Host<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.finished()).then_some(self.next_at)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if now < self.next_at {
            return None;
        }
        let step = *self.steps.next()?;
        self.last_at = now;
        self.schedule();
        let data = match step.action {
            Action::Read | Action::Write { .. } => step.extent.blocks.0,
            _ => 0,
        };
        let buffer = buffers.allocate(data);
        if let Action::Write { .. } = step.action {
            let bytes = buffers.bytes_mut(buffer).expect("buffers of bytes");
            for (block, bytes) in
                (step.extent.start.0..).zip(bytes.chunks_exact_mut(BLOCK_BYTES as usize))
            {
                stamp::fill(bytes, block, step.version, self.seed);
            }
        }
        let index = self.world.borrow().log.events;
        let number = self.oracle.arrive(step, index);
        self.in_flight.insert(number, (step, buffer));
        Some(Arrival {
            tag: Tag((number as u64) << 1 | step.connection & 1),
            operation: step.action.operation(),
            extent: step.extent,
            buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let number = (completion.tag.0 >> 1) as usize;
        let (step, buffer) = self.in_flight.remove(&number).expect("a request in flight");
        let index = self.world.borrow().log.events;
        self.oracle.reply(number, completion.result, index);
        let bytes = buffers.bytes(buffer).unwrap_or(&[]);
        self.judge(number, &step, completion.result, bytes);
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.steps.as_slice().is_empty()
    }
}

/// Reads parts of the device.
pub struct Reader {
    /// What is still to be read, in pieces.
    to_read: Vec<Extent>,
    seed: u64,
    in_flight: BTreeMap<u64, BufferSlice>,
    /// What was read, by block.
    pub reads: Vec<ReadBack>,
}

impl Reader {
    /// A read of the whole device of `blocks` blocks.
    pub fn new(blocks: u64, seed: u64) -> Reader {
        let starts = (0..blocks).step_by(REQUEST_BLOCKS_MAX as usize);
        let piece = |start| Extent::new(start, REQUEST_BLOCKS_MAX.min(blocks - start));
        Reader {
            to_read: starts.map(piece).collect(),
            seed,
            in_flight: BTreeMap::new(),
            reads: vec![Err(IoError::Invalid); blocks as usize],
        }
    }

    /// Reads what could not be read once more, each block by itself: one bad block fails a whole
    /// request. True when there is anything.
    pub fn retry_by_block(&mut self) -> bool {
        let failed = (0..self.reads.len()).filter(|at| self.reads[*at].is_err());
        self.to_read = failed.map(|at| Extent::new(at as u64, 1)).collect();
        !self.to_read.is_empty()
    }
}

impl Frontend for Reader {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.finished()).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        let extent = self.to_read.pop()?;
        let buffer = buffers.allocate(extent.blocks.0);
        self.in_flight.insert(extent.start.0, buffer);
        Some(Arrival { tag: Tag(extent.start.0), operation: Operation::Read, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let start = completion.tag.0;
        let buffer = self.in_flight.remove(&start).expect("a read in flight");
        let bytes = buffers.bytes(buffer).expect("buffers of bytes");
        for (block, bytes) in (start..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
            let read = completion.result;
            self.reads[block as usize] = read.map(|()| stamp::read(bytes, block, self.seed));
        }
        buffers.release(buffer);
    }

    fn finished(&self) -> bool {
        self.to_read.is_empty()
    }
}

/// Asks for one flush of everything.
pub struct Flusher {
    is_sent: bool,
    /// What came of it.
    pub result: Result<(), IoError>,
}

impl Default for Flusher {
    fn default() -> Flusher {
        Flusher { is_sent: false, result: Ok(()) }
    }
}

impl Frontend for Flusher {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.is_sent).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        (!std::mem::replace(&mut self.is_sent, true)).then_some(Arrival {
            tag: Tag(0),
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, _buffers: &mut Buffers) {
        self.result = completion.result;
    }

    fn finished(&self) -> bool {
        self.is_sent
    }
}
