//! The labels of the disks of an engine, before its layers come up and after they have gone down.

use super::compare::Judgement;
use super::{LabelStore, Labels, Refusal};
use crate::buffer::BufferSlice;
use crate::disk::DiskOp;
use crate::engine::{Clock, Engine};
use crate::error::IoError;
use crate::extent::Extent;
use crate::lifecycle::{OpenError, Start};
use crate::operation::{Cause, Operation, RequestId};
use crate::planted::PlantedBug;
use crate::stack::{DiskId, NodeId};
use crate::units::{BLOCK_BYTES, Instant};
use alloc::vec;
use alloc::vec::Vec;

/// Why a stack with labels cannot come up. Nothing was written but, in the last two cases, labels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LabelledOpenError {
    /// The disks do not belong together.
    Refused(Vec<Refusal>),
    /// The label of a disk cannot be written.
    Label(DiskId, IoError),
    /// A layer cannot come up.
    Layer(NodeId, OpenError),
}

impl Engine {
    /// Compares the labels of the disks, moves the count, and lets the layers come up as
    /// [`open`](Self::open) does. A stack that is only read writes no label. The engine keeps the labels.
    /// The random numbers of marks come from `seed`, which no other start had.
    ///
    /// Disks that were away take part in this move, unless a layer above decides on that
    /// ([`Layer::holds_away`](crate::layer::Layer::holds_away)).
    ///
    /// # Errors
    /// When the disks do not belong together, a label cannot be written, or a layer cannot come up.
    pub fn open_labelled(
        &mut self,
        clock: &mut dyn Clock,
        start: Start,
        mut labels: Labels,
        seed: u64,
    ) -> Result<(), LabelledOpenError> {
        labels.judgement = Judgement {
            is_lenient: self.stack.is_planted(PlantedBug::LabelNotCompared),
            is_creation: matches!(start, Start::Format(_)),
        };
        let is_late = self.stack.is_planted(PlantedBug::CountMovedAfterFirstWrite);
        self.check_labels(clock, &mut labels).map_err(LabelledOpenError::Refused)?;
        self.stack.take_labels(labels, seed);
        if !is_late {
            self.move_labels(clock)?;
        }
        self.open(clock, start).map_err(|(node, error)| LabelledOpenError::Layer(node, error))
    }

    /// Reads and compares the labels of the disks. Nothing is written.
    ///
    /// # Errors
    /// The disks that must not be used with the others.
    pub fn check_labels(
        &mut self,
        clock: &mut dyn Clock,
        labels: &mut Labels,
    ) -> Result<(), Vec<Refusal>> {
        labels.check(&mut OnEngine { engine: self, clock })
    }

    fn move_labels(&mut self, clock: &mut dyn Clock) -> Result<(), LabelledOpenError> {
        if self.stack.is_read_only() {
            return Ok(());
        }
        let Some(mut running) = self.stack.lend_labels() else {
            return Ok(());
        };
        let random = running.random();
        let moved = running.labels.move_count(&mut OnEngine { engine: self, clock }, random);
        self.stack.put_labels(running);
        moved.map_err(|(disk, error)| LabelledOpenError::Label(DiskId(disk as u16), error))
    }

    /// Lets the layers go down as [`close`](Self::close) does, then moves the count of the labels, where
    /// there are some. Returns the disks whose labels could not be written; their layers have closed in
    /// order, and the next start takes them.
    ///
    /// # Errors
    /// When a layer could not go down. No label is written then.
    pub fn close_labelled(
        &mut self,
        clock: &mut dyn Clock,
    ) -> Result<Vec<(usize, IoError)>, (NodeId, IoError)> {
        self.close(clock)?;
        if self.stack.is_read_only() {
            return Ok(Vec::new());
        }
        let Some(mut running) = self.stack.lend_labels() else {
            return Ok(Vec::new());
        };
        let random = running.random();
        let mut store = OnEngine { engine: self, clock };
        let failed = running.labels.move_count_at_stop(&mut store, random);
        self.stack.put_labels(running);
        Ok(failed)
    }
}

/// The disks of an engine that has nothing else in flight.
struct OnEngine<'a> {
    engine: &'a mut Engine,
    clock: &'a mut dyn Clock,
}

impl OnEngine<'_> {
    /// Has a disk execute an operation, and waits for it.
    fn execute(
        &mut self,
        disk: usize,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
    ) -> Result<(), IoError> {
        let Engine { disks, buffers, .. } = &mut *self.engine;
        let disk = &mut disks[disk];
        // No layer has an operation at the disk, so none has this id.
        let id = RequestId::new(u32::MAX, u32::MAX);
        let op = DiskOp { id, operation, extent, buffer, cause: Cause::Metadata };
        let mut now = self.clock.wait(Some(Instant::ZERO));
        disk.submit(now, op, buffers);
        loop {
            if let Some(completion) = disk.poll(now, buffers) {
                assert_eq!(completion.id, id, "an operation of a layer at a start or stop");
                return completion.result;
            }
            now = self.clock.wait(disk.next_event());
        }
    }

    fn with_block(
        &mut self,
        disk: usize,
        operation: Operation,
        block: u64,
        bytes: &mut [u8],
    ) -> Result<(), IoError> {
        let buffer = self.engine.buffers.allocate(1);
        let lent = self.engine.buffers.bytes_mut(buffer);
        lent.expect(BYTES).copy_from_slice(bytes);
        let extent = Extent::new(block, 1);
        let result = self.execute(disk, operation, extent, buffer);
        let lent = self.engine.buffers.bytes(buffer);
        bytes.copy_from_slice(lent.expect(BYTES));
        self.engine.buffers.release(buffer);
        result
    }
}

impl LabelStore for OnEngine<'_> {
    fn is_absent(&self, disk: usize) -> bool {
        self.engine.stack.is_disk_lost(DiskId(disk as u16))
    }

    fn blocks(&self, disk: usize) -> u64 {
        self.engine.disks[disk].geometry().blocks.0
    }

    fn read(&mut self, disk: usize, block: u64) -> Result<Vec<u8>, IoError> {
        let mut bytes = vec![0; BLOCK_BYTES as usize];
        self.with_block(disk, Operation::Read, block, &mut bytes)?;
        Ok(bytes)
    }

    fn write(&mut self, disk: usize, block: u64, bytes: &[u8]) -> Result<(), IoError> {
        self.with_block(disk, Operation::WRITE, block, &mut bytes.to_vec())
    }

    fn flush(&mut self, disk: usize) -> Result<(), IoError> {
        self.execute(disk, Operation::Flush, Extent::EMPTY, BufferSlice::EMPTY)
    }
}

const BYTES: &str = "labels are kept on disks that hold bytes";
