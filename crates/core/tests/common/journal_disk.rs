//! A disk of bytes that remembers everything that happened to it, so that the state which a power
//! cut would leave behind can be put together for any moment of its life.

use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The bytes of a block.
pub type Block = Rc<[u8]>;

/// What blocks hold; a missing one is zero.
pub type Image = BTreeMap<u64, Block>;

/// One thing that happened, to the disk or to the host above it.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A block went to the disk; the number names the write.
    Write { number: u64, address: u64, block: Block },
    /// The disk has answered a flush that covers these writes.
    FlushDone { covered: Vec<u64> },
    /// The host has sent a version of a block.
    Sent { block: u64, version: u64 },
    /// The host was told that a version is durable.
    Durable { block: u64, version: u64 },
    /// The host was told that a flush is done, and with it these versions are durable.
    Flushed { versions: BTreeMap<u64, u64> },
}

/// What a disk of bytes holds, shared with the test.
#[derive(Default)]
pub struct ByteMedium {
    pub image: Image,
    pub happenings: Vec<Happening>,
    /// Every operation in the order of submission.
    pub operations: Vec<(Operation, Extent)>,
    /// Blocks that cannot be read.
    pub unreadable: BTreeSet<u64>,
    /// The operation with this index fails, and leaves garbage where a write was going.
    pub fails: Option<usize>,
}

impl ByteMedium {
    pub fn block(&self, address: u64) -> Block {
        block_of(&self.image, address)
    }

    /// Where what a host of [`super::journal_world`] last wrote to a block is: it may be in several places.
    pub fn places_of(&self, block: u64) -> Vec<u64> {
        let version = |bytes: &[u8]| u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
        let copies = self.image.iter().filter(|(_, bytes)| {
            bytes[..8] == block.to_le_bytes() && bytes[16..24] == (block ^ 1 << 32).to_le_bytes()
        });
        let copies: Vec<(u64, u64)> = copies.map(|(at, bytes)| (version(bytes), *at)).collect();
        let newest = copies.iter().map(|(version, _)| *version).max();
        let newest = copies.iter().filter(|(version, _)| Some(*version) == newest);
        newest.map(|(_, address)| *address).collect()
    }

    /// Changes one bit of a block.
    pub fn flip(&mut self, address: u64) {
        let mut bytes = self.block(address).to_vec();
        bytes[1000] ^= 1;
        self.image.insert(address, bytes.into());
    }

    /// How many writes of one block were sent to an extent.
    pub fn writes_in(&self, extent: Extent) -> usize {
        let inside = |(operation, to): &&(Operation, Extent)| {
            *operation == Operation::WRITE && extent.covers(*to)
        };
        self.operations.iter().filter(inside).count()
    }

    pub fn flushes(&self) -> usize {
        let is_flush = |(operation, _): &&(Operation, Extent)| *operation == Operation::Flush;
        self.operations.iter().filter(is_flush).count()
    }
}

/// The whole of a write, for [`after_power_cut`].
pub const ALL_SECTORS: u8 = 0xff;

/// A block of an image.
pub fn block_of(image: &Image, address: u64) -> Block {
    let zero = || vec![0; BLOCK_BYTES as usize].into();
    image.get(&address).cloned().unwrap_or_else(zero)
}

/// What is left of `before` when the power fails after `happenings`: all that a flush covers, and
/// of every other write the sectors of 512 bytes whose bits `fate` sets.
pub fn after_power_cut(
    before: &Image,
    happenings: &[Happening],
    mut fate: impl FnMut(u64) -> u8,
) -> Image {
    let mut durable: BTreeSet<u64> = BTreeSet::new();
    for happening in happenings {
        if let Happening::FlushDone { covered } = happening {
            durable.extend(covered);
        }
    }
    let mut image = before.clone();
    for happening in happenings {
        let Happening::Write { number, address, block } = happening else {
            continue;
        };
        let sectors = match durable.contains(number) {
            true => ALL_SECTORS,
            false => fate(*number),
        };
        if sectors != 0 {
            let mut bytes = block_of(&image, *address).to_vec();
            for sector in (0..8).filter(|sector| sectors & 1 << sector != 0) {
                let there = sector * 512..(sector + 1) * 512;
                bytes[there.clone()].copy_from_slice(&block[there]);
            }
            image.insert(*address, bytes.into());
        }
    }
    image
}

struct Pending {
    finish: Instant,
    serial: usize,
    op: DiskOp,
    /// Of a write the numbers of its blocks, of a flush those it covers.
    numbers: Vec<u64>,
    result: Result<(), IoError>,
}

/// A disk of bytes that finishes operations in any order.
pub struct ByteDisk {
    geometry: Geometry,
    medium: Rc<RefCell<ByteMedium>>,
    rng: Rng,
    queue: Vec<Pending>,
    latency_max_ns: u64,
    completed: Vec<u64>,
    next_number: u64,
    /// Where the disk begins in the medium, when several disks share one.
    base: u64,
}

impl ByteDisk {
    /// A disk over a medium. With a latency of 0 every operation is instant and in order.
    pub fn new(
        blocks: u64,
        medium: &Rc<RefCell<ByteMedium>>,
        seed: u64,
        latency_max_ns: u64,
    ) -> ByteDisk {
        ByteDisk {
            geometry: Geometry::plain(BlockCount(blocks), Media::SolidState),
            medium: Rc::clone(medium),
            rng: Rng::new(seed, 78),
            queue: Vec::new(),
            latency_max_ns,
            completed: Vec::new(),
            next_number: 0,
            base: 0,
        }
    }

    /// A disk that shares its medium with others, from the block `base` of the medium on.
    pub fn at(
        base: u64,
        blocks: u64,
        medium: &Rc<RefCell<ByteMedium>>,
        seed: u64,
        latency_max_ns: u64,
    ) -> ByteDisk {
        ByteDisk {
            next_number: base << 32,
            base,
            ..ByteDisk::new(blocks, medium, seed + base, latency_max_ns)
        }
    }

    fn write(&mut self, op: &DiskOp, bytes: &[u8]) -> Vec<u64> {
        let medium = &mut *self.medium.borrow_mut();
        let blocks = bytes.chunks_exact(BLOCK_BYTES as usize);
        (self.base + op.extent.start.0..)
            .zip(blocks)
            .map(|(address, block)| {
                let block: Block = block.into();
                let number = self.next_number;
                self.next_number += 1;
                medium.image.insert(address, Rc::clone(&block));
                medium.happenings.push(Happening::Write { number, address, block });
                number
            })
            .collect()
    }
}

impl Disk for ByteDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let mut medium = self.medium.borrow_mut();
        let index = medium.operations.len();
        medium.operations.push((op.operation, op.extent));
        let fails = medium.fails == Some(index);
        let mut result = if fails { Err(IoError::Medium) } else { Ok(()) };
        let mut numbers = Vec::new();
        match op.operation {
            Operation::Read => {
                let first = self.base + op.extent.start.0;
                for (i, address) in (first..first + op.extent.blocks.0).enumerate() {
                    if medium.unreadable.contains(&address) {
                        result = Err(IoError::Medium);
                    }
                    let target = buffers.bytes_mut(op.buffer.part(i as u64, 1));
                    target.expect("buffers of bytes").copy_from_slice(&medium.block(address));
                }
            }
            Operation::Write { .. } => {
                drop(medium);
                let mut bytes = buffers.bytes(op.buffer).expect("buffers of bytes").to_vec();
                if fails {
                    bytes.fill(0xa5);
                }
                numbers = self.write(&op, &bytes);
            }
            Operation::Zero { .. } => {
                drop(medium);
                let bytes = vec![0; op.extent.blocks.bytes() as usize];
                numbers = self.write(&op, &bytes);
            }
            Operation::Flush => numbers.clone_from(&self.completed),
            other => unreachable!("{other:?} on a disk for journals"),
        }
        let wait = match self.latency_max_ns {
            0 => 0,
            most => self.rng.below(most),
        };
        self.queue.push(Pending {
            finish: Instant(now.0 + wait),
            serial: index,
            op,
            numbers,
            result,
        });
    }

    fn poll(&mut self, now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        let due = self.queue.iter().enumerate();
        let due = due.filter(|(_, pending)| pending.finish <= now);
        let (index, _) = due.min_by_key(|(_, pending)| (pending.finish, pending.serial))?;
        let pending = self.queue.remove(index);
        let happenings = &mut self.medium.borrow_mut().happenings;
        match pending.op.operation {
            _ if pending.result.is_err() => {}
            Operation::Write { .. } | Operation::Zero { .. } => {
                self.completed.extend(pending.numbers)
            }
            Operation::Flush => {
                let covered = pending.numbers;
                self.completed.retain(|number| !covered.contains(number));
                happenings.push(Happening::FlushDone { covered });
            }
            _ => {}
        }
        Some(DiskCompletion { id: pending.op.id, result: pending.result })
    }

    fn next_event(&self) -> Option<Instant> {
        self.queue.iter().map(|pending| pending.finish).min()
    }
}
