//! Maps over block addresses: extents, bands and locks; orders by recency; things by number.

mod address_map;
mod band_table;
mod extent_locks;
mod extent_map;
mod extent_set;
mod guide;
mod lru_list;
mod lru_lists;
mod runs;
mod slab;

pub(crate) use address_map::{AddressMap, address_map};
pub use band_table::{BandId, BandTable};
pub use extent_locks::ExtentLocks;
pub use extent_map::{ExtentMap, Piece};
pub use extent_set::ExtentSet;
pub use guide::Guide;
pub(crate) use lru_list::LruList;
pub(crate) use lru_lists::LruLists;
pub use slab::Slab;
