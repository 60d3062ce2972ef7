//! The translation of a drive-managed shingled disk: writes go to a log and later, band by band,
//! home (Skylight, FAST 2015; PORE, MSST 2017).
//!
//! The [layer] takes a request, asks its parts, issues what they decide and answers. The parts own
//! their state and do not know the layer:
//!
//! | Part | Says |
//! |---|---|
//! | `shape`, `conduct`, `keeping`, `layout`, `areas`, `disks` | what never changes: settings, choices, where everything lies |
//! | `block_map`, `log`, `zone_slots`, `salvage`, `trim` | where each block is, and which are in use |
//! | `requests`, `writes`, `reads`, `streams` | what is being served |
//! | `rewriter`, `rewrite`, `stretch`, `copy_check` | how a band is rewritten, and what its copy must be |
//! | `cleaner`, `cleaning_policy` | when a band is cleaned, which, and who is served meanwhile |
//! | `mover` | which blocks go to the head of the log once more before their band is rewritten |
//! | `firmware`, `transaction`, `zones` | what a modelled drive does beside: records, stalls, notes, zones |
//! | `checksums`, `table`, `open_bands` | what a block must be |
//! | `undo`, `records`, `apply`, `checkpoint`, `codec`, `recovery`, `log_replay` | what outlives a crash |
//!
//! What makes it outlive a crash: the map is a function of the newest checkpoint of the
//! [journal](crate::durability) and of the [records] after it. The order in which things become
//! durable:
//!
//! * A write goes to its slots in the log, then its record is appended, then it is answered; a
//!   record whose data is not there at recovery is not applied, so the block is what it was before.
//! * A block that moves within the log is recorded where it is now when it is written there, and only if it is still
//!   the newest of its address then.
//! * A slot is used again only when the record that superseded it is durable, so what a block was
//!   before is still there when a record is not applied.
//! * A band rewrite makes its scratch copy and the new table of checksums durable, then the record
//!   that says so, then the band at home, then the record that ends it. Only when that is durable
//!   may the scratch band, the old table and the gathered slots be used again. In stretches, the next
//!   one goes to the other place of the scratch band and of the table.
//! * The bypass writes home where nothing can be read, durably so: at the write pointer, and not
//!   while the trim that lowered a pointer can still be undone by a crash.
//!
//! Log and bands may be on two disks. A flush is then one of both, so that what is durable is so on
//! either; nothing that has an order is written without a flush between.
//!
//! For each band the translation keeps a *write pointer*: the number of blocks from its start that
//! can be read at home. What lies above reads as zeroes without being read.

mod apply;
mod areas;
mod block_map;
mod checkpoint;
mod checksums;
mod classifier;
mod cleaner;
mod cleaning_policy;
pub mod codec;
mod conduct;
mod copy_check;
mod covered;
mod disks;
mod firmware;
mod keeping;
mod layer;
pub mod layout;
mod layout_error;
pub mod log;
mod log_replay;
mod mover;
mod open_bands;
mod reads;
pub mod records;
mod recovery;
mod requests;
mod rewrite;
mod rewriter;
mod salvage;
mod settings;
mod shape;
mod streams;
mod stretch;
mod table;
mod transaction;
mod trim;
mod undo;
mod writes;
mod zone_slots;
mod zones;

pub use areas::{
    DurableAreas, conventional_band_blocks, conventional_blocks_needed, log_blocks_needed,
};
pub use disks::Disks;
pub use layer::PersistentCache;
pub use layout::{Areas, Layout};
pub use layout_error::LayoutError;
pub use settings::{
    BlockingCleaning, BypassSettings, CleanTo, CoveredBlocks, Gather, HostAware, IdleCleaning,
    IdlePiece, MapJournalSettings, OnArrival, PersistentCacheSettings, Reclaim, RewriteExtent,
    RewriteMethod, RewriteSettings, StreamClasses, TrimMethod, UpdateMethod, Victim,
};
