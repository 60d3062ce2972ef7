//! A durable RAID 1 over slices of two disks, one of which fails, is replaced and is rebuilt while clients
//! work: by events over simulated disks, and by commands to a server over files. Both end alike.

use crate::support::{ControlClient, Served, TestServer};
use imbrex_core::array::raid1::{Raid1, Raid1Keeping, Raid1Layout};
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState, Rate};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::engine::{CommandArrival, Replacement};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::flush_failure::FlushFailure;
use imbrex_core::layer::Port;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::slice::Slice;
use imbrex_core::stack::{Arrival, DiskId, NodeId, StackBuilder};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration as VirtualDuration, Instant};
use imbrex_drives::{DiskOptions, Drive, SimulatedDisk};
use imbrex_serve::control::{Commands, NewDisk, Replacer};
use imbrex_serve::disk::{DirectIo, FileDisk};
use imbrex_serve::server::Server;
use imbrex_sim::simulation::VirtualClock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Blocks of the mirror: 16 MiB.
const BLOCKS: u64 = 4096;
/// Where its slice of each disk begins.
const OFFSET: u64 = 256;
const SET: Uuid = Uuid([9; 16]);
/// Of a rebuild: a second for everything.
const RATE: Rate = Rate { bytes_per_s: BLOCKS * BLOCK_BYTES };
/// How long fio may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Requests in virtual time, and how many of them come before each command.
const REQUESTS: u64 = 3_000;
const FAIL_AFTER: u64 = 500;
const REPLACE_AFTER: u64 = 1_000;
const REBUILD_AFTER: u64 = 1_200;

fn keeping() -> Raid1Keeping {
    Raid1Keeping {
        durability: DurabilitySettings { ring_blocks: 64, unflushed_blocks_max: 1024 },
        region_rows: 256,
        memory_bytes: 1 << 20,
        lost_after: VirtualDuration::from_ms(60_000),
    }
}

fn layout() -> Raid1Layout {
    Raid1Layout::new(&keeping(), BLOCKS)
}

fn disk_blocks() -> BlockCount {
    BlockCount(OFFSET + layout().member_blocks())
}

/// The mirror over a slice of each of two disks: the engine, its top and its disks.
fn engine_over(disks: Vec<Box<dyn Disk>>) -> (Engine, NodeId, [NodeId; 2]) {
    let mut builder = StackBuilder::new(5);
    let nodes = [0, 1].map(|disk: usize| builder.disk(disks[disk].geometry().clone()));
    let extent = Extent::new(OFFSET, layout().member_blocks());
    let slices = nodes.map(|node| {
        let below = builder.geometry(node).clone();
        let (slice, told) = Slice::new(extent, &below, &FlushFailure::default()).expect("room");
        builder.part(Box::new(slice), told, node)
    });
    let below = slices.map(|slice| builder.geometry(slice).clone());
    let below: Vec<&Geometry> = below.iter().collect();
    let (mirror, told) =
        Raid1::new(&below, 0, Some(BlockCount(BLOCKS)), Some(keeping())).expect("room");
    let top = builder.layer(Box::new(mirror), told, &slices);
    for port in 0..2 {
        builder.number_member(top, Port(port), u16::from(port));
    }
    let engine = Engine {
        stack: builder.build(top),
        disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 16,
    };
    (engine, top, nodes)
}

/// How a device has ended.
#[derive(PartialEq, Eq, Debug)]
struct End {
    facts: BTreeMap<String, u64>,
    /// Both slices hold the same, and not only zeroes.
    is_mirrored: bool,
}

/// What does not hang on how long ago the last write was.
fn facts_to_compare(facts: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    facts.filter(|(name, _)| name != "marked_regions").collect()
}

/// Whether two files hold the same tables and data of a mirror, and some.
fn same_data(one: &Path, other: &Path) -> bool {
    let data = |path: &Path| {
        let from = ((OFFSET + layout().journal_blocks) * BLOCK_BYTES) as usize;
        let bytes = std::fs::read(path).expect("a member");
        bytes[from..from + (layout().shape.rows() * BLOCK_BYTES) as usize].to_vec()
    };
    let (one, other) = (data(one), data(other));
    one == other && one.iter().any(|byte| *byte != 0)
}

/// Reads and writes in virtual time, commands beside them, and what every block must hold.
struct Workload {
    rng: Rng,
    left: u64,
    /// By block, the byte that it is full of.
    contents: Vec<u8>,
    in_flight: BTreeMap<u64, (Operation, Extent, BufferSlice)>,
    commands: VecDeque<(u64, CommandArrival)>,
    /// How many commands have ended well.
    ended: u64,
    progress: u64,
    /// Requests answered while the rebuild went on.
    beside_rebuild: u64,
}

impl Workload {
    fn arrived(&self) -> u64 {
        REQUESTS - self.left
    }

    /// Requests at once never share a block: what a read must find is then certain.
    fn extent(&mut self) -> Extent {
        loop {
            let blocks = 1 + self.rng.below(16);
            let extent = Extent::new(self.rng.below(BLOCKS - blocks), blocks);
            let mut others = self.in_flight.values();
            if !others.any(|(_, other, _)| other.overlaps(extent)) {
                return extent;
            }
        }
    }
}

impl Frontend for Workload {
    fn next_arrival(&self) -> Option<Instant> {
        (self.left > 0 && self.in_flight.len() < 4).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        self.left -= 1;
        let mut extent = self.extent();
        let operation = match self.rng.below(16) {
            0 => Operation::Flush,
            1..6 => Operation::Read,
            6 => Operation::WRITE_DURABLE,
            _ => Operation::WRITE,
        };
        if operation == Operation::Flush {
            extent = Extent::EMPTY;
        }
        let buffer = buffers.allocate(extent.blocks.0);
        if let Operation::Write { .. } = operation {
            let byte = 1 + self.rng.below(255) as u8;
            buffers.bytes_mut(buffer).expect("bytes").fill(byte);
            let range = extent.start.0 as usize..extent.end().0 as usize;
            self.contents[range].fill(byte);
        }
        let tag = self.arrived();
        self.in_flight.insert(tag, (operation, extent, buffer));
        Some(Arrival { tag: Tag(tag), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        assert_eq!(completion.result, Ok(()));
        let (operation, extent, buffer) =
            self.in_flight.remove(&completion.tag.0).expect("in flight");
        if operation == Operation::Read {
            let bytes = buffers.bytes(buffer).expect("bytes");
            let blocks = bytes.chunks_exact(BLOCK_BYTES as usize);
            for (block, bytes) in (extent.start.0 as usize..).zip(blocks) {
                let expected = self.contents[block];
                assert!(bytes.iter().all(|byte| *byte == expected), "block {block}");
            }
        }
        buffers.release(buffer);
        self.beside_rebuild += u64::from(self.progress > 0 && self.ended == 2);
    }

    fn finished(&self) -> bool {
        self.left == 0 && self.in_flight.is_empty() && self.commands.is_empty() && self.ended == 3
    }

    fn next_command(&self) -> Option<Instant> {
        let (after, _) = self.commands.front()?;
        (self.arrived() >= *after || self.left == 0).then_some(Instant::ZERO)
    }

    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        self.next_command()?;
        let (_, command) = self.commands.pop_front()?;
        Some(command)
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        match reply.state {
            CommandState::Progress { .. } => self.progress += 1,
            CommandState::Ended(result) => {
                result.unwrap_or_else(|error| panic!("{:?}: {error}", reply.id));
                self.ended += 1;
            }
        }
    }
}

fn simulated_disk(path: &Path) -> Box<dyn Disk> {
    let drive = Drive::open("cmr-500gb-7200").expect("a drive");
    let options = DiskOptions {
        capacity: Some(disk_blocks()),
        contents: ContentKind::Bytes,
        contents_file: Some(path.to_path_buf()),
        ..DiskOptions::default()
    };
    Box::new(SimulatedDisk::new(&drive, &options).expect("a disk"))
}

/// The mirror over simulated disks; the second one fails.
fn simulate(dir: &Path) -> End {
    let member = |name: &str| dir.join(format!("{name}.contents"));
    let disks = ["first", "second"].map(|name| simulated_disk(&member(name)));
    let (mut engine, top, nodes) = engine_over(disks.into());
    let mut clock = VirtualClock::default();
    let opened = engine.open(&mut clock, Start::Format(SET));
    opened.unwrap_or_else(|(_, error)| panic!("{error}"));
    let command = |id, node, kind| CommandArrival::Command {
        node,
        command: Command { id: CommandId(id), kind },
    };
    let replacement = CommandArrival::Replace(Replacement {
        id: CommandId(2),
        disk: DiskId(1),
        with: simulated_disk(&member("third")),
        first_member: 2,
    });
    let mut workload = Workload {
        rng: Rng::new(3, 3),
        left: REQUESTS,
        contents: vec![0; BLOCKS as usize],
        in_flight: BTreeMap::new(),
        commands: VecDeque::from([
            (FAIL_AFTER, command(1, nodes[1], CommandKind::Fail)),
            (REPLACE_AFTER, replacement),
            (REBUILD_AFTER, command(3, top, CommandKind::Rebuild(Some(RATE)))),
        ]),
        ended: 0,
        progress: 0,
        beside_rebuild: 0,
    };
    engine.run(&mut clock, &mut workload, &mut |_, _| {});
    let seen = (workload.progress, workload.beside_rebuild);
    assert!(seen.0 > 10 && seen.1 > 100, "{seen:?}");
    let facts = engine.stack.status_of(top).facts;
    engine.close(&mut clock).unwrap_or_else(|(_, error)| panic!("{error}"));
    drop(engine);
    End {
        facts: facts_to_compare(facts.into_iter().map(|(name, value)| (name.to_string(), value))),
        is_mirrored: same_data(&member("first"), &member("third")),
    }
}

fn file_disk(path: &Path, server: &Server) -> Box<dyn Disk> {
    let file = File::create_new(path).expect("a new file");
    file.set_len(disk_blocks().bytes()).expect("a length");
    let geometry = Geometry::plain(disk_blocks(), Media::Conventional);
    Box::new(FileDisk::open(path, geometry, DirectIo::Off, server.waker()).expect("a disk"))
}

/// The mirror over files, with someone who makes new ones.
fn served(server: &Server, dir: &Path) -> Served {
    let disks = ["first", "second"].map(|name| file_disk(&dir.join(name), server));
    let (mut engine, top, nodes) = engine_over(disks.into());
    server.open(&mut engine, Start::Format(SET)).expect("it opens");
    let waker = server.waker();
    let mut next_number = 2;
    let begin = move |_node, path: Option<&Path>| {
        let path = path.ok_or("no path")?;
        let file = File::create_new(path).map_err(|error| error.to_string())?;
        let length = file.set_len(disk_blocks().bytes());
        length.map_err(|error| error.to_string())?;
        let geometry = Geometry::plain(disk_blocks(), Media::Conventional);
        let disk = FileDisk::open(path, geometry, DirectIo::Off, waker.clone());
        let first_member = next_number;
        next_number += 1;
        Ok(NewDisk { disk: Box::new(disk.map_err(|error| error.to_string())?), first_member })
    };
    Served {
        names: vec![("mirror", top), ("first", nodes[0]), ("second", nodes[1])],
        commands: Commands {
            replacer: Some(Replacer {
                begin: Box::new(begin),
                finish: Box::new(|_| Ok(None)),
                abort: Box::new(|_| {}),
            }),
            ..Commands::default()
        },
        ..Served::over(engine)
    }
}

/// A client that does not outlive its test: one that has lost its server may ask for ever.
struct Fio(std::process::Child);

impl Fio {
    fn wait(&mut self) -> std::process::ExitStatus {
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(std::time::Instant::now() < until, "fio does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Fio {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn call(control: &mut ControlClient, request: Value) -> Value {
    let what = request.to_string();
    let answer = control.call(request);
    answer.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// The mirror over files behind a server; fio works on it and verifies.
fn serve(dir: &Path) -> Option<End> {
    let members = dir.to_path_buf();
    let server = TestServer::of(move |server| served(server, &members));
    let arguments = [
        "--name=verify",
        "--thread",
        "--ioengine=nbd",
        "--rw=randwrite",
        "--bsrange=4k-64k",
        "--blockalign=4k",
        "--size=16M",
        "--loops=3",
        "--rate=,6m",
        "--iodepth=8",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_backlog=64",
        "--randseed=1",
        "--fsync=32",
    ];
    let fio = std::process::Command::new("fio")
        .args(arguments)
        .arg(format!("--uri={}", server.uri))
        .current_dir(dir)
        .stdout(File::create(dir.join("fio.txt")).expect("a file"))
        .stderr(File::create(dir.join("fio-errors.txt")).expect("a file"))
        .spawn();
    let mut fio = match fio {
        Ok(fio) => Fio(fio),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: fio is not installed");
            return None;
        }
        Err(error) => panic!("fio: {error}"),
    };
    let wait = || std::thread::sleep(Duration::from_millis(700));
    wait();
    let mut control = ControlClient::connect(&server.control());
    call(&mut control, json!({"id": 1, "node": "second", "command": "fail"}));
    wait();
    let third: PathBuf = dir.join("third");
    let path = third.to_str().expect("a path");
    let replace = json!({"id": 2, "node": "second", "command": "replace", "path": path});
    call(&mut control, replace);
    wait();
    let rate = format!("{}B/s", RATE.bytes_per_s);
    let rebuild = json!({"id": 3, "node": "mirror", "command": "rebuild", "rate": rate});
    call(&mut control, rebuild);
    let is_running = fio.0.try_wait().expect("a child").is_none();
    assert!(is_running, "fio was over before the rebuild");
    let status = fio.wait();
    let said = std::fs::read_to_string(dir.join("fio.txt")).expect("what fio says");
    assert!(status.success(), "{said}");
    let answer = call(&mut control, json!({"id": 4, "node": "mirror", "command": "status"}));
    let facts = answer["facts"].as_object().expect("facts");
    let number = |value: &Value| value.as_u64().expect("a number");
    let facts = facts_to_compare(facts.iter().map(|(name, value)| (name.clone(), number(value))));
    server.stop.stop();
    server.join().expect("a good end");
    Some(End { facts, is_mirrored: same_data(&dir.join("first"), &third) })
}

/// `imbrex control` on a node of a server of this process.
fn control(server: &TestServer, arguments: &[&str]) -> std::process::Output {
    let mut command = crate::served::imbrex();
    command.arg("control").arg(server.control()).args(arguments);
    command.output().expect("the program")
}

#[test]
fn a_mirror_is_scrubbed_by_the_command_at_its_rate() {
    let dir = tempfile::tempdir().expect("a directory");
    let members = dir.path().to_path_buf();
    let server = TestServer::of(move |server| served(server, &members));
    // So that it takes a second.
    let rate = format!("{}B/s", BLOCKS * BLOCK_BYTES);
    let since = std::time::Instant::now();
    let output = control(&server, &["mirror", "scrub", "--rate", &rate]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(output.stdout, b"mirror: done\n");
    assert!(since.elapsed() >= Duration::from_millis(700), "not at its rate");
    let since = std::time::Instant::now();
    assert!(control(&server, &["mirror", "scrub"]).status.success());
    assert!(since.elapsed() < PATIENCE);
    let output = control(&server, &["first", "scrub"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("accepted by `scrub`: mirror"), "{said}");
    server.stop.stop();
    server.join().expect("a good end");
}

#[test]
fn a_mirror_is_degraded_replaced_and_rebuilt_alike_through_both_doors() {
    let dir = tempfile::tempdir().expect("a directory");
    let simulated = simulate(dir.path());
    let expected = [("members", 2), ("members_lacking", 0), ("unreadable_blocks", 0)];
    for (name, value) in expected {
        assert_eq!(simulated.facts.get(name), Some(&value), "{name}");
    }
    assert!(simulated.is_mirrored, "the simulated disks differ");
    if let Some(served) = serve(dir.path()) {
        assert_eq!(served, simulated);
    }
}
