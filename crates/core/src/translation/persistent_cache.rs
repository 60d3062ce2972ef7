//! The translation of a drive-managed shingled disk: writes go to a log and later, band by band,
//! home (Skylight, FAST 2015; PORE, MSST 2017).

use super::blocking::Blocking;
use super::bypass::Streams;
use super::durable::{Check, DATA_BLOCKS_MAX, Durable, PageRead};
use super::idle::IdleClock;
use super::layout::{Areas, Layout};
use super::log::Log;
use super::map_journal::MapJournal;
use super::read::ReadPiece;
use super::rewrite::Rewrite;
use super::settings::{LayoutError, PersistentCacheSettings, RewriteExtent};
use super::stretch::Salvage;
use super::timers::{Timer, Timers};
use super::zones::{Zones, check_zones};
use crate::buffer::BufferSlice;
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::lifecycle::Start;
use crate::map::{BandId, BandTable, ExtentLocks, ExtentSet, Piece};
use crate::operation::{Cause, Completion, Operation, Request, Tag};
use crate::units::{BlockCount, Instant};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Chunks of a rewrite in idle time that a track has at least.
const CHUNKS_PER_TRACK_MIN: u64 = 4;

/// A log-structured cache of writes on the non-overlapped tracks of a shingled disk, in front of
/// bands that can only be rewritten as a whole.
///
/// The blocks of a write are appended in ascending order. A write without room waits, and with it
/// every later one, until the band of the oldest block in the log has been rewritten with all its
/// blocks in the log. Reads are put together from the log, the bands and zeroed ranges. Requests
/// that share a block are served in the order of arrival.
///
/// A block is in one of these states, in this order of precedence: *lost* when its last write
/// failed (reads fail until it is written again), *mapped* to the log, *zeroed*, or at home.
#[derive(Debug)]
pub struct PersistentCache {
    pub(super) settings: PersistentCacheSettings,
    pub(super) layout: Layout,
    pub(super) bands: Arc<BandTable>,
    pub(super) log: Log,
    /// Blocks that read as zeroes whatever lies at home; none of them is in the log.
    pub(super) zeroed: ExtentSet,
    /// Blocks whose last write failed.
    pub(super) lost: ExtentSet,

    locks: ExtentLocks<u32>,
    /// Jobs that were granted their lock and are not begun.
    pub(super) granted: VecDeque<u32>,
    pub(super) jobs: Vec<Job>,
    free_jobs: Vec<u32>,
    parts: Vec<Part>,
    free_parts: Vec<u32>,

    /// Writes that are not issued in full, in the order in which they may proceed.
    pub(super) queue: VecDeque<u32>,
    /// Since when the queue has not been empty.
    pub(super) queued_since: Option<Instant>,
    /// Writes to the log and of the bypass that are in flight.
    pub(super) writes_in_flight: u32,

    /// Reads that wait until their band has been rewritten.
    pub(super) waiting_reads: Vec<u32>,
    /// The bands whose home blocks are being read for a request, once for each such read.
    pub(super) home_reads: Vec<BandId>,
    /// The lowest log position each read in flight needs.
    pub(super) holds: Vec<u64>,
    pub(super) read_plan: Vec<ReadPiece>,

    pub(super) rewrite: Option<Rewrite>,
    /// The log entries that the present stretch of the rewrite merges, in log order.
    pub(super) gathered: Vec<Piece>,
    /// What the log held, when the rewrite began, of what later stretches read, by address.
    pub(super) to_gather: Vec<Piece>,
    pub(super) salvage: Option<Salvage>,
    /// The band that the scratch band held last.
    pub(super) scratch_band: Option<BandId>,
    pub(super) blocking: Blocking,
    pub(super) idle_clock: IdleClock,
    /// Longest operation of a rewrite in idle time.
    pub(super) chunk_blocks: u64,
    /// Metadata records written so far.
    pub(super) notes: u64,

    pub(super) streams: Streams,
    /// For each band how many blocks from its start may hold data at home; empty where nothing
    /// asks.
    pub(super) write_pointers: Vec<u32>,
    /// The bands with a bypass write in flight.
    pub(super) bypassing: Vec<BandId>,

    pub(super) map_journal: MapJournal,
    pub(super) timers: Timers,

    /// What the host sees of the bands, where it sees them.
    pub(super) zones: Option<Box<Zones>>,

    /// What makes it outlive a crash, where it does.
    pub(super) durable: Option<Box<Durable>>,
}

/// A request from above that is being served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub request: Request,
    /// Operations below that are in flight for it.
    pub outstanding: u32,
    /// No further operation will be issued for it.
    pub issued: bool,
    pub result: Result<(), IoError>,
    /// Blocks of a write that have been issued.
    pub progress: u64,
    /// Blocks by which a sequential stream had come before it.
    pub stream_blocks: u64,
    /// The log position it holds.
    pub hold: Option<u64>,
    /// The zeroes that a zero writes which is served like a write.
    pub zeroes: BufferSlice,
}

/// What an operation in flight is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Unused,
    /// Part of a read, from the home blocks of a band where that is given.
    Read {
        job: u32,
        home: Option<BandId>,
    },
    /// Part of a write, to the log.
    Log {
        job: u32,
        extent: Extent,
        position: u64,
        /// The lowest position that it supersedes.
        supersedes: u64,
    },
    /// Part of a write to a conventional zone.
    Conventional {
        job: u32,
        extent: Extent,
    },
    /// Part of a write, straight home.
    Bypass {
        job: u32,
        extent: Extent,
        supersedes: u64,
    },
    /// Part of a read whose blocks have checksums.
    CheckedRead {
        job: u32,
        check: Check,
        buffer: BufferSlice,
    },
    /// A page of a table of checksums, for reads that wait for it.
    Page(PageRead),
    /// The table of a band that the bypass has filled.
    Table,
    /// A flush, which may end with a record of the map.
    Flush {
        job: u32,
        is_recorded: bool,
    },
    /// The record that ends a flush.
    Record {
        job: u32,
        buffer: BufferSlice,
    },
    /// Part of the band rewrite: the step after it, where it is one of the present phase.
    Rewrite {
        end: u64,
    },
}

impl PersistentCache {
    /// The shingled disk.
    pub const DISK: Port = Port(0);

    /// A translation with the given bands over a disk, and what it tells the node above: as many
    /// blocks as the bands hold, and the bands.
    ///
    /// # Errors
    /// When a setting is out of range or the disk is too small.
    pub fn new(
        settings: PersistentCacheSettings,
        bands: Arc<BandTable>,
        below: &Geometry,
    ) -> Result<(PersistentCache, Geometry), LayoutError> {
        settings.check()?;
        if let Some(host_aware) = &settings.host_aware {
            check_zones(&host_aware.zones, &bands)?;
        }
        let layout = Layout::new(&settings, &bands, below)?;
        let geometry = Geometry {
            blocks: bands.blocks(),
            media: below.media,
            tracks: None,
            bands: Some(Arc::clone(&bands)),
            zones: settings.host_aware.as_ref().map(|it| Arc::clone(&it.zones)),
        };
        let durable = settings.durability.map(|durability| {
            let durable = Durable::new(&settings, &durability, &bands, below.blocks);
            Box::new(durable)
        });
        let (slots, entries_max) = (settings.log_blocks, settings.entries_max);
        let log = match durable {
            None => Log::new(slots, settings.packet_blocks_max, entries_max),
            Some(_) => {
                let longest = settings.packet_blocks_max.min(BlockCount(DATA_BLOCKS_MAX));
                Log::new_durable(slots, longest, entries_max)
            }
        };
        let has_pointers = settings.bypass
            || durable.is_some()
            || settings.host_aware.is_some()
            || settings.rewrite_extent == RewriteExtent::FromFirstDirtyToWritten;
        let zones = settings
            .host_aware
            .clone()
            .map(|it| Box::new(Zones::new(it)));
        let write_pointers = if has_pointers {
            vec![0; bands.bands() as usize]
        } else {
            Vec::new()
        };
        let chunk_max = layout.shortest_track() / CHUNKS_PER_TRACK_MIN;
        let chunk_blocks = settings.idle.map_or(chunk_max, |idle| idle.chunk_blocks.0);
        let cache = PersistentCache {
            settings,
            layout,
            bands,
            log,
            zeroed: ExtentSet::new(),
            lost: ExtentSet::new(),
            locks: ExtentLocks::default(),
            granted: VecDeque::new(),
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            parts: Vec::new(),
            free_parts: Vec::new(),
            queue: VecDeque::new(),
            queued_since: None,
            writes_in_flight: 0,
            waiting_reads: Vec::new(),
            home_reads: Vec::new(),
            holds: Vec::new(),
            read_plan: Vec::new(),
            rewrite: None,
            gathered: Vec::new(),
            to_gather: Vec::new(),
            salvage: None,
            scratch_band: None,
            blocking: Blocking::default(),
            idle_clock: IdleClock::default(),
            chunk_blocks: chunk_blocks.min(chunk_max).max(1),
            notes: 0,
            streams: Streams::default(),
            write_pointers,
            bypassing: Vec::new(),
            map_journal: MapJournal::default(),
            timers: Timers::default(),
            zones,
            durable,
        };
        Ok((cache, geometry))
    }

    /// The parts of the disk, in its addresses.
    pub fn areas(&self) -> Areas {
        self.layout.areas()
    }

    /// Begins every job that has its lock and lets the writes proceed, until nothing can.
    pub(super) fn settle(&mut self, ctx: &mut Context<'_>) {
        loop {
            while let Some(job) = self.granted.pop_front() {
                match self.jobs[job as usize].request.operation {
                    _ if self.holds_requests() => self.hold_request(job),
                    Operation::Flush => self.flush_in_turn(job, ctx),
                    Operation::Read => self.start_read(job, ctx),
                    Operation::Write { .. } => self.queue.push_back(job),
                    Operation::Zero { .. } if self.durable.is_some() => self.queue.push_back(job),
                    Operation::Zero { .. } => self.zero(job, ctx),
                    _ => self.zone_command(job, ctx),
                }
            }
            self.proceed_with_writes(ctx);
            if self.is_blocking() {
                self.go_on_blocking(ctx);
            }
            if self.settings.idle.is_some() {
                self.clean_when_idle(ctx);
            }
            let resumed = self.resume_rewrite(ctx);
            let heard = self.durable.is_some() && self.settle_durably(ctx);
            if self.granted.is_empty() && !heard && !resumed {
                return;
            }
        }
    }

    /// Makes the blocks of a job read as zeroes. Moves no data: the map is all that changes.
    pub(super) fn zero(&mut self, job: u32, ctx: &mut Context<'_>) {
        let extent = self.jobs[job as usize].request.extent;
        self.log.supersede(extent);
        self.lost.remove(extent);
        self.zeroed.insert(extent);
        self.leave_out_zeroed(extent);
        match self.zones {
            Some(_) => self.zero_in_zones(extent),
            None => self.lower_write_pointers(extent),
        }
        self.finish(job, ctx);
    }

    fn add_job(&mut self, request: Request) -> u32 {
        self.end_idle_time();
        let job = Job {
            request,
            outstanding: 0,
            issued: false,
            result: Ok(()),
            progress: 0,
            stream_blocks: 0,
            hold: None,
            zeroes: BufferSlice::EMPTY,
        };
        match self.free_jobs.pop() {
            Some(index) => {
                self.jobs[index as usize] = job;
                index
            }
            None => {
                self.jobs.push(job);
                (self.jobs.len() - 1) as u32
            }
        }
    }

    /// Issues an operation below.
    pub(super) fn issue(
        &mut self,
        part: Part,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        let index = match self.free_parts.pop() {
            Some(index) => index,
            None => {
                self.parts.push(Part::Unused);
                (self.parts.len() - 1) as u32
            }
        };
        self.parts[index as usize] = part;
        match part {
            Part::Read { job, .. }
            | Part::Log { job, .. }
            | Part::Bypass { job, .. }
            | Part::Conventional { job, .. }
            | Part::CheckedRead { job, .. }
            | Part::Flush { job, .. }
            | Part::Record { job, .. } => self.jobs[job as usize].outstanding += 1,
            Part::Rewrite { .. } | Part::Page(_) | Part::Table | Part::Unused => {}
        }
        ctx.issue(Issue {
            port: PersistentCache::DISK,
            operation,
            extent,
            buffer,
            cause,
            tag: Tag(u64::from(index)),
        });
    }

    /// Says that nothing more will be issued for a job; answers it when nothing is in flight.
    pub(super) fn all_issued(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = &mut self.jobs[job as usize];
        entry.issued = true;
        if entry.outstanding == 0 {
            self.conclude(job, ctx);
        }
    }

    pub(super) fn part_done(
        &mut self,
        job: u32,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let entry = &mut self.jobs[job as usize];
        entry.outstanding -= 1;
        entry.result = entry.result.and(result);
        if entry.issued && entry.outstanding == 0 {
            self.conclude(job, ctx);
        }
    }

    pub(super) fn finish(&mut self, job: u32, ctx: &mut Context<'_>) {
        let Job {
            request,
            result,
            hold,
            zeroes,
            ..
        } = self.jobs[job as usize];
        ctx.release(zeroes);
        if let Some(position) = hold {
            remove_one(&mut self.holds, position);
        }
        let granted = &mut self.granted;
        self.locks.unlock(job, |job| granted.push_back(job));
        self.free_jobs.push(job);
        self.end_turn(job, ctx);
        self.count_answer(ctx);
        ctx.finish(request.id, result);
    }

    /// A write of `extent` failed after the maps were changed: what it overwrote is gone, and what
    /// is in its place is unknown.
    pub(super) fn lose(&mut self, extent: Extent) {
        self.log.supersede(extent);
        self.zeroed.remove(extent);
        self.lost.insert(extent);
    }
}

impl Layer for PersistentCache {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        match request.operation {
            operation if operation.is_zone_command() && self.zones.is_none() => {
                ctx.finish(request.id, Err(IoError::NotPermitted));
                return;
            }
            Operation::Flush => {
                // Every write that completed before has been handed to the disk.
                let job = self.add_job(request);
                if self.holds_requests() {
                    self.hold_request(job);
                    return self.settle(ctx);
                }
                self.flush_in_turn(job, ctx);
                if self.durable.is_some() {
                    self.settle(ctx);
                }
                return;
            }
            _ => {}
        }
        let job = self.add_job(request);
        if self.settings.bypass && matches!(request.operation, Operation::Write { .. }) {
            self.jobs[job as usize].stream_blocks = self.streams.follow(request.extent);
        }
        if self.locks.lock(job, self.extent_to_lock(&request)) {
            self.granted.push_back(job);
            self.settle(ctx);
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if let Some(durable) = &self.durable
            && durable.journal.owns(completion.tag)
        {
            return self.complete_for_journal(completion, ctx);
        }
        let index = completion.tag.0 as u32;
        let part = core::mem::replace(&mut self.parts[index as usize], Part::Unused);
        self.free_parts.push(index);
        let result = completion.result;
        match part {
            Part::Read { job, home } => {
                if let Some(band) = home {
                    remove_one(&mut self.home_reads, band);
                }
                self.part_done(job, result, ctx);
            }
            Part::Log {
                job,
                extent,
                position,
                supersedes,
            } => {
                self.end_write(extent.blocks);
                if result.is_err() {
                    self.lose(extent);
                }
                if self.durable.is_some() {
                    match result {
                        Ok(()) => self.record_append(extent, position, supersedes, ctx),
                        Err(_) => self.record_failed_write(extent, supersedes, ctx),
                    }
                }
                self.part_done(job, result, ctx);
            }
            Part::Bypass {
                job,
                extent,
                supersedes,
            } => {
                self.end_write(extent.blocks);
                let band = self.bands.band_of(extent.start);
                remove_one(&mut self.bypassing, band);
                if result.is_err() {
                    self.lose(extent);
                }
                if self.durable.is_some() {
                    match result {
                        Ok(()) => self.record_bypass(extent, supersedes, ctx),
                        Err(_) => {
                            self.bypass_failed(band, extent);
                            self.record_failed_write(extent, supersedes, ctx);
                        }
                    }
                }
                self.part_done(job, result, ctx);
            }
            Part::Conventional { job, extent } => {
                if result.is_err() {
                    self.lose(extent);
                }
                self.part_done(job, result, ctx);
            }
            Part::CheckedRead { job, check, buffer } => {
                self.checked_read_done(job, check, buffer, result, ctx);
            }
            Part::Page(page) => self.page_read_done(page, result, ctx),
            Part::Table => self.table_written(result, ctx),
            Part::Flush { job, is_recorded } => self.flushed_below(job, is_recorded, result, ctx),
            Part::Record { job, buffer } => self.record_written(job, buffer, result, ctx),
            Part::Rewrite { end } => self.rewrite_part_done(end, result, ctx),
            Part::Unused => unreachable!("a completion of nothing"),
        }
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.timer_has_ended(Timer::Overhead, ctx) {
            self.end_of_overhead();
        }
        if self.timer_has_ended(Timer::Idle, ctx) {
            self.begin_idle_time(ctx);
        }
        // Its end is looked for whenever something has happened.
        self.timer_has_ended(Timer::Slice, ctx);
        if self.timer_has_ended(Timer::Stall, ctx) {
            self.end_of_stall();
        }
        if self.timer_has_ended(Timer::Record, ctx) {
            self.end_of_flush_overhead(ctx);
        }
        if self.timer_has_ended(Timer::Zones, ctx) {
            self.answer_commands(ctx);
        }
        if self.timer_has_ended(Timer::Mark, ctx) {
            self.mark_last_flush(ctx);
        }
        self.set_alarm(ctx);
        self.settle(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        match self.durable {
            Some(_) => self.open_durably(start, ctx),
            None => ctx.opened(Ok(())),
        }
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        match self.durable {
            Some(_) => self.close_durably(ctx),
            None => ctx.closed(Ok(())),
        }
    }
}

pub(super) fn remove_one<T: PartialEq>(list: &mut Vec<T>, value: T) {
    let index = list.iter().position(|item| *item == value);
    list.swap_remove(index.expect("it was put into the list before"));
}
