//! A write-back cache under test.

use super::{Assembly, BAND_BLOCKS, Tree};
use imbrex_core::cache::codec::RECORD_KINDS;
use imbrex_core::cache::{
    Cache, CacheMode, CacheSettings, OpenZones, PeriodCounter, PolicySettings, PopularityWindow,
    PoreSettings, RideSettings, Split, ZoneSettings,
};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::operation::Durability;
use imbrex_core::rng::Rng;
use imbrex_core::stack::NodeId;

/// Which block a cache under test gives up.
#[derive(Clone, Copy)]
pub enum Policy {
    /// PORE, with short periods.
    Pore,
    /// The least recently used.
    Lru,
    /// The band of it.
    LruBand,
    /// Where the rewrite is already paid for, in small batches.
    Ride,
}

/// The name of a kind of record on the format's page.
pub fn record_name(kind: u8) -> Option<&'static str> {
    let known = RECORD_KINDS.iter().find(|(known, _)| *known == kind);
    known.map(|(_, name)| *name)
}

/// Adds a cache over what it stands on.
pub fn build(assembly: &mut Assembly, policy: Policy, flash: &Tree, backing: &Tree) -> NodeId {
    let settings = settings(policy, &mut assembly.rng);
    let flash = assembly.node(flash, Some(settings.flash_blocks()));
    let backing = assembly.node(backing, None);
    let builder = &mut assembly.builder;
    let geometries = (builder.geometry(flash), builder.geometry(backing));
    let (cache, told) =
        Cache::new(settings, geometries.0, geometries.1).unwrap_or_else(|error| panic!("{error}"));
    builder.layer(Box::new(cache), told, &[flash, backing])
}

/// The settings of a cache.
pub fn settings(policy: Policy, rng: &mut Rng) -> CacheSettings {
    let policy = match policy {
        Policy::Pore => PolicySettings::Pore(PoreSettings {
            zones: ZoneSettings::Equal(BAND_BLOCKS / 2),
            batch: 1,
            period_blocks: 12,
            period_counter: PeriodCounter::WriteMiss,
            popularity_window: PopularityWindow::Period,
            access_floor: 1,
            open_zones: OpenZones::Bl,
        }),
        Policy::Lru => PolicySettings::Lru,
        Policy::LruBand => PolicySettings::LruBand { bands: None, batch: None },
        Policy::Ride => PolicySettings::Ride(RideSettings {
            zones: ZoneSettings::Bands,
            log_blocks: None,
            batch: 3,
            rewrite_over_read: 4,
            split: Split::Adaptive,
        }),
    };
    let mode = match rng.below(2) {
        0 => CacheMode::ReadWrite,
        _ => CacheMode::WriteOnly,
    };
    CacheSettings {
        capacity_blocks: 12 + rng.below(16),
        destage_slots_max: 1 + rng.below(6) as u32,
        destage: Durability::Durable,
        mode,
        policy,
        durability: Some(DurabilitySettings {
            ring_blocks: 8 + rng.below(3),
            unflushed_blocks_max: 8 + rng.below(24),
        }),
    }
}
