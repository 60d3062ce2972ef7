//! What the controller sees of a few requests: how fast they come, how long they take, and how much of the media cache
//! they fill (Idler, IEEE TC 2020).

use super::ghost::Used;
use crate::saved::SavedValue;
use crate::units::{Duration, Instant};

/// Requests that are looked at for a decision, one after another in the order of their arrival.
#[derive(Clone, Debug, SavedValue)]
pub struct Sample {
    size: u32,
    taken_in: u32,
    ended: u32,
    first: Instant,
    last: Instant,
    latency_ns: u64,
    /// The share that their writes out of sequence take.
    taken: Used,
}

impl Sample {
    /// An empty one of so many requests, two or more.
    pub fn new(size: u32) -> Sample {
        Sample {
            size,
            taken_in: 0,
            ended: 0,
            first: Instant::ZERO,
            last: Instant::ZERO,
            latency_ns: 0,
            taken: Used::default(),
        }
    }

    /// Takes in a request that arrives now; false when it is full. `taken` is the share of the media cache that the
    /// request takes.
    pub fn take(&mut self, now: Instant, taken: Used) -> bool {
        if self.taken_in == self.size {
            return false;
        }
        if self.taken_in == 0 {
            self.first = now;
        }
        self.last = now;
        self.taken_in += 1;
        self.taken.blocks += taken.blocks;
        self.taken.entries += taken.entries;
        true
    }

    /// A request of it has ended.
    pub fn end(&mut self, latency: Duration) {
        self.ended += 1;
        self.latency_ns += latency.0;
    }

    /// True when all of them have ended.
    pub fn is_complete(&self) -> bool {
        self.ended == self.size
    }

    /// T_r: the mean time between two arrivals.
    pub fn between_arrivals(&self) -> Duration {
        let gaps = u64::from(self.size.saturating_sub(1)).max(1);
        Duration(self.last.since(self.first).0 / gaps)
    }

    /// T_lat: the mean latency.
    pub fn latency(&self) -> Duration {
        Duration(self.latency_ns / u64::from(self.size.max(1)))
    }

    /// V_m without the share of execution: the share of the scarcer resource that was taken in a second; 0 where all
    /// came at once.
    pub fn taken_per_s(&self, used: Used) -> f64 {
        let time_ns = u64::from(self.size) * self.between_arrivals().0;
        match time_ns {
            0 => 0.0,
            _ => self.taken.of_the_scarcer(used) * 1e9 / time_ns as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_ten_requests() {
        let mut sample = Sample::new(10);
        for number in 0..10 {
            let share = Used { blocks: 0.001, entries: if number < 2 { 0.01 } else { 0.0 } };
            assert!(sample.take(Instant(1_000_000_000 + number * 90_000_000), share));
        }
        assert!(!sample.take(Instant(9_000_000_000), Used::default()), "it is full");
        for number in 1..=10 {
            assert!(!sample.is_complete());
            sample.end(Duration::from_ms(number));
        }
        assert!(sample.is_complete());
        // From the first to the tenth 810 ms, nine gaps.
        assert_eq!(sample.between_arrivals(), Duration::from_ms(90));
        assert_eq!(sample.latency(), Duration::from_us(5500));
        // 0.02 of the entries, 0.01 of the blocks in 900 ms.
        let scarcer = |blocks| Used { blocks, entries: 0.5 };
        let per_s = |used| (sample.taken_per_s(used) * 1e6).round();
        assert_eq!(per_s(scarcer(0.5)), 22_222.0);
        assert_eq!(per_s(scarcer(0.6)), 11_111.0);
    }

    #[test]
    fn what_comes_at_once_takes_nothing() {
        let mut sample = Sample::new(2);
        let share = Used { blocks: 0.1, entries: 0.1 };
        assert!(sample.take(Instant(5), share) && sample.take(Instant(5), share));
        assert_eq!(sample.taken_per_s(share), 0.0);
    }
}
