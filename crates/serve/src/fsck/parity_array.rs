//! What the journal of a parity array says: who its members are, where each block is, and what stands in the
//! parity.

use super::array_member::{self, ArrayMember, Has, MEMBER, MembersOf};
use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::parity_records::{Limits, Said};
use super::parity_words::NewWords;
use super::ranges::Ranges;
use super::words::Words;
use imbrex_core::array::raid4smr::Raid4SmrShape;
use std::collections::{BTreeMap, BTreeSet};

/// The state of a parity array.
#[derive(Clone, Debug)]
pub struct ParityArrayState {
    /// The nodes behind the ports.
    pub nodes: Vec<String>,
    /// The members: homes, data disk, parity disk.
    pub members: Vec<ArrayMember>,
    /// Where everything lies.
    pub shape: Raid4SmrShape,
    /// Blocks that it offers.
    pub blocks: u64,
    /// The number of the next write.
    pub next_write: u64,
    /// The next place that a block gets, where they are given in turn.
    pub next_place: u64,
    /// Runs of blocks with neighbouring places, where they are given in turn: by its first block the blocks of a run
    /// and the place of the first.
    pub places: BTreeMap<u64, (u64, u64)>,
    /// All places of these.
    pub given: Ranges,
    /// Places whose block was written.
    pub live: Ranges,
    /// Slots of the blocks that are on the data disk, by place.
    pub slots: BTreeMap<u64, u64>,
    /// Where band rows lie on the homes.
    pub band_rows: Vec<u64>,
    /// The band row of the homes that is spare.
    pub spare: u64,
    /// Rows of each home, and slots of the data disk, that stand in the parity.
    pub held: Vec<Ranges>,
    /// Tables of checksums that were written once.
    pub tables: Ranges,
    /// Places whose blocks no member can give.
    pub unreadable: BTreeSet<u64>,
    /// Regions that a member which is away has missed.
    pub missed: Ranges,
    /// Records stand behind the checkpoint.
    pub has_records: bool,
    /// What they say of checksums.
    pub(super) words: NewWords,
    /// Writes of which nobody knows whether they are on the members.
    pub in_doubt: u64,
    /// The spare band row was being written.
    pub is_collecting: bool,
    /// What the records say, with their journal blocks, until they are taken in.
    pub(super) said: Vec<(Option<u64>, Said)>,
}

impl ParityArrayState {
    /// What a journal says of an array. The records but those of members are only taken apart.
    pub(super) fn read(
        journal: &JournalState,
        nodes: Vec<String>,
        (shape, blocks): (&Raid4SmrShape, u64),
        (member, into): (&Member, &mut Findings),
    ) -> Option<ParityArrayState> {
        let mut state = ParityArrayState {
            nodes,
            members: Vec::new(),
            shape: shape.clone(),
            blocks,
            next_write: 0,
            next_place: 0,
            places: BTreeMap::new(),
            given: Ranges::default(),
            live: Ranges::default(),
            slots: BTreeMap::new(),
            band_rows: Vec::new(),
            spare: 0,
            held: Vec::new(),
            tables: Ranges::default(),
            unreadable: BTreeSet::new(),
            missed: Ranges::default(),
            has_records: false,
            words: NewWords::default(),
            in_doubt: 0,
            is_collecting: false,
            said: Vec::new(),
        };
        let checkpoint = |state: &mut ParityArrayState, bytes: &[u8]| state.checkpoint(bytes);
        let on = (member, into);
        let is_known = journal.tell(&mut state, checkpoint, ParityArrayState::record, on);
        is_known.then_some(state)
    }

    /// How many homes there are.
    pub fn homes(&self) -> usize {
        self.shape.bands.homes()
    }

    /// The column of the data disk.
    pub fn data(&self) -> usize {
        self.homes()
    }

    /// The column of the parity disk.
    pub fn parity(&self) -> usize {
        self.homes() + 1
    }

    /// Rows of a column.
    pub fn rows(&self, column: usize) -> u64 {
        let (homes, slots) = (self.shape.bands.rows(), self.shape.slots);
        match column {
            home if home < self.homes() => homes,
            // The tables of checksums lie in rows behind all others.
            _ => homes.max(slots) + self.shape.layout.tables().blocks.0,
        }
    }

    /// The row of a table of checksums.
    pub(super) fn table_row(&self, table: u64) -> u64 {
        self.shape.bands.rows().max(self.shape.slots) + table
    }

    /// Rows that a member has.
    pub fn rows_of(&self, column: usize) -> u64 {
        match self.members[column].has {
            Has::All => self.rows(column),
            Has::Out { .. } | Has::Blank => 0,
            Has::Rebuilt(before) => before.min(self.rows(column)),
            Has::Returned(before) => {
                let (rows, region_rows) = (self.rows(column), self.shape.layout.region_rows);
                let lacks = |(first, end): (u64, u64)| {
                    let (first, end) = (first * region_rows, (end * region_rows).min(rows));
                    end.saturating_sub(first.max(before))
                };
                rows - self.missed.runs().map(lacks).sum::<u64>()
            }
        }
    }

    /// What a member has, in words; nothing when it has all.
    pub fn words_of(&self, column: usize) -> Option<String> {
        let rows = (self.rows_of(column), self.rows(column));
        array_member::words_of(self.members[column].has, rows, "what it has missed")
    }

    /// Places of a band row.
    pub(super) fn band_row_places(&self) -> u64 {
        self.shape.bands.band_blocks() * self.homes() as u64
    }

    /// What numbers there can be.
    pub(super) fn limits(&self) -> Limits {
        let band_rows = self.shape.bands.band_rows() - 1;
        let band_row_places = self.band_row_places();
        let log = self.shape.layout.log();
        Limits {
            offered: self.blocks,
            places: band_rows * band_row_places,
            band_row_places,
            band_blocks: self.shape.bands.band_blocks(),
            band_rows,
            slots: self.shape.slots,
            log: (log.start.0, log.end().0),
        }
    }

    fn all_members(&self) -> MembersOf {
        let columns = self.homes() + 2;
        MembersOf { columns, ports: self.nodes.len(), rows: self.rows(self.parity()) }
    }

    fn checkpoint(&mut self, bytes: &[u8]) -> Result<(), String> {
        let short = || "it ends within what it lists".to_owned();
        let (members, mut words) = self.all_members().all(bytes)?;
        self.check_ports(&members)?;
        self.members = members;
        self.next_write = words.u64().ok_or_else(short)?;
        self.checkpoint_places(&mut words)?;
        self.checkpoint_slots(&mut words)?;
        self.checkpoint_band_rows(&mut words)?;
        for column in 0..=self.data() {
            let (rows, what) = match column == self.data() {
                true => (self.shape.slots, "a slot"),
                false => (self.shape.bands.rows(), "a row of a home"),
            };
            self.held.push(bits(&mut words, rows, what)?);
        }
        let tables = self.shape.layout.tables().blocks.0;
        self.tables = bits(&mut words, tables, "a table of checksums")?;
        let limits = self.limits();
        for _ in 0..words.u64().ok_or_else(short)? {
            self.unreadable.insert(limits.place(words.u64().ok_or_else(short)?)?);
        }
        let region_rows = self.shape.layout.region_rows;
        match words.u64().ok_or_else(short)? {
            found if found == region_rows => {}
            found => return Err(format!("its regions have {found} rows, and not {region_rows}")),
        }
        let regions = self.rows(self.parity()).div_ceil(region_rows);
        self.missed = bits(&mut words, regions, "a region")?;
        self.forget_missed_if_whole();
        match words.left() {
            0 => Ok(()),
            _ => Err("there is more behind what it lists".to_owned()),
        }
    }

    /// Where all members have everything nothing is missed any more.
    fn forget_missed_if_whole(&mut self) {
        if self.members.iter().all(|member| member.has == Has::All) {
            self.missed = Ranges::default();
        }
    }

    /// A member is behind its own port, or behind that of a spare.
    fn check_ports(&self, members: &[ArrayMember]) -> Result<(), String> {
        for (column, ArrayMember { port, .. }) in members.iter().enumerate() {
            if *port != column && *port < members.len() {
                return Err(format!("member {column} is behind port {port}, that of another one"));
            }
            if members[..column].iter().any(|other| other.port == *port) {
                return Err(format!("two members are behind port {port}"));
            }
        }
        Ok(())
    }

    fn checkpoint_places(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let short = || "it ends within what it lists".to_owned();
        let limits = self.limits();
        let mut next = || words.u64().ok_or_else(short);
        let (next_place, runs) = (next()?, next()?);
        if next_place > limits.places {
            return Err(format!("the next place is {next_place}, which is not there"));
        }
        self.next_place = next_place;
        if runs > 0 && !self.shape.appends {
            return Err("it gives blocks places, which are those of their addresses".to_owned());
        }
        for _ in 0..runs {
            let (start, blocks, first) = (next()?, next()?, next()?);
            let end = start.checked_add(blocks).filter(|end| *end <= self.blocks && blocks > 0);
            let end = end.ok_or_else(|| format!("block {start} lies past the array"))?;
            let last = first.checked_add(blocks).filter(|last| *last <= next_place);
            let last = last.ok_or_else(|| format!("place {first} is none that was given"))?;
            if self.run_of(start).is_some() || self.places.range(start..end).next().is_some() {
                return Err(format!("block {start} has two places"));
            }
            if self.given.overlaps(first, last) {
                return Err(format!("place {first} is that of two blocks"));
            }
            self.given.insert(first, last);
            self.places.insert(start, (blocks, first));
        }
        self.live = bits(words, limits.places, "a place")?;
        Ok(())
    }

    fn checkpoint_slots(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let short = || "it ends within what it lists".to_owned();
        let limits = self.limits();
        let mut next = || words.u64().ok_or_else(short);
        let (new, freed) = (next()?, next()?);
        if new > limits.slots {
            return Err(format!("{new} slots were used, and there are {}", limits.slots));
        }
        let mut seen = BTreeSet::new();
        let mut see = |slot: u64| match slot < new {
            true if seen.insert(slot) => Ok(slot),
            true => Err(format!("slot {slot} is there twice")),
            false => Err(format!("slot {slot} was never used")),
        };
        for _ in 0..freed {
            see(next()?)?;
        }
        for _ in 0..next()? {
            let place = limits.place(next()?)?;
            let slot = see(next()?)?;
            if self.slots.insert(place, slot).is_some() {
                return Err(format!("place {place} has two slots"));
            }
        }
        match (0..new).find(|slot| !seen.contains(slot)) {
            Some(slot) => Err(format!("slot {slot} is neither in use nor free")),
            None => Ok(()),
        }
    }

    fn checkpoint_band_rows(&mut self, words: &mut Words<'_>) -> Result<(), String> {
        let short = || "it ends within what it lists".to_owned();
        let band_blocks = self.shape.bands.band_blocks();
        let mut next = || words.u64().ok_or_else(short);
        let band_rows = self.shape.bands.band_rows();
        let mut seen = BTreeSet::new();
        let mut see = |at: u64| match at < band_rows {
            true if seen.insert(at) => Ok(at),
            true => Err(format!("two band rows lie in place {at} of the homes")),
            false => Err(format!("a band row lies in place {at} of the homes, which is not there")),
        };
        self.spare = see(next()?)?;
        for _ in 1..band_rows {
            self.band_rows.push(see(next()?)?);
        }
        for band in 0..(band_rows - 1) * self.homes() as u64 {
            let end = next()?;
            if end > band_blocks {
                return Err(format!("{end} blocks of band {band} were written"));
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &JournalRecord) -> Result<(), String> {
        match Said::of(record, &self.limits())? {
            Some(said) => {
                self.has_records = true;
                self.said.push((record.lsn, said));
            }
            None if record.kind == MEMBER => {
                let all = self.all_members();
                all.record(&record.payload, &mut self.members)?;
                self.check_ports(&self.members)?;
                self.forget_missed_if_whole();
            }
            None => {}
        }
        Ok(())
    }

    /// The run that a block is in.
    fn run_of(&self, block: u64) -> Option<(u64, (u64, u64))> {
        let (start, run) = self.places.range(..=block).next_back()?;
        (block - start < run.0).then_some((*start, *run))
    }

    /// The place of a block.
    pub(super) fn place_of(&self, block: u64) -> Option<u64> {
        match self.shape.appends {
            true => self.run_of(block).map(|(start, (_, first))| first + (block - start)),
            false => Some(block),
        }
    }

    /// Runs of places of some blocks.
    pub(super) fn places_of(&self, first: u64, end: u64) -> Vec<(u64, u64)> {
        if !self.shape.appends {
            return vec![(first, end)];
        }
        let from = self.run_of(first).map_or(first, |(start, _)| start);
        let runs = self.places.range(from..end.max(from));
        let part = |(start, (blocks, place)): (&u64, &(u64, u64))| {
            let (from, to) = (first.max(*start), end.min(start + blocks));
            (place + (from - start), place + (to - start))
        };
        runs.map(part).filter(|(from, to)| from < to).collect()
    }

    /// The home of a place, and the row where it lies there.
    pub(super) fn home_of(&self, place: u64) -> (usize, u64) {
        let (homes, band_blocks) = (self.homes() as u64, self.shape.bands.band_blocks());
        let (home, row) = (place % homes, place / homes);
        let band_row = self.band_rows[(row / band_blocks) as usize];
        (home as usize, band_row * band_blocks + row % band_blocks)
    }

    /// True when a row of a column stands in the parity.
    pub(super) fn holds(&self, column: usize, row: u64) -> bool {
        self.held[column].contains(row)
    }

    /// What cannot be, of all that the journal says together.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.shape.appends {
            let mut given = Ranges::default();
            for (blocks, first) in self.places.values() {
                given.insert(*first, first + blocks);
            }
            for (start, end) in self.live.runs() {
                let gaps = given.gaps(start, end).into_iter();
                found.extend(gaps.map(|(place, _)| format!("place {place} has data and no block")));
            }
        }
        let mut used: BTreeMap<u64, u64> = BTreeMap::new();
        for (place, slot) in &self.slots {
            if let Some(other) = used.insert(*slot, *place) {
                found.push(format!("slot {slot} is that of places {other} and {place}"));
            }
            if !self.live.contains(*place) {
                found.push(format!("place {place} has slot {slot} and no data"));
            }
            if !self.holds(self.data(), *slot) && !self.unreadable.contains(place) {
                found.push(format!("slot {slot} is in use and not in the parity"));
            }
        }
        for (start, end) in self.live.runs() {
            self.find_not_held(start, end, &mut found);
        }
        found
    }

    /// Finds places of some that are neither at home nor in a slot, of neighbouring ones the first.
    fn find_not_held(&self, start: u64, end: u64, found: &mut Vec<String>) {
        let (homes, band_blocks) = (self.homes() as u64, self.shape.bands.band_blocks());
        let of_band_row = homes * band_blocks;
        let mut from = start;
        while from < end {
            let band_row = from / of_band_row;
            let to = end.min((band_row + 1) * of_band_row);
            let lies = self.band_rows[band_row as usize] * band_blocks;
            for home in 0..homes {
                // Of each home the places from one on are those of its rows from one on.
                let row = |place: u64| (place + homes - 1 - home) / homes - band_row * band_blocks;
                let (first, last) = (lies + row(from), lies + row(to));
                for (gap, gap_end) in self.held[home as usize].gaps(first, last) {
                    let place = |row: u64| (band_row * band_blocks + row - lies) * homes + home;
                    let mut places = (gap..gap_end).map(place);
                    let is_known = |place: &u64| {
                        self.slots.contains_key(place) || self.unreadable.contains(place)
                    };
                    if let Some(place) = places.find(|place| !is_known(place)) {
                        found.push(format!("place {place} has data and is not in the parity"));
                    }
                }
            }
            from = to;
        }
    }
}

/// Takes bits from a checkpoint, none of them at or behind `end`.
fn bits(words: &mut Words<'_>, end: u64, what: &str) -> Result<Ranges, String> {
    let short = || "it ends within what it lists".to_owned();
    let mut set = Ranges::default();
    let head = words.u64().ok_or_else(short)?;
    for number in 0..head >> 1 {
        let word = words.u64().ok_or_else(short)?;
        let runs = match head & 1 {
            0 => vec![(word, words.u64().ok_or_else(short)?)],
            _ => runs_of(word, number.saturating_mul(64)),
        };
        for (start, length) in runs {
            let last = start.checked_add(length).filter(|last| *last <= end);
            let last = last.ok_or_else(|| format!("it speaks of {what} past {end}"))?;
            set.insert(start, last);
        }
    }
    Ok(set)
}

/// The runs of bits of a word, from a number on.
fn runs_of(word: u64, first: u64) -> Vec<(u64, u64)> {
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < 64 && word >> at != 0 {
        at += (word >> at).trailing_zeros();
        let length = (word >> at).trailing_ones();
        runs.push((first.saturating_add(u64::from(at)), u64::from(length)));
        at += length;
    }
    runs
}
