//! What the members hold, as it is on the disks.

use super::bands::HomeBands;
use super::layout::Raid4SmrLayout;
use super::row_sums::RowSums;
use super::unreadable::{UNREADABLE_MAX, Unreadable};
use crate::array::bad_rows::BadRows;
use crate::array::bits::Bits;
use crate::array::plan::{Method, Segment, add_segment};
use crate::array::{Columns, Redundancy, RowMap};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::saved::Saved;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::{BLOCK_BYTES, Lba};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Which blocks of the homes and of the data disk are in the parity. A block of a home is from its first
/// write on, until its band is cleared to be written anew; a slot is from its first write on, in use or not.
#[derive(Debug, Saved)]
pub struct Contents {
    #[saved(keep)]
    bands: HomeBands,
    /// For each home by row, what was written since the band was cleared.
    homes: Vec<Bits>,
    slots: Bits,
    slot_rows: u64,
    /// Where the rows of the data disk and of the parity disk begin. On a spare, which has a journal as they have, the
    /// bands of a home begin there too.
    first_block: u64,
    /// Columns for which a spare stands.
    on_spares: Columns,
    /// Where the tables of checksums begin there.
    first_table_block: u64,
    /// What the blocks must be; none where nothing is kept.
    pub sums: Option<RowSums>,
    /// Places whose blocks no member can give.
    pub unreadable: Unreadable,
    /// Blocks by column and row that were there until they were found to be unreadable.
    lost: BTreeSet<(usize, u64)>,
    /// Those of them that are to be listed.
    newly_unreadable: Vec<(usize, u64)>,
    /// Bands, by where they lie, of which a home has a wrong block.
    to_rewrite: BTreeSet<u64>,
    scratch: Vec<u32>,
    /// What will hold of rows of homes when their parity has changed.
    prepared: Vec<bool>,
}

impl Contents {
    /// Nothing written, over homes and so many slots.
    pub fn new(bands: HomeBands, homes: usize, slot_rows: u64) -> Contents {
        let homes = core::iter::repeat_with(Bits::default).take(homes).collect();
        Contents {
            bands,
            homes,
            slots: Bits::default(),
            slot_rows,
            first_block: 0,
            on_spares: Columns::NONE,
            first_table_block: 0,
            sums: None,
            unreadable: Unreadable::default(),
            lost: BTreeSet::new(),
            newly_unreadable: Vec::new(),
            to_rewrite: BTreeSet::new(),
            scratch: Vec::new(),
            prepared: Vec::new(),
        }
    }

    /// What they hold is kept as a layout says, with tables of checksums of which so many bytes are in memory.
    pub fn keep(&mut self, layout: &Raid4SmrLayout, memory_bytes: u64) {
        self.first_block = layout.first_block();
        self.first_table_block = layout.tables().start.0;
        let first_row = self.bands.rows().max(self.slot_rows);
        self.sums = Some(RowSums::new(layout, first_row, memory_bytes));
    }

    /// Adds what is in the parity to a checkpoint.
    pub fn put(&self, words: &mut StateWriter) {
        self.homes.iter().chain([&self.slots]).for_each(|bits| bits.put(words));
        if let Some(sums) = &self.sums {
            sums.written().put(words);
            self.unreadable.put(words);
        }
    }

    /// Takes back from a checkpoint what is in the parity.
    ///
    /// # Errors
    /// When it is not that of these members.
    pub fn take(&mut self, words: &mut StateReader<'_>) -> Result<(), StateError> {
        for home in &mut self.homes {
            *home = Bits::take(self.bands.rows(), words)?;
        }
        self.slots = Bits::take(self.slot_rows, words)?;
        if let Some(sums) = &mut self.sums {
            sums.restore_written(Bits::take(sums.rows().blocks.0, words)?);
            self.unreadable = Unreadable::take(words)?;
        }
        Ok(())
    }

    /// A block of a home or of the data disk is in the parity, or is not.
    pub fn hold(&mut self, column: usize, row: u64, is_held: bool) {
        let data = self.data();
        let bits = if column == data { &mut self.slots } else { &mut self.homes[column] };
        bits.set(row, is_held);
    }

    /// Nothing of the homes in some rows is in the parity.
    pub fn clear_homes(&mut self, rows: Extent) {
        for home in &mut self.homes {
            (rows.start.0..rows.end().0).for_each(|row| home.set(row, false));
        }
    }

    /// Where the bands lie.
    pub fn bands(&self) -> &HomeBands {
        &self.bands
    }

    /// Slots of the data disk.
    pub fn slot_rows(&self) -> u64 {
        self.slot_rows
    }

    /// Blocks of a column were written: they are not lost any more.
    fn found(&mut self, column: usize, rows: Extent) {
        self.lost.retain(|(of, row)| *of != column || !rows.contains(Lba(*row)));
    }

    /// A block that was found to be unreadable is one that the host does not have any more.
    pub fn is_not_missed(&mut self, column: usize, row: u64) {
        self.lost.remove(&(column, row));
    }

    /// Bands, by where they lie, that were found to have a wrong block at a home since the last call.
    pub fn take_to_rewrite(&mut self) -> BTreeSet<u64> {
        core::mem::take(&mut self.to_rewrite)
    }

    /// Blocks, by column and row, that were found to be unreadable since the last call.
    pub fn take_newly_unreadable(&mut self) -> Vec<(usize, u64)> {
        core::mem::take(&mut self.newly_unreadable)
    }

    /// The rows of the tables of checksums, behind all others.
    fn table_rows(&self) -> Extent {
        let first_row = self.bands.rows().max(self.slot_rows);
        self.sums.as_ref().map_or(Extent::new(first_row, 0), RowSums::rows)
    }

    /// True when the table in a row was written.
    fn has_table(&self, row: u64) -> bool {
        self.sums.as_ref().is_some_and(|sums| {
            let at = row.checked_sub(sums.rows().start.0);
            at.is_some_and(|at| sums.written().get(at))
        })
    }

    /// The first row from `row` on with a table that was written.
    fn next_table(&self, row: u64) -> Option<u64> {
        let sums = self.sums.as_ref()?;
        let first = sums.rows().start.0;
        Some(first + sums.written().next_set(row.saturating_sub(first))?)
    }

    /// The column of the data disk.
    pub fn data(&self) -> usize {
        self.homes.len()
    }

    /// The column of the parity disk.
    pub fn parity(&self) -> usize {
        self.homes.len() + 1
    }

    /// True when a home has something in a row.
    #[inline]
    pub fn has_home(&self, home: usize, row: u64) -> bool {
        self.homes[home].get(row)
    }

    /// True when some home has something in a row of these.
    pub fn are_in_use(&self, rows: Extent) -> bool {
        self.homes
            .iter()
            .any(|home| home.next_set(rows.start.0).is_some_and(|it| it < rows.end().0))
    }

    /// How the parity of a row changes: the homes are taken out of it, or what is prepared is added, the sum
    /// of the homes being new data of the first. None where it stays.
    fn change_of(&self, rows: Extent, bad: Columns, row: u64) -> Option<Segment> {
        let homes = self.homes.len();
        let first = (row - rows.start.0) as usize * homes;
        let parity = self.parity();
        let held = self.held(row);
        let slot = held.and(Columns::of(self.data()));
        let of_parity = if held.is_empty() { Columns::NONE } else { Columns::of(parity) };
        let is_bad = |columns: Columns| !columns.and(bad).is_empty();
        let (written, read, method) = match self.prepared.get(first..first + homes) {
            // What the slot had is the sum of all others.
            None if is_bad(slot) => {
                (Columns::NONE, held.without(slot).or(of_parity), Method::Reconstruct)
            }
            None => (Columns::NONE, slot, Method::Reconstruct),
            Some(_) if is_bad(of_parity) => (Columns::of(0), slot, Method::Reconstruct),
            Some(_) => (Columns::of(0), of_parity, Method::Modify),
        };
        let method = if is_bad(read) { Method::Impossible } else { method };
        let changes = match self.prepared.get(first..first + homes) {
            None => self.homes.iter().any(|home| home.get(row)),
            Some(prepared) => prepared.contains(&true),
        };
        let rows = Extent::new(row, 1);
        changes.then_some(Segment { rows, parity, written, read, method })
    }

    /// Prepares what the homes will have in a band row, row by row, home by home; nothing where it is empty.
    pub fn prepare(&mut self, held: Vec<bool>) {
        self.prepared = held;
    }
}

impl RowMap for Contents {
    fn columns(&self) -> usize {
        self.homes.len() + 2
    }

    fn redundancy(&self) -> Redundancy {
        Redundancy::Parity
    }

    fn rows_of(&self, column: usize) -> u64 {
        match column {
            home if home < self.homes.len() => self.bands.rows(),
            data if data == self.data() && self.sums.is_none() => self.slot_rows,
            _ => self.table_rows().end().0,
        }
    }

    fn end_of_part(&self, row: u64) -> u64 {
        let tables = self.table_rows();
        if row < tables.start.0 { tables.start.0 } else { tables.end().0 }
    }

    fn is_noted(&self, rows: Extent) -> bool {
        rows.start < self.table_rows().start
    }

    fn parity_of(&self, _row: u64) -> usize {
        self.parity()
    }

    fn held(&self, row: u64) -> Columns {
        let homes = self.homes.iter().enumerate();
        let homes = homes.filter(|(_, home)| home.get(row));
        let slot = (self.slots.get(row) || self.has_table(row)).then_some(self.data());
        let all = homes.map(|(home, _)| home).chain(slot);
        all.fold(Columns::NONE, |all, column| all.or(Columns::of(column)))
    }

    fn place_of(&self, column: usize, row: u64) -> (Lba, u64) {
        match column < self.homes.len() {
            true if self.on_spares.has(column) => {
                let (start, run) = self.bands.place_of(column, row);
                (Lba(self.first_block + start.0), run)
            }
            true => self.bands.place_of(column, row),
            false => match row.checked_sub(self.table_rows().start.0) {
                Some(table) if self.sums.is_some() => {
                    (Lba(self.first_table_block + table), u64::MAX)
                }
                _ => {
                    (Lba(self.first_block + row), self.end_of_part(row).saturating_sub(row).max(1))
                }
            },
        }
    }

    fn spare_stepped_in(&mut self, column: usize, is_spare: bool) {
        self.on_spares = match is_spare {
            true => self.on_spares.or(Columns::of(column)),
            false => self.on_spares.without(Columns::of(column)),
        };
    }

    fn next_held(&self, column: usize, row: u64) -> Option<u64> {
        match column {
            home if home < self.homes.len() => {
                let next = self.homes[home].next_set(row)?;
                let band = next / self.bands.band_blocks();
                // A zone is written from its first block on, whatever is held of it.
                let is_zone = self.bands.zone_of(home, band).is_some();
                Some(if is_zone { row.max(band * self.bands.band_blocks()) } else { next })
            }
            data if data == self.data() => {
                self.slots.next_set(row).or_else(|| self.next_table(row))
            }
            _ => {
                let all = self.homes.iter().chain([&self.slots]);
                all.filter_map(|bits| bits.next_set(row)).min().or_else(|| self.next_table(row))
            }
        }
    }

    fn end_of_held(&self, column: usize) -> u64 {
        if column >= self.data()
            && let Some(end) =
                self.sums.as_ref().map(|sums| sums.written().end()).filter(|it| *it > 0)
        {
            return (self.table_rows().start.0 + end).min(self.rows_of(column));
        }
        let all = self.homes.iter().chain([&self.slots]).map(Bits::end);
        // The parity disk, behind them all, has as much as the longest.
        let end = all.clone().nth(column).or(all.max()).unwrap_or_default();
        end.min(self.rows_of(column))
    }

    fn zone_from(&self, column: usize, row: u64) -> Option<Extent> {
        let band_blocks = self.bands.band_blocks();
        let is_first = column < self.homes.len() && row.is_multiple_of(band_blocks);
        is_first.then(|| self.bands.zone_of(column, row / band_blocks)).flatten()
    }

    fn wrote(&mut self, column: usize, rows: Extent, data: BufferSlice, ctx: &Context<'_>) {
        if !self.is_noted(rows) {
            let sums = self.sums.iter_mut();
            return sums
                .for_each(|sums| (rows.start.0..rows.end().0).for_each(|row| sums.wrote(row)));
        }
        self.sums.iter_mut().for_each(|sums| sums.set_all(column, rows, data, ctx));
        self.found(column, rows);
        let bits = match column {
            home if home < self.homes.len() => &mut self.homes[home],
            _ => &mut self.slots,
        };
        for row in rows.start.0..rows.end().0 {
            bits.set(row, true);
        }
    }

    fn is_unsure(&mut self, rows: Extent) {
        self.sums.iter_mut().for_each(|sums| sums.forget(rows));
    }

    fn hold_sums(&mut self, rows: Extent) -> bool {
        self.sums.as_mut().is_none_or(|sums| sums.hold(rows))
    }

    fn release_sums(&mut self, rows: Extent) {
        self.sums.iter_mut().for_each(|sums| sums.release(rows));
    }

    fn find_wrong(
        &mut self,
        column: usize,
        rows: Extent,
        data: BufferSlice,
        ctx: &Context<'_>,
        wrong: &mut dyn FnMut(u64),
    ) {
        let Some(sums) = &self.sums else { return };
        if !self.is_noted(rows) {
            let Some(bytes) = ctx.metadata(data) else { return };
            for (row, block) in (rows.start.0..).zip(bytes.chunks_exact(BLOCK_BYTES as usize)) {
                if self.has_table(row) && !sums.is_table(row, block, ctx) {
                    wrong(row);
                }
            }
            return;
        }
        if column == self.parity() {
            return;
        }
        let mut found = core::mem::take(&mut self.scratch);
        found.clear();
        ctx.checksum(data, &mut found);
        for (row, sum) in (rows.start.0..).zip(&found) {
            if self.held(row).has(column) && !sums.is_right(column, row, *sum) {
                wrong(row);
            }
        }
        self.scratch = found;
    }

    fn is_lost(&self, column: usize, row: u64) -> bool {
        !self.lost.is_empty() && self.lost.contains(&(column, row))
    }

    fn repairs_in_place(&mut self, column: usize, row: u64) -> bool {
        if column < self.data() {
            self.to_rewrite.insert(row / self.bands.band_blocks());
        }
        column >= self.data()
    }

    fn list_unreadable(&mut self, column: usize, rows: Extent, _: &mut Context<'_>) -> bool {
        let is_data = column < self.parity() && self.is_noted(rows);
        let room = UNREADABLE_MAX as u64 - self.unreadable.len();
        if self.sums.is_none() || self.newly_unreadable.len() as u64 + rows.blocks.0 > room {
            return false;
        }
        for row in rows.start.0..rows.end().0 {
            match is_data {
                true => {
                    self.hold(column, row, false);
                    self.lost.insert((column, row));
                    self.newly_unreadable.push((column, row));
                }
                // A table that cannot be read says nothing.
                false => self.sums.iter_mut().for_each(|sums| sums.lost(row)),
            }
        }
        true
    }

    fn plan_own(&self, rows: Extent, bad: &BadRows, segments: &mut Vec<Segment>) {
        let all = rows.start.0..rows.end().0;
        for segment in all.filter_map(|row| self.change_of(rows, bad.at(row), row)) {
            add_segment(segments, segment);
        }
    }

    fn settled(&mut self, rows: Extent) {
        let prepared = core::mem::take(&mut self.prepared);
        let homes = self.homes.len();
        (0..homes).for_each(|home| self.found(home, rows));
        for (at, row) in (rows.start.0..rows.end().0).enumerate() {
            for (index, home) in self.homes.iter_mut().enumerate() {
                home.set(row, prepared.get(at * homes + index).copied().unwrap_or(false));
            }
        }
    }
}
