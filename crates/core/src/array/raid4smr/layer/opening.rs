//! How a RAID 4SMR comes up.

use super::Raid4Smr;
use crate::array::keeper::{Life, Token};
use crate::array::member_record::RECORD_MEMBER;
use crate::array::members::State;
use crate::array::missed::Missed;
use crate::array::raid4smr::notes::TOKEN_OPENED;
use crate::array::raid4smr::records::{Said, Written};
use crate::array::raid4smr::recovery::AfterCrash;
use crate::array::raid4smr::table_writes::Behind;
use crate::array::raid4smr::word::Word;
use crate::array::{Redundancy, RowMap};
use crate::durability::Recovery;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::ledger::{LedgerEvent, When};
use crate::lifecycle::{OpenError, Start};
use crate::planted::PlantedBug;
use crate::state::{StateError, StateReader};
use alloc::vec::Vec;

impl Raid4Smr {
    /// Begins to come up.
    pub(super) fn begin_to_open(&mut self, start: Start, ctx: &mut Context<'_>) {
        if self.keeps() {
            self.rows.bound_labels(ctx);
            self.rows.is_resting = true;
            // A journal of a disk that was away does not know what the array has done with the other one.
            let (gone, there): (Vec<Port>, Vec<Port>) =
                self.notes.keeper.copies().iter().partition(|port| ctx.is_lost(**port));
            if !gone.is_empty() && there.iter().all(|port| ctx.was_away(*port)) {
                return ctx.opened(Err(OpenError::Io(IoError::Lost)));
            }
            return self.notes.keeper.ledger.open(start, 0, ctx);
        }
        let opened = self.rows.open(&mut self.contents, ctx);
        self.notes.keeper.life = Life::Up;
        ctx.opened(if opened { Ok(()) } else { Err(OpenError::Io(IoError::Lost)) });
    }

    pub(super) fn handle_opening(&mut self, event: LedgerEvent<Token>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Blank => {
                self.notes.keeper.begin_new(&self.rows.members, ctx);
                let map = self.checkpoint_map();
                self.notes.keeper.ledger.begin(map, ctx);
            }
            LedgerEvent::Recovered(recovery) => {
                if let Err(error) = self.take_back(&recovery, ctx) {
                    self.refuse(error, ctx);
                }
            }
            LedgerEvent::Opened => {
                self.know_set();
                self.find_returning(ctx);
                // That members are not there must be recorded first.
                self.note_members(ctx);
                if self.notes.keeper.life == Life::Lost {
                    return;
                }
                if self.notes.when_durable(TOKEN_OPENED, ctx) == When::Now {
                    self.end_opening(ctx);
                }
            }
            LedgerEvent::Refused(error) => ctx.opened(Err(error)),
            _ => {}
        }
    }

    fn refuse(&mut self, error: OpenError, ctx: &mut Context<'_>) {
        self.after_crash = None;
        self.notes.keeper.ledger.give_up();
        ctx.opened(Err(error));
    }

    /// The set is known: tables of checksums of another one are not taken.
    fn know_set(&mut self) {
        let set = self.notes.keeper.ledger.set();
        self.contents.sums.iter_mut().for_each(|sums| sums.of_set(set));
    }

    fn take_back(&mut self, recovery: &Recovery, ctx: &mut Context<'_>) -> Result<(), OpenError> {
        self.know_set();
        let columns = self.contents.columns();
        let rest = self.notes.keeper.take_map(&recovery.checkpoint, columns)?;
        let mut words = StateReader::new(rest);
        let mut take = || {
            self.notes.restore(words.take_u64()?);
            self.directory.take(&mut words)?;
            self.contents.take(&mut words)?;
            if let Some(missed) = &mut self.rows.members.missed {
                missed.take(&mut words)?;
            }
            Ok(words.is_at_end())
        };
        let is_all: Result<bool, StateError> = take();
        let words = "it is not that of an array with these bands and slots";
        if !is_all.map_err(|_| OpenError::damaged("checkpoint", words))? {
            return Err(OpenError::damaged("checkpoint", "it is longer than it says"));
        }
        // It may have been made just before a member counted that had everything.
        self.forget_missed_if_whole();
        let mut said = Vec::new();
        for record in &recovery.records {
            if record.kind == RECORD_MEMBER {
                self.notes.keeper.replay(record)?;
                self.forget_missed_if_whole();
            } else {
                said.push(Said::of(record)?);
            }
        }
        self.notes.keeper.restore(&mut self.rows.members);
        for column in 0..columns {
            self.contents.spare_stepped_in(column, self.rows.members.is_spare(column));
        }
        self.leave_out_missing(ctx)?;
        let numbers = said.iter().filter_map(|it| match it {
            Said::Write(written) => Some(written.number + 1),
            _ => None,
        });
        if let Some(next) = numbers.max() {
            self.notes.restore(next);
        }
        let log = self.room.layout().map_or(Extent::EMPTY, |layout| layout.log());
        let is_in_log = |it: &Said| match it {
            Said::Write(Written { logged: Some(it), .. }) => {
                // Of each row at least a block is there, and its parity.
                let blocks = 2 * it.parity_sums.len() as u64;
                it.at >= log.start.0
                    && it.at.checked_add(blocks).is_some_and(|end| end <= log.end().0)
            }
            _ => true,
        };
        if !said.iter().all(is_in_log) {
            return Err(OpenError::damaged("record", "it speaks of a log that is not there"));
        }
        let mut after = AfterCrash::new(said, log, (&self.directory, &self.contents), &self.rows);
        self.miss_recent(&after);
        if ctx.is_planted(PlantedBug::ArrayNotComparedAfterCrash) {
            after.compare_nothing();
        }
        self.after_crash = Some(after);
        Ok(())
    }

    /// What a member has missed that is in again says nothing of the next one that is away: on a home old blocks would be
    /// written over what lies behind them.
    fn forget_missed_if_whole(&mut self) {
        if self.notes.keeper.all_are_in() {
            self.rows.members.missed.iter_mut().for_each(Missed::clear);
        }
    }

    /// A member that is away has perhaps missed all that was written behind the last checkpoint: nothing was on its
    /// way then.
    fn miss_recent(&mut self, after: &AfterCrash) {
        let is_away = |column: &usize| {
            matches!(self.rows.members.state(*column), State::Out | State::Returning(_))
        };
        let Some(away) = (0..self.contents.columns()).find(is_away) else { return };
        let parity = self.contents.parity();
        if let Some(missed) = &mut self.rows.members.missed {
            let its = after.recent().iter().filter(|(column, _)| away == *column || away == parity);
            its.for_each(|(_, row)| missed.add_rows(Extent::new(*row, 1)));
        }
        let is_there = |band: &u64| *band < self.contents.bands().band_rows();
        let bands: Vec<u64> = after.bands_collected_to().filter(is_there).collect();
        bands.into_iter().for_each(|band| self.miss_band(band));
    }

    /// Members that are not there, are others than those that were recorded, or are recorded as out, are out.
    fn leave_out_missing(&mut self, ctx: &mut Context<'_>) -> Result<(), OpenError> {
        for column in 0..self.contents.columns() {
            let port = self.rows.members.port(column);
            match (self.rows.members.state(column), self.is_copy_out(port)) {
                _ if ctx.is_lost(port) || self.notes.keeper.is_another(column, ctx) => {
                    self.rows.lost(port, &mut self.contents, ctx);
                }
                // Where the journal on a disk is out and the disk is not, nothing was promised without it.
                (State::In, true) => self.to_admit.push_back((port, None)),
                (_, true) => self.rows.lost(port, &mut self.contents, ctx),
                (_, false) => {}
            }
        }
        match self.rows.members.have_all(Redundancy::Parity) {
            true => Ok(()),
            false => Err(OpenError::Io(IoError::Lost)),
        }
    }

    /// Goes on with the recovery, if there is one.
    pub(super) fn recover_on(&mut self, ctx: &mut Context<'_>) {
        let Raid4Smr { after_crash, directory, contents, rows, .. } = self;
        let Some(after) = after_crash else { return };
        let went = after.go_on(Word::Recovery(0).number(), directory, contents, rows, ctx);
        let failure = after.failure();
        if let Err(error) = went.and(failure.map_or(Ok(()), |error| Err(OpenError::Io(error)))) {
            return self.refuse(error, ctx);
        }
        if after.is_over() {
            self.after_crash = None;
            self.collector.restore(self.directory.band_rows());
            // The records are gone behind the next checkpoint, and with them the checksums that they have.
            let changed = self.contents.sums.as_ref().map(|sums| sums.changed(None));
            self.table_writes.begin(Behind::Opening, changed.unwrap_or_default());
        }
    }

    /// The checksums that the records had are in the tables.
    pub(super) fn tables_flushed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        if let Err(error) = result {
            return self.refuse(OpenError::Io(error), ctx);
        }
        if !self.rows.members.have_all(Redundancy::Parity) {
            return self.refuse(OpenError::Io(IoError::Lost), ctx);
        }
        // What was mended without a member goes behind the checkpoint that says so.
        for port in self.notes.keeper.note(&self.rows.members, ctx) {
            ctx.hold_out(port, true);
            ctx.move_mark();
        }
        let map = self.checkpoint_map();
        self.notes.keeper.ledger.begin(map, ctx);
    }

    /// Says that the array is up.
    pub(super) fn end_opening(&mut self, ctx: &mut Context<'_>) {
        self.notes.keeper.life = Life::Up;
        // Band rows may have been due when the power went, and a rebuild under way.
        self.rows.has_changed = true;
        self.rows.is_resting = ctx.is_read_only();
        self.rows.go_on(&mut self.contents, ctx);
        ctx.opened(Ok(()));
    }
}
