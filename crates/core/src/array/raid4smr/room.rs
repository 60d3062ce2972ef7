//! The room that a RAID 4SMR keeps in its journal for what has begun.

use super::layout::Raid4SmrLayout;
use crate::map::{AddressMap, address_map};
use crate::operation::{Operation, Request};

/// Who needs how many journal blocks. The ledger has them reserved.
#[derive(Debug)]
pub struct Room {
    /// Where the array keeps what; none where it keeps nothing.
    layout: Option<Raid4SmrLayout>,
    /// By a request, or a portion of one, the collections that it was the cause of.
    caused: AddressMap<u64>,
    /// Collections that have room.
    collections: u64,
}

impl Room {
    /// For an array with such a layout, or none.
    pub fn new(layout: Option<Raid4SmrLayout>) -> Room {
        Room { layout, caused: address_map(0), collections: 0 }
    }

    /// Where the array keeps what.
    pub fn layout(&self) -> Option<&Raid4SmrLayout> {
        self.layout.as_ref()
    }

    /// Blocks of a portion of a request that the journal has no room for at once.
    pub fn portion_of(&self, request: &Request) -> Option<u64> {
        let most = self.layout?.portion_blocks();
        (notes_of(request) > most).then_some(most)
    }

    /// What a request needs, or a portion of one.
    pub fn of(&self, request: &Request) -> u64 {
        self.layout.map_or(0, |layout| layout.room_for(notes_of(request)))
    }

    /// What a collection needs.
    pub fn of_collection(&self) -> u64 {
        self.layout.map_or(0, |layout| layout.collection_room)
    }

    /// A request was the cause of collections: their part of its room is theirs.
    pub fn cause(&mut self, job: u32, collections: u64) {
        if self.layout.is_some() && collections > 0 {
            *self.caused.entry(u64::from(job)).or_default() += collections;
            self.collections += collections;
        }
    }

    /// A collection has got room by itself.
    pub fn add_collection(&mut self) {
        self.collections += 1;
    }

    /// A request has ended. Returns what it gives back.
    pub fn request_ended(&mut self, job: u32, request: &Request) -> u64 {
        let caused = self.caused.remove(&u64::from(job)).unwrap_or_default();
        self.of(request) - caused * self.of_collection()
    }

    /// So many collections are left. Returns what those that have ended give back.
    pub fn keep_collections(&mut self, left: u64) -> u64 {
        let ended = self.collections.saturating_sub(left);
        self.collections -= ended;
        ended * self.of_collection()
    }
}

/// Notes that a request may need: one for each block that is written, and one in all for blocks that read as zeroes
/// from now on.
fn notes_of(request: &Request) -> u64 {
    match request.operation {
        Operation::Write { .. } => request.extent.blocks.0,
        _ => 1,
    }
}
