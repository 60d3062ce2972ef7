//! The clients of a server as one source of requests.
//!
//! Nothing here blocks and nothing here waits: sockets that have something to say are told by the
//! clock's wait, each is read at most once per wait, and the answers of one round of the engine
//! leave together. Clients take turns, one request each. Every quantity a client can make grow
//! has a bound, named below.

mod connection;
mod requests;

use crate::clock::{Poller, WallTime};
use crate::nbd::handshake::{Export, Handshake, Next, greeting};
use crate::nbd::transmission::{Command, Errno, REQUEST_BYTES, RequestHeader, encode_reply};
use connection::{Connection, Payload, Phase, Reply, buffer_bytes};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::Frontend;
use imbrex_core::error::IoError;
use imbrex_core::operation::{Completion, Operation};
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use requests::{ClientRequest, RequestIndex, Requests, extent_of, operation_of};
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::net::SocketFlags;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clients connected at once; one more is disconnected at once.
pub const CONNECTIONS_MAX: usize = 64;
/// Requests of one client that are not yet answered; it is not read while it has as many.
pub const CONNECTION_REQUESTS_MAX: u32 = 256;
/// Requests of all clients that are not yet carried out.
pub const REQUESTS_MAX: u32 = 1024;
/// Bytes of buffers that the requests of all clients hold. More than the largest request needs,
/// which is 32 MiB and two part blocks, rounded up to a power of two.
pub const BYTES_IN_FLIGHT_MAX: u64 = 128 << 20;
/// Bytes of buffers that the requests of one client hold, unless it is a single larger request.
pub const CONNECTION_BYTES_MAX: u64 = 64 << 20;
/// How long a client may take for its handshake.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// How long a client may take no byte of its answers while another waits for the memory they hold.
pub const STALLED_MS_MAX: u64 = 10_000;
/// How long a server that is stopping waits for clients to take their answers.
pub const DRAIN_MS_MAX: u64 = 5_000;

pub(crate) const LISTENER: u64 = u64::MAX;
pub(crate) const WAKER: u64 = u64::MAX - 1;
pub(crate) const SIGNALS: u64 = u64::MAX - 2;

/// A request as its client stated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestRecord {
    /// When its last byte was received, since the start of the server.
    pub arrived: Instant,
    /// What is to be done.
    pub operation: Operation,
    /// First byte of the device; zero for a flush.
    pub offset_bytes: u64,
    /// Bytes of the device; zero for a flush.
    pub length_bytes: u32,
}

/// What an observer is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestEvent {
    /// A request was received. Refused ones are not told.
    Arrived(RequestRecord),
    /// A request was carried out, and its reply is about to be sent.
    Answered {
        /// As told when it arrived.
        record: RequestRecord,
        /// From its arrival until now.
        latency: Duration,
        /// What happened.
        result: Result<(), IoError>,
    },
}

/// Is told of every request; called in the loop of the server, so it must be quick.
pub type Observer = Box<dyn FnMut(RequestEvent)>;

/// Names a connection; a later one in the same place has another generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionId {
    index: u32,
    generation: u32,
}

impl ConnectionId {
    fn token(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    fn of_token(token: u64) -> ConnectionId {
        ConnectionId {
            index: token as u32,
            generation: (token >> 32) as u32,
        }
    }
}

#[derive(Default)]
struct Place {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// What one step on a connection came to.
enum Step {
    /// Something was done; there may be more to do.
    Again,
    /// A request was handed over: another client's turn.
    Arrived,
    /// More bytes are needed.
    Input,
    /// An answer must leave first.
    Blocked,
    /// The client is finished, or broke the protocol.
    Close,
}

/// The clients of a server.
pub(crate) struct Connections {
    poller: Rc<Poller>,
    time: WallTime,
    /// `None` once the server is stopping.
    listener: Option<OwnedFd>,
    /// Descriptors ran out; to be tried again when a connection closes.
    accept_later: bool,
    export: Export,
    stop: Arc<AtomicBool>,
    drain_until: Option<Instant>,
    places: Vec<Place>,
    live: usize,
    turn: u64,
    active: VecDeque<ConnectionId>,
    /// Have input that must wait for the next turn.
    postponed: Vec<ConnectionId>,
    unsent: Vec<ConnectionId>,
    /// Wait for room in the server, in the order of asking.
    waiting_for_room: VecDeque<ConnectionId>,
    requests: Requests,
    bytes_in_flight: u64,
    observer: Option<Observer>,
}

impl Connections {
    pub fn new(
        poller: Rc<Poller>,
        time: WallTime,
        listener: OwnedFd,
        export: Export,
        stop: Arc<AtomicBool>,
        observer: Option<Observer>,
    ) -> Connections {
        Connections {
            poller,
            time,
            listener: Some(listener),
            accept_later: false,
            export,
            stop,
            drain_until: None,
            places: Vec::new(),
            live: 0,
            turn: 0,
            active: VecDeque::new(),
            postponed: Vec::new(),
            unsent: Vec::new(),
            waiting_for_room: VecDeque::new(),
            requests: Requests::default(),
            bytes_in_flight: 0,
            observer,
        }
    }

    fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation != id.generation {
            return None;
        }
        place.connection.as_deref_mut()
    }

    /// Lets a connection take its next turn.
    fn activate(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id)
            && !connection.active
        {
            connection.active = true;
            self.active.push_back(id);
        }
    }

    fn note_unsent(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id)
            && !connection.unsent
            && connection.full_since.is_none()
        {
            connection.unsent = true;
            self.unsent.push(id);
        }
    }

    /// Looks at what has happened during the last wait.
    fn begin_turn(&mut self, now: Instant, buffers: &mut Buffers) {
        self.turn = self.poller.turn();
        for id in std::mem::take(&mut self.postponed) {
            self.activate(id);
        }
        let poller = Rc::clone(&self.poller);
        let mut accept = false;
        poller.take_events(|token, flags| match token {
            LISTENER => accept = true,
            WAKER | SIGNALS => {}
            token => self.handle_event(ConnectionId::of_token(token), flags),
        });
        if accept {
            self.accept(now);
        }
        if self.stop.load(Ordering::Relaxed) && self.drain_until.is_none() {
            self.begin_drain(now, buffers);
        }
        self.close_overdue(now, buffers);
    }

    /// Nothing more is accepted: no client, no request, no rest of a payload.
    fn begin_drain(&mut self, now: Instant, buffers: &mut Buffers) {
        self.listener = None;
        self.drain_until = Some(now + Duration::from_ms(DRAIN_MS_MAX));
        for index in 0..self.places.len() {
            let Some(connection) = self.places[index].connection.as_deref_mut() else {
                continue;
            };
            let payload = std::mem::replace(&mut connection.payload, Payload::None);
            if let Payload::Write { request, .. } = payload {
                connection.outstanding -= 1;
                self.forget(request, buffers);
            }
        }
    }

    /// Drops a request whose payload will not arrive.
    fn forget(&mut self, request: RequestIndex, buffers: &mut Buffers) {
        let (request, _) = self.requests.remove(request, buffers);
        self.bytes_in_flight -= buffer_bytes(request.data);
        buffers.release(request.data);
    }

    fn handle_event(&mut self, id: ConnectionId, flags: EventFlags) {
        let Some(connection) = self.get(id) else {
            return;
        };
        if flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP)
            && connection.full_since.take().is_some()
        {
            self.note_unsent(id);
        }
        let Some(connection) = self.get(id) else {
            return;
        };
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            connection.hangup = true;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
        {
            connection.readable = true;
            self.activate(id);
        }
    }

    fn accept(&mut self, now: Instant) {
        self.accept_later = false;
        while let Some(listener) = &self.listener {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match rustix::net::accept_with(listener, flags) {
                Ok(socket) => socket,
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => continue,
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => {
                    self.accept_later = true;
                    return;
                }
            };
            if self.live < CONNECTIONS_MAX {
                self.greet(socket, now);
            }
        }
    }

    fn greet(&mut self, socket: OwnedFd, now: Instant) {
        // Fails on a Unix socket, which has nothing to delay.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        // A smaller buffer than the kernel's default would only mean more calls.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, 1 << 20);
        let vacant = self.places.iter().position(|p| p.connection.is_none());
        let index = vacant.unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let id = ConnectionId {
            index: index as u32,
            generation: self.places[index].generation,
        };
        if self.poller.add(&socket, id.token()).is_err() {
            return;
        }
        let until = now + Duration::from_ms(HANDSHAKE_MS_MAX);
        let handshake = Handshake::new(self.export.clone());
        let mut connection = Connection::new(socket, handshake, until);
        connection.output.extend_from_slice(&greeting());
        self.places[index].connection = Some(Box::new(connection));
        self.live += 1;
        self.note_unsent(id);
        self.activate(id);
    }

    /// Closes clients that take too long for their handshake or for their answers, and, while
    /// stopping, all that have nothing left to wait for.
    fn close_overdue(&mut self, now: Instant, buffers: &mut Buffers) {
        let drain_until = self.drain_until;
        for index in 0..self.places.len() {
            let place = &self.places[index];
            let Some(connection) = &place.connection else {
                continue;
            };
            let idle = connection.outstanding == 0 || connection.in_handshake();
            let drained = drain_until.is_some_and(|until| until <= now || idle);
            if drained || self.deadline(connection).is_some_and(|until| until <= now) {
                let id = ConnectionId {
                    index: index as u32,
                    generation: place.generation,
                };
                self.close(id, buffers);
            }
        }
    }

    /// When a connection will have taken too long.
    fn deadline(&self, connection: &Connection) -> Option<Instant> {
        match connection.phase {
            Phase::Handshake { until, .. } => Some(until),
            _ if self.waiting_for_room.is_empty() => None,
            _ => {
                let since = connection.full_since?;
                Some(since + Duration::from_ms(STALLED_MS_MAX))
            }
        }
    }

    fn close(&mut self, id: ConnectionId, buffers: &mut Buffers) {
        let Some(connection) = self.get(id) else {
            return;
        };
        let before = connection.bytes;
        connection.release_replies(buffers);
        let released = before - connection.bytes;
        let payload = std::mem::replace(&mut connection.payload, Payload::None);
        self.bytes_in_flight -= released;
        if let Payload::Write { request, .. } = payload {
            self.forget(request, buffers);
        }
        let place = &mut self.places[id.index as usize];
        place.connection = None;
        place.generation = place.generation.wrapping_add(1);
        self.live -= 1;
        self.waiting_for_room.retain(|waiting| *waiting != id);
        self.admit_next();
        if self.accept_later {
            self.accept(self.time.now());
        }
    }

    /// Something was given up: whoever waits first may try again.
    fn admit_next(&mut self) {
        if let Some(first) = self.waiting_for_room.front() {
            self.activate(*first);
        }
    }

    /// Works on one connection until it has handed over a request or can do no more.
    fn advance(&mut self, id: ConnectionId, buffers: &mut Buffers) {
        if let Some(connection) = self.get(id) {
            connection.active = false;
        }
        loop {
            let stopping = self.drain_until.is_some();
            let Some(connection) = self.get(id) else {
                return;
            };
            let step = match connection.phase {
                _ if stopping => Step::Blocked,
                Phase::Handshake { .. } => self.step_handshake(id),
                Phase::Transmission => self.step_transmission(id, buffers),
                Phase::Ending if connection.outstanding == 0 && !connection.has_unsent() => {
                    Step::Close
                }
                Phase::Ending => Step::Blocked,
            };
            match step {
                Step::Again => {}
                Step::Arrived => return self.activate(id),
                Step::Input => {
                    if !self.receive(id, buffers) {
                        return;
                    }
                }
                Step::Blocked => return,
                Step::Close => return self.close(id, buffers),
            }
        }
    }

    /// Reads a socket, at most once in a turn. True when there is something new to look at.
    fn receive(&mut self, id: ConnectionId, buffers: &mut Buffers) -> bool {
        let (turn, received) = (self.turn, self.time.now());
        let Some(connection) = self.get(id) else {
            return false;
        };
        if !connection.readable {
            return false;
        }
        if connection.read_turn == turn {
            self.postponed.push(id);
            return false;
        }
        connection.read_turn = turn;
        connection.received = received;
        let result = match connection.payload {
            Payload::Write { request, filled } => {
                let request = *self.requests.get(request);
                let (from, to) = (request.data_offset() + filled, request.data_end());
                let data = buffers.bytes_mut(request.data).expect("buffers of bytes");
                // Borrowed anew: the look at the requests ended the borrow before.
                let Some(connection) = self.get(id) else {
                    return false;
                };
                let result = connection.receive(&mut data[from..to]);
                if let (Ok((direct, _)), Payload::Write { filled, .. }) =
                    (&result, &mut connection.payload)
                {
                    *filled += direct;
                }
                result
            }
            _ => connection.receive(&mut []),
        };
        match result {
            Ok((_, 0)) => {
                self.handle_end_of_input(id, buffers);
                false
            }
            Ok(_) => true,
            Err(rustix::io::Errno::AGAIN) => false,
            Err(rustix::io::Errno::INTR) => {
                self.postponed.push(id);
                false
            }
            Err(_) => {
                self.close(id, buffers);
                false
            }
        }
    }

    /// The client has closed its side. What it has asked for in full is answered; it may have
    /// kept the other side open to read it.
    fn handle_end_of_input(&mut self, id: ConnectionId, buffers: &mut Buffers) {
        let Some(connection) = self.get(id) else {
            return;
        };
        connection.readable = false;
        let whole = matches!(connection.phase, Phase::Transmission)
            && matches!(connection.payload, Payload::None)
            && connection.input().is_empty();
        if whole && connection.outstanding > 0 {
            connection.phase = Phase::Ending;
        } else {
            self.close(id, buffers);
        }
    }

    fn step_handshake(&mut self, id: ConnectionId) -> Step {
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        // A client that does not read its answers gets no further ones.
        if !connection.output.is_empty() {
            return Step::Blocked;
        }
        let mut output = std::mem::take(&mut connection.output);
        let Phase::Handshake {
            mut handshake,
            until,
        } = std::mem::replace(&mut connection.phase, Phase::Ending)
        else {
            return Step::Blocked;
        };
        let (consumed, next) = handshake.advance(connection.input(), &mut output);
        connection.consume(consumed);
        connection.output = output;
        let answered = !connection.output.is_empty();
        let step = match next {
            Next::Input => {
                connection.phase = Phase::Handshake { handshake, until };
                if consumed == 0 {
                    Step::Input
                } else {
                    Step::Again
                }
            }
            Next::Transmission => {
                connection.phase = Phase::Transmission;
                Step::Again
            }
            Next::Close => Step::Again,
        };
        if answered {
            self.note_unsent(id);
        }
        step
    }

    fn step_transmission(&mut self, id: ConnectionId, buffers: &mut Buffers) -> Step {
        let device_bytes = self.export.bytes;
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        match connection.payload {
            Payload::None => {}
            Payload::Write { request, filled } => {
                return self.step_payload(id, request, filled, buffers);
            }
            Payload::Refused { left } => {
                let passed = left.min(connection.input().len());
                connection.consume(passed);
                connection.payload = match left - passed {
                    0 => Payload::None,
                    left => Payload::Refused { left },
                };
                return if passed == 0 {
                    Step::Input
                } else {
                    Step::Again
                };
            }
        }
        if connection.input().len() < REQUEST_BYTES {
            return Step::Input;
        }
        let Some(header) = RequestHeader::decode(connection.input()) else {
            return Step::Close;
        };
        if connection.outstanding >= CONNECTION_REQUESTS_MAX {
            connection.blocked = true;
            return Step::Blocked;
        }
        match header.command(device_bytes) {
            Ok(Command::Disconnect) => {
                connection.phase = Phase::Ending;
                Step::Again
            }
            Ok(command) => self.begin_request(id, &header, command, buffers),
            Err(errno) => {
                if header.payload_bytes() > crate::nbd::PAYLOAD_BYTES_MAX {
                    return Step::Close;
                }
                connection.consume(REQUEST_BYTES);
                connection.outstanding += 1;
                if header.payload_bytes() > 0 {
                    let left = header.payload_bytes() as usize;
                    connection.payload = Payload::Refused { left };
                }
                self.push_reply(id, header.cookie, Some(errno));
                Step::Again
            }
        }
    }

    /// Lets a request in when there is room for it, in its connection and in the server.
    fn begin_request(
        &mut self,
        id: ConnectionId,
        header: &RequestHeader,
        command: Command,
        buffers: &mut Buffers,
    ) -> Step {
        let flush = command == Command::Flush;
        let (offset_bytes, length_bytes) = if flush {
            (0, 0)
        } else {
            (header.offset, header.length)
        };
        let extent = extent_of(command, offset_bytes, length_bytes);
        let has_data = matches!(command, Command::Read | Command::Write { .. });
        let blocks = if has_data { extent.blocks.0 } else { 0 };
        let bytes = if blocks == 0 {
            0
        } else {
            blocks.next_power_of_two() * BLOCK_BYTES
        };
        let in_order = self
            .waiting_for_room
            .front()
            .is_none_or(|first| *first == id);
        let room = self.requests.in_flight() < REQUESTS_MAX
            && (self.bytes_in_flight + bytes <= BYTES_IN_FLIGHT_MAX);
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        if connection.bytes > 0 && connection.bytes + bytes > CONNECTION_BYTES_MAX {
            connection.blocked = true;
            return Step::Blocked;
        }
        if !(in_order && room) {
            if !self.waiting_for_room.contains(&id) {
                self.waiting_for_room.push_back(id);
            }
            return Step::Blocked;
        }
        connection.consume(REQUEST_BYTES);
        connection.outstanding += 1;
        connection.bytes += bytes;
        let received = connection.received;
        self.bytes_in_flight += bytes;
        if self.waiting_for_room.front() == Some(&id) {
            self.waiting_for_room.pop_front();
            self.admit_next();
        }
        if extent.is_empty() && !flush {
            // No bytes, or a trim that covers no whole block: nothing to do.
            self.push_reply(id, header.cookie, None);
            return Step::Again;
        }
        let request = self.requests.insert(ClientRequest {
            connection: id,
            cookie: header.cookie,
            command,
            record: RequestRecord {
                arrived: received,
                operation: operation_of(command),
                offset_bytes,
                length_bytes,
            },
            extent,
            data: buffers.allocate(blocks),
        });
        if let Command::Write { .. } = command {
            return self.step_payload(id, request, 0, buffers);
        }
        self.hand_over(request, received, buffers)
    }

    /// Moves what has been received of a payload to its place.
    fn step_payload(
        &mut self,
        id: ConnectionId,
        request: RequestIndex,
        filled: usize,
        buffers: &mut Buffers,
    ) -> Step {
        let ClientRequest { data, record, .. } = *self.requests.get(request);
        let (from, to) = {
            let request = self.requests.get(request);
            (request.data_offset() + filled, request.data_end())
        };
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        let bytes = buffers.bytes_mut(data).expect("buffers of bytes");
        let filled = filled + connection.take(&mut bytes[from..to]);
        if filled < record.length_bytes as usize {
            connection.payload = Payload::Write { request, filled };
            return Step::Input;
        }
        connection.payload = Payload::None;
        let received = connection.received;
        self.hand_over(request, received, buffers)
    }

    fn hand_over(
        &mut self,
        request: RequestIndex,
        received: Instant,
        buffers: &mut Buffers,
    ) -> Step {
        let record = self.requests.received(request, received);
        if let Some(observer) = &mut self.observer {
            observer(RequestEvent::Arrived(record));
        }
        self.requests.arrive(request, buffers);
        Step::Arrived
    }

    /// Answers without data.
    fn push_reply(&mut self, id: ConnectionId, cookie: u64, error: Option<Errno>) {
        if let Some(connection) = self.get(id) {
            connection.push_reply(Reply {
                header: encode_reply(cookie, error),
                data: BufferSlice::EMPTY,
                from: 0,
                to: 0,
            });
            self.note_unsent(id);
        }
    }

    fn send_replies(&mut self, now: Instant, buffers: &mut Buffers) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for id in unsent.drain(..) {
            self.send(id, now, buffers);
        }
        self.unsent = unsent;
    }

    fn send(&mut self, id: ConnectionId, now: Instant, buffers: &mut Buffers) {
        let poller = Rc::clone(&self.poller);
        let Some(connection) = self.get(id) else {
            return;
        };
        connection.unsent = false;
        let bytes_before = connection.bytes;
        let sent = connection.send(buffers);
        let released = bytes_before - connection.bytes;
        connection.outstanding -= sent.replies;
        if sent.full != connection.watches_output {
            connection.watches_output = sent.full;
            if poller
                .modify(&connection.socket, id.token(), sent.full)
                .is_err()
            {
                return self.close(id, buffers);
            }
        }
        connection.full_since = sent.full.then_some(now);
        let ending = matches!(connection.phase, Phase::Ending | Phase::Handshake { .. });
        let resumes = std::mem::take(&mut connection.blocked) || ending;
        let drained = connection.outstanding == 0;
        self.bytes_in_flight -= released;
        if sent.broken || (drained && self.drain_until.is_some()) {
            return self.close(id, buffers);
        }
        if resumes {
            self.activate(id);
        }
        self.admit_next();
    }

    /// The answer to a request is known.
    fn finish(&mut self, index: RequestIndex, buffers: &mut Buffers) {
        let (request, result) = self.requests.remove(index, buffers);
        if let Some(observer) = &mut self.observer {
            observer(RequestEvent::Answered {
                record: request.record,
                latency: self.time.now().since(request.record.arrived),
                result,
            });
        }
        let bytes = buffer_bytes(request.data);
        let sends_data = request.command == Command::Read && result.is_ok();
        let id = request.connection;
        let Some(connection) = self.get(id) else {
            buffers.release(request.data);
            self.bytes_in_flight -= bytes;
            self.admit_next();
            return;
        };
        let (data, from, to) = if sends_data {
            (request.data, request.data_offset(), request.data_end())
        } else {
            (BufferSlice::EMPTY, 0, 0)
        };
        connection.push_reply(Reply {
            header: encode_reply(request.cookie, result.err().map(Errno::from)),
            data,
            from,
            to,
        });
        if !sends_data {
            connection.bytes -= bytes;
            buffers.release(request.data);
            self.bytes_in_flight -= bytes;
        }
        self.note_unsent(id);
        self.admit_next();
    }
}

impl Frontend for Connections {
    fn next_arrival(&self) -> Option<Instant> {
        let at_once = self.requests.has_ready()
            || !self.active.is_empty()
            || !self.postponed.is_empty()
            || !self.unsent.is_empty();
        if at_once {
            return Some(Instant::ZERO);
        }
        let connections = self.places.iter().filter_map(|p| p.connection.as_deref());
        let deadlines = connections.filter_map(|connection| self.deadline(connection));
        deadlines.chain(self.drain_until).min()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if !self.unsent.is_empty() {
            self.send_replies(now, buffers);
        }
        if self.turn != self.poller.turn() {
            self.begin_turn(now, buffers);
        }
        loop {
            if let Some(arrival) = self.requests.pop_ready() {
                return Some(arrival);
            }
            let id = self.active.pop_front()?;
            self.advance(id, buffers);
        }
    }

    fn reply(&mut self, _now: Instant, completion: Completion, buffers: &mut Buffers) {
        if let Some(request) = self.requests.complete(completion, buffers) {
            self.finish(request, buffers);
        }
    }

    fn finished(&self) -> bool {
        self.drain_until.is_some() && self.live == 0 && self.requests.in_flight() == 0
    }
}
