//! What a durable array of copies does for itself: tables of checksums are read, regions are marked and
//! cleared, and what a rebuild has done is recorded.

use super::Raid1;
use crate::array::Columns;
use crate::array::keeper::{Life, Token};
use crate::array::raid1::records::{
    NUMBERS_OF_RECORD, RECORD_CLEARED, RECORD_MARKED, RECORD_UNREADABLE, payload,
};
use crate::array::raid1::upkeep::{Clearing, Load};
use crate::array::raid1::word::{TOKEN_MARKS, TOKEN_WHOLE, Word};
use crate::array::rebuilds::FlushFor;
use crate::buffer::BufferSlice;
use crate::error::IoError;
use crate::layer::Context;
use crate::ledger::When;
use crate::operation::{Cause, Operation};
use crate::planted::PlantedBug;
use crate::units::BlockCount;

impl Raid1 {
    /// Begins to read the tables that somebody waits for.
    pub(super) fn read_tables(&mut self, ctx: &mut Context<'_>) {
        while let Some(region) = self.map.sums.as_mut().and_then(|sums| sums.next_wanted()) {
            let shape = *self.map.sums.as_ref().expect("tables").shape();
            let pages = ctx.allocate(BlockCount(shape.pages));
            let load = Load { region, pages, column: 0, failed: Columns::NONE };
            self.upkeep.loads.push(load);
            self.read_table(region, ctx);
        }
    }

    /// Reads a table from the next member that may have it. Where none can give it, nothing is known.
    fn read_table(&mut self, region: u64, ctx: &mut Context<'_>) {
        let sums = self.map.sums.as_mut().expect("tables");
        let rows = sums.shape().table_of(region);
        let at = self.upkeep.loads.iter().position(|load| load.region == region);
        let at = at.expect("a table that is read");
        let load = &mut self.upkeep.loads[at];
        let there = self.rows.members.with_row(rows.start.0).without(load.failed);
        match there.iter().next() {
            Some(column) => {
                load.column = column;
                let (word, pages) = (Word::Table(region).number(), load.pages);
                let operation = (Operation::Read, Cause::Metadata);
                self.rows.issue(word, column, operation, rows, pages, &self.map, ctx);
            }
            None => {
                ctx.release(load.pages);
                sums.settle(region);
                self.upkeep.loads.swap_remove(at);
                self.tables_came(ctx);
            }
        }
    }

    /// A table was read, or could not be.
    pub(super) fn table_read(
        &mut self,
        region: u64,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let load = self.upkeep.loads.iter_mut().find(|load| load.region == region);
        let load = load.expect("a table that is read");
        let sums = self.map.sums.as_mut().expect("tables");
        if result.is_err() || !sums.take(region, load.pages, ctx) {
            load.failed = load.failed.or(Columns::of(load.column));
            return self.read_table(region, ctx);
        }
        ctx.release(load.pages);
        sums.settle(region);
        self.upkeep.loads.retain(|load| load.region != region);
        self.tables_came(ctx);
    }

    fn tables_came(&mut self, ctx: &mut Context<'_>) {
        self.begin_ready_writes(ctx);
        self.rows.sums_came(&mut self.map, ctx);
        self.compare_on(ctx);
    }

    /// Holds the tables of marked regions in memory. False while one is being read.
    pub(super) fn hold_tables(&mut self, regions: impl Iterator<Item = u64>) -> bool {
        let Some(sums) = &mut self.map.sums else { return true };
        let mut are_held = true;
        for region in regions {
            if self.upkeep.held.contains(&region) {
                continue;
            }
            match sums.hold(region..=region) {
                true => {
                    self.upkeep.held.insert(region);
                }
                false => are_held = false,
            }
        }
        are_held
    }

    /// Records regions as marked that somebody wants to write.
    pub(super) fn mark_regions(&mut self, ctx: &mut Context<'_>) {
        if !self.upkeep.marking.is_empty()
            || !self.regions.has_to_mark()
            || !self.keeper.ledger.has_room()
        {
            return;
        }
        let regions = self.regions.take_to_mark();
        self.record(RECORD_MARKED, &regions, ctx);
        if self.rows.members.has_out() {
            self.miss(&regions);
        }
        let token = Token::Layer(TOKEN_MARKS);
        let port = self.keeper.journal_port();
        let is_late = ctx.is_planted(PlantedBug::ArrayRegionWrittenUnrecorded);
        if is_late || self.keeper.ledger.answer_when_flushed(port, token, ctx) == When::Now {
            return self.regions_marked(&regions, ctx);
        }
        self.upkeep.marking = regions;
    }

    /// Regions that are about to be written are missed by those who are out.
    pub(super) fn miss(&mut self, regions: &[u64]) {
        if let Some(missed) = &mut self.rows.members.missed {
            regions.iter().for_each(|region| missed.add(*region));
        }
    }

    /// That regions may differ is durable.
    pub(super) fn marks_recorded(&mut self, ctx: &mut Context<'_>) {
        let regions = core::mem::take(&mut self.upkeep.marking);
        self.regions_marked(&regions, ctx);
    }

    fn regions_marked(&mut self, regions: &[u64], ctx: &mut Context<'_>) {
        self.regions.marked(regions);
        self.begin_ready_writes(ctx);
    }

    /// Records numbers in as many records as they need.
    pub(super) fn record(&mut self, kind: u8, numbers: &[u64], ctx: &mut Context<'_>) {
        if self.keeper.ledger.failure().is_some() || !self.keeper.ledger.is_running() {
            return;
        }
        for some in numbers.chunks(NUMBERS_OF_RECORD) {
            self.keeper.ledger.record(kind, &payload(some), ctx);
        }
    }

    /// Records what was found to be unreadable.
    pub(super) fn record_unreadable(&mut self, ctx: &mut Context<'_>) {
        let rows = self.map.take_newly_unreadable();
        self.record(RECORD_UNREADABLE, &rows, ctx);
    }

    /// Begins to clear regions that are due: their tables are written, then everything is flushed.
    pub(super) fn clear_regions(&mut self, ctx: &mut Context<'_>) {
        let may_clear = matches!(self.keeper.life, Life::Up | Life::Draining)
            && self.upkeep.clearing.is_none()
            && self.keeper.ledger.failure().is_none()
            && self.keeper.ledger.has_room()
            && !ctx.is_read_only();
        if !may_clear || !self.regions.can_clear() {
            return;
        }
        let all = self.keeper.life == Life::Draining;
        let regions = self.regions.begin_clearing(ctx.now(), all);
        if regions.is_empty() {
            return;
        }
        // Of one that was marked and not written yet the table may be away.
        if !self.hold_tables(regions.iter().copied()) {
            self.regions.not_cleared();
            return self.read_tables(ctx);
        }
        let clearing = Clearing { regions: regions.clone(), ..Clearing::default() };
        self.upkeep.clearing = Some(Clearing { outstanding: 1, ..clearing });
        regions.iter().for_each(|region| self.write_table(*region, ctx));
        self.clearing_step_ended(Ok(()), ctx);
    }

    fn write_table(&mut self, region: u64, ctx: &mut Context<'_>) {
        let sums = self.map.sums.as_mut().expect("tables");
        let rows = sums.shape().table_of(region);
        let pages = ctx.allocate(rows.blocks);
        sums.seal(region, pages, ctx);
        let operation = (Operation::WRITE, Cause::Metadata);
        let job = self.rows.jobs.begin_own(Word::Clearing.number(), operation, pages);
        let task = self.rows.new_write(job);
        self.rows.set_rows(task, rows);
        for column in 0..self.rows.members.columns() {
            self.rows.put(task, column, rows.start.0, Some(pages), ctx);
        }
        ctx.release(pages);
        self.upkeep.clearing.as_mut().expect("regions to clear").outstanding += 1;
        self.rows.start(task, None, &mut self.map, ctx);
        self.rows.jobs.end_part(job, Ok(()));
    }

    /// A table was written, or everything was flushed behind them.
    pub(super) fn clearing_step_ended(
        &mut self,
        result: Result<(), IoError>,
        ctx: &mut Context<'_>,
    ) {
        let clearing = self.upkeep.clearing.as_mut().expect("regions to clear");
        clearing.outstanding -= 1;
        clearing.has_failed |= result.is_err();
        if clearing.outstanding > 0 {
            return;
        }
        let is_early = ctx.is_planted(PlantedBug::ArrayRegionClearedEarly);
        if !clearing.has_failed && !clearing.is_flushing && !is_early {
            (clearing.is_flushing, clearing.outstanding) = (true, 1);
            return self.flush_members(Word::Clearing, ctx);
        }
        let clearing = self.upkeep.clearing.take().expect("regions to clear");
        let can_record = self.keeper.ledger.failure().is_none();
        if clearing.has_failed || !can_record {
            return self.regions.not_cleared();
        }
        let cleared = self.regions.cleared(&clearing.regions);
        self.record(RECORD_CLEARED, &cleared, ctx);
        for region in &cleared {
            if self.upkeep.held.remove(region)
                && let Some(sums) = &mut self.map.sums
            {
                sums.release(*region);
            }
        }
    }

    /// Flushes every member that is there; the end comes with the word.
    pub(super) fn flush_members(&mut self, word: Word, ctx: &mut Context<'_>) {
        let operation = (Operation::Flush, Cause::Metadata);
        let job = self.rows.jobs.begin_own(word.number(), operation, BufferSlice::EMPTY);
        self.rows.flush(job, &self.map, ctx);
        self.rows.jobs.end_part(job, Ok(()));
    }

    /// Records from time to time how far a rebuild has come, and that it is done.
    pub(super) fn record_rebuild(&mut self, ctx: &mut Context<'_>) {
        match self.rebuilds.next_flush(&self.rows, &self.keeper, &self.map) {
            None => {}
            Some(FlushFor::Whole) => self.flush_members(Word::Whole, ctx),
            Some(FlushFor::Progress) => match ctx.is_planted(PlantedBug::ArrayCursorAheadOfData) {
                true => self.progress_flushed(Ok(()), ctx),
                false => self.flush_members(Word::Progress, ctx),
            },
        }
    }

    /// What was rebuilt is durable.
    pub(super) fn progress_flushed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        self.rebuilds.progress_flushed(result, &self.rows, &mut self.keeper, ctx);
    }

    /// All rows of a member are durable there.
    pub(super) fn whole_flushed(&mut self, result: Result<(), IoError>, ctx: &mut Context<'_>) {
        let Raid1 { rebuilds, rows, map, keeper, .. } = self;
        if rebuilds.whole_flushed(result, TOKEN_WHOLE, (rows, map), keeper, ctx) {
            self.whole_recorded(ctx);
        }
    }

    /// That a member has all of its rows is durable.
    pub(super) fn whole_recorded(&mut self, ctx: &mut Context<'_>) {
        self.rebuilds.whole_recorded(&mut self.rows, &mut self.map, ctx);
    }
}
