//! The translation by S-blocks (Cassuto, Sanvido, Guyot, Hall and Bandic, MSST 2010), as the baseline
//! of HWSR has it (Luo, Wan, Zhu, Zhao, Li and Xie, TPDS 2016): regions that are circular logs.
//!
//! | Part | Says |
//! |---|---|
//! | `settings`, `layout` | what never changes: settings, where everything lies |
//! | `region` | which S-block lies where in a region, and which one moves to make room |
//! | `ring` | which blocks wait in a ring for the rewrite of their S-block |
//! | `rewrite`, `work` | what is being written and served |
//! | `records` | what outlives a crash |
//! | `layer` | takes requests, asks the parts, issues, and answers |
//!
//! What makes it outlive a crash: an S-block at the head is made durable first and recorded then, so a
//! record of it needs no checksums; the older S-block is where it was until the record is durable. A
//! block in a ring is recorded with the checksums of its parts, and one that is written again goes to
//! another place. Data on the disk has no checksums beside, for their tables would be as large as the
//! disk: the disk is trusted with what it has flushed.

mod layer;
mod layout;
pub mod records;
mod region;
mod rewrite;
mod ring;
mod settings;
mod work;

pub use layer::SBlocks;
pub use layout::{Layout as SBlockLayout, Place as SBlockPlace, Shape as SBlockShape};
pub use settings::{
    Fill, GcOrder, MILLION, Prefill, RingSize, SBlockError, SBlockSettings, SpareSlots, TrackSource,
};
