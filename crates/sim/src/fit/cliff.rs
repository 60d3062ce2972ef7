//! The moment from which a drive has to clean.

use super::FitError;
use super::log::Log;
use serde::Serialize;

/// A request that takes this long waited for the drive's own work: no positioning does.
const STALL_NS: u64 = 250_000_000;
/// Stalls that must follow closely: cleaning goes on, other stalls come alone.
const FOLLOWING: usize = 10;

/// Where stalls begin to follow one another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cliff {
    /// Index of the first request that waited for a clean.
    pub at: usize,
    /// Indices of it and of all requests with a stall after it.
    #[serde(skip)]
    pub stalls: Vec<usize>,
}

impl Cliff {
    /// Looks for the cliff. Drives also stall at regular intervals to save their map, long before they
    /// clean; the cliff is where the gaps between stalls become much shorter than those.
    ///
    /// # Errors
    /// When the drive never had to clean.
    pub fn find(log: &Log) -> Result<Cliff, FitError> {
        let stalls: Vec<usize> = (0..log.entries.len())
            .filter(|index| log.entries[*index].latency_ns >= STALL_NS)
            .collect();
        let gaps: Vec<usize> = stalls.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut before: Vec<usize> = Vec::new();
        for first in 0..stalls.len() {
            let following = &gaps[first.min(gaps.len())..(first + FOLLOWING).min(gaps.len())];
            if following.len() < FOLLOWING {
                break;
            }
            // From the start of the log to the first stall counts as a gap.
            let usual = match before.len() {
                0..3 => stalls[0],
                _ => median(&before),
            };
            // The next one has to be as near: the last regular stall comes shortly before the cliff.
            if median(following) * 2 < usual && following[0] * 2 < usual {
                return Ok(Cliff { at: stalls[first], stalls: stalls[first..].to_vec() });
            }
            before.push(gaps[first]);
        }
        Err(FitError::log(
            &log.path,
            format!(
                "{} of {} writes waited longer than {} ms, and never {FOLLOWING} close together: the \
                 persistent cache did not fill; accepted: a longer log, of writes that go past it",
                stalls.len(),
                log.entries.len(),
                STALL_NS / 1_000_000
            ),
        ))
    }
}

pub(super) fn median(values: &[usize]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::super::log::LogEntry;
    use super::*;

    fn log(stalls: &[usize]) -> Log {
        let entries = (0..20_000).map(|index| LogEntry {
            latency_ns: if stalls.contains(&index) { 400_000_000 } else { 5_000_000 },
            is_write: true,
            bytes: 4096,
            offset: 0,
        });
        Log { path: "x.log".to_string(), entries: entries.collect() }
    }

    #[test]
    fn regular_stalls_are_not_the_cliff() {
        let mut stalls: Vec<usize> = (1..=10).map(|i| i * 1000).collect();
        assert!(Cliff::find(&log(&stalls)).is_err());
        stalls.extend((0..50).map(|i| 10_500 + i * 20));
        let cliff = Cliff::find(&log(&stalls)).unwrap();
        assert_eq!(cliff.at, 10_500);
        assert_eq!(cliff.stalls.len(), 50);
    }

    #[test]
    fn without_other_stalls_the_first_is_the_cliff() {
        let stalls: Vec<usize> = (0..50).map(|i| 9_000 + i * 200).collect();
        assert_eq!(Cliff::find(&log(&stalls)).unwrap().at, 9_000);
    }
}
