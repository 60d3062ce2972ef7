//! Which copies of a mirrored journal count, and which one is gone by.

use super::journal::JournalState;
use super::member::Member;
use super::mirror;
use super::superblocks::COUNT_MAX;
use imbrex_core::durability::membership::{Listed, Membership};
use imbrex_core::lifecycle::Uuid;

/// A copy that is whole, as far as it is judged by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    set: Uuid,
    member: Uuid,
    generation: u64,
    /// The journal block that would be written next.
    end: u64,
    membership: Membership,
    /// The membership that every copy has at least which is in: its second page.
    second: Option<Membership>,
}

/// What is to be made of the copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Judged {
    /// The copy that has come furthest.
    pub base: usize,
    /// For each copy, whether it counts.
    pub counts: Vec<bool>,
    /// Which copies are in, as the newest one has it.
    pub listed: Vec<Listed>,
}

impl Whole {
    /// The copy with this index of so many.
    pub fn of(
        journal: &JournalState,
        member: &Member,
        (index, copies): (usize, usize),
    ) -> Result<Whole, String> {
        let superblock = &journal.superblock;
        let none = "neither of its two pages says which copies there are";
        let page = journal.mirror.as_ref().ok_or(none)?;
        if page.index != index as u64 {
            let words = format!("it is copy {} of the journal, and copy {index}", page.index);
            return Err(format!("{words} belongs here"));
        }
        let membership = page.membership.clone();
        let found = membership.copies.len();
        if found != copies || membership.changes > COUNT_MAX {
            return Err(format!(
                "it speaks of {found} copies of the journal, and there are {copies}"
            ));
        }
        if superblock.set.member(membership.copies[index].number) != superblock.member {
            return Err("its pages list another member in its place".to_owned());
        }
        let second = mirror::page(superblock, member, superblock.area_blocks - 3).ok();
        Ok(Whole {
            set: superblock.set,
            member: superblock.member,
            generation: superblock.generation,
            end: journal.next,
            second: second.map(|page| page.membership),
            membership,
        })
    }

    /// It has recorded another copy out, or has seen its member replaced. One that knows of later changes and
    /// lists this one as in has come back since.
    fn went_on_without(&self, (own_index, index): (usize, usize), other: &Whole) -> bool {
        let listed = self.membership.copies[index];
        let number = other.membership.copies[index].number;
        let has_come_back = other.membership.changes > self.membership.changes
            && other.lists_as_in(own_index, self);
        listed.number > number || (listed.number == number && !listed.is_in && !has_come_back)
    }

    /// That it has gone on without another copy was only being recorded: its second page lists that as in.
    fn was_about_to_go_on_without(&self, index: usize, other: &Whole) -> bool {
        let number = other.membership.copies[index].number;
        let second = self.second.as_ref().and_then(|second| second.copies.get(index));
        second.is_some_and(|listed| listed.is_in && listed.number == number)
    }

    fn lists_as_in(&self, index: usize, other: &Whole) -> bool {
        let listed = self.membership.copies[index];
        listed.is_in && other.set.member(listed.number) == other.member
    }
}

/// Judges copies, those that are whole, in the order of the ports.
pub(super) fn judge(copies: &[Option<Whole>]) -> Result<Judged, String> {
    let there: Vec<(usize, &Whole)> =
        (0..).zip(copies).filter_map(|(index, copy)| Some((index, copy.as_ref()?))).collect();
    let Some((_, first)) = there.first() else {
        return Err("no copy of its journal is whole".to_owned());
    };
    if there.iter().any(|(_, copy)| copy.set != first.set) {
        return Err("the copies of its journal belong to several images".to_owned());
    }
    let left = not_left_behind(&there)?;
    let newest = left.iter().max_by_key(|(index, copy)| {
        let age = (copy.membership.changes, copy.generation, copy.end);
        (age, usize::MAX - index)
    });
    let (_, newest) = newest.expect("a copy that nobody has gone on without");
    let listed = || left.iter().filter(|(index, copy)| newest.lists_as_in(*index, copy));
    // A member that was put back as it was some time ago has older pages than all must have.
    let all_have = listed().filter_map(|(_, copy)| Some(copy.second.as_ref()?.changes)).max();
    let counting: Vec<_> =
        listed().filter(|(_, copy)| Some(copy.membership.changes) >= all_have).collect();
    let base =
        counting.iter().max_by_key(|(index, copy)| (copy.generation, copy.end, usize::MAX - index));
    let Some((base, _)) = base else {
        return Err("no member that is there has every record".to_owned());
    };
    Ok(Judged {
        base: *base,
        counts: (0..copies.len()).map(|at| counting.iter().any(|(it, _)| *it == at)).collect(),
        listed: newest.membership.copies.clone(),
    })
}

/// The copies that none of them has gone on without. A copy that was left behind says nothing of others, and
/// among those that say it of each other what was only being recorded counts for nothing.
fn not_left_behind<'a>(there: &[(usize, &'a Whole)]) -> Result<Vec<(usize, &'a Whole)>, String> {
    let by = |(index, copy): &(usize, &Whole), judges: &[(usize, &Whole)], is_recorded_only| {
        let mut others = judges.iter().filter(|(it, _)| it != index);
        others.any(|(it, other)| {
            other.went_on_without((*it, *index), copy)
                && !(is_recorded_only && other.was_about_to_go_on_without(*index, copy))
        })
    };
    let mut is_recorded_only = false;
    let mut kept: Vec<(usize, &Whole)> = Vec::new();
    let mut open = there.to_vec();
    while !open.is_empty() {
        let before = open.len();
        open.retain(|copy| !by(copy, &kept, is_recorded_only));
        let all = [kept.as_slice(), open.as_slice()].concat();
        let (behind, sure): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|copy| by(copy, &all, is_recorded_only));
        kept.extend(sure);
        open = behind;
        if open.len() == before && std::mem::replace(&mut is_recorded_only, true) {
            return Err("two members have each gone on without the other".to_owned());
        }
    }
    kept.sort_unstable_by_key(|(index, _)| *index);
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: Uuid = Uuid([4; 16]);

    /// The copy of a member with so many changes, which lists copies by number and whether they are in.
    fn copy(number: u16, changes: u64, listed: &[(u16, bool)]) -> Option<Whole> {
        let copies = listed.iter().map(|(number, is_in)| Listed { number: *number, is_in: *is_in });
        let membership = Membership { changes, copies: copies.collect() };
        Some(Whole {
            set: SET,
            member: SET.member(number),
            generation: 3,
            end: 9,
            second: Some(membership.clone()),
            membership,
        })
    }

    /// A copy whose second page is still that of another one.
    fn recording(first: Option<Whole>, second: Option<Whole>) -> Option<Whole> {
        Some(Whole { second: second?.second, ..first? })
    }

    #[test]
    fn what_was_only_being_recorded_does_not_part_copies() {
        let all = [(1, true), (2, true), (3, true)];
        let three = |first, second, third| [(1, first), (2, second), (3, third)];
        let before = |number| copy(number, 5, &all);
        // The power went while 1 recorded that 3 is out, and then while 3 recorded that 1 is.
        let first = || recording(copy(1, 6, &three(true, true, false)), before(1));
        let third = || recording(copy(3, 6, &three(false, true, true)), before(3));
        let found = counts(&[first(), before(2), third()]);
        assert_eq!(found, Ok((0, vec![true, true, false])));
        // What is recorded on both pages holds.
        let recorded = copy(3, 6, &three(false, true, true));
        let found = counts(&[first(), before(2), recorded.clone()]);
        assert_eq!(found, Ok((2, vec![false, false, true])));
        let other = copy(1, 6, &three(true, true, false));
        assert!(counts(&[other, before(2), recorded]).is_err());
    }

    fn counts(copies: &[Option<Whole>]) -> Result<(usize, Vec<bool>), String> {
        judge(copies).map(|judged| (judged.base, judged.counts))
    }

    #[test]
    fn a_copy_that_another_has_gone_on_without_does_not_count() {
        let both = [(1, true), (2, true)];
        assert_eq!(counts(&[copy(1, 5, &both), copy(2, 5, &both)]), Ok((0, vec![true, true])));
        assert_eq!(counts(&[None, copy(2, 5, &both)]), Ok((1, vec![false, true])));
        let without_first = [(1, false), (2, true)];
        let mut first = copy(1, 6, &both);
        first.as_mut().expect("a copy").generation = 9;
        let found = counts(&[first, copy(2, 6, &without_first)]);
        assert_eq!(found, Ok((1, vec![false, true])), "however far it has come");
        let replaced = [(3, true), (2, true)];
        let found = counts(&[copy(1, 5, &both), copy(2, 6, &replaced)]);
        assert_eq!(found, Ok((1, vec![false, true])), "its member was replaced");
        let without_second = [(1, true), (2, false)];
        assert!(counts(&[copy(1, 6, &without_second), copy(2, 6, &without_first)]).is_err());
        assert!(counts(&[copy(1, 6, &without_second), copy(2, 7, &without_first)]).is_err());
    }

    #[test]
    fn a_member_that_has_come_back_counts() {
        let (both, without_second) = ([(1, true), (2, true)], [(1, true), (2, false)]);
        // It is being recorded: the first pages of one of them say so, and those of the other do not.
        let torn = recording(copy(2, 7, &both), copy(2, 6, &without_second));
        assert_eq!(counts(&[copy(1, 6, &without_second), torn]), Ok((0, vec![true, true])));
        let older = copy(2, 5, &both);
        assert_eq!(counts(&[copy(1, 6, &without_second), older]), Ok((0, vec![true, false])));
    }

    #[test]
    fn an_older_copy_of_a_member_does_not_count_and_what_one_that_is_out_says_is_void() {
        let both = [(1, true), (2, true)];
        assert_eq!(counts(&[copy(1, 7, &both), copy(2, 5, &both)]), Ok((0, vec![true, false])));
        let torn = recording(copy(2, 7, &both), copy(2, 5, &both));
        let found = counts(&[copy(1, 5, &both), torn]);
        assert_eq!(found, Ok((0, vec![true, true])), "a change was being recorded");
        let three = |first, second, third| [(1, first), (2, second), (3, third)];
        let copies = [
            copy(1, 6, &three(true, true, false)),
            copy(2, 7, &three(false, true, true)),
            copy(3, 7, &three(false, true, true)),
        ];
        assert_eq!(counts(&copies), Ok((1, vec![false, true, true])));
    }
}
