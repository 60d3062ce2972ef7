//! What those who wait for long work hear of it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parts in which a piece may tell how far it has come.
pub const PARTS: usize = 1000;

/// How far long work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Pieces that have ended.
    pub done: usize,
    /// All pieces.
    pub total: usize,
    /// How far those have come that are under way, in parts of a piece ([`PARTS`]).
    pub parts: usize,
    /// What is told.
    pub event: Event<'a>,
}

/// What is told of long work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It begins. What was done before is among the pieces that have ended.
    Begins,
    /// A piece under way has come further.
    GoesOn,
    /// The piece of this name has ended.
    Ended(&'a str),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.done, self.total)?;
        match self.event {
            Event::Ended(name) => write!(f, ": {name}"),
            Event::Begins | Event::GoesOn => Ok(()),
        }
    }
}

/// Hears of the beginning of the work, of every piece that ends, and of parts of pieces that tell them, from
/// any thread.
pub type Progress<'a> = &'a (dyn Fn(&Step<'_>) + Sync);

/// Counts pieces of work for somebody who hears of them.
pub(crate) struct Pieces<'a> {
    progress: Progress<'a>,
    done: AtomicUsize,
    total: usize,
    parts: AtomicUsize,
}

impl<'a> Pieces<'a> {
    /// Tells that the work begins, of which `done` pieces were done before.
    pub fn begin(progress: Progress<'a>, done: usize, total: usize) -> Self {
        let pieces =
            Self { progress, done: AtomicUsize::new(done), total, parts: AtomicUsize::new(0) };
        pieces.tell(done, Event::Begins);
        pieces
    }

    /// Tells that a piece has ended.
    pub fn end(&self, name: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(done, Event::Ended(name));
    }

    /// A piece that tells how far it has come.
    pub fn piece(&self) -> Piece<'_> {
        Piece { pieces: self, parts: AtomicUsize::new(0) }
    }

    fn tell(&self, done: usize, event: Event<'_>) {
        let parts = self.parts.load(Ordering::Relaxed);
        (self.progress)(&Step { done, total: self.total, parts, event });
    }
}

/// A piece of work under way.
pub(crate) struct Piece<'a> {
    pieces: &'a Pieces<'a>,
    parts: AtomicUsize,
}

impl Piece<'_> {
    /// Tells that this share of it is done, if that is a part more than was told.
    pub fn reach(&self, share: f64) {
        let parts = ((share * PARTS as f64) as usize).min(PARTS);
        let before = self.parts.fetch_max(parts, Ordering::Relaxed);
        if parts > before {
            self.pieces.parts.fetch_add(parts - before, Ordering::Relaxed);
            self.pieces.tell(self.pieces.done.load(Ordering::Relaxed), Event::GoesOn);
        }
    }

    /// Tells that it has ended.
    pub fn end(self, name: &str) {
        self.pieces.parts.fetch_sub(self.parts.into_inner(), Ordering::Relaxed);
        self.pieces.end(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn parts_of_pieces_are_told_once_and_go_when_the_piece_ends() {
        let told = Mutex::new(Vec::new());
        let hear = |step: &Step<'_>| {
            let is_end = matches!(step.event, Event::Ended(_));
            told.lock().expect("nobody panics").push((step.done, step.parts, is_end));
        };
        let pieces = Pieces::begin(&hear, 1, 3);
        let (first, second) = (pieces.piece(), pieces.piece());
        first.reach(0.5);
        second.reach(0.25);
        first.reach(0.5003);
        first.reach(0.4);
        first.reach(7.0);
        first.end("first");
        second.end("second");
        let expected = [
            (1, 0, false),
            (1, 500, false),
            (1, 750, false),
            (1, 1250, false),
            (2, 250, true),
            (3, 0, true),
        ];
        assert_eq!(*told.lock().expect("nobody panics"), expected);
    }
}
