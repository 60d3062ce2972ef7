//! The journal of a layer: what it promises and when, and what recovery brings back.

use crate::common::journal_disk::{Image, after_power_cut, block_of};
use crate::common::journal_toy::Seen;
use crate::common::journal_world::{
    Host, SET, SHAPE, Step, World, after, damage, durably, newest, random_steps, reopen, replayed,
    superblock_of, write, wrong,
};
use imbrex_core::durability::block::{self, BlockKind, Expected};
use imbrex_core::durability::{Intact, JournalSettings, Lsn};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::OpenError;
use imbrex_core::operation::Operation;

/// The mark of the journal block with a number, if it is there.
fn mark_of(image: &Image, settings: &JournalSettings, lsn: u64) -> Option<u64> {
    let address = settings.address_of(Lsn(lsn));
    let expected = Expected::new(BlockKind::Journal, None, address);
    let bytes = block_of(image, address);
    let (header, _) = block::unseal(&bytes, expected).ok()?;
    (header.sequence == lsn).then_some(header.mark)
}

#[test]
fn a_fresh_journal_has_four_equal_superblocks() {
    let world = World::formatted(SHAPE, 1);
    assert_eq!(*world.seen.borrow(), [Seen::Opened]);
    let image = &world.medium.borrow().image;
    let first = superblock_of(image, 0);
    assert_eq!((first.set, first.member), (SET, SET.member(0)));
    assert_eq!((first.generation, first.epoch, first.clean), (1, 1, false));
    for copy in 1..4 {
        assert_eq!(superblock_of(image, copy), first);
    }
}

#[test]
fn superblock_copies_are_written_in_two_halves_with_a_flush_after_each() {
    let world = World::formatted(SHAPE, 1);
    let settings = SHAPE.settings();
    let addresses = settings.superblock_addresses();
    let operations = &world.medium.borrow().operations;
    let what: Vec<String> = operations
        .iter()
        .map(|(operation, extent)| match operation {
            Operation::Flush => "flush".to_owned(),
            Operation::Read => "read".to_owned(),
            Operation::Zero { .. } => "zero".to_owned(),
            _ => match addresses.iter().position(|at| *at == extent.start.0) {
                Some(copy) => format!("copy {copy}"),
                None => "page".to_owned(),
            },
        })
        .collect();
    let expected =
        ["zero", "page", "flush", "copy 0", "copy 1", "flush", "copy 2", "copy 3", "flush"];
    assert_eq!(what, expected);
}

#[test]
fn a_write_is_answered_when_its_record_is_written_and_a_durable_one_after_a_flush() {
    let (mut world, mut host) = after(&[write(3)]);
    assert_eq!(world.take_seen(), [Seen::Opened, Seen::Written(0)]);
    let flushes = world.medium.borrow().flushes();
    world.play(&mut host, vec![durably(4)]);
    assert_eq!(world.take_seen(), [Seen::Written(1), Seen::Flushed(2)]);
    assert_eq!(world.medium.borrow().flushes(), flushes + 1);
    world.play(&mut host, vec![write(5), Step::Flush]);
    assert_eq!(world.take_seen(), [Seen::Written(2), Seen::Flushed(3)]);
    world.play(&mut host, vec![Step::Flush]);
    assert_eq!(world.take_seen(), [Seen::Flushed(3)], "nothing to write");
}

#[test]
fn records_that_come_together_share_a_block() {
    let mut world = World::formatted(SHAPE, 1);
    world.gauges.no_checkpoints.set(true);
    let mut host = Host::new(16);
    world.play(&mut host, (0..24).map(write).collect());
    let blocks = world.medium.borrow().writes_in(SHAPE.settings().ring());
    assert!((2..=12).contains(&blocks), "{blocks} blocks for 24 records");
    let (_, seen) = reopen(world.medium.borrow().image.clone()).expect("opens");
    let mut records = replayed(&seen);
    records.sort_unstable();
    assert_eq!(records, (0..24).collect::<Vec<u64>>());
}

#[test]
fn forced_writes_that_come_together_share_a_flush() {
    let mut world = World::formatted(SHAPE, 1);
    let before = world.medium.borrow().flushes();
    let mut host = Host::new(16);
    world.play(&mut host, (0..32).map(durably).collect());
    let flushes = world.medium.borrow().flushes() - before;
    assert!(flushes <= 20, "{flushes} flushes for 32 forced writes");
    let medium = world.medium.borrow();
    let image = after_power_cut(&Image::new(), &medium.happenings, |_| 0);
    let (mut reborn, _) = reopen(image).expect("opens");
    assert_eq!(wrong(&reborn.read_all(), &newest(&medium.happenings), false), None);
}

#[test]
fn the_ring_wraps_with_a_checkpoint_at_every_half() {
    let mut world = World::formatted(SHAPE, 1);
    let mut host = Host::new(4);
    world.play(&mut host, random_steps(7, 400, SHAPE.device_blocks));
    assert_eq!(host.failures, []);
    let seen = world.take_seen();
    let checkpoints = seen.iter().filter(|seen| matches!(seen, Seen::Checkpointed(_))).count();
    let last = seen.iter().filter_map(|seen| match seen {
        Seen::Written(lsn) => Some(*lsn),
        _ => None,
    });
    let last = last.max().expect("blocks were written");
    assert!(last > 8 * SHAPE.ring_blocks, "{last} blocks: the ring has not wrapped often");
    let fewest = last / (SHAPE.ring_blocks - SHAPE.ring_blocks / 4);
    assert!(checkpoints as u64 >= fewest, "{checkpoints} checkpoints for {last} blocks");
    assert!(checkpoints as u64 <= 2 + last / (SHAPE.ring_blocks / 2), "{checkpoints} for {last}");
    let happenings = &world.medium.borrow().happenings;
    let (mut reborn, _) = reopen(world.medium.borrow().image.clone()).expect("opens");
    assert_eq!(wrong(&reborn.read_all(), &newest(happenings), false), None);
}

#[test]
fn recovery_brings_back_exactly_the_records_after_the_checkpoint() {
    // Eight blocks are half of the ring, so the checkpoint comes with the eighth.
    let (world, _) = after(&(0..11).map(write).collect::<Vec<Step>>());
    let image = world.medium.borrow().image.clone();
    assert_eq!(superblock_of(&image, 0).replay_from, 8);
    let (mut reborn, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [8, 9, 10]);
    assert_eq!(seen.last(), Some(&Seen::Opened));
    let found = reborn.read_all();
    assert_eq!(wrong(&found, &newest(&world.medium.borrow().happenings), false), None);
}

#[test]
fn opening_takes_a_new_epoch_and_never_replays_the_last_one() {
    let (world, _) = after(&[write(1), write(2), write(3)]);
    let mut image = world.medium.borrow().image.clone();
    let settings = SHAPE.settings();
    // The last record is torn, so the next life begins at its place.
    damage(&mut image, settings.address_of(Lsn(1)));
    let (mut second, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [1]);
    second.play(&mut Host::new(1), vec![write(7)]);
    let image = second.medium.borrow().image.clone();
    assert_eq!(superblock_of(&image, 0).epoch, 2);
    assert_eq!(mark_of(&image, &settings, 2), Some(0), "the old block is still there");
    let (_, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [7]);
}

#[test]
fn data_that_no_flush_covered_is_read_and_what_is_missing_is_rolled_back() {
    let (world, _) = after(&[durably(1), write(2), write(1), Step::Write(Extent::new(8, 3))]);
    let mut image = world.medium.borrow().image.clone();
    let lost: Vec<u64> = {
        // The places of the second version of block 1 and of block 9.
        let (_, seen) = reopen(image.clone()).expect("opens");
        let Some(Seen::Recovered(records, false)) = seen.first() else {
            panic!("no recovery");
        };
        assert!(records.iter().all(|record| record.intact == Intact::All));
        let place = |record: usize, block: u64| records[record].data.expect("data").start.0 + block;
        vec![place(2, 0), place(3, 1)]
    };
    for place in &lost {
        damage(&mut image, *place);
    }
    let (mut reborn, seen) = reopen(image).expect("opens");
    let Some(Seen::Recovered(records, false)) = seen.first() else {
        panic!("no recovery");
    };
    assert_eq!(records[1].intact, Intact::All);
    assert_eq!(records[2].intact, Intact::Blocks(vec![false]));
    assert_eq!(records[3].intact, Intact::Blocks(vec![true, false, true]));
    let found = reborn.read_all();
    assert_eq!((found[&1], found[&2]), (Ok(2), Ok(4)));
    assert_eq!((found[&8], found[&9], found[&10]), (Ok(8), Ok(0), Ok(12)));
}

#[test]
fn data_that_a_block_behind_a_gap_says_was_durable_is_not_rolled_back() {
    let (world, _) = after(&[durably(1), write(2), write(3)]);
    let settings = SHAPE.settings();
    let mut image = world.medium.borrow().image.clone();
    let (_, seen) = reopen(image.clone()).expect("opens");
    let Some(Seen::Recovered(records, false)) = seen.first() else {
        panic!("no recovery");
    };
    damage(&mut image, records[0].data.expect("data").start.0);
    // Block 1 never came, so block 2 is not replayed; block 0 was durable when it was written.
    image.remove(&settings.address_of(Lsn(1)));
    assert_eq!(mark_of(&image, &settings, 0), Some(0));
    assert_eq!(mark_of(&image, &settings, 2), Some(1));
    let (mut reborn, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [1]);
    assert_eq!(reborn.read_all()[&1], Err(()));
}

#[test]
fn data_that_a_flush_covered_is_not_read_again() {
    // The mark is in the block that follows the flush.
    let (world, _) = after(&[write(1), write(2), Step::Flush, write(3)]);
    let mut reborn = world.reborn(2);
    reborn.recover().expect("opens");
    let places = SHAPE.places();
    let medium = reborn.medium.borrow();
    let reads = medium
        .operations
        .iter()
        .filter(|(operation, extent)| *operation == Operation::Read && places.covers(*extent));
    assert_eq!(reads.count(), 1);
}

#[test]
fn a_bad_block_ends_the_replay() {
    let (world, _) = after(&[write(1), write(2), write(3), write(4)]);
    let mut image = world.medium.borrow().image.clone();
    damage(&mut image, SHAPE.settings().address_of(Lsn(2)));
    let (_, seen) = reopen(image).expect("opens");
    assert_eq!(replayed(&seen), [1, 2]);
}

#[test]
fn a_bad_block_that_was_durable_is_damage() {
    let (world, _) = after(&[write(1), write(2), durably(3), write(4)]);
    let settings = SHAPE.settings();
    let image = world.medium.borrow().image.clone();
    assert_eq!(mark_of(&image, &settings, 3), Some(3));
    for lsn in 0..3 {
        let mut image = image.clone();
        damage(&mut image, settings.address_of(Lsn(lsn)));
        let error = reopen(image).err().expect("refused");
        let expected = format!(
            "its journal is damaged: block {lsn} is missing, and block 3 says it was durable"
        );
        assert_eq!(error.to_string(), expected);
    }
    // A write that never happened is seen as well: the place still holds nothing.
    let mut image = image.clone();
    image.remove(&settings.address_of(Lsn(1)));
    assert!(matches!(reopen(image), Err(OpenError::Damaged { .. })));
}

#[test]
fn a_clean_close_leaves_nothing_to_replay() {
    let (mut world, _) = after(&[write(1), write(2)]);
    assert!(world.close());
    assert_eq!(world.take_seen().last(), Some(&Seen::Closed));
    let image = world.medium.borrow().image.clone();
    assert!((0..4).all(|copy| superblock_of(&image, copy).clean));
    let (mut reborn, seen) = reopen(image).expect("opens");
    assert_eq!(seen, [Seen::Recovered(Vec::new(), true), Seen::Opened]);
    assert!(!superblock_of(&reborn.medium.borrow().image, 0).clean);
    assert_eq!(reborn.read_all()[&2], Ok(4));
}

#[test]
fn a_refused_opening_writes_nothing() {
    let (world, _) = after(&[write(1), durably(3), write(4)]);
    let mut reborn = world.reborn(1);
    let address = SHAPE.settings().address_of(Lsn(0));
    damage(&mut reborn.medium.borrow_mut().image, address);
    reborn.recover().expect_err("refused");
    let medium = reborn.medium.borrow();
    assert!(medium.operations.iter().all(|(operation, _)| *operation == Operation::Read));
}

#[test]
fn a_checkpoint_is_wanted_at_half_and_there_is_room_up_to_three_quarters() {
    let mut world = World::formatted(SHAPE, 1);
    world.gauges.no_checkpoints.set(true);
    let mut host = Host::new(1);
    for used in 1..=13 {
        world.play(&mut host, vec![write(used)]);
        assert_eq!(world.gauges.wants_checkpoint.get(), used >= 8, "{used} blocks");
        assert_eq!(world.gauges.has_room.get(), used <= 12, "{used} blocks");
    }
    world.gauges.no_checkpoints.set(false);
    world.play(&mut host, vec![write(1), write(2), Step::Flush]);
    assert!(world.seen.borrow().contains(&Seen::Checkpointed(13)));
    assert!(world.gauges.has_room.get() && !world.gauges.wants_checkpoint.get());
    assert_eq!(host.failures, []);
}
