//! First come, first served: the older of the oldest command and the oldest write in the cache.

use super::queue::{Choice, Queue};

pub(super) fn choose(queue: &Queue<'_>) -> Choice {
    match (queue.commands().next(), queue.cached().next()) {
        (Some(command), Some(cached)) if cached.sequence < command.sequence => Choice::Cached(0),
        (None, _) => Choice::Cached(0),
        _ => Choice::Command(0),
    }
}
