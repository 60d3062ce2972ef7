//! The layer of RAID 4SMR. Its chapters stand beside this file.

mod journal;
mod members;
mod opening;
mod repairs;
mod tables;

use super::bands::HomeBands;
use super::collection::Waiting;
use super::collector::{Around, Collector};
use super::contents::Contents;
use super::directory::{Change, Changes, Directory, Place, Target};
use super::layout::{Raid4SmrKeeping, Raid4SmrShape};
use super::notes::Notes;
use super::on_the_way::{Gate, OnTheWay};
use super::records::WRITE_BLOCKS_MAX;
use super::recovery::AfterCrash;
use super::redo_log::RedoLog;
use super::repairs::Repairs;
use super::room::Room;
use super::settings::{Placement, Raid4SmrError, Raid4SmrSettings};
use super::table_writes::TableWrites;
use crate::array::keeper::{Keeper, Life};
use crate::array::raid::check_spares;
use crate::array::read_runs::ReadRuns;
use crate::array::rebuilds::Rebuilds;
use crate::array::status::ArrayStatus;
use crate::array::{ArrayError, RowMap, Rows};
use crate::command::{Command, CommandError, CommandId, CommandKind, OnReplacement, Without};
use crate::counters::{Counter, Gauge};
use crate::disk::Geometry;
use crate::error::IoError;
use crate::extent::Extent;
use crate::joined::{JoinError, joined};
use crate::layer::{Context, Layer, Port};
use crate::lifecycle::Start;
use crate::operation::{Completion, Operation, Request};
use crate::planted::PlantedBug;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Neighbouring blocks of a request that are written together.
#[derive(Debug, Default, SavedValue)]
struct Run {
    /// They go home; to the data disk otherwise.
    goes_home: bool,
    /// The place of the first, of those that go home.
    first_place: Place,
    /// Rows: as places number them of homes, slots otherwise.
    rows: Extent,
    /// Each block from the start of the request, its column and its row.
    blocks: Vec<(u64, usize, u64)>,
    /// The collection that must be done first.
    after: Option<u64>,
    /// What it changes in the directory.
    changes: Changes,
}

/// RAID 4SMR: shingled homes, a data disk for what is written again, and a parity disk.
///
/// Its map is in memory. One that is durable notes in a journal each block that it writes.
#[derive(Debug, Saved)]
pub struct Raid4Smr {
    notes: Notes,
    on_the_way: OnTheWay,
    gate: Gate,
    room: Room,
    /// Band rows may have become due while nothing could be collected.
    may_be_due: bool,
    #[saved(absent)]
    after_crash: Option<AfterCrash>,
    table_writes: TableWrites,
    repairs: Repairs,
    rebuilds: Rebuilds,
    /// Disks that the journal is to have a copy on, with the commands that have put new ones in.
    to_admit: VecDeque<(Port, Option<CommandId>)>,
    directory: Directory,
    contents: Contents,
    rows: Rows,
    collector: Collector,
    /// Blocks of the members that are in no row of use.
    #[saved(keep)]
    unused: BlockCount,
    run: Run,
    /// Of each part that writes what it has changed in the directory.
    changes: Vec<Changes>,
    reads: ReadRuns,
}

impl Raid4Smr {
    /// An array over the nodes `below`: homes, data, parity, spares; and what these tell the node above. It keeps
    /// what it knows where `keeping` says how.
    ///
    /// # Errors
    /// When the settings do not fit the nodes. Panics when the ring of its journal is shorter than
    /// [`Raid4SmrLayout::ring_blocks_min`](super::Raid4SmrLayout::ring_blocks_min).
    pub fn new(
        settings: Raid4SmrSettings,
        keeping: Option<Raid4SmrKeeping>,
        below: &[&Geometry],
    ) -> Result<(Raid4Smr, Geometry), Raid4SmrError> {
        settings.check()?;
        let homes = settings.homes;
        let columns = settings.columns();
        assert_eq!(below.len(), columns + settings.spares, "a node for each member and spare");
        let (data, parity) = (below[homes], below[homes + 1]);
        let is_zoned = |at: &usize| below[*at].refuses_random_writes();
        if let Some(at) = (homes..below.len()).find(is_zoned) {
            return Err(ArrayError::from(JoinError::Zones(Port(at as u8))).into());
        }
        let first_block = keeping.map_or(0, |keeping| keeping.layout.first_block());
        let (mut bands, slots) = lay_out(&settings, &below[..homes], [data, parity], first_block)?;
        if let Some(offered) = settings.offered {
            let room = BlockCount(bands.host_blocks());
            if offered > room {
                return Err(Raid4SmrError::TooMuch { offered, room });
            }
            let of_band_row = bands.band_blocks() * homes as u64;
            bands.shorten(offered.0.div_ceil(of_band_row) + 1);
        }
        let used = (0..homes).map(|home| bands.end_of(home)).max().unwrap_or_default();
        let needed = BlockCount(used.max(slots));
        let spares = &below[columns..];
        let on_spare = BlockCount(first_block + needed.0);
        check_spares(spares, on_spare)?;
        if let Some(spare) = spares.iter().position(|spare| spare.overlaps_before(on_spare)) {
            return Err(Raid4SmrError::ShingledSpare { spare });
        }
        let bare: Vec<Geometry> =
            below.iter().map(|it| Geometry { zones: None, ..(*it).clone() }).collect();
        let bare: Vec<&Geometry> = bare.iter().collect();
        let blocks = settings.offered.unwrap_or(BlockCount(bands.host_blocks()));
        let geometry =
            Geometry { blocks, ..joined(&bare, BlockCount::ZERO).map_err(ArrayError::from)? };
        let in_use = bands.rows() * homes as u64 + slots + bands.rows().max(slots);
        let offered: u64 = below[..columns].iter().map(|it| it.blocks.0).sum();
        let keeper = match keeping {
            None => Keeper::volatile(),
            Some(Raid4SmrKeeping { durability, layout, .. }) => {
                let sizes: Vec<BlockCount> = below[homes..].iter().map(|it| it.blocks).collect();
                Keeper::journaled(&layout.copies(homes, &sizes), durability)
            }
        };
        let mut rows = Rows::new(columns, settings.spares, false);
        if let Some(keeping) = keeping {
            let least = keeping.layout.ring_blocks_min();
            assert!(keeping.durability.ring_blocks >= least, "a ring of less than {least} blocks");
            rows.noting.is_on = true;
            rows.repairs = true;
            rows.keep_contents(needed.0);
            rows.lose_after(keeping.lost_after);
            let all_rows = bands.rows().max(slots) + keeping.layout.tables().blocks.0;
            rows.remember_missed(keeping.layout.missed_shape(all_rows));
        }
        let log = RedoLog::new(keeping.map_or(Extent::EMPTY, |it| it.layout.log()));
        let mut contents = Contents::new(bands.clone(), homes, slots);
        if let Some(keeping) = keeping {
            contents.keep(&keeping.layout, keeping.memory_bytes);
        }
        let layer = Raid4Smr {
            notes: Notes::new(keeper, log),
            on_the_way: OnTheWay::default(),
            gate: Gate::default(),
            room: Room::new(keeping.map(|it| it.layout)),
            may_be_due: false,
            after_crash: None,
            table_writes: TableWrites::default(),
            repairs: Repairs::default(),
            rebuilds: Rebuilds::new(needed.0),
            to_admit: VecDeque::new(),
            collector: Collector::new(bands.band_rows() - 1),
            rows,
            directory: Directory::new(settings, &bands, slots),
            contents,
            unused: BlockCount(offered.saturating_sub(in_use)),
            run: Run::default(),
            changes: Vec::new(),
            reads: ReadRuns::new(columns),
        };
        Ok((layer, geometry))
    }

    /// The bands of homes that tell such things of themselves, as far as a parity disk covers them.
    ///
    /// # Errors
    /// When there are no two.
    pub fn bands_of(
        settings: &Raid4SmrSettings,
        homes: &[&Geometry],
        parity: BlockCount,
    ) -> Result<HomeBands, Raid4SmrError> {
        let mut bands = HomeBands::new(settings, homes)?;
        let covered = parity.0 / bands.band_blocks();
        if covered < 2 {
            let needed = BlockCount(2 * bands.band_blocks());
            return Err(Raid4SmrError::ShortParity { blocks: parity, needed });
        }
        bands.shorten(covered);
        Ok(bands)
    }

    /// Where it has everything; none where it keeps nothing.
    pub fn shape(&self) -> Option<Raid4SmrShape> {
        Some(Raid4SmrShape {
            layout: *self.room.layout()?,
            bands: self.contents.bands().clone(),
            slots: self.contents.slot_rows(),
            appends: self.directory.appends(),
        })
    }

    fn around<'a, 'c>(
        &'a mut self,
        ctx: &'a mut Context<'c>,
    ) -> (&'a mut Collector, Around<'a, 'c>) {
        let Raid4Smr { directory, contents, rows, collector, changes, notes, table_writes, .. } =
            self;
        (collector, Around { directory, contents, rows, changes, notes, table_writes, ctx })
    }

    fn can_collect(&self, ctx: &Context<'_>) -> bool {
        self.rows.members.is_whole() || ctx.is_planted(PlantedBug::ArrayCollectsDegraded)
    }

    fn read(&mut self, job: u32, extent: Extent, ctx: &mut Context<'_>) {
        let buffer = self.rows.jobs.request(job).buffer;
        for at in 0..extent.blocks.0 {
            let target = self.directory.find(extent.start.0 + at);
            if self.is_unreadable(target) {
                self.rows.jobs.fail(job, IoError::Medium);
                continue;
            }
            let found = self.whereabouts(target);
            let Some((column, row, is_there)) = found else {
                ctx.zero(buffer.part(at, 1));
                continue;
            };
            if !is_there {
                ctx.zero(buffer.part(at, 1));
            }
            let all = (&mut self.rows, &mut self.contents);
            self.reads.read(job, (column, row), is_there.then_some(at), all, ctx);
        }
        self.reads.end(job, (&mut self.rows, &mut self.contents), ctx);
    }

    /// The column and the row of a block, and whether anything is there. None when it is looked for nowhere.
    fn whereabouts(&self, target: Target) -> Option<(usize, u64, bool)> {
        match target {
            Target::Nowhere | Target::NoSlot => None,
            Target::Slot { slot, .. } => Some((self.contents.data(), slot, true)),
            Target::Unwritten(place) => {
                let row = self.collector.row_of(place, &self.directory, &self.contents);
                Some((self.directory.home_of(place), row, false))
            }
            Target::Home(place) => {
                let (column, row) = self.collector.find(place, &self.directory, &self.contents);
                let is_there =
                    column == self.contents.data() || self.contents.has_home(column, row);
                // Of one that is not there the only write has failed.
                (is_there || !self.directory.appends()).then_some((column, row, is_there))
            }
        }
    }

    fn write(&mut self, job: u32, request: &Request, ctx: &mut Context<'_>) {
        for at in 0..request.extent.blocks.0 {
            let block = request.extent.start.0 + at;
            let can_collect = self.can_collect(ctx);
            let target = self.directory.write(block, self.contents.bands(), can_collect);
            let stamp = self.directory.stamp();
            let own = match target {
                Target::Slot { slot, place, .. } => Some((place, slot)),
                _ => None,
            };
            // A row that was collected to make room gave its slot to this block; one that this block has
            // made due takes the block with it, and comes after it.
            let decisions: Vec<_> = self.directory.take_decisions().collect();
            self.room.cause(job, decisions.len() as u64);
            let is_after = |saved: &[(Place, u64)]| own.is_some_and(|own| saved.contains(&own));
            let (after, before): (Vec<_>, Vec<_>) =
                decisions.into_iter().partition(|it| is_after(&it.saved));
            before.into_iter().for_each(|decision| self.collector.add(decision, ctx));
            match target {
                Target::Home(place) => self.go_home(job, at, (block, stamp, place), ctx),
                Target::Slot { slot, place, is_new, was_live } => {
                    self.go_to_slot(job, at, slot, ctx);
                    let slot = Some(slot);
                    self.run.changes.push(Change { block, stamp, place, slot, is_new, was_live });
                }
                Target::NoSlot | Target::Nowhere | Target::Unwritten(_) => {
                    self.end_run(job, ctx);
                    self.rows.jobs.fail(job, IoError::NoSpace);
                }
            }
            after.into_iter().for_each(|decision| self.collector.add(decision, ctx));
        }
        self.end_run(job, ctx);
    }

    fn go_home(
        &mut self,
        job: u32,
        at: u64,
        (block, stamp, place): (u64, u64, Place),
        ctx: &mut Context<'_>,
    ) {
        let homes = self.contents.data() as u64;
        let after = self.collector.last_of(self.directory.band_row_of(place));
        let row = place / homes;
        let band = |row: u64| row / self.contents.bands().band_blocks();
        let rows = self.run.rows;
        let goes_on = !self.run.blocks.is_empty()
            && self.run.goes_home
            && self.run.after == after
            && !self.is_full(place.is_multiple_of(homes))
            && (row == rows.end().0 || row + 1 == rows.end().0)
            && band(row) == band(rows.start.0);
        if !goes_on {
            self.end_run(job, ctx);
            self.run.first_place = place;
        }
        self.add(at, self.directory.home_of(place), row, after);
        self.run.goes_home = true;
        let change = Change { block, stamp, place, slot: None, is_new: false, was_live: false };
        self.run.changes.push(change);
    }

    fn go_to_slot(&mut self, job: u32, at: u64, slot: u64, ctx: &mut Context<'_>) {
        let after = self.collector.holder_of(slot);
        let goes_on = !self.run.blocks.is_empty()
            && !self.run.goes_home
            && self.run.after == after
            && !self.is_full(true)
            && slot == self.run.rows.end().0;
        if !goes_on {
            self.end_run(job, ctx);
        }
        self.add(at, self.contents.data(), slot, after);
        self.run.goes_home = false;
    }

    /// True when a run that is noted has as many blocks as a record may have, or nearly and a row ends.
    fn is_full(&self, row_ends: bool) -> bool {
        let blocks = self.run.blocks.len() as u64;
        let homes = self.contents.data() as u64;
        self.rows.noting.is_on
            && (blocks == WRITE_BLOCKS_MAX || row_ends && blocks + homes > WRITE_BLOCKS_MAX)
    }

    fn add(&mut self, at: u64, column: usize, row: u64, after: Option<u64>) {
        let run = &mut self.run;
        if run.blocks.is_empty() {
            run.rows = Extent::new(row, 0);
            run.after = after;
        }
        run.rows.blocks.0 = row + 1 - run.rows.start.0;
        run.blocks.push((at, column, row));
    }

    /// What was gathered is written, or waits for the collection that needs its slots.
    fn end_run(&mut self, job: u32, ctx: &mut Context<'_>) {
        if self.run.blocks.is_empty() {
            return;
        }
        let request = self.rows.jobs.request(job);
        let task = self.rows.new_write(job);
        self.rows.set_rows(task, self.run.rows);
        for (at, column, row) in &self.run.blocks {
            self.rows.put(task, *column, *row, Some(request.buffer.part(*at, 1)), ctx);
        }
        self.run.blocks.clear();
        let goes_home = self.run.goes_home.then_some(self.run.first_place);
        let after = self.run.after.take();
        let mut changes = core::mem::take(&mut self.run.changes);
        let (collector, mut around) = self.around(ctx);
        core::mem::swap(around.changes_of(task), &mut changes);
        collector.begin_or_wait(after, Waiting { task, goes_home }, &mut around);
        changes.clear();
        self.run.changes = changes;
    }

    /// Members may have been lost or come back: what must be decided for that is.
    fn settle(&mut self, ctx: &mut Context<'_>) {
        let (collector, mut around) = self.around(ctx);
        collector.undo_failed(&mut around);
        while let Some(ended) = self.rows.next_ended() {
            self.own_ended(ended, ctx);
        }
        if core::mem::take(&mut self.rows.has_changed) {
            self.note_members(ctx);
            let is_whole = self.can_collect(ctx);
            let (collector, _) = self.around(ctx);
            match is_whole {
                false => collector.stop(),
                true => self.may_be_due = true,
            }
        }
        loop {
            self.collect_due(ctx);
            let (collector, mut around) = self.around(ctx);
            collector.go_on(&mut around);
            // Work on the parity with nothing to change ends at once.
            let Some(ended) = around.rows.next_ended() else { break };
            self.own_ended(ended, ctx);
        }
        self.go_on(ctx);
        self.tell(ctx);
    }

    fn tell(&mut self, ctx: &mut Context<'_>) {
        let counted = self.directory.take_counted();
        for (counter, amount) in [
            (Counter::FirstWrites, counted.first_writes),
            (Counter::Updates, counted.updates),
            (Counter::UnsafeFirstWrites, counted.unsafe_first_writes),
            (Counter::Redirected, counted.redirected),
            (Counter::Collections, counted.collections),
            (Counter::ForcedCollections, counted.forced_collections),
            (Counter::CollectedBlocks, counted.collected_blocks),
        ] {
            if amount > 0 {
                ctx.count(counter, amount);
            }
        }
        ctx.gauge(Gauge::MapEntries, self.directory.map_entries());
        ctx.gauge(Gauge::SlotsPeak, self.directory.slots_peak());
    }
}

/// The bands of the homes and the slots of the data disk, as far as the parity disk covers them.
fn lay_out(
    settings: &Raid4SmrSettings,
    homes: &[&Geometry],
    members: [&Geometry; 2],
    first_block: u64,
) -> Result<(HomeBands, u64), Raid4SmrError> {
    let [data, parity] = members.map(|it| BlockCount(it.blocks.0.saturating_sub(first_block)));
    let bands = Raid4Smr::bands_of(settings, homes, parity)?;
    if bands.are_zones() && settings.placement == Placement::Static {
        return Err(Raid4SmrError::StaticZones);
    }
    let most_collected = bands.band_blocks() * homes.len() as u64 - 1;
    if let Some(found) = settings.collect_at
        && !(1..=most_collected).contains(&found)
    {
        return Err(Raid4SmrError::CollectAt { found, most: most_collected });
    }
    let most = data.min(parity);
    let slots = settings.data_capacity.unwrap_or(most);
    if slots > most || slots.0 == 0 {
        return Err(Raid4SmrError::Slots { found: slots, most });
    }
    Ok((bands, slots.0))
}

impl Layer for Raid4Smr {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        if self.notes.keeper.life == Life::Lost {
            return ctx.finish(request.id, Err(IoError::Lost));
        }
        let job = self.rows.jobs.begin(request);
        match request.operation {
            Operation::Flush => self.flush(job, ctx),
            Operation::Read => {
                self.read(job, request.extent, ctx);
                self.rows.jobs.end_part(job, Ok(()));
            }
            _ => self.change_or_wait(job, ctx),
        }
        self.settle(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.notes.keeper.ledger.complete(completion, ctx) {
            self.rows.complete(completion, &mut self.contents, ctx);
        }
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Context<'_>) {
        self.notes.keeper.wake(ctx);
        self.rows.go_on(&mut self.contents, ctx);
        self.settle(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        ctx.gauge(Gauge::UnusedBytes, self.unused.bytes());
        self.begin_to_open(start, ctx);
        self.settle(ctx);
    }

    fn close(&mut self, ctx: &mut Context<'_>) {
        match self.notes.keeper.life {
            Life::Lost => ctx.closed(Err(IoError::Lost)),
            _ => self.notes.keeper.ledger.begin_close(),
        }
        self.settle(ctx);
    }

    fn lost(&mut self, port: Port, ctx: &mut Context<'_>) {
        self.lose(port, ctx);
        self.settle(ctx);
    }

    fn holds_away(&self) -> bool {
        self.keeps()
    }

    fn without(&self, is_lost: &dyn Fn(Port) -> bool) -> Without {
        self.rows.without(is_lost, self.contents.redundancy())
    }

    fn on_replacement(&self) -> OnReplacement {
        OnReplacement::Takes
    }

    fn replaced(&mut self, port: Port, command: CommandId, ctx: &mut Context<'_>) {
        self.put_in(port, command, ctx);
        self.settle(ctx);
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
                self.rows.ask_rebuild(command.id, rate, &mut self.contents, ctx);
                self.settle(ctx);
            }
            CommandKind::Scrub(rate) if self.keeps() => {
                self.repairs.scrubs.ask(command.id, rate, &self.contents, ctx);
                self.settle(ctx);
            }
            _ => ctx.answer_command(command.id, Err(CommandError::NotTaken)),
        }
    }

    fn array(&self, now: Instant, is_lost: &dyn Fn(Port) -> bool) -> Option<ArrayStatus> {
        let mut status = self.rows.array_status(&self.contents, now, is_lost);
        self.rebuilds.tell_returning(&mut status);
        status.slots = Some(self.directory.slots());
        status.scrub = self.repairs.scrubs.status(now);
        status.unreadable_blocks = self.contents.unreadable.len();
        status.unreadable = self.unreadable_runs();
        Some(status)
    }

    fn status(&self, facts: &mut Vec<(&'static str, u64)>) {
        self.rows.status(facts);
        facts.push(("map_entries", self.directory.map_entries()));
        facts.push(("slots_left", self.directory.slots().0));
        facts.push(("unused_bytes", self.unused.bytes()));
        if self.keeps() {
            facts.push(("unreadable_blocks", self.contents.unreadable.len()));
        }
    }

    fn saved(&mut self) -> Option<&mut dyn Saved> {
        Some(self)
    }
}
