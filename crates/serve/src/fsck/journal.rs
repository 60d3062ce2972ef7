//! The journal of a member as a reader of the format sees it: the newest checkpoint and the records
//! after it.

use super::disks::Elsewhere;
use super::findings::Findings;
use super::member::{BLOCK, Member};
use super::mirror;
use super::superblocks::Superblocks;
use super::words::Words;
use imbrex_core::crc;
use imbrex_core::durability::block::{self, BlockError, BlockKind, Expected, Header};
use imbrex_core::durability::membership::Page;
use imbrex_core::durability::superblock::{FEATURES, Superblock};
use imbrex_core::durability::{DamagedEnd, Lsn, ReplayEnd, records};
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Uuid;

/// Largest checkpoint that is read: the dirty blocks of a cache of 256 GiB.
const CHECKPOINT_BYTES_MAX: u64 = 1 << 30;
/// Longest ring that is read: 1 GiB.
const RING_BLOCKS_MAX: u64 = 1 << 18;
/// Blocks that are read at once.
const CHUNK_BLOCKS: u64 = 64;

/// A record after the map of a checkpoint: in the journal, or in a part of the checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalRecord {
    /// The journal block it is in; `None` of one in the checkpoint.
    pub lsn: Option<u64>,
    /// What it says, in the numbers of the layer.
    pub kind: u8,
    /// The words that belong to it.
    pub payload: Vec<u8>,
    /// Where its data lies.
    pub data: Option<Extent>,
    /// The checksum of each block of the data.
    pub checksums: Vec<u32>,
    /// For each block of the data, whether it is there: those of records that no flush is known to
    /// have covered may be missing, and are rolled back then. Empty when all are.
    pub missing: Vec<bool>,
}

impl JournalRecord {
    /// True when the block of the data with this index must be rolled back.
    pub fn is_missing(&self, index: usize) -> bool {
        self.missing.get(index).copied().unwrap_or(false)
    }

    /// The blocks that a record was written for whose payload is the number of the first. Their data
    /// lies in places of one block, from `base` on.
    pub(super) fn written(&self, base: u64) -> Result<Vec<Written>, String> {
        let mut words = Words::new(&self.payload);
        let first = words.u64().filter(|_| words.left() == 0);
        let first = first.ok_or("its payload is not one number")?;
        let data = self.data.ok_or("it has no data")?;
        let place = |at: u64| u32::try_from((data.start.0 + at).checked_sub(base)?).ok();
        let block = |(index, checksum): (usize, &u32)| {
            let at = index as u64;
            Ok(Written {
                lba: first.checked_add(at).ok_or("its blocks end past all")?,
                place: place(at).ok_or("its data does not lie in places")?,
                checksum: *checksum,
                is_missing: self.is_missing(index),
            })
        };
        self.checksums.iter().enumerate().map(block).collect()
    }

    /// What is wrong with a record of a kind that its layer does not have.
    pub(super) fn unknown(&self) -> String {
        let with = match self.data {
            Some(_) => "with",
            None => "without",
        };
        format!("it is of the unknown kind {}, {with} data", self.kind)
    }
}

/// A record in a journal block, or in the checkpoint, in words.
pub(super) fn record_in(lsn: Option<u64>) -> String {
    match lsn {
        Some(lsn) => format!("record in journal block {lsn}"),
        None => "record in the checkpoint".to_owned(),
    }
}

/// A block whose data a record speaks of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// The block.
    pub lba: u64,
    /// The place of its data.
    pub place: u32,
    pub checksum: u32,
    /// The data never became durable.
    pub is_missing: bool,
}

/// What the journal of a member says.
#[derive(Clone, Debug)]
pub struct JournalState {
    /// The copies of the superblock.
    pub superblocks: Superblocks,
    /// The one that counts.
    pub superblock: Superblock,
    /// What the member says of the copies of the journal, where it is mirrored.
    pub mirror: Option<Page>,
    /// The bytes of the checkpoint, parts that are records apart.
    pub checkpoint: Vec<u8>,
    /// The records after it: those of its parts, then those of the journal.
    pub records: Vec<JournalRecord>,
    /// The journal block that would be written next.
    pub next: u64,
    /// Every journal block before it is known to be durable.
    pub mark: u64,
    /// The block at the end, when it is neither an older whole one nor zeroes.
    pub damaged_end: Option<DamagedEnd>,
}

/// Blocks at each end of the area that are neither of a checkpoint nor of the ring.
fn end_blocks(superblock: &Superblock) -> u64 {
    2 + u64::from(mirror::is_mirrored(superblock))
}

/// First block of the ring, and its length.
pub fn ring(superblock: &Superblock) -> (u64, u64) {
    let end = end_blocks(superblock);
    let start = end + 2 * superblock.checkpoint_blocks;
    (start, superblock.area_blocks - end - start)
}

/// First block of the place of the checkpoint.
pub fn checkpoint_start(superblock: &Superblock) -> u64 {
    end_blocks(superblock) + u64::from(superblock.checkpoint_place) * superblock.checkpoint_blocks
}

impl JournalState {
    /// Reads the journal of a member, of which the superblocks were found, and says what is wrong
    /// with it. The data of some records may lie elsewhere.
    /// `None` when nothing can be said of the state of the layer.
    pub(super) fn read(
        superblocks: Superblocks,
        (member, elsewhere): (&Member, Option<Elsewhere<'_>>),
        repair: bool,
        into: &mut Findings,
    ) -> Option<JournalState> {
        let mut first_problem = None;
        let mut chosen = None;
        for candidate in &superblocks.candidates {
            match read_checkpoint(candidate, member) {
                Ok(checkpoint) => {
                    chosen = Some((*candidate, checkpoint));
                    break;
                }
                Err(problem) => {
                    first_problem.get_or_insert(problem);
                }
            }
        }
        let Some((superblock, checkpoint)) = chosen else {
            superblocks.check(&superblocks.candidates[0], member, repair, into);
            let problem = first_problem.expect("a candidate that failed");
            into.damage(member.name(), "checkpoint", problem);
            return None;
        };
        superblocks.check(&superblock, member, repair, into);
        if superblock.member_blocks > member.blocks() {
            let words = format!(
                "it is of a member of {} blocks, and this one has {}",
                superblock.member_blocks,
                member.blocks()
            );
            into.damage(member.name(), "superblock", words);
        }
        let unknown = superblock.required_features & !FEATURES | superblock.read_only_features;
        if unknown != 0 {
            let words = format!("it needs features that this build does not know: {unknown:#x}");
            into.damage(member.name(), "superblock", words);
        }
        let mut state = JournalState {
            mirror: mirror::read(&superblock, member, into),
            superblocks,
            checkpoint: checkpoint.map,
            records: Vec::new(),
            next: superblock.replay_from,
            mark: superblock.replay_from,
            damaged_end: None,
            superblock,
        };
        if let Err(problem) = state.take(None, &checkpoint.records, elsewhere) {
            into.damage(member.name(), "checkpoint", format!("its parts: {problem}"));
            return None;
        }
        if !superblock.clean
            && let Err(problem) = state.replay(member, elsewhere)
        {
            into.damage(member.name(), "journal", problem);
        }
        if let Some(damaged) = state.damaged_end {
            into.note(member.name(), DamagedEnd::words(damaged.data_blocks_max));
        }
        state.look_for_data(member, elsewhere, into);
        Some(state)
    }

    /// True when the journal takes as many blocks as the settings of the node say; told otherwise.
    pub(super) fn takes(&self, expected: u64, member: &Member, into: &mut Findings) -> bool {
        let found = self.superblock.area_blocks;
        if found != expected {
            let words = format!(
                "its journal takes {found} blocks, and by the settings of the node {expected}"
            );
            into.damage(member.name(), "superblock", words);
        }
        found == expected
    }

    /// Hands the checkpoint and then each record to the state of a layer, and says what is wrong with
    /// them. False when that is the checkpoint: then nothing is known.
    pub(super) fn tell<S>(
        &self,
        state: &mut S,
        checkpoint: impl FnOnce(&mut S, &[u8]) -> Result<(), String>,
        record: impl Fn(&mut S, &JournalRecord) -> Result<(), String>,
        (member, into): (&Member, &mut Findings),
    ) -> bool {
        if let Err(problem) = checkpoint(state, &self.checkpoint) {
            into.damage(member.name(), "checkpoint", problem);
            return false;
        }
        for it in &self.records {
            if let Err(problem) = record(state, it) {
                let words = format!("{}: {problem}", record_in(it.lsn));
                into.damage(member.name(), "journal", words);
            }
        }
        true
    }

    /// Reads the ring once around.
    fn replay(&mut self, member: &Member, elsewhere: Option<Elsewhere<'_>>) -> Result<(), String> {
        let (start, blocks) = ring(&self.superblock);
        if blocks > RING_BLOCKS_MAX {
            return Err(format!("its ring has {blocks} blocks, more than can be read"));
        }
        let from = self.superblock.replay_from;
        let mut bytes = Vec::new();
        let mut read = 0;
        let mut is_over = false;
        let mut end = ReplayEnd::default();
        while read < blocks {
            let at = (from + read) % blocks;
            let count = CHUNK_BLOCKS.min(blocks - read).min(blocks - at);
            let unreadable = |error| format!("blocks from {} on: {error}", start + at);
            member.read(start + at, count, &mut bytes).map_err(unreadable)?;
            for (i, sealed) in (0..).zip(bytes.chunks_exact(BLOCK)) {
                let lsn = from + read + i;
                let unsealed = journal_block(sealed, start + at + i, &self.superblock);
                let found = unsealed
                    .as_ref()
                    .ok()
                    .filter(|(header, _)| header.generation == self.superblock.epoch);
                if let Some((header, _)) = found {
                    self.mark = self.mark.max(header.mark);
                }
                match found {
                    Some((header, payload)) if !is_over && header.sequence == lsn => {
                        let taken = self.take(Some(lsn), payload, elsewhere);
                        taken.map_err(|problem| format!("block {lsn}: {problem}"))?;
                        self.next = lsn + 1;
                    }
                    Some((header, _))
                        if is_over && header.sequence > self.next && header.mark > self.next =>
                    {
                        return Err(format!(
                            "block {} is missing, and block {} says it was durable",
                            self.next, header.sequence
                        ));
                    }
                    _ => {
                        is_over = true;
                        let dropped = found.filter(|(header, _)| header.sequence == lsn);
                        let payload = dropped.map(|(_, payload)| *payload);
                        end.block(Lsn(lsn), payload.ok_or(unsealed.as_ref().err()));
                    }
                }
            }
            read += count;
        }
        self.damaged_end = end.damaged();
        Ok(())
    }

    fn take(
        &mut self,
        lsn: Option<u64>,
        payload: &[u8],
        elsewhere: Option<Elsewhere<'_>>,
    ) -> Result<(), String> {
        for record in records(payload) {
            let record = record.map_err(|_| "the records cannot be taken apart")?;
            let blocks = match elsewhere.filter(|it| it.kind == record.kind) {
                Some(elsewhere) => elsewhere.member.blocks(),
                None => self.superblock.member_blocks,
            };
            if let Some(data) = record.data
                && data.end().0 > blocks
            {
                return Err("a record names data past the end of the member".to_owned());
            }
            self.records.push(JournalRecord {
                lsn,
                kind: record.kind,
                payload: record.payload.to_vec(),
                data: record.data,
                checksums: (0..record.checksums.len() / 4)
                    .map(|index| record.checksum(index))
                    .collect(),
                missing: Vec::new(),
            });
        }
        Ok(())
    }

    /// Which data of records that no flush is known to have covered is there.
    fn look_for_data(
        &mut self,
        journal: &Member,
        elsewhere: Option<Elsewhere<'_>>,
        into: &mut Findings,
    ) {
        let mut bytes = Vec::new();
        let mut rolled_back = 0;
        for record in &mut self.records {
            let is_unsure = record.lsn.is_some_and(|lsn| lsn >= self.mark);
            let Some(data) = record.data.filter(|_| is_unsure) else {
                continue;
            };
            let member = match elsewhere.filter(|it| it.kind == record.kind) {
                Some(elsewhere) => elsewhere.member,
                None => journal,
            };
            let found: Vec<bool> = (data.start.0..data.end().0)
                .zip(&record.checksums)
                .map(|(address, checksum)| {
                    let is_read = member.read(address, 1, &mut bytes).is_ok();
                    !is_read || crc::crc32c(&bytes) != *checksum
                })
                .collect();
            let missing = found.iter().filter(|missing| **missing).count();
            if missing > 0 {
                rolled_back += missing;
                record.missing = found;
            }
        }
        if rolled_back > 0 {
            let words = "blocks of data never became durable; the next opening rolls them back";
            into.note(journal.name(), format!("{rolled_back} {words}"));
        }
    }
}

fn journal_block<'a>(
    sealed: &'a [u8],
    address: u64,
    superblock: &Superblock,
) -> Result<(Header, &'a [u8]), BlockError> {
    let expected = Expected::new(BlockKind::Journal, Some(superblock.member), address);
    block::unseal(sealed, expected)
}

/// A checkpoint that was read.
struct Checkpoint {
    /// What the layer gave for it, with parts in the words of the layer.
    map: Vec<u8>,
    /// The parts that are records.
    records: Vec<u8>,
}

/// Reads the checkpoint that a superblock names.
fn read_checkpoint(superblock: &Superblock, member: &Member) -> Result<Checkpoint, String> {
    let length = superblock.checkpoint_bytes;
    let pages = superblock.pages();
    if pages > superblock.checkpoint_blocks {
        return Err("the superblock places it outside its area".to_owned());
    }
    if length > CHECKPOINT_BYTES_MAX {
        return Err(format!("it has {length} bytes, more than can be read"));
    }
    let start = checkpoint_start(superblock);
    let mut checkpoint = Vec::new();
    let mut bytes = Vec::new();
    let mut generation = 0;
    let mut map_bytes = None;
    for first in (0..pages).step_by(CHUNK_BLOCKS as usize) {
        let count = CHUNK_BLOCKS.min(pages - first);
        let unreadable = |error| format!("pages from {first} on: {error}");
        member.read(start + first, count, &mut bytes).map_err(unreadable)?;
        for (page, sealed) in (first..).zip(bytes.chunks_exact(BLOCK)) {
            let (header, payload) =
                checkpoint_page(sealed, start + page, (page, generation), superblock)
                    .map_err(|problem| format!("page {page}: {problem}"))?;
            let before = std::mem::replace(&mut generation, header.generation);
            // The first page of another generation begins the first part.
            if before != 0 && before != header.generation {
                map_bytes.get_or_insert(checkpoint.len());
            }
            checkpoint.extend_from_slice(payload);
        }
    }
    let is_right = checkpoint.len() as u64 == length
        && crc::crc32c(&checkpoint) == superblock.checkpoint_checksum;
    if !is_right {
        return Err("its bytes do not match the superblock's checksum".to_owned());
    }
    let records = match (superblock.has_record_parts(), map_bytes) {
        (false, _) => Vec::new(),
        (true, Some(map_bytes)) => checkpoint.split_off(map_bytes),
        (true, None) => {
            return Err(
                "no part is behind its map, and the superblock says that there are".to_owned()
            );
        }
    };
    Ok(Checkpoint { map: checkpoint, records })
}

fn checkpoint_page<'a>(
    sealed: &'a [u8],
    address: u64,
    (page, before): (u64, u64),
    superblock: &Superblock,
) -> Result<(Header, &'a [u8]), String> {
    let expected = Expected::new(BlockKind::CheckpointPage, Some(superblock.member), address);
    let (header, payload) = block::unseal(sealed, expected).map_err(|error| error.message())?;
    if header.sequence != page || !superblock.has_page(page, &header, before) {
        return Err(format!("it is page {} of generation {}", header.sequence, header.generation));
    }
    Ok((header, payload))
}

/// Says what is wrong when a member does not belong to the set of the image.
pub(super) fn check_set(
    superblock: &Superblock,
    set: Option<Uuid>,
    member: &str,
    into: &mut Findings,
) {
    if let Some(set) = set
        && superblock.set != set
    {
        let words = format!("it belongs to image {}, not to image {set}", superblock.set);
        into.damage(member, "superblock", words);
    }
}
