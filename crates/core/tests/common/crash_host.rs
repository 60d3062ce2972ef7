//! A host over disks that lose power: it knows which version of each block may be read afterwards.

use super::harness::JumpingClock;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, Stack};
use imbrex_core::units::Instant;
use std::collections::BTreeMap;
use std::rc::Rc;

const BLOCK: usize = 4096;

/// A request of the host: what it is and what its answer means.
#[derive(Clone)]
enum Sent {
    Read {
        extent: Extent,
        buffer: BufferSlice,
        expected: Vec<u64>,
    },
    Change {
        extent: Extent,
        buffer: BufferSlice,
        version: u64,
        durable: bool,
    },
    /// With the newest answered version of each block when it was sent.
    Flush(Vec<u64>),
}

/// Writes blocks that say which block and version they are, and knows for each block which
/// versions may be read after a power cut.
#[derive(Clone)]
pub struct CrashHost {
    blocks: u64,
    version: u64,
    /// The versions of each block from the newest durable one on; the last is what a read gives
    /// now. With whether it is a zero.
    history: Vec<Vec<(u64, bool)>>,
    answered: Vec<u64>,
    in_flight: BTreeMap<u64, Sent>,
    next_tag: u64,
    steps: u64,
    queue_depth: usize,
    looking: bool,
    next_look: u64,
    next_in_stream: u64,
    rng: Rng,
    pub failure: Option<String>,
    /// Reads that failed, for tests that damage the medium.
    pub unreadable: Vec<u64>,
    pub may_fail: bool,
    /// Sees the stack after every instant.
    pub watched: Rc<dyn Fn(&Stack)>,
}

impl CrashHost {
    pub fn new(blocks: u64) -> CrashHost {
        CrashHost {
            blocks,
            version: 0,
            history: vec![vec![(0, true)]; blocks as usize],
            answered: vec![0; blocks as usize],
            in_flight: BTreeMap::new(),
            next_tag: 0,
            steps: 0,
            queue_depth: 1,
            looking: false,
            next_look: 0,
            next_in_stream: 0,
            rng: Rng::new(0, 0),
            failure: None,
            unreadable: Vec::new(),
            may_fail: false,
            watched: Rc::new(|_| {}),
        }
    }

    /// Random work.
    pub fn work(
        &mut self,
        engine: &mut Engine,
        clock: &mut JumpingClock,
        seed: u64,
        steps: u64,
    ) -> Result<(), String> {
        self.rng = Rng::new(seed, 21);
        self.steps = steps;
        self.queue_depth = [1, 3, 8, 16][(seed % 4) as usize];
        self.run(engine, clock)
    }

    /// Reads every block, after a recovery: what is found is what is there from now on.
    pub fn look_around(
        &mut self,
        engine: &mut Engine,
        clock: &mut JumpingClock,
    ) -> Result<(), String> {
        self.looking = true;
        self.next_look = 0;
        self.queue_depth = 4;
        let result = self.run(engine, clock);
        self.looking = false;
        result
    }

    fn run(&mut self, engine: &mut Engine, clock: &mut JumpingClock) -> Result<(), String> {
        let watched = Rc::clone(&self.watched);
        engine.run(clock, self, &mut |_, stack| watched(stack));
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The device was closed: everything answered is durable.
    pub fn closed(&mut self) {
        for (history, answered) in self.history.iter_mut().zip(&self.answered) {
            history.retain(|(version, _)| version >= answered);
        }
    }

    /// The requests in flight when the power was cut will not be answered.
    pub fn forget_requests(&mut self) {
        self.in_flight.clear();
        self.looking = false;
    }

    fn is_durable(&mut self, block: u64, version: u64) {
        self.history[block as usize].retain(|(other, _)| *other >= version);
    }

    fn fail(&mut self, message: String) {
        self.failure.get_or_insert(message);
    }

    /// The version that a block says it is; `None` when it is none of its own.
    fn version_in(&self, block: u64, bytes: &[u8]) -> Option<(u64, bool)> {
        let history = &self.history[block as usize];
        if bytes.iter().all(|byte| *byte == 0) {
            return history.iter().rev().find(|(_, zero)| *zero).copied();
        }
        history.iter().find(|(version, zero)| !zero && bytes == fill(block, *version)).copied()
    }

    fn all_sent(&self) -> bool {
        if self.looking { self.next_look == self.blocks } else { self.steps == 0 }
    }

    fn next_step(&mut self) -> Option<(Operation, Extent)> {
        if self.looking {
            let start = self.next_look;
            let length = 16.min(self.blocks - start);
            self.next_look += length;
            return (length > 0).then(|| (Operation::Read, Extent::new(start, length)));
        }
        if self.steps == 0 {
            return None;
        }
        self.steps -= 1;
        let rng = &mut self.rng;
        let length = 1 + rng.below(10);
        let span = if rng.below(2) == 0 { self.blocks / 6 } else { self.blocks };
        let random = Extent::new(rng.below(span - length + 1), length);
        let flushed = Operation::Write { durability: Durability::Durable };
        let zero = |durability| Operation::Zero { durability, may_unmap: true };
        Some(match rng.below(24) {
            0..=4 => (Operation::Read, random),
            5..=12 => (Operation::WRITE, random),
            13..=17 => {
                // A stream, which now and then starts anew somewhere.
                if rng.below(12) == 0 || self.next_in_stream >= self.blocks {
                    self.next_in_stream = rng.below(self.blocks);
                }
                let start = self.next_in_stream;
                let length = length.min(self.blocks - start);
                self.next_in_stream += length;
                (Operation::WRITE, Extent::new(start, length))
            }
            18 | 19 => (flushed, random),
            20 => (zero(Durability::Cached), random),
            21 => {
                let start = rng.below(self.blocks);
                let length = (1 + rng.below(60)).min(self.blocks - start);
                let durability =
                    if rng.below(2) == 0 { Durability::Cached } else { Durability::Durable };
                (zero(durability), Extent::new(start, length))
            }
            _ => (Operation::Flush, Extent::EMPTY),
        })
    }
}

/// The bytes of a version of a block.
pub fn fill(block: u64, version: u64) -> Vec<u8> {
    let mut word = [0; 16];
    word[..8].copy_from_slice(&(block + 1).to_le_bytes());
    word[8..].copy_from_slice(&version.to_le_bytes());
    word.repeat(BLOCK / 16)
}

impl Frontend for CrashHost {
    fn next_arrival(&self) -> Option<Instant> {
        (!self.all_sent() && self.in_flight.len() < self.queue_depth).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.in_flight.len() >= self.queue_depth {
            return None;
        }
        let (operation, extent) = self.next_step()?;
        let blocks = extent.start.0..extent.end().0;
        let mut buffer = BufferSlice::EMPTY;
        let sent = match operation {
            Operation::Read => {
                buffer = buffers.allocate(extent.blocks.0);
                let newest = |block: u64| self.history[block as usize].last().expect("one").0;
                Sent::Read { extent, buffer, expected: blocks.map(newest).collect() }
            }
            Operation::Flush => Sent::Flush(self.answered.clone()),
            _ => {
                self.version += 1;
                let is_zero = matches!(operation, Operation::Zero { .. });
                if !is_zero {
                    buffer = buffers.allocate(extent.blocks.0);
                    let bytes = buffers.bytes_mut(buffer).expect("bytes");
                    for (chunk, block) in bytes.chunks_exact_mut(BLOCK).zip(blocks.clone()) {
                        chunk.copy_from_slice(&fill(block, self.version));
                    }
                }
                for block in blocks {
                    self.history[block as usize].push((self.version, is_zero));
                }
                Sent::Change {
                    extent,
                    buffer,
                    version: self.version,
                    durable: operation.is_durable(),
                }
            }
        };
        self.next_tag += 1;
        self.in_flight.insert(self.next_tag, sent);
        Some(Arrival { tag: Tag(self.next_tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let sent = self.in_flight.remove(&completion.tag.0).expect("a request");
        if let Err(error) = completion.result
            && !self.may_fail
        {
            let what = match &sent {
                Sent::Read { extent, .. } => format!("read {extent:?}"),
                Sent::Change { extent, .. } => format!("write {extent:?}"),
                Sent::Flush(_) => String::from("flush"),
            };
            self.fail(format!("{what} failed: {error}"));
        }
        match sent {
            Sent::Read { extent, buffer, expected } => {
                if completion.result.is_err() {
                    self.unreadable.extend(extent.start.0..extent.end().0);
                    return buffers.release(buffer);
                }
                let bytes = buffers.bytes(buffer).expect("bytes");
                let chunks = bytes.chunks_exact(BLOCK);
                let mut wrong = None;
                for ((chunk, block), expected) in chunks.zip(extent.start.0..).zip(expected) {
                    let found = self.version_in(block, chunk);
                    match found {
                        Some(found) if self.looking => {
                            self.history[block as usize] = vec![found];
                            self.answered[block as usize] = found.0;
                        }
                        Some((version, zero)) => {
                            let newest = self.history[block as usize].iter();
                            let same = newest.clone().any(|it| *it == (expected, zero));
                            if version != expected && !(zero && same) && !self.may_fail {
                                wrong = Some((block, Some((version, zero)), expected));
                            }
                        }
                        None => wrong = Some((block, None, expected)),
                    }
                    if wrong.is_some() {
                        let head: Vec<u8> = chunk[..16].to_vec();
                        self.fail(format!(
                            "block {block} of {extent:?} reads {found:?} ({head:?}), expected \
                             {expected} of {:?}",
                            self.history[block as usize]
                        ));
                        break;
                    }
                }
                buffers.release(buffer);
            }
            Sent::Change { extent, buffer, version, durable } => {
                buffers.release(buffer);
                for block in extent.start.0..extent.end().0 {
                    if completion.result.is_ok() {
                        let answered = &mut self.answered[block as usize];
                        *answered = version.max(*answered);
                        if durable {
                            self.is_durable(block, version);
                        }
                    }
                }
            }
            Sent::Flush(answered) => {
                if completion.result.is_ok() {
                    for (block, version) in (0..).zip(answered) {
                        self.is_durable(block, version);
                    }
                }
            }
        }
    }

    fn finished(&self) -> bool {
        self.all_sent() && self.in_flight.is_empty()
    }
}
