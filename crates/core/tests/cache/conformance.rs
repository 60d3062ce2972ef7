//! The cache under the conformance suite: contents under reordering disks, tiny sizes, deep queues.

use crate::common::check::check;
use crate::common::harness::{play, random_steps};
use crate::stacks::{cache_stack, policies, settings};
use imbrex_core::cache::{CacheMode, PolicySettings};
use imbrex_core::planted::PlantedBug;

const BLOCKS: u64 = 120;

#[test]
fn every_policy_at_every_tiny_size() {
    for (name, policy) in policies(BLOCKS) {
        for mode in [CacheMode::ReadWrite, CacheMode::WriteOnly] {
            let policy = policy.clone();
            check(
                &format!("{name}, {mode:?}"),
                &move |seed| {
                    let (capacity, slots) = (1 + seed / 4 % 20, 1 + seed % 5 % 4);
                    let settings = settings(capacity, slots as u32, mode, policy.clone());
                    let (stack, disks, _) = cache_stack(settings, BLOCKS, seed, 1_000);
                    (stack, disks)
                },
                240,
                0,
            );
        }
    }
}

#[test]
fn bounds() {
    let opt = PolicySettings::Opt { next_uses: (1..1000).rev().collect() };
    let sized = [("opt", opt, 12), ("unlimited", PolicySettings::UNLIMITED, BLOCKS)];
    for (name, policy, capacity) in sized {
        check(
            name,
            &move |seed| {
                let settings = settings(capacity, 2, CacheMode::ReadWrite, policy.clone());
                let (stack, disks, _) = cache_stack(settings, BLOCKS, seed, 1_000);
                (stack, disks)
            },
            100,
            0,
        );
    }
}

#[test]
fn a_slot_freed_before_its_destage_is_durable_is_noticed() {
    let noticed = (0..200).find(|seed| {
        let settings = settings(6, 2, CacheMode::ReadWrite, PolicySettings::LRU);
        let (mut stack, disks, _) = cache_stack(settings, BLOCKS, *seed, 1_000);
        stack.plant(PlantedBug::DirtyDroppedBeforeDestinationFlush);
        let steps = random_steps(*seed, 120, BLOCKS, 12);
        play(stack, disks, steps, 4).is_err()
    });
    assert!(noticed.is_some(), "200 cases went well with the bug planted");
}
