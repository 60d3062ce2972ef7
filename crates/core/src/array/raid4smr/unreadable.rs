//! Blocks that no member can give any more, until they are written again.

use super::directory::Place;
use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::collections::BTreeSet;

/// Places that are listed at most.
pub const UNREADABLE_MAX: usize = 1024;

/// The places whose blocks cannot be read, wherever they are. Nothing of them is in the parity.
#[derive(Debug, Default, SavedValue)]
pub struct Unreadable(BTreeSet<Place>);

impl Unreadable {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Lists a place.
    pub fn add(&mut self, place: Place) {
        self.0.insert(place);
    }

    /// True of a place that is listed.
    pub fn has(&self, place: Place) -> bool {
        self.0.contains(&place)
    }

    /// Keeps those that cannot be read still.
    pub fn keep(&mut self, is_unreadable: impl FnMut(&Place) -> bool) {
        self.0.retain(is_unreadable);
    }

    /// The places, in their order.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.0.iter().copied()
    }

    /// Adds them to a checkpoint.
    pub fn put(&self, words: &mut StateWriter) {
        words.put_u64(self.len());
        self.places().for_each(|place| words.put_u64(place));
    }

    /// Takes them back from a checkpoint.
    ///
    /// # Errors
    /// When there are more than can be.
    pub fn take(words: &mut StateReader<'_>) -> Result<Unreadable, StateError> {
        let len = words.take_u64()?;
        if len > UNREADABLE_MAX as u64 {
            return Err(StateError::new("more unreadable blocks than are listed"));
        }
        (0..len).map(|_| words.take_u64()).collect::<Result<_, _>>().map(Unreadable)
    }
}
