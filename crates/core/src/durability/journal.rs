//! The journal of a layer while it runs: records, flushes and when there is room.

use super::block::{self, BlockKind, Header, PAYLOAD_BYTES};
use super::checkpoint_steps::Checkpoint;
use super::copies::Mirror;
use super::events::JournalEvent;
use super::flushes::Flushes;
use super::idle_mark::IdleMark;
use super::ids::{FlushTicket, Lsn};
use super::opening::Phase;
use super::operations::{Operations, Purpose};
use super::record::{self, DataRef, RECORD_BYTES_MAX};
use super::record_parts::RecordParts;
use super::ring::Ring;
use super::settings::{JournalSettings, LayerKind};
use super::superblock::{COPIES, Superblock};
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::lifecycle::Uuid;
use crate::operation::{Cause, Completion, Operation, Tag};
use crate::planted::PlantedBug;
use crate::saved::Saved;
use crate::units::{BLOCK_BYTES, BlockCount};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Smallest ring.
const RING_BLOCKS_MIN: u64 = 8;
/// Blocks of the ring that are filled before they are written: one for records that still come,
/// and one with which a checkpoint begins.
const LAST_BLOCKS: u64 = 2;

/// The durable memory of one layer.
///
/// The layer hands every completion whose tag the journal [owns](Self::owns) to
/// [`complete`](Self::complete) and then takes out the [events](Self::next_event); after it has
/// appended what one event of its own brought, it calls [`commit`](Self::commit).
#[derive(Debug, Saved)]
pub struct Journal {
    #[saved(keep)]
    pub(super) settings: JournalSettings,
    pub(super) phase: Phase,
    /// What the newest durable superblock says.
    pub(super) superblock: Superblock,
    /// The greatest generation of any copy of the superblock that could be read.
    pub(super) greatest_generation: u64,
    /// The copies that did not name the checkpoint which recovery has found.
    pub(super) strays: [bool; COPIES],
    pub(super) checkpoint: Option<Checkpoint>,
    #[saved(absent)]
    pub(super) events: VecDeque<JournalEvent>,
    failed: Option<IoError>,
    pub(super) ring: Ring,
    pub(super) record_parts: RecordParts,
    /// A block's worth of memory.
    scratch: Vec<u8>,
    pub(super) idle_mark: IdleMark,
    flushes: Flushes,
    /// Something may lie unflushed on the port that holds other data.
    has_unflushed_data: bool,
    pub(super) operations: Operations,
    /// The copies of a journal that is kept on several ports.
    #[saved(each)]
    pub(super) mirror: Option<Box<Mirror>>,
}

impl Journal {
    /// A journal that is not opened yet.
    ///
    /// Panics when the area has no room for a ring: the layer's layout checks.
    pub fn new(settings: JournalSettings) -> Journal {
        assert!(
            settings.ring().blocks.0 >= RING_BLOCKS_MIN,
            "a ring of {} blocks",
            settings.ring().blocks.0
        );
        Journal {
            superblock: Superblock {
                compatible_features: 0,
                read_only_features: 0,
                required_features: settings.required_features,
                layer: settings.layer as u32,
                set: Uuid::default(),
                member: Uuid::default(),
                generation: 0,
                epoch: 0,
                member_blocks: settings.member_blocks.0,
                area_blocks: settings.area.blocks.0,
                checkpoint_blocks: settings.checkpoint_blocks,
                checkpoint_place: 1,
                clean: false,
                checkpoint_checksum: 0,
                checkpoint_bytes: 0,
                replay_from: 0,
                checkpoint_pages: 0,
            },
            greatest_generation: 0,
            strays: [false; COPIES],
            settings,
            phase: Phase::Shut,
            checkpoint: None,
            events: VecDeque::new(),
            failed: None,
            ring: Ring::new(settings.ring().blocks.0),
            record_parts: RecordParts::default(),
            scratch: vec![0; BLOCK_BYTES as usize],
            idle_mark: IdleMark::default(),
            flushes: Flushes::default(),
            // Recovery takes back what was written there and never flushed.
            has_unflushed_data: settings.data.is_some(),
            operations: Operations::default(),
            mirror: None,
        }
    }

    /// Where the journal lies; of a mirrored one, the copy that it goes by.
    pub fn settings(&self) -> &JournalSettings {
        &self.settings
    }

    /// The set that the member belongs to, once it is open.
    pub fn set(&self) -> Uuid {
        self.superblock.set
    }

    /// The member's name, once it is open.
    pub fn member(&self) -> Uuid {
        self.superblock.member
    }

    /// Counts the checkpoints.
    pub fn generation(&self) -> u64 {
        self.superblock.generation
    }

    /// The generation that the next checkpoint will have. It is greater than that of any superblock
    /// that can be read, those of checkpoints that a crash cut short included.
    pub fn next_generation(&self) -> u64 {
        self.greatest_generation.max(self.superblock.generation) + 1
    }

    /// Why nothing can be made durable any more, if that is so. Sticky.
    #[inline]
    pub fn failure(&self) -> Option<IoError> {
        self.failed
    }

    /// True when records are taken.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// True when the journal issued the operation with this tag.
    #[inline]
    pub fn owns(&self, tag: Tag) -> bool {
        Operations::owns(tag)
    }

    /// True when a host request may append records. The rest of the ring is kept for what must
    /// come to an end in any case: a band rewrite, destages, the records of a checkpoint.
    pub fn has_room(&self) -> bool {
        self.ring.used() + self.reserve() <= self.ring.blocks()
    }

    /// True when records that open at most `blocks` journal blocks may be appended, so that `kept`
    /// blocks are still left, whatever happens to the block that is being filled.
    pub fn has_room_for(&self, blocks: u64, kept: u64) -> bool {
        self.ring.used_and_open() + blocks + kept <= self.ring.blocks()
    }

    /// Blocks of the ring that host requests must leave alone: see [`has_room`](Self::has_room).
    pub fn reserve(&self) -> u64 {
        (self.ring.blocks() / 4).max(2)
    }

    /// True when no operation of the journal is in flight.
    pub fn is_idle(&self) -> bool {
        self.operations.is_empty()
    }

    /// Blocks of the ring that are still to be filled, those apart that are kept for the beginning
    /// of a checkpoint. One record takes at most one of them.
    pub fn room(&self) -> u64 {
        let taken = self.ring.used_and_open() + LAST_BLOCKS;
        self.ring.blocks().saturating_sub(taken)
    }

    /// True when the layer should begin a checkpoint, so that room does not run out.
    pub fn wants_checkpoint(&self) -> bool {
        let half = self.ring.blocks() / 2;
        self.is_running()
            && self.failed.is_none()
            && !self.is_checkpointing()
            && self.ring.used() >= half
    }

    /// Every record before this place is durable.
    pub fn durable_before(&self) -> Lsn {
        self.ring.durable
    }

    /// Appends a record and returns its place. It goes to the disk with the next
    /// [`commit`](Self::commit), or earlier when a block is full.
    ///
    /// The data it speaks of must have been written before. Panics when the record is longer than
    /// [`RECORD_BYTES_MAX`], or when the ring is full: hosts ask [`has_room`](Self::has_room).
    pub fn append(
        &mut self,
        kind: u8,
        payload: &[u8],
        data: Option<DataRef<'_>>,
        ctx: &mut Context<'_>,
    ) -> Lsn {
        assert!(self.is_running(), "a record before the journal is open");
        let bytes = record::bytes_of(payload, data);
        assert!(bytes <= RECORD_BYTES_MAX, "a record of {bytes} bytes");
        if self.ring.open.len() + bytes > PAYLOAD_BYTES {
            self.seal(ctx);
        }
        self.ring.put(kind, payload, data);
        self.record_parts.note(kind, payload, data);
        self.ring.next
    }

    /// Sends what was appended to the disk, or lets it wait for the block that is on its way, so
    /// that records which come together share a block. When the ring is all but full, only full
    /// blocks are written until a checkpoint has made room: the layer must begin one.
    #[inline]
    pub fn commit(&mut self, ctx: &mut Context<'_>) {
        self.repeat_failure();
        let is_all_but_full = self.ring.used() + LAST_BLOCKS >= self.ring.blocks();
        if !self.ring.has_block_in_flight() && !is_all_but_full {
            self.seal(ctx);
        }
    }

    /// A write to the port that holds other data is being issued: the flushes that follow go there
    /// too.
    #[inline]
    pub fn writes_data(&mut self) {
        self.has_unflushed_data = true;
    }

    /// Makes every record appended and every operation completed before now durable, on the
    /// journal's port and on that which holds other data. [`JournalEvent::Flushed`] says when.
    pub fn flush(&mut self, ctx: &mut Context<'_>) -> FlushTicket {
        self.commit(ctx);
        let is_open = !self.ring.open.is_empty();
        let target = Lsn(self.ring.next.0 + u64::from(is_open));
        let ticket = self.flushes.ask(target);
        self.advance_flush(ctx);
        ticket
    }

    /// A flush without a ticket, after all blocks before `target` are written.
    pub(super) fn flush_for_checkpoint(&mut self, target: Lsn, ctx: &mut Context<'_>) {
        self.flushes.ask_for_checkpoint(target);
        self.advance_flush(ctx);
    }

    /// The next thing the layer must know.
    #[inline]
    pub fn next_event(&mut self) -> Option<JournalEvent> {
        if let Some(mirror) = &mut self.mirror {
            let notice = mirror.notices.pop_front();
            if notice.is_some() || mirror.settling.is_some() {
                return notice;
            }
        }
        self.events.pop_front()
    }

    /// Takes the completion of an operation that the journal [owns](Self::owns).
    pub fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if self.mirror.is_some() {
            return self.copy_completed(completion, ctx);
        }
        let (purpose, buffer) = self.operations.end(completion.tag);
        match (purpose, completion.result) {
            (Purpose::Recovery(number), result) => {
                self.recovery_read(number, buffer, result, ctx);
            }
            (Purpose::Flush | Purpose::DataFlush, Err(_))
                if ctx.is_planted(PlantedBug::FailedFlushRetried) =>
            {
                self.issue(purpose, Operation::Flush, Extent::EMPTY, buffer, ctx);
            }
            (_, Err(error)) => {
                ctx.release(buffer);
                self.fail(error);
            }
            (purpose, Ok(())) => {
                ctx.release(buffer);
                self.done(purpose, ctx);
            }
        }
    }

    /// An operation has been done, on all copies where there are several.
    pub(super) fn done(&mut self, purpose: Purpose, ctx: &mut Context<'_>) {
        match purpose {
            Purpose::JournalBlock(lsn) => self.block_written(lsn, ctx),
            Purpose::Flush | Purpose::DataFlush => self.flush_done(ctx),
            Purpose::Page | Purpose::SuperblockCopy => self.checkpoint_part_done(ctx),
            Purpose::RingZero => self.ring_zeroed(ctx),
            Purpose::MembershipPage | Purpose::MembershipFlush => self.membership_step_done(ctx),
            Purpose::Recovery(_) | Purpose::Unused => unreachable!("a completion of nothing"),
        }
    }

    /// Seals the block that is being filled, if it holds a record, and writes it.
    pub(super) fn seal(&mut self, ctx: &mut Context<'_>) {
        if self.ring.open.is_empty() || self.failed.is_some() {
            self.ring.open.clear();
            return;
        }
        self.send_block(self.ring.durable, ctx);
    }

    /// Writes the next journal block, with the records collected for it and what it says of the
    /// blocks before it.
    pub(super) fn send_block(&mut self, mark: Lsn, ctx: &mut Context<'_>) {
        let lsn = self.ring.begin_block();
        let header = Header {
            kind: BlockKind::Journal,
            member: self.superblock.member,
            address: self.settings.address_of(lsn),
            generation: self.superblock.epoch,
            sequence: lsn.0,
            mark: mark.0,
        };
        let has_records = !self.ring.open.is_empty();
        self.idle_mark.block_sent(mark, self.ring.next, has_records, ctx.now());
        if self.mirror.is_some() {
            return self.send_to_copies(header, ctx);
        }
        block::seal_into(&header, &self.ring.open, &mut self.scratch);
        self.ring.open.clear();
        let place = Extent::new(header.address, 1);
        self.write_scratch(Purpose::JournalBlock(lsn), place, ctx);
    }

    /// Writes the block in `scratch`.
    pub(super) fn write_scratch(&mut self, purpose: Purpose, place: Extent, ctx: &mut Context<'_>) {
        let buffer = ctx.allocate(BlockCount(1));
        ctx.fill_metadata(buffer, &self.scratch);
        self.issue(purpose, Operation::WRITE, place, buffer, ctx);
    }

    pub(super) fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    pub(super) fn copies_and_scratch(&mut self) -> (&mut Mirror, &mut [u8]) {
        let mirror = self.mirror.as_deref_mut().expect("a mirrored journal");
        (mirror, &mut self.scratch)
    }

    pub(super) fn issue(
        &mut self,
        purpose: Purpose,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        let port = match (purpose, self.settings.data) {
            (Purpose::DataFlush, Some(data)) => data.port,
            _ => self.settings.port,
        };
        self.issue_on(port, purpose, operation, (extent, buffer), ctx);
    }

    pub(super) fn issue_on(
        &mut self,
        port: Port,
        purpose: Purpose,
        operation: Operation,
        (extent, buffer): (Extent, BufferSlice),
        ctx: &mut Context<'_>,
    ) {
        let tag = self.operations.begin(purpose, buffer);
        ctx.issue(Issue { port, operation, extent, buffer, cause: Cause::Metadata, tag });
    }

    fn block_written(&mut self, lsn: Lsn, ctx: &mut Context<'_>) {
        let last = self.ring.block_written(lsn);
        if self.failed.is_some() {
            return;
        }
        self.events.extend(last.map(JournalEvent::Written));
        self.commit(ctx);
        self.advance_flush(ctx);
    }

    /// Begins one flush for all that can be covered now.
    fn advance_flush(&mut self, ctx: &mut Context<'_>) {
        if self.failed.is_some() {
            return;
        }
        let Some(ticket) = self.flushes.begin(self.ring.written) else {
            return;
        };
        let skipped = match self.settings.layer {
            LayerKind::Cache => Some(PlantedBug::SsdFlushSkipped),
            LayerKind::PersistentCache => Some(PlantedBug::SmrFlushSkipped),
            LayerKind::Segments | LayerKind::SBlocks => Some(PlantedBug::SmrFlushSkipped),
            LayerKind::MemoryBuffer => Some(PlantedBug::SsdFlushSkipped),
            LayerKind::Array => None,
        };
        if skipped.is_some_and(|bug| ctx.is_planted(bug)) {
            return self.flush_done(ctx);
        }
        if ctx.is_planted(PlantedBug::AckBeforeJournalFlush) {
            self.events
                .push_back(JournalEvent::Flushed { ticket, durable_before: self.ring.written });
        }
        if let Some(mirror) = &self.mirror {
            return self.flush_copies(mirror.taking_part(), Purpose::Flush, ctx);
        }
        self.flush_data(ctx);
        let nothing = BufferSlice::EMPTY;
        self.issue(Purpose::Flush, Operation::Flush, Extent::EMPTY, nothing, ctx);
    }

    /// Has the flush that begins go to the port that holds other data, if anything was written
    /// there. What is in flight is left for the next.
    fn flush_data(&mut self, ctx: &mut Context<'_>) {
        let Some(data) = self.settings.data.filter(|_| self.has_unflushed_data) else {
            return;
        };
        self.has_unflushed_data = ctx.in_flight(data.port) > 0;
        if ctx.is_planted(PlantedBug::HomeFlushSkipped) {
            return;
        }
        self.flushes.goes_to_another_port();
        let (purpose, nothing) = (Purpose::DataFlush, BufferSlice::EMPTY);
        self.issue(purpose, Operation::Flush, Extent::EMPTY, nothing, ctx);
    }

    fn flush_done(&mut self, ctx: &mut Context<'_>) {
        let Some(flushing) = self.flushes.complete() else {
            return;
        };
        if self.failed.is_some() {
            return;
        }
        self.flushes.note_done(flushing.ticket);
        self.ring.durable = self.ring.durable.max(flushing.covers);
        self.idle_mark.flushed(ctx.now());
        if self.is_running() {
            self.events.push_back(JournalEvent::Flushed {
                ticket: flushing.ticket,
                durable_before: self.ring.durable,
            });
        }
        if flushing.is_for_checkpoint {
            self.checkpoint_flushed(ctx);
        }
        self.advance_flush(ctx);
    }

    /// From now on nothing becomes durable.
    pub(super) fn fail(&mut self, error: IoError) {
        if self.failed.is_some() {
            return;
        }
        self.failed = Some(error);
        self.checkpoint = None;
        self.flushes.give_up();
        self.ring.open.clear();
        if let Some(mirror) = &mut self.mirror {
            mirror.give_up();
        }
        self.events.push_back(JournalEvent::Failed(error));
    }

    /// Tells the failure again, so that what has begun to wait since then does not wait for ever.
    fn repeat_failure(&mut self) {
        let is_told = matches!(self.events.back(), Some(JournalEvent::Failed(_)));
        if let Some(error) = self.failed
            && !is_told
        {
            self.events.push_back(JournalEvent::Failed(error));
        }
    }

    /// Sets the places of a journal that was just opened.
    pub(super) fn start_at(&mut self, next: Lsn) {
        self.ring.start_at(next);
        self.idle_mark.start_at(next);
    }
}
