//! What the scratch band of a persistent cache holds: the rest of a band, or a stretch of one.

use super::translation::{TranslationState, short};
use super::words::Words;

/// Blocks of a band that are in the scratch band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scratch {
    /// The band.
    pub band: u64,
    /// From which block of it on.
    pub from: u64,
    /// How many blocks.
    pub blocks: u64,
    /// The first of them on the disk.
    pub place: u64,
}

impl Scratch {
    pub(super) fn new(band: u64, from: u64, blocks: u64, place: u64) -> Scratch {
        Scratch { band, from, blocks, place }
    }

    /// Takes it out of the words of a checkpoint.
    pub(super) fn take(
        words: &mut Words<'_>,
        scratch_start: u64,
    ) -> Result<Option<Scratch>, String> {
        let mut next = || words.u64().ok_or_else(short);
        let held = next()?;
        if held == 0 {
            return Ok(None);
        }
        let (band, from, blocks) = (next()?, next()?, next()?);
        let place = match held {
            1 => scratch_start,
            2 => next()?,
            _ => {
                return Err(format!("the scratch band is held in way {held}, not 0, 1 or 2"));
            }
        };
        Ok(Some(Scratch::new(band, from, blocks, place)))
    }

    /// True when the block of a band at an offset is there.
    pub(super) fn holds(&self, band: usize, offset: u64) -> bool {
        let at = offset.checked_sub(self.from);
        self.band == band as u64 && at.is_some_and(|at| at < self.blocks)
    }

    /// What is wrong with it.
    pub(super) fn problem(&self, state: &TranslationState) -> Option<&'static str> {
        let band = usize::try_from(self.band).ok();
        let band = band.and_then(|band| state.bands.get(band));
        let end = self.from.checked_add(self.blocks);
        let is_in_band =
            band.zip(end).is_some_and(|(band, end)| self.from < end && end <= band.blocks);
        if !is_in_band {
            return Some("the scratch band holds what is no band");
        }
        let home = state.bands.iter().map(|band| band.home).min().unwrap_or(0);
        let end = self.place.checked_add(self.blocks);
        let is_there = state.scratch_start <= self.place && end.is_some_and(|end| end <= home);
        (!is_there).then_some("what the scratch band holds lies outside it")
    }
}
