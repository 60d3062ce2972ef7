//! What a scheduler hands down, for somebody who watches it for a while.

use super::policy::Why;
use crate::extent::Extent;
use crate::operation::Cause;
use crate::units::Instant;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// A request that went to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// When it had come to the scheduler.
    pub arrived: Instant,
    /// When it went.
    pub dispatched: Instant,
    /// Its blocks, in the addresses of the disk.
    pub extent: Extent,
    /// It only reads.
    pub is_read: bool,
    /// What it is for.
    pub cause: Cause,
    /// Why it was its turn.
    pub why: Why,
}

/// The dispatches of a time that is watched. A scheduler and whoever watches it share one; nothing depends on it.
#[derive(Clone, Debug, Default)]
pub struct DispatchLog(Rc<Watch>);

#[derive(Debug, Default)]
struct Watch {
    from: Cell<Instant>,
    until: Cell<Instant>,
    most: Cell<usize>,
    left_out: Cell<u64>,
    dispatches: RefCell<Vec<Dispatch>>,
}

impl DispatchLog {
    /// Keeps what is dispatched from one instant up to another, so many at most.
    pub fn watch(&self, from: Instant, until: Instant, most: usize) {
        self.0.from.set(from);
        self.0.until.set(until);
        self.0.most.set(most);
    }

    /// The dispatches, in their order, and how many there were beyond those that are kept.
    pub fn take(&self) -> (Vec<Dispatch>, u64) {
        (self.0.dispatches.take(), self.0.left_out.take())
    }

    /// A request goes to the disk.
    #[inline]
    pub(super) fn note(&self, dispatch: Dispatch) {
        if dispatch.dispatched < self.0.until.get() {
            self.keep(dispatch);
        }
    }

    #[cold]
    fn keep(&self, dispatch: Dispatch) {
        if dispatch.dispatched < self.0.from.get() {
            return;
        }
        let mut dispatches = self.0.dispatches.borrow_mut();
        match dispatches.len() < self.0.most.get() {
            true => dispatches.push(dispatch),
            false => self.0.left_out.set(self.0.left_out.get() + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dispatched_in_the_time_is_kept_and_the_rest_counted() {
        let log = DispatchLog::default();
        let at = |ms| Instant(ms * 1_000_000);
        let note = |ms| {
            let extent = Extent::new(ms, 1);
            let (arrived, dispatched) = (at(0), at(ms));
            let (is_read, cause, why) = (true, Cause::Host, Why::Next);
            log.note(Dispatch { arrived, dispatched, extent, is_read, cause, why });
        };
        note(0);
        log.watch(at(10), at(20), 2);
        [9, 10, 11, 12, 19, 20].into_iter().for_each(note);
        let (kept, left_out) = log.take();
        let starts: Vec<u64> = kept.iter().map(|it| it.extent.start.0).collect();
        assert_eq!((starts, left_out), (vec![10, 11], 2));
        assert_eq!(log.take(), (vec![], 0));
    }
}
