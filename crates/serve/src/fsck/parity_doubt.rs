//! Blocks of a parity array that were perhaps being written when it went down: whether they are there, and what
//! their rows get. The next start finds the same, and mends it.

use super::parity_array::ParityArrayState;
use super::parity_disks::ParityDisks;
use super::parity_records::{Logged, Said, Write, WrittenBlock};
use super::ranges::Ranges;
use imbrex_core::crc;
use std::collections::{BTreeMap, BTreeSet};

/// A block that a row is the sum of, or a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A block of the log.
    Log(u64),
    /// What a column has in the row.
    Column(usize),
}

/// What the log says of a row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Fix {
    /// What its parity is the sum of.
    pub parity: Vec<Source>,
    /// The block of the log that its slot gets, and the checksum of that.
    pub slot: Option<(u64, u32)>,
    /// The last block for each home: the doubt, and its block of the log.
    homes: Vec<(Doubt, u64)>,
}

/// A block that was perhaps written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Doubt {
    /// The record, and where in it the block stands.
    of: (usize, usize),
    column: usize,
    row: u64,
}

/// The entry of the log of a record.
struct Entry<'a> {
    logged: &'a Logged,
    /// Its blocks of data, by where they stand in the record.
    blocks: Vec<usize>,
    /// It is what the record says, and so are those before it in its rows.
    is_whole: bool,
    /// It is not, and its write may have begun all the same: nothing else stood in its rows.
    may_have_begun: bool,
}

/// Where a block is, as the log says.
enum Verdict {
    NotInLog,
    Nowhere,
    InSlot,
    AtHome,
}

/// Blocks in doubt, and what was found of them.
#[derive(Default)]
pub(super) struct Doubts {
    /// Those that are not there, by record and where they stand in it.
    missing: BTreeSet<(usize, usize)>,
    all: Vec<Doubt>,
    /// Records whose writes have waited until it was durable that they come: something stood in their rows.
    have_waited: BTreeSet<usize>,
    /// Writes that they are of.
    pub writes: u64,
    /// Rows of which the parity may be anything.
    pub rows: Ranges,
    /// What rows get from the log, where a member is missing.
    pub fixes: BTreeMap<u64, Fix>,
}

impl Doubts {
    /// Finds the blocks in doubt, and reads what is in their places.
    pub fn find(state: &ParityArrayState, disks: &ParityDisks) -> Doubts {
        let mut doubts = Doubts::default();
        doubts.list(state);
        let lacks = (0..state.parity()).any(|column| !disks.has_all(column));
        match lacks && disks.is_present(state.parity()) {
            true => doubts.believe_log(state, disks),
            false => {
                let not_there = |it: &&Doubt| !is_there(it, block_of(state, it), disks);
                let missing = doubts.all.iter().filter(not_there).map(|it| it.of).collect();
                doubts.missing = missing;
                for doubt in &doubts.all {
                    doubts.rows.insert(doubt.row, doubt.row + 1);
                }
            }
        }
        doubts
    }

    /// True when a block of a record is on its member, or will be.
    pub fn has(&self, record: usize, block: usize) -> bool {
        !self.missing.contains(&(record, block))
    }

    /// Lists the blocks of writes that no record calls durable.
    fn list(&mut self, state: &ParityArrayState) {
        let settled = state.said.iter().filter_map(|(_, said)| match said {
            Said::Settled(before) => Some(*before),
            _ => None,
        });
        let settled = settled.max().unwrap_or(0);
        let mut band_rows = state.band_rows.clone();
        let mut standing = Standing { state, rows: BTreeMap::new(), collecting: Vec::new() };
        for (record, (_, said)) in state.said.iter().enumerate() {
            match said {
                Said::Begun { .. } => standing.collecting.clear(),
                Said::Held(places) => standing.collecting.extend(places),
                Said::Collected { band_row, to, .. } if *to <= band_rows.len() as u64 => {
                    band_rows[*band_row as usize] = *to;
                    standing.collected(*to);
                }
                Said::Write(write) => {
                    let is_settled = write.number < settled;
                    self.writes += u64::from(!is_settled);
                    let blocks = state.rows_of_write(write, &band_rows);
                    for (at, (column, row)) in blocks.iter().enumerate().filter(|_| !is_settled) {
                        let of = (record, at);
                        self.all.push(Doubt { of, column: *column, row: *row });
                    }
                    if standing.write(&blocks) {
                        self.have_waited.insert(record);
                    }
                }
                _ => {}
            }
        }
    }

    /// A member is missing: the log says what was written.
    fn believe_log(&mut self, state: &ParityArrayState, disks: &ParityDisks) {
        let entries = self.entries(state, disks);
        for doubt in &self.all {
            let Some((entry, in_entry)) = find(&entries, doubt) else { continue };
            if !entry.is_whole {
                continue;
            }
            let logged = entry.logged;
            let index = logged.index_of(doubt.row).unwrap_or(0);
            let data = logged.at + in_entry;
            let block = block_of(state, doubt);
            let fix = self.fixes.entry(doubt.row).or_default();
            fix.parity = vec![Source::Log(logged.at + entry.blocks.len() as u64 + index)];
            if block.slot.is_some() {
                fix.slot = Some((data, block.sum));
            } else {
                fix.homes.retain(|(other, _)| other.column != doubt.column);
                fix.homes.push((*doubt, data));
            }
        }
        for doubt in &self.all {
            let block = block_of(state, doubt);
            let is_readable = disks.has_row(doubt.column, doubt.row);
            let verdict = verdict(&entries, doubt, block, &self.fixes);
            // The write of an entry that is not whole has not begun: its rows are what they were.
            if matches!(verdict, Verdict::NotInLog) || self.fixes.contains_key(&doubt.row) {
                self.rows.insert(doubt.row, doubt.row + 1);
            }
            let is_there = match verdict {
                Verdict::AtHome if !is_readable => true,
                Verdict::AtHome | Verdict::NotInLog => is_there(doubt, block, disks),
                Verdict::InSlot => true,
                Verdict::Nowhere => false,
            };
            if !is_there {
                self.missing.insert(doubt.of);
            }
        }
    }

    /// The entries of the log that blocks in doubt have, by their records.
    fn entries<'a>(
        &self,
        state: &'a ParityArrayState,
        disks: &ParityDisks,
    ) -> BTreeMap<usize, Entry<'a>> {
        let mut entries: BTreeMap<usize, Entry<'a>> = BTreeMap::new();
        for doubt in &self.all {
            let (record, at) = doubt.of;
            let logged = write_of(state, record).and_then(|write| write.logged.as_ref());
            let Some(logged) = logged.filter(|it| it.index_of(doubt.row).is_some()) else {
                continue;
            };
            let new =
                || Entry { logged, blocks: Vec::new(), is_whole: false, may_have_begun: false };
            entries.entry(record).or_insert_with(new).blocks.push(at);
        }
        let mut bytes = Vec::new();
        for (record, entry) in &mut entries {
            let Some(write) = write_of(state, *record) else { continue };
            let data = entry.blocks.iter().map(|at| write.blocks[*at].sum);
            let sums = data.chain(entry.logged.parity_sums.iter().copied());
            entry.is_whole = (entry.logged.at..).zip(sums).all(|(at, sum)| {
                disks.read_log(at, &mut bytes).is_ok() && crc::crc32c(&bytes) == sum
            });
        }
        // A write that changes what stands waits until its entry is durable, and with it all entries before it.
        let mut unbegun: BTreeSet<u64> = BTreeSet::new();
        for (record, entry) in &mut entries {
            let rows: Vec<u64> = entry.logged.all_rows().collect();
            let is_behind = rows.iter().any(|row| unbegun.contains(row));
            if is_behind || !entry.is_whole {
                entry.is_whole = false;
                entry.may_have_begun = !is_behind && !self.have_waited.contains(record);
                unbegun.extend(rows);
            }
        }
        entries
    }

    /// All records were taken in: what rows get is known. Answers rows of which a block cannot be known any more.
    pub fn decide(
        &mut self,
        state: &ParityArrayState,
        disks: &ParityDisks,
        (uncollected, spare): (Option<(u64, u64)>, &BTreeMap<u64, SpareRow>),
    ) -> Vec<u64> {
        for fix in self.fixes.values_mut() {
            for (doubt, data) in std::mem::take(&mut fix.homes) {
                if !self.missing.contains(&doubt.of) {
                    continue;
                }
                // What the home had before is there still.
                fix.parity.push(Source::Log(data));
                if state.holds(doubt.column, doubt.row) {
                    fix.parity.push(Source::Column(doubt.column));
                }
            }
        }
        if let Some((start, end)) = uncollected {
            self.rows.insert(start, end);
            for (_, fix) in self.fixes.range_mut(start..end) {
                if let Some((slot, _)) = fix.slot {
                    fix.parity = vec![Source::Log(slot)];
                }
            }
        }
        if !(0..state.parity()).any(|column| !disks.has_all(column)) {
            return Vec::new();
        }
        let rows = self.rows.runs().flat_map(|(start, end)| start..end);
        let rows = rows.filter(|row| !self.fixes.contains_key(row));
        let lost = |row: &u64| {
            let lacks = |column| state.holds(column, *row) && !disks.has_row(column, *row);
            (0..state.parity()).any(lacks)
        };
        let mut unknown: Vec<u64> = rows.filter(lost).collect();
        unknown.retain(|row| {
            let found = spare.get(row).and_then(|known| known.parity(*row, state, disks));
            let is_unknown = found.is_none();
            if let Some(parity) = found {
                self.fixes.insert(*row, Fix { parity, ..Fix::default() });
            }
            is_unknown
        });
        unknown
    }
}

/// What stood in rows when writes were noted, as far as the records tell: a bit for each column.
struct Standing<'a> {
    state: &'a ParityArrayState,
    rows: BTreeMap<u64, u64>,
    /// Places that the homes will have in the spare band row.
    collecting: Vec<u64>,
}

impl Standing<'_> {
    fn of(&self, row: u64) -> u64 {
        let held = || {
            let columns = 0..self.state.parity();
            columns.filter(|column| self.state.holds(*column, row)).fold(0, |all, it| all | 1 << it)
        };
        self.rows.get(&row).copied().unwrap_or_else(held)
    }

    /// A write puts blocks by column into rows. True when something stood in one of them.
    fn write(&mut self, blocks: &[(usize, u64)]) -> bool {
        let stood = blocks.iter().any(|(_, row)| self.of(*row) != 0);
        for (column, row) in blocks {
            let all = self.of(*row) | 1 << column;
            self.rows.insert(*row, all);
        }
        stood
    }

    /// A collection to a band of the homes is done.
    fn collected(&mut self, to: u64) {
        let (homes, band_blocks) = (self.state.homes(), self.state.shape.bands.band_blocks());
        let first = to * band_blocks;
        for row in first..first + band_blocks {
            let slot = self.of(row) & 1 << homes;
            self.rows.insert(row, slot);
        }
        for place in std::mem::take(&mut self.collecting) {
            let row = first + place / homes as u64;
            let all = self.of(row) | 1 << (place % homes as u64);
            self.rows.insert(row, all);
        }
    }
}

/// What is known of a row of the spare band row in the middle of a collection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct SpareRow {
    /// What its slot may have, the newest first: the first that can be is believed.
    pub sums: Vec<u32>,
    /// The homes that are perhaps in the parity, all of them or none.
    pub homes: Vec<usize>,
}

impl SpareRow {
    /// What the slot of the row is the sum of, where the data disk is missing.
    fn parity(
        &self,
        row: u64,
        state: &ParityArrayState,
        disks: &ParityDisks,
    ) -> Option<Vec<Source>> {
        let alone = vec![Source::Column(state.parity())];
        let homes = self.homes.iter().map(|home| Source::Column(*home));
        let with_homes: Vec<Source> = alone.iter().copied().chain(homes).collect();
        let either = [alone, with_homes].map(|sources| {
            let mut sum = Vec::new();
            let read = disks.sum_of(&sources, row, &mut sum);
            (sources, read.is_ok().then(|| crc::crc32c(&sum)))
        });
        let fits = |sum: &u32| either.iter().find(|(_, found)| *found == Some(*sum));
        self.sums.iter().find_map(fits).map(|(sources, _)| sources.clone())
    }
}

fn write_of(state: &ParityArrayState, record: usize) -> Option<&Write> {
    match &state.said[record].1 {
        Said::Write(write) => Some(write),
        _ => None,
    }
}

fn block_of<'a>(state: &'a ParityArrayState, doubt: &Doubt) -> &'a WrittenBlock {
    let (record, at) = doubt.of;
    &write_of(state, record).expect("a record with a block in doubt").blocks[at]
}

/// True when a block is what its record says.
fn is_there(doubt: &Doubt, block: &WrittenBlock, disks: &ParityDisks) -> bool {
    let mut bytes = Vec::new();
    disks.has_row(doubt.column, doubt.row)
        && disks.read(doubt.column, doubt.row, &mut bytes).is_ok()
        && crc::crc32c(&bytes) == block.sum
}

/// The entry with a block, and which of its blocks that is.
fn find<'a, 'b>(
    entries: &'b BTreeMap<usize, Entry<'a>>,
    doubt: &Doubt,
) -> Option<(&'b Entry<'a>, u64)> {
    let (record, at) = doubt.of;
    let entry = entries.get(&record)?;
    let in_entry = entry.blocks.iter().position(|block| *block == at)?;
    Some((entry, in_entry as u64))
}

fn verdict(
    entries: &BTreeMap<usize, Entry<'_>>,
    doubt: &Doubt,
    block: &WrittenBlock,
    fixes: &BTreeMap<u64, Fix>,
) -> Verdict {
    match find(entries, doubt) {
        None => Verdict::NotInLog,
        Some((entry, _)) if entry.may_have_begun => Verdict::NotInLog,
        Some((entry, _)) if !entry.is_whole => Verdict::Nowhere,
        Some(_) if block.slot.is_none() => Verdict::AtHome,
        Some(_) => match fixes.get(&doubt.row).and_then(|fix| fix.slot) {
            Some((_, sum)) if sum == block.sum => Verdict::InSlot,
            _ => Verdict::Nowhere,
        },
    }
}
