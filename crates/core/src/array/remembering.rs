//! What an array remembers for members that are away.

use super::missed::Missed;
use super::unflushed::Unflushed;
use super::{RegionShape, Rows};

impl Rows {
    /// It is remembered which regions a member has missed that is away.
    pub fn remember_missed(&mut self, shape: RegionShape) {
        self.members.missed = Some(Missed::new(shape));
        self.operations.unflushed = Some(Unflushed::new(shape, self.members.columns()));
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
