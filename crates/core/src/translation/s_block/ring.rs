//! The ring of a region: single blocks on the disk that wait for the rewrite of their S-block.

use crate::saved::SavedValue;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Bytes of a place in memory.
pub const PLACE_BYTES: u64 = core::mem::size_of::<Slot>() as u64;
/// No block.
const FREE: u32 = u32::MAX;

/// A place: a block, and which of its parts of 4 KiB are there.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Slot {
    /// The number of the block in its region.
    pub block: u32,
    /// When the block came into the ring.
    since: u32,
    /// Parts that are there.
    pub valid: u64,
    /// Parts that were written here since the place was last free.
    pub written: u64,
    /// Writes on their way to it.
    writes: u16,
    /// Reads on their way, and a record that a power cut could still undo.
    holds: u16,
}

/// Where a part of a block is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// To this place.
    Place(u32),
    /// Nowhere yet: the S-block with the most blocks has to be rewritten.
    Full,
    /// Nowhere yet: places wait for reads or records.
    Later,
}

/// The ring of a region.
#[derive(Clone, Debug, SavedValue)]
pub struct Ring {
    slots: Box<[Slot]>,
    /// Blocks that it takes in, and that are in.
    blocks_max: u32,
    blocks: u32,
    next: u32,
    clock: u32,
    /// A block that is written again goes over its older parts.
    in_place: bool,
    /// The checksum of each part of each place, which stays until the place is written again; empty
    /// where there are none.
    sums: Box<[u32]>,
    /// Parts of a place.
    parts: u64,
}

impl Ring {
    /// An empty ring, without checksums.
    pub fn new(blocks_max: u64, places: u64, in_place: bool) -> Ring {
        let free = Slot { block: FREE, since: 0, valid: 0, written: 0, writes: 0, holds: 0 };
        Ring {
            slots: vec![free; places as usize].into(),
            blocks_max: blocks_max as u32,
            blocks: 0,
            next: 0,
            clock: 0,
            in_place,
            sums: Box::default(),
            parts: 0,
        }
    }

    /// The same with checksums of the parts of its places, so many each.
    pub fn with_sums(self, parts: u64) -> Ring {
        let sums = vec![0; self.slots.len() * parts as usize].into();
        Ring { sums, parts, ..self }
    }

    /// The checksums of a place from a part on; none where there are none.
    pub fn sums(&self, place: u32, from: u64) -> &[u32] {
        let start = (u64::from(place) * self.parts) as usize;
        let own = &self.sums[start..start + self.parts as usize];
        own.get(from as usize..).unwrap_or(&[])
    }

    /// The checksums of parts of a place, the first part first; none where there are none.
    pub fn sums_of(&self, place: u32, parts: u64) -> impl Iterator<Item = u32> + '_ {
        let start = (u64::from(place) * self.parts) as usize;
        let own = &self.sums[start..start + self.parts as usize];
        let own = own.iter().enumerate();
        own.filter(move |(part, _)| parts >> part & 1 == 1).map(|(_, sum)| *sum)
    }

    /// Sets the checksum of a part of a place, where there are some.
    pub fn set_sum(&mut self, place: u32, part: u64, sum: u32) {
        let at = (u64::from(place) * self.parts + part) as usize;
        if let Some(kept) = self.sums.get_mut(at) {
            *kept = sum;
        }
    }

    /// A place.
    pub fn slot(&self, place: u32) -> &Slot {
        &self.slots[place as usize]
    }

    /// The places that hold parts of blocks `from .. to` of the region.
    pub fn places_of(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, Slot)> + '_ {
        let slots = (0..).zip(self.slots.iter().copied());
        slots.filter(move |(_, slot)| slot.valid != 0 && (from..to).contains(&slot.block))
    }

    /// The place that holds a part of a block.
    pub fn place_with(&self, block: u32, part: u64) -> Option<u32> {
        if self.blocks == 0 {
            return None;
        }
        let holds = |slot: &Slot| slot.block == block && slot.valid >> part & 1 == 1;
        let place = self.slots.iter().position(holds)?;
        Some(place as u32)
    }

    fn has(&self, block: u32) -> bool {
        self.slots.iter().any(|slot| slot.block == block && slot.is_live())
    }

    /// Finds a place for parts of a block, and reserves it.
    pub fn place_for(&mut self, block: u32, parts: u64) -> Found {
        let own = |slot: &Slot| slot.block == block && slot.is_live();
        let may_go = |slot: &Slot| self.in_place || slot.written & parts == 0;
        let found = self.slots.iter().position(|slot| own(slot) && may_go(slot));
        let place = match found {
            Some(place) => place as u32,
            None => {
                let is_new = !self.has(block);
                if is_new && self.blocks == self.blocks_max {
                    return Found::Full;
                }
                match self.free_place() {
                    Found::Place(place) => {
                        self.blocks += u32::from(is_new);
                        self.clock = self.clock.wrapping_add(1);
                        let since = self.oldest(block).unwrap_or(self.clock);
                        let slot = &mut self.slots[place as usize];
                        (slot.block, slot.since) = (block, since);
                        place
                    }
                    none => return none,
                }
            }
        };
        let slot = &mut self.slots[place as usize];
        slot.writes += 1;
        slot.written |= parts;
        Found::Place(place)
    }

    fn oldest(&self, block: u32) -> Option<u32> {
        let own = |slot: &&Slot| slot.block == block && slot.is_live();
        self.slots.iter().filter(own).map(|slot| slot.since).min()
    }

    fn free_place(&mut self) -> Found {
        let places = self.slots.len() as u32;
        let order = (self.next..places).chain(0..self.next);
        for place in order {
            let slot = &self.slots[place as usize];
            if !slot.is_live() && slot.holds == 0 {
                self.next = (place + 1) % places;
                return Found::Place(place);
            }
        }
        match self.slots.iter().any(|slot| !slot.is_live()) {
            true => Found::Later,
            false => Found::Full,
        }
    }

    /// Parts of a block are in a place now, and nowhere else. Calls `freed` for each place that holds
    /// nothing any more.
    pub fn written(&mut self, place: u32, parts: u64, mut freed: impl FnMut(u32)) {
        let slot = &mut self.slots[place as usize];
        slot.writes -= 1;
        slot.valid |= parts;
        let block = slot.block;
        for other in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[other as usize];
            if other != place && slot.block == block && slot.valid & parts != 0 {
                slot.valid &= !parts;
                if !slot.is_live() {
                    slot.clear();
                    freed(other);
                }
            }
        }
    }

    /// A write to a place has failed.
    pub fn failed(&mut self, place: u32) {
        let block = self.slots[place as usize].block;
        let slot = &mut self.slots[place as usize];
        slot.writes -= 1;
        if !slot.is_live() {
            slot.clear();
            self.blocks -= u32::from(!self.has(block));
        }
    }

    /// Blocks `from .. to` leave the ring. Calls `freed` for each of their places.
    pub fn forget(&mut self, from: u32, to: u32, mut freed: impl FnMut(u32)) {
        for place in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[place as usize];
            if slot.is_live() && (from..to).contains(&slot.block) {
                assert_eq!(slot.writes, 0, "a block leaves while it is written");
                let block = slot.block;
                slot.clear();
                self.blocks -= u32::from(!self.has(block));
                freed(place);
            }
        }
    }

    /// A place must not be used anew until [`release`](Self::release).
    pub fn hold(&mut self, place: u32) {
        self.slots[place as usize].holds += 1;
    }

    /// Takes back a [`hold`](Self::hold).
    pub fn release(&mut self, place: u32) {
        self.slots[place as usize].holds -= 1;
    }

    /// The S-block of so many blocks with the most blocks in the ring; of several the one whose block
    /// came first.
    pub fn fullest(&self, blocks: u32, scratch: &mut Vec<(u32, u32)>) -> Option<u32> {
        let live = self.slots.iter().filter(|slot| slot.is_live());
        scratch.clear();
        scratch.extend(live.map(|slot| (slot.block, slot.since)));
        scratch.sort_unstable();
        scratch.dedup_by_key(|(block, _)| *block);
        let of_segment = |a: &(u32, u32), b: &(u32, u32)| a.0 / blocks == b.0 / blocks;
        let since = |own: &[(u32, u32)]| own.iter().map(|(_, since)| *since).min();
        let order = |own: &&[(u32, u32)]| (own.len(), Reverse(since(own)));
        let fullest = scratch.chunk_by(of_segment).max_by_key(order)?;
        Some(fullest[0].0 / blocks)
    }

    /// Takes parts of a block back: those that a record or a checkpoint names.
    pub fn restore(&mut self, place: u32, block: u32, parts: u64) {
        let is_new = !self.has(block);
        let since = self.oldest(block);
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let slot = &mut self.slots[place as usize];
        if slot.block != block {
            // What the place held was superseded by a record that is gone.
            slot.clear();
            (slot.block, slot.since) = (block, since.unwrap_or(clock));
        }
        slot.written |= parts;
        slot.writes += 1;
        self.blocks += u32::from(is_new);
        self.written(place, parts, |_| {});
    }

    /// Blocks that are in.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// How many places there are.
    pub fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The places that hold something, the block that came first first.
    pub fn in_order(&self) -> Vec<u32> {
        let live = |place: &u32| self.slots[*place as usize].valid != 0;
        let mut places: Vec<u32> = (0..self.places()).filter(live).collect();
        places.sort_by_key(|place| (self.slots[*place as usize].since, *place));
        places
    }
}

impl Slot {
    fn is_live(&self) -> bool {
        self.valid != 0 || self.writes != 0
    }

    fn clear(&mut self) {
        (self.block, self.valid, self.written) = (FREE, 0, 0);
    }
}
