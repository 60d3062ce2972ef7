//! Scrubs of an array, and rows that are made right because a read has found them wrong.

use super::pace::Pace;
use super::scrubbed::{Ended, Scrubbed};
use super::status::WorkStatus;
use super::{CHUNK_ROWS, RowMap, Rows};
use crate::command::{CommandError, CommandId, Rate};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::notice::Notice;
use crate::saved::Saved;
use crate::units::{BLOCK_BYTES, Duration, Instant};
use alloc::vec::Vec;

/// A scrub under way.
#[derive(Debug)]
struct Scrub {
    commands: Vec<CommandId>,
    rate: Option<Rate>,
    /// Rows before it are done, of so many.
    next: u64,
    rows: u64,
    is_comparing: bool,
    /// The next rows begin no earlier.
    not_before: Instant,
    found: Scrubbed,
    stopped: Option<&'static str>,
    pace: Pace,
}

/// What a scrub that has compared everything has found, and who has asked for it.
#[derive(Debug)]
pub struct EndedScrub {
    found: Scrubbed,
    stopped: Option<&'static str>,
    commands: Vec<CommandId>,
}

/// The scrub of an array, and its repairs.
#[derive(Debug, Default, Saved)]
pub struct Scrubs {
    #[saved(absent)]
    scrub: Option<Scrub>,
    /// Rows that are being made right because a read has found them wrong.
    repairs: u32,
}

impl Scrubs {
    /// A command asks for a scrub of all rows, or for a faster one.
    pub fn ask<M: RowMap>(
        &mut self,
        id: CommandId,
        rate: Option<Rate>,
        map: &M,
        ctx: &mut Context<'_>,
    ) {
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
            rows: map.rows_of(map.parity_of(0)),
            is_comparing: false,
            not_before: ctx.now(),
            found: Scrubbed::default(),
            stopped: None,
            pace: Pace::new(ctx.now(), 0),
        });
    }

    /// Begins with the next rows of a scrub when it is time. Their end comes with the word. Returns a scrub that is
    /// over, which is told with [`EndedScrub::tell`].
    pub fn go_on<M: RowMap>(
        &mut self,
        word: u64,
        rows: &mut Rows,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) -> Option<EndedScrub> {
        let scrub = self.scrub.as_mut().filter(|scrub| !scrub.is_comparing)?;
        let next = map.next_held(map.parity_of(0), scrub.next).unwrap_or(scrub.rows);
        scrub.next = next.min(scrub.rows);
        if scrub.stopped.is_some() || scrub.next == scrub.rows {
            let Scrub { found, stopped, commands, .. } = self.scrub.take()?;
            return Some(EndedScrub { found, stopped, commands });
        }
        if scrub.not_before > ctx.now() {
            return None;
        }
        let end = scrub.rows.min(map.end_of_part(scrub.next));
        let blocks = CHUNK_ROWS.min(end - scrub.next);
        let chunk = Extent::new(scrub.next, blocks);
        if let Some(rate) = scrub.rate {
            let ns = u128::from(blocks * BLOCK_BYTES) * 1_000_000_000;
            scrub.not_before =
                ctx.now() + Duration((ns / u128::from(rate.bytes_per_s.max(1))) as u64);
        }
        scrub.is_comparing = true;
        scrub.next += blocks;
        rows.start_scrub(word, chunk, false, map, ctx);
        None
    }

    /// Rows of a scrub were compared.
    pub fn compared(&mut self, ended: Ended, ctx: &mut Context<'_>) {
        let Some(scrub) = &mut self.scrub else { return };
        scrub.is_comparing = false;
        scrub.found.add(ended.found);
        scrub.pace.note(ctx.now(), scrub.next);
        if ended.result.is_err() {
            scrub.stopped.get_or_insert("a block could not be written");
        }
        for id in &scrub.commands {
            ctx.tell_progress(*id, scrub.next, scrub.rows);
        }
    }

    /// A scrub does not go on.
    pub fn stop(&mut self, why: &'static str) {
        if let Some(scrub) = &mut self.scrub {
            scrub.stopped.get_or_insert(why);
        }
    }

    /// How far a scrub has come.
    pub fn status(&self, now: Instant) -> Option<WorkStatus> {
        let scrub = self.scrub.as_ref()?;
        let (done, total) = (scrub.next, scrub.rows);
        Some(WorkStatus { done, total, blocks_per_s: scrub.pace.per_s(now, done) })
    }

    /// When the next rows of a scrub are due.
    pub fn alarm(&self) -> Option<Instant> {
        let scrub = self.scrub.as_ref().filter(|scrub| !scrub.is_comparing)?;
        Some(scrub.not_before)
    }

    /// Rows of which a read has found a wrong block are compared, and made right. Each end comes with the word.
    pub fn repair<M: RowMap>(
        &mut self,
        word: u64,
        rows: &mut Rows,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        let to_repair = rows.take_to_repair();
        if ctx.is_read_only() || !rows.members.have_all(map.redundancy()) {
            return;
        }
        for found in to_repair {
            self.repairs += 1;
            rows.start_scrub(word, found, false, map, ctx);
        }
    }

    /// Rows were made right.
    pub fn repaired(&mut self) {
        self.repairs -= 1;
    }

    /// True when nothing is compared or made right.
    pub fn are_over(&self) -> bool {
        self.scrub.is_none() && self.repairs == 0
    }
}

impl EndedScrub {
    /// Tells those who have asked, and what has become of the flush behind it.
    pub fn tell(mut self, flushed: Result<(), IoError>, ctx: &mut Context<'_>) {
        if flushed.is_err() {
            self.stopped.get_or_insert("what it has written could not be made durable");
        }
        if self.stopped.is_none() {
            let Scrubbed { wrong, repaired, to_move, unreadable } = self.found;
            let repaired = repaired + to_move;
            ctx.notice(Notice::ScrubEnded { wrong, repaired, unreadable });
        }
        let result = match self.stopped {
            None => Ok(()),
            Some(why) => Err(CommandError::Failed(alloc::format!("the scrub has stopped: {why}"))),
        };
        for id in self.commands {
            ctx.answer_command(id, result.clone());
        }
    }
}
