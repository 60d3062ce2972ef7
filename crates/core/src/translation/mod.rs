//! Layers that hide a shingled disk's rules: they take random writes and keep the tracks whole.

mod band_layout;
mod persistent_cache;
pub mod segment;

pub use band_layout::{bands_ascending, bands_fixed, bands_uniform};
pub use persistent_cache::{
    Areas, BlockingCleaning, Disks, DurableAreas, HostAware, IdleCleaning, Layout, LayoutError,
    MapJournalSettings, OnArrival, PersistentCache, PersistentCacheSettings, RewriteExtent,
    RewriteMethod, UpdateMethod, Victim, codec, conventional_blocks_needed, layout, log, records,
};
