//! Layers that hide a shingled disk's rules: they take random writes and keep the tracks whole.

mod band_layout;
mod blocking;
mod bypass;
mod durable;
mod idle;
pub mod layout;
pub mod log;
mod map_journal;
mod persistent_cache;
mod read;
mod rewrite;
mod settings;
mod steps;
mod stretch;
mod timers;
mod write;
mod zones;

pub use band_layout::{bands_ascending, bands_fixed, bands_uniform};
pub use durable::{DurableAreas, codec, conventional_blocks_needed, records};
pub use layout::{Areas, Layout};
pub use map_journal::MapJournalSettings;
pub use persistent_cache::PersistentCache;
pub use settings::{
    BlockingCleaning, IdleCleaning, LayoutError, OnArrival, PersistentCacheSettings, RewriteExtent,
    RewriteMethod, UpdateMethod, Victim,
};
pub use zones::HostAware;
