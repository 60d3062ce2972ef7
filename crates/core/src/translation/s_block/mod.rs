//! The translation by S-blocks (Cassuto, Sanvido, Guyot, Hall and Bandic, MSST 2010), as the baseline
//! of HWSR has it (Luo, Wan, Zhu, Zhao, Li and Xie, TPDS 2016): regions that are circular logs.
//!
//! | Part | Says |
//! |---|---|
//! | `settings`, `layout` | what never changes: settings, where everything lies |
//! | `region` | which S-block lies where in a region, and which one moves to make room |
//! | `ring` | which blocks wait in a ring for the rewrite of their S-block |
//! | `tables` | what each block at home must be |
//! | `rewrite`, `work` | what is being written and served |
//! | `records` | what outlives a crash |
//! | `layer` | takes requests, asks the parts, issues, and answers |
//!
//! What makes it outlive a crash: an S-block at the head is made durable first, together with the
//! table of its checksums, and recorded then; the older S-block is where it was until the record is
//! durable. A block in a ring is recorded with the checksums of its parts, and one that is written
//! again goes to another place.
//!
//! What is read is compared with its checksum: that of its table, or in a ring the one in memory. A
//! rewrite does not compare. It takes the *old* checksum of each block that it passes on, so that a
//! block that has changed on the disk stays an error until it is written. A stack of an older build
//! has no checksums, and a simulated one that keeps nothing has none: there the disk is trusted with
//! what it has flushed.

mod layer;
mod layout;
pub mod records;
mod region;
mod rewrite;
mod ring;
mod settings;
mod tables;
mod work;

pub use layer::SBlocks;
pub use layout::{Layout as SBlockLayout, Place as SBlockPlace, Shape as SBlockShape};
pub use settings::{
    Fill, GcOrder, MILLION, Prefill, RingSize, SBlockError, SBlockSettings, SpareSlots, TrackSource,
};
