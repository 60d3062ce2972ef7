//! The layer: takes requests, cuts them into tasks of regions, issues what those need, and answers.

mod copies;
mod ledger;
mod read;
mod requests;
mod rewrite;
mod ring;
mod sums;

use super::layout::Layout;
use super::region::Region;
use super::rewrite::{Job, Writes};
use super::ring::Ring;
use super::settings::{Fill, SBlockError, SBlockSettings};
use super::tables::Tables;
use super::work::{Batches, Entry, Held, Op, Ops, Task};
use crate::buffer::BufferSlice;
use crate::command::Without;
use crate::counters::Gauge;
use crate::disk::{CopyStore, Geometry};
use crate::durability::LayerKind;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::ledger::{Ledger, Quarantine};
use crate::lifecycle::{OpenError, Start};
use crate::map::{ExtentLocks, Slab};
use crate::operation::{Cause, Completion, Operation, Request};
use crate::saved::{Saved, SavedValue};
use crate::translation::bands_fixed;
use crate::units::BlockCount;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A region and what is to be done in it.
#[derive(Debug, SavedValue)]
struct Place {
    region: Region,
    /// Made when a block first goes there.
    ring: Option<Ring>,
    /// Tasks in the order of their coming.
    queue: VecDeque<u32>,
    job: Option<Job>,
    /// The S-block that is being written.
    write: Option<u8>,
    /// Writes to the ring on their way.
    ring_writes: u32,
    /// It is in the list of those to be looked at.
    is_listed: bool,
}

/// Circular logs of S-blocks (Cassuto et al., MSST 2010; Luo et al., TPDS 2016).
///
/// Each region is a log. An S-block is rewritten as a whole at the head; when no slot is free, what is
/// valid at the tail moves to the head. What comes as a destage is rewritten at once. Any other write
/// goes to the ring of its region first, block by block, until the ring is full; then the S-block
/// with the most blocks there is rewritten.
///
/// In a region one S-block is written at a time, and what changes it is served in the order of
/// arrival; a read goes where its blocks are when its turn comes, and nothing is written there before
/// it ends.
#[derive(Debug, Saved)]
pub struct SBlocks {
    #[saved(keep)]
    settings: SBlockSettings,
    #[saved(keep)]
    layout: Layout,
    places: Vec<Place>,
    requests: Slab<Entry>,
    batches: Batches,
    locks: ExtentLocks<u32>,
    tasks: Slab<Task>,
    writes: Writes,
    tables: Tables,
    ops: Ops,
    ledger: Ledger<u32>,
    /// Positions and places of rings whose content a power cut could still bring back.
    quarantine: Quarantine<(u32, Held)>,
    todo: Todo,
    #[saved(keep)]
    copies: Option<CopyStore>,
    life: Life,
}

/// What is to be looked at again.
#[derive(Debug, Default, SavedValue)]
struct Todo {
    /// Regions with something to do.
    ready: Vec<u32>,
    /// Regions that wait for a buffer, a read, a flush or room in the journal.
    waiting: Vec<u32>,
    /// Requests whose lock was granted.
    granted: Vec<u32>,
    /// Blocks in a ring, to be sorted.
    scratch: Vec<(u32, u32)>,
    /// Places that have left a ring.
    freed: Vec<u32>,
    /// Checksums of blocks that were read.
    sums: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, SavedValue)]
struct Life {
    is_lost: bool,
    /// The ledger goes down when nothing is on its way.
    drains: bool,
    /// What is written again goes over its older parts, and what is forced is forced below.
    in_place: bool,
}

impl SBlocks {
    /// The store of copies, where there is one.
    pub const COPIES: Port = Port(0);

    /// The disk: behind the store of copies where there is one.
    pub fn disk_port(has_copies: bool) -> Port {
        Port(u8::from(has_copies))
    }

    fn disk(&self) -> Port {
        SBlocks::disk_port(self.copies.is_some())
    }

    /// A translation over a disk, with a store of copies or without, and what it tells the node
    /// above.
    ///
    /// # Errors
    /// When a setting is out of range or the disk does not fit.
    pub fn new(
        settings: SBlockSettings,
        below: &Geometry,
        copies: Option<CopyStore>,
    ) -> Result<(SBlocks, Geometry), SBlockError> {
        let layout = Layout::new(&settings, below)?;
        match copies {
            Some(store) if store.block != settings.block => {
                return Err(SBlockError::CopyBlock { store: store.block, block: settings.block });
            }
            None if settings.fill == Fill::Flash => return Err(SBlockError::NoCopies),
            _ => {}
        }
        let blocks = layout.blocks();
        let blocks = settings.wanted.map_or(blocks, |wanted| wanted.min(blocks));
        let told = Geometry {
            bands: Some(Arc::new(bands_fixed(blocks, BlockCount(layout.segment)))),
            rewrite_block: Some(settings.block),
            tells_copies: copies.is_some(),
            survives: below.survives,
            ..Geometry::plain(blocks, below.media)
        };
        let place = |place: &super::layout::Place| Place {
            region: Region::new(place.shape, &settings.prefill, place.first_segment),
            ring: None,
            queue: VecDeque::new(),
            job: None,
            write: None,
            ring_writes: 0,
            is_listed: false,
        };
        let (ledger, in_place) =
            ledger::ledger(&settings, &layout, below, SBlocks::disk_port(copies.is_some()));
        let layer = SBlocks {
            tables: Tables::new(&layout, settings.checksums),
            places: layout.places.iter().map(place).collect(),
            settings,
            layout,
            requests: Slab::default(),
            batches: Batches::default(),
            locks: ExtentLocks::default(),
            tasks: Slab::default(),
            writes: Writes::default(),
            ops: Ops::default(),
            ledger,
            quarantine: Quarantine::default(),
            todo: Todo::default(),
            copies,
            life: Life { in_place, ..Life::default() },
        };
        Ok((layer, told))
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn issue(
        &mut self,
        op: Op,
        operation: Operation,
        (extent, buffer): (Extent, BufferSlice),
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        let port = match operation {
            Operation::Copy(_) => SBlocks::COPIES,
            _ => self.disk(),
        };
        let tag = self.ops.begin(op);
        ctx.issue(Issue { port, operation, extent, buffer, cause, tag });
    }

    /// The store of copies, when it is there.
    fn store(&self, ctx: &Context<'_>) -> Option<CopyStore> {
        self.copies.filter(|_| !ctx.is_lost(SBlocks::COPIES))
    }

    /// A region has something to do.
    fn list(&mut self, region: u32) {
        let place = &mut self.places[region as usize];
        if !core::mem::replace(&mut place.is_listed, true) {
            self.todo.ready.push(region);
        }
    }

    /// A position or a place in a ring must not be written.
    fn hold(&mut self, region: u32, held: Held) {
        let place = &mut self.places[region as usize];
        match held {
            Held::Position(position) => place.region.hold(position),
            Held::Ring(at) => place.ring.as_mut().expect("a ring").hold(at),
        }
    }

    /// Nothing of one kind needs it any more.
    fn release(&mut self, region: u32, held: Held) {
        let place = &mut self.places[region as usize];
        match held {
            Held::Position(position) => place.region.release(position),
            Held::Ring(at) => place.ring.as_mut().expect("a ring").release(at),
        }
    }

    /// Does all that can be done now. At the end of every event.
    fn advance(&mut self, ctx: &mut Context<'_>) {
        loop {
            self.todo.ready.append(&mut self.todo.waiting);
            while let Some(region) = self.todo.ready.pop() {
                self.places[region as usize].is_listed = false;
                if self.work(region, ctx) {
                    self.places[region as usize].is_listed = true;
                    self.todo.waiting.push(region);
                }
            }
            if !self.take_ledger_events(ctx) {
                return;
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.ops.is_empty() && self.writes.is_idle() && self.todo.waiting.is_empty()
    }

    /// An operation has ended.
    fn ended(&mut self, op: Op, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match op {
            Op::Read(read) => self.read_done(read, result, ctx),
            Op::Page(page) => self.page_read(page, result, ctx),
            Op::Flush { request } => self.part_done(request, result, ctx),
            Op::Copy { request } => {
                self.requests[request].copies -= 1;
                self.part_done(request, Ok(()), ctx);
            }
            Op::Old(part) => self.old_read(part, result, ctx),
            Op::OldSums { region, page, is_again } => {
                self.old_sums_read(region, (page, is_again), result, ctx)
            }
            Op::Rewrite { region } => self.step_done(region, result),
            Op::Peek { region, block } => self.peeked(region, block, result),
            Op::Stored { region } => self.stored(region),
            Op::Ring { region, task, place, buffer } => {
                self.ring_written(region, task, (place, buffer), result, ctx)
            }
        }
    }
}

impl Layer for SBlocks {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        match request.operation {
            Operation::Read
            | Operation::Write { .. }
            | Operation::Zero { .. }
            | Operation::Flush => {}
            _ => return ctx.finish(request.id, Err(IoError::NotPermitted)),
        }
        if self.life.is_lost {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        self.take_in(request, ctx);
        self.advance(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            let op = self.ops.end(completion.tag);
            self.ended(op, completion.result, ctx);
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        let is_idle = self.writes.is_idle() && self.ledger.has_spare_room(1);
        self.ledger.mark_if_idle(is_idle, ctx);
        self.advance(ctx);
    }

    /// It goes on without its store of copies.
    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        if port == self.disk() {
            self.life.is_lost = true;
            ctx.lose();
            self.ledger.fail(IoError::Lost);
            self.advance(ctx);
        }
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        match is_lost(self.disk()) {
            true => Without::Lost,
            false => Without::NO_COPIES,
        }
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        let rings = self.places.iter().filter_map(|place| place.ring.as_ref());
        let in_rings = rings.map(|ring| u64::from(ring.blocks()));
        let regions = self.places.len() as u64;
        facts.extend([
            ("block_bytes", self.settings.block.bytes()),
            ("regions", regions),
            ("ring_blocks", in_rings.clone().sum()),
            ("ring_capacity_blocks", regions * self.layout.ring_blocks),
            ("fullest_ring_blocks", in_rings.max().unwrap_or(0)),
        ]);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        if ctx.is_lost(self.disk()) {
            return ctx.opened(Err(OpenError::Io(IoError::Lost)));
        }
        ctx.gauge(Gauge::UnusedBytes, self.layout.unused_bytes());
        ctx.gauge(Gauge::TableBytes, self.layout.table_bytes());
        let number = ctx.member_number(self.disk());
        let number = number.unwrap_or(LayerKind::SBlocks as u16);
        self.ledger.open(start, number, ctx);
        self.advance(ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        self.ledger.begin_close();
        self.advance(ctx);
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
