//! Requests whose blocks are all there and wait for nothing: the short way beside that of a job.
//!
//! Such a request is sent to flash when it arrives, and answered when it has come back. It waits for
//! nobody, so nothing is kept of it but the entries that it names. Others wait for these entries as they
//! do for those of a job. A cache that does not write over its blocks where they lie has no short way: it
//! has a record for each write, and compares what it reads.

use super::Cache;
use super::entries::Entries;
use super::flash_runs::FlashRuns;
use super::hits::Hits;
use super::policy::{AccessKind, PolicyEvents};
use crate::counters::Counter;
use crate::extent::Extent;
use crate::layer::{Context, Issue};
use crate::operation::{Completion, Request};
use crate::units::Lba;
use alloc::vec::Vec;

impl Cache {
    /// Lets a request take the short way, if it can. Nothing has changed otherwise.
    // The hit is looked up once for all that is done with it.
    #[inline]
    pub(super) fn take_short_way(
        &mut self,
        request: &Request,
        kind: AccessKind,
        refreshing: bool,
        ctx: &mut Context<'_>,
    ) -> bool {
        if !self.host_writes.are_in_place() {
            return false;
        }
        let (id, hit) = self.hits.open(request.id, kind);
        if !find_all_at_rest(&self.entries, request.extent, &mut hit.entries) {
            self.hits.close(id);
            return false;
        }
        let mut events = PolicyEvents::default();
        for entry in &hit.entries {
            if refreshing {
                self.replacement.policy.on_access(*entry, kind, &mut events);
            }
            match kind {
                AccessKind::Read => self.entries.pin(*entry),
                AccessKind::Write => {
                    self.entries.pin_to_write(*entry);
                    self.replacement.dirty_blocks += u64::from(self.entries.soil(*entry));
                }
            }
        }
        Cache::count_events(&events, ctx);
        let (lookups, hits) = match kind {
            AccessKind::Read => (Counter::ReadLookups, Counter::ReadHits),
            AccessKind::Write => (Counter::WriteLookups, Counter::WriteHits),
        };
        ctx.count(lookups, request.extent.blocks.0);
        ctx.count(hits, request.extent.blocks.0);
        for run in FlashRuns::new(&self.entries, &hit.entries, None) {
            ctx.issue(Issue {
                port: Cache::FLASH,
                operation: request.operation,
                extent: self.slots.place(run.slot, run.blocks),
                buffer: request.buffer.part(run.first, run.blocks),
                cause: request.cause,
                tag: Hits::tag_of(id),
            });
            hit.outstanding += 1;
        }
        self.jobs.operations_in_flight += u64::from(hit.outstanding);
        true
    }

    /// An operation of a hit has finished. The last one answers the request.
    #[inline]
    pub(super) fn hit_operation_done(
        &mut self,
        id: u32,
        completion: Completion,
        ctx: &mut Context<'_>,
    ) {
        self.jobs.operations_in_flight -= 1;
        let hit = self.hits.get_mut(id);
        hit.error = hit.error.or(completion.result.err());
        hit.outstanding -= 1;
        if hit.outstanding > 0 {
            return;
        }
        let (request, kind, error) = (hit.request, hit.kind, hit.error);
        let entries = core::mem::take(&mut hit.entries);
        for entry in &entries {
            match kind {
                AccessKind::Read => self.unpin(*entry, ctx),
                AccessKind::Write => self.written(*entry, error, ctx),
            }
        }
        self.hits.get_mut(id).entries = entries;
        self.hits.close(id);
        if kind == AccessKind::Write && error.is_some() {
            self.set_gauges(ctx);
        }
        ctx.finish(request, error.map_or(Ok(()), Err));
    }
}

/// Finds the entries of all blocks of `extent` for a hit. False when one is not there, or not at rest.
#[inline]
fn find_all_at_rest(entries: &Entries, extent: Extent, found: &mut Vec<u32>) -> bool {
    for lba in extent.start.0..extent.end().0 {
        match entries.find(Lba(lba)) {
            Some(entry) if entries.get(entry).is_at_rest() => found.push(entry),
            _ => return false,
        }
    }
    extent.blocks.0 > 0
}
