//! The write amplification of writing straight to a drive-managed disk, estimated from the trace
//! alone (PORE, MSST 2017, figure 6; section III).
//!
//! Every write takes a slot of a log. When the log is full, all bands of which it holds a block
//! are rewritten and it is empty again. A drive that cleans the band at the head only rewrites
//! less, so this is an upper estimate of what a run of `smr-only` finds.

use imbrex_core::extent::Extent;
use imbrex_core::map::BandTable;
use imbrex_core::units::{BLOCK_BYTES, BlockCount};

/// The estimate, fed with the writes of a trace in their order.
#[derive(Debug)]
pub struct DirectWrite<'a> {
    bands: &'a BandTable,
    log_blocks: u64,
    used_blocks: u64,
    /// The fill in which a band was last written, from 1.
    last_fill: Vec<u64>,
    fill: u64,
    covered_blocks: u64,
    rewritten_blocks: u64,
}

impl<'a> DirectWrite<'a> {
    /// An empty log of `log_blocks`, at least one, over `bands`.
    pub fn new(bands: &'a BandTable, log_blocks: BlockCount) -> DirectWrite<'a> {
        DirectWrite {
            bands,
            log_blocks: log_blocks.0.max(1),
            used_blocks: 0,
            last_fill: vec![0; bands.bands() as usize],
            fill: 1,
            covered_blocks: 0,
            rewritten_blocks: 0,
        }
    }

    /// A write. Every block takes a slot, also when the log holds an older copy of it.
    pub fn write(&mut self, extent: Extent) {
        for lba in (extent.start.0..extent.end().0).map(imbrex_core::units::Lba) {
            let band = self.bands.band_of(lba);
            let last_fill = &mut self.last_fill[band.0 as usize];
            if *last_fill != self.fill {
                *last_fill = self.fill;
                self.covered_blocks += self.bands.extent_of(band).blocks.0;
            }
            self.used_blocks += 1;
            if self.used_blocks == self.log_blocks {
                self.rewritten_blocks += self.covered_blocks;
                self.covered_blocks = 0;
                self.used_blocks = 0;
                self.fill += 1;
            }
        }
    }

    /// How often the log was full.
    pub fn fills(&self) -> u64 {
        self.fill - 1
    }

    /// Bytes of the bands rewritten.
    pub fn band_bytes_written(&self) -> u64 {
        self.rewritten_blocks * BLOCK_BYTES
    }

    /// Band bytes over the bytes of the writes that filled the log; nothing before the first fill.
    pub fn write_amplification(&self) -> Option<f64> {
        imbrex_report::ratio(self.rewritten_blocks, self.fills() * self.log_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::translation::bands_fixed;

    #[test]
    fn a_fill_costs_the_bands_it_covers_once() {
        let bands = bands_fixed(BlockCount(100), BlockCount(10));
        let mut estimate = DirectWrite::new(&bands, BlockCount(4));
        assert_eq!(estimate.write_amplification(), None);
        // Bands 0 and 1; the rewrite of block 0 takes a slot of its own.
        estimate.write(Extent::new(0, 1));
        estimate.write(Extent::new(0, 1));
        estimate.write(Extent::new(9, 2));
        assert_eq!(estimate.fills(), 1);
        assert_eq!(estimate.write_amplification(), Some(5.0));
        // Band 5 alone, and a part of a third fill that is not counted.
        estimate.write(Extent::new(50, 6));
        assert_eq!(estimate.fills(), 2);
        assert_eq!(estimate.band_bytes_written(), 30 * BLOCK_BYTES);
        assert_eq!(estimate.write_amplification(), Some(30.0 / 8.0));
    }
}
