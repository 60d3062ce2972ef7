//! Which members a RAID 4SMR has, and what becomes of those that are new or back.

use super::Raid4Smr;
use crate::array::RowMap;
use crate::array::keeper::Life;
use crate::array::members::State;
use crate::array::raid4smr::notes::TOKEN_WHOLE;
use crate::array::raid4smr::word::Word;
use crate::array::rebuilds::{FlushFor, Returning};
use crate::command::{CommandError, CommandId};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::ledger::{CopyState, Stage};
use crate::lifecycle::OpenError;
use crate::planted::PlantedBug;
use alloc::vec::Vec;

impl Raid4Smr {
    /// The node behind a port is lost.
    pub(super) fn lose(&mut self, port: Port, ctx: &mut Context<'_>) {
        if self.notes.keeper.ledger.stage() == Stage::Opening && self.keeps() {
            return self.notes.keeper.ledger.lose_copy(port, ctx);
        }
        self.notes.keeper.refuse_admission(Some(port), ctx);
        let was_member = self.rows.members.column_of(port).is_some();
        self.rows.lost(port, &mut self.contents, ctx);
        if !was_member {
            self.notes.keeper.lose_copy(port, ctx);
            self.hold_spare_out(port, ctx);
        }
    }

    /// The journal goes on without a spare: the label of that does not move any more, so that no start takes its copy
    /// alone for that of an array that was all there.
    fn hold_spare_out(&mut self, spare: Port, ctx: &mut Context<'_>) {
        if self.keeps() && self.notes.keeper.has_copy(spare) {
            ctx.hold_out(spare, true);
            ctx.move_mark();
        }
    }

    /// Records which members are out. No answer goes out before that is durable.
    pub(super) fn note_members(&mut self, ctx: &mut Context<'_>) {
        let may_record = self.keeps() && self.notes.keeper.ledger.takes_records();
        if !may_record || self.notes.keeper.life == Life::Lost {
            return;
        }
        if !self.rows.members.have_all(self.contents.redundancy()) {
            return self.give_up(ctx);
        }
        let out = self.notes.keeper.note(&self.rows.members, ctx);
        for port in &out {
            ctx.hold_out(*port, true);
        }
        if !out.is_empty() {
            if let Some(band) = self.collector.writes_to() {
                self.miss_band(band);
            }
            ctx.move_mark();
            if self.notes.failure().is_none() {
                self.notes.hold_answers(ctx);
            }
        }
        self.rebuilds.begin_anew();
    }

    /// Whoever is out has missed a band and the checksums of its rows.
    pub(super) fn miss_band(&mut self, band: u64) {
        let band_blocks = self.contents.bands().band_blocks();
        let rows = Extent::new(band * band_blocks, band_blocks);
        let (Some(missed), Some(sums)) = (&mut self.rows.members.missed, &self.contents.sums)
        else {
            return;
        };
        missed.add_rows(rows);
        sums.tables_of(rows).for_each(|table| missed.add_rows(sums.row_of(table)));
    }

    /// Two members lack rows. What both are needed for cannot be found. Nothing is recorded of the second: it may
    /// come back with all that it had.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        let was_up = self.notes.keeper.life != Life::Opening;
        self.notes.keeper.life = Life::Lost;
        self.notes.keeper.ledger.fail(IoError::Lost);
        self.notes.fail(IoError::Lost, ctx);
        match was_up {
            true => ctx.lose(),
            false => ctx.opened(Err(OpenError::Io(IoError::Lost))),
        }
    }

    /// True of a disk that should have a copy of the journal and has none that counts.
    pub(super) fn is_copy_out(&self, port: Port) -> bool {
        let keeper = &self.notes.keeper;
        keeper.has_copy(port) && keeper.ledger.copy_state(port) == CopyState::Out
    }

    /// The array comes up: members that are out and there get what they have missed, or all of their rows.
    pub(super) fn find_returning(&mut self, ctx: &mut Context<'_>) {
        // No spare that is not there steps in for a column, nor one that the journal goes on without.
        for spare in self.rows.members.spare_ports().collect::<Vec<_>>() {
            if self.is_copy_out(spare) {
                self.hold_spare_out(spare, ctx);
            }
            if ctx.is_lost(spare) || self.is_copy_out(spare) {
                self.rows.lost(spare, &mut self.contents, ctx);
            }
        }
        for column in 0..self.contents.columns() {
            let port = self.rows.members.port(column);
            if ctx.is_lost(port) {
                // It may be gone since the journal was read.
                self.rows.lost(port, &mut self.contents, ctx);
                continue;
            }
            let keeper = &self.notes.keeper;
            if self.rows.members.state(column) != State::Out {
                continue;
            }
            let is_another = keeper.is_another(column, ctx);
            let from_start = !keeper.may_return(column);
            let returning = Returning { column, from_start };
            match self.is_copy_out(port) {
                true if is_another => {}
                // The journal must have a copy there first.
                true => self.rebuilds.comes_back(returning),
                false => self.rows.take_in(returning, is_another, ctx),
            }
        }
        for column in 0..self.contents.columns() {
            let port = self.rows.members.port(column);
            let keeper = &self.notes.keeper;
            let is_in = match keeper.has_copy(port) {
                true => keeper.ledger.copy_state(port) == CopyState::In,
                false => self.rows.members.state(column) != State::Out,
            };
            if is_in && !ctx.is_lost(port) && ctx.was_away(port) {
                self.takes_part_in_marks(port, ctx);
            }
        }
        // Nothing is believed of what spares have.
        for spare in self.rows.members.spare_ports().collect::<Vec<_>>() {
            if ctx.was_away(spare) {
                self.takes_part_in_marks(spare, ctx);
            }
        }
    }

    /// The mark of a disk moves with those of the others from now on. A home has no journal: its mark alone tells
    /// an older copy of it, so it takes part while it is rebuilt. What it has is in the journal of others.
    fn takes_part_in_marks(&mut self, port: Port, ctx: &mut Context<'_>) {
        ctx.hold_out(port, false);
        ctx.move_mark();
    }

    /// A new disk is behind a port.
    pub(super) fn put_in(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        if !self.keeps() {
            return self.rows.replaced(port, command, &mut self.contents, ctx);
        }
        if self.notes.keeper.has_copy(port) {
            self.to_admit.push_back((port, Some(command)));
            if self.notes.keeper.life != Life::Up || self.notes.failure().is_some() {
                self.refuse_waiting("the array goes down, or cannot record anything any more", ctx);
            }
            return;
        }
        self.rows.members.replaced(port);
        self.note_members(ctx);
        self.takes_part_in_marks(port, ctx);
        self.notes.keeper.answer_replaced(command, ctx);
        // A spare may step in with it.
        self.rows.go_on(&mut self.contents, ctx);
    }

    /// New disks that wait to be taken in are not any more.
    pub(super) fn refuse_waiting(&mut self, why: &str, ctx: &mut Context<'_>) {
        for (_, command) in self.to_admit.drain(..) {
            if let Some(command) = command {
                ctx.answer_command(command, Err(CommandError::NotNow(why.into())));
            }
        }
    }

    /// True when the journal is to have a copy on a disk, which it gets in a moment in which nothing changes.
    pub(super) fn has_to_admit(&mut self, ctx: &Context<'_>) -> bool {
        self.notes.keeper.can_admit(ctx)
            && (!self.to_admit.is_empty()
                || self.rebuilds.next_returning(&self.rows, ctx).is_some())
    }

    /// The journal gets a copy on the next disk that waits for it; `map` is what a checkpoint would say.
    pub(super) fn admit(&mut self, map: Vec<u8>, ctx: &mut Context<'_>) {
        if let Some((port, command)) = self.to_admit.pop_front() {
            return match command.filter(|_| ctx.is_lost(port)) {
                None => self.notes.keeper.admit(port, command, map, ctx),
                Some(command) => {
                    let words = "the new disk is lost already".into();
                    ctx.answer_command(command, Err(CommandError::Failed(words)));
                }
            };
        }
        if let Some(next) = self.rebuilds.next_returning(&self.rows, ctx) {
            self.notes.keeper.admit(self.rows.members.port(next.column), None, map, ctx);
        }
    }

    /// The journal has a copy on a disk that was taken in.
    pub(super) fn copy_admitted(&mut self, port: Port, ctx: &mut Context<'_>) {
        let Some(command) = self.notes.keeper.admitted(port) else { return };
        if let Some(command) = command {
            self.rows.members.replaced(port);
            self.note_members(ctx);
            self.notes.keeper.answer_replaced(command, ctx);
            return self.rows.go_on(&mut self.contents, ctx);
        }
        let Some(returning) = self.rebuilds.take_returning(port, &self.rows) else {
            // Its disk has everything, and only the journal was out.
            return self.takes_part_in_marks(port, ctx);
        };
        let Raid4Smr { rebuilds, notes, .. } = self;
        rebuilds.count_before_it_is_whole(port, returning.column, &mut notes.keeper, ctx);
        self.rows.take_in(returning, false, ctx);
        self.note_members(ctx);
        self.rows.go_on(&mut self.contents, ctx);
    }

    /// The journal has no copy behind a port any more.
    pub(super) fn copy_out(&mut self, port: Port, ctx: &mut Context<'_>) {
        self.notes.keeper.refuse_admission(Some(port), ctx);
        self.rebuilds.forget_returning(port, &self.rows);
        if self.rows.members.column_of(port).is_none() {
            self.hold_spare_out(port, ctx);
        }
        self.rows.lost(port, &mut self.contents, ctx);
    }

    /// Records from time to time how far a rebuild has come, and that it is done.
    pub(super) fn record_rebuild(&mut self, ctx: &mut Context<'_>) {
        if !self.keeps() {
            return;
        }
        match self.rebuilds.next_flush(&self.rows, &self.notes.keeper, &self.contents) {
            None => {}
            Some(FlushFor::Whole) => self.flush_members(Word::Whole, ctx),
            Some(FlushFor::Progress) => match ctx.is_planted(PlantedBug::ArrayCursorAheadOfData) {
                true => self.progress_flushed(Ok(()), ctx),
                false => self.flush_members(Word::Progress, ctx),
            },
        }
    }

    /// What was rebuilt is durable.
    pub(super) fn progress_flushed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.rebuilds.progress_flushed(result, &self.rows, &mut self.notes.keeper, ctx);
    }

    /// All rows of a member are durable there.
    pub(super) fn whole_flushed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Raid4Smr { rebuilds, rows, contents, notes, .. } = self;
        let rows = (&*rows, &*contents);
        if rebuilds.whole_flushed(result, TOKEN_WHOLE, rows, &mut notes.keeper, ctx) {
            self.whole_recorded(ctx);
        }
    }

    /// That a member has all of its rows is durable.
    pub(super) fn whole_recorded(&mut self, ctx: &mut Context<'_>) {
        self.rebuilds.whole_recorded(&mut self.rows, &mut self.contents, ctx);
        self.rows.has_changed = true;
    }
}
