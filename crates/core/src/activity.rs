//! What nodes do that requests of the host may feel, for whoever counts what it does to them.

use crate::saved::{Saved, SavedReader, SavedWriter};
use crate::state::StateError;
use crate::words::Words;
use alloc::rc::Rc;
use core::cell::Cell;

crate::words! {
    /// Something that a node does for a while. Of several that a request has felt, the first says what it waited for.
    pub enum Activity {
        /// A controller holds requests back.
        Hold = "hold",
        /// A translation cleans because a write has no room.
        BlockingCleaning = "blocking_cleaning",
        /// A translation cleans in idle time. It may finish what it has begun when a request comes.
        IdleCleaning = "idle_cleaning",
    }
}

impl Activity {
    /// How many there are.
    pub const COUNT: usize = Activity::VALUES.len();
}

/// How often each activity has begun and ended, over all nodes of a stack. The stack and whoever watches it share
/// one; no layer depends on it.
#[derive(Clone, Debug, Default)]
pub struct Activities(Rc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: [Cell<u64>; Activity::COUNT],
    ended: [Cell<u64>; Activity::COUNT],
    changes: Cell<u64>,
}

/// An instant, as [`Activities`] know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityMark([u64; Activity::COUNT]);

impl Activities {
    /// One more node does it.
    pub(crate) fn begin(&self, activity: Activity) {
        let begun = &self.0.begun[activity as usize];
        begun.set(begun.get() + 1);
        self.change();
    }

    /// A node does it no more.
    pub(crate) fn end(&self, activity: Activity) {
        let ended = &self.0.ended[activity as usize];
        ended.set(ended.get() + 1);
        self.change();
    }

    fn change(&self) {
        self.0.changes.set(self.0.changes.get() + 1);
    }

    /// Goes up whenever an activity begins or ends.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.0.changes.get()
    }

    /// How many nodes do it now.
    pub fn nodes(&self, activity: Activity) -> u64 {
        self.0.begun[activity as usize].get() - self.0.ended[activity as usize].get()
    }

    /// Now, to be asked about later.
    pub fn mark(&self) -> ActivityMark {
        ActivityMark(self.0.ended.each_ref().map(Cell::get))
    }

    /// The first of the activities that a node did at the instant of a mark, or at any time since then.
    pub fn since(&self, mark: ActivityMark) -> Option<Activity> {
        let was_on = |activity: &Activity| {
            let activity = *activity as usize;
            self.0.begun[activity].get() > mark.0[activity]
        };
        Activity::VALUES.iter().copied().find(was_on)
    }
}

/// Whoever shares it sees the state that was taken back.
impl Saved for Activities {
    fn save_into(&self, to: &mut SavedWriter) {
        let cells = self.0.begun.iter().chain(&self.0.ended);
        cells.for_each(|cell| to.put_u64(cell.get()));
    }

    fn load_from(&mut self, from: &mut SavedReader<'_>) -> Result<(), StateError> {
        for cell in self.0.begun.iter().chain(&self.0.ended) {
            cell.set(from.take_u64()?);
        }
        // Whoever has looked before looks again.
        self.change();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_on_at_any_time_since_a_mark_is_known() {
        let activities = Activities::default();
        let before = activities.mark();
        assert_eq!(activities.since(before), None);
        activities.begin(Activity::IdleCleaning);
        let meanwhile = activities.mark();
        activities.end(Activity::IdleCleaning);
        let after = activities.mark();
        assert_eq!(activities.since(before), Some(Activity::IdleCleaning));
        assert_eq!(activities.since(meanwhile), Some(Activity::IdleCleaning));
        assert_eq!(activities.since(after), None);
        // Two nodes do it; one goes on.
        activities.begin(Activity::BlockingCleaning);
        activities.begin(Activity::BlockingCleaning);
        activities.end(Activity::BlockingCleaning);
        let one_goes_on = activities.mark();
        assert_eq!(activities.since(one_goes_on), Some(Activity::BlockingCleaning));
        assert_eq!(activities.nodes(Activity::BlockingCleaning), 1);
        activities.begin(Activity::Hold);
        assert_eq!(activities.since(after), Some(Activity::Hold), "the first of both");
        assert_eq!(activities.changes(), 6);
    }
}
