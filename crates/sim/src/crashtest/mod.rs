//! A deterministic search for crashes and faults that lose data.
//!
//! A stack under test runs over [recording disks](recording_disk) that keep a [log](log) of all
//! they took. A *point* is a log index at which the power goes, a [mode](image::Mode) that says
//! which pending writes reach the medium, and how often recovery itself is crashed; or it is a
//! [fault](fault). After each point the stack is recovered, read in full and judged by the
//! [oracle].
//!
//! The disks hold real blocks of 4 KiB, so that torn sectors, checksums and metadata are real;
//! `docs/decisions/0005-crash-tests-hold-bytes.md` says why.

pub mod campaign;
pub mod coverage;
pub mod fault;
pub mod fault_points;
pub mod host;
pub mod image;
pub mod journal_view;
pub mod log;
pub mod medium;
pub mod members;
pub mod oracle;
pub mod product;
pub mod recorded;
pub mod recording_disk;
pub mod short;
pub mod shrink;
pub mod stacks;
pub mod stamp;
pub mod subject;
pub mod summary;
pub mod trial;
pub mod workload;
