//! Records that wait until what comes before them has ended.

use super::waiting::Waiting;
use std::cell::Cell;
use std::rc::Rc;

/// Holds back the records behind a number; none until it is told one.
pub(super) struct Hold {
    after: Rc<Cell<u64>>,
    /// The first of those, once it was read.
    first: Option<Waiting>,
}

impl Hold {
    /// One that holds nothing back.
    pub fn nothing() -> Hold {
        Hold { after: Rc::new(Cell::new(u64::MAX)), first: None }
    }

    /// The number behind which records are held, for who wants to set it.
    pub fn after(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.after)
    }

    /// Whether the record of this number is held back.
    #[inline]
    pub fn holds(&self, record: u64) -> bool {
        record > self.after.get()
    }

    /// Takes the record that would be issued next, and keeps it: it is the first that is held back.
    #[cold]
    pub fn keep(&mut self, next: &mut Option<Waiting>) {
        self.first = next.take();
    }

    /// Gives the record back, and holds nothing back from then on.
    pub fn release(&mut self) -> Option<Waiting> {
        self.after.set(u64::MAX);
        self.first.take()
    }

    /// How many records of the trace come before the one that is held; none while none is.
    pub fn records_before(&self) -> Option<u64> {
        self.first.map(|waiting| waiting.record - 1)
    }
}
