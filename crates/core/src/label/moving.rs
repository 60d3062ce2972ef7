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
use alloc::vec::Vec;

/// A copy to be written.
#[derive(Clone, Debug)]
pub(super) struct LabelWrite {
    /// The place of the disk among the disks of the stack.
    pub index: usize,
    pub copy: LabelCopy,
    pub label: Label,
}

/// True when there is a count above any that was seen.
pub(super) fn has_room(standing: &Standing) -> bool {
    standing.count_max < COUNT_MAX
}

/// The rounds of a move to a mark one above any that was seen. There must be [room](has_room) for it.
pub(super) fn rounds(set: Uuid, standing: &Standing, random: u32) -> [Vec<LabelWrite>; 3] {
    let count = standing.count_max.checked_add(1);
    let count = count.filter(|count| *count <= COUNT_MAX);
    let mark = Mark { count: count.expect("a comparison has left room"), random };
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
