//! Shortest positioning time first: what would be under the head soonest, the older of two that
//! would be at the same time; the oldest command when it was passed over as often as it may be.

use super::queue::{Choice, Head, Queue, State};

#[inline]
pub(super) fn choose(queue: &Queue<'_>, head: &Head<'_>, state: &State) -> Choice {
    if state.is_oldest_due() && queue.has_commands() {
        return Choice::Command(0);
    }
    let mut best = (u64::MAX, Choice::Command(0));
    for (index, command) in queue.commands().enumerate() {
        if let Some(planned_ns) = head.planned_ns_before(best.0, &command) {
            best = (planned_ns, Choice::Command(index));
        }
    }
    for (index, segment) in queue.cached().enumerate() {
        if let Some(planned_ns) = head.planned_ns_before(best.0, &segment) {
            best = (planned_ns, Choice::Cached(index));
        }
    }
    best.1
}
