//! A ledger with a copy of its journal on each of several ports.

use super::events::CopyState;
use super::journaled::{Journaled, Ledger};
use crate::durability::{DurabilitySettings, Journal, JournalSettings};
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
        Ledger::with(Journal::mirrored(copies), durability, ports)
    }

    /// Whether the copy behind a port counts. Known from
    /// [`Recovered`](super::LedgerEvent::Recovered) on, and when a format has begun. A volatile
    /// ledger has nothing that a port could lack.
    pub fn copy_state(&self, port: Port) -> CopyState {
        let is_in = |it: &Journaled<T>| it.journal.is_in(port);
        match self.journaled.as_deref().is_none_or(is_in) {
            true => CopyState::In,
            false => CopyState::Out,
        }
    }

    /// Which members have all data of the layer: all of them before the first call. The last of them that is
    /// there is never recorded as out, for it may come back with all that it had:
    /// [`Failed`](super::LedgerEvent::Failed) without it, or [`Refused`](super::LedgerEvent::Refused) where it is
    /// not there at the start.
    pub fn set_with_data(&mut self, ports: impl Iterator<Item = Port>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.set_with_data(ports);
        }
    }

    /// From [`Layer::lost`](crate::layer::Layer::lost): the copy behind the port is gone. Every
    /// answer waits until the other copies have recorded it durably. When it is the last one that
    /// is in, nothing can be kept any more: [`Failed`](super::LedgerEvent::Failed).
    pub fn lose_copy(&mut self, port: Port, ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.lose_copy(port, ctx);
        }
    }

    /// From [`Layer::replaced`](crate::layer::Layer::replaced): a blank member is behind the port.
    /// The other copies record its number durably, then the new copy is written whole; `map` is the
    /// map of the layer with every record so far. [`CopyAdmitted`](super::LedgerEvent::CopyAdmitted)
    /// says when it is in, [`CopyOut`](super::LedgerEvent::CopyOut) that it could not be written.
    /// Until then the ledger wants no checkpoint. Nothing is done when the copy is in or the ledger is
    /// not running.
    ///
    /// Panics when another copy is being admitted.
    pub fn admit_copy(&mut self, port: Port, map: Vec<u8>, ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.admit_copy(port, map, ctx);
        }
    }

    /// The member behind a port whose copy is out has come back as it was. It is admitted as a
    /// [blank one](Self::admit_copy) is.
    ///
    /// Panics when another copy is being admitted.
    pub fn readmit_copy(&mut self, port: Port, map: Vec<u8>, ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.readmit_copy(port, map, ctx);
        }
    }
}
