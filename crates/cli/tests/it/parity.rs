//! The same requests, one at a time, through both doors: simulated disks in virtual time, and
//! files behind a socket. The disks below are asked for the same, the layers count the same, and the
//! contents are the same.

use crate::client::{Client, FLUSH, FUA, TRIM, WRITE_ZEROES};
use crate::served::disconnect;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::counters::{Counter, GROUPS, Unit};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, NodeId, Stack};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_drives::DiskDesign;
use imbrex_serve::connections::RequestEvent;
use imbrex_serve::disk::{DirectIo, FileDisk};
use imbrex_serve::listener::Listen;
use imbrex_serve::nbd::handshake::Export;
use imbrex_serve::server::{Server, StopHandle};
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Built, DiskConfig, Plan, Setting, StackConfig, compared};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const DEVICE_BLOCKS: u64 = 32 * 256;
const REQUESTS: u64 = 350;
/// Log and cache are so small that nearly every write moves something out of both.
const TINY: [&str; 4] = [
    "cache.capacity=512KiB",
    "cache.zone=2MiB",
    "translation.persistent_cache=256KiB",
    "translation.bands=uniform:1MiB..3MiB",
];
/// An array of copies on plain disks. The members of the ready-made one have logs, which the journal of
/// the array goes through as well: when it writes a mark, they are full a block earlier.
const COPIES: &str = r#"
name = "copies"

[[node]]
name = "disk-0"
kind = "disk"
drive = "cmr-500gb-7200"

[[node]]
name = "disk-1"
kind = "disk"
drive = "cmr-500gb-7200"

[[node]]
name = "array"
kind = "raid1"
below = ["disk-0", "disk-1"]
durable = true
region = "256KiB"
"#;
/// Bands of which some are collected soon.
const SHORT_BANDS: [&str; 3] =
    ["array.track_blocks=8", "array.band_tracks=8", "array.collect_at=40"];
/// Stacks of plain disks.
const WITHOUT_BANDS: [&str; 3] = ["cmr-only", "striped", "copies"];
/// Arrays, with nothing above them that evicts.
const ARRAYS: [&str; 2] = ["copies", "raid4smr"];
/// How the layers come up.
const FORMAT: Start = Start::Format(Uuid([7; 16]));
/// For one request with everything it causes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a disk was asked for: its place in the stack, what, where, and who wanted it.
type Asked = (usize, Operation, Extent, Cause);
type Log = Arc<Mutex<Vec<Asked>>>;

/// The operations of all disks of a stack, in the order of asking; the first is being carried out
/// once its disk has been told.
#[derive(Default)]
struct Queue {
    operations: VecDeque<(usize, DiskOp)>,
    told: bool,
}

/// Notes what a disk is asked for, and lets one operation happen at a time in the whole stack.
/// Otherwise the sequence would tell which medium was quicker: a file system makes several writes
/// durable at once, a simulated disk finishes the nearest first.
struct Recording {
    disk: Box<dyn Disk>,
    index: usize,
    queue: Rc<RefCell<Queue>>,
    log: Log,
}

impl Recording {
    fn is_next(&self) -> bool {
        let queue = self.queue.borrow();
        let first = queue.operations.front();
        !queue.told && first.is_some_and(|(disk, _)| *disk == self.index)
    }

    fn start_if_next(&mut self, now: Instant, buffers: &mut Buffers) {
        if self.is_next() {
            let mut queue = self.queue.borrow_mut();
            queue.told = true;
            let (_, op) = queue.operations[0];
            self.disk.submit(now, op, buffers);
        }
    }
}

impl Disk for Recording {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let asked = (self.index, op.operation, op.extent, op.cause);
        self.log.lock().expect("the log").push(asked);
        self.queue.borrow_mut().operations.push_back((self.index, op));
        self.start_if_next(now, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.start_if_next(now, buffers);
        let completion = self.disk.poll(now, buffers)?;
        let mut queue = self.queue.borrow_mut();
        queue.operations.pop_front();
        queue.told = false;
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        let at_once = self.is_next().then_some(Instant::ZERO);
        at_once.or(self.disk.next_event())
    }
}

#[derive(Clone, Debug)]
struct Request {
    operation: Operation,
    extent: Extent,
    data: Vec<u8>,
}

fn requests() -> Vec<Request> {
    let mut rng = Rng::new(11, 1);
    let durability = |rng: &mut Rng| match rng.below(8) {
        0 => Durability::Durable,
        _ => Durability::Cached,
    };
    (0..REQUESTS)
        .map(|_| {
            let length = 1 + rng.below(24);
            let within = DEVICE_BLOCKS / [1, 16][rng.below(2) as usize];
            let extent = Extent::new(rng.below(within - length), length);
            let durability = durability(&mut rng);
            let operation = match rng.below(20) {
                0..5 => Operation::Read,
                5 => Operation::Flush,
                6..8 => Operation::Zero { durability, may_unmap: rng.below(2) == 0 },
                _ => Operation::Write { durability },
            };
            request(operation, extent, &mut rng)
        })
        .collect()
}

fn request(operation: Operation, extent: Extent, rng: &mut Rng) -> Request {
    let bytes = match operation {
        Operation::Write { .. } => extent.blocks.bytes(),
        _ => 0,
    };
    let data = (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes());
    Request {
        operation,
        extent: match operation {
            Operation::Flush => Extent::EMPTY,
            _ => extent,
        },
        data: data.collect(),
    }
}

/// Puts a disk in the place of a simulated one, given the name of its node.
type Place<'a> = &'a dyn Fn(&str, Box<dyn Disk>) -> Box<dyn Disk>;

/// The stack over the disks that `place` puts in the place of the simulated ones.
fn build(stack: &str, durable: bool, log: &Log, place: Place<'_>) -> Built {
    let sizes = if ARRAYS.contains(&stack) { &SHORT_BANDS[..] } else { &TINY[..] };
    let settings: Vec<Setting> =
        sizes.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    let config = match stack {
        "copies" => StackConfig::from_text("copies.toml", COPIES, &[]),
        _ => StackConfig::load(stack, &settings),
    };
    let config = config.expect("a stack");
    let options = BuildOptions {
        size_bytes: Some(DEVICE_BLOCKS * BLOCK_BYTES),
        trim_disks: true,
        durable,
        ..BuildOptions::simulate(1)
    };
    let plan = Plan::new(&config, &options).expect("a plan");
    let (mut index, queue) = (0, Rc::default());
    let mut recorded = |config: &DiskConfig, design: DiskDesign| {
        let recording = Recording {
            disk: place(&config.name, Box::new(design.simulate().expect("a disk"))),
            index,
            queue: Rc::clone(&queue),
            log: Arc::clone(log),
        };
        index += 1;
        Ok(Box::new(recording) as Box<dyn Disk>)
    };
    plan.build_on(None, None, ContentKind::Bytes, &mut recorded).expect("a stack that fits")
}

/// One request, and its answer.
struct One {
    arrival: Option<Arrival>,
    answered: bool,
}

impl Frontend for One {
    fn next_arrival(&self) -> Option<Instant> {
        self.arrival.is_some().then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        self.arrival.take()
    }

    fn reply(&mut self, _now: Instant, completion: Completion, _buffers: &mut Buffers) {
        assert_eq!(completion.result, Ok(()));
        self.answered = true;
    }

    fn finished(&self) -> bool {
        self.answered
    }
}

/// Carries a request out in virtual time, with everything it causes; what it read.
fn simulate(engine: &mut Engine, clock: &mut VirtualClock, request: &Request) -> Vec<u8> {
    let buffer = match request.operation {
        op if op.has_data() => engine.buffers.allocate(request.extent.blocks.0),
        _ => BufferSlice::EMPTY,
    };
    if let Operation::Write { .. } = request.operation {
        let bytes = engine.buffers.bytes_mut(buffer).expect("bytes");
        bytes.copy_from_slice(&request.data);
    }
    let mut one = One {
        arrival: Some(Arrival {
            tag: Tag(0),
            operation: request.operation,
            extent: request.extent,
            buffer,
        }),
        answered: false,
    };
    engine.run(clock, &mut one, &mut |_, _| {});
    let read = match request.operation {
        Operation::Read => engine.buffers.bytes(buffer).expect("bytes").to_vec(),
        _ => vec![],
    };
    engine.buffers.release(buffer);
    read
}

type Counted = Vec<(NodeId, &'static str, u64)>;

/// What the layers have counted; not the time that something took, which is another one in another
/// world.
fn counted(stack: &Stack) -> Counted {
    let layers = stack.bottom_up().filter(|node| stack.disk_of(*node).is_none());
    let of = |counter: &&Counter| counter.declared().unit != Unit::Ns;
    let counters = || GROUPS.iter().flat_map(|group| group.counters).filter(of);
    layers
        .flat_map(|node| {
            let counts = stack.counts(node);
            counters().map(move |it| (node, it.name(), counts.counter(*it)))
        })
        .collect()
}

/// How far a server is.
#[derive(Default)]
struct State {
    /// Requests answered.
    answered: u64,
    /// All they have caused is done.
    is_quiet: bool,
    counted: Counted,
}

type Progress = Arc<(Mutex<State>, Condvar)>;

/// The stack over files in `dir`, served.
struct Door {
    client: Client,
    sent: u64,
    progress: Progress,
    stop: StopHandle,
    thread: JoinHandle<()>,
}

impl Door {
    fn open(stack: &'static str, durable: bool, dir: &Path, log: &Log) -> Door {
        let socket = dir.join("s");
        let (sender, receiver) = channel();
        let progress = Progress::default();
        let thread = {
            let (dir, socket) = (dir.to_owned(), socket.clone());
            let (log, progress) = (Arc::clone(log), Arc::clone(&progress));
            thread::spawn(move || {
                let server = Server::bind(&Listen::Unix(socket)).expect("a free socket");
                sender.send(server.stop_handle()).expect("a waiting test");
                let built = build_on_files(&server, stack, durable, &dir, &log);
                serve(server, built, &progress);
            })
        };
        let stop = receiver.recv().expect("a server");
        Door { client: Client::ready(&socket), sent: 0, progress, stop, thread }
    }

    /// Carries a request out and waits for everything it causes; what it read, and what the layers
    /// have counted.
    fn request(&mut self, request: &Request) -> (Vec<u8>, Counted) {
        let offset = request.extent.start.0 * BLOCK_BYTES;
        let bytes = request.extent.blocks.bytes() as u32;
        let flags = if request.operation.is_durable() { FUA } else { 0 };
        let client = &mut self.client;
        let read = match request.operation {
            Operation::Read => client.read(offset, bytes),
            Operation::Write { .. } => match client.write(flags, offset, &request.data) {
                0 => Ok(vec![]),
                error => Err(error),
            },
            operation => {
                let command = match operation {
                    Operation::Flush => FLUSH,
                    Operation::Zero { may_unmap: true, .. } => TRIM,
                    _ => WRITE_ZEROES,
                };
                // Without NO_HOLE a client allows the server to unmap.
                let flags = match command {
                    WRITE_ZEROES => flags | crate::client::NO_HOLE,
                    FLUSH => 0,
                    _ => flags,
                };
                match client.call(command, flags, offset, bytes) {
                    0 => Ok(vec![]),
                    error => Err(error),
                }
            }
        };
        self.sent += 1;
        let (state, changed) = &*self.progress;
        let behind = |state: &mut State| state.answered != self.sent || !state.is_quiet;
        let state = state.lock().expect("progress");
        let (state, waited) =
            changed.wait_timeout_while(state, PATIENCE, behind).expect("progress");
        let (answered, sent) = (state.answered, self.sent);
        assert!(!waited.timed_out(), "{answered} of {sent} requests are answered");
        (read.expect("no error"), state.counted.clone())
    }

    fn close(self) {
        disconnect(self.client);
        self.stop.stop();
        self.thread.join().expect("a server that does not panic");
    }
}

fn build_on_files(server: &Server, stack: &str, durable: bool, dir: &Path, log: &Log) -> Built {
    let waker = server.waker();
    build(stack, durable, log, &|name, model| {
        let geometry = model.geometry().clone();
        let path = dir.join(name);
        let file = File::create(&path).expect("a file");
        file.set_len(geometry.blocks.bytes()).expect("a length");
        Box::new(FileDisk::open(&path, geometry, DirectIo::Off, waker.clone()).expect("a disk"))
    })
}

fn serve(mut server: Server, built: Built, progress: &Progress) {
    let answered = Rc::new(Cell::new(0));
    let count = Rc::clone(&answered);
    server.observe(Box::new(move |event| {
        if let RequestEvent::Answered { result, .. } = event {
            assert_eq!(result, Ok(()));
            count.set(count.get() + 1);
        }
    }));
    let export = Export {
        offset: 0,
        name: "parity".into(),
        description: String::new(),
        bytes: built.stack.geometry().blocks.bytes(),
        is_read_only: false,
    };
    let mut engine = Engine {
        stack: built.stack,
        disks: built.disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    server.open(&mut engine, FORMAT).expect("it opens");
    let ended = server.run(&mut engine, vec![export], &mut |_, stack| {
        let (state, changed) = &**progress;
        let (answered, is_quiet) = (answered.get(), stack.is_quiet());
        *state.lock().expect("progress") = State { answered, is_quiet, counted: counted(stack) };
        changed.notify_one();
    });
    ended.expect("a clean end");
}

/// What was asked for since the last time.
fn taken(log: &Log) -> Vec<Asked> {
    std::mem::take(&mut *log.lock().expect("the log"))
}

/// Leaves out the blocks that layers write for themselves: a journal writes its mark when nothing
/// has happened for 100 ms, which is another moment in another world. Everything else stays,
/// flushes too. Those of a region that an array clears when nobody has written it for a second come at
/// another moment as well, so that of an array its own flushes are left out.
fn without_own_blocks(mut asked: Vec<Asked>, is_array: bool) -> Vec<Asked> {
    let is_own = |(_, operation, _, cause): &Asked| {
        let is_flush = is_array && *operation == Operation::Flush;
        *cause == Cause::Metadata && (is_flush || matches!(operation, Operation::Write { .. }))
    };
    asked.retain(|asked| !is_own(asked));
    asked
}

/// The disks that were flushed.
fn flushed(asked: &[Asked]) -> BTreeSet<usize> {
    let flushes = asked.iter().filter(|(_, operation, ..)| *operation == Operation::Flush);
    flushes.map(|(disk, ..)| *disk).collect()
}

fn both_doors_do_the_same(stack: &'static str, durable: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let (simulated_log, served_log) = (Log::default(), Log::default());
    let built = build(stack, durable, &simulated_log, &|_, model| model);
    let mut engine = Engine {
        stack: built.stack,
        disks: built.disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    let mut clock = VirtualClock::default();
    engine.open(&mut clock, FORMAT).expect("it opens");
    let mut door = Door::open(stack, durable, dir.path(), &served_log);
    let (mut destaged, mut cleaned) = (0, 0);
    for (index, request) in requests().iter().enumerate() {
        let simulated = simulate(&mut engine, &mut clock, request);
        let (served, served_counts) = door.request(request);
        let (operation, extent) = (request.operation, request.extent);
        let at = format!("{stack}, durable {durable}, request {index}, {operation:?} {extent:?}");
        assert!(simulated == served, "{at}: other data was read");
        assert_eq!(counted(&engine.stack), served_counts, "{at}: other things were counted");
        let (mut simulated, mut served) = (taken(&simulated_log), taken(&served_log));
        if durable {
            let is_array = ARRAYS.contains(&stack);
            if is_array && operation == Operation::Flush {
                let all: BTreeSet<usize> = (0..engine.disks.len()).collect();
                assert_eq!(flushed(&simulated), all, "{at}: simulated disks were not flushed");
                assert_eq!(flushed(&served), all, "{at}: served disks were not flushed");
            }
            [simulated, served] =
                [simulated, served].map(|asked| without_own_blocks(asked, is_array));
        }
        assert_eq!(simulated, served, "{at}: the disks were asked for something else");
        let of = |wanted| served.iter().filter(|(.., cause)| *cause == wanted).count();
        destaged += of(Cause::Destage);
        cleaned += of(Cause::Cleaning);
    }
    if !WITHOUT_BANDS.contains(&stack) {
        assert!(cleaned > 0, "{stack}: no band was rewritten");
    }
    if stack == "raid4smr" {
        let counted = counted(&engine.stack);
        let collections =
            counted.iter().filter(|(_, name, _)| *name == Counter::Collections.name());
        let collections: u64 = collections.map(|(.., count)| count).sum();
        assert!(collections > 10, "{collections} band rows were collected");
    }
    let evicts = !WITHOUT_BANDS.contains(&stack) && !ARRAYS.contains(&stack);
    if !stack.ends_with("-only") && evicts {
        assert!(destaged > 0, "{stack}: nothing was evicted");
    }
    let part = DEVICE_BLOCKS / 16;
    for index in 0..16 {
        let whole = Request {
            operation: Operation::Read,
            extent: Extent::new(index * part, part),
            data: vec![],
        };
        let simulated = simulate(&mut engine, &mut clock, &whole);
        let (served, _) = door.request(&whole);
        assert!(simulated == served, "{stack}: part {index} of the contents");
    }
    door.close();
}

#[test]
fn the_same_requests_move_the_same_blocks_in_simulation_and_on_files() {
    for stack in compared().chain(["striped"]) {
        both_doors_do_the_same(stack, false);
    }
}

#[test]
fn the_same_requests_move_the_same_blocks_where_both_are_durable() {
    for stack in compared().chain(["striped"]) {
        both_doors_do_the_same(stack, true);
    }
}

#[test]
fn the_same_requests_move_the_same_blocks_of_arrays_that_are_durable() {
    for stack in ARRAYS {
        both_doors_do_the_same(stack, true);
    }
}
