//! Recovery: a state machine that reads a member and says what must be brought back. It writes
//! nothing.
//!
//! ```text
//! Superblocks -> Checkpoint -> Ring -> Data -> recovered
//! ```

use super::block::BlockError;
use super::block::{self, BlockKind, Expected, PAYLOAD_BYTES};
use super::events::{JournalEvent, Recovery};
use super::ids::Lsn;
use super::journal::Journal;
use super::membership::Membership;
use super::opening::{
    COUNT_MAX, Opening, Phase, Step, no_superblock, take_record_parts, take_records,
};
use super::operations::Purpose;
use super::replay_end::ReplayEnd;
use super::superblock::{FEATURES, FEATURES_OF_CHECKPOINT, Superblock};
use crate::buffer::BufferSlice;
use crate::counters::Gauge;
use crate::crc;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Port};
use crate::lifecycle::{OpenError, Uuid};
use crate::operation::Operation;
use crate::planted::PlantedBug;
use crate::units::BLOCK_BYTES;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

/// Blocks of a checkpoint or of the ring that are read at once.
const CHUNK_BLOCKS_MAX: u64 = 64;
/// Reads of data in flight at once.
const DATA_READS_MAX: u32 = 32;

impl Journal {
    /// Begins a recovery. [`JournalEvent::Recovered`] or [`JournalEvent::Refused`] ends it.
    /// `expected` is the set that the member must belong to, and its name in it.
    pub fn open(&mut self, expected: Option<(Uuid, Uuid)>, ctx: &mut Context<'_>) {
        let expected = expected.map(|(set, member)| (set, Some(member)));
        self.phase = Phase::Opening(Box::new(Opening::new(expected, 0)));
        for (copy, address) in (0..).zip(self.settings.superblock_addresses()) {
            self.read(copy, Extent::new(address, 1), ctx);
        }
    }

    /// Says how much a damaged block at the end of the replay may have held.
    fn report_end(&self, end: &ReplayEnd, ctx: &mut Context<'_>) {
        if let Some(damaged) = end.damaged()
            && !ctx.is_planted(PlantedBug::DamagedEndUnreported)
        {
            ctx.gauge(Gauge::RolledBackBlocksMax, damaged.data_blocks_max);
        }
    }

    pub(super) fn read(&mut self, number: u64, extent: Extent, ctx: &mut Context<'_>) {
        match &self.mirror {
            Some(mirror) => self.read_copy(mirror.read.current, number, extent, ctx),
            None => self.read_on(self.settings.port, number, extent, ctx),
        }
    }

    pub(super) fn read_on(
        &mut self,
        port: Port,
        number: u64,
        extent: Extent,
        ctx: &mut Context<'_>,
    ) {
        let buffer = ctx.allocate(extent.blocks);
        let purpose = Purpose::Recovery(number);
        self.issue_on(port, purpose, Operation::Read, (extent, buffer), ctx);
    }

    /// A read of the recovery has finished.
    pub(super) fn recovery_read(
        &mut self,
        number: u64,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let Phase::Opening(mut opening) = core::mem::replace(&mut self.phase, Phase::Shut) else {
            unreachable!("a read of a recovery that is over")
        };
        opening.outstanding -= 1;
        let outcome = match opening.step {
            Step::Superblocks => self.superblock_read(&mut opening, number, buffer, result, ctx),
            Step::Checkpoint => self.pages_read(&mut opening, number, buffer, result, ctx),
            Step::Ring => self.ring_read(&mut opening, number, buffer, result, ctx),
            Step::Data => {
                self.data_read(&mut opening, number, buffer, result, ctx);
                Ok(())
            }
        };
        ctx.release(buffer);
        self.end_step(opening, outcome, ctx);
    }

    /// Goes on with a copy of several, by which the journal goes.
    pub(super) fn go_on_recovering(&mut self, opening: Box<Opening>, ctx: &mut Context<'_>) {
        self.end_step(opening, Ok(()), ctx);
    }

    fn end_step(
        &mut self,
        mut opening: Box<Opening>,
        outcome: Result<(), OpenError>,
        ctx: &mut Context<'_>,
    ) {
        let outcome = outcome.and_then(|()| self.advance(&mut opening, ctx));
        let outcome = outcome.or_else(|error| self.turn_to_newer(&mut opening, error, ctx));
        match outcome {
            Ok(false) => self.phase = Phase::Opening(opening),
            Ok(true) if self.is_mirrored() && !opening.membership.is_chosen => {
                self.copy_read(Ok(opening), ctx);
            }
            Ok(true) => self.recovered(opening, ctx),
            Err(error) if opening.outstanding == 0 && self.is_mirrored() => {
                self.copy_read(Err(error), ctx);
            }
            Err(error) if opening.outstanding == 0 => self.refuse(error),
            Err(_) => unreachable!("a refusal with reads in flight"),
        }
    }

    pub(super) fn refuse(&mut self, error: OpenError) {
        self.events.push_back(JournalEvent::Refused(error));
    }

    /// Everything that the layer needs was read.
    fn recovered(&mut self, opening: Box<Opening>, ctx: &mut Context<'_>) {
        if !self.is_mirrored() {
            let chosen = Some(Ok(self.superblock));
            self.strays = opening.copies.each_ref().map(|copy| *copy != chosen);
        }
        let records = opening.records.into_iter().map(|(_, record)| record);
        let recovery = Recovery {
            checkpoint: opening.checkpoint,
            records: records.collect(),
            clean: self.superblock.clean,
            generation: self.superblock.generation,
        };
        self.report_end(&opening.end, ctx);
        self.ring.tail = Lsn(self.superblock.replay_from);
        self.start_at(opening.lsn);
        self.events.push_back(JournalEvent::Recovered(Box::new(recovery)));
    }

    /// Begins the next step when the last one is over; true when the recovery is.
    fn advance(&mut self, opening: &mut Opening, ctx: &mut Context<'_>) -> Result<bool, OpenError> {
        loop {
            if opening.outstanding > 0 && opening.step != Step::Data {
                return Ok(false);
            }
            match opening.step {
                Step::Superblocks => {
                    self.superblock = self.choose(opening)?;
                    self.check_membership(opening)?;
                    opening.step = Step::Checkpoint;
                }
                Step::Checkpoint => {
                    let pages = self.superblock.pages();
                    if opening.next < pages {
                        let place = self.superblock.checkpoint_place;
                        let start = self.settings.checkpoint_start(place) + opening.next;
                        let count = (pages - opening.next).min(CHUNK_BLOCKS_MAX);
                        opening.outstanding = 1;
                        self.read(opening.next, Extent::new(start, count), ctx);
                        opening.next += count;
                        return Ok(false);
                    }
                    self.check_checkpoint(&opening.checkpoint)?;
                    if self.superblock.has_record_parts() {
                        take_record_parts(opening, &self.settings)?;
                    }
                    opening.step = Step::Ring;
                    opening.next = 0;
                    opening.lsn = Lsn(self.superblock.replay_from);
                    opening.mark = opening.lsn;
                    opening.stopped = self.superblock.clean;
                }
                Step::Ring => {
                    let ring = self.settings.ring().blocks.0;
                    if opening.next < ring && !self.superblock.clean {
                        let first = Lsn(self.superblock.replay_from + opening.next);
                        let to_wrap = ring - first.0 % ring;
                        let count = (ring - opening.next).min(CHUNK_BLOCKS_MAX).min(to_wrap);
                        opening.outstanding = 1;
                        let start = self.settings.address_of(first);
                        self.read(first.0, Extent::new(start, count), ctx);
                        opening.next += count;
                        return Ok(false);
                    }
                    opening.step = Step::Data;
                    let mark = opening.mark;
                    let unsure = opening.records.iter().position(|(lsn, _)| *lsn >= mark);
                    opening.next_record = unsure.unwrap_or(opening.records.len());
                    if self.is_mirrored() {
                        // The other copies come first.
                        return Ok(true);
                    }
                }
                Step::Data => {
                    if ctx.is_planted(PlantedBug::DanglingRecordKept) {
                        return Ok(true);
                    }
                    while opening.outstanding < DATA_READS_MAX
                        && opening.next_record < opening.records.len()
                    {
                        let number = opening.next_record;
                        opening.next_record += 1;
                        let record = &opening.records[number].1;
                        if let Some(data) = record.data {
                            opening.outstanding += 1;
                            self.read_data_of(number, record.kind, data, ctx);
                        }
                    }
                    return Ok(opening.outstanding == 0);
                }
            }
        }
    }

    /// Checks that a checkpoint is the one that the superblock names.
    fn check_checkpoint(&self, checkpoint: &[u8]) -> Result<(), OpenError> {
        let sum = crc::crc32c(checkpoint);
        if sum != self.superblock.checkpoint_checksum
            || checkpoint.len() as u64 != self.superblock.checkpoint_bytes
        {
            let detail = "its bytes do not match the superblock's checksum";
            return Err(OpenError::damaged("checkpoint", detail));
        }
        Ok(())
    }

    /// When the checkpoint that two superblocks agree on is not whole, a crash may have come
    /// while it was being replaced, and one of the newer superblocks have been damaged since.
    /// A newer one whose checkpoint is whole is right; an older one never is.
    fn turn_to_newer(
        &mut self,
        opening: &mut Opening,
        error: OpenError,
        ctx: &mut Context<'_>,
    ) -> Result<bool, OpenError> {
        while opening.step == Step::Checkpoint
            && let Some(newer) = opening.newer.pop()
        {
            self.superblock = newer;
            opening.checkpoint.clear();
            opening.next = 0;
            opening.page_generation = 0;
            opening.map_bytes = None;
            opening.records.clear();
            if let Ok(is_over) = self.advance(opening, ctx) {
                return Ok(is_over);
            }
        }
        Err(error)
    }

    fn superblock_read(
        &mut self,
        opening: &mut Opening,
        copy: u64,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) -> Result<(), OpenError> {
        let addresses = self.settings.superblock_addresses();
        let Some(&address) = addresses.get(copy as usize) else {
            let page = copy as usize - addresses.len();
            let address = self.settings.membership_addresses()[page];
            let bytes = result.ok().and_then(|()| ctx.metadata(buffer));
            opening.membership.pages[page] =
                bytes.and_then(|bytes| Membership::decode(bytes, address).ok());
            return Ok(());
        };
        if let Err(error) = result {
            opening.read_error = Some(error);
            return Ok(());
        }
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let decoded = match ctx.metadata(buffer) {
            Some(bytes) => Superblock::decode(bytes, address, ignore_address),
            None => Err(BlockError::Zero),
        };
        opening.copies[copy as usize] = Some(decoded);
        Ok(())
    }

    /// The superblock that counts: the newest that two copies agree on, or else the newest.
    fn choose(&mut self, opening: &mut Opening) -> Result<Superblock, OpenError> {
        let good = |copy: &Option<Result<Superblock, BlockError>>| match copy {
            Some(Ok(superblock)) => Some(*superblock),
            _ => None,
        };
        let copies: Vec<Superblock> = opening.copies.iter().filter_map(good).collect();
        let greatest = copies.iter().map(|copy| copy.generation).max();
        self.greatest_generation = greatest.unwrap_or(0);
        let newest = |least: usize| {
            let agreed =
                |one: &&Superblock| copies.iter().filter(|other| *other == *one).count() >= least;
            copies.iter().filter(agreed).max_by_key(|one| one.generation)
        };
        let Some(chosen) = newest(2).or(newest(1)).copied() else {
            return Err(no_superblock(opening));
        };
        opening.read_error = None;
        self.admit(&chosen, opening.expected)?;
        opening.newer = copies
            .into_iter()
            .filter(|copy| copy.generation > chosen.generation)
            .filter(|copy| self.admit(copy, opening.expected).is_ok())
            .collect();
        opening.newer.sort_by_key(|copy| copy.generation);
        Ok(chosen)
    }

    /// Checks that a superblock is of this layer, that its features are known and that it makes
    /// sense.
    fn admit(
        &self,
        superblock: &Superblock,
        expected: Option<(Uuid, Option<Uuid>)>,
    ) -> Result<(), OpenError> {
        let unknown = superblock.required_features & !FEATURES | superblock.read_only_features;
        if unknown != 0 {
            return Err(OpenError::Features(unknown));
        }
        if let Some((set, member)) = expected {
            let (found, found_member) = (superblock.set, superblock.member);
            if found != set {
                return Err(OpenError::Foreign { found, expected: set });
            }
            if let Some(expected) = member.filter(|member| *member != found_member) {
                return Err(OpenError::OtherMember { found: found_member, expected });
            }
        }
        self.check_settings(superblock)?;
        let place_bytes = self.settings.checkpoint_blocks * PAYLOAD_BYTES as u64;
        let pages = superblock.pages();
        let has_room = (1..=self.settings.checkpoint_blocks).contains(&pages);
        if superblock.checkpoint_place > 1 || superblock.checkpoint_bytes > place_bytes || !has_room
        {
            return Err(OpenError::damaged(
                "superblock",
                "it places the checkpoint outside its area",
            ));
        }
        let counts = [superblock.generation, superblock.epoch, superblock.replay_from];
        if counts.into_iter().any(|count| count > COUNT_MAX) {
            return Err(OpenError::damaged(
                "superblock",
                "it counts further than a device can come",
            ));
        }
        Ok(())
    }

    /// Checks that a superblock was written with the settings of this layer.
    fn check_settings(&self, superblock: &Superblock) -> Result<(), OpenError> {
        let settings = &self.settings;
        let same = |(name, found, expected)| match found == expected {
            true => Ok(()),
            false => Err(OpenError::Settings { name, found, expected }),
        };
        [
            (
                "layer number",
                superblock.layer.into(),
                settings.layer as u64,
            ),
            (
                "device blocks",
                superblock.member_blocks,
                settings.member_blocks.0,
            ),
            (
                "journal area blocks",
                superblock.area_blocks,
                settings.area.blocks.0,
            ),
            (
                "checkpoint blocks",
                superblock.checkpoint_blocks,
                settings.checkpoint_blocks,
            ),
            (
                "required features (bit 0: bands are rewritten in stretches, by `merge_buffer`; bit 1: \
                 log and bands are on two disks; bit 2: the journal has copies on other members; \
                 bit 3: there are tables of checksums)",
                (superblock.required_features & !FEATURES_OF_CHECKPOINT).into(),
                settings.required_features.into(),
            ),
        ]
        .into_iter()
        .try_for_each(same)
    }

    fn pages_read(
        &mut self,
        opening: &mut Opening,
        first: u64,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) -> Result<(), OpenError> {
        result.map_err(OpenError::Io)?;
        let superblock = &self.superblock;
        let start = self.settings.checkpoint_start(superblock.checkpoint_place);
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let bytes = ctx.metadata(buffer).unwrap_or(&[]);
        for (index, page) in (first..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
            let expected = Expected {
                ignore_address,
                ..Expected::new(BlockKind::CheckpointPage, Some(superblock.member), start + index)
            };
            let (header, payload) = block::unseal(page, expected).map_err(|error| {
                let detail = format!("page {index}: {}", error.message());
                OpenError::damaged("checkpoint", detail)
            })?;
            let is_right = superblock.has_page(index, &header, opening.page_generation)
                && (header.sequence == index || ignore_address);
            if !is_right {
                let detail = format!(
                    "page {index} is page {} of generation {}",
                    header.sequence, header.generation
                );
                return Err(OpenError::damaged("checkpoint", detail));
            }
            let before = core::mem::replace(&mut opening.page_generation, header.generation);
            // The first page of another generation begins the first part.
            if before != 0 && before != header.generation {
                opening.map_bytes.get_or_insert(opening.checkpoint.len());
            }
            opening.checkpoint.extend_from_slice(payload);
        }
        Ok(())
    }

    fn ring_read(
        &mut self,
        opening: &mut Opening,
        first: u64,
        buffer: BufferSlice,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) -> Result<(), OpenError> {
        result.map_err(OpenError::Io)?;
        let skips = ctx.is_planted(PlantedBug::ReplayPastBadRecord);
        let unchecked = ctx.is_planted(PlantedBug::RecordCrcUnchecked);
        let ignore_address = ctx.is_planted(PlantedBug::CrcWithoutAddress);
        let bytes = ctx.metadata(buffer).unwrap_or(&[]);
        for (number, bytes) in (first..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
            let lsn = Lsn(number);
            let expected = Expected {
                ignore_checksum: unchecked,
                ignore_address,
                ..Expected::new(
                    BlockKind::Journal,
                    Some(self.superblock.member),
                    self.settings.address_of(lsn),
                )
            };
            let sealed = block::unseal(bytes, expected);
            let ours = sealed
                .as_ref()
                .ok()
                .filter(|(header, _)| header.generation == self.superblock.epoch);
            if let Some((header, _)) = ours {
                // It is true of the blocks before it, though it may not be replayed itself.
                opening.mark = opening.mark.max(Lsn(header.mark));
            }
            match ours {
                Some((header, payload))
                    if !opening.stopped && (header.sequence == lsn.0 || ignore_address) =>
                {
                    take_records(opening, Some(lsn), payload, &self.settings)?;
                    opening.lsn = Lsn(lsn.0 + 1);
                }
                // A block that came later says that the one which is missing was durable.
                Some((header, _))
                    if opening.stopped
                        && header.sequence > opening.lsn.0
                        && header.mark > opening.lsn.0 =>
                {
                    let detail = format!(
                        "block {} is missing, and block {} says it was durable",
                        opening.lsn.0, header.sequence
                    );
                    return Err(OpenError::damaged("journal", detail));
                }
                _ if skips => {}
                _ => {
                    opening.stopped = true;
                    let dropped = ours.filter(|(header, _)| header.sequence == lsn.0);
                    let found = dropped.map(|(_, payload)| *payload);
                    opening.end.block(lsn, found.ok_or(sealed.as_ref().err()));
                }
            }
        }
        Ok(())
    }
}
