//! Writes that are held back until it is known that they may be made.
//!
//! Layers come up from the bottom, and one that comes up writes. If one further up then finds that
//! its member is foreign or damaged, the members below must be as they were. So while a stack comes
//! up its disks only remember what is written, and read it back; [`HeldWrites::release`] carries it
//! all out in the order in which it came, flushes included.

use super::BackedDisk;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Something that was to be done to a disk.
enum Held {
    Write(Extent, Vec<u8>),
    Zero { extent: Extent, may_unmap: bool },
    Flush,
}

impl Held {
    fn extent(&self) -> Extent {
        match self {
            Held::Write(extent, _) | Held::Zero { extent, .. } => *extent,
            Held::Flush => Extent::EMPTY,
        }
    }
}

#[derive(Default)]
struct Shared {
    /// What was to be done, in order, each with the number of its disk. It stays until the reads have ended that began
    /// before it was carried out.
    log: Vec<(usize, Held)>,
    /// Those reads, of all disks.
    reads: usize,
    disks: Vec<Rc<RefCell<BackedDisk>>>,
    released: bool,
}

impl Shared {
    /// Forgets what was carried out, when no read needs it any more.
    fn forget_log(&mut self) {
        if self.released && self.reads == 0 {
            self.log = Vec::new();
        }
    }
}

/// The writes that a set of disks holds back.
#[derive(Default)]
pub struct HeldWrites {
    shared: Rc<RefCell<Shared>>,
}

impl HeldWrites {
    /// A disk over `disk` whose writes are held back.
    pub fn hold(&self, disk: impl Into<BackedDisk>) -> HeldDisk {
        let disk = disk.into();
        let geometry = disk.geometry().clone();
        let disk = Rc::new(RefCell::new(disk));
        let mut shared = self.shared.borrow_mut();
        shared.disks.push(Rc::clone(&disk));
        HeldDisk {
            geometry,
            number: shared.disks.len() - 1,
            disk,
            shared: Rc::clone(&self.shared),
            released: false,
            done: VecDeque::new(),
            reads: Vec::new(),
        }
    }

    /// Carries out what was held back, and lets everything through from now on.
    ///
    /// # Errors
    /// As the first disk that fails says, with its number in the order of [`hold`](Self::hold).
    pub fn release(self) -> Result<(), (usize, IoError)> {
        let mut shared = self.shared.borrow_mut();
        for (number, held) in &shared.log {
            let mut disk = shared.disks[*number].borrow_mut();
            let result = match held {
                Held::Write(extent, bytes) => disk.write_now(*extent, bytes),
                Held::Zero { extent, may_unmap } => disk.zero_now(*extent, *may_unmap),
                Held::Flush => disk.synchronise_now(),
            };
            result.map_err(|error| (*number, error))?;
        }
        shared.released = true;
        shared.forget_log();
        // Each disk is its own from now on, and closes its file when another one takes its place.
        shared.disks.clear();
        Ok(())
    }
}

/// A disk whose writes may be held back.
pub struct HeldDisk {
    geometry: Geometry,
    number: usize,
    disk: Rc<RefCell<BackedDisk>>,
    shared: Rc<RefCell<Shared>>,
    released: bool,
    done: VecDeque<DiskCompletion>,
    /// Reads under way that began while writes were held back. What they find may be older than these, even where they
    /// have been carried out since.
    reads: Vec<(RequestId, Extent, BufferSlice)>,
}

impl HeldDisk {
    fn is_released(&mut self) -> bool {
        self.released = self.released || self.shared.borrow().released;
        self.released
    }

    fn hold(&mut self, op: DiskOp, buffers: &Buffers) {
        let held = match op.operation {
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect("bytes to be written");
                Held::Write(op.extent, bytes.to_vec())
            }
            Operation::Zero { may_unmap, .. } => Held::Zero { extent: op.extent, may_unmap },
            _ => Held::Flush,
        };
        let log = &mut self.shared.borrow_mut().log;
        log.push((self.number, held));
        if op.operation.is_durable() {
            log.push((self.number, Held::Flush));
        }
        self.done.push_back(DiskCompletion { id: op.id, result: Ok(()) });
    }

    /// Puts what is held back over what was read.
    fn overlay(&self, extent: Extent, bytes: &mut [u8]) {
        let shared = self.shared.borrow();
        let own = |(number, held): &&(usize, Held)| {
            *number == self.number && held.extent().overlaps(extent)
        };
        for (_, held) in shared.log.iter().filter(own) {
            let from = held.extent().start.0.max(extent.start.0);
            let to = held.extent().end().0.min(extent.end().0);
            let within = |start: u64| {
                let at = |block: u64| ((block - start) * BLOCK_BYTES) as usize;
                at(from)..at(to)
            };
            let target = &mut bytes[within(extent.start.0)];
            match held {
                Held::Write(held, source) => {
                    target.copy_from_slice(&source[within(held.start.0)]);
                }
                Held::Zero { .. } => target.fill(0),
                Held::Flush => {}
            }
        }
    }
}

impl Drop for HeldDisk {
    /// Reads of a disk that is taken away do not end any more.
    fn drop(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.reads -= self.reads.len();
        shared.forget_log();
    }
}

impl Disk for HeldDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if self.is_released() {
            return self.disk.borrow_mut().submit(now, op, buffers);
        }
        match op.operation {
            Operation::Read => {
                self.reads.push((op.id, op.extent, op.buffer));
                self.shared.borrow_mut().reads += 1;
                self.disk.borrow_mut().submit(now, op, buffers);
            }
            _ => self.hold(op, buffers),
        }
    }

    #[inline]
    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let completion = match self.done.pop_front() {
            Some(completion) => return Some(completion),
            None => self.disk.borrow_mut().poll(now, buffers)?,
        };
        let read = |(id, ..): &(RequestId, Extent, BufferSlice)| *id == completion.id;
        if let Some(index) = self.reads.iter().position(read) {
            let (_, extent, buffer) = self.reads.swap_remove(index);
            if completion.result.is_ok() {
                self.overlay(extent, buffers.bytes_mut(buffer).expect("bytes of a read"));
            }
            let mut shared = self.shared.borrow_mut();
            shared.reads -= 1;
            shared.forget_log();
        }
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        if self.done.is_empty() { self.disk.borrow().next_event() } else { Some(Instant::ZERO) }
    }

    fn abandon(&mut self) {
        self.disk.borrow_mut().abandon();
    }
}
