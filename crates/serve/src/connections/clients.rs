//! Clients come and go.

use super::connection::{Connection, Payload, Phase, SOCKET_MS, buffer_bytes};
use super::log::{Notice, client_of};
use super::requests::RequestIndex;
use super::{ACCEPT_AGAIN_MS, CONNECTIONS_MAX, ConnectionId, Connections, DRAIN_MS_MAX};
use super::{PACE_BYTES_MIN, PACE_MS, Place, UNUSED_MS_MAX};
use crate::nbd::handshake::{Handshake, greeting};
use imbrex_core::buffer::Buffers;
use imbrex_core::units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::rc::Rc;

/// Clients taken in, or refused, before the next look at those there are.
const ACCEPTS_MAX: usize = CONNECTIONS_MAX;

/// What a client takes too long for, the handshake aside while another waits for memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Late {
    Handshake,
    Payload,
    Answers,
}

impl Late {
    /// What to tell the person who runs the server. Nothing of a handshake, because whoever does not
    /// finish one has no device to lose.
    fn told(self) -> Option<String> {
        let (least_kib, s) = (PACE_BYTES_MIN >> 10, PACE_MS / 1_000);
        match self {
            Late::Handshake => None,
            Late::Payload => Some(format!("sent less than {least_kib} KiB of a payload in {s} s")),
            Late::Answers => Some(format!(
                "took less than {least_kib} KiB of its answers in {} s",
                s + SOCKET_MS / 1_000
            )),
        }
    }
}

impl Connections {
    /// Takes in everybody who has connected, as long as there are places.
    pub(super) fn accept(&mut self, now: Instant, buffers: &mut Buffers) {
        self.accept_again = None;
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else {
                return;
            };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match rustix::net::accept_with(listener, flags) {
                Ok(socket) => socket,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    self.accept_again = Some(now + Duration::from_ms(ACCEPT_AGAIN_MS));
                    self.log.say(now, Notice::NotAccepted, || {
                        let error = std::io::Error::from(errno);
                        format!("cannot accept a client: {error}; it waits")
                    });
                    return;
                }
            };
            if self.live < CONNECTIONS_MAX || self.close_unused(now, buffers) {
                self.greet(socket, now);
            } else {
                self.log.say(now, Notice::Refused, || {
                    let client = client_of(&socket);
                    format!(
                        "refused {client}: there are {CONNECTIONS_MAX} connections, and each has \
                         sent a request or is younger than {} s",
                        UNUSED_MS_MAX / 1_000
                    )
                });
            }
        }
        // There may be more: others come first.
        self.accept_again = Some(now);
    }

    /// Closes the connection that has been there longest without ever sending a request, if that
    /// is long enough. False when there is none.
    fn close_unused(&mut self, now: Instant, buffers: &mut Buffers) -> bool {
        let unused = self.live().filter_map(|(id, connection)| {
            let since = connection.unused_since?;
            // What has come may be a request: it will be read in this turn.
            let keeps = connection.readable || since + Duration::from_ms(UNUSED_MS_MAX) > now;
            (!keeps).then_some((since, id))
        });
        let Some((since, id)) = unused.min_by_key(|(since, _)| *since) else {
            return false;
        };
        self.say_closed(now, id, Notice::Unused, || {
            format!(
                "it sent no request for {} s, and there were {CONNECTIONS_MAX} connections when \
                 another client came",
                now.since(since).0 / 1_000_000_000
            )
        });
        self.close(id, buffers);
        true
    }

    /// Tells the person who runs the server that a connection is about to be closed.
    fn say_closed(
        &mut self,
        now: Instant,
        id: ConnectionId,
        notice: Notice,
        why: impl FnOnce() -> String,
    ) {
        let place = &self.places[id.index as usize];
        let Some(connection) = &place.connection else {
            return;
        };
        self.log.say(now, notice, || {
            let client = client_of(&connection.socket);
            format!("closed the connection of {client}: {}", why())
        });
    }

    /// Begins the handshake with a client.
    pub(super) fn greet(&mut self, socket: OwnedFd, now: Instant) {
        // Fails on a Unix socket, which has nothing to delay.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        // A smaller buffer than the kernel's default would only mean more calls.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, 1 << 20);
        let vacant = self.places.iter().position(|p| p.connection.is_none());
        let index = vacant.unwrap_or_else(|| {
            self.places.push(Place::default());
            self.places.len() - 1
        });
        let id = ConnectionId { index: index as u32, generation: self.places[index].generation };
        if self.poller.add(&socket, id.token()).is_err() {
            return;
        }
        let handshake = Handshake::new(Rc::clone(&self.exports));
        let mut connection = Connection::new(socket, handshake, now);
        connection.output.extend_from_slice(&greeting());
        self.places[index].connection = Some(Box::new(connection));
        self.live += 1;
        self.note_unsent(id);
        self.activate(id);
    }

    /// Nothing more is accepted: no client, no request, no rest of a payload.
    pub(super) fn begin_drain(&mut self, now: Instant, buffers: &mut Buffers) {
        self.listener = None;
        self.accept_again = None;
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

    /// Closes clients that take too long, and, while stopping, all that have nothing left to wait
    /// for.
    pub(super) fn close_overdue(&mut self, now: Instant, buffers: &mut Buffers) {
        if let Some(until) = self.drain_until {
            for index in 0..self.places.len() {
                if let Some((id, connection)) = self.at(index)
                    && (until <= now || connection.outstanding == 0 || connection.in_handshake())
                {
                    self.close(id, buffers);
                }
            }
        }
        if self.deadlines().all(|(_, due, _)| due > now) {
            return;
        }
        let is_late = |(_, due, _): &(_, Instant, _)| *due <= now;
        let late: Vec<_> = self.deadlines().filter(is_late).collect();
        for (id, _, late) in late {
            if let Some(what) = late.told() {
                let held_mib = self.memory.held(id) >> 20;
                self.say_closed(now, id, Notice::Stalled, || {
                    format!(
                        "it {what} while another request waited for memory, of which it held \
                         {held_mib} MiB"
                    )
                });
            }
            self.close(id, buffers);
        }
    }

    /// When connections will have taken too long, and for what.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (ConnectionId, Instant, Late)> {
        let is_short = self.memory.is_short();
        self.live().filter_map(move |(id, connection)| {
            if let Phase::Handshake { until, .. } = connection.phase {
                return Some((id, until, Late::Handshake));
            }
            if !is_short || !self.memory.keeps_waiting(id) {
                return None;
            }
            let payload = connection.payload_due().map(|due| (id, due, Late::Payload));
            let answers = connection.answers_due().map(|due| (id, due, Late::Answers));
            let both = payload.into_iter().chain(answers);
            both.min_by_key(|(_, due, _)| *due)
        })
    }

    /// The connections there are.
    fn live(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        (0..self.places.len()).filter_map(|index| self.at(index))
    }

    /// The connection in a place.
    fn at(&self, index: usize) -> Option<(ConnectionId, &Connection)> {
        let place = &self.places[index];
        let id = ConnectionId { index: index as u32, generation: place.generation };
        Some((id, place.connection.as_deref()?))
    }

    /// Ends a connection. Its requests in the stack are carried out, their answers dropped.
    pub(super) fn close(&mut self, id: ConnectionId, buffers: &mut Buffers) {
        let Some(connection) = self.get(id) else {
            return;
        };
        let released = connection.release_replies(buffers);
        let payload = std::mem::replace(&mut connection.payload, Payload::None);
        self.memory.give_back(id, released);
        if let Payload::Write { request, .. } = payload {
            self.forget(request, buffers);
        }
        self.memory.close(id);
        let place = &mut self.places[id.index as usize];
        place.connection = None;
        place.generation = place.generation.wrapping_add(1);
        self.live -= 1;
        self.admit_next();
        if self.accept_again.is_some() {
            self.accept(self.time.now(), buffers);
        }
    }

    /// Drops a request whose payload will not arrive. Parts of it that have arrived are carried out.
    pub(super) fn forget(&mut self, request: RequestIndex, buffers: &mut Buffers) {
        let (request, _) = self.requests.remove(request, buffers);
        let bytes = buffer_bytes(request.data);
        self.memory.give_back(request.connection, bytes);
        buffers.release(request.data);
        if let Some(whole) = request.part_of {
            self.requests.abandon(whole);
            self.end_part(whole, Ok(()), buffers);
        }
    }
}
