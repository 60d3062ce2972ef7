//! A member gets its rows again, found from the others.

use super::{RowMap, Rows};
use crate::command::{CommandError, CommandId, Rate};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::units::{BLOCK_BYTES, Duration, Instant};
use alloc::vec::Vec;

/// Rows that are rebuilt at once (4 MiB of a member).
pub const CHUNK_ROWS: u64 = 1024;

/// A rebuild under way.
#[derive(Debug)]
pub struct Rebuild {
    column: usize,
    /// Rows before it are done.
    next: u64,
    /// The rows that are being done.
    chunk: Option<Extent>,
    /// Rows of the member.
    rows: u64,
    /// Who has asked for it; nobody where a spare has stepped in.
    commands: Vec<CommandId>,
    rate: Option<Rate>,
    /// The next rows begin no earlier.
    not_before: Instant,
    /// Why it does not go on.
    stopped: Option<&'static str>,
}

impl Rebuild {
    /// The first row that is not done.
    pub fn next_row(&self) -> u64 {
        self.next
    }

    /// How much of it is done, in millionths.
    pub fn progress(&self) -> u64 {
        (u128::from(self.next) * 1_000_000 / u128::from(self.rows.max(1))) as u64
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
            rebuild.rate = rate;
            return;
        }
        let not_now = |words: &str| Err(CommandError::NotNow(words.into()));
        let result = match self.members.missing() {
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
        self.rebuild = Some(Rebuild {
            column,
            next: 0,
            chunk: None,
            rows: map.rows_of(column),
            commands: Vec::new(),
            rate,
            not_before: ctx.now(),
            stopped: None,
        });
    }

    /// Puts a spare in the place of a member that is out, and begins to rebuild it.
    fn let_spare_step_in<M: RowMap>(&mut self, map: &M, ctx: &Context<'_>) {
        let Some(column) = self.members.missing() else { return };
        if self.rebuild.is_none()
            && !self.members.is_blank(column)
            && self.can_rebuild(map)
            && self.members.step_in(column)
        {
            self.begin_rebuild(column, None, map, ctx);
        }
    }

    /// Lets a rebuild go on. True when more may be to do at once.
    pub(super) fn begin_chunk<M: RowMap>(&mut self, map: &mut M, ctx: &mut Context<'_>) -> bool {
        self.let_spare_step_in(map, ctx);
        let Some(rebuild) = &mut self.rebuild else { return false };
        if rebuild.chunk.is_some() {
            return false;
        }
        if rebuild.stopped.is_some() {
            self.end_rebuild(ctx);
            return true;
        }
        if rebuild.not_before > ctx.now() {
            ctx.wake_at(rebuild.not_before);
            return false;
        }
        let (column, rows) = (rebuild.column, rebuild.rows);
        if rebuild.next == rows {
            self.members.end_rebuild(column);
            self.end_rebuild(ctx);
            return true;
        }
        let start = map.next_held(column, rebuild.next).map_or(rows, |row| row.min(rows));
        // What is locked begins where the last rows have ended: a write there may be on its way.
        let end = rows.min(start + CHUNK_ROWS);
        let chunk = Extent::new(rebuild.next, end - rebuild.next);
        rebuild.chunk = Some(chunk);
        if let Some(rate) = rebuild.rate {
            let ns = u128::from((end - start) * BLOCK_BYTES) * 1_000_000_000;
            rebuild.not_before =
                ctx.now() + Duration((ns / u128::from(rate.bytes_per_s.max(1))) as u64);
        }
        self.start_chunk(column, chunk, map, ctx);
        true
    }

    /// The rows of a rebuild before `end` are done, or could not be. Nobody else has had them yet.
    pub(super) fn chunk_ended(
        &mut self,
        end: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let rebuild = self.rebuild.as_mut().expect("rows of a rebuild");
        rebuild.chunk = None;
        if result.is_err() {
            rebuild.stopped.get_or_insert("a block could not be read or written");
        }
        if rebuild.stopped.is_some() {
            return;
        }
        rebuild.next = end;
        for id in &rebuild.commands {
            ctx.tell_progress(*id, rebuild.next, rebuild.rows);
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
        if rebuild.chunk.is_none() {
            self.end_rebuild(ctx);
        }
    }

    fn end_rebuild(&mut self, ctx: &mut Context<'_>) {
        let Some(rebuild) = self.rebuild.take() else { return };
        self.has_changed = true;
        // After a second loss what it has of its rows is worth all the more.
        if rebuild.stopped.is_some() && self.members.lacking() == 1 {
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
