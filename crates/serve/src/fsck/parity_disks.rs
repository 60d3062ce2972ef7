//! The members of a parity array, as far as they are there and have their rows.

use super::array_member::Has;
use super::member::{BLOCK, Member};
use super::parity_array::ParityArrayState;
use super::parity_doubt::Source;
use super::ranges::Ranges;
use imbrex_core::array::raid4smr::Raid4SmrShape;

/// The members of an array by column.
pub(super) struct ParityDisks {
    shape: Raid4SmrShape,
    /// None of one that is not there or does not count.
    members: Vec<Option<Member>>,
    has: Vec<Has>,
    /// By column whether a spare stands for it.
    on_spare: Vec<bool>,
    /// Regions that a member which was away has missed.
    missed: Ranges,
}

impl ParityDisks {
    pub fn new(state: &ParityArrayState, members: Vec<Option<Member>>) -> ParityDisks {
        let has = state.members.iter().map(|member| member.has).collect();
        let on_spare = (0..).zip(&state.members).map(|(column, it)| it.port != column).collect();
        let (shape, missed) = (state.shape.clone(), state.missed.clone());
        ParityDisks { shape, members, has, on_spare, missed }
    }

    /// The member of a column, if that is there.
    pub fn member(&self, column: usize) -> Option<&Member> {
        self.members[column].as_ref()
    }

    /// True of one that is there and has something, or will have.
    pub fn is_present(&self, column: usize) -> bool {
        let has_nothing = matches!(self.has[column], Has::Out { .. } | Has::Blank);
        self.members[column].is_some() && !has_nothing
    }

    /// True of one that is there and has all rows.
    pub fn has_all(&self, column: usize) -> bool {
        self.members[column].is_some() && self.has[column] == Has::All
    }

    /// True of a row that a column has.
    pub fn has_row(&self, column: usize, row: u64) -> bool {
        let is_given = match self.has[column] {
            Has::All => true,
            Has::Out { .. } | Has::Blank => false,
            Has::Rebuilt(before) => row < before,
            Has::Returned(before) => {
                row < before || !self.missed.contains(row / self.shape.layout.region_rows)
            }
        };
        is_given && self.members[column].is_some()
    }

    /// The block of its member where a row of a column lies.
    pub fn place(&self, column: usize, row: u64) -> u64 {
        match column < self.shape.bands.homes() {
            // Its bands lie behind the journal of a spare.
            true if self.on_spare[column] => {
                self.shape.layout.first_block() + self.shape.bands.place_of(column, row).0.0
            }
            true => self.shape.bands.place_of(column, row).0.0,
            // Behind all others lie the rows of the tables.
            false => {
                let tables = self.shape.bands.rows().max(self.shape.slots);
                match row.checked_sub(tables) {
                    Some(table) => self.shape.layout.tables().start.0 + table,
                    None => self.shape.layout.first_block() + row,
                }
            }
        }
    }

    /// Reads a row of a column.
    pub fn read(&self, column: usize, row: u64, into: &mut Vec<u8>) -> Result<(), String> {
        self.read_at(column, self.place(column, row), into)
    }

    /// Reads a block of the log.
    pub fn read_log(&self, at: u64, into: &mut Vec<u8>) -> Result<(), String> {
        self.read_at(self.shape.bands.homes() + 1, at, into)
    }

    /// The sum of blocks of a row.
    pub fn sum_of(&self, sources: &[Source], row: u64, into: &mut Vec<u8>) -> Result<(), String> {
        let mut bytes = Vec::new();
        into.clear();
        into.resize(BLOCK, 0);
        for source in sources {
            match source {
                Source::Log(at) => self.read_log(*at, &mut bytes)?,
                Source::Column(column) => self.read(*column, row, &mut bytes)?,
            }
            into.iter_mut().zip(&bytes).for_each(|(sum, byte)| *sum ^= byte);
        }
        Ok(())
    }

    fn read_at(&self, column: usize, at: u64, into: &mut Vec<u8>) -> Result<(), String> {
        let member = self.members[column].as_ref().ok_or("its member is not there")?;
        member.read(at, 1, into).map_err(|error| format!("{}: {error}", member.name()))
    }
}
