//! The clients of a server as one source of requests.
//!
//! Nothing here blocks and nothing here waits: sockets that have something to say are told by the
//! clock's wait, each is read at most once per wait, and the answers of one round of the engine
//! leave together. Clients take turns, one request each. Every quantity a client can make grow
//! has a bound, named below.

mod clients;
mod connection;
mod incoming;
mod log;
mod memory;
mod outgoing;
mod payload;
mod requests;
#[cfg(test)]
mod tests;

use crate::clock::{Poller, WallTime};
use crate::control::Control;
use crate::events::SharedEvents;
use crate::nbd::handshake::Export;
use connection::{Connection, Phase};
use imbrex_core::buffer::Buffers;
use imbrex_core::command::CommandReply;
use imbrex_core::engine::CommandArrival;
use imbrex_core::engine::Frontend;
use imbrex_core::error::IoError;
use imbrex_core::notice;
use imbrex_core::operation::{Completion, Operation};
use imbrex_core::stack::{Arrival, NodeId};
use imbrex_core::units::{Duration, Instant};
use log::{Log, Notice};
use memory::Memory;
use requests::Requests;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clients connected at once. One more takes the place of a client that was connected for
/// [`UNUSED_MS_MAX`] without a request, or else is disconnected at once.
pub const CONNECTIONS_MAX: usize = 64;
/// Requests of one client that are not yet answered; it is not read while it has as many.
pub const CONNECTION_REQUESTS_MAX: u32 = 256;
/// Requests of all clients that are not yet carried out.
pub const REQUESTS_MAX: u32 = 1024;
/// Bytes of buffers that the requests of one client may hold whatever the others do.
pub const CONNECTION_BYTES_RESERVED: u64 = 1 << 20;
/// Bytes of buffers that the requests of one client hold, unless it is a single larger request.
pub const CONNECTION_BYTES_MAX: u64 = 64 << 20;
/// Bytes of buffers that the requests of all clients hold beyond what is reserved for each. More
/// than the largest request needs: 32 MiB and two part blocks, rounded up to a power of two.
pub const BYTES_IN_FLIGHT_MAX: u64 = 96 << 20;
/// How long a client may take for its handshake.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// Bytes that a client which keeps others waiting must move in [`PACE_MS`]: send of a payload, or
/// take of its answers. The time in which it waits for the server does not count.
pub const PACE_BYTES_MIN: u64 = 256 << 10;
/// See [`PACE_BYTES_MIN`].
pub const PACE_MS: u64 = 1_000;
/// How long a connection that has never sent a request keeps its place when a newcomer finds none.
/// A connection that has sent one keeps it for ever: a mounted file system may be idle for days.
pub const UNUSED_MS_MAX: u64 = 60_000;
/// A server that did not look at its clients for so long has kept them waiting itself.
const BUSY_MS_MIN: u64 = 100;
/// When to try again after the system could not accept a client.
pub const ACCEPT_AGAIN_MS: u64 = 1_000;
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
        ConnectionId { index: token as u32, generation: (token >> 32) as u32 }
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
    /// Descriptors ran out; to be tried again then, or when a connection closes.
    accept_again: Option<Instant>,
    exports: Rc<[Export]>,
    stop: Arc<AtomicBool>,
    drain_until: Option<Instant>,
    places: Vec<Place>,
    live: usize,
    turn: u64,
    turn_began: Instant,
    active: VecDeque<ConnectionId>,
    /// Have input that must wait for the next turn.
    postponed: Vec<ConnectionId>,
    unsent: Vec<ConnectionId>,
    /// Wait until fewer requests are in flight.
    waiting_for_requests: Vec<ConnectionId>,
    requests: Requests,
    memory: Memory,
    log: Log,
    observer: Option<Observer>,
    /// Commands to nodes, beside the requests.
    control: Control,
    /// What happens to nodes; `None` where nobody is told.
    events: Option<SharedEvents>,
}

impl Connections {
    pub fn new(
        poller: Rc<Poller>,
        time: WallTime,
        listener: OwnedFd,
        exports: Rc<[Export]>,
        stop: Arc<AtomicBool>,
        observer: Option<Observer>,
        control: Control,
    ) -> Connections {
        Connections {
            poller,
            time,
            listener: Some(listener),
            accept_again: None,
            exports,
            stop,
            drain_until: None,
            places: Vec::new(),
            live: 0,
            turn: 0,
            turn_began: Instant::ZERO,
            active: VecDeque::new(),
            postponed: Vec::new(),
            unsent: Vec::new(),
            waiting_for_requests: Vec::new(),
            requests: Requests::default(),
            memory: Memory::default(),
            log: Log::to_standard_error(),
            observer,
            control,
            events: None,
        }
    }

    /// The same clients; what happens to nodes is told to `events`.
    #[must_use]
    pub fn with_events(mut self, events: SharedEvents) -> Connections {
        self.events = Some(events);
        self
    }

    /// The connection, unless it is closed.
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

    /// Has what a connection is to be sent leave with the next round, unless its socket is full.
    fn note_unsent(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get(id)
            && !connection.unsent
            && !connection.full
        {
            connection.unsent = true;
            self.unsent.push(id);
        }
    }

    /// Looks at what has happened during the last wait.
    fn begin_turn(&mut self, now: Instant, buffers: &mut Buffers) {
        self.turn = self.poller.turn();
        let busy = self.poller.wait_began().since(self.turn_began);
        self.turn_began = now;
        if busy >= Duration::from_ms(BUSY_MS_MIN) {
            let connections = self.places.iter_mut().flat_map(|p| &mut p.connection);
            connections.for_each(|connection| connection.pass_over(busy));
        }
        for id in std::mem::take(&mut self.postponed) {
            self.activate(id);
        }
        self.control.begin_turn();
        let poller = Rc::clone(&self.poller);
        let mut accept = false;
        poller.take_events(|token, flags| match token {
            LISTENER => accept = true,
            WAKER | SIGNALS => {}
            token if Control::owns(token) => self.control.handle_event(token, flags),
            token => self.handle_event(ConnectionId::of_token(token), flags),
        });
        if accept || self.accept_again.is_some_and(|at| at <= now) {
            self.accept(now, buffers);
        }
        if let Err(error) = self.control.end_turn(now) {
            self.log.say(now, Notice::NotAccepted, || {
                format!("cannot accept a client for commands: {error}; it waits")
            });
        }
        if self.stop.load(Ordering::Relaxed) && self.drain_until.is_none() {
            self.begin_drain(now, buffers);
            self.control.begin_stop();
        }
        self.close_overdue(now, buffers);
    }

    fn handle_event(&mut self, id: ConnectionId, flags: EventFlags) {
        let Some(connection) = self.get(id) else {
            return;
        };
        if flags.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP)
            && std::mem::take(&mut connection.full)
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
}

impl Frontend for Connections {
    fn next_arrival(&self) -> Option<Instant> {
        // A wait that was not this frontend's own, such as one for the layers to come up, may have
        // told of clients, signals or the end. An edge is told once, so nothing would tell again.
        let unseen = self.turn != self.poller.turn();
        let at_once = unseen
            || self.requests.has_ready()
            || !self.active.is_empty()
            || !self.postponed.is_empty()
            || !self.unsent.is_empty();
        if at_once {
            return Some(Instant::ZERO);
        }
        let deadlines = self.deadlines().map(|(_, due, _)| due);
        // Once everybody has left, only the disks have something to end.
        let drain_until = self.drain_until.filter(|_| self.live > 0);
        let others = drain_until.into_iter().chain(self.accept_again);
        deadlines.chain(others).min()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if !self.unsent.is_empty() {
            self.send_replies(buffers);
        }
        if self.turn != self.poller.turn() {
            self.begin_turn(now, buffers);
        }
        loop {
            if let Some(arrival) = self.requests.pop_ready() {
                self.poller.count_request();
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
        self.drain_until.is_some()
            && self.live == 0
            && self.requests.in_flight() == 0
            && !self.control.is_replacing()
    }

    fn next_command(&self) -> Option<Instant> {
        let events = self.events.as_ref();
        let look = events.and_then(|events| events.borrow().next_look());
        self.control.next_event().into_iter().chain(look).min()
    }

    fn poll_command(&mut self, now: Instant) -> Option<CommandArrival> {
        if let Some(events) = &self.events {
            events.borrow_mut().look_if_due(now);
        }
        self.control.pop_ready()
    }

    fn reply_to_command(&mut self, now: Instant, reply: CommandReply) {
        self.control.reply(now, reply);
    }

    fn notice(&mut self, now: Instant, node: NodeId, notice: notice::Notice) {
        if let Some(events) = &self.events {
            events.borrow_mut().notice(now, node, notice);
        }
    }

    fn notices_dropped(&mut self, _now: Instant, count: u64) {
        if let Some(events) = &self.events {
            events.borrow_mut().dropped(count);
        }
    }
}
