//! Writes that the layer notes before they begin, as a journal wants.

use super::{RowMap, Rows};
use crate::error::IoError;
use crate::layer::Context;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// The end of a write that was noted.
#[derive(Clone, Copy, Debug, SavedValue)]
pub struct EndedWrite {
    /// The number that the layer gave it.
    pub number: u64,
    /// It has come to nothing, at least in part.
    pub has_failed: bool,
}

/// Writes on their way to the notes of the layer, and those that have ended since.
#[derive(Debug, Default, SavedValue)]
pub struct Noting {
    /// Writes wait until they are noted. They are never forced: the layer flushes behind them.
    pub is_on: bool,
    waiting: VecDeque<u32>,
    ended: VecDeque<EndedWrite>,
}

impl Noting {
    /// A write is ready.
    pub fn wait(&mut self, task: u32) {
        self.waiting.push_back(task);
    }

    /// The next write that is to be noted.
    pub fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// A write that was noted has ended.
    pub fn write_ended(&mut self, number: u64, has_failed: bool) {
        self.ended.push_back(EndedWrite { number, has_failed });
    }

    /// The next write that was noted and has ended.
    pub fn next_ended(&mut self) -> Option<EndedWrite> {
        self.ended.pop_front()
    }
}

impl Rows {
    /// A write was noted under a number, and begins.
    pub(super) fn noted<M: RowMap>(
        &mut self,
        task: u32,
        number: u64,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        self.tasks[task].note = Some(number);
        self.begin_writing(task, map, ctx);
        self.settle(map, ctx);
    }

    /// A write cannot be noted: it comes to nothing.
    pub(super) fn not_noted<M: RowMap>(
        &mut self,
        task: u32,
        error: IoError,
        map: &mut M,
        ctx: &mut Context<'_>,
    ) {
        self.tasks[task].failure = Some(error);
        let behind = self.let_go_on(task);
        self.end_task(task, map, ctx);
        if let Some(behind) = behind {
            self.begin_writing(behind, map, ctx);
        }
        self.settle(map, ctx);
    }
}
