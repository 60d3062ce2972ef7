//! What cases have reached, so that none of it is vacuous.

use super::presence::Presence;
use super::story::Phase;
use crate::crashtest::image::Mode;
use std::collections::BTreeMap;

/// What cases have reached.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// Cases.
    pub cases: u64,
    /// Those that differ from every other: in the cut, in the member, in the phase or in what is there.
    pub distinct: u64,
    /// By the member that goes, and the phase.
    pub by_pair: BTreeMap<(String, &'static str), u64>,
    /// By mode.
    pub by_mode: [u64; Mode::ALL.len()],
    /// By what is there.
    pub by_presence: [u64; Presence::NAMES.len()],
    /// Openings that were refused, by what is there.
    pub refused: [u64; Presence::NAMES.len()],
    /// Openings that went on without everything on every member, by what is there.
    pub degraded: [u64; Presence::NAMES.len()],
    /// Cuts behind the loss of the member of the case.
    pub gone_before: u64,
    /// Openings with everything on every member.
    pub whole: u64,
    /// Cuts after a number was used up and before the new member was described.
    pub undescribed: u64,
    /// Lives after the first.
    pub later_lives: u64,
    /// First lives in which more was lost than the array can lack.
    pub ends_lost: u64,
    /// First lives to which a member came back that had been away.
    pub returned: u64,
    /// Openings without a disk that only another array of the stack has.
    pub without_other: u64,
    /// First lives.
    pub lives: u64,
    /// Blocks read and judged.
    pub blocks_judged: u64,
}

impl Reached {
    /// Adds what others have reached.
    pub fn add(&mut self, other: &Reached) {
        fn sum<const N: usize>(mine: &mut [u64; N], more: &[u64; N]) {
            mine.iter_mut().zip(more).for_each(|(mine, more)| *mine += more);
        }
        self.cases += other.cases;
        self.distinct += other.distinct;
        for (pair, count) in &other.by_pair {
            *self.by_pair.entry(pair.clone()).or_default() += count;
        }
        sum(&mut self.by_mode, &other.by_mode);
        sum(&mut self.by_presence, &other.by_presence);
        sum(&mut self.refused, &other.refused);
        sum(&mut self.degraded, &other.degraded);
        self.gone_before += other.gone_before;
        self.whole += other.whole;
        self.undescribed += other.undescribed;
        self.later_lives += other.later_lives;
        self.ends_lost += other.ends_lost;
        self.returned += other.returned;
        self.without_other += other.without_other;
        self.lives += other.lives;
        self.blocks_judged += other.blocks_judged;
    }

    /// Takes note of the member and the phase of a case.
    pub fn count_pair(&mut self, member: &str, phase: Phase) {
        *self.by_pair.entry((member.to_string(), phase.name())).or_default() += 1;
    }
}
