//! Clients that keep others waiting, with a clock that the test sets forward.

use super::*;
use crate::clock::WallClock;
use crate::listener::{Listen, Listener};
use crate::nbd::transmission::{Command, REPLY_BYTES};
use imbrex_core::buffer::ContentKind;
use imbrex_core::engine::Clock;
use imbrex_core::units::BLOCK_BYTES;
use requests::ClientRequest;
use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tempfile::TempDir;

const MIB: u32 = 1 << 20;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
/// Far longer than a child needs to become its command.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

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
        let time = WallTime::standing();
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
                    let completion = Completion { tag: arrival.tag, result: Ok(()) };
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
        self.pass_ms(s * 1_000);
    }

    fn pass_ms(&mut self, ms: u64) {
        self.connections.time = self.connections.time.ahead(Duration::from_ms(ms));
        self.settle();
    }

    /// Lets time pass in which the server does not look at its clients.
    fn be_busy_ms(&mut self, ms: u64) {
        let time = self.connections.time.ahead(Duration::from_ms(ms));
        self.connections.time = time;
        self.clock = WallClock::new(time, Rc::clone(&self.connections.poller));
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

    /// A client that announces a payload of 32 MiB and sends so much of it.
    fn stalling(&mut self, sent: u32) -> Client {
        let mut client = self.ready();
        client.request(WRITE, 32 * MIB);
        self.send(&mut client, sent);
        client
    }

    /// Three clients that have sent the half of 32 MiB each, for which they hold 93 MiB of the 96
    /// that all share.
    fn half_way(&mut self) -> Vec<Client> {
        (0..3).map(|_| self.stalling(16 * MIB)).collect()
    }

    /// Three clients that hold 93 MiB of what all share, because they do not read.
    fn silent(&mut self) -> Vec<Client> {
        let mut silent: Vec<Client> = (0..3).map(|_| self.ready()).collect();
        for client in &mut silent {
            client.request(READ, 32 * MIB);
        }
        self.settle();
        silent
    }

    /// Has a client send so many bytes of a payload.
    fn send(&mut self, client: &mut Client, bytes: u32) {
        let chunk = vec![7; 64 << 10];
        let mut left = bytes as usize;
        while left > 0 {
            match client.0.write(&chunk[..left.min(chunk.len())]) {
                Ok(count) => left -= count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            self.settle();
        }
    }
}

/// How many are closed. Waits for `expected`, because a child that another test starts has the sockets of
/// this one open too until it is the command.
fn closed(clients: &mut [Client], expected: usize) -> usize {
    let patience = std::time::Instant::now() + PATIENCE;
    loop {
        let closed = clients.iter_mut().map(Client::is_closed).filter(|closed| *closed).count();
        if closed >= expected || patience < std::time::Instant::now() {
            return closed;
        }
        std::thread::yield_now();
    }
}

struct Client(UnixStream);

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("room for a few bytes");
    }

    fn request(&mut self, command: u16, length: u32) {
        self.request_at(command, 0, length);
    }

    fn request_at(&mut self, command: u16, offset: u32, length: u32) {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(u64::from(offset).to_be_bytes());
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
fn all_payloads_that_stall_while_another_request_waits_end_their_connections() {
    let mut world = World::new();
    let mut stalling = world.half_way();
    let mut other = world.ready();
    other.request_at(READ, 64 * MIB, 8 * MIB);
    world.settle();
    world.pass_s(1);
    assert_eq!(closed(&mut stalling, 3), 3);
    assert!(other.read() > 0, "there is room now");
    assert_eq!(
        world.lines.borrow()[0],
        "closed the connection of a client: it sent less than 256 KiB of a payload in 1 s while \
         another request waited for memory, of which it held 32 MiB"
    );
}

#[test]
fn a_payload_may_stall_while_nobody_waits() {
    let mut world = World::new();
    let mut stalling = world.half_way();
    world.pass_s(86_400);
    assert_eq!(closed(&mut stalling, 0), 0);
    // What is reserved for each is there at once, so nobody waits for it.
    let mut small = world.ready();
    small.request_at(READ, 64 * MIB, MIB);
    world.settle();
    assert!(small.read() > 0);
    assert_eq!(closed(&mut stalling, 0), 0);
    assert!(world.lines.borrow().is_empty());
}

#[test]
fn a_payload_that_moves_fast_enough_keeps_its_memory_while_others_wait() {
    let mut world = World::new();
    let mut moving = world.half_way();
    let mut trickling = moving.split_off(2);
    for client in &mut moving {
        world.send(client, 256 << 10);
    }
    let mut other = world.ready();
    other.request_at(READ, 64 * MIB, 8 * MIB);
    world.settle();
    assert_eq!(other.read(), 0, "it waits for memory");
    for _ in 0..4 {
        world.pass_ms(600);
        for client in &mut moving {
            world.send(client, 256 << 10);
        }
        // It may have been closed already.
        let _ = trickling[0].0.write(&[7]);
        world.settle();
    }
    assert_eq!(closed(&mut trickling, 1), 1);
    assert_eq!(world.lines.borrow().len(), 1);
    assert!(other.read() > 0);
}

/// What a server that was busy has not read may have been here for long.
#[test]
fn time_in_which_the_server_was_busy_does_not_count() {
    let mut world = World::new();
    let mut silent = world.silent();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    world.be_busy_ms(10_000);
    assert_eq!(world.lines.borrow().len(), 0);
    assert_eq!(other.read(), 0, "it waits for memory");
    world.pass_s(2);
    assert_eq!(world.lines.borrow().len(), 3);
    assert!(other.read() > 0);
    assert!(silent.iter_mut().all(|client| client.read() < 32 << 20));
}

/// A flush needs no memory, whatever its connection holds and others wait for.
#[test]
fn a_request_without_data_does_not_wait_for_memory() {
    let mut world = World::new();
    let mut silent = world.silent();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    assert_eq!(other.read(), 0, "it waits for memory");
    assert_eq!(world.arrived, 3);
    silent[0].request(FLUSH, 0);
    world.settle();
    assert_eq!(world.arrived, 4);
}

/// A payload that holds no more than its reserve keeps nobody waiting: one of up to 1 MiB, one that
/// was only announced, and one that trickles.
#[test]
fn payloads_that_have_not_arrived_hold_nothing_that_others_wait_for() {
    let mut world = World::new();
    let mut stalling: Vec<Client> = (0..40).map(|_| world.stalling(0)).collect();
    stalling[0] = world.ready();
    stalling[0].request(WRITE, MIB);
    for client in &mut stalling[..20] {
        client.send(&[7]);
    }
    let _silent = world.silent();
    let mut other = world.ready();
    other.request_at(READ, 64 * MIB, 8 * MIB);
    world.settle();
    world.pass_s(2);
    assert!(other.read() > 0);
    assert_eq!(closed(&mut stalling, 0), 0);
}

#[test]
fn a_write_for_which_there_is_no_memory_is_carried_out_in_parts() {
    let mut world = World::new();
    let _silent = world.silent();
    let mut other = world.ready();
    let before = world.arrived;
    other.request(WRITE, 8 * MIB);
    world.send(&mut other, 8 * MIB);
    assert_eq!(other.read(), REPLY_BYTES, "one answer");
    let parts = world.arrived - before;
    assert!((2..=16).contains(&parts), "{parts} parts");
    assert!(world.lines.borrow().is_empty(), "nobody had to go");
    assert_eq!(world.connections.requests.in_flight(), 0);
    assert_eq!(world.buffers.allocated(), 3, "those of the silent clients");
}

/// Nobody waits for the rest of it, whatever blocks it is for.
#[test]
fn a_write_in_parts_that_stalls_keeps_nobody_from_its_blocks() {
    let mut world = World::new();
    let _silent = world.silent();
    let mut writing = world.ready();
    writing.request(WRITE, 8 * MIB);
    world.send(&mut writing, 5 * MIB);
    let mut other = world.ready();
    other.use_once(&mut world);
    world.pass_s(10);
    assert!(!writing.is_closed());
    drop(writing);
    world.settle();
    assert_eq!(world.connections.requests.in_flight(), 0);
    assert_eq!(world.buffers.allocated(), 3, "those of the silent clients");
}

#[test]
fn answers_that_nobody_takes_end_their_connections_while_another_request_waits() {
    let mut world = World::new();
    let _silent = world.silent();
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    world.pass_s(2);
    let told = "it took less than 256 KiB of its answers in 2 s while another request waited";
    assert!(world.lines.borrow()[0].contains(told));
    assert_eq!(world.lines.borrow().len(), 3);
    assert!(other.read() > 0);
}

/// Who is in line before another has its turn first, and two seconds to take its answers: nobody can know
/// that it will not.
#[test]
fn clients_in_line_that_take_no_answers_go_as_many_at_a_time_as_the_memory_holds() {
    let mut world = World::new();
    let rounds = CONNECTIONS_MAX / 3;
    let _silent: Vec<Client> = (0..rounds).flat_map(|_| world.silent()).collect();
    assert_eq!(world.arrived, 3, "the others wait for memory");
    let mut other = world.ready();
    other.request(READ, 8 * MIB);
    world.settle();
    for round in 0..rounds {
        assert_eq!(other.read(), 0, "it waits for memory");
        assert_eq!(world.connections.live, CONNECTIONS_MAX - 3 * round);
        world.pass_ms(1_900);
        assert_eq!(world.connections.live, CONNECTIONS_MAX - 3 * round);
        world.pass_ms(100);
    }
    assert_eq!(world.connections.live, 1);
    assert!(other.read() > 0);
}

/// As whole data and a place in it, whatever the offset, and no block more.
#[test]
fn a_payload_goes_on_in_the_blocks_that_it_touches() {
    let block = BLOCK_BYTES as usize;
    let mut buffers = Buffers::new(ContentKind::Bytes);
    let data = buffers.allocate(4);
    for (offset, length) in [(0, 4 * block), (1, 3 * block), (4095, 3 * block), (513, 100)] {
        let durability = imbrex_core::operation::Durability::Cached;
        let command = Command::Write { durability };
        let (offset_bytes, length_bytes) = (7 * BLOCK_BYTES + offset as u64, length as u32);
        let request = ClientRequest {
            connection: ConnectionId::of_token(0),
            cookie: 0,
            command,
            record: RequestRecord {
                arrived: Instant::ZERO,
                operation: requests::operation_of(command),
                offset_bytes,
                length_bytes,
            },
            extent: requests::extent_of(command, offset_bytes, length_bytes),
            data,
            part_of: None,
        };
        for filled in (0..=length).step_by(7).chain([length]) {
            for most in [0, 1, 4095, 4096, 4097, usize::MAX] {
                let (part, free) = request.free_blocks(filled, most);
                let at = part.first_block() as usize * block;
                let end = length.min(filled.saturating_add(most));
                let found = (at + free.start, at + free.end);
                assert_eq!(found, (offset + filled, offset + end));
                let blocks = (offset + end).div_ceil(block) - (offset + filled) / block;
                assert_eq!(part.blocks as usize, blocks, "{filled} of {length} at {offset}");
                assert!(buffers.bytes_mut(part).expect("bytes").len() >= free.end);
            }
        }
    }
}

#[test]
fn a_connection_without_a_request_yields_to_a_newcomer_after_a_minute() {
    let mut world = World::new();
    let mut clients: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| world.ready()).collect();
    clients[0].use_once(&mut world);
    world.pass_s(59);
    assert_eq!(closed(&mut [world.connect()], 1), 1, "none is old enough");
    world.pass_s(2);
    let mut newcomer = world.ready();
    assert!(!clients[0].is_closed(), "it has sent a request");
    assert_eq!(closed(&mut clients[1..2], 1), 1, "the oldest that has not");
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
    assert_eq!(closed(&mut [world.connect()], 1), 1);
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
    assert_eq!(closed(&mut clients[1..2], 1), 1);
}
