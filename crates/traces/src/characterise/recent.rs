//! Random and sequential requests, from the last requests of each device.

use std::collections::BTreeMap;

use super::access::Access;
use super::percent;
use super::requests::Randomness;

/// Requests of a device that are remembered, and the distance beyond which a request is random (Li et al., ACM ToS 2023).
const WINDOW: usize = 32;
const NEAR_BYTES: u64 = 128 << 10;

/// The last requests of one device, in a ring.
#[derive(Clone)]
struct Recent {
    offsets: [u64; WINDOW],
    ends: [u64; WINDOW],
    next: usize,
}

#[derive(Default)]
struct Direction {
    requests: u64,
    followed: u64,
    random: u64,
    sequential: u64,
    bytes: u64,
    sequential_bytes: u64,
}

/// Compares each request with those before it on its device.
#[derive(Default)]
pub(super) struct RecentRequests {
    places: BTreeMap<u16, usize>,
    devices: Vec<Recent>,
    last: Option<(u16, usize)>,
    directions: [Direction; 2],
    /// Requests that do not start where the one before ended.
    apart: u64,
}

impl RecentRequests {
    pub(super) fn add(&mut self, access: &Access) {
        let direction = &mut self.directions[access.direction()];
        direction.requests += 1;
        direction.bytes += access.length_bytes;
        let end = access.offset_bytes + access.length_bytes;
        let place = match self.last {
            Some((device, place)) if device == access.device => place,
            _ => {
                let Some(&place) = self.places.get(&access.device) else {
                    self.places.insert(access.device, self.devices.len());
                    // What is not filled yet repeats the first request, which changes no comparison.
                    self.devices.push(Recent {
                        offsets: [access.offset_bytes; WINDOW],
                        ends: [end; WINDOW],
                        next: 1,
                    });
                    return;
                };
                place
            }
        };
        self.last = Some((access.device, place));
        let recent = &mut self.devices[place];
        direction.followed += 1;
        let (mut near, mut follows) = (false, false);
        for (&offset, &end) in recent.offsets.iter().zip(&recent.ends) {
            near |= access.offset_bytes.abs_diff(offset) <= NEAR_BYTES;
            follows |= access.offset_bytes == end;
        }
        // A stream of requests longer than the distance would be random by its offsets alone.
        direction.random += u64::from(!near && !follows);
        if follows {
            direction.sequential += 1;
            direction.sequential_bytes += access.length_bytes;
        }
        let before = (recent.next + WINDOW - 1) % WINDOW;
        self.apart += u64::from(recent.ends[before] != access.offset_bytes);
        recent.offsets[recent.next] = access.offset_bytes;
        recent.ends[recent.next] = end;
        recent.next = (recent.next + 1) % WINDOW;
    }

    /// Number of devices.
    pub(super) fn devices(&self) -> u64 {
        self.devices.len() as u64
    }

    /// Requests that do not start where the one before on their device ended, per cent of those that have one before.
    pub(super) fn apart_percent(&self) -> f64 {
        let [reads, writes] = &self.directions;
        percent(self.apart, reads.followed + writes.followed)
    }

    pub(super) fn finish(&self) -> Randomness {
        let [reads, writes] = &self.directions;
        Randomness {
            random_percent: percent(reads.random + writes.random, reads.followed + writes.followed),
            random_reads_percent: percent(reads.random, reads.followed),
            random_writes_percent: percent(writes.random, writes.followed),
            sequential_reads_percent: percent(reads.sequential, reads.requests),
            sequential_writes_percent: percent(writes.sequential, writes.requests),
            sequential_write_bytes_percent: percent(writes.sequential_bytes, writes.bytes),
        }
    }
}
