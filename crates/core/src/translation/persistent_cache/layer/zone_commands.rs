//! Commands about zones, of a disk that shows its bands as zones.

use super::{PersistentCache, Timer};
use crate::counters::{Counter, Gauge};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::BandId;
use crate::operation::{Operation, Request};
use crate::translation::persistent_cache::zones::Zones;

impl PersistentCache {
    /// The zones; only called where the host sees any.
    pub(super) fn zones(&mut self) -> &mut Zones {
        self.zones.as_mut().expect("a host-aware disk")
    }

    /// Obeys a zone command, or begins a report.
    pub(super) fn zone_command(&mut self, job: u32, ctx: &mut Context<'_>) {
        let request = self.requests.get(job).request;
        if request.operation == Operation::ZoneReport {
            // What is nearly cleaned is reported clean.
            let rewrite = self.rewriter.current();
            if rewrite.is_some_and(|rewrite| rewrite.pace.is_finishing) {
                return self.wait_for_rewrite(job, ctx);
            }
            return self.answer_command(job, request.operation, ctx);
        }
        let zone = self.shape.bands.band_of(request.extent.start);
        let empties = matches!(request.operation, Operation::ZoneReset | Operation::ZoneFinish);
        if empties && self.rewriter.band() == Some(zone) {
            self.rewriter.stop_waiting_for_idle_time();
            return self.wait_for_rewrite(job, ctx);
        }
        let result = self.obey(request, ctx);
        self.requests.get_mut(job).result = result;
        self.answer_command(job, request.operation, ctx);
    }

    fn obey(&mut self, request: Request, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let band = self.shape.bands.band_of(request.extent.start);
        let whole = self.shape.bands.extent_of(band);
        if whole != request.extent {
            return Err(IoError::InvalidField);
        }
        self.zones().obey(request.operation, band)?;
        if request.operation == Operation::ZoneReset {
            self.gauge_zones(ctx);
            ctx.count(Counter::ZonesReset, 1);
            self.blocks.empty(band, whole);
        }
        Ok(())
    }

    fn answer_command(&mut self, job: u32, operation: Operation, ctx: &mut Context<'_>) {
        let at = self.zones().answer_later(job, operation, ctx.now());
        self.alarms.set(Timer::Zones, at, ctx);
    }

    /// Answers the commands whose time has come.
    pub(super) fn answer_commands(&mut self, ctx: &mut Context<'_>) {
        while let Some(job) = self.zones().next_due(ctx.now()) {
            let request = self.requests.get(job).request;
            if request.operation == Operation::ZoneReport {
                ctx.count(Counter::ZoneReports, 1);
                let report = self.zones().report(request.extent.start, request.extent.blocks);
                ctx.fill_report(request.buffer, &report);
            }
            self.finish(job, ctx);
        }
        if let Some(at) = self.zones().due_at() {
            self.alarms.set(Timer::Zones, at, ctx);
        }
    }

    /// What a request keeps others from: a report flushes the queue, so it keeps them from all.
    pub(super) fn extent_to_lock(&self, request: &Request) -> Extent {
        match request.operation {
            Operation::ZoneReport => self.shape.whole(),
            _ => request.extent,
        }
    }

    /// Takes note of blocks of a zone that were sent to the log.
    pub(super) fn count_out_of_sequence(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        let (band, offset) = self.shape.band_and_offset(extent.start);
        self.zones().advance(band, offset + extent.blocks.0);
        ctx.count(Counter::BlocksOutOfSequence, extent.blocks.0);
        self.gauge_zones(ctx);
    }

    /// A zone was rewritten: it is sequential again, unless something was written to it meanwhile.
    pub(super) fn zone_rewritten(&mut self, band: BandId, ctx: &mut Context<'_>) {
        let whole = self.shape.bands.extent_of(band);
        if self.zones.is_none() || self.blocks.log.map().pieces(whole).next().is_some() {
            return;
        }
        self.zones().cleaned(band);
        self.gauge_zones(ctx);
    }

    fn gauge_zones(&mut self, ctx: &mut Context<'_>) {
        let non_sequential = self.zones().non_sequential();
        ctx.gauge(Gauge::NonSequentialZones, non_sequential);
    }
}
