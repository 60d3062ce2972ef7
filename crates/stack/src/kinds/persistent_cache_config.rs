//! A drive-managed translation as a stack states it.

use super::translation_below::TranslationBelow;
use imbrex_drives::quantity::{Size, SizeOrShare, Span};
use imbrex_drives::{
    Bands, Bypass, EntryLimit, IdleAfter, IdleOnArrival, IdlePiece, IdleResume, IdleVictim,
    MergeBuffer, Rewrite, RewriteCovered, RewriteExtent, TranslationSettings, Trim, Update,
};
use serde::{Deserialize, Serialize};

/// A drive-managed translation. What is absent is taken from the `[translation]` table of the
/// drive below.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PersistentCacheConfig {
    /// Name of the node.
    pub name: String,
    /// The shingled disk, or one node for the log and another for the bands.
    pub below: TranslationBelow,
    /// How the addresses are cut into bands.
    pub bands: Option<Bands>,
    /// Seed of a random band layout; the seed of the run when absent.
    pub band_seed: Option<u64>,
    /// Room of the log that takes random writes.
    pub persistent_cache: Option<SizeOrShare>,
    /// Extents that the log may hold.
    pub entries: Option<EntryLimit>,
    /// What a write does to an older entry for the same blocks.
    pub update: Option<Update>,
    /// Whether sequential streams go round the log.
    pub bypass: Option<Bypass>,
    /// How a band is rewritten.
    pub rewrite: Option<Rewrite>,
    /// Which part of it.
    pub rewrite_extent: Option<RewriteExtent>,
    /// What becomes of what the log holds of it; it is read and copied like the rest when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite_covered: Option<RewriteCovered>,
    /// Time the firmware takes for a rewrite beside its disk operations.
    pub rewrite_overhead: Option<Span>,
    /// Whether it keeps a journal, as it does when it is served from files; not when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable: Option<bool>,
    /// Blocks of the ring of its journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring_blocks: Option<u64>,
    /// Blocks of data it may write without a flush.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unflushed_blocks_max: Option<u64>,
    /// How much of a band is merged at a time; all of it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_buffer: Option<MergeBuffer>,
    /// Share of slots and of entries down to which cleaning for want of room goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking_low: Option<f64>,
    /// Longest cleaning for want of room between two requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocking_slice: Option<Span>,
    /// Idle time after which bands are cleaned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<IdleAfter>,
    /// Longest time on the medium for which a request waits when it interrupts that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_chunk: Option<Span>,
    /// Longest rest of a band that is finished though a request has arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_finish: Option<Span>,
    /// Whether an interrupted clean goes on where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_resume: Option<IdleResume>,
    /// Which band is cleaned next in idle time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_victim: Option<IdleVictim>,
    /// How far idle cleaning goes before the drive looks for requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_piece: Option<IdlePiece>,
    /// What idle cleaning does when a request arrives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_on_arrival: Option<IdleOnArrival>,
    /// How long a stream must have been sequential before it may go round the log; 1 MiB when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_after: Option<Size>,
    /// How long it must have been at most where the streams before it ended at a flush;
    /// `bypass_after` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_after_max: Option<Size>,
    /// Shortest write that may go round the log; any when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bypass_min: Option<Size>,
    /// What a trim does; it leaves the log when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<Trim>,
    /// After how many records of its map's journal the drive writes the map out; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_every_records: Option<u64>,
    /// How long writes wait for that at least ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_stall: Option<Span>,
    /// ... and how much longer for each MiB of log that records of flushes took since the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal_stall_per_mib: Option<Span>,
    /// Room in the log that the record of a flush takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_per_flush: Option<Size>,
    /// Data that goes to the log in one go, with one record, unless a flush comes before; 0 lets the
    /// log take data as it comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_transaction: Option<Size>,
    /// Time the firmware takes for the record of a flush or of a transaction: a calibrated parameter
    /// (docs/models/drive-managed.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_overhead: Option<Span>,
}

impl PersistentCacheConfig {
    /// What the node says, and what the drive says where the node is silent.
    pub fn over(&self, drive: TranslationSettings) -> TranslationSettings {
        TranslationSettings {
            bands: self.bands,
            persistent_cache: self.persistent_cache,
            entries: self.entries,
            update: self.update,
            bypass: self.bypass,
            rewrite: self.rewrite,
            rewrite_extent: self.rewrite_extent,
            rewrite_covered: self.rewrite_covered,
            rewrite_overhead: self.rewrite_overhead,
            merge_buffer: self.merge_buffer,
            blocking_low: self.blocking_low,
            blocking_slice: self.blocking_slice,
            idle_after: self.idle_after,
            idle_chunk: self.idle_chunk,
            idle_finish: self.idle_finish,
            idle_resume: self.idle_resume,
            idle_victim: self.idle_victim,
            idle_piece: self.idle_piece,
            idle_on_arrival: self.idle_on_arrival,
            bypass_after: self.bypass_after,
            bypass_after_max: self.bypass_after_max,
            bypass_min: self.bypass_min,
            trim: self.trim,
            journal_every_records: self.journal_every_records,
            journal_stall: self.journal_stall,
            journal_stall_per_mib: self.journal_stall_per_mib,
            log_per_flush: self.log_per_flush,
            log_transaction: self.log_transaction,
            flush_overhead: self.flush_overhead,
        }
        .or(drive)
    }
}
