//! Random workloads on a stack: what was written is read, every request is answered once, and no buffer is
//! left behind.

use super::harness::{MemoryDisk, play, random_steps};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::stack::Stack;
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
                assert!(engine.stack.is_quiet(), "{name}, seed {seed}: work is left over");
                let left = engine.buffers.allocated();
                assert_eq!(left, buffers_reserved, "{name}, seed {seed}: buffers were lost");
            }
            Err(failure) => panic!("{name}, seed {seed}, queue depth {depth}: {failure}"),
        }
    }
}

/// A disk of `blocks` blocks that finishes operations in any order.
pub fn memory_disk(blocks: u64, seed: u64) -> MemoryDisk {
    MemoryDisk::new(Geometry::plain(BlockCount(blocks), Media::Conventional), seed, 1_000)
}

/// The geometry of a memory disk.
pub fn disk_geometry(disk: &MemoryDisk) -> Geometry {
    disk.geometry().clone()
}
