//! A block that has rotted at home and was written again: it stops the cleaning neither of its band nor
//! of the others, wherever the power is cut.

use crate::common::journal_disk::{Image, after_power_cut};
use crate::common::journal_world::{Host, SET, Step, damage, newest, wrong};
use crate::damage::{Case, World};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Start;

/// The band of 24 blocks, which is rewritten in four stretches, and its last block.
const BAND: (u64, u64) = (20, 24);
const BAD: u64 = BAND.0 + BAND.1 - 1;

fn durably(block: u64) -> Step {
    Step::WriteDurable(Extent::new(block, 1))
}

/// Plays steps one at a time on what `image` holds; every one must succeed.
fn played(image: &Image, start: Start, host: &mut Host, steps: Vec<Step>, when: &str) -> World {
    let mut world = World::over(Case::in_stretches(0), image);
    assert_eq!(world.open(start), Ok(()), "{when}");
    world.play(host, steps);
    assert_eq!(host.failures, [], "{when}");
    world
}

#[test]
fn a_bad_block_that_was_written_again_stops_no_cleaning_wherever_the_power_is_cut() {
    let mut host = Host::new(1);
    // The log has 24 slots: filling the others sends the band home.
    let all = (0..60).map(durably).chain((0..20).map(durably));
    let again = [BAND.0, BAD].map(durably);
    let start = Start::Format(SET);
    let world = played(&Image::new(), start, &mut host, all.chain(again).collect(), "first");
    let mut image = world.medium.borrow().image.clone();
    let mut happened = world.medium.borrow().happenings.clone();
    // The log lies before the bands.
    let copies: Vec<u64> = image
        .iter()
        .filter(|(_, bytes)| {
            bytes[..8] == BAD.to_le_bytes() && bytes[16..20] == (BAD as u32).to_le_bytes()
        })
        .map(|(address, _)| *address)
        .collect();
    let home = *copies.last().expect("a copy at home");
    assert!(copies.len() > 1, "it is in the log and at home: {copies:?}");
    damage(&mut image, home);

    let recover = Start::Recover(Some(SET));
    let steps = || (0..20).chain(44..60).map(durably).collect();
    let second = played(&image, recover, &mut host, steps(), "second");
    let happenings = second.medium.borrow().happenings.clone();
    happened.extend(happenings.iter().cloned());
    for moment in 0..=happenings.len() {
        let cut = after_power_cut(&image, &happenings[..moment], |_| 0);
        let when = format!("cut at {moment}");
        let mut third = played(&cut, recover, &mut host, steps(), &when);
        happened.extend(third.medium.borrow().happenings.iter().cloned());
        assert_eq!(wrong(&third.read_all(), &newest(&happened), false), None, "{when}");
    }
}
