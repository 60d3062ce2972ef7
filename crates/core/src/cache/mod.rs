//! A write-back cache in flash over any stack.
//!
//! Replacement is decided when a request is submitted: its blocks are looked up and inserted one
//! after another in ascending order, and what must be moved because of it is put into *jobs*.
//! Moving data takes time and never changes a hit, so at queue depth 1 every counter is that of
//! the untimed algorithm. Each version of a block has an *entry*, from its insertion until it has
//! left; what a job must wait for is always something decided earlier, so nothing waits in a
//! circle.
//!
//! An evicted entry leaves the map at once. When it was dirty, its data is read from flash and
//! written below with forced unit access, in the order of the decisions, and only then is its slot
//! free again: a newcomer waits for a slot, and a miss on a block that is still on its way down
//! waits until it has arrived.

mod admission;
mod destage;
mod durable;
mod entries;
mod jobs;
mod lru;
mod lru_band;
mod lru_list;
mod opt;
mod persist;
mod pore;
mod progress;
mod settings;
mod slots;
mod unlimited;

pub use durable::codec;
pub use opt::next_uses;
pub use pore::{OpenZones, PeriodCounter, PopularityWindow, PoreSettings};
pub use settings::{CacheMode, CacheSettings, CacheSettingsError, PolicySettings};

use crate::counters::{Counter, Gauge};
use crate::disk::Geometry;
use crate::error::IoError;
use crate::layer::{Context, Layer, Port};
use crate::lifecycle::Start;
use crate::operation::{Completion, Operation, Request};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::vec::Vec;
use destage::DestageQueue;
use durable::Durable;
use entries::Entries;
use jobs::{Hosts, Jobs, Waiter, Waits};
use slots::Slots;

/// How a block was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Its data was wanted.
    Read,
    /// It was given new data, and is dirty from then on.
    Write,
}

/// What a policy did beyond choosing victims, for the counters of the cache: each policy has its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PolicyEvents {
    /// The counters of the policy, once it has counted something.
    counters: &'static [Counter],
    /// By counter: how much is to be added.
    amounts: [u64; PolicyEvents::COUNTERS_MAX],
}

impl PolicyEvents {
    /// Counters of a policy at most.
    pub const COUNTERS_MAX: usize = 8;

    /// Adds one to a counter of a policy that has these `counters`.
    pub fn count(&mut self, counters: &'static [Counter], index: usize) {
        self.counters = counters;
        self.amounts[index] += 1;
    }

    /// What was counted by the counter.
    pub fn amount(&self, counter: Counter) -> u64 {
        let all = self.counters.iter().zip(self.amounts);
        all.filter(|(known, _)| **known == counter)
            .map(|(_, amount)| amount)
            .sum()
    }
}

/// Chooses which blocks leave a full cache.
///
/// The cache names its blocks by small dense numbers, which it uses again after a removal. A
/// policy keeps its state in arrays over them, and knows the blocks between
/// [`on_insert`](Self::on_insert) and [`on_remove`](Self::on_remove).
pub trait EvictionPolicy {
    /// A block came in; a block that was written is dirty.
    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, events: &mut PolicyEvents);

    /// A block was found in the cache; a block that was written is dirty from now on.
    fn on_access(&mut self, entry: u32, kind: AccessKind, events: &mut PolicyEvents);

    /// Appends the blocks that are to leave now, at least one, in the order of leaving. The cache
    /// removes each of them.
    fn victims(&mut self, victims: &mut Vec<u32>, events: &mut PolicyEvents);

    /// A block leaves.
    fn on_remove(&mut self, entry: u32);

    /// Writes down what the policy must know again. `numbers` says, by entry, by which number to
    /// call a block there: they are dense, whatever entries are in use.
    fn save(&self, numbers: &[u32], state: &mut StateWriter);

    /// Takes back what [`save`](Self::save) wrote. The saved numbers are the entries from now on;
    /// `cached` holds the blocks by them.
    ///
    /// # Errors
    /// When the state is damaged.
    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError>;
}

/// A block of a saved cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedBlock {
    /// Its address.
    pub lba: Lba,
    /// True when it is newer than the copy below.
    pub dirty: bool,
}

/// The write-back cache.
pub struct Cache {
    settings: CacheSettings,
    backing_blocks: u64,
    policy: Box<dyn EvictionPolicy>,
    entries: Entries,
    slots: Slots,
    jobs: Jobs,
    hosts: Hosts,
    waits: Waits,
    destages: DestageQueue,
    cached_blocks: u64,
    dirty_blocks: u64,
    /// What makes it outlive a crash, where that is wanted.
    durable: Option<Box<Durable>>,
    /// The block of the flash where the slots begin.
    slot_base: u64,
    /// Operations of its own on either port.
    operations_in_flight: u64,
    /// Used within one call only; kept for its memory.
    victims: Vec<u32>,
    woken: Vec<Waiter>,
}

impl Cache {
    /// The port to the cache's own medium: one block per slot, from address 0 or behind the journal
    /// of a durable cache.
    pub const FLASH: Port = Port(0);
    /// The port to what is cached.
    pub const BACKING: Port = Port(1);

    /// An empty cache and what it tells the node above: what `backing` tells it, but for the two
    /// blocks at its end that a durable cache keeps for itself.
    ///
    /// # Errors
    /// When a setting is out of range or does not fit `flash` or `backing`.
    pub fn new(
        settings: CacheSettings,
        flash: &Geometry,
        backing: &Geometry,
    ) -> Result<(Cache, Geometry), CacheSettingsError> {
        let slots = settings.check(flash, backing)?;
        let mut geometry = backing.clone();
        geometry.blocks = settings.served_blocks(backing.blocks);
        let (durable, slot_base) = settings.build_durable(flash, geometry.blocks, slots);
        let policy = settings.build_policy(backing)?;
        let cache = Cache {
            settings,
            backing_blocks: geometry.blocks.0,
            policy,
            entries: Entries::new(),
            slots: Slots::new(slots),
            jobs: Jobs::default(),
            hosts: Hosts::default(),
            waits: Waits::default(),
            destages: DestageQueue::default(),
            cached_blocks: 0,
            dirty_blocks: 0,
            durable,
            slot_base,
            operations_in_flight: 0,
            victims: Vec::new(),
            woken: Vec::new(),
        };
        Ok((cache, geometry))
    }

    fn count_events(events: PolicyEvents, ctx: &mut Context<'_>) {
        for (counter, amount) in events.counters.iter().zip(events.amounts) {
            ctx.count(*counter, amount);
        }
    }

    fn set_gauges(&self, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::CachedBlocks, self.cached_blocks);
        ctx.gauge(Gauge::DirtyBlocks, self.dirty_blocks);
    }
}

impl Layer for Cache {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if self.durable.is_some() && !self.durable_serves() {
            self.submit_failed(request, ctx);
            return self.durable_turn(ctx);
        }
        let fits = request.extent.blocks.0 <= self.settings.capacity_blocks;
        match request.operation {
            Operation::Read if fits => self.read(request, ctx),
            Operation::Read => self.read_around(request, ctx),
            Operation::Write { .. } if fits => self.write(request, ctx),
            Operation::Write { .. } => {
                ctx.count(Counter::CacheBypassedBlocks, request.extent.blocks.0);
                self.write_below(request, ctx);
            }
            Operation::Zero { .. } => self.write_below(request, ctx),
            Operation::Flush => self.flush(request, ctx),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport => {
                ctx.finish(request.id, Err(IoError::NotPermitted));
            }
        }
        self.set_gauges(ctx);
        if self.durable.is_some() {
            self.durable_turn(ctx);
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if self.durable.is_none() {
            return self.operation_done(completion, ctx);
        }
        if !self.service_done(completion, ctx) {
            self.operation_done(completion, ctx);
        }
        self.durable_turn(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.durable.is_some() {
            self.mark_last_flush(ctx);
            self.durable_turn(ctx);
        }
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        match self.durable {
            Some(_) => self.open_durable(start, ctx),
            None => ctx.opened(Ok(())),
        }
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        match self.durable {
            Some(_) => self.close_durable(ctx),
            None => ctx.closed(Ok(())),
        }
    }
}
