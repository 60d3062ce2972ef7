//! The copies of the superblock: which one counts, and what is refused.

use crate::common::journal_disk::{ALL_SECTORS, Image, after_power_cut, block_of};
use crate::common::journal_world::{
    SET, SHAPE, Step, World, after, damage, durably, newest, put_superblock, reopen, replayed,
    superblock_of, wrong,
};
use imbrex_core::durability::block;
use imbrex_core::durability::superblock::{
    FEATURE_PARTS, FEATURE_RECORD_PARTS, FEATURE_STRETCHES, Superblock,
};
use imbrex_core::durability::{JournalSettings, LayerKind};
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::units::BlockCount;
use std::rc::Rc;

#[test]
fn each_copy_of_the_superblock_may_be_damaged_in_turn() {
    let (world, _) = after(&[durably(1), durably(2)]);
    let happenings = &world.medium.borrow().happenings;
    for copies in [&[0][..], &[1], &[2], &[3], &[0, 1], &[2, 3], &[0, 3], &[0, 1, 2], &[1, 2, 3]] {
        let mut image = world.medium.borrow().image.clone();
        for copy in copies {
            damage(&mut image, SHAPE.settings().superblock_addresses()[*copy]);
        }
        let (mut reborn, _) = reopen(image).expect("opens");
        assert_eq!(wrong(&reborn.read_all(), &newest(happenings), false), None);
        let image = reborn.medium.borrow().image.clone();
        for copy in 0..4 {
            assert_eq!(superblock_of(&image, copy).generation, 2, "copies are repaired");
        }
    }
    let mut image = world.medium.borrow().image.clone();
    for address in SHAPE.settings().superblock_addresses() {
        damage(&mut image, address);
    }
    let error = reopen(image).err().expect("refused");
    assert!(matches!(&error, OpenError::Damaged { structure: "superblock", .. }), "{error}");
}

/// The images with the old superblock in all copies, and in the last two.
fn in_a_checkpoint() -> (World, Image, Superblock, Superblock) {
    let (mut world, mut host) = after(&(0..7).map(durably).collect::<Vec<Step>>());
    let old = superblock_of(&world.medium.borrow().image, 0);
    world.play(&mut host, vec![durably(7)]);
    let image = world.medium.borrow().image.clone();
    let new = superblock_of(&image, 0);
    assert_eq!((old.generation, new.generation), (1, 2));
    (world, image, old, new)
}

#[test]
fn the_newest_generation_with_two_copies_counts() {
    let (world, image, old, new) = in_a_checkpoint();
    let happenings = &world.medium.borrow().happenings;
    // Which copies are new, and the first block that is replayed then.
    let cases = [
        (&[0, 1][..], new.replay_from),
        (&[0], old.replay_from),
        (&[1], old.replay_from),
        (&[0, 1, 2], new.replay_from),
        (&[0, 1, 3], new.replay_from),
    ];
    for (copies, replay_from) in cases {
        let mut image = image.clone();
        for copy in 0..4 {
            let is_new = copies.contains(&copy);
            put_superblock(&mut image, copy, if is_new { &new } else { &old });
        }
        let (mut reborn, seen) = reopen(image).expect("opens");
        assert_eq!(replayed(&seen).len() as u64, 8 - replay_from, "new copies {copies:?}");
        assert_eq!(wrong(&reborn.read_all(), &newest(happenings), false), None);
        let after = superblock_of(&reborn.medium.borrow().image, 0);
        assert_eq!(after.generation, 3, "a generation is never used twice");
    }
}

#[test]
fn a_lone_newer_copy_counts_when_the_older_checkpoint_is_gone() {
    // A crash after the first half of the copies, and one while the next opening wrote its
    // checkpoint over the older one; then one of the two newer copies is damaged.
    let (world, mut image, old, new) = in_a_checkpoint();
    for (copy, superblock) in [(0, &new), (1, &new), (2, &old), (3, &old)] {
        put_superblock(&mut image, copy, superblock);
    }
    let settings = SHAPE.settings();
    damage(&mut image, settings.checkpoint_start(old.checkpoint_place));
    damage(&mut image, settings.superblock_addresses()[0]);
    let (mut reborn, _) = reopen(image).expect("opens");
    let happenings = &world.medium.borrow().happenings;
    assert_eq!(wrong(&reborn.read_all(), &newest(happenings), false), None);
}

/// A crash while a checkpoint was written has left one good copy that names it, and one with
/// garbage behind its first sector, of which another torn write may make a good one. By then its
/// place must not be in use for another checkpoint.
#[test]
fn a_copy_that_recovery_passed_over_never_counts_again() {
    let (world, image, old, new) = in_a_checkpoint();
    let expected = newest(&world.medium.borrow().happenings);
    for strays in [[0, 1], [1, 0], [2, 3], [3, 2]] {
        let mut image = image.clone();
        for copy in 0..4 {
            let is_stray = strays.contains(&copy);
            put_superblock(&mut image, copy, if is_stray { &new } else { &old });
        }
        damage(&mut image, SHAPE.settings().superblock_addresses()[strays[1]]);
        let (reborn, _) = reopen(image.clone()).expect("opens");
        let happenings = reborn.medium.borrow().happenings.clone();
        for moment in 0..=happenings.len() {
            for choice in 0..256 {
                // Of each write in flight nothing, the whole, its first sector or the others.
                let mut digits = choice;
                let fate = |_| {
                    let sectors = [0, ALL_SECTORS, 0x01, 0xfe][digits % 4];
                    digits /= 4;
                    sectors
                };
                let cut = after_power_cut(&image, &happenings[..moment], fate);
                let what = format!("strays {strays:?}, moment {moment}, choice {choice}");
                let third = reopen(cut).map(|(world, _)| world);
                let mut third = third.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(wrong(&third.read_all(), &expected, false), None, "{what}");
            }
        }
    }
}

#[test]
fn an_older_checkpoint_never_takes_the_place_of_a_damaged_newer_one() {
    let (_, mut image, old, new) = in_a_checkpoint();
    put_superblock(&mut image, 3, &old);
    damage(&mut image, SHAPE.settings().checkpoint_start(new.checkpoint_place));
    let error = reopen(image).err().expect("refused");
    assert!(matches!(&error, OpenError::Damaged { structure: "checkpoint", .. }), "{error}");
}

#[test]
fn what_belongs_to_others_is_refused_with_its_name() {
    let (world, _) = after(&[durably(1)]);
    let image = world.medium.borrow().image.clone();
    let other = Uuid([9; 16]);
    let mut stranger = World::over(SHAPE, image.clone(), 1);
    let error = stranger.open(Start::Recover(Some(other))).expect_err("refused");
    let expected = OpenError::Foreign { found: SET, expected: other };
    assert_eq!(error, expected);
    let mut nameless = World::over(SHAPE, image.clone(), 1);
    assert_eq!(nameless.open(Start::Recover(None)), Ok(()));

    let mut swapped = image;
    for copy in 0..4 {
        let superblock = superblock_of(&swapped, copy);
        let member = SET.member(1);
        put_superblock(&mut swapped, copy, &Superblock { member, ..superblock });
    }
    let error = reopen(swapped).err().expect("refused");
    let expected = OpenError::OtherMember { found: SET.member(1), expected: SET.member(0) };
    assert_eq!(error, expected);
    assert_eq!(reopen(Image::new()).err(), Some(OpenError::NotFormatted));
}

#[test]
fn other_versions_features_and_settings_are_refused() {
    let (world, _) = after(&[durably(1)]);
    let image = world.medium.borrow().image.clone();
    let addresses = SHAPE.settings().superblock_addresses();
    let with = |change: &dyn Fn(&mut Superblock)| {
        let mut image = image.clone();
        for copy in 0..4 {
            let mut superblock = superblock_of(&image, copy);
            change(&mut superblock);
            put_superblock(&mut image, copy, &superblock);
        }
        reopen(image).err()
    };
    for version in [0u16, 2] {
        let mut image = image.clone();
        for address in addresses {
            let mut bytes = block_of(&image, address).to_vec();
            bytes[8..10].copy_from_slice(&version.to_le_bytes());
            let checksum = block::checksum_of(&bytes);
            bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
            image.insert(address, bytes.into());
        }
        let expected = OpenError::Version { found: version.into(), supported: 1 };
        assert_eq!(reopen(image).err(), Some(expected));
    }
    assert_eq!(with(&|s| s.required_features = 64), Some(OpenError::Features(64)));
    let no_pages = with(&|s| s.required_features = FEATURE_PARTS);
    assert!(matches!(no_pages, Some(OpenError::Damaged { structure: "superblock", .. })));
    let no_part = with(&|s| {
        s.checkpoint_pages = s.pages();
        s.required_features = FEATURE_PARTS | FEATURE_RECORD_PARTS;
    });
    assert!(matches!(no_part, Some(OpenError::Damaged { structure: "checkpoint", .. })));
    let known = with(&|s| s.required_features = FEATURE_STRETCHES);
    let is_named = |name: &str| name.starts_with("required features");
    assert!(
        matches!(&known, Some(OpenError::Settings { name, found: 1, expected: 0 }) if is_named(name)),
        "{known:?}"
    );
    assert_eq!(with(&|s| s.read_only_features = 2), Some(OpenError::Features(2)));
    assert_eq!(with(&|s| s.compatible_features = 1), None);
    let layer = with(&|s| s.layer = LayerKind::PersistentCache as u32);
    assert!(matches!(layer, Some(OpenError::Settings { name: "layer number", .. })));
    let settings = SHAPE.settings();
    let smaller =
        JournalSettings { member_blocks: BlockCount(settings.member_blocks.0 - 1), ..settings };
    let medium = Rc::clone(&world.medium);
    let mut world = World::with(SHAPE, smaller, &medium, 1, 0);
    let error = world.recover().expect_err("refused");
    let expected = OpenError::Settings {
        name: "device blocks",
        found: settings.member_blocks.0,
        expected: settings.member_blocks.0 - 1,
    };
    assert_eq!(error, expected);
    assert!(with(&|s| s.checkpoint_blocks += 1).is_some());
    assert!(with(&|s| s.area_blocks += 1).is_some());
    assert!(with(&|s| s.checkpoint_place = 2).is_some());
    assert!(with(&|s| s.checkpoint_bytes = u64::MAX).is_some());
}

#[test]
fn impossible_numbers_are_damage() {
    let (world, _) = after(&[durably(1)]);
    let image = world.medium.borrow().image.clone();
    let changes: [fn(&mut Superblock); 3] =
        [|s| s.replay_from = u64::MAX - 3, |s| s.generation = u64::MAX, |s| s.epoch = u64::MAX];
    for change in changes {
        let mut image = image.clone();
        for copy in 0..4 {
            let mut superblock = superblock_of(&image, copy);
            change(&mut superblock);
            put_superblock(&mut image, copy, &superblock);
        }
        assert!(matches!(reopen(image), Err(OpenError::Damaged { .. })));
    }
}

#[test]
fn a_superblock_that_cannot_be_read_is_like_a_damaged_one() {
    let (world, _) = after(&[durably(1)]);
    let addresses = SHAPE.settings().superblock_addresses();
    let mut reborn = world.reborn(3);
    reborn.medium.borrow_mut().unreadable.extend(&addresses[..3]);
    assert_eq!(reborn.recover(), Ok(()));
    let mut reborn = world.reborn(3);
    reborn.medium.borrow_mut().unreadable.extend(addresses);
    assert!(matches!(reborn.recover(), Err(OpenError::Io(_))));
    assert_eq!(reborn.medium.borrow().happenings.len(), 0, "nothing was written");
}
