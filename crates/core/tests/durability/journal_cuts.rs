//! What is left of a journal when operations fail and when the power is cut.

use crate::common::journal_disk::{ALL_SECTORS, Image, after_power_cut};
use crate::common::journal_toy::Seen;
use crate::common::journal_world::{Host, SET, SHAPE, Step, World, allowed, random_steps, wrong};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Start;
use imbrex_core::rng::Rng;
use std::rc::Rc;

const WRITE: Step = Step::Write(Extent::new(1, 1));
const FORCED: Step = Step::WriteDurable(Extent::new(2, 1));

/// Every operation of the workload fails in turn: what was acknowledged as durable is there after
/// a restart, nothing that failed is acknowledged later, and nothing waits for ever.
#[test]
fn any_operation_may_fail_once() {
    let steps = random_steps(3, 60, SHAPE.device_blocks);
    let mut failed = 0;
    for index in 0.. {
        let mut world = World::new(SHAPE, &Rc::default(), 5);
        world.medium.borrow_mut().fails = Some(index);
        let mut host = Host::new(4);
        let opened = world.open(Start::Format(SET));
        if opened.is_ok() {
            world.play(&mut host, steps.clone());
            let has_failed = world.seen.borrow().contains(&Seen::Failed);
            if has_failed {
                failed += 1;
                assert_eq!(world.seen.borrow().last(), Some(&Seen::Failed), "the end: {index}");
                world.play(&mut host, vec![Step::Flush, WRITE, FORCED]);
                let last = &host.failures[host.failures.len() - 3..];
                assert_eq!(last, [Step::Flush, WRITE, FORCED], "operation {index}");
                assert!(!world.close(), "a failed journal does not close in good order");
            } else {
                let reached = world.medium.borrow().operations.len() > index;
                assert!(world.close() || !reached, "operation {index}");
            }
            let happenings = world.medium.borrow().happenings.clone();
            let mut reborn = world.reborn(6);
            assert_eq!(reborn.recover(), Ok(()), "operation {index}");
            let found = reborn.read_all();
            assert_eq!(wrong(&found, &allowed(&happenings), false), None, "operation {index}");
        }
        if world.medium.borrow().operations.len() <= index {
            break;
        }
    }
    assert!(failed > 40, "the journal failed {failed} times");
}

/// What each life of a toy leaves behind when the power fails at any moment, recovery included.
#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_durable() {
    for seed in 0..12 {
        let mut world = World::formatted(SHAPE, seed);
        let mut host = Host::new([1, 4, 16][seed as usize % 3]);
        world.play(&mut host, random_steps(seed, 120, SHAPE.device_blocks));
        let happenings = world.medium.borrow().happenings.clone();
        let mut rng = Rng::new(seed, 1);
        for _ in 0..60 {
            let moment = 40 + rng.below(happenings.len() as u64 - 40) as usize;
            let mode = rng.below(4);
            let mut fate = fate_of(mode, &mut rng);
            let so_far = &happenings[..moment];
            let image = after_power_cut(&Image::new(), so_far, &mut fate);
            let mut second = World::over(SHAPE, image.clone(), seed + 1);
            let opened = second.recover();
            assert_eq!(opened, Ok(()), "seed {seed}, moment {moment}, mode {mode}");
            let found = second.read_all();
            let wrong_now = wrong(&found, &allowed(so_far), false);
            assert_eq!(wrong_now, None, "seed {seed}, moment {moment}, mode {mode}");

            // The recovery is cut as well: the next one finds the same.
            let recovering = second.medium.borrow().happenings.clone();
            let moment = rng.below(recovering.len() as u64 + 1) as usize;
            let mut fate = fate_of(rng.below(4), &mut rng);
            let image = after_power_cut(&image, &recovering[..moment], &mut fate);
            let mut third = World::over(SHAPE, image, seed + 2);
            assert_eq!(third.recover(), Ok(()), "seed {seed}, recovery cut at {moment}");
            assert_eq!(third.read_all(), found, "seed {seed}, recovery cut at {moment}");
        }
    }
}

/// What becomes of a write that no flush covers: none, all, some or torn.
fn fate_of(mode: u64, rng: &mut Rng) -> impl FnMut(u64) -> u8 + use<> {
    let mut rng = Rng::new(rng.next_u64(), 2);
    move |_| match mode {
        0 => 0,
        1 => ALL_SECTORS,
        2 => [0, ALL_SECTORS][rng.below(2) as usize],
        _ => rng.below(256) as u8,
    }
}
