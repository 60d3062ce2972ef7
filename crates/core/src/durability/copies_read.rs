//! Recovery of a journal with several copies: each is read as if it were the only one, then it is
//! judged which of them count.
//!
//! A copy that another one has recorded out, or whose member it has seen replaced, was left behind:
//! the other one has gone on without it. It does not count, however whole it is. It is not enough
//! to count changes or checkpoints: a copy that was cut off may have come further in what nobody was
//! told of. All others have every record that anybody was told of, and the one that has come
//! furthest is gone by. Where each of two was left behind by the other, what is not on both pages of
//! a copy yet is void: nothing was answered since. Those of which each was left behind by the other
//! even so are refused.
//!
//! A member that was put back as it was some time ago says of itself that it is in, and nobody has
//! recorded it out. It is told by its membership pages, which change at every opening: the second
//! page of a copy is written when the first page of every copy is durable, so a copy whose pages are
//! both older than the second page of another one does not count either.

use super::copies::{CopySet, Found, JournalCopy, Part};
use super::ids::Lsn;
use super::journal::Journal;
use super::membership::{Listed, Membership, PAGES, Page};
use super::opening::{COUNT_MAX, Opening, Phase};
use super::operations::Purpose;
use super::superblock::{COPIES, Superblock};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::{OpenError, Uuid};
use crate::planted::PlantedBug;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

impl Journal {
    /// Begins a recovery of every copy that is there. [`JournalEvent::Recovered`] or
    /// [`JournalEvent::Refused`] ends it; the error is that of the first copy then. `set` is the
    /// set that the members must belong to.
    ///
    /// [`JournalEvent::Recovered`]: super::JournalEvent::Recovered
    /// [`JournalEvent::Refused`]: super::JournalEvent::Refused
    pub fn open_copies(&mut self, set: Option<Uuid>, ctx: &mut Context<'_>) {
        self.copies().read.set = set;
        self.read_next_copy(ctx);
    }

    fn read_next_copy(&mut self, ctx: &mut Context<'_>) {
        loop {
            let mirror = self.copies();
            let index = mirror.read.results.len();
            let Some(copy) = mirror.copies.get(index) else {
                return self.judge(ctx);
            };
            let settings = copy.settings;
            if ctx.is_lost(settings.port) {
                let lost = Err(OpenError::Io(IoError::Lost));
                mirror.read.results.push(lost);
                continue;
            }
            mirror.read.current = index;
            let number = ctx.member_number(settings.port);
            let member = |set: Uuid| (set, number.map(|number| set.member(number)));
            let opening = Opening::new(mirror.read.set.map(member), PAGES);
            self.settings = settings;
            self.phase = Phase::Opening(Box::new(opening));
            let superblocks = settings.superblock_addresses().into_iter();
            let pages = settings.membership_addresses();
            for (number, address) in (0..).zip(superblocks.chain(pages)) {
                self.read_copy(index, number, Extent::new(address, 1), ctx);
            }
            return;
        }
    }

    /// A copy was read to its end, or it cannot be.
    pub(super) fn copy_read(
        &mut self,
        result: Result<Box<Opening>, OpenError>,
        ctx: &mut Context<'_>,
    ) {
        let (superblock, greatest_generation) = (self.superblock, self.greatest_generation);
        let found = result.map(|opening| Found { opening, superblock, greatest_generation });
        self.copies().read.results.push(found);
        self.read_next_copy(ctx);
    }

    /// Checks what the membership pages of the copy say that is being read.
    pub(super) fn check_membership(&self, opening: &mut Opening) -> Result<(), OpenError> {
        let Some(mirror) = self.mirror.as_deref() else {
            return Ok(());
        };
        let superblock = &self.superblock;
        let index = mirror.read.current;
        let good = |page: &&Page| {
            page.member == superblock.member
                && page.index == index as u64
                && page.membership.changes <= COUNT_MAX
        };
        let pages = opening.membership.pages.iter().flatten().filter(good);
        let Some(newest) = pages.max_by_key(|page| page.membership.changes) else {
            let detail = "neither of its two pages is whole and of this copy";
            return Err(OpenError::damaged("membership", detail));
        };
        let (found, expected) = (newest.membership.copies.len(), mirror.copies.len());
        if found != expected {
            return Err(OpenError::Settings {
                name: "copies of the journal",
                found: found as u64,
                expected: expected as u64,
            });
        }
        let own = superblock.set.member(newest.membership.copies[index].number);
        if own != superblock.member {
            return Err(OpenError::OtherMember { found: superblock.member, expected: own });
        }
        opening.membership.newest = Some(newest.membership.clone());
        Ok(())
    }

    /// Every copy was read: decides which of them count and which one the journal goes by.
    fn judge(&mut self, ctx: &mut Context<'_>) {
        let read = &mut self.copies().read;
        let mut results = core::mem::take(&mut read.results);
        for (copy, result) in results.iter_mut().enumerate() {
            if read.lost.has(copy) {
                *result = Err(OpenError::Io(IoError::Lost));
            }
        }
        match chosen(&results, ctx) {
            Ok(chosen) => self.go_by(chosen, results, ctx),
            Err(error) => self.refuse(error),
        }
    }

    fn go_by(
        &mut self,
        Chosen { newest, is_in }: Chosen,
        mut results: Vec<Result<Found, OpenError>>,
        ctx: &mut Context<'_>,
    ) {
        let taken = (0..results.len())
            .filter(|index| is_in[*index])
            .filter_map(|index| Some((index, results[index].as_ref().ok()?)));
        let base = taken.max_by_key(|(index, found)| {
            let (_, generation, end) = found.age();
            (generation, end, usize::MAX - index)
        });
        let Some((base, _)) = base else {
            let error = results.into_iter().find_map(Result::err);
            let detail = "it says that no member which is there has every record";
            return self.refuse(error.unwrap_or(OpenError::damaged("membership", detail)));
        };
        let founds = || {
            results
                .iter()
                .zip(&is_in)
                .filter_map(|(found, is_in)| found.as_ref().ok().filter(|_| *is_in))
        };
        let epoch = founds().map(|found| found.superblock.epoch).max();
        let greatest = founds().map(|found| found.greatest_generation).max();
        let set = results[base].as_ref().map_or(Uuid::default(), |found| found.superblock.set);
        let mirror = self.copies();
        mirror.changes = newest.changes;
        mirror.read.current = base;
        for (index, copy) in mirror.copies.iter_mut().enumerate() {
            let found = results[index].as_ref().ok().filter(|_| is_in[index]);
            copy.take_back(found, newest.copies[index], set);
        }
        self.settings = mirror.copies[base].settings;
        self.greatest_generation = greatest.unwrap_or(0);
        let Ok(Found { mut opening, superblock, .. }) = results.swap_remove(base) else {
            unreachable!("a copy that is in was read");
        };
        self.superblock = Superblock { epoch: epoch.unwrap_or(superblock.epoch), ..superblock };
        opening.membership.is_chosen = true;
        self.go_on_recovering(opening, ctx);
    }

    /// Begins a journal that was recovered. Which copies have come up is recorded first, so that a
    /// member that is put back later as it is now can be told.
    pub(super) fn begin_copies(&mut self, map: Vec<u8>, ctx: &mut Context<'_>) {
        let mirror = self.copies();
        mirror.is_begun = true;
        if !mirror.is_in().meets(mirror.with_data) {
            return self.fail(IoError::Lost);
        }
        self.copies().map = Some(map);
        self.record_membership(ctx);
    }

    /// The members get these numbers when they are formatted: that of the stack, or else one after
    /// another from the first one on. Copies on lost members are out from the start.
    pub fn format_copies(
        &mut self,
        set: Uuid,
        first: u16,
        checkpoint: Vec<u8>,
        ctx: &mut Context<'_>,
    ) {
        let mirror = self.copies();
        mirror.is_begun = true;
        for (next, copy) in (first..).zip(&mut mirror.copies) {
            let port = copy.settings.port;
            copy.number = ctx.member_number(port).unwrap_or(next);
            copy.member = set.member(copy.number);
            copy.part = match ctx.is_lost(port) {
                true => Part::Out,
                false => Part::In,
            };
        }
        let to: CopySet = mirror.is_in();
        if to.is_empty() {
            return self.fail(IoError::Lost);
        }
        self.superblock.set = set;
        self.superblock.member = self.copies().copies[0].member;
        self.start_at(Lsn(0));
        self.phase = Phase::Formatting(checkpoint);
        self.blank_rings(to, Purpose::RingZero, ctx);
    }
}

impl JournalCopy {
    /// Takes back what was found of it, if it counts, and the number that it is listed by.
    fn take_back(&mut self, found: Option<&Found>, listed: Listed, set: Uuid) {
        self.number = listed.number;
        self.member = set.member(listed.number);
        self.part = Part::Out;
        if let Some(found) = found {
            self.part = Part::In;
            self.member = found.superblock.member;
            self.place = found.superblock.checkpoint_place;
            self.found = Some(found.superblock);
            let chosen = Some(Ok(found.superblock));
            let copies: &[_; COPIES] = &found.opening.copies;
            self.strays = copies.each_ref().map(|copy| *copy != chosen);
        }
    }
}

/// Which copies count.
struct Chosen {
    /// What is so.
    newest: Membership,
    is_in: Vec<bool>,
}

/// What is to be made of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Counts,
    Out,
}

/// Decides which copies count: those that no copy which counts has gone on without.
fn chosen(results: &[Result<Found, OpenError>], ctx: &Context<'_>) -> Result<Chosen, OpenError> {
    let good: Vec<(usize, &Found)> = (0..)
        .zip(results)
        .filter_map(|(index, found)| Some((index, found.as_ref().ok()?)))
        .collect();
    let Some((_, first)) = good.first() else {
        let error = results.iter().find_map(|result| result.as_ref().err());
        return Err(error.cloned().unwrap_or(OpenError::NotFormatted));
    };
    let set = first.superblock.set;
    for (_, found) in &good {
        let found = found.superblock.set;
        if found != set {
            let expected = set;
            return Err(OpenError::Foreign { found, expected });
        }
    }
    let verdicts = judged(&good, ctx);
    let undecided = || good.iter().filter(|(index, _)| verdicts[*index] == Verdict::Unknown);
    if let Some((_, one)) = undecided().next() {
        return Err(gone_apart(one, undecided().nth(1).map_or(*one, |(_, other)| other)));
    }
    let counts = good.iter().filter(|(index, _)| verdicts[*index] == Verdict::Counts);
    let newest = counts.max_by_key(|(index, found)| (found.age(), usize::MAX - index));
    let (_, newest) = newest.expect("a copy counts when none is undecided");
    let is_planted = ctx.is_planted(PlantedBug::OlderCopyTaken);
    let all_have = (good.iter())
        .filter(|(index, found)| {
            verdicts[*index] == Verdict::Counts && newest.lists(*index, &found.superblock, true)
        })
        .filter_map(|(_, found)| found.changes_of_all().filter(|_| !is_planted))
        .max();
    let is_in = |(index, found): (usize, &Result<Found, OpenError>)| {
        let is_listed = |found: &Found| {
            newest.lists(index, &found.superblock, true)
                && Some(found.membership().changes) >= all_have
        };
        let takes_all = ctx.is_planted(PlantedBug::RecordedOutCopyTaken);
        verdicts.get(index) == Some(&Verdict::Counts)
            && found.as_ref().is_ok_and(|found| takes_all || is_listed(found))
    };
    Ok(Chosen {
        newest: newest.membership().clone(),
        is_in: results.iter().enumerate().map(is_in).collect(),
    })
}

/// A copy that nobody has gone on without counts. One that a copy which counts has gone on without
/// is out, and what it says is void. Of those that are left, what was only being recorded is void
/// too. Those that are left even then have gone on without each other.
fn judged(good: &[(usize, &Found)], ctx: &Context<'_>) -> Vec<Verdict> {
    let last = good.last().map_or(0, |(index, _)| *index);
    let mut verdicts = vec![Verdict::Unknown; last + 1];
    let is_reversed = ctx.is_planted(PlantedBug::OlderCopyTaken);
    let takes_all = ctx.is_planted(PlantedBug::RecordedOutCopyTaken);
    let left_behind = |index: usize, found: &Found, by: usize, other: &Found| match is_reversed {
        false => other.has_gone_on_without(index, found),
        true => found.has_gone_on_without(by, other),
    };
    let mut is_recorded_only = false;
    loop {
        let before = verdicts.clone();
        for (index, found) in good.iter().filter(|(index, _)| before[*index] == Verdict::Unknown) {
            let mut verdict = Verdict::Counts;
            for (by, other) in good.iter().filter(|(by, _)| by != index) {
                let is_void =
                    takes_all || is_recorded_only && other.is_about_to_go_on_without(*index, found);
                if is_void || !left_behind(*index, found, *by, other) {
                    continue;
                }
                verdict = match (verdict, before[*by]) {
                    (_, Verdict::Counts) => Verdict::Out,
                    (Verdict::Counts, Verdict::Unknown) => Verdict::Unknown,
                    (verdict, _) => verdict,
                };
            }
            verdicts[*index] = verdict;
        }
        if verdicts == before && core::mem::replace(&mut is_recorded_only, true) {
            return verdicts;
        }
    }
}

/// Two copies went on without each other: nobody can tell which one is right.
fn gone_apart(one: &Found, other: &Found) -> OpenError {
    let detail = format!(
        "members {} and {} have each gone on without the other and recorded it out; accepted: one \
         of them alone",
        one.superblock.member, other.superblock.member
    );
    OpenError::damaged("membership", detail)
}
