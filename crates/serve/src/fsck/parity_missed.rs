//! What a member of a parity array that was away has missed.

use super::array_member::Has;
use super::parity_array::ParityArrayState;
use super::parity_records::{Said, Write};
use super::ranges::Ranges;

impl ParityArrayState {
    /// The column and the row of each block of a write, with where band rows lay then.
    pub(super) fn rows_of_write(&self, write: &Write, band_rows: &[u64]) -> Vec<(usize, u64)> {
        let (homes, band_blocks) = (self.homes() as u64, self.shape.bands.band_blocks());
        let blocks = write.blocks.iter().map(|block| match block.slot {
            Some(slot) => (self.data(), slot),
            None => {
                let row = block.place / homes;
                let lies = band_rows[(row / band_blocks) as usize];
                ((block.place % homes) as usize, lies * band_blocks + row % band_blocks)
            }
        });
        blocks.collect()
    }

    /// The regions that a member which is away has missed: those of the checkpoint, and what the records speak of. The
    /// records are not taken in yet.
    pub(super) fn regions_missed(&self) -> Ranges {
        let mut missed = self.missed.clone();
        let is_away = |column: &usize| {
            matches!(self.members[*column].has, Has::Out { .. } | Has::Returned(_))
        };
        let Some(away) = (0..=self.parity()).find(is_away) else { return missed };
        let region_rows = self.shape.layout.region_rows;
        let mut miss = |first: u64, end: u64| {
            missed.insert(first / region_rows, (end - 1) / region_rows + 1);
        };
        let (band_blocks, table_rows) =
            (self.shape.bands.band_blocks(), self.shape.layout.table_rows);
        let mut band_rows = self.band_rows.clone();
        for (_, said) in &self.said {
            match said {
                Said::Begun { to, .. } if *to <= band_rows.len() as u64 => {
                    let (first, end) = (to * band_blocks, (to + 1) * band_blocks);
                    miss(first, end);
                    let tables = first / table_rows..=(end - 1) / table_rows;
                    tables.for_each(|it| miss(self.table_row(it), self.table_row(it) + 1));
                }
                Said::Collected { band_row, to, .. } if *to <= band_rows.len() as u64 => {
                    band_rows[*band_row as usize] = *to;
                }
                Said::Write(write) => {
                    let rows = self.rows_of_write(write, &band_rows).into_iter();
                    let its = rows.filter(|(it, _)| *it == away || away == self.parity());
                    its.for_each(|(_, row)| miss(row, row + 1));
                }
                _ => {}
            }
        }
        missed
    }
}
