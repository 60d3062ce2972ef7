//! RAID level 1: members with the same blocks, which may keep what it knows of them over restarts.
//!
//! A durable array writes its blocks in place, on every member. Before it writes a *region* it marks it, so
//! that a start after a crash compares what was perhaps being written, and nothing else. What each block
//! must be stands in tables of checksums, which go to the members when a region is cleared. Disks must write
//! a block as a whole or not at all, as the host asks of any disk.

mod after_crash;
mod copies;
mod layer;
mod layout;
mod records;
mod upkeep;
mod word;

pub use layer::Raid1;
pub use layout::{Raid1Keeping, Raid1Layout};
pub use records::{
    CHECKPOINT_FIELDS, RECORD_CLEARED, RECORD_KINDS, RECORD_MARKED, RECORD_READABLE,
    RECORD_UNREADABLE,
};
