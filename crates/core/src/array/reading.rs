//! What work on rows reads, and what it makes of blocks that cannot be read or are not what they must be.

use super::operations::{Done, Owner};
use super::plan::Method;
use super::task::{Piece, Step, Work, runs_of};
use super::{Columns, Redundancy, RowMap, Rows};
use crate::buffer::BufferSlice;
use crate::counters::Counter;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use alloc::vec::Vec;

impl Rows {
    /// A part that reads some blocks of one column: `pieces` says where in the request they are, in the order
    /// of the rows. What is in none of them is read for nobody.
    pub fn read<M: RowMap>(
        &mut self,
        job: u32,
        column: usize,
        rows: Extent,
        pieces: &[Piece],
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let buffer = self.jobs.request(job).buffer;
        let (into, is_own) = match pieces {
            [one] if one.blocks == rows.blocks.0 => {
                (buffer.part(one.in_request, one.blocks), false)
            }
            _ => (ctx.allocate(rows.blocks), true),
        };
        let work = Work::Read { column, into, is_own, from_others: false };
        let task = self.new_part(job, work, rows);
        self.tasks[task].pieces.extend_from_slice(pieces);
        self.tasks[task].in_odd_epoch = self.epochs.enter();
        self.read_own(task, map, ctx);
    }

    /// Sends a read to its column, if that has all of the rows.
    fn read_own<M: RowMap>(&mut self, task: u32, map: &mut M, ctx: &mut Context<'_>) {
        if !self.knows_sums(task, map) {
            return;
        }
        let entry = &mut self.tasks[task];
        let Work::Read { column, into, .. } = entry.work else { unreachable!("a read") };
        let (rows, cause) = (entry.rows, entry.cause);
        let column = match map.redundancy() {
            Redundancy::Parity => column,
            Redundancy::Copies => self.members.reader_of(rows, ctx).unwrap_or(column),
        };
        let last = rows.end().0 - 1;
        if !self.members.with_row(last).has(column) {
            self.tasks[task].bad.add(column, rows);
            return self.read_others(task, map, ctx);
        }
        let entry = &mut self.tasks[task];
        if let Work::Read { column: by, .. } = &mut entry.work {
            *by = column;
        }
        entry.step = Step::Reading;
        let operation = (Operation::Read, cause);
        let port = self.members.port(column);
        let owner = Owner::Task(task);
        let issued = self.operations.issue(owner, (column, port), operation, rows, into, map, ctx);
        self.tasks[task].outstanding += issued;
    }

    /// A read is answered from the other columns, when its rows are its own.
    pub(super) fn read_others<M: RowMap>(&mut self, task: u32, map: &mut M, ctx: &mut Context<'_>) {
        let entry = &mut self.tasks[task];
        if let Work::Read { from_others, .. } = &mut entry.work {
            *from_others = true;
        }
        entry.step = Step::Waiting;
        entry.turn.missing = u8::from(!self.locks.lock_shared(task, entry.rows));
        if entry.turn.missing == 0 {
            self.begin_reading(task, map, ctx);
        }
    }

    /// The rows are the task's: what it must know is read.
    pub(super) fn begin_reading<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        if !self.knows_sums(task, map) {
            return;
        }
        if let Work::Scrub { is_after_crash, .. } = self.tasks[task].work {
            self.read_to_compare(task, map, ctx);
            if self.tasks[task].outstanding == 0 {
                self.compare(task, is_after_crash, map, ctx);
            }
            return;
        }
        let entry = &mut self.tasks[task];
        entry.step = Step::Reading;
        if let Work::Look { column, into, .. } = entry.work
            && entry.bad.is_empty()
        {
            let (to, rows) = ((column, self.members.port(column)), entry.rows);
            let (owner, operation) = (Owner::Task(task), (Operation::Read, entry.cause));
            entry.outstanding += self.operations.issue(owner, to, operation, rows, into, map, ctx);
            return;
        }
        entry.plan(&self.members, map);
        let work = entry.work;
        if work == Work::Write && self.list_beside_written(task, map, ctx) {
            self.tasks[task].plan(&self.members, map);
        }
        // A member that comes back before it is written does not get what was planned without it.
        self.remember_lacking(task, map, ctx);
        if let Work::Rebuild { column } = work {
            self.keep_chunk(task, column, map, ctx);
            if self.leave_out_unreadable(task, column, map, ctx) {
                // Without those there is another way for the parity.
                self.tasks[task].plan(&self.members, map);
                self.keep_chunk(task, column, map, ctx);
            }
            if self.tasks[task].segments.is_empty() {
                return self.reading_ended(task, map, ctx);
            }
        }
        let entry = &mut self.tasks[task];
        if entry.segments.iter().any(|segment| segment.method == Method::Impossible) {
            entry.failure = entry.failure.or(entry.error).or(Some(IoError::Lost));
            match entry.work {
                Work::Write => {}
                Work::Own { .. } => return self.end_task(task, map, ctx),
                _ => return self.reading_ended(task, map, ctx),
            }
        }
        entry.error = None;
        let read = entry.segments.iter().fold(Columns::NONE, |all, it| all.or(it.read));
        for column in read.iter() {
            self.tasks[task].make_old(column, ctx);
            self.read_old(task, column, map, ctx);
        }
        if self.tasks[task].outstanding == 0 {
            self.reading_ended(task, map, ctx);
        }
    }

    fn read_old<M: RowMap>(&mut self, task: u32, column: usize, map: &M, ctx: &mut Context<'_>) {
        let entry = &mut self.tasks[task];
        let cause = match entry.work {
            Work::Write => Cause::Parity,
            Work::Read { .. } | Work::Own { .. } | Work::Scrub { .. } | Work::Look { .. } => {
                entry.cause
            }
            Work::Rebuild { .. } => Cause::Rebuild,
        };
        let mut issued = 0;
        let port = self.members.port(column);
        for rows in runs_of(&entry.segments, |segment| segment.read.has(column)) {
            let buffer = entry.part(entry.old[column], rows);
            let (to, operation) = ((column, port), (Operation::Read, cause));
            let owner = Owner::Task(task);
            issued += self.operations.issue(owner, to, operation, rows, buffer, map, ctx);
        }
        entry.outstanding += issued;
    }

    /// All that was read is there, or could not be.
    pub(super) fn reading_ended<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.tasks[task];
        match entry.work {
            Work::Write => match entry.turn.before {
                Some(_) => entry.step = Step::Ready,
                None => self.begin_writing(task, map, ctx),
            },
            // All of it was read from its column, and is right.
            Work::Look { .. } if entry.bad.is_empty() => self.end_task(task, map, ctx),
            Work::Read { column, into, .. } | Work::Look { column, into, .. } => {
                if entry.failure.is_none() {
                    entry.compute_column(column, ctx);
                    for segment in &entry.segments {
                        ctx.count(Counter::DegradedReadBlocks, segment.rows.blocks.0);
                        let found = entry.part(entry.new[column], segment.rows);
                        ctx.copy(found, entry.part(into, segment.rows));
                    }
                    self.verify_found(task, column, into, map, ctx);
                }
                self.end_task(task, map, ctx);
            }
            Work::Own { .. } => self.begin_writing(task, map, ctx),
            Work::Scrub { is_after_crash, .. } => self.compare(task, is_after_crash, map, ctx),
            Work::Rebuild { column } => {
                if entry.failure.is_some() {
                    return self.end_task(task, map, ctx);
                }
                if !entry.segments.is_empty() {
                    entry.compute_column(column, ctx);
                    self.list_wrong(task, column, map, ctx);
                }
                match self.is_first_chunk(task) {
                    true => self.write_rebuilt(task, map, ctx),
                    false => self.tasks[task].step = Step::Ready,
                }
            }
        }
    }

    /// True when it is known what the blocks of a task must be. It goes on with
    /// [`sums_came`](Self::sums_came) otherwise.
    fn knows_sums<M: RowMap>(&mut self, task: u32, map: &mut M) -> bool {
        let entry = &mut self.tasks[task];
        if entry.has_sums || map.hold_sums(entry.rows) {
            entry.has_sums = true;
            return true;
        }
        entry.step = Step::Waiting;
        self.awaiting_sums.push(task);
        false
    }

    /// More checksums are known: work that has waited for some goes on.
    pub fn sums_came<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) {
        for task in core::mem::take(&mut self.awaiting_sums) {
            match self.tasks[task].work {
                Work::Read { from_others: false, .. } => self.read_own(task, map, ctx),
                _ => self.begin_reading(task, map, ctx),
            }
        }
        self.settle(map, ctx);
    }

    /// Blocks were read. Those that are not what they must be count as unreadable.
    pub(super) fn verify<M: RowMap>(
        &mut self,
        task: u32,
        done: Done,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let Done { column, rows, buffer, .. } = done;
        let entry = &mut self.tasks[task];
        if matches!(entry.work, Work::Scrub { is_after_crash: true, .. }) {
            // What was being written has no checksum that is known.
            return;
        }
        if entry.work == Work::Write && ctx.is_planted(PlantedBug::ArrayParityFromCorruptBlock) {
            return;
        }
        let mut wrong = 0;
        map.find_wrong(column, rows, buffer, ctx, &mut |row| {
            entry.bad.add(column, Extent::new(row, 1));
            wrong += 1;
        });
        if matches!(entry.work, Work::Read { .. }) {
            let lost = (rows.start.0..rows.end().0).filter(|row| map.is_lost(column, *row));
            for row in lost {
                entry.bad.add(column, Extent::new(row, 1));
                wrong += 1;
            }
        }
        if wrong > 0 {
            entry.error.get_or_insert(IoError::Medium);
            ctx.count(Counter::WrongBlocks, wrong);
        }
    }

    /// Blocks of a column were found from others. One that is not what it must be cannot be read.
    fn verify_found<M: RowMap>(
        &mut self,
        task: u32,
        column: usize,
        into: BufferSlice,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.tasks[task];
        let mut wrong = 0;
        if map.redundancy() == Redundancy::Copies {
            // A copy was looked at when it was read.
            return;
        }
        map.find_wrong(column, entry.rows, into, ctx, &mut |_| wrong += 1);
        if matches!(entry.work, Work::Read { .. }) {
            let mut rows = entry.rows.start.0..entry.rows.end().0;
            wrong += u64::from(rows.any(|row| map.is_lost(column, row)));
        }
        if wrong > 0 {
            entry.failure = Some(IoError::Medium);
            ctx.count(Counter::WrongBlocks, wrong);
        }
    }

    /// Blocks of a column that is rebuilt were found from the others: those that are not what they must be are listed
    /// as unreadable.
    fn list_wrong<M: RowMap>(
        &mut self,
        task: u32,
        column: usize,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        if map.redundancy() == Redundancy::Copies {
            return;
        }
        let entry = &mut self.tasks[task];
        let mut wrong = Vec::new();
        for segment in &entry.segments {
            let found = entry.part(entry.new[column], segment.rows);
            map.find_wrong(column, segment.rows, found, ctx, &mut |row| wrong.push(row));
        }
        for row in &wrong {
            if !map.list_unreadable(column, Extent::new(*row, 1), ctx) {
                entry.failure = Some(IoError::Medium);
            }
        }
        ctx.count(Counter::WrongBlocks, wrong.len() as u64);
    }

    /// Blocks could not be read together: each half is tried, so that those are known which cannot be read.
    pub(super) fn read_in_halves<M: RowMap>(
        &mut self,
        task: u32,
        done: Done,
        map: &M,
        ctx: &mut Context<'_>,
    ) {
        let Done { owner, column, port, rows, buffer, .. } = done;
        let first = rows.blocks.0 / 2;
        let cause = self.tasks[task].cause;
        for (at, blocks) in [(0, first), (first, rows.blocks.0 - first)] {
            let half = Extent::new(rows.start.0 + at, blocks);
            let (to, operation) = ((column, port), (Operation::Read, cause));
            let buffer = buffer.part(at, blocks);
            let issued = self.operations.issue(owner, to, operation, half, buffer, map, ctx);
            self.tasks[task].outstanding += issued;
        }
    }

    /// A write cannot keep the parity of rows in which blocks beside its own cannot be read. All members are there, so
    /// nobody has these blocks any more: they are listed as unreadable. True when the rows must be planned anew.
    fn list_beside_written<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) -> bool {
        let entry = &self.tasks[task];
        if entry.bad.is_empty() || !self.members.is_whole() {
            return false;
        }
        let mut has_listed = false;
        for segment in entry.segments.iter().filter(|it| it.method == Method::Impossible) {
            for row in segment.rows.start.0..segment.rows.end().0 {
                let beside = entry.bad.at(row).and(map.held(row)).without(segment.written);
                let row = Extent::new(row, 1);
                for column in beside.iter() {
                    has_listed |= map.list_unreadable(column, row, ctx);
                }
            }
        }
        has_listed
    }

    /// Rows that are to be rebuilt and that no column can give are listed as unreadable, and left out: of parity with
    /// what cannot be read of the others. True when the rows must be planned anew.
    fn leave_out_unreadable<M: RowMap>(
        &mut self,
        task: u32,
        column: usize,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) -> bool {
        if !self.members.have_all(map.redundancy()) {
            return false;
        }
        if map.redundancy() == Redundancy::Parity {
            let entry = &self.tasks[task];
            let mut has_listed = false;
            for segment in entry.segments.iter().filter(|it| it.method == Method::Impossible) {
                let bad = entry.bad.at(segment.rows.start.0).or(Columns::of(column));
                has_listed |= bad.iter().all(|bad| map.list_unreadable(bad, segment.rows, ctx));
            }
            return has_listed;
        }
        for segment in &mut self.tasks[task].segments {
            if segment.method == Method::Impossible
                && map.list_unreadable(column, segment.rows, ctx)
            {
                (segment.method, segment.read) = (Method::None, Columns::NONE);
            }
        }
        false
    }
}
