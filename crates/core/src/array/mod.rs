//! Arrays: nodes whose rows of blocks bear their own redundancy.
//!
//! A *column* is a member of an array, a *row* the blocks of all columns at one address of the array. The
//! redundancy of a row is that all of its blocks are copies of one another, or that one of them is the
//! *parity*, the sum of all others without carry. What array layers have in common is here: which members
//! are there ([`Members`]), the requests and the rows that they change ([`Rows`]), and how a member is
//! rebuilt. A layer says by its [`RowMap`] what its rows are made of.

mod bad_rows;
mod bits;
mod columns;
mod compute;
mod epochs;
mod jobs;
mod keeper;
mod member_record;
mod member_status;
mod members;
mod missed;
mod noting;
mod operations;
mod pace;
mod patience;
mod plan;
mod raid;
pub mod raid1;
pub mod raid4smr;
mod raid_rows;
mod read_runs;
mod reading;
mod rebuild;
mod rebuilds;
mod region_shape;
mod regions;
mod remembering;
mod row_locks;
mod row_map;
mod rows;
mod scrub;
mod scrub_parity;
mod scrubbed;
mod scrubs;
pub mod status;
mod sums;
mod task;
mod unflushed;

pub use columns::Columns;
pub use member_record::{MEMBER_FIELDS, RECORD_MEMBER};
pub use members::{COLUMNS_MAX, Members};
pub use raid::{ArrayError, Level, Raid};
pub use raid_rows::RaidRows;
pub use rebuild::CHUNK_ROWS;
pub use region_shape::RegionShape;
pub use row_map::{Redundancy, RowMap};
pub use rows::Rows;
