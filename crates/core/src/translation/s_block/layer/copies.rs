//! What a rewrite tells the store of copies.

use super::SBlocks;
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Cause, CopyOperation, Operation};
use crate::translation::s_block::rewrite::Source;
use crate::translation::s_block::work::Op;

impl SBlocks {
    /// Tells the store of copies of the blocks that leave a ring: a read may have made a copy since they
    /// came. Of a block that is about to be written anew it knows already.
    pub(super) fn tell_ring_blocks(&mut self, index: u8, ctx: &mut Context<'_>) {
        if self.store(ctx).is_none() || self.writes[index].is_move {
            return;
        }
        let (told, block) = (self.told(index), self.layout.block);
        for at in 0..self.writes[index].sources.len() as u64 {
            let extent = Extent::new(told + at * block, block);
            let write = &mut self.writes[index];
            let parts = (at * block) as usize..((at + 1) * block) as usize;
            if write.dirty[parts].contains(&true) && !self.locks.overlaps(extent) {
                write.stored += 1;
                let (region, buffer) = (write.region, write.buffer.part(at * block, block));
                let (told, buffer) = match self.holds_right_block(index, at, true, ctx) {
                    true => (CopyOperation::Destaged, buffer),
                    false => (CopyOperation::Drop, BufferSlice::EMPTY),
                };
                let what = (extent, buffer);
                let told = Operation::Copy(told);
                self.issue(Op::Stored { region }, told, what, Cause::Cleaning, ctx);
            }
        }
    }

    /// Gives a store of copies that wants it what was read from the disk.
    pub(super) fn store_reads(&mut self, index: u8, ctx: &mut Context<'_>) {
        let wants = self.store(ctx).is_some_and(|store| store.wants_rewrite_reads);
        if !wants || self.writes[index].is_move {
            return;
        }
        let write = &self.writes[index];
        let region = &self.places[write.region as usize].region;
        if region.slot_of(write.segment).is_none() {
            return;
        }
        let (told, block) = (self.told(index), self.layout.block);
        for at in 0..self.writes[index].sources.len() as u64 {
            let extent = Extent::new(told + at * block, block);
            let write = &mut self.writes[index];
            let parts = (at * block) as usize..((at + 1) * block) as usize;
            let is_read = write.sources[at as usize] == Source::Old;
            // The store may have been told of something newer.
            let is_older = write.dirty[parts].contains(&true) || self.locks.overlaps(extent);
            if !is_read || is_older || !self.holds_right_block(index, at, true, ctx) {
                continue;
            }
            let write = &mut self.writes[index];
            write.stored += 1;
            let (region, buffer) = (write.region, write.buffer.part(at * block, block));
            let what = (extent, buffer);
            let store = Operation::Copy(CopyOperation::Store);
            self.issue(Op::Stored { region }, store, what, Cause::Cleaning, ctx);
        }
    }
}
