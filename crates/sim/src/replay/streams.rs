//! The streams of a replay: each issues one request after another, when it is due and its predecessor has ended.

use super::waiting::Waiting;
use imbrex_core::units::{Duration, Instant};
use imbrex_report::{Dependencies, Due};
use imbrex_traces::TraceRecord;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The streams, and what waits in them.
pub(super) struct Streams {
    due: Due,
    dependencies: Dependencies,
    streams: Vec<Stream>,
}

#[derive(Clone, Default)]
struct Stream {
    /// Its requests that were not issued.
    backlog: VecDeque<Waiting>,
    is_busy: bool,
    /// When its last request was issued, and the time stamp of that.
    last: Option<(Instant, Instant)>,
    /// When that ended.
    ended: Instant,
    /// When the last request that has joined it ended, as the trace says.
    recorded_end_ns: Option<u64>,
}

impl Stream {
    /// When the next request of it is due, if there is one.
    fn due(&self, due: Due) -> Option<Instant> {
        let stamp = self.backlog.front()?.at;
        Some(match (due, self.last) {
            (Due::Absolute, _) | (Due::Shift, None) => stamp,
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
    pub fn new(streams: u32, due: Due, dependencies: Dependencies) -> Streams {
        Streams { due, dependencies, streams: vec![Stream::default(); streams as usize] }
    }

    /// The stream that a record, the one of this number, belongs to; none where the record does not say.
    pub fn of(&mut self, record: &TraceRecord, number: u64) -> Option<u32> {
        if self.dependencies == Dependencies::InTurn {
            return Some(((number - 1) % self.streams.len() as u64) as u32);
        }
        let ends_ns = record.time_ns.saturating_add(record.response_ns?);
        let ended = |it: &Stream| it.recorded_end_ns.filter(|end_ns| *end_ns <= record.time_ns);
        let all = || self.streams.iter().enumerate();
        let predecessor = all().filter_map(|(at, it)| Some((ended(it)?, Reverse(at)))).max();
        let stream = match predecessor {
            Some((_, Reverse(at))) => at,
            // Those without a request come first.
            None => all().min_by_key(|(_, it)| it.recorded_end_ns)?.0,
        };
        let joined = &mut self.streams[stream];
        joined.recorded_end_ns = joined.recorded_end_ns.max(Some(ends_ns));
        Some(stream as u32)
    }

    /// A request joins the one that it belongs to.
    pub fn add(&mut self, waiting: Waiting) {
        self.streams[waiting.stream as usize].backlog.push_back(waiting);
    }

    /// When the next request of any can be issued.
    pub fn ready_at(&self) -> Option<Instant> {
        self.streams.iter().filter_map(|stream| stream.ready(self.due)).min()
    }

    /// Takes the next request that can be issued now, and when it was due.
    pub fn take(&mut self, now: Instant) -> Option<(Waiting, Instant)> {
        let due = self.due;
        let is_ready = |it: &Stream| it.ready(due).is_some_and(|at| at <= now);
        let number = self.streams.iter().position(is_ready)?;
        let stream = &mut self.streams[number];
        let was_due = stream.due(due)?;
        let waiting = stream.backlog.pop_front()?;
        (stream.is_busy, stream.last) = (true, Some((now, waiting.at)));
        Some((waiting, was_due))
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
