//! A write buffer in memory over a translation that rewrites segments, as HWSR has one (Luo et al.,
//! TPDS 2016, 4).
//!
//! The buffer conducts the requests of the host. Writes stay in memory until their block leaves; reads
//! take what memory has, then ask a store of copies if there is one, then read below. Blocks that leave
//! go down in batches of one segment.
//!
//! What a request finds and who leaves for it is decided when it arrives, its blocks in ascending
//! order. What was decided for one block is then done in that order, one after the other: a
//! [task](tasks) for each. A task waits for nothing but what was decided before it, so nothing waits in
//! a circle. A write whose block is new waits until a destage has given memory back.
//!
//! What cannot be read below spoils itself alone: a block that cannot be filled up for it leaves without
//! it, and what is beside it is read without it. After a destage has failed its blocks are in memory
//! again; writes and flushes fail from then on, and reads go on.
//!
//! What a durable buffer promises stands with [`Persistence`]: a [log](log) on another port, or
//! destages before each flush.

mod batches;
mod blocks;
pub mod codec;
mod destage;
mod flush;
mod life;
mod log;
mod log_writes;
mod memory;
mod open;
mod read;
mod recency;
mod replacement;
mod segments;
mod settings;
mod state;
mod tags;
mod tasks;
mod write;
mod zero;

pub use replacement::{BufferPolicy, Scope};
pub use settings::{
    BufferBelow, BufferPorts, MemoryBufferError, MemoryBufferSettings, PartialRead, Persistence,
};

use crate::buffer::BufferSlice;
use crate::command::Without;
use crate::counters::Gauge;
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::ledger::Ledger;
use crate::lifecycle::{OpenError, Start};
use crate::map::{BandTable, Slab};
use crate::operation::{Cause, Completion, CopyOperation, Operation, Request};
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::Lba;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use batches::Batches;
use blocks::Blocks;
use log::Log;
use memory::Memory;
use replacement::Replacement;
use state::{Held, Life};
use tags::{TagKind, tag, tag_of};
use tasks::{Job, Tasks};

/// What waits for the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum Token {
    /// The answer to a request.
    Job(u32),
    /// The answer to the request that zeroes.
    Zero,
    /// Blocks that may go down.
    Batch(u32),
    /// Blocks that are durable below.
    Clean,
}

/// The write buffer.
#[derive(Saved)]
pub struct MemoryBuffer {
    #[saved(keep)]
    settings: MemoryBufferSettings,
    #[saved(keep)]
    ports: BufferPorts,
    /// The segments of the node below, where it knows them.
    #[saved(keep)]
    bands: Option<Arc<BandTable>>,
    replacement: Replacement,
    blocks: Blocks,
    memory: Memory,
    tasks: Tasks,
    jobs: Slab<Job>,
    batches: Batches,
    /// Tasks whose turn has come.
    ready: VecDeque<u32>,
    held: Held,
    /// Whole blocks on their way to the store of copies.
    lent: Slab<BufferSlice>,
    ledger: Ledger<Token>,
    #[saved(each)]
    log: Option<Log>,
    life: Life,
}

impl MemoryBuffer {
    /// An empty buffer and what it tells the node above.
    ///
    /// # Errors
    /// When a setting is out of range or does not fit what lies below.
    pub fn new(
        settings: MemoryBufferSettings,
        below: &BufferBelow<'_>,
    ) -> Result<(MemoryBuffer, Geometry), MemoryBufferError> {
        settings.check(below)?;
        let log_settings = settings.log_settings();
        let mut ports = BufferPorts::new(below.log.is_some(), below.copies.is_some());
        // One that keeps nothing may have a log below all the same.
        ports.log = ports.log.filter(|_| log_settings.is_some());
        ports.drops_copies = below.copies.is_some() && !below.below.tells_copies;
        let (parts, capacity) = (settings.block.0, settings.capacity_blocks);
        let ledger = match log_settings.zip(ports.log) {
            None => Ledger::volatile(),
            Some((durability, port)) => {
                let journal = settings.journal(port, durability);
                Ledger::journaled(journal, durability, &[ports.below])
            }
        };
        let log = log_settings.zip(ports.log).map(|(durability, port)| {
            let start = settings.journal(port, durability).area.end().0;
            Log::new(start, settings.log_places())
        });
        let buffer = MemoryBuffer {
            ports,
            bands: below.below.bands.clone(),
            replacement: Replacement::new(settings.policy, capacity, settings.window_blocks),
            blocks: Blocks::new(parts, below.below.blocks.0, capacity),
            memory: Memory::new(parts, capacity),
            tasks: Tasks::new(),
            jobs: Slab::default(),
            batches: Batches::default(),
            ready: VecDeque::new(),
            held: Held::default(),
            lent: Slab::default(),
            ledger,
            log,
            life: Life::default(),
            settings,
        };
        Ok((buffer, settings.geometry(below)))
    }

    /// The segment of a block.
    fn segment_of(&self, block: u64) -> u64 {
        let lba = block * self.settings.block.0;
        match &self.bands {
            Some(bands) if lba < bands.blocks().0 => u64::from(bands.band_of(Lba(lba)).0),
            Some(bands) => u64::from(bands.bands()),
            None => lba / self.settings.blocks_per_segment(),
        }
    }

    /// The whole of a block.
    fn extent_of(&self, block: u64) -> Extent {
        let start = block * self.settings.block.0;
        Extent::new(start, self.blocks.parts_of(block))
    }

    /// Parts of a block in the addresses of the device.
    fn parts_at(&self, block: u64, first: u64, count: u64) -> Extent {
        Extent::new(block * self.settings.block.0 + first, count)
    }

    /// The blocks that an extent touches, with the parts of each.
    fn pieces(&self, extent: Extent) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let parts = self.settings.block.0;
        let blocks = extent.start.0 / parts..extent.end().0.div_ceil(parts);
        blocks.map(move |block| {
            let first = extent.start.0.max(block * parts);
            let end = extent.end().0.min((block + 1) * parts);
            (block, first - block * parts, end - first)
        })
    }

    fn issue_copy(
        &mut self,
        what: CopyOperation,
        extent: Extent,
        buffer: BufferSlice,
        tag: crate::operation::Tag,
        ctx: &mut Context<'_>,
    ) {
        let port = self.ports.copies.expect("a store of copies");
        ctx.issue(Issue {
            port,
            operation: Operation::Copy(what),
            extent,
            buffer,
            cause: Cause::Host,
            tag,
        });
    }

    /// A task is done with its block.
    fn finish_task(&mut self, task: u32) {
        let next = self.tasks.finish(task);
        self.ready.extend(next);
    }

    /// The turn of a task has come.
    fn begin_task(&mut self, task: u32, ctx: &mut Context<'_>) {
        match self.tasks[task].owner {
            tasks::Owner::Batch(batch) => self.batches.unblock(batch),
            tasks::Owner::Job(job) => match self.jobs[job].kind {
                tasks::JobKind::Write => self.run_write(task, ctx),
                kind => {
                    let it = &mut self.jobs[job];
                    it.blocked -= 1;
                    if it.blocked == 0 {
                        match kind {
                            tasks::JobKind::Read => self.run_read(job, ctx),
                            _ => self.run_around(job, ctx),
                        }
                    }
                }
            },
        }
    }

    /// True when nothing that was decided is left to do.
    fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.batches.is_empty()
    }

    fn do_all(&mut self, ctx: &mut Context<'_>) {
        loop {
            while let Some(task) = self.ready.pop_front() {
                self.begin_task(task, ctx);
            }
            let has_moved = self.start_batches(ctx)
                | self.flush_below(ctx)
                | self.admit_held(ctx)
                | self.take_ledger_events(ctx)
                | self.write_log(ctx);
            if !has_moved && self.ready.is_empty() {
                break;
            }
        }
    }

    /// Does all that can be done, at the end of every event.
    fn advance(&mut self, ctx: &mut Context<'_>) {
        self.do_all(ctx);
        self.end_event(ctx);
        // A failure that the ledger tells now ends what waits for it.
        self.do_all(ctx);
        ctx.gauge(Gauge::DirtyBlocks, u64::from(self.blocks.residents()));
        ctx.gauge(Gauge::TableBytes, self.blocks.table_bytes());
    }
}

impl Layer for MemoryBuffer {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.take(request, ctx);
        self.advance(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            let (kind, number) = tag_of(completion.tag);
            let result = completion.result;
            match kind {
                TagKind::Read => self.read_step_done(number, result, ctx),
                TagKind::ReadRun => self.read_run_done(number, result, ctx),
                TagKind::Stored => {
                    let buffer = self.lent.take(number);
                    ctx.release(buffer);
                }
                TagKind::Overwritten => self.write_part_done(number, Ok(()), ctx),
                TagKind::AroundOverwritten => self.around_step_done(number, Ok(()), ctx),
                TagKind::Around => self.around_done(number, result, ctx),
                TagKind::Fill => self.fill_step_done(number, result, ctx),
                TagKind::Destage => self.destage_write_done(number, result, ctx),
                TagKind::Flush => self.flush_done(result, ctx),
                TagKind::Zero => self.zero_step_done(result, ctx),
                TagKind::Dropped => {}
                TagKind::Log => self.log_write_done(number, result, ctx),
                TagKind::Open => self.log_was_read(number, result, ctx),
            }
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        let has_room = self.ledger.has_spare_room(1);
        self.ledger.mark_if_idle(has_room, ctx);
        self.advance(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        // The log alone does not have what lies below, and reads fill blocks from there.
        let needed = [Some(self.ports.below), self.ports.log];
        let is_lost = needed.into_iter().flatten().any(|port| ctx.is_lost(port));
        if is_lost && !ctx.is_planted(PlantedBug::UpOverLostNode) {
            return ctx.opened(Err(OpenError::Io(IoError::Lost)));
        }
        let member = self.ports.log.and_then(|port| ctx.member_number(port));
        self.ledger.open(start, member.unwrap_or(0), ctx);
        self.advance(ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        self.begin_closing();
        self.advance(ctx);
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        let is_needed = |port: &Port| Some(*port) != self.ports.copies;
        match (0..=self.ports.below.0).map(Port).filter(is_needed).any(is_lost) {
            true => Without::Lost,
            false => Without::NO_COPIES,
        }
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        let (held, most) = (self.blocks.residents(), self.settings.capacity_blocks);
        facts.push(("block_bytes", self.settings.block.bytes()));
        facts.push(("capacity_blocks", most.into()));
        facts.push(("free_blocks", most.saturating_sub(held).into()));
        if let Some(log) = &self.log {
            facts.push(("log_places", log.places()));
            facts.push(("log_used_places", log.places() - log.free()));
        }
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        // Copies are a help, and no more.
        if Some(port) != self.ports.copies {
            self.fail(IoError::Lost, ctx);
            self.advance(ctx);
            ctx.lose();
        }
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
