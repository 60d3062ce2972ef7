//! What a durable array records of the rebuild of a member, and which members are back.

use super::keeper::{Keeper, Life, Token};
use super::members::State;
use super::status::{ArrayStatus, MemberHas};
use super::{RowMap, Rows};
use crate::error::IoError;
use crate::layer::{Context, Port};
use crate::ledger::When;
use crate::notice::Notice;
use crate::planted::PlantedBug;
use crate::saved::SavedValue;
use crate::units::BLOCK_BYTES;
use alloc::vec::Vec;

/// Rows that are rebuilt between two records of it at most: 16 MiB of a member.
const PROGRESS_ROWS_MAX: u64 = 4096;

/// Why the members must be flushed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushFor {
    /// What was rebuilt so far is to count.
    Progress,
    /// A member has all of its rows.
    Whole,
}

/// A member that was away and is there again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Returning {
    /// Its column.
    pub column: usize,
    /// It gets all rows; otherwise those that it has missed.
    pub from_start: bool,
}

/// The rebuild of a member as the journal has it, and the members that are to be rebuilt because they are back.
#[derive(Debug, SavedValue)]
pub struct Rebuilds {
    /// Rows between two records at most.
    progress_rows: u64,
    /// How far the rebuild was when the flush of its member began.
    progress: Option<(usize, u64)>,
    /// The rows of a member that are durable there, as they were recorded last.
    recorded_to: u64,
    /// The member whose end of a rebuild is being made durable.
    finishing: Option<usize>,
    returning: Vec<Returning>,
}

impl Rebuilds {
    /// Of members with so many rows.
    pub fn new(rows: u64) -> Rebuilds {
        Rebuilds {
            progress_rows: (rows / 16).clamp(1, PROGRESS_ROWS_MAX),
            progress: None,
            recorded_to: 0,
            finishing: None,
            returning: Vec::new(),
        }
    }

    /// What the members must be flushed for now, if they must.
    pub fn next_flush<M: RowMap>(
        &mut self,
        rows: &Rows,
        keeper: &Keeper,
        map: &M,
    ) -> Option<FlushFor> {
        if keeper.life != Life::Up || keeper.ledger.failure().is_some() {
            return None;
        }
        if let Some(column) = rows.to_confirm(map) {
            if self.finishing.is_some() || !keeper.ledger.has_room() {
                return None;
            }
            self.finishing = Some(column);
            return Some(FlushFor::Whole);
        }
        let (column, row) = rows.rebuilt_to()?;
        self.recorded_to = self.recorded_to.min(row);
        let is_due = row - self.recorded_to >= self.progress_rows;
        if !is_due || self.progress.is_some() || !keeper.ledger.has_room() {
            return None;
        }
        self.progress = Some((column, row));
        Some(FlushFor::Progress)
    }

    /// What was rebuilt is durable.
    pub fn progress_flushed(
        &mut self,
        result: Result<(), IoError>,
        rows: &Rows,
        keeper: &mut Keeper,
        ctx: &mut Context<'_>,
    ) {
        let Some((column, row)) = self.progress.take() else { return };
        let goes_on = rows.rebuilt_to().is_some_and(|(now, _)| now == column);
        if result.is_ok() && goes_on && keeper.ledger.failure().is_none() {
            keeper.record_progress(column, row, ctx);
            self.recorded_to = row;
        }
    }

    /// All rows of a member are durable there. True when that is recorded already; otherwise the token comes.
    pub fn whole_flushed<M: RowMap>(
        &mut self,
        result: Result<(), IoError>,
        token: u64,
        (rows, map): (&Rows, &M),
        keeper: &mut Keeper,
        ctx: &mut Context<'_>,
    ) -> bool {
        let is_it = self.finishing.is_some() && self.finishing == rows.to_confirm(map);
        if result.is_err() || !is_it || keeper.ledger.failure().is_some() {
            self.finishing = None;
            return false;
        }
        let column = self.finishing.expect("a member");
        keeper.record_whole(column, Token::Layer(token), ctx) == When::Now
    }

    /// That a member has all of its rows is durable.
    pub fn whole_recorded<M: RowMap>(
        &mut self,
        rows: &mut Rows,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let finished = self.finishing.take();
        let Some(column) = finished.filter(|_| finished == rows.to_confirm(map)) else { return };
        self.recorded_to = 0;
        let port = rows.members.port(column);
        // Its mark moves with those of the others from now on.
        ctx.hold_out(port, false);
        ctx.move_mark();
        if let (Some(missed), State::Returning(_)) =
            (&rows.members.missed, rows.members.state(column))
        {
            let resynced_bytes = missed.region_rows() * BLOCK_BYTES;
            ctx.notice(Notice::MemberReturned { member: port.0, resynced_bytes });
        }
        rows.confirm(map, ctx);
        if rows.members.is_whole()
            && let Some(missed) = &mut rows.members.missed
        {
            missed.clear();
        }
    }

    /// A rebuild may begin anew: what was recorded of the last one does not count.
    pub fn begin_anew(&mut self) {
        self.recorded_to = 0;
    }

    /// Nothing can be recorded any more.
    pub fn give_up(&mut self) {
        self.finishing = None;
    }

    /// True while something that was rebuilt is being made durable.
    pub fn is_flushing(&self) -> bool {
        self.progress.is_some()
    }

    /// The array goes down: with its last flush what was rebuilt so far is durable.
    pub fn begin_to_close(&mut self, rows: &Rows) {
        self.progress = rows.members.begun();
    }

    /// The last flush has ended.
    pub fn flushed_to_close(
        &mut self,
        result: Result<(), IoError>,
        keeper: &mut Keeper,
        ctx: &mut Context<'_>,
    ) {
        if let (Some((column, row)), Ok(())) = (self.progress.take(), result) {
            keeper.record_progress(column, row, ctx);
        }
    }

    /// A member is back.
    pub fn comes_back(&mut self, returning: Returning) {
        self.returning.push(returning);
    }

    /// Says of the members that are back that they wait for their turn, or for the journal.
    pub fn tell_returning(&self, status: &mut ArrayStatus) {
        for returning in &self.returning {
            let member = &mut status.members[returning.column];
            if member.has == MemberHas::Nothing && !member.is_lost {
                member.has = MemberHas::Older;
            }
        }
    }

    /// The next member that is back and can be taken in. Those that are gone again are forgotten.
    pub fn next_returning(&mut self, rows: &Rows, ctx: &Context<'_>) -> Option<Returning> {
        while let Some(next) = self.returning.last() {
            let port = rows.members.port(next.column);
            if rows.members.state(next.column) == State::Out && !ctx.is_lost(port) {
                return Some(*next);
            }
            self.returning.pop();
        }
        None
    }

    /// The member behind a port that is back is taken in now.
    pub fn take_returning(&mut self, port: Port, rows: &Rows) -> Option<Returning> {
        let is_it = |it: &Returning| rows.members.port(it.column) == port;
        let at = self.returning.iter().position(is_it)?;
        Some(self.returning.swap_remove(at))
    }

    /// A planted bug alone asks for it: a member that is taken in counts as one that has everything.
    pub fn count_before_it_is_whole(
        &self,
        port: Port,
        column: usize,
        keeper: &mut Keeper,
        ctx: &mut Context<'_>,
    ) {
        if ctx.is_planted(PlantedBug::ArrayMarkAheadOfData) {
            // Every start asks the record as well as the mark: one of them ahead alone loses nothing.
            keeper.record_in(column, ctx);
            ctx.hold_out(port, false);
            ctx.move_mark();
        }
    }

    /// The member behind a port is gone again.
    pub fn forget_returning(&mut self, port: Port, rows: &Rows) {
        self.returning.retain(|it| rows.members.port(it.column) != port);
    }
}

impl Rows {
    /// The disk of a column that is out is there: a new one that somebody has put in, or the one that was away.
    pub(super) fn take_in(&mut self, of: Returning, is_new: bool, ctx: &Context<'_>) {
        let state = match (is_new, of.from_start) {
            _ if ctx.is_planted(PlantedBug::ArrayStaleMemberTaken) => State::In,
            (true, _) => State::Blank,
            (false, true) => State::Rebuilding(0),
            (false, false) => State::Returning(0),
        };
        self.members.set(of.column, self.members.port(of.column), state);
        self.has_changed = true;
    }
}
