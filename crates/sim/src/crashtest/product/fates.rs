//! What each disk of an array may be used for at any moment of a life, as far as somebody was told.

use super::array::{ArrayOfStack, Observed};
use super::operator::Mark;
use super::story::Phase;

/// What a disk may be used for after a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Fate {
    /// It has everything that was promised.
    Good,
    /// It was lost and may be older than what was promised.
    Stale,
    /// It is in and has not all data yet.
    Target,
    /// It waits for a member to be lost.
    Spare,
}

/// What is known of the disks behind the ports of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fates {
    /// By port.
    pub of: Vec<Fate>,
    /// By port: it is not there, or was lost since the start.
    is_gone: Vec<bool>,
    /// By port: somebody was told that it is lost, and the counts of the array do not show it yet.
    is_unseen: Vec<bool>,
    seen: Observed,
}

impl Fates {
    /// Those of an array that was just made.
    pub fn first(array: &ArrayOfStack) -> Fates {
        let fate = |is_spare| if is_spare { Fate::Spare } else { Fate::Good };
        Fates {
            of: array.ports.iter().map(|port| fate(port.is_spare)).collect(),
            is_gone: vec![false; array.ports.len()],
            is_unseen: vec![false; array.ports.len()],
            seen: Observed::default(),
        }
    }

    /// Those at a start without some ports, which may have everything or not.
    pub fn started(&self, array: &ArrayOfStack, missing: &[usize], is_whole: bool) -> Fates {
        let mut fates = self.clone();
        for port in 0..array.ports.len() {
            fates.is_gone[port] = missing.contains(&port);
            if missing.contains(&port) {
                fates.lose(port);
            }
        }
        fates.is_unseen.fill(false);
        // Whoever starts has looked at every member.
        fates.seen.missing = 1;
        fates.observe(array, Observed { missing: u64::from(!is_whole), rebuilding: 0 });
        fates
    }

    /// How many have everything.
    pub fn good(&self) -> usize {
        self.of.iter().filter(|fate| **fate == Fate::Good).count()
    }

    /// The ports with everything.
    pub fn good_ports(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.of.len()).filter(|port| self.of[*port] == Fate::Good)
    }

    fn lose(&mut self, port: usize) {
        let was = std::mem::replace(&mut self.of[port], Fate::Stale);
        let was_gone = std::mem::replace(&mut self.is_gone[port], true);
        let steps_in = self.of.iter().position(|fate| *fate == Fate::Spare);
        if let (Fate::Good | Fate::Target, Some(spare)) = (was, steps_in) {
            self.of[spare] = Fate::Target;
        }
        // One that had come back may be a member again.
        self.is_unseen[port] = !was_gone && was != Fate::Spare;
    }

    /// Where every member has everything, the disks that can be these members have it.
    fn observe(&mut self, array: &ArrayOfStack, now: Observed) {
        let before = std::mem::replace(&mut self.seen, now);
        if now.missing > before.missing || now.rebuilding > before.rebuilding {
            self.is_unseen.fill(false);
        }
        if !now.is_whole() || before.is_whole() {
            return;
        }
        let is_candidate = |port: &usize| {
            matches!(self.of[*port], Fate::Target | Fate::Stale) && !self.is_gone[*port]
        };
        let candidates: Vec<usize> = (0..self.of.len()).filter(is_candidate).collect();
        let unseen = self.is_unseen.iter().filter(|it| **it).count();
        // With spares it is not known who of them is a member, but where all are needed. A disk whose loss
        // is not seen yet may be one of those that are counted.
        let all = self.good() + candidates.len() + unseen == array.columns();
        if !array.has_spares() || all {
            candidates.into_iter().for_each(|port| self.of[port] = Fate::Good);
        }
    }

    /// Takes what has happened into account.
    pub fn take(&mut self, array: &ArrayOfStack, mark: Mark) {
        let port_of = |disk| array.port_of(disk);
        match mark {
            Mark::Lost(disk) => port_of(disk).into_iter().for_each(|port| self.lose(port)),
            Mark::Replaced(disk) => {
                if let Some(port) = port_of(disk) {
                    self.of[port] = Fate::Target;
                    self.is_gone[port] = false;
                    self.is_unseen[port] = false;
                }
            }
            Mark::Observed(now) => self.observe(array, now),
            _ => {}
        }
    }

    /// What is known at a log index, when this was known before all marks.
    pub fn at(&self, array: &ArrayOfStack, marks: &[(u64, Mark)], index: u64) -> Fates {
        let mut fates = self.clone();
        for (_, mark) in marks.iter().filter(|(at, _)| *at <= index) {
            fates.take(array, *mark);
        }
        fates
    }
}

/// A log index of a life: the phase that it is in, and which ports have not everything then.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The log index.
    pub index: u64,
    /// What goes on.
    pub phase: Phase,
    /// Ports that were lost, or are rebuilt, a bit each.
    pub lacking: u32,
}

/// What goes on, counted.
#[derive(Default)]
struct GoesOn {
    writes: usize,
    is_replacing: bool,
    scrubs: u32,
    rebuilding: u64,
}

impl GoesOn {
    fn take(&mut self, mark: Mark) {
        match mark {
            Mark::HostWrites(count) => self.writes = count,
            Mark::ReplaceBegun(_) => self.is_replacing = true,
            Mark::Replaced(_) | Mark::ReplaceGivenUp(_) => self.is_replacing = false,
            Mark::ScrubBegun => self.scrubs += 1,
            Mark::ScrubEnded => self.scrubs -= 1,
            Mark::Observed(now) => self.rebuilding = now.rebuilding,
            Mark::Lost(_) | Mark::RebuildEnded(_) => {}
        }
    }

    fn phase(&self, is_collecting: bool) -> Phase {
        if self.is_replacing {
            Phase::Replace
        } else if self.scrubs > 0 {
            Phase::Scrub
        } else if self.rebuilding > 0 {
            Phase::Rebuild
        } else if is_collecting {
            Phase::Collect
        } else if self.writes > 0 {
            Phase::Write
        } else {
            Phase::Idle
        }
    }
}

/// Every log index from the first to the last, with what is known of it. `rebuilding` members were being
/// rebuilt at the first.
pub fn moments(
    before: &Fates,
    array: &ArrayOfStack,
    marks: &[(u64, Mark)],
    (first, last): (u64, u64),
    rebuilding: u64,
    is_collecting: impl Fn(u64) -> bool,
) -> Vec<Moment> {
    let mut goes_on = GoesOn { rebuilding, ..GoesOn::default() };
    let mut fates = before.clone();
    let mut marks = marks.iter().peekable();
    let moment = |index| {
        while let Some((_, mark)) = marks.next_if(|(at, _)| *at <= index) {
            goes_on.take(*mark);
            fates.take(array, *mark);
        }
        let is_lacking = |fate: &Fate| matches!(fate, Fate::Stale | Fate::Target);
        let ports = (0..).zip(&fates.of).filter(|(_, fate)| is_lacking(fate));
        let lacking = ports.fold(0, |bits, (port, _)| bits | 1 << port);
        Moment { index, phase: goes_on.phase(is_collecting(index)), lacking }
    };
    (first..=last).map(moment).collect()
}
