//! `imbrex drive bench`: drive models beside what was measured on real drives.
//!
//! A [`Measurement`] does something to a drive in virtual time and gives one number for each of its
//! [`Gate`]s. A gate says what was published, by whom, and how near the model has to come. The
//! measurements are functions of a file for each kind of drive; `gates` holds what they are compared
//! with.

mod alternatives;
pub mod backup;
mod bus;
pub mod closed_loop;
mod conventional;
pub mod disksim;
pub mod drive_managed;
mod drive_managed_gates;
mod gates;
pub mod host_aware;
pub mod host_managed;
mod large_writes;
pub mod mechanics;
mod page;
mod positioning;
mod rebuild;
mod row;
mod run;
mod sensitivity;
mod solid_state;
mod standard;
pub mod streams;
mod subject;
mod table;
mod variants;
mod zoned_gates;
pub mod zoned_host;

pub use alternatives::{Alternative, alternatives};
pub use gates::MEASUREMENTS;
pub use rebuild::{Rebuild, estimate_rebuild};
pub use row::{Accepted, Gate, Measurement, Published, Role, Row};
pub use run::{BenchOptions, run};
pub use sensitivity::{Sensitivity, sensitivity};
pub use subject::{BenchError, Subject};
