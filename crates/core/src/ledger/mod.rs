//! What a layer promises to keep, and the answers that wait for it: one ledger for every layer,
//! *volatile* or *journaled*.
//!
//! A layer makes the same calls in the same order whatever its ledger is. A journaled ledger
//! writes records to a [`Journal`](crate::durability::Journal) and says later when they are
//! durable. A volatile one writes nothing and answers at once: it has room, every place may be
//! used again, and nothing that it was told to wait for has to wait.
//!
//! | A layer asks | with |
//! |---|---|
//! | to come up and to go down | [`open`](Ledger::open), [`begin`](Ledger::begin), [`begin_close`](Ledger::begin_close), [`close`](Ledger::close) |
//! | to note a change of its map | [`record`](Ledger::record), [`record_write`](Ledger::record_write), then [`commit`](Ledger::commit) |
//! | to be told when to answer | [`answer_when_written`](Ledger::answer_when_written), [`answer_when_flushed`](Ledger::answer_when_flushed), [`answer_with_next_flush`](Ledger::answer_with_next_flush) |
//! | whether a place may be used again | [`is_durable`](Ledger::is_durable), [`Quarantine`] |
//! | whether there is room | [`reserve`](Ledger::reserve), [`has_room`](Ledger::has_room), [`wants_checkpoint`](Ledger::wants_checkpoint) |
//! | for a flush of its own | [`flush_for_itself`](Ledger::flush_for_itself), [`has_too_much_unflushed`](Ledger::has_too_much_unflushed) |
//! | for copies of its journal on several ports | [`mirrored`](Ledger::mirrored), [`copy_state`](Ledger::copy_state), [`lose_copy`](Ledger::lose_copy), [`admit_copy`](Ledger::admit_copy) |
//! | whether anything can be kept | [`failure`](Ledger::failure), [`next_failed`](Ledger::next_failed) |
//!
//! Completions whose tag the ledger issued go to [`complete`](Ledger::complete). After every event
//! the layer takes out what the ledger has to say, one [`LedgerEvent`] after another. The ledger
//! never calls the layer: it knows the layer's work only by *tokens*, small values that the layer
//! chooses and gets back.

mod answers;
mod copies;
mod events;
mod flushes;
mod journaled;
mod life;
mod quarantine;
mod records;

pub use events::{CopyState, LedgerEvent, Stage, When};
pub use flushes::PortFlushes;
pub use journaled::Ledger;
pub use quarantine::Quarantine;
pub use records::WrittenData;
