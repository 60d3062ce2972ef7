//! A disk that loses power: what no flush has covered may or may not be there afterwards, in part
//! and torn.

use super::harness;
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;
use imbrex_core::units::{BlockCount, Instant, Lba};
use imbrex_core::zone::{ZoneCondition, ZoneDescriptor, ZoneId, report};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const BLOCK: usize = 4096;
/// Bytes of a block that an overlapping track was written over.
pub const DESTROYED_BYTE: u8 = 0xdd;
type Block = Rc<[u8]>;

thread_local! {
    static ZEROES: Block = vec![0; BLOCK].into();
    static DESTROYED: Block = vec![DESTROYED_BYTE; BLOCK].into();
}

/// What the unwinding carries when the power is cut.
pub struct Cut;

/// What is on a disk.
#[derive(Clone)]
pub struct Medium {
    geometry: Geometry,
    pub blocks: BTreeMap<u64, Block>,
    /// Blocks that cannot be read until they are written again.
    unreadable: BTreeSet<u64>,
    /// Blocks that a write beside them destroys cannot be read either; otherwise they hold garbage.
    pub tells_destroyed: bool,
    /// Blocks before this one are written as a whole or not at all.
    pub whole_before: u64,
}

impl Medium {
    pub fn new(geometry: Geometry) -> Medium {
        Medium {
            geometry,
            blocks: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            tells_destroyed: false,
            whole_before: 0,
        }
    }

    /// Changes one bit of a block.
    pub fn flip(&mut self, block: u64) {
        let mut bytes = self.block(block).to_vec();
        bytes[(block % 4096) as usize] ^= 4;
        self.blocks.insert(block, bytes.into());
    }

    pub fn block(&self, block: u64) -> Block {
        let there = self.blocks.get(&block).cloned();
        there.unwrap_or_else(|| ZEROES.with(Rc::clone))
    }

    fn write(&mut self, write: &Write) {
        self.destroy_overlapped(write.extent);
        if write.data.is_empty() {
            // A zone is reset.
            for address in write.extent.start.0..write.extent.end().0 {
                self.blocks.remove(&address);
                self.unreadable.remove(&address);
            }
        }
        for (address, block) in (write.extent.start.0..).zip(&write.data) {
            self.blocks.insert(address, Rc::clone(block));
            self.unreadable.remove(&address);
        }
    }

    fn spoil(&mut self, extent: Extent) {
        self.destroy_overlapped(extent);
        self.unreadable.extend(extent.start.0..extent.end().0);
    }

    /// True when there are blocks that cannot be read.
    pub fn is_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// Replaces blocks that cannot be read by others, which hold nothing of use; not those for which
    /// the disk is trusted.
    pub fn mend(&mut self) {
        for block in self.unreadable.split_off(&self.whole_before) {
            self.blocks.insert(block, DESTROYED.with(Rc::clone));
        }
    }

    /// Where the write pointers of the zones are: behind the last block that was written since a reset.
    fn report(&self, first: ZoneId, room: BlockCount) -> Vec<u8> {
        let zones = self.geometry.zones.as_deref().expect("a disk with zones");
        report(zones, first, room, |zone| {
            let extent = zones.extent_of(zone);
            let mut written = self.blocks.range(extent.start.0..extent.end().0);
            let end = written.next_back().map_or(extent.start, |(last, _)| Lba(last + 1));
            let condition = match zones.is_conventional(zone) {
                true => ZoneCondition::NoWritePointer,
                false if end == extent.start => ZoneCondition::Empty,
                false if end == extent.end() => ZoneCondition::Full,
                false => ZoneCondition::Closed,
            };
            let has_pointer = matches!(condition, ZoneCondition::Empty | ZoneCondition::Closed);
            let write_pointer = has_pointer.then_some(end);
            ZoneDescriptor { condition, non_sequential: false, extent, write_pointer }
        })
    }

    fn can_read(&self, extent: Extent) -> bool {
        let mut blocks = self.unreadable.range(extent.start.0..extent.end().0);
        blocks.next().is_none()
    }

    fn destroy_overlapped(&mut self, extent: Extent) {
        let Some(tracks) = &self.geometry.tracks else {
            return;
        };
        for block in harness::Medium::destroyed_by(tracks, extent) {
            if self.tells_destroyed {
                self.unreadable.insert(block);
            }
            self.blocks.insert(block, DESTROYED.with(Rc::clone));
        }
    }
}

#[derive(Clone)]
struct Write {
    serial: u64,
    extent: Extent,
    data: Vec<Block>,
    completed: bool,
}

/// The state of a disk, outliving the engine.
pub struct Shared {
    /// What reads see.
    current: Medium,
    /// What a flush has covered.
    durable: Medium,
    /// Writes that no flush has covered, in the order in which they took effect.
    pending: Vec<Write>,
    /// Operations until the power is cut.
    pub operations_left: u64,
    /// Writes from this block on fail and leave everything as it was.
    pub fails_from: u64,
    /// After so many writes each fails in the middle, and spoils what was there.
    pub writes_left: u64,
    /// Writes may be forced.
    pub takes_forced_writes: bool,
}

impl Shared {
    /// A write there fails in the middle: it destroys what it overlaps, and its own blocks cannot be
    /// read.
    pub fn spoil(&mut self, extent: Extent) {
        self.current.spoil(extent);
        self.durable.spoil(extent);
    }

    /// A pending write is done. A forced one is durable, and what it has overwritten with it.
    fn is_written(&mut self, written: usize, forced: bool) {
        self.pending[written].completed = true;
        if !forced {
            return;
        }
        let write = self.pending.remove(written);
        let (before, after) = self.pending.split_at(written);
        // What it has overwritten, what that has overwritten, and so on: the oldest comes first.
        let mut durable = vec![write];
        let mut left = Vec::new();
        for other in before.iter().rev().cloned() {
            let overlaps = |newer: &Write| newer.extent.overlaps(other.extent);
            match other.completed && durable.iter().any(overlaps) {
                true => durable.push(other),
                false => left.push(other),
            }
        }
        left.reverse();
        for write in durable.iter().rev() {
            self.durable.write(write);
        }
        left.extend_from_slice(after);
        self.pending = left;
    }

    /// A flush fails, and with it all that it was to cover: no later one makes that durable.
    pub fn forget_pending(&mut self) {
        self.pending.retain(|write| !write.completed);
    }

    /// What is on the medium after the cut.
    pub fn after_the_cut(&mut self, rng: &mut Rng) -> Medium {
        let mut medium = self.durable.clone();
        let mode = rng.below(5);
        let torn = rng.below(self.pending.len().max(1) as u64) as usize;
        let prefix = rng.below(self.pending.len() as u64 + 1) as usize;
        for (index, write) in self.pending.iter().enumerate() {
            let kept = match mode {
                0 => false,
                1 => true,
                2 => index < prefix,
                _ => rng.below(2) == 0,
            };
            if mode == 4 && index == torn {
                medium.write(&tear(write, &medium, rng));
            } else if kept {
                medium.write(write);
            }
        }
        medium
    }
}

/// The write with some sectors of one of its blocks, and some of its blocks, as they were.
fn tear(write: &Write, medium: &Medium, rng: &mut Rng) -> Write {
    let mut torn = write.clone();
    for (address, block) in (write.extent.start.0..).zip(&mut torn.data) {
        let mut bytes = medium.block(address).to_vec();
        if address < medium.whole_before {
            if rng.below(2) == 0 {
                *block = bytes.into();
            }
            continue;
        }
        for sector in 0..8 {
            if rng.below(2) == 0 {
                let range = sector * 512..(sector + 1) * 512;
                bytes[range.clone()].copy_from_slice(&block[range]);
            }
        }
        *block = bytes.into();
    }
    torn
}

struct InFlight {
    finish: Instant,
    serial: u64,
    op: DiskOp,
    fails: bool,
    executed: bool,
    /// Of a flush: the writes that it covers.
    covers: Vec<u64>,
}

/// A disk with a volatile cache that finishes operations in any order.
pub struct CrashDisk {
    geometry: Geometry,
    shared: Rc<RefCell<Shared>>,
    rng: Rng,
    queue: Vec<InFlight>,
    serial: u64,
}

impl CrashDisk {
    pub fn new(medium: &Medium, seed: u64, operations: u64) -> CrashDisk {
        CrashDisk {
            geometry: medium.geometry.clone(),
            shared: Rc::new(RefCell::new(Shared {
                current: medium.clone(),
                durable: medium.clone(),
                pending: Vec::new(),
                operations_left: operations,
                fails_from: u64::MAX,
                writes_left: u64::MAX,
                takes_forced_writes: false,
            })),
            rng: Rng::new(seed, 77),
            queue: Vec::new(),
            serial: 0,
        }
    }

    pub fn shared(&self) -> Rc<RefCell<Shared>> {
        Rc::clone(&self.shared)
    }

    /// True when a write fails.
    fn fails(&self, extent: Extent) -> bool {
        let shared = &mut *self.shared.borrow_mut();
        let spoils = shared.writes_left == 0;
        match spoils {
            true => shared.spoil(extent),
            false => shared.writes_left -= 1,
        }
        spoils || extent.start.0 >= shared.fails_from
    }

    /// True when it has failed.
    fn execute(&mut self, serial: u64, op: &DiskOp, buffers: &mut Buffers) -> bool {
        let shared = &mut *self.shared.borrow_mut();
        match op.operation {
            Operation::Read if !shared.current.can_read(op.extent) => return true,
            Operation::Read => {
                let target = buffers.bytes_mut(op.buffer).expect("bytes");
                for (at, chunk) in target.chunks_exact_mut(BLOCK).enumerate() {
                    chunk.copy_from_slice(&shared.current.block(op.extent.start.0 + at as u64));
                }
            }
            Operation::Write { .. } | Operation::Zero { .. } => {
                let bytes = buffers.bytes(op.buffer).expect("bytes");
                let mut data: Vec<Block> = bytes.chunks_exact(BLOCK).map(Rc::from).collect();
                data.resize_with(op.extent.blocks.0 as usize, || ZEROES.with(Rc::clone));
                let write = Write { serial, extent: op.extent, data, completed: false };
                shared.current.write(&write);
                shared.pending.push(write);
            }
            Operation::ZoneReset => {
                let write = Write { serial, extent: op.extent, data: vec![], completed: false };
                shared.current.write(&write);
                shared.pending.push(write);
            }
            Operation::ZoneReport => {
                let first = self.geometry.zones.as_deref().map(|it| it.zone_of(op.extent.start));
                let report = shared.current.report(first.expect("zones"), op.extent.blocks);
                let target = buffers.bytes_mut(op.buffer).expect("bytes");
                target.fill(0);
                target[..report.len()].copy_from_slice(&report);
            }
            _ => {}
        }
        false
    }
}

impl Disk for CrashDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let left = self.shared.borrow().operations_left;
        if left == 0 {
            std::panic::resume_unwind(Box::new(Cut));
        }
        self.shared.borrow_mut().operations_left = left - 1;
        self.serial += 1;
        let serial = self.serial;
        let writes = matches!(op.operation, Operation::Write { .. });
        let is_refused = op.operation.is_zone_command() && self.geometry.zones.is_none();
        let fails = is_refused || writes && self.fails(op.extent);
        let executed = !fails && self.rng.below(2) == 0;
        let fails = fails || executed && self.execute(serial, &op, buffers);
        let shared = self.shared.borrow();
        let completed = shared.pending.iter().filter(|write| write.completed);
        let covers = completed.map(|write| write.serial).collect();
        drop(shared);
        // A disk tries a write that fails again and again.
        let tries = if fails { 30 } else { 1 };
        self.queue.push(InFlight {
            finish: Instant(now.0 + tries * self.rng.below(1_000)),
            serial,
            op,
            fails,
            executed,
            covers,
        });
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self.queue.iter().enumerate();
        let due = due.filter(|(_, in_flight)| in_flight.finish <= now);
        let index = due.min_by_key(|(_, it)| (it.finish, it.serial))?.0;
        let mut done = self.queue.remove(index);
        if !done.fails && !done.executed {
            done.fails = self.execute(done.serial, &done.op, buffers);
        }
        if done.fails {
            let error = match done.op.operation {
                Operation::Read => IoError::Medium,
                zoned if zoned.is_zone_command() => IoError::Invalid,
                _ => IoError::NoSpace,
            };
            return Some(DiskCompletion { id: done.op.id, result: Err(error) });
        }
        let shared = &mut *self.shared.borrow_mut();
        match done.op.operation {
            Operation::Write { durability } | Operation::Zero { durability, .. } => {
                let forced = durability == Durability::Durable;
                assert!(!forced || shared.takes_forced_writes, "flushes do it");
                let written = shared.pending.iter().position(|w| w.serial == done.serial);
                shared.is_written(written.expect("a pending write"), forced);
            }
            Operation::ZoneReset => {
                let reset = shared.pending.iter().position(|w| w.serial == done.serial);
                shared.is_written(reset.expect("a pending reset"), false);
            }
            Operation::Flush => {
                for write in &shared.pending {
                    if done.covers.contains(&write.serial) {
                        shared.durable.write(write);
                    }
                }
                shared.pending.retain(|write| !done.covers.contains(&write.serial));
            }
            _ => {}
        }
        Some(DiskCompletion { id: done.op.id, result: Ok(()) })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|in_flight| in_flight.finish).min()
    }
}
