//! Layers that hide a shingled disk's rules: they take random writes and keep the tracks whole.

mod band_layout;
mod persistent_cache;
mod s_block;
pub mod segment;

pub use crate::checksums::{BAD, ChecksumSettings, NOTHING, ZERO_SUM};
pub use band_layout::{bands_ascending, bands_fixed, bands_uniform};
pub use persistent_cache::{
    Areas, BlockingCleaning, BypassSettings, CleanTo, CoveredBlocks, Disks, DurableAreas, Gather,
    HostAware, IdleCleaning, IdlePiece, Layout, LayoutError, MapJournalSettings, OnArrival,
    PersistentCache, PersistentCacheSettings, Reclaim, RewriteExtent, RewriteMethod,
    RewriteSettings, StreamClasses, TrimMethod, UpdateMethod, Victim, codec,
    conventional_band_blocks, conventional_blocks_needed, layout, log, log_blocks_needed, records,
};
pub use s_block::{
    Fill, GcOrder, MILLION, Prefill, RingSize, SBlockError, SBlockLayout, SBlockPlace,
    SBlockSettings, SBlockShape, SBlocks, SpareSlots, TrackSource, records as s_block_records,
};
