//! How long the bands of a drive-managed disk are (PORE, MSST 2017, section V; Skylight, FAST 2015).

use crate::map::BandTable;
use crate::rng::Rng;
use crate::units::BlockCount;
use alloc::vec::Vec;

/// Band lengths are whole numbers of this (1 MiB), as published ones are.
const STEP_BLOCKS: u64 = 256;

/// Bands with lengths drawn independently and uniformly from the whole MiB in
/// `smallest ..= largest`, in the order drawn, until they hold `total`; the last is cut to fit.
/// The papers give 17 to 36 MiB.
///
/// Panics when a length is not a whole number of MiB, `smallest` is zero or above `largest`, or
/// `total` is zero.
pub fn bands_uniform(
    total: BlockCount,
    smallest: BlockCount,
    largest: BlockCount,
    seed: u64,
) -> BandTable {
    let (smallest, largest) = (steps(smallest), steps(largest));
    assert!(smallest <= largest, "the smallest band is the largest");
    let mut rng = Rng::new(seed, 0);
    cut(
        total,
        core::iter::repeat_with(|| smallest + rng.below(largest - smallest + 1)),
    )
}

/// Bands of `length` each until they hold `total`; the last is cut to fit.
///
/// Panics when `length` or `total` is zero.
pub fn bands_fixed(total: BlockCount, length: BlockCount) -> BandTable {
    assert!(total.0 > 0 && length.0 > 0, "bands without blocks");
    let whole = total.0 / length.0;
    let rest = total.0 % length.0;
    let lengths = (0..whole).map(|_| length);
    BandTable::new(lengths.chain((rest > 0).then_some(BlockCount(rest))))
}

/// Bands of every whole MiB in `smallest ..= largest`, the same number of each, all the smallest
/// first, as the prototype of PORE lays them out; enough to hold `total`, the last cut to fit.
///
/// Panics as [`bands_uniform`] does.
pub fn bands_ascending(total: BlockCount, smallest: BlockCount, largest: BlockCount) -> BandTable {
    let (smallest, largest) = (steps(smallest), steps(largest));
    assert!(smallest <= largest, "the smallest band is the largest");
    let one_of_each: u64 = (smallest..=largest).sum::<u64>() * STEP_BLOCKS;
    let of_each = total.0.div_ceil(one_of_each) as usize;
    let lengths = (smallest..=largest).flat_map(|mib| core::iter::repeat_n(mib, of_each));
    cut(total, lengths)
}

fn steps(length: BlockCount) -> u64 {
    assert!(
        length.0 > 0 && length.0.is_multiple_of(STEP_BLOCKS),
        "a band of {length:?}, not whole MiB"
    );
    length.0 / STEP_BLOCKS
}

/// As many of the lengths, given in steps, as hold `total`; the last is cut to fit.
fn cut(total: BlockCount, lengths: impl Iterator<Item = u64>) -> BandTable {
    assert!(total.0 > 0, "bands without blocks");
    let mut left = total.0;
    let mut table = Vec::new();
    for length in lengths {
        let length = (length * STEP_BLOCKS).min(left);
        table.push(BlockCount(length));
        left -= length;
        if left == 0 {
            break;
        }
    }
    BandTable::new(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::BandId;

    const MIB: u64 = STEP_BLOCKS;

    fn lengths(table: &BandTable) -> Vec<u64> {
        (0..table.bands())
            .map(|band| table.extent_of(BandId(band)).blocks.0)
            .collect()
    }

    #[test]
    fn uniform_bands_cover_the_range_and_hold_the_total() {
        let total = BlockCount(100_000 * MIB + 7);
        let table = bands_uniform(total, BlockCount(17 * MIB), BlockCount(36 * MIB), 1);
        assert_eq!(table.blocks(), total);
        let mut lengths = lengths(&table);
        lengths.pop();
        assert_eq!(lengths.iter().min(), Some(&(17 * MIB)));
        assert_eq!(lengths.iter().max(), Some(&(36 * MIB)));
        let mean = lengths.iter().sum::<u64>() / lengths.len() as u64;
        assert!((26 * MIB..27 * MIB).contains(&mean), "mean {mean}");
        let other = bands_uniform(total, BlockCount(17 * MIB), BlockCount(36 * MIB), 2);
        assert_ne!(table, other);
    }

    #[test]
    fn fixed_bands_end_in_a_shorter_one() {
        assert_eq!(
            lengths(&bands_fixed(BlockCount(10), BlockCount(4))),
            [4, 4, 2]
        );
        assert_eq!(lengths(&bands_fixed(BlockCount(8), BlockCount(4))), [4, 4]);
    }

    #[test]
    fn ascending_bands_come_in_equal_classes() {
        let total = BlockCount(2 * (2 + 3 + 4) * MIB);
        let table = bands_ascending(total, BlockCount(2 * MIB), BlockCount(4 * MIB));
        assert_eq!(lengths(&table), [2, 2, 3, 3, 4, 4].map(|mib| mib * MIB));
    }
}
