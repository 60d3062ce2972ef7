//! What a record does to the maps: the same when it is appended and when it is replayed.

use super::block_map::BlockMap;
use super::checksums::Checksums;
use super::salvage::Salvage;
use super::shape::Shape;
use super::table::Table;
use crate::extent::Extent;

/// Blocks read as zeroes from now on. Where they reach the end of a band, its write pointer says so;
/// elsewhere the set of zeroed blocks does.
pub(super) fn apply_zero(
    extent: Extent,
    shape: &Shape,
    blocks: &mut BlockMap,
    checksums: &mut Checksums,
) {
    blocks.log.supersede(extent);
    blocks.lost.remove(extent);
    for band in shape.bands_of(extent) {
        let whole = shape.bands.extent_of(band);
        let part = extent.intersection(whole).expect("a band of the extent");
        let readable = Extent::new(whole.start.0, blocks.readable_blocks(band));
        let reaches_end = part.end() >= readable.end();
        // The pointer of a band that is rewritten in stretches only rises.
        if reaches_end && !blocks.is_amid_stretches(band) {
            blocks.lower_pointer(band, part.start.offset_from(whole.start));
            blocks.zeroed.remove(part);
            let pointer = blocks.readable_blocks(band);
            checksums.open.truncate(band, pointer);
        } else if let Some(hidden) = part.intersection(readable) {
            blocks.zeroed.insert(hidden);
        }
    }
}

/// The scratch band holds the merged copy of blocks of a band: with the new table and what lies
/// before and behind them, the band can be read from there.
pub(super) fn apply_scratch(
    salvage: Salvage,
    table: Table,
    shape: &Shape,
    blocks: &mut BlockMap,
    checksums: &mut Checksums,
) {
    let band = salvage.band;
    blocks.salvage = Some(salvage);
    checksums.apply_table(band, table);
    blocks.raise_pointer(band, salvage.end());
    let start = shape.bands.extent_of(band).start.0;
    blocks.zeroed.remove(Extent::new(start + salvage.from, salvage.blocks));
}
