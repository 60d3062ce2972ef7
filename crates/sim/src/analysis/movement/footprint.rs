//! The blocks that a trace touches, numbered without the gaps between them.

/// Runs are merged when there are this many more than after the merge before.
const UNMERGED_MAX: usize = 1 << 16;

/// Gathers the blocks that requests touch.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// Start and end of each run; those from `merged` on are in the order of the requests.
    runs: Vec<(u64, u64)>,
    merged: usize,
}

impl Footprint {
    /// Adds the blocks from `first` to before `end`.
    pub fn add(&mut self, first: u64, end: u64) {
        if first == end {
            return;
        }
        match self.runs[self.merged..].last_mut() {
            Some(last) if last.0 <= first && first <= last.1 => last.1 = last.1.max(end),
            _ => self.runs.push((first, end)),
        }
        // Twice the merged runs at most, so the sorting is paid for by the requests before it.
        if self.runs.len() > 2 * self.merged + UNMERGED_MAX {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.runs.sort_unstable();
        let mut kept = 0;
        for index in 0..self.runs.len() {
            let run = self.runs[index];
            match kept {
                0 => kept = 1,
                _ if run.0 <= self.runs[kept - 1].1 => {
                    self.runs[kept - 1].1 = self.runs[kept - 1].1.max(run.1);
                }
                _ => {
                    self.runs[kept] = run;
                    kept += 1;
                }
            }
        }
        self.runs.truncate(kept);
        self.merged = kept;
    }

    /// The blocks by number.
    pub fn finish(mut self) -> Touched {
        self.merge();
        let mut blocks = 0;
        let runs = self.runs.iter().map(|(start, end)| {
            let run = Run { start: *start, end: *end, rank: blocks };
            blocks += end - start;
            run
        });
        let runs = runs.collect();
        Touched { runs, blocks }
    }
}

/// Neighbouring blocks that the trace touches.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    /// Touched blocks before `start`.
    rank: u64,
}

/// The touched blocks. The rank of one is how many are before it.
#[derive(Clone, Debug)]
pub struct Touched {
    runs: Vec<Run>,
    blocks: u64,
}

impl Touched {
    /// How many blocks are touched.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The last block that is touched, if any is.
    pub fn last(&self) -> Option<u64> {
        self.runs.last().map(|run| run.end - 1)
    }

    /// The rank of the first touched block from `block` on.
    pub fn rank(&self, block: u64) -> u64 {
        match self.runs.partition_point(|run| run.start <= block) {
            0 => 0,
            after => {
                let run = self.runs[after - 1];
                run.rank + block.min(run.end) - run.start
            }
        }
    }

    /// The block of a rank, which must be less than `blocks`.
    pub fn block(&self, rank: u64) -> u64 {
        let run = self.runs[self.runs.partition_point(|run| run.rank <= rank) - 1];
        run.start + (rank - run.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_meet_are_one_and_ranks_leave_the_gaps_out() {
        let mut footprint = Footprint::default();
        for (first, end) in [(50, 52), (10, 14), (13, 20), (52, 53), (7, 7), (20, 21)] {
            footprint.add(first, end);
        }
        let touched = footprint.finish();
        assert_eq!((touched.blocks(), touched.last()), (14, Some(52)));
        assert_eq!(touched.runs.len(), 2);
        for rank in 0..14 {
            assert_eq!(touched.rank(touched.block(rank)), rank);
        }
        assert_eq!((touched.rank(0), touched.rank(21), touched.rank(60)), (0, 11, 14));
    }

    #[test]
    fn merging_on_the_way_loses_nothing() {
        let mut footprint = Footprint::default();
        for number in 0..4 * UNMERGED_MAX as u64 {
            footprint.add(number * 7919 % 5000 * 2, number * 7919 % 5000 * 2 + 1);
        }
        assert!(footprint.runs.len() <= 2 * 5000 + UNMERGED_MAX);
        assert_eq!(footprint.finish().blocks(), 5000);
    }
}
