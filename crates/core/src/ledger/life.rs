//! How a ledger comes up and goes down, and its checkpoints.

use super::events::{LedgerEvent, Stage};
use super::journaled::Ledger;
use crate::layer::Context;
use crate::lifecycle::{Start, Uuid};
use crate::units::Instant;
use alloc::vec::Vec;

impl<T> Ledger<T> {
    /// Begins to come up; `member` is the number of the journal's member in its set. Where the stack
    /// does not [number](Context::member_number) the members of a mirrored ledger, they have this
    /// number and those behind it.
    /// [`Blank`](LedgerEvent::Blank), [`Recovered`](LedgerEvent::Recovered) or
    /// [`Refused`](LedgerEvent::Refused) says what is there. A volatile ledger says
    /// [`Opened`](LedgerEvent::Opened) at once.
    pub fn open(&mut self, start: Start, member: u16, ctx: &mut Context<'_>) {
        let Some(it) = self.journaled.as_deref_mut() else {
            return self.events.push_back(LedgerEvent::Opened);
        };
        self.stage = Stage::Opening;
        match start {
            Start::Format(set) => {
                it.format = Some((set, member));
                self.events.push_back(LedgerEvent::Blank);
            }
            Start::Recover(set) if it.journal.is_mirrored() => it.journal.open_copies(set, ctx),
            Start::Recover(set) => {
                let expected = set.map(|set| (set, set.member(member)));
                it.journal.open(expected, ctx);
            }
        }
    }

    /// Goes on with coming up: `map` is what the layer has brought back, or the map of an empty
    /// device. [`Opened`](LedgerEvent::Opened) or [`Refused`](LedgerEvent::Refused) ends it. Until
    /// then a second recovery finds what this one has found.
    pub fn begin(&mut self, map: Vec<u8>, ctx: &mut Context<'_>) {
        let Some(it) = self.journaled.as_deref_mut() else {
            return;
        };
        match it.format.take() {
            Some((set, member)) if it.journal.is_mirrored() => {
                it.journal.format_copies(set, member, map, ctx);
            }
            Some((set, member)) => it.journal.format(set, set.member(member), map, ctx),
            None => it.journal.begin(map, ctx),
        }
    }

    /// The layer itself ends coming up: it refuses what was found, or serves without a ledger.
    pub fn give_up(&mut self) {
        self.stage = Stage::Shut;
    }

    /// Begins to go down. [`Drain`](LedgerEvent::Drain) asks the layer to bring to an end what it
    /// has under way. [`Closed`](LedgerEvent::Closed) comes at once when there is nothing to
    /// write: from a volatile ledger, or from one that is not running or has failed.
    pub fn begin_close(&mut self) {
        let (stage, event) = match (self.stage, self.failure()) {
            (Stage::Running, None) if self.is_volatile() => {
                (Stage::Running, LedgerEvent::Closed(Ok(())))
            }
            (Stage::Running, None) => (Stage::Closing, LedgerEvent::Drain),
            (Stage::Running, Some(error)) => (Stage::Shut, LedgerEvent::Closed(Err(error))),
            _ => (Stage::Shut, LedgerEvent::Closed(Ok(()))),
        };
        self.stage = stage;
        self.events.push_back(event);
    }

    /// Writes the last map of a layer that has nothing under way, and marks the member as clean.
    /// [`Closed`](LedgerEvent::Closed) says when that is done.
    pub fn close(&mut self, map: Vec<u8>, ctx: &mut Context<'_>) {
        self.stage = Stage::Sealing;
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.close(map, ctx);
        }
    }

    /// True when the layer should begin a checkpoint, so that room does not run out.
    #[inline]
    pub fn wants_checkpoint(&self) -> bool {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.is_some_and(|journal| journal.wants_checkpoint())
    }

    /// True while a checkpoint is being written. The last map has to wait for it.
    pub fn is_checkpointing(&self) -> bool {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.is_some_and(|journal| journal.is_checkpointing())
    }

    /// Writes the map of the layer, with every record so far in it, so that the journal before it
    /// can be used again. One at a time; [`Checkpointed`](LedgerEvent::Checkpointed) ends it.
    pub fn checkpoint(&mut self, map: Vec<u8>, ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.checkpoint(map, ctx);
        }
    }

    /// As [`checkpoint`](Self::checkpoint), by the records since the newest one, which come behind its map. False
    /// when nothing is written, and a map is needed: there are too many for their share of the map, or no room
    /// behind it. Only the ledgers of a persistent cache and of S-blocks have such checkpoints.
    pub fn checkpoint_by_records(&mut self, ctx: &mut Context<'_>) -> bool {
        let journal = self.journaled.as_deref_mut().map(|it| &mut it.journal);
        journal.is_some_and(|journal| journal.checkpoint_by_records(ctx))
    }

    /// As [`checkpoint`](Self::checkpoint), of so many bytes that come in pieces:
    /// [`PieceWanted`](LedgerEvent::PieceWanted) asks for each. They say what is so now. With `is_part`
    /// they come behind the newest map, and say what has changed since; only where
    /// [they fit](Self::has_place_for_part), and not where the ledger is mirrored.
    pub fn checkpoint_in_pieces(&mut self, bytes: u64, is_part: bool, ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.checkpoint_in_pieces(bytes, is_part, ctx);
        }
    }

    /// Takes the next piece of the map.
    pub fn take_piece(&mut self, piece: &[u8], ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.take_piece(piece, ctx);
        }
    }

    /// True when a part of so many bytes fits behind the newest map.
    pub fn has_place_for_part(&self, bytes: u64) -> bool {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.is_some_and(|journal| journal.has_place_for_part(bytes))
    }

    /// Blocks of a place for a checkpoint.
    pub fn checkpoint_blocks(&self) -> u64 {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.map_or(0, |journal| journal.settings().checkpoint_blocks)
    }

    /// The set that the member belongs to, once it is open.
    pub fn set(&self) -> Uuid {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.map_or(Uuid::default(), |journal| journal.set())
    }

    /// The name of the journal's member in its set, once it is open.
    pub fn member(&self) -> Uuid {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.map_or(Uuid::default(), |journal| journal.member())
    }

    /// Counts the checkpoints.
    pub fn generation(&self) -> u64 {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.map_or(0, |journal| journal.generation())
    }

    /// The generation that the next checkpoint will have.
    pub fn next_generation(&self) -> u64 {
        let journal = self.journaled.as_deref().map(|it| &it.journal);
        journal.map_or(0, |journal| journal.next_generation())
    }

    /// When the layer must call [`mark_if_idle`](Self::mark_if_idle), if it does not know yet. At
    /// the end of every event.
    #[inline]
    pub fn new_mark_alarm(&mut self, ctx: &Context<'_>) -> Option<Instant> {
        let it = self.journaled.as_deref_mut()?;
        it.journal.new_mark_alarm(ctx)
    }

    /// The alarm has gone off: the journal notes that its last flush is done, unless it was busy
    /// meanwhile. The layer allows it when nothing under way may need the room in the ring.
    pub fn mark_if_idle(&mut self, is_allowed: bool, ctx: &mut Context<'_>) {
        if let Some(it) = self.journaled.as_deref_mut() {
            it.journal.mark_if_idle(is_allowed, ctx);
        }
    }
}
