//! Zeroes: a record and no data, unless the set of zeroed ranges is full.

use super::ZEROED_RANGES_MAX;
use super::records::Entry;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::translation::persistent_cache::PersistentCache;
use crate::units::{BlockCount, Lba};

/// What became of a zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::translation) enum Zeroed {
    Done,
    Waits,
    /// The set is full: zeroes are to be written.
    AsWrite,
}

impl PersistentCache {
    /// Serves a zero for which the journal has room.
    pub(in crate::translation) fn zero_durably(
        &mut self,
        job: u32,
        ctx: &mut Context<'_>,
    ) -> Zeroed {
        let extent = self.jobs[job as usize].request.extent;
        // What is zeroed when a band is gathered goes home as zeroes; until that is recorded, the
        // set of zeroed blocks of the band only shrinks.
        if self.is_gathering(extent) {
            self.press_rewrite();
            return Zeroed::Waits;
        }
        // The write pointer of a band must be what the records before this one say.
        let is_zeroed = |band: &BandId| self.bands.extent_of(*band).overlaps(extent);
        if self.bypassing.iter().any(is_zeroed) {
            return Zeroed::Waits;
        }
        if self.zeroed.len() >= ZEROED_RANGES_MAX {
            let blocks = extent.blocks.0.min(self.log.packet_max());
            let zeroes = ctx.allocate(BlockCount(blocks));
            ctx.zero(zeroes);
            self.jobs[job as usize].zeroes = zeroes;
            return Zeroed::AsWrite;
        }
        self.apply_zero(extent);
        self.leave_out_of_rewrite(extent);
        let lsn = self.record(&Entry::Zero(extent), None, ctx);
        self.durable().zeroed_at = Some(lsn);
        Zeroed::Done
    }

    /// Later stretches of a rewrite in progress write zeroes there.
    fn leave_out_of_rewrite(&mut self, extent: Extent) {
        let band = self
            .rewrite
            .map(|rewrite| self.bands.extent_of(rewrite.band));
        if let Some(zeroed) = band.and_then(|band| band.intersection(extent)) {
            self.durable().rewrite.zeroed.insert(zeroed);
            self.leave_out_zeroed(zeroed);
        }
    }

    /// Makes blocks read as zeroes, in memory. Where they reach the end of a band, its write
    /// pointer says so; elsewhere the set of zeroed blocks does.
    pub(super) fn apply_zero(&mut self, extent: Extent) {
        self.log.supersede(extent);
        self.lost.remove(extent);
        let last = Lba(extent.end().0 - 1);
        for band in self.bands.band_of(extent.start).0..=self.bands.band_of(last).0 {
            let band = BandId(band);
            let whole = self.bands.extent_of(band);
            let part = extent.intersection(whole).expect("a band of the extent");
            let readable = Extent::between(whole.start, self.readable_end(band));
            let reaches_end = part.end() >= readable.end();
            // The pointer of a band that is rewritten in stretches only rises.
            if reaches_end && !self.is_amid_stretches(band) {
                let offset = part.start.offset_from(whole.start) as u32;
                let pointer = &mut self.write_pointers[band.0 as usize];
                *pointer = offset.min(*pointer);
                self.zeroed.remove(part);
                self.forget_sums_above(band);
            } else if let Some(hidden) = part.intersection(readable) {
                self.zeroed.insert(hidden);
            }
        }
    }
}
