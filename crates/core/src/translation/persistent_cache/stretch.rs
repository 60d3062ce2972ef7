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
//! or is given up leaves a [`Salvage`](super::salvage::Salvage), from which the next one goes on. What
//! was merged leaves the log when the whole band is home. The in-place method has the carried tracks
//! in memory alone.

use super::rewrite::Held;
use crate::extent::Extent;
use crate::map::Piece;
use alloc::vec::Vec;

impl Held {
    /// The stretch is home: the tracks behind it are carried on to the next one, which goes to the
    /// other place of the scratch band.
    pub(super) fn carry_on(&mut self) {
        self.carried = self.blocks - self.home_blocks;
        self.from += self.home_blocks;
        self.place = 1 - self.place;
        self.is_in_scratch = false;
    }
}

/// Joins pieces that follow one another both in address and in slot, of a log with so many slots.
pub(super) fn join_adjoining(pieces: &mut Vec<Piece>, slots: u64) {
    pieces.dedup_by(|second, first| {
        let adjoin = first.extent.end() == second.extent.start
            && first.position + first.extent.blocks.0 == second.position
            && second.position % slots != 0;
        if adjoin {
            first.extent = Extent::between(first.extent.start, second.extent.end());
        }
        adjoin
    });
}

/// Cuts pieces of the log into parts of at most `blocks` blocks.
pub(super) fn cut_pieces(pieces: &mut Vec<Piece>, blocks: u64) {
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
