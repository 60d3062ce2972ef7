//! Work on some rows of an array: a part of a request, or of a rebuild.

use super::bad_rows::BadRows;
use super::plan::{Method, Segment, plan_column, plan_write};
use super::scrubbed::Scrubbed;
use super::{Columns, Members, Redundancy, RowMap};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::saved::SavedValue;
use crate::units::Lba;
use alloc::vec::Vec;

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Work {
    /// Blocks of some columns are written.
    Write,
    /// Blocks of a column are read.
    Read {
        /// The column.
        column: usize,
        /// Where they go, as long as the rows.
        into: BufferSlice,
        /// The buffer is the array's own, and is copied to that of the request in the end.
        is_own: bool,
        /// The column cannot give them: they are found from the others.
        from_others: bool,
    },
    /// The parity of some rows changes for work of the layer's own, which has said how.
    Own {
        /// The word that the layer gets back.
        word: u64,
    },
    /// Blocks of a column are read for the layer, while nobody writes them.
    Look {
        /// The word that the layer gets back.
        word: u64,
        /// The column.
        column: usize,
        /// Where they go, as long as the rows.
        into: BufferSlice,
    },
    /// The members are compared, and made right where they are not.
    Scrub {
        /// The word that the layer gets back.
        word: u64,
        /// The rows were perhaps being written when the power went.
        is_after_crash: bool,
        /// What the comparison has found.
        found: Scrubbed,
    },
    /// Blocks of a column are found from the others and written to it.
    Rebuild {
        /// The column.
        column: usize,
    },
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum Step {
    /// It waits for its rows, or for whoever has made it.
    Waiting,
    /// What must be known is read.
    Reading,
    /// A zone is emptied for what is rebuilt.
    Emptying,
    /// It may write when the part of the request before it does.
    Ready,
    /// The layer is to note it before it writes.
    Noting,
    /// New blocks are written.
    Writing,
}

/// A run of blocks of a request and where in the rows of a part they are.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct Piece {
    /// The first block, from the start of the request.
    pub in_request: u64,
    /// The first row, from the start of the part.
    pub in_rows: u64,
    /// Blocks.
    pub blocks: u64,
}

/// When work may go on.
#[derive(Clone, Copy, Debug, Default, SavedValue)]
pub struct Turn {
    /// Of its rows and its lane what it waits for.
    pub missing: u8,
    /// Parts in one lane write one after the other.
    pub lane: Option<u64>,
    /// The part of the same request that writes before this one, if it has not.
    pub before: Option<u32>,
    /// The part that waits for this one in turn.
    pub behind: Option<u32>,
}

/// Work on some rows.
#[derive(Debug, SavedValue)]
pub struct Task {
    /// The request it is a part of; none of a rebuild and of work of the layer's own.
    pub job: Option<u32>,
    pub work: Work,
    pub step: Step,
    pub rows: Extent,
    /// The operation by which new blocks are written.
    pub write: Operation,
    /// Who wants it.
    pub cause: Cause,
    /// Of a write: for each row the columns with new data.
    pub written: Vec<Columns>,
    /// Of a read into an own buffer: where its blocks go.
    pub pieces: Vec<Piece>,
    /// How the rows are changed, or found.
    pub segments: Vec<Segment>,
    /// For each column a buffer as long as the rows with what it will have, where it is changed.
    pub new: Vec<BufferSlice>,
    /// For each column a buffer as long as the rows with what it had, where it is read.
    pub old: Vec<BufferSlice>,
    /// Blocks that could not be read, or were not what they must be.
    pub bad: BadRows,
    /// Operations in flight.
    pub outstanding: u32,
    /// Columns that may not have what was written to them.
    pub unwritten: Columns,
    /// What has gone wrong in this step.
    pub error: Option<IoError>,
    /// Why it comes to nothing, or some of its rows do.
    pub failure: Option<IoError>,
    /// When it may go on.
    pub turn: Turn,
    /// It was begun in an odd epoch.
    pub in_odd_epoch: bool,
    /// It holds the checksums of its rows in memory.
    pub has_sums: bool,
    /// The number under which the layer has noted a write.
    pub note: Option<u64>,
}

impl Task {
    /// Nothing, with no memory.
    pub fn new() -> Task {
        Task {
            job: None,
            work: Work::Write,
            step: Step::Waiting,
            rows: Extent::EMPTY,
            write: Operation::WRITE,
            cause: Cause::Host,
            written: Vec::new(),
            pieces: Vec::new(),
            segments: Vec::new(),
            new: Vec::new(),
            old: Vec::new(),
            bad: BadRows::default(),
            unwritten: Columns::NONE,
            outstanding: 0,
            error: None,
            failure: None,
            turn: Turn::default(),
            in_odd_epoch: false,
            has_sums: false,
            note: None,
        }
    }

    /// Begins anew, with the memory of the task before.
    pub fn reset(&mut self, work: Work, rows: Extent, columns: usize) {
        self.work = work;
        self.step = Step::Waiting;
        self.rows = rows;
        self.job = None;
        self.write = Operation::WRITE;
        self.cause = Cause::Host;
        self.written.clear();
        self.pieces.clear();
        self.segments.clear();
        self.new.clear();
        self.new.resize(columns, BufferSlice::EMPTY);
        self.old.clear();
        self.old.resize(columns, BufferSlice::EMPTY);
        self.bad.clear(rows.start.0);
        self.unwritten = Columns::NONE;
        (self.outstanding, self.error, self.failure) = (0, None, None);
        self.turn = Turn::default();
        self.has_sums = false;
        self.note = None;
    }

    /// Takes the new data of rows of a column, or zeroes for one.
    pub fn put(
        &mut self,
        column: usize,
        row: u64,
        data: Option<BufferSlice>,
        ctx: &mut Context<'_>,
    ) {
        self.make_new(column, ctx);
        let at = row - self.rows.start.0;
        let blocks = data.map_or(1, |data| u64::from(data.blocks));
        let to = self.new[column].part(at, blocks);
        match data {
            Some(data) => ctx.copy(data, to),
            None => ctx.zero(to),
        }
        for written in &mut self.written[at as usize..(at + blocks) as usize] {
            *written = written.or(Columns::of(column));
        }
    }

    /// Finds out how its rows are changed, or found, with the members that are there now.
    pub fn plan<M: RowMap>(&mut self, members: &Members, map: &M) {
        let (rows, bad, segments) = (self.rows, &self.bad, &mut self.segments);
        segments.clear();
        match self.work {
            Work::Write => plan_write(map, members, bad, rows, &self.written, segments),
            Work::Read { column, .. } => {
                // What the column has given is right.
                let wanted = |row| bad.at(row).has(column);
                plan_column(map, members, bad, (column, rows), wanted, segments);
            }
            Work::Rebuild { column } => {
                let lacks = |row| !members.with_row(row).has(column);
                plan_column(map, members, bad, (column, rows), lacks, segments);
            }
            Work::Look { column, .. } => {
                let wanted = |row| bad.at(row).has(column);
                plan_column(map, members, bad, (column, rows), wanted, segments);
            }
            Work::Own { .. } if members.has_all(map.parity_of(rows.start.0)) => {
                map.plan_own(rows, bad, segments);
            }
            Work::Own { .. } | Work::Scrub { .. } => {}
        }
    }

    /// Members may have been lost since a write was planned: rows of which neither the data nor a parity that
    /// covers it would be written come to nothing.
    pub fn leave_out_lost_rows<M: RowMap>(&mut self, members: &Members, map: &M) {
        if self.work != Work::Write || members.is_whole() {
            return;
        }
        for segment in &mut self.segments {
            let there = members.with_row(segment.rows.end().0 - 1);
            let has_parity = segment.method != Method::None && there.has(segment.parity);
            let lacking = segment.written.without(there);
            let is_kept = |row: u64| match map.redundancy() {
                Redundancy::Copies => lacking != segment.written,
                Redundancy::Parity => {
                    let missing = map.held(row).or(segment.written).without(there);
                    lacking.is_empty() || has_parity && missing.len() == 1
                }
            };
            if !(segment.rows.start.0..segment.rows.end().0).all(is_kept) {
                segment.method = Method::Impossible;
                self.failure = self.failure.or(Some(IoError::Lost));
            }
        }
    }

    /// Columns to which new blocks are written, run by run.
    pub fn changed(&self) -> Columns {
        let mut segments = self.segments.iter();
        match self.work {
            Work::Write | Work::Scrub { .. } => {
                segments.fold(Columns::NONE, |all, it| all.or(it.changed()))
            }
            Work::Own { .. } => segments.next().map_or(Columns::NONE, |it| Columns::of(it.parity)),
            Work::Read { .. } | Work::Rebuild { .. } | Work::Look { .. } => Columns::NONE,
        }
    }

    /// What new blocks of some rows of a column are written for. Of columns that bear parity by turns data and
    /// parity are one run, which counts as data.
    pub fn cause_of(&self, column: usize, rows: Extent) -> Cause {
        let is_data =
            |segment: &Segment| rows.contains(segment.rows.start) && segment.written.has(column);
        match self.work {
            Work::Own { .. } | Work::Scrub { .. } => self.cause,
            _ if self.segments.iter().any(is_data) => self.cause,
            _ => Cause::Parity,
        }
    }

    /// Shortens the rows to so many from the first segment on; all others are still locked, and are not done.
    pub fn keep_first_rows(&mut self, rows: u64) {
        let Some(first) = self.segments.first() else { return };
        let start = first.rows.start;
        let end = (start.0 + rows).min(self.rows.end().0);
        self.rows = Extent::between(start, Lba(end));
        self.segments.retain_mut(|segment| {
            let inside = segment.rows.intersection(self.rows);
            segment.rows = inside.unwrap_or(Extent::EMPTY);
            inside.is_some()
        });
    }

    /// The part of a buffer as long as the rows that some of them have.
    pub fn part(&self, buffer: BufferSlice, rows: Extent) -> BufferSlice {
        buffer.part(rows.start.0 - self.rows.start.0, rows.blocks.0)
    }
}

/// The rows of neighbouring segments in which a column has a part, joined.
pub fn runs_of(
    segments: &[Segment],
    has: impl Fn(&Segment) -> bool,
) -> impl Iterator<Item = Extent> {
    let mut at = 0;
    core::iter::from_fn(move || {
        while at < segments.len() && !has(&segments[at]) {
            at += 1;
        }
        let first = segments.get(at)?;
        let mut rows = first.rows;
        at += 1;
        while at < segments.len() && segments[at].rows.start == rows.end() && has(&segments[at]) {
            rows.blocks.0 += segments[at].rows.blocks.0;
            at += 1;
        }
        Some(rows)
    })
}
