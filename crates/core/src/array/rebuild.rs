//! A member gets its rows again, found from the others.

use super::operations::Owner;
use super::pace::Pace;
use super::status::WorkStatus;
use super::task::{Step, Work};
use super::{RowMap, Rows};
use crate::command::{CommandError, CommandId, Rate};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::notice::Notice;
use crate::operation::Cause;
use crate::planted::PlantedBug;
use crate::units::{BLOCK_BYTES, Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Rows that are rebuilt at once (4 MiB of a member).
pub const CHUNK_ROWS: u64 = 1024;

/// So many of them are under way at once.
const CHUNKS_MAX: usize = 2;

/// A rebuild under way.
#[derive(Debug)]
pub struct Rebuild {
    column: usize,
    /// Rows before it are done.
    next: u64,
    /// The work on the rows that are being done, in their order: what comes next is read while the first is
    /// written.
    under_way: VecDeque<u32>,
    /// Rows of the member.
    rows: u64,
    /// The end of those that it must have, as far as was known at first.
    rows_held: u64,
    /// Who has asked for it; nobody where a spare has stepped in.
    commands: Vec<CommandId>,
    rate: Option<Rate>,
    /// The next rows begin no earlier.
    not_before: Instant,
    /// Why it does not go on.
    stopped: Option<&'static str>,
    /// That all rows are done must become durable first, and has.
    is_confirmed: bool,
    /// It has only been interrupted: what it has written counts.
    keeps_rows: bool,
    /// Rows that the member has and is to have, of those that it is given.
    given: Given,
    pace: Pace,
}

/// How much of what a member lacks it has been given.
#[derive(Clone, Copy, Debug)]
struct Given {
    done: u64,
    total: u64,
}

impl Rebuild {
    /// The first row that is not done.
    pub fn next_row(&self) -> u64 {
        self.next
    }

    /// True of the column that is rebuilt.
    pub fn is_of(&self, column: usize) -> bool {
        self.column == column
    }

    /// How far it has come. Of a member that has come back only what it has missed is counted.
    pub fn status(&self, now: Instant) -> WorkStatus {
        let Given { done, total } = self.given;
        WorkStatus { done, total, blocks_per_s: self.pace.per_s(now, done) }
    }

    /// How much of it is done, in millionths.
    pub fn progress(&self) -> u64 {
        (u128::from(self.next.min(self.rows_held)) * 1_000_000 / u128::from(self.rows_held.max(1)))
            as u64
    }
}

impl Rows {
    /// A command asks for the blank member to be rebuilt.
    pub fn ask_rebuild<M: RowMap>(
        &mut self,
        id: CommandId,
        rate: Option<Rate>,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        if let Some(rebuild) = self.rebuild.as_mut().filter(|it| it.stopped.is_none()) {
            rebuild.commands.push(id);
            (rebuild.rate, rebuild.not_before) = (rate, ctx.now());
            rebuild.pace = Pace::new(ctx.now(), rebuild.given.done);
            return self.settle(map, ctx);
        }
        let not_now = |words: &str| Err(CommandError::NotNow(words.into()));
        let result = match self.members.blank().or(self.members.missing()) {
            _ if self.rebuild.is_some() => {
                not_now("the last rebuild has stopped and is coming to its end")
            }
            None => Ok(()),
            Some(_) if !self.can_rebuild(map) => not_now(
                "two members are missing: what both are needed for is lost; accepted: an array \
                         that lacks one",
            ),
            Some(column) if !self.members.is_blank(column) => not_now(
                "a member is out and nothing has taken its place; its disk must be replaced first",
            ),
            Some(column) => {
                self.begin_rebuild(column, rate, map, ctx);
                self.rebuild.as_mut().expect("it has begun").commands.push(id);
                return self.settle(map, ctx);
            }
        };
        ctx.answer_command(id, result);
    }

    /// True when all rows of a missing member can be found.
    fn can_rebuild<M: RowMap>(&self, map: &M) -> bool {
        self.members.have_all(map.redundancy())
    }

    fn begin_rebuild<M: RowMap>(
        &mut self,
        column: usize,
        rate: Option<Rate>,
        map: &M,
        ctx: &Context<'_>,
    ) {
        self.members.begin_rebuild(column);
        self.has_changed = true;
        let next = self.members.begun().filter(|(begun, _)| *begun == column);
        let next = next.map_or(0, |(_, next)| next);
        let rows_held = map.end_of_held(column);
        let done = self.members.count_lacking(column, 0..next.min(rows_held));
        let total = self.members.count_lacking(column, 0..rows_held);
        self.rebuild = Some(Rebuild {
            column,
            next,
            under_way: VecDeque::new(),
            rows: map.rows_of(column),
            rows_held,
            commands: Vec::new(),
            rate,
            not_before: ctx.now(),
            stopped: None,
            is_confirmed: !self.keeps_contents,
            keeps_rows: false,
            given: Given { done, total },
            pace: Pace::new(ctx.now(), done),
        });
    }

    /// Puts a spare in the place of a member that is out, and begins to rebuild it.
    fn let_spare_step_in<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) {
        let Some(column) = self.members.missing() else { return };
        let member = self.members.port(column).0;
        if self.rebuild.is_none()
            && !self.is_resting
            && !self.members.is_blank(column)
            && self.can_rebuild(map)
            && self.members.step_in(column)
        {
            map.spare_stepped_in(column, self.members.is_spare(column));
            ctx.notice(Notice::SpareTaken { member, port: self.members.port(column).0 });
            self.begin_rebuild(column, None, map, ctx);
        }
    }

    /// A rebuild that has begun before the array went down, or was stopped, goes on.
    fn resume<M: RowMap>(&mut self, map: &M, ctx: &Context<'_>) {
        if self.rebuild.is_none()
            && !self.is_resting
            && let Some((column, _)) = self.members.begun()
            && self.can_rebuild(map)
        {
            self.begin_rebuild(column, None, map, ctx);
        }
    }

    /// The column of which all rows are done, where that must become durable before it counts.
    pub fn to_confirm<M: RowMap>(&self, map: &M) -> Option<usize> {
        let rebuild = self.rebuild.as_ref()?;
        let is_done = rebuild.next >= map.rows_of(rebuild.column)
            && rebuild.under_way.is_empty()
            && rebuild.stopped.is_none()
            && !rebuild.is_confirmed;
        is_done.then_some(rebuild.column)
    }

    /// That all rows of the member are done is durable.
    pub fn confirm<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.is_confirmed = true;
        }
        self.settle(map, ctx);
    }

    /// Stops what is rebuilt where it is; nothing is begun from now on.
    pub fn rest<M: RowMap>(&mut self, why: &'static str, map: &mut M, ctx: &mut Context<'_>) {
        self.is_resting = true;
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.stopped.get_or_insert(why);
            rebuild.keeps_rows = true;
        }
        self.settle(map, ctx);
    }

    /// Lets a rebuild go on. True when more may be to do at once.
    pub(super) fn begin_chunk<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) -> bool {
        self.let_spare_step_in(map, ctx);
        self.resume(map, ctx);
        let Some(rebuild) = &mut self.rebuild else { return false };
        let has_stopped = rebuild.stopped.is_some();
        let mut begun = rebuild.next;
        if let Some(&first) = rebuild.under_way.front()
            && self.tasks[first].step == Step::Ready
        {
            match has_stopped {
                true => self.give_up_chunk(first, map, ctx),
                false => self.write_rebuilt(first, map, ctx),
            }
            return true;
        }
        if let Some(&last) = rebuild.under_way.back() {
            let entry = &self.tasks[last];
            let is_written = matches!(entry.step, Step::Emptying | Step::Writing);
            if has_stopped || !is_written || rebuild.under_way.len() == CHUNKS_MAX {
                return false;
            }
            begun = entry.rows.end().0;
        }
        if has_stopped {
            self.end_rebuild(map, ctx);
            return true;
        }
        let (column, rows) = (rebuild.column, rebuild.rows);
        if begun == rows {
            let is_done = rebuild.under_way.is_empty() && rebuild.is_confirmed;
            if is_done {
                self.members.end_rebuild(column);
                self.end_or_go_on(map, ctx);
            }
            return is_done;
        }
        if rebuild.not_before > ctx.now() {
            return false;
        }
        let lacking = self.members.next_lacking(column, begun);
        let start = lacking.and_then(|row| map.next_held(column, row));
        let start = start.map_or(rows, |row| row.min(rows));
        // What is locked begins where the last rows have ended: a write there may be on its way.
        let end = rows.min(start + self.chunk_rows).min(map.end_of_part(begun));
        // A member that has come back keeps what it has: nothing is written there, and what lies behind it is
        // written later, as tracks that overlap must be.
        let end = end.min(self.members.end_of_lacking(column, start));
        let chunk = Extent::new(begun, end - begun);
        self.start_chunk(column, chunk, map, ctx);
        true
    }

    /// Work of a rebuild on rows of a column.
    fn start_chunk<M: RowMap>(
        &mut self,
        column: usize,
        rows: Extent,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let task = self.new_task(Work::Rebuild { column }, rows);
        self.tasks[task].cause = Cause::Rebuild;
        let rebuild = self.rebuild.as_mut().expect("a rebuild");
        rebuild.under_way.push_back(task);
        if ctx.is_planted(PlantedBug::ArrayRebuildWithoutLock) {
            // Rows that nobody has.
            self.locks.lock(task, Extent::new(1 << 60 | u64::from(task), 1));
            return self.begin_reading(task, map, ctx);
        }
        self.lock_or_wait(task, map, ctx);
    }

    /// Keeps of the rows that are to be rebuilt those that are done at once. The next ones wait as long as these
    /// take at the rate that was asked for.
    pub(super) fn keep_chunk<M: RowMap>(
        &mut self,
        task: u32,
        column: usize,
        map: &M,
        ctx: &Context<'_>,
    ) {
        let entry = &mut self.tasks[task];
        let Some(first) = entry.segments.first().map(|segment| segment.rows.start.0) else {
            return;
        };
        entry.keep_first_rows(self.chunk_rows.min(map.place_of(column, first).1));
        let rebuild = self.rebuild.as_mut().expect("a rebuild");
        if let Some(rate) = rebuild.rate {
            let ns = u128::from(entry.rows.blocks.0 * BLOCK_BYTES) * 1_000_000_000;
            let takes = Duration((ns / u128::from(rate.bytes_per_s.max(1))) as u64);
            rebuild.not_before = ctx.now() + takes;
        }
    }

    /// True when the rows before those of a task are done: it may write.
    pub(super) fn is_first_chunk(&self, task: u32) -> bool {
        self.rebuild.as_ref().is_some_and(|rebuild| rebuild.under_way.front() == Some(&task))
    }

    /// What was found of a column is written to it, as far as there is anything.
    pub(super) fn write_rebuilt<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let entry = &self.tasks[task];
        let Work::Rebuild { column } = entry.work else { unreachable!("rows of a rebuild") };
        if entry.segments.is_empty() {
            return self.end_task(task, map, ctx);
        }
        let zone = map.zone_from(column, entry.rows.start.0);
        let owner = Owner::Task(task);
        let emptied = zone.map_or(0, |zone| self.empty_zone(owner, column, zone, ctx));
        self.tasks[task].step = Step::Emptying;
        self.tasks[task].outstanding += emptied;
        if emptied == 0 {
            self.begin_writing(task, map, ctx);
        }
    }

    /// Writes what was rebuilt in one piece, zeroes between: tracks that overlap are written in their order. The
    /// member has nothing of all this.
    pub(super) fn write_chunk<M: RowMap>(
        &mut self,
        task: u32,
        column: usize,
        map: &M,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.tasks[task];
        let first = entry.segments.first().expect("rows to rebuild").rows.start;
        let last = entry.segments.last().expect("rows to rebuild").rows.end();
        let rows = Extent::between(first, last);
        let operation = (entry.write, Cause::Rebuild);
        let to = (column, self.members.port(column));
        let owner = Owner::Task(task);
        let buffer = entry.part(entry.new[column], rows);
        entry.outstanding += self.operations.issue(owner, to, operation, rows, buffer, map, ctx);
    }

    /// When the next rows of a rebuild are due.
    pub fn alarm(&self, now: Instant) -> Option<Instant> {
        let rebuild = self.rebuild.as_ref()?;
        let is_paused = rebuild.under_way.len() < CHUNKS_MAX && rebuild.next < rebuild.rows;
        (is_paused && rebuild.not_before > now).then_some(rebuild.not_before)
    }

    /// The column that is rebuilt, and the first row that is not done.
    pub fn rebuilt_to(&self) -> Option<(usize, u64)> {
        self.rebuild.as_ref().map(|rebuild| (rebuild.column, rebuild.next))
    }

    /// Rows that were to be rebuilt are not.
    pub(super) fn give_up_chunk<M: RowMap>(
        &mut self,
        task: u32,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        self.tasks[task].failure = Some(IoError::Lost);
        self.end_task(task, map, ctx);
    }

    /// Rows of a rebuild, up to `end`, are done, or could not be. Nobody else has had them yet.
    pub(super) fn chunk_ended(
        &mut self,
        task: u32,
        end: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let rebuild = self.rebuild.as_mut().expect("rows of a rebuild");
        rebuild.under_way.retain(|other| *other != task);
        if result.is_err() {
            rebuild.stopped.get_or_insert("a block could not be read or written");
        }
        if rebuild.stopped.is_some() {
            return;
        }
        let given = rebuild.next.min(rebuild.rows_held)..end.min(rebuild.rows_held);
        rebuild.given.done += self.members.count_lacking(rebuild.column, given);
        rebuild.pace.note(ctx.now(), rebuild.given.done);
        rebuild.next = end;
        for id in &rebuild.commands {
            ctx.tell_progress(*id, rebuild.next.min(rebuild.rows_held), rebuild.rows_held);
        }
        self.members.rebuilt_to(rebuild.column, rebuild.next);
    }

    /// A member is out: a rebuild of it, or one that needs it, does not go on.
    pub(super) fn stop_rebuild_without<M: RowMap>(
        &mut self,
        column: usize,
        map: &M,
        ctx: &mut Context<'_>,
    ) {
        let can_go_on = self.can_rebuild(map);
        let Some(rebuild) = self.rebuild.as_mut().filter(|it| it.column == column || !can_go_on)
        else {
            return;
        };
        rebuild.stopped.get_or_insert(match rebuild.column == column {
            true => "the member is lost",
            false => "another member was lost meanwhile",
        });
        if rebuild.under_way.is_empty() {
            self.end_rebuild(map, ctx);
        }
    }

    /// A member has all of its rows. Whoever has asked for that waits for all others with a new disk too.
    fn end_or_go_on<M: RowMap>(&mut self, map: &M, ctx: &mut Context<'_>) {
        let rebuild = self.rebuild.as_mut().expect("a rebuild");
        let next = self.members.blank().filter(|_| !rebuild.commands.is_empty());
        let Some(next) = next else { return self.end_rebuild(map, ctx) };
        let (commands, rate) = (core::mem::take(&mut rebuild.commands), rebuild.rate);
        self.begin_rebuild(next, rate, map, ctx);
        self.rebuild.as_mut().expect("it has begun").commands = commands;
    }

    fn end_rebuild<M: RowMap>(&mut self, map: &M, ctx: &mut Context<'_>) {
        let Some(rebuild) = self.rebuild.take() else { return };
        if !rebuild.keeps_rows {
            let member = self.members.port(rebuild.column).0;
            ctx.notice(Notice::RebuildEnded { member, is_whole: rebuild.stopped.is_none() });
        }
        self.has_changed = true;
        // After a second loss what it has of its rows is worth all the more.
        let has_failed = rebuild.stopped.is_some() && !rebuild.keeps_rows;
        if has_failed && self.members.have_all(map.redundancy()) {
            self.members.give_up_rebuild(rebuild.column);
        }
        let result = match rebuild.stopped {
            None => Ok(()),
            Some(why) => {
                let words = alloc::format!("the rebuild has stopped: {why}");
                Err(CommandError::Failed(words))
            }
        };
        for id in rebuild.commands {
            ctx.answer_command(id, result.clone());
        }
    }

    /// A lost node is there again, blank.
    pub fn replaced<M: RowMap>(
        &mut self,
        port: Port,
        command: CommandId,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        self.members.replaced(port);
        self.has_changed = true;
        ctx.answer_command(command, Ok(()));
        self.settle(map, ctx);
    }
}
