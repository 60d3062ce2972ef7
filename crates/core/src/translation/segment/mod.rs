//! A shingled disk in segments that are rewritten in place: the layout of HWSR (Luo et al., IEEE TPDS
//! 2016, section 3).
//!
//! A *region* is a run of neighbouring tracks. It is cut angularly into *segments*; a segment has one
//! *block* on each track of its region. Writing a block destroys the same segment's blocks on the
//! tracks that follow, and no other segment. So a write of some blocks of a segment reads those that
//! it would destroy and writes all of them, in shingle order: it *rewrites* the segment from its
//! first dirty block on. No table says where a block is; [`SegmentLayout`] computes it.
//!
//! ```text
//!             segment 0  segment 1  segment 2
//!   track 0  | block 0  | block 0  | block 0  |   region 0: written from its first track to its last
//!   track 1  | block 1  | block 1  | block 1  |
//!   track 2  | block 2  | block 2  | block 2  |
//!            |          guard tracks          |   shared by the two regions beside it
//!   track 2' | block 2  | block 2  | block 2  |   region 1: written from its last track to its first
//!   track 1' | block 1  | block 1  | block 1  |
//!   track 0' | block 0  | block 0  | block 0  |
//! ```
//!
//! A rewrite that a power cut interrupts would leave destroyed blocks behind. With its journal on,
//! the layer therefore writes what it is about to write home to a *slot* elsewhere first; a durable
//! one makes that slot durable and notes it in its [`Ledger`](crate::ledger::Ledger), and writes home
//! again what it finds noted when it comes up (`docs/formats/segments.md`).

mod areas;
pub mod codec;
mod layer;
mod layout;
mod rewrite;
mod settings;
mod slots;
mod sums;
mod touched;

pub use areas::SegmentAreas;
pub use layer::Segments;
pub use layout::{Place, SegmentLayout};
pub use rewrite::written_blocks;
pub use settings::{
    Holds, Journaling, RegionLayout, RewriteReach, SegmentError, SegmentPorts, SegmentSettings,
    TrackLength,
};
