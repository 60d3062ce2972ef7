//! What an array remembers for members that are away.

use super::missed::Missed;
use super::task::Work;
use super::unflushed::Unflushed;
use super::{RegionShape, RowMap, Rows};
use crate::layer::Context;
use crate::planted::PlantedBug;

impl Rows {
    /// It is remembered which regions a member has missed that is away.
    pub fn remember_missed(&mut self, shape: RegionShape) {
        self.members.missed = Some(Missed::new(shape));
        self.operations.unflushed = Some(Unflushed::new(shape, self.members.columns()));
    }

    /// A write was planned, or is about to be made: members that are away miss what they do not get of it.
    pub(super) fn remember_lacking<M: RowMap>(&mut self, task: u32, map: &M, ctx: &Context<'_>) {
        let entry = &self.tasks[task];
        if entry.work == Work::Write && !ctx.is_planted(PlantedBug::ArrayMissedWriteForgotten) {
            self.members.miss(&entry.segments, map.redundancy());
        }
    }

    /// A flush of all members begins: what was written before may be durable when it has ended.
    pub fn flush_begins(&mut self, job: u32) {
        self.operations.unflushed.iter_mut().for_each(|it| it.flush_begins(job));
    }

    /// Such a flush has ended.
    pub fn flush_counts(&mut self, job: u32, is_durable: bool) {
        self.operations.unflushed.iter_mut().for_each(|it| it.flush_ended(job, is_durable));
    }
}
