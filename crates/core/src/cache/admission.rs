//! From a host request to jobs: look-ups, insertions and evictions, block by block.

use super::Cache;
use super::entries::{Flag, NONE};
use super::jobs::{Event, JobKind, Waiter};
use super::policy::{AccessKind, PolicyEvents};
use super::settings::CacheMode;
use super::slots::{RUN_MIN, SlotWaiter, Slots, Wish};
use crate::counters::Counter;
use crate::extent::Extent;
use crate::layer::Context;
use crate::operation::{Operation, Request};
use crate::units::{BlockCount, Lba};

/// The job that is being put together from the blocks of a request.
#[derive(Clone, Copy)]
struct Run {
    job: u32,
    of: RunOf,
}

/// What the blocks of a job have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RunOf {
    kind: JobKind,
    /// They wait for slots before they are written, all together.
    is_slotless: bool,
}

impl RunOf {
    /// Blocks that are read, which those do as well that have yet to get a slot.
    fn reading(kind: JobKind) -> RunOf {
        RunOf { kind, is_slotless: false }
    }
}

/// A host request on its way through the blocks.
struct Admission {
    request: Request,
    host: u32,
    run: Option<Run>,
    /// The destage that the next evicted block may join.
    destage: Option<u32>,
    /// The slot that was given out last for the request; none while a newcomer waits for its own.
    last_slot: Option<u32>,
    hits: u64,
    events: PolicyEvents,
}

impl Admission {
    #[inline]
    fn new(request: Request, host: u32) -> Admission {
        Admission {
            request,
            host,
            run: None,
            destage: None,
            last_slot: None,
            hits: 0,
            events: PolicyEvents::default(),
        }
    }

    fn lba(&self, index: u64) -> Lba {
        Lba(self.request.extent.start.0 + index)
    }

    /// Where the block at `index` should lie, when those from it on belong together and the one before it is at
    /// `before`.
    #[inline]
    fn wish_of_run(&self, index: u64, before: Option<u32>, slots: &Slots) -> Wish {
        let rest = slots.together(self.lba(index), self.request.extent.blocks.0 - index);
        let before = before.filter(|_| !slots.begins_group(self.lba(index)));
        before.map_or(Wish::Run(rest), |slot| Wish::Behind(slot, rest))
    }
}

impl Cache {
    /// A read that fits the cache.
    pub(super) fn read(&mut self, request: Request, ctx: &mut Context<'_>) {
        let mode = self.settings.mode;
        let allocating = mode == CacheMode::ReadWrite && !ctx.is_read_only();
        let refreshing = mode != CacheMode::WriteOnly && !ctx.is_read_only();
        if self.take_short_way(&request, AccessKind::Read, refreshing, ctx) {
            return;
        }
        let mut admission = self.admit(request);
        for index in 0..request.extent.blocks.0 {
            let found = self.cached_entry(admission.lba(index));
            admission.hits += u64::from(found.is_some());
            match found {
                Some(entry) => {
                    if refreshing {
                        self.replacement.policy.on_access(
                            entry,
                            AccessKind::Read,
                            &mut admission.events,
                        );
                    }
                    self.add_hit_read(&mut admission, index, entry, ctx);
                }
                None if allocating => {
                    let entry = self.insert(&mut admission, index, AccessKind::Read, ctx);
                    self.add_miss(&mut admission, index, Some(entry), ctx);
                }
                None => self.add_miss(&mut admission, index, None, ctx),
            }
        }
        ctx.count(Counter::ReadLookups, request.extent.blocks.0);
        ctx.count(Counter::ReadHits, admission.hits);
        self.end_admission(&mut admission, ctx);
    }

    /// A read larger than the cache: cached blocks come from flash, the others from below, and
    /// nothing changes.
    pub(super) fn read_around(&mut self, request: Request, ctx: &mut Context<'_>) {
        ctx.count(Counter::CacheBypassedBlocks, request.extent.blocks.0);
        self.read_unchanged(request, ctx);
    }

    /// A read that changes nothing in the cache.
    pub(super) fn read_unchanged(&mut self, request: Request, ctx: &mut Context<'_>) {
        let mut admission = self.admit(request);
        self.add_unchanged(&mut admission, ctx);
        self.end_admission(&mut admission, ctx);
    }

    fn add_unchanged(&mut self, admission: &mut Admission, ctx: &mut Context<'_>) {
        for index in 0..admission.request.extent.blocks.0 {
            match self.cached_entry(admission.lba(index)) {
                Some(entry) => self.add_hit_read(admission, index, entry, ctx),
                None => self.add_miss(admission, index, None, ctx),
            }
        }
    }

    /// Reads the blocks of a job from where each is by now: what it has waited for went wrong. The
    /// data it was to take from flash never came there, and the copy below is good; or the copy
    /// below, which it was to read, could not be brought up to date, and the data is still in
    /// flash. Nothing is kept that is not there already.
    pub(super) fn read_where_it_is(&mut self, id: u32, ctx: &mut Context<'_>) {
        let job = self.jobs.get(id);
        let (host, extent) = (job.host, job.extent);
        let request = Request {
            id: self.hosts.id_of(host),
            operation: job.operation,
            extent,
            buffer: job.buffer,
            cause: job.cause,
            has_more: false,
        };
        let was_miss = job.kind == JobKind::MissRead;
        self.end_waits_for(id, ctx);
        let own = self.jobs.take_entries(id);
        for entry in &own {
            match was_miss {
                true => self.forget_miss(*entry, ctx),
                false => self.unpin(*entry, ctx),
            }
        }
        self.jobs.close(id, own);
        let mut admission = Admission::new(request, host);
        self.add_unchanged(&mut admission, ctx);
        // This ends the job's part of the request too.
        self.end_admission(&mut admission, ctx);
    }

    /// A write that fits the cache.
    pub(super) fn write(&mut self, request: Request, ctx: &mut Context<'_>) {
        if self.take_short_way(&request, AccessKind::Write, true, ctx) {
            return;
        }
        let mut admission = self.admit(request);
        for index in 0..request.extent.blocks.0 {
            let found = self.cached_entry(admission.lba(index));
            let entry = match found {
                Some(entry) => {
                    admission.hits += 1;
                    self.replacement.policy.on_access(
                        entry,
                        AccessKind::Write,
                        &mut admission.events,
                    );
                    entry
                }
                None => self.insert(&mut admission, index, AccessKind::Write, ctx),
            };
            self.add_write(&mut admission, index, entry, found.is_some(), ctx);
        }
        ctx.count(Counter::WriteLookups, request.extent.blocks.0);
        ctx.count(Counter::WriteHits, admission.hits);
        self.end_admission(&mut admission, ctx);
    }

    /// A zeroing, or a write larger than the cache: cached copies are dropped, then it goes below
    /// behind every destage that was decided earlier.
    pub(super) fn write_below(&mut self, request: Request, ctx: &mut Context<'_>) {
        let host = self.hosts.open(request.id);
        let job = self.jobs.open(JobKind::BackingWrite, host, request.operation, request.cause);
        self.jobs.get_mut(job).extent = request.extent;
        self.jobs.get_mut(job).buffer = request.buffer;
        let mut newest = core::mem::take(&mut self.replacement.victims);
        self.entries.newest_within(request.extent, &mut newest);
        for entry in newest.drain(..) {
            if self.entries.get(entry).is(Flag::Cached) {
                self.drop_for(job, entry, ctx);
            } else if self.entries.get(entry).is(Flag::Leaving) {
                self.block_on(job, entry, Event::Gone);
            }
        }
        self.replacement.victims = newest;
        self.wait_for_reset(job, request.extent);
        if let Some(books) = &mut self.rewriting.books {
            match request.operation {
                Operation::Zero { .. } => books.zero(request.extent),
                _ => books.write(request.extent),
            }
        }
        self.destages.add(job);
        self.unblock(job, ctx);
    }

    /// Drops a cached copy that `job` makes obsolete. Dirty data is kept aside until then: should
    /// the job fail, it is the newest there is.
    fn drop_for(&mut self, job: u32, id: u32, ctx: &mut Context<'_>) {
        let dirty = self.entries.get(id).is(Flag::Dirty);
        self.remove_from_map(id);
        // What is left of older versions must not come down after the job.
        if self.entries.get(id).is(Flag::HasOlder) {
            self.block_on(job, id, Event::Alone);
        }
        if dirty {
            self.keep_aside(job, id);
        }
        self.retire(id, ctx);
    }

    /// A flush covers what was answered before it arrived; all of that is on the two ports.
    pub(super) fn flush(&mut self, request: Request, ctx: &mut Context<'_>) {
        let host = self.hosts.open(request.id);
        let job = self.jobs.open(JobKind::Flush, host, request.operation, request.cause);
        self.unblock(job, ctx);
    }

    #[inline]
    fn admit(&mut self, request: Request) -> Admission {
        Admission::new(request, self.hosts.open(request.id))
    }

    fn end_admission(&mut self, admission: &mut Admission, ctx: &mut Context<'_>) {
        self.close_destage(&mut admission.destage, ctx);
        Cache::count_events(&admission.events, ctx);
        match admission.run.take() {
            // It has the part that was the caller's own.
            Some(last) => self.unblock(last.job, ctx),
            None => self.end_part(admission.host, None, ctx),
        }
    }

    #[inline]
    pub(super) fn cached_entry(&self, lba: Lba) -> Option<u32> {
        let entry = self.entries.find(lba)?;
        self.entries.get(entry).is(Flag::Cached).then_some(entry)
    }

    /// Makes room for a block and puts it into the map, with a slot or a place in the queue for
    /// one.
    fn insert(
        &mut self,
        admission: &mut Admission,
        index: u64,
        kind: AccessKind,
        ctx: &mut Context<'_>,
    ) -> u32 {
        let lba = admission.lba(index);
        self.replacement.policy.before_insert(lba);
        if self.make_room(&mut admission.destage, &mut admission.events, ctx) {
            // What leaves may wait for the write of this run. So no later block may join the run: it could wait for
            // the very slot of what leaves, and neither would ever come.
            self.end_run(admission, ctx);
        }
        let id = self.add_entry(lba);
        let wish = self.wish_of_newcomer(admission, index);
        let slot = self.slots.hold(wish);
        admission.last_slot = slot;
        match slot {
            Some(slot) => _ = self.entries.replace_slot(id, slot),
            None => {
                self.entries.get_mut(id).set(Flag::AwaitsSlot);
                self.slots.wait(SlotWaiter::Entry(id));
            }
        }
        self.replacement.cached_blocks += 1;
        self.replacement.policy.on_insert(id, lba, kind, &mut admission.events);
        id
    }

    /// Where a block that comes in should lie: behind the one before it, or where the rest of the request can.
    #[inline]
    fn wish_of_newcomer(&self, admission: &Admission, index: u64) -> Wish {
        let before = match admission.last_slot {
            None => admission.lba(index).0.checked_sub(1).and_then(|lba| self.slot_of(Lba(lba))),
            last => last,
        };
        match admission.wish_of_run(index, before, &self.slots) {
            Wish::Run(blocks) if blocks < RUN_MIN => {
                let slot_of = |lba| self.slot_of(lba);
                self.slots.wish_of_newcomer(admission.lba(index), blocks, slot_of)
            }
            wish => wish,
        }
    }

    /// Where a block should lie that is written again to a fresh slot, and lies in its `own` one.
    #[inline]
    fn wish_of_rewritten(&self, admission: &Admission, index: u64, own: u32) -> Wish {
        if admission.request.extent.blocks.0 >= u64::from(RUN_MIN) {
            return admission.wish_of_run(index, admission.last_slot, &self.slots);
        }
        self.slots.wish_of_rewritten(admission.lba(index), own, |lba| self.slot_of(lba))
    }

    #[inline]
    fn slot_of(&self, lba: Lba) -> Option<u32> {
        let slot = self.entries.slot(self.cached_entry(lba)?);
        (slot != NONE).then_some(slot)
    }

    /// A new entry as the newest of its block, which waits for an older one to go.
    #[inline]
    pub(super) fn add_entry(&mut self, lba: Lba) -> u32 {
        let older = self.entries.find(lba);
        if let Some(older) = older {
            self.entries.unlink(older);
        }
        let id = self.entries.insert(lba);
        if let Some(older) = older {
            self.waits.add(&mut self.entries, older, Event::Gone, Waiter::Successor(id));
            self.note_wait(Event::Gone);
            self.entries.get_mut(id).set(Flag::HasOlder);
        }
        id
    }

    #[inline]
    fn add_hit_read(
        &mut self,
        admission: &mut Admission,
        index: u64,
        id: u32,
        ctx: &mut Context<'_>,
    ) {
        self.entries.pin(id);
        let busy = self.entries.writes(id) > 0;
        let job = self.join_run(admission, RunOf::reading(JobKind::FlashRead), index, busy, ctx);
        self.jobs.get_mut(job).entries.push(id);
        if busy {
            self.block_on(job, id, Event::Written);
            self.end_run(admission, ctx);
        }
    }

    #[inline]
    fn add_write(
        &mut self,
        admission: &mut Admission,
        index: u64,
        id: u32,
        hit: bool,
        ctx: &mut Context<'_>,
    ) {
        let kind = self.host_writes.kind;
        let takes_slot = !self.host_writes.are_in_place();
        let unavailable = takes_slot && hit && !self.slots.has_free();
        let busy = self.entries.pin_to_write(id);
        self.replacement.dirty_blocks += u64::from(self.entries.soil(id));
        let entry = self.entries.get(id);
        let is_slotless = entry.is(Flag::AwaitsSlot);
        // It may get the slot of the version before, which may fail to leave: then it fails for itself.
        let is_successor = is_slotless && entry.is(Flag::HasOlder);
        let alone = busy || is_successor || unavailable;
        let job = self.join_run(admission, RunOf { kind, is_slotless }, index, alone, ctx);
        if takes_slot {
            let slot = self.entries.slot(id);
            let wish = hit.then(|| self.wish_of_rewritten(admission, index, slot));
            let slot = self.take_write_slot(job, id, wish);
            admission.last_slot = slot.or(admission.last_slot);
        }
        self.jobs.get_mut(job).entries.push(id);
        if busy {
            self.block_on(job, id, Event::Written);
        } else if is_slotless {
            self.block_on(job, id, Event::Slotted);
        }
        if alone {
            self.end_run(admission, ctx);
        }
    }

    /// Reads a block below; `newcomer` is its entry, when it is to be kept.
    fn add_miss(
        &mut self,
        admission: &mut Admission,
        index: u64,
        newcomer: Option<u32>,
        ctx: &mut Context<'_>,
    ) {
        let job = self.join_run(admission, RunOf::reading(JobKind::MissRead), index, false, ctx);
        let Some(id) = newcomer else {
            self.wait_for_reset(job, Extent { start: admission.lba(index), blocks: BlockCount(1) });
            if let Some(leaving) = self.entries.find(admission.lba(index)) {
                self.block_on(job, leaving, Event::Gone);
            }
            return;
        };
        self.jobs.get_mut(job).entries.push(id);
        self.entries.pin_to_write(id);
        let entry = self.entries.get_mut(id);
        entry.set(Flag::AwaitsData);
        let (slotless, has_older) = (entry.is(Flag::AwaitsSlot), entry.is(Flag::HasOlder));
        if slotless {
            self.block_on(job, id, Event::Slotted);
        }
        if has_older {
            self.block_on(job, id, Event::Alone);
        }
    }

    /// The job that the block at `index` of the request belongs to: the one being put together
    /// when that does the same, or else a new one.
    #[inline]
    fn join_run(
        &mut self,
        admission: &mut Admission,
        of: RunOf,
        index: u64,
        alone: bool,
        ctx: &mut Context<'_>,
    ) -> u32 {
        match admission.run {
            Some(run) if run.of == of && !alone => {
                let job = self.jobs.get_mut(run.job);
                job.extent.blocks.0 += 1;
                job.buffer.blocks += 1;
                run.job
            }
            _ => self.begin_run(admission, of, index, ctx),
        }
    }

    /// A new job, of which the block at `index` is the first.
    #[inline(never)]
    fn begin_run(
        &mut self,
        admission: &mut Admission,
        of: RunOf,
        index: u64,
        ctx: &mut Context<'_>,
    ) -> u32 {
        self.end_run(admission, ctx);
        let request = &admission.request;
        let job = self.jobs.open(of.kind, admission.host, request.operation, request.cause);
        let opened = self.jobs.get_mut(job);
        opened.extent = Extent { start: admission.lba(index), blocks: BlockCount(1) };
        opened.buffer = request.buffer.part(index, 1);
        admission.run = Some(Run { job, of });
        job
    }

    /// Nothing more joins the job that is being put together, and others may follow.
    #[inline]
    fn end_run(&mut self, admission: &mut Admission, ctx: &mut Context<'_>) {
        if let Some(run) = admission.run.take() {
            self.hosts.add_part(admission.host);
            self.unblock(run.job, ctx);
        }
    }
}
