//! The layer: takes requests, asks the parts, issues operations and answers.

mod durable;
mod home;
mod jobs;
mod rewriting;
mod sums;

use super::areas::{SLOTS, SegmentAreas};
use super::codec::Identity;
use super::layout::{Place, SegmentLayout};
use super::settings::{SegmentError, SegmentSettings, TrackLength};
use super::slots::{Noted, Slots};
use super::sums::Sums;
use super::touched::Touched;
use crate::buffer::BufferSlice;
use crate::checksums::NOTHING;
use crate::command::Without;
use crate::counters::Gauge;
use crate::disk::{CopyStore, Geometry, Media};
use crate::error::IoError;
use crate::extent::Extent;
use crate::layer::{Context, Issue, Layer, Port};
use crate::ledger::Ledger;
use crate::lifecycle::{OpenError, Start};
use crate::map::{BandTable, ExtentLocks};
use crate::operation::{Cause, Completion, Operation, Request};
use crate::saved::{Saved, SavedValue};
use crate::units::BlockCount;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use jobs::{Aim, Jobs, Purpose, Work};

/// What waits for the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
enum Token {
    /// A rewrite whose slot is written.
    Slot(u32),
    /// The slots whose data is home.
    Home,
}

/// A segment of which not all could be written home: its blocks are read from the slot. Or segments
/// of which not all could be zeroed: they read as zeroes.
#[derive(Debug, SavedValue)]
struct Stuck {
    segment: u64,
    /// Segments that were to be zeroed; 0 of a rewrite.
    zeroed: u64,
    /// Of a rewrite.
    written: Vec<bool>,
    slot: u32,
    /// The pages of checksums that the slot has, and where.
    pages: Range<u64>,
    pages_at: u64,
}

/// How often something is written home before its write has failed. What a block overlaps was
/// destroyed, so giving up is dear.
const TRIES_MAX: u32 = 3;

impl Stuck {
    fn has(&self, place: Place) -> bool {
        match self.zeroed {
            0 => self.segment == place.segment && self.written[place.block as usize],
            zeroed => (self.segment..self.segment + zeroed).contains(&place.segment),
        }
    }

    fn has_page(&self, segment: u64, index: u64) -> bool {
        self.zeroed == 0 && self.segment == segment && self.pages.contains(&index)
    }
}

/// What never changes.
#[derive(Debug)]
struct Shape {
    settings: SegmentSettings,
    layout: SegmentLayout,
    areas: SegmentAreas,
    store: Option<CopyStore>,
}

/// A segment layout: see [the module](super).
///
/// Requests that share a segment are served in the order of arrival, reads together. A batch of
/// writes is one rewrite for each segment that it touches, one after the other.
#[derive(Debug, Saved)]
pub struct Segments {
    #[saved(keep)]
    shape: Shape,
    jobs: Jobs,
    /// By segment.
    locks: ExtentLocks<u32>,
    /// Jobs that may begin.
    granted: VecDeque<u32>,
    /// The writes of a batch that is not complete.
    batch: Vec<Request>,
    touched: Touched,
    slots: Slots,
    stuck: Vec<Stuck>,
    /// Where checksums are kept.
    #[saved(each)]
    sums: Option<Sums>,
    ledger: Ledger<Token>,
    /// What is to be written home again, the first one next.
    redo: VecDeque<(u32, Noted)>,
    /// Scratch space for a payload.
    payload: Vec<u8>,
    /// The ledger goes down when all that is home is durable.
    is_draining: bool,
    is_lost: bool,
}

impl Segments {
    /// The layout over the nodes below, given in the order of the ports, and what it tells the node
    /// above: whole segments, which are its bands.
    ///
    /// # Errors
    /// When a setting is out of range or does not fit the nodes.
    pub fn new(
        settings: SegmentSettings,
        below: &[&Geometry],
    ) -> Result<(Segments, Geometry), SegmentError> {
        settings.check()?;
        let ports = settings.ports;
        let at = |port: Port| below[usize::from(port.0)];
        let disk = at(ports.disk_port());
        let store = ports.copies_port().and_then(|port| at(port).copies);
        check_disk(&settings, disk)?;
        let (store_block, block) = (store.map(|store| store.block.0), settings.block.0);
        if let Some(store) = store_block.filter(|store| *store != block) {
            return Err(SegmentError::CopyBlock { store, block });
        }
        let areas = SegmentAreas::new(&settings, disk.blocks);
        let tracks = disk.tracks.as_deref();
        let start = if ports.journal { 0 } else { areas.blocks().0 };
        let layout = SegmentLayout::new(&settings, start.min(disk.blocks.0), disk.blocks, tracks)?;
        let member = at(ports.journal_port());
        if areas.blocks() > member.blocks {
            let (needed, blocks) = (areas.blocks(), member.blocks);
            return Err(SegmentError::JournalTooSmall { needed, blocks });
        }
        if member.overlaps_before(areas.blocks()) {
            return Err(SegmentError::JournalOnShingles);
        }
        let geometry = Geometry {
            bands: Some(Arc::new(segments_of(&layout, settings.offered))),
            rewrite_block: Some(settings.block),
            tells_copies: ports.copies,
            survives: disk.survives.min(member.survives),
            ..Geometry::plain(settings.offered.unwrap_or(layout.blocks()), disk.media)
        };
        let ledger = match settings.journal.notes() {
            None => Ledger::volatile(),
            Some(notes) => {
                let journal = areas.journal_settings(&settings, member.blocks);
                let other = [ports.disk_port()];
                let other = if ports.journal { &other[..] } else { &[] };
                Ledger::journaled(journal, notes, other)
            }
        };
        let of_segment = layout.blocks_of_segment();
        let layer = Segments {
            jobs: Jobs::default(),
            locks: ExtentLocks::default(),
            granted: VecDeque::new(),
            batch: Vec::new(),
            touched: Touched::new(settings.valid, layout.segments(), of_segment),
            slots: Slots::new(),
            stuck: Vec::new(),
            sums: tables_of(&settings, &areas, disk),
            ledger,
            redo: VecDeque::new(),
            payload: Vec::new(),
            is_draining: false,
            is_lost: false,
            shape: Shape { settings, layout, areas, store },
        };
        Ok((layer, geometry))
    }

    /// Where each block lies.
    pub fn layout(&self) -> &SegmentLayout {
        &self.shape.layout
    }

    /// Where it keeps what it is about to write home.
    pub fn areas(&self) -> &SegmentAreas {
        &self.shape.areas
    }

    /// What a checkpoint of it says of its layout.
    pub fn identity(&self) -> Identity {
        let (settings, layout) = (&self.shape.settings, &self.shape.layout);
        Identity {
            block: settings.block.0,
            region_tracks: settings.region_tracks,
            segments: layout.segments(),
            first_block: layout.on_disk(layout.place_of(0)),
            kappa: settings.kappa,
        }
    }

    /// Issues an operation on the disk.
    fn issue(
        &self,
        aim: Aim,
        operation: Operation,
        (extent, buffer): (Extent, BufferSlice),
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        ctx.issue(Issue {
            port: self.shape.settings.ports.disk_port(),
            operation,
            extent,
            buffer,
            cause,
            tag: aim.tag(),
        });
    }

    /// The segments that an extent lies in, as an extent of segments.
    fn segments_of(&self, extent: Extent) -> Extent {
        let of = self.shape.layout.segment_blocks();
        let (first, end) = (extent.start.0 / of, extent.end().0.div_ceil(of));
        Extent::new(first, end - first)
    }

    fn take_read(&mut self, request: Request) {
        let job = self.jobs.add(Work::Read);
        let segments = self.segments_of(request.extent);
        self.jobs.get_mut(job).requests.push(request);
        if self.locks.lock_shared(job, segments) {
            self.granted.push_back(job);
        }
    }

    /// Takes a write; the last one of a batch begins it.
    fn take_write(&mut self, request: Request) {
        self.batch.push(request);
        if request.has_more {
            return;
        }
        let job = self.jobs.add(Work::Write);
        let mut all = self.segments_of(request.extent);
        for request in &self.batch {
            let segments = self.segments_of(request.extent);
            let end = segments.end().max(all.end());
            all = Extent::between(segments.start.min(all.start), end);
        }
        let entry = self.jobs.get_mut(job);
        core::mem::swap(&mut entry.requests, &mut self.batch);
        entry.rest = all.start.0..all.end().0;
        if self.locks.lock(job, all) {
            self.granted.push_back(job);
        }
    }

    /// What is answered has been written home, and before that, where the layer is durable, to a slot
    /// that is durable. So only a layer that keeps nothing has something to flush.
    fn flush(&mut self, request: Request, ctx: &mut Context<'_>) {
        if self.shape.settings.journal.has_notes() {
            return ctx.finish(request.id, self.ledger.failure().map_or(Ok(()), Err));
        }
        let job = self.jobs.add(Work::Flush);
        let entry = self.jobs.get_mut(job);
        entry.requests.push(request);
        entry.left = 1;
        let nothing = (Extent::EMPTY, BufferSlice::EMPTY);
        let aim = Aim::of(Purpose::Part, job);
        self.issue(aim, Operation::Flush, nothing, request.cause, ctx);
    }

    /// Reads what a request asks for, block by block: neighbours lie on different tracks.
    fn start_read(&mut self, job: u32, ctx: &mut Context<'_>) {
        let request = self.jobs.get(job).requests[0];
        let mut done = 0;
        while done < request.extent.blocks.0 {
            let place = self.shape.layout.place_of(request.extent.start.0 + done);
            let in_block = self.shape.layout.block() - place.offset;
            let blocks = in_block.min(request.extent.blocks.0 - done);
            let buffer = request.buffer.part(done, blocks);
            done += blocks;
            let Some((port, start)) = self.readable(place) else {
                ctx.zero(buffer);
                continue;
            };
            self.jobs.get_mut(job).left += 1;
            let aim = self.aim_of_read(job, place, buffer, ctx);
            ctx.issue(Issue {
                port,
                operation: Operation::Read,
                extent: Extent::new(start, blocks),
                buffer,
                cause: request.cause,
                tag: aim.tag(),
            });
        }
        self.end_if_nothing_left(job, ctx);
    }

    /// Where a block of 4 KiB can be read; none of one that holds no data.
    fn readable(&self, place: Place) -> Option<(Port, u64)> {
        let ports = self.shape.settings.ports;
        let mut stuck = self.stuck.iter().rev();
        Some(match stuck.find(|stuck| stuck.has(place)) {
            Some(stuck) if stuck.zeroed > 0 => return None,
            Some(stuck) => {
                let start = self.shape.areas.slot(stuck.slot).start.0;
                let inside = place.block * self.shape.layout.block() + place.offset;
                (ports.journal_port(), start + inside)
            }
            None if !self.touched.holds(place.segment, place.block) => return None,
            None => (ports.disk_port(), self.shape.layout.on_disk(place)),
        })
    }

    fn end_if_nothing_left(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.jobs.get(job).left == 0 {
            self.end_job(job, ctx);
        }
    }

    /// Answers what a job serves, and lets others begin.
    fn end_job(&mut self, job: u32, ctx: &mut Context<'_>) {
        let entry = self.jobs.get(job);
        let result = entry.failure.map_or(Ok(()), Err);
        for request in &entry.requests {
            ctx.finish(request.id, result);
        }
        self.jobs.remove(job);
        let granted = &mut self.granted;
        self.locks.unlock(job, |job| granted.push_back(job));
    }

    fn begin_granted(&mut self, ctx: &mut Context<'_>) {
        while let Some(job) = self.granted.pop_front() {
            match self.jobs.get(job).work {
                Work::Read => self.start_read(job, ctx),
                _ => self.next_segment(job, ctx),
            }
        }
    }

    /// Goes on until nothing more can be done in this event.
    fn advance(&mut self, ctx: &mut Context<'_>) {
        loop {
            self.begin_granted(ctx);
            self.make_slots_free(ctx);
            let has_heard = self.take_ledger_events(ctx);
            if self.granted.is_empty() && !has_heard {
                break;
            }
        }
        self.end_event(ctx);
    }

    fn operation_done(&mut self, aim: Aim, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match aim.purpose {
            Purpose::Part => self.part_done(aim.job, result, ctx),
            Purpose::Checked => self.checked_read(aim, result, ctx),
            Purpose::Page => self.page_read(aim, result, ctx),
            Purpose::Peek => self.peeked(aim, result, ctx),
            Purpose::Need => self.need_read(aim, result, ctx),
            Purpose::Again => self.part_read_again(aim, result, ctx),
            Purpose::Copy => self.copy_told(aim.job, ctx),
            Purpose::Slot => self.slot_done(aim.job, result, ctx),
            Purpose::Home => self.home_done(aim, result, ctx),
            Purpose::Pages => self.pages_home(aim.job, result, ctx),
            Purpose::Formatted => self.tables_formatted(result, ctx),
            Purpose::Redone => self.all_redone(result, ctx),
        }
    }

    /// A part of a read or a flush is done.
    fn part_done(&mut self, job: u32, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let entry = self.jobs.get_mut(job);
        entry.left -= 1;
        entry.failure = entry.failure.or(result.err());
        self.end_if_nothing_left(job, ctx);
    }

    fn set_gauges(&self, ctx: &mut Context<'_>) {
        let layout = &self.shape.layout;
        let unused = BlockCount(layout.unused_blocks()).bytes();
        ctx.gauge(Gauge::UnusedBytes, unused);
        let tables = layout.table_bytes() + self.touched.table_bytes();
        ctx.gauge(Gauge::TableBytes, tables);
    }
}

/// Segments as bands; the last one is shorter where less is offered.
fn segments_of(layout: &SegmentLayout, offered: Option<BlockCount>) -> BandTable {
    let (of, all) = (layout.segment_blocks(), offered.unwrap_or(layout.blocks()).0);
    let lengths = (0..all.div_ceil(of)).map(|segment| BlockCount(of.min(all - segment * of)));
    BandTable::new(lengths)
}

/// The tables of checksums, where they are kept. Segments of a new layout are zeroes where the disk
/// is; elsewhere nobody knows what was there before.
fn tables_of(settings: &SegmentSettings, areas: &SegmentAreas, disk: &Geometry) -> Option<Sums> {
    let kept = settings.checksums.filter(|_| settings.keeps_sums())?;
    let blank = if disk.is_blank { 0 } else { NOTHING };
    Some(Sums::new(kept, areas, blank))
}

/// Finds a disk on which the layout would destroy what it does not rewrite.
fn check_disk(settings: &SegmentSettings, disk: &Geometry) -> Result<(), SegmentError> {
    let overlap_tracks = match (disk.media, &disk.tracks) {
        (Media::Shingled, Some(tracks)) => tracks.overlap_tracks,
        _ => return Ok(()),
    };
    let kappa = settings.kappa;
    match settings.track {
        TrackLength::Assumed(_) if overlap_tracks > 0 => Err(SegmentError::NotOnTracks),
        _ if overlap_tracks + 1 > kappa => Err(SegmentError::Narrow { kappa, overlap_tracks }),
        _ => Ok(()),
    }
}

impl Layer for Segments {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if self.is_lost {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        match request.operation {
            Operation::Read => self.take_read(request),
            Operation::Write { .. } | Operation::Zero { .. } => self.take_write(request),
            Operation::Flush => self.flush(request, ctx),
            _ => ctx.finish(request.id, Err(IoError::NotPermitted)),
        }
        self.advance(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            self.operation_done(Aim::from_tag(completion.tag), completion.result, ctx);
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        let is_allowed = self.jobs.is_empty() && self.ledger.has_spare_room(1);
        self.ledger.mark_if_idle(is_allowed, ctx);
        self.advance(ctx);
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        // Copies are never needed.
        if Some(port) == self.shape.settings.ports.copies_port() {
            return;
        }
        self.is_lost = true;
        ctx.lose();
        self.ledger.fail(IoError::Lost);
        self.advance(ctx);
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        let ports = self.shape.settings.ports;
        match is_lost(ports.disk_port()) || is_lost(ports.journal_port()) {
            true => Without::Lost,
            false => Without::NO_COPIES,
        }
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        let layout = &self.shape.layout;
        facts.push(("block_bytes", BlockCount(layout.block()).bytes()));
        if self.shape.settings.journal.has_notes() {
            facts.push(("slots", SLOTS));
            facts.push(("slots_noted", self.slots.noted_slots()));
        }
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        let ports = self.shape.settings.ports;
        if ctx.is_lost(ports.disk_port()) || ctx.is_lost(ports.journal_port()) {
            return ctx.opened(Err(OpenError::Io(IoError::Lost)));
        }
        self.set_gauges(ctx);
        self.open_ledger(start, ctx);
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
