//! The streams of a replay: each issues one request after another, when it is due and its predecessor has ended.

use super::Waiting;
use imbrex_core::units::{Duration, Instant};
use imbrex_report::Due;
use std::collections::VecDeque;

/// The streams, and what waits in them.
pub(super) struct Streams {
    due: Due,
    streams: Vec<Stream>,
}

#[derive(Clone, Default)]
struct Stream {
    /// Its requests that were not issued, with their time stamps.
    backlog: VecDeque<(Waiting, Instant)>,
    is_busy: bool,
    /// When its last request was issued, and the time stamp of that.
    last: Option<(Instant, Instant)>,
    /// When that ended.
    ended: Instant,
}

impl Stream {
    /// When the next request of it is due, if there is one.
    fn due(&self, due: Due) -> Option<Instant> {
        let (_, stamp) = self.backlog.front()?;
        Some(match (due, self.last) {
            (Due::Absolute, _) | (Due::Shift, None) => *stamp,
            (Due::Shift, Some((issued, before))) => {
                let gap = Duration(stamp.0.saturating_sub(before.0));
                Instant(issued.0.saturating_add(gap.0))
            }
        })
    }

    /// When the next request of it can be issued.
    fn ready(&self, due: Due) -> Option<Instant> {
        let at = self.due(due).filter(|_| !self.is_busy)?;
        Some(at.max(self.ended))
    }
}

impl Streams {
    /// So many, with nothing waiting.
    pub fn new(streams: u32, due: Due) -> Streams {
        Streams { due, streams: vec![Stream::default(); streams as usize] }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// A request of a time stamp joins the one that it belongs to.
    pub fn add(&mut self, waiting: Waiting, stamp: Instant) {
        let stream = (waiting.record - 1) % self.streams.len() as u64;
        self.streams[stream as usize].backlog.push_back((waiting, stamp));
    }

    /// True while a request is wanted that has not arrived yet, because nobody knows when it is due before its
    /// predecessor was issued: a stream has none that could be next.
    pub fn wants_more(&self) -> bool {
        let is_dry = |it: &Stream| !it.is_busy && it.backlog.is_empty();
        self.due == Due::Shift && self.streams.iter().any(is_dry)
    }

    /// When the next request of any can be issued.
    pub fn ready_at(&self) -> Option<Instant> {
        self.streams.iter().filter_map(|stream| stream.ready(self.due)).min()
    }

    /// Takes the next request that can be issued now: its stream, and when it was due.
    pub fn take(&mut self, now: Instant) -> Option<(u32, Waiting, Instant)> {
        let due = self.due;
        let is_ready = |it: &Stream| it.ready(due).is_some_and(|at| at <= now);
        let number = self.streams.iter().position(is_ready)?;
        let stream = &mut self.streams[number];
        let was_due = stream.due(due)?;
        let (waiting, stamp) = stream.backlog.pop_front()?;
        (stream.is_busy, stream.last) = (true, Some((now, stamp)));
        Some((number as u32, waiting, was_due))
    }

    /// A request of a stream has ended.
    pub fn end(&mut self, stream: u32, now: Instant) {
        if let Some(stream) = self.streams.get_mut(stream as usize) {
            (stream.is_busy, stream.ended) = (false, now);
        }
    }

    /// True while something waits.
    pub fn has_backlog(&self) -> bool {
        self.streams.iter().any(|stream| !stream.backlog.is_empty())
    }
}
