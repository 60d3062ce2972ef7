//! Requests whose blocks are all in the cache, where something comes in their way: a second request for the same
//! blocks, an eviction, or an error of the flash.

use crate::common::harness::{Medium, MemoryDisk, Step, play_with_pauses};
use crate::stacks::{cache_stack, settings};
use imbrex_core::cache::{CacheMode, PolicySettings};
use imbrex_core::extent::Extent;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const CAPACITY: u64 = 8;
const BLOCKS: u64 = 32;
const SEEDS: u64 = 60;

fn read(start: u64, blocks: u64) -> Step {
    Step::Read(Extent::new(start, blocks))
}

fn write(start: u64, blocks: u64) -> Step {
    Step::Write(Extent::new(start, blocks))
}

/// Fills the cache by the first steps, one after another, and then takes the others together. Returns the flash.
fn fill_and_play(
    seed: u64,
    fill: &[Step],
    together: &[Step],
    spoil: impl FnOnce(MemoryDisk) -> MemoryDisk,
) -> Rc<RefCell<Medium>> {
    let settings = settings(CAPACITY, 2, CacheMode::ReadWrite, PolicySettings::LRU);
    let (stack, mut disks, _) = cache_stack(settings, BLOCKS, seed, 1_000);
    let backing = disks.pop().expect("two disks");
    let flash = spoil(disks.pop().expect("two disks"));
    let medium = flash.medium();
    let steps = [fill, together].concat();
    // Before each of the first steps, and before the last look.
    let pauses = (1..=fill.len()).chain([steps.len()]).map(|step| (step, 1));
    let pauses: BTreeMap<usize, u64> = pauses.collect();
    let played = play_with_pauses(stack, vec![flash, backing], steps, 8, pauses);
    let engine = played.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    assert!(engine.stack.is_quiet() && engine.buffers.allocated() == 0, "seed {seed}");
    medium
}

#[test]
fn a_second_write_of_a_block_goes_behind_the_first() {
    // The disk finishes in any order what it has at once.
    let together = [write(0, 8), write(2, 4), read(0, 8), write(3, 1), read(3, 1), write(0, 8)];
    for seed in 0..SEEDS {
        fill_and_play(seed, &[write(0, 8)], &together, |flash| flash);
    }
}

#[test]
fn the_slot_of_a_hit_in_flight_is_nobody_elses() {
    let clean = [write(0, 8), write(8, 8), read(0, 8)];
    let dirty = [write(0, 8)];
    for seed in 0..SEEDS {
        for fill in [&clean[..], &dirty] {
            // The newcomers evict all that is read or written, before that has come back.
            fill_and_play(seed, fill, &[read(0, 8), write(16, 8)], |flash| flash);
            fill_and_play(seed, fill, &[write(0, 8), write(16, 8), read(0, 8)], |flash| flash);
            fill_and_play(seed, fill, &[read(2, 1), write(3, 1), read(16, 8)], |flash| flash);
        }
    }
}

#[test]
fn an_error_of_the_flash_is_the_answer_and_the_block_stays() {
    let after_a_read = [read(0, 8), read(0, 8), write(16, 8), read(0, 8)];
    // What a failed write leaves cannot be read, so it is written once more.
    let after_a_write = [write(0, 8), write(0, 8), read(0, 8), read(16, 8)];
    for seed in 0..SEEDS {
        for together in [after_a_read, after_a_write] {
            let medium =
                fill_and_play(seed, &[write(0, 8)], &together, |flash| flash.failing_at(1));
            assert_eq!(medium.borrow().faults, 1);
        }
    }
}

#[test]
fn a_hit_on_several_runs_is_answered_once_with_the_error_of_any() {
    // In the order of coming, which is not that of the blocks.
    let fill = [6, 4, 2, 0, 1, 3, 5, 7].map(|block| write(block, 1));
    let medium = fill_and_play(0, &fill, &[read(0, 8)], |flash| flash);
    // The first reads of the flash are those of the hit.
    let (mut left, mut count) = (8, 0);
    for extent in &medium.borrow().read_log {
        count += u64::from(left > 0);
        left -= extent.blocks.0.min(left);
    }
    assert!(count > 1, "the blocks adjoin");
    for operation in 0..count {
        for seed in 0..SEEDS {
            let together = [read(0, 8), write(16, 4)];
            let before = fill.len() as u64 + operation;
            let medium = fill_and_play(seed, &fill, &together, |flash| flash.failing_at(before));
            assert_eq!(medium.borrow().faults, 1);
        }
    }
}
