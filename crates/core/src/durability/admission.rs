//! How a blank member becomes a copy of a journal.
//!
//! ```text
//! number recorded on the copies that are in -> ring of the new copy blanked
//!     -> a checkpoint and all later blocks to all -> recorded as in on all
//! ```
//!
//! The number comes first: a copy that has missed something must never be taken for the new one.
//! The new copy is not said to be in before it is whole.

use super::checkpoint_pages::Content;
use super::checkpoint_steps::Occasion;
use super::copies::{Admission, CopySet, HeldBlock, Part, Stage};
use super::events::JournalEvent;
use super::journal::Journal;

use super::operations::Purpose;
use crate::buffer::BufferSlice;
use crate::layer::{Context, Port};
use crate::operation::{Durability, Operation};
use crate::planted::PlantedBug;
use alloc::vec::Vec;

impl Journal {
    /// A blank member is behind the port of a copy that is out. The copies that are in record its
    /// number durably, then it is written whole; `map` is the state of the layer with every record
    /// so far. [`JournalEvent::CopyAdmitted`] says when it is in, [`JournalEvent::CopyOut`] that it
    /// could not be written, or that its number is not greater than that of the member before. Nothing is done when the copy is in or the journal is not running.
    ///
    /// Panics when another copy is being admitted.
    pub fn admit_copy(&mut self, port: Port, map: Vec<u8>, ctx: &mut Context<'_>) {
        self.take_in(port, map, false, ctx);
    }

    /// The member behind the port of a copy that is out is the same as before, and has come back. It is admitted
    /// as [a blank one](Self::admit_copy) is; before anything else it records of itself that it is out, so that
    /// half of it is never taken for all.
    ///
    /// Panics when another copy is being admitted.
    pub fn readmit_copy(&mut self, port: Port, map: Vec<u8>, ctx: &mut Context<'_>) {
        self.take_in(port, map, true, ctx);
    }

    fn take_in(&mut self, port: Port, map: Vec<u8>, is_return: bool, ctx: &mut Context<'_>) {
        let is_running = self.is_running() && self.failure().is_none();
        let Some(mirror) = self.mirror.as_deref().filter(|_| is_running) else {
            return;
        };
        assert!(mirror.admission.is_none(), "a second new copy at once");
        let out = mirror.those(|copy| copy.part == Part::Out);
        let Some(copy) = mirror.copy_at(port).filter(|copy| out.has(*copy)) else {
            return;
        };
        // What was appended is in the map; later records go to later blocks.
        self.seal(ctx);
        let from = self.ring.next;
        let set = self.superblock.set;
        let mirror = self.copies();
        let greatest = mirror.copies.iter().map(|copy| copy.number).max();
        let next = greatest.unwrap_or(0).saturating_add(1);
        let new = &mut mirror.copies[copy];
        let next = if is_return { new.number } else { next };
        let number = ctx.member_number(port).unwrap_or(next);
        if number < new.number || number == new.number && !is_return {
            // It could not be told from the one before.
            return mirror.notices.push_back(JournalEvent::CopyOut(port));
        }
        if !ctx.is_planted(PlantedBug::ReplacementUnrecorded) {
            new.number = number;
        }
        new.member = set.member(number);
        let stage = Stage::Waiting;
        mirror.admission = Some(Admission { copy, stage, map, from, is_return });
        self.begin_admission(ctx);
    }

    /// Begins to admit the copy that waits for it, when nothing comes before.
    pub(super) fn begin_admission(&mut self, ctx: &mut Context<'_>) {
        if self.checkpoint.is_some() || self.holds_answers() {
            return;
        }
        let mirror = self.copies();
        if let Some(admission) = &mut mirror.admission
            && admission.stage == Stage::Waiting
        {
            admission.stage = Stage::Number;
            if admission.is_return {
                // That it is out must be durable there too.
                mirror.copies[admission.copy].part = Part::Joining;
            }
            self.record_membership(ctx);
        }
    }

    /// What lies there would look like a damaged journal block to a recovery.
    pub(super) fn blank_ring_of_new_copy(&mut self, ctx: &mut Context<'_>) {
        let Some(admission) = &mut self.copies().admission else {
            return;
        };
        admission.stage = Stage::Blanking;
        let copy = admission.copy;
        let to = CopySet::one(copy);
        self.copies().copies[copy].part = Part::Joining;
        self.blank_rings(to, Purpose::RingZero, ctx);
    }

    pub(super) fn blank_rings(&mut self, to: CopySet, purpose: Purpose, ctx: &mut Context<'_>) {
        let zero = Operation::Zero { durability: Durability::Cached, may_unmap: true };
        let nothing = BufferSlice::EMPTY;
        self.send_to(to, purpose, nothing, ctx, |_, copy| (zero, copy.settings.ring(), nothing));
    }

    /// The ring of the new copy is blank: it gets everything from now on.
    pub(super) fn new_ring_zeroed(&mut self, ctx: &mut Context<'_>) {
        let mirror = self.copies();
        let Some(admission) = &mut mirror.admission else {
            return;
        };
        admission.stage = Stage::Writing;
        let (map, from) = (core::mem::take(&mut admission.map), admission.from);
        self.send_held(ctx);
        self.start_checkpoint(Occasion::Admission(from), Content::whole(map), ctx);
    }

    /// The new copy is whole.
    pub(super) fn new_copy_written(&mut self, ctx: &mut Context<'_>) {
        let mirror = self.copies();
        if let Some(admission) = &mut mirror.admission
            && admission.stage == Stage::Writing
        {
            admission.stage = Stage::Recording;
            mirror.copies[admission.copy].part = Part::Admitting;
            self.record_membership(ctx);
        }
    }

    /// Every copy says that the new one is in.
    pub(super) fn copy_admitted(&mut self) {
        let mirror = self.copies();
        if let Some(admission) = mirror.admission.take() {
            let copy = &mut mirror.copies[admission.copy];
            copy.part = Part::In;
            let port = copy.settings.port;
            self.events.push_back(JournalEvent::CopyAdmitted(port));
        }
    }

    /// The copy is of no use. True when it was being admitted.
    pub(super) fn end_admission_of(&mut self, copy: usize, ctx: &mut Context<'_>) -> bool {
        let mirror = self.copies();
        let is_of = |admission: &Admission| admission.copy == copy;
        if !mirror.admission.as_ref().is_some_and(is_of) {
            return false;
        }
        mirror.admission = None;
        self.send_held(ctx);
        true
    }

    fn send_held(&mut self, ctx: &mut Context<'_>) {
        while let Some(HeldBlock { header, records }) = self.copies().held.pop_front() {
            self.write_records(header, &records, ctx);
        }
    }
}
