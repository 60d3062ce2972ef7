//! Disks of bytes that forget in a power cut what no flush covered.

use crate::common::oracle::{BLOCK, SECTOR};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::Clock;
use imbrex_core::error::IoError;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::{Instant, Lba};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::resume_unwind;
use std::rc::Rc;

type Block = Rc<[u8]>;

fn zeroes() -> Block {
    Rc::from(vec![0; BLOCK])
}

/// The power of all disks: operations left until it fails.
pub type Power = Rc<Cell<u64>>;

/// What a disk of bytes holds.
#[derive(Default)]
pub struct Platter {
    durable: BTreeMap<u64, Block>,
    /// Writes that no flush has covered, in their order.
    volatile: Vec<(u64, u64, Block)>,
    serial: u64,
    /// Every read fails.
    pub dead: bool,
    /// Reads of these blocks fail.
    pub unreadable: Vec<u64>,
    /// A write that fails leaves its blocks unreadable until they are written again.
    pub failure_spoils: bool,
    /// The numbers of the writes and flushes that fail.
    failing: Range<u64>,
    /// Writes and flushes so far, failed ones too.
    changes: u64,
    pub writes: u64,
    pub flushes: u64,
    pub reads: u64,
}

/// What the power cut leaves of the writes that no flush has covered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Survivors {
    None,
    All,
    Some,
    Torn,
}

impl Platter {
    pub fn read(&self, block: u64) -> Block {
        let volatile = self.volatile.iter().rev().find(|(_, at, _)| *at == block);
        volatile
            .map(|(_, _, data)| Rc::clone(data))
            .or_else(|| self.durable.get(&block).cloned())
            .unwrap_or_else(zeroes)
    }

    /// Changes what a block holds, behind everybody's back.
    pub fn damage(&mut self, block: u64, byte: usize) {
        let mut data = self.read(block).to_vec();
        data[byte] ^= 0x40;
        self.volatile.retain(|(_, at, _)| *at != block);
        self.durable.insert(block, Rc::from(data));
    }

    /// Lets writes and flushes fail: as many as `times`, after as many more as `after`.
    pub fn fail(&mut self, after: u64, times: u64) {
        let first = self.changes + after;
        self.failing = first..first.saturating_add(times);
    }

    /// All that is there, as it is now.
    pub fn snapshot(&self) -> BTreeMap<u64, Block> {
        let mut blocks = self.durable.clone();
        for (_, at, data) in &self.volatile {
            blocks.insert(*at, Rc::clone(data));
        }
        blocks
    }

    pub fn set(&mut self, blocks: BTreeMap<u64, Block>) {
        self.durable = blocks;
        self.volatile.clear();
    }

    /// Forgets what no flush covered, but for the survivors. Only blocks from `torn_from` on tear:
    /// the layers below a cache keep its blocks whole.
    pub fn cut(&mut self, survivors: Survivors, torn_from: u64, rng: &mut Rng) {
        for (_, at, data) in std::mem::take(&mut self.volatile) {
            let old = self.durable.get(&at).cloned().unwrap_or_else(zeroes);
            let new = match survivors {
                Survivors::None => continue,
                Survivors::All => data,
                Survivors::Some if rng.below(2) == 0 => continue,
                Survivors::Torn if at < torn_from && rng.below(2) == 0 => continue,
                Survivors::Torn if at < torn_from => data,
                Survivors::Some => data,
                Survivors::Torn => {
                    let mut mix = old.to_vec();
                    for sector in (0..BLOCK).step_by(SECTOR) {
                        if rng.below(3) > 0 {
                            let range = sector..sector + SECTOR;
                            mix[range.clone()].copy_from_slice(&data[range]);
                        }
                    }
                    Rc::from(mix)
                }
            };
            self.durable.insert(at, new);
        }
    }
}

/// An operation in flight.
pub struct Pending {
    finish: Instant,
    serial: u64,
    op: DiskOp,
    fails: bool,
}

/// A disk whose operations take effect when they are submitted and finish in any order.
pub struct ByteDisk {
    pub geometry: Geometry,
    pub platter: Rc<RefCell<Platter>>,
    pub rng: Rng,
    pub queue: Vec<Pending>,
    pub latency_max_ns: u64,
    pub power: Power,
}

impl Disk for ByteDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        if self.power.get() == 0 {
            return;
        }
        self.power.set(self.power.get() - 1);
        let mut platter = self.platter.borrow_mut();
        platter.serial += 1;
        let serial = platter.serial;
        let changes = !matches!(op.operation, Operation::Read);
        let fails = changes && platter.failing.contains(&platter.changes);
        platter.changes += u64::from(changes);
        if platter.failure_spoils && changes {
            let written = op.extent.start.0..op.extent.end().0;
            platter.unreadable.retain(|at| !written.contains(at));
            if fails {
                platter.unreadable.extend(written);
            }
        }
        match op.operation {
            Operation::Write { .. } | Operation::Zero { .. } if !fails => {
                platter.writes += 1;
                let data = buffers.bytes(op.buffer).expect("bytes");
                for index in 0..op.extent.blocks.0 {
                    let from = index as usize * BLOCK;
                    let block = data.get(from..from + BLOCK);
                    let block = block.map_or_else(zeroes, Rc::from);
                    platter.volatile.push((serial, op.extent.start.0 + index, block));
                }
            }
            _ => {}
        }
        let wait = self.rng.below(self.latency_max_ns.max(1));
        self.queue.push(Pending { finish: Instant(now.0 + wait), serial, op, fails });
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if self.power.get() == 0 {
            return None;
        }
        let due = self.queue.iter().enumerate();
        let due = due.filter(|(_, pending)| pending.finish <= now);
        let index = due.min_by_key(|(_, pending)| (pending.finish, pending.serial))?.0;
        let Pending { op, serial, fails, .. } = self.queue.remove(index);
        let in_flight: Vec<u64> = self.queue.iter().map(|pending| pending.serial).collect();
        let mut platter = self.platter.borrow_mut();
        let mut result = if fails { Err(IoError::Medium) } else { Ok(()) };
        match op.operation {
            Operation::Read => {
                platter.reads += 1;
                let bytes = buffers.bytes_mut(op.buffer).expect("bytes");
                for (index, target) in bytes.chunks_exact_mut(BLOCK).enumerate() {
                    let block = op.extent.start.0 + index as u64;
                    if platter.dead || platter.unreadable.contains(&block) {
                        result = Err(IoError::Medium);
                        target.fill(0xee);
                    } else {
                        target.copy_from_slice(&platter.read(block));
                    }
                }
            }
            Operation::Flush if result.is_ok() => {
                platter.flushes += 1;
                // It covers what had completed before it came.
                let covered = |write: &u64| *write < serial && !in_flight.contains(write);
                let volatile = std::mem::take(&mut platter.volatile);
                for (write, at, data) in volatile {
                    if covered(&write) {
                        platter.durable.insert(at, data);
                    } else {
                        platter.volatile.push((write, at, data));
                    }
                }
            }
            _ => {}
        }
        if op.operation.is_durable() && result.is_ok() {
            let volatile = std::mem::take(&mut platter.volatile);
            for (write, at, data) in volatile {
                // An older write of the block that is still volatile must not come after it.
                if write <= serial && op.extent.contains(Lba(at)) {
                    platter.durable.insert(at, data);
                } else {
                    platter.volatile.push((write, at, data));
                }
            }
        }
        Some(DiskCompletion { id: op.id, result })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|pending| pending.finish).min()
    }
}

pub struct PowerCut;

/// Jumps to the next event, and ends everything when the power is gone.
pub struct PoweredClock {
    pub now: Instant,
    pub power: Power,
}

impl Clock for PoweredClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        if self.power.get() == 0 {
            resume_unwind(Box::new(PowerCut));
        }
        let until = until.expect("the stack waits for something that will never come");
        self.now = self.now.max(until);
        self.now
    }
}
