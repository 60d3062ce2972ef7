//! What the journal of a persistent cache says: where each block of the device lies.

use super::disks::Disks;
use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::ranges::Ranges;
use super::scratch::Scratch;
use super::superblocks::COUNT_MAX;
use super::words::Words;
use imbrex_core::crc;
use imbrex_core::translation::records;
use std::collections::BTreeMap;

/// Bits of the first word of a log entry that hold its length.
const RUN_BITS: u32 = 24;
/// Checksums in a page of a table.
pub(super) const SUMS_PER_PAGE: u64 = 1008;

/// A band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Band {
    /// Its first block on the device.
    pub start: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Its first block on the disk.
    pub home: u64,
    /// The word of its table of checksums: generation and place; 0 when there is none.
    pub table: u64,
    /// Blocks from its start that can be read at home.
    pub pointer: u64,
}

/// A block in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logged {
    /// Its position; positions count all blocks that were ever appended.
    pub position: u64,
    /// Its checksum.
    pub checksum: u32,
}

/// Where a block of the device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// At a block of the disk, its checksum known.
    Log(u64, u32),
    /// At a block of the disk; band and offset name its checksum.
    Home(u64, usize, u64),
    /// Nowhere: it reads as zeroes.
    Zeroes,
    /// Nowhere: its write has failed, and it cannot be read.
    Lost,
}

/// The state of a translation.
#[derive(Clone, Debug, Default)]
pub struct TranslationState {
    /// Blocks of the log, and where it begins on the disk.
    pub log_blocks: u64,
    /// First block of the log on the disk.
    pub log_start: u64,
    /// First block of the scratch band.
    pub scratch_start: u64,
    /// End of the bands on the disk.
    bands_end: u64,
    /// Blocks of the device.
    pub blocks: u64,
    /// The newest generation of a table.
    pub generation: u64,
    /// Positions in use: from here,
    pub head: u64,
    /// to here.
    pub tail: u64,
    /// The blocks in the log.
    pub logged: BTreeMap<u64, Logged>,
    /// Blocks below a write pointer that read as zeroes.
    pub zeroed: Ranges,
    /// Blocks that cannot be read.
    pub lost: Ranges,
    /// What the scratch band holds.
    pub scratch: Option<Scratch>,
    /// The bands, in the order of the device.
    pub bands: Vec<Band>,
    /// Checksums of bands that have no table yet.
    pub open: BTreeMap<u64, Vec<u32>>,
    /// First block of the tables on the disk.
    tables_start: u64,
    /// Blocks of each place for a table.
    table_blocks: u64,
}

pub(super) fn short() -> String {
    "it is shorter than it says".to_owned()
}

impl TranslationState {
    /// Works out the state; `None` when the checkpoint cannot be taken apart.
    pub(super) fn read(
        journal: &JournalState,
        disks: &Disks,
        into: &mut Findings,
    ) -> Option<TranslationState> {
        let member = disks.log();
        if let Some(problem) = disks.problem(&journal.superblock) {
            into.damage(member.name(), "superblock", problem.to_owned());
            return None;
        }
        let mut state = TranslationState {
            tables_start: journal.superblock.area_blocks,
            ..TranslationState::default()
        };
        let log_blocks = journal.superblock.member_blocks.min(member.blocks());
        let home_blocks = match disks.is_two() {
            true => disks.home().blocks(),
            false => log_blocks,
        };
        let take = |state: &mut Self, bytes: &[u8]| state.take_checkpoint(bytes, home_blocks);
        if !journal.tell(&mut state, take, Self::apply, (member, into)) {
            return None;
        }
        let log_end_max = match disks.is_two() {
            true => log_blocks,
            false => state.scratch_start,
        };
        // What overlaps could be read over and over.
        let is_sane = state.check((log_end_max, home_blocks), member, into);
        is_sane.then_some(state)
    }

    fn take_checkpoint(&mut self, bytes: &[u8], home_blocks: u64) -> Result<(), String> {
        let words = &mut Words::new(bytes);
        let version = words.u64().ok_or_else(short)?;
        if version != 1 {
            return Err(format!("its words are of version {version}, not 1"));
        }
        let mut next = || words.u64().ok_or_else(short);
        self.log_blocks = next()?;
        self.blocks = next()?;
        let (bands, lengths) = (next()?, next()?);
        self.scratch_start = next()?;
        self.bands_end = next()?;
        self.generation = next()?;
        (self.head, self.tail) = (next()?, next()?);
        let places = [self.log_blocks, self.scratch_start, self.bands_end, self.tail];
        if places.iter().any(|place| *place > COUNT_MAX) {
            return Err("it holds numbers that no device writes".to_owned());
        }
        self.take_log(words)?;
        self.zeroed = self.take_ranges(words)?;
        self.lost = self.take_ranges(words)?;
        self.scratch = Scratch::take(words, self.scratch_start)?;
        self.take_bands(words, bands, lengths)?;
        if let Some(problem) = self.scratch.and_then(|scratch| scratch.problem(self)) {
            return Err(problem.to_owned());
        }
        if self.bands_end > home_blocks {
            return Err("its bands end past the member".to_owned());
        }
        self.take_open(words)?;
        match words.left() {
            0 => Ok(()),
            _ => Err("it is longer than it says".to_owned()),
        }
    }

    fn take_log(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let used = self.tail.checked_sub(self.head);
        if self.log_blocks == 0 || used.is_none_or(|used| used > self.log_blocks) {
            return Err("the log ends before it begins, or is too long".to_owned());
        }
        let entries = words.u64().ok_or_else(short)?;
        for _ in 0..entries {
            let packed = words.u64().ok_or_else(short)?;
            let position = words.u64().ok_or_else(short)?;
            let (lba, blocks) = (packed >> RUN_BITS, packed & ((1 << RUN_BITS) - 1));
            let mut sums = Vec::new();
            take_sums(words, blocks, &mut sums)?;
            let end = position.checked_add(blocks).filter(|end| *end <= self.tail);
            if end.is_none() || position < self.head {
                return Err(format!("block {lba} lies outside the log"));
            }
            for (i, checksum) in (0..).zip(sums) {
                let logged = Logged { position: position + i, checksum };
                if self.logged.insert(lba + i, logged).is_some() {
                    return Err(format!("block {} has two places", lba + i));
                }
            }
        }
        Ok(())
    }

    fn take_ranges(&self, words: &mut Words<'_>) -> Result<Ranges, String> {
        let mut ranges = Ranges::default();
        for _ in 0..words.u64().ok_or_else(short)? {
            let start = words.u64().ok_or_else(short)?;
            let blocks = words.u64().ok_or_else(short)?;
            let end = start.checked_add(blocks).filter(|end| *end <= self.blocks);
            let end = end.ok_or("a range lies outside the bands")?;
            ranges.insert(start, end);
        }
        Ok(ranges)
    }

    fn take_bands(&mut self, words: &mut Words<'_>, bands: u64, sum: u64) -> Result<(), String> {
        if bands.checked_mul(32).is_none_or(|bytes| bytes > words.left()) {
            return Err(short());
        }
        let (mut start, mut lengths) = (0u64, 0);
        for number in 0..bands {
            let mut next = || words.u64().ok_or_else(short);
            let (table, pointer, home, blocks) = (next()?, next()?, next()?, next()?);
            lengths = crc::crc32c_append(lengths, &blocks.to_le_bytes());
            if pointer > blocks || home.checked_add(blocks).is_none() {
                return Err(format!("band {number} ends before its write pointer, or past all"));
            }
            self.bands.push(Band { start, blocks, home, table, pointer });
            let end = start.checked_add(blocks).filter(|_| blocks > 0);
            start = end.ok_or("a band has an impossible length")?;
        }
        if start != self.blocks || u64::from(lengths) != sum {
            return Err("its bands are not those it was written for".to_owned());
        }
        let largest = self.bands.iter().map(|band| band.blocks).max().unwrap_or(0);
        self.table_blocks = largest.div_ceil(SUMS_PER_PAGE);
        let tables = self.table_blocks.checked_mul(2 * bands);
        let log_start = tables.and_then(|tables| tables.checked_add(self.tables_start));
        self.log_start = log_start.ok_or("its tables end past all")?;
        Ok(())
    }

    fn take_open(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        for _ in 0..words.u64().ok_or_else(short)? {
            let band = words.u64().ok_or_else(short)?;
            let count = words.u64().ok_or_else(short)?;
            let mut sums = Vec::new();
            take_sums(words, count, &mut sums)?;
            self.open.insert(band, sums);
        }
        Ok(())
    }

    /// The band that holds a block of the device.
    pub fn band_of(&self, lba: u64) -> Option<usize> {
        let after = self.bands.partition_point(|band| band.start <= lba);
        let index = after.checked_sub(1)?;
        let band = self.bands[index];
        (lba - band.start < band.blocks).then_some(index)
    }

    /// Where a block of the device is; `None` past its end.
    pub fn find(&self, lba: u64) -> Option<Where> {
        let index = self.band_of(lba)?;
        if self.lost.contains(lba) {
            return Some(Where::Lost);
        }
        if let Some(logged) = self.logged.get(&lba) {
            let address = self.log_start + logged.position % self.log_blocks;
            return Some(Where::Log(address, logged.checksum));
        }
        let band = self.bands[index];
        let offset = lba - band.start;
        if self.zeroed.contains(lba) || offset >= band.pointer {
            return Some(Where::Zeroes);
        }
        let address = match self.scratch {
            Some(scratch) if scratch.holds(index, offset) => scratch.place + offset - scratch.from,
            _ => band.home + offset,
        };
        Some(Where::Home(address, index, offset))
    }

    /// First block of the table of a band.
    pub(super) fn table_start(&self, band: usize) -> u64 {
        let place = self.bands[band].table & 1;
        self.tables_start + (2 * band as u64 + place) * self.table_blocks
    }

    fn apply(&mut self, record: &JournalRecord) -> Result<(), String> {
        let mut words = Words::new(&record.payload);
        let mut numbers = [0; 5];
        let count = (words.left() / 8) as usize;
        if !words.left().is_multiple_of(8) || count > numbers.len() {
            return Err("its payload is not a row of numbers".to_owned());
        }
        for number in numbers.iter_mut().take(count) {
            *number = words.u64().unwrap_or(0);
        }
        let [first, second, third, fourth, fifth] = numbers;
        let has_data = record.data.is_some();
        match (record.kind, count, has_data) {
            (records::APPEND, 2, true) => self.append(first, second, record),
            (records::ZERO, 2, false) => {
                let end = self.end_of(first, second)?;
                self.forget(first, end);
                self.zero(first, end);
                Ok(())
            }
            (records::LOST, 2, false) => {
                let end = self.end_of(first, second)?;
                self.forget(first, end);
                self.lost.insert(first, end);
                Ok(())
            }
            (records::SCRATCH, 4, false) => {
                let band = self.band_numbered(first)?;
                if second.checked_add(third) != Some(self.bands[band].blocks) {
                    return Err("the scratch band would not hold the rest of a band".to_owned());
                }
                let scratch = Scratch::new(first, second, third, self.scratch_start);
                self.scratched(scratch, fourth)
            }
            (records::STRETCH, 5, false) => {
                self.scratched(Scratch::new(first, second, third, fifth), fourth)
            }
            (records::HOME, 3, false) => {
                let band = self.band_numbered(first)?;
                self.scratch = None;
                let Band { start, blocks, .. } = self.bands[band];
                let gone: Vec<u64> = self
                    .logged
                    .range(start..start + blocks)
                    .filter(|(_, logged)| logged.position < second)
                    .map(|(lba, _)| *lba)
                    .collect();
                for lba in gone {
                    self.logged.remove(&lba);
                }
                Ok(())
            }
            (records::BYPASS, 1, true) => self.bypass(first, record),
            (records::TABLE, 2, false) => {
                let band = self.band_numbered(first)?;
                self.set_table(band, second);
                Ok(())
            }
            (kind, ..) => Err(format!(
                "it is of kind {kind} with {count} numbers and {} data",
                if has_data { "with" } else { "no" }
            )),
        }
    }

    fn append(&mut self, lba: u64, position: u64, record: &JournalRecord) -> Result<(), String> {
        let blocks = record.checksums.len() as u64;
        self.end_of(lba, blocks)?;
        let slot = position % self.log_blocks;
        let place = record.data.map(|data| data.start.0);
        let end = position.checked_add(blocks);
        if place != Some(self.log_start + slot) || slot + blocks > self.log_blocks || end.is_none()
        {
            return Err(format!("block {lba} lies outside the log"));
        }
        for (index, checksum) in record.checksums.iter().enumerate() {
            if record.is_missing(index) {
                continue;
            }
            let at = lba + index as u64;
            let logged = Logged { position: position + index as u64, checksum: *checksum };
            self.zeroed.remove(at, at + 1);
            self.lost.remove(at, at + 1);
            self.logged.insert(at, logged);
        }
        self.tail = self.tail.max(position + blocks);
        Ok(())
    }

    fn bypass(&mut self, lba: u64, record: &JournalRecord) -> Result<(), String> {
        let index = self.band_of(lba).ok_or("it names a block past the device")?;
        let band = self.bands[index];
        let offset = lba - band.start;
        let place = record.data.map(|data| data.start.0);
        let blocks = record.checksums.len() as u64;
        if offset + blocks > band.blocks || place != Some(band.home + offset) {
            return Err(format!("block {lba} does not lie at home there"));
        }
        let there = (0..record.checksums.len()).find(|at| record.is_missing(*at));
        let there = there.unwrap_or(record.checksums.len());
        // What lies above a missing block cannot be read.
        if offset > band.pointer || there == 0 {
            return Ok(());
        }
        let end = lba + there as u64;
        self.forget(lba, end);
        let sums = self.open.entry(index as u64).or_default();
        sums.resize(offset as usize, 0);
        sums.extend_from_slice(&record.checksums[..there]);
        let pointer = &mut self.bands[index].pointer;
        *pointer = (*pointer).max(offset + there as u64);
        Ok(())
    }

    fn scratched(&mut self, scratch: Scratch, table: u64) -> Result<(), String> {
        if let Some(problem) = scratch.problem(self) {
            return Err(problem.to_owned());
        }
        self.scratch = Some(scratch);
        let band = scratch.band as usize;
        self.set_table(band, table);
        let Band { start, pointer, .. } = self.bands[band];
        let end = scratch.from + scratch.blocks;
        self.bands[band].pointer = pointer.max(end);
        self.zeroed.remove(start + scratch.from, start + end);
        Ok(())
    }

    /// True when the scratch band holds blocks of a band behind which home is whole.
    fn is_amid_stretches(&self, band: usize) -> bool {
        let scratch = self.scratch.filter(|scratch| scratch.band == band as u64);
        scratch.is_some_and(|scratch| scratch.from + scratch.blocks < self.bands[band].blocks)
    }

    fn set_table(&mut self, band: usize, table: u64) {
        self.generation = self.generation.max(table >> 1);
        self.bands[band].table = table;
        self.open.remove(&(band as u64));
    }

    /// Blocks read as zeroes: by a lower write pointer where they reach up to it.
    fn zero(&mut self, start: u64, end: u64) {
        let first = self.band_of(start).unwrap_or(self.bands.len());
        for index in first..self.bands.len() {
            let band = self.bands[index];
            let (from, to) = (start.max(band.start), end.min(band.start + band.blocks));
            if from >= to {
                return;
            }
            let readable = band.start + band.pointer;
            if to >= readable && !self.is_amid_stretches(index) {
                let pointer = band.pointer.min(from - band.start);
                self.bands[index].pointer = pointer;
                self.zeroed.remove(from, to);
                if let Some(sums) = self.open.get_mut(&(index as u64)) {
                    sums.truncate(pointer as usize);
                }
            } else {
                self.zeroed.insert(from, to.min(readable));
            }
        }
    }

    /// Blocks are neither in the log nor zeroed nor lost any more.
    fn forget(&mut self, start: u64, end: u64) {
        let logged: Vec<u64> = self.logged.range(start..end).map(|(lba, _)| *lba).collect();
        for lba in logged {
            self.logged.remove(&lba);
        }
        self.zeroed.remove(start, end);
        self.lost.remove(start, end);
    }

    fn end_of(&self, start: u64, blocks: u64) -> Result<u64, String> {
        let end = start.checked_add(blocks).filter(|end| *end <= self.blocks);
        end.ok_or_else(|| format!("blocks from {start} on lie past the device"))
    }

    fn band_numbered(&self, band: u64) -> Result<usize, String> {
        let index = usize::try_from(band).ok().filter(|band| *band < self.bands.len());
        index.ok_or_else(|| format!("there is no band {band}"))
    }

    /// Checks that no two things lie at one place, and everything inside the disk; false when
    /// bands overlap.
    fn check(
        &self,
        (log_end_max, home_blocks): (u64, u64),
        member: &Member,
        into: &mut Findings,
    ) -> bool {
        const STRUCTURE: &str = "map of the bands";
        let mut is_sane = true;
        let mut complain = |words: String| into.damage(member.name(), STRUCTURE, words);
        let log_end = self.log_start.saturating_add(self.log_blocks);
        let mut end = self.scratch_start.saturating_add(1);
        if log_end > log_end_max || self.bands_end > home_blocks {
            complain("log, scratch band and bands overlap or end past the disk".to_owned());
            is_sane = false;
        }
        for (number, band) in self.bands.iter().enumerate() {
            let band_end = band.home.saturating_add(band.blocks);
            if band.home < end || band_end > self.bands_end {
                complain(format!("band {number} overlaps what lies before it, or ends past all"));
                is_sane = false;
            }
            end = band_end;
            let open = self.open.get(&(number as u64)).map(|sums| sums.len() as u64);
            if open.is_some_and(|sums| sums != band.pointer) {
                complain(format!("open band {number} has not as many checksums as blocks"));
            }
            if open.is_none() && band.table == 0 && band.pointer > 0 {
                complain(format!("band {number} has blocks and no checksums"));
            }
            if band.table >> 1 > self.generation {
                complain(format!("the table of band {number} is newer than the newest"));
            }
        }
        if let Some(band) = self.open.keys().find(|band| **band >= self.bands.len() as u64) {
            complain(format!("band {band} is open and is not there"));
        }
        if let Some(problem) = self.scratch.and_then(|scratch| scratch.problem(self)) {
            complain(problem.to_owned());
            is_sane = false;
        }
        let mut slots: BTreeMap<u64, u64> = BTreeMap::new();
        let head = self.head.max(self.tail.saturating_sub(self.log_blocks));
        for (lba, logged) in &self.logged {
            if *lba >= self.blocks {
                complain(format!("block {lba} in the log lies past the device"));
            }
            if logged.position < head {
                complain(format!("the slot of block {lba} in the log was used again"));
            }
            if let Some(other) = slots.insert(logged.position % self.log_blocks, *lba) {
                complain(format!("blocks {other} and {lba} lie in one slot of the log"));
            }
        }
        is_sane
    }
}

fn take_sums(words: &mut Words<'_>, count: u64, sums: &mut Vec<u32>) -> Result<(), String> {
    for at in 0..count.div_ceil(2) {
        let word = words.u64().ok_or_else(short)?;
        sums.push(word as u32);
        if 2 * at + 1 < count {
            sums.push((word >> 32) as u32);
        }
    }
    Ok(())
}
