//! Host-aware zones: the bands of a translation as the host sees them, with write pointers that it
//! should respect and need not (ZBC-2; Idler, IEEE TC 2020).
//!
//! A write that starts at the write pointer of a sequential zone goes home and moves the pointer.
//! Any other write goes to the log and makes the zone non-sequential: then all later writes go to
//! the log too, until the zone is rewritten with everything the log holds of it.

use super::persistent_cache::PersistentCache;
use super::settings::LayoutError;
use super::timers::Timer;
use crate::counters::{Counter, Gauge};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::Context;
use crate::map::{BandId, BandTable};
use crate::operation::{Operation, Request};
use crate::units::{BlockCount, Duration, Instant, Lba};
use crate::zone::{ZoneCondition, ZoneDescriptor, ZoneGeometry, ZoneId, report};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// What makes a persistent cache host-aware. Its bands are the zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostAware {
    /// The zones.
    pub zones: Arc<ZoneGeometry>,
    /// Time of a zone command.
    pub command: Duration,
    /// Time of a report of zones, once everything before it has finished.
    pub report: Duration,
}

/// The zones of a host-aware disk.
#[derive(Debug)]
pub(super) struct Zones {
    pub settings: HostAware,
    states: Vec<ZoneState>,
    non_sequential: u64,
    /// Zone commands and reports, in the order in which they will be answered.
    due: VecDeque<(Instant, u32)>,
    electronics_free: Instant,
}

#[derive(Clone, Copy, Debug)]
struct ZoneState {
    condition: ZoneCondition,
    /// Blocks from the start of the zone to the end of what was written last in it: at home, or in
    /// the log.
    pointer: u32,
    is_sequential: bool,
}

/// Where a write to a zone belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Belongs {
    /// Home, wherever in the zone: it is conventional.
    Anywhere,
    /// Home, at the write pointer.
    AtPointer,
    /// Into the log.
    InLog,
}

/// Checks that the bands of a translation are the zones of its disk.
pub(super) fn check_zones(zones: &ZoneGeometry, bands: &BandTable) -> Result<(), LayoutError> {
    let is_band = |zone| bands.extent_of(BandId(zone)) == zones.extent_of(ZoneId(zone));
    let are_bands = zones.blocks == bands.blocks()
        && zones.zones() == bands.bands()
        && (0..zones.zones()).all(is_band);
    match are_bands && zones.conventional_zones <= zones.zones() {
        true => Ok(()),
        false => Err(LayoutError::ZonesAreNotBands),
    }
}

impl Zones {
    pub fn new(settings: HostAware) -> Zones {
        let geometry = &settings.zones;
        let state = |zone| ZoneState {
            condition: match geometry.is_conventional(ZoneId(zone)) {
                true => ZoneCondition::NoWritePointer,
                false => ZoneCondition::Empty,
            },
            pointer: 0,
            is_sequential: true,
        };
        Zones {
            states: (0..geometry.zones()).map(state).collect(),
            settings,
            non_sequential: 0,
            due: VecDeque::new(),
            electronics_free: Instant::ZERO,
        }
    }

    /// Where a write of part of a zone belongs. One that does not belong home makes the zone
    /// non-sequential.
    pub fn place(&mut self, zone: BandId, offset: u64) -> Belongs {
        let takes_home = self.takes_home(zone, offset);
        let state = &mut self.states[zone.0 as usize];
        if takes_home {
            return match state.condition {
                ZoneCondition::NoWritePointer => Belongs::Anywhere,
                _ => Belongs::AtPointer,
            };
        }
        if core::mem::replace(&mut state.is_sequential, false) {
            self.non_sequential += 1;
        }
        Belongs::InLog
    }

    /// True when a write of part of a zone belongs home.
    fn takes_home(&self, zone: BandId, offset: u64) -> bool {
        let state = self.states[zone.0 as usize];
        match state.condition {
            ZoneCondition::NoWritePointer => true,
            ZoneCondition::Full => false,
            _ => state.is_sequential && offset == u64::from(state.pointer),
        }
    }

    /// Moves the write pointer behind a write that reaches further.
    pub fn advance(&mut self, zone: BandId, end: u64) {
        let length = self.settings.zones.extent_of(ZoneId(zone.0)).blocks.0;
        let state = &mut self.states[zone.0 as usize];
        if state.condition == ZoneCondition::NoWritePointer {
            return;
        }
        state.pointer = state.pointer.max(end as u32);
        state.condition = match state.condition {
            _ if end == length => ZoneCondition::Full,
            ZoneCondition::Empty | ZoneCondition::Closed => ZoneCondition::ImplicitlyOpen,
            condition => condition,
        };
    }

    /// Blocks from the start of the zone to the end of what was written in it.
    pub fn written_end(&self, zone: BandId) -> u64 {
        u64::from(self.states[zone.0 as usize].pointer)
    }

    /// Everything of a zone is at home.
    pub fn cleaned(&mut self, zone: BandId) {
        let state = &mut self.states[zone.0 as usize];
        if !core::mem::replace(&mut state.is_sequential, true) {
            self.non_sequential -= 1;
        }
    }

    fn reset(&mut self, zone: ZoneId) {
        self.cleaned(BandId(zone.0));
        let state = &mut self.states[zone.0 as usize];
        (state.condition, state.pointer) = (ZoneCondition::Empty, 0);
    }

    fn describe(&self, zone: ZoneId) -> ZoneDescriptor {
        let extent = self.settings.zones.extent_of(zone);
        let state = self.states[zone.0 as usize];
        let has_pointer = !matches!(
            state.condition,
            ZoneCondition::NoWritePointer | ZoneCondition::Full
        );
        let pointer = extent.start + BlockCount(u64::from(state.pointer));
        ZoneDescriptor {
            condition: state.condition,
            non_sequential: !state.is_sequential,
            extent,
            write_pointer: has_pointer.then_some(pointer),
        }
    }
}

impl PersistentCache {
    /// The zones, where the host sees any.
    fn zones_mut(&mut self) -> &mut Zones {
        self.zones.as_mut().expect("a host-aware disk")
    }

    /// Where the first blocks of the rest of a write belong.
    pub(super) fn place_in_zone(&mut self, rest: Extent) -> Belongs {
        let band = self.bands.band_of(rest.start);
        let offset = rest.start.offset_from(self.bands.extent_of(band).start);
        self.zones_mut().place(band, offset)
    }

    /// True when a zone takes all of a write home.
    pub(super) fn goes_home(&self, extent: Extent) -> bool {
        let band = self.bands.band_of(extent.start);
        let whole = self.bands.extent_of(band);
        let takes = |zones: &Zones| zones.takes_home(band, extent.start.offset_from(whole.start));
        whole.covers(extent) && self.zones.as_ref().is_some_and(|zones| takes(zones))
    }

    /// Takes note of blocks of a zone that were sent to the log.
    pub(super) fn count_out_of_sequence(&mut self, extent: Extent, ctx: &mut Context<'_>) {
        let band = self.bands.band_of(extent.start);
        let end = extent.end().offset_from(self.bands.extent_of(band).start);
        let zones = self.zones_mut();
        zones.advance(band, end);
        let non_sequential = zones.non_sequential;
        ctx.count(Counter::BlocksOutOfSequence, extent.blocks.0);
        ctx.gauge(Gauge::NonSequentialZones, non_sequential);
    }

    /// A zone was rewritten: it is sequential again, unless something was written to it meanwhile.
    pub(super) fn zone_rewritten(&mut self, band: BandId, ctx: &mut Context<'_>) {
        let whole = self.bands.extent_of(band);
        if self.zones.is_none() || self.log.map().pieces(whole).next().is_some() {
            return;
        }
        let zones = self.zones_mut();
        zones.cleaned(band);
        let non_sequential = zones.non_sequential;
        ctx.gauge(Gauge::NonSequentialZones, non_sequential);
    }

    /// Zeroes move the write pointer they start at, as a write would.
    pub(super) fn zero_in_zones(&mut self, extent: Extent) {
        let mut next = extent.start;
        while next < extent.end() {
            let band = self.bands.band_of(next);
            let whole = self.bands.extent_of(band);
            let end = extent.end().min(whole.end());
            let zones = self.zones_mut();
            let state = zones.states[band.0 as usize];
            let offset = next.offset_from(whole.start);
            let is_open_ended = !matches!(
                state.condition,
                ZoneCondition::NoWritePointer | ZoneCondition::Full
            );
            if is_open_ended && state.is_sequential && offset == u64::from(state.pointer) {
                let end = end.offset_from(whole.start);
                zones.advance(band, end);
                self.write_pointers[band.0 as usize] = end as u32;
            }
            next = end;
        }
    }

    /// Obeys a zone command, or begins a report.
    pub(super) fn zone_command(&mut self, job: u32, ctx: &mut Context<'_>) {
        let request = self.jobs[job as usize].request;
        let settings = &self.zones_mut().settings;
        let (command, report) = (settings.command, settings.report);
        if request.operation == Operation::ZoneReport {
            // What is nearly cleaned is reported clean.
            if self.rewrite.is_some_and(|rewrite| rewrite.is_finishing) {
                self.waiting_reads.push(job);
                return self.end_turn(job, ctx);
            }
            return self.answer_command(job, report, ctx);
        }
        let zone = self.bands.band_of(request.extent.start);
        let empties = matches!(
            request.operation,
            Operation::ZoneReset | Operation::ZoneFinish
        );
        if empties && self.rewrite.is_some_and(|rewrite| rewrite.band == zone) {
            self.press_rewrite();
            self.waiting_reads.push(job);
            return self.end_turn(job, ctx);
        }
        self.jobs[job as usize].result = self.obey(request, ctx);
        self.answer_command(job, command, ctx);
    }

    fn obey(&mut self, request: Request, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let band = self.bands.band_of(request.extent.start);
        let whole = self.bands.extent_of(band);
        let zones = self.zones_mut();
        let zone = ZoneId(band.0);
        if whole != request.extent || zones.settings.zones.is_conventional(zone) {
            return Err(IoError::InvalidField);
        }
        let state = &mut zones.states[band.0 as usize];
        match request.operation {
            Operation::ZoneOpen if state.condition != ZoneCondition::Full => {
                state.condition = ZoneCondition::ExplicitlyOpen;
            }
            Operation::ZoneClose if state.condition.is_open() => {
                state.condition = match state.pointer {
                    0 => ZoneCondition::Empty,
                    _ => ZoneCondition::Closed,
                };
            }
            Operation::ZoneFinish => state.condition = ZoneCondition::Full,
            Operation::ZoneReset => {
                zones.reset(zone);
                let non_sequential = zones.non_sequential;
                ctx.gauge(Gauge::NonSequentialZones, non_sequential);
                ctx.count(Counter::ZonesReset, 1);
                self.log.supersede(whole);
                self.lost.remove(whole);
                self.zeroed.remove(whole);
                self.write_pointers[band.0 as usize] = 0;
            }
            _ => {}
        }
        Ok(())
    }

    /// The electronics, which do one command after another, answer a job in `time`.
    fn answer_command(&mut self, job: u32, time: Duration, ctx: &mut Context<'_>) {
        let zones = self.zones_mut();
        zones.electronics_free = zones.electronics_free.max(ctx.now()) + time;
        let at = zones.electronics_free;
        zones.due.push_back((at, job));
        let first = zones.due[0].0;
        self.set_timer(Timer::Zones, first, ctx);
    }

    /// Answers the commands whose time has come.
    pub(super) fn answer_commands(&mut self, ctx: &mut Context<'_>) {
        while let Some(&(at, job)) = self.zones_mut().due.front() {
            if at > ctx.now() {
                return self.set_timer(Timer::Zones, at, ctx);
            }
            self.zones_mut().due.pop_front();
            let request = self.jobs[job as usize].request;
            if request.operation == Operation::ZoneReport {
                ctx.count(Counter::ZoneReports, 1);
                let zones = &*self.zones_mut();
                let geometry = &zones.settings.zones;
                let first = geometry.zone_of(request.extent.start);
                let describe = |zone| zones.describe(zone);
                let bytes = report(geometry, first, request.extent.blocks, describe);
                ctx.fill_metadata(request.buffer, &bytes);
            }
            self.finish(job, ctx);
        }
    }

    /// What a request keeps others from: a report flushes the queue, so it keeps them from all.
    pub(super) fn extent_to_lock(&self, request: &Request) -> Extent {
        match request.operation {
            Operation::ZoneReport => Extent::new(0, self.bands.blocks().0),
            _ => request.extent,
        }
    }

    /// The first address of a zone that reads as zeroes because nothing is at home there.
    pub(super) fn home_end(&self, band: BandId) -> Lba {
        let whole = self.bands.extent_of(band);
        let zones = self.zones.as_ref().expect("a host-aware disk");
        match zones.settings.zones.is_conventional(ZoneId(band.0)) {
            true => whole.end(),
            false => {
                let pointer = self.write_pointers[band.0 as usize];
                whole.start + BlockCount(u64::from(pointer))
            }
        }
    }
}
