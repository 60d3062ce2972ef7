//! How long the bands of a drive-managed disk are (PORE, MSST 2017, section V; Skylight, FAST 2015).

use crate::map::BandTable;
use crate::rng::Rng;
use crate::units::BlockCount;

/// Blocks in 1 MiB, the step of published band lengths.
const MIB_BLOCKS: u64 = 256;

/// Bands with lengths drawn independently and uniformly from `smallest ..= largest`, in the order
/// drawn, until they hold `total`; the last is cut to fit. Lengths are whole MiB when both limits
/// are, whole blocks otherwise. The papers give 17 to 36 MiB.
///
/// Panics when `smallest` is zero or above `largest`, or `total` is zero.
pub fn bands_uniform(
    total: BlockCount,
    smallest: BlockCount,
    largest: BlockCount,
    seed: u64,
) -> BandTable {
    let step = step(smallest, largest);
    let (smallest, choices) = (smallest.0, (largest.0 - smallest.0) / step + 1);
    let mut rng = Rng::new(seed, 0);
    cut(total, core::iter::repeat_with(|| smallest + rng.below(choices) * step))
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

/// Bands of every length that [`bands_uniform`] draws from, the same number of each, all the
/// smallest first, as the prototype of PORE lays them out; enough to hold `total`, the last cut to
/// fit.
///
/// Panics as [`bands_uniform`] does.
pub fn bands_ascending(total: BlockCount, smallest: BlockCount, largest: BlockCount) -> BandTable {
    let step = step(smallest, largest);
    let classes = (smallest.0..=largest.0).step_by(step as usize);
    let of_each = total.0.div_ceil(classes.clone().sum()) as usize;
    cut(total, classes.flat_map(|length| core::iter::repeat_n(length, of_each)))
}

/// By how much the lengths differ.
fn step(smallest: BlockCount, largest: BlockCount) -> u64 {
    assert!(smallest.0 > 0 && smallest <= largest, "bands of {smallest:?} to {largest:?}");
    let whole_mib = [smallest, largest].iter().all(|length| length.0.is_multiple_of(MIB_BLOCKS));
    if whole_mib { MIB_BLOCKS } else { 1 }
}

/// As many of the lengths as hold `total`; the last is cut to fit.
fn cut(total: BlockCount, mut lengths: impl Iterator<Item = u64>) -> BandTable {
    assert!(total.0 > 0, "bands without blocks");
    let mut left = total.0;
    BandTable::new(core::iter::from_fn(|| {
        let length = lengths.next().filter(|_| left > 0)?.min(left);
        left -= length;
        Some(BlockCount(length))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::BandId;
    use alloc::vec::Vec;

    const MIB: u64 = MIB_BLOCKS;

    fn lengths(table: &BandTable) -> Vec<u64> {
        (0..table.bands()).map(|band| table.extent_of(BandId(band)).blocks.0).collect()
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
    fn limits_that_are_not_whole_mib_give_lengths_in_blocks() {
        let table = bands_uniform(BlockCount(5_000), BlockCount(16), BlockCount(18), 1);
        let mut lengths = lengths(&table);
        lengths.pop();
        lengths.sort_unstable();
        lengths.dedup();
        assert_eq!(lengths, [16, 17, 18]);
    }

    #[test]
    fn fixed_bands_end_in_a_shorter_one() {
        assert_eq!(lengths(&bands_fixed(BlockCount(10), BlockCount(4))), [4, 4, 2]);
        assert_eq!(lengths(&bands_fixed(BlockCount(8), BlockCount(4))), [4, 4]);
    }

    #[test]
    fn ascending_bands_come_in_equal_classes() {
        let total = BlockCount(2 * (2 + 3 + 4) * MIB);
        let table = bands_ascending(total, BlockCount(2 * MIB), BlockCount(4 * MIB));
        assert_eq!(lengths(&table), [2, 2, 3, 3, 4, 4].map(|mib| mib * MIB));
    }
}
