//! The places of a log, and which block each holds.
//!
//! A place is *live* while no other copy of its block is known to be durable, *taken* while it is
//! written, and *held* until a record is durable that makes it free.

use super::codec::{self, Live};
use crate::buffer::BufferSlice;
use crate::durability::{FlushTicket, Lsn};
use crate::extent::Extent;
use crate::ledger::Quarantine;
use crate::map::{AddressMap, Slab, address_map};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The owner of a place that can be taken, and of one that nobody owns and nobody can take.
const FREE: u64 = u64::MAX;
const NOBODY: u64 = u64::MAX - 1;
/// Longest run of one record. Its checksums take a quarter of a journal block.
const RUN_BLOCKS_MAX: u64 = 256;

/// A place with the block that it had at some time.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Held {
    lba: u64,
    place: u32,
    /// How often the place had been taken, or what it has had gone down.
    use_of_place: u32,
}

/// A run on its way to the log.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct LogWrite {
    pub task: u32,
    pub lba: u64,
    pub place: u32,
    pub buffer: BufferSlice,
    /// The next run of the same task.
    pub next: u32,
}

/// The places.
#[derive(Debug, SavedValue)]
pub(super) struct Log {
    start: u64,
    owners: Vec<u64>,
    uses: Vec<u32>,
    checksums: Vec<u32>,
    free: u64,
    cursor: usize,
    by_lba: AddressMap<u32>,
    quarantine: Quarantine<u32>,
    /// Blocks that went down, each with the flush below that makes them durable.
    destaged: VecDeque<(FlushTicket, Held)>,
    /// Blocks that are durable below, of which the log was not told.
    clean: VecDeque<Held>,
    pub is_flush_asked: bool,
    pub writes: Slab<LogWrite>,
    /// Tasks that wait for places, or for room in the journal.
    pub waiting: VecDeque<u32>,
    /// A record in the making: its payload, and the runs of a clean one.
    pub payload: Vec<u8>,
    pub runs: Vec<(u64, u32, u32)>,
}

impl Log {
    /// So many places from a block of the port, all free.
    pub fn new(start: u64, places: u64) -> Log {
        Log {
            start,
            owners: vec![FREE; places as usize],
            uses: vec![0; places as usize],
            checksums: vec![0; places as usize],
            free: places,
            cursor: 0,
            by_lba: address_map(places as usize),
            quarantine: Quarantine::default(),
            destaged: VecDeque::with_capacity(places as usize),
            clean: VecDeque::with_capacity(places as usize),
            is_flush_asked: false,
            writes: Slab::default(),
            waiting: VecDeque::new(),
            payload: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub fn places(&self) -> u64 {
        self.owners.len() as u64
    }

    /// What a live place must hold.
    pub fn checksum(&self, place: u32) -> u32 {
        self.checksums[place as usize]
    }

    pub fn free(&self) -> u64 {
        self.free
    }

    /// Where a run of places lies on the port.
    pub fn extent_of(&self, place: u32, blocks: u64) -> Extent {
        Extent::new(self.start + u64::from(place), blocks)
    }

    /// True when the log has a block, and nobody else may.
    pub fn has(&self, lba: u64) -> bool {
        self.by_lba.contains_key(&lba)
    }

    /// Takes the next run of free places, at most so many. Panics when none is free.
    pub fn take(&mut self, blocks: u64) -> (u32, u64) {
        assert!(self.free > 0, "the log of a write buffer has run full");
        while self.owners[self.cursor] != FREE {
            self.cursor = (self.cursor + 1) % self.owners.len();
        }
        let start = self.cursor;
        let end = self.owners.len().min(start + blocks.min(RUN_BLOCKS_MAX) as usize);
        while self.cursor < end && self.owners[self.cursor] == FREE {
            self.owners[self.cursor] = NOBODY;
            self.uses[self.cursor] = self.uses[self.cursor].wrapping_add(1);
            self.cursor += 1;
        }
        let taken = (self.cursor - start) as u64;
        self.free -= taken;
        self.cursor %= self.owners.len();
        (start as u32, taken)
    }

    /// A record says that a place holds a block. The place that had it before is free when the record
    /// is durable.
    pub fn written(&mut self, live: Live, record: Lsn, durable_before: Lsn) {
        self.own(live);
        if let Some(old) = self.by_lba.insert(live.lba, live.place) {
            self.hold(old, record, durable_before);
        }
    }

    fn own(&mut self, live: Live) {
        self.owners[live.place as usize] = live.lba;
        self.checksums[live.place as usize] = live.checksum;
    }

    fn hold(&mut self, place: u32, record: Lsn, durable_before: Lsn) {
        self.owners[place as usize] = NOBODY;
        let until = Lsn(record.0 + 1);
        if let Some(place) = self.quarantine.hold(place, until, durable_before) {
            self.give_back(place);
        }
    }

    fn give_back(&mut self, place: u32) {
        self.owners[place as usize] = FREE;
        self.free += 1;
    }

    /// Records up to this one are durable.
    pub fn free_places(&mut self, durable_before: Lsn) {
        while let Some(place) = self.quarantine.next_free(durable_before) {
            self.give_back(place);
        }
    }

    /// A block goes down. Should that fail, what was durable below may be gone: what an earlier destage
    /// of it has said is void.
    pub fn goes_down(&mut self, lba: u64) {
        if let Some(place) = self.by_lba.get(&lba) {
            let uses = &mut self.uses[*place as usize];
            *uses = uses.wrapping_add(1);
        }
    }

    /// A block went down; it is durable there after this flush.
    pub fn destaged(&mut self, lba: u64, flush: FlushTicket) {
        if let Some(place) = self.by_lba.get(&lba) {
            let held = Held { lba, place: *place, use_of_place: self.uses[*place as usize] };
            self.destaged.push_back((flush, held));
        }
    }

    /// Blocks that wait for a flush below.
    pub fn unflushed(&self) -> u64 {
        self.destaged.len() as u64
    }

    /// Flushes below are done.
    pub fn flushed_below(&mut self, is_done: impl Fn(FlushTicket) -> bool) {
        while let Some((ticket, held)) = self.destaged.front()
            && is_done(*ticket)
        {
            self.clean.push_back(*held);
            self.destaged.pop_front();
        }
    }

    /// Puts runs of clean blocks into the payload of a record, at most so many. The places are still
    /// live.
    pub fn clean_runs(&mut self, runs: usize) {
        let out = &mut self.runs;
        out.clear();
        while let Some(held) = self.clean.front() {
            let is_live = self.by_lba.get(&held.lba) == Some(&held.place)
                && self.uses[held.place as usize] == held.use_of_place;
            let (lba, place) = (held.lba, held.place);
            if is_live {
                let is_full = out.len() == runs;
                match out.last_mut() {
                    Some((first, start, blocks))
                        if *first + u64::from(*blocks) == lba && *start + *blocks == place =>
                    {
                        *blocks += 1;
                    }
                    _ if is_full => return,
                    _ => out.push((lba, place, 1)),
                }
            }
            self.clean.pop_front();
        }
    }

    /// A record says that a block is not in this place any more, if it was there.
    pub fn forget(&mut self, lba: u64, place: Option<u32>, record: Lsn, durable_before: Lsn) {
        let found = self.by_lba.get(&lba).copied();
        if let Some(found) = found.filter(|found| place.is_none_or(|place| place == *found)) {
            self.by_lba.remove(&lba);
            self.hold(found, record, durable_before);
        }
    }

    /// The same for every block of an extent.
    pub fn forget_all(&mut self, extent: Extent, record: Lsn, durable_before: Lsn) {
        for place in 0..self.owners.len() {
            let lba = self.owners[place];
            if extent.start.0 <= lba && lba < extent.end().0 {
                self.forget(lba, Some(place as u32), record, durable_before);
            }
        }
    }

    /// True when places will be free that are not yet.
    pub fn has_held(&self) -> bool {
        !self.quarantine.is_empty()
    }

    /// True when blocks are durable below, of which the log was not told.
    pub fn has_clean(&self) -> bool {
        !self.clean.is_empty()
    }

    /// The live blocks, in the order of their places.
    pub fn live(&self) -> impl Iterator<Item = Live> + '_ {
        let owners = self.owners.iter().enumerate();
        let live = owners.filter(|(_, lba)| **lba < NOBODY);
        live.map(|(place, lba)| Live {
            lba: *lba,
            place: place as u32,
            checksum: self.checksums[place],
        })
    }

    /// The bytes of a checkpoint.
    pub fn map(&self) -> Vec<u8> {
        codec::encode(self.places(), self.live())
    }

    /// While records are replayed: a place holds a block.
    pub fn replay_written(&mut self, live: Live) {
        // An older block of the place has left it, or the place could not have been written anew.
        let before = self.owners[live.place as usize];
        if before < NOBODY {
            self.by_lba.remove(&before);
        }
        self.own(live);
        if let Some(old) = self.by_lba.insert(live.lba, live.place)
            && old != live.place
        {
            self.owners[old as usize] = FREE;
        }
    }

    /// While records are replayed: a block has left a place.
    pub fn replay_forget(&mut self, lba: u64, place: Option<u32>) {
        let found = self.by_lba.get(&lba).copied();
        if let Some(found) = found.filter(|found| place.is_none_or(|place| place == *found)) {
            self.by_lba.remove(&lba);
            self.owners[found as usize] = FREE;
        }
    }

    /// While records are replayed: all blocks of an extent have left.
    pub fn replay_zeroed(&mut self, extent: Extent) {
        for place in 0..self.owners.len() {
            let lba = self.owners[place];
            if extent.start.0 <= lba && lba < extent.end().0 {
                self.replay_forget(lba, Some(place as u32));
            }
        }
    }

    /// All records were replayed.
    pub fn replayed(&mut self) {
        self.free = self.owners.iter().filter(|lba| **lba == FREE).count() as u64;
    }
}
