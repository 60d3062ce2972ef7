//! Places that may be used again once the record that freed them is durable.

use crate::durability::{Lsn, LsnQueue};
use crate::saved::SavedValue;

/// Places that hold what a power cut may still bring back.
///
/// The data in a place is needed until the record that replaced it is durable, for a power cut may
/// undo the record. The place is therefore held back until then.
#[derive(Debug, SavedValue)]
pub struct Quarantine<P> {
    held: LsnQueue<P>,
    /// The greatest number that a place in the queue waits for; the queue rises.
    last: Lsn,
}

impl<P> Default for Quarantine<P> {
    fn default() -> Quarantine<P> {
        Quarantine { held: LsnQueue::default(), last: Lsn(0) }
    }
}

impl<P> Quarantine<P> {
    /// Nobody uses a place any more. Gives it back when it may be used again at once: when every
    /// record before `until` is among those before `durable_before`, which are durable. Holds it
    /// otherwise.
    pub fn hold(&mut self, place: P, until: Lsn, durable_before: Lsn) -> Option<P> {
        if until <= durable_before {
            return Some(place);
        }
        self.last = self.last.max(until);
        self.held.push(self.last, place);
        None
    }

    /// The next place that may be used again, in the order in which they came.
    pub fn next_free(&mut self, durable_before: Lsn) -> Option<P> {
        self.held.pop_up_to(durable_before)
    }

    /// True when no place is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_out_in_order_when_their_records_are_durable() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.hold('a', Lsn(3), Lsn(3)), Some('a'));
        assert_eq!(quarantine.hold('b', Lsn(6), Lsn(3)), None);
        assert_eq!(quarantine.hold('c', Lsn(4), Lsn(3)), None);
        assert_eq!(quarantine.next_free(Lsn(5)), None);
        assert_eq!(quarantine.next_free(Lsn(6)), Some('b'));
        assert_eq!(quarantine.next_free(Lsn(6)), Some('c'));
        assert!(quarantine.is_empty());
    }
}
