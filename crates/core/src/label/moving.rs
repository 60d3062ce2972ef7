//! What is written when the count moves, and in which order.
//!
//! Three rounds, each made durable on all disks before the next one: what the set has come to is
//! completed on the second copies; then the new label goes to the first copies; then to the second
//! ones. So a cut leaves every disk with a whole copy that the others list:
//!
//! - while the new first copies are written, every second copy says what the set had come to. The new
//!   label lists each disk with that mark as well, because the new one may not have reached it;
//! - while the second copies are written, every first copy says the new mark. So what is written there
//!   lists the new mark alone.

use super::codec::COUNT_MAX;
use super::compare::{Present, Standing};
use super::{Entry, Label, LabelCopy, Mark};
use crate::lifecycle::Uuid;
use alloc::vec::{self, Vec};

/// A copy to be written.
#[derive(Debug)]
pub(super) struct LabelWrite {
    /// The place of the disk among the disks of the stack.
    pub index: usize,
    pub copy: LabelCopy,
    pub label: Label,
}

/// An operation of a move on one disk.
#[derive(Debug)]
pub(super) enum Step {
    Write(LabelWrite),
    /// On the disk with this place.
    Flush(usize),
}

/// A move of the count under way: which operations come next.
#[derive(Debug)]
pub(super) struct Move {
    /// The mark that the set comes to.
    pub mark: Mark,
    /// Rounds to come.
    rounds: vec::IntoIter<Vec<LabelWrite>>,
    /// Disks that were written to since they were last flushed.
    written: Vec<usize>,
}

impl Move {
    /// A move that has done nothing yet. There must be [room](has_room) for it.
    pub fn new(set: Uuid, server: u64, standing: &Standing, random: u32) -> Move {
        let mark = next_mark(standing, random);
        let rounds = Vec::from(rounds((set, server), standing, mark)).into_iter();
        Move { mark, rounds, written: Vec::new() }
    }

    /// The operations that come next, on disks of their own, when all before have ended well. None:
    /// the label is durable on all disks.
    pub fn next_steps(&mut self) -> Vec<Step> {
        if !self.written.is_empty() {
            let written = core::mem::take(&mut self.written).into_iter();
            return written.map(Step::Flush).collect();
        }
        let round = self.rounds.find(|round| !round.is_empty()).unwrap_or_default();
        self.written = round.iter().map(|write| write.index).collect();
        round.into_iter().map(Step::Write).collect()
    }

    /// The copy that lists most, if any is still to be written.
    pub fn largest(&self) -> Option<&LabelWrite> {
        self.rounds.as_slice().get(1)?.first()
    }
}

/// True when there is a count above any that was seen.
pub(super) fn has_room(standing: &Standing) -> bool {
    standing.count_max < COUNT_MAX
}

/// A mark one above any that was seen.
fn next_mark(standing: &Standing, random: u32) -> Mark {
    let count = standing.count_max.checked_add(1);
    let count = count.filter(|count| *count <= COUNT_MAX);
    Mark { count: count.expect("a count is left"), random }
}

/// The rounds of a move to a mark.
fn rounds((set, server): (Uuid, u64), standing: &Standing, mark: Mark) -> [Vec<LabelWrite>; 3] {
    let complete = standing.present.iter().filter(|disk| !disk.is_complete);
    let complete = complete.filter_map(|disk| {
        Some(LabelWrite {
            index: disk.index,
            copy: LabelCopy::Second,
            label: disk.complete.clone()?,
        })
    });
    let to = |copy: LabelCopy| {
        let entries = entries(standing, mark, copy);
        let write = |disk: &Present| LabelWrite {
            index: disk.index,
            copy,
            label: Label {
                set,
                disk: disk.number,
                mark,
                from: standing.mark,
                entries: entries.clone(),
                server,
            },
        };
        standing.present.iter().map(write).collect()
    };
    [complete.collect(), to(LabelCopy::First), to(LabelCopy::Second)]
}

/// The disks of the set as a copy of the new label lists them: those that are here are in, the others
/// stay as they were.
fn entries(standing: &Standing, mark: Mark, copy: LabelCopy) -> Vec<Entry> {
    let here = |number: u16| standing.present.iter().any(|disk| disk.number == number);
    let away = standing.entries.iter().filter(|entry| !here(entry.disk));
    let present = standing.present.iter().map(|disk| {
        let complete = disk.complete.as_ref().map(|label| label.mark);
        Entry {
            disk: disk.number,
            last: mark,
            before: complete.filter(|_| copy == LabelCopy::First),
        }
    });
    let mut entries: Vec<Entry> = away.copied().chain(present).collect();
    entries.sort_unstable_by_key(|entry| entry.disk);
    entries
}
