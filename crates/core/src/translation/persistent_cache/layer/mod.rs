//! The layer: takes a request, asks the parts, issues what they decide, and answers.
//!
//! It alone issues operations. Its parts stand one folder above, own their state and know nothing of
//! the layer. Its chapters stand beside this file.

mod alarms;
mod bypass;
mod clean;
mod copy;
mod flush;
mod ledger;
mod moves;
mod read;
mod rewrite;
mod serve;
mod tables;
mod transaction;
mod write;
mod zero;
mod zone_commands;

use self::alarms::{Alarms, Timer};
use super::block_map::BlockMap;
use super::checksums::{Checksums, HomeRead, Origin};
use super::cleaner::Cleaner;
use super::cleaning_policy::CleaningPolicy;
use super::copy_check::CopyCheck;
use super::disks::{Disks, HOME, LOG};
use super::firmware::Firmware;
use super::keeping::Keeping;
use super::layout::{Areas, Layout};
use super::layout_error::LayoutError;
use super::mover::Mover;
use super::reads::Reads;
use super::requests::{Part, Requests};
use super::rewriter::Rewriter;
use super::settings::PersistentCacheSettings;
use super::shape::Shape;
use super::undo::Undo;
use super::writes::Writes;
use super::zones::{Zones, check_zones};
use crate::buffer::BufferSlice;
use crate::command::{CommandId, OnReplacement};
use crate::disk::{Geometry, LogSize};
use crate::durability::LayerKind;
use crate::error::IoError;
use crate::layer::{Area, Context, Issue, Layer, Port};
use crate::ledger::Ledger;
use crate::lifecycle::{Start, Uuid};
use crate::map::BandTable;
use crate::operation::{Cause, Completion, Operation, Request, Tag};
use crate::saved::Saved;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A log-structured cache of writes on the non-overlapped tracks of a shingled disk, in front of
/// bands that can only be rewritten as a whole.
///
/// The blocks of a write are appended in ascending order. A write without room waits, and with it
/// every later one, until the band of the oldest block in the log has been rewritten with all its
/// blocks in the log. Reads are put together from the log, the bands and zeroed ranges. Requests
/// that share a block are served in the order of arrival.
///
/// Its state in parts:
///
/// * `shape` says what never changes, `blocks` where each block is, `zones` what the host sees.
/// * `requests`, `writes` and `reads` say what is being served.
/// * `rewriter` and `copy_check` rewrite a band; `cleaner` says when; `firmware` takes its time.
/// * `mover` moves blocks to the head of the log once more.
/// * `alarms` say when to be woken, and when idle time begins.
/// * `ledger` keeps the map over a crash, or keeps nothing; `undo` says what a crash may undo;
///   `checksums` say what a block must be.
#[derive(Debug, Saved)]
pub struct PersistentCache {
    #[saved(keep)]
    shape: Shape,
    blocks: BlockMap,
    #[saved(each)]
    zones: Option<Box<Zones>>,
    requests: Requests,
    writes: Writes,
    reads: Reads,
    rewriter: Rewriter,
    copy_check: CopyCheck,
    cleaner: Cleaner,
    mover: Mover,
    firmware: Firmware,
    alarms: Alarms,
    ledger: Ledger<u32>,
    undo: Undo,
    checksums: Checksums,
    /// One of the disks is lost, and with it all.
    is_lost: bool,
    /// The set that its disk belongs to, where it was told.
    #[saved(keep)]
    set: Option<Uuid>,
    /// A new disk is being formatted: requests that wait for it.
    awaiting_format: Option<Vec<Request>>,
    /// What the disk of the log is.
    #[saved(keep)]
    below: Geometry,
}

impl PersistentCache {
    /// The disk of the log, and of all else where there is one disk.
    pub const LOG: Port = LOG;
    /// The disk of the bands, where there are two.
    pub const HOME: Port = HOME;

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
        PersistentCache::over(settings, bands, Disks::One(below))
    }

    /// As [`new`](Self::new), over a disk for the log and another for the bands.
    ///
    /// # Errors
    /// When a setting is out of range or a disk is too small.
    pub fn on_two(
        settings: PersistentCacheSettings,
        bands: Arc<BandTable>,
        log: &Geometry,
        home: &Geometry,
    ) -> Result<(PersistentCache, Geometry), LayoutError> {
        PersistentCache::over(settings, bands, Disks::Two { log, home })
    }

    fn over(
        settings: PersistentCacheSettings,
        bands: Arc<BandTable>,
        below: Disks<'_>,
    ) -> Result<(PersistentCache, Geometry), LayoutError> {
        settings.check()?;
        if let Some(host_aware) = &settings.host_aware {
            if let Disks::Two { .. } = below {
                return Err(LayoutError::ZonesOnTwoDisks);
            }
            check_zones(&host_aware.zones, &bands)?;
        }
        let layout = Layout::new(&settings, &bands, below)?;
        let geometry = Geometry {
            blocks: bands.blocks(),
            media: below.home().media,
            tracks: None,
            bands: Some(Arc::clone(&bands)),
            zones: settings.host_aware.as_ref().map(|it| Arc::clone(&it.zones)),
            log: Some(LogSize { blocks: settings.log_blocks, entries: settings.entries_max }),
            survives: below.log().survives.min(below.home().survives),
            is_blank: false,
            rewrite_block: None,
            tells_copies: false,
            copies: None,
        };
        let Keeping { ledger, log, checksums, conduct } = Keeping::new(&settings, &bands, below);
        let zones = settings.host_aware.clone().map(|it| Box::new(Zones::new(it)));
        let shape = Shape::new(settings, conduct, bands, layout);
        let mut blocks = BlockMap::new(&shape, log);
        if let Some(host_aware) = &shape.settings.host_aware {
            blocks.fill_conventional(&shape, host_aware.zones.conventional_zones);
        }
        if let Some(zones) = &zones {
            blocks.fill_zones(&shape, zones);
        }
        let firmware = Firmware::new(shape.settings.map_journal);
        let cleaning = CleaningPolicy::new(&shape.settings);
        let cache = PersistentCache {
            blocks,
            zones,
            requests: Requests::default(),
            writes: Writes::new(shape.settings.bypass, firmware.flushes_have_records()),
            reads: Reads::default(),
            rewriter: Rewriter::default(),
            copy_check: CopyCheck::default(),
            cleaner: Cleaner::new(cleaning),
            mover: Mover::new(&shape.settings),
            firmware,
            alarms: Alarms::new(cleaning.idle_after()),
            ledger,
            undo: Undo::default(),
            checksums,
            is_lost: false,
            set: None,
            awaiting_format: None,
            below: below.log().clone(),
            shape,
        };
        Ok((cache, geometry))
    }

    /// The parts of the disks.
    pub fn areas(&self) -> Areas {
        self.shape.layout.areas()
    }

    /// Issues an operation below.
    fn issue(
        &mut self,
        part: Part,
        operation: Operation,
        (area, buffer): (Area, BufferSlice),
        cause: Cause,
        ctx: &mut Context<'_>,
    ) {
        if area.port == HOME && matches!(operation, Operation::Write { .. }) {
            self.ledger.writes_data();
        }
        let index = self.requests.issue(part);
        ctx.issue(Issue {
            port: area.port,
            operation,
            extent: area.extent,
            buffer,
            cause,
            tag: Tag(u64::from(index)),
        });
    }

    /// An operation for a part of a job, or of the layer's own, has finished.
    fn part_finished(&mut self, part: Part, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        match part {
            Part::Read { job, origin: Origin::Log(position), buffer } => {
                self.read_from_log(job, (position, buffer), result, ctx)
            }
            Part::Read { job, origin: Origin::Home(band, offset), buffer } => {
                let read = HomeRead { job, band, offset, buffer };
                self.read_from_home(&read, result, ctx);
            }
            Part::Log { write, position } => self.written_to_log(&write, position, result, ctx),
            Part::Bypass(write) => self.written_home(&write, result, ctx),
            Part::Conventional { job, extent } => {
                if result.is_err() {
                    self.blocks.lose(extent);
                }
                self.part_done(job, result, ctx);
            }
            Part::Page(page) => self.page_read(page, result, ctx),
            Part::Table => self.table_written(result, ctx),
            Part::Flush { job, is_recorded } => self.flushed_below(job, is_recorded, result, ctx),
            Part::Commit => self.flushed_for_commit(result, ctx),
            Part::Record { of, buffer } => self.record_written(of, buffer, result, ctx),
            Part::Move => self.move_part_done(result, ctx),
            Part::Rewrite { end } => self.rewrite_part_done(end, result, ctx),
        }
    }
}

impl Layer for PersistentCache {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() && self.zones.is_none() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        if self.is_lost {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        if let Some(waiting) = &mut self.awaiting_format {
            return waiting.push(request);
        }
        let job = self.take_in(request, ctx);
        if request.operation == Operation::Flush {
            // Every write that completed before has been handed to the disk.
            match self.cleaner.holds_requests() {
                true => self.cleaner.hold_request(job),
                false => self.flush_in_turn(job, ctx),
            }
            return self.advance(ctx);
        }
        if self.requests.lock(job, self.extent_to_lock(&request)) {
            self.advance(ctx);
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            let part = self.requests.finished(completion.tag.0 as u32);
            self.part_finished(part, completion.result, ctx);
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        if self.alarms.has_ended(Timer::Overhead, ctx) {
            self.rewriter.end_of_overhead();
        }
        if self.alarms.idle_begins(ctx) {
            self.cleaner.idle_began();
        }
        // Its end is looked for whenever something has happened.
        self.alarms.has_ended(Timer::Slice, ctx);
        if self.alarms.has_ended(Timer::Stall, ctx) {
            self.firmware.end_of_stall();
        }
        if self.alarms.has_ended(Timer::Record, ctx) {
            self.end_of_flush_overhead(ctx);
        }
        if self.alarms.has_ended(Timer::Zones, ctx) {
            self.answer_commands(ctx);
        }
        if self.alarms.has_ended(Timer::Mark, ctx) {
            self.mark_last_flush(ctx);
        }
        self.alarms.arm(ctx);
        self.advance(ctx);
    }

    /// Neither disk is of use without the other.
    fn lost(&mut self, _port: Port, ctx: &mut Context<'_>) {
        self.is_lost = true;
        ctx.lose();
        for request in self.awaiting_format.take().into_iter().flatten() {
            ctx.finish(request.id, Err(IoError::Lost));
        }
        self.ledger.fail(IoError::Lost);
        self.advance(ctx);
    }

    /// A new disk is a new drive, once all that the old one was asked for has been answered.
    fn on_replacement(&self) -> OnReplacement {
        match self.shape.layout.home_port() == LOG {
            true => OnReplacement::PassesOn,
            false => OnReplacement::Refuses,
        }
    }

    fn is_done_with_lost(&self) -> bool {
        self.is_lost && self.requests.are_done() && self.rewriter.current().is_none()
    }

    /// One that keeps its map formats the new disk before it does what it is asked for.
    fn replaced(&mut self, _port: Port, _command: CommandId, ctx: &mut Context<'_>) {
        let (settings, bands) = (self.shape.settings.clone(), Arc::clone(&self.shape.bands));
        let new = PersistentCache::new(settings, bands, &self.below);
        let (new, _) = new.expect("settings and a disk of which one was made before");
        self.cleaner.tell_end(ctx);
        let old = core::mem::replace(self, new);
        let (Some(set), true) = (old.set, self.shape.conduct.verifies) else {
            // It has been opened, and keeps nothing.
            self.ledger = old.ledger;
            return;
        };
        self.set = Some(set);
        self.awaiting_format = Some(Vec::new());
        self.open_ledger(Start::Format(set), ctx);
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        let settings = &self.shape.settings;
        facts.push(("persistent_cache_blocks", settings.log_blocks.0));
        let entries_max = settings.entries_max;
        facts.extend(entries_max.map(|most| ("persistent_cache_entries_max", most)));
        facts.push(("bands", u64::from(self.shape.bands.bands())));
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        self.set = match start {
            Start::Format(set) => Some(set),
            Start::Recover(set) => set,
        };
        if let Err(lost) = ctx.nothing_lost() {
            return ctx.opened(Err(lost));
        }
        self.open_ledger(start, ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        self.ledger.begin_close();
        self.take_ledger_events(ctx);
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}

impl PersistentCache {
    fn open_ledger(&mut self, start: Start, ctx: &mut Context<'_>) {
        let number = ctx.member_number(LOG);
        let number = number.unwrap_or(LayerKind::PersistentCache as u16);
        self.ledger.open(start, number, ctx);
        self.take_ledger_events(ctx);
    }
}
