//! What every layer and every stack must do: read what was written, answer exactly once, honour
//! flush on every disk, and leave no buffer behind.
//!
//! A new layer gets all rules with one line in [`kinds`].

mod disk;
pub mod kinds;
mod suite;
mod workload;

use crate::harness::{MemoryDisk, play, random_steps};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::stack::{Stack, StackBuilder};
use imbrex_core::units::BlockCount;

/// Builds a stack over fresh disks from a seed.
pub type Build = dyn Fn(u64) -> (Stack, Vec<MemoryDisk>);

/// Plays `cases` random workloads at queue depths 1 to 16. `buffers_reserved` is how many buffers
/// the layers keep for themselves.
pub fn check(name: &str, build: &Build, cases: u64, buffers_reserved: usize) {
    for seed in 0..cases {
        let (stack, disks) = build(seed);
        let blocks = stack.geometry().blocks.0;
        let steps = random_steps(seed, 120, blocks, 12);
        let depth = [1, 2, 5, 16][(seed % 4) as usize];
        match play(stack, disks, steps, depth) {
            Ok(engine) => {
                assert!(
                    engine.stack.is_quiet(),
                    "{name}, seed {seed}: work is left over"
                );
                let left = engine.buffers.allocated();
                assert_eq!(
                    left, buffers_reserved,
                    "{name}, seed {seed}: buffers were lost"
                );
            }
            Err(failure) => panic!("{name}, seed {seed}, queue depth {depth}: {failure}"),
        }
    }
}

/// A disk of `blocks` blocks that finishes operations in any order.
pub fn memory_disk(blocks: u64, seed: u64) -> MemoryDisk {
    MemoryDisk::new(
        Geometry::plain(BlockCount(blocks), Media::Conventional),
        seed,
        1_000,
    )
}

#[test]
fn a_bare_disk() {
    check(
        "a bare disk",
        &|seed| {
            let disk = memory_disk(200, seed);
            let mut builder = StackBuilder::new(seed);
            let node = builder.disk(disk_geometry(&disk));
            (builder.build(node), vec![disk])
        },
        200,
        0,
    );
}

/// The geometry of a memory disk.
pub fn disk_geometry(disk: &MemoryDisk) -> Geometry {
    use imbrex_core::disk::Disk;
    disk.geometry().clone()
}

/// The tests of each kind of layer.
macro_rules! conformance {
    ($($name:ident: $kind:expr,)+) => {
        $(mod $name {
            use crate::conformance::kinds::made::$name;
            use crate::conformance::suite::{EVERYDAY, with_failures, without_failures};

            #[test]
            fn keeps_every_rule() {
                let most = without_failures(&$name(), EVERYDAY, None);
                println!("{most:?} blocks in buffers");
                most.unwrap();
            }

            #[test]
            fn keeps_every_rule_when_any_operation_fails() {
                let failures = with_failures(&$name(), EVERYDAY, None);
                println!("{failures:?} failures");
                assert!(failures.unwrap() > 20);
            }
        })+
    };
}
kinds::every_kind!(conformance);
#[test]
fn dbg_one() {
    use disk::*; use suite::*;
    let case = Case { seed: 0, depth: 1, asks: 40, fault: Some((When::Reopening, Fault { port: 0, after: 10, how: How::Once })), closes: false, bug: None };
    println!("{:?}", run(&kinds::made::durable_cache_pore_bl(), case).map(|_| ()));
}
