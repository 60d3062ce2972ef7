//! At queue depth 1 the timed cache counts and writes exactly what the untimed algorithm does.

use crate::common::harness::{Step, play, random_steps};
use crate::reference::{Outcome, Reference};
use crate::stacks::{RIVALS, bands, cache_stack, policies, pore, settings};
use imbrex_core::cache::{
    CacheMode, CacheSettings, OpenZones, PeriodCounter, PolicySettings, PopularityWindow,
    PoreSettings, ZoneLruSettings, ZoneSettings, next_uses,
};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::extent::Extent;
use imbrex_core::units::Lba;

pub const BLOCKS: u64 = 240;

/// The steps that [`play`] plays: the given ones, then a read of everything.
pub fn with_final_reads(steps: Vec<Step>) -> Vec<Step> {
    with_final_reads_of(BLOCKS, steps)
}

/// The same over a device of so many blocks.
pub fn with_final_reads_of(blocks: u64, mut steps: Vec<Step>) -> Vec<Step> {
    let lengths = (0..blocks).step_by(16).map(|b| Extent::new(b, 16.min(blocks - b)));
    steps.extend(lengths.map(Step::Read));
    steps
}

/// Runs the cache at queue depth 1 over disks that finish in any order.
pub fn run(settings: CacheSettings, seed: u64, steps: Vec<Step>) -> Outcome {
    run_over(settings, BLOCKS, seed, steps)
}

/// The same over a device of so many blocks.
pub fn run_over(settings: CacheSettings, blocks: u64, seed: u64, steps: Vec<Step>) -> Outcome {
    let (stack, disks, cache) = cache_stack(settings, blocks, seed, 1_000);
    let medium = disks[1].medium();
    let engine = play(stack, disks, steps, 1).expect("every block reads what was written");
    let counts = engine.stack.counts(cache);
    let writes = &medium.borrow().write_log;
    Outcome {
        read_hits: counts.counter(Counter::ReadHits),
        write_hits: counts.counter(Counter::WriteHits),
        read_lookups: counts.counter(Counter::ReadLookups),
        write_lookups: counts.counter(Counter::WriteLookups),
        dirty_evictions: counts.counter(Counter::DirtyEvictions),
        clean_evictions: counts.counter(Counter::CleanEvictions),
        forced_evictions: counts.counter(Counter::ForcedEvictions),
        region_divisions: counts.counter(Counter::RegionDivisions),
        bypassed: counts.counter(Counter::CacheBypassedBlocks),
        cached: counts.gauge(Gauge::CachedBlocks),
        dirty: counts.gauge(Gauge::DirtyBlocks),
        written_below: writes.iter().flat_map(|e| e.start.0..e.end().0).collect(),
    }
}

fn assert_exact(name: &str, settings: CacheSettings, seed: u64) -> Outcome {
    let steps = random_steps(seed, 400, BLOCKS, 6);
    let expected =
        Reference::run(settings.clone(), bands(BLOCKS), &with_final_reads(steps.clone()));
    let found = run(settings, seed, steps);
    assert_eq!(found, expected, "{name}, seed {seed}");
    found
}

pub fn capacity(seed: u64) -> u64 {
    [1, 3, 8, 17, 40, 64][(seed % 6) as usize]
}

pub const MODES: [CacheMode; 3] =
    [CacheMode::ReadWrite, CacheMode::WriteOnly, CacheMode::WriteAllocate];

#[test]
fn every_policy_agrees_with_its_reference() {
    // RIDE is held against a model of its own, beside the policy, and so are others in `rivals` and
    // `band_rivals`.
    let others =
        |(name, _): &(&str, _)| !["ride", "most", "sac"].contains(name) && !RIVALS.contains(name);
    for (name, policy) in policies(BLOCKS).into_iter().filter(others) {
        let (mut dirty, mut clean) = (0, 0);
        for seed in 0..60 {
            let slots = (seed % 4) as u32;
            let mode = MODES[(seed / 6 % 3) as usize];
            let settings = settings(capacity(seed), slots, mode, policy.clone());
            let outcome = assert_exact(name, settings, seed);
            dirty += outcome.dirty_evictions;
            clean += outcome.clean_evictions;
        }
        assert!(dirty > 1000 && clean > 1000, "{name}: {dirty}, {clean}");
    }
}

#[test]
fn every_option_of_pore_agrees_with_the_reference() {
    let counters =
        [PeriodCounter::WriteMiss, PeriodCounter::DirtyEvict, PeriodCounter::DirtyInsert];
    let windows = [PopularityWindow::Period, PopularityWindow::Lifetime];
    let mut divisions = 0;
    let mut forced = 0;
    for open_zones in [OpenZones::Cf, OpenZones::Pf, OpenZones::Bl] {
        for (seed, period_counter) in (0..).zip(counters) {
            for popularity_window in windows {
                for access_floor in [0, 1] {
                    for period_blocks in [1, 5, 30] {
                        let pore = PoreSettings {
                            zones: ZoneSettings::Equal(8),
                            batch: 1,
                            period_blocks,
                            period_counter,
                            popularity_window,
                            access_floor,
                            open_zones,
                        };
                        let policy = PolicySettings::Pore(pore);
                        let mode = MODES[(period_blocks % 3) as usize];
                        let settings = settings(17 + 10 * seed, 2, mode, policy);
                        let outcome = assert_exact(&format!("{pore:?}"), settings, seed);
                        divisions += outcome.region_divisions;
                        forced += outcome.forced_evictions;
                    }
                }
            }
        }
    }
    assert!(divisions > 1000 && forced > 10, "{divisions}, {forced}");
}

#[test]
fn batches_and_bands_as_zones_agree_with_the_reference() {
    let (mut divisions, mut dirty) = (0, 0);
    for seed in 0..24 {
        for (open_zones, batch) in [
            (OpenZones::Cf, 1),
            (OpenZones::Bl, 3),
            (OpenZones::Pf, 2),
            (OpenZones::Bl, 100),
            (OpenZones::All, 4),
        ] {
            for zones in [ZoneSettings::Bands, ZoneSettings::Equal(8)] {
                let pore = PoreSettings {
                    zones,
                    batch,
                    period_blocks: 5 + seed,
                    period_counter: PeriodCounter::DirtyEvict,
                    ..pore(open_zones)
                };
                let mode = MODES[(seed % 3) as usize];
                let settings = settings(capacity(seed), 2, mode, PolicySettings::Pore(pore));
                let outcome = assert_exact(&format!("{pore:?}"), settings, seed);
                divisions += outcome.region_divisions;
                dirty += outcome.dirty_evictions;
            }
        }
    }
    assert!(divisions > 1000 && dirty > 1000, "{divisions}, {dirty}");
}

#[test]
fn batches_of_bands_agree_with_the_reference() {
    for seed in 0..60 {
        for batch in [1, 2, 5, 100] {
            let policy = PolicySettings::LruBand {
                bands: (seed % 2 == 0).then(|| bands(BLOCKS)),
                batch: Some(batch),
            };
            let mode = MODES[(seed / 6 % 3) as usize];
            let settings = settings(capacity(seed), 2, mode, policy.clone());
            let limited = assert_exact(&format!("a batch of {batch}"), settings.clone(), seed);
            assert!(limited.dirty_evictions > 0);
            if batch == 100 {
                let unlimited = CacheSettings {
                    policy: PolicySettings::LruBand { bands: None, batch: None },
                    ..settings
                };
                assert_eq!(assert_exact("no limit", unlimited, seed), limited);
            }
        }
    }
}

#[test]
fn zone_lru_agrees_with_its_reference() {
    let mut dirty = 0;
    for seed in 0..60 {
        let capacity = capacity(seed);
        let policy = PolicySettings::ZoneLru(ZoneLruSettings {
            zones: ZoneSettings::Equal([1, 8, 50][(seed / 6 % 3) as usize]),
            rewrite_blocks: capacity.min(3),
            staging_blocks: 0,
        });
        let slots = (seed % 4) as u32;
        let settings = settings(capacity, slots, CacheMode::WriteAllocate, policy);
        let outcome = assert_exact("zone-lru", settings, seed);
        assert_eq!(outcome.clean_evictions, 0);
        dirty += outcome.dirty_evictions;
    }
    assert!(dirty > 1000, "{dirty}");
}

#[test]
fn pore_with_every_zone_open_is_lru() {
    for seed in 0..24 {
        for mode in MODES {
            let lru = settings(capacity(seed), 3, mode, PolicySettings::LRU);
            let all = PolicySettings::Pore(pore(OpenZones::All));
            let all = settings(capacity(seed), 3, mode, all);
            let steps = random_steps(seed, 400, BLOCKS, 6);
            assert_eq!(run(lru, seed, steps.clone()), run(all, seed, steps));
        }
    }
}

#[test]
fn the_clairvoyant_bound_agrees_with_its_reference_and_is_one() {
    for seed in 0..24 {
        for mode in [CacheMode::ReadWrite, CacheMode::WriteOnly] {
            let capacity = capacity(seed).max(6);
            let steps = random_steps(seed, 400, BLOCKS, 6);
            let lookups: Vec<Lba> = with_final_reads(steps.clone())
                .into_iter()
                .filter_map(|step| match step {
                    Step::Read(extent) if mode == CacheMode::ReadWrite => Some(extent),
                    Step::Write(extent) | Step::WriteDurable(extent) => Some(extent),
                    _ => None,
                })
                .filter(|extent| extent.blocks.0 <= capacity)
                .flat_map(|extent| (extent.start.0..extent.end().0).map(Lba))
                .collect();
            let policy = PolicySettings::Opt { next_uses: next_uses(&lookups).into() };
            let opt = assert_exact("opt", settings(capacity, 2, mode, policy), seed);
            let lru = settings(capacity, 2, mode, PolicySettings::LRU);
            let lru = run(lru, seed, steps);
            // What a write-only cache serves to reads is not what it optimises.
            let hits = |outcome: &Outcome| match mode {
                CacheMode::ReadWrite => outcome.read_hits + outcome.write_hits,
                CacheMode::WriteOnly | CacheMode::WriteAllocate => outcome.write_hits,
            };
            assert!(hits(&opt) >= hits(&lru), "{opt:?} {lru:?}");
        }
    }
}

#[test]
fn an_unlimited_cache_evicts_nothing() {
    let settings = settings(BLOCKS, 0, CacheMode::ReadWrite, PolicySettings::UNLIMITED);
    let outcome = assert_exact("unlimited", settings, 1);
    assert_eq!(outcome.clean_evictions + outcome.dirty_evictions, 0);
}
