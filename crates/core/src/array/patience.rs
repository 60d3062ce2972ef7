//! How long an array waits for a member.

use crate::layer::{Context, Port};
use crate::saved::SavedValue;
use crate::units::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// What was seen of a port.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Seen {
    is_busy: bool,
    /// Operations that had ended there.
    ended: u64,
    /// Nothing has come from there since, though something is awaited.
    since: Instant,
}

/// Finds members of which an operation takes too long: such a member counts as lost.
#[derive(Debug, SavedValue)]
pub struct Patience {
    lost_after: Duration,
    ports: Vec<Seen>,
    /// Operations in the order in which they were sent: when, their number, and which of that number.
    sent: VecDeque<(Instant, u32, u64)>,
}

impl Patience {
    /// With so many nodes below.
    pub fn new(lost_after: Duration, ports: usize) -> Patience {
        let seen = Seen { is_busy: false, ended: 0, since: Instant::ZERO };
        Patience { lost_after, ports: vec![seen; ports], sent: VecDeque::new() }
    }

    /// How long a member may take.
    pub fn lost_after(&self) -> Duration {
        self.lost_after
    }

    /// An operation was sent. `serial` tells it from others that had its number.
    pub fn sent(&mut self, now: Instant, number: u32, serial: u64) {
        self.sent.push_back((now, number, serial));
    }

    /// The next operation that was sent too long ago, whether it has ended or not.
    pub fn next_late(&mut self, now: Instant, is_over: impl Fn(u32, u64) -> bool) -> Option<u32> {
        while let Some(&(at, number, serial)) = self.sent.front() {
            if is_over(number, serial) {
                self.sent.pop_front();
                continue;
            }
            if now < at + self.lost_after {
                return None;
            }
            self.sent.pop_front();
            return Some(number);
        }
        None
    }

    /// Looks at every port. Returns one from which nothing has come for too long.
    pub fn look(&mut self, ctx: &Context<'_>) -> Option<Port> {
        let now = ctx.now();
        let mut late = None;
        for (index, seen) in self.ports.iter_mut().enumerate() {
            let port = Port(index as u8);
            let (is_busy, ended) = (ctx.in_flight(port) > 0, ctx.ended(port));
            // What is sent to a member that hangs makes nobody more patient with it.
            if !is_busy || !seen.is_busy || ended != seen.ended {
                *seen = Seen { is_busy, ended, since: now };
            } else if now >= seen.since + self.lost_after && !ctx.is_lost(port) {
                late.get_or_insert(port);
            }
        }
        late
    }

    /// When to look again.
    pub fn alarm(&self) -> Option<Instant> {
        let busy = self.ports.iter().filter(|seen| seen.is_busy);
        let sent = self.sent.front().map(|(at, ..)| *at);
        let since = busy.map(|seen| seen.since).chain(sent).min()?;
        Some(since + self.lost_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_first_is_late_first() {
        let mut patience = Patience::new(Duration(10), 1);
        patience.sent(Instant(0), 7, 1);
        patience.sent(Instant(3), 8, 2);
        assert_eq!(patience.next_late(Instant(9), |_, _| false), None);
        assert_eq!(patience.alarm(), Some(Instant(10)));
        assert_eq!(patience.next_late(Instant(10), |number, _| number == 7), None);
        assert_eq!(patience.next_late(Instant(13), |number, _| number == 7), Some(8));
        assert_eq!(patience.alarm(), None);
    }
}
