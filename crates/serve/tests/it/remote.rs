//! Disks at other servers: power cuts there, servers that hang or talk nonsense, other disks behind an address.

use crate::remote_server::RemoteServer;
use crate::support::plain;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::label::{LABEL_BLOCKS, Label, LabelCopy};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::operation::{Completion, Durability, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, StackBuilder};
use imbrex_core::units::Instant;
use imbrex_serve::clock::WallClock;
use imbrex_serve::remote::{RemoteAddress, RemoteBug, RemoteDisk, RemoteSettings, RemoteStorage};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

/// Blocks that the disk offers.
const BLOCKS: u64 = 48;
const BLOCK: usize = 4096;
/// Requests under way at once.
const DEPTH: usize = 8;

/// The disk of an engine, which a test can reach too.
struct Reached(Rc<RefCell<RemoteDisk>>, Geometry);

impl Disk for Reached {
    fn geometry(&self) -> &Geometry {
        &self.1
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        self.0.borrow_mut().submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.0.borrow_mut().poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        self.0.borrow().next_event()
    }
}

/// What a host asks, several requests at a time, and what it makes of the answers.
trait Host {
    /// The next request, and the byte that a write fills its blocks with; `None`: nothing for now.
    fn next(&mut self) -> Option<(Operation, Extent, u8)>;
    /// A request has ended: the first byte of each block that was read.
    fn ended(&mut self, number: u64, result: Result<(), IoError>, found: Vec<u8>);
    /// Nothing more comes.
    fn is_over(&self) -> bool;
}

struct HostFrontend<'h, H> {
    host: &'h mut H,
    next: u64,
    under_way: HashMap<u64, (Operation, BufferSlice)>,
}

impl<H: Host> Frontend for HostFrontend<'_, H> {
    fn next_arrival(&self) -> Option<Instant> {
        (self.under_way.len() < DEPTH && !self.host.is_over()).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        self.next_arrival()?;
        let (operation, extent, fill) = self.host.next()?;
        let buffer = match operation {
            Operation::Read | Operation::Write { .. } => buffers.allocate(extent.blocks.0),
            _ => BufferSlice::EMPTY,
        };
        if matches!(operation, Operation::Write { .. }) {
            buffers.bytes_mut(buffer).expect("bytes").fill(fill);
        }
        self.under_way.insert(self.next, (operation, buffer));
        self.next += 1;
        Some(Arrival { tag: Tag(self.next - 1), operation, extent, buffer })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        let Tag(number) = completion.tag;
        let (operation, buffer) = self.under_way.remove(&number).expect("a request");
        let found = match (operation, completion.result) {
            (Operation::Read, Ok(())) => {
                let bytes = buffers.bytes(buffer).expect("bytes");
                bytes.chunks(BLOCK).map(|block| block[0]).collect()
            }
            _ => Vec::new(),
        };
        buffers.release(buffer);
        self.host.ended(number, completion.result, found);
    }

    fn finished(&self) -> bool {
        self.host.is_over() && self.under_way.is_empty()
    }
}

/// One request.
struct One {
    request: Option<(Operation, Extent, u8)>,
    result: Result<(), IoError>,
    found: Vec<u8>,
}

impl Host for One {
    fn next(&mut self) -> Option<(Operation, Extent, u8)> {
        self.request.take()
    }

    fn ended(&mut self, _number: u64, result: Result<(), IoError>, found: Vec<u8>) {
        (self.result, self.found) = (result, found);
    }

    fn is_over(&self) -> bool {
        self.request.is_none()
    }
}

/// An engine over a remote disk.
struct Driver {
    engine: Engine,
    disk: Rc<RefCell<RemoteDisk>>,
    clock: WallClock,
}

impl Driver {
    fn over(disk: RemoteDisk, clock: WallClock) -> Driver {
        let geometry = disk.geometry().clone();
        let disk = Rc::new(RefCell::new(disk));
        let mut builder = StackBuilder::new(0);
        // Labels lie behind what a disk offers; these tests write them as blocks.
        let offered = plain(geometry.blocks.0 + LABEL_BLOCKS);
        let top = builder.disk(offered.clone());
        let engine = Engine {
            stack: builder.build(top),
            disks: vec![Box::new(Reached(Rc::clone(&disk), offered))],
            buffers: Buffers::new(ContentKind::Bytes),
            in_flight_max: u32::MAX,
        };
        Driver { engine, disk, clock }
    }

    fn open(address: &RemoteAddress, settings: RemoteSettings) -> Driver {
        Driver::with(address, settings, None)
    }

    fn with(address: &RemoteAddress, settings: RemoteSettings, bug: Option<RemoteBug>) -> Driver {
        let (clock, waker) = WallClock::alone().expect("an epoll instance");
        let disk = RemoteDisk::open(address, plain(BLOCKS), false, false, settings, waker);
        Driver::over(disk.expect("a disk").plant(bug), clock)
    }

    fn run(&mut self, host: &mut impl Host) {
        let mut frontend = HostFrontend { host, next: 0, under_way: HashMap::new() };
        self.engine.run(&mut self.clock, &mut frontend, &mut |_, _| {});
    }

    fn execute(&mut self, operation: Operation, extent: Extent, fill: u8) -> One {
        let request = Some((operation, extent, fill));
        let mut one = One { request, result: Ok(()), found: Vec::new() };
        self.run(&mut one);
        one
    }
}

fn settings() -> RemoteSettings {
    RemoteSettings { reconnect: Duration::from_secs(20), ..RemoteSettings::default() }
}

const WRITE_DURABLE: Operation = Operation::Write { durability: Durability::Durable };
const ZERO: Operation = Operation::Zero { durability: Durability::Cached, may_unmap: true };
const WHOLE: fn() -> Extent = || Extent::new(0, BLOCKS);

/// A load of reads, writes and flushes, under which the server loses its power again and again. Everything that
/// was answered must be read after each cut.
struct Load<'s> {
    server: &'s RemoteServer,
    rng: Rng,
    /// By block: what was answered.
    known: [u8; BLOCKS as usize],
    /// By block: a request without an answer is about it.
    is_busy: [bool; BLOCKS as usize],
    under_way: HashMap<u64, (Extent, Operation, u8)>,
    started: u64,
    cuts_left: u64,
    until_cut: u64,
    wrong: Option<String>,
}

impl Load<'_> {
    fn new(server: &RemoteServer, seed: u64, cuts: u64) -> Load<'_> {
        Load {
            server,
            rng: Rng::new(seed, 1),
            known: [0; BLOCKS as usize],
            is_busy: [false; BLOCKS as usize],
            under_way: HashMap::new(),
            started: 0,
            cuts_left: cuts,
            until_cut: 10,
            wrong: None,
        }
    }

    fn lose_power(&mut self) {
        self.server.cut(&mut self.rng);
        if self.rng.below(4) == 0 {
            thread::sleep(Duration::from_millis(self.rng.below(3)));
        }
        self.server.switch_on();
        self.cuts_left -= 1;
        self.until_cut = 5 + self.rng.below(80);
    }
}

fn range_of(extent: Extent) -> std::ops::Range<usize> {
    extent.start.0 as usize..extent.end().0 as usize
}

impl Host for Load<'_> {
    fn next(&mut self) -> Option<(Operation, Extent, u8)> {
        let extent = loop {
            let start = self.rng.below(BLOCKS);
            let extent = Extent::new(start, 1 + self.rng.below((BLOCKS - start).min(5)));
            if !self.is_busy[range_of(extent)].contains(&true) {
                break extent;
            }
        };
        let fill = self.started as u8;
        let (operation, extent) = match self.rng.below(10) {
            0 => (Operation::Flush, Extent::EMPTY),
            1 => (ZERO, extent),
            2 => (WRITE_DURABLE, extent),
            3 | 4 => (Operation::Read, extent),
            _ => (Operation::WRITE, extent),
        };
        self.is_busy[range_of(extent)].fill(true);
        self.under_way.insert(self.started, (extent, operation, fill));
        self.started += 1;
        Some((operation, extent, fill))
    }

    fn ended(&mut self, number: u64, result: Result<(), IoError>, found: Vec<u8>) {
        let (extent, operation, fill) = self.under_way.remove(&number).expect("a request");
        self.is_busy[range_of(extent)].fill(false);
        let known = &mut self.known[range_of(extent)];
        let wrong = match (result, operation) {
            (Err(error), _) => Some(format!("request {number}: {error}")),
            (_, Operation::Read) if found != known => {
                Some(format!("{extent:?} holds {found:?}; expected: {known:?}"))
            }
            (_, Operation::Write { .. }) => {
                known.fill(fill);
                None
            }
            (_, Operation::Zero { .. }) => {
                known.fill(0);
                None
            }
            _ => None,
        };
        self.wrong = self.wrong.take().or(wrong);
        self.until_cut = self.until_cut.saturating_sub(1);
        if self.until_cut == 0 && self.cuts_left > 0 {
            self.lose_power();
        }
    }

    fn is_over(&self) -> bool {
        self.until_cut == 0 || self.wrong.is_some()
    }
}

/// Plays such a load. In the end the disk must hold what was answered, and what was flushed must be there when
/// the power goes for the last time.
fn lose_power(seed: u64, cuts: u64, planted: Option<RemoteBug>) -> Result<u64, String> {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let mut driver = Driver::with(&server.address(), settings(), planted);
    let mut load = Load::new(&server, seed, cuts);
    driver.run(&mut load);
    let Load { known, mut rng, wrong, cuts_left, .. } = load;
    wrong.map_or(Ok(()), Err)?;
    let found = driver.execute(Operation::Read, Extent::new(0, BLOCKS), 0).found;
    if found != known {
        return Err(format!("the disk holds {found:?}; expected: {known:?}"));
    }
    let flushed = driver.execute(Operation::Flush, Extent::EMPTY, 0);
    flushed.result.map_err(|error| error.to_string())?;
    drop(driver);
    server.cut(&mut rng);
    let durable: Vec<u8> = server.medium().durable.chunks(BLOCK).map(|block| block[0]).collect();
    match durable == known {
        true => Ok(cuts - cuts_left),
        false => Err(format!("after the last cut there is {durable:?}; expected: {known:?}")),
    }
}

#[test]
fn two_hundred_power_cuts_of_a_server_lose_nothing() {
    let cuts: u64 = (0..10).map(|seed| lose_power(seed, 20, None).expect("no loss")).sum();
    assert_eq!(cuts, 200);
}

#[test]
fn what_is_planted_is_found_by_power_cuts() {
    for bug in [RemoteBug::NothingSentAgain, RemoteBug::FlushForgotten] {
        let found = (0..10).find_map(|seed| lose_power(seed, 20, Some(bug)).err());
        assert!(found.is_some(), "{bug:?} was not found");
    }
}

/// A flush is forced where more would have to be kept than there is memory for.
#[test]
fn memory_for_what_may_be_forgotten_is_bounded() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let settings = RemoteSettings { resend_bytes_max: 8 * 4096, ..settings() };
    let mut driver = Driver::open(&server.address(), settings);
    for round in 0..40u8 {
        let at = u64::from(round) * 7 % (BLOCKS - 3);
        driver.execute(Operation::WRITE, Extent::new(at, 3), round).result.expect("a write");
    }
    let flushes = server.medium().flushes;
    assert!((10..=40).contains(&flushes), "{flushes}");
    let mut load = Load::new(&server, 9, 0);
    load.until_cut = 400;
    load.known = driver.execute(Operation::Read, WHOLE(), 0).found.try_into().expect("all blocks");
    driver.run(&mut load);
    assert_eq!(load.wrong, None);
    // One that is longer than all memory waits until there is nothing else.
    driver.execute(Operation::WRITE, WHOLE(), 77).result.expect("a long write");
    assert!(driver.execute(Operation::Read, WHOLE(), 0).found.iter().all(|byte| *byte == 77));
}

#[test]
fn a_server_that_stays_away_is_a_lost_disk() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let settings = RemoteSettings { reconnect: Duration::from_millis(700), ..settings() };
    let mut driver = Driver::open(&server.address(), settings);
    driver.execute(Operation::WRITE, Extent::new(0, 1), 1).result.expect("a write");
    server.cut(&mut Rng::new(1, 1));
    let lost = driver.execute(Operation::Read, Extent::new(0, 1), 0);
    assert_eq!(lost.result, Err(IoError::Lost));
    server.switch_on();
    let still = driver.execute(Operation::WRITE, Extent::new(0, 1), 1);
    assert_eq!(still.result, Err(IoError::Lost), "it is lost for ever");
}

/// Requests that a server does not answer, until the disk is given up.
struct GivesUp {
    disk: Rc<RefCell<RemoteDisk>>,
    asked: u64,
    results: Vec<Result<(), IoError>>,
}

impl Host for GivesUp {
    fn next(&mut self) -> Option<(Operation, Extent, u8)> {
        self.asked += 1;
        Some(match self.asked {
            1 => (Operation::Read, Extent::new(0, 1), 0),
            2 => (Operation::WRITE, Extent::new(3, 1), 9),
            _ => {
                thread::sleep(Duration::from_millis(50));
                self.disk.borrow_mut().abandon();
                (Operation::Flush, Extent::EMPTY, 0)
            }
        })
    }

    fn ended(&mut self, _number: u64, result: Result<(), IoError>, _found: Vec<u8>) {
        self.results.push(result);
    }

    fn is_over(&self) -> bool {
        self.asked == 3
    }
}

#[test]
fn a_hanging_server_lets_go_of_a_disk_that_was_given_up() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let mut driver = Driver::open(&server.address(), settings());
    server.medium().hangs = true;
    let disk = Rc::clone(&driver.disk);
    let mut host = GivesUp { disk, asked: 0, results: Vec::new() };
    driver.run(&mut host);
    assert_eq!(host.results, [Err(IoError::Lost); 3]);
    server.medium().hangs = false;
}

#[test]
fn a_flush_that_fails_fails_what_is_written_later() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let mut driver = Driver::open(&server.address(), settings());
    driver.execute(Operation::WRITE, Extent::new(0, 1), 1).result.expect("a write");
    server.medium().cannot_flush = true;
    let failed = Err(IoError::Medium);
    assert_eq!(driver.execute(Operation::Flush, Extent::EMPTY, 0).result, failed);
    server.medium().cannot_flush = false;
    assert_eq!(driver.execute(Operation::Flush, Extent::EMPTY, 0).result, failed);
    assert_eq!(driver.execute(Operation::WRITE, Extent::new(0, 1), 1).result, failed);
    assert_eq!(driver.execute(Operation::Read, Extent::new(0, 1), 0).found, [1]);
}

/// What waits for room in memory does not wait for a flush that never ends well.
#[test]
fn a_forced_flush_that_fails_fails_what_waits_for_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    server.medium().cannot_flush = true;
    let settings = RemoteSettings { resend_bytes_max: 4 * 4096, ..settings() };
    let mut driver = Driver::open(&server.address(), settings);
    let results: Vec<_> =
        (0..20).map(|at| driver.execute(Operation::WRITE, Extent::new(at, 3), 1).result).collect();
    assert!(results.contains(&Err(IoError::Medium)), "{results:?}");
    assert_eq!(driver.execute(Operation::Flush, Extent::EMPTY, 0).result, Err(IoError::Medium));
}

fn labelled(server: &RemoteServer, mark: u32) {
    let label = Label::new(Uuid([7; 16]), 1, mark);
    let storage = RemoteStorage::open(&server.address()).expect("a connection");
    for copy in LabelCopy::ALL {
        let block = label.seal(copy, BLOCKS).expect("a label");
        storage.write_all_at(&block, copy.address(BLOCKS) * 4096).expect("a label");
    }
    storage.sync_data().expect("a flush");
}

fn exchange(planted: Option<RemoteBug>) -> Result<(), IoError> {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), (BLOCKS + LABEL_BLOCKS) as usize);
    labelled(&server, 5);
    let mut driver = Driver::with(&server.address(), settings(), planted);
    driver.execute(Operation::WRITE, Extent::new(0, 1), 1).result.expect("a write");
    // The label of the disk moves, as at a start, and is not flushed: both the old and the new one are right.
    let new = Label::new(Uuid([7; 16]), 1, 6).seal(LabelCopy::First, BLOCKS).expect("a label");
    let label_at = Extent::new(BLOCKS, 1);
    driver.execute(Operation::WRITE, label_at, new[0]).result.expect("a label");
    server.cut(&mut Rng::new(3, 1));
    server.switch_on();
    driver.execute(Operation::Read, Extent::new(0, 1), 0).result.expect("the same disk");
    driver.execute(Operation::Flush, Extent::EMPTY, 0).result.expect("a flush");
    // Another disk comes in its place.
    let mut medium = server.medium();
    server.end_connections(&mut medium);
    drop(medium);
    server.cut(&mut Rng::new(3, 1));
    server.medium().now[BLOCKS as usize * BLOCK..].fill(9);
    server.switch_on();
    driver.execute(Operation::Read, Extent::new(0, 1), 0).result
}

#[test]
fn another_disk_behind_the_address_is_noticed() {
    assert_eq!(exchange(None), Err(IoError::Lost));
    assert_eq!(exchange(Some(RemoteBug::LabelNotCompared)), Ok(()));
}

/// A power cut while the label is written leaves half of it: the other copy tells that it is the same disk.
#[test]
fn a_torn_label_is_of_the_same_disk() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), (BLOCKS + LABEL_BLOCKS) as usize);
    labelled(&server, 5);
    let mut driver = Driver::open(&server.address(), settings());
    driver.execute(Operation::WRITE, Extent::new(BLOCKS, 1), 77).result.expect("a label");
    server.cut(&mut Rng::new(3, 1));
    server.medium().now[BLOCKS as usize * BLOCK..][..512].fill(77);
    server.switch_on();
    driver.execute(Operation::Read, Extent::new(0, 1), 0).result.expect("the same disk");
    // What was written of the label is sent again.
    assert_eq!(driver.execute(Operation::Read, Extent::new(BLOCKS, 1), 0).found, [77]);
}

/// What a server says in the place of the greeting, after the greeting, and after the handshake.
fn told_by(script: Vec<Vec<u8>>) -> Result<Driver, String> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let patience = Some(Duration::from_millis(50));
        stream.set_read_timeout(patience).expect("a socket");
        let mut rest = [0; 1 << 16];
        for said in script {
            if stream.write_all(&said).is_err() {
                return;
            }
            let _ = stream.read(&mut rest);
        }
    });
    let address: RemoteAddress = format!("nbd://127.0.0.1:{port}/disk").parse().expect("a URI");
    let (clock, waker) = WallClock::alone().expect("an epoll instance");
    let settings = RemoteSettings { reconnect: Duration::ZERO, ..settings() };
    let opened = RemoteDisk::open(&address, plain(BLOCKS), false, false, settings, waker);
    opened.map_err(|error| error.to_string()).map(|disk| Driver::over(disk, clock))
}

fn greeting(flags: u16) -> Vec<u8> {
    [b"NBDMAGICIHAVEOPT".as_slice(), &flags.to_be_bytes()].concat()
}

fn option_reply(kind: u32, data: &[u8]) -> Vec<u8> {
    let magic = 0x0003_e889_0455_65a9_u64.to_be_bytes();
    let length = (data.len() as u32).to_be_bytes();
    [&magic[..], &7u32.to_be_bytes(), &kind.to_be_bytes(), &length, data].concat()
}

fn export(bytes: u64, flags: u16) -> Vec<u8> {
    let info = [&[0, 0][..], &bytes.to_be_bytes(), &flags.to_be_bytes()].concat();
    [option_reply(3, &info), option_reply(1, &[])].concat()
}

const WRITABLE: u16 = 0b1101;

#[test]
fn silly_servers_are_one_clear_error() {
    let bytes = BLOCKS * 4096;
    let error = |kind: u32| option_reply(1 << 31 | kind, b"no");
    let sizes = |least: u32, most: u32| {
        let info = [&[0, 3][..], &least.to_be_bytes(), &[0; 4], &most.to_be_bytes()].concat();
        [option_reply(3, &info), export(bytes, WRITABLE)].concat()
    };
    let endless = vec![option_reply(3, &[0, 9]); 2000].concat();
    let long = option_reply(3, &[0; 16])[..16].iter().copied().chain([0xff; 4]).collect::<Vec<_>>();
    for (said, words) in [
        (b"SSH-2.0-OpenSSH_9.2p1 Debian".to_vec(), "no NBD server"),
        (greeting(0), "no NBD server"),
        (export(bytes - 4096, WRITABLE), "the disk needs"),
        (export(bytes, 0b1001), "no flush"),
        (export(bytes, 0b1111), "can only be read"),
        (error(5), "wants TLS"),
        (error(9), "refuses the export `disk`"),
        (option_reply(1, &[]), "how large"),
        (option_reply(77, &[]), "means nothing"),
        (option_reply(3, &[0]), "without its kind"),
        (option_reply(3, &[0, 0, 1]), "of 3 bytes"),
        (sizes(8192, 1 << 20), "8192 bytes at least"),
        (sizes(0, 1 << 20), "0 bytes at least"),
        (sizes(512, 512), "512 bytes at most"),
        (endless, "to the end"),
        (long, "announces"),
        (vec![0; 20], "what was not asked"),
    ] {
        let is_first = words == "no NBD server";
        let script = if is_first { vec![said] } else { vec![[greeting(3), said].concat()] };
        let error = told_by(script).err().expect(words);
        assert!(error.contains(words), "{error}; expected: {words}");
        assert!(
            error.starts_with("cannot open nbd://127.0.0.1:")
                || words.contains("need")
                || words.contains("only"),
            "{error}"
        );
    }
}

/// Who reads one request at a time never takes the answer to an earlier one.
#[test]
fn storage_that_was_not_answered_fails_from_then_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let storage = RemoteStorage::open(&server.address()).expect("a connection");
    let mut block = [0; BLOCK];
    storage.read_exact_at(&mut block, 0).expect("a block");
    let mut medium = server.medium();
    server.end_connections(&mut medium);
    drop(medium);
    storage.read_exact_at(&mut block, 0).expect_err("no connection");
    let error = storage.read_exact_at(&mut block, 0).expect_err("no connection");
    assert_eq!(error.to_string(), "an earlier request was not answered");
}

#[test]
fn a_server_that_lacks_the_export_names_what_it_has() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = RemoteServer::start(dir.path(), BLOCKS as usize);
    let address = RemoteAddress { export: "other".into(), ..server.address() };
    let error = RemoteStorage::open(&address).expect_err("no such export");
    assert_eq!(error.to_string(), "the server has no export `other`; accepted: `disk`");
}

/// A server that says anything at all is a lost disk at worst: nothing panics, and nothing is waited for that
/// does not come.
#[test]
fn a_thousand_answers_of_noise_are_survived() {
    let mut refused = 0;
    for seed in 0..1_000u64 {
        let mut rng = Rng::new(seed, 4);
        let mut noise =
            |most: u64| -> Vec<u8> { (0..rng.below(most)).map(|_| rng.below(256) as u8).collect() };
        let (first, second) = (noise(200), noise(200));
        let mut honest = [greeting(3), export(BLOCKS * 4096, WRITABLE)].concat();
        let script = match seed % 4 {
            0 => vec![first],
            1 => vec![[greeting(3), first].concat()],
            2 => {
                // One byte of an honest answer is another one.
                let at = Rng::new(seed, 5).below(honest.len() as u64) as usize;
                honest[at] ^= 1 << (seed / 4 % 8);
                vec![honest, second]
            }
            _ => {
                let reply = [&0x6744_6698u32.to_be_bytes()[..], &second].concat();
                vec![honest, reply]
            }
        };
        match told_by(script) {
            Err(_) => refused += 1,
            Ok(mut driver) => {
                let _ = driver.execute(Operation::Read, Extent::new(1, 2), 0);
                let _ = driver.execute(Operation::WRITE, Extent::new(5, 1), 3);
            }
        }
    }
    assert!((400..900).contains(&refused), "{refused} of 1000 were refused at once");
}
