//! How policies write down the order of their blocks, and take it back.

use super::policy::CachedBlock;
use crate::map::LruList;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

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

/// A saved state whose clock is beyond this is none: that many blocks are an exbibyte.
pub(super) const CLOCK_MAX: u64 = 1 << 48;

/// Writes down the clock of a policy, which counts accesses, and that of the last access to each cached
/// block: a word a block, in the order of the numbers by which they are saved.
pub(super) fn save_clocks(clock: u64, mut of_blocks: Vec<(u32, u64)>, state: &mut StateWriter) {
    state.put_u64(clock);
    of_blocks.sort_unstable();
    of_blocks.iter().for_each(|(_, clock)| state.put_u64(*clock));
}

/// Takes back what [`save_clocks`] wrote: the clock, and that of each cached block with its number, the
/// oldest first.
pub(super) fn restore_clocks(
    cached: &[CachedBlock],
    state: &mut StateReader<'_>,
) -> Result<(u64, Vec<(u64, u32)>), StateError> {
    let clock = state.take_u64()?;
    if clock > CLOCK_MAX {
        return Err(StateError::new("more blocks were looked up in the saved cache than can be"));
    }
    let mut order = Vec::with_capacity(cached.len());
    for number in 0..cached.len() as u32 {
        order.push((state.take_u64()?, number));
    }
    order.sort_unstable();
    if order.windows(2).any(|two| two[0].0 == two[1].0)
        || order.last().is_some_and(|(last, _)| *last > clock)
    {
        return Err(StateError::new("two accesses of the saved cache are at one time, or to come"));
    }
    Ok((clock, order))
}
