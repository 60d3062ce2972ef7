//! How a change of what part the copies of a journal take is recorded.
//!
//! ```text
//! page 0 of every copy -> flush -> page 1 -> flush
//! ```
//!
//! Until the last step whatever else the journal does completes, but is not told: no answer goes
//! out that a copy would not know of which has been lost, and which may come back.

use super::copies::{Part, Settling, Stage};
use super::events::JournalEvent;
use super::ids::Lsn;
use super::journal::Journal;
use super::operations::Purpose;
use crate::error::IoError;
use crate::layer::{Context, Port};
use crate::planted::PlantedBug;

impl Journal {
    /// True while the loss or the admission of a copy is being recorded: no answer may go out.
    #[inline]
    pub fn holds_answers(&self) -> bool {
        let mirror = self.mirror.as_deref();
        mirror.is_some_and(|mirror| mirror.settling.is_some())
    }

    /// The copy behind a port is gone. Nothing is said to be written or durable before the other
    /// copies have recorded it. The last copy is never given up: without it the journal fails.
    pub fn lose_copy(&mut self, port: Port, ctx: &mut Context<'_>) {
        match self.mirror.as_deref().map(|mirror| mirror.copy_at(port)) {
            None if self.settings.port == port => self.fail(IoError::Lost),
            Some(Some(copy)) => {
                self.take_out(copy, IoError::Lost, ctx);
            }
            _ => {}
        }
    }

    /// An operation of a copy has failed.
    pub(super) fn copy_failed(&mut self, copy: usize, error: IoError, ctx: &mut Context<'_>) {
        if self.take_out(copy, error, ctx) {
            let mirror = self.copies();
            let port = mirror.copies[copy].settings.port;
            mirror.notices.push_back(JournalEvent::CopyOut(port));
        }
    }

    /// True when the copy has become one that is out, or stays one.
    fn take_out(&mut self, copy: usize, error: IoError, ctx: &mut Context<'_>) -> bool {
        let mirror = self.copies();
        mirror.read.lost = mirror.read.lost.with(copy);
        let is_last = mirror.is_last(copy);
        let part = mirror.copies[copy].part;
        if part == Part::Out {
            // What was to become of it comes to nothing.
            return self.end_admission_of(copy, ctx);
        }
        if is_last && mirror.is_begun {
            self.fail(error);
            return false;
        }
        mirror.copies[copy].part = Part::Out;
        if mirror.is_begun {
            self.end_admission_of(copy, ctx);
            if !ctx.is_planted(PlantedBug::LostCopyUnrecorded) {
                self.record_membership(ctx);
            }
            self.end_all_that_are_over(ctx);
        }
        true
    }

    /// Records what part the copies take, as it is when the last page is written.
    pub(super) fn record_membership(&mut self, ctx: &mut Context<'_>) {
        if self.failure().is_some() {
            return;
        }
        match &mut self.copies().settling {
            Some(settling) => settling.again = true,
            None => self.begin_settling(ctx),
        }
    }

    fn begin_settling(&mut self, ctx: &mut Context<'_>) {
        self.copies().changes += 1;
        self.write_membership(0, ctx);
    }

    fn write_membership(&mut self, page: usize, ctx: &mut Context<'_>) {
        let mirror = self.copies();
        mirror.settling = Some(Settling { page, is_flushing: false, again: false });
        let membership = mirror.membership();
        let to = mirror.recording();
        self.write_to(to, Purpose::MembershipPage, ctx, |index, copy, block| {
            let address = copy.settings.membership_addresses()[page];
            membership.seal_into(copy.member, index, address, block);
            address
        });
    }

    /// A page of each copy was written, or they were flushed.
    pub(super) fn membership_step_done(&mut self, ctx: &mut Context<'_>) {
        let mirror = self.copies();
        let Some(settling) = &mut mirror.settling else {
            return;
        };
        match *settling {
            Settling { again: true, .. } => self.begin_settling(ctx),
            Settling { is_flushing: false, .. } => {
                settling.is_flushing = true;
                let to = mirror.recording();
                self.flush_copies(to, Purpose::MembershipFlush, ctx);
            }
            Settling { page: 0, .. } => self.write_membership(1, ctx),
            _ => self.settled(ctx),
        }
    }

    /// What part the copies take is durable on all that are in.
    fn settled(&mut self, ctx: &mut Context<'_>) {
        let mirror = self.copies();
        mirror.settling = None;
        if let Some(map) = mirror.map.take() {
            return self.begin_with(map, ctx);
        }
        let stage = mirror.admission.as_ref().map(|admission| admission.stage);
        match stage {
            Some(Stage::Number) => self.blank_ring_of_new_copy(ctx),
            Some(Stage::Recording) => self.copy_admitted(),
            Some(Stage::Waiting) => self.begin_admission(ctx),
            Some(Stage::Blanking | Stage::Writing) | None => {}
        }
        // It is what was done last that counts, should something change again.
        while self.copies().settling.is_none()
            && let Some(purpose) = self.copies().deferred.pop_front()
        {
            self.done(purpose, ctx);
        }
        if self.is_running() {
            self.events.push_back(match self.ring.written.0.checked_sub(1) {
                Some(last) => JournalEvent::Written(Lsn(last)),
                None => JournalEvent::AnswersReleased,
            });
        }
    }
}
