//! Whether the disks that are there belong together, by their labels.

use super::codec::COUNT_MAX;
use super::refusal::{Reason, Refusal};
use super::{Entry, Label, LabelCopy, LabelError, Mark};
use crate::lifecycle::Uuid;
use alloc::vec::Vec;

/// The greatest count with which a set may start: the start and its stop move the count.
pub(super) const COUNT_BEFORE_START_MAX: u32 = COUNT_MAX - 2;
/// The count that a set without a mark goes on from. Counts of a set that goes over begin behind the one
/// that a creation gives, so that 1 says that nobody was served yet.
const COUNT_WITHOUT_MARK: u32 = 1;

/// What was read of both copies of a label.
pub(super) type Copies = [Result<Label, LabelError>; 2];

/// A disk of a set, and what was read of its label.
#[derive(Clone, Debug)]
pub(super) struct LabelledDisk {
    /// Its place among the disks of the stack.
    pub index: usize,
    /// Its number in the set.
    pub number: u16,
    /// The image says that it has a label. One that has none yet gets one, whatever lies in the place.
    pub is_labelled: bool,
    /// Blocks that it offers to its layers; the label lies behind them.
    pub blocks: u64,
    /// `None`: the disk is not there.
    pub copies: Option<Copies>,
    /// It is there, and takes no part: to the others it is away.
    pub is_held: bool,
}

impl LabelledDisk {
    pub fn new(index: usize, number: u16, is_labelled: bool) -> LabelledDisk {
        LabelledDisk { index, number, is_labelled, blocks: 0, copies: None, is_held: false }
    }

    /// What was read of it, if it is there and takes part.
    pub fn present(&self) -> Option<&Copies> {
        self.copies.as_ref().filter(|_| !self.is_held)
    }
}

/// A disk that is there and may be used.
#[derive(Clone, Debug)]
pub(super) struct Present {
    pub index: usize,
    pub number: u16,
    /// What its second copy must say before its first one may be written; `None` of a disk that has no
    /// label yet.
    pub complete: Option<Label>,
    /// The second copy says so already.
    pub is_complete: bool,
}

/// A set whose disks belong together.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub present: Vec<Present>,
    /// The mark that the set has come to, and what is known of each of its disks.
    pub mark: Option<Mark>,
    pub entries: Vec<Entry>,
    /// The count that the next one is above: the highest of any label that was seen, unless a creation
    /// passes over what lies there.
    pub count_max: u32,
}

/// A disk that is there, with what its label says.
struct Known<'a> {
    disk: &'a LabelledDisk,
    first: &'a Label,
    second: &'a Label,
    /// The second copy could not be read.
    is_second_unreadable: bool,
}

impl Known<'_> {
    fn holds(&self, mark: Mark) -> bool {
        self.first.mark == mark || self.second.mark == mark
    }

    /// The label of a copy that an entry takes, the newest if it takes both.
    fn taken_by(&self, entry: &Entry) -> Option<&Label> {
        let copies = [self.first, self.second].into_iter();
        let taken = copies.filter(|copy| entry.takes(copy.mark));
        taken.max_by_key(|copy| copy.mark)
    }

    /// It was made to take the place of a lost disk, and has not been in.
    fn is_new(&self) -> bool {
        self.first.mark.is_new() || self.second.mark.is_new()
    }

    fn refused(&self, reason: Reason) -> Refusal {
        Refusal { index: self.disk.index, disk: self.disk.number, reason }
    }
}

/// How labels are compared.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Judgement {
    /// What the labels list is ignored: a planted bug alone sets it.
    pub is_lenient: bool,
    /// The set is being created: what lies there is no label of it.
    pub is_creation: bool,
}

/// Compares the labels of the disks of a set.
pub(super) fn compare(
    set: Uuid,
    disks: &[LabelledDisk],
    judgement: Judgement,
) -> Result<Standing, Vec<Refusal>> {
    let mut known = Vec::new();
    let mut refused = Vec::new();
    for disk in disks.iter().filter(|disk| disk.is_labelled) {
        let Some(copies) = disk.present() else {
            continue;
        };
        match known_of(set, disk, copies) {
            Ok(it) => known.push(it),
            Err(reason) => refused.push(Refusal { index: disk.index, disk: disk.number, reason }),
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    // The disk with the newest second copy lists the rest.
    let in_set = known.iter().filter(|it| !it.second.mark.is_new());
    let Some(newest) = in_set.max_by_key(|it| it.second.mark) else {
        return Ok(standing_of_new(disks, &known, judgement.is_creation));
    };
    let completed = completed(&known, newest);
    if !judgement.is_lenient {
        let refused = refusals(&known, newest);
        if !refused.is_empty() {
            return Err(refused);
        }
    }
    Ok(standing(disks, &known, newest, completed))
}

/// The copies of a disk that belong to it. Where one is unreadable, the other stands for both.
fn known_of<'a>(
    set: Uuid,
    disk: &'a LabelledDisk,
    copies: &'a Copies,
) -> Result<Known<'a>, Reason> {
    let own = |copy: &'a Result<Label, LabelError>| {
        let label = copy.as_ref().ok();
        label.filter(|label| label.set == set && label.disk == disk.number)
    };
    let [first, second] = [own(&copies[0]), own(&copies[1])];
    let (Some(either), true) = (first.or(second), copies.iter().all(is_of_this_build)) else {
        return Err(reason_without(set, copies));
    };
    Ok(Known {
        disk,
        first: first.unwrap_or(either),
        second: second.unwrap_or(either),
        is_second_unreadable: second.is_none(),
    })
}

/// A copy that another build has written is not taken for a torn one.
fn is_of_this_build(copy: &Result<Label, LabelError>) -> bool {
    use crate::durability::block::BlockError;
    !matches!(copy, Err(LabelError::Features(_) | LabelError::Block(BlockError::Version(_))))
}

/// What a disk is that has no label of its own.
fn reason_without(set: Uuid, copies: &Copies) -> Reason {
    let other_build = copies.iter().find(|copy| !is_of_this_build(copy));
    let label = copies.iter().find_map(|copy| copy.as_ref().ok());
    match (other_build, label, &copies[0]) {
        (Some(Err(error)), ..) | (_, None, Err(error)) => Reason::NoLabel(error.clone()),
        (_, Some(label), _) if label.set != set => Reason::Foreign(label.set),
        (_, Some(label), _) => Reason::OtherDisk(label.disk),
        (_, None, Ok(_)) => unreachable!("a label that was read"),
    }
}

/// The disks that the newest second copy does not list as they are.
fn refusals(known: &[Known<'_>], newest: &Known<'_>) -> Vec<Refusal> {
    // A move that was cut has left a first copy that knows of a later mark than any second copy here:
    // the disks that were in then are not here, and none of these has what they have.
    let missed = known.iter().find_map(|it| {
        let from = it.first.from?;
        (it.first.mark > newest.second.mark && from > newest.second.mark).then_some(from)
    });
    if let Some(missed) = missed {
        let found = newest.second.mark;
        let behind = |it: &Known<'_>| it.refused(Reason::Behind { found, missed });
        return known.iter().map(behind).collect();
    }
    let mut refused = Vec::new();
    for it in known {
        let found = it.first.mark.max(it.second.mark);
        let Some(entry) = newest.second.entry(it.disk.number) else {
            if !it.is_new() {
                refused.push(it.refused(Reason::Unlisted { found }));
            }
            continue;
        };
        if it.taken_by(entry).is_some() {
            continue;
        }
        let listed = entry.last;
        if found.count < listed.count {
            refused.push(it.refused(Reason::Older { found, listed }));
            continue;
        }
        let apart = |disk: &Known<'_>, other: &Known<'_>| {
            let (other, found) = (other.disk.number, disk.second.mark);
            disk.refused(Reason::Apart { found, other })
        };
        refused.push(apart(it, newest));
        if !refused.iter().any(|known| known.disk == newest.disk.number) {
            refused.push(apart(newest, it));
        }
    }
    refused
}

/// The label that the set has come to: that of the newest second copy, or one that came from there and
/// that all present disks hold which it lists as in, if one that is not here may have it as its second
/// copy. Where all
/// are here that were in, no second copy says so, and nothing was written at that mark. Of two that
/// differ in what they take, the one that takes less.
fn completed<'a>(known: &'a [Known<'_>], newest: &'a Known<'_>) -> &'a Label {
    let copies = known.iter().flat_map(|it| [it.first, it.second]);
    let is_come_to = |label: &&Label| {
        if label.mark == newest.second.mark {
            return true;
        }
        if label.from != Some(newest.second.mark) {
            return false;
        }
        let mut is_in = label.entries.iter().filter(|entry| entry.last == label.mark);
        let here = |entry: &Entry| known.iter().find(|it| it.disk.number == entry.disk);
        let is_away = is_in.clone().any(|entry| here(entry).is_none());
        is_away && is_in.all(|entry| here(entry).is_none_or(|it| it.holds(label.mark)))
    };
    let takes = |label: &Label| label.entries.iter().filter(|it| it.before.is_some()).count();
    let come_to = copies.filter(is_come_to);
    let best = come_to.max_by_key(|label| (label.mark, core::cmp::Reverse(takes(label))));
    best.expect("the newest second copy")
}

fn standing(
    disks: &[LabelledDisk],
    known: &[Known<'_>],
    newest: &Known<'_>,
    completed: &Label,
) -> Standing {
    let present = disks.iter().filter(|disk| disk.present().is_some());
    let present = present.map(|disk| {
        let Some(it) = known.iter().find(|it| it.disk.number == disk.number) else {
            return without_label(disk);
        };
        let own = match it.holds(completed.mark) {
            true => completed,
            // It was away, and comes back as it was.
            false => {
                let entry = newest.second.entry(disk.number);
                entry.and_then(|entry| it.taken_by(entry)).unwrap_or(it.second)
            }
        };
        let complete = Label { disk: disk.number, ..own.clone() };
        Present {
            index: disk.index,
            number: disk.number,
            is_complete: !it.is_second_unreadable && it.second.mark == complete.mark,
            complete: Some(complete),
        }
    });
    Standing {
        present: present.collect(),
        mark: Some(completed.mark),
        entries: listed_in_set(disks, completed),
        count_max: count_max(disks),
    }
}

/// What is known of the disks that the set has. One that was replaced is forgotten.
fn listed_in_set(disks: &[LabelledDisk], label: &Label) -> Vec<Entry> {
    let has = |number: u16| disks.iter().any(|disk| disk.number == number);
    let entries = label.entries.iter().filter(|entry| has(entry.disk));
    entries.copied().collect()
}

/// A set of which no disk has been in.
fn standing_of_new(disks: &[LabelledDisk], known: &[Known<'_>], is_creation: bool) -> Standing {
    let present = disks.iter().filter(|disk| disk.present().is_some());
    let present = present.map(|disk| {
        let it = known.iter().find(|it| it.disk.number == disk.number);
        Present {
            is_complete: it.is_none_or(|it| !it.is_second_unreadable),
            complete: it.map(|it| it.second.clone()),
            ..without_label(disk)
        }
    });
    Standing {
        present: present.collect(),
        mark: None,
        entries: Vec::new(),
        count_max: match is_creation {
            true => 0,
            false => count_max(disks).max(COUNT_WITHOUT_MARK),
        },
    }
}

fn without_label(disk: &LabelledDisk) -> Present {
    Present { index: disk.index, number: disk.number, complete: None, is_complete: true }
}

/// The disks whose labels leave no room for a start and its stop.
pub(super) fn used_up(disks: &[LabelledDisk]) -> Vec<Refusal> {
    let refused = disks.iter().filter_map(|disk| {
        let found = count_of(disk).filter(|count| *count > COUNT_BEFORE_START_MAX)?;
        Some(Refusal {
            index: disk.index,
            disk: disk.number,
            reason: Reason::CountUsedUp { found },
        })
    });
    refused.collect()
}

/// The highest count of any label, those included that do not count.
fn count_max(disks: &[LabelledDisk]) -> u32 {
    disks.iter().filter_map(count_of).max().unwrap_or(0)
}

/// The highest count in the label of a disk.
fn count_of(disk: &LabelledDisk) -> Option<u32> {
    let copies = disk.copies.as_ref()?.iter();
    let labels = copies.filter_map(|copy| copy.as_ref().ok());
    let marks = labels.flat_map(|label| {
        let listed = label.entries.iter().map(|entry| entry.last);
        listed.chain([label.mark])
    });
    marks.map(|mark| mark.count).max()
}

/// What stands in a copy of a disk, for the next comparison.
pub(super) fn set_copy(disk: &mut LabelledDisk, copy: LabelCopy, label: Label) {
    if let Some(copies) = &mut disk.copies {
        copies[copy.index()] = Ok(label);
    }
}
