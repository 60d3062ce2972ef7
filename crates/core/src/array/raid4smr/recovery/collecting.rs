//! A collection in the middle of which the power went, as its records tell it.

use super::spare_rows::SpareRow;
use crate::array::raid4smr::contents::Contents;
use crate::array::raid4smr::records::Said;
use crate::array::{Columns, RowMap};
use crate::extent::Extent;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// How far the parity of the spare band row has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    /// The homes are in it, or have been taken out.
    #[default]
    Begun,
    /// The homes are not in it.
    Cleared,
    /// The homes have what they will have, and have been added to it or not.
    Adding,
}

/// What the records have said of the collection that began last, if it is not done.
#[derive(Debug, Default)]
pub struct Collecting {
    /// Where the band row goes.
    to: Option<u64>,
    phase: Phase,
    /// Places that the homes will have there.
    held: Vec<u64>,
    /// What slots in these rows had when it began.
    slots: Vec<(u64, u32)>,
    /// What was written to slots since the checkpoint, by row, the newest last.
    written: BTreeMap<u64, Vec<u32>>,
}

impl Collecting {
    /// Takes a record of a collection.
    pub fn take(&mut self, said: &Said) {
        match said {
            Said::Begun { to, .. } => {
                (self.to, self.phase) = (Some(*to), Phase::Begun);
                self.held.clear();
                self.slots.clear();
            }
            Said::Slots { first, sums } => {
                self.slots.extend((*first..).zip(sums.iter().copied()));
            }
            Said::Held { .. } => self.held.extend(said.places_held()),
            Said::Cleared => self.phase = Phase::Cleared,
            Said::Adding => self.phase = Phase::Adding,
            _ => {}
        }
    }

    /// A slot has something else since.
    pub fn wrote_slot(&mut self, row: u64, sum: u32) {
        self.written.entry(row).or_default().push(sum);
    }

    /// It is done. Returns the places that the homes have there.
    pub fn end(&mut self) -> Vec<u64> {
        self.to = None;
        core::mem::take(&mut self.held)
    }

    /// The band row of the homes that it was to go to, if it is not done.
    pub fn to(&self) -> Option<u64> {
        self.to
    }

    /// What is known of the rows of that band row, of which the contents are those before it. None where the
    /// records speak of other rows.
    pub fn spare_rows(&mut self, rows: Extent, contents: &Contents) -> Option<Vec<SpareRow>> {
        let (data, homes) = (contents.data(), contents.data() as u64);
        let mut spare = vec![SpareRow::default(); rows.blocks.0 as usize];
        for (row, known) in (rows.start.0..).zip(&mut spare) {
            if self.phase == Phase::Begun {
                known.homes = contents.held(row).without(Columns::of(data));
            }
            known.sums = self.written.remove(&row).unwrap_or_default();
            known.sums.reverse();
        }
        for (row, sum) in &self.slots {
            spare.get_mut(*row as usize)?.sums.push(*sum);
        }
        for place in self.held.iter().filter(|_| self.phase == Phase::Adding) {
            let known = spare.get_mut((place / homes) as usize)?;
            known.homes = known.homes.or(Columns::of((place % homes) as usize));
        }
        Some(spare)
    }
}
