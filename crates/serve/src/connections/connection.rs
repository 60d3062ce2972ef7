//! One client: its socket, what it has sent, and what it is yet to be sent.

use super::payload::bytes_of;
use super::requests::RequestIndex;
use super::{HANDSHAKE_MS_MAX, PACE_BYTES_MIN, PACE_MS};
use crate::nbd::handshake::{Export, Handshake, OPTION_BYTES_MAX};
use crate::nbd::transmission::REPLY_BYTES;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::extent::Extent;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{SendAncillaryBuffer, SendFlags};
use std::collections::VecDeque;

/// Bytes taken from a socket at once. Holds the longest option with its header.
const INPUT_BYTES: usize = 128 << 10;
/// Pieces handed to the kernel in one call: two for each reply of a read.
const PIECES_MAX: usize = 128;

/// How long a client may take what its socket holds, which nobody sees: the system tells of room
/// only when most of it has been taken, and that may be more than [`PACE_BYTES_MIN`].
pub(super) const SOCKET_MS: u64 = PACE_MS;

const _: () = assert!(INPUT_BYTES > OPTION_BYTES_MAX as usize + 1024);

/// Where a connection is in its life.
pub(super) enum Phase {
    /// Options are negotiated, until the instant at the latest.
    Handshake { handshake: Box<Handshake>, until: Instant },
    /// Requests are served.
    Transmission,
    /// Nothing more is read. It closes when all is answered and sent.
    Ending,
}

/// What the next bytes of a client belong to.
#[derive(Clone, Copy)]
pub(super) enum Payload {
    /// No payload: a request comes next.
    None,
    /// The data of a write, or of a part of one, of which `filled` bytes have arrived.
    Write { request: RequestIndex, filled: usize, pace: Pace },
    /// The data of a refused write, to be passed over.
    Refused { left: usize },
}

/// A reply on its way out.
pub(super) struct Reply {
    pub header: [u8; REPLY_BYTES],
    /// Released when it has been sent.
    pub data: BufferSlice,
    /// The bytes of the data that are sent.
    pub from: usize,
    pub to: usize,
}

/// What became of an attempt to send.
pub(super) struct Sent {
    /// Replies that left entirely.
    pub replies: u32,
    /// Bytes that left.
    pub bytes: usize,
    /// Bytes of buffers that were given up.
    pub released: u64,
    /// The client cannot be reached any more.
    pub broken: bool,
    /// The socket is full; it will tell when there is room.
    pub full: bool,
}

/// How fast a client sends a payload, or takes its answers.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Fewer than [`PACE_BYTES_MIN`] bytes have moved since.
    since: Instant,
    moved: u64,
}

impl Pace {
    /// That of a transfer in which nothing has moved yet.
    pub fn from(now: Instant) -> Pace {
        Pace { since: now, moved: 0 }
    }

    /// Bytes have moved.
    pub fn note(&mut self, bytes: usize, now: Instant) {
        self.moved += bytes as u64;
        if self.moved >= PACE_BYTES_MIN {
            *self = Pace::from(now);
        }
    }

    /// For a time nothing could move, whatever the client did.
    pub fn pass_over(&mut self, span: Duration) {
        self.since = self.since + span;
    }

    /// When it will have been too slow, if others wait for it.
    pub fn due(self) -> Instant {
        self.since + Duration::from_ms(PACE_MS)
    }
}

/// The part of the device that a client has chosen.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    /// Where it begins on the device, in bytes.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    pub is_read_only: bool,
    /// The blocks that a flush is for; none for the whole device.
    pub flushed: Extent,
}

impl Window {
    /// That of an export. The first of a server is the whole device.
    pub fn of(exports: &[Export], chosen: usize) -> Window {
        let export = &exports[chosen];
        let extent = Extent::new(export.offset / BLOCK_BYTES, export.bytes / BLOCK_BYTES);
        Window {
            offset: export.offset,
            bytes: export.bytes,
            is_read_only: export.is_read_only,
            flushed: if chosen == 0 { Extent::EMPTY } else { extent },
        }
    }
}

pub(super) struct Connection {
    pub socket: OwnedFd,
    pub phase: Phase,
    pub payload: Payload,
    /// The part of the device that its requests are for.
    pub window: Window,
    /// Requests read and not yet answered, replies not yet sent included.
    pub outstanding: u32,
    /// When it was accepted, until it sends its first request.
    pub unused_since: Option<Instant>,
    /// The socket may hold more input.
    pub readable: bool,
    /// The client will send no more; the end is still to be read.
    pub hangup: bool,
    /// The socket takes no more output until it says so.
    pub full: bool,
    /// How fast it takes its answers, once the socket has been full.
    pub reply_pace: Option<Pace>,
    /// The kernel was asked to tell when there is room.
    pub watches_output: bool,
    /// In the list of connections to be advanced.
    pub active: bool,
    /// In the list of connections with something to send.
    pub unsent: bool,
    /// It is not read, because it waits for memory or for an answer to leave.
    pub blocked: bool,
    /// The wait after which the socket was last read.
    pub read_turn: u64,
    /// When the bytes last read arrived.
    pub received: Instant,
    /// Answers of the handshake.
    pub output: Vec<u8>,
    input: Box<[u8]>,
    start: usize,
    end: usize,
    replies: VecDeque<Reply>,
    /// Bytes of the first piece that have left: of the output, or else of the first reply.
    sent: usize,
}

impl Connection {
    /// A connection that was accepted at `now`.
    pub fn new(socket: OwnedFd, handshake: Handshake, now: Instant) -> Connection {
        let until = now + Duration::from_ms(HANDSHAKE_MS_MAX);
        Connection {
            socket,
            phase: Phase::Handshake { handshake: Box::new(handshake), until },
            payload: Payload::None,
            window: Window::default(),
            outstanding: 0,
            unused_since: Some(now),
            readable: true,
            hangup: false,
            full: false,
            reply_pace: None,
            watches_output: false,
            active: false,
            unsent: false,
            blocked: false,
            read_turn: 0,
            received: Instant::ZERO,
            output: Vec::new(),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            replies: VecDeque::new(),
            sent: 0,
        }
    }

    /// When it will have been too slow with the payload that it is sending. `None` while it waits
    /// for us.
    pub fn payload_due(&self) -> Option<Instant> {
        match self.payload {
            Payload::Write { pace, .. } if !self.readable && !self.blocked => Some(pace.due()),
            _ => None,
        }
    }

    /// When it will have been too slow with taking its answers. `None` while it waits for us.
    pub fn answers_due(&self) -> Option<Instant> {
        let due = self.reply_pace.filter(|_| self.full).map(Pace::due)?;
        Some(due + Duration::from_ms(SOCKET_MS))
    }

    /// The server did nothing for a time, so nothing could move.
    pub fn pass_over(&mut self, span: Duration) {
        if let Payload::Write { pace, .. } = &mut self.payload {
            pace.pass_over(span);
        }
        if let Some(pace) = &mut self.reply_pace {
            pace.pass_over(span);
        }
    }

    pub fn in_handshake(&self) -> bool {
        matches!(self.phase, Phase::Handshake { .. })
    }

    /// What was received and not yet consumed.
    #[inline]
    pub fn input(&self) -> &[u8] {
        &self.input[self.start..self.end]
    }

    #[inline]
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end);
    }

    /// Moves received bytes into `target` and returns how many.
    #[inline]
    pub fn take(&mut self, target: &mut [u8]) -> usize {
        let bytes = target.len().min(self.end - self.start);
        target[..bytes].copy_from_slice(&self.input[self.start..self.start + bytes]);
        self.start += bytes;
        bytes
    }

    /// Reads from the socket, first into `target` and what follows into the input. Returns the
    /// bytes that went into `target` and the bytes in all; zero in all is the end.
    pub fn receive(&mut self, target: &mut [u8]) -> rustix::io::Result<(usize, usize)> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let free = &mut self.input[self.end..];
        let room = target.len() + free.len();
        let result = if target.is_empty() {
            rustix::io::read(&self.socket, free)
        } else {
            let mut pieces = [IoSliceMut::new(target), IoSliceMut::new(free)];
            rustix::io::readv(&self.socket, &mut pieces)
        };
        match result {
            Ok(bytes) => {
                // A short read has emptied the socket, unless its end is what is left.
                self.readable = bytes == room || self.hangup;
                let direct = bytes.min(target.len());
                self.end += bytes - direct;
                Ok((direct, bytes))
            }
            Err(error) => {
                self.readable &= error != Errno::AGAIN;
                Err(error)
            }
        }
    }

    pub fn push_reply(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    pub fn has_unsent(&self) -> bool {
        !self.output.is_empty() || !self.replies.is_empty()
    }

    /// Sends as much as the socket takes and releases the data of replies that have left.
    pub fn send(&mut self, buffers: &mut Buffers) -> Sent {
        let mut sent = Sent { replies: 0, bytes: 0, released: 0, broken: false, full: false };
        while self.has_unsent() {
            let result = {
                let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
                let count = self.gather(buffers, &mut pieces);
                rustix::net::sendmsg(
                    &self.socket,
                    &pieces[..count],
                    &mut SendAncillaryBuffer::default(),
                    SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
                )
            };
            match result {
                Ok(bytes) => self.discard_sent(bytes, &mut sent, buffers),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    sent.full = true;
                    break;
                }
                Err(_) => {
                    sent.broken = true;
                    break;
                }
            }
        }
        sent
    }

    /// Lists what is to be sent, from the first unsent byte on.
    fn gather<'a>(&'a self, buffers: &'a Buffers, pieces: &mut [IoSlice<'a>]) -> usize {
        let (mut count, mut skip) = (0, self.sent);
        let mut add = |bytes: &'a [u8]| {
            let skipped = skip.min(bytes.len());
            skip -= skipped;
            if skipped < bytes.len() {
                pieces[count] = IoSlice::new(&bytes[skipped..]);
                count += 1;
            }
            count
        };
        let mut filled = add(&self.output);
        for reply in &self.replies {
            if filled + 2 > PIECES_MAX {
                break;
            }
            filled = add(&reply.header);
            if reply.to > reply.from {
                let data = buffers.bytes(reply.data).expect("the buffers hold bytes");
                filled = add(&data[reply.from..reply.to]);
            }
        }
        filled
    }

    /// Forgets the first `bytes` unsent bytes.
    fn discard_sent(&mut self, bytes: usize, sent: &mut Sent, buffers: &mut Buffers) {
        sent.bytes += bytes;
        let mut left = self.sent + bytes;
        if left >= self.output.len() {
            left -= self.output.len();
            self.output.clear();
        } else {
            self.sent = left;
            return;
        }
        while let Some(reply) = self.replies.front() {
            let length = REPLY_BYTES + (reply.to - reply.from);
            if left < length {
                break;
            }
            left -= length;
            sent.released += self.release_front(buffers);
            sent.replies += 1;
        }
        self.sent = left;
    }

    fn release_front(&mut self, buffers: &mut Buffers) -> u64 {
        let reply = self.replies.pop_front().expect("a reply to release");
        buffers.release(reply.data);
        buffer_bytes(reply.data)
    }

    /// Releases the data of every reply that will not be sent. Returns the bytes of it.
    pub fn release_replies(&mut self, buffers: &mut Buffers) -> u64 {
        let mut released = 0;
        while !self.replies.is_empty() {
            released += self.release_front(buffers);
        }
        released
    }
}

/// The memory a buffer takes.
pub(super) fn buffer_bytes(data: BufferSlice) -> u64 {
    bytes_of(u64::from(data.blocks))
}
