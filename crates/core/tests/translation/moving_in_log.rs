//! Blocks that go to the head of the log once before their band is rewritten (`clean_to = "log"`).

use crate::common::harness::{Step, play, random_steps};
use crate::crash;
use crate::persistent_cache::{bands, build, check_with, settings, with_bypass, zeroing_steps};
use imbrex_core::counters::Counter;
use imbrex_core::extent::Extent;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::translation::{
    BlockingCleaning, CleanTo, LayoutError, PersistentCache, PersistentCacheSettings, UpdateMethod,
};
use imbrex_core::units::BlockCount;

fn moving(settings: PersistentCacheSettings) -> PersistentCacheSettings {
    PersistentCacheSettings {
        blocking: BlockingCleaning { to: CleanTo::Log, ..settings.blocking },
        ..settings
    }
}

#[test]
fn keeps_data_on_a_destructive_medium() {
    check_with("moving in the log", moving(settings()));
    check_with("moving in the log, with a bypass", moving(with_bypass()));
    let tiny = |blocks| PersistentCacheSettings { log_blocks: BlockCount(blocks), ..settings() };
    check_with("moving in a log of two slots", moving(tiny(2)));
    check_with("moving in a log of nine slots", moving(tiny(9)));
}

#[test]
fn keeps_data_when_zeroes_meet_moves() {
    let small = PersistentCacheSettings { log_blocks: BlockCount(16), ..settings() };
    let mut moved = 0;
    for seed in 0..400 {
        let (stack, disk, node) = build(seed, &moving(small.clone()));
        let steps = zeroing_steps(seed, stack.geometry().blocks.0 / 4);
        let finished = play(stack, vec![disk], steps, 16);
        let finished = finished.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        moved += finished.stack.counts(node).counter(Counter::MovedBlocks);
    }
    assert!(moved > 400 * 20, "only {moved} blocks have moved");
}

/// Every second write goes to a few blocks; the others go once around the device.
fn hot_and_cold(seed: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 41);
    let blocks = bands(seed).blocks().0;
    let hot = |rng: &mut Rng| Extent::new(blocks / 2 + rng.below(24), 1);
    (0..blocks)
        .flat_map(|cold| [Step::Write(Extent::new(cold, 1)), Step::Write(hot(&mut rng))])
        .collect()
}

#[test]
fn a_block_that_is_written_again_soon_saves_its_band_a_rewrite() {
    let (mut rewritten, mut moved) = ([0, 0], 0);
    for seed in 0..20 {
        for (at, settings) in [settings(), moving(settings())].into_iter().enumerate() {
            let (stack, disk, node) = build(seed, &settings);
            let finished = play(stack, vec![disk], hot_and_cold(seed), 1);
            let counts = finished.expect("nothing is lost").stack;
            let counts = counts.counts(node);
            rewritten[at] += counts.counter(Counter::BandsRewritten);
            moved += counts.counter(Counter::MovedBlocks);
            // What moves is not what the host has appended.
            let appended = counts.counter(Counter::PersistentCacheAppendedBlocks);
            assert_eq!(appended, 2 * bands(seed).blocks().0);
        }
    }
    let [home, log] = rewritten;
    assert!(moved > 0 && log < home, "{moved} blocks moved, {log} of {home} bands rewritten");
}

#[test]
fn a_move_that_forgets_what_was_written_meanwhile_is_found() {
    let small = PersistentCacheSettings { log_blocks: BlockCount(12), ..settings() };
    let is_found = |seed| {
        let (mut stack, disk, _) = build(seed, &moving(small.clone()));
        stack.plant(PlantedBug::RemapIgnoresOverwrite);
        let steps = random_steps(seed, 400, stack.geometry().blocks.0 / 8, 6);
        play(stack, vec![disk], steps, 16).is_err()
    };
    assert!((0..200).any(is_found));
}

#[test]
fn where_nothing_can_move_is_refused() {
    let refused = |settings: PersistentCacheSettings| {
        let geometry = crash::geometry(0, &settings);
        PersistentCache::new(moving(settings), bands(0), &geometry).map(|_| ()).unwrap_err()
    };
    let one = PersistentCacheSettings { log_blocks: BlockCount(1), ..settings() };
    assert_eq!(refused(one), LayoutError::NoRoomToMove);
    let updating = PersistentCacheSettings { update: UpdateMethod::InPlace, ..settings() };
    assert_eq!(refused(updating), LayoutError::MoveOfUpdated);
}
