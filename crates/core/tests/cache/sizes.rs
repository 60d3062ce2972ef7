//! Which sizes a cache accepts, and what it says of others.

use crate::stacks::settings;
use imbrex_core::cache::{Cache, CacheMode, CacheSettings, PolicySettings};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::units::BlockCount;

/// The first block that a cache has no address for.
const ADDRESSES: u64 = 1 << 52;

fn plain(capacity_blocks: u64, spare_slots: Option<u64>) -> CacheSettings {
    let settings = settings(capacity_blocks, 2, CacheMode::ReadWrite, PolicySettings::LRU);
    CacheSettings { spare_slots, ..settings }
}

/// What is said against a cache with so many blocks of flash over so many of a disk; nothing when it is built.
fn refusal(settings: CacheSettings, flash: u64, backing: u64) -> Option<String> {
    let flash = Geometry::plain(BlockCount(flash), Media::SolidState);
    let backing = Geometry::plain(BlockCount(backing), Media::Conventional);
    Cache::new(settings, &flash, &backing).err().map(|error| error.to_string())
}

#[test]
fn what_does_not_fit_is_an_error_and_what_just_fits_is_none() {
    let too_many =
        "a cache over a device of 4503599627370497 blocks; accepted: up to 4503599627370496";
    for (case, blocks, words) in [
        ((8, None), (10, ADDRESSES), None),
        ((8, None), (10, ADDRESSES + 1), Some(too_many)),
        ((0, None), (10, 100), Some("capacity_blocks is 0: a cache holds at least 1 block")),
        (
            (8, None),
            (9, 100),
            Some("capacity_blocks 8 and destage_slots_max 2 do not fit a flash device of 9 blocks"),
        ),
        ((8, Some(5)), (15, 100), None),
        (
            (8, Some(5)),
            (14, 100),
            Some("5 spare slots are 1 more than a flash device of 14 blocks has room for"),
        ),
    ] {
        let refused = refusal(plain(case.0, case.1), blocks.0, blocks.1);
        assert_eq!(refused.as_deref(), words, "{case:?} on {blocks:?}");
    }
}
