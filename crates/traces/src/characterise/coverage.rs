//! Which blocks and sectors were read, written and updated.

use std::collections::HashMap;

use super::access::{Access, BLOCK_BYTES, BLOCK_SECTORS, SECTOR_BYTES};
use super::method::Method;
use super::sampled::{Sampled, hash};

/// Blocks whose marks are kept together: a bit each of a word, 256 KiB of address space.
const GROUP_BLOCKS: u64 = 64;
/// Band of the PORE paper's emulator, by which its Table I counts footprints: a whole number of groups.
const BAND_BYTES: u64 = 18 << 20;
const BAND_BLOCKS: u64 = BAND_BYTES / BLOCK_BYTES;

/// Marks of 64 neighbouring blocks, a bit each.
#[derive(Default)]
struct Group {
    read: u64,
    written: u64,
    updated: u64,
    /// Blocks that are covered in part and whose sectors are in `partial`; all sectors of the others are as the marks say.
    partial: u64,
}

/// What was covered. Groups are sampled when there are too many.
pub(super) struct Coverage {
    groups: Sampled<Group>,
    /// Sectors read and written of blocks that were not read or written as a whole.
    partial: HashMap<(u16, u64), [u8; 2]>,
    partial_max: usize,
    /// Bands touched, and whether they were written.
    bands: Sampled<bool>,
    last_band: Option<(u16, u64, bool)>,
    updates: u64,
}

/// The sums over everything covered.
#[derive(Default)]
pub(super) struct Covered {
    pub(super) read_blocks: u64,
    pub(super) written_blocks: u64,
    pub(super) updated_blocks: u64,
    pub(super) blocks: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) bytes: u64,
    pub(super) written_band_bytes: u64,
    pub(super) band_bytes: u64,
    /// Writes to at least one block written before.
    pub(super) updates: u64,
}

impl Coverage {
    /// Keeps at most `groups_max` groups, and the sectors of at most half as many blocks.
    pub(super) fn new(groups_max: usize) -> Self {
        Self {
            groups: Sampled::new(groups_max),
            partial: HashMap::new(),
            partial_max: (groups_max / 2).max(1),
            // There are never more bands than groups, so bands are exact as long as groups are.
            bands: Sampled::new(groups_max),
            last_band: None,
            updates: 0,
        }
    }

    /// Marks what a read or write covers.
    pub(super) fn add(&mut self, access: &Access) {
        if access.blocks == 0 {
            return;
        }
        let last_block = access.first_block + access.blocks - 1;
        let (first, last) = (access.first_block / GROUP_BLOCKS, last_block / GROUP_BLOCKS);
        let weight_before = self.groups.weight();
        let mut updated = false;
        for group in first..=last {
            let start = group * GROUP_BLOCKS;
            let low = access.first_block.max(start) - start;
            let high = last_block.min(start + GROUP_BLOCKS - 1) - start;
            let bits = (u64::MAX << low) & (u64::MAX >> (GROUP_BLOCKS - 1 - high));
            // A request is judged by the group in which it starts, which the sample takes or not; where nothing is left
            // out, by all of them.
            let judges = group == first || self.groups.weight() == 1;
            updated |= self.mark(access, group, bits) && judges;
        }
        if updated {
            self.updates += self.groups.weight();
        }
        self.trim_partial(weight_before);
        self.mark_bands(access, last_block);
    }

    /// Marks the blocks `bits` of a group; true if a write met one that was written before.
    fn mark(&mut self, access: &Access, number: u64, bits: u64) -> bool {
        let Some(group) = self.groups.entry(access.device, number) else {
            return false;
        };
        let updated = if access.write { group.written & bits } else { 0 };
        group.updated |= updated;
        let edges = edges(access);
        if group.partial & bits != 0 || edges.iter().any(|edge| edge.1 != 0xff) {
            let mut rest = bits;
            while rest != 0 {
                let bit = rest & rest.wrapping_neg();
                rest ^= bit;
                let block = number * GROUP_BLOCKS + u64::from(bit.trailing_zeros());
                let covered = edges.iter().find(|edge| edge.0 == block);
                let sectors = covered.map_or(0xff, |edge| edge.1);
                if sectors != 0xff || group.partial & bit != 0 {
                    let place = (access.device, block);
                    mark_sectors(group, &mut self.partial, place, bit, access.write, sectors);
                }
            }
        }
        if access.write {
            group.written |= bits;
        } else {
            group.read |= bits;
        }
        updated != 0
    }

    /// Keeps the sectors within their bound, and only of blocks whose group is kept.
    fn trim_partial(&mut self, weight_before: u64) {
        while self.partial.len() > self.partial_max {
            self.groups.halve();
            self.forget_partial();
        }
        if self.groups.weight() != weight_before {
            self.forget_partial();
        }
    }

    fn forget_partial(&mut self) {
        let groups = &self.groups;
        self.partial.retain(|&(device, block), _| groups.takes(hash(device, block / GROUP_BLOCKS)));
    }

    fn mark_bands(&mut self, access: &Access, last_block: u64) {
        let (first, last) = (access.first_block / BAND_BLOCKS, last_block / BAND_BLOCKS);
        for band in first..=last {
            let mark = (access.device, band, access.write);
            if self.last_band == Some(mark) {
                continue;
            }
            self.last_band = Some(mark);
            if let Some(written) = self.bands.entry(access.device, band) {
                *written |= access.write;
            }
        }
    }

    /// The sums, scaled up if groups were left out.
    pub(super) fn finish(&self) -> Covered {
        let mut sums = Covered::default();
        let blocks = |bits: u64| u64::from(bits.count_ones());
        for slot in self.groups.slots() {
            let group = &slot.value;
            sums.read_blocks += blocks(group.read);
            sums.written_blocks += blocks(group.written);
            sums.updated_blocks += blocks(group.updated);
            sums.blocks += blocks(group.read | group.written);
            let whole = !group.partial;
            sums.read_bytes += blocks(group.read & whole) * BLOCK_BYTES;
            sums.written_bytes += blocks(group.written & whole) * BLOCK_BYTES;
            sums.bytes += blocks((group.read | group.written) & whole) * BLOCK_BYTES;
        }
        let bytes = |sectors: u8| u64::from(sectors.count_ones()) * SECTOR_BYTES;
        for [read, written] in self.partial.values() {
            sums.read_bytes += bytes(*read);
            sums.written_bytes += bytes(*written);
            sums.bytes += bytes(read | written);
        }
        let weight = self.groups.weight();
        for sum in [
            &mut sums.read_blocks,
            &mut sums.written_blocks,
            &mut sums.updated_blocks,
            &mut sums.blocks,
            &mut sums.read_bytes,
            &mut sums.written_bytes,
            &mut sums.bytes,
        ] {
            *sum *= weight;
        }
        let band_bytes = BAND_BYTES * self.bands.weight();
        let written = self.bands.slots().iter().filter(|slot| slot.value).count();
        sums.band_bytes = self.bands.slots().len() as u64 * band_bytes;
        sums.written_band_bytes = written as u64 * band_bytes;
        sums.updates = self.updates;
        sums
    }

    /// How it was found, and the standard error of the number of distinct blocks: that of a sum over groups each of which
    /// was taken with the same probability.
    pub(super) fn method(&self) -> Method {
        let weight = self.groups.weight();
        if weight == 1 {
            return Method::default();
        }
        let (mut sum, mut squares) = (0.0, 0.0);
        for slot in self.groups.slots() {
            let blocks = f64::from((slot.value.read | slot.value.written).count_ones());
            sum += blocks;
            squares += blocks * blocks;
        }
        let error = 100.0 * ((1.0 - 1.0 / weight as f64) * squares).sqrt() / f64::max(sum, 1.0);
        Method::sample("groups of 64 blocks", weight, error)
    }
}

/// The first and the last block with the sectors that are covered of each.
fn edges(access: &Access) -> [(u64, u8); 2] {
    let sectors = |block: u64| {
        let start = block * BLOCK_SECTORS;
        let low = access.first_sector.max(start) - start;
        let high = access.end_sector.min(start + BLOCK_SECTORS) - start;
        (0xffu16 << low) as u8 & (0xffu16 >> (BLOCK_SECTORS - high)) as u8
    };
    let last = access.first_block + access.blocks - 1;
    [(access.first_block, sectors(access.first_block)), (last, sectors(last))]
}

/// Marks sectors of one block, whose bit in its group is `bit`.
fn mark_sectors(
    group: &mut Group,
    partial: &mut HashMap<(u16, u64), [u8; 2]>,
    place: (u16, u64),
    bit: u64,
    write: bool,
    sectors: u8,
) {
    let all = |marks: u64| if marks & bit == 0 { 0 } else { 0xff };
    let mut masks = if group.partial & bit == 0 {
        [all(group.read), all(group.written)]
    } else {
        partial[&place]
    };
    masks[usize::from(write)] |= sectors;
    if masks.iter().all(|&mask| mask == 0 || mask == 0xff) {
        if group.partial & bit != 0 {
            partial.remove(&place);
            group.partial &= !bit;
        }
    } else {
        partial.insert(place, masks);
        group.partial |= bit;
    }
}
