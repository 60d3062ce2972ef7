//! Scrubs of an array of copies, and blocks that reads have found to be wrong.

use super::Raid1;
use crate::array::pace::Pace;
use crate::array::raid1::scrub::Scrub;
use crate::array::raid1::word::Word;
use crate::array::rows::Ended;
use crate::array::scrubbed::Scrubbed;
use crate::array::status::WorkStatus;
use crate::array::{CHUNK_ROWS, Redundancy, RowMap};
use crate::command::{CommandError, CommandId, Rate};
use crate::extent::Extent;
use crate::layer::Context;
use crate::notice::Notice;
use crate::units::{BLOCK_BYTES, Duration, Instant};
use alloc::vec::Vec;

impl Raid1 {
    /// A command asks for a scrub, or for a faster one.
    pub(super) fn ask_scrub(&mut self, id: CommandId, rate: Option<Rate>, ctx: &mut Context<'_>) {
        if let Some(scrub) = &mut self.scrub {
            scrub.commands.push(id);
            (scrub.rate, scrub.not_before) = (rate, ctx.now());
            scrub.pace = Pace::new(ctx.now(), scrub.next);
            return;
        }
        if ctx.is_read_only() {
            let words = "the array is only read; accepted: one that may be written";
            return ctx.answer_command(id, Err(CommandError::NotNow(words.into())));
        }
        self.scrub = Some(Scrub {
            commands: Vec::from([id]),
            rate,
            next: 0,
            is_comparing: false,
            not_before: ctx.now(),
            found: Scrubbed::default(),
            stopped: None,
            pace: Pace::new(ctx.now(), 0),
        });
    }

    /// Begins with the next rows of a scrub when it is time.
    pub(super) fn scrub_on(&mut self, ctx: &mut Context<'_>) {
        let rows = self.map.rows_of(0);
        let Some(scrub) = &mut self.scrub else { return };
        if scrub.is_comparing {
            return;
        }
        if scrub.stopped.is_some() || scrub.next == rows {
            return self.end_scrub(ctx);
        }
        if scrub.not_before > ctx.now() {
            return;
        }
        let tables = self.map.row_of(0);
        // Tables are compared by themselves.
        let end = if scrub.next < tables { tables } else { rows };
        let blocks = CHUNK_ROWS.min(end - scrub.next);
        let chunk = Extent::new(scrub.next, blocks);
        if let Some(rate) = scrub.rate {
            let ns = u128::from(blocks * BLOCK_BYTES) * 1_000_000_000;
            scrub.not_before =
                ctx.now() + Duration((ns / u128::from(rate.bytes_per_s.max(1))) as u64);
        }
        scrub.is_comparing = true;
        scrub.next += blocks;
        self.rows.start_scrub(Word::Scrub.number(), chunk, false, &mut self.map, ctx);
    }

    /// Rows of a scrub were compared.
    pub(super) fn scrubbed(&mut self, ended: Ended, ctx: &mut Context<'_>) {
        let rows = self.map.rows_of(0);
        let Some(scrub) = &mut self.scrub else { return };
        scrub.is_comparing = false;
        scrub.found.add(ended.found);
        scrub.pace.note(ctx.now(), scrub.next);
        if ended.result.is_err() {
            scrub.stopped.get_or_insert("a block could not be written");
        }
        for id in &scrub.commands {
            ctx.tell_progress(*id, scrub.next, rows);
        }
    }

    /// A scrub does not go on.
    pub(super) fn stop_scrub(&mut self, why: &'static str) {
        if let Some(scrub) = &mut self.scrub {
            scrub.stopped.get_or_insert(why);
        }
    }

    fn end_scrub(&mut self, ctx: &mut Context<'_>) {
        let Some(scrub) = self.scrub.take() else { return };
        if scrub.stopped.is_none() {
            let Scrubbed { wrong, repaired, unreadable } = scrub.found;
            ctx.notice(Notice::ScrubEnded { wrong, repaired, unreadable });
        }
        let result = match scrub.stopped {
            None => Ok(()),
            Some(why) => Err(CommandError::Failed(alloc::format!("the scrub has stopped: {why}"))),
        };
        for id in scrub.commands {
            ctx.answer_command(id, result.clone());
        }
    }

    /// How far a scrub has come.
    pub(super) fn scrub_status(&self, now: Instant) -> Option<WorkStatus> {
        let scrub = self.scrub.as_ref()?;
        let (done, total) = (scrub.next, self.map.rows_of(0));
        Some(WorkStatus { done, total, blocks_per_s: scrub.pace.per_s(now, done) })
    }

    /// When the next rows of a scrub are due.
    pub(super) fn scrub_alarm(&self) -> Option<Instant> {
        let scrub = self.scrub.as_ref().filter(|scrub| !scrub.is_comparing)?;
        Some(scrub.not_before)
    }

    /// Rows of which a read has found a wrong block are compared, and made right.
    pub(super) fn repair(&mut self, ctx: &mut Context<'_>) {
        let to_repair = self.rows.take_to_repair();
        if ctx.is_read_only() || !self.rows.members.have_all(Redundancy::Copies) {
            return;
        }
        for rows in to_repair {
            self.repairs += 1;
            self.rows.start_scrub(Word::Repair.number(), rows, false, &mut self.map, ctx);
        }
    }
}
