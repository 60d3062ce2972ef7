//! The layer of RAID level 1. Its chapters stand beside this file.

mod after_crash;
mod upkeep;

use super::after_crash::AfterCrash;
use super::copies::Copies;
use super::layout::{Raid1Keeping, Raid1Layout};
use super::records::{Kept, RECORD_READABLE};
use super::upkeep::Upkeep;
use super::word::{TOKEN_MARKS, TOKEN_OPENED, Word};
use crate::array::jobs::{EndedJob, JobOwner};
use crate::array::keeper::{Keeper, Life, Token};
use crate::array::member_record::RECORD_MEMBER;
use crate::array::members::State;
use crate::array::missed::Missed;
use crate::array::raid::check_spares;
use crate::array::rebuilds::{Rebuilds, Returning};
use crate::array::regions::Regions;
use crate::array::scrubbed::Ended;
use crate::array::scrubs::Scrubs;
use crate::array::status::ArrayStatus;
use crate::array::task::Piece;
use crate::array::{ArrayError, Level, RaidRows, Redundancy, RowMap, Rows};
use crate::command::{Command, CommandError, CommandId, CommandKind, OnReplacement, Without};
use crate::counters::Gauge;
use crate::disk::Geometry;
use crate::durability::Recovery;
use crate::error::IoError;
use crate::extent::Extent;
use crate::joined::joined;
use crate::layer::{Context, Layer, Port};
use crate::ledger::{CopyState, LedgerEvent, Stage};
use crate::lifecycle::{OpenError, Start};
use crate::operation::{Completion, Operation, Request};
use crate::planted::PlantedBug;
use crate::saved::Saved;
use crate::units::{BlockCount, Instant};
use alloc::vec::Vec;

/// RAID level 1 over any nodes that take writes anywhere, which loses members and rebuilds them.
#[derive(Debug, Saved)]
pub struct Raid1 {
    pub(super) map: Copies,
    pub(super) rows: Rows,
    pub(super) keeper: Keeper,
    pub(super) regions: Regions,
    pub(super) upkeep: Upkeep,
    #[saved(absent)]
    pub(super) after_crash: Option<AfterCrash>,
    scrubs: Scrubs,
    /// Jobs that write and have come to where they may: their regions are marked.
    entered: Vec<bool>,
    /// Of them those that wait for a table.
    awaiting_tables: Vec<u32>,
    pub(super) rebuilds: Rebuilds,
    /// The ledger has given back what it kept.
    pub(super) is_recovered: bool,
    /// Everything is flushed before the array goes down.
    may_close: bool,
    /// Why the array does not come up.
    #[saved(absent)]
    pub(super) refusal: Option<IoError>,
    /// Blocks of the members that are in no row.
    #[saved(keep)]
    unused: BlockCount,
}

impl Raid1 {
    /// An array over the nodes `below`, the last `spares` of which are spares, and what these tell the node
    /// above together. As much of each is used as of the smallest, or as much as so many blocks need.
    ///
    /// # Errors
    /// When there are too few members or too many, one has zones that must be written in sequence or is too
    /// short, or a spare is.
    pub fn new(
        below: &[&Geometry],
        spares: usize,
        blocks: Option<BlockCount>,
        keeping: Option<Raid1Keeping>,
    ) -> Result<(Raid1, Geometry), ArrayError> {
        let members = &below[..below.len() - spares];
        let columns = members.len();
        let room = RaidRows::new(Level::Raid1, members.iter().map(|it| it.blocks))?.used();
        let geometry = joined(below, BlockCount::ZERO)?;
        let layout = keeping.map(|keeping| {
            let asked = blocks.map(|blocks| Raid1Layout::new(&keeping, blocks.0));
            asked.or_else(|| Raid1Layout::within(&keeping, room.0)).ok_or(ArrayError::NoRoom(room))
        });
        let layout = layout.transpose()?;
        let offered = layout.map_or(blocks.unwrap_or(room), |it| BlockCount(it.shape.data_rows));
        let used = layout.map_or(offered, |it| BlockCount(it.member_blocks()));
        if used > room {
            return Err(ArrayError::NoRoom(room));
        }
        check_spares(&below[columns..], used)?;
        let (mut map, mut keeper) = (Copies::volatile(columns, offered.0), Keeper::volatile());
        let mut rows = Rows::new(columns, spares, true);
        let mut rebuilds = Rebuilds::new(0);
        if let (Some(keeping), Some(layout)) = (&keeping, &layout) {
            let sizes: Vec<BlockCount> = below.iter().map(|it| it.blocks).collect();
            keeper = Keeper::journaled(&layout.copies(&sizes), keeping.durability);
            map = Copies::durable(columns, layout, keeping.memory_bytes);
            rows.keep_contents(layout.shape.rows());
            rows.repairs = true;
            rows.lose_after(keeping.lost_after);
            rows.members.missed = Some(Missed::new(layout.shape));
            rebuilds = Rebuilds::new(layout.shape.rows());
        }
        let total: u64 = members.iter().map(|it| it.blocks.0).sum();
        let raid = Raid1 {
            map,
            rows,
            keeper,
            regions: Regions::default(),
            upkeep: Upkeep::default(),
            after_crash: None,
            scrubs: Scrubs::default(),
            entered: Vec::new(),
            awaiting_tables: Vec::new(),
            rebuilds,
            is_recovered: false,
            may_close: false,
            refusal: None,
            unused: BlockCount(total - used.0 * columns as u64),
        };
        Ok((raid, Geometry { blocks: offered, ..geometry }))
    }

    fn keeps(&self) -> bool {
        self.map.sums.is_some()
    }

    fn rows_of(&self, extent: Extent) -> Extent {
        Extent::new(self.map.row_of(extent.start.0), extent.blocks.0)
    }

    fn read(&mut self, job: u32, extent: Extent, ctx: &mut Context<'_>) {
        let rows = self.rows_of(extent);
        let whole = Piece { in_request: 0, in_rows: 0, blocks: rows.blocks.0 };
        self.rows.read(job, 0, rows, &[whole], &mut self.map, ctx);
    }

    /// A write begins when its regions are marked, and their tables in memory.
    fn want_to_write(&mut self, job: u32, request: &Request, ctx: &mut Context<'_>) {
        if !self.keeps() {
            return self.write(job, ctx);
        }
        if let Some(error) = self.keeper.ledger.failure() {
            self.rows.jobs.fail(job, error);
            return;
        }
        // It ends no earlier than it has been written.
        self.rows.jobs.add_parts(job, 1);
        let rows = self.rows_of(request.extent);
        let shape = *self.map.sums.as_ref().expect("tables").shape();
        if self.regions.enter(job, shape.regions_of(rows)) {
            self.enter(job);
            self.begin_ready_writes(ctx);
        }
    }

    /// The regions of a write are marked.
    fn enter(&mut self, job: u32) {
        if self.entered.len() <= job as usize {
            self.entered.resize(job as usize + 1, false);
        }
        self.entered[job as usize] = true;
        self.awaiting_tables.push(job);
    }

    /// Begins the writes that wait for nothing any more.
    pub(super) fn begin_ready_writes(&mut self, ctx: &mut Context<'_>) {
        while let Some(job) = self.regions.next_ready() {
            self.enter(job);
        }
        for job in core::mem::take(&mut self.awaiting_tables) {
            let rows = self.rows_of(self.rows.jobs.request(job).extent);
            let shape = *self.map.sums.as_ref().expect("tables").shape();
            match self.hold_tables(shape.regions_of(rows)) {
                true => {
                    self.write(job, ctx);
                    self.rows.jobs.end_part(job, Ok(()));
                }
                false => self.awaiting_tables.push(job),
            }
        }
        if self.keeps() {
            self.read_tables(ctx);
        }
    }

    fn write(&mut self, job: u32, ctx: &mut Context<'_>) {
        let request = self.rows.jobs.request(job);
        let rows = self.rows_of(request.extent);
        let task = self.rows.new_write(job);
        self.rows.set_rows(task, rows);
        let has_data = request.operation.has_data();
        for column in 0..self.map.columns() {
            match has_data {
                true => self.rows.put(task, column, rows.start.0, Some(request.buffer), ctx),
                false => {
                    for row in rows.start.0..rows.end().0 {
                        self.rows.put(task, column, row, None, ctx);
                    }
                }
            }
        }
        self.rows.start(task, None, &mut self.map, ctx);
    }

    /// A job has ended.
    fn job_ended(&mut self, ended: EndedJob, ctx: &mut Context<'_>) {
        let EndedJob { owner, number, request, mut result } = ended;
        if self.keeper.life == Life::Lost && request.operation != Operation::Read {
            // The member that had everything knows nothing of it.
            result = result.and(Err(IoError::Lost));
        }
        match owner {
            JobOwner::Layer(word) => self.own_ended(Ended::of(word, result), ctx),
            JobOwner::Above => {
                let rows = self.rows_of(request.extent);
                let entered = self.entered.get_mut(number as usize);
                if entered.is_some_and(core::mem::take) {
                    let shape = *self.map.sums.as_ref().expect("tables").shape();
                    self.regions.leave(shape.regions_of(rows), ctx.now());
                    if result.is_ok() {
                        let readable = self.map.take_readable(rows);
                        if !readable.is_empty() {
                            self.record(RECORD_READABLE, &readable, ctx);
                            return self.keeper.answer_when_durable(request.id, result, ctx);
                        }
                    }
                }
                self.keeper.answer(request.id, result, ctx);
            }
        }
    }

    /// An operation of the layer's own has ended.
    fn own_ended(&mut self, ended: Ended, ctx: &mut Context<'_>) {
        let result = ended.result;
        match Word::of(ended.word) {
            Word::Table(region) => self.table_read(region, result, ctx),
            Word::Clearing => self.clearing_step_ended(result, ctx),
            Word::Progress => self.progress_flushed(result, ctx),
            Word::Whole => self.whole_flushed(result, ctx),
            Word::AfterCrash => self.after_crash_ended(result, ctx),
            Word::Scrub => self.scrubs.compared(ended, ctx),
            Word::Repair => self.scrubs.repaired(),
            Word::Close => self.flushed_to_close(result, ctx),
        }
    }

    /// What a checkpoint says.
    fn checkpoint_map(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.keeper.put_map(&mut bytes);
        let missed = self.rows.members.missed.as_ref();
        let missed = missed.into_iter().flat_map(Missed::regions);
        let unreadable = self.map.unreadable.iter().copied();
        let regions = self.map.sums.as_ref().map_or(0, |sums| sums.shape().regions);
        Kept::put(self.regions.recorded(), unreadable, missed, regions, &mut bytes);
        bytes
    }

    fn take_back(&mut self, recovery: &Recovery) -> Result<(), OpenError> {
        let columns = self.map.columns();
        let regions = self.map.sums.as_ref().map_or(0, |sums| sums.shape().regions);
        let rest = self.keeper.take_map(&recovery.checkpoint, columns)?;
        let mut kept = Kept::take(rest, regions)?;
        for record in &recovery.records {
            if record.kind == RECORD_MEMBER {
                if self.keeper.replay(record)?.is_some() {
                    kept.missed.extend(kept.marked.iter().copied());
                }
                if self.keeper.all_are_in() {
                    kept.missed.clear();
                }
            } else if !kept.replay(record, regions, self.keeper.has_out())? {
                return Err(OpenError::damaged("record", "its kind is not known"));
            }
        }
        self.keeper.restore(&mut self.rows.members);
        self.keeper.ledger.set_with_data(self.rows.members.whole_ports());
        kept.marked.iter().for_each(|region| self.regions.restore(*region));
        self.map.unreadable = kept.unreadable;
        self.miss(&kept.missed.into_iter().collect::<Vec<_>>());
        if !recovery.clean && !self.regions.are_clear() {
            self.after_crash = Some(AfterCrash::new(self.regions.recorded()));
        }
        Ok(())
    }

    /// The ledger is up: members that are not there, or were away, have not everything.
    fn ledger_opened(&mut self, ctx: &mut Context<'_>) {
        if let Some(sums) = &mut self.map.sums {
            sums.of_set(self.keeper.ledger.set());
        }
        if ctx.is_planted(PlantedBug::ArrayNotComparedAfterCrash) {
            self.after_crash = None;
        }
        // Of what was perhaps being written the checksums are known behind the comparison: no rebuild reads before.
        self.rows.is_resting = self.after_crash.is_some() || ctx.is_read_only();
        // No spare that is not there steps in for a column.
        for at in 0..self.keeper.copies().len() {
            let port = self.keeper.copies()[at];
            let is_spare = self.rows.members.column_of(port).is_none();
            let is_out = self.keeper.ledger.copy_state(port) == CopyState::Out;
            if is_spare && (ctx.is_lost(port) || is_out) {
                self.rows.lost(port, &mut self.map, ctx);
            }
        }
        for column in 0..self.map.columns() {
            let port = self.rows.members.port(column);
            let is_gone = ctx.is_lost(port);
            let is_out = self.keeper.ledger.copy_state(port) == CopyState::Out;
            let is_another = self.keeper.is_another(column, ctx);
            if is_gone || is_out {
                let was_out = self.keeper.may_return(column);
                if !is_gone && !is_another {
                    // One that nobody has recorded out is older than it was.
                    self.rebuilds.comes_back(Returning { column, from_start: !was_out });
                }
                self.rows.lost(port, &mut self.map, ctx);
            } else if self.rows.members.state(column) == State::Out {
                // The journal has taken its disk in, and the record of that was not written any more.
                let from_start = !self.keeper.may_return(column);
                self.rows.take_in(Returning { column, from_start }, is_another, ctx);
            }
        }
        self.take_part_in_marks(ctx);
        self.is_recovered = true;
        self.note(ctx);
        self.compare_on(ctx);
        self.opened_when_ready(ctx);
    }

    /// Disks that are in take part in moves of the labels from now on, new ones too.
    fn take_part_in_marks(&mut self, ctx: &mut Context<'_>) {
        for port in self.keeper.copies() {
            let port = *port;
            let is_in = self.keeper.ledger.copy_state(port) == CopyState::In;
            if is_in && !ctx.is_lost(port) && ctx.was_away(port) {
                ctx.hold_out(port, false);
                ctx.move_mark();
            }
        }
    }

    /// Takes note of members that are lost, and have it recorded.
    fn note(&mut self, ctx: &mut Context<'_>) {
        let may_record = self.keeps() && self.is_recovered;
        if !may_record || !core::mem::take(&mut self.rows.has_changed) {
            return;
        }
        if !self.rows.members.have_all(Redundancy::Copies) {
            return self.give_up(ctx);
        }
        self.keeper.ledger.set_with_data(self.rows.members.whole_ports());
        let out = self.keeper.note(&self.rows.members, ctx);
        for port in &out {
            ctx.hold_out(*port, true);
        }
        if !out.is_empty() {
            ctx.move_mark();
            let marked: Vec<u64> = self.regions.recorded().collect();
            self.miss(&marked);
        }
        self.rebuilds.begin_anew();
    }

    /// No member has all blocks any more. The journal must not go on with members that lack some: the one with
    /// all of them may come back.
    fn give_up(&mut self, ctx: &mut Context<'_>) {
        if self.keeper.life == Life::Lost {
            return;
        }
        let was_up = self.keeper.life != Life::Opening;
        self.keeper.life = Life::Lost;
        self.keeper.lose_all_but_whole(ctx);
        self.keeper.ledger.fail(IoError::Lost);
        self.keeper.fail(IoError::Lost, ctx);
        match was_up {
            true => ctx.lose(),
            false => ctx.opened(Err(OpenError::Io(IoError::Lost))),
        }
    }

    fn handle(&mut self, event: LedgerEvent<Token>, ctx: &mut Context<'_>) {
        match event {
            LedgerEvent::Blank => {
                self.keeper.begin_new(&self.rows.members, ctx);
                let map = self.checkpoint_map();
                self.keeper.ledger.begin(map, ctx);
            }
            LedgerEvent::Recovered(recovery) => match self.take_back(&recovery) {
                Ok(()) => {
                    let map = self.checkpoint_map();
                    self.keeper.ledger.begin(map, ctx);
                }
                Err(error) => {
                    self.keeper.ledger.give_up();
                    ctx.opened(Err(error));
                }
            },
            LedgerEvent::Opened => self.ledger_opened(ctx),
            LedgerEvent::Refused(error) => ctx.opened(Err(error)),
            LedgerEvent::Written => {
                while let Some(token) = self.keeper.ledger.next_written() {
                    self.token_came(token, ctx);
                }
            }
            LedgerEvent::Flushed { token, .. } => self.token_came(token, ctx),
            LedgerEvent::CopyAdmitted(port) => self.copy_admitted(port, ctx),
            LedgerEvent::CopyOut(port) => {
                self.keeper.refuse_admission(Some(port), ctx);
                self.rebuilds.forget_returning(port, &self.rows);
                self.rows.lost(port, &mut self.map, ctx);
            }
            LedgerEvent::Drain => self.drain(ctx),
            LedgerEvent::Closed(result) => ctx.closed(result),
            LedgerEvent::Failed { error, .. } => self.failed(error, ctx),
            // Maps are handed over whole.
            LedgerEvent::PieceWanted => {}
            LedgerEvent::PlacesFree | LedgerEvent::Checkpointed => {}
        }
    }

    fn token_came(&mut self, token: Token, ctx: &mut Context<'_>) {
        match token {
            Token::Answer(number) => self.keeper.end_answer(number, ctx),
            Token::Replaced(command) => ctx.answer_command(command, Ok(())),
            Token::Layer(TOKEN_MARKS) => self.marks_recorded(ctx),
            Token::Layer(TOKEN_OPENED) => self.end_opening(ctx),
            Token::Layer(_) => self.whole_recorded(ctx),
        }
    }

    /// Nothing can be recorded any more.
    fn failed(&mut self, error: IoError, ctx: &mut Context<'_>) {
        self.keeper.fail(error, ctx);
        self.upkeep.marking.clear();
        while let Some(job) = self.regions.pop_waiting() {
            self.rows.jobs.end_part(job, Err(error));
        }
        self.rebuilds.give_up();
        self.scrubs.stop("nothing can be recorded any more");
        self.rows.rest("nothing can be recorded any more", &mut self.map, ctx);
        if self.keeper.life == Life::Opening && self.is_recovered {
            self.refusal = Some(error);
            self.opened_when_ready(ctx);
        }
    }

    /// The journal has a copy on a disk that was taken in.
    fn copy_admitted(&mut self, port: Port, ctx: &mut Context<'_>) {
        let Some(command) = self.keeper.admitted(port) else { return };
        if let Some(command) = command {
            self.rows.members.replaced(port);
            self.rows.has_changed = true;
            self.note(ctx);
            return self.keeper.answer_replaced(command, ctx);
        }
        let Some(returning) = self.rebuilds.take_returning(port, &self.rows) else { return };
        self.rebuilds.count_before_it_is_whole(port, returning.column, &mut self.keeper, ctx);
        self.rows.take_in(returning, false, ctx);
        self.note(ctx);
        // It gets what it lacks at once, and not with the next request.
        self.rows.go_on(&mut self.map, ctx);
    }

    /// Takes in the next member that was away and is there again.
    fn take_in_returning(&mut self, ctx: &mut Context<'_>) {
        if self.keeper.can_admit(ctx)
            && let Some(next) = self.rebuilds.next_returning(&self.rows, ctx)
        {
            let (port, map) = (self.rows.members.port(next.column), self.checkpoint_map());
            self.keeper.admit(port, None, map, ctx);
        }
    }

    fn drain(&mut self, ctx: &mut Context<'_>) {
        self.keeper.life = Life::Draining;
        let words = "the device goes down; it goes on at the next start";
        self.rows.rest(words, &mut self.map, ctx);
        self.scrubs.stop("the device goes down; it can be asked for again");
    }

    /// Goes down when nothing is under way any more.
    fn close_when_over(&mut self, ctx: &mut Context<'_>) {
        let is_over = self.keeper.life == Life::Draining
            && self.rows.is_idle()
            && self.scrubs.are_over()
            && !self.keeper.is_admitting()
            && self.upkeep.clearing.is_none()
            && !self.rebuilds.is_flushing()
            && self.regions.are_clear();
        if is_over {
            self.keeper.life = Life::Closing;
            self.rebuilds.begin_to_close(&self.rows);
            self.flush_members(Word::Close, ctx);
        }
        if self.may_close && !self.keeper.ledger.is_checkpointing() {
            self.may_close = false;
            let map = self.checkpoint_map();
            self.keeper.ledger.close(map, ctx);
        }
    }

    fn flushed_to_close(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.rebuilds.flushed_to_close(result, &mut self.keeper, ctx);
        match result {
            Ok(()) => self.may_close = true,
            Err(error) => self.keeper.ledger.fail(error),
        }
    }

    /// Everything that an event leads to.
    fn end_event(&mut self, ctx: &mut Context<'_>) {
        loop {
            self.note(ctx);
            if let Some(ended) = self.rows.next_ended() {
                self.own_ended(ended, ctx);
            } else if let Some(ended) = self.rows.jobs.next_ended() {
                self.job_ended(ended, ctx);
            } else if let Some(event) = self.keeper.ledger.next_event() {
                self.handle(event, ctx);
            } else if !(self.rows.has_changed && self.keeps() && self.is_recovered) {
                break;
            }
        }
        if !self.keeps() {
            return self.set_alarm(ctx);
        }
        self.record_unreadable(ctx);
        self.read_tables(ctx);
        self.mark_regions(ctx);
        self.clear_regions(ctx);
        self.record_rebuild(ctx);
        self.take_in_returning(ctx);
        let Raid1 { scrubs, rows, map, .. } = self;
        if let Some(ended) = scrubs.go_on(Word::Scrub.number(), rows, map, ctx) {
            ended.tell(Ok(()), ctx);
        }
        scrubs.repair(Word::Repair.number(), rows, map, ctx);
        // Scrubs and repairs may want tables that nothing else has asked for.
        self.read_tables(ctx);
        self.close_when_over(ctx);
        if self.rows.has_ended() || self.rows.has_changed && self.is_recovered {
            return self.end_event(ctx);
        }
        if let Some(event) = self.keeper.ledger.next_event() {
            self.handle(event, ctx);
            return self.end_event(ctx);
        }
        if self.keeper.ledger.wants_checkpoint() && !self.keeper.is_admitting() {
            let map = self.checkpoint_map();
            self.keeper.ledger.checkpoint(map, ctx);
        }
        self.keeper.commit(ctx);
        self.rows.give_up_late(ctx);
        ctx.gauge(Gauge::UnreadableBlocks, self.map.unreadable.len() as u64);
        self.set_alarm(ctx);
    }

    fn set_alarm(&mut self, ctx: &mut Context<'_>) {
        let may_clear = self.upkeep.clearing.is_none() && self.keeper.life == Life::Up;
        let clearing = self.regions.due_at().filter(|_| may_clear && !ctx.is_read_only());
        let rows = [self.rows.alarm(ctx.now()), self.rows.late_alarm()];
        let alarms = [self.keeper.alarm(), rows[0], rows[1], clearing, self.scrubs.alarm()];
        // What is due already waits for something else than time.
        match alarms.into_iter().flatten().filter(|at| *at > ctx.now()).min() {
            Some(at) => ctx.wake_at(at),
            None => ctx.cancel_wake(),
        }
    }
}

impl Layer for Raid1 {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        // Blocks of those that have failed are old or new, wherever they are: nothing is to be undone.
        while self.rows.next_failed_write().is_some() {}
        let job = self.rows.jobs.begin(request);
        match request.operation {
            _ if self.keeper.life == Life::Lost => self.rows.jobs.fail(job, IoError::Lost),
            Operation::Flush => match self.keeper.ledger.failure() {
                Some(error) => self.rows.jobs.fail(job, error),
                None => self.rows.flush(job, &self.map, ctx),
            },
            Operation::Read => self.read(job, request.extent, ctx),
            _ => self.want_to_write(job, &request, ctx),
        }
        self.rows.jobs.end_part(job, Ok(()));
        self.end_event(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.keeper.ledger.complete(completion, ctx) {
            self.rows.complete(completion, &mut self.map, ctx);
        }
        self.end_event(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        self.keeper.wake(ctx);
        self.rows.go_on(&mut self.map, ctx);
        self.end_event(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::UnusedBytes, self.unused.bytes());
        if self.keeps() {
            self.rows.bound_labels(ctx);
            self.keeper.ledger.open(start, 0, ctx);
            return self.end_event(ctx);
        }
        let opened = self.rows.open(&mut self.map, ctx);
        self.keeper.life = Life::Up;
        self.end_event(ctx);
        ctx.opened(if opened { Ok(()) } else { Err(OpenError::Io(IoError::Lost)) });
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        match self.keeper.life {
            Life::Lost => ctx.closed(Err(IoError::Lost)),
            _ => self.keeper.ledger.begin_close(),
        }
        self.end_event(ctx);
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        if self.keeper.ledger.stage() == Stage::Opening {
            self.keeper.ledger.lose_copy(port, ctx);
            return self.end_event(ctx);
        }
        self.keeper.refuse_admission(Some(port), ctx);
        let was_member = self.rows.members.column_of(port).is_some();
        self.rows.lost(port, &mut self.map, ctx);
        if !was_member {
            self.keeper.lose_copy(port, ctx);
        }
        self.end_event(ctx);
        if !self.keeps() && self.rows.members.lacking() == self.map.columns() {
            ctx.lose();
        }
    }

    fn holds_away(&self) -> bool {
        self.keeps()
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        self.rows.without(is_lost, Redundancy::Copies)
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        match self.keeper.has_copy(port) {
            true => {
                let map = self.checkpoint_map();
                self.keeper.admit(port, Some(command), map, ctx);
            }
            false => self.rows.replaced(port, command, &mut self.map, ctx),
        }
        self.end_event(ctx);
    }

    fn takes(&self, kind: CommandKind) -> bool {
        match kind {
            CommandKind::Rebuild(_) => true,
            CommandKind::Scrub(_) => self.keeps(),
            _ => false,
        }
    }

    fn command(&mut self, command: Command, ctx: &mut Context<'_>) {
        match command.kind {
            CommandKind::Rebuild(rate) => {
                self.rows.ask_rebuild(command.id, rate, &mut self.map, ctx);
            }
            CommandKind::Scrub(rate) if self.keeps() => {
                self.scrubs.ask(command.id, rate, &self.map, ctx);
            }
            _ => ctx.answer_command(command.id, Err(CommandError::NotTaken)),
        }
        self.end_event(ctx);
    }

    fn array(&self, now: Instant, is_lost: &dyn Fn(Port) -> bool) -> Option<ArrayStatus> {
        let mut status = self.rows.array_status(&self.map, now, is_lost);
        self.rebuilds.tell_returning(&mut status);
        status.scrub = self.scrubs.status(now);
        status.unreadable_blocks = self.map.unreadable.len() as u64;
        status.unreadable = self.map.unreadable_runs();
        Some(status)
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        self.rows.status(facts);
        facts.push(("unused_bytes", self.unused.bytes()));
        if self.keeps() {
            facts.push(("unreadable_blocks", self.map.unreadable.len() as u64));
            facts.push(("marked_regions", self.regions.recorded().count() as u64));
        }
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
