//! A disk that loses power: what no flush has covered may or may not be there afterwards, in part
//! and torn.

use crate::harness;
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;
use imbrex_core::units::Instant;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const BLOCK: usize = 4096;
type Block = Rc<[u8]>;

/// What the unwinding carries when the power is cut.
pub struct Cut;

/// What is on a disk.
#[derive(Clone)]
pub struct Medium {
    geometry: Geometry,
    pub blocks: BTreeMap<u64, Block>,
}

impl Medium {
    pub fn new(geometry: Geometry) -> Medium {
        Medium {
            geometry,
            blocks: BTreeMap::new(),
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
        there.unwrap_or_else(|| vec![0; BLOCK].into())
    }

    fn write(&mut self, write: &Write) {
        self.destroy_overlapped(write.extent);
        for (address, block) in (write.extent.start.0..).zip(&write.data) {
            self.blocks.insert(address, Rc::clone(block));
        }
    }

    fn destroy_overlapped(&mut self, extent: Extent) {
        let Some(tracks) = &self.geometry.tracks else {
            return;
        };
        for block in harness::Medium::destroyed_by(tracks, extent) {
            self.blocks.insert(block, vec![0xdd; BLOCK].into());
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
}

impl Shared {
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
            })),
            rng: Rng::new(seed, 77),
            queue: Vec::new(),
            serial: 0,
        }
    }

    pub fn shared(&self) -> Rc<RefCell<Shared>> {
        Rc::clone(&self.shared)
    }

    fn execute(&mut self, serial: u64, op: &DiskOp, buffers: &mut Buffers) {
        let shared = &mut *self.shared.borrow_mut();
        match op.operation {
            Operation::Read => {
                let target = buffers.bytes_mut(op.buffer).expect("bytes");
                for (at, chunk) in target.chunks_exact_mut(BLOCK).enumerate() {
                    chunk.copy_from_slice(&shared.current.block(op.extent.start.0 + at as u64));
                }
            }
            Operation::Write { .. } => {
                let bytes = buffers.bytes(op.buffer).expect("bytes");
                let write = Write {
                    serial,
                    extent: op.extent,
                    data: bytes.chunks_exact(BLOCK).map(Rc::from).collect(),
                    completed: false,
                };
                shared.current.write(&write);
                shared.pending.push(write);
            }
            _ => {}
        }
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
        let fails = writes && op.extent.start.0 >= self.shared.borrow().fails_from;
        let executed = !fails && self.rng.below(2) == 0;
        if executed {
            self.execute(serial, &op, buffers);
        }
        let shared = self.shared.borrow();
        let completed = shared.pending.iter().filter(|write| write.completed);
        let covers = completed.map(|write| write.serial).collect();
        drop(shared);
        self.queue.push(InFlight {
            finish: Instant(now.0 + self.rng.below(1_000)),
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
        let done = self.queue.remove(index);
        if done.fails {
            return Some(DiskCompletion {
                id: done.op.id,
                result: Err(IoError::NoSpace),
            });
        }
        if !done.executed {
            self.execute(done.serial, &done.op, buffers);
        }
        let shared = &mut *self.shared.borrow_mut();
        match done.op.operation {
            Operation::Write { durability } => {
                assert_eq!(durability, Durability::Cached, "flushes do it");
                let write = shared.pending.iter_mut().find(|w| w.serial == done.serial);
                write.expect("a pending write").completed = true;
            }
            Operation::Flush => {
                for write in &shared.pending {
                    if done.covers.contains(&write.serial) {
                        shared.durable.write(write);
                    }
                }
                shared
                    .pending
                    .retain(|write| !done.covers.contains(&write.serial));
            }
            _ => {}
        }
        Some(DiskCompletion {
            id: done.op.id,
            result: Ok(()),
        })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|in_flight| in_flight.finish).min()
    }
}
