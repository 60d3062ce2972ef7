//! A server over one disk, on a thread of the test.

use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::stack::{NodeId, StackBuilder};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration, Instant};
use imbrex_serve::clock::Waker;
use imbrex_serve::connections::RequestEvent;
use imbrex_serve::control::{Commands, ControlNode};
use imbrex_serve::listener::Listen;
use imbrex_serve::nbd::handshake::Export;
use imbrex_serve::server::{ServeError, Server, StopHandle};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;

pub const EXPORT: &str = "disk";

/// What a test can see of a [`TestDisk`], and do to it.
#[derive(Default)]
pub struct DiskControl {
    /// Every operation, in the order of submission.
    pub operations: Vec<DiskOp>,
    /// The error that operations starting at this block get.
    pub failing: Option<(u64, IoError)>,
    /// Operations that touch this block are not finished while it is set.
    pub held_block: Option<u64>,
    /// Flushes that were answered.
    pub flushes: u64,
}

pub type Control = Arc<Mutex<DiskControl>>;

/// A disk in memory that finishes operations in any order, some 100 µs later.
pub struct TestDisk {
    geometry: Geometry,
    content: Vec<u8>,
    pending: Vec<(Instant, DiskOp)>,
    delays: Rng,
    delay_us_max: u64,
    control: Control,
}

impl TestDisk {
    pub fn new(blocks: u64, delay_us_max: u64, control: Control) -> TestDisk {
        TestDisk {
            geometry: plain(blocks),
            content: vec![0; (blocks * BLOCK_BYTES) as usize],
            pending: Vec::new(),
            delays: Rng::new(1, 1),
            delay_us_max,
            control,
        }
    }

    fn carry_out(&mut self, op: DiskOp, buffers: &mut Buffers) -> Result<(), IoError> {
        if let Some((block, error)) = self.control.lock().expect("control").failing
            && op.extent.start.0 == block
            && op.operation != Operation::Flush
        {
            return Err(error);
        }
        let from = op.extent.start.0 as usize * BLOCK_BYTES as usize;
        let range = from..from + op.extent.blocks.bytes() as usize;
        match op.operation {
            Operation::Read => {
                let target = buffers.bytes_mut(op.buffer).expect("bytes");
                target.copy_from_slice(&self.content[range]);
            }
            Operation::Write { .. } => {
                self.content[range].copy_from_slice(buffers.bytes(op.buffer).expect("bytes"));
            }
            Operation::Zero { .. } => self.content[range].fill(0),
            Operation::Flush => self.control.lock().expect("control").flushes += 1,
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => return Err(IoError::Invalid),
        }
        Ok(())
    }
}

impl Disk for TestDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        self.control.lock().expect("control").operations.push(op);
        let delay = match self.delay_us_max {
            0 => 0,
            max => self.delays.below(max),
        };
        self.pending.push((now + Duration::from_us(delay), op));
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let held = self.control.lock().expect("control").held_block;
        let due = |(at, op): &(Instant, DiskOp)| {
            let is_held =
                held.is_some_and(|block| op.extent.contains(imbrex_core::units::Lba(block)));
            *at <= now && !is_held
        };
        let index = self.pending.iter().position(due)?;
        let (_, op) = self.pending.swap_remove(index);
        let result = self.carry_out(op, buffers);
        Some(DiskCompletion { id: op.id, result })
    }

    fn next_event(&self) -> Option<Instant> {
        // A held operation is looked at again and again until the test lets it go.
        self.pending.iter().map(|(at, _)| *at).min()
    }
}

pub fn plain(blocks: u64) -> Geometry {
    Geometry::plain(BlockCount(blocks), Media::Conventional)
}

pub type Events = Arc<Mutex<Vec<RequestEvent>>>;

pub struct TestServer {
    pub socket: PathBuf,
    pub uri: String,
    pub events: Events,
    pub stop: StopHandle,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    _dir: TempDir,
}

impl TestServer {
    /// A server over the disk that `disk` makes.
    pub fn over(disk: impl FnOnce(Waker) -> Box<dyn Disk> + Send + 'static) -> TestServer {
        TestServer::start(disk, false)
    }

    /// A server over a disk in memory that clients may only read.
    pub fn read_only(blocks: u64) -> (TestServer, Control) {
        let control = Control::default();
        let of_disk = Arc::clone(&control);
        let disk = move |_| Box::new(TestDisk::new(blocks, 0, of_disk)) as Box<dyn Disk>;
        (TestServer::start(disk, true), control)
    }

    fn start(
        disk: impl FnOnce(Waker) -> Box<dyn Disk> + Send + 'static,
        is_read_only: bool,
    ) -> TestServer {
        TestServer::of(move |server| Served {
            is_read_only,
            ..Served::over(engine_over(disk(server.waker())))
        })
    }

    /// A server over any stack, made on the thread of the server. It takes commands on the socket
    /// [`control`](Self::control).
    pub fn of(build: impl FnOnce(&mut Server) -> Served + Send + 'static) -> TestServer {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s");
        let events = Events::default();
        let (sender, receiver) = channel();
        let thread = {
            let (socket, events) = (socket.clone(), Arc::clone(&events));
            thread::spawn(move || {
                let listen = Listen::Unix(socket.clone());
                let mut server = Server::bind(&listen).expect("a free socket");
                server.bind_control(&control_of(&socket)).expect("a free path");
                let served = build(&mut server);
                let handles = (server.uri(), server.stop_handle());
                sender.send(handles).expect("a waiting test");
                server.observe(Box::new(move |event| {
                    events.lock().expect("events").push(event);
                }));
                serve_stack(server, served)
            })
        };
        let (uri, stop) = receiver.recv().expect("a server that has started");
        TestServer { socket, uri, events, stop, thread: Some(thread), _dir: dir }
    }

    /// A server over a disk in memory.
    pub fn in_memory(blocks: u64, delay_us_max: u64) -> (TestServer, Control) {
        let control = Control::default();
        let of_disk = Arc::clone(&control);
        let server =
            TestServer::over(move |_| Box::new(TestDisk::new(blocks, delay_us_max, of_disk)));
        (server, control)
    }

    /// Where commands are taken.
    pub fn control(&self) -> PathBuf {
        control_of(&self.socket)
    }

    /// Waits for the end of a server that was told to stop.
    pub fn join(mut self) -> Result<(), ServeError> {
        let thread = self.thread.take().expect("joined once");
        thread.join().expect("a server that does not panic")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop.stop();
            // A test that has failed may have left requests that will never be answered.
            if !thread::panicking() {
                assert!(thread.join().is_ok(), "the server panicked");
            }
        }
    }
}

/// One disk with nothing above it.
pub fn engine_over(disk: Box<dyn Disk>) -> Engine {
    let mut builder = StackBuilder::new(0);
    let top = builder.disk(disk.geometry().clone());
    Engine {
        stack: builder.build(top),
        disks: vec![disk],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    }
}

/// Serves one disk with nothing above it until the server is stopped.
pub fn serve(server: Server, disk: Box<dyn Disk>) -> Result<(), ServeError> {
    run(server, engine_over(disk))
}

/// Serves an engine until the server is stopped.
pub fn run(server: Server, engine: Engine) -> Result<(), ServeError> {
    serve_stack(server, Served::over(engine))
}

/// A stack that a test serves.
pub struct Served {
    pub engine: Engine,
    /// What commands can be about. `nodes` is filled from [`names`](Self::names).
    pub commands: Commands,
    /// The nodes that take commands, by name.
    pub names: Vec<(&'static str, NodeId)>,
    /// Parts of the device that clients find by name: their first byte and their bytes.
    pub windows: Vec<(&'static str, u64, u64)>,
    pub is_read_only: bool,
}

impl Served {
    /// An engine without names for its nodes.
    pub fn over(engine: Engine) -> Served {
        Served {
            engine,
            commands: Commands::default(),
            names: Vec::new(),
            windows: Vec::new(),
            is_read_only: false,
        }
    }
}

fn serve_stack(mut server: Server, served: Served) -> Result<(), ServeError> {
    let Served { mut engine, mut commands, names, windows, is_read_only } = served;
    let named = names.iter();
    commands.nodes = named.map(|(name, node)| ControlNode::of(&engine, name, *node)).collect();
    commands.is_read_only = is_read_only;
    server.take_commands(commands);
    let bytes = engine.stack.geometry().blocks.bytes();
    let whole = [(EXPORT, 0, bytes)];
    let exports = whole.into_iter().chain(windows);
    let exports = exports.map(|(name, offset, bytes)| Export {
        name: name.into(),
        description: "a disk in memory".into(),
        offset,
        bytes,
        is_read_only,
    });
    let result = server.run(&mut engine, exports.collect(), &mut |_, _| {});
    assert_eq!(engine.buffers.allocated(), 0, "buffers were lost");
    result
}

/// The socket for commands beside that of a device.
fn control_of(socket: &Path) -> PathBuf {
    socket.with_extension("control")
}

/// A client of a control socket.
pub struct ControlClient {
    pub stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl ControlClient {
    pub fn connect(path: &Path) -> ControlClient {
        let stream = UnixStream::connect(path).expect("a listening server");
        let patience = Some(std::time::Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a timeout");
        let lines = BufReader::new(stream.try_clone().expect("a second handle"));
        ControlClient { stream, lines }
    }

    pub fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stream.write_all(line.as_bytes()).expect("a server that reads");
    }

    /// The next line that the server says; `None` when it has closed the connection.
    pub fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line).expect("an answer in time") {
            0 => None,
            _ => Some(serde_json::from_str(&line).expect("a line of JSON")),
        }
    }

    /// What is said at the end of a command: what there is to know, or an error.
    pub fn call(&mut self, request: Value) -> Result<Value, String> {
        self.send(&request.to_string());
        loop {
            let answer = self.answer().expect("an answer");
            assert_eq!(answer["id"], request["id"], "{answer}");
            if let Some(words) = answer["error"].as_str() {
                return Err(words.to_owned());
            }
            if answer["progress"].is_null() {
                return Ok(answer["ok"].clone());
            }
        }
    }
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if condition() {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("after 10 s still not: {what}");
}

/// The example program, which the test build has made too.
fn bare_disk() -> std::path::PathBuf {
    let binary = std::env::current_exe().expect("a path");
    let profile = binary.parent().and_then(|deps| deps.parent()).expect("a directory");
    profile.join("examples").join("bare_disk")
}

/// A server in a process of its own, over a file of `bytes` bytes; its socket is `dir/s`.
pub fn start_program(dir: &std::path::Path, bytes: u64) -> Program {
    let (disk, socket) = (dir.join("disk.img"), dir.join("s"));
    let file = std::fs::File::create(&disk).expect("a file");
    file.set_len(bytes).expect("a length");
    let child = std::process::Command::new(bare_disk())
        .args([&disk, &socket])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the example is built with the tests");
    let program = Program(child);
    eventually("the program listens", || socket.exists());
    program
}

/// A process that does not outlive its test.
pub struct Program(pub std::process::Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
