//! Checkpoints: the whole state of a layer in the place that the newest one does not use, or a part
//! behind the newest one that says what has changed since.
//!
//! ```text
//! (strays -> flush ->) pages -> flush -> superblock copies 0, 1 -> flush -> copies 2, 3 -> flush
//! ```
//!
//! Until the last step the older checkpoint with the journal behind it is whole, and at no time
//! are more than two superblocks that name it on their way. After a crash some copies may name another
//! checkpoint than the one that recovery has found, or nothing that can be read, of which a later
//! torn write may make a good copy again. Its place is about to be overwritten: therefore these
//! copies are made to name what was found, and are flushed, before the first page.

use super::block::{self, BlockKind, Header};
use super::checkpoint_pages::{Content, Next, Pages};
use super::checkpoint_steps::{Checkpoint, Occasion, Step};
use super::events::JournalEvent;
use super::ids::Lsn;
use super::journal::Journal;
use super::opening::Phase;
use super::operations::Purpose;
use super::settings::JournalSettings;
use super::superblock::{COPIES, Superblock};
use crate::buffer::BufferSlice;
use crate::crc;
use crate::extent::Extent;
use crate::layer::Context;
use crate::lifecycle::Uuid;
use crate::operation::{Durability, Operation};
use crate::planted::PlantedBug;
use alloc::vec::Vec;
use core::mem;

/// Pages in flight at once.
const PAGES_IN_FLIGHT_MAX: u32 = 32;

impl Journal {
    /// Writes an empty device over whatever the member holds: `checkpoint` is the state of the
    /// layer at its start. [`JournalEvent::Opened`] says when it is done.
    pub fn format(&mut self, set: Uuid, member: Uuid, checkpoint: Vec<u8>, ctx: &mut Context<'_>) {
        self.superblock.set = set;
        self.superblock.member = member;
        self.start_at(Lsn(0));
        self.phase = Phase::Formatting(checkpoint);
        // What lies there would look like a damaged journal block to a recovery.
        let zero = Operation::Zero { durability: Durability::Cached, may_unmap: true };
        let ring = self.settings.ring();
        self.issue(Purpose::RingZero, zero, ring, BufferSlice::EMPTY, ctx);
    }

    /// The ring of a member that is formatted is blank.
    pub(super) fn ring_zeroed(&mut self, ctx: &mut Context<'_>) {
        if self.mirror.is_some() && self.is_running() {
            return self.new_ring_zeroed(ctx);
        }
        let Phase::Formatting(checkpoint) = mem::replace(&mut self.phase, Phase::Shut) else {
            unreachable!("the ring of a member that is not being formatted")
        };
        if let Some(mirror) = &mut self.mirror {
            mirror.map = Some(checkpoint);
            return self.record_membership(ctx);
        }
        self.begin_with(checkpoint, ctx);
    }

    /// Ends a recovery: `checkpoint` is the state that the layer has brought back. Records are
    /// taken after [`JournalEvent::Opened`]. Until then a second recovery would find what this one
    /// has found.
    pub fn begin(&mut self, checkpoint: Vec<u8>, ctx: &mut Context<'_>) {
        match self.is_mirrored() {
            true => self.begin_copies(checkpoint, ctx),
            false => self.begin_with(checkpoint, ctx),
        }
    }

    pub(super) fn begin_with(&mut self, checkpoint: Vec<u8>, ctx: &mut Context<'_>) {
        self.start_checkpoint(Occasion::Begin, Content::whole(checkpoint), ctx);
    }

    /// Writes the state of the layer, with every record appended so far in it, so that the journal
    /// before it can be used again. One at a time.
    pub fn checkpoint(&mut self, checkpoint: Vec<u8>, ctx: &mut Context<'_>) {
        if self.failure().is_none() {
            self.start_checkpoint(Occasion::Running, Content::whole(checkpoint), ctx);
        }
    }

    /// As [`checkpoint`](Self::checkpoint), by the records since the newest one, which come behind its map. False
    /// when nothing is written: a whole map is needed.
    pub fn checkpoint_by_records(&mut self, ctx: &mut Context<'_>) -> bool {
        if ctx.is_planted(PlantedBug::RecordLeftOut) {
            self.record_parts.leave_out_newest();
        }
        let bytes = self.record_parts.bytes();
        if self.failure().is_some() || !bytes.is_some_and(|bytes| self.has_place_for_part(bytes)) {
            return false;
        }
        let records = Content::records(self.record_parts.take());
        self.start_checkpoint(Occasion::Running, records, ctx);
        true
    }

    /// As [`checkpoint`](Self::checkpoint), of so many bytes, which the layer hands over piece by piece:
    /// [`JournalEvent::PieceWanted`] asks for each. They say what was so at this call. With `is_part` they
    /// come behind the newest checkpoint, of which every byte stays; only where
    /// [they fit](Self::has_place_for_part), and not where the journal is mirrored.
    pub fn checkpoint_in_pieces(&mut self, bytes: u64, is_part: bool, ctx: &mut Context<'_>) {
        assert!(!(is_part && self.is_mirrored()), "a part on copies that lie apart");
        if self.failure().is_none() {
            self.start_checkpoint(Occasion::Running, Content::in_pieces(bytes, is_part), ctx);
        }
    }

    /// Takes the next piece of the checkpoint that is being written.
    pub fn take_piece(&mut self, piece: &[u8], ctx: &mut Context<'_>) {
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        let sum = &mut checkpoint.superblock.checkpoint_checksum;
        *sum = crc::crc32c_append(*sum, piece);
        checkpoint.pages.take(piece);
        self.write_pages(ctx);
    }

    /// True when a part of so many bytes fits behind the newest checkpoint.
    pub fn has_place_for_part(&self, bytes: u64) -> bool {
        let pages = self.superblock.pages() + JournalSettings::checkpoint_blocks_for(bytes);
        pages <= self.settings.checkpoint_blocks
    }

    /// Writes the last checkpoint of a layer that has nothing in flight and marks the member as
    /// clean. [`JournalEvent::Closed`] says when it is done.
    pub fn close(&mut self, checkpoint: Vec<u8>, ctx: &mut Context<'_>) {
        match self.failure() {
            None => self.start_checkpoint(Occasion::Close, Content::whole(checkpoint), ctx),
            Some(error) => self.events.push_back(JournalEvent::Failed(error)),
        }
    }

    /// True while a checkpoint is being written, or a new copy is being admitted.
    pub fn is_checkpointing(&self) -> bool {
        let mirror = self.mirror.as_deref();
        self.checkpoint.is_some() || mirror.is_some_and(|mirror| mirror.admission.is_some())
    }

    pub(super) fn start_checkpoint(
        &mut self,
        occasion: Occasion,
        content: Content,
        ctx: &mut Context<'_>,
    ) {
        assert!(self.checkpoint.is_none(), "a second checkpoint at once");
        let replay_from = match occasion {
            Occasion::Admission(from) => from,
            _ => {
                // What was appended is in the checkpoint; later records go to later blocks.
                self.seal(ctx);
                self.ring.next
            }
        };
        if !content.is_part() && self.settings.may_have_record_parts() {
            self.record_parts.begin_map(content.len());
        }
        let old = self.superblock;
        let root = self.superblock_of(&content, occasion, ctx);
        let first_page = if content.is_part() { old.pages() } else { 0 };
        let pages = Pages::new(content, first_page);
        assert!(
            pages.end() <= self.settings.checkpoint_blocks,
            "a checkpoint of {} pages in a place for {}",
            pages.end(),
            self.settings.checkpoint_blocks
        );
        let generation = self.next_generation();
        self.greatest_generation = generation;
        let bumped = occasion == Occasion::Begin && !ctx.is_planted(PlantedBug::EpochNotBumped);
        if ctx.is_planted(PlantedBug::JournalFreedEarly) {
            self.ring.tail = self.ring.next;
        }
        self.checkpoint = Some(Checkpoint {
            superblock: Superblock {
                generation,
                epoch: old.epoch + u64::from(bumped),
                clean: occasion == Occasion::Close,
                replay_from: replay_from.0,
                ..root
            },
            occasion,
            pages,
            step: Step::Pages,
            outstanding: 0,
        });
        match self.strays {
            [false, false, false, false] if !self.have_strays() => self.write_pages(ctx),
            _ => self.write_strays(ctx),
        }
    }

    /// The newest superblock with what names the bytes of the next checkpoint.
    fn superblock_of(
        &self,
        content: &Content,
        occasion: Occasion,
        ctx: &Context<'_>,
    ) -> Superblock {
        let old = self.superblock;
        let sum = |before| crc::crc32c_append(before, content.bytes());
        if content.is_part() {
            let pages = JournalSettings::checkpoint_blocks_for(content.len());
            return Superblock {
                required_features: self.settings.required_features | content.features,
                checkpoint_checksum: sum(old.checkpoint_checksum),
                checkpoint_bytes: old.checkpoint_bytes + content.len(),
                checkpoint_pages: old.pages() + pages,
                ..old
            };
        }
        let in_place =
            occasion == Occasion::Begin && ctx.is_planted(PlantedBug::RecoveryNotIdempotent);
        Superblock {
            required_features: self.settings.required_features,
            checkpoint_place: if in_place {
                old.checkpoint_place
            } else {
                1 - old.checkpoint_place
            },
            checkpoint_checksum: sum(0),
            checkpoint_bytes: content.len(),
            checkpoint_pages: 0,
            ..old
        }
    }

    /// Makes every copy of the superblock name the checkpoint that recovery has found.
    fn write_strays(&mut self, ctx: &mut Context<'_>) {
        let strays = core::mem::take(&mut self.strays);
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint on its way");
        checkpoint.step = Step::Strays;
        checkpoint.outstanding = strays.iter().filter(|is_stray| **is_stray).count() as u32;
        if self.is_mirrored() {
            let operations = self.write_strays_of_copies(ctx);
            let checkpoint = self.checkpoint.as_mut().expect("a checkpoint on its way");
            checkpoint.outstanding = operations;
            return;
        }
        let found = self.superblock;
        for copy in (0..COPIES).filter(|copy| strays[*copy]) {
            self.write_copy(copy, &found, ctx);
        }
    }

    fn write_copy(&mut self, copy: usize, superblock: &Superblock, ctx: &mut Context<'_>) {
        if self.is_mirrored() {
            return self.write_superblocks(copy, superblock, ctx);
        }
        let address = self.settings.superblock_addresses()[copy];
        let block = superblock.encode(address);
        self.scratch().copy_from_slice(&block);
        self.write_scratch(Purpose::SuperblockCopy, Extent::new(address, 1), ctx);
    }

    fn begin_pages(&mut self, ctx: &mut Context<'_>) {
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint on its way");
        checkpoint.step = Step::Pages;
        self.write_pages(ctx);
    }

    /// Writes pages as far as may be in flight at once; goes on when all are written.
    fn write_pages(&mut self, ctx: &mut Context<'_>) {
        loop {
            let Some(checkpoint) = &mut self.checkpoint else {
                return;
            };
            if checkpoint.step != Step::Pages || checkpoint.outstanding == PAGES_IN_FLIGHT_MAX {
                return;
            }
            let (index, range) = match checkpoint.pages.next() {
                Next::Page(index, range) => (index, range),
                Next::Piece => return self.events.push_back(JournalEvent::PieceWanted),
                Next::Wait => return,
                Next::End => {
                    let hasty = ctx.is_planted(PlantedBug::RootBeforePages);
                    if checkpoint.outstanding == 0 || hasty {
                        checkpoint.outstanding = 0;
                        self.pages_written(hasty, ctx);
                    }
                    return;
                }
            };
            let pages = checkpoint.pages.end();
            let is_last = index > 0 && index + 1 == pages;
            if is_last && ctx.is_planted(PlantedBug::CheckpointPageLeftOut) {
                continue;
            }
            checkpoint.outstanding += 1;
            let superblock = checkpoint.superblock;
            let bytes = mem::take(&mut checkpoint.pages.bytes);
            self.write_page(&superblock, (index, pages), &bytes[range], ctx);
            if let Some(checkpoint) = &mut self.checkpoint {
                checkpoint.pages.bytes = bytes;
            }
        }
    }

    fn write_page(
        &mut self,
        superblock: &Superblock,
        (index, pages): (u64, u64),
        bytes: &[u8],
        ctx: &mut Context<'_>,
    ) {
        if self.is_mirrored() {
            return self.write_pages_of_copies(superblock, (index, pages), bytes, ctx);
        }
        let address = self.settings.checkpoint_start(superblock.checkpoint_place) + index;
        let header = Header {
            kind: BlockKind::CheckpointPage,
            member: superblock.member,
            address,
            generation: superblock.generation,
            sequence: index,
            mark: pages,
        };
        block::seal_into(&header, bytes, self.scratch());
        self.write_scratch(Purpose::Page, Extent::new(address, 1), ctx);
    }

    fn pages_written(&mut self, hasty: bool, ctx: &mut Context<'_>) {
        if hasty {
            return self.write_copies(Step::FirstCopies, ctx);
        }
        self.flush_then(Step::PagesFlush, ctx);
    }

    /// Lets the checkpoint wait for a flush, which covers every block whose records it contains.
    fn flush_then(&mut self, step: Step, ctx: &mut Context<'_>) {
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint on its way");
        checkpoint.step = step;
        let target = Lsn(checkpoint.superblock.replay_from);
        self.flush_for_checkpoint(target, ctx);
    }

    /// Writes one half of the copies of the superblock, and never the only half that a recovery
    /// could go by.
    fn write_copies(&mut self, step: Step, ctx: &mut Context<'_>) {
        let copies = match step {
            Step::FirstCopies => 0..COPIES / 2,
            _ => COPIES / 2..COPIES,
        };
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint on its way");
        let all = ctx.is_planted(PlantedBug::AllSuperblocksInFlight);
        let copies = if all { 0..COPIES } else { copies };
        checkpoint.step = if all { Step::SecondCopies } else { step };
        checkpoint.outstanding = copies.len() as u32;
        let superblock = checkpoint.superblock;
        let hasty = ctx.is_planted(PlantedBug::EpochBumpUnflushed);
        let opens = checkpoint.occasion == Occasion::Begin && step == Step::FirstCopies && hasty;
        for copy in copies {
            self.write_copy(copy, &superblock, ctx);
        }
        if opens {
            self.superblock = superblock;
            self.ring.tail = Lsn(superblock.replay_from);
            self.phase = Phase::Running;
            self.events.push_back(JournalEvent::Opened);
        }
    }

    /// A page or a copy of the superblock has been written.
    pub(super) fn checkpoint_part_done(&mut self, ctx: &mut Context<'_>) {
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        if checkpoint.outstanding > 0 {
            checkpoint.outstanding -= 1;
        }
        match (checkpoint.step, checkpoint.outstanding) {
            (Step::Strays, 0) => self.flush_then(Step::StraysFlush, ctx),
            (Step::Pages, _) => self.write_pages(ctx),
            (Step::FirstCopies, 0) => self.flush_then(Step::FirstFlush, ctx),
            (Step::SecondCopies, 0) => self.flush_then(Step::SecondFlush, ctx),
            _ => {}
        }
    }

    /// The flush that the checkpoint waits for has completed.
    pub(super) fn checkpoint_flushed(&mut self, ctx: &mut Context<'_>) {
        match self.checkpoint.as_ref().map(|checkpoint| checkpoint.step) {
            Some(Step::StraysFlush) => self.begin_pages(ctx),
            Some(Step::PagesFlush) => self.write_copies(Step::FirstCopies, ctx),
            Some(Step::FirstFlush) => self.write_copies(Step::SecondCopies, ctx),
            Some(Step::SecondFlush) => self.checkpoint_done(ctx),
            _ => {}
        }
    }

    fn checkpoint_done(&mut self, ctx: &mut Context<'_>) {
        let checkpoint = self.checkpoint.take().expect("a checkpoint on its way");
        if self.is_mirrored() {
            self.turn_places(&checkpoint.superblock);
        }
        self.superblock = checkpoint.superblock;
        let replay_from = Lsn(checkpoint.superblock.replay_from);
        self.ring.tail = replay_from;
        self.ring.durable = self.ring.durable.max(replay_from);
        self.idle_mark.checkpointed(replay_from);
        let event = match checkpoint.occasion {
            Occasion::Begin if self.is_running() => return,
            Occasion::Begin => {
                self.phase = Phase::Running;
                JournalEvent::Opened
            }
            Occasion::Running | Occasion::Admission(_) => {
                JournalEvent::Checkpointed { durable_before: self.ring.durable }
            }
            Occasion::Close => {
                self.phase = Phase::Shut;
                JournalEvent::Closed
            }
        };
        self.events.push_back(event);
        // What had to wait for room.
        self.commit(ctx);
        if self.is_mirrored() {
            self.new_copy_written(ctx);
            self.begin_admission(ctx);
        }
    }
}
