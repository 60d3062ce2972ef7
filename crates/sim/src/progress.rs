//! What those who wait for long work hear of it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How far long work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Pieces that have ended.
    pub done: usize,
    /// All pieces.
    pub total: usize,
    /// The piece that has just ended. None when the work begins; what was done before is in `done` then.
    pub name: Option<&'a str>,
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.done, self.total)?;
        match self.name {
            Some(name) => write!(f, ": {name}"),
            None => Ok(()),
        }
    }
}

/// Hears of the beginning of the work and of every piece that ends, from any thread.
pub type Progress<'a> = &'a (dyn Fn(&Step<'_>) + Sync);

/// Counts pieces of work for somebody who hears of them.
pub(crate) struct Pieces<'a> {
    progress: Progress<'a>,
    done: AtomicUsize,
    total: usize,
}

impl<'a> Pieces<'a> {
    /// Tells that the work begins, of which `done` pieces were done before.
    pub fn begin(progress: Progress<'a>, done: usize, total: usize) -> Self {
        progress(&Step { done, total, name: None });
        Self { progress, done: AtomicUsize::new(done), total }
    }

    /// Tells that a piece has ended.
    pub fn end(&self, name: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(&Step { done, total: self.total, name: Some(name) });
    }
}
