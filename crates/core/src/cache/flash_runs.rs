//! Which of the blocks of a list can be read or written in one operation.

use super::entries::{Entries, Flag};

/// Entries that adjoin in flash.
pub(super) struct FlashRun {
    /// Which of the entries is the first, and its slot.
    pub first: u64,
    pub slot: u32,
    pub blocks: u64,
}

/// The runs of adjoining slots under the entries of a list that have a property, all of them where
/// it is none.
pub(super) struct FlashRuns<'a> {
    entries: &'a Entries,
    /// What has not been looked at, and how much has.
    rest: &'a [u32],
    at: u64,
    wanted: Option<Flag>,
}

impl<'a> FlashRuns<'a> {
    #[inline]
    pub fn new(entries: &'a Entries, list: &'a [u32], wanted: Option<Flag>) -> FlashRuns<'a> {
        FlashRuns { entries, rest: list, at: 0, wanted }
    }

    /// The slot of an entry that has the property.
    #[inline]
    fn slot_of_wanted(&self, id: u32) -> Option<u32> {
        let entry = self.entries.get(id);
        let is_wanted = self.wanted.is_none_or(|flag| entry.is(flag));
        is_wanted.then(|| self.entries.slot_of(entry))
    }
}

impl Iterator for FlashRuns<'_> {
    type Item = FlashRun;

    // Most lists are one run: where it is inlined, the end of it is seen at once.
    #[inline(always)]
    fn next(&mut self) -> Option<FlashRun> {
        let mut first = None;
        while let Some((id, rest)) = self.rest.split_first() {
            let slot = self.slot_of_wanted(*id);
            match (&mut first, slot) {
                (None, Some(slot)) => first = Some(FlashRun { first: self.at, slot, blocks: 1 }),
                (None, None) => {}
                (Some(run), Some(slot)) if u64::from(slot) == u64::from(run.slot) + run.blocks => {
                    run.blocks += 1;
                }
                (Some(_), _) => break,
            }
            self.rest = rest;
            self.at += 1;
        }
        first
    }
}
