//! Which block has a copy, and where on the flash.

use super::settings::ReadCacheSettings;
use crate::map::{AddressMap, LruList, address_map};
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Stands for no block.
const NOBODY: u64 = u64::MAX;

/// What is known of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum State {
    /// Its data is yet to come.
    Reserved,
    /// It is on the flash, or on its way there.
    Stored,
}

/// The copies. An entry is a place on the flash.
#[derive(Debug, SavedValue)]
pub(super) struct Table {
    /// Blocks of 4 KiB of a block.
    block: u64,
    capacity: u32,
    /// The entry of each block that has one.
    map: AddressMap<u32>,
    /// By entry: its block, or [`NOBODY`].
    blocks: Vec<u64>,
    states: Vec<State>,
    /// By entry, a checksum for each 4 KiB.
    sums: Vec<u32>,
    recency: LruList,
    free: Vec<u32>,
    stored: u32,
}

impl Table {
    pub fn new(settings: &ReadCacheSettings) -> Table {
        let places = settings.places();
        Table {
            block: settings.block.0,
            capacity: settings.capacity_blocks,
            map: address_map(settings.capacity_blocks as usize),
            blocks: vec![NOBODY; places as usize],
            states: vec![State::Reserved; places as usize],
            sums: vec![0; places as usize * settings.block.0 as usize],
            recency: LruList::new(),
            free: (0..places).rev().collect(),
            stored: 0,
        }
    }

    /// How many entries there can be.
    pub fn entries(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// How many blocks have one.
    pub fn stored(&self) -> u32 {
        self.stored
    }

    /// Bytes that the table takes.
    pub fn table_bytes(&self) -> u64 {
        // A look-up finds an entry by 16 bytes.
        let entries = self.blocks.len() * (8 + size_of::<State>() + 8 + 16);
        (entries + 4 * self.sums.len()) as u64
    }

    /// The entry of a block.
    #[inline]
    pub fn find(&self, block: u64) -> Option<u32> {
        self.map.get(&block).copied()
    }

    /// The block of an entry.
    pub fn block(&self, entry: u32) -> Option<u64> {
        let block = self.blocks[entry as usize];
        (block != NOBODY).then_some(block)
    }

    /// True while the entry is that of a block.
    #[inline]
    pub fn is_in(&self, entry: u32) -> bool {
        self.blocks[entry as usize] != NOBODY
    }

    #[inline]
    pub fn state(&self, entry: u32) -> State {
        self.states[entry as usize]
    }

    #[inline]
    pub fn set_state(&mut self, entry: u32, state: State) {
        self.states[entry as usize] = state;
    }

    /// The entry is the most recently used.
    #[inline]
    pub fn touch(&mut self, entry: u32) {
        self.recency.touch(entry);
    }

    /// Who must go before another comes; none while there is room.
    pub fn victim(&self) -> Option<u32> {
        match self.stored < self.capacity {
            true => None,
            false => self.recency.oldest(),
        }
    }

    /// Reserves an entry for a block that has none; none when every place is still in use.
    pub fn insert(&mut self, block: u64) -> Option<u32> {
        let entry = self.free.pop()?;
        self.map.insert(block, entry);
        self.blocks[entry as usize] = block;
        self.states[entry as usize] = State::Reserved;
        self.recency.push_newest(entry);
        self.stored += 1;
        Some(entry)
    }

    /// The block has no copy any more; its place is not free yet.
    pub fn remove(&mut self, entry: u32) {
        let block = core::mem::replace(&mut self.blocks[entry as usize], NOBODY);
        self.map.remove(&block);
        self.recency.remove(entry);
        self.stored -= 1;
    }

    /// A place whose entry was removed may be used again.
    pub fn free(&mut self, entry: u32) {
        self.free.push(entry);
    }

    /// Where an entry lies on the flash.
    #[inline]
    pub fn place(&self, entry: u32) -> u64 {
        u64::from(entry) * self.block
    }

    /// Keeps checksums of a part of an entry.
    pub fn keep_sums(&mut self, entry: u32, inside: u64, sums: &[u32]) {
        let start = (self.place(entry) + inside) as usize;
        self.sums[start..start + sums.len()].copy_from_slice(sums);
    }

    /// The checksums of a part of an entry.
    pub fn sums(&self, entry: u32, inside: u64, blocks: usize) -> &[u32] {
        let start = (self.place(entry) + inside) as usize;
        &self.sums[start..start + blocks]
    }
}
