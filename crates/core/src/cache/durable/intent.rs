//! The write-intent pages: which regions of the backing the cache may hold dirty blocks of, and how
//! far the cache has come, written down on the backing itself.
//!
//! Should the flash be lost, what lies below in the other regions is known to be good. And should
//! one of the two members be an older copy of itself, the other one says so.
//!
//! Two pages are used in turn, and a page is overwritten only when the other one is durable.

use super::codec::{INTENT_HEAD_BYTES, INTENT_REGIONS_MAX, u64_at};
use crate::buffer::BufferSlice;
use crate::durability::FlushTicket;
use crate::durability::block::{self, BlockError, BlockKind, Expected, Header, PAYLOAD_BYTES};
use crate::extent::Extent;
use crate::ledger::PortFlushes;
use crate::lifecycle::Uuid;
use crate::saved::SavedValue;
use alloc::vec;
use alloc::vec::Vec;

/// Pages at the end of the backing.
pub(in crate::cache) const INTENT_PAGES: u64 = 2;
/// Smallest region.
const REGION_BLOCKS_MIN: u64 = 16;

/// What a write-intent page says.
#[derive(Clone, PartialEq, Eq, Debug, SavedValue)]
pub(in crate::cache) struct IntentPage {
    /// Counts the pages.
    pub version: u64,
    /// The member it was written to.
    pub member: Uuid,
    pub region_blocks: u64,
    pub regions: u64,
    /// The generation of the cache that was durable when the page was written.
    pub generation: u64,
    /// The generation that was about to become durable, or 0.
    pub pending: u64,
    /// A bit for each region, the lowest first.
    pub bits: Vec<u64>,
}

impl IntentPage {
    /// The page as a block for `address`.
    pub fn encode(&self, address: u64) -> Vec<u8> {
        let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
        let words = [self.region_blocks, self.regions, self.generation, self.pending];
        for word in words.iter().chain(&self.bits) {
            payload.extend_from_slice(&word.to_le_bytes());
        }
        let header = Header {
            kind: BlockKind::WriteIntent,
            member: self.member,
            address,
            generation: self.generation,
            sequence: self.version,
            mark: 0,
        };
        block::seal(&header, &payload)
    }

    /// The page in a block that was read at `address`.
    ///
    /// # Errors
    /// When it is not a whole page.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        ignore_address: bool,
    ) -> Result<IntentPage, BlockError> {
        let expected =
            Expected { ignore_address, ..Expected::new(BlockKind::WriteIntent, None, address) };
        let (header, payload) = block::unseal(bytes, expected)?;
        let wrong = BlockError::Length(payload.len() as u32);
        if payload.len() < INTENT_HEAD_BYTES {
            return Err(wrong);
        }
        let (head, bits) = payload.split_at(INTENT_HEAD_BYTES);
        let regions = u64_at(head, 8);
        if regions > INTENT_REGIONS_MAX || bits.len() as u64 != regions.div_ceil(64) * 8 {
            return Err(wrong);
        }
        Ok(IntentPage {
            version: header.sequence,
            member: header.member,
            region_blocks: u64_at(head, 0),
            regions,
            generation: u64_at(head, 16),
            pending: u64_at(head, 24),
            bits: bits.chunks_exact(8).map(|word| u64_at(word, 0)).collect(),
        })
    }
}

/// What the pages are doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum Step {
    Idle,
    /// Waits until the newest page is durable, so that the other one may be overwritten.
    Before(FlushTicket),
    Writing,
    /// Waits until the page just written is durable.
    After(FlushTicket),
}

/// The write-intent pages of a running cache.
#[derive(Debug, SavedValue)]
pub(in crate::cache) struct WriteIntent {
    /// The first of the two pages.
    start: u64,
    /// The newest page that was written or is being written.
    newest: IntentPage,
    /// The bits of the newest page that is durable.
    durable: Vec<u64>,
    /// By region: blocks that are mapped or being written.
    users: Vec<u32>,
    step: Step,
    /// The newest page is durable when this flush is done; `None` when it is.
    covered_by: Option<FlushTicket>,
    /// The next page that is written says so.
    generation: u64,
    pending: u64,
    /// Something must be written that the newest page does not say.
    due: bool,
    /// A page that must be durable before somebody goes on.
    urgent: bool,
    /// The page being written is one.
    flushes_after: bool,
    /// Bits of regions without users may go.
    clears: bool,
    /// The page in flight.
    pub page: BufferSlice,
}

impl WriteIntent {
    /// The pages behind `blocks` blocks that the cache serves, nothing written yet.
    pub fn new(blocks: u64) -> WriteIntent {
        let least = blocks.div_ceil(INTENT_REGIONS_MAX).max(REGION_BLOCKS_MIN);
        let region_blocks = least.next_power_of_two();
        let regions = blocks.div_ceil(region_blocks);
        let bits = vec![0; regions.div_ceil(64) as usize];
        WriteIntent {
            start: blocks,
            newest: IntentPage {
                version: 0,
                member: Uuid::default(),
                region_blocks,
                regions,
                generation: 0,
                pending: 0,
                bits: bits.clone(),
            },
            durable: bits,
            users: vec![0; regions as usize],
            step: Step::Idle,
            covered_by: None,
            generation: 0,
            pending: 0,
            due: false,
            urgent: false,
            flushes_after: false,
            clears: false,
            page: BufferSlice::EMPTY,
        }
    }

    /// Where a page lies.
    pub fn address(&self, page: u64) -> u64 {
        self.start + page
    }

    /// Where the page that is being written lies.
    pub fn newest_address(&self) -> u64 {
        self.start + self.newest.version % INTENT_PAGES
    }

    /// The page that is being written, as a block.
    pub fn newest_block(&self) -> Vec<u8> {
        self.newest.encode(self.newest_address())
    }

    /// True when a page was written for a backing of this size.
    pub fn fits(&self, page: &IntentPage) -> bool {
        (page.region_blocks, page.regions) == (self.newest.region_blocks, self.newest.regions)
    }

    /// Regions in all.
    pub fn regions(&self) -> u64 {
        self.newest.regions
    }

    /// Begins with the newest page that was found, or with none at a format. Nothing is taken to be
    /// durable.
    pub fn begin<T>(&mut self, member: Uuid, found: Option<&IntentPage>, flushes: &PortFlushes<T>) {
        if let Some(found) = found {
            self.newest = found.clone();
            self.generation = found.generation;
            self.pending = found.pending;
            self.covered_by = Some(flushes.next());
        }
        self.newest.member = member;
    }

    /// A block of a region is mapped or about to be.
    pub fn add_users(&mut self, extent: Extent) {
        for region in self.regions_of(extent) {
            let blocks = self.blocks_within(region, extent);
            self.users[region as usize] += blocks;
            if !bit(&self.newest.bits, region) {
                self.due = true;
                self.urgent = true;
            }
        }
    }

    /// Blocks are not mapped any more, or never came to be.
    pub fn remove_users(&mut self, extent: Extent) {
        for region in self.regions_of(extent) {
            let blocks = self.blocks_within(region, extent);
            let users = &mut self.users[region as usize];
            *users = users.checked_sub(blocks).expect("users of a region");
        }
    }

    /// How many of the first blocks of `extent` lie in regions whose bits are durable.
    pub fn ready_blocks(&self, extent: Extent) -> u64 {
        let is_ready = |region: &u64| {
            bit(&self.newest.bits, *region)
                && (self.covered_by.is_none() || bit(&self.durable, *region))
        };
        self.regions_of(extent)
            .take_while(is_ready)
            .map(|region| u64::from(self.blocks_within(region, extent)))
            .sum()
    }

    /// Says that the cache is about to reach a generation. [`is_settled`](Self::is_settled) says
    /// when the pages are durable.
    pub fn announce(&mut self, generation: u64) {
        self.pending = generation;
        self.due = true;
        self.urgent = true;
        self.clears = true;
    }

    /// Says that the cache has reached a generation; in no hurry unless `urgent`.
    pub fn confirm(&mut self, generation: u64, urgent: bool) {
        self.generation = generation;
        self.pending = 0;
        self.due = true;
        self.urgent |= urgent;
    }

    /// True when everything that was asked for is written and, where it had to be, durable.
    pub fn is_settled(&self) -> bool {
        !self.due && self.step == Step::Idle
    }

    /// What happens next: true when the newest page is to be written now.
    pub fn advance<T>(&mut self, flushes: &mut PortFlushes<T>) -> bool {
        if self.covered_by.is_some_and(|ticket| flushes.is_done(ticket)) {
            self.covered_by = None;
            self.durable.copy_from_slice(&self.newest.bits);
        }
        match self.step {
            Step::Writing => return false,
            Step::Before(ticket) | Step::After(ticket) if !flushes.is_done(ticket) => return false,
            _ => self.step = Step::Idle,
        }
        if !self.due {
            return false;
        }
        if self.covered_by.is_some() {
            self.step = Step::Before(flushes.ask());
            return false;
        }
        self.due = false;
        self.flushes_after = core::mem::take(&mut self.urgent);
        self.step = Step::Writing;
        self.newest.version += 1;
        self.newest.generation = self.generation;
        self.newest.pending = self.pending;
        if self.clears {
            self.newest.bits.fill(0);
            self.clears = false;
        }
        for (region, users) in (0..).zip(&self.users) {
            if *users > 0 {
                self.newest.bits[region / 64] |= 1 << (region % 64);
            }
        }
        // Until the page is durable either version may be the one that is found.
        self.covered_by = Some(FlushTicket(u64::MAX));
        true
    }

    /// The newest page has been written.
    pub fn written<T>(&mut self, flushes: &mut PortFlushes<T>) {
        assert_eq!(self.step, Step::Writing, "a page that nobody wrote");
        self.covered_by = Some(flushes.next());
        self.step = Step::Idle;
        if self.flushes_after {
            self.step = Step::After(flushes.ask());
        }
    }

    fn regions_of(&self, extent: Extent) -> core::ops::Range<u64> {
        let length = self.newest.region_blocks;
        extent.start.0 / length..extent.end().0.div_ceil(length)
    }

    fn blocks_within(&self, region: u64, extent: Extent) -> u32 {
        let length = self.newest.region_blocks;
        let region = Extent::new(region * length, length);
        region.intersection(extent).map_or(0, |part| part.blocks.0 as u32)
    }
}

/// The bit of a region.
pub(super) fn bit(bits: &[u64], region: u64) -> bool {
    bits[(region / 64) as usize] >> (region % 64) & 1 != 0
}
