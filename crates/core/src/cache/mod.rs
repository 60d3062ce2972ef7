//! A write-back cache in flash over any stack.
//!
//! Replacement is decided when a request is submitted: its blocks are looked up and inserted one
//! after another in ascending order, and what must be moved because of it is put into *jobs*.
//! Moving data takes time and never changes a hit, so at queue depth 1 every counter is that of
//! the untimed algorithm. Each version of a block has an *entry*, from its insertion until it has
//! left; what a job must wait for is always something decided earlier, so nothing waits in a
//! circle.
//!
//! A request whose blocks are all there, with nothing under way that it would wait for, needs no job: it
//! is a *hit*, which is kept apart.
//!
//! An evicted entry leaves the map at once. When it was dirty, its data is read from flash and
//! written below with forced unit access, in the order of the decisions, and only then is its slot
//! free again: a newcomer waits for a slot, and a miss on a block that is still on its way down
//! waits until it has arrived.

mod admission;
mod batch;
mod block_index;
mod brought;
mod destage;
mod destage_queue;
mod durable;
mod entries;
mod flash_runs;
mod free_slots;
mod hits;
mod host_writes;
mod jobs;
mod left_below;
mod lru_band;
mod most;
mod oldest_zones;
mod opt;
mod persist;
mod plain;
mod policies;
mod policy;
mod policy_state;
mod pore;
mod progress;
mod replacement;
mod rewriting;
mod ride;
mod sac;
mod settings;
mod settings_error;
mod short_way;
mod slots;
mod waiting_line;
mod zone_books;
mod zone_lru;
mod zone_ranking;
mod zones;

pub use brought::{BroughtPolicy, CacheToFill, MakePolicy, PolicyCall, PolicyCode, Surround};
pub use durable::codec;
pub use opt::next_uses;
pub use plain::PlainPolicy;
pub use policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
pub use pore::{OpenZones, PeriodCounter, PopularityWindow, PoreSettings};
pub use ride::{RideSettings, Split};
pub use sac::SacSettings;
pub use settings::{CacheMode, CacheSettings, PolicySettings};
pub use settings_error::CacheSettingsError;
pub use zone_lru::ZoneLruSettings;
pub use zones::ZoneSettings;

use crate::counters::{Counter, Gauge};
use crate::disk::Geometry;
use crate::error::{BroughtFailure, IoError};
use crate::layer::{Context, Layer, Port};
use crate::ledger::Ledger;
use crate::lifecycle::Start;
use crate::operation::{Completion, Operation, Request};
use crate::saved::Saved;
use alloc::vec::Vec;
use destage_queue::{Batch, DestageQueue, Joins};
use durable::intent::WriteIntent;
use durable::life::{Checkpointing, Life};
use durable::table::SlotTable;
use entries::Entries;
use hits::Hits;
use host_writes::HostWrites;
use jobs::{Hosts, Jobs, Waits};
use replacement::Replacement;
use rewriting::Rewriting;
use slots::Slots;
use zone_books::ZoneBooks;

/// The write-back cache.
#[derive(Saved)]
pub struct Cache {
    #[saved(keep)]
    settings: CacheSettings,
    #[saved(keep)]
    backing_blocks: u64,
    replacement: Replacement,
    entries: Entries,
    slots: Slots,
    jobs: Jobs,
    hosts: Hosts,
    hits: Hits,
    waits: Waits,
    host_writes: HostWrites,
    destages: DestageQueue,
    /// What the cache promises to keep, and the jobs that wait for it, by number.
    ledger: Ledger<u32>,
    /// What the ledger's records say.
    table: SlotTable,
    intent: WriteIntent,
    life: Life,
    checkpointing: Checkpointing,
    rewriting: Rewriting,
}

impl Cache {
    /// The port to the cache's own medium: one block per slot, from address 0 or behind the journal
    /// of a durable cache.
    pub const FLASH: Port = Port(0);
    /// The port to what is cached.
    pub const BACKING: Port = Port(1);

    /// An empty cache and what it tells the node above: what `backing` tells it, but for zones
    /// and for the two blocks at its end that a durable cache keeps for itself.
    ///
    /// # Errors
    /// When a setting is out of range or does not fit `flash` or `backing`.
    pub fn new(
        settings: CacheSettings,
        flash: &Geometry,
        backing: &Geometry,
    ) -> Result<(Cache, Geometry), CacheSettingsError> {
        let slots = settings.check(flash, backing)?;
        let spare = settings.spare_slots(slots, flash);
        let mut geometry = backing.clone();
        geometry.blocks = settings.served_blocks(backing.blocks);
        geometry.zones = None;
        geometry.survives = flash.survives.min(backing.survives);
        let journal = settings.journal_settings(flash, Cache::FLASH);
        let policy = settings.build_policy(backing)?;
        let in_place = Cache {
            backing_blocks: geometry.blocks.0,
            replacement: Replacement::new(policy),
            entries: Entries::growing_to(slots as usize),
            slots: Slots::new(slots + spare, settings.staging_slots(), spare, journal.area.end().0),
            jobs: Jobs::default(),
            hosts: Hosts::default(),
            hits: Hits::default(),
            waits: Waits::default(),
            host_writes: HostWrites::in_place(),
            destages: DestageQueue::new(
                Operation::Write { durability: settings.destage },
                Joins::WhenDecided,
                Batch::new(0),
            ),
            ledger: Ledger::volatile(),
            table: SlotTable::new(0),
            intent: WriteIntent::new(0),
            life: Life::Plain,
            checkpointing: Checkpointing::No,
            rewriting: match &settings.policy {
                PolicySettings::ZoneLru(buffer) => {
                    Rewriting::new(backing.zones.clone().map(ZoneBooks::new), buffer.rewrite_blocks)
                }
                _ => Rewriting::default(),
            },
            settings,
        };
        let cache = match in_place.settings.durability {
            None => in_place,
            Some(durability) => Cache {
                host_writes: HostWrites::to_fresh_slots(journal.ring().blocks.0),
                // A flush of the backing comes after the destages of a batch, which may hold half
                // of the slots that are not for cached blocks.
                destages: DestageQueue::new(
                    Operation::WRITE,
                    Joins::WhenUnblocked,
                    Batch::new((u64::from(slots) - in_place.settings.capacity_blocks) / 2),
                ),
                ledger: Ledger::journaled(journal, durability, &[Cache::BACKING]),
                // No request has to wait for these to grow. One that is simulated may be larger than what its
                // trace touches.
                entries: Entries::with_room(slots as usize),
                slots: in_place.slots.in_groups(),
                table: SlotTable::new(slots + spare),
                intent: WriteIntent::new(geometry.blocks.0),
                ..in_place
            },
        };
        Ok((cache, geometry))
    }

    #[inline]
    fn count_events(events: &PolicyEvents, ctx: &mut Context<'_>) {
        if !events.is_empty() {
            Cache::count_some(events, ctx);
        }
    }

    #[inline(never)]
    fn count_some(events: &PolicyEvents, ctx: &mut Context<'_>) {
        for (counter, amount) in events.counted() {
            ctx.count(counter, amount);
        }
        if let Some((gauge, value)) = events.gauge {
            ctx.gauge(gauge, value);
        }
    }

    fn set_gauges(&self, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::CachedBlocks, self.replacement.cached_blocks);
        ctx.gauge(Gauge::DirtyBlocks, self.replacement.dirty_blocks);
    }
}

impl Layer for Cache {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if !self.ledger.is_running() {
            self.submit_failed(request, ctx);
            return self.advance(ctx);
        }
        if self.replacement.policy.failure().is_some() {
            // Whoever simulates finds out why.
            ctx.finish(request.id, Err(IoError::ShutDown));
            return self.advance(ctx);
        }
        if self.rewriting.asks_at_write && matches!(request.operation, Operation::Write { .. }) {
            self.ask_for_zones(ctx);
        }
        let fits = request.extent.blocks.0 <= self.settings.capacity_blocks;
        match request.operation {
            Operation::Read if fits => self.read(request, ctx),
            Operation::Read => self.read_around(request, ctx),
            Operation::Write { .. } if fits => self.write(request, ctx),
            Operation::Write { .. } => {
                ctx.count(Counter::CacheBypassedBlocks, request.extent.blocks.0);
                self.write_below(request, ctx);
                let mut events = PolicyEvents::default();
                let policy = &mut self.replacement.policy;
                policy.on_write_around(request.extent, &mut events);
                Cache::count_events(&events, ctx);
            }
            Operation::Zero { .. } => self.write_below(request, ctx),
            Operation::Flush => self.flush(request, ctx),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => {
                ctx.finish(request.id, Err(IoError::NotPermitted));
            }
        }
        self.set_gauges(ctx);
        self.advance(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if let Some(hit) = Hits::of_tag(completion.tag) {
            self.hit_operation_done(hit, completion, ctx);
        } else if !self.ledger.complete(completion, ctx)
            && !self.intent_operation_done(completion, ctx)
            && !self.zones_reported(completion, ctx)
        {
            self.operation_done(completion, ctx);
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        self.mark_last_flush(ctx);
        self.advance(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::SpareSlots, u64::from(self.slots.spare()));
        self.begin_opening(start, ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        self.begin_closing(ctx);
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        let Replacement { cached_blocks, dirty_blocks, .. } = self.replacement;
        let capacity = self.settings.capacity_blocks;
        facts.extend([
            ("capacity_blocks", capacity),
            ("dirty_blocks", dirty_blocks),
            ("clean_blocks", cached_blocks - dirty_blocks),
            ("free_blocks", capacity - cached_blocks),
        ]);
    }

    fn failure(&self) -> Option<BroughtFailure> {
        self.replacement.policy.failure()
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
