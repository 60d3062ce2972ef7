//! What a durable array notes before it writes, and its checkpoints.
//!
//! A checkpoint is made in a moment in which nothing changes: requests that would change something wait for it,
//! and everything that is under way comes to its end.

use super::Raid4Smr;
use crate::array::jobs::{EndedJob, JobOwner};
use crate::array::keeper::{Life, Token};
use crate::array::plan::Method;
use crate::array::raid4smr::notes::{
    TOKEN_COLLECTION, TOKEN_LOSS, TOKEN_OPENED, TOKEN_SETTLED, TOKEN_TABLES, TOKEN_WHOLE,
};
use crate::array::raid4smr::on_the_way::{Flushing, Logging, Noted, Quiet};
use crate::array::raid4smr::records::{Logged, Said, Written, WrittenBlock};
use crate::array::raid4smr::table_writes::Behind;
use crate::array::raid4smr::word::Word;
use crate::array::scrubbed::Ended;
use crate::array::{Columns, RowMap};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::ledger::{LedgerEvent, When};
use crate::operation::{Cause, Operation, RequestId};
use crate::planted::PlantedBug;
use crate::state::StateWriter;
use crate::units::BlockCount;
use alloc::vec::Vec;

impl Raid4Smr {
    pub(super) fn keeps(&self) -> bool {
        self.rows.noting.is_on
    }

    /// A request that changes something begins, or waits for a checkpoint.
    pub(super) fn change_or_wait(&mut self, job: u32, ctx: &mut Context<'_>) {
        self.gate.held_back.push_back(job);
        while self.take_held_back(ctx) {}
    }

    /// The next request that waits goes on. False when there is none, or it must wait still. The journal may have no
    /// room for all of it at once: then it goes on in two portions.
    fn take_held_back(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(job) = self.gate.held_back.front().copied() else { return false };
        let request = self.rows.jobs.request(job);
        if let Some(error) = self.notes.failure() {
            self.gate.held_back.pop_front();
            self.rows.jobs.fail(job, error);
            self.rows.jobs.end_part(job, Ok(()));
            return true;
        }
        let is_write = matches!(request.operation, Operation::Write { .. });
        let collections = match is_write && self.keeps() && self.can_collect(ctx) {
            true => self.directory.collections_most(request.extent),
            false => 0,
        };
        let Some(room) = self.room.of(&request, collections) else {
            self.gate.held_back.pop_front();
            self.split(job, request.extent.blocks.0);
            return true;
        };
        if self.gate.quiet != Quiet::No || !self.notes.keeper.ledger.reserve(room) {
            return false;
        }
        self.gate.held_back.pop_front();
        self.change(job, room, ctx);
        true
    }

    /// A request that has not begun goes on in two portions, which are the next.
    fn split(&mut self, job: u32, blocks: u64) {
        let word = Word::Portion(job).number();
        let first = blocks.div_ceil(2);
        let halves = [(first, blocks - first), (0, first)];
        for (start, some) in halves {
            let portion = self.rows.jobs.begin_portion(word, job, start, some);
            self.gate.held_back.push_front(portion);
        }
        self.rows.jobs.end_part(job, Ok(()));
    }

    fn change(&mut self, job: u32, room: u64, ctx: &mut Context<'_>) {
        let request = self.rows.jobs.request(job);
        if self.keeps() {
            self.gate.changing += 1;
            self.room.request_begins(job, room);
        }
        match request.operation {
            Operation::Write { .. } => self.write(job, &request, ctx),
            _ => {
                let (first, end) = (request.extent.start.0, request.extent.end().0);
                (first..end).for_each(|block| self.directory.zero(block));
                let (stamp, blocks) = (self.directory.stamp(), end - first);
                self.notes.note(&Said::Zeroed { stamp, first, blocks }, ctx);
            }
        }
        self.rows.jobs.end_part(job, Ok(()));
    }

    /// The host asks for a flush.
    pub(super) fn flush(&mut self, job: u32, ctx: &mut Context<'_>) {
        match self.notes.failure() {
            Some(error) => self.rows.jobs.fail(job, error),
            None => {
                if self.keeps() {
                    self.begin_flush(job);
                }
                self.rows.flush(job, &self.contents, ctx);
            }
        }
        self.rows.jobs.end_part(job, Ok(()));
    }

    /// Has the writes that are ready logged and noted, and lets them begin.
    fn note_writes(&mut self, ctx: &mut Context<'_>) {
        if self.rows.has_changed {
            // What is noted without a member is noted behind its loss.
            self.note_members(ctx);
        }
        while let Some(task) = self.rows.noting.next_waiting() {
            if let Some(error) = self.notes.failure() {
                self.rows.not_noted(task, error, &mut self.contents, ctx);
                continue;
            }
            let rows = self.rows.tasks[task].rows;
            if self.notes.must_settle_first(rows) {
                self.on_the_way.awaiting_settling.push(task);
                continue;
            }
            match self.rows_to_log(task) {
                0 => self.note_write(task, None, ctx),
                to_log => self.log_write(task, to_log, ctx),
            }
        }
        let is_awaited = !self.on_the_way.awaiting_settling.is_empty()
            || !self.on_the_way.awaiting_record.is_empty();
        if is_awaited && !self.on_the_way.is_settling && self.notes.has_to_settle() {
            self.on_the_way.is_settling = true;
            self.flush_members(Word::Settle, ctx);
        }
    }

    /// The rows of a write, a bit for each, that must be in the log before they change. With all members there a row
    /// in which nothing stood and of which every home is written need not be: it has all or nothing.
    fn rows_to_log(&self, task: u32) -> u64 {
        let (entry, parity) = (&self.rows.tasks[task], self.contents.parity());
        if !self.rows.members.is_present(parity) {
            return 0;
        }
        let (is_whole, homes) =
            (self.rows.members.is_whole(), Columns::first(self.contents.data()));
        let mut rows = 0;
        for segment in &entry.segments {
            if matches!(segment.method, Method::Impossible | Method::None) {
                continue;
            }
            for row in segment.rows.start.0..segment.rows.end().0 {
                let at = row - entry.rows.start.0;
                let is_fresh = is_whole
                    && entry.written[at as usize] == homes
                    && self.contents.held(row).is_empty();
                rows |= u64::from(!is_fresh) << at;
            }
        }
        rows
    }

    /// Writes to the log what some rows are about to have, or waits until there is room.
    fn log_write(&mut self, task: u32, to_log: u64, ctx: &mut Context<'_>) {
        let blocks = self.blocks_of(task);
        let is_logged = |row: u64| to_log >> row & 1 == 1;
        let data = blocks.iter().filter(|(_, row)| is_logged(*row));
        let count = data.clone().count() as u64 + u64::from(to_log.count_ones());
        let Some(at) = self.notes.log.take(count) else {
            return self.on_the_way.awaiting_settling.push(task);
        };
        let entry = &self.rows.tasks[task];
        let buffer = ctx.allocate(BlockCount(count));
        let parity = self.contents.parity();
        let parity = (0..64).filter(|row| is_logged(*row)).map(|row| (parity, row));
        for (to, (column, row)) in (0..).zip(data.copied().chain(parity)) {
            ctx.copy(entry.new[column].part(row, 1), buffer.part(to, 1));
        }
        let extent = Extent::new(at, count);
        let port = self.rows.members.port(self.contents.parity());
        let logging = Logging { port, at, rows: to_log, buffer };
        self.on_the_way.logging.insert(u64::from(task), logging);
        let operation = (Operation::WRITE, Cause::Parity);
        let word = Word::Log(task).number();
        self.rows.issue_at(word, self.contents.parity(), operation, (extent, buffer), ctx);
    }

    /// A write is in the log, or cannot be. Where the parity disk is out, or another one has its place, it begins anew.
    fn logged(&mut self, task: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Some(logging) = self.on_the_way.logging.remove(&u64::from(task)) else { return };
        let Logging { port, at, rows, buffer } = logging;
        ctx.release(buffer);
        let parity = self.contents.parity();
        let is_there =
            self.rows.members.is_present(parity) && self.rows.members.port(parity) == port;
        let failed = result.err().filter(|_| is_there);
        if let Some(error) = self.notes.failure().or(failed) {
            self.notes.log.give_back(at);
            return self.rows.not_noted(task, error, &mut self.contents, ctx);
        }
        if !is_there {
            self.notes.log.give_back(at);
            return self.rows.noting.wait(task);
        }
        self.note_write(task, Some((at, rows)), ctx);
    }

    /// Notes a write, and lets it begin.
    fn note_write(&mut self, task: u32, logged: Option<(u64, u64)>, ctx: &mut Context<'_>) {
        let number = self.notes.begin_write();
        let written = self.written_by(task, number, logged, ctx);
        if let Some((at, _)) = logged {
            self.notes.log.number(at, number);
        }
        if self.rows.members.is_present(self.contents.parity()) {
            let rows = self.rows.tasks[task].rows;
            self.notes.left_out_of_log(number, rows, logged.map_or(0, |(_, rows)| rows));
        }
        self.notes.note(&Said::Write(written), ctx);
        let must_wait = self.changes_what_stands(task)
            && !ctx.is_planted(PlantedBug::ArrayRowChangedUnrecorded);
        if must_wait && self.notes.when_durable(number, ctx) == When::Later {
            let log_on = logged.map(|_| self.rows.members.port(self.contents.parity()));
            self.on_the_way.awaiting_note.insert(number, Noted { task, log_on });
        } else {
            self.rows.noted(task, number, &mut self.contents, ctx);
        }
    }

    /// The column of each block of a write, and its row from the first.
    fn blocks_of(&self, task: u32) -> Vec<(usize, u64)> {
        let homes = self.contents.data() as u64;
        let changes = &self.changes[task as usize];
        let first_row = changes.first().map_or(0, |first| first.place / homes);
        let block = |(at, change): (usize, &super::Change)| match change.slot {
            Some(_) => (self.contents.data(), at as u64),
            None => (self.directory.home_of(change.place), change.place / homes - first_row),
        };
        changes.iter().enumerate().map(block).collect()
    }

    /// What a write is about to put where.
    fn written_by(
        &mut self,
        task: u32,
        number: u64,
        logged: Option<(u64, u64)>,
        ctx: &mut Context<'_>,
    ) -> Written {
        let blocks = self.blocks_of(task);
        let entry = &self.rows.tasks[task];
        let changes = &self.changes[task as usize];
        let mut sums: Vec<Vec<u32>> = Vec::new();
        for buffer in &entry.new {
            let mut of_column = Vec::new();
            if buffer.blocks > 0 {
                ctx.checksum(*buffer, &mut of_column);
            }
            sums.push(of_column);
        }
        let block = |((column, row), change): (&(usize, u64), &super::Change)| WrittenBlock {
            block: change.block,
            stamp: change.stamp,
            place: change.place,
            slot: change.slot,
            sum: sums[*column][*row as usize],
        };
        let logged = logged.map(|(at, rows)| {
            let of_parity = sums[self.contents.parity()].iter().enumerate();
            let is_logged = |(row, _): &(usize, &u32)| rows >> row & 1 == 1;
            let parity_sums = of_parity.filter(is_logged).map(|(_, sum)| *sum).collect();
            Logged { at, first_row: entry.rows.start.0, rows, parity_sums }
        });
        Written { number, logged, blocks: blocks.iter().zip(changes).map(block).collect() }
    }

    /// True when a write changes a row in which something else stands that its parity covers. After a crash it
    /// must be known which rows these are.
    fn changes_what_stands(&self, task: u32) -> bool {
        let entry = &self.rows.tasks[task];
        let rows = entry.rows.start.0..entry.rows.end().0;
        rows.zip(&entry.written)
            .any(|(row, written)| !written.is_empty() && !self.contents.held(row).is_empty())
    }

    /// An operation of the layer's own has ended.
    pub(super) fn own_ended(&mut self, ended: Ended, ctx: &mut Context<'_>) {
        let result = ended.result;
        match Word::of(ended.word) {
            Word::Recovery(at) => {
                if let Some(after) = &mut self.after_crash {
                    after.ended(at as usize, result, ctx);
                }
            }
            Word::Forced(number) => {
                let request = self.on_the_way.forced.take(number);
                self.notes.answer(request, result, true, ctx);
            }
            Word::Log(task) => self.logged(task, result, ctx),
            Word::Quiet => self.flushed_for_checkpoint(result, ctx),
            Word::Settle => self.settled(result, ctx),
            Word::Progress => self.progress_flushed(result, ctx),
            Word::Whole => self.whole_flushed(result, ctx),
            Word::Collection(number) => self.collector.ended(number, result),
            Word::TableWritten(table) => self.table_written(table, result),
            Word::Opening => self.tables_flushed(result, ctx),
            Word::Scrub => self.repairs.scrubs.compared(ended, ctx),
            Word::Repair => self.repairs.scrubs.repaired(),
            Word::Scrubbed => self.scrubs_flushed(result, ctx),
            Word::Portion(_) | Word::TableRead(_) => unreachable!("it is a job"),
        }
    }

    fn begin_flush(&mut self, job: u32) {
        let (before, end) = (self.notes.before_now(), self.notes.next());
        self.rows.flush_begins(job);
        self.on_the_way.flushes.push(Flushing { job, before, end });
    }

    /// Answers what a flush has made durable. A write of which that is not recorded yet has to wait: an earlier one
    /// is still on its way.
    fn promise(&mut self, request: RequestId, end: u64, ctx: &mut Context<'_>) {
        match self.notes.failure().is_none() && self.notes.is_unrecorded(end) {
            true => self.on_the_way.awaiting_record.push((request, end)),
            false => self.notes.answer(request, Ok(()), true, ctx),
        }
    }

    /// More writes are recorded as durable: promises that have waited for that are answered.
    fn keep_promises(&mut self, ctx: &mut Context<'_>) {
        for (request, end) in core::mem::take(&mut self.on_the_way.awaiting_record) {
            self.promise(request, end, ctx);
        }
    }

    /// Flushes every member that is there; the end comes with the word.
    pub(super) fn flush_members(&mut self, word: Word, ctx: &mut Context<'_>) {
        let cause = if matches!(word, Word::Forced(_)) { Cause::Host } else { Cause::Metadata };
        let operation = (Operation::Flush, cause);
        let job = self.rows.jobs.begin_own(word.number(), operation, BufferSlice::EMPTY);
        self.begin_flush(job);
        self.rows.flush(job, &self.contents, ctx);
        self.rows.jobs.end_part(job, Ok(()));
    }

    /// Everything that an event leads to, beside rows and collections.
    pub(super) fn go_on(&mut self, ctx: &mut Context<'_>) {
        let room = self.room.keep_collections(self.collector.len());
        self.give_back(room);
        loop {
            self.note_writes(ctx);
            self.recover_on(ctx);
            self.record_rebuild(ctx);
            while let Some(ended) = self.rows.noting.next_ended() {
                self.notes.write_ended(ended.number, ended.has_failed, ctx);
            }
            if let Some(ended) = self.rows.jobs.next_ended() {
                self.job_ended(ended, ctx);
            } else if let Some(event) = self.notes.keeper.ledger.next_event() {
                self.handle(event, ctx);
            } else if !self.tables_on(ctx)
                && !self.make_quiet(ctx)
                && !self.take_held_back(ctx)
                && !self.repair_on(ctx)
            {
                break;
            }
        }
        self.notes.keeper.commit(ctx);
        self.rows.give_up_late(ctx);
        let rows = [self.rows.alarm(ctx.now()), self.rows.late_alarm()];
        let alarms = [rows[0], rows[1], self.notes.keeper.alarm(), self.repairs.scrubs.alarm()];
        // What is due already waits for something else than time.
        match alarms.into_iter().flatten().filter(|at| *at > ctx.now()).min() {
            Some(at) => ctx.wake_at(at),
            None if self.keeps() => ctx.cancel_wake(),
            None => {}
        }
        if self.rows.has_ended() {
            self.settle(ctx);
        }
    }

    /// A job has ended.
    fn job_ended(&mut self, ended: EndedJob, ctx: &mut Context<'_>) {
        let EndedJob { owner, number, request, mut result } = ended;
        let at = self.on_the_way.flushes.iter().position(|flush| flush.job == number);
        let flushed = at.map(|at| self.on_the_way.flushes.swap_remove(at));
        if flushed.is_some() {
            self.rows.flush_counts(number, result.is_ok());
        }
        if let (Some(Flushing { before, .. }), Ok(())) = (flushed, result) {
            self.notes.settle(before, ctx);
            self.keep_promises(ctx);
        }
        let end = flushed.map_or(0, |flush| flush.end);
        if self.notes.keeper.life == Life::Lost && request.operation != Operation::Read {
            // The member that had everything knows nothing of it.
            result = result.and(Err(IoError::Lost));
        }
        match owner {
            JobOwner::Above => {}
            JobOwner::Layer(word) => match Word::of(word) {
                Word::Portion(whole) => {
                    self.change_ended(number);
                    return self.rows.jobs.end_part(whole, result);
                }
                Word::Forced(forced) if result.is_ok() => {
                    let request = self.on_the_way.forced.take(forced);
                    return self.promise(request, end, ctx);
                }
                Word::TableRead(table) => {
                    return self.table_read(table, request.buffer, result, ctx);
                }
                Word::Collection(number) => {
                    self.collector.ended(number, result);
                    let (collector, mut around) = self.around(ctx);
                    return collector.go_on(&mut around);
                }
                _ => return self.own_ended(Ended::of(word, result), ctx),
            },
        }
        let is_promise = match request.operation {
            Operation::Flush if result.is_ok() => return self.promise(request.id, end, ctx),
            Operation::Flush => true,
            Operation::Read => false,
            operation => {
                self.change_ended(number);
                if self.keeps() && operation.is_durable() && result.is_ok() {
                    return self.flush_behind(request.id, ctx);
                }
                false
            }
        };
        self.notes.answer(request.id, result, is_promise, ctx);
    }

    /// Writes were made durable for those that wait. Where that has failed nothing can be promised any more.
    fn settled(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.on_the_way.is_settling = false;
        if let Err(error) = result {
            self.notes.keeper.ledger.fail(error);
        }
        for task in core::mem::take(&mut self.on_the_way.awaiting_settling) {
            self.rows.noting.wait(task);
        }
        self.note_writes(ctx);
    }

    /// A request that has changed something has ended, or a portion of one. The room of the collections that it was
    /// the cause of is kept until these have ended too.
    fn change_ended(&mut self, job: u32) {
        if let Some(room) = self.room.request_ended(job) {
            self.gate.changing -= 1;
            self.give_back(room);
        }
    }

    /// Gives room of the journal back. There is none to give when nothing can be noted any more.
    fn give_back(&mut self, room: u64) {
        if self.notes.failure().is_none() {
            self.notes.keeper.ledger.release_reserved(room);
        }
    }

    /// Has band rows collected that became due while nothing could be collected, one after the other where the
    /// journal must have room for it.
    pub(super) fn collect_due(&mut self, ctx: &Context<'_>) {
        while self.may_be_due && self.can_collect(ctx) && self.notes.keeper.life == Life::Up {
            if self.keeps() {
                let ledger = &mut self.notes.keeper.ledger;
                let may_begin = self.collector.is_idle() && self.gate.quiet == Quiet::No;
                if !may_begin || !ledger.reserve(self.room.of_collection()) {
                    return;
                }
                self.room.add_collection();
            }
            self.may_be_due = self.directory.collect_next_due();
            let due: Vec<_> = self.directory.take_decisions().collect();
            due.into_iter().for_each(|decision| self.collector.add(decision, ctx));
        }
    }

    /// A request that has changed something is answered when that is durable.
    fn flush_behind(&mut self, request: RequestId, ctx: &mut Context<'_>) {
        let number = self.on_the_way.forced.add(request);
        self.flush_members(Word::Forced(number), ctx);
    }

    /// Takes a step towards a checkpoint. False when there is none to take.
    fn make_quiet(&mut self, ctx: &mut Context<'_>) -> bool {
        let has_to_admit = self.has_to_admit(ctx);
        let keeper = &self.notes.keeper;
        match self.gate.quiet {
            Quiet::No => {
                let goes_down = keeper.life == Life::Draining;
                let is_wanted = goes_down || has_to_admit || keeper.ledger.wants_checkpoint();
                let cannot = keeper.ledger.failure().is_some() || keeper.ledger.is_checkpointing();
                if !self.keeps() || !is_wanted || cannot {
                    return false;
                }
                self.gate.quiet = Quiet::Wanted;
                true
            }
            Quiet::Wanted if self.gate.changing > 0 || !self.collector.is_idle() => false,
            // What was rebuilt counts with the last flush.
            Quiet::Wanted
                if self.notes.keeper.life == Life::Draining
                    && !(self.rows.is_idle() && self.have_scrubs_ended()) =>
            {
                false
            }
            Quiet::Wanted => {
                self.gate.quiet = Quiet::Tables;
                if self.notes.keeper.life == Life::Draining {
                    self.rebuilds.begin_to_close(&self.rows);
                }
                let changed = self.contents.sums.as_ref().map(|sums| sums.changed(None));
                self.table_writes.begin(Behind::Checkpoint, changed.unwrap_or_default());
                true
            }
            Quiet::Tables | Quiet::Flushing => false,
        }
    }

    /// Everything that was written is durable on the members, and nothing is under way.
    fn flushed_for_checkpoint(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.gate.quiet = Quiet::No;
        let goes_down = self.notes.keeper.life == Life::Draining;
        if let Err(error) = result {
            self.notes.keeper.ledger.fail(error);
        } else if self.notes.failure().is_none() {
            self.notes.settle(self.notes.next(), ctx);
            self.directory.free_aside();
            if goes_down {
                self.rebuilds.flushed_to_close(result, &mut self.notes.keeper, ctx);
            }
            let map = self.checkpoint_map();
            match goes_down {
                true => self.notes.keeper.ledger.close(map, ctx),
                false if self.has_to_admit(ctx) => self.admit(map, ctx),
                false => self.notes.keeper.ledger.checkpoint(map, ctx),
            }
        }
        if goes_down {
            self.notes.keeper.life = Life::Closing;
        }
    }

    /// What a checkpoint says.
    pub(super) fn checkpoint_map(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.notes.keeper.put_map(&mut bytes);
        let mut words = StateWriter::default();
        words.put_u64(self.notes.next());
        self.directory.put(&mut words);
        self.contents.put(&mut words);
        if let Some(missed) = &self.rows.members.missed {
            missed.put(&mut words);
        }
        bytes.extend(words.into_bytes());
        bytes
    }

    fn handle(&mut self, event: LedgerEvent<Token>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Written => {
                while let Some(token) = self.notes.keeper.ledger.next_written() {
                    self.token_came(token, ctx);
                }
            }
            LedgerEvent::Flushed { token, .. } => self.token_came(token, ctx),
            LedgerEvent::CopyOut(port) => self.copy_out(port, ctx),
            LedgerEvent::CopyAdmitted(port) => self.copy_admitted(port, ctx),
            LedgerEvent::Drain => {
                self.notes.keeper.life = Life::Draining;
                let words = "the device goes down; it goes on at the next start";
                self.rows.rest(words, &mut self.contents, ctx);
                self.refuse_waiting("the device goes down", ctx);
                self.repairs.scrubs.stop("the device goes down; it can be asked for again");
            }
            LedgerEvent::Closed(result) => ctx.closed(result),
            LedgerEvent::Failed { error, .. } => self.failed(error, ctx),
            // Maps are handed over whole.
            LedgerEvent::PieceWanted => {}
            LedgerEvent::PlacesFree | LedgerEvent::Checkpointed => {}
            LedgerEvent::Blank
            | LedgerEvent::Recovered(_)
            | LedgerEvent::Opened
            | LedgerEvent::Refused(_) => self.handle_opening(event, ctx),
        }
    }

    fn token_came(&mut self, token: Token, ctx: &mut Context<'_>) {
        match token {
            Token::Answer(number) => self.notes.keeper.end_answer(number, ctx),
            Token::Replaced(command) => ctx.answer_command(command, Ok(())),
            Token::Layer(TOKEN_COLLECTION) => {
                self.collector.noted(Ok(()));
                let (collector, mut around) = self.around(ctx);
                collector.go_on(&mut around);
            }
            Token::Layer(TOKEN_OPENED) => self.end_opening(ctx),
            Token::Layer(TOKEN_LOSS) => self.notes.loss_noted(ctx),
            Token::Layer(TOKEN_WHOLE) => self.whole_recorded(ctx),
            Token::Layer(TOKEN_SETTLED) => self.settled_recorded(ctx),
            Token::Layer(TOKEN_TABLES) => {
                let Raid4Smr { table_writes, rows, contents, .. } = self;
                table_writes.records_are_durable(rows, contents, ctx);
            }
            Token::Layer(number) => self.write_noted(number, ctx),
        }
    }

    /// That a write comes is durable: it begins, unless its log has gone meanwhile.
    fn write_noted(&mut self, number: u64, ctx: &mut Context<'_>) {
        let Some(Noted { task, log_on }) = self.on_the_way.awaiting_note.remove(&number) else {
            return;
        };
        let parity = self.contents.parity();
        let members = &self.rows.members;
        let is_there = |port| members.is_present(parity) && members.port(parity) == port;
        if log_on.is_none_or(is_there) {
            return self.rows.noted(task, number, &mut self.contents, ctx);
        }
        self.on_the_way.awaiting_note.insert(number, Noted { task, log_on: None });
        self.note_members(ctx);
        if self.notes.failure().is_none() && self.notes.when_durable(number, ctx) == When::Now {
            self.write_noted(number, ctx);
        }
    }

    /// That writes are durable is recorded: entries of the log are free.
    fn settled_recorded(&mut self, ctx: &mut Context<'_>) {
        self.notes.settled_recorded();
        for task in core::mem::take(&mut self.on_the_way.awaiting_settling) {
            self.rows.noting.wait(task);
        }
        self.note_writes(ctx);
    }

    /// Nothing can be noted any more.
    fn failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        self.notes.fail(error, ctx);
        self.table_writes.fail(error, &mut self.contents, ctx);
        self.rebuilds.give_up();
        self.refuse_waiting("nothing can be recorded any more", ctx);
        self.repairs.scrubs.stop("nothing can be recorded any more");
        self.repairs.ended_scrubs.drain(..).for_each(|ended| ended.tell(Err(error), ctx));
        self.rows.rest("nothing can be recorded any more", &mut self.contents, ctx);
        let waiting = self.on_the_way.awaiting_note.drain();
        let mut waiting: Vec<(u64, u32)> = waiting.map(|(number, it)| (number, it.task)).collect();
        waiting.sort_unstable();
        for (_, task) in waiting {
            self.rows.not_noted(task, error, &mut self.contents, ctx);
        }
        for task in core::mem::take(&mut self.on_the_way.awaiting_settling) {
            self.rows.not_noted(task, error, &mut self.contents, ctx);
        }
        for (request, _) in core::mem::take(&mut self.on_the_way.awaiting_record) {
            ctx.finish(request, Err(error));
        }
        if self.collector.waits_for_notes() {
            self.collector.noted(Err(error));
        }
    }
}
