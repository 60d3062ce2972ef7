//! A band rewrite in stretches: a drive whose memory does not hold a band merges a part of it at a
//! time (Shafaei et al., ACM ToS 13(4), 2017: one to three through 14 MiB).
//!
//! ```text
//! home     |== stretch 1 ==|- carried -|                       read, merged; the stretch goes home
//!                          |== stretch 2 ==|- carried -|
//!                                          |== stretch 3 ====|
//! scratch  place 0: stretch 1, carried    place 1: stretch 2, carried    place 0: stretch 3
//! ```
//!
//! Writing a stretch home destroys the tracks behind it. These are read and merged with it, stay in
//! memory and in the scratch copy, and go home with the next stretch; it is copied to the other place
//! of the scratch band, so that the only copy on the disk is never overwritten. A rewrite that fails
//! or is given up leaves a [`Salvage`], from which the next one goes on. What was merged leaves the
//! log when the whole band is home. The in-place method has the carried tracks in memory alone.

use super::persistent_cache::PersistentCache;
use super::rewrite::{Phase, Rewrite};
use super::settings::RewriteExtent;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, Piece};
use crate::planted::PlantedBug;
use alloc::vec::Vec;

/// Blocks of a band that the scratch band alone holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Salvage {
    pub band: BandId,
    /// The first of them, an offset in the band.
    pub from: u64,
    pub blocks: u64,
    /// The offset up to which the band was to be rewritten: home is whole from the end of these
    /// blocks on.
    pub end_of_rewrite: u64,
    /// Where they are in the scratch band: the place, and the offset in it.
    pub place: usize,
    pub at: u64,
}

impl Salvage {
    /// The stretch of a rewrite, as it lies in the scratch band.
    pub fn of(rewrite: &Rewrite) -> Salvage {
        Salvage {
            band: rewrite.band,
            from: rewrite.from,
            blocks: rewrite.blocks,
            end_of_rewrite: rewrite.end_of_rewrite,
            place: rewrite.place,
            at: 0,
        }
    }

    /// The offset in the band behind the last of the blocks.
    pub fn end(&self) -> u64 {
        self.from + self.blocks
    }

    /// What is left when the first blocks are home.
    pub fn without(self, blocks: u64) -> Option<Salvage> {
        (blocks < self.blocks).then(|| Salvage {
            from: self.from + blocks,
            blocks: self.blocks - blocks,
            at: self.at + blocks,
            ..self
        })
    }
}

impl PersistentCache {
    /// True when the scratch band alone holds tracks of a band behind which home is whole.
    pub(super) fn is_amid_stretches(&self, band: BandId) -> bool {
        let salvage = self.salvage.filter(|salvage| salvage.band == band);
        salvage.is_some_and(|salvage| salvage.end() < salvage.end_of_rewrite)
    }

    /// Finds where a rewrite ends, and up to where there is anything at home.
    pub(super) fn find_end_of_rewrite(&self, rewrite: &mut Rewrite) {
        let whole = self.bands.extent_of(rewrite.band);
        let pointer = self.write_pointers.get(rewrite.band.0 as usize);
        let pointer = pointer.map_or(whole.blocks.0, |it| u64::from(*it));
        let is_to_written = self.settings.rewrite_extent == RewriteExtent::FromFirstDirtyToWritten;
        (rewrite.end_of_rewrite, rewrite.written_end) = match &self.zones {
            Some(zones) => (zones.written_end(rewrite.band), pointer),
            None if is_to_written => {
                let dirty = self.log.map().pieces(whole).last();
                let end = dirty.map_or(0, |piece| piece.extent.end().offset_from(whole.start));
                (end.max(pointer), pointer)
            }
            None => (whole.blocks.0, whole.blocks.0),
        };
    }

    /// Reads what the present stretch needs beside what was carried on to it.
    pub(super) fn begin_stretch(&mut self, ctx: &mut Context<'_>) {
        let mut rewrite = self.rewriting();
        match self.salvage.filter(|_| rewrite.is_in_scratch) {
            Some(salvage) => {
                rewrite.blocks = salvage.blocks;
                rewrite.home_blocks = match rewrite.is_last_stretch() {
                    true => salvage.blocks,
                    false => self.layout.carried_from(rewrite.band, salvage.end()) - rewrite.from,
                };
            }
            None => {
                let end = rewrite.end_of_rewrite;
                let stretch = self.layout.stretch(rewrite.band, rewrite.from, end);
                rewrite.blocks = stretch.blocks;
                rewrite.home_blocks = stretch.home_blocks;
            }
        }
        self.gathered.clear();
        if !rewrite.is_restore {
            self.list_what_is_gathered(&mut rewrite, ctx);
        }
        self.rewrite = Some(rewrite);
        match self.durable {
            Some(_) => self.read_band_durably(&rewrite, ctx),
            None => {
                let to_read = rewrite.blocks_at_home().saturating_sub(rewrite.carried);
                self.enter(Phase::Reading, to_read);
                self.go_on(ctx);
            }
        }
    }

    /// Lists what the log held of what the stretch reads, in log order. What was written since the
    /// rewrite began may yet be undone by a power cut, and then this is what counts; a drive that
    /// keeps its map must do so whether its stack has a journal or not.
    fn list_what_is_gathered(&mut self, rewrite: &mut Rewrite, ctx: &Context<'_>) {
        let band = self.bands.extent_of(rewrite.band).start.0;
        let first = band + rewrite.from + rewrite.carried;
        let fresh = Extent::new(first, rewrite.blocks - rewrite.carried);
        rewrite.hold = self.lowest_to_gather();
        let starts_before_end = |piece: &Piece| piece.extent.start < fresh.end();
        let count = self.to_gather.partition_point(starts_before_end);
        let behind = self.to_gather[..count].last();
        let rest =
            |piece: &Piece| Extent::between(fresh.end(), piece.extent.end().max(fresh.end()));
        let behind = behind.and_then(|piece| piece.clip(rest(piece)));
        let due = self.to_gather.drain(..count);
        self.gathered.extend(due.filter_map(|it| it.clip(fresh)));
        if let Some(piece) = behind {
            self.to_gather.insert(0, piece);
        }
        self.gathered.sort_unstable_by_key(|piece| piece.position);
        if ctx.is_planted(PlantedBug::RemapIgnoresOverwrite) && self.gathered.len() > 1 {
            // As if the newest entry had come after the gather; the drop takes it too.
            self.gathered.pop();
        }
        let log = &self.log;
        self.gathered.dedup_by(|second, first| {
            let adjoin = log.adjoin(first, second);
            if adjoin {
                first.extent = Extent::between(first.extent.start, second.extent.end());
            }
            adjoin
        });
        rewrite.merged += self
            .gathered
            .iter()
            .map(|it| it.extent.blocks.0)
            .sum::<u64>();
        if rewrite.is_idle {
            cut_pieces(&mut self.gathered, self.chunk_blocks);
        }
    }

    /// The stretch is home: the next one begins, or the band is whole.
    pub(super) fn end_stretch(&mut self, ctx: &mut Context<'_>) {
        let mut rewrite = self.rewriting();
        if rewrite.is_last_stretch() {
            return self.complete_rewrite(ctx);
        }
        let carried = rewrite.blocks - rewrite.home_blocks;
        if rewrite.home_blocks > 0 {
            let behind = rewrite.buffer.part(rewrite.home_blocks, carried);
            ctx.copy(behind, rewrite.buffer.part(0, carried));
        }
        rewrite.from += rewrite.home_blocks;
        rewrite.carried = carried;
        rewrite.place = 1 - rewrite.place;
        rewrite.is_in_scratch = false;
        if ctx.is_planted(PlantedBug::OverlapNotRestored) {
            // Nothing destroyed them, one might think.
            (rewrite.from, rewrite.carried) = (rewrite.from + carried, 0);
            self.salvage = None;
        }
        self.rewrite = Some(rewrite);
        self.begin_stretch(ctx);
    }

    /// The lowest log position that a stretch still has to read.
    pub(super) fn lowest_to_gather(&self) -> Option<u64> {
        self.to_gather.iter().map(|piece| piece.position).min()
    }

    /// Blocks read as zeroes from now on: what the log held of them does not go home any more.
    pub(super) fn leave_out_zeroed(&mut self, zeroed: Extent) {
        if !self
            .to_gather
            .iter()
            .any(|piece| piece.extent.overlaps(zeroed))
        {
            return;
        }
        let pieces = core::mem::take(&mut self.to_gather);
        for piece in &pieces {
            let (start, end) = (piece.extent.start, piece.extent.end());
            let before = piece.clip(Extent::between(start, zeroed.start.max(start)));
            let behind = piece.clip(Extent::between(zeroed.end().min(end), end));
            self.to_gather.extend(before.into_iter().chain(behind));
        }
    }
}

/// Cuts pieces of the log into parts of at most `blocks` blocks.
fn cut_pieces(pieces: &mut Vec<Piece>, blocks: u64) {
    let whole = core::mem::take(pieces);
    for piece in whole {
        let mut done = 0;
        while done < piece.extent.blocks.0 {
            let part = blocks.min(piece.extent.blocks.0 - done);
            pieces.push(Piece {
                extent: Extent::new(piece.extent.start.0 + done, part),
                position: piece.position + done,
            });
            done += part;
        }
    }
}
