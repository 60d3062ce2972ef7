//! Tracks and bands by which movement is counted.

/// Blocks on a track and tracks in a band, the same all over the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    track_blocks: u64,
    band_blocks: u64,
}

impl Geometry {
    /// Tracks of `track_blocks` blocks and bands of `band_tracks` tracks; `None` when one of them is
    /// zero or a band has more blocks than addresses reach.
    pub fn new(track_blocks: u64, band_tracks: u64) -> Option<Geometry> {
        let band_blocks = track_blocks.checked_mul(band_tracks)?;
        let fits = (1..=super::ADDRESS_BLOCKS_MAX).contains(&band_blocks);
        fits.then_some(Geometry { track_blocks, band_blocks })
    }

    /// The number of `block` at each level: the block itself, its track and its band.
    #[inline]
    pub fn levels(self, block: u64) -> [u64; 3] {
        [block, self.track(block), block / self.band_blocks]
    }

    /// The track of `block`, counted from the start of the disk.
    #[inline]
    pub fn track(self, block: u64) -> u64 {
        block / self.track_blocks
    }

    /// The block after the last one of the track of `block`.
    #[inline]
    pub fn track_end(self, block: u64) -> u64 {
        (self.track(block) + 1) * self.track_blocks
    }

    /// True when the blocks from `first` to `last` reach over a border of two tracks of the band of `last`.
    #[inline]
    pub fn crosses_tracks_of_band(self, first: u64, last: u64) -> bool {
        let band_start = last / self.band_blocks * self.band_blocks;
        self.track(first.max(band_start)) < self.track(last)
    }

    /// The block after the last one of the band of `block`.
    #[inline]
    pub fn band_end(self, block: u64) -> u64 {
        (block / self.band_blocks + 1) * self.band_blocks
    }
}
