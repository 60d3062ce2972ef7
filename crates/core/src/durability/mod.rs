//! What a layer needs to lose nothing: one mechanism for every layer that keeps a mapping or dirty
//! data.
//!
//! **The contract.** After a flush or a forced write has completed, the data survives any power
//! cut. Writes that no flush covers may be lost, block by block; a block is never mixed with
//! another address, never older than what was last durable, and a torn one is detected and rolled
//! back. A write is answered only after its data and its journal record were handed to the disk,
//! so every answered write survives the death of the process.
//!
//! **The mechanism.** A [`Journal`] lives in an area of one member and holds four copies of a
//! superblock, two places for a checkpoint and a ring of journal blocks:
//!
//! ```text
//! | superblock 0, 1 | checkpoint A | checkpoint B | ring of journal blocks | superblock 2, 3 |
//! ```
//!
//! Every block of it is a [sealed block](block): a header with a checksum, the member's name, the
//! block's own address, a generation and a sequence number. The layer's durable state is a
//! function of the newest checkpoint and of the records after it, and the layer decides what both
//! say; the journal decides what is durable.
//!
//! What a layer author writes is told in `ARCHITECTURE.md`; the bytes are drawn in
//! `docs/formats/journal.md`.

mod admission;
pub mod block;
mod checkpoint;
mod checkpoint_pages;
mod checkpoint_steps;
mod copies;
mod copies_read;
mod data_check;
mod events;
mod flushes;
mod idle_mark;
mod ids;
mod journal;
mod mark;
pub mod membership;
mod mirror;
mod open;
mod opening;
mod operations;
mod record;
mod record_parts;
mod replay_end;
mod ring;
mod settings;
mod settling;
pub mod superblock;

pub use events::{Intact, JournalEvent, LsnQueue, Recovery, Replayed};
pub use ids::{FlushTicket, Lsn};
pub use journal::Journal;
pub use record::{DataRef, FIELDS as RECORD_FIELDS, RECORD_BYTES_MAX, Record, records};
pub use replay_end::{DamagedEnd, ReplayEnd};
pub use settings::{DataPort, JournalSettings, LayerKind};

/// What can be set on the durability of a layer; a layer without such settings keeps nothing over
/// a restart, as a simulation of an untimed algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DurabilitySettings {
    /// Blocks of the ring of journal blocks.
    pub ring_blocks: u64,
    /// Blocks of data that may be written without a flush, which bounds what recovery must read:
    /// at this number the layer flushes by itself.
    pub unflushed_blocks_max: u64,
}

impl Default for DurabilitySettings {
    /// A ring of 8 MiB, and 16 MiB of data without a flush.
    fn default() -> DurabilitySettings {
        DurabilitySettings { ring_blocks: 2048, unflushed_blocks_max: 4096 }
    }
}
