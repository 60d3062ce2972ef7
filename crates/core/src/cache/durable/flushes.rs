//! Flushes of the backing, shared by all who need one.

/// Names a flush of the backing; later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct BackingTicket(pub u64);

/// One flush of the backing at a time. Who asks gets the next one that begins, which covers
/// everything completed below before it was asked for.
#[derive(Debug, Default)]
pub(super) struct BackingFlushes {
    begun: u64,
    done: u64,
    wanted: bool,
}

impl BackingFlushes {
    /// Asks for a flush that has not begun yet.
    pub fn ask(&mut self) -> BackingTicket {
        self.wanted = true;
        BackingTicket(self.begun + 1)
    }

    /// True when somebody has asked for a flush that has not begun.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The flush that would cover what has completed by now, asked for or not.
    pub fn next(&self) -> BackingTicket {
        BackingTicket(self.begun + 1)
    }

    /// True when a flush is to begin now; it has begun then.
    pub fn begin(&mut self) -> bool {
        let begins = self.wanted && self.begun == self.done;
        if begins {
            self.wanted = false;
            self.begun += 1;
        }
        begins
    }

    /// The flush in flight has completed.
    pub fn complete(&mut self) {
        assert!(self.begun > self.done, "a flush completed that never began");
        self.done = self.begun;
    }

    /// True when the flush is done.
    pub fn is_done(&self, ticket: BackingTicket) -> bool {
        ticket.0 <= self.done
    }

    /// True when none is in flight and none is wanted.
    pub fn is_idle(&self) -> bool {
        self.begun == self.done && !self.wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_while_one_is_in_flight_gets_the_next() {
        let mut flushes = BackingFlushes::default();
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
}
