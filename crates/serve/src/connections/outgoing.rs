//! From the answers of the stack to what a client is sent.

use super::connection::{Pace, Phase, Reply, buffer_bytes};
use super::requests::{Parts, RequestIndex};
use super::{ConnectionId, Connections, REQUESTS_MAX, RequestEvent};
use crate::nbd::transmission::{Command, Errno, encode_reply};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::error::IoError;
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

    /// A request has been carried out: it is answered, or the write that it is a part of, once all
    /// parts are over.
    pub(super) fn finish(&mut self, index: RequestIndex, buffers: &mut Buffers) {
        if let Some(whole) = self.requests.get(index).part_of {
            return self.finish_part(index, whole, buffers);
        }
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
            // Otherwise it goes on when the answer has left.
            let resumes = connection.full && std::mem::take(&mut connection.blocked);
            buffers.release(request.data);
            self.memory.give_back(id, bytes);
            if resumes {
                self.activate(id);
            }
        }
        self.note_unsent(id);
        self.admit_next();
    }

    fn finish_part(&mut self, index: RequestIndex, whole: RequestIndex, buffers: &mut Buffers) {
        let (part, result) = self.requests.remove(index, buffers);
        let (id, bytes) = (part.connection, buffer_bytes(part.data));
        buffers.release(part.data);
        match self.get(id) {
            Some(connection) => {
                let resumes = std::mem::take(&mut connection.blocked);
                self.memory.give_back(id, bytes);
                if resumes {
                    self.activate(id);
                }
            }
            None => self.memory.give_back_orphaned(bytes),
        }
        self.end_part(whole, result, buffers);
        self.admit_next();
    }

    /// Notes the end of a part of a write, and answers the write when it was the last.
    pub(super) fn end_part(
        &mut self,
        whole: RequestIndex,
        result: Result<(), IoError>,
        buffers: &mut Buffers,
    ) {
        match self.requests.end_part(whole, result) {
            Parts::Left => {}
            Parts::Over => self.finish(whole, buffers),
            Parts::Abandoned => {
                let _ = self.requests.remove(whole, buffers);
            }
        }
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
            if poller.modify(&connection.socket, id.token(), sent.full).is_err() {
                self.memory.give_back(id, sent.released);
                return self.close(id, buffers);
            }
        }
        connection.full = sent.full;
        connection.reply_pace = sent.full.then(|| {
            let now = time.now();
            let mut pace = connection.reply_pace.unwrap_or_else(|| Pace::from(now));
            pace.note(sent.bytes, now);
            pace
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
