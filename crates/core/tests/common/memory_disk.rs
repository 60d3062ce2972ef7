//! A disk in memory that finishes operations in any order and takes effect at any moment in
//! between.

use imbrex_core::buffer::{Buffers, Stamp};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, TrackTable};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;
use imbrex_core::units::Instant;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What one memory disk holds, and what of it a power cut would take.
#[derive(Default)]
pub struct Medium {
    /// Blocks by physical address; a missing one is zero.
    pub blocks: BTreeMap<u64, Stamp>,
    /// Completed writes that no flush has covered yet, by number.
    pub volatile: Vec<u64>,
    /// Writes completed so far.
    pub writes: u64,
    /// Every write in the order of submission, for tests that compare sequences.
    pub write_log: Vec<Extent>,
    /// Every read, likewise.
    pub read_log: Vec<Extent>,
    /// Operations that failed so far; see [`MemoryDisk::failing`].
    pub faults: u64,
    /// True for a shingled medium; see [`MemoryDisk::destructive`].
    overlap: bool,
}

impl Medium {
    /// The blocks at the same angle as those of a write, on every track that it overlaps.
    pub fn destroyed_by(tracks: &TrackTable, extent: Extent) -> Vec<u64> {
        let mut destroyed = Vec::new();
        for block in extent.start.0..extent.end().0 {
            let track = tracks.track_of(block);
            let whole = tracks.extent_of(track);
            let at = block - whole.start.0;
            for neighbour in tracks.tracks_destroyed_by(track) {
                let beside = tracks.extent_of(neighbour);
                let scale = |block: u64| block * beside.blocks.0;
                let from = beside.start.0 + scale(at) / whole.blocks.0;
                let to = beside.start.0 + scale(at + 1).div_ceil(whole.blocks.0);
                destroyed.extend(from..to);
            }
        }
        destroyed
    }
}

/// A disk without mechanics, as unhelpful as its contract allows.
pub struct MemoryDisk {
    geometry: Geometry,
    medium: Rc<RefCell<Medium>>,
    rng: Rng,
    queue: Vec<Pending>,
    /// Longest time an operation may take; 0 makes every operation instant and in order.
    latency_max_ns: u64,
    serial: u64,
    /// One in so many of the first so many operations fails; none when zero.
    faults: (u64, u64),
    /// Fails too.
    fault_at: Option<u64>,
}

struct Pending {
    finish: Instant,
    serial: u64,
    op: DiskOp,
    executed: bool,
    fails: bool,
    volatile_covered: Vec<u64>,
}

impl MemoryDisk {
    pub fn new(geometry: Geometry, seed: u64, latency_max_ns: u64) -> MemoryDisk {
        MemoryDisk {
            geometry,
            medium: Rc::default(),
            rng: Rng::new(seed, 77),
            queue: Vec::new(),
            latency_max_ns,
            serial: 0,
            faults: (0, 0),
            fault_at: None,
        }
    }

    /// Makes about one in `one_in` of the first `operations` operations fail. A write that fails
    /// leaves nothing readable where it was going.
    pub fn failing(self, one_in: u64, operations: u64) -> MemoryDisk {
        MemoryDisk { faults: (one_in, operations), ..self }
    }

    /// Makes the operation fail that is submitted after so many others.
    pub fn failing_at(self, operations_before: u64) -> MemoryDisk {
        MemoryDisk { fault_at: Some(operations_before), ..self }
    }

    /// Makes the medium a shingled one: the geometry's track table says which tracks overlap, and
    /// a block that is written destroys those at the same angle on every track that it overlaps.
    pub fn destructive(self) -> MemoryDisk {
        assert!(self.geometry.tracks.is_some(), "a shingled medium has tracks");
        self.medium.borrow_mut().overlap = true;
        self
    }

    pub fn medium(&self) -> Rc<RefCell<Medium>> {
        Rc::clone(&self.medium)
    }

    fn execute(&mut self, op: &DiskOp, fails: bool, buffers: &mut Buffers) {
        let medium = &mut *self.medium.borrow_mut();
        let write = matches!(op.operation, Operation::Write { .. });
        if fails && write {
            destroy_overlapped(medium, &self.geometry, op.extent);
            for block in op.extent.start.0..op.extent.end().0 {
                medium.blocks.insert(block, Stamp::DESTROYED);
            }
        }
        if fails {
            return;
        }
        match op.operation {
            Operation::Read => {
                let target = buffers.stamps_mut(op.buffer).expect("stamped buffers");
                for (i, stamp) in target.iter_mut().enumerate() {
                    let block = op.extent.start.0 + i as u64;
                    *stamp = medium.blocks.get(&block).copied().unwrap_or(Stamp::ZERO);
                }
            }
            Operation::Write { .. } | Operation::Zero { .. } => {
                let source = buffers.stamps(op.buffer).unwrap_or(&[]);
                for i in 0..op.extent.blocks.0 {
                    let block = op.extent.start.0 + i;
                    destroy_overlapped(medium, &self.geometry, Extent::new(block, 1));
                    let stamp = source.get(i as usize).copied().unwrap_or(Stamp::ZERO);
                    medium.blocks.insert(block, stamp);
                }
            }
            Operation::Flush
            | Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => {}
        }
    }
}

fn destroy_overlapped(medium: &mut Medium, geometry: &Geometry, extent: Extent) {
    if !medium.overlap {
        return;
    }
    let tracks = geometry.tracks.as_ref().expect("a shingled medium has tracks");
    for block in Medium::destroyed_by(tracks, extent) {
        medium.blocks.insert(block, Stamp::DESTROYED);
    }
}

impl Disk for MemoryDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let early = self.latency_max_ns == 0 || self.rng.below(2) == 0;
        let (one_in, operations) = self.faults;
        let fails = self.serial < operations && self.rng.below(one_in) == 0
            || self.fault_at == Some(self.serial);
        if early {
            self.execute(&op, fails, buffers);
        }
        let wait = if self.latency_max_ns == 0 { 0 } else { self.rng.below(self.latency_max_ns) };
        let finish = Instant(now.0 + wait);
        self.serial += 1;
        let mut medium = self.medium.borrow_mut();
        if matches!(op.operation, Operation::Write { .. }) {
            medium.write_log.push(op.extent);
        }
        if op.operation == Operation::Read {
            medium.read_log.push(op.extent);
        }
        let volatile_covered = medium.volatile.clone();
        drop(medium);
        let serial = self.serial;
        self.queue.push(Pending { finish, serial, op, executed: early, fails, volatile_covered });
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self.queue.iter().enumerate().filter(|(_, pending)| pending.finish <= now);
        let index = due.min_by_key(|(_, pending)| (pending.finish, pending.serial))?.0;
        let pending = self.queue.remove(index);
        if !pending.executed {
            self.execute(&pending.op, pending.fails, buffers);
        }
        let mut medium = self.medium.borrow_mut();
        if pending.fails {
            medium.faults += 1;
            return Some(DiskCompletion { id: pending.op.id, result: Err(IoError::Medium) });
        }
        match pending.op.operation {
            Operation::Write { durability } | Operation::Zero { durability, .. } => {
                medium.writes += 1;
                if durability == Durability::Cached {
                    let number = medium.writes;
                    medium.volatile.push(number);
                }
            }
            Operation::Flush => {
                medium.volatile.retain(|number| !pending.volatile_covered.contains(number));
            }
            _ => {}
        }
        Some(DiskCompletion { id: pending.op.id, result: Ok(()) })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|pending| pending.finish).min()
    }
}
