//! Disks that are never written, and the memory that takes the writes.

use crate::held::{WRITES, ZERO, extent, results_of};
use crate::support::plain;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::stack::StackBuilder;
use imbrex_serve::clock::WallClock;
use imbrex_serve::disk::{DirectIo, DiskError, FileDisk, Overlay};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const BLOCKS: u64 = 16;
const BLOCK: u64 = 4096;
const READ: [(Operation, Extent, u8); 1] = [(Operation::Read, extent(0, 10), 0)];

fn file() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk.img");
    fs::write(&path, vec![1; (BLOCK * BLOCKS) as usize]).expect("a file");
    (dir, path)
}

fn overlaid(path: &Path, overlay: &Overlay) -> (Engine, WallClock) {
    let (clock, waker) = WallClock::alone().expect("an epoll instance");
    let disk = FileDisk::open_read_only(path, plain(BLOCKS), DirectIo::Off, waker);
    let mut builder = StackBuilder::new(0);
    let top = builder.disk(plain(BLOCKS));
    let engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(overlay.over(disk.expect("a disk")))],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    (engine, clock)
}

#[test]
fn what_is_written_can_be_read_and_is_never_in_the_file() {
    let (_dir, path) = file();
    let before = fs::read(&path).expect("the file");
    let overlay = Overlay::new(BLOCKS * BLOCK);
    let (mut engine, mut clock) = overlaid(&path, &overlay);
    let (results, _) = results_of(&mut engine, &mut clock, &WRITES);
    assert_eq!(results, [Ok(()); WRITES.len()]);
    let (_, found) = results_of(&mut engine, &mut clock, &READ);
    assert_eq!(found, [[1, 1, 7, 0, 8, 7, 7, 7, 1, 1]]);
    let (_, found) = results_of(&mut engine, &mut clock, &[(Operation::Read, extent(2, 5), 0)]);
    assert_eq!(found, [[7, 0, 8, 7, 7]], "all of it from memory");
    drop(engine);
    assert!(fs::read(&path).expect("the file") == before);
}

/// Two disks share the memory; a block that is written again takes no more of it.
#[test]
fn a_write_beyond_the_bound_finds_no_space_and_changes_nothing() {
    let (_dir, path) = file();
    let overlay = Overlay::new(5 * BLOCK);
    let (mut one, mut clock) = overlaid(&path, &overlay);
    let (mut other, mut other_clock) = overlaid(&path, &overlay);
    let write = |start, blocks, fill| (Operation::WRITE, extent(start, blocks), fill);
    let (results, _) = results_of(&mut one, &mut clock, &[write(0, 3, 2), write(1, 2, 3)]);
    assert_eq!(results, [Ok(()), Ok(())]);
    let requests = [write(0, 3, 4), (ZERO, extent(0, 3), 0), write(4, 2, 5)];
    assert!(!overlay.is_exceeded());
    let (results, _) = results_of(&mut other, &mut other_clock, &requests);
    assert_eq!(results, [Err(IoError::NoSpace), Err(IoError::NoSpace), Ok(())]);
    assert!(overlay.is_exceeded());
    let (_, found) = results_of(&mut one, &mut clock, &READ);
    assert_eq!(found, [[2, 3, 3, 1, 1, 1, 1, 1, 1, 1]]);
    let (_, found) = results_of(&mut other, &mut other_clock, &READ);
    assert_eq!(found, [[1, 1, 1, 1, 5, 5, 1, 1, 1, 1]]);
}

#[test]
fn readers_share_a_file_and_exclude_a_writer() {
    let (_dir, path) = file();
    let waker = || WallClock::alone().expect("an epoll instance").1;
    let read = || FileDisk::open_read_only(&path, plain(BLOCKS), DirectIo::Off, waker());
    let write = || FileDisk::open(&path, plain(BLOCKS), DirectIo::Off, waker());
    let in_use =
        |result: Result<FileDisk, DiskError>| matches!(result, Err(DiskError::InUse { .. }));
    let (one, two) = (read().expect("a disk"), read().expect("two at once"));
    assert!(in_use(write()));
    drop(one);
    assert!(in_use(write()));
    drop(two);
    let writer = write().expect("a disk");
    assert!(in_use(read()));
    drop(writer);
    assert!(read().is_ok());
}
