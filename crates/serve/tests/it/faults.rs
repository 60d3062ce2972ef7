//! Disks that are broken on purpose while they are served.

use crate::client::*;
use crate::support::{Control, ControlClient, Served, TestDisk, TestServer, eventually};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Request, Tag};
use imbrex_core::stack::StackBuilder;
use imbrex_serve::control::Commands;
use imbrex_serve::disk::{DirectIo, Faults, FileDisk};
use imbrex_serve::server::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Blocks of each of two disks.
const BLOCKS: u64 = 64;
const EIO: u32 = 5;
/// Longer than anything here takes that is not held back.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two disks one after the other. It does not mind losing one.
#[derive(Default)]
struct Joined {
    requests: Vec<Request>,
}

impl Layer for Joined {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let mut extent = request.extent;
        let port = Port(u8::from(extent.start.0 >= BLOCKS));
        extent.start.0 %= BLOCKS;
        ctx.issue(Issue {
            port,
            operation: request.operation,
            extent,
            buffer: request.buffer,
            cause: Cause::Host,
            tag: Tag(self.requests.len() as u64),
        });
        self.requests.push(request);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let request = self.requests[completion.tag.0 as usize];
        ctx.finish(request.id, completion.result);
    }

    fn lost(&mut self, _port: Port, _ctx: &mut Context<'_>) {}
}

fn two_test_disks(server: &Server, controls: [Control; 2]) -> Served {
    let disk = |control| -> Box<dyn Disk> { Box::new(TestDisk::new(BLOCKS, 200, control)) };
    two_disks(server, controls.map(disk))
}

fn two_disks(server: &Server, below: [Box<dyn Disk>; 2]) -> Served {
    let faults = Faults::default();
    let mut disks: Vec<Box<dyn Disk>> = Vec::new();
    for (name, disk) in ["first", "second"].into_iter().zip(below) {
        disks.push(Box::new(faults.over(name, disk)));
    }
    let mut builder = StackBuilder::new(0);
    let below = [&disks[0], &disks[1]].map(|disk| builder.disk(disk.geometry().clone()));
    let geometry = crate::support::plain(2 * BLOCKS);
    let top = builder.layer(Box::new(Joined::default()), geometry, &below);
    let mut engine = Engine {
        stack: builder.build(top),
        disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    let start = Start::Format(Uuid([0; 16]));
    server.open(&mut engine, start).expect("it opens");
    Served {
        names: vec![("first", below[0]), ("second", below[1]), ("top", top)],
        commands: Commands { faults: Some(faults), ..Commands::default() },
        ..Served::over(engine)
    }
}

struct World {
    server: TestServer,
    control: ControlClient,
    nbd: Client,
    disks: [Control; 2],
    ids: u64,
}

impl World {
    fn new() -> World {
        let disks = [Control::default(), Control::default()];
        let of_server = [Arc::clone(&disks[0]), Arc::clone(&disks[1])];
        let server = TestServer::of(move |server| two_test_disks(server, of_server));
        let control = ControlClient::connect(&server.control());
        let nbd = Client::ready(&server.socket);
        World { server, control, nbd, disks, ids: 0 }
    }

    /// A command to a disk, with further keys.
    fn call(&mut self, node: &str, command: &str, more: &[(&str, Value)]) -> Result<Value, String> {
        self.ids += 1;
        let mut request = json!({"id": self.ids, "node": node, "command": command});
        for (key, value) in more {
            request[key] = value.clone();
        }
        self.control.call(request)
    }

    fn done(&mut self, node: &str, command: &str, more: &[(&str, Value)]) {
        let result = self.call(node, command, more);
        result.unwrap_or_else(|error| panic!("{command}: {error}"));
    }

    /// Operations that a disk has been given.
    fn operations(&self, disk: usize) -> usize {
        self.disks[disk].lock().expect("control").operations.len()
    }
}

const fn at(block: u64) -> u64 {
    block * 4096
}

#[test]
fn reads_fail_where_they_are_told_to_and_no_longer_than_that() {
    let mut world = World::new();
    let blocks = ("blocks", json!([3, 5]));
    world.done("first", "fail-reads", &[blocks]);
    for (block, count, fails) in [
        (2, 1, false),
        (3, 1, true),
        (4, 1, true),
        (5, 1, false),
        (1, 3, true),
        (BLOCKS + 3, 1, false),
    ] {
        let read = world.nbd.read(at(block), 4096 * count);
        assert_eq!(read.is_err(), fails, "{count} from {block}");
    }
    assert_eq!(world.nbd.read(at(3), 1), Err(EIO));
    assert_eq!(world.nbd.write(0, at(3), &[1; 4096]), 0);
    world.done("first", "heal", &[]);
    assert_eq!(world.nbd.read(at(3), 4096), Ok(vec![1; 4096]));
    world.done("first", "fail-reads", &[]);
    assert_eq!(world.nbd.read(at(60), 4096), Err(EIO), "all of them");
    assert!(world.nbd.read(at(BLOCKS), 4096).is_ok());
}

#[test]
fn writes_and_zeroes_fail_where_they_are_told_to() {
    let mut world = World::new();
    assert_eq!(world.nbd.write(0, at(7), &[1; 4096]), 0);
    let blocks = ("blocks", json!([7, 8]));
    world.done("first", "fail-writes", std::slice::from_ref(&blocks));
    world.done("first", "fail-writes", &[blocks]);
    assert_eq!(world.nbd.write(0, at(7), &[2; 4096]), EIO);
    assert_eq!(world.nbd.call(WRITE_ZEROES, 0, at(6), 8192), EIO);
    assert_eq!(world.nbd.call(TRIM, 0, at(7), 4096), EIO);
    assert_eq!(world.nbd.read(at(7), 4096), Ok(vec![1; 4096]));
    assert_eq!(world.nbd.write(0, at(8), &[2; 4096]), 0);
    assert_eq!(world.nbd.call(FLUSH, 0, 0, 0), 0, "a flush writes no block");
    world.done("first", "fail-writes", &[]);
    assert_eq!(world.nbd.write(0, at(8), &[3; 4096]), EIO);
    world.done("first", "heal", &[]);
    assert_eq!(world.nbd.write(0, at(7), &[2; 4096]), 0);
}

#[test]
fn a_slow_disk_answers_later_until_it_is_healed() {
    let mut world = World::new();
    world.done("first", "slow", &[("ms", json!(300))]);
    let started = Instant::now();
    assert!(world.nbd.read(at(1), 4096).is_ok());
    assert!(started.elapsed() >= Duration::from_millis(300));
    let started = Instant::now();
    assert!(world.nbd.read(at(BLOCKS), 4096).is_ok());
    assert!(started.elapsed() < Duration::from_millis(300), "the other disk");
    world.done("first", "slow", &[("ms", json!(600_000))]);
    world.done("first", "fail-reads", &[("blocks", json!([2, 3]))]);
    world.nbd.request(READ, 0, 1, at(1), 4096);
    world.nbd.request(READ, 0, 2, at(2), 4096);
    eventually("the disk has one of them", || world.operations(0) == 2);
    let started = Instant::now();
    world.done("first", "heal", &[]);
    let mut errors = Vec::new();
    for _ in 0..2 {
        let (error, cookie) = world.nbd.reply();
        if error == 0 {
            world.nbd.bytes(4096);
        }
        errors.push((cookie, error));
    }
    errors.sort_unstable();
    assert_eq!(errors, [(1, 0), (2, EIO)]);
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn what_hangs_keeps_nobody_else_waiting_and_is_carried_out_when_healed() {
    let mut world = World::new();
    world.done("first", "hang", &[]);
    world.nbd.request(WRITE, 0, 1, at(1), 4096);
    world.nbd.send(&[9; 4096]);
    let mut other = Client::ready(&world.server.socket);
    for block in 0..20 {
        assert_eq!(other.write(0, at(BLOCKS + block), &[1; 4096]), 0);
    }
    world.done("first", "status", &[]);
    assert_eq!(world.operations(0), 0, "it was held back");
    world.done("first", "hang", &[]);
    world.done("first", "heal", &[]);
    assert_eq!(world.nbd.reply(), (0, 1));
    assert_eq!(other.read(at(1), 4096), Ok(vec![9; 4096]));
}

#[test]
fn what_hangs_ends_when_the_disk_fails() {
    let mut world = World::new();
    // One that the disk below has when the hang begins, and one that comes later.
    world.disks[0].lock().expect("control").held_block = Some(2);
    world.nbd.request(READ, 0, 1, at(2), 4096);
    eventually("the disk has it", || world.operations(0) == 1);
    world.done("first", "hang", &[]);
    world.disks[0].lock().expect("control").held_block = None;
    world.nbd.request(WRITE, 0, 2, at(3), 4096);
    world.nbd.send(&[1; 4096]);
    world.done("first", "status", &[]);
    world.done("first", "fail", &[]);
    let mut replies = [world.nbd.reply(), world.nbd.reply()];
    replies.sort_by_key(|(_, cookie)| *cookie);
    assert_eq!(replies, [(EIO, 1), (EIO, 2)]);
    let status = world.call("first", "status", &[]).expect("a status");
    assert_eq!(status["is_lost"], true);
    assert!(world.nbd.read(at(BLOCKS), 4096).is_ok());
}

/// A file writes and flushes on threads, of which it hears no more when it was given up. What hangs comes to it
/// behind that.
#[test]
fn what_hangs_ends_when_the_disk_of_a_file_fails() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths = ["first", "second"].map(|name| dir.path().join(name));
    for path in &paths {
        let file = std::fs::File::create(path).expect("a file");
        file.set_len(BLOCKS * 4096).expect("a length");
    }
    let server = TestServer::of(move |server| {
        let disk = |path: &std::path::PathBuf| -> Box<dyn Disk> {
            let geometry = crate::support::plain(BLOCKS);
            let waker = server.waker();
            Box::new(FileDisk::open(path, geometry, DirectIo::Off, waker).expect("a disk"))
        };
        two_disks(server, [disk(&paths[0]), disk(&paths[1])])
    });
    let mut control = ControlClient::connect(&server.control());
    let mut nbd = Client::ready(&server.socket);
    let mut call = |command: &str| {
        let request = json!({"id": 1, "node": "first", "command": command});
        control.call(request).unwrap_or_else(|error| panic!("{command}: {error}"));
    };
    call("hang");
    nbd.request(WRITE, 0, 1, at(1), 4096);
    nbd.send(&[1; 4096]);
    nbd.request(WRITE, FUA, 2, at(2), 4096);
    nbd.send(&[2; 4096]);
    nbd.request(READ, 0, 3, at(3), 4096);
    // A flush goes to the first disk alone.
    nbd.request(FLUSH, 0, 4, 0, 0);
    eventually("all have arrived", || server.events.lock().expect("events").len() >= 4);
    call("fail");
    let mut replies: Vec<_> = (0..4).map(|_| nbd.reply()).collect();
    replies.sort_by_key(|(_, cookie)| *cookie);
    assert_eq!(replies, [(EIO, 1), (EIO, 2), (EIO, 3), (EIO, 4)]);
    assert!(nbd.read(at(BLOCKS), 4096).is_ok());
}

#[test]
fn a_server_that_is_stopped_ends_what_hangs_and_what_is_slow() {
    for (command, more) in [("hang", vec![]), ("slow", vec![("ms", json!(600_000))])] {
        let mut world = World::new();
        world.done("first", command, &more);
        world.nbd.request(WRITE, 0, 1, at(1), 4096);
        world.nbd.send(&[4; 4096]);
        let mut other = Client::ready(&world.server.socket);
        // It has come after the write.
        assert!(other.read(at(BLOCKS), 4096).is_ok());
        eventually("the write has arrived", || {
            !world.server.events.lock().expect("events").is_empty()
        });
        let started = Instant::now();
        world.server.stop.stop();
        assert_eq!(world.nbd.reply(), (0, 1), "{command}");
        world.server.join().expect("a clean end");
        assert!(started.elapsed() < PATIENCE, "{command}");
        let flushed = world.disks[0].lock().expect("control").flushes;
        assert!(flushed > 0, "{command}: the last flush");
    }
}

#[test]
fn corrupt_blocks_are_read_wrong_in_the_same_way_each_time() {
    let mut world = World::new();
    assert_eq!(world.nbd.write(0, at(8), &[5; 4 * 4096]), 0);
    let blocks = ("blocks", json!([9, 11]));
    world.done("first", "corrupt", &[blocks]);
    let wrong = world.nbd.read(at(8), 4 * 4096).expect("no error is told");
    for (block, bytes) in wrong.chunks(4096).enumerate() {
        let flipped = bytes.iter().map(|byte| (byte ^ 5).count_ones());
        let expected = u32::from((1..3).contains(&block));
        assert_eq!(flipped.sum::<u32>(), expected, "block {block}");
    }
    assert_eq!(world.nbd.read(at(8), 4 * 4096), Ok(wrong.clone()));
    assert_eq!(world.nbd.read(at(10), 4096), Ok(wrong[8192..12288].into()));
    world.done("first", "heal", &[]);
    assert_eq!(world.nbd.read(at(8), 4 * 4096), Ok(vec![5; 4 * 4096]));
}

#[test]
fn blocks_that_a_disk_does_not_have_are_refused() {
    let mut world = World::new();
    for command in ["fail-reads", "fail-writes", "corrupt"] {
        for blocks in [json!([0, 65]), json!([64, 65]), json!([1, u64::MAX])] {
            let error = world.call("first", command, &[("blocks", blocks)]);
            let error = error.expect_err(command);
            assert!(error.contains("has 64 blocks"), "{error}");
        }
        world.done("first", command, &[("blocks", json!([63, 64]))]);
    }
    let error = world.call("top", "hang", &[]).expect_err("no disk");
    assert!(error.contains("first, second"), "{error}");
    world.done("first", "fail", &[]);
    let lost = Err(imbrex_serve::nbd::transmission::Errno::from(IoError::Lost) as u32);
    assert_eq!(world.nbd.read(at(1), 4096), lost);
}
