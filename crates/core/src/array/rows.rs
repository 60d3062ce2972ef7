//! The requests of an array, and the work on its rows that they are made of.

use super::epochs::Epochs;
use super::jobs::Jobs;
use super::members::{Loss, Members};
use super::noting::Noting;
use super::operations::{Done, Operations, Owner};
use super::patience::Patience;
use super::plan::{Method, Segment};
use super::rebuild::{CHUNK_ROWS, Rebuild};
use super::row_locks::RowLocks;
use super::scrubbed::Ended;
use super::task::{Step, Task, Turn, Work, runs_of};
use super::{Columns, Redundancy, RowMap};
use crate::buffer::BufferSlice;
use crate::command::Without;
use crate::counters::{Counter, Gauge};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::map::Slab;
use crate::notice::Notice;
use crate::operation::{Cause, Completion, Durability, Operation};
use crate::planted::PlantedBug;
use crate::saved::Saved;
use crate::units::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The requests of an array and their rows.
///
/// A request is made of parts, one for each run of rows. A part that writes has its rows for itself, first
/// come, first served; the parts of one request begin to write in the order in which they were made. It
/// reads what the new parity must be computed from, then writes data and parity. A read goes to its column
/// alone; when that cannot answer, the rows are locked and the block is found from the others.
///
/// A member of which a write or a flush fails is out, as long as all others are there. With two members out
/// what needs both is lost, and all else goes on.
#[derive(Debug, Saved)]
pub struct Rows {
    pub(super) members: Members,
    pub(super) jobs: Jobs,
    pub(super) tasks: Slab<Task>,
    pub(super) locks: RowLocks,
    pub(super) operations: Operations,
    #[saved(absent)]
    pub(super) rebuild: Option<Rebuild>,
    pub(super) epochs: Epochs,
    /// Ends of the layer's own operations.
    ended: VecDeque<Ended>,
    /// Work that waits until it is known what its blocks must be.
    pub(super) awaiting_sums: Vec<u32>,
    /// Parts that write and have come to nothing, at least in part.
    failed_writes: VecDeque<u32>,
    /// A member was lost or has come back, which the layer has not heard of.
    pub(super) has_changed: bool,
    /// Somebody keeps what the members have: that one was rebuilt must become durable before it counts.
    pub(super) keeps_contents: bool,
    /// Blocks that a read finds to be wrong are made right.
    pub(super) repairs: bool,
    /// Rows that are rebuilt at once.
    pub(super) chunk_rows: u64,
    /// Rows in which a read has found a wrong block.
    pub(super) to_repair: Vec<Extent>,
    /// Writes that are noted before they begin, where the layer does that.
    pub(super) noting: Noting,
    /// No work is begun that nobody has asked for.
    pub(super) is_resting: bool,
    /// No member lacked a row when the gauges were set last.
    was_whole: bool,
}

impl Rows {
    /// Nothing under way over `columns` members and so many spares; where all are alike, each may stand for any.
    pub fn new(columns: usize, spares: usize, are_alike: bool) -> Rows {
        Rows {
            members: Members::new(columns, spares, are_alike),
            jobs: Jobs::default(),
            tasks: Slab::default(),
            locks: RowLocks::default(),
            operations: Operations::default(),
            rebuild: None,
            epochs: Epochs::default(),
            ended: VecDeque::new(),
            awaiting_sums: Vec::new(),
            failed_writes: VecDeque::new(),
            has_changed: false,
            keeps_contents: false,
            repairs: false,
            chunk_rows: CHUNK_ROWS,
            to_repair: Vec::new(),
            noting: Noting::default(),
            is_resting: false,
            was_whole: false,
        }
    }

    /// What the members have is kept over restarts: so many rows in all.
    pub fn keep_contents(&mut self, rows: u64) {
        self.keeps_contents = true;
        self.chunk_rows = (rows / 16).clamp(4, CHUNK_ROWS);
    }

    pub(super) fn new_task(&mut self, work: Work, rows: Extent) -> u32 {
        let task = self.tasks.reuse_or(Task::new);
        self.tasks[task].reset(work, rows, self.members.columns());
        task
    }

    /// A new part of a job.
    pub(super) fn new_part(&mut self, job: u32, work: Work, rows: Extent) -> u32 {
        let task = self.new_task(work, rows);
        self.jobs.add_parts(job, 1);
        let request = self.jobs.request(job);
        let entry = &mut self.tasks[task];
        (entry.job, entry.cause) = (Some(job), request.cause);
        task
    }

    /// A part that writes. Its data is given with [`put`](Self::put), and it begins with
    /// [`start`](Self::start).
    pub fn new_write(&mut self, job: u32) -> u32 {
        let task = self.new_part(job, Work::Write, Extent::EMPTY);
        // Who notes its writes flushes behind them: a block that were durable before those of earlier tracks would
        // be destroyed by them.
        if self.jobs.request(job).operation.is_durable() && !self.noting.is_on {
            self.tasks[task].write = Operation::Write { durability: Durability::Durable };
        }
        task
    }

    /// Makes room for the rows of a write, from the first that it has.
    pub fn set_rows(&mut self, task: u32, rows: Extent) {
        let entry = &mut self.tasks[task];
        entry.rows = rows;
        entry.bad.clear(rows.start.0);
        entry.written.resize(rows.blocks.0 as usize, Columns::NONE);
    }

    /// Moves the rows of a write that has not begun elsewhere.
    pub fn move_to(&mut self, task: u32, first_row: u64) {
        self.tasks[task].rows.start.0 = first_row;
        self.tasks[task].bad.clear(first_row);
    }

    /// Gives a write the new data of a row, or zeroes.
    pub fn put(
        &mut self,
        task: u32,
        column: usize,
        row: u64,
        data: Option<BufferSlice>,
        ctx: &mut Context<'_>,
    ) {
        self.tasks[task].put(column, row, data, ctx);
    }

    /// Begins a write whose data it has. It ends before the next one in the same lane begins, where it has one.
    pub fn start<M: RowMap>(
        &mut self,
        task: u32,
        lane: Option<u64>,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        self.tasks[task].in_odd_epoch = self.epochs.enter();
        let job = self.tasks[task].job.expect("a part of a request");
        if let Some(before) = self.jobs.writes_last(job, task) {
            self.tasks[before].turn.behind = Some(task);
            self.tasks[task].turn.before = Some(before);
        }
        let entry = &mut self.tasks[task];
        entry.turn.lane = lane;
        // Whatever it waits for was begun before it, so that nobody waits for ever.
        entry.turn.missing = u8::from(!self.locks.lock(task, entry.rows));
        entry.turn.missing += u8::from(lane.is_some_and(|lane| !self.locks.lock_lane(task, lane)));
        if entry.turn.missing == 0 {
            self.begin_reading(task, map, ctx);
        }
    }

    /// Work of the layer's own on rows: their parity, where it is there, changes as
    /// [`plan_own`](RowMap::plan_own) says. `sum` is what the first column adds to it, as long as the rows, and
    /// is given away. The end comes with the word.
    pub fn start_own<M: RowMap>(
        &mut self,
        word: u64,
        rows: Extent,
        sum: BufferSlice,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let task = self.new_task(Work::Own { word }, rows);
        let entry = &mut self.tasks[task];
        entry.cause = Cause::Cleaning;
        entry.new[0] = sum;
        self.lock_or_wait(task, map, ctx);
    }

    /// Reads rows of a column for the layer, when nobody writes them. The end comes with the word.
    pub(super) fn look<M: RowMap>(
        &mut self,
        word: u64,
        (column, rows): (usize, Extent),
        into: BufferSlice,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let task = self.new_task(Work::Look { word, column, into }, rows);
        self.tasks[task].cause = Cause::Cleaning;
        self.lock_or_wait(task, map, ctx);
    }

    /// A part that writes to rows of a column what another one, which has not begun, was to write elsewhere:
    /// `from` says of each block the column and the row there, from the first.
    pub fn new_write_of(
        &mut self,
        of: u32,
        column: usize,
        rows: Extent,
        from: impl Iterator<Item = (usize, u64)>,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let job = self.tasks[of].job.expect("a part of a request");
        let task = self.new_write(job);
        self.set_rows(task, rows);
        for (row, (from_column, from_row)) in (rows.start.0..).zip(from) {
            let data = self.tasks[of].new[from_column].part(from_row, 1);
            self.put(task, column, row, Some(data), ctx);
        }
        task
    }

    /// Ends a write that has not begun.
    pub fn drop_part(&mut self, task: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.tasks[task].release(ctx);
        let job = self.tasks[task].job.expect("a part of a request");
        self.tasks.remove(task);
        self.jobs.end_part(job, result);
    }

    /// Work that is no part of a request begins when its rows are its own.
    pub(super) fn lock_or_wait<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.tasks[task];
        entry.turn.missing = u8::from(!self.locks.lock(task, entry.rows));
        if entry.turn.missing == 0 {
            self.begin_reading(task, map, ctx);
        }
    }

    pub(super) fn begin_writing<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let mut next = Some(task);
        while let Some(task) = next {
            let entry = &mut self.tasks[task];
            entry.leave_out_lost_rows(&self.members, map);
            // Who notes it wants to know the parity too.
            if entry.note.is_none() {
                entry.compute_parity(ctx);
            }
            if self.noting.is_on
                && entry.work == Work::Write
                && entry.note.is_none()
                && map.is_noted(entry.rows)
            {
                entry.step = Step::Noting;
                return self.noting.wait(task);
            }
            entry.step = Step::Writing;
            let (work, changed) = (entry.work, entry.changed());
            self.remember_lacking(task, map, ctx);
            if let Work::Rebuild { column } = work {
                self.write_chunk(task, column, map, ctx);
            }
            for column in changed.iter() {
                self.write_new(task, column, map, ctx);
            }
            next = self.let_go_on(task);
            if self.tasks[task].outstanding == 0 {
                self.end_task(task, map, ctx);
            }
        }
    }

    fn write_new<M: RowMap>(&mut self, task: u32, column: usize, map: &M, ctx: &mut Context<'_>) {
        let entry = &mut self.tasks[task];
        let members = &self.members;
        let mut issued = 0;
        let to = (column, members.port(column));
        let owner = Owner::Task(task);
        let skips_rebuilt = ctx.is_planted(PlantedBug::ArrayRebuildSkipsNewWrites);
        let gets = |segment: &Segment| {
            segment.changed().has(column)
                && members.with_row(segment.rows.end().0 - 1).has(column)
                && (members.has_all(column) || !skips_rebuilt)
        };
        for rows in runs_of(&entry.segments, gets) {
            let cause = entry.cause_of(column, rows);
            let buffer = entry.part(entry.new[column], rows);
            let operation = (entry.write, cause);
            issued += self.operations.issue(owner, to, operation, rows, buffer, map, ctx);
        }
        entry.outstanding += issued;
    }

    /// The part behind one that has begun to write may, if it is ready.
    pub(super) fn let_go_on(&mut self, task: u32) -> Option<u32> {
        let entry = &mut self.tasks[task];
        let behind = entry.turn.behind.take();
        if let Some(job) = entry.job {
            self.jobs.has_begun_to_write(job, task);
        }
        let behind = behind?;
        self.tasks[behind].turn.before = None;
        (self.tasks[behind].step == Step::Ready).then_some(behind)
    }

    /// An operation below has ended. The end of one of the layer's own is among [`next_ended`](Self::next_ended).
    pub fn complete<M: RowMap>(
        &mut self,
        completion: Completion,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let done = self.operations.take(completion.tag);
        let result = completion.result;
        match done.owner {
            Owner::Layer(word) => {
                if let Err(error) = result
                    && (!done.is_read || error == IoError::Lost)
                {
                    self.member_failed(done, error, map, ctx);
                }
                self.ended.push_back(Ended::of(word, result));
            }
            Owner::Flush(job) => {
                let result = self.flush_ended(done, result, map, ctx);
                self.jobs.end_part(job, result);
            }
            Owner::Task(task) => {
                match result {
                    Err(error) => self.operation_failed(task, done, error, map, ctx),
                    Ok(()) if done.is_read => self.verify(task, done, map, ctx),
                    Ok(()) => {}
                }
                self.tasks[task].outstanding -= 1;
                if self.tasks[task].outstanding == 0 {
                    self.step_ended(task, map, ctx);
                }
            }
        }
        self.settle(map, ctx);
    }

    fn operation_failed<M: RowMap>(
        &mut self,
        task: u32,
        done: Done,
        error: IoError,
        map: &M,
        ctx: &mut Context<'_>,
    ) {
        if done.is_read && error != IoError::Lost && done.rows.blocks.0 > 1 {
            return self.read_in_halves(task, done, map, ctx);
        }
        let entry = &mut self.tasks[task];
        entry.error.get_or_insert(error);
        if done.is_read {
            entry.bad.add(done.column, done.rows);
        }
        if !done.is_read || error == IoError::Lost {
            self.member_failed(done, error, map, ctx);
        }
        if !done.is_read && self.stands(done) {
            let entry = &mut self.tasks[task];
            entry.unwritten = entry.unwritten.or(Columns::of(done.column));
        }
    }

    /// True when the member of an operation is there still, and no other in its place.
    fn stands(&self, done: Done) -> bool {
        self.members.is_present(done.column) && self.members.port(done.column) == done.port
    }

    /// All operations of a step have ended.
    fn step_ended<M: RowMap>(&mut self, task: u32, map: &mut M, ctx: &mut Context<'_>) {
        let entry = &self.tasks[task];
        match (entry.work, entry.step) {
            (Work::Read { from_others: false, .. }, _) => match entry.error {
                None => self.end_task(task, map, ctx),
                Some(_) => self.read_others(task, map, ctx),
            },
            // There may be another way, now that one is known to be closed.
            (Work::Scrub { .. }, Step::Reading) => self.reading_ended(task, map, ctx),
            (_, Step::Reading) if entry.error.is_some() => self.begin_reading(task, map, ctx),
            (_, Step::Reading) => self.reading_ended(task, map, ctx),
            (_, Step::Writing) => {
                self.writing_ended(task, map, ctx);
                self.end_task(task, map, ctx);
            }
            (_, Step::Emptying) => {
                let entry = &mut self.tasks[task];
                entry.failure = entry.failure.or(entry.error);
                match entry.failure {
                    None => self.begin_writing(task, map, ctx),
                    Some(_) => self.end_task(task, map, ctx),
                }
            }
            (_, Step::Waiting | Step::Ready | Step::Noting) => {
                unreachable!("nothing was in flight")
            }
        }
    }

    /// What was written is held from now on. A write that has failed is in the parity, or in the other
    /// copies, if the array goes on without its member.
    fn writing_ended<M: RowMap>(&mut self, task: u32, map: &mut M, ctx: &mut Context<'_>) {
        if matches!(self.tasks[task].work, Work::Own { .. }) {
            return self.own_written(task, map, ctx);
        }
        let entry = &mut self.tasks[task];
        if let Some(error) = entry.error.take() {
            let is_lost = matches!(entry.work, Work::Rebuild { .. })
                || !entry.unwritten.is_empty()
                || !self.members.have_all(map.redundancy());
            entry.failure = entry.failure.or(is_lost.then_some(error));
        }
        let segments = entry.segments.iter().filter(|it| it.method != Method::Impossible);
        match entry.work {
            Work::Write => {
                for segment in segments {
                    for column in segment.written.iter() {
                        let data = entry.part(entry.new[column], segment.rows);
                        map.wrote(column, segment.rows, data, ctx);
                    }
                }
                if entry.failure.is_some() {
                    map.is_unsure(entry.rows);
                }
            }
            Work::Rebuild { .. } if entry.failure.is_none() => {
                let blocks = segments.map(|segment| segment.rows.blocks.0).sum();
                ctx.count(Counter::RebuiltBlocks, blocks);
            }
            _ => {}
        }
    }

    /// Parity was written for work of the layer's own. Where that has failed, nothing can be believed of it.
    fn own_written<M: RowMap>(&mut self, task: u32, map: &mut M, ctx: &mut Context<'_>) {
        let entry = &mut self.tasks[task];
        entry.error = None;
        let parity = map.parity_of(entry.rows.start.0);
        if entry.unwritten.has(parity) && self.members.is_present(parity) {
            self.members.put_out(parity);
            self.lost_column(parity, map, ctx);
        }
    }

    pub(super) fn end_task<M: RowMap>(&mut self, task: u32, map: &mut M, ctx: &mut Context<'_>) {
        let entry = &mut self.tasks[task];
        let result = entry.failure.map_or(Ok(()), Err);
        if let Work::Read { into, is_own: true, .. } = entry.work {
            if result.is_ok() {
                let job = entry.job.expect("a part of a request");
                let buffer = self.jobs.request(job).buffer;
                for piece in &entry.pieces {
                    let from = into.part(piece.in_rows, piece.blocks);
                    ctx.copy(from, buffer.part(piece.in_request, piece.blocks));
                }
            }
            ctx.release(into);
        }
        let is_found = match entry.work {
            // What is collected is written anew.
            Work::Read { .. } => entry.cause != Cause::Cleaning,
            // The next look goes past what is listed.
            Work::Look { .. } => result.is_err(),
            _ => false,
        };
        if self.repairs && is_found && !entry.bad.is_empty() {
            self.to_repair.push(entry.rows);
        }
        let entry = &mut self.tasks[task];
        entry.release(ctx);
        let Task { job, work, rows, turn: Turn { lane, .. }, in_odd_epoch, has_sums, note, .. } =
            *entry;
        if let Some(number) = note {
            self.noting.write_ended(number, result.is_err());
        }
        if has_sums {
            map.release_sums(rows);
        }
        match result.is_err() && work == Work::Write && map.is_noted(rows) {
            true => self.failed_writes.push_back(task),
            false => self.tasks.remove(task),
        }
        if matches!(work, Work::Own { .. }) && result.is_ok() {
            map.settled(rows);
        }
        if lane.is_some() {
            self.locks.unlock_lane(task);
        }
        if !matches!(work, Work::Read { from_others: false, .. }) {
            self.locks.unlock(task);
        }
        match (job, work) {
            (Some(job), _) => {
                self.epochs.leave(in_odd_epoch);
                self.jobs.end_part(job, result);
            }
            (None, Work::Own { word } | Work::Look { word, .. }) => {
                self.ended.push_back(Ended::of(word, result));
            }
            (None, Work::Scrub { word, found, .. }) => {
                self.ended.push_back(Ended { word, result, found });
            }
            (None, _) => self.chunk_ended(task, rows.end().0, result, ctx),
        }
    }

    /// Gives locked rows to those who have waited for them, and lets a rebuild go on.
    pub(super) fn settle<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) {
        loop {
            while let Some(task) = self.locks.next_granted() {
                self.tasks[task].turn.missing -= 1;
                if self.tasks[task].turn.missing == 0 {
                    self.begin_reading(task, map, ctx);
                }
            }
            if !self.begin_chunk(map, ctx) && !self.locks.has_granted() {
                break;
            }
        }
        self.tell(ctx);
    }

    /// Flushes every member that is there.
    pub fn flush<M: RowMap>(&mut self, job: u32, map: &M, ctx: &mut Context<'_>) {
        let cause = self.jobs.request(job).cause;
        let mut is_one = false;
        for column in 0..self.members.columns() {
            if self.members.is_present(column) && !is_one {
                is_one = ctx.is_planted(PlantedBug::ArrayFlushesOneMember);
                let to = (column, self.members.port(column));
                let operation = (Operation::Flush, cause);
                let none = BufferSlice::EMPTY;
                let owner = Owner::Flush(job);
                let rows = Extent::EMPTY;
                let parts = self.operations.issue(owner, to, operation, rows, none, map, ctx);
                self.jobs.add_parts(job, parts);
            }
        }
    }

    fn flush_ended<M: RowMap>(
        &mut self,
        done: Done,
        result: Result<(), IoError>,
        map: &M,
        ctx: &mut Context<'_>,
    ) -> Result<(), IoError> {
        let column = done.column;
        let result = match self.members.flush_failure(column) {
            Some(error) => Err(error),
            None => result,
        };
        let Err(error) = result else { return Ok(()) };
        self.member_failed(done, error, map, ctx);
        if !self.stands(done) && self.members.have_all(map.redundancy()) {
            return Ok(());
        }
        if error != IoError::Lost {
            self.members.flush_failed(column, error);
        }
        Err(error)
    }

    /// A write or a flush of a member has failed: the array goes on without it, if it can.
    fn member_failed<M: RowMap>(
        &mut self,
        Done { column, port, .. }: Done,
        error: IoError,
        map: &M,
        ctx: &mut Context<'_>,
    ) {
        if self.members.port(column) != port {
            return;
        }
        let is_needed = self.members.is_needed(column, map.redundancy());
        if self.members.is_present(column) && (!is_needed || error == IoError::Lost) {
            self.members.put_out(column);
            self.lost_column(column, map, ctx);
        }
    }

    fn lost_column<M: RowMap>(&mut self, column: usize, map: &M, ctx: &mut Context<'_>) {
        self.has_changed = true;
        if let Some(missed) = &mut self.members.missed
            && !ctx.is_planted(PlantedBug::ArrayUnflushedWriteForgotten)
        {
            self.operations.tell_unflushed(column, missed);
        }
        let member = self.members.port(column).0;
        ctx.notice(match self.members.have_all(map.redundancy()) {
            true => Notice::MemberLost { member },
            false => Notice::SecondLoss { member },
        });
        self.stop_rebuild_without(column, map, ctx);
    }

    /// The node behind a port is lost.
    pub fn lost<M: RowMap>(&mut self, port: Port, map: &mut M, ctx: &mut Context<'_>) {
        if let Loss::Column(column) = self.members.lose(port) {
            self.lost_column(column, map, ctx);
        }
        self.settle(map, ctx);
    }

    /// An operation of the layer's own work on rows of a column; its end comes with the word. Returns how
    /// many ends there will be.
    #[allow(clippy::too_many_arguments)]
    pub fn issue<M: RowMap>(
        &mut self,
        word: u64,
        column: usize,
        (operation, cause): (Operation, Cause),
        rows: Extent,
        buffer: BufferSlice,
        map: &M,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let to = (column, self.members.port(column));
        let owner = Owner::Layer(word);
        self.operations.issue(owner, to, (operation, cause), rows, buffer, map, ctx)
    }

    /// An operation of the layer's own work on blocks of a member that are in no row; its end comes with the word.
    pub(super) fn issue_at(
        &mut self,
        word: u64,
        column: usize,
        operation: (Operation, Cause),
        (extent, buffer): (Extent, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        let to = (column, self.members.port(column));
        self.operations.issue_at(Owner::Layer(word), to, operation, extent, buffer, ctx);
    }

    /// Empties a zone of a column for the layer's own work; its end comes with the word. Returns how many ends
    /// there will be.
    pub fn reset_zone(
        &mut self,
        word: u64,
        column: usize,
        zone: Extent,
        ctx: &mut Context<'_>,
    ) -> u32 {
        self.empty_zone(Owner::Layer(word), column, zone, ctx)
    }

    pub(super) fn empty_zone(
        &mut self,
        owner: Owner,
        column: usize,
        zone: Extent,
        ctx: &mut Context<'_>,
    ) -> u32 {
        if self.members.is_spare(column) {
            return 0;
        }
        let to = (column, self.members.port(column));
        let operation = (Operation::ZoneReset, Cause::Cleaning);
        self.operations.issue_at(owner, to, operation, zone, BufferSlice::EMPTY, ctx);
        1
    }

    /// Answers the requests that have ended, where nothing is kept of them.
    pub fn answer(&mut self, ctx: &mut Context<'_>) {
        if let Some(at) = self.alarm(ctx.now()) {
            ctx.wake_at(at);
        }
        while let Some(ended) = self.jobs.next_ended() {
            ctx.finish(ended.request.id, ended.result);
        }
    }

    /// A member of which an operation takes longer than this is lost.
    pub fn lose_after(&mut self, lost_after: Duration) {
        let ports = self.members.columns() + self.members.spares();
        self.operations.patience = Some(Patience::new(lost_after, ports));
    }

    /// The same of a member that is asked for nothing but its label.
    pub fn bound_labels(&self, ctx: &mut Context<'_>) {
        self.operations.bound_labels(ctx);
    }

    /// Gives up members that take too long.
    pub fn give_up_late(&mut self, ctx: &mut Context<'_>) {
        // It is told of the loss behind this event, and looks for the next one then.
        if let Some(port) = self.operations.late(ctx).filter(|port| !ctx.is_lost(*port)) {
            ctx.fail(port);
        }
    }

    /// When a member that does not answer is given up.
    pub fn late_alarm(&self) -> Option<Instant> {
        self.operations.patience.as_ref()?.alarm()
    }

    /// The rows in which a read has found a wrong block since the last call.
    pub fn take_to_repair(&mut self) -> Vec<Extent> {
        core::mem::take(&mut self.to_repair)
    }

    /// True when something has ended that nobody has taken.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty() || self.jobs.has_ended()
    }

    /// True when nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.jobs.are_over() && self.rebuild.is_none()
    }

    /// The next of the layer's own operations that has ended.
    pub fn next_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// The next part that writes and has come to nothing, at least in part. Its number names no other one before.
    pub fn next_failed_write(&mut self) -> Option<u32> {
        let task = self.failed_writes.pop_front()?;
        self.tasks.remove(task);
        Some(task)
    }

    /// Comes up: nodes that are lost are no members. False when something could not be found any more.
    pub fn open<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) -> bool {
        let ports = self.members.columns() + self.members.spares();
        for port in (0..ports).map(|port| Port(port as u8)) {
            if ctx.is_lost(port) {
                self.lost(port, map, ctx);
            }
        }
        self.members.have_all(map.redundancy())
    }

    /// What becomes of the array without the nodes behind some ports.
    pub fn without(&self, is_lost: &dyn Fn(Port) -> bool, redundancy: Redundancy) -> Without {
        match self.members.may_lose(is_lost, redundancy) {
            true => Without::GoesOn("the other members have what it had"),
            false => Without::Lost,
        }
    }

    /// The alarm of the array has gone off.
    pub fn go_on<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) {
        self.settle(map, ctx);
    }

    fn tell(&mut self, ctx: &mut Context<'_>) {
        let is_whole = self.members.is_whole();
        if core::mem::replace(&mut self.was_whole, is_whole) && is_whole {
            return;
        }
        let rebuilding = usize::from(self.rebuild.is_some());
        ctx.gauge(Gauge::RebuildingMembers, rebuilding as u64);
        ctx.gauge(Gauge::MissingMembers, (self.members.lacking() - rebuilding) as u64);
        let progress = self.rebuild.as_ref().map_or(0, Rebuild::progress);
        ctx.gauge(Gauge::RebuildProgress, progress);
    }
}
