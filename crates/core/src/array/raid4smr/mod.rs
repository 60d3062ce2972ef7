//! RAID 4SMR: a parity array over shingled homes whose updates go to a data disk (Le, "SMR Disks for Mass
//! Storage Systems", PhD thesis, Santa Clara University 2019, chapter 6).
//!
//! Each block has a *home* on one of the shingled members, where it is written once. When it is written
//! again it goes to a *slot* of the data disk, and the parity disk has the sum of all. The bands of equal
//! number on all homes are a *band row*; when enough of its blocks are on the data disk, it is *collected*:
//! what it holds is written to a spare band row, and the slots are free again.

mod bands;
mod collection;
mod collector;
mod contents;
mod directory;
mod home_reads;
mod layer;
mod layout;
mod notes;
mod on_the_way;
mod records;
mod recovery;
mod redo_log;
mod repairs;
mod rewrites;
mod room;
mod row_sums;
mod settings;
mod slots;
mod table_writes;
mod unreadable;
mod word;

pub use bands::HomeBands;
pub use layer::Raid4Smr;
pub use layout::{Raid4SmrKeeping, Raid4SmrLayout, Raid4SmrShape};
pub use records::RECORD_KINDS;
pub use settings::{BandSource, FirstWrite, Placement, Raid4SmrError, Raid4SmrSettings, SlotOrder};
