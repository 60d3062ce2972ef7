//! How far a sample of blocks can be trusted, told by the blocks of it in groups.
//!
//! A sample has met too many or too few accesses, and how many there were is known. The original correction (SHARDS-adj) counts
//! all of the difference as hits, which is right where it comes from a few hot blocks, and wrong at sizes where nearly every
//! access misses. Here a part of it counts: as much as hits go up and down with accesses from one group of blocks to another
//! (the regression estimator of sample surveys). What is left of the spread between the groups is the standard error.

use super::histogram::Histogram;

/// Groups of one sample.
const GROUPS: usize = 64;
/// Where the bits of a hash are by which blocks are put into groups: neither the highest, of which a sample has the small ones,
/// nor the lowest, by which the table is indexed.
const GROUP_SHIFT: u32 = 24;

/// The accesses of a group in one direction.
#[derive(Clone, Default)]
struct Group {
    distances: Histogram,
    cold: u64,
}

impl Group {
    fn accesses(&self) -> f64 {
        (self.distances.count() + self.cold) as f64
    }
}

/// The accesses of a sample in one direction.
pub(super) struct SampleGroups {
    groups: Vec<Group>,
}

impl SampleGroups {
    /// Nothing is counted.
    pub(super) fn new() -> Self {
        Self { groups: vec![Group::default(); GROUPS] }
    }

    fn of(&mut self, hash: u64) -> &mut Group {
        &mut self.groups[(hash >> GROUP_SHIFT) as usize % GROUPS]
    }

    /// Counts an access to a block with this hash at a distance.
    pub(super) fn again(&mut self, hash: u64, distance: u64) {
        self.of(hash).distances.add(distance, 1);
    }

    /// Counts a first access.
    pub(super) fn cold(&mut self, hash: u64) {
        self.of(hash).cold += 1;
    }

    /// Which part of missing accesses are hits of a cache that reaches to this distance, and the standard error of the hits
    /// that are counted in the whole sample then.
    pub(super) fn trust(&self, distance: u64) -> Trust {
        let hits: Vec<f64> = self.hits(distance);
        let accesses: Vec<f64> = self.groups.iter().map(Group::accesses).collect();
        let (mean_hits, mean_accesses) = (mean(&hits), mean(&accesses));
        let (mut together, mut apart) = (0.0, 0.0);
        for (hits, accesses) in hits.iter().zip(&accesses) {
            together += (hits - mean_hits) * (accesses - mean_accesses);
            apart += (accesses - mean_accesses).powi(2);
        }
        let share = if apart > 0.0 { (together / apart).clamp(0.0, 1.0) } else { 1.0 };
        let left = hits.iter().zip(&accesses).map(|(hits, accesses)| {
            (hits - mean_hits - share * (accesses - mean_accesses)).powi(2)
        });
        // Two numbers were taken from the groups.
        let variance = left.sum::<f64>() / (GROUPS - 2) as f64;
        Trust { share, error: (variance * GROUPS as f64).sqrt() }
    }

    fn hits(&self, distance: u64) -> Vec<f64> {
        self.groups.iter().map(|group| group.distances.at_most(distance)).collect()
    }
}

/// What the groups tell of a cache.
#[derive(Clone, Copy)]
pub(super) struct Trust {
    /// Part of the missing accesses that are hits.
    pub(super) share: f64,
    /// Standard error of the hits counted in the sample, as if blocks without end had been sampled from.
    pub(super) error: f64,
}

impl Trust {
    /// All of them: the original correction.
    pub(super) const ALL: Trust = Trust { share: 1.0, error: 0.0 };
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
