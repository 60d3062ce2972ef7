//! Real files below a server.

use crate::client::*;
use crate::support::{TestServer, plain};
use imbrex_serve::clock::WallClock;
use imbrex_serve::disk::{DirectIo, FileDisk};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const BLOCKS: u64 = 4096;

fn server_over(path: &Path, blocks: u64) -> TestServer {
    server_with(path, blocks, DirectIo::Off)
}

fn server_with(path: &Path, blocks: u64, direct: DirectIo) -> TestServer {
    let path = path.to_owned();
    TestServer::over(move |waker| {
        let disk = FileDisk::open(&path, plain(blocks), direct, waker).expect("a disk");
        assert_eq!(disk.is_direct(), direct == DirectIo::On);
        Box::new(disk)
    })
}

/// False, said aloud, where no file system at hand has direct I/O.
fn has_direct_io(path: &Path) -> bool {
    let (_, waker) = WallClock::alone().expect("an epoll instance");
    let disk = FileDisk::open(path, plain(BLOCKS), DirectIo::Auto, waker).expect("a disk");
    if !disk.is_direct() {
        eprintln!("skipped: the file system below the test has no direct I/O");
    }
    disk.is_direct()
}

fn sparse_file(dir: &TempDir) -> std::path::PathBuf {
    let path = dir.path().join("disk.img");
    let file = File::create(&path).expect("a file");
    file.set_len(BLOCKS * 4096).expect("a length");
    path
}

/// A directory on a medium: beside the test binary, because the temporary one may be in memory.
fn on_a_medium() -> TempDir {
    let binary = std::env::current_exe().expect("a path");
    tempfile::tempdir_in(binary.parent().expect("a directory")).expect("a directory")
}

#[test]
fn what_is_written_is_in_the_file() {
    for dir in [on_a_medium(), tempfile::tempdir().expect("a directory")] {
        what_is_written_is_in(&sparse_file(&dir), DirectIo::Off);
    }
}

#[test]
fn what_is_written_round_the_page_cache_is_in_the_file() {
    let dir = on_a_medium();
    let path = sparse_file(&dir);
    if has_direct_io(&path) {
        what_is_written_is_in(&path, DirectIo::On);
    }
}

fn what_is_written_is_in(path: &Path, direct: DirectIo) {
    {
        let server = server_with(path, BLOCKS, direct);
        let mut client = Client::ready(&server.socket);
        for (flags, offset, value) in [(0, 0, 1), (FUA, 8192, 2), (0, 5_000_000, 3)] {
            assert_eq!(client.write(flags, offset, &[value; 10_000]), 0);
        }
        assert_eq!(client.call(TRIM, 0, 4096, 4096), 0);
        assert_eq!(client.call(WRITE_ZEROES, NO_HOLE | FUA, 8192, 4096), 0);
        assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
        let mut expected = vec![1; 4096];
        expected.extend([0; 8192]);
        expected.extend([2; 8192 + 10_000 - 12_288]);
        assert_eq!(client.read(0, 18_192), Ok(expected.clone()));
        drop(client);
        drop(server);
        let file = File::open(path).expect("the file");
        let mut found = vec![0; 18_192];
        file.read_exact_at(&mut found, 0).expect("the bytes");
        assert!(found == expected);
        file.read_exact_at(&mut found[..10_000], 5_000_000).expect("the bytes");
        assert_eq!(found[..10_000], [3; 10_000]);
        assert_eq!(file.metadata().expect("metadata").len(), BLOCKS * 4096);
    }
}

/// Data that is not in the page cache is read by threads, many at a time, and arrives unmixed.
#[test]
fn reads_that_would_block_are_answered_from_the_medium() {
    let dir = on_a_medium();
    let path = sparse_file(&dir);
    let content: Vec<u8> = (0..BLOCKS).flat_map(|block| [(block % 251) as u8; 4096]).collect();
    fs::write(&path, &content).expect("the content");
    let file = File::open(&path).expect("the file");
    file.sync_all().expect("a synchronised file");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("an empty cache");
    let server = server_over(&path, BLOCKS);
    let mut client = Client::ready(&server.socket);
    for cookie in 0..200 {
        client.request(READ, 0, cookie, cookie * 17 * 4096 + 100, 6000);
    }
    for _ in 0..200 {
        let (error, cookie) = client.reply();
        assert_eq!(error, 0);
        let from = (cookie * 17 * 4096 + 100) as usize;
        assert!(client.bytes(6000) == content[from..from + 6000], "read {cookie}");
    }
}

/// Reads that come together lie close to each other, overlap, or are alone.
#[test]
fn reads_at_once_arrive_unmixed_whatever_lies_between_them() {
    for dir in [on_a_medium(), tempfile::tempdir().expect("a directory")] {
        let path = sparse_file(&dir);
        let file = File::options().write(true).open(&path).expect("the file");
        let mut content = vec![0; BLOCKS as usize * 4096];
        // Blocks in between were never written.
        for block in (0..BLOCKS as usize).filter(|block| block % 7 != 3) {
            let bytes = &mut content[block * 4096..][..4096];
            bytes.fill((block % 251) as u8 + 1);
            file.write_all_at(bytes, block as u64 * 4096).expect("a written block");
        }
        let server = server_over(&path, BLOCKS);
        let mut client = Client::ready(&server.socket);
        let read_of = |cookie: u64| {
            let block = cookie * 37 % 160 * if cookie.is_multiple_of(3) { 2 } else { 20 };
            (block * 4096, 4096 * (1 + cookie as u32 % 4))
        };
        for round in 0..20 {
            for cookie in round * 64..round * 64 + 64 {
                let (offset, length) = read_of(cookie);
                client.request(READ, 0, cookie, offset, length);
            }
            for _ in 0..64 {
                let (error, cookie) = client.reply();
                assert_eq!(error, 0);
                let (offset, length) = read_of(cookie);
                let expected = &content[offset as usize..][..length as usize];
                assert!(client.bytes(length as usize) == expected, "read {cookie}");
            }
        }
    }
}

#[test]
fn many_durable_writes_and_flushes_at_once_are_all_answered() {
    let dir = on_a_medium();
    let server = server_over(&sparse_file(&dir), BLOCKS);
    let mut clients: Vec<Client> = (0..4).map(|_| Client::ready(&server.socket)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        for i in 0..50u64 {
            if i % 5 == 4 {
                client.request(FLUSH, 0, i, 0, 0);
            } else {
                client.request(WRITE, FUA, i, (index as u64 * 50 + i) * 4096, 4096);
                client.send(&[i as u8; 4096]);
            }
        }
    }
    for client in &mut clients {
        let mut cookies: Vec<u64> = (0..50)
            .map(|_| client.reply())
            .map(|(error, cookie)| {
                assert_eq!(error, 0);
                cookie
            })
            .collect();
        cookies.sort_unstable();
        assert!(cookies.into_iter().eq(0..50));
    }
}

#[test]
fn a_full_file_system_is_no_space_and_nothing_worse() {
    let dir = tempfile::tempdir().expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4M", "imbrex-test"])
        .arg(dir.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: a small file system can be mounted by root only");
        return;
    }
    let server = server_over(&sparse_file(&dir), BLOCKS);
    let mut client = Client::ready(&server.socket);
    let errors: Vec<u32> =
        (0..2048).map(|block| client.write(0, block * 4096, &[5; 4096])).collect();
    let full = errors.iter().position(|error| *error != 0).expect("it fills up");
    assert!(full > 500, "full after {full} blocks");
    assert!(errors[full..].iter().all(|error| *error == 28), "ENOSPC");
    assert_eq!(client.read(0, 4096), Ok(vec![5; 4096]), "reads go on");
    assert_eq!(client.call(TRIM, 0, 0, 100 * 4096), 0, "room is given back");
    assert_eq!(client.write(0, 2000 * 4096, &[6; 4096]), 0);
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    drop(client);
    drop(server);
    let unmounted = Command::new("umount").arg(dir.path()).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
}

/// This file of the kernel can be opened as a disk of no blocks, and cannot be synchronised.
#[test]
fn a_failed_flush_is_never_followed_by_a_good_one() {
    let server = server_over(Path::new("/proc/self/oom_score_adj"), 0);
    let mut client = Client::ready(&server.socket);
    for _ in 0..3 {
        assert_eq!(client.call(FLUSH, 0, 0, 0), 5, "EIO");
    }
    server.stop.stop();
    assert!(client.is_closed());
    let error = server.join().expect_err("the last flush fails too");
    assert_eq!(
        error.to_string(),
        "the flush at the end failed (medium error): writes that no earlier flush covers may be lost"
    );
}

#[test]
fn files_that_cannot_be_disks_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("short.img");
    let missing = dir.path().join("none.img");
    let used = dir.path().join("used.img");
    fs::write(&used, [0; 8192]).expect("a file");
    let _user = server_over(&used, 2);
    fs::write(&path, [0; 8191]).expect("a file");
    let expected = [
        (&path, format!("{} holds 8191 bytes, the disk needs 8192", path.display())),
        (&used, format!("{} is in use by another process", used.display())),
        (
            &missing,
            format!(
                "cannot open {} as a disk: No such file or directory (os error 2)",
                missing.display()
            ),
        ),
    ];
    for (path, message) in expected {
        let path = path.clone();
        let server = TestServer::over(move |waker| {
            let error =
                FileDisk::open(&path, plain(2), DirectIo::Off, waker).err().expect("no disk");
            assert_eq!(error.to_string(), message);
            let control = Default::default();
            Box::new(crate::support::TestDisk::new(1, 0, control))
        });
        Client::ready(&server.socket);
    }
}
