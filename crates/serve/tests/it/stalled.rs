//! Clients that announce more than they send, beside others that do their part.

use crate::client::*;
use crate::support::TestServer;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
/// Those that stall write to the first 32 MiB, each of the others to a place of its own.
const BLOCKS: u64 = 256 * (32 + 3 * (4 + 32));
const STALLED: usize = 40;
/// What the others may wait because of those that stall.
const WAIT: Duration = Duration::from_secs(2);

/// Announces a payload and sends a byte of it, a half, or one byte a second, until `done`.
fn stall(socket: &Path, kind: usize, bytes: usize, done: &AtomicBool) {
    let mut client = Client::ready(socket);
    client.request(WRITE, 0, 1, 0, bytes as u32);
    let half = vec![1; bytes / 2];
    let first = if kind == 1 { &half[..] } else { &[1] };
    // The server closes the connection when others want its memory.
    let mut result = client.stream.write_all(first);
    while !done.load(Ordering::Relaxed) && result.is_ok() {
        thread::sleep(Duration::from_millis(if kind == 2 { 1_000 } else { 50 }));
        if kind == 2 {
            result = client.stream.write_all(&[1]);
        }
    }
}

/// Writes and reads back; the longest that a request took.
fn use_device(socket: &Path, offset: usize, bytes: usize) -> Duration {
    let mut client = Client::ready(socket);
    let mut longest = Duration::ZERO;
    for round in 0..3 {
        let data = vec![2 + round; bytes];
        let began = Instant::now();
        assert_eq!(client.write(0, offset as u64, &data), 0);
        longest = longest.max(began.elapsed());
        let began = Instant::now();
        let found = client.read(offset as u64, bytes as u32);
        longest = longest.max(began.elapsed());
        assert!(found == Ok(data), "{bytes} bytes at {offset}");
    }
    longest
}

/// The longest that a request of six clients took, three of which use 4 MiB and three 32 MiB.
fn longest_request(socket: &Path) -> Duration {
    thread::scope(|scope| {
        let mut offset = 32 * MIB;
        let threads: Vec<_> = [4, 32, 4, 32, 4, 32]
            .map(|mib| {
                let (own, bytes) = (offset, mib * MIB);
                offset += bytes;
                scope.spawn(move || use_device(socket, own, bytes))
            })
            .into();
        let longest = threads.into_iter().map(|t| t.join().expect("a client"));
        longest.max().expect("six")
    })
}

#[test]
fn stalled_writers_keep_nobody_waiting() {
    let (server, _) = TestServer::in_memory(BLOCKS, 0);
    let alone = longest_request(&server.socket);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for index in 0..STALLED {
            let (socket, done) = (&server.socket, &done);
            let bytes = if index % 2 == 0 { 4 * MIB } else { 32 * MIB };
            scope.spawn(move || stall(socket, index % 3, bytes, done));
        }
        thread::sleep(Duration::from_millis(200));
        let beside = longest_request(&server.socket);
        done.store(true, Ordering::Relaxed);
        assert!(
            beside < alone + WAIT,
            "{beside:?} beside those that stall, {alone:?} without them"
        );
    });
}
