//! What a durable write puts on the disk of its map does not grow with the map: counted on caches that are
//! full of dirty blocks, and on logs, of which no two blocks adjoin.

use crate::common::harness::JumpingClock;
use crate::counted_stack::{DEPTH, Host, Mapped, Medium, SET, engine, held};
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::rng::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// Durable writes that are counted: the ring is half full four times, and sixty-four times at length.
const WRITES: u64 = 4 * 1024 + 512;
const WRITES_AT_LENGTH: u64 = 64 * 1024;
/// Most blocks that a durable write of one block may put there: its data, its record, and a share of the
/// checkpoints.
const BLOCKS_A_WRITE_MAX: f64 = 2.6;
/// The same for a log. With a whole map for each checkpoint it would be more at the smallest size that is tried.
const BLOCKS_A_LOGGED_WRITE_MAX: f64 = 2.1;

/// Maps blocks, writes some of them again, one at a time, and counts. What is kept is read back after a stop
/// without a word.
fn a_durable_write_costs_the_same(kind: Mapped, mapped: u64, writes: u64) {
    let media: [Rc<RefCell<Medium>>; 2] = Default::default();
    let (counted, most) = match kind {
        Mapped::Cache => (&media[1], BLOCKS_A_WRITE_MAX),
        Mapped::Log => (&media[0], BLOCKS_A_LOGGED_WRITE_MAX),
    };
    let clock = &mut JumpingClock::default();
    let (mut first, top) = engine(kind, mapped, &media);
    first.open(clock, Start::Format(SET)).expect("a new device");
    Host::play(&mut first, (Operation::WRITE, DEPTH), (0..mapped).map(|at| 2 * at));
    let mut rng = Rng::new(mapped, 1);
    let again: Vec<u64> = (0..writes).map(|_| 2 * (rng.below(mapped))).collect();
    let before = counted.borrow().written_blocks;
    let forced = Operation::Write { durability: Durability::Durable };
    Host::play(&mut first, (forced, 1), again.into_iter());
    let written = counted.borrow().written_blocks - before;
    let each = written as f64 / writes as f64;
    println!("{kind:?}, {} MiB mapped: {each:.3} blocks for a durable write", mapped / 256);
    assert!(each <= most, "{kind:?}, {mapped} blocks: {each} for each write");
    assert_eq!(held(kind, &first, top), mapped);
    drop(first);

    let (mut second, top) = engine(kind, mapped, &media);
    second.open(clock, Start::Recover(Some(SET))).expect("a recovery");
    assert_eq!(held(kind, &second, top), mapped);
    Host::play(&mut second, (Operation::Read, DEPTH), (0..mapped).map(|at| 2 * at));
}

#[test]
fn a_durable_write_costs_the_same_however_much_is_dirty() {
    a_durable_write_costs_the_same(Mapped::Cache, 1 << 14, WRITES);
    a_durable_write_costs_the_same(Mapped::Cache, 1 << 16, WRITES);
}

#[test]
#[ignore = "long: for the soak"]
fn a_durable_write_costs_the_same_with_gigabytes_dirty() {
    a_durable_write_costs_the_same(Mapped::Cache, 1 << 18, WRITES_AT_LENGTH);
    a_durable_write_costs_the_same(Mapped::Cache, 3 << 18, WRITES_AT_LENGTH);
    a_durable_write_costs_the_same(Mapped::Cache, 1 << 22, WRITES_AT_LENGTH);
}

#[test]
#[ignore = "long: for the soak"]
fn a_durable_write_costs_the_same_with_64_gibibytes_dirty() {
    a_durable_write_costs_the_same(Mapped::Cache, 1 << 24, WRITES_AT_LENGTH);
}

/// A log takes an eighth more than is mapped, and is not cleaned meanwhile.
#[test]
fn a_durable_write_costs_the_same_however_much_is_in_the_log() {
    a_durable_write_costs_the_same(Mapped::Log, 1 << 14, WRITES);
    a_durable_write_costs_the_same(Mapped::Log, 1 << 16, WRITES);
}

#[test]
#[ignore = "long: for the soak"]
fn a_durable_write_costs_the_same_with_gigabytes_in_the_log() {
    a_durable_write_costs_the_same(Mapped::Log, 1 << 18, 1 << 15);
    a_durable_write_costs_the_same(Mapped::Log, 1 << 20, 1 << 16);
}
