//! What makes a cache outlive a crash.
//!
//! The cache keeps a [journal](crate::durability::Journal) at the start of its flash; the slots lie
//! behind it. Its durable state is which *dirty* blocks lie in which slots, with their checksums: a
//! table that changes at the moment a record is appended, so that a checkpoint can be taken at any
//! time.
//!
//! * A host write goes to fresh slots, never over data that may still be needed. When the data is
//!   written, a record maps the blocks to their new slots; the host is answered when the record is
//!   written, a forced write when it is flushed.
//! * A slot whose block went elsewhere waits in a quarantine until the record that says so is
//!   durable.
//! * A destage makes its blocks durable in flash, for a write below that fails may take what was
//!   there away; then it writes below, then flushes the backing, and only then frees the blocks, by a
//!   record.
//! * Before the first block of a region may become dirty, the region's bit in the
//!   [write-intent page](intent) below is durable.
//!
//! A failed write or flush of the journal, or a failed flush of the backing, is sticky: writes and
//! flushes fail from then on, and reads go on as far as what they read is known to be the newest.
//!
//! The [ledger](crate::ledger) keeps the records and the answers that wait for them. A cache whose
//! ledger is volatile makes the same calls, and is answered at once.

mod advance;
mod changes;
mod checkpoint;
pub mod codec;
mod fail;
pub(super) mod intent;
pub(super) mod life;
mod open;
mod read;
mod release;
mod replay;
pub(super) mod table;
mod write;
