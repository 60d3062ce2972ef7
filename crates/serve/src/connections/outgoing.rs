//! From the answers of the stack to what a client is sent.

use super::connection::{Phase, Reply, Transfer, buffer_bytes};
use super::requests::RequestIndex;
use super::{ConnectionId, Connections, REQUESTS_MAX, RequestEvent};
use crate::nbd::transmission::{Command, Errno, encode_reply};
use imbrex_core::buffer::{BufferSlice, Buffers};
use std::rc::Rc;

impl Connections {
    /// Answers without data.
    pub(super) fn push_reply(&mut self, id: ConnectionId, cookie: u64, error: Option<Errno>) {
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

    /// The answer to a request is known.
    pub(super) fn finish(&mut self, index: RequestIndex, buffers: &mut Buffers) {
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
            self.memory.give_back_orphaned(bytes);
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
            buffers.release(request.data);
            self.memory.give_back(id, bytes);
        }
        self.note_unsent(id);
        self.admit_next();
    }

    /// Sends the answers of the last round.
    pub(super) fn send_replies(&mut self, buffers: &mut Buffers) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for id in unsent.drain(..) {
            self.send(id, buffers);
        }
        self.unsent = unsent;
    }

    /// Sends what a socket takes, and lets those go on who waited for what has left.
    pub(super) fn send(&mut self, id: ConnectionId, buffers: &mut Buffers) {
        let (poller, time) = (Rc::clone(&self.poller), self.time);
        let Some(connection) = self.get(id) else {
            return;
        };
        connection.unsent = false;
        let sent = connection.send(buffers);
        connection.outstanding -= sent.replies;
        if sent.full != connection.watches_output {
            connection.watches_output = sent.full;
            if poller
                .modify(&connection.socket, id.token(), sent.full)
                .is_err()
            {
                self.memory.give_back(id, sent.released);
                return self.close(id, buffers);
            }
        }
        connection.full = sent.full;
        connection.reply_transfer = sent.full.then(|| {
            let moved = time.now();
            let same = connection.reply_transfer.filter(|_| sent.replies == 0);
            let began = same.map_or(moved, |transfer| transfer.began);
            Transfer {
                began,
                moved: Some(moved),
            }
        });
        let ending = matches!(connection.phase, Phase::Ending | Phase::Handshake { .. });
        let resumes = std::mem::take(&mut connection.blocked) || ending;
        let drained = connection.outstanding == 0;
        self.memory.give_back(id, sent.released);
        if sent.broken || (drained && self.drain_until.is_some()) {
            return self.close(id, buffers);
        }
        if resumes {
            self.activate(id);
        }
        self.admit_next();
    }

    /// Something was given up: whoever waits for it may try again.
    pub(super) fn admit_next(&mut self) {
        if !self.waiting_for_requests.is_empty() && self.requests.in_flight() < REQUESTS_MAX {
            for id in std::mem::take(&mut self.waiting_for_requests) {
                self.activate(id);
            }
        }
        if let Some(next) = self.memory.next() {
            self.activate(next);
        }
    }
}
