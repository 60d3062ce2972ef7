//! What the merged copy of a band must be: verified before the copy takes the place of the band.

use super::block_map::BlockMap;
use super::checksums::Checksums;
use super::rewrite::Rewrite;
use super::shape::Shape;
use super::table::Table;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, Piece};
use crate::planted::PlantedBug;
use crate::saved::SavedValue;
use alloc::vec::Vec;

/// The checksums that a rewrite works with; unused where none are kept.
#[derive(Debug, Default, SavedValue)]
pub(super) struct CopyCheck {
    /// Pages of the old table, then of the new one.
    pub pages: BufferSlice,
    /// What the log held of the band when a restore of it began. The next stretch is durable only
    /// together with that, so what is at home there is never read again, and may be bad.
    hidden: Vec<Extent>,
    /// The checksums of the band at home below the write pointer; empty when they are not known.
    old: Vec<u32>,
    /// What the blocks that are rewritten must be, where that is known.
    expected: Vec<Option<u32>>,
    /// The new table and its checksums.
    pub table: Table,
    sums: Vec<u32>,
}

impl CopyCheck {
    /// A rewrite begins to read a band; true when the checksums of the band are in memory.
    pub fn begin(
        &mut self,
        rewrite: &Rewrite,
        shape: &Shape,
        blocks: &BlockMap,
        checksums: &Checksums,
    ) -> bool {
        let whole = shape.bands.extent_of(rewrite.band);
        self.hidden.clear();
        if rewrite.is_restore {
            let hidden = blocks.log.map().pieces(whole).map(|piece| piece.extent);
            self.hidden.extend(hidden);
        }
        self.old.clear();
        let open = checksums.open.get(rewrite.band);
        if let Some(open) = open {
            self.old.extend_from_slice(&open.sums);
        }
        open.is_some()
    }

    /// True when the old table of the band has to be taken out of the pages that were read.
    pub fn wants_table(&self, band: BandId, checksums: &Checksums) -> bool {
        self.old.is_empty()
            && checksums.open.get(band).is_none()
            && checksums.table(band) != Table::NONE
    }

    /// Takes the old table of the band out of the pages that were read.
    ///
    /// # Errors
    /// When a page is not what it must be.
    pub fn take_table(
        &mut self,
        band: BandId,
        shape: &Shape,
        checksums: &Checksums,
        ctx: &Context<'_>,
    ) -> Result<(), IoError> {
        let area =
            checksums.table_area(band, checksums.table(band), shape.bands.extent_of(band).blocks.0);
        let pages = self.pages.part(0, area.extent.blocks.0);
        checksums.take_table(band, pages, shape, &mut self.old, ctx)
    }

    /// Takes note of what the blocks that are rewritten must be at home, up to an offset.
    pub fn expect_home(
        &mut self,
        rewrite: &Rewrite,
        readable: u64,
        shape: &Shape,
        blocks: &BlockMap,
    ) {
        let held = &rewrite.stretch;
        let start = shape.bands.extent_of(rewrite.band).start.0 + held.from;
        let whole = Extent::new(start, held.blocks);
        let Self { old, expected, hidden, .. } = self;
        expected.clear();
        expected.extend((held.from..held.from + held.blocks).map(|offset| {
            let known = offset < readable;
            known.then(|| old.get(offset as usize).copied()).flatten()
        }));
        let hidden = hidden.iter().filter_map(|hidden| hidden.intersection(whole));
        for hidden in hidden.chain(blocks.lost.pieces(whole)) {
            let at = (hidden.start.0 - start) as usize;
            expected[at..at + hidden.blocks.0 as usize].fill(None);
        }
    }

    /// Blocks of the band that are rewritten go home as zeroes, whatever they are there.
    pub fn expect_zeroes(&mut self, zeroed: Extent, start: u64) {
        let at = (zeroed.start.0 - start) as usize;
        self.expected[at..at + zeroed.blocks.0 as usize].fill(None);
    }

    /// Takes note of what gathered blocks must be; `start` is the first block that is rewritten.
    pub fn expect_gathered(
        &mut self,
        gathered: &[Piece],
        start: u64,
        shape: &Shape,
        checksums: &Checksums,
    ) {
        for piece in gathered {
            for block in 0..piece.extent.blocks.0 {
                let at = piece.extent.start.0 + block - start;
                let slot = shape.slot(piece.position + block);
                self.expected[at as usize] = Some(checksums.slots(slot, 1)[0]);
            }
        }
    }

    /// Compares what was read with what was expected, and keeps the checksums.
    ///
    /// # Errors
    /// When a block is not what it must be.
    pub fn verify(&mut self, copy: BufferSlice, ctx: &Context<'_>) -> Result<(), IoError> {
        self.sums.clear();
        ctx.checksum(copy, &mut self.sums);
        let right = |(sum, expected): (&u32, &Option<u32>)| expected.is_none_or(|it| it == *sum);
        if ctx.is_planted(PlantedBug::ReadCrcSkipped)
            || self.sums.iter().zip(&self.expected).all(right)
        {
            Ok(())
        } else {
            Err(IoError::Medium)
        }
    }

    /// Puts the new table of the band together, whose copy was verified, and returns its checksums.
    /// What is not rewritten, or not yet, keeps its own.
    pub fn new_table(&mut self, from: u64, band_blocks: u64, table: Table) -> &[u32] {
        self.table = table;
        let (old, sums) = (&self.old, &mut self.sums);
        let kept = (0..from as usize).map(|at| old.get(at).copied().unwrap_or(0));
        sums.splice(0..0, kept);
        sums.extend(old.iter().skip(sums.len()));
        sums.resize(band_blocks as usize, 0);
        sums
    }

    /// The new table is what the band is read with from now on; `had_table` when another was
    /// before.
    pub fn accept_table(&mut self, had_table: bool) {
        // Without bytes in the buffers, what a table says is not known.
        if !self.old.is_empty() || !had_table {
            core::mem::swap(&mut self.old, &mut self.sums);
        }
    }
}
