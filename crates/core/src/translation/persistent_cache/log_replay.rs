//! Brings the books of the log back from a checkpoint and from records, in the order of the
//! records, which need not be that of the positions.

use super::log::{Log, PACKET_BLOCKS_MAX};
use crate::extent::Extent;
use crate::map::{ExtentMap, Piece};
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// What is in the log while records are replayed.
#[derive(Debug)]
pub(super) struct LogReplay {
    capacity: u64,
    head: u64,
    tail: u64,
    map: ExtentMap,
    /// The position last written to each slot, and the block.
    owners: Vec<Option<(u64, Lba)>>,
    /// Blocks whose slot was used again although nothing had superseded them yet, with their
    /// positions: what supersedes them is durable and still to come.
    overwritten: ExtentMap,
}

impl LogReplay {
    pub fn new(capacity: u64, head: u64) -> LogReplay {
        LogReplay {
            capacity,
            head,
            tail: head,
            map: ExtentMap::new(),
            owners: vec![None; capacity as usize],
            overwritten: ExtentMap::new(),
        }
    }

    /// Slots up to `end` have been used, whatever is there.
    pub fn reach(&mut self, end: u64) {
        self.tail = self.tail.max(end);
    }

    /// Blocks are in the slots from `position`, which do not wrap.
    pub fn append(&mut self, extent: Extent, position: u64) {
        self.reach(position + extent.blocks.0);
        for block in 0..extent.blocks.0 {
            let (lba, position) = (Lba(extent.start.0 + block), position + block);
            let slot = (position % self.capacity) as usize;
            if let Some((old, owner)) = self.owners[slot].replace((position, lba))
                && old != position
                && self.map.get(owner) == Some(old)
            {
                let one = Extent::new(owner.0, 1);
                self.map.remove(one, |_| {});
                self.overwritten.insert(one, old);
            }
        }
        self.map.insert(extent, position);
        self.overwritten.remove(extent, |_| {});
    }

    /// Blocks are not in the log any more.
    pub fn remove(&mut self, extent: Extent) {
        self.map.remove(extent, |_| {});
        self.overwritten.remove(extent, |_| {});
    }

    /// Blocks that were appended before a position are not in the log any more.
    pub fn remove_before(&mut self, extent: Extent, position: u64) {
        for map in [&mut self.map, &mut self.overwritten] {
            let old = |piece: &Piece| piece.position < position;
            let pieces: Vec<Piece> = map.pieces(extent).filter(old).collect();
            for piece in pieces {
                map.remove(piece.extent, |_| {});
            }
        }
    }

    /// Puts all of it into an empty log; false when it contradicts itself. Blocks that nothing has
    /// superseded although their slots were used again are appended to `gone`.
    #[must_use]
    pub fn finish(mut self, whole: Extent, log: &mut Log, gone: &mut Vec<Extent>) -> bool {
        let head = self.head.max(self.tail.saturating_sub(self.capacity));
        let stale = |piece: &Piece| piece.position < head;
        let stale: Vec<Piece> = self.map.pieces(whole).filter(stale).collect();
        for piece in stale {
            // Of a run across the head, only what lies before it.
            let blocks = piece.extent.blocks.0.min(head - piece.position);
            let extent = Extent::new(piece.extent.start.0, blocks);
            self.map.remove(extent, |_| {});
            gone.push(extent);
        }
        gone.extend(self.overwritten.pieces(whole).map(|piece| piece.extent));
        let mut entries: Vec<Piece> = self.map.pieces(whole).collect();
        entries.sort_unstable_by_key(|entry| entry.position);
        let mut runs = Vec::new();
        let mut next = head;
        let superseded = |runs: &mut Vec<Extent>, mut blocks: u64| {
            while blocks > 0 {
                let run = blocks.min(PACKET_BLOCKS_MAX);
                runs.push(Extent::new(0, run));
                blocks -= run;
            }
        };
        for entry in &entries {
            if entry.position < next {
                return false;
            }
            superseded(&mut runs, entry.position - next);
            runs.push(entry.extent);
            next = entry.position + entry.extent.blocks.0;
        }
        superseded(&mut runs, self.tail - next);
        let restored = log.restore(head, &runs, &entries);
        // Everything in the log is durable by the checkpoint that ends a recovery.
        log.release(head);
        restored
    }
}
