//! From what a client has sent to requests for the stack.

use super::REQUESTS_MAX;
use super::connection::{Payload, Phase, Window};
use super::payload::{bytes_of, first_blocks};
use super::requests::{ClientRequest, RequestIndex, extent_of, operation_of};
use super::{CONNECTION_BYTES_MAX, CONNECTION_REQUESTS_MAX, ConnectionId, Connections};
use super::{RequestEvent, RequestRecord, Step};
use crate::nbd::PAYLOAD_BYTES_MAX;
use crate::nbd::handshake::Next;
use crate::nbd::transmission::{Command, Errno, REQUEST_BYTES, RequestHeader};
use imbrex_core::buffer::Buffers;
use imbrex_core::extent::Extent;
use imbrex_core::units::Instant;
use std::rc::Rc;

/// Where on the device a request is.
#[derive(Clone, Copy)]
pub(super) struct RequestPlace {
    /// Zero for a flush, as is the length.
    offset_bytes: u64,
    length_bytes: u32,
    /// The blocks it touches. A flush of a part of the device names the blocks of the part; one of
    /// the whole device names none.
    extent: Extent,
}

impl RequestPlace {
    fn of(header: &RequestHeader, command: Command, window: Window) -> RequestPlace {
        if command == Command::Flush {
            return RequestPlace { offset_bytes: 0, length_bytes: 0, extent: window.flushed };
        }
        let (offset_bytes, length_bytes) = (window.offset + header.offset, header.length);
        RequestPlace {
            offset_bytes,
            length_bytes,
            extent: extent_of(command, offset_bytes, length_bytes),
        }
    }
}

impl Connections {
    /// Reads a socket, at most once in a turn. True when there is something new to look at.
    pub(super) fn receive(&mut self, id: ConnectionId, buffers: &mut Buffers) -> bool {
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
        let result = match connection.payload {
            Payload::Write { request, filled, .. } => {
                let request = *self.requests.get(request);
                let (blocks, free) = request.free_blocks(filled, usize::MAX);
                let data = buffers.bytes_mut(blocks).expect("buffers of bytes");
                // Borrowed anew: the look at the requests ended the borrow before.
                let Some(connection) = self.get(id) else {
                    return false;
                };
                let result = connection.receive(&mut data[free]);
                if let (Ok((direct, all)), Payload::Write { filled, pace, .. }) =
                    (&result, &mut connection.payload)
                {
                    *filled += direct;
                    pace.note(*all, received);
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
            Ok(_) => {
                if let Some(connection) = self.get(id) {
                    connection.received = received;
                }
                true
            }
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
    pub(super) fn handle_end_of_input(&mut self, id: ConnectionId, buffers: &mut Buffers) {
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

    /// Takes one message of a handshake.
    pub(super) fn step_handshake(&mut self, id: ConnectionId) -> Step {
        let exports = Rc::clone(&self.exports);
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        // A client that does not read its answers gets no further ones.
        if !connection.output.is_empty() {
            return Step::Blocked;
        }
        let mut output = std::mem::take(&mut connection.output);
        let Phase::Handshake { mut handshake, until } =
            std::mem::replace(&mut connection.phase, Phase::Ending)
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
                if consumed == 0 { Step::Input } else { Step::Again }
            }
            Next::Transmission => {
                connection.phase = Phase::Transmission;
                connection.window = Window::of(&exports, handshake.chosen());
                Step::Again
            }
            Next::Close => Step::Again,
        };
        if answered {
            self.note_unsent(id);
        }
        step
    }

    /// Takes one request, or a part of a payload.
    pub(super) fn step_transmission(&mut self, id: ConnectionId, buffers: &mut Buffers) -> Step {
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        let window = connection.window;
        match connection.payload {
            Payload::None => {}
            Payload::Write { .. } => return self.step_payload(id, buffers),
            Payload::Refused { left } => {
                let passed = left.min(connection.input().len());
                connection.consume(passed);
                connection.payload = match left - passed {
                    0 => Payload::None,
                    left => Payload::Refused { left },
                };
                return if passed == 0 { Step::Input } else { Step::Again };
            }
        }
        if connection.input().len() < REQUEST_BYTES {
            return Step::Input;
        }
        let Some(header) = RequestHeader::decode(connection.input()) else {
            return Step::Close;
        };
        connection.unused_since = None;
        if connection.outstanding >= CONNECTION_REQUESTS_MAX {
            connection.blocked = true;
            return Step::Blocked;
        }
        let command = match window.is_read_only && header.is_change() {
            true => Err(Errno::NotPermitted),
            false => header.command(window.bytes),
        };
        match command {
            Ok(Command::Disconnect) => {
                connection.phase = Phase::Ending;
                Step::Again
            }
            Ok(command) => {
                let place = RequestPlace::of(&header, command, window);
                self.begin_request(id, header.cookie, command, place, buffers)
            }
            Err(errno) => {
                if header.payload_bytes() > PAYLOAD_BYTES_MAX {
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
    pub(super) fn begin_request(
        &mut self,
        id: ConnectionId,
        cookie: u64,
        command: Command,
        place: RequestPlace,
        buffers: &mut Buffers,
    ) -> Step {
        let RequestPlace { offset_bytes, length_bytes, extent } = place;
        let flush = command == Command::Flush;
        let has_data = matches!(command, Command::Read | Command::Write { .. });
        let all = if has_data { extent.blocks.0 } else { 0 };
        let blocks = match command {
            Command::Write { .. } => first_blocks(all),
            _ => all,
        };
        if self.requests.in_flight() >= REQUESTS_MAX {
            self.waiting_for_requests.push(id);
            return Step::Blocked;
        }
        let held = self.memory.held(id);
        let allowed = held == 0 || held + bytes_of(all) <= CONNECTION_BYTES_MAX;
        let granted = blocks == 0 || (allowed && self.ask_memory(id, bytes_of(blocks)));
        let Some(connection) = self.get(id) else {
            return Step::Blocked;
        };
        if !granted {
            // Woken when it is its turn, and when answers of its own have left.
            connection.blocked = true;
            return Step::Blocked;
        }
        connection.consume(REQUEST_BYTES);
        connection.outstanding += 1;
        let received = connection.received;
        if extent.is_empty() && !flush {
            // No bytes, or a trim that covers no whole block: nothing to do.
            self.push_reply(id, cookie, None);
            return Step::Again;
        }
        let request = self.requests.insert(ClientRequest {
            connection: id,
            cookie,
            command,
            record: RequestRecord {
                arrived: received,
                operation: operation_of(command),
                offset_bytes,
                length_bytes,
            },
            extent,
            data: buffers.allocate(blocks),
            part_of: None,
        });
        if let Command::Write { .. } = command {
            self.begin_payload(id, request);
            return self.step_payload(id, buffers);
        }
        self.hand_over(request, received, buffers)
    }

    /// All of a request is here.
    pub(super) fn hand_over(
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
}
