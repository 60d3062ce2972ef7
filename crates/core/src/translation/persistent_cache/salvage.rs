//! What the scratch band alone holds.

use super::rewrite::Rewrite;
use super::shape::Shape;
use crate::map::BandId;

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
            from: rewrite.stretch.from,
            blocks: rewrite.stretch.blocks,
            end_of_rewrite: rewrite.stretch.end_of_rewrite,
            place: rewrite.stretch.place,
            at: 0,
        }
    }

    /// What the scratch band holds of a band, as it was written down; `None` when no rewrite of the
    /// band would put these blocks there.
    pub fn recorded(
        shape: &Shape,
        band: BandId,
        from: u64,
        blocks: u64,
        place: Option<u64>,
    ) -> Option<Salvage> {
        let end_of_rewrite = shape.bands.extent_of(band).blocks.0;
        if from >= end_of_rewrite {
            return None;
        }
        let layout = &shape.layout;
        let (place, rewritten) = match place {
            None if !layout.has_stretches() => (0, end_of_rewrite - from),
            Some(place) if from == layout.track_start(band, from) => {
                let place = layout.scratch_place(place)?;
                (place, layout.stretch(band, from, end_of_rewrite).blocks)
            }
            _ => return None,
        };
        (blocks == rewritten).then_some(Salvage {
            band,
            from,
            blocks,
            end_of_rewrite,
            place,
            at: 0,
        })
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
