//! Write-back caches.

use super::{BufferBound, DURABILITY, JOURNAL_PAGES, Kind};
use imbrex_core::cache::{
    Cache, CacheMode, CacheSettings, OpenZones, PeriodCounter, PlainPolicy, PolicySettings,
    PopularityWindow, PoreSettings, RideSettings, SacSettings, Split, ZoneLruSettings,
    ZoneSettings,
};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::map::BandTable;
use imbrex_core::operation::Durability;
use imbrex_core::units::BlockCount;
use imbrex_core::words::Words;
use imbrex_core::zone::{ZoneGeometry, ZoneModel};
use std::sync::Arc;

pub const BACKING_BLOCKS: u64 = 130;
const CAPACITY_BLOCKS: u64 = 12;
const DESTAGE_SLOTS: u32 = 3;

pub fn with_policy(policy: PolicySettings) -> CacheSettings {
    CacheSettings {
        durability: None,
        destage: Durability::Durable,
        capacity_blocks: CAPACITY_BLOCKS,
        spare_slots: None,
        destage_slots_max: DESTAGE_SLOTS,
        mode: CacheMode::ReadWrite,
        policy,
    }
}

pub fn lru() -> CacheSettings {
    with_policy(PolicySettings::LRU)
}

/// A policy without settings, by its word.
pub fn plain(word: &str) -> CacheSettings {
    with_policy(PolicySettings::Plain(PlainPolicy::of_word(word).expect("a policy")))
}

pub fn lru_band() -> CacheSettings {
    let lengths = [7, 12, 5, 9].iter().cycle().take(16);
    let bands = BandTable::new(lengths.map(|length| BlockCount(*length)));
    with_policy(PolicySettings::LruBand { bands: Some(Arc::new(bands)), batch: None })
}

/// PORE with short zones and periods.
pub fn pore(open_zones: OpenZones) -> CacheSettings {
    with_policy(PolicySettings::Pore(PoreSettings {
        zones: ZoneSettings::Equal(8),
        batch: 1,
        period_blocks: 4,
        period_counter: PeriodCounter::WriteMiss,
        popularity_window: PopularityWindow::Period,
        access_floor: 1,
        open_zones,
    }))
}

/// MOST over small zones.
pub fn most() -> CacheSettings {
    with_policy(PolicySettings::Most(ZoneSettings::Equal(8)))
}

/// SAC with two zones open, in small batches.
pub fn sac() -> CacheSettings {
    let zones = ZoneSettings::Equal(8);
    with_policy(PolicySettings::Sac(SacSettings { zones, log_blocks: Some(16), batch: 3 }))
}

/// RIDE over a small log, in small batches.
pub fn ride(split: Split) -> CacheSettings {
    with_policy(PolicySettings::Ride(RideSettings {
        zones: ZoneSettings::Equal(8),
        log_blocks: Some(6),
        batch: 3,
        rewrite_over_read: 4,
        split,
    }))
}

/// The same with up to 3 dirty blocks of a zone or a band leaving together.
pub fn in_batches(mut settings: CacheSettings) -> CacheSettings {
    match &mut settings.policy {
        PolicySettings::Pore(pore) => pore.batch = 3,
        PolicySettings::LruBand { batch, .. } => *batch = Some(3),
        policy => panic!("{policy:?} has no batches"),
    }
    settings
}

pub fn durable(settings: CacheSettings) -> CacheSettings {
    CacheSettings { durability: Some(DURABILITY), ..settings }
}

/// A zone-LRU buffer over zones of so many blocks, which puts zones together in so many slots.
pub fn zone_buffer(zone: u64, staging_blocks: u32) -> CacheSettings {
    let policy = PolicySettings::ZoneLru(ZoneLruSettings {
        zones: ZoneSettings::Equal(zone),
        rewrite_blocks: 3,
        staging_blocks,
    });
    CacheSettings { mode: CacheMode::WriteAllocate, ..with_policy(policy) }
}

/// A disk with host-aware zones that are there after a power cut, the first of them conventional.
pub fn zoned_backing() -> Geometry {
    let zones = ZoneGeometry {
        model: ZoneModel::HostAware,
        blocks: BlockCount(BACKING_BLOCKS),
        zone_blocks: BlockCount(20),
        conventional_zones: 1,
        open_max: None,
        active_max: None,
        optimal_open: None,
        optimal_non_sequential: None,
    };
    let plain = Geometry::plain(BlockCount(BACKING_BLOCKS), Media::Conventional);
    Geometry { zones: Some(Arc::new(zones)), ..plain }
}

/// A cache whose flash is port 0 and whose backing is port 1.
pub fn cache(settings: CacheSettings) -> Kind {
    cache_over(settings, Geometry::plain(BlockCount(BACKING_BLOCKS), Media::Conventional))
}

/// A cache over a backing.
pub fn cache_over(settings: CacheSettings, backing: Geometry) -> Kind {
    let flash = Geometry::plain(settings.flash_blocks(), Media::SolidState);
    let is_durable = settings.durability.is_some();
    let staging = match &settings.policy {
        PolicySettings::ZoneLru(buffer) => u64::from(buffer.staging_blocks),
        _ => 0,
    };
    let slots = settings.capacity_blocks + 2 * u64::from(DESTAGE_SLOTS).max(8) + staging;
    let journal = DURABILITY.ring_blocks + JOURNAL_PAGES;
    let buffers = BufferBound {
        blocks: slots + if is_durable { journal } else { 0 },
        because: "a block on its way into flash or below has a slot; a durable one writes its \
                  journal and the pages of a checkpoint beside",
    };
    // The pages behind the served blocks have checksums.
    let served = BACKING_BLOCKS - CacheSettings::reserved_blocks(settings.durability);
    let kind = Kind::new(vec![flash, backing], is_durable, buffers, move |below| {
        Cache::new(settings.clone(), &below[0], &below[1]).expect("settings that fit")
    });
    Kind { whole_blocks: vec![0, served], ..kind }
}
