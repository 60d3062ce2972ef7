//! Flushes of one port, shared by all who need one.

use crate::durability::FlushTicket;
use crate::layer::Port;
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// The flushes of a port that is not the journal's own: one at a time.
///
/// Whoever asks gets the next flush that begins. It covers every operation of the port that had
/// completed before. Whoever *rides* gets the next flush too, but has not asked for it: it begins
/// when somebody else asks.
#[derive(Debug, SavedValue)]
pub struct PortFlushes<T> {
    port: Port,
    /// Flushes that have begun, and flushes that are done.
    begun: u64,
    done: u64,
    /// Somebody has asked for a flush that has not begun.
    is_wanted: bool,
    /// Tokens that are given back when a flush is done, in the order of asking.
    asked: VecDeque<(FlushTicket, T)>,
    /// Riders of the next flush, of the flush in flight, and of flushes that are done.
    waiting: VecDeque<T>,
    riding: VecDeque<T>,
    arrived: VecDeque<T>,
}

impl<T> PortFlushes<T> {
    /// No flush was asked for yet.
    pub fn new(port: Port) -> PortFlushes<T> {
        PortFlushes {
            port,
            begun: 0,
            done: 0,
            is_wanted: false,
            asked: VecDeque::new(),
            waiting: VecDeque::new(),
            riding: VecDeque::new(),
            arrived: VecDeque::new(),
        }
    }

    /// The port that is flushed.
    pub fn port(&self) -> Port {
        self.port
    }

    /// Asks for a flush that has not begun yet.
    pub fn ask(&mut self) -> FlushTicket {
        self.is_wanted = true;
        self.next()
    }

    /// Asks for a flush, after which the token is given back.
    pub(super) fn ask_for(&mut self, token: T) {
        let ticket = self.ask();
        self.asked.push_back((ticket, token));
    }

    /// Gives the token back after the next flush, which somebody else has to ask for.
    pub(super) fn ride(&mut self, token: T) {
        self.waiting.push_back(token);
    }

    /// True when somebody has asked for a flush that has not begun.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// The flush that would cover what has completed by now, whether it is asked for or not.
    pub fn next(&self) -> FlushTicket {
        FlushTicket(self.begun + 1)
    }

    /// True when the flush is done.
    pub fn is_done(&self, ticket: FlushTicket) -> bool {
        ticket.0 <= self.done
    }

    /// True when no flush is in flight and none is wanted.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.begun == self.done && !self.is_wanted
    }

    /// Riders of a flush that has not begun.
    pub fn riders_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True when nobody rides.
    pub fn has_no_riders(&self) -> bool {
        self.waiting.is_empty() && self.riding.is_empty() && self.arrived.is_empty()
    }

    /// True when a flush is to be issued now; it has begun then.
    #[inline]
    pub(super) fn begin(&mut self) -> bool {
        let begins = self.is_wanted && self.begun == self.done;
        if begins {
            self.is_wanted = false;
            self.begun += 1;
            self.riding.append(&mut self.waiting);
        }
        begins
    }

    /// The flush in flight has completed.
    pub(super) fn complete(&mut self) {
        assert!(self.begun > self.done, "a flush completed that never began");
        self.done = self.begun;
        self.arrived.append(&mut self.riding);
    }

    /// The next token whose flush is done: riders first.
    #[inline]
    pub(super) fn next_flushed(&mut self) -> Option<T> {
        if let Some(token) = self.arrived.pop_front() {
            return Some(token);
        }
        let (ticket, _) = self.asked.front()?;
        match self.is_done(*ticket) {
            true => self.asked.pop_front().map(|(_, token)| token),
            false => None,
        }
    }

    /// Any token that has asked, oldest first.
    pub(super) fn pop_asked(&mut self) -> Option<T> {
        self.asked.pop_front().map(|(_, token)| token)
    }

    /// Any rider, newest first.
    pub(super) fn pop_rider(&mut self) -> Option<T> {
        self.waiting.pop_back().or_else(|| self.riding.pop_back())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushes() -> PortFlushes<u32> {
        PortFlushes::new(Port(1))
    }

    #[test]
    fn who_asks_while_one_is_in_flight_gets_the_next() {
        let mut flushes = flushes();
        let first = flushes.ask();
        assert!(flushes.begin() && !flushes.begin());
        let second = flushes.ask();
        assert!(second > first && !flushes.begin());
        flushes.complete();
        assert!(flushes.is_done(first) && !flushes.is_done(second));
        assert!(flushes.begin());
        flushes.complete();
        assert!(flushes.is_done(second) && flushes.is_idle());
    }

    #[test]
    fn a_rider_waits_for_the_flush_that_begins_after_it() {
        let mut flushes = flushes();
        flushes.ride(7);
        assert!(!flushes.begin(), "a rider asks for nothing");
        flushes.ask_for(1);
        assert!(flushes.begin());
        flushes.ride(8);
        assert_eq!(flushes.next_flushed(), None);
        flushes.complete();
        assert_eq!(flushes.next_flushed(), Some(7));
        assert_eq!(flushes.next_flushed(), Some(1));
        assert_eq!(flushes.next_flushed(), None);
        flushes.ask();
        assert!(flushes.begin());
        flushes.complete();
        assert_eq!(flushes.next_flushed(), Some(8));
        assert!(flushes.has_no_riders());
    }

    #[test]
    fn everybody_who_waits_can_be_taken_out() {
        let mut flushes = flushes();
        flushes.ride(1);
        flushes.ask_for(2);
        assert!(flushes.begin());
        flushes.ride(3);
        flushes.ask_for(4);
        assert_eq!(flushes.pop_asked(), Some(2));
        assert_eq!(flushes.pop_asked(), Some(4));
        assert_eq!(flushes.pop_asked(), None);
        assert_eq!(flushes.pop_rider(), Some(3));
        assert_eq!(flushes.pop_rider(), Some(1));
        assert_eq!(flushes.pop_rider(), None);
    }
}
