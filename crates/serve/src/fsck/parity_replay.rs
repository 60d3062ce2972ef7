//! Takes the records of a parity array in, behind its checkpoint.

use super::array_member::ARRAY;
use super::findings::Findings;
use super::journal::record_in;
use super::parity_array::ParityArrayState;
use super::parity_disks::ParityDisks;
use super::parity_doubt::{Doubts, SpareRow};
use super::parity_records::{Said, Write};
use std::collections::{BTreeMap, BTreeSet};

/// Which change of a block is the last one, in runs of blocks: by its first block the end of a run and the change.
#[derive(Default)]
struct Stamps {
    runs: BTreeMap<u64, (u64, u64)>,
}

impl Stamps {
    /// Blocks from `first` to `end` were changed. Returns those of them of which this is the last change.
    fn change(&mut self, first: u64, end: u64, stamp: u64) -> Vec<(u64, u64)> {
        let before = self.runs.range(..first).next_back().map_or(first, |(start, _)| *start);
        let known: Vec<(u64, (u64, u64))> =
            self.runs.range(before..end.max(before)).map(|(start, run)| (*start, *run)).collect();
        let mut changed = Vec::new();
        let mut at = first;
        for (start, (to, of)) in known {
            if to <= first {
                continue;
            }
            if of <= stamp {
                // What sticks out of the change stays as it was.
                self.runs.remove(&start);
                if start < first {
                    self.runs.insert(start, (first, of));
                }
                if to > end {
                    self.runs.insert(end, (to, of));
                }
                continue;
            }
            if at < start {
                changed.push((at, start));
            }
            at = to;
        }
        if at < end {
            changed.push((at, end));
        }
        for (from, to) in &changed {
            self.runs.insert(*from, (*to, stamp));
        }
        changed
    }
}

/// The records as far as they were taken in.
struct Replay<'a> {
    state: &'a mut ParityArrayState,
    doubts: &'a Doubts,
    undone: BTreeSet<u64>,
    stamps: Stamps,
    /// By place the last change that has given it a slot.
    redirected_by: BTreeMap<u64, u64>,
    begun: Option<u64>,
    /// Band rows that were collected.
    collected: BTreeSet<u64>,
    held: Vec<u64>,
    phase: Phase,
    /// What slots in rows of the spare band row had when the collection began: the row in it, and the checksum.
    slots: Vec<(u64, u32)>,
    /// What was written to slots since the checkpoint, by row, the newest last.
    written: BTreeMap<u64, Vec<u32>>,
}

/// How far the parity of the spare band row has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The homes are in it, or have been taken out.
    Begun,
    /// The homes are not in it.
    Cleared,
    /// The homes have what they will have, and have been added to it or not.
    Adding,
}

/// Takes all records in. What cannot be is told of the member. Answers what was in doubt, with what becomes of it.
pub(super) fn replay(
    state: &mut ParityArrayState,
    disks: &ParityDisks,
    name: &str,
    into: &mut Findings,
) -> Doubts {
    let mut doubts = Doubts::find(state, disks);
    let said = std::mem::take(&mut state.said);
    let undone = said.iter().filter_map(|(_, said)| match said {
        Said::Undone(number) => Some(*number),
        _ => None,
    });
    let mut replay = Replay {
        undone: undone.collect(),
        state: &mut *state,
        doubts: &doubts,
        stamps: Stamps::default(),
        redirected_by: BTreeMap::new(),
        begun: None,
        collected: BTreeSet::new(),
        held: Vec::new(),
        phase: Phase::Begun,
        slots: Vec::new(),
        written: BTreeMap::new(),
    };
    for (index, (lsn, said)) in said.iter().enumerate() {
        if let Err(problem) = replay.record(index, said) {
            into.damage(name, "journal", format!("{}: {problem}", record_in(*lsn)));
        }
    }
    replay.list_unreadable();
    let band_blocks = replay.state.shape.bands.band_blocks();
    let uncollected = replay.begun.map(|to| (to * band_blocks, (to + 1) * band_blocks));
    let spare = uncollected.map(|rows| replay.spare_rows(rows)).unwrap_or_default();
    if let Some(rows) = uncollected {
        replay.clear_homes(rows);
    }
    state.is_collecting = uncollected.is_some();
    state.in_doubt = doubts.writes;
    let lost = doubts.decide(state, disks, (uncollected, &spare));
    for row in lost {
        let words = format!(
            "row {row} was being changed, and what a member that is missing had there is not known"
        );
        into.damage(name, ARRAY, words);
    }
    doubts
}

impl Replay<'_> {
    fn record(&mut self, index: usize, said: &Said) -> Result<(), String> {
        match said {
            Said::Write(write) => self.write(index, write),
            Said::Zeroed { stamp, first, end } => {
                for (from, to) in self.stamps.change(*first, *end, *stamp) {
                    for (place, last) in self.state.places_of(from, to) {
                        self.state.live.remove(place, last);
                        self.take_slots(place, last, |_| true);
                    }
                }
                Ok(())
            }
            Said::Begun { to, .. } => {
                self.must_be_spare(*to)?;
                self.begun = Some(*to);
                self.phase = Phase::Begun;
                self.held.clear();
                self.slots.clear();
                Ok(())
            }
            Said::Slots { first, sums } => {
                self.slots.extend((*first..).zip(sums.iter().copied()));
                Ok(())
            }
            Said::Cleared => {
                self.phase = Phase::Cleared;
                Ok(())
            }
            Said::Adding => {
                self.phase = Phase::Adding;
                Ok(())
            }
            Said::Held(places) => {
                self.held.extend(places);
                Ok(())
            }
            Said::Collected { band_row, to, stamp } => self.collected(*band_row, *to, *stamp),
            Said::Settled(_) | Said::Undone(_) => Ok(()),
        }
    }

    /// What is known of the rows of the spare band row, by row.
    fn spare_rows(&self, (start, end): (u64, u64)) -> BTreeMap<u64, SpareRow> {
        let mut rows: BTreeMap<u64, SpareRow> = BTreeMap::new();
        for row in start..end {
            let known = rows.entry(row).or_default();
            known.sums = self.written.get(&row).cloned().unwrap_or_default();
            known.sums.reverse();
            if self.phase == Phase::Begun {
                let homes = 0..self.state.homes();
                known.homes = homes.filter(|home| self.state.holds(*home, row)).collect();
            }
        }
        for (row, sum) in &self.slots {
            rows.entry(start + row).or_default().sums.push(*sum);
        }
        let homes = self.state.homes() as u64;
        for place in self.held.iter().filter(|_| self.phase == Phase::Adding) {
            let row = start + place / homes;
            rows.entry(row).or_default().homes.push((place % homes) as usize);
        }
        rows
    }

    fn must_be_spare(&self, to: u64) -> Result<(), String> {
        match self.state.spare {
            spare if spare == to => Ok(()),
            spare => Err(format!("it speaks of band row {to} of the homes, and {spare} is spare")),
        }
    }

    /// Takes the slots of some places from them.
    fn take_slots(&mut self, first: u64, end: u64, is_taken: impl Fn(u64) -> bool) {
        let slots = self.state.slots.range(first..end).map(|(place, _)| *place);
        let places: Vec<u64> = slots.filter(|place| is_taken(*place)).collect();
        for place in places {
            self.state.slots.remove(&place);
        }
    }

    fn clear_homes(&mut self, (start, end): (u64, u64)) {
        for home in 0..self.state.homes() {
            self.state.held[home].remove(start, end);
        }
    }

    fn write(&mut self, index: usize, write: &Write) -> Result<(), String> {
        let number = write.number;
        if number < self.state.next_write {
            return Err(format!("write {number} comes late"));
        }
        self.state.next_write = number.saturating_add(1);
        let stands = !self.undone.contains(&number);
        for (at, block) in write.blocks.iter().enumerate() {
            self.give_place(block.block, block.place)?;
            let is_there = self.doubts.has(index, at);
            let mut is_last = || {
                let changed = self.stamps.change(block.block, block.block + 1, block.stamp);
                !changed.is_empty()
            };
            if is_there && stands && is_last() {
                self.state.live.insert(block.place, block.place + 1);
                if let Some(slot) = block.slot {
                    self.redirected_by.insert(block.place, block.stamp);
                    self.state.slots.insert(block.place, slot);
                }
            }
            let (column, row) = match block.slot {
                Some(slot) => (self.state.data(), slot),
                None => self.state.home_of(block.place),
            };
            // Of one that is not there, what is in its place is believed.
            let sum = is_there.then_some(block.sum);
            self.state.words.set(column, row, sum);
            if is_there {
                self.state.held[column].insert(row, row + 1);
                if block.slot.is_some() {
                    self.written.entry(row).or_default().push(block.sum);
                }
            }
        }
        Ok(())
    }

    /// A block has a place from now on.
    fn give_place(&mut self, block: u64, place: u64) -> Result<(), String> {
        let state = &mut *self.state;
        match state.place_of(block) {
            Some(known) if known != place => {
                Err(format!("block {block} has place {known}, and it says {place}"))
            }
            Some(_) => Ok(()),
            None if state.given.contains(place) => {
                Err(format!("block {block} gets place {place}, which was given before"))
            }
            None => {
                state.places.insert(block, (1, place));
                state.given.insert(place, place + 1);
                // Records need not come in the order in which places were given.
                state.next_place = state.next_place.max(place + 1);
                Ok(())
            }
        }
    }

    fn collected(&mut self, band_row: u64, to: u64, stamp: u64) -> Result<(), String> {
        self.must_be_spare(to)?;
        let (homes, band_blocks) =
            (self.state.homes() as u64, self.state.shape.bands.band_blocks());
        let lies = &mut self.state.band_rows[band_row as usize];
        self.state.spare = std::mem::replace(lies, to);
        let places = self.state.band_row_places();
        let redirected_by = std::mem::take(&mut self.redirected_by);
        let is_before = |place| redirected_by.get(&place).is_none_or(|by| *by <= stamp);
        self.take_slots(band_row * places, (band_row + 1) * places, is_before);
        self.redirected_by = redirected_by;
        let rows = (to * band_blocks, (to + 1) * band_blocks);
        self.clear_homes(rows);
        // The collection has written them.
        let (data, table_rows) = (self.state.data(), self.state.shape.layout.table_rows);
        self.state.words.forget_homes(data, rows);
        self.state.tables.insert(rows.0 / table_rows, (rows.1 - 1) / table_rows + 1);
        for place in std::mem::take(&mut self.held) {
            let row = to * band_blocks + place / homes;
            self.state.held[(place % homes) as usize].insert(row, row + 1);
        }
        self.begun = None;
        self.collected.insert(band_row);
        Ok(())
    }

    /// Places of band rows that were collected have data, and lie nowhere, where no member could give it.
    fn list_unreadable(&mut self) {
        let places = self.state.band_row_places();
        for place in
            self.collected.iter().flat_map(|band_row| band_row * places..(band_row + 1) * places)
        {
            let (home, row) = self.state.home_of(place);
            let is_somewhere = self.state.slots.contains_key(&place) || self.state.holds(home, row);
            if self.state.live.contains(place) && !is_somewhere {
                self.state.unreadable.insert(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_each_block_is_known() {
        let mut stamps = Stamps::default();
        let mut plain = [0u64; 64];
        let mut state = 7u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let first = state >> 40 & 31;
            let (end, stamp) = (first + (state >> 50 & 15), 1 + (state >> 20 & 1023));
            let found = stamps.change(first, end, stamp);
            let found: Vec<u64> = found.iter().flat_map(|(from, to)| *from..*to).collect();
            let is_last = |block: &u64| plain[*block as usize] <= stamp;
            assert_eq!(found, (first..end).filter(is_last).collect::<Vec<_>>());
            found.iter().for_each(|block| plain[*block as usize] = stamp);
        }
    }
}
