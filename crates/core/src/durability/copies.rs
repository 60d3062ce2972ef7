//! What is known of the copies of a journal that is kept on several ports.

use super::block::Header;
use super::events::JournalEvent;
use super::ids::Lsn;
use super::membership::{Listed, Membership, PAGES};
use super::opening::Opening;
use super::operations::Purpose;
use super::settings::JournalSettings;
use super::superblock::{COPIES, Superblock};
use crate::layer::Port;
use crate::lifecycle::{OpenError, Uuid};
use crate::saved::{Saved, SavedValue};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What part a copy takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) enum Part {
    /// It has every record.
    In,
    /// It is being written whole, and gets whatever is written meanwhile.
    Joining,
    /// It is whole, and that it is in is being recorded.
    Admitting,
    /// It does not count.
    Out,
}

/// One copy of a journal.
#[derive(Clone, Debug, Saved)]
pub(super) struct JournalCopy {
    #[saved(keep)]
    pub settings: JournalSettings,
    pub part: Part,
    /// The number of its member in the set, and its name.
    pub number: u16,
    pub member: Uuid,
    /// The place of its newest checkpoint. A recovery may find the copies at different places, and
    /// none may overwrite its own.
    pub place: u16,
    /// The superblock that recovery has found on it, and the copies of that which say another.
    pub found: Option<Superblock>,
    pub strays: [bool; COPIES],
}

/// Some of the copies, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, SavedValue)]
pub(super) struct CopySet(u32);

impl CopySet {
    pub const ALL: CopySet = CopySet(u32::MAX);

    pub fn one(copy: usize) -> CopySet {
        CopySet(1 << copy)
    }

    pub fn has(self, copy: usize) -> bool {
        self.0 & 1 << copy != 0
    }

    pub fn with(self, copy: usize) -> CopySet {
        CopySet(self.0 | 1 << copy)
    }

    pub fn without(self, copy: usize) -> CopySet {
        CopySet(self.0 & !(1 << copy))
    }

    /// True when a copy is in both.
    pub fn meets(self, other: CopySet) -> bool {
        self.0 & other.0 != 0
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The copies with which an operation in flight is not done.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Pending {
    /// Those that it was sent to.
    pub sent: CopySet,
    pub missing: CopySet,
    /// The journal has gone on: what is missing are copies that are out.
    pub is_over: bool,
}

/// A journal block that is sent later.
#[derive(Debug, SavedValue)]
pub(super) struct HeldBlock {
    pub header: Header,
    pub records: Vec<u8>,
}

/// The copies of a journal.
#[derive(Debug, Saved)]
pub(super) struct Mirror {
    #[saved(each)]
    pub copies: Vec<JournalCopy>,
    /// Those whose members have all data of the layer. The last of them is never recorded as out.
    pub with_data: CopySet,
    /// Counts the changes of what part the copies take.
    pub changes: u64,
    /// By the index of the operation.
    pub pending: Vec<Pending>,
    /// What has been done and is not told before a change is recorded.
    pub deferred: VecDeque<Purpose>,
    #[saved(absent)]
    pub settling: Option<Settling>,
    #[saved(absent)]
    pub admission: Option<Admission>,
    /// Journal blocks that wait for a copy that is about to join.
    pub held: VecDeque<HeldBlock>,
    /// The map for the checkpoint with which the journal begins, while a change is recorded.
    pub map: Option<Vec<u8>>,
    /// Events that nothing holds back.
    #[saved(absent)]
    pub notices: VecDeque<JournalEvent>,
    #[saved(keep)]
    pub read: CopiesRead,
    /// The journal may write: it is formatted, or the layer has taken back what was recovered.
    pub is_begun: bool,
}

impl Mirror {
    /// The copies that get what is written.
    pub fn taking_part(&self) -> CopySet {
        self.those(|copy| copy.part != Part::Out)
    }

    /// The copies that are in.
    pub fn is_in(&self) -> CopySet {
        self.those(|copy| copy.part == Part::In)
    }

    /// True when no other copy that is in has all data of the layer, or no other one is in at all.
    pub fn is_last(&self, copy: usize) -> bool {
        let without = self.is_in().without(copy);
        self.copies[copy].part == Part::In && !without.meets(self.with_data)
    }

    pub fn those(&self, which: impl Fn(&JournalCopy) -> bool) -> CopySet {
        let bits = (0..).zip(&self.copies).filter(|(_, copy)| which(copy));
        CopySet(bits.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    pub fn copy_at(&self, port: Port) -> Option<usize> {
        let mut copies = self.copies.iter();
        copies.position(|copy| copy.settings.port == port)
    }

    /// Takes note of an operation that was sent to these copies.
    pub fn begin(&mut self, index: usize, sent: CopySet) {
        let pending = Pending { sent, missing: sent, is_over: false };
        match self.pending.get_mut(index) {
            Some(entry) => *entry = pending,
            None => self.pending.push(pending),
        }
    }

    /// What the membership pages have to say.
    pub fn membership(&self) -> Membership {
        let listed = self.copies.iter().map(|copy| Listed {
            number: copy.number,
            is_in: matches!(copy.part, Part::In | Part::Admitting),
        });
        Membership { changes: self.changes, copies: listed.collect() }
    }

    /// The copies that a change is recorded on.
    pub fn recording(&self) -> CopySet {
        let recording = self.those(|copy| matches!(copy.part, Part::In | Part::Admitting));
        match &self.admission {
            Some(admission) if admission.is_return && admission.stage == Stage::Number => {
                recording.with(admission.copy)
            }
            _ => recording,
        }
    }

    /// From now on nothing is recorded.
    pub fn give_up(&mut self) {
        self.settling = None;
        self.admission = None;
        self.map = None;
        self.deferred.clear();
        self.held.clear();
    }
}

/// A change that is being recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling {
    /// The page that is written or flushed.
    pub page: usize,
    pub is_flushing: bool,
    /// Something has changed meanwhile.
    pub again: bool,
}

/// What is on its way, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Another checkpoint or another change comes first.
    Waiting,
    /// The number of the new member is being recorded.
    Number,
    /// The ring of the new copy is being zeroed.
    Blanking,
    /// A checkpoint is being written to all copies.
    Writing,
    /// That the new copy is in is being recorded.
    Recording,
}

/// A copy that is being admitted.
#[derive(Debug)]
pub(super) struct Admission {
    pub copy: usize,
    pub stage: Stage,
    /// The state of the layer, with every record before this place in it.
    pub map: Vec<u8>,
    pub from: Lsn,
    /// The member is not new.
    pub is_return: bool,
}

impl Admission {
    /// Journal blocks wait until the new copy gets them as well.
    pub fn holds(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Number | Stage::Blanking)
    }
}

/// What was read of a copy that is whole.
#[derive(Debug)]
pub(super) struct Found {
    pub opening: Box<Opening>,
    pub superblock: Superblock,
    pub greatest_generation: u64,
}

/// The copies that were read so far.
#[derive(Debug, Default)]
pub(super) struct CopiesRead {
    /// The set that the members must belong to.
    pub set: Option<Uuid>,
    pub results: Vec<Result<Found, OpenError>>,
    /// The copy that is being read, or that the journal goes by.
    pub current: usize,
    /// Copies that have gone meanwhile: what was read of them does not count.
    pub lost: CopySet,
}

/// How far a copy has come, by what counts more first: the changes of its membership, its
/// checkpoints, its records.
pub(super) type Age = (u64, u64, Lsn);

impl Found {
    pub fn membership(&self) -> &Membership {
        let membership = self.opening.membership.newest.as_ref();
        membership.expect("a copy that was read")
    }

    pub fn age(&self) -> Age {
        let (changes, end) = (self.membership().changes, self.opening.lsn);
        (changes, self.superblock.generation, end)
    }

    /// True when this copy has recorded another one out, or has seen its member replaced. Members
    /// that come later have greater numbers. A member that came back has its old number: it has seen
    /// more changes than this copy then, which it lists as in.
    pub fn has_gone_on_without(&self, index: usize, other: &Found) -> bool {
        let listed = self.membership().copies[index];
        let own = other.membership().copies[index].number;
        let has_come_back = || {
            other.membership().changes > self.membership().changes
                && other.membership().copies.iter().any(|copy| {
                    copy.is_in && other.superblock.set.member(copy.number) == self.superblock.member
                })
        };
        listed.number > own || listed.number == own && !listed.is_in && !has_come_back()
    }

    /// True when that it [has gone on without](Self::has_gone_on_without) another copy stands in one of its pages
    /// alone, the other one being whole: nothing was answered since.
    pub fn is_about_to_go_on_without(&self, index: usize, other: &Found) -> bool {
        let lists_in = |second: &Membership| {
            let listed = second.copies.get(index);
            listed
                .is_some_and(|it| it.is_in && it.number == other.membership().copies[index].number)
        };
        self.second_page().is_some_and(lists_in)
    }

    fn second_page(&self) -> Option<&Membership> {
        let second = self.opening.membership.pages[PAGES - 1].as_ref()?;
        (second.member == self.superblock.member).then_some(&second.membership)
    }

    /// Changes of the membership that every copy has which is in: the second page of a copy is
    /// written when the first page of all is durable.
    pub fn changes_of_all(&self) -> Option<u64> {
        self.second_page().map(|second| second.changes)
    }

    /// True when this copy says that the member of another one is in, or is out.
    pub fn lists(&self, index: usize, other: &Superblock, is_in: bool) -> bool {
        let listed = &self.membership().copies[index];
        listed.is_in == is_in && other.set.member(listed.number) == other.member
    }
}
