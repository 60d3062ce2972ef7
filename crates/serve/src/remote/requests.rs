//! Requests to a server that have no answer yet, in the order in which they were made.

use super::unflushed::Written;
use imbrex_core::buffer::BufferSlice;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Operation, RequestId};
use std::collections::BTreeMap;

/// What an answer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum For {
    /// An operation of a layer.
    Op(RequestId),
    /// Whoever waits on the calling thread.
    Now,
    /// A flush, by its number.
    Flush(u64),
    /// What was answered before, sent again on a new connection.
    Replay,
}

/// A request that has no answer yet.
pub(super) struct Part {
    pub of: For,
    pub operation: Operation,
    pub extent: Extent,
    pub written: Option<Written>,
    /// Where what is read goes, and from which byte on.
    pub into: Option<(BufferSlice, usize)>,
    /// It was sent as one that is durable when it is answered.
    pub is_durable: bool,
}

impl Part {
    /// Memory that it takes once it was answered, until it was flushed.
    fn bytes(&self) -> u64 {
        match self.written {
            Some(Written::Bytes(..)) if self.of != For::Replay => self.extent.blocks.bytes(),
            _ => 0,
        }
    }

    /// True of a request that can be sent to a server which takes payloads of so many blocks.
    pub fn fits(&self, blocks: u64, takes_zeroes: bool) -> bool {
        let is_zero = matches!(self.written, Some(Written::Zeroes { .. }));
        self.extent.blocks.0 <= blocks || is_zero && takes_zeroes
    }
}

/// The requests without an answer, by their cookies, which ascend.
#[derive(Default)]
pub(super) struct Requests {
    parts: BTreeMap<u64, Part>,
    last_cookie: u64,
    bytes: u64,
}

impl Requests {
    /// Takes a request and gives it a cookie.
    pub fn add(&mut self, part: Part) -> u64 {
        self.last_cookie += 1;
        self.bytes += part.bytes();
        self.parts.insert(self.last_cookie, part);
        self.last_cookie
    }

    /// Takes out a request that was answered; none where it was answered before.
    pub fn remove(&mut self, cookie: u64) -> Option<Part> {
        let part = self.parts.remove(&cookie)?;
        self.bytes -= part.bytes();
        Some(part)
    }

    pub fn get(&self, cookie: u64) -> Option<&Part> {
        self.parts.get(&cookie)
    }

    pub fn get_mut(&mut self, cookie: u64) -> Option<&mut Part> {
        self.parts.get_mut(&cookie)
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Bytes that are written by them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn cookies(&self) -> Vec<u64> {
        self.parts.keys().copied().collect()
    }

    pub fn all(&self) -> impl Iterator<Item = &Part> {
        self.parts.values()
    }

    /// The operations of layers that they are for, each as often as it has requests.
    pub fn operations(&self) -> Vec<RequestId> {
        let of_layer = |part: &Part| match part.of {
            For::Op(id) => Some(id),
            _ => None,
        };
        self.all().filter_map(of_layer).collect()
    }

    /// True while something is sent again.
    pub fn have_replays(&self) -> bool {
        self.all().any(|part| part.of == For::Replay)
    }

    /// What was sent again is forgotten: it is where it came from.
    pub fn drop_replays(&mut self) {
        self.parts.retain(|_, part| part.of != For::Replay);
    }

    /// All are forgotten.
    pub fn clear(&mut self) {
        self.parts.clear();
        self.bytes = 0;
    }
}
