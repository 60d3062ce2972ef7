//! The bytes of the log of a write buffer: its records and its checkpoint.
//!
//! ```text
//! checkpoint: | head 16 | live block 16 each |
//! ```

use crate::durability::block::{Field, field};
use crate::state::StateError;
use alloc::format;
use alloc::vec::Vec;

/// Blocks were written. The payload is the first, the data of the record is the run of places in the
/// log with its checksums.
pub const RECORD_WRITTEN: u8 = 1;
/// Blocks are durable below. The payload is runs of them with the places that they had; a place whose
/// block has a newer one by then says nothing.
pub const RECORD_CLEAN: u8 = 2;
/// Blocks were zeroed, and that is durable below. The payload is the run.
pub const RECORD_ZEROED: u8 = 3;

/// Every kind of record and its name.
pub const RECORD_KINDS: [(u8, &str); 3] =
    [(RECORD_WRITTEN, "written"), (RECORD_CLEAN, "clean"), (RECORD_ZEROED, "zeroed")];

/// The payload of a written record.
pub const WRITTEN_FIELDS: [Field; 1] = [field("written_lba", 0, 8)];
/// One run in the payload of a clean record, as often as there are runs.
pub const CLEAN_FIELDS: [Field; 3] =
    [field("clean_lba", 0, 8), field("clean_place", 8, 4), field("clean_blocks", 12, 4)];
/// The payload of a zeroed record.
pub const ZEROED_FIELDS: [Field; 2] = [field("zeroed_lba", 0, 8), field("zeroed_blocks", 8, 8)];
/// The head of a checkpoint.
pub const CHECKPOINT_FIELDS: [Field; 2] =
    [field("checkpoint_places", 0, 8), field("checkpoint_blocks", 8, 8)];
/// A block in a checkpoint that the log alone has.
pub const LIVE_FIELDS: [Field; 3] =
    [field("live_lba", 0, 8), field("live_place", 8, 4), field("live_checksum", 12, 4)];

/// Bytes of a run in a clean record, of the head of a checkpoint and of each of its blocks.
pub(super) const RUN_BYTES: usize = 16;
const HEAD_BYTES: usize = 16;
const LIVE_BYTES: usize = 16;

/// A block that the log alone has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live {
    /// Its address.
    pub lba: u64,
    /// Where it is, counted from the first place of the log.
    pub place: u32,
    /// Its checksum.
    pub checksum: u32,
}

/// The bytes of a checkpoint.
pub fn encode(places: u64, live: impl Iterator<Item = Live>) -> Vec<u8> {
    let mut bytes = Vec::from([0; HEAD_BYTES]);
    for block in live {
        put_run(&mut bytes, block.lba, block.place, block.checksum);
    }
    let blocks = ((bytes.len() - HEAD_BYTES) / LIVE_BYTES) as u64;
    bytes[..8].copy_from_slice(&places.to_le_bytes());
    bytes[8..16].copy_from_slice(&blocks.to_le_bytes());
    bytes
}

/// The places and the live blocks of a checkpoint.
///
/// # Errors
/// When its bytes do not fit what its head says.
pub fn decode(bytes: &[u8]) -> Result<(u64, Vec<Live>), StateError> {
    let ends = || StateError::new("the checkpoint ends too early");
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(ends)?;
    let (places, blocks) = (u64_at(head, 0), u64_at(head, 8));
    let live: Vec<Live> = rest.chunks_exact(LIVE_BYTES).map(live_at).collect();
    if live.len() as u64 != blocks || rest.len() % LIVE_BYTES != 0 {
        let found = rest.len();
        return Err(StateError::new(format!("{found} B for {blocks} live blocks")));
    }
    match live.iter().find(|it| u64::from(it.place) >= places) {
        Some(it) => {
            Err(StateError::new(format!("block {} is in place {} of {places}", it.lba, it.place)))
        }
        None => Ok((places, live)),
    }
}

fn live_at(bytes: &[u8]) -> Live {
    let (lba, place, checksum) = run_at(bytes);
    Live { lba, place, checksum }
}

/// An address and two numbers.
pub(super) fn put_run(out: &mut Vec<u8>, lba: u64, place: u32, last: u32) {
    out.extend_from_slice(&lba.to_le_bytes());
    out.extend_from_slice(&place.to_le_bytes());
    out.extend_from_slice(&last.to_le_bytes());
}

/// Reads what [`put_run`] wrote.
pub(super) fn run_at(bytes: &[u8]) -> (u64, u32, u32) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    (u64_at(bytes, 0), word(8), word(12))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
