//! Tokens that wait for records of the journal to be written, or to be durable.

use crate::durability::{FlushTicket, Lsn, LsnQueue};
use crate::saved::SavedValue;
use alloc::collections::VecDeque;

/// Who waits for the journal.
#[derive(Debug, SavedValue)]
pub(super) struct Answers<T> {
    /// Every record was appended before this place.
    recorded_before: Lsn,
    /// Every record before this place has been written.
    written_before: Lsn,
    /// Tokens that wait until every record before a place is written.
    after_written: LsnQueue<T>,
    /// Every flush up to and with this one is done.
    flushed: FlushTicket,
    /// Tokens that wait for a flush, in the order of asking.
    after_flushed: VecDeque<(FlushTicket, T)>,
}

impl<T> Default for Answers<T> {
    fn default() -> Answers<T> {
        Answers {
            recorded_before: Lsn(0),
            written_before: Lsn(0),
            after_written: LsnQueue::default(),
            flushed: FlushTicket(0),
            after_flushed: VecDeque::new(),
        }
    }
}

impl<T> Answers<T> {
    /// A record was appended at this place.
    #[inline]
    pub fn recorded(&mut self, place: Lsn) {
        self.recorded_before = Lsn(place.0 + 1);
    }

    /// Every record up to and with this one is written.
    #[inline]
    pub fn written(&mut self, last: Lsn) {
        self.written_before = Lsn(last.0 + 1);
    }

    /// Every flush up to and with this one is done.
    #[inline]
    pub fn flushed(&mut self, ticket: FlushTicket) {
        self.flushed = ticket;
    }

    /// True when the flush is done.
    #[inline]
    pub fn is_flushed(&self, ticket: FlushTicket) -> bool {
        ticket <= self.flushed
    }

    /// True when every record appended so far is written, and nobody waits.
    pub fn is_all_written(&self) -> bool {
        self.recorded_before <= self.written_before && self.after_written.is_empty()
    }

    /// The token waits until every record appended so far is written.
    pub fn await_written(&mut self, token: T) {
        self.after_written.push(self.recorded_before, token);
    }

    /// The token waits for a flush.
    pub fn await_flushed(&mut self, ticket: FlushTicket, token: T) {
        self.after_flushed.push_back((ticket, token));
    }

    /// The next token whose records are written.
    #[inline]
    pub fn next_written(&mut self) -> Option<T> {
        self.after_written.pop_up_to(self.written_before)
    }

    /// The next token whose flush is done.
    #[inline]
    pub fn next_flushed(&mut self) -> Option<T> {
        let (ticket, _) = self.after_flushed.front()?;
        match self.is_flushed(*ticket) {
            true => self.after_flushed.pop_front().map(|(_, token)| token),
            false => None,
        }
    }

    /// Any token: those that wait for records first, the oldest first.
    pub fn pop(&mut self) -> Option<T> {
        let flushed = &mut self.after_flushed;
        self.after_written.pop().or_else(|| flushed.pop_front().map(|(_, token)| token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_waits_for_the_newest_record_before_it() {
        let mut answers = Answers::default();
        answers.await_written('a');
        assert_eq!(answers.next_written(), Some('a'), "no record was before it");
        answers.recorded(Lsn(3));
        answers.await_written('b');
        answers.written(Lsn(2));
        assert_eq!(answers.next_written(), None);
        answers.written(Lsn(3));
        assert_eq!(answers.next_written(), Some('b'));
    }

    #[test]
    fn a_flush_gives_back_its_tokens_and_those_of_earlier_ones() {
        let mut answers = Answers::default();
        answers.await_flushed(FlushTicket(1), 'a');
        answers.await_flushed(FlushTicket(2), 'b');
        answers.await_flushed(FlushTicket(3), 'c');
        assert_eq!(answers.next_flushed(), None);
        answers.flushed(FlushTicket(2));
        assert_eq!(answers.next_flushed(), Some('a'));
        assert_eq!(answers.next_flushed(), Some('b'));
        assert_eq!(answers.next_flushed(), None);
        assert!(answers.is_flushed(FlushTicket(2)) && !answers.is_flushed(FlushTicket(3)));
    }

    #[test]
    fn after_a_failure_whoever_waits_for_a_record_comes_first() {
        let mut answers = Answers::default();
        answers.await_flushed(FlushTicket(1), 'a');
        answers.await_written('b');
        assert_eq!(answers.pop(), Some('b'));
        assert_eq!(answers.pop(), Some('a'));
        assert_eq!(answers.pop(), None);
    }
}
