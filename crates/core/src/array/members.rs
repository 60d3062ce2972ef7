//! Which members of an array are there, and what they have.

use super::missed::Missed;
use super::plan::{Method, Segment};
use super::{Columns, Redundancy};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::saved::{Saved, SavedValue};
use alloc::vec::Vec;
use core::ops::Range;

/// Columns of an array at most.
pub const COLUMNS_MAX: usize = 64;

/// What a member has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum State {
    /// All of its rows.
    In,
    /// Nothing: it is lost, or an operation of it has failed.
    Out,
    /// Nothing: a new disk is there that nobody has asked to be rebuilt.
    Blank,
    /// The rows before this one: it is being rebuilt, or was when another member was lost.
    Rebuilding(u64),
    /// Those that nobody has written while it was away, and all others before this one: it has come back.
    Returning(u64),
}

#[derive(Clone, Copy, Debug, SavedValue)]
struct Member {
    port: Port,
    state: State,
    /// A flush that has failed. What the member answered before may be gone, so no later one is believed.
    flush_failure: Option<IoError>,
}

/// What the loss of a port means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The array lacks this column from now on.
    Column(usize),
    /// It was a spare, or nothing that the array has use for.
    Nothing,
}

/// The members of an array by column, and its spares.
#[derive(Debug, Saved)]
pub struct Members {
    members: Vec<Member>,
    /// Ports with nodes that may take the place of a member, the next one first.
    spares: Vec<Port>,
    /// The columns that have all of their rows.
    whole: Columns,
    /// Ports of members and spares.
    ports: usize,
    /// The disk of a member may stand for any other when it comes back and its place is taken. Otherwise it may stand
    /// for the member whose place it had.
    are_alike: bool,
    /// What members that are away have missed, where somebody remembers it.
    pub missed: Option<Missed>,
}

impl Members {
    /// Members behind the first ports, and spares behind those after them. Panics when there are more than
    /// [`COLUMNS_MAX`].
    pub fn new(columns: usize, spares: usize, are_alike: bool) -> Members {
        assert!(columns <= COLUMNS_MAX, "{columns} columns");
        let port = |index: usize| Port(index as u8);
        let member = |column| Member { port: port(column), state: State::In, flush_failure: None };
        Members {
            members: (0..columns).map(member).collect(),
            spares: (columns..columns + spares).map(port).collect(),
            whole: Columns::first(columns),
            ports: columns + spares,
            are_alike,
            missed: None,
        }
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.members.len()
    }

    /// The node that stands for a column.
    #[inline]
    pub fn port(&self, column: usize) -> Port {
        self.members[column].port
    }

    /// The column that a node stands for.
    pub fn column_of(&self, port: Port) -> Option<usize> {
        self.members.iter().position(|member| member.port == port)
    }

    /// True when no member lacks a row.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.whole.len() as usize == self.members.len()
    }

    /// True when a column has all of its rows.
    #[inline]
    pub fn has_all(&self, column: usize) -> bool {
        self.whole.has(column)
    }

    /// The nodes that have all rows of their columns.
    pub fn whole_ports(&self) -> impl Iterator<Item = Port> + '_ {
        self.whole.iter().map(|column| self.port(column))
    }

    /// The columns that have a row.
    #[inline]
    pub fn with_row(&self, row: u64) -> Columns {
        if self.is_whole() {
            return self.whole;
        }
        let members = self.members.iter().enumerate();
        let rebuilt = members.filter_map(|(column, member)| match member.state {
            State::Rebuilding(before) | State::Returning(before) if row < before => {
                Some(Columns::of(column))
            }
            State::Returning(_) if !self.has_missed(row) => Some(Columns::of(column)),
            _ => None,
        });
        rebuilt.fold(self.whole, Columns::or)
    }

    /// Of copies the column that is to read rows: the one with the least to do, and where several have as
    /// little each has its regions.
    pub fn reader_of(&self, rows: Extent, ctx: &Context<'_>) -> Option<usize> {
        const REGION_ROWS: u64 = 1024;
        let columns = self.columns();
        let first = (rows.start.0 / REGION_ROWS) as usize % columns;
        let there = self.with_row(rows.end().0 - 1);
        let order = (0..columns).map(|index| (first + index) % columns);
        let order = order.filter(|column| there.has(*column));
        order.min_by_key(|column| ctx.in_flight(self.port(*column)))
    }

    /// How many rows from this one on the same columns have.
    pub fn alike_from(&self, row: u64) -> u64 {
        let ends = self.members.iter().filter_map(|member| match member.state {
            State::Rebuilding(before) if row < before => Some(before - row),
            State::Returning(before) => {
                let border = self.missed.as_ref().map_or(u64::MAX, |it| it.end_of_run(row));
                Some(if row < before { before.min(border) } else { border } - row)
            }
            _ => None,
        });
        ends.min().unwrap_or(u64::MAX)
    }

    /// Rows are about to be written: members that are away miss what they do not get.
    pub fn miss(&mut self, segments: &[Segment], redundancy: Redundancy) {
        if self.is_whole() || self.missed.is_none() {
            return;
        }
        for segment in segments.iter().filter(|it| it.method != Method::Impossible) {
            let parity = match redundancy {
                Redundancy::Parity => Columns::of(segment.parity),
                Redundancy::Copies => Columns::NONE,
            };
            // The rows of a segment are alike.
            let lacking = segment.written.or(parity);
            let lacking = lacking.without(self.with_row(segment.rows.end().0 - 1));
            let is_away =
                |it: &usize| matches!(self.members[*it].state, State::Out | State::Returning(_));
            if lacking.iter().any(|column| is_away(&column))
                && let Some(missed) = &mut self.missed
            {
                missed.add_rows(segment.rows);
            }
        }
    }

    /// True of a row that members which were away have not.
    fn has_missed(&self, row: u64) -> bool {
        self.missed.as_ref().is_none_or(|missed| missed.has(row))
    }

    /// What a member has.
    pub fn state(&self, column: usize) -> State {
        self.members[column].state
    }

    /// A member is what it was when the array went down: behind a port, with what it has.
    pub fn set(&mut self, column: usize, port: Port, state: State) {
        self.spares.retain(|spare| *spare != port);
        self.members[column] = Member { port, state, flush_failure: None };
        self.whole = match state {
            State::In => self.whole.or(Columns::of(column)),
            _ => self.whole.without(Columns::of(column)),
        };
    }

    /// All nodes that stand for no column are spares.
    pub fn set_spares(&mut self) {
        let all = (0..self.ports).map(|port| Port(port as u8));
        let spares = all.filter(|port| self.column_of(*port).is_none());
        self.spares = spares.collect();
    }

    /// True when a spare may stand for a column.
    fn fits(&self, spare: Port, column: usize) -> bool {
        let port = usize::from(spare.0);
        self.are_alike || port >= self.members.len() || port == column
    }

    /// A column that has lost rows only for a while: its rebuild has been begun, and may go on from this row.
    pub fn begun(&self) -> Option<(usize, u64)> {
        let mut members = self.members.iter().enumerate();
        members.find_map(|(column, member)| match member.state {
            State::Rebuilding(before) | State::Returning(before) => Some((column, before)),
            _ => None,
        })
    }

    /// True when a member is out that may come back.
    pub fn has_out(&self) -> bool {
        self.members.iter().any(|member| member.state == State::Out)
    }

    /// True when another node than the first stands for a column. Where members differ it is a spare, which
    /// has no zones.
    pub fn is_spare(&self, column: usize) -> bool {
        usize::from(self.port(column).0) != column
    }

    /// True when a column is there, all rows or not.
    pub fn is_present(&self, column: usize) -> bool {
        use State::{In, Rebuilding, Returning};
        matches!(self.members[column].state, In | Rebuilding(_) | Returning(_))
    }

    /// Columns that lack rows: those that are rebuilt, and all others that are not there.
    pub fn lacking(&self) -> usize {
        self.members.len() - self.whole.len() as usize
    }

    /// Columns that may lack rows without a block being lost.
    pub fn may_lack(&self, redundancy: Redundancy) -> usize {
        match redundancy {
            Redundancy::Parity => 1,
            Redundancy::Copies => self.columns() - 1,
        }
    }

    /// True when every block of the array can be found.
    pub fn have_all(&self, redundancy: Redundancy) -> bool {
        self.lacking() <= self.may_lack(redundancy)
    }

    /// True when every block can be found without the nodes behind some ports too.
    pub fn may_lose(&self, is_lost: &dyn Fn(Port) -> bool, redundancy: Redundancy) -> bool {
        let columns = 0..self.columns();
        let gone = columns.filter(|column| !self.has_all(*column) || is_lost(self.port(*column)));
        gone.count() <= self.may_lack(redundancy)
    }

    /// True when blocks would be lost without a column.
    pub fn is_needed(&self, column: usize, redundancy: Redundancy) -> bool {
        self.has_all(column) && self.lacking() >= self.may_lack(redundancy)
    }

    /// A column that has nothing.
    pub fn missing(&self) -> Option<usize> {
        let missing = |member: &Member| matches!(member.state, State::Out | State::Blank);
        self.members.iter().position(missing)
    }

    /// A column whose new disk nobody has asked to be rebuilt.
    pub fn blank(&self) -> Option<usize> {
        self.members.iter().position(|member| member.state == State::Blank)
    }

    /// True when a new disk waits to be rebuilt.
    pub fn is_blank(&self, column: usize) -> bool {
        self.members[column].state == State::Blank
    }

    /// The array goes on without a column.
    pub fn put_out(&mut self, column: usize) {
        self.members[column].state = State::Out;
        self.whole = self.whole.without(Columns::of(column));
    }

    /// A node is lost.
    pub fn lose(&mut self, port: Port) -> Loss {
        self.spares.retain(|spare| *spare != port);
        match self.column_of(port) {
            Some(column) if self.members[column].state != State::Out => {
                self.put_out(column);
                Loss::Column(column)
            }
            _ => Loss::Nothing,
        }
    }

    /// A lost node is there again, blank: in the place that it had, or as a spare where another node has
    /// taken that. A spare that is there already stays one.
    pub fn replaced(&mut self, port: Port) {
        match self.column_of(port) {
            Some(column) => {
                self.members[column].state = State::Blank;
                self.members[column].flush_failure = None;
            }
            None if self.spares.contains(&port) => {}
            None => self.spares.push(port),
        }
    }

    /// Puts the next spare that may stand for a column that is out in its place; false when there is none.
    pub fn step_in(&mut self, column: usize) -> bool {
        let Some(at) = self.spares.iter().position(|spare| self.fits(*spare, column)) else {
            return false;
        };
        let port = self.spares.remove(at);
        self.members[column] = Member { port, state: State::Blank, flush_failure: None };
        true
    }

    /// A blank column gets its rows from now on; one whose rebuild has begun goes on.
    pub fn begin_rebuild(&mut self, column: usize) {
        let state = &mut self.members[column].state;
        if !matches!(state, State::Rebuilding(_) | State::Returning(_)) {
            *state = State::Rebuilding(0);
        }
    }

    /// A column that is rebuilt has the rows before this one.
    pub fn rebuilt_to(&mut self, column: usize, row: u64) {
        let state = &mut self.members[column].state;
        *state = match state {
            State::Returning(_) => State::Returning(row),
            _ => State::Rebuilding(row),
        };
    }

    /// The next row from this one on that a column lacks which is rebuilt.
    pub fn next_lacking(&self, column: usize, row: u64) -> Option<u64> {
        match (&self.missed, self.members[column].state) {
            (Some(missed), State::Returning(_)) => missed.next_row(row),
            _ => Some(row),
        }
    }

    /// The end of the rows from one on that a column lacks which is rebuilt. That one is among them.
    pub fn end_of_lacking(&self, column: usize, row: u64) -> u64 {
        match (&self.missed, self.members[column].state) {
            (Some(missed), State::Returning(_)) => missed.end_of_missed(row),
            _ => u64::MAX,
        }
    }

    /// A column has all rows again.
    pub fn end_rebuild(&mut self, column: usize) {
        self.members[column].state = State::In;
        self.whole = self.whole.or(Columns::of(column));
    }

    /// A rebuild cannot go on for a fault of its own: what it has written counts for nothing.
    pub fn give_up_rebuild(&mut self, column: usize) {
        if matches!(self.members[column].state, State::Rebuilding(_) | State::Returning(_)) {
            self.members[column].state = State::Blank;
        }
    }

    /// A flush of a column has failed, and the array cannot go on without it.
    pub fn flush_failed(&mut self, column: usize, error: IoError) {
        self.members[column].flush_failure.get_or_insert(error);
    }

    /// An earlier flush of a column that has failed.
    pub fn flush_failure(&self, column: usize) -> Option<IoError> {
        self.members[column].flush_failure
    }

    /// The ports of the spares that are left, the next one first.
    pub fn spare_ports(&self) -> impl Iterator<Item = Port> + '_ {
        self.spares.iter().copied()
    }

    /// How many of some rows a column lacked when its rebuild began.
    pub fn count_lacking(&self, column: usize, rows: Range<u64>) -> u64 {
        match (&self.missed, self.members[column].state) {
            (Some(missed), State::Returning(_)) => missed.count(rows),
            _ => rows.end.saturating_sub(rows.start),
        }
    }

    /// Spares that are left.
    pub fn spares(&self) -> usize {
        self.spares.len()
    }
}
