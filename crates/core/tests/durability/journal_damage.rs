//! Whatever is damaged on the member of a journal: it is repaired or reported, and never wrong.

use crate::common::damage::{Damage, Target, data, fields_of_block};
use crate::common::journal_disk::{ALL_SECTORS, Happening, Image, after_power_cut, block_of};
use crate::common::journal_toy::ZEROED;
use crate::common::journal_world::{
    Host, SHAPE, Step, World, allowed, damage, durably, newest, random_steps, superblock_of, write,
    wrong,
};
use imbrex_core::durability::block::{self, BlockKind, Expected, Field};
use imbrex_core::durability::{JournalSettings, Lsn};
use imbrex_core::extent::Extent;
use imbrex_core::rng::Rng;
use std::collections::BTreeMap;

/// What a toy holds that stopped without a close, and all that happened to it.
fn stopped() -> (Image, Vec<Happening>) {
    let mut world = World::formatted(SHAPE, 1);
    let mut host = Host::new(4);
    world.play(&mut host, random_steps(4, 90, SHAPE.device_blocks));
    world.gauges.no_checkpoints.set(true);
    // What a flush has covered is known to be durable from the next block of the journal on.
    let several = Step::Write(Extent::new(8, 3));
    let zeroed = Step::Zero(Extent::new(12, 2));
    host.queue_depth = 1;
    let steps = [durably(3), several, zeroed, Step::Flush, write(9), write(20)];
    world.play(&mut host, steps.to_vec());
    let medium = world.medium.borrow();
    (medium.image.clone(), medium.happenings.clone())
}

/// The number of the journal block at an address, and its mark.
fn journal_block(image: &Image, address: u64) -> Option<(u64, u64)> {
    let expected = Expected::new(BlockKind::Journal, None, address);
    let bytes = block_of(image, address);
    let (header, _) = block::unseal(&bytes, expected).ok()?;
    Some((header.sequence, header.mark))
}

/// The journal blocks that are replayed, and the greatest mark in them.
fn replayed(image: &Image, settings: &JournalSettings, from: u64) -> (Vec<u64>, u64) {
    let there = |lsn: &u64| {
        let block = journal_block(image, settings.address_of(Lsn(*lsn)));
        block.is_some_and(|(sequence, _)| sequence == *lsn)
    };
    let lsns: Vec<u64> = (from..).take_while(there).collect();
    let marks = lsns.iter().map(|lsn| {
        let block = journal_block(image, settings.address_of(Lsn(*lsn)));
        block.expect("it is there").1
    });
    let mark = marks.max().expect("journal blocks");
    (lsns, mark)
}

/// The words in the records of the toy.
const WRITTEN_FIELDS: [Field; 1] = [word("written_block", 0)];
const ZEROED_FIELDS: [Field; 2] = [word("zeroed_block", 0), word("zeroed_blocks", 8)];

const fn word(name: &'static str, offset: usize) -> Field {
    Field { name, offset, bytes: 8 }
}

fn record_fields(kind: u8) -> (&'static str, &'static [Field]) {
    match kind {
        ZEROED => ("zeroed", &ZEROED_FIELDS),
        _ => ("written", &WRITTEN_FIELDS),
    }
}

#[test]
fn damage_to_any_field_is_repaired_or_reported() {
    let (image, happenings) = stopped();
    let settings = SHAPE.settings();
    let superblock = superblock_of(&image, 0);
    let (lsns, mark) = replayed(&image, &settings, superblock.replay_from);
    assert!(mark > superblock.replay_from + 1 && lsns.last() >= Some(&mark));

    // Each target, and whether the newest state must be there when it is not reported.
    let mut targets: Vec<(Target, bool)> = Vec::new();
    let mut add = |found: Vec<Target>, strict: bool| {
        targets.extend(found.into_iter().map(|target| (target, strict)));
    };
    for address in settings.superblock_addresses() {
        add(fields_of_block(&image, address, BlockKind::Superblock, record_fields), true);
    }
    let pages = JournalSettings::checkpoint_blocks_for(superblock.checkpoint_bytes);
    let start = settings.checkpoint_start(superblock.checkpoint_place);
    for address in start..start + pages {
        add(fields_of_block(&image, address, BlockKind::CheckpointPage, record_fields), true);
    }
    for lsn in lsns {
        // What no flush has covered may be lost.
        let address = settings.address_of(Lsn(lsn));
        add(fields_of_block(&image, address, BlockKind::Journal, record_fields), lsn < mark);
    }
    let places = SHAPE.places();
    for address in places.start.0..places.end().0 {
        add(vec![data("data", address)], false);
    }

    let mut outcomes: BTreeMap<(String, &str), u64> = BTreeMap::new();
    let mut rng = Rng::new(1, 3);
    for (target, strict) in &targets {
        for damage in Damage::ALL {
            let mut damaged = image.clone();
            if !damage.apply(&mut damaged, target, &mut rng) {
                continue;
            }
            let mut world = World::over(SHAPE, damaged, 2);
            let outcome = match world.recover() {
                Err(_) => "refused",
                Ok(()) => {
                    let expected = match strict {
                        true => newest(&happenings),
                        false => allowed(&happenings),
                    };
                    let found = world.read_all();
                    let problem = wrong(&found, &expected, true);
                    assert_eq!(problem, None, "{damage:?} of {target:?}");
                    match found.values().any(Result::is_err) {
                        true => "reported by reads",
                        false => "no effect on reads",
                    }
                }
            };
            if target.name.starts_with("superblock") {
                assert_eq!(outcome, "no effect on reads", "{damage:?} of {target:?}");
                let after = &world.medium.borrow().image;
                let generations = (0..4).map(|copy| superblock_of(after, copy).generation);
                assert!(
                    generations.into_iter().all(|generation| generation > superblock.generation)
                );
            } else if *strict {
                assert_eq!(outcome, "refused", "{damage:?} of {target:?}");
            }
            *outcomes.entry((target.name.clone(), outcome)).or_default() += 1;
        }
    }
    for ((name, outcome), count) in &outcomes {
        println!("{count:>5}  {name}: {outcome}");
    }
    assert!(outcomes.len() > 40, "every field was damaged");
}

#[test]
fn a_write_that_was_lost_or_went_elsewhere_is_repaired_or_reported() {
    let (image, happenings) = stopped();
    let writes: Vec<(u64, u64)> = happenings
        .iter()
        .filter_map(|happening| match happening {
            Happening::Write { number, address, .. } => Some((*number, *address)),
            _ => None,
        })
        .collect();
    let whole = after_power_cut(&Image::new(), &happenings, |_| ALL_SECTORS);
    assert_eq!(whole, image, "the image is what all writes leave behind");
    let settings = SHAPE.settings();
    let (lsns, mark) = replayed(&image, &settings, superblock_of(&image, 0).replay_from);
    let marks = |lsn: &&u64| {
        let block = journal_block(&image, settings.address_of(Lsn(**lsn)));
        block.is_some_and(|(_, found)| found == mark)
    };
    let newest_mark = lsns.iter().filter(marks).map(|lsn| settings.address_of(Lsn(*lsn)));
    let newest_mark = newest_mark.max().expect("a mark");
    let mut rng = Rng::new(2, 3);
    for (lost, address) in writes.iter().rev().take(150) {
        // The disk has answered the write and a flush, and did not do it.
        let mut before = Image::new();
        for happening in &happenings {
            if let Happening::Write { number, address, block } = happening
                && number != lost
            {
                before.insert(*address, block.clone());
            }
        }
        check(before.clone(), &happenings, &format!("write {lost} to {address} was lost"));
        // And it went to where something else lies. With the block that says what is durable lost
        // at the same time, that cannot be told from a power cut.
        if *address == newest_mark {
            continue;
        }
        let elsewhere = rng.below(SHAPE.settings().member_blocks.0);
        before.insert(elsewhere, block_of(&image, *address));
        let name = format!("write {lost} to {address} went to {elsewhere}");
        check(before, &happenings, &name);
    }
}

fn check(image: Image, happenings: &[Happening], name: &str) {
    let mut world = World::over(SHAPE, image, 2);
    if world.recover().is_ok() {
        let found = world.read_all();
        assert_eq!(wrong(&found, &allowed(happenings), true), None, "{name}");
    }
}

#[test]
fn after_a_clean_close_damage_takes_nothing_back() {
    let mut world = World::formatted(SHAPE, 1);
    let mut host = Host::new(4);
    world.play(&mut host, random_steps(4, 90, SHAPE.device_blocks));
    world.play(&mut host, vec![write(3), Step::Flush, write(9)]);
    assert!(world.close());
    let (image, happenings) = {
        let medium = world.medium.borrow();
        (medium.image.clone(), medium.happenings.clone())
    };
    let settings = SHAPE.settings();
    let superblock = superblock_of(&image, 0);
    let pages = JournalSettings::checkpoint_blocks_for(superblock.checkpoint_bytes);
    let start = settings.checkpoint_start(superblock.checkpoint_place);
    let mut journal_blocks = 0;
    for address in settings.area.start.0..settings.area.end().0 {
        journal_blocks += u64::from(journal_block(&image, address).is_some());
        let mut damaged = image.clone();
        damage(&mut damaged, address);
        let mut world = World::over(SHAPE, damaged, 2);
        let opened = world.recover();
        let is_checkpoint = (start..start + pages).contains(&address);
        assert_eq!(opened.is_err(), is_checkpoint, "block {address}");
        if opened.is_ok() {
            let found = world.read_all();
            let problem = wrong(&found, &newest(&happenings), false);
            assert_eq!(problem, None, "block {address}");
        }
    }
    assert_eq!(journal_blocks, settings.ring().blocks.0, "the ring is full");
}
