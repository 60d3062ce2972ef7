//! A journal with a copy on each of several ports.
//!
//! The copies go in step: what the journal writes goes to every copy that takes part, and it goes
//! on when all of them have it. So each copy alone is a whole journal at any moment, and the one
//! journal decides once for all what is durable.
//!
//! A copy of which an operation fails is out, as long as another one is in. Before anything else is
//! said to be written or durable, the others have [recorded](super::settling) that.

use super::block::{self, BlockKind, Header};
use super::copies::{Admission, CopiesRead, CopySet, HeldBlock, JournalCopy, Mirror, Part};
use super::ids::Lsn;
use super::journal::Journal;
use super::membership::COPIES_MAX;
use super::operations::{Operations, Purpose};
use super::settings::JournalSettings;
use super::superblock::{COPIES, FEATURE_MIRRORED, Superblock};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Port};
use crate::lifecycle::Uuid;
use crate::operation::{Cause, Completion, Operation};
use crate::units::BlockCount;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

impl Journal {
    /// A journal with a copy for each of these settings, not opened yet.
    ///
    /// Panics when there is no copy or one too many, when the areas differ in size, or as
    /// [`new`](Self::new).
    pub fn mirrored(copies: &[JournalSettings]) -> Journal {
        let sizes = |of: &JournalSettings| (of.area.blocks, of.checkpoint_blocks, of.layer);
        let are_alike = copies.iter().all(|copy| sizes(copy) == sizes(&copies[0]));
        assert!(are_alike, "copies of a journal that differ in size");
        assert!(copies.len() <= COPIES_MAX, "{} copies of a journal", copies.len());
        let of = |settings: &JournalSettings| JournalCopy {
            settings: JournalSettings {
                required_features: settings.required_features | FEATURE_MIRRORED,
                ..*settings
            },
            part: Part::Out,
            number: 0,
            member: Uuid::default(),
            place: 1,
            found: None,
            strays: [false; COPIES],
        };
        let copies: Vec<JournalCopy> = copies.iter().map(of).collect();
        let mut journal = Journal::new(copies[0].settings);
        journal.mirror = Some(Box::new(Mirror {
            copies,
            with_data: CopySet::ALL,
            changes: 0,
            pending: Vec::new(),
            deferred: VecDeque::new(),
            settling: None,
            admission: None,
            held: VecDeque::new(),
            map: None,
            notices: VecDeque::new(),
            read: CopiesRead::default(),
            is_begun: false,
        }));
        journal
    }

    /// True when the journal is kept on several ports.
    pub fn is_mirrored(&self) -> bool {
        self.mirror.is_some()
    }

    /// True when the journal has a copy on this port.
    #[inline]
    pub fn is_on(&self, port: Port) -> bool {
        match &self.mirror {
            None => self.settings.port == port,
            Some(mirror) => mirror.copy_at(port).is_some(),
        }
    }

    /// The port of the first copy.
    #[inline]
    pub fn first_port(&self) -> Port {
        match &self.mirror {
            None => self.settings.port,
            Some(mirror) => mirror.copies[0].settings.port,
        }
    }

    /// Which copies lie on members that have all data of the layer: every copy before the first call. The last of
    /// them that is in is never recorded as out, for it may come back with all that it had: without it the
    /// journal fails.
    pub fn set_with_data(&mut self, ports: impl Iterator<Item = Port>) {
        if let Some(mirror) = self.mirror.as_deref_mut() {
            let copies = ports.filter_map(|port| mirror.copy_at(port));
            mirror.with_data = copies.fold(CopySet::default(), CopySet::with);
        }
    }

    /// True when the copy behind a port has every record.
    pub fn is_in(&self, port: Port) -> bool {
        match &self.mirror {
            None => self.settings.port == port,
            Some(mirror) => {
                let copy = mirror.copy_at(port);
                copy.is_some_and(|copy| mirror.copies[copy].part == Part::In)
            }
        }
    }

    pub(super) fn copies(&mut self) -> &mut Mirror {
        self.mirror.as_deref_mut().expect("a mirrored journal")
    }

    /// Writes a block to each of some copies. `seal` fills it in for a copy and says where it goes.
    pub(super) fn write_to(
        &mut self,
        to: CopySet,
        purpose: Purpose,
        ctx: &mut Context<'_>,
        mut seal: impl FnMut(usize, &JournalCopy, &mut [u8]) -> u64,
    ) {
        let buffer = ctx.allocate(BlockCount(to.len() as u64));
        let mut addresses = [0; COPIES_MAX];
        let (mirror, scratch) = self.copies_and_scratch();
        let mut parts = 0;
        for (index, copy) in mirror.copies.iter().enumerate() {
            if to.has(index) {
                addresses[index] = seal(index, copy, scratch);
                ctx.fill_metadata(buffer.part(parts, 1), scratch);
                parts += 1;
            }
        }
        let mut parts = 0..;
        self.send_to(to, purpose, buffer, ctx, |index, _| {
            let part = parts.next().expect("a part for each copy");
            let place = Extent::new(addresses[index], 1);
            (Operation::WRITE, place, buffer.part(part, 1))
        });
    }

    /// Sends an operation to each of some copies.
    pub(super) fn send_to(
        &mut self,
        to: CopySet,
        purpose: Purpose,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
        mut what: impl FnMut(usize, &JournalCopy) -> (Operation, Extent, BufferSlice),
    ) {
        let tag = self.operations.begin(purpose, buffer);
        let mirror = self.copies();
        mirror.begin(Operations::index_of(tag), to);
        for (index, copy) in mirror.copies.iter().enumerate() {
            if to.has(index) {
                let (operation, extent, buffer) = what(index, copy);
                ctx.issue(Issue {
                    port: copy.settings.port,
                    operation,
                    extent,
                    buffer,
                    cause: Cause::Metadata,
                    tag: Operations::tag_for_copy(tag, index),
                });
            }
        }
    }

    /// Flushes every copy that takes part.
    pub(super) fn flush_copies(&mut self, to: CopySet, purpose: Purpose, ctx: &mut Context<'_>) {
        let nothing = BufferSlice::EMPTY;
        self.send_to(to, purpose, nothing, ctx, |_, _| (Operation::Flush, Extent::EMPTY, nothing));
    }

    /// Reads from one copy.
    pub(super) fn read_copy(
        &mut self,
        copy: usize,
        number: u64,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) {
        let buffer = ctx.allocate(extent.blocks);
        let (to, purpose) = (CopySet::one(copy), Purpose::Recovery(number));
        self.send_to(to, purpose, buffer, ctx, |_, _| (Operation::Read, extent, buffer));
    }

    /// Writes a journal block to every copy that takes part, or later when one is about to join.
    pub(super) fn send_to_copies(&mut self, header: Header, ctx: &mut Context<'_>) {
        let records = mem::take(&mut self.ring.open);
        let mirror = self.copies();
        if mirror.admission.as_ref().is_some_and(Admission::holds) {
            let records = records.clone();
            mirror.held.push_back(HeldBlock { header, records });
        } else {
            self.write_records(header, &records, ctx);
        }
        self.ring.open = records;
        self.ring.open.clear();
    }

    pub(super) fn write_records(&mut self, header: Header, records: &[u8], ctx: &mut Context<'_>) {
        let lsn = Lsn(header.sequence);
        let to = self.copies().taking_part();
        self.write_to(to, Purpose::JournalBlock(lsn), ctx, |_, copy, block| {
            let address = copy.settings.address_of(lsn);
            let member = copy.member;
            let header = Header { member, address, ..header };
            block::seal_into(&header, records, block);
            address
        });
    }

    /// Writes a page of the checkpoint on its way to every copy that takes part.
    pub(super) fn write_pages_of_copies(
        &mut self,
        superblock: &Superblock,
        (index, pages): (u64, u64),
        bytes: &[u8],
        ctx: &mut Context<'_>,
    ) {
        let turns = self.turns(superblock);
        let to = self.copies().taking_part();
        self.write_to(to, Purpose::Page, ctx, |_, copy, block| {
            let address = copy.settings.checkpoint_start(copy.place ^ turns) + index;
            let header = Header {
                kind: BlockKind::CheckpointPage,
                member: copy.member,
                address,
                generation: superblock.generation,
                sequence: index,
                mark: pages,
            };
            block::seal_into(&header, bytes, block);
            address
        });
    }

    /// Writes one of the four superblocks of every copy that takes part.
    pub(super) fn write_superblocks(
        &mut self,
        at: usize,
        superblock: &Superblock,
        ctx: &mut Context<'_>,
    ) {
        let turns = self.turns(superblock);
        let to = self.copies().taking_part();
        self.write_to(to, Purpose::SuperblockCopy, ctx, |_, copy, block| {
            let address = copy.settings.superblock_addresses()[at];
            let superblock = Superblock {
                member: copy.member,
                member_blocks: copy.settings.member_blocks.0,
                checkpoint_place: copy.place ^ turns,
                ..*superblock
            };
            block.copy_from_slice(&superblock.encode(address));
            address
        });
    }

    /// Makes every superblock of every copy name what recovery has found there; the number of
    /// operations that takes.
    pub(super) fn write_strays_of_copies(&mut self, ctx: &mut Context<'_>) -> u32 {
        let mut operations = 0;
        for at in 0..COPIES {
            let to = self.copies().those(|copy| copy.strays[at]);
            if to.is_empty() {
                continue;
            }
            operations += 1;
            self.write_to(to, Purpose::SuperblockCopy, ctx, |_, copy, block| {
                let address = copy.settings.superblock_addresses()[at];
                let found = copy.found.expect("a superblock where there are strays");
                block.copy_from_slice(&found.encode(address));
                address
            });
        }
        for copy in &mut self.copies().copies {
            copy.strays = [false; COPIES];
        }
        operations
    }

    pub(super) fn have_strays(&self) -> bool {
        let is_stray = |copy: &JournalCopy| copy.strays != [false; COPIES];
        let mirror = self.mirror.as_deref();
        mirror.is_some_and(|mirror| mirror.copies.iter().any(is_stray))
    }

    /// 1 when a checkpoint goes to the place that is not in use, else 0.
    fn turns(&self, next: &Superblock) -> u16 {
        next.checkpoint_place ^ self.superblock.checkpoint_place
    }

    /// The checkpoint that this superblock names is durable.
    pub(super) fn turn_places(&mut self, next: &Superblock) {
        let turns = self.turns(next);
        for copy in &mut self.copies().copies {
            copy.place ^= turns;
        }
    }

    /// An operation of a copy has completed.
    pub(super) fn copy_completed(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let Completion { tag, result } = completion;
        let (index, copy) = (Operations::index_of(tag), Operations::copy_of(tag));
        if let Purpose::Recovery(number) = self.operations.purpose(index) {
            let (_, buffer) = self.operations.end(tag);
            return self.recovery_read(number, buffer, result, ctx);
        }
        let missing = &mut self.copies().pending[index].missing;
        *missing = missing.without(copy);
        let is_last = missing.is_empty();
        if let Err(error) = result {
            self.copy_failed(copy, error, ctx);
        }
        self.end_if_over(index, ctx);
        if is_last {
            let (_, buffer) = self.operations.end(tag);
            ctx.release(buffer);
        }
    }

    /// Goes on with operations that waited for nothing but a copy that is out by now.
    pub(super) fn end_all_that_are_over(&mut self, ctx: &mut Context<'_>) {
        for index in 0..self.copies().pending.len() {
            let is_ours =
                !matches!(self.operations.purpose(index), Purpose::Unused | Purpose::Recovery(_));
            if is_ours {
                self.end_if_over(index, ctx);
            }
        }
    }

    fn end_if_over(&mut self, index: usize, ctx: &mut Context<'_>) {
        let purpose = self.operations.purpose(index);
        let has_failed = self.failure().is_some();
        let mirror = self.copies();
        let awaited = mirror.taking_part();
        let pending = &mut mirror.pending[index];
        let is_awaited = pending.missing.meets(awaited);
        if is_awaited || mem::replace(&mut pending.is_over, true) || has_failed {
            return;
        }
        if !pending.sent.meets(awaited) {
            // Nobody who counts has done it.
            return;
        }
        if mirror.settling.is_some() && !purpose.is_of_membership() {
            return mirror.deferred.push_back(purpose);
        }
        self.done(purpose, ctx);
    }
}
