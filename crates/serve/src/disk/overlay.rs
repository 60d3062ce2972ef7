//! Disks that are never written: what a stack writes while it comes up is kept in memory, laid over what the disk
//! holds, and forgotten at the end.
//!
//! A recovery writes: checkpoints, superblocks, pages. A stack that is only looked at must recover as any other, and
//! its files must stay as they are. The memory is bounded for all disks of a stack together.

use super::BackedDisk;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, RequestId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Bytes that the disks of a stack keep in memory together. A recovery writes one checkpoint for each layer, so
/// this is enough for the dirty blocks of a full cache of 200 GiB.
pub const OVERLAY_BYTES_MAX: u64 = 1 << 30;

const BLOCK: usize = BLOCK_BYTES as usize;

/// The memory that the disks of a stack share.
pub struct Overlay {
    memory: Rc<Memory>,
}

struct Memory {
    used_bytes: Cell<u64>,
    bytes_max: u64,
    is_exceeded: Cell<bool>,
}

impl Overlay {
    /// Memory of at most `bytes_max` bytes of blocks.
    pub fn new(bytes_max: u64) -> Overlay {
        Overlay {
            memory: Rc::new(Memory {
                used_bytes: Cell::new(0),
                bytes_max,
                is_exceeded: Cell::new(false),
            }),
        }
    }

    /// A disk over `disk` whose writes are kept in the memory.
    pub fn over(&self, disk: impl Into<BackedDisk>) -> OverlaidDisk {
        let disk = disk.into();
        OverlaidDisk {
            disk,
            memory: Rc::clone(&self.memory),
            blocks: BTreeMap::new(),
            done: VecDeque::new(),
            reads: Vec::new(),
        }
    }

    /// Most bytes of blocks that are kept.
    pub fn bytes_max(&self) -> u64 {
        self.memory.bytes_max
    }

    /// True when a disk has refused a write because the memory is used up.
    pub fn is_exceeded(&self) -> bool {
        self.memory.is_exceeded.get()
    }
}

/// A disk whose writes are kept in memory. A write beyond the bound finds no space.
pub struct OverlaidDisk {
    disk: BackedDisk,
    memory: Rc<Memory>,
    /// What was written, by address.
    blocks: BTreeMap<u64, Box<[u8]>>,
    done: VecDeque<DiskCompletion>,
    /// Reads under way over blocks of which some were written.
    reads: Vec<(RequestId, Extent, BufferSlice)>,
}

impl OverlaidDisk {
    fn read(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let kept = self.blocks.range(range_of(op.extent)).count() as u64;
        if kept == op.extent.blocks.0 {
            let bytes = buffers.bytes_mut(op.buffer).expect(BYTES);
            self.lay_over(op.extent, bytes);
            return self.finish(op.id, Ok(()));
        }
        if kept > 0 {
            self.reads.push((op.id, op.extent, op.buffer));
        }
        self.disk.submit(now, op, buffers);
    }

    /// Puts what was written over what was read.
    fn lay_over(&self, extent: Extent, bytes: &mut [u8]) {
        for (address, block) in self.blocks.range(range_of(extent)) {
            let at = (address - extent.start.0) as usize * BLOCK;
            bytes[at..at + BLOCK].copy_from_slice(block);
        }
    }

    /// Keeps blocks: those of `bytes`, or zeroes.
    fn keep(&mut self, extent: Extent, bytes: Option<&[u8]>) -> Result<(), IoError> {
        let kept = self.blocks.range(range_of(extent)).count() as u64;
        let more = (extent.blocks.0 - kept) * BLOCK_BYTES;
        let used = self.memory.used_bytes.get() + more;
        if used > self.memory.bytes_max {
            self.memory.is_exceeded.set(true);
            return Err(IoError::NoSpace);
        }
        self.memory.used_bytes.set(used);
        for (number, address) in range_of(extent).enumerate() {
            let block = self.blocks.entry(address);
            let block = block.or_insert_with(|| vec![0; BLOCK].into());
            match bytes {
                Some(bytes) => block.copy_from_slice(&bytes[number * BLOCK..][..BLOCK]),
                None => block.fill(0),
            }
        }
        Ok(())
    }

    fn finish(&mut self, id: RequestId, result: Result<(), IoError>) {
        self.done.push_back(DiskCompletion { id, result });
    }
}

impl Disk for OverlaidDisk {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let result = match op.operation {
            Operation::Read => return self.read(now, op, buffers),
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect(BYTES);
                self.keep(op.extent, Some(bytes))
            }
            Operation::Zero { .. } => self.keep(op.extent, None),
            // Nothing is ever made durable, and nobody is told that it was.
            Operation::Flush => Ok(()),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => Err(IoError::Invalid),
        };
        self.finish(op.id, result);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let completion = match self.done.pop_front() {
            Some(completion) => return Some(completion),
            None => self.disk.poll(now, buffers)?,
        };
        let read = |(id, ..): &(RequestId, Extent, BufferSlice)| *id == completion.id;
        if let Some(index) = self.reads.iter().position(read) {
            let (_, extent, buffer) = self.reads.swap_remove(index);
            if completion.result.is_ok() {
                self.lay_over(extent, buffers.bytes_mut(buffer).expect(BYTES));
            }
        }
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        match self.done.is_empty() {
            true => self.disk.next_event(),
            false => Some(Instant::ZERO),
        }
    }

    fn abandon(&mut self) {
        self.disk.abandon();
    }
}

const BYTES: &str = "the buffers of a server hold bytes";

fn range_of(extent: Extent) -> std::ops::Range<u64> {
    extent.start.0..extent.end().0
}
