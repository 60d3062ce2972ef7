//! One client of a control socket: what it has sent, and what it is yet to be sent.

use super::{ANSWER_BYTES_MAX, REQUEST_LINE_BYTES_MAX};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SendFlags;

/// Bytes read of one client before others have their turn.
const BYTES_AT_ONCE: usize = 64 << 10;

/// What became of an attempt to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// All there is.
    All,
    /// There may be more.
    More,
    /// A line without end. Nothing after it can be understood.
    TooLong,
}

pub(super) struct Client {
    socket: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the output that have left.
    sent: usize,
    /// It sends no more, or nothing that it sends is read.
    pub has_ended: bool,
    /// It has closed both directions.
    pub has_gone: bool,
    /// It cannot be told anything.
    pub is_broken: bool,
}

impl Client {
    pub fn new(socket: OwnedFd) -> Client {
        Client {
            socket,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            has_ended: false,
            has_gone: false,
            is_broken: false,
        }
    }

    /// Reads a share of what the client has sent.
    pub fn receive(&mut self) -> Received {
        let mut bytes = vec![0; BYTES_AT_ONCE];
        while !self.has_ended {
            match rustix::io::read(&self.socket, &mut bytes) {
                Ok(0) => {
                    self.has_ended = true;
                    // Who forgets the end of the last line is understood all the same.
                    self.input.push(b'\n');
                }
                Ok(count) => {
                    self.input.extend_from_slice(&bytes[..count]);
                    let last_line = self.input.iter().rev().position(|byte| *byte == b'\n');
                    if last_line.unwrap_or(self.input.len()) > REQUEST_LINE_BYTES_MAX {
                        self.has_ended = true;
                        self.input.clear();
                        return Received::TooLong;
                    }
                    return Received::More;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::All,
                Err(_) => {
                    self.has_ended = true;
                    self.is_broken = true;
                }
            }
        }
        Received::All
    }

    /// The next line that has arrived in full.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        if self.is_broken {
            return None;
        }
        let end = self.input.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.input.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    pub fn has_unsent(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends a line, now or when there is room.
    pub fn tell(&mut self, line: &str) {
        self.output.drain(..std::mem::take(&mut self.sent));
        self.output.extend_from_slice(line.as_bytes());
        self.output.push(b'\n');
        self.send();
        if self.output.len() - self.sent > ANSWER_BYTES_MAX {
            self.is_broken = true;
            self.has_ended = true;
        }
    }

    /// Sends as much as the socket takes.
    pub fn send(&mut self) {
        while self.has_unsent() && !self.is_broken {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.socket, &self.output[self.sent..], flags) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.is_broken = true;
                    self.has_ended = true;
                }
            }
        }
    }
}
