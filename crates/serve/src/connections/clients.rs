//! Clients come and go.

use super::connection::{Connection, Payload, Phase, buffer_bytes};
use super::requests::RequestIndex;
use super::{CONNECTIONS_MAX, ConnectionId, Connections, DRAIN_MS_MAX, HANDSHAKE_MS_MAX};
use super::{Place, STALLED_MS_MAX};
use crate::nbd::handshake::{Handshake, greeting};
use imbrex_core::buffer::Buffers;
use imbrex_core::units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::net::SocketFlags;

impl Connections {
    /// Takes in everybody who has connected, as long as there are places.
    pub(super) fn accept(&mut self, now: Instant) {
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

    /// Nothing more is accepted: no client, no request, no rest of a payload.
    pub(super) fn begin_drain(&mut self, now: Instant, buffers: &mut Buffers) {
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

    /// Closes clients that take too long for their handshake or for their answers, and, while
    /// stopping, all that have nothing left to wait for.
    pub(super) fn close_overdue(&mut self, now: Instant, buffers: &mut Buffers) {
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
    pub(super) fn deadline(&self, connection: &Connection) -> Option<Instant> {
        match connection.phase {
            Phase::Handshake { until, .. } => Some(until),
            _ if self.waiting_for_room.is_empty() => None,
            _ => {
                let since = connection.full_since?;
                Some(since + Duration::from_ms(STALLED_MS_MAX))
            }
        }
    }

    /// Ends a connection. Its requests in the stack are carried out, their answers dropped.
    pub(super) fn close(&mut self, id: ConnectionId, buffers: &mut Buffers) {
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

    /// Drops a request whose payload will not arrive.
    pub(super) fn forget(&mut self, request: RequestIndex, buffers: &mut Buffers) {
        let (request, _) = self.requests.remove(request, buffers);
        self.bytes_in_flight -= buffer_bytes(request.data);
        buffers.release(request.data);
    }
}
