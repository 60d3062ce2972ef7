//! How policies write down the order of their blocks, and take it back.

use super::policy::CachedBlock;
use crate::map::LruList;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::format;
use alloc::vec;

/// Writes the blocks of a list down, the oldest first.
pub(super) fn save_order(list: &LruList, numbers: &[u32], state: &mut StateWriter) {
    for entry in list.oldest_first() {
        state.put_u64(u64::from(numbers[entry as usize]));
    }
}

/// Takes back what [`save_order`] wrote, calling `add` for each block in that order.
pub(super) fn restore_order(
    cached: &[CachedBlock],
    state: &mut StateReader<'_>,
    mut add: impl FnMut(u32, CachedBlock),
) -> Result<(), StateError> {
    restore_each(cached, state, |entry, block, _| {
        add(entry, block);
        Ok(())
    })
}

/// Reads a number for every cached block, in any order but each once, and lets `add` read what
/// follows it.
pub(super) fn restore_each(
    cached: &[CachedBlock],
    state: &mut StateReader<'_>,
    mut add: impl FnMut(u32, CachedBlock, &mut StateReader<'_>) -> Result<(), StateError>,
) -> Result<(), StateError> {
    restore_words(cached, state, 0, |entry, block, _, state| add(entry, block, state))
}

/// Reads a word for every cached block, in any order but each once: its number, and below it so many
/// bits that `add` is given.
pub(super) fn restore_words(
    cached: &[CachedBlock],
    state: &mut StateReader<'_>,
    bits: u32,
    mut add: impl FnMut(u32, CachedBlock, u64, &mut StateReader<'_>) -> Result<(), StateError>,
) -> Result<(), StateError> {
    let mut seen = vec![false; cached.len()];
    for _ in 0..cached.len() {
        let word = state.take_u64()?;
        let (number, low) = (word >> bits, word & ((1 << bits) - 1));
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        match (cached.get(index), seen.get(index)) {
            (Some(block), Some(false)) => {
                seen[index] = true;
                add(index as u32, *block, low, state)?;
            }
            _ => {
                return Err(StateError::new(format!(
                    "the order of the cache names block number {number} twice or out of range"
                )));
            }
        }
    }
    Ok(())
}
