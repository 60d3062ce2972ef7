//! The layer that gives a shingled disk zones and enforces their rules.

use super::settings::{HostManagedSettings, ZoneLayoutError, place_zones};
use super::table::ZoneTable;
use crate::command::{CommandId, OnReplacement};
use crate::counters::{Counter, Gauge};
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::map::Slab;
use crate::operation::{Completion, Operation, Request, Tag};
use crate::saved::{Saved, SavedValue};
use crate::units::{BLOCK_BYTES, Duration, Instant};
use crate::zone::{ZoneGeometry, ZoneId, report};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

const NS_PER_SECOND: u128 = 1_000_000_000;

/// A host-managed disk over a shingled medium.
///
/// A write is judged when it arrives and moves the write pointer then, so several writes may be in
/// flight in a zone, each where the one before it ends. The disk gets them one at a time and in
/// order: it may execute two in either order, and the lower one would destroy the upper. A write
/// that fails below makes its zone read-only, as it would be on a drive with a lost track.
///
/// A zero must obey the rules of a write, whether or not it may unmap: there is no other way to
/// change what a zone holds. Unwritten blocks read as zeroes without the medium.
#[derive(Debug, Saved)]
pub struct HostManaged {
    #[saved(keep)]
    settings: HostManagedSettings,
    table: ZoneTable,
    /// First block on the disk of each zone that is written in sequence.
    #[saved(keep)]
    starts: Vec<u64>,
    jobs: Slab<Job>,
    /// For each zone that is written in sequence, the writes that are not finished; the first is
    /// with the disk.
    writes: Vec<Writes>,
    /// Answers that need only the electronics, in the order in which they are due.
    due: VecDeque<(Instant, u32)>,
    electronics_free: Instant,
    /// The report that is waited for or worked on.
    reporting: Option<u32>,
    /// Requests that came after it.
    held: VecDeque<Request>,
}

/// A request that is being served.
#[derive(Clone, Copy, Debug, SavedValue)]
struct Job {
    request: Request,
    /// Operations below and answers of the electronics that it waits for.
    outstanding: u32,
    result: Result<(), IoError>,
    /// The next write in the same zone.
    next: Option<u32>,
}

/// A queue of writes, linked through their jobs.
#[derive(Clone, Copy, Debug, Default, SavedValue)]
struct Writes {
    first: Option<u32>,
    last: Option<u32>,
}

impl HostManaged {
    /// The shingled disk.
    pub const DISK: Port = Port(0);

    /// The zones over a disk, all empty, and what the layer tells the node above.
    ///
    /// # Errors
    /// When a setting is out of range or the disk is too small.
    pub fn new(
        settings: HostManagedSettings,
        zones: ZoneGeometry,
        below: &Geometry,
    ) -> Result<(HostManaged, Geometry), ZoneLayoutError> {
        settings.check(&zones)?;
        let starts = place_zones(&zones, below)?;
        let zones = Arc::new(zones);
        let geometry = Geometry {
            zones: Some(Arc::clone(&zones)),
            survives: below.survives,
            ..Geometry::plain(zones.blocks, below.media)
        };
        let table = new_table(&settings, zones);
        let layer = HostManaged {
            writes: vec![Writes::default(); starts.len()],
            settings,
            table,
            starts,
            jobs: Slab::default(),
            due: VecDeque::new(),
            electronics_free: Instant::ZERO,
            reporting: None,
            held: VecDeque::new(),
        };
        Ok((layer, geometry))
    }

    fn begin(&mut self, request: Request, ctx: &mut Context<'_>) {
        let job = self.jobs.add(Job { request, outstanding: 0, result: Ok(()), next: None });
        let result = match request.operation {
            Operation::Read => self.read(job, ctx),
            Operation::Write { .. } | Operation::Zero { .. } => self.write(job, ctx),
            Operation::Flush => {
                self.issue(job, Extent::EMPTY, (0, 0), ctx);
                Ok(())
            }
            Operation::ZoneReport => {
                self.reporting = Some(job);
                Ok(())
            }
            _ => self.command(request, ctx).map(|()| {
                self.answer_after(job, self.settings.command, ctx);
            }),
        };
        if let Err(error) = result {
            self.jobs[job].result = Err(error);
            self.answer_after(job, self.settings.command, ctx);
        }
    }

    /// Reads written blocks from the disk, and answers the others with zeroes.
    fn read(&mut self, job: u32, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let Request { extent, buffer, .. } = self.jobs[job].request;
        if let Err(error) = self.table.read(extent, self.settings.unrestricted_reads) {
            ctx.count(Counter::ZoneReadsRefused, 1);
            return Err(error);
        }
        let mut next = extent.start;
        let mut unwritten = 0;
        while next < extent.end() {
            let zone = self.table.geometry().zone_of(next);
            let end = extent.end().min(self.table.geometry().extent_of(zone).end());
            let written = self.table.written_end(zone).clamp(next, end);
            let first = next.offset_from(extent.start);
            if written < end {
                let blocks = end.offset_from(written);
                ctx.zero(buffer.part(written.offset_from(extent.start), blocks));
                unwritten += blocks;
            }
            if next < written {
                let blocks = written.offset_from(next);
                let home = self.home(zone, Extent::new(next.0, blocks));
                self.issue(job, home, (first, blocks), ctx);
            }
            next = end;
        }
        if unwritten > 0 {
            ctx.count(Counter::ReadsPastPointer, 1);
            let bytes = u128::from(unwritten * BLOCK_BYTES);
            let rate = u128::from(self.settings.unwritten_bytes_per_second);
            let transfer = Duration((bytes * NS_PER_SECOND / rate) as u64);
            self.answer_after(job, transfer, ctx);
        }
        Ok(())
    }

    fn write(&mut self, job: u32, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let extent = self.jobs[job].request.extent;
        if let Err(error) = self.table.write(extent) {
            ctx.count(counter_of_refusal(error), 1);
            return Err(error);
        }
        let Some(queue) = self.queue_of(extent) else {
            self.issue(job, extent, (0, extent.blocks.0), ctx);
            return Ok(());
        };
        let writes = &mut self.writes[queue];
        match writes.last.replace(job) {
            Some(last) => self.jobs[last].next = Some(job),
            None => {
                writes.first = Some(job);
                self.issue_write(job, ctx);
            }
        }
        Ok(())
    }

    /// Hands the first write of a zone's queue to the disk.
    fn issue_write(&mut self, job: u32, ctx: &mut Context<'_>) {
        let extent = self.jobs[job].request.extent;
        let zone = self.table.geometry().zone_of(extent.start);
        let home = self.home(zone, extent);
        self.issue(job, home, (0, extent.blocks.0), ctx);
    }

    /// The queue of writes of the zone that holds an extent; `None` in conventional zones.
    fn queue_of(&self, extent: Extent) -> Option<usize> {
        let zones = self.table.geometry();
        let zone = zones.zone_of(extent.start).0;
        zone.checked_sub(zones.conventional_zones).map(|queue| queue as usize)
    }

    fn command(&mut self, request: Request, ctx: &mut Context<'_>) -> Result<(), IoError> {
        let zone = self.table.geometry().zone_of(request.extent.start);
        if self.table.geometry().extent_of(zone) != request.extent {
            return Err(IoError::InvalidField);
        }
        match request.operation {
            Operation::ZoneOpen => self.table.open(zone),
            Operation::ZoneClose => self.table.close(zone),
            Operation::ZoneFinish => self.table.finish(zone),
            _ => {
                self.table.reset(zone)?;
                ctx.count(Counter::ZonesReset, 1);
                Ok(())
            }
        }
    }

    /// Where blocks of a zone lie on the disk.
    fn home(&self, zone: ZoneId, extent: Extent) -> Extent {
        let zones = self.table.geometry();
        match zone.0.checked_sub(zones.conventional_zones) {
            None => extent,
            Some(index) => {
                let offset = extent.start.offset_from(zones.extent_of(zone).start);
                Extent::new(self.starts[index as usize] + offset, extent.blocks.0)
            }
        }
    }

    /// Issues an operation of a job for the disk, with this part of its buffer.
    fn issue(&mut self, job: u32, extent: Extent, part: (u64, u64), ctx: &mut Context<'_>) {
        let entry = &mut self.jobs[job];
        entry.outstanding += 1;
        let Request { operation, buffer, cause, .. } = entry.request;
        let buffer = match operation.has_data() {
            true => buffer.part(part.0, part.1),
            false => buffer,
        };
        ctx.issue(Issue {
            port: HostManaged::DISK,
            operation,
            extent,
            buffer,
            cause,
            tag: Tag(u64::from(job)),
        });
    }

    /// The electronics, which do one thing after another, need this long for a job.
    fn answer_after(&mut self, job: u32, time: Duration, ctx: &mut Context<'_>) {
        self.jobs[job].outstanding += 1;
        self.electronics_free = self.electronics_free.max(ctx.now()) + time;
        self.due.push_back((self.electronics_free, job));
        ctx.wake_at(self.due[0].0);
    }

    /// One thing that a job waited for is done; the last one answers it.
    fn part_done(&mut self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let entry = &mut self.jobs[job];
        entry.outstanding -= 1;
        entry.result = entry.result.and(result);
        if entry.outstanding > 0 {
            return;
        }
        let Job { request, result, .. } = *entry;
        if self.reporting == Some(job) {
            self.reporting = None;
            self.fill_report(request, ctx);
        }
        self.jobs.remove(job);
        ctx.finish(request.id, result);
    }

    /// The write in front of a zone's queue has come back: the next one may go.
    fn write_done(&mut self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Job { request, next, .. } = self.jobs[job];
        let Some(queue) = self.queue_of(request.extent) else {
            return;
        };
        let writes = &mut self.writes[queue];
        writes.first = next;
        if next.is_none() {
            writes.last = None;
        }
        if result.is_err() {
            let zones = self.table.geometry();
            let zone = zones.zone_of(request.extent.start);
            let offset = request.extent.start.offset_from(zones.extent_of(zone).start);
            self.table.write_failed(zone, offset);
            let mut behind = core::mem::take(&mut self.writes[queue]).first;
            while let Some(job) = behind {
                let entry = &mut self.jobs[job];
                behind = entry.next.take();
                entry.result = Err(IoError::ZoneReadOnly);
                self.answer_after(job, self.settings.command, ctx);
            }
        } else if let Some(next) = next {
            self.issue_write(next, ctx);
        }
    }

    fn fill_report(&mut self, request: Request, ctx: &mut Context<'_>) {
        ctx.count(Counter::ZoneReports, 1);
        let zones = self.table.geometry();
        let first = zones.zone_of(request.extent.start);
        let bytes = report(zones, first, request.extent.blocks, |zone| self.table.describe(zone));
        ctx.fill_report(request.buffer, &bytes);
    }

    /// Begins a report once nothing else is in flight, and what came after it once it is done.
    fn settle(&mut self, ctx: &mut Context<'_>) {
        loop {
            match self.reporting {
                Some(report) => {
                    let others = self.jobs.len() - 1;
                    let waits = self.jobs[report].outstanding == 0;
                    if others == 0 && waits {
                        self.answer_after(report, self.settings.report, ctx);
                    }
                    break;
                }
                None => match self.held.pop_front() {
                    Some(request) => self.begin(request, ctx),
                    None => break,
                },
            }
        }
        ctx.count(Counter::ZonesClosedForOthers, self.table.take_closed_for_others());
        ctx.gauge(Gauge::OpenZones, u64::from(self.table.open_zones()));
        ctx.gauge(Gauge::ClosedZones, u64::from(self.table.closed_zones()));
    }
}

/// What a refused write is counted as.
fn counter_of_refusal(error: IoError) -> Counter {
    match error {
        IoError::WriteBoundary => Counter::WritesAcrossZones,
        IoError::InvalidField => Counter::WritesToFullZones,
        IoError::ZoneResources => Counter::WritesWithoutZoneResources,
        IoError::ZoneReadOnly | IoError::ZoneOffline => Counter::WritesToLostZones,
        _ => Counter::WritesOffPointer,
    }
}

/// The zones of a new disk.
fn new_table(settings: &HostManagedSettings, zones: Arc<ZoneGeometry>) -> ZoneTable {
    let mut table = ZoneTable::new(zones);
    for zone in &settings.read_only_zones {
        table.set_read_only(ZoneId(*zone));
    }
    for zone in &settings.offline_zones {
        table.set_offline(ZoneId(*zone));
    }
    table
}

impl Layer for HostManaged {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.held.push_back(request);
        self.settle(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let job = completion.tag.0 as u32;
        let operation = self.jobs[job].request.operation;
        if matches!(operation, Operation::Write { .. } | Operation::Zero { .. }) {
            self.write_done(job, completion.result, ctx);
        }
        self.part_done(job, completion.result, ctx);
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        while let Some(&(at, job)) = self.due.front() {
            if at > ctx.now() {
                ctx.wake_at(at);
                break;
            }
            self.due.pop_front();
            self.part_done(job, Ok(()), ctx);
        }
        self.settle(ctx);
    }

    /// A new disk has new zones, once all that the old one was asked for has been answered.
    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::PassesOn
    }

    fn is_done_with_lost(&self) -> bool {
        self.jobs.is_empty()
    }

    fn replaced(&mut self, _port: Port, _command: CommandId, _ctx: &mut Context<'_>) {
        self.table = new_table(&self.settings, Arc::clone(self.table.geometry()));
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
