//! Flushes of the journal's port: which is in flight, and what it covers.

use super::ids::{FlushTicket, Lsn};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// A flush that is waiting for the journal blocks it must cover.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Collecting {
    ticket: FlushTicket,
    /// Every block before it must have been written.
    target: Lsn,
}

/// The flush that is in flight.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Flushing {
    /// Every ticket up to and with this one is done with it.
    pub ticket: FlushTicket,
    /// Every block before it was written when it was begun.
    pub covers: Lsn,
    /// The checkpoint waits for it.
    pub is_for_checkpoint: bool,
    /// Ports on which it is not done.
    ports: u8,
}

/// The flushes that were asked for.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Flushes {
    tickets: u64,
    /// Flushes that are not begun, oldest first; their targets rise.
    collecting: VecDeque<Collecting>,
    /// The checkpoint waits for a flush after every block before this has been written.
    checkpoint_target: Option<Lsn>,
    flushing: Option<Flushing>,
    /// Every flush up to and with this one is done.
    flushed: FlushTicket,
}

impl Flushes {
    /// Asks for a flush that begins when every block before `target` is written.
    pub fn ask(&mut self, target: Lsn) -> FlushTicket {
        match self.collecting.back() {
            Some(last) if last.target == target => last.ticket,
            _ => {
                self.tickets += 1;
                let ticket = FlushTicket(self.tickets);
                self.collecting.push_back(Collecting { ticket, target });
                ticket
            }
        }
    }

    /// The same for the checkpoint, which needs no ticket.
    pub fn ask_for_checkpoint(&mut self, target: Lsn) {
        self.checkpoint_target = Some(target);
    }

    /// Begins one flush for all that can be covered when every block before `written` is; `None`
    /// when one is in flight or nobody can be covered.
    pub fn begin(&mut self, written: Lsn) -> Option<FlushTicket> {
        if self.flushing.is_some() {
            return None;
        }
        let is_for_checkpoint = self.checkpoint_target.is_some_and(|lsn| lsn <= written);
        let mut ready = is_for_checkpoint.then_some(self.flushed);
        while let Some(collecting) = self.collecting.front()
            && collecting.target <= written
        {
            ready = Some(collecting.ticket);
            self.collecting.pop_front();
        }
        let ticket = ready?;
        if is_for_checkpoint {
            self.checkpoint_target = None;
        }
        self.flushing = Some(Flushing { ticket, covers: written, is_for_checkpoint, ports: 1 });
        Some(ticket)
    }

    /// The flush that has begun goes to another port as well.
    pub fn goes_to_another_port(&mut self) {
        self.flushing.as_mut().expect("a flush in flight").ports += 1;
    }

    /// The flush in flight has completed on a port. Returns what it was when that was the last.
    pub fn complete(&mut self) -> Option<Flushing> {
        let flushing = self.flushing.as_mut().expect("a flush in flight");
        flushing.ports -= 1;
        self.flushing.take_if(|it| it.ports == 0)
    }

    /// Every flush up to and with this one is done.
    pub fn note_done(&mut self, ticket: FlushTicket) {
        self.flushed = ticket;
    }

    /// No flush begins any more.
    pub fn give_up(&mut self) {
        self.collecting.clear();
        self.checkpoint_target = None;
    }
}
