//! What a recovery reads grows with what is mapped, and never with the data: counted on devices
//! whose every second block is mapped, so that no two entries can become one.

use crate::common::harness::JumpingClock;
use crate::counted_stack::{BLOCK, DEPTH, Host, Mapped, Medium, SET, engine, held, stopwatch};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::Operation;
use std::cell::RefCell;
use std::rc::Rc;

/// Most bytes that the recovery of a layer with `mapped` blocks may read: what was not flushed, the
/// ring, and 40 bytes a block. For a million blocks that is less than 64 MiB.
fn bound_bytes(mapped: u64) -> u64 {
    let settings = DurabilitySettings::default();
    (settings.unflushed_blocks_max + settings.ring_blocks) * BLOCK as u64 + 40 * mapped
}

/// Maps `mapped` blocks, stops without a word, recovers, and counts.
fn recovery_reads_little(kind: Mapped, mapped: u64) {
    let media: [Rc<RefCell<Medium>>; 2] = Default::default();
    let clock = &mut JumpingClock::default();
    let (mut first, top) = engine(kind, mapped, &media);
    first.open(clock, Start::Format(SET)).expect("a new device");
    let elapsed = stopwatch();
    Host::play(&mut first, (Operation::WRITE, DEPTH), (0..mapped).map(|at| 2 * at));
    let filled = elapsed();
    assert_eq!(held(kind, &first, top), mapped, "{kind:?}: before the stop");
    drop(first);

    media.iter().for_each(|medium| medium.borrow_mut().read_bytes = 0);
    let (mut second, top) = engine(kind, mapped, &media);
    let elapsed = stopwatch();
    let recovered = second.open(clock, Start::Recover(Some(SET)));
    let took = elapsed();
    recovered.expect("a recovery");
    let read: u64 = media.iter().map(|medium| medium.borrow().read_bytes).sum();
    println!(
        "{kind:?}: {mapped} blocks mapped in {filled:.1?}; recovery reads {:.1} MiB in {took:.2?}",
        read as f64 / f64::from(1 << 20)
    );
    let bound = bound_bytes(mapped);
    assert!(read <= bound, "{kind:?}: {read} bytes read, bound {bound}");
    assert_eq!(held(kind, &second, top), mapped, "{kind:?}: after the recovery");

    // Blocks are where they were: those of the cache are not read below it.
    let below = media[0].borrow().read_bytes;
    Host::play(&mut second, (Operation::Read, DEPTH), (0..mapped).step_by(97).map(|at| 2 * at));
    if kind == Mapped::Cache {
        assert_eq!(media[0].borrow().read_bytes, below, "a block is not cached");
    }
}

#[test]
fn a_recovery_reads_the_map_and_not_the_data() {
    recovery_reads_little(Mapped::Cache, 50_000);
    recovery_reads_little(Mapped::Log, 50_000);
}

#[test]
#[ignore = "a million blocks take gigabytes of writes"]
fn a_recovery_of_a_million_blocks_reads_at_most_64_mib() {
    assert!(bound_bytes(1_000_000) <= 64 << 20);
    recovery_reads_little(Mapped::Cache, 1_000_000);
    recovery_reads_little(Mapped::Log, 1_000_000);
}
