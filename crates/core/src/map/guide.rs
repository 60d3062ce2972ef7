//! A short cut into a sorted list of starts.

use alloc::vec::Vec;

/// Which starts of a list may be the last one at or before a number: few are left to be searched.
///
/// Numbers are divided into runs of equal length, a power of two.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guide {
    /// For the first number of each run the last start at or before it, then the last start of all.
    of_runs: Vec<u32>,
    run_log2: u32,
}

impl Guide {
    /// A guide to `starts` in ascending order, of which the first is 0, for the numbers before `end`, in runs of
    /// 2^`run_log2`.
    pub fn new(starts: impl IntoIterator<Item = u64>, end: u64, run_log2: u32) -> Guide {
        let (mut of_runs, mut next_run, mut last) = (Vec::new(), 0, 0);
        let ends = starts.into_iter().skip(1).chain([end]);
        for (start, end) in (0..).zip(ends) {
            while next_run < end {
                of_runs.push(start);
                next_run += 1 << run_log2;
            }
            last = start;
        }
        of_runs.push(last);
        Guide { of_runs, run_log2 }
    }

    /// The first and the last of the starts that may be the one of a number. Those behind the end are as the last run.
    #[inline]
    pub fn candidates(&self, number: u64) -> (usize, usize) {
        let run = ((number >> self.run_log2) as usize).min(self.of_runs.len() - 2);
        (self.of_runs[run] as usize, self.of_runs[run + 1] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_start_of_each_number_is_among_its_candidates() {
        let mut rng = Rng::new(9, 0);
        for round in 1..200 {
            let most = 1 << rng.below(8);
            // Some begin where the one before does.
            let lengths: Vec<u64> = (0..round).map(|_| rng.below(most)).collect();
            let end = lengths.iter().sum::<u64>() + 1;
            let starts: Vec<u64> = lengths
                .iter()
                .scan(0, |next, length| {
                    let start = *next;
                    *next += length;
                    Some(start)
                })
                .collect();
            let guide = Guide::new(starts.iter().copied(), end, rng.below(8) as u32);
            for number in 0..end + 300 {
                let wanted = starts.partition_point(|start| *start <= number) - 1;
                let (first, last) = guide.candidates(number);
                assert!((first..=last).contains(&wanted), "{number} of {starts:?}: {guide:?}");
            }
        }
    }
}
