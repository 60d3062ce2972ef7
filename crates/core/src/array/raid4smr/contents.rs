//! What the members hold, as it is on the disks.

use super::bands::HomeBands;
use crate::array::bits::Bits;
use crate::array::plan::{Method, Segment, add_segment};
use crate::array::{Columns, Redundancy, RowMap};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::layer::Context;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::vec::Vec;

/// Which blocks of the homes and of the data disk are in the parity. A block of a home is from its first
/// write on, until its band is cleared to be written anew; a slot is from its first write on, in use or not.
#[derive(Debug)]
pub struct Contents {
    bands: HomeBands,
    /// For each home by row, what was written since the band was cleared.
    homes: Vec<Bits>,
    slots: Bits,
    slot_rows: u64,
    /// Where the rows of the data disk and of the parity disk begin.
    first_block: u64,
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
            prepared: Vec::new(),
        }
    }

    /// The rows of the data disk and the parity disk begin at this block.
    pub fn begin_at(&mut self, first_block: u64) {
        self.first_block = first_block;
    }

    /// Adds what is in the parity to a checkpoint.
    pub fn put(&self, words: &mut StateWriter) {
        self.homes.iter().chain([&self.slots]).for_each(|bits| bits.put(words));
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
    fn change_of(&self, rows: Extent, row: u64) -> Option<Segment> {
        let homes = self.homes.len();
        let first = (row - rows.start.0) as usize * homes;
        let parity = self.parity();
        let held = self.held(row);
        let (written, read, method) = match self.prepared.get(first..first + homes) {
            None => (Columns::NONE, held.and(Columns::of(self.data())), Method::Reconstruct),
            Some(_) if held.is_empty() => (Columns::of(0), Columns::NONE, Method::Modify),
            Some(_) => (Columns::of(0), Columns::of(parity), Method::Modify),
        };
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
            data if data == self.data() => self.slot_rows,
            _ => self.bands.rows().max(self.slot_rows),
        }
    }

    fn parity_of(&self, _row: u64) -> usize {
        self.parity()
    }

    fn held(&self, row: u64) -> Columns {
        let homes = self.homes.iter().enumerate();
        let homes = homes.filter(|(_, home)| home.get(row));
        let slot = self.slots.get(row).then_some(self.data());
        let all = homes.map(|(home, _)| home).chain(slot);
        all.fold(Columns::NONE, |all, column| all.or(Columns::of(column)))
    }

    fn place_of(&self, column: usize, row: u64) -> (Lba, u64) {
        match column < self.homes.len() {
            true => self.bands.place_of(column, row),
            false => (Lba(self.first_block + row), u64::MAX),
        }
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
            data if data == self.data() => self.slots.next_set(row),
            _ => {
                let all = self.homes.iter().chain([&self.slots]);
                all.filter_map(|bits| bits.next_set(row)).min()
            }
        }
    }

    fn end_of_held(&self, column: usize) -> u64 {
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

    fn wrote(&mut self, column: usize, rows: Extent, _: BufferSlice, _: &Context<'_>) {
        let bits = match column {
            home if home < self.homes.len() => &mut self.homes[home],
            _ => &mut self.slots,
        };
        for row in rows.start.0..rows.end().0 {
            bits.set(row, true);
        }
    }

    fn plan_own(&self, rows: Extent, segments: &mut Vec<Segment>) {
        for segment in (rows.start.0..rows.end().0).filter_map(|row| self.change_of(rows, row)) {
            add_segment(segments, segment);
        }
    }

    fn settled(&mut self, rows: Extent) {
        let prepared = core::mem::take(&mut self.prepared);
        let homes = self.homes.len();
        for (at, row) in (rows.start.0..rows.end().0).enumerate() {
            for (index, home) in self.homes.iter_mut().enumerate() {
                home.set(row, prepared.get(at * homes + index).copied().unwrap_or(false));
            }
        }
    }
}
