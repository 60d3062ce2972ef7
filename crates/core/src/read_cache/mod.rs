//! A store of copies of blocks on flash: the SSD read cache of HWSR (Luo et al., IEEE TPDS 2016,
//! section 3.1).
//!
//! It stands beside the nodes that it serves and not between them: they ask it for a copy and go on
//! without one. So it promises nothing. It may lose its flash, read wrong data there or fail at any
//! moment; who asks is told that there is no copy. What it keeps is gone after a restart.
//!
//! Copies are whole blocks, replaced by least recent use. Its parts: `table` says which block has a
//! copy where, and `work` which operations are under way on each.

mod settings;
mod table;
mod work;

pub use settings::{OnWrite, ReadCacheError, ReadCacheSettings};

use crate::command::Without;
use crate::counters::{Counter, Gauge};
use crate::disk::{CopyStore, Geometry};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::lifecycle::Start;
use crate::operation::{Cause, Completion, CopyOperation, Operation, Request, Tag};
use crate::planted::PlantedBug;
use crate::saved::Saved;
use crate::units::BlockCount;
use alloc::vec::Vec;
use table::{State, Table};
use work::{Kind, Work};

/// A read cache: see [the module](self).
#[derive(Debug, Saved)]
pub struct ReadCache {
    #[saved(keep)]
    settings: ReadCacheSettings,
    table: Table,
    work: Work,
    /// The flash cannot be reached: there are no copies any more.
    is_lost: bool,
    /// Scratch space for checksums.
    checksums: Vec<u32>,
}

impl ReadCache {
    /// The flash.
    pub const FLASH: Port = Port(0);

    /// A read cache for `device` blocks over its flash, and what it tells the nodes above.
    ///
    /// # Errors
    /// When a setting is out of range or the flash is too small.
    pub fn new(
        settings: ReadCacheSettings,
        device: BlockCount,
        flash: &Geometry,
    ) -> Result<(ReadCache, Geometry), ReadCacheError> {
        settings.check(flash)?;
        let geometry = Geometry {
            copies: Some(CopyStore {
                block: settings.block,
                wants_rewrite_reads: settings.fill_from_rewrite && settings.capacity_blocks > 0,
            }),
            survives: flash.survives,
            ..Geometry::plain(device, flash.media)
        };
        let cache = ReadCache {
            table: Table::new(&settings),
            work: Work::default(),
            is_lost: false,
            checksums: Vec::new(),
            settings,
        };
        Ok((cache, geometry))
    }

    fn block_of(&self, extent: Extent) -> u64 {
        extent.start.0 / self.settings.block.0
    }

    /// Looks for a copy.
    fn find(&mut self, request: Request, what: CopyOperation, ctx: &mut Context<'_>) {
        let block = self.block_of(request.extent);
        let known = self.table.find(block);
        let entry = known.filter(|entry| self.table.state(*entry) == State::Stored);
        if what != CopyOperation::Peek {
            let counter = match entry {
                Some(_) => Counter::HitBlocks,
                None => Counter::MissBlocks,
            };
            ctx.count(counter, 1);
        }
        match entry {
            Some(entry) => {
                if what != CopyOperation::Peek {
                    self.table.touch(entry);
                }
                self.start(entry, request, ctx);
            }
            None => {
                if what == CopyOperation::FindOrReserve && known.is_none() && !ctx.is_read_only() {
                    self.reserve(block, ctx);
                }
                ctx.finish(request.id, Err(IoError::NoCopy));
            }
        }
    }

    /// Makes room for a copy. There is none while every place beside those of the copies is still in
    /// use for one that was forgotten: then the block is not taken in, which is counted.
    fn reserve(&mut self, block: u64, ctx: &mut Context<'_>) -> Option<u32> {
        if let Some(victim) = self.table.victim() {
            self.forget(victim);
        }
        let entry = self.table.insert(block);
        if entry.is_none() {
            ctx.count(Counter::SkippedFillBlocks, 1);
        }
        entry
    }

    /// The copy is there no more. Its place is free when nothing is under way there.
    fn forget(&mut self, entry: u32) {
        self.table.remove(entry);
        if self.work.is_idle(entry) {
            self.table.free(entry);
        }
    }

    /// Forgets a copy because its block was written.
    fn drop_copy(&mut self, entry: u32, ctx: &mut Context<'_>) {
        ctx.count(Counter::DroppedBlocks, 1);
        self.forget(entry);
    }

    /// Takes a whole block for a copy that was reserved, or one that a rewrite has read.
    fn store(&mut self, request: Request, ctx: &mut Context<'_>) {
        let block = self.block_of(request.extent);
        let from_rewrite = request.cause == Cause::Cleaning && self.settings.fill_from_rewrite;
        let entry = match self.table.find(block) {
            Some(entry) => (self.table.state(entry) == State::Reserved).then_some(entry),
            // What was reserved and forgotten since may be older than its block.
            None if from_rewrite => self.reserve(block, ctx),
            None => None,
        };
        let Some(entry) = entry else {
            return ctx.finish(request.id, Ok(()));
        };
        ctx.count(Counter::FillBlocks, 1);
        self.table.set_state(entry, State::Stored);
        self.start(entry, request, ctx);
    }

    /// A block was written above, or is being written home.
    fn written(&mut self, request: Request, what: CopyOperation, ctx: &mut Context<'_>) {
        let entry = self.table.find(self.block_of(request.extent));
        let Some(entry) = entry else {
            return ctx.finish(request.id, Ok(()));
        };
        let is_stored = self.table.state(entry) == State::Stored;
        match (self.settings.on_write, what) {
            (OnWrite::Update, _) if is_stored => return self.start(entry, request, ctx),
            (OnWrite::Keep, CopyOperation::Overwritten) if is_stored => {}
            _ => self.drop_copy(entry, ctx),
        }
        ctx.finish(request.id, Ok(()));
    }

    /// Forgets the copies of a run of blocks.
    fn drop_all(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        let of = self.settings.block.0;
        let blocks = extent.start.0 / of..extent.end().0.div_ceil(of);
        if blocks.end - blocks.start <= u64::from(self.table.entries()) {
            for block in blocks {
                if let Some(entry) = self.table.find(block) {
                    self.drop_copy(entry, ctx);
                }
            }
            return;
        }
        for entry in 0..self.table.entries() {
            let block = self.table.block(entry);
            if block.is_some_and(|block| blocks.contains(&block)) {
                self.drop_copy(entry, ctx);
            }
        }
    }

    /// Begins an operation on a copy, or lets it wait for those before it.
    fn start(&mut self, entry: u32, request: Request, ctx: &mut Context<'_>) {
        let kind = match request.operation {
            Operation::Copy(
                CopyOperation::Store | CopyOperation::Overwritten | CopyOperation::Destaged,
            ) => Kind::Write,
            _ => Kind::Read,
        };
        if self.work.enter(entry, kind, request) {
            self.issue(entry, kind, request, ctx);
        }
    }

    fn issue(&mut self, entry: u32, kind: Kind, request: Request, ctx: &mut Context<'_>) {
        let inside = request.extent.start.0 % self.settings.block.0;
        let start = self.table.place(entry) + inside;
        let operation = match kind {
            Kind::Read => Operation::Read,
            Kind::Write => {
                self.checksums.clear();
                ctx.checksum(request.buffer, &mut self.checksums);
                self.table.keep_sums(entry, inside, &self.checksums);
                Operation::WRITE
            }
        };
        let number = self.work.begin(entry, kind, request);
        ctx.issue(Issue {
            port: ReadCache::FLASH,
            operation,
            extent: Extent::new(start, request.extent.blocks.0),
            buffer: request.buffer,
            cause: request.cause,
            tag: Tag(u64::from(number)),
        });
    }

    /// True when what was read is what was stored.
    fn is_right(&mut self, entry: u32, request: Request, ctx: &mut Context<'_>) -> bool {
        if ctx.is_planted(PlantedBug::ReadCrcSkipped) {
            return true;
        }
        let inside = request.extent.start.0 % self.settings.block.0;
        self.checksums.clear();
        ctx.checksum(request.buffer, &mut self.checksums);
        self.table.sums(entry, inside, self.checksums.len()) == &self.checksums[..]
    }

    fn set_gauges(&self, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::CachedBlocks, u64::from(self.table.stored()));
        ctx.gauge(Gauge::TableBytes, self.table.table_bytes());
    }
}

impl Layer for ReadCache {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        let Operation::Copy(what) = request.operation else {
            let result = match request.operation {
                Operation::Flush => Ok(()),
                _ => Err(IoError::NotPermitted),
            };
            return ctx.finish(request.id, result);
        };
        let looks = matches!(
            what,
            CopyOperation::FindOrReserve | CopyOperation::Find | CopyOperation::Peek
        );
        if self.is_lost || self.settings.capacity_blocks == 0 {
            let result = if looks { Err(IoError::NoCopy) } else { Ok(()) };
            return ctx.finish(request.id, result);
        }
        match what {
            _ if looks => self.find(request, what, ctx),
            CopyOperation::Store => self.store(request, ctx),
            CopyOperation::Overwritten | CopyOperation::Destaged => {
                self.written(request, what, ctx);
            }
            _ => {
                self.drop_all(request.extent, ctx);
                ctx.finish(request.id, Ok(()));
            }
        }
        self.set_gauges(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let (entry, kind, request) = self.work.end(completion.tag.0 as u32);
        let is_good = completion.result.is_ok()
            && (kind == Kind::Write || self.is_right(entry, request, ctx));
        if !is_good && self.table.is_in(entry) {
            self.table.remove(entry);
        }
        let result = match (kind, is_good) {
            (Kind::Read, false) => Err(IoError::NoCopy),
            _ => Ok(()),
        };
        ctx.finish(request.id, result);
        // What came before the copy was forgotten is done all the same: its place is not free yet.
        while let Some((kind, request)) = self.work.next(entry) {
            match (self.is_lost, kind) {
                (false, _) => self.issue(entry, kind, request, ctx),
                (true, Kind::Read) => ctx.finish(request.id, Err(IoError::NoCopy)),
                (true, Kind::Write) => ctx.finish(request.id, Ok(())),
            }
        }
        if !self.table.is_in(entry) && self.work.is_idle(entry) {
            self.table.free(entry);
        }
        self.set_gauges(ctx);
    }

    fn lost(&mut self, _port: Port, ctx: &mut Context<'_>) {
        // Nobody needs a copy.
        self.is_lost = true;
        self.drop_all(Extent::new(0, u64::MAX / 2), ctx);
    }

    fn without(&self, _is_lost: &dyn Fn(Port) -> bool) -> Without {
        Without::GoesOn("it has no copies, so what it would have had is read from the disk")
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        facts.push(("block_bytes", self.settings.block.bytes()));
        facts.push(("capacity_blocks", self.settings.capacity_blocks.into()));
    }

    fn open(&mut self, _start: Start, ctx: &mut Context<'_>) {
        self.is_lost = ctx.is_lost(ReadCache::FLASH);
        self.set_gauges(ctx);
        ctx.opened(Ok(()));
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
