//! The head of a disk that counts how far it is moved.

use super::geometry::Geometry;
use super::timer::Timer;
use imbrex_core::operation::Cause;
use imbrex_drives::Direction;
use imbrex_report::ByCause;
use serde::Serialize;
use std::cmp::Ordering;

/// Blocks visited one after the other in ascending order.
///
/// Gaps between them are known by their number alone, so counting takes the same time for one block
/// and for a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sweep {
    /// The first block visited.
    pub first: u64,
    /// The last block visited.
    pub last: u64,
    /// How many blocks are visited; at least one.
    pub visits: u64,
    /// Steps over at least one block that is not visited.
    pub block_skips: u64,
    /// Steps over at least one whole track. No step of a sweep goes over a whole band.
    pub track_skips: u64,
}

impl Sweep {
    /// `blocks` neighbouring blocks, at least one.
    pub fn run(first: u64, blocks: u64) -> Sweep {
        Sweep { first, last: first + (blocks - 1), visits: blocks, block_skips: 0, track_skips: 0 }
    }
}

/// What a head did. Lists are by block, track and band.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HeadCounts {
    /// Blocks visited.
    pub visits: u128,
    /// Blocks moved over, the sum of |new - previous|.
    pub block: u128,
    /// The same in tracks.
    pub track: u128,
    /// The same in bands.
    pub band: u128,
    /// Moves by anything but 0 or +1.
    pub discontinuities: [u64; 3],
    /// Changes of direction between one move that is not 0 and the next.
    pub reversals: [u64; 3],
}

/// What a head did for one cause. A move is of the cause of the visit that it leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CauseCounts {
    /// Blocks visited.
    pub visits: u128,
    /// Blocks moved over.
    pub block: u128,
}

/// A head, which is nowhere before its first visit.
#[derive(Clone, Debug)]
pub struct Head {
    geometry: Geometry,
    /// The numbers of the block visited last.
    position: Option<[u64; 3]>,
    /// The direction of the last move at each level that was not 0; `Equal` before there is one.
    direction: [Ordering; 3],
    moved: [u128; 3],
    counts: HeadCounts,
    /// Who wants the visits from here on.
    pub(super) cause: Cause,
    by_cause: ByCause<CauseCounts>,
    /// What the visits take on a drive; none when they are only counted.
    pub(super) timer: Option<Timer>,
}

impl Head {
    /// A head over a disk.
    pub fn new(geometry: Geometry) -> Head {
        Head {
            geometry,
            position: None,
            direction: [Ordering::Equal; 3],
            moved: [0; 3],
            counts: HeadCounts::default(),
            cause: Cause::Host,
            by_cause: ByCause::default(),
            timer: None,
        }
    }

    /// Visits neighbouring blocks, at least one.
    pub fn run(&mut self, first: u64, blocks: u64, direction: Direction) {
        self.sweep(&Sweep::run(first, blocks));
        if let Some(timer) = &mut self.timer {
            timer.run(first, blocks, direction);
        }
    }

    /// Counts the visits to the blocks of a sweep; they take no time.
    pub fn sweep(&mut self, sweep: &Sweep) {
        let first = self.geometry.levels(sweep.first);
        let last = self.geometry.levels(sweep.last);
        let moved_before = self.moved[0];
        if let Some(from) = self.position {
            for level in 0..3 {
                let (from, to) = (from[level], first[level]);
                self.step(level, from, to);
                let is_smooth = to == from || to == from + 1;
                self.counts.discontinuities[level] += u64::from(!is_smooth);
            }
        }
        for level in 0..3 {
            self.step(level, first[level], last[level]);
        }
        self.counts.discontinuities[0] += sweep.block_skips;
        self.counts.discontinuities[1] += sweep.track_skips;
        self.counts.visits += u128::from(sweep.visits);
        self.position = Some(last);
        let of_cause = &mut self.by_cause[self.cause];
        of_cause.visits += u128::from(sweep.visits);
        of_cause.block += self.moved[0] - moved_before;
    }

    /// Moves in one direction at one level.
    #[inline]
    fn step(&mut self, level: usize, from: u64, to: u64) {
        let direction = to.cmp(&from);
        if direction == Ordering::Equal {
            return;
        }
        self.moved[level] += u128::from(to.abs_diff(from));
        let is_reversal = direction == self.direction[level].reverse();
        self.counts.reversals[level] += u64::from(is_reversal);
        self.direction[level] = direction;
    }

    /// What it did so far.
    pub fn counts(&self) -> HeadCounts {
        let [block, track, band] = self.moved;
        HeadCounts { block, track, band, ..self.counts }
    }

    /// The same by cause.
    pub fn by_cause(&self) -> ByCause<CauseCounts> {
        self.by_cause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head::new(Geometry::new(2, 3).unwrap())
    }

    #[test]
    fn the_first_visit_is_free_and_a_run_moves_one_less_than_its_blocks() {
        let mut head = head();
        head.sweep(&Sweep::run(5, 8));
        // Blocks 5 to 12, tracks 2 to 6, bands 0 to 2.
        let counts = head.counts();
        assert_eq!((counts.visits, counts.block), (8, 7));
        assert_eq!((counts.track, counts.band), (4, 2));
        assert_eq!(counts.discontinuities, [0; 3]);
        assert_eq!(counts.reversals, [0; 3]);
    }

    #[test]
    fn standing_still_is_no_change_of_direction() {
        let mut head = head();
        // Forth, still, back by a block of the same track, still, forth over a track.
        for block in [0, 3, 3, 2, 2, 6] {
            head.sweep(&Sweep::run(block, 1));
        }
        let counts = head.counts();
        assert_eq!((counts.block, counts.track, counts.band), (8, 3, 1));
        assert_eq!(counts.discontinuities, [3, 1, 0]);
        assert_eq!(counts.reversals, [2, 0, 0]);
    }
}
