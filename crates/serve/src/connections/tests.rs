//! Clients that keep others waiting, with a clock that the test sets forward.

use super::*;
use crate::clock::WallClock;
use crate::listener::{Listen, Listener};
use crate::nbd::transmission::REPLY_BYTES;
use imbrex_core::buffer::ContentKind;
use imbrex_core::engine::Clock;
use imbrex_core::units::BLOCK_BYTES;
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

const MIB: u32 = 1 << 20;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// The connections of a server whose device answers at once.
struct World {
    connections: Connections,
    clock: WallClock,
    buffers: Buffers,
    lines: Rc<RefCell<Vec<String>>>,
    /// Requests that reached the device.
    arrived: usize,
    socket: PathBuf,
    _listener: Listener,
    _dir: TempDir,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s");
        let poller = Rc::new(Poller::new().expect("epoll"));
        let mut listener = Listener::bind(&Listen::Unix(socket.clone())).expect("a free path");
        poller.add(listener.socket(), LISTENER).expect("a watch");
        let time = WallTime::start();
        let export = Export {
            name: "disk".into(),
            description: String::new(),
            offset: 0,
            bytes: 256 * u64::from(MIB),
            is_read_only: false,
        };
        let mut connections = Connections::new(
            Rc::clone(&poller),
            time,
            listener.take_socket(),
            [export].into(),
            Arc::default(),
            None,
            Control::new(Rc::clone(&poller), None, Default::default()),
        );
        let lines = Rc::new(RefCell::new(Vec::new()));
        connections.log = Log::to({
            let lines = Rc::clone(&lines);
            Box::new(move |line| lines.borrow_mut().push(line.to_string()))
        });
        World {
            connections,
            clock: WallClock::new(time, poller),
            buffers: Buffers::new(ContentKind::Bytes),
            lines,
            arrived: 0,
            socket,
            _listener: listener,
            _dir: dir,
        }
    }

    /// What the loop of a server does until nothing is left to do.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.clock.wait(Some(Instant::ZERO));
            loop {
                let now = self.connections.time.now();
                while let Some(arrival) = self.connections.poll(now, &mut self.buffers) {
                    self.arrived += 1;
                    let completion = Completion {
                        tag: arrival.tag,
                        result: Ok(()),
                    };
                    self.connections.reply(now, completion, &mut self.buffers);
                }
                if self.connections.unsent.is_empty() {
                    break;
                }
            }
        }
        let due = self.connections.next_arrival();
        let now = self.connections.time.now();
        assert!(due.is_none_or(|due| due > now), "the loop would spin");
    }

    /// Lets time pass.
    fn pass_s(&mut self, s: u64) {
        let by = Duration::from_ms(s * 1_000);
        self.connections.time = self.connections.time.ahead(by);
        self.settle();
    }

    fn connect(&mut self) -> Client {
        let stream = UnixStream::connect(&self.socket).expect("a listening socket");
        stream.set_nonblocking(true).expect("a mode");
        self.settle();
        Client(stream)
    }

    /// A client that has chosen the export and sent no request.
    fn ready(&mut self) -> Client {
        let mut client = self.connect();
        client.send(&3u32.to_be_bytes());
        client.send(b"IHAVEOPT\0\0\0\x01\0\0\0\0");
        self.settle();
        assert_eq!(client.read(), 18 + 10, "a greeting and the export");
        client
    }

    /// A client that announces a payload of 32 MiB and sends nothing of it.
    fn stalling(&mut self) -> Client {
        let mut client = self.ready();
        client.request(WRITE, 32 * MIB);
        self.settle();
        client
    }
}

struct Client(UnixStream);

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("room for a few bytes");
    }

    fn request(&mut self, command: u16, length: u32) {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command.to_be_bytes());
        bytes.extend([0; 8 + 8]);
        bytes.extend(length.to_be_bytes());
        self.send(&bytes);
    }

    /// Bytes that are here.
    fn read(&mut self) -> usize {
        let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
        while let Ok(count @ 1..) = self.0.read(&mut buffer) {
            bytes += count;
        }
        bytes
    }

    fn is_closed(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Sends a read of one block and takes the answer.
    fn use_once(&mut self, world: &mut World) {
        self.request(READ, BLOCK_BYTES as u32);
        world.settle();
        assert_eq!(self.read(), REPLY_BYTES + BLOCK_BYTES as usize);
    }
}

#[test]
fn a_payload_that_stalls_while_another_request_waits_ends_its_connection() {
    let mut world = World::new();
    let mut stalling: Vec<Client> = (0..3).map(|_| world.stalling()).collect();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    world.pass_s(9);
    assert!(!stalling.iter_mut().any(Client::is_closed));
    assert_eq!(other.read(), 0, "it waits for memory");
    stalling[0].send(&[7]);
    world.settle();
    world.pass_s(2);
    assert!(!stalling[0].is_closed(), "it has sent a byte");
    assert!(stalling[1].is_closed());
    assert!(!stalling[2].is_closed(), "one was enough");
    assert!(other.read() > 0, "there is room now");
    assert_eq!(
        *world.lines.borrow(),
        [
            "closed the connection of a client: it sent nothing of a payload for 10 s while another \
             request waited for memory, of which it held 32 MiB"
        ]
    );
}

#[test]
fn a_payload_may_stall_while_nobody_waits() {
    let mut world = World::new();
    let mut stalling: Vec<Client> = (0..3).map(|_| world.stalling()).collect();
    world.pass_s(86_400);
    assert!(!stalling.iter_mut().any(Client::is_closed));
    // What is reserved for each is there at once, so nobody waits for it.
    let mut small = world.ready();
    small.request(READ, MIB);
    world.settle();
    assert!(small.read() > 0);
    assert!(!stalling.iter_mut().any(Client::is_closed));
    assert!(world.lines.borrow().is_empty());
}

/// A flush needs no memory, whatever its connection holds and others wait for.
#[test]
fn a_request_without_data_does_not_wait_for_memory() {
    let mut world = World::new();
    let mut reading = world.ready();
    reading.request(READ, 32 * MIB);
    let _stalling: Vec<Client> = (0..2).map(|_| world.stalling()).collect();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    assert_eq!(other.read(), 0, "it waits for memory");
    assert_eq!(world.arrived, 1);
    reading.request(FLUSH, 0);
    world.settle();
    assert_eq!(world.arrived, 2);
}

/// A payload that holds no more than its reserve keeps nobody waiting.
#[test]
fn a_small_payload_may_stall_although_others_wait() {
    let mut world = World::new();
    let mut small = world.ready();
    small.request(WRITE, MIB);
    let _stalling: Vec<Client> = (0..3).map(|_| world.stalling()).collect();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    world.pass_s(11);
    assert!(!small.is_closed());
    assert!(other.read() > 0);
}

#[test]
fn a_payload_that_trickles_while_another_request_waits_ends_its_connection() {
    let mut world = World::new();
    let mut trickling: Vec<Client> = (0..3).map(|_| world.stalling()).collect();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    for _ in 0..11 {
        world.pass_s(5);
        for client in &mut trickling {
            assert!(!client.is_closed());
            client.send(&[7]);
        }
        world.settle();
        assert_eq!(other.read(), 0, "it waits for memory");
    }
    world.pass_s(6);
    assert_eq!(
        trickling
            .iter_mut()
            .map(Client::is_closed)
            .filter(|c| *c)
            .count(),
        1
    );
    assert!(other.read() > 0, "there is room now");
    let told = "it did not send the whole of a payload in 60 s while another request waited";
    assert!(world.lines.borrow()[0].contains(told));
}

#[test]
fn answers_that_nobody_takes_end_their_connection_while_another_request_waits() {
    let mut world = World::new();
    let mut silent: Vec<Client> = (0..3).map(|_| world.ready()).collect();
    for client in &mut silent {
        client.request(READ, 32 * MIB);
    }
    let mut other = world.ready();
    other.request(WRITE, 8 * MIB);
    world.settle();
    world.pass_s(9);
    assert!(world.lines.borrow().is_empty());
    world.pass_s(2);
    let told = "it took nothing of its answers for 10 s while another request waited";
    assert!(world.lines.borrow()[0].contains(told));
    assert_eq!(world.lines.borrow().len(), 1);
}

#[test]
fn a_connection_without_a_request_yields_to_a_newcomer_after_a_minute() {
    let mut world = World::new();
    let mut clients: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| world.ready()).collect();
    clients[0].use_once(&mut world);
    world.pass_s(59);
    assert!(world.connect().is_closed(), "none is old enough");
    world.pass_s(2);
    let mut newcomer = world.ready();
    assert!(!clients[0].is_closed(), "it has sent a request");
    assert!(clients[1].is_closed(), "the oldest that has not");
    assert!(!clients[2].is_closed());
    newcomer.use_once(&mut world);
    assert_eq!(
        *world.lines.borrow(),
        [
            "refused a client: there are 64 connections, and each has sent a request or is younger \
             than 60 s",
            "closed the connection of a client: it sent no request for 61 s, and there were 64 \
             connections when another client came",
        ]
    );
}

#[test]
fn connections_that_have_sent_a_request_never_yield() {
    let mut world = World::new();
    let mut clients: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| world.ready()).collect();
    for client in &mut clients {
        client.use_once(&mut world);
    }
    world.pass_s(7 * 86_400);
    assert!(world.connect().is_closed());
    for client in &mut clients {
        client.use_once(&mut world);
    }
    assert_eq!(world.lines.borrow().len(), 1);
}

/// The server is told of both at once, and has read neither.
#[test]
fn a_first_request_that_comes_with_a_newcomer_is_in_time() {
    let mut world = World::new();
    let mut clients: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| world.ready()).collect();
    world.pass_s(61);
    clients[0].request(READ, BLOCK_BYTES as u32);
    let _newcomer = world.connect();
    assert_eq!(clients[0].read(), REPLY_BYTES + BLOCK_BYTES as usize);
    assert!(clients[1].is_closed());
}
