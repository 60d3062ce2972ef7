//! A durable cache loses nothing that was durable, whenever the power fails.

use crate::common::oracle::Ask;
use crate::power::{Ended, Rig};
use crate::power_disk::Survivors;
use crate::stacks::{policies, settings};
use imbrex_core::cache::{CacheMode, CacheSettings, PolicySettings};
use imbrex_core::counters::Counter;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;

pub const BLOCKS: u64 = 130;
pub const SET: Uuid = Uuid([7; 16]);

pub fn durable(capacity_blocks: u64, policy: PolicySettings) -> CacheSettings {
    CacheSettings {
        durability: Some(DurabilitySettings { ring_blocks: 8, unflushed_blocks_max: 24 }),
        ..settings(capacity_blocks, 2, CacheMode::ReadWrite, policy)
    }
}

pub fn random_asks(rng: &mut Rng, count: u64, blocks: u64, longest: u64) -> Vec<Ask> {
    (0..count)
        .map(|_| {
            let length = 1 + rng.below(longest);
            let span = if rng.below(2) == 0 { blocks / 6 } else { blocks };
            let extent = Extent::new(rng.below(span - length + 1), length);
            match rng.below(24) {
                0..=6 => Ask::Read(extent),
                7..=17 => Ask::Write(extent),
                18..=19 => Ask::Forced(extent),
                20 => Ask::Trim(extent),
                21 => Ask::ForcedTrim(extent),
                _ => Ask::Flush,
            }
        })
        .collect()
}

pub fn up(ended: Ended) -> Box<Engine> {
    match ended {
        Ended::Up(engine) => engine,
        Ended::PowerCut => panic!("the power failed too early"),
        Ended::Refused(error) => panic!("the cache cannot be opened: {error}"),
    }
}

#[test]
fn what_was_written_is_there_after_a_clean_shutdown() {
    for (name, policy) in policies(BLOCKS) {
        let mut rig = Rig::new(durable(20, policy), BLOCKS, 1);
        let mut engine = up(rig.open(Start::Format(SET)));
        let mut rng = Rng::new(3, 3);
        for round in 0..6 {
            let asks = random_asks(&mut rng, 150, BLOCKS - 2, 8);
            let all = rig.play(&mut engine, asks, 1 + round * 4);
            assert_eq!(all, Ok(true), "{name}, round {round}");
            assert!(rig.close(&mut engine));
            assert_eq!(engine.buffers.allocated(), 0, "{name}, round {round}");
            rig.cut(Survivors::None, &mut rng);
            engine = up(rig.open(Start::Recover(Some(SET))));
            rig.look_at_everything(&mut engine).expect(name);
        }
    }
}

/// Runs a cache through power cuts, and says what went wrong first.
fn campaign(seed: u64, rounds: u64, planted: Option<PlantedBug>) -> Result<u64, String> {
    let mut rng = Rng::new(seed, 11);
    let mut policies = policies(BLOCKS);
    let (_, policy) = policies.swap_remove(rng.below(policies.len() as u64) as usize);
    // In a large one checkpoints say what has changed.
    let capacity = if rng.below(4) == 0 { 90 } else { 6 } + rng.below(20);
    let spare_slots = [None, Some(3), Some(20)][rng.below(3) as usize];
    let settings = CacheSettings { spare_slots, ..durable(capacity, policy) };
    let mut rig = Rig::new(settings, BLOCKS, seed);
    rig.planted = planted;
    rig.latency_max_ns = if rng.below(3) == 0 { 1 } else { 1000 };
    let mut engine = up(rig.open(Start::Format(SET)));
    let mut cuts = 0;
    for round in 0..rounds {
        let context = |mistake| format!("seed {seed}, round {round}: {mistake}");
        let asks = random_asks(&mut rng, 120, BLOCKS - 2, 8);
        let depth = 1 + rng.below(12) as usize;
        rig.power.set(1 + rng.below(900));
        let mut went_on = rig.play(&mut engine, asks, depth).map_err(context)?;
        if went_on && rng.below(2) == 0 {
            went_on = rig.close(&mut engine);
        }
        cuts += u64::from(!went_on);
        drop(engine);
        let modes = [Survivors::None, Survivors::All, Survivors::Some, Survivors::Torn];
        loop {
            let survivors = modes[rng.below(4) as usize];
            rig.cut(survivors, &mut rng);
            // Recovery is cut short as well, now and then.
            if rng.below(3) == 0 {
                rig.power.set(1 + rng.below(60));
            }
            rig.seed += 1;
            match rig.open(Start::Recover(Some(SET))) {
                Ended::Up(up) => {
                    engine = up;
                    break;
                }
                Ended::PowerCut => cuts += 1,
                Ended::Refused(error) => return Err(context(format!("refused: {error}"))),
            }
        }
        rig.power.set(u64::MAX);
        rig.look_at_everything(&mut engine).map_err(context)?;
    }
    Ok(cuts)
}

/// What a cache has counted, by counter.
fn counted(rig: &Rig, engine: &Engine) -> Vec<u64> {
    let counts = engine.stack.counts(rig.node.expect("an open cache"));
    [
        Counter::ReadHits,
        Counter::WriteHits,
        Counter::ReadLookups,
        Counter::WriteLookups,
        Counter::DirtyEvictions,
        Counter::CleanEvictions,
        Counter::ForcedEvictions,
        Counter::RegionDivisions,
        Counter::WindowsOpened,
        Counter::Rides,
    ]
    .map(|counter| counts.counter(counter))
    .to_vec()
}

#[test]
fn a_cache_that_was_shut_down_cleanly_goes_on_as_if_nothing_had_happened() {
    for (name, policy) in policies(BLOCKS) {
        for seed in 0..10 {
            let settings = durable(8 + seed, policy.clone());
            let mut rng = Rng::new(seed, 21);
            let before = random_asks(&mut rng, 150, BLOCKS - 2, 6);
            let after = random_asks(&mut rng, 150, BLOCKS - 2, 6);
            let mut whole = Rig::new(settings.clone(), BLOCKS, seed);
            let mut engine = up(whole.open(Start::Format(SET)));
            assert_eq!(whole.play(&mut engine, before.clone(), 1), Ok(true));
            let half_way = counted(&whole, &engine);
            assert_eq!(whole.play(&mut engine, after.clone(), 1), Ok(true));
            let expected: Vec<u64> = counted(&whole, &engine)
                .into_iter()
                .zip(half_way)
                .map(|(after, before)| after - before)
                .collect();

            let mut stopped = Rig::new(settings, BLOCKS, seed);
            let mut engine = up(stopped.open(Start::Format(SET)));
            assert_eq!(stopped.play(&mut engine, before, 1), Ok(true));
            assert!(stopped.close(&mut engine));
            let mut engine = up(stopped.open(Start::Recover(None)));
            assert_eq!(stopped.play(&mut engine, after, 1), Ok(true));
            assert_eq!(counted(&stopped, &engine), expected, "{name}, seed {seed}");
        }
    }
}

fn campaigns(seeds: core::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let mut cuts = 0;
    for seed in seeds {
        cuts += campaign(seed, 12, None).unwrap_or_else(|mistake| panic!("{mistake}"));
    }
    assert!(cuts > 4 * count, "only {cuts} cuts");
}

#[test]
fn nothing_durable_is_lost_in_a_power_cut() {
    campaigns(0..100);
}

#[test]
#[ignore = "a minute long"]
fn nothing_durable_is_lost_in_many_power_cuts() {
    campaigns(100..4000);
}

/// The bugs of the cache and its journal that a power cut can bring to light.
const PLANTED: &[PlantedBug] = &[
    PlantedBug::SsdFlushSkipped,
    PlantedBug::AckBeforeJournalFlush,
    PlantedBug::FuaAsPlain,
    PlantedBug::RootBeforePages,
    PlantedBug::CheckpointPageLeftOut,
    PlantedBug::ChangeLeftOut,
    PlantedBug::JournalFreedEarly,
    PlantedBug::OldLocationReusedEarly,
    PlantedBug::DirtyDroppedBeforeDestinationFlush,
    PlantedBug::TrimReusedEarly,
    PlantedBug::TrimForgottenOnReplay,
    PlantedBug::RecoveryNotIdempotent,
    PlantedBug::DanglingRecordKept,
];

#[test]
fn planted_bugs_are_found() {
    let mut missed = Vec::new();
    for bug in PLANTED {
        let found = (0..400).find(|seed| {
            let run = std::panic::catch_unwind(|| campaign(*seed, 12, Some(*bug)));
            !matches!(run, Ok(Ok(_)))
        });
        match found {
            Some(seed) => println!("{}: seed {seed}", bug.name()),
            None => missed.push(bug.name()),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
