//! What the conformance suite asks of a layer: small, mixed, decided by a seed.

use crate::common::oracle::Ask;
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::zone::{ZoneGeometry, ZoneId, ZoneModel};

/// Longest request in blocks.
pub const LONGEST: u64 = 8;
/// Longest pause: enough to clean a band.
const REST_NS_MAX: u64 = 40_000;
/// Enough to clean everything.
const LONG_REST_NS: u64 = 1_000_000_000;

/// So many asks that the device takes: at the write pointers of its zones where it must be so.
pub fn asks(seed: u64, count: u64, above: &Geometry) -> Vec<Ask> {
    let rng = Rng::new(seed, 51);
    match &above.zones {
        Some(zones) if zones.model == ZoneModel::HostManaged => at_pointers(rng, count, zones),
        _ => anywhere(rng, count, above.blocks.0),
    }
}

/// What only zones are asked.
pub fn zone_commands() -> Vec<Ask> {
    let commands = [
        Operation::ZoneOpen,
        Operation::ZoneClose,
        Operation::ZoneFinish,
        Operation::ZoneReset,
        Operation::ZoneReport,
    ];
    commands.map(Ask::Refused).into()
}

/// Every block is read, when there has been time for all work of the layer's own: after a request
/// that says that the host is there again.
pub fn look(above: &Geometry) -> Vec<Ask> {
    let one = |lba| Ask::Read(Extent::new(lba, 1));
    let blocks = (0..above.blocks.0).map(one);
    [one(0), Ask::Rest(LONG_REST_NS)].into_iter().chain(blocks).collect()
}

/// Every block is written.
pub fn fill(above: &Geometry) -> Vec<Ask> {
    (0..above.blocks.0).map(|lba| Ask::Write(Extent::new(lba, 1))).collect()
}

/// Requests at random, half of them to a sixth of the device, and streams.
fn anywhere(mut rng: Rng, count: u64, blocks: u64) -> Vec<Ask> {
    let mut next_in_stream = blocks;
    let mut ask = |_| {
        let length = 1 + rng.below(LONGEST);
        let span = blocks / (1 + 5 * rng.below(2));
        let extent = Extent::new(rng.below(span - length + 1), length);
        match rng.below(24) {
            0..=5 => Ask::Read(extent),
            6..=12 => Ask::Write(extent),
            13..=16 => {
                if next_in_stream >= blocks || rng.below(10) == 0 {
                    next_in_stream = rng.below(blocks);
                }
                let start = next_in_stream;
                let length = length.min(blocks - start);
                next_in_stream += length;
                Ask::Write(Extent::new(start, length))
            }
            17 | 18 => Ask::Forced(extent),
            19 => Ask::Trim(extent),
            20 => Ask::ForcedTrim(extent),
            21 => Ask::Rest(rng.below(REST_NS_MAX)),
            _ => Ask::Flush,
        }
    };
    (0..count).map(&mut ask).collect()
}

/// Writes at the write pointers of random zones, and reads below them.
///
/// A read past a write pointer would hold back a write to what it reads, and the write behind that
/// one would come first.
fn at_pointers(mut rng: Rng, count: u64, zones: &ZoneGeometry) -> Vec<Ask> {
    let mut pointers = vec![0; zones.zones() as usize];
    let mut ask = |_| {
        let zone = ZoneId(rng.below(pointers.len() as u64) as u32);
        let (whole, pointer) = (zones.extent_of(zone), &mut pointers[zone.0 as usize]);
        if zones.is_conventional(zone) {
            *pointer = whole.blocks.0;
        }
        let what = rng.below(20);
        let (start, end) = match (what, zones.is_conventional(zone)) {
            (0..=11, false) => (*pointer, whole.blocks.0),
            _ => (rng.below((*pointer).max(1)), *pointer),
        };
        if start >= end {
            return Ask::Flush;
        }
        let length = 1 + rng.below((end - start).min(LONGEST));
        let extent = Extent::new(whole.start.0 + start, length);
        if what < 12 {
            *pointer = (*pointer).max(start + length);
        }
        match what {
            0..=9 => Ask::Write(extent),
            10 => Ask::Forced(extent),
            11 => Ask::Trim(extent),
            12..=17 => Ask::Read(extent),
            18 => Ask::Rest(rng.below(REST_NS_MAX)),
            _ => Ask::Flush,
        }
    };
    (0..count).map(&mut ask).collect()
}
