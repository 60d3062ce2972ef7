//! Band rows with a block at home that is wrong: a home cannot write it again in its place. So the band row is collected
//! to the spare one and back, which writes every block of it anew.

use crate::saved::SavedValue;
use alloc::collections::BTreeMap;

/// How often a band row is collected, so that it lies where it did.
const TURNS: u8 = 2;

/// The band rows that are written anew.
#[derive(Debug, Default, SavedValue)]
pub struct Rewrites(BTreeMap<u64, u8>);

impl Rewrites {
    /// A band row is to be written anew.
    pub fn add(&mut self, band_row: u64) {
        self.0.entry(band_row).or_insert(TURNS);
    }

    /// The next band row that is to be collected.
    pub fn next(&self) -> Option<u64> {
        self.0.first_key_value().map(|(band_row, _)| *band_row)
    }

    /// The first of them is collected.
    pub fn begun(&mut self) {
        if let Some(mut first) = self.0.first_entry() {
            *first.get_mut() -= 1;
            if *first.get() == 0 {
                first.remove();
            }
        }
    }

    /// None is, any more: a member is missing, or the array goes down.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// True when none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
