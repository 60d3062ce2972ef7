//! The requests of a blktrace that wait to be given out: late events are put in their place, completions find their request.

use std::collections::BTreeMap;

use super::record::{TraceOperation, TraceRecord};

/// Requests that are kept back. A completion that comes after this many later requests is not found any more.
const WINDOW_REQUESTS: usize = 4096;

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub device: u32,
    pub operation: TraceOperation,
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

impl Place {
    fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.length_bytes
    }
}

/// Time and number of a request: their order is the order in which requests are given out.
type Key = (u64, u64);
/// Device, operation and first byte, then the request.
type OpenKey = (u32, TraceOperation, u64, Key);

/// Requests in order of time.
#[derive(Default)]
pub(super) struct Window {
    requests: BTreeMap<Key, (TraceRecord, Place)>,
    /// Those that are not completed yet, and where they end.
    open: BTreeMap<OpenKey, u64>,
    next_number: u64,
    found: Vec<OpenKey>,
}

impl Window {
    pub(super) fn is_full(&self) -> bool {
        self.requests.len() >= WINDOW_REQUESTS
    }

    pub(super) fn push(&mut self, record: TraceRecord, place: Place, can_complete: bool) {
        let key = (record.time_ns, self.next_number);
        self.next_number += 1;
        self.requests.insert(key, (record, place));
        if can_complete {
            self.open.insert(open_key(&place, key), place.end_bytes());
        }
    }

    /// The earliest request.
    pub(super) fn pop(&mut self) -> Option<TraceRecord> {
        let (key, (record, place)) = self.requests.pop_first()?;
        self.open.remove(&open_key(&place, key));
        Some(record)
    }

    /// Gives the requests that a completion covers their response time. A completion covers every request that was merged
    /// into its own; of several to one place it completes the oldest. A request of which a part alone is completed has no
    /// response time.
    pub(super) fn complete(&mut self, place: Place, time_ns: u64) {
        let start = (place.device, place.operation, place.offset_bytes, (0, 0));
        let end_bytes = place.end_bytes().max(place.offset_bytes + 1);
        let end = (place.device, place.operation, end_bytes, (0, 0));
        let mut last_offset_bytes = None;
        for (&key, _) in self.open.range(start..end) {
            if last_offset_bytes != Some(key.2) {
                last_offset_bytes = Some(key.2);
                self.found.push(key);
            }
        }
        for key in self.found.drain(..) {
            let is_whole = self.open.remove(&key).is_some_and(|end| end <= end_bytes);
            let request = self.requests.get_mut(&key.3).filter(|_| is_whole);
            if let Some((record, _)) = request {
                record.response_ns = time_ns.checked_sub(record.time_ns);
            }
        }
    }
}

fn open_key(place: &Place, key: Key) -> OpenKey {
    (place.device, place.operation, place.offset_bytes, key)
}
