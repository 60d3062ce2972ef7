//! What the journal of a translation by S-blocks says: which S-block lies in which position, and what
//! the rings hold.

use super::findings::Findings;
use super::journal::{JournalRecord, JournalState};
use super::member::Member;
use super::ring::Ring;
use super::tables::{self, LastPage, Page, WORDS_PER_PAGE};
use super::words::Words;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::s_block_records::{self as records, HEAD_FIELDS, REGION_FIELDS};
use imbrex_core::translation::{SBlockLayout, SBlockPlace, SBlockShape};
use std::cell::RefCell;

const STRUCTURE: &str = "map of S-blocks";
const VERSION: u32 = 1;
/// The owner of a position without a valid S-block.
const NONE: u16 = u16::MAX;

/// The circular log of a region, and its ring.
#[derive(Clone, Debug)]
pub struct SBlockRegion {
    shape: SBlockShape,
    /// The first position of the log.
    pub tail: u16,
    /// Positions of the log.
    pub used: u16,
    /// By position: the S-block that is valid there.
    pub owners: Vec<Option<u16>>,
    /// By S-block: its position.
    positions: Vec<Option<u16>>,
    /// By position: the generation of the table of its checksums. Empty without checksums.
    pub tables: Vec<u64>,
    /// Single blocks.
    pub ring: Ring,
}

/// Where a block of the device is, in blocks of the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SBlockPart {
    /// In a ring, its checksum known or not.
    Ring(u64, Option<u32>),
    /// In its S-block.
    Position(u64),
    /// Nowhere: it reads as zeroes.
    Zeroes,
}

/// The state of a translation by S-blocks.
#[derive(Clone, Debug)]
pub struct SBlocksState {
    /// Where everything lies, as the settings of the node say.
    pub layout: SBlockLayout,
    /// The regions.
    pub regions: Vec<SBlockRegion>,
    member: Uuid,
    last: RefCell<LastPage>,
}

impl SBlocksState {
    /// Works out the state; `None` when the checkpoint cannot be taken apart.
    pub(super) fn read(
        journal: &JournalState,
        layout: &SBlockLayout,
        member: &Member,
        into: &mut Findings,
    ) -> Option<SBlocksState> {
        if !journal.takes(layout.journal.blocks.0, member, into) {
            return None;
        }
        let mut state = SBlocksState {
            layout: layout.clone(),
            regions: Vec::new(),
            member: journal.superblock.member,
            last: RefCell::default(),
        };
        let (checkpoint, record) = (Self::take_checkpoint, Self::apply);
        if !journal.tell(&mut state, checkpoint, record, (member, into)) {
            return None;
        }
        for (number, region) in state.regions.iter_mut().enumerate() {
            region.drop_surplus();
            if let Some(problem) = region.problem() {
                into.damage(member.name(), STRUCTURE, format!("region {number}: {problem}"));
            }
        }
        Some(state)
    }

    /// Blocks of an S-block.
    fn blocks_of_segment(&self) -> u64 {
        self.layout.segment / self.layout.block
    }

    fn take_checkpoint(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut words = Words::new(bytes);
        let known = [
            u64::from(VERSION),
            self.layout.places.len() as u64,
            self.layout.block,
            self.layout.segment,
            self.layout.ring_places,
            u64::from(self.layout.segments),
        ];
        for (field, expected) in HEAD_FIELDS.iter().zip(known) {
            let found = words.u32().ok_or_else(short)?;
            if u64::from(found) != expected {
                return Err(other_settings(field.name, u64::from(found), expected));
            }
        }
        for number in 0..self.layout.places.len() {
            let region = self.take_region(self.layout.places[number].shape, &mut words);
            let region = region.map_err(|problem| format!("region {number}: {problem}"))?;
            self.regions.push(region);
        }
        match words.left() {
            0 => Ok(()),
            _ => Err("it is longer than it says".to_owned()),
        }
    }

    fn take_region(
        &self,
        shape: SBlockShape,
        words: &mut Words<'_>,
    ) -> Result<SBlockRegion, String> {
        let known = [shape.data, shape.slots, shape.positions()];
        for (field, expected) in REGION_FIELDS.iter().zip(known) {
            let found = words.u16().ok_or_else(short)?;
            if found != expected {
                return Err(other_settings(field.name, found.into(), expected.into()));
            }
        }
        let mut next = || words.u16().ok_or_else(short);
        let (tail, used, places) = (next()?, next()?, next()?);
        if tail >= shape.positions() || used > shape.slots + 1 {
            return Err(format!("its log of {used} from position {tail} on is none"));
        }
        let mut region = SBlockRegion {
            shape,
            tail,
            used,
            owners: vec![None; usize::from(shape.positions())],
            positions: vec![None; usize::from(shape.data)],
            tables: Vec::new(),
            ring: Ring::default(),
        };
        for position in 0..shape.positions() {
            match next()? {
                NONE => {}
                segment => region.put(segment, position)?,
            }
        }
        if self.layout.has_sums() {
            for _ in 0..shape.positions() {
                region.tables.push(words.u64().ok_or_else(short)?);
            }
        }
        let blocks = u64::from(shape.data) * self.blocks_of_segment();
        for _ in 0..places {
            let place = words.u32().ok_or_else(short)?;
            let block = words.u32().ok_or_else(short)?;
            let parts = words.u64().ok_or_else(short)?;
            let is_there = u64::from(place) < self.layout.ring_places
                && u64::from(block) < blocks
                && parts != 0
                && (self.layout.block >= 64 || parts >> self.layout.block == 0);
            if !is_there {
                return Err(format!("block {block} in place {place} lies outside of it"));
            }
            if region.ring.has_any(place, block, parts) {
                return Err(format!(
                    "block {block} in place {place} or the place itself is named twice"
                ));
            }
            let mut sums = Vec::new();
            for part in (0..64u8).filter(|part| parts >> part & 1 == 1) {
                if self.layout.has_sums() {
                    sums.push((part, words.u32().ok_or_else(short)?));
                }
            }
            region.ring.put(place, block, parts, &sums);
        }
        Ok(region)
    }

    fn apply(&mut self, record: &JournalRecord) -> Result<(), String> {
        let mut words = Words::new(&record.payload);
        let number = words.u32().ok_or_else(short)?;
        let per_segment = self.blocks_of_segment() as u32;
        let place = usize::try_from(number)
            .ok()
            .and_then(|at| Some((*self.layout.places.get(at)?, self.regions.get_mut(at)?)));
        let Some((place, region)) = place else {
            return Err(format!("there is no region {number}"));
        };
        match (record.kind, record.data.is_some()) {
            (records::REWRITTEN | records::MOVED, false) => {
                let (segment, position, used) = (words.u16(), words.u16(), words.u16());
                let all = segment.zip(position).zip(used);
                let ((segment, position), used) = all.ok_or_else(short)?;
                let table = match self.layout.has_sums() {
                    true => Some(words.u64().ok_or_else(short)?),
                    false => None,
                };
                end_of(words)?;
                region.append(segment, position, used)?;
                if let Some(table) = table {
                    region.tables[usize::from(position)] = table;
                }
                if record.kind == records::REWRITTEN {
                    let first = u32::from(segment) * per_segment;
                    region.ring.forget(first..first + per_segment);
                }
                Ok(())
            }
            (records::TRIMMED, false) => {
                let (first, count) = words.u16().zip(words.u16()).ok_or_else(short)?;
                end_of(words)?;
                let end = first.checked_add(count);
                let end = end.filter(|end| *end <= place.shape.data);
                let end = end.ok_or("it names S-blocks past the region")?;
                (first..end).for_each(|segment| region.forget(segment));
                let blocks = u32::from(first) * per_segment..u32::from(end) * per_segment;
                region.ring.forget(blocks);
                Ok(())
            }
            (records::RING, true) => {
                let block = words.u32().ok_or_else(short)?;
                end_of(words)?;
                if block >= u32::from(place.shape.data) * per_segment {
                    return Err(format!("there is no block {block} in region {number}"));
                }
                take_ring(&self.layout, place, (region, block), record)
            }
            _ => Err(record.unknown()),
        }
    }

    /// Where a block of the device is; `None` past its end.
    pub fn find(&self, lba: u64) -> Option<SBlockPart> {
        let Self { layout, regions, .. } = self;
        if lba >= layout.blocks().0 {
            return None;
        }
        let inside = lba % layout.segment;
        let (number, segment) = layout.region_of((lba / layout.segment) as u32);
        let region = &regions[number as usize];
        let block = u64::from(segment) * self.blocks_of_segment() + inside / layout.block;
        let part = inside % layout.block;
        if let Some((place, checksum)) = region.ring.find(block as u32, part) {
            let address = layout.ring_place(number, place).start.0 + part;
            return Some(SBlockPart::Ring(address, checksum));
        }
        Some(match region.positions[usize::from(segment)] {
            Some(position) => {
                SBlockPart::Position(layout.position(number, position).start.0 + inside)
            }
            None => SBlockPart::Zeroes,
        })
    }

    /// Reads a block of the device and compares it with its checksum, where that is known.
    pub(super) fn read_block(
        &self,
        lba: u64,
        disk: &Member,
        into: &mut Vec<u8>,
    ) -> Result<(), String> {
        let (address, checksum) = match self.find(lba).ok_or("it lies past the device")? {
            SBlockPart::Ring(address, checksum) => (address, checksum),
            SBlockPart::Position(address) => {
                let (number, segment) = self.layout.region_of((lba / self.layout.segment) as u32);
                let read = disk.read(address, 1, into);
                read.map_err(|error| error.to_string())?;
                let position = self.regions[number as usize].positions[usize::from(segment)];
                let position = position.expect("the position that it lies in");
                let inside = lba % self.layout.segment;
                return self.compare((number, position), inside, into, disk);
            }
            SBlockPart::Zeroes => {
                super::kinds::zeroes(into);
                return Ok(());
            }
        };
        disk.read_checked(address, checksum, into)
    }

    /// Compares a block of the S-block in a position with its checksum, where there are some.
    fn compare(
        &self,
        (region, position): (u32, u16),
        inside: u64,
        block: &[u8],
        disk: &Member,
    ) -> Result<(), String> {
        if !self.layout.has_sums() {
            return Ok(());
        }
        let page = self.page((region, position), inside / WORDS_PER_PAGE);
        let mut last = self.last.borrow_mut();
        let words = last.words(page, disk)?;
        tables::compare(words[(inside % WORDS_PER_PAGE) as usize], block)
    }

    /// A page of the table of a position.
    fn page(&self, (region, position): (u32, u16), index: u64) -> Page {
        let layout = &self.layout;
        let number = u64::from(layout.position_number(region, position));
        let start = layout.tables.start.0 + number * layout.table_blocks;
        Page {
            generation: self.regions[region as usize].tables[usize::from(position)],
            ..Page::of_table(self.member, (start, layout.segment), index)
        }
    }

    /// The positions with S-blocks that are valid, and these.
    fn valid(&self) -> impl Iterator<Item = ((u32, u16), u16)> + '_ {
        (0..).zip(&self.regions).flat_map(|(number, region)| {
            let owners = (0..).zip(&region.owners);
            owners.filter_map(move |(position, owner)| Some(((number, position), (*owner)?)))
        })
    }

    /// Reads the tables of all S-blocks that are valid.
    pub(super) fn check_tables(&self, disk: &Member, into: &mut Findings) {
        for (at, segment) in self.valid() {
            for index in 0..self.layout.table_blocks {
                let whose = || format!("S-block {segment} of region {}", at.0);
                self.page(at, index).check(disk, whose, into);
            }
        }
    }

    /// Reads all S-blocks that are valid and compares them with their checksums, where there are some.
    pub(super) fn check_positions(&self, disk: &Member, into: &mut Findings) {
        let mut bytes = Vec::new();
        for (at, segment) in self.valid() {
            let start = self.layout.position(at.0, at.1).start.0;
            for index in 0..self.layout.table_blocks {
                // What is wrong with the page itself was told.
                let Ok(words) = self.page(at, index).read(disk) else {
                    continue;
                };
                for (inside, word) in (index * WORDS_PER_PAGE..).zip(words) {
                    let read = disk.read(start + inside, 1, &mut bytes);
                    let read = read.map_err(|error| error.to_string());
                    if let Err(problem) = read.and_then(|()| tables::compare(word, &bytes)) {
                        let words = format!(
                            "block {inside} of S-block {segment} of region {}: {problem}",
                            at.0
                        );
                        into.damage(disk.name(), "data", words);
                    }
                }
            }
        }
    }

    /// Reads what the rings hold and compares it with the checksums that are known.
    pub(super) fn check_rings(&self, disk: &Member, into: &mut Findings) {
        let mut bytes = Vec::new();
        for (number, region) in (0..).zip(&self.regions) {
            for (place, block, part, checksum) in region.ring.parts() {
                let address = self.layout.ring_place(number, place).start.0 + part;
                let Err(problem) = disk.read_checked(address, checksum, &mut bytes) else {
                    continue;
                };
                let words = format!(
                    "part {part} of block {block} in place {place} of region {number}: {problem}"
                );
                into.damage(disk.name(), "ring", words);
            }
        }
    }
}

impl SBlockRegion {
    /// S-blocks that hold data.
    pub fn valid(&self) -> usize {
        self.owners.iter().flatten().count()
    }

    /// An S-block lies at a position.
    fn put(&mut self, segment: u16, position: u16) -> Result<(), String> {
        let own = self.positions.get_mut(usize::from(segment));
        let own = own.ok_or_else(|| format!("there is no S-block {segment}"))?;
        if let Some(other) = own {
            return Err(format!("S-block {segment} lies in positions {other} and {position}"));
        }
        *own = Some(position);
        self.owners[usize::from(position)] = Some(segment);
        Ok(())
    }

    fn forget(&mut self, segment: u16) {
        if let Some(position) = self.positions[usize::from(segment)].take() {
            self.owners[usize::from(position)] = None;
        }
    }

    /// An S-block was written at the head; the log had so many positions before.
    fn append(&mut self, segment: u16, position: u16, used: u16) -> Result<(), String> {
        let positions = u32::from(self.shape.positions());
        if segment >= self.shape.data || position >= self.shape.positions() {
            return Err(format!("S-block {segment} lies at no position"));
        }
        if used > self.shape.slots {
            return Err(format!("its log of {used} positions had no room"));
        }
        self.forget(segment);
        if let Some(other) = self.owners[usize::from(position)] {
            return Err(format!("position {position} is given to S-blocks {other} and {segment}"));
        }
        let tail = (u32::from(position) + positions - u32::from(used)) % positions;
        self.tail = u16::try_from(tail).expect("a position");
        self.used = used + 1;
        self.put(segment, position)
    }

    fn is_inside(&self, position: u16) -> bool {
        let positions = u32::from(self.shape.positions());
        let from_tail = u32::from(position) + positions - u32::from(self.tail);
        from_tail % positions < u32::from(self.used)
    }

    /// Drops superseded S-blocks from the tail while there are more than slots.
    fn drop_surplus(&mut self) {
        while self.used > self.shape.slots && self.owners[usize::from(self.tail)].is_none() {
            self.tail = (self.tail + 1) % self.shape.positions();
            self.used -= 1;
        }
    }

    /// What cannot be.
    fn problem(&self) -> Option<String> {
        let positions = (0u16..).zip(&self.owners);
        let mut valid = positions.filter_map(|(position, owner)| Some((position, (*owner)?)));
        let (position, segment) = valid.find(|(position, _)| !self.is_inside(*position))?;
        let (tail, used) = (self.tail, self.used);
        Some(format!(
            "S-block {segment} lies in position {position}, outside of the log of {used} from {tail} on"
        ))
    }
}

/// Parts of a block were written to a place of the ring.
fn take_ring(
    layout: &SBlockLayout,
    place: SBlockPlace,
    (region, block): (&mut SBlockRegion, u32),
    record: &JournalRecord,
) -> Result<(), String> {
    let data = record.data.ok_or_else(short)?;
    let start = data.start.0.checked_sub(place.ring);
    let inside = start.filter(|start| {
        let first_of_next = (start / layout.block + 1) * layout.block;
        !data.is_empty()
            && start + data.blocks.0 <= first_of_next
            && first_of_next <= layout.ring_length()
    });
    let start = inside.ok_or("its data does not lie in one place of the ring")?;
    let first = start % layout.block;
    let mut parts = 0;
    let mut sums = Vec::new();
    for (index, checksum) in record.checksums.iter().enumerate() {
        if !record.is_missing(index) {
            let part = first + index as u64;
            parts |= 1 << part;
            sums.push((part as u8, *checksum));
        }
    }
    if parts != 0 {
        let number = (start / layout.block) as u32;
        region.ring.put(number, block, parts, &sums);
    }
    Ok(())
}

fn short() -> String {
    "it is shorter than it says".to_owned()
}

fn end_of(words: Words<'_>) -> Result<(), String> {
    match words.left() {
        0 => Ok(()),
        _ => Err("it is longer than it says".to_owned()),
    }
}

fn other_settings(name: &str, found: u64, expected: u64) -> String {
    format!("its `{name}` is {found}, and by the settings of the node {expected}")
}
