//! Requests that share a block keep their order, and nobody waits for ever.

use crate::world::{Asked, BLOCKS, World};
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Cause, Operation};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::scheduler::{AreaCLook, Deadline, Policy, Quota};
use imbrex_core::units::{Duration, Instant, Lba};
use std::collections::BTreeMap;

fn policies() -> [Policy; 7] {
    [
        Policy::Fcfs,
        Policy::Sstf,
        Policy::Look { is_upwards: true },
        Policy::CLook,
        Policy::Deadline(Deadline::default()),
        Policy::AreaCLook(AreaCLook::new(Lba(500), Quota::Requests(3))),
        Policy::AreaCLook(AreaCLook::new(Lba(500), Quota::Waiting)),
    ]
}

/// Requests of which many share blocks.
fn script(rng: &mut Rng) -> Vec<Asked> {
    let mut at = 0;
    let hot = rng.below(BLOCKS - 40);
    let mut ask = |_| {
        at += rng.below(3) * rng.below(200);
        let blocks = 1 + rng.below(12);
        let start = match rng.below(3) {
            0 => rng.below(BLOCKS - blocks + 1),
            _ => hot + rng.below(40 - blocks),
        };
        let operation = match rng.below(5) {
            0 | 1 => Operation::Read,
            2 | 3 => Operation::WRITE,
            _ => Operation::WRITE_DURABLE,
        };
        let (operation, extent) = match rng.below(20) {
            0 => (Operation::Flush, Extent::EMPTY),
            _ => (operation, Extent::new(start, blocks)),
        };
        Asked::new(Instant(at), operation, extent)
    };
    let mut script: Vec<Asked> = (0..40).map(&mut ask).collect();
    for asked in &mut script {
        asked.cause = if rng.below(3) == 0 { Cause::Cleaning } else { Cause::Host };
    }
    script
}

fn is_write(asked: &Asked) -> bool {
    matches!(asked.operation, Operation::Write { .. })
}

/// What each read finds when everything is done in an order, and what lies on the disk in the end.
fn found(
    script: &[Asked],
    order: impl Iterator<Item = usize>,
) -> (BTreeMap<usize, Vec<usize>>, Vec<usize>) {
    let mut blocks = vec![usize::MAX; BLOCKS as usize];
    let mut reads = BTreeMap::new();
    for number in order {
        let asked = &script[number];
        let range = asked.extent.start.0 as usize..asked.extent.end().0 as usize;
        match is_write(asked) {
            true => blocks[range].fill(number),
            false => _ = reads.insert(number, blocks[range].to_vec()),
        }
    }
    (reads, blocks)
}

/// How many of so many schedules end with other contents than one request after the other.
fn wrong_of(schedules: u64, plant: Option<PlantedBug>) -> u64 {
    let mut wrong = 0;
    for seed in 0..schedules {
        let mut rng = Rng::new(seed, 8);
        let script = script(&mut rng);
        let policy = policies()[rng.below(7) as usize].clone();
        let world = World {
            max_wait: (rng.below(2) == 0).then_some(Duration(1 + rng.below(3000))),
            clean_wait: (rng.below(2) == 0).then_some(Duration(1 + rng.below(3000))),
            device_depth: 1 + rng.below(4) as u32,
            service_ns: (1, 1 + rng.below(300)),
            seed,
            plant,
            ..World::of(policy)
        };
        let (log, _) = world.play(&script);
        let flushes_go_at_once = script.iter().zip(&log.done).all(|(asked, done)| {
            asked.operation != Operation::Flush || done.is_some_and(|it| it.dispatched == asked.at)
        });
        assert!(flushes_go_at_once, "seed {seed}: {log:?}");
        let one_by_one = found(&script, 0..script.len());
        wrong += u64::from(found(&script, log.effects.iter().copied()) != one_by_one);
    }
    wrong
}

#[test]
fn contents_are_those_of_one_request_after_the_other() {
    assert_eq!(wrong_of(5000, None), 0);
}

#[test]
fn a_scheduler_that_ignores_the_order_is_noticed() {
    let wrong = wrong_of(200, Some(PlantedBug::SchedulerIgnoresOrder));
    assert!(wrong > 100, "{wrong} of 200");
}

/// Nobody waits longer than the limit, the service of all older ones and what the disk had already.
#[test]
fn the_wait_of_a_request_is_bounded() {
    let mut forced = 0;
    for seed in 0..1000 {
        let mut rng = Rng::new(seed, 9);
        let script = script(&mut rng);
        let policy = match rng.below(4) {
            0 => Policy::Sstf,
            1 => Policy::Look { is_upwards: true },
            2 => Policy::CLook,
            _ => Policy::AreaCLook(AreaCLook::new(Lba(500), Quota::None)),
        };
        let service = 50 + rng.below(200);
        let world = World {
            max_wait: Some(Duration(1 + rng.below(2000))),
            clean_wait: (rng.below(2) == 0).then_some(Duration(1 + rng.below(4000))),
            device_depth: 1 + rng.below(3) as u32,
            service_ns: (service, service),
            seed,
            ..World::of(policy)
        };
        let (log, count) = world.play(&script);
        forced += count(imbrex_core::counters::Counter::ForcedByAge);
        let max_wait = world.max_wait.expect("a limit").0;
        for (number, asked) in script.iter().enumerate() {
            let done = log.done[number].expect("it was served");
            let waits = |other: &usize| {
                script[*other].operation != Operation::Flush
                    && log.done[*other].is_some_and(|it| it.ended > asked.at)
            };
            let older = (0..number).filter(waits).count() as u64;
            let bound = max_wait + service * (older + u64::from(world.device_depth));
            let waited = done.dispatched.since(asked.at).0;
            assert!(waited <= bound, "seed {seed}, {number}: {waited} ns, at most {bound}");
        }
    }
    assert!(forced > 1000, "{forced} were forced");
}
