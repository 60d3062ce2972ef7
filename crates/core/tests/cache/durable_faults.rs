//! A durable cache whose members fail, change or are older copies of themselves.

use crate::common::oracle::{Ask, MayFail};
use crate::durable::{BLOCKS, SET, durable, random_asks, up};
use crate::power::{Ended, Rig};
use crate::power_disk::Survivors;
use imbrex_core::cache::PolicySettings;
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use std::collections::BTreeSet;

const RECOVER: Start = Start::Recover(Some(SET));

fn formatted(seed: u64) -> (Rig, Box<Engine>) {
    let mut rig = Rig::new(durable(16, PolicySettings::LRU), BLOCKS, seed);
    let engine = up(rig.open(Start::Format(SET)));
    (rig, engine)
}

fn one(lba: u64) -> Extent {
    Extent::new(lba, 1)
}

/// Plays a workload on a cache of which one member fails some writes and flushes in a row, after as
/// many others as `after`. Reads go on, but for those of blocks whose last write has failed, and see
/// nothing older than what was answered. True when something has failed.
fn fail_at(after: u64, times: u64, on_flash: bool) -> bool {
    let (mut rig, mut engine) = formatted(after);
    let mut rng = Rng::new(after, 5);
    let what = format!("{times} calls after {after}, flash {on_flash}");
    let failing = if on_flash { &rig.flash } else { &rig.backing };
    failing.borrow_mut().fail(after, times);
    let asks = random_asks(&mut rng, 200, BLOCKS - 2, 8);
    let depth = 1 + (after % 9) as usize;
    let failed = rig
        .play_with_faults(&mut engine, asks, depth, MayFail::Changes)
        .unwrap_or_else(|mistake| panic!("{what}: {mistake}"));
    assert_eq!(engine.buffers.allocated(), 0, "{what}");
    // What was durable is there when the members work again.
    rig.flash.borrow_mut().fail(0, 0);
    rig.backing.borrow_mut().fail(0, 0);
    drop(engine);
    rig.cut(Survivors::Some, &mut rng);
    let mut engine = up(rig.open(RECOVER));
    rig.look_at_everything(&mut engine).unwrap_or_else(|mistake| panic!("{what}: {mistake}"));
    !failed.is_empty()
}

#[test]
fn a_member_that_fails_at_any_call_makes_nothing_lie_and_reads_go_on() {
    for on_flash in [true, false] {
        for times in [1, 3, u64::MAX] {
            let reached = (0..160).filter(|n| fail_at(*n, times, on_flash)).count();
            assert!(reached > 80, "flash {on_flash}, {times} calls: only {reached} had effects");
        }
    }
}

/// The blocks of changes that have failed: the host was told that they may be unreadable.
fn blocks_of(asks: &[Ask]) -> BTreeSet<u64> {
    let extents = asks.iter().filter_map(|ask| match ask {
        Ask::Write(extent) | Ask::Forced(extent) => Some(extent.start.0..extent.end().0),
        Ask::Trim(extent) | Ask::ForcedTrim(extent) => Some(extent.start.0..extent.end().0),
        Ask::Read(_) | Ask::Flush | Ask::Refused(_) | Ask::Rest(_) => None,
    });
    extents.flatten().collect()
}

/// Plays a workload on a cache over a disk that loses the blocks of some writes in a row, after as
/// many other calls as `after`, and cuts the power. Returns how many blocks the disk lost.
fn spoil_at(after: u64, times: u64) -> usize {
    let (mut rig, mut engine) = formatted(after);
    let mut rng = Rng::new(after, 6);
    let what = format!("{times} calls after {after}");
    rig.backing.borrow_mut().failure_spoils = true;
    rig.backing.borrow_mut().fail(after, times);
    let mut asks = random_asks(&mut rng, 200, BLOCKS - 2, 8);
    // No flush of the host makes what lies in flash durable.
    asks.retain(|ask| matches!(ask, Ask::Write(_) | Ask::Read(_)));
    let depth = 1 + (after % 9) as usize;
    let failed = rig
        .play_with_faults(&mut engine, asks, depth, MayFail::Changes)
        .unwrap_or_else(|mistake| panic!("{what}: {mistake}"));
    rig.backing.borrow_mut().fail(0, 0);
    let spoiled = rig.backing.borrow().unreadable.len();
    drop(engine);
    rig.cut(Survivors::None, &mut rng);
    let mut engine = up(rig.open(RECOVER));
    rig.look_beside(&mut engine, &blocks_of(&failed))
        .unwrap_or_else(|mistake| panic!("{what}: {mistake}"));
    spoiled
}

/// Found by `imbrex crashtest --stack pore --seed 895 --point 279 --soak`: the translation below
/// said durably that a block is lost whose newest data lay in flash unflushed.
#[test]
fn a_failed_write_below_takes_nothing_away_that_was_durable() {
    for times in [3, 8, u64::MAX] {
        let spoiled: usize = (0..160).map(|after| spoil_at(after, times)).sum();
        assert!(spoiled > 50, "only {spoiled} blocks could not be read");
    }
}

#[test]
fn writes_and_flushes_fail_after_a_failed_flush_below() {
    let (mut rig, mut engine) = formatted(1);
    let writes = vec![Ask::Write(one(3)), Ask::Flush, Ask::Write(one(4))];
    assert_eq!(rig.play(&mut engine, writes, 1), Ok(true));
    rig.backing.borrow_mut().fail(0, u64::MAX);
    let asks = vec![
        Ask::Flush,
        Ask::Write(one(5)),
        Ask::Flush,
        Ask::Read(one(3)),
        Ask::Read(one(4)),
        Ask::Trim(one(4)),
        Ask::Forced(one(3)),
    ];
    let failed = rig.play_with_faults(&mut engine, asks.clone(), 1, MayFail::Changes);
    let expected = [0, 1, 2, 5, 6].map(|at| asks[at]).to_vec();
    assert_eq!(failed, Ok(expected));
}

#[test]
fn a_flash_that_cannot_be_read_leaves_what_is_known_to_be_newest_below() {
    let lost = |planted| {
        let (mut rig, mut engine) = formatted(1);
        // Region 0 gets dirty blocks; region 5 was written once and destaged.
        let asks = vec![Ask::Write(one(3)), Ask::Flush];
        assert_eq!(rig.play(&mut engine, asks, 1), Ok(true));
        drop(engine);
        rig.cut(Survivors::None, &mut Rng::new(1, 1));
        rig.flash.borrow_mut().dead = true;
        rig.planted = planted;
        let mut engine = up(rig.open(RECOVER));
        let asks = vec![
            Ask::Read(one(3)),
            Ask::Read(one(4)),
            Ask::Read(one(90)),
            Ask::Write(one(90)),
            Ask::Flush,
            Ask::Trim(one(91)),
        ];
        rig.play_with_faults(&mut engine, asks.clone(), 1, MayFail::Anything)
            .map(|failed| (failed, asks))
    };
    let (failed, asks) = lost(None).expect("no wrong answer");
    let expected = [0, 1, 3, 4, 5].map(|at| asks[at]).to_vec();
    assert_eq!(failed, expected);
    lost(Some(PlantedBug::DeadSsdServedStale)).expect_err("stale data");
}

#[test]
fn a_flash_that_dies_while_running_gives_nothing_stale() {
    let run = |planted| {
        let (mut rig, mut engine) = formatted(2);
        let asks = vec![Ask::Write(one(3)), Ask::Read(one(90)), Ask::Flush];
        assert_eq!(rig.play(&mut engine, asks, 1), Ok(true));
        drop(engine);
        rig.cut(Survivors::None, &mut Rng::new(1, 1));
        rig.planted = planted;
        let mut engine = up(rig.open(RECOVER));
        rig.play(&mut engine, vec![Ask::Read(one(90))], 1).expect("all is well");
        rig.flash.borrow_mut().dead = true;
        let asks = vec![Ask::Read(one(3)), Ask::Read(one(90)), Ask::Read(one(91))];
        rig.play_with_faults(&mut engine, asks, 1, MayFail::Anything)
    };
    assert_eq!(run(None), Ok(vec![Ask::Read(one(3))]));
    run(Some(PlantedBug::DeadSsdServedStale)).expect_err("stale data");
}

#[test]
fn changed_data_is_never_served() {
    let run = |planted| {
        let (mut rig, mut engine) = formatted(3);
        rig.planted = planted;
        drop(engine);
        engine = up(rig.open(RECOVER));
        let asks = vec![Ask::Write(one(3)), Ask::Read(one(90)), Ask::Flush];
        assert_eq!(rig.play(&mut engine, asks, 1), Ok(true));
        // Every slot loses a bit.
        let slots = rig.settings.flash_blocks().0;
        for block in slots - 26..slots {
            rig.flash.borrow_mut().damage(block, 100);
        }
        let asks = vec![Ask::Read(one(3)), Ask::Read(one(90))];
        rig.play_with_faults(&mut engine, asks, 1, MayFail::Anything)
    };
    assert_eq!(run(None), Ok(vec![Ask::Read(one(3))]));
    run(Some(PlantedBug::ReadCrcSkipped)).expect_err("changed data");
}

fn refusal(ended: Ended) -> OpenError {
    match ended {
        Ended::Refused(error) => error,
        Ended::Up(_) | Ended::PowerCut => panic!("the cache came up"),
    }
}

#[test]
fn an_older_copy_of_one_member_is_refused() {
    let (mut rig, mut engine) = formatted(4);
    let old = (rig.flash.borrow().snapshot(), rig.backing.borrow().snapshot());
    let mut rng = Rng::new(8, 8);
    for _ in 0..3 {
        let asks = random_asks(&mut rng, 100, BLOCKS - 2, 8);
        assert_eq!(rig.play(&mut engine, asks, 4), Ok(true));
        assert!(rig.close(&mut engine));
        engine = up(rig.open(RECOVER));
    }
    assert!(rig.close(&mut engine));
    let new = (rig.flash.borrow().snapshot(), rig.backing.borrow().snapshot());
    rig.flash.borrow_mut().set(old.0);
    let error = refusal(rig.open(RECOVER));
    assert!(matches!(error, OpenError::OlderCopy { member: "flash", .. }), "{error}");
    rig.flash.borrow_mut().set(new.0);
    rig.backing.borrow_mut().set(old.1);
    let error = refusal(rig.open(RECOVER));
    assert!(matches!(error, OpenError::OlderCopy { member: "backing", .. }), "{error}");
    rig.backing.borrow_mut().set(new.1);
    let mut engine = up(rig.open(RECOVER));
    rig.look_at_everything(&mut engine).expect("what was there");
}

#[test]
fn foreign_and_empty_members_are_refused() {
    let (mut rig, mut engine) = formatted(5);
    assert!(rig.close(&mut engine));
    let other = Start::Recover(Some(Uuid([9; 16])));
    let error = refusal(rig.open(other));
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    let mut empty = Rig::new(durable(16, PolicySettings::LRU), BLOCKS, 5);
    let error = refusal(empty.open(RECOVER));
    assert_eq!(error, OpenError::NotFormatted);
    rig.settings = durable(17, PolicySettings::LRU);
    let error = refusal(rig.open(RECOVER));
    assert!(matches!(error, OpenError::Settings { .. }), "{error}");
}
