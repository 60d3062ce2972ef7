//! What goes to the log, and what is recorded of it.

use super::blocks::{NONE, Valid, next_such};
use super::codec::{self, Live, RECORD_CLEAN, RECORD_WRITTEN, RECORD_ZEROED, RUN_BYTES};
use super::log::LogWrite;
use super::tasks::Owner;
use super::{MemoryBuffer, TagKind, Token, tag};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::ledger::WrittenData;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of the record of a run of one block, and those of a journal block that records fill at least.
const RECORD_BYTES: u64 = 28;
const FILLED_BYTES: u64 = 3000;
/// Runs in a clean record.
const CLEAN_RUNS_MAX: usize = 200;

impl MemoryBuffer {
    /// The block of a task is to go to the log, if there is one. The task waits for that too.
    pub(super) fn log_task(&mut self, task: u32) {
        if self.log.is_none() || self.parts_to_log(task).is_none() {
            return;
        }
        self.tasks[task].left += 1;
        let log = self.log.as_mut().expect("a log");
        log.waiting.push_back(task);
    }

    /// The next run of parts of a task that must go to the log: what is written, and of a block that
    /// leaves what memory has and is not there yet, because a write below that fails may take away what
    /// was below.
    fn parts_to_log(&self, task: u32) -> Option<Range<u64>> {
        let it = self.tasks[task];
        self.next_to_log(task, it.first)
    }

    fn next_to_log(&self, task: u32, from: u64) -> Option<Range<u64>> {
        let it = self.tasks[task];
        let end = it.first + it.count;
        let log = self.log.as_ref().expect("a log");
        let first = it.block * self.settings.block.0;
        match it.owner {
            Owner::Job(_) => (from < end).then_some(from..end),
            Owner::Batch(_) => next_such(from..end, |part| {
                self.blocks.has(it.entry, Valid::InFact, part) && !log.has(first + part)
            }),
        }
    }

    /// Writes to the log what can be written. True when something was done.
    pub(super) fn write_log(&mut self, ctx: &mut Context<'_>) -> bool {
        let Some(log) = &self.log else {
            return false;
        };
        if log.waiting.is_empty() && !log.has_clean() && log.unflushed() == 0 {
            return false;
        }
        let mut has_moved = self.record_clean(ctx);
        while let Some(task) = self.log.as_ref().and_then(|log| log.waiting.front().copied()) {
            if self.failure().is_none() && !self.send_to_log(task, ctx) {
                break;
            }
            has_moved = true;
            let log = self.log.as_mut().expect("a log");
            log.waiting.pop_front();
            let result = self.failure().map_or(Ok(()), Err);
            self.log_part_done(task, result, ctx);
        }
        self.want_places(ctx);
        has_moved
    }

    /// Has places freed when somebody waits for some, or when much could be.
    fn want_places(&mut self, ctx: &mut Context<'_>) {
        let capacity = u64::from(self.settings.capacity_blocks) * self.settings.block.0;
        let Some(log) = &mut self.log else {
            return;
        };
        let waits = !log.waiting.is_empty();
        if waits && log.has_held() {
            self.ledger.flush_for_itself(ctx);
        }
        let is_much = log.unflushed() >= (capacity / 2).max(1);
        let wanted = (waits || is_much) && log.unflushed() > 0 && !log.is_flush_asked;
        if wanted && self.ledger.is_running() {
            log.is_flush_asked = true;
            // It comes back when it is done: a log has a journaled ledger.
            let _ = self.ledger.answer_when_flushed(self.ports.below, Token::Clean, ctx);
        }
    }

    /// Writes the block of a task to fresh places; false when it has to wait.
    fn send_to_log(&mut self, task: u32, ctx: &mut Context<'_>) -> bool {
        let it = self.tasks[task];
        let mut from = it.first;
        let mut blocks = 0;
        while let Some(run) = self.next_to_log(task, from) {
            blocks += run.end - run.start;
            from = run.end;
        }
        let log = self.log.as_ref().expect("a log");
        if log.free() < blocks {
            let comes = log.has_held() || log.has_clean() || log.unflushed() > 0;
            assert!(
                comes || !log.writes.is_empty() || self.failure().is_some(),
                "the log of a write buffer has run full"
            );
            return false;
        }
        let records = 1 + blocks * RECORD_BYTES / FILLED_BYTES;
        if !self.ledger.reserve(records) {
            return false;
        }
        self.tasks[task].log.1 = records;
        let slot = self.blocks.entry(it.entry).slot;
        let mut from = it.first;
        while let Some(run) = self.next_to_log(task, from) {
            let log = self.log.as_mut().expect("a log");
            let (place, taken) = log.take(run.end - run.start);
            let write = log.writes.add(LogWrite {
                task,
                lba: it.block * self.settings.block.0 + run.start,
                place,
                buffer: slot.part(run.start, taken),
                next: self.tasks[task].log.0,
            });
            let extent = log.extent_of(place, taken);
            self.tasks[task].log.0 = write;
            self.tasks[task].left += 1;
            ctx.issue(Issue {
                port: self.ports.log.expect("a log"),
                operation: Operation::WRITE,
                extent,
                buffer: slot.part(run.start, taken),
                cause: match it.owner {
                    Owner::Job(_) => Cause::Host,
                    Owner::Batch(_) => Cause::Destage,
                },
                tag: tag(TagKind::Log, write),
            });
            from = run.start + taken;
        }
        true
    }

    pub(super) fn log_write_done(
        &mut self,
        write: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let log = self.log.as_ref().expect("a log");
        let task = log.writes[write].task;
        if let Err(error) = result {
            self.fail(error, ctx);
        }
        self.log_part_done(task, result, ctx);
    }

    fn log_part_done(&mut self, task: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match self.tasks[task].owner {
            Owner::Job(_) => self.write_part_done(task, result, ctx),
            Owner::Batch(_) => self.batch_part_logged(task, result, ctx),
        }
    }

    /// All of a task is in the log: that is recorded.
    pub(super) fn record_task(&mut self, task: u32, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let failure = self.failure();
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let (mut next, records) = core::mem::replace(&mut self.tasks[task].log, (NONE, 0));
        while next != NONE {
            let write = log.writes.take(next);
            next = write.next;
            if failure.is_some() {
                continue;
            }
            let blocks = u64::from(write.buffer.blocks);
            let data =
                WrittenData { place: log.extent_of(write.place, blocks), buffer: write.buffer };
            let payload = write.lba.to_le_bytes();
            let durable_before = self.ledger.durable_before();
            let (record, sums) = self.ledger.record_write(RECORD_WRITTEN, &payload, data, ctx);
            for (at, checksum) in sums.iter().enumerate() {
                let live = Live {
                    lba: write.lba + at as u64,
                    place: write.place + at as u32,
                    checksum: *checksum,
                };
                log.written(live, record, durable_before);
            }
        }
        self.ledger.release_reserved(records);
        failure.map_or(Ok(()), Err)
    }

    /// The next run of parts of a block that leaves which are written below: what memory has, and the
    /// log too where there is one. What that has forgotten by now is durable below as it is, and is not
    /// put at risk; what goes down it does not forget before the write is durable.
    pub(super) fn next_to_write(&self, task: u32, from: u64) -> Option<Range<u64>> {
        let it = self.tasks[task];
        let first = it.block * self.settings.block.0;
        let is_safe = |part: u64| self.log.as_ref().is_none_or(|log| log.has(first + part));
        next_such(from..it.first + it.count, |part| {
            self.blocks.has(it.entry, Valid::InFact, part) && is_safe(part)
        })
    }

    /// Parts of a block go down.
    pub(super) fn note_going_down(&mut self, block: u64, parts: Range<u64>) {
        let first = block * self.settings.block.0;
        if let Some(log) = &mut self.log {
            parts.for_each(|part| log.goes_down(first + part));
        }
    }

    /// A block went down, as far as memory had it.
    pub(super) fn note_destaged(&mut self, task: u32) {
        let mut from = 0;
        while let Some(parts) = self.next_to_write(task, from) {
            from = parts.end;
            let first = self.tasks[task].block * self.settings.block.0;
            let flushes = self.ledger.flushes_of(self.ports.below);
            let (Some(log), Some(flushes)) = (&mut self.log, flushes) else {
                return;
            };
            parts.for_each(|part| log.destaged(first + part, flushes.next()));
        }
    }

    /// A flush below is done.
    pub(super) fn flushed_below(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let log = self.log.as_mut().expect("a log");
        log.is_flush_asked = false;
        if let (Ok(()), Some(flushes)) = (result, self.ledger.flushes_of(self.ports.below)) {
            log.flushed_below(|ticket| flushes.is_done(ticket));
        }
        self.record_clean(ctx);
    }

    /// Tells the log what is durable below, as far as there is room. True when it did.
    fn record_clean(&mut self, ctx: &mut Context<'_>) -> bool {
        let is_running = self.ledger.is_running();
        let Some(log) = &mut self.log else {
            return false;
        };
        if ctx.is_planted(PlantedBug::CleanBeforeFlush) {
            log.flushed_below(|_| true);
        }
        let mut has_moved = false;
        while is_running && log.has_clean() && self.ledger.has_spare_room(1) {
            log.clean_runs(CLEAN_RUNS_MAX);
            if log.runs.is_empty() {
                break;
            }
            has_moved = true;
            log.payload.clear();
            for (lba, place, blocks) in &log.runs {
                codec::put_run(&mut log.payload, *lba, *place, *blocks);
            }
            debug_assert_eq!(log.payload.len(), log.runs.len() * RUN_BYTES);
            let record = self.ledger.record(RECORD_CLEAN, &log.payload, ctx);
            let durable_before = self.ledger.durable_before();
            for run in 0..log.runs.len() {
                let (lba, place, blocks) = log.runs[run];
                for at in 0..blocks {
                    let (lba, place) = (lba + u64::from(at), place + at);
                    log.forget(lba, Some(place), record, durable_before);
                }
            }
        }
        has_moved
    }

    /// Tells the log that blocks are zeroes, durably.
    pub(super) fn record_zeroed(
        &mut self,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) -> Option<IoError> {
        let failure = self.failure();
        let log = self.log.as_mut()?;
        if failure.is_some() {
            return failure;
        }
        log.payload.clear();
        log.payload.extend_from_slice(&extent.start.0.to_le_bytes());
        log.payload.extend_from_slice(&extent.blocks.0.to_le_bytes());
        let record = self.ledger.record(RECORD_ZEROED, &log.payload, ctx);
        log.forget_all(extent, record, self.ledger.durable_before());
        None
    }

    /// Records have become durable.
    pub(super) fn free_places(&mut self) {
        if let Some(log) = &mut self.log {
            log.free_places(self.ledger.durable_before());
        }
    }

    /// What the records so far lead to.
    pub(super) fn log_map(&self) -> Vec<u8> {
        self.log.as_ref().map_or(Vec::new(), |log| log.map())
    }

    /// Nothing goes to the log any more: who waits for it finds that out in its turn.
    pub(super) fn give_up_log(&mut self, _error: IoError, _ctx: &mut Context<'_>) {
        if let Some(log) = &mut self.log {
            log.is_flush_asked = true;
        }
    }
}
