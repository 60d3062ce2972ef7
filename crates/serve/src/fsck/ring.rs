//! The ring of a region of S-blocks: single blocks that wait for the rewrite of their S-block.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A place that holds parts of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingPlace {
    /// The block of the region.
    pub block: u32,
    /// Which parts of 4 KiB are there: bit 0 is the first.
    pub parts: u64,
    /// The checksums that are known, by part.
    sums: BTreeMap<u8, u32>,
}

/// The places that hold something. A part of a block is in one place at most.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ring {
    /// By number.
    pub places: BTreeMap<u32, RingPlace>,
    /// Block and place.
    by_block: BTreeSet<(u32, u32)>,
}

impl Ring {
    /// True when the place is in use, or holds one of these parts of the block.
    pub fn has_any(&self, place: u32, block: u32, parts: u64) -> bool {
        let mut places = self.places_of(block);
        self.places.contains_key(&place) || places.any(|at| self.places[&at].parts & parts != 0)
    }

    /// Parts of a block are in a place now, and in no other.
    pub fn put(&mut self, place: u32, block: u32, parts: u64, sums: &[(u8, u32)]) {
        let before = self.places.get(&place).map(|it| it.block);
        if before.is_some_and(|before| before != block) {
            // What the place held was superseded by a record that is gone.
            self.remove(place);
        }
        let others: Vec<u32> = self.places_of(block).filter(|at| *at != place).collect();
        for other in others {
            let it = self.places.get_mut(&other).expect("a place of the block");
            it.parts &= !parts;
            it.sums.retain(|part, _| parts >> part & 1 == 0);
            if it.parts == 0 {
                self.remove(other);
            }
        }
        let it = self.places.entry(place).or_insert(RingPlace {
            block,
            parts: 0,
            sums: BTreeMap::new(),
        });
        it.parts |= parts;
        it.sums.retain(|part, _| parts >> part & 1 == 0);
        it.sums.extend(sums.iter().copied());
        self.by_block.insert((block, place));
    }

    /// Blocks leave the ring.
    pub fn forget(&mut self, blocks: Range<u32>) {
        let gone = self.by_block.range((blocks.start, 0)..(blocks.end, 0));
        let gone: Vec<u32> = gone.map(|(_, place)| *place).collect();
        gone.into_iter().for_each(|place| self.remove(place));
    }

    /// The place of a part of a block, and its checksum where that is known.
    pub fn find(&self, block: u32, part: u64) -> Option<(u32, Option<u32>)> {
        let mut places = self.places_of(block);
        let place = places.find(|at| self.places[at].parts >> part & 1 == 1)?;
        let sums = &self.places[&place].sums;
        Some((place, sums.get(&(part as u8)).copied()))
    }

    /// Every part: its place, its block, its number in the block, and its checksum where that is known.
    pub fn parts(&self) -> impl Iterator<Item = (u32, u32, u64, Option<u32>)> + '_ {
        self.places.iter().flat_map(|(place, it)| {
            let there = (0..64u8).filter(|part| it.parts >> part & 1 == 1);
            there.map(|part| {
                let checksum = it.sums.get(&part).copied();
                (*place, it.block, u64::from(part), checksum)
            })
        })
    }

    fn places_of(&self, block: u32) -> impl Iterator<Item = u32> + '_ {
        let own = self.by_block.range((block, 0)..=(block, u32::MAX));
        own.map(|(_, place)| *place)
    }

    fn remove(&mut self, place: u32) {
        if let Some(it) = self.places.remove(&place) {
            self.by_block.remove(&(it.block, place));
        }
    }
}
