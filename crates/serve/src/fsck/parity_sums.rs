//! What the blocks of a parity array must be by their checksums.

use super::findings::Findings;
use super::parity_array::ParityArrayState;
use super::parity_disks::ParityDisks;
use super::parity_words::NewWords;
use super::tables::Page;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::NOTHING;
use std::cell::RefCell;

const TABLE: &str = "table of checksums";

/// The checksums of an array.
pub(super) struct ParitySums {
    set: Uuid,
    new: NewWords,
    last: RefCell<Option<(u64, Vec<u32>)>>,
}

impl ParitySums {
    pub fn new(set: Uuid, new: NewWords) -> ParitySums {
        ParitySums { set, new, last: RefCell::default() }
    }

    fn page(&self, table: u64, state: &ParityArrayState) -> Page {
        let layout = &state.shape.layout;
        let start = layout.tables().start.0 + table;
        Page::of_table(self.set, (start, layout.table_rows * layout.row_words), 0)
    }

    /// The word of a block.
    pub fn word(
        &self,
        (column, row): (usize, u64),
        state: &ParityArrayState,
        disks: &ParityDisks,
    ) -> u32 {
        if let Some(word) = self.new.of(column, row) {
            return word;
        }
        let layout = &state.shape.layout;
        let table = row / layout.table_rows;
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(known, _)| *known != table) {
            *last = Some((table, self.words(table, state, disks)));
        }
        let at = row % layout.table_rows * layout.row_words + column as u64;
        last.as_ref().map_or(NOTHING, |(_, words)| words[at as usize])
    }

    /// The words of a table, of the first disk that can give it. Where none can, nothing is known.
    fn words(&self, table: u64, state: &ParityArrayState, disks: &ParityDisks) -> Vec<u32> {
        let page = self.page(table, state);
        let row = state.table_row(table);
        let there = [state.data(), state.parity()].into_iter().filter(|it| disks.has_row(*it, row));
        let members = there.filter_map(|column| disks.member(column));
        let mut found = members.filter_map(|member| page.read(member).ok());
        let words = found.next().filter(|_| state.tables.contains(table));
        words.unwrap_or_else(|| vec![NOTHING; page.words as usize])
    }

    /// Reads the tables of the data disk and of the parity disk. Where no record is left they must be the same.
    pub fn check_tables(&self, state: &ParityArrayState, disks: &ParityDisks, into: &mut Findings) {
        for table in state.tables.runs().flat_map(|(start, end)| start..end) {
            let (page, row) = (self.page(table, state), state.table_row(table));
            let mut first: Option<(&str, Vec<u32>)> = None;
            for column in [state.data(), state.parity()] {
                let Some(member) = disks.member(column).filter(|_| disks.has_row(column, row))
                else {
                    continue;
                };
                match (page.read(member), &first) {
                    (Err(problem), _) => {
                        into.damage(member.name(), TABLE, format!("table {table}: {problem}"));
                    }
                    (Ok(words), None) => first = Some((member.name(), words)),
                    (Ok(words), Some((other, known))) => {
                        if words != *known && !state.has_records {
                            let words = format!("table {table}: it differs from that of {other}");
                            into.damage(member.name(), TABLE, words);
                        }
                    }
                }
            }
        }
    }
}
