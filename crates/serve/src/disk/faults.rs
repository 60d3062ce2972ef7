//! Disks that can be broken on purpose, for those who test what stands on them.
//!
//! A broken disk does to every operation, in this order: it holds it back while the disk hangs, fails
//! it or has the disk below carry it out, changes what was read, and lets the answer go after the
//! delay. The blocks are those of the disk, of 4 KiB.

use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::command::{CommandError, Fault};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::map::ExtentSet;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Separate ranges of blocks that one fault of a disk may have.
const RANGES_MAX: usize = 4096;

/// The disks of a stack that can be broken on purpose.
#[derive(Clone, Default)]
pub struct Faults {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// No disk hangs or is slow any more.
    no_waits: Cell<bool>,
    /// By the name of the node, operations that are held back because the disk hangs.
    held: RefCell<Vec<(String, Rc<Cell<usize>>)>>,
}

impl Faults {
    /// A disk over `disk`, that of the node `name`, which can be broken.
    pub fn over(&self, name: &str, disk: Box<dyn Disk>) -> FaultyDisk {
        let held_count = Rc::new(Cell::new(0));
        let mut held = self.shared.held.borrow_mut();
        // A new disk in the place of another one takes over its name.
        held.retain(|(other, _)| other != name);
        held.push((name.to_owned(), Rc::clone(&held_count)));
        FaultyDisk {
            disk,
            shared: Rc::clone(&self.shared),
            broken: Broken::default(),
            held: VecDeque::new(),
            held_count,
            reads: Vec::new(),
            answers: VecDeque::new(),
        }
    }

    /// Has no disk hang or be slow from now on, so that what is under way comes to its end. Returns
    /// the nodes whose disks hang with the operations that they held back.
    pub fn end_waits(&self) -> Vec<(String, usize)> {
        self.shared.no_waits.set(true);
        let held = self.shared.held.borrow();
        let hanging = held.iter().filter(|(_, count)| count.get() > 0);
        hanging.map(|(name, count)| (name.clone(), count.get())).collect()
    }
}

/// In which ways a disk is broken.
#[derive(Default)]
struct Broken {
    reads: ExtentSet,
    writes: ExtentSet,
    corrupt: ExtentSet,
    slow: Duration,
    hangs: bool,
}

/// A disk that can be broken.
pub struct FaultyDisk {
    disk: Box<dyn Disk>,
    shared: Rc<Shared>,
    broken: Broken,
    /// What is held back, in the order in which it came.
    held: VecDeque<DiskOp>,
    held_count: Rc<Cell<usize>>,
    /// Reads that the disk below carries out.
    reads: Vec<(RequestId, Extent, BufferSlice)>,
    /// Answers in the order in which they were found, each with the instant at which it goes.
    answers: VecDeque<(Instant, DiskCompletion)>,
}

impl FaultyDisk {
    fn hangs(&self) -> bool {
        self.broken.hangs && !self.shared.no_waits.get()
    }

    fn delay(&self) -> Duration {
        match self.shared.no_waits.get() {
            true => Duration::ZERO,
            false => self.broken.slow,
        }
    }

    /// Fails an operation, or has it carried out.
    fn pass_on(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let failing = match op.operation {
            Operation::Read => &self.broken.reads,
            Operation::Write { .. } | Operation::Zero { .. } => &self.broken.writes,
            // A flush writes no block of its own. Disks with zones are not served.
            _ => return self.disk.submit(now, op, buffers),
        };
        if failing.pieces(op.extent).next().is_some() {
            let (id, result) = (op.id, Err(IoError::Medium));
            let answer = (now + self.delay(), DiskCompletion { id, result });
            return self.answers.push_back(answer);
        }
        if op.operation == Operation::Read {
            self.reads.push((op.id, op.extent, op.buffer));
        }
        self.disk.submit(now, op, buffers);
    }

    /// Carries out what was held back, once the disk hangs no more.
    fn let_go(&mut self, now: Instant, buffers: &mut Buffers) {
        self.held_count.set(0);
        for op in std::mem::take(&mut self.held) {
            self.pass_on(now, op, buffers);
        }
    }

    /// Changes what was read where the disk is to return something else than it holds.
    fn corrupt(&mut self, completion: DiskCompletion, buffers: &mut Buffers) {
        let is_it = |(id, ..): &(RequestId, Extent, BufferSlice)| *id == completion.id;
        let Some(index) = self.reads.iter().position(is_it) else {
            return;
        };
        let (_, extent, buffer) = self.reads.swap_remove(index);
        if completion.result.is_err() || self.broken.corrupt.is_empty() {
            return;
        }
        // Buffers that only count have nothing to change.
        let Some(bytes) = buffers.bytes_mut(buffer) else {
            return;
        };
        for block in self.broken.corrupt.pieces(extent) {
            for lba in block.start.0..block.end().0 {
                let at = (lba - extent.start.0) * BLOCK_BYTES + lba * 97 % BLOCK_BYTES;
                bytes[at as usize] ^= 1 << (lba % 8);
            }
        }
    }

    fn break_blocks(
        &mut self,
        extent: Option<Extent>,
        set: impl Fn(&mut Broken) -> &mut ExtentSet,
    ) -> Result<(), CommandError> {
        let blocks = self.disk.geometry().blocks.0;
        let set = set(&mut self.broken);
        if set.len() >= RANGES_MAX {
            return Err(CommandError::NotNow(format!(
                "the disk has {RANGES_MAX} ranges of such blocks; accepted: no more than that, after \
                 `heal`"
            )));
        }
        set.insert(extent.unwrap_or(Extent::new(0, blocks)));
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if self.hangs() {
            self.held.push_back(op);
            return self.held_count.set(self.held_count.get() + 1);
        }
        // What was held back before comes first.
        self.let_go(now, buffers);
        self.pass_on(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if self.hangs() {
            return None;
        }
        self.let_go(now, buffers);
        while let Some(completion) = self.disk.poll(now, buffers) {
            self.corrupt(completion, buffers);
            self.answers.push_back((now + self.delay(), completion));
        }
        let no_waits = self.shared.no_waits.get();
        let due = |(at, _): &(Instant, DiskCompletion)| no_waits || *at <= now;
        // A delay that was made shorter lets later answers overtake.
        let index = self.answers.iter().position(due)?;
        self.answers.remove(index).map(|(_, completion)| completion)
    }

    fn next_event(&self) -> Option<Instant> {
        if self.hangs() {
            return None;
        }
        if !self.held.is_empty() {
            return Some(Instant::ZERO);
        }
        let answers = self.answers.iter().map(|(at, _)| *at);
        let answer = match self.shared.no_waits.get() {
            true => answers.map(|_| Instant::ZERO).next(),
            false => answers.min(),
        };
        answer.into_iter().chain(self.disk.next_event()).min()
    }

    fn abandon(&mut self) {
        self.disk.abandon();
    }

    fn set_fault(
        &mut self,
        _now: Instant,
        fault: Fault,
        _buffers: &mut Buffers,
    ) -> Result<(), CommandError> {
        match fault {
            Fault::FailReads(extent) => {
                return self.break_blocks(extent, |broken| &mut broken.reads);
            }
            Fault::FailWrites(extent) => {
                return self.break_blocks(extent, |broken| &mut broken.writes);
            }
            Fault::Corrupt(extent) => {
                return self.break_blocks(Some(extent), |broken| &mut broken.corrupt);
            }
            Fault::Slow(delay) => self.broken.slow = delay,
            Fault::Hang => self.broken.hangs = true,
            Fault::None => {
                self.broken = Broken::default();
                // Nothing waits for the end of a delay that is over.
                for (at, _) in &mut self.answers {
                    *at = Instant::ZERO;
                }
            }
        }
        Ok(())
    }
}
