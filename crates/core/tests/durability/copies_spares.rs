//! A durable array of copies with a spare that steps in.

use crate::common::journal_disk::{ByteMedium, Image};
use crate::copies_toy::BLOCKS;
use crate::copies_world::{Host, Inserted, SET, Step, World};
use imbrex_core::array::raid1::{Raid1, Raid1Keeping};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::error::IoError;
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::units::{BlockCount, Duration};
use std::cell::RefCell;
use std::rc::Rc;

const DISK_BLOCKS: u64 = 140;

fn all(disks: u8) -> Vec<Option<Inserted>> {
    let first = |port: u8| Inserted { disk: u64::from(port), number: u16::from(port) };
    (0..disks).map(|port| Some(first(port))).collect()
}

/// An array the last disk of which is a spare.
fn array(inserted: &[Option<Inserted>], medium: &Rc<RefCell<ByteMedium>>, seed: u64) -> World {
    let keeping = Raid1Keeping {
        durability: DurabilitySettings { ring_blocks: 24, unflushed_blocks_max: 16 },
        region_rows: 8,
        memory_bytes: 1 << 20,
        lost_after: Duration::from_ms(60_000),
    };
    let disk = Geometry::plain(BlockCount(DISK_BLOCKS), Media::SolidState);
    let below = vec![&disk; inserted.len()];
    let (raid, _) = Raid1::new(&below, 1, Some(BlockCount(BLOCKS)), Some(keeping)).expect("room");
    let blocks = vec![DISK_BLOCKS; inserted.len()];
    World::of_layer(Box::new(raid), &blocks, inserted, medium, (seed, None))
}

fn formatted(disks: u8, seed: u64) -> World {
    let mut world = array(&all(disks), &Rc::default(), seed);
    world.open(Start::Format(SET)).expect("a format");
    world
}

fn reopened(image: &Image, inserted: &[Option<Inserted>]) -> (Image, Result<(), OpenError>) {
    let medium = ByteMedium { image: image.clone(), ..ByteMedium::default() };
    let medium = Rc::new(RefCell::new(medium));
    let opened = array(inserted, &medium, 9).open(Start::Recover(Some(SET)));
    let image = medium.borrow().image.clone();
    (image, opened)
}

/// A write of the journal is under way on the others: that the disk is out is not written at once.
#[test]
fn a_new_disk_is_taken_where_a_spare_has_stepped_in() {
    for (seed, pause) in (0..10).flat_map(|seed| (0..60).map(move |at| (seed, at * 50))) {
        let mut world = formatted(4, seed);
        let mut host = Host::new(2);
        host.pause = Duration(pause);
        let steps = [Step::Write(1), Step::Lose(1), Step::Replace(1), Step::Settle];
        world.play(&mut host, &steps);
        world.play(&mut host, &[Step::Write(2), Step::Settle]);
        let told = (host.failures, host.refused);
        assert_eq!(told, (vec![], vec![]), "seed {seed}, after {pause} ns");
    }
}

/// What had everything is lost while the spare is being filled, is not there at the next start, and comes back.
#[test]
fn the_loss_of_the_last_whole_member_is_not_recorded() {
    let mut refused = 0;
    for (seed, pause) in (0..4).flat_map(|seed| (0..50).map(move |at| (seed, at * 500))) {
        let told = format!("seed {seed}, after {pause} ns");
        let mut world = formatted(3, seed);
        let mut host = Host::new(4);
        world.play(&mut host, &[Step::Write(1), Step::Flush, Step::Settle]);
        host.pause = Duration(pause);
        world.play(&mut host, &[Step::Lose(1), Step::Write(2), Step::Lose(0)]);
        let image = world.medium.borrow().image.clone();
        let (_, opened) = reopened(&image, &all(3));
        assert_eq!(opened, Ok(()), "{told}");
        let mut without = all(3);
        without[0] = None;
        let (image, opened) = reopened(&image, &without);
        refused += u64::from(opened == Err(OpenError::Io(IoError::Lost)));
        let (_, opened) = reopened(&image, &all(3));
        assert_eq!(opened, Ok(()), "{told}, after a start without it");
    }
    assert!((10..190).contains(&refused), "{refused} starts without it were refused");
}
