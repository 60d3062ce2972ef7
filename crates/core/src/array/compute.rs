//! Parity, computed.

use super::plan::Method;
use super::task::Task;
use crate::layer::Context;

impl Task {
    /// Computes the new parity of all segments that have one.
    pub fn compute_parity(&mut self, ctx: &mut Context<'_>) {
        for at in 0..self.segments.len() {
            let segment = self.segments[at];
            if !matches!(segment.method, Method::Modify | Method::Reconstruct) {
                continue;
            }
            self.make_new(segment.parity, ctx);
            let parity = self.part(self.new[segment.parity], segment.rows);
            ctx.zero(parity);
            for column in segment.written.iter() {
                ctx.xor(self.part(self.new[column], segment.rows), parity);
            }
            for column in segment.read.iter() {
                ctx.xor(self.part(self.old[column], segment.rows), parity);
            }
        }
    }

    /// Adds up into the new blocks of a column what was read of the others.
    pub fn compute_column(&mut self, column: usize, ctx: &mut Context<'_>) {
        self.make_new(column, ctx);
        ctx.zero(self.new[column]);
        for at in 0..self.segments.len() {
            let segment = self.segments[at];
            let sum = self.part(self.new[column], segment.rows);
            for other in segment.read.iter() {
                ctx.xor(self.part(self.old[other], segment.rows), sum);
            }
        }
    }

    /// A buffer for the new blocks of a column, if it has none.
    pub fn make_new(&mut self, column: usize, ctx: &mut Context<'_>) {
        if self.new[column].blocks == 0 {
            self.new[column] = ctx.allocate(self.rows.blocks);
        }
    }

    /// A buffer for the old blocks of a column, if it has none.
    pub fn make_old(&mut self, column: usize, ctx: &mut Context<'_>) {
        if self.old[column].blocks == 0 {
            self.old[column] = ctx.allocate(self.rows.blocks);
        }
    }

    /// Gives its own buffers back.
    pub fn release(&mut self, ctx: &mut Context<'_>) {
        for buffer in self.new.iter_mut().chain(&mut self.old) {
            if buffer.blocks > 0 {
                ctx.release(core::mem::take(buffer));
            }
        }
    }
}
