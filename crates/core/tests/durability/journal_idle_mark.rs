//! The mark of the last flush, and what recovery says of a damaged block at the end of the journal.

use crate::common::journal_disk::{ALL_SECTORS, Image, after_power_cut, block_of};
use crate::common::journal_world::{
    Host, SHAPE, Step, World, after, allowed, damage, durably, reopen, replayed, write, wrong,
};
use imbrex_core::counters::Gauge;
use imbrex_core::durability::Lsn;
use imbrex_core::durability::block::{self, BlockKind, Expected};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;

/// A read after a pause, so that the pause comes to its end.
const LOOK: Step = Step::Read(Extent::new(0, 1));

/// The mark and the payload bytes of each journal block that is on the disk, by number.
fn journal_blocks(image: &Image) -> Vec<(u64, usize)> {
    let settings = SHAPE.settings();
    let found = (0..SHAPE.ring_blocks).map_while(|lsn| {
        let address = settings.address_of(Lsn(lsn));
        let expected = Expected::new(BlockKind::Journal, None, address);
        let bytes = block_of(image, address);
        let (header, payload) = block::unseal(&bytes, expected).ok()?;
        Some((header.mark, payload.len()))
    });
    found.collect()
}

/// The blocks of data that recovery says may have been rolled back.
fn rolled_back_max(world: &World) -> u64 {
    let counts = world.engine.stack.counts(world.top);
    counts.gauge(Gauge::RolledBackBlocksMax)
}

#[test]
fn a_pause_after_a_flush_leaves_one_mark_without_records_and_without_a_flush() {
    let (mut world, mut host) = after(&[write(1), write(2), Step::Flush]);
    let flushes = world.medium.borrow().flushes();
    let image = world.medium.borrow().image.clone();
    let marks = |image: &Image| -> Vec<u64> {
        let blocks = journal_blocks(image);
        blocks.iter().map(|(mark, _)| *mark).collect()
    };
    assert_eq!(marks(&image), [0, 0], "no pause, no mark");
    let pauses = [Step::Pause, LOOK, Step::Pause, LOOK, Step::Flush, Step::Pause, LOOK];
    world.play(&mut host, pauses.to_vec());
    let image = world.medium.borrow().image.clone();
    assert_eq!(marks(&image), [0, 0, 2], "one mark, however long it lasts");
    assert_eq!(journal_blocks(&image)[2].1, 0, "it has no records");
    assert_eq!(world.medium.borrow().flushes(), flushes + 1, "the host's");
    world.play(&mut host, vec![write(3), Step::Pause, LOOK]);
    let image = world.medium.borrow().image.clone();
    assert_eq!(marks(&image), [0, 0, 2, 3], "what no flush covered gets no mark");
    world.play(&mut host, vec![Step::Flush, Step::Pause, LOOK]);
    let image = world.medium.borrow().image.clone();
    assert_eq!(marks(&image), [0, 0, 2, 3, 4]);
    let (mut reborn, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [1, 2, 3]);
    let found = reborn.read_all();
    let happenings = world.medium.borrow().happenings.clone();
    assert_eq!(wrong(&found, &allowed(&happenings), false), None);
    assert_eq!(rolled_back_max(&reborn), 0);
}

#[test]
fn damage_to_the_newest_records_is_noticed_once_the_flush_is_marked() {
    let steps = [write(1), durably(2)];
    let newest = SHAPE.settings().address_of(Lsn(1));

    let (world, _) = after(&steps);
    let mut image = world.medium.borrow().image.clone();
    damage(&mut image, newest);
    let (reborn, seen) = reopen(image).expect("it looks like a torn write");
    assert_eq!(replayed(&seen), [1]);
    assert_eq!(rolled_back_max(&reborn), 1004, "and recovery says so");

    let (mut world, mut host) = after(&steps);
    world.play(&mut host, vec![Step::Pause, LOOK]);
    let mut image = world.medium.borrow().image.clone();
    damage(&mut image, newest);
    let error = reopen(image).err().expect("refused").to_string();
    let expected = "its journal is damaged: block 1 is missing, and block 2 says it was durable";
    assert_eq!(error, expected);

    // A damaged mark takes nothing with it, but that cannot be known.
    let mut image = world.medium.borrow().image.clone();
    damage(&mut image, SHAPE.settings().address_of(Lsn(2)));
    let (reborn, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [1, 2]);
    assert_eq!(rolled_back_max(&reborn), 1004);
}

#[test]
fn recovery_is_silent_when_the_replay_ends_at_an_older_block_or_at_zeroes() {
    let settings = SHAPE.settings();
    let (world, _) = after(&[write(1), write(2)]);
    let mut image = world.medium.borrow().image.clone();
    let (reborn, _) = reopen(image.clone()).expect("opens");
    assert_eq!(rolled_back_max(&reborn), 0, "zeroes");
    // Whole once around the ring: what lies behind the end is older and whole.
    let mut world = World::formatted(SHAPE, 1);
    let many = (0..30).map(|number| write(number % 20)).collect();
    world.play(&mut Host::new(1), many);
    let (reborn, _) = reopen(world.medium.borrow().image.clone()).expect("opens");
    assert_eq!(rolled_back_max(&reborn), 0, "an older lap");
    // What was never sealed is neither.
    image.insert(settings.address_of(Lsn(2)), vec![0x5a; 4096].into());
    let (reborn, _) = reopen(image).expect("opens");
    assert_eq!(rolled_back_max(&reborn), 1004, "noise");
}

#[test]
fn a_format_blanks_the_ring() {
    let world = World::formatted(SHAPE, 1);
    let ring = SHAPE.settings().ring();
    let medium = world.medium.borrow();
    let (operation, extent) = medium.operations[0];
    assert!(matches!(operation, Operation::Zero { .. }));
    assert_eq!(extent, ring);
}

#[test]
fn a_power_cut_at_any_time_around_marks_loses_nothing_durable() {
    let mut steps = Vec::new();
    for number in 0..8 {
        steps.extend([write(number), write(number + 8), Step::Flush]);
        steps.extend([write(number + 16), Step::Pause, LOOK]);
    }
    for seed in 0..40 {
        let mut world = World::formatted(SHAPE, seed);
        world.play(&mut Host::new(2), steps.clone());
        let happenings = world.medium.borrow().happenings.clone();
        let mut rng = Rng::new(seed, 3);
        for _ in 0..20 {
            // Behind those of the format.
            let end = 40 + rng.below(happenings.len() as u64 - 40) as usize;
            let image = after_power_cut(&Image::new(), &happenings[..end], |_| {
                [0, ALL_SECTORS, rng.below(256) as u8][rng.below(3) as usize]
            });
            let (mut reborn, _) = reopen(image).expect("opens");
            let found = reborn.read_all();
            let judged = wrong(&found, &allowed(&happenings[..end]), false);
            assert_eq!(judged, None, "seed {seed}, happening {end}");
        }
    }
}
