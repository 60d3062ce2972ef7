//! The room that a RAID 4SMR keeps in its journal for what has begun.

use super::layout::Raid4SmrLayout;
use crate::map::{AddressMap, address_map};
use crate::operation::{Operation, Request};
use crate::saved::{Saved, SavedValue};

/// Who needs how many journal blocks. The ledger has them reserved.
#[derive(Debug, Saved)]
pub struct Room {
    /// Where the array keeps what; none where it keeps nothing.
    #[saved(keep)]
    layout: Option<Raid4SmrLayout>,
    /// By a request that has begun, or a portion of one.
    of_requests: AddressMap<OfRequest>,
    /// Collections that have room.
    collections: u64,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, SavedValue)]
struct OfRequest {
    room: u64,
    /// The collections that it was the cause of.
    caused: u64,
}

impl Room {
    /// For an array with such a layout, or none.
    pub fn new(layout: Option<Raid4SmrLayout>) -> Room {
        Room { layout, of_requests: address_map(0), collections: 0 }
    }

    /// Where the array keeps what.
    pub fn layout(&self) -> Option<&Raid4SmrLayout> {
        self.layout.as_ref()
    }

    /// What a request needs that is the cause of so many collections at most. None when that is too much at once: it
    /// is to begin in portions.
    pub fn of(&self, request: &Request, collections: u64) -> Option<u64> {
        let Some(layout) = &self.layout else { return Some(0) };
        let room = layout.room_for(notes_of(request), collections);
        (room <= layout.room_most()).then_some(room)
    }

    /// What a collection needs.
    pub fn of_collection(&self) -> u64 {
        self.layout.map_or(0, |layout| layout.collection_room)
    }

    /// A request begins, and has its room.
    pub fn request_begins(&mut self, job: u32, room: u64) {
        self.of_requests.insert(u64::from(job), OfRequest { room, caused: 0 });
    }

    /// A request was the cause of collections: their part of its room is theirs.
    pub fn cause(&mut self, job: u32, collections: u64) {
        if let Some(of_request) = self.of_requests.get_mut(&u64::from(job)) {
            of_request.caused += collections;
            self.collections += collections;
        }
    }

    /// A collection has got room by itself.
    pub fn add_collection(&mut self) {
        self.collections += 1;
    }

    /// A request has ended. Returns what it gives back, if it had begun as a whole.
    pub fn request_ended(&mut self, job: u32) -> Option<u64> {
        let OfRequest { room, caused } = self.of_requests.remove(&u64::from(job))?;
        Some(room - caused * self.of_collection())
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
