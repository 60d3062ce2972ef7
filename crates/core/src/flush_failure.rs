//! A flush that has failed, as those remember it who share a node.

use crate::error::IoError;
use crate::operation::Operation;
use crate::saved::Saved;
use alloc::rc::Rc;
use core::cell::Cell;

/// What all who share a node know of its flushes: the first that failed, through whichever of them.
///
/// The system reports a failed flush once, to whoever asked. What the others have written may be
/// gone with it, so their flushes must fail too.
#[derive(Clone, Debug, Default, Saved)]
pub struct FlushFailure(Rc<Cell<Option<IoError>>>);

impl FlushFailure {
    /// The flush that has failed, for an operation that such a failure concerns: a flush, or a forced write.
    pub(crate) fn of(&self, operation: Operation) -> Option<IoError> {
        let is_concerned = operation == Operation::Flush || operation.is_durable();
        self.0.get().filter(|_| is_concerned)
    }

    /// A flush has ended. Returns how it is answered: the failure of one that was under way at the same time was told to
    /// that one alone.
    pub(crate) fn flush_ended(&self, result: Result<(), IoError>) -> Result<(), IoError> {
        if let Err(error) = result {
            self.0.set(self.0.get().or(Some(error)));
            return result;
        }
        self.0.get().map_or(Ok(()), Err)
    }

    /// A new disk has taken the place of the node.
    pub(crate) fn forget(&self) {
        self.0.set(None);
    }
}
