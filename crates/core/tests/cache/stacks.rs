//! Caches of all policies over memory disks, for the tests.

use crate::common::check::disk_geometry;
use crate::common::harness::MemoryDisk;
use imbrex_core::cache::{
    Cache, CacheMode, CacheSettings, OpenZones, PeriodCounter, PlainPolicy, PolicySettings,
    PopularityWindow, PoreSettings, RideSettings, SacSettings, Split, ZoneSettings,
};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::map::BandTable;
use imbrex_core::operation::Durability;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::units::BlockCount;
use imbrex_core::words::Words;
use std::sync::Arc;

/// Bands of unequal length over `blocks` blocks.
pub fn bands(blocks: u64) -> Arc<BandTable> {
    let mut left = blocks;
    let lengths = [7, 12, 5, 9].iter().cycle().map_while(move |length| {
        let band = left.min(*length);
        left -= band;
        (band > 0).then_some(BlockCount(band))
    });
    Arc::new(BandTable::new(lengths))
}

/// PORE with zones of 8 blocks and short periods.
pub fn pore(open_zones: OpenZones) -> PoreSettings {
    PoreSettings {
        zones: ZoneSettings::Equal(8),
        batch: 1,
        period_blocks: 4,
        period_counter: PeriodCounter::WriteMiss,
        popularity_window: PopularityWindow::Period,
        access_floor: 1,
        open_zones,
    }
}

/// SAC with two or three zones open, in small batches.
pub fn sac() -> SacSettings {
    SacSettings { zones: ZoneSettings::Equal(8), log_blocks: Some(24), batch: 3 }
}

/// The policies that can run without knowing the future, over `blocks` blocks.
pub fn policies(blocks: u64) -> Vec<(&'static str, PolicySettings)> {
    let band_table = PolicySettings::LruBand { bands: Some(bands(blocks)), batch: None };
    let ride = PolicySettings::Ride(RideSettings {
        zones: ZoneSettings::Equal(8),
        log_blocks: Some(4),
        batch: 3,
        rewrite_over_read: 4,
        split: Split::TwoGhosts,
    });
    let rivals = RIVALS.map(|name| (name, rival(name)));
    let ours = [
        ("ride", ride),
        ("lru", PolicySettings::LRU),
        ("most", PolicySettings::Most(ZoneSettings::Equal(8))),
        ("sac", PolicySettings::Sac(sac())),
        ("lru-band", band_table),
        ("pore-cf", PolicySettings::Pore(pore(OpenZones::Cf))),
        ("pore-pf", PolicySettings::Pore(pore(OpenZones::Pf))),
        ("pore-bl", PolicySettings::Pore(pore(OpenZones::Bl))),
    ];
    ours.into_iter().chain(rivals).collect()
}

/// The well-known policies beside LRU, by their words.
pub const RIVALS: [&str; 6] = ["fifo", "clock", "sieve", "s3-fifo", "2q", "arc"];

/// A policy without settings by its word.
pub fn rival(word: &str) -> PolicySettings {
    PolicySettings::Plain(PlainPolicy::of_word(word).expect("a policy"))
}

/// Settings of a small cache.
pub fn settings(
    capacity_blocks: u64,
    destage_slots_max: u32,
    mode: CacheMode,
    policy: PolicySettings,
) -> CacheSettings {
    CacheSettings {
        durability: None,
        destage: Durability::Durable,
        capacity_blocks,
        spare_slots: None,
        destage_slots_max,
        mode,
        policy,
    }
}

/// A cache whose flash is disk 0 and whose backing is disk 1, and the cache's node.
pub fn cache_stack(
    settings: CacheSettings,
    blocks: u64,
    seed: u64,
    latency_max_ns: u64,
) -> (Stack, Vec<MemoryDisk>, NodeId) {
    let flash_blocks = settings.capacity_blocks + u64::from(settings.destage_slots_max);
    let disk = |blocks, media, seed| {
        let geometry = Geometry::plain(BlockCount(blocks), media);
        MemoryDisk::new(geometry, seed, latency_max_ns)
    };
    let flash = disk(flash_blocks, Media::SolidState, 2 * seed);
    let backing = disk(blocks, Media::Conventional, 2 * seed + 1);
    let mut builder = StackBuilder::new(seed);
    let below = [
        builder.disk(disk_geometry(&flash)),
        builder.disk(Geometry { bands: Some(bands(blocks)), ..disk_geometry(&backing) }),
    ];
    let (cache, geometry) =
        Cache::new(settings, builder.geometry(below[0]), builder.geometry(below[1]))
            .expect("settings that fit");
    let node = builder.layer(Box::new(cache), geometry, &below);
    (builder.build(node), vec![flash, backing], node)
}
