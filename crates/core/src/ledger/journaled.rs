//! The ledger, and what it makes of completions and of what its journal says.

use super::answers::Answers;
use super::events::{LedgerEvent, Stage};
use super::flushes::PortFlushes;
use crate::buffer::BufferSlice;
use crate::durability::{
    DurabilitySettings, FlushTicket, Journal, JournalEvent, JournalSettings, Lsn,
};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::lifecycle::{OpenError, Uuid};
use crate::operation::{Cause, Completion, Operation, Tag};
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Tags with this bit and without the journal's belong to flushes of other ports.
const FLUSH_BIT: u64 = 1 << 62;

/// What a layer promises to keep, and the answers that wait for it.
///
/// `T` is the layer's token: a small value that names what waits.
#[derive(Debug, Saved)]
pub struct Ledger<T> {
    pub(super) stage: Stage,
    /// Told before anything that the journal says.
    #[saved(absent)]
    pub(super) events: VecDeque<LedgerEvent<T>>,
    /// Everything of a journaled ledger; a volatile one has none.
    #[saved(each)]
    pub(super) journaled: Option<Box<Journaled<T>>>,
}

/// A journaled ledger.
#[derive(Debug, Saved)]
pub(super) struct Journaled<T> {
    pub journal: Journal,
    pub answers: Answers<T>,
    /// The ports that are flushed beside the journal's own.
    pub ports: Vec<PortFlushes<T>>,
    pub own_flush: OwnFlush,
    /// Blocks of the ring that writes in flight may need for their records.
    pub reserved: u64,
    /// The name of a member that is about to be formatted: its set, and its number in it.
    pub format: Option<(Uuid, u16)>,
    pub failure: Failure,
    /// Records have become durable that the layer was not told of.
    pub frees_places: bool,
    /// Scratch space for the checksums of one record.
    pub checksums: Vec<u32>,
}

/// Flushes of the journal that nobody but the layer itself waits for.
#[derive(Debug, SavedValue)]
pub(super) struct OwnFlush {
    /// The one that is on its way.
    pub ticket: Option<FlushTicket>,
    /// Blocks of data recorded since a flush was last asked for, and how many there may be.
    pub unflushed_blocks: u64,
    pub unflushed_blocks_max: u64,
}

/// Why nothing can be made durable any more, beside a failure of the journal.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Failure {
    /// A write or a flush of another port has failed.
    pub port: Option<IoError>,
    /// The layer takes no more writes.
    pub refusal: Option<IoError>,
    /// The layer was told.
    pub is_told: bool,
}

impl<T> Journaled<T> {
    #[inline]
    pub fn failure(&self) -> Option<IoError> {
        let failure = self.failure.port.or(self.journal.failure());
        failure.or(self.failure.refusal)
    }
}

impl<T> Ledger<T> {
    /// A ledger that keeps nothing. It is running from the start.
    pub fn volatile() -> Ledger<T> {
        Ledger { stage: Stage::Running, events: VecDeque::new(), journaled: None }
    }

    /// A ledger with a journal, to be opened. `ports` are those that are flushed beside the
    /// journal's own.
    ///
    /// Panics when the journal's area has no room for a ring: the layer's layout checks.
    pub fn journaled(
        journal: JournalSettings,
        durability: DurabilitySettings,
        ports: &[Port],
    ) -> Ledger<T> {
        Ledger::with(Journal::new(journal), durability, ports)
    }

    pub(super) fn with(
        journal: Journal,
        durability: DurabilitySettings,
        ports: &[Port],
    ) -> Ledger<T> {
        Ledger {
            stage: Stage::Shut,
            events: VecDeque::new(),
            journaled: Some(Box::new(Journaled {
                journal,
                answers: Answers::default(),
                ports: ports.iter().map(|port| PortFlushes::new(*port)).collect(),
                own_flush: OwnFlush {
                    ticket: None,
                    unflushed_blocks: 0,
                    unflushed_blocks_max: durability.unflushed_blocks_max,
                },
                reserved: 0,
                format: None,
                failure: Failure::default(),
                frees_places: false,
                checksums: Vec::new(),
            })),
        }
    }

    /// True when the ledger keeps nothing, so that it never makes anybody wait.
    #[inline]
    pub fn is_volatile(&self) -> bool {
        self.journaled.is_none()
    }

    /// How far the life of the ledger has come.
    #[inline]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// True when the ledger takes records and nothing has failed.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.stage == Stage::Running && self.failure().is_none()
    }

    /// True when the ledger takes records still: it is running, or goes down and has not its last map.
    pub fn takes_records(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Closing) && self.failure().is_none()
    }

    /// Why nothing can be made durable any more, if that is so. Sticky.
    #[inline]
    pub fn failure(&self) -> Option<IoError> {
        self.journaled.as_ref().and_then(|it| it.failure())
    }

    /// True when no operation of the ledger is in flight and none is wanted.
    pub fn is_idle(&self) -> bool {
        let is_idle =
            |it: &Journaled<T>| it.journal.is_idle() && it.ports.iter().all(PortFlushes::is_idle);
        self.journaled.as_deref().is_none_or(is_idle)
    }

    /// The layer has found that nothing can be made durable any more: a write of its own on which
    /// that depends has failed.
    pub fn fail(&mut self, error: IoError) {
        let Some(it) = self.journaled.as_deref_mut() else {
            return;
        };
        it.failure.port.get_or_insert(error);
        if let Some(event) = self.failed(error) {
            self.events.push_back(event);
        }
    }

    /// The layer takes no more writes from now on. What it has under way still becomes durable, so
    /// no [`Failed`](LedgerEvent::Failed) follows.
    pub fn refuse_writes(&mut self, error: IoError) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.failure.refusal.get_or_insert(error);
        }
    }

    /// After a failure: anything that still waits, to be ended with the error. Those that wait for
    /// records come first, then those that have asked for a flush, each in the order of coming,
    /// then the riders.
    pub fn next_failed(&mut self) -> Option<T> {
        let it = self.journaled.as_deref_mut()?;
        let ports = &mut it.ports;
        it.answers
            .pop()
            .or_else(|| ports.iter_mut().find_map(PortFlushes::pop_asked))
            .or_else(|| ports.iter_mut().find_map(PortFlushes::pop_rider))
    }

    /// Takes the completion of an operation; false when the ledger did not issue it. The layer's
    /// own tags have neither of the two highest bits.
    #[inline]
    pub fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) -> bool {
        match &mut self.journaled {
            Some(it) if it.journal.owns(completion.tag) => it.journal.complete(completion, ctx),
            Some(_) if completion.tag.0 & FLUSH_BIT != 0 => self.flush_done(completion, ctx),
            _ => return false,
        }
        true
    }

    fn flush_done(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let index = (completion.tag.0 & !FLUSH_BIT) as usize;
        let it = self.journaled.as_deref_mut().expect("a flush was issued");
        match completion.result {
            Ok(()) => it.ports[index].complete(),
            Err(_) if ctx.is_planted(PlantedBug::FailedFlushRetried) => {
                issue_flush(index, it.ports[index].port(), ctx);
            }
            Err(error) => self.fail(error),
        }
    }

    /// Begins the flushes of other ports than the journal's that were asked for. At the end of
    /// every event.
    #[inline]
    pub fn begin_flushes(&mut self, ctx: &mut Context<'_>) {
        let Some(it) = &mut self.journaled else {
            return;
        };
        for (index, flushes) in it.ports.iter_mut().enumerate() {
            if flushes.begin() {
                issue_flush(index, flushes.port(), ctx);
            }
        }
    }

    /// True when the ledger has nothing to do and nothing to say, and will not without a call.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.journaled.is_none() && self.events.is_empty()
    }

    /// The next thing that the layer must know. To be taken out after every event.
    #[inline]
    pub fn next_event(&mut self) -> Option<LedgerEvent<T>> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        loop {
            let it = self.journaled.as_deref_mut()?;
            if it.journal.holds_answers() {
                let event = it.journal.next_event()?;
                return self.translate(event);
            }
            for flushes in &mut it.ports {
                let port = flushes.port();
                if let Some(token) = flushes.next_flushed() {
                    return Some(LedgerEvent::Flushed { port, token });
                }
            }
            if let Some(token) = it.answers.next_flushed() {
                let port = it.journal.first_port();
                return Some(LedgerEvent::Flushed { port, token });
            }
            if core::mem::take(&mut it.frees_places) {
                return Some(LedgerEvent::PlacesFree);
            }
            let event = it.journal.next_event()?;
            let event = self.translate(event);
            if event.is_some() {
                return event;
            }
        }
    }

    /// What the layer must know of something that the journal says.
    fn translate(&mut self, event: JournalEvent) -> Option<LedgerEvent<T>> {
        let it = self.journaled.as_deref_mut().expect("a journal that speaks");
        match event {
            JournalEvent::Recovered(recovery) => Some(LedgerEvent::Recovered(recovery)),
            JournalEvent::Opened => {
                self.stage = Stage::Running;
                Some(LedgerEvent::Opened)
            }
            JournalEvent::Refused(error) => {
                self.stage = Stage::Shut;
                Some(LedgerEvent::Refused(error))
            }
            JournalEvent::Written(last) => {
                it.answers.written(last);
                Some(LedgerEvent::Written)
            }
            JournalEvent::AnswersReleased => Some(LedgerEvent::Written),
            JournalEvent::Flushed { ticket, .. } => {
                it.answers.flushed(ticket);
                it.own_flush.ticket = it.own_flush.ticket.filter(|own| *own > ticket);
                it.frees_places = true;
                None
            }
            JournalEvent::PieceWanted => Some(LedgerEvent::PieceWanted),
            JournalEvent::Checkpointed { .. } => {
                it.frees_places = true;
                Some(LedgerEvent::Checkpointed)
            }
            JournalEvent::CopyAdmitted(port) => Some(LedgerEvent::CopyAdmitted(port)),
            JournalEvent::CopyOut(port) => Some(LedgerEvent::CopyOut(port)),
            JournalEvent::Closed => Some(LedgerEvent::Closed(Ok(()))),
            JournalEvent::Failed(error) => self.failed(error),
        }
    }

    /// What the layer must know of a failure.
    fn failed(&mut self, error: IoError) -> Option<LedgerEvent<T>> {
        let it = self.journaled.as_deref_mut().expect("a journaled ledger");
        it.own_flush.ticket = None;
        let is_first = !core::mem::replace(&mut it.failure.is_told, true);
        match self.stage {
            Stage::Shut => None,
            Stage::Running => Some(LedgerEvent::Failed { error, is_first }),
            Stage::Opening => {
                self.stage = Stage::Shut;
                Some(LedgerEvent::Refused(OpenError::Io(error)))
            }
            Stage::Closing | Stage::Sealing => {
                self.stage = Stage::Shut;
                Some(LedgerEvent::Closed(Err(error)))
            }
        }
    }

    /// Every record before this place is durable. Of a volatile ledger every place is.
    #[inline]
    pub fn durable_before(&self) -> Lsn {
        match &self.journaled {
            None => Lsn(u64::MAX),
            Some(it) => it.journal.durable_before(),
        }
    }
}

fn issue_flush(index: usize, port: Port, ctx: &mut Context<'_>) {
    ctx.issue(Issue {
        port,
        operation: Operation::Flush,
        extent: Extent::EMPTY,
        buffer: BufferSlice::EMPTY,
        cause: Cause::Metadata,
        tag: Tag(FLUSH_BIT | index as u64),
    });
}
