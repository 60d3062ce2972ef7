//! What the campaign has been through: which structures were in the window of pending writes at
//! the cut, and how busy the workloads kept the journals.

use super::image::{Cut, Mode};
use super::log::{Log, LoggedWrite};
use super::subject::Member;
use imbrex_core::durability::block::{BlockKind, Expected, Header, unseal};
use imbrex_core::durability::records;
use imbrex_core::durability::superblock::Superblock;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Points by what was pending at the cut and the mode.
#[derive(Clone, Default, Debug)]
pub struct Coverage {
    /// Rows by name; a column for each mode in the order of [`Mode::ALL`].
    pub rows: BTreeMap<String, [u64; Mode::ALL.len()]>,
    /// Hashes of the cuts of this seed.
    cuts: HashSet<u64>,
    /// Cuts of the seeds that were added, each counted once in its seed.
    cuts_added: u64,
}

impl Coverage {
    /// Counts a cut.
    pub fn count(&mut self, cut: &Cut, mode: Mode, log: &Log, members: &[Member]) {
        let mut hasher = DefaultHasher::new();
        cut.hash(&mut hasher);
        self.cuts.insert(hasher.finish());
        let mut names = BTreeSet::new();
        for (write, _) in &cut.fates {
            let write = &log.writes[*write];
            names_of(write, &members[write.member], &mut names);
        }
        if names.is_empty() {
            names.insert("nothing".to_string());
        }
        for name in names {
            let row = self.rows.entry(name).or_default();
            row[mode as usize] += 1;
        }
    }

    /// Power cuts that differ from every other of their seed: in when, in the order of the writes or
    /// in what becomes of one.
    pub fn distinct_cuts(&self) -> u64 {
        self.cuts_added + self.cuts.len() as u64
    }

    /// Adds what another seed has counted.
    pub fn add(&mut self, other: Coverage) {
        self.cuts_added += other.distinct_cuts();
        for (name, row) in other.rows {
            let mine = self.rows.entry(name).or_default();
            mine.iter_mut().zip(row).for_each(|(mine, more)| *mine += more);
        }
    }
}

fn names_of(write: &LoggedWrite, of: &Member, names: &mut BTreeSet<String>) {
    let member = &of.name;
    for (at, block) in (write.start..).zip(&write.data) {
        let Some(kind) = kind_of(&block[..]) else {
            names.insert(format!("{member}: data, {}", write.cause.name()));
            continue;
        };
        names.insert(format!("{member}: {}", kind.name()));
        if kind == BlockKind::Journal
            && let Ok((_, payload)) =
                unseal(&block[..], Expected::new(kind, None, of.address_in_part(at)))
        {
            let kinds = records(payload).filter_map(|record| record.ok().map(|it| it.kind));
            for kind in kinds {
                let name = of.record_name(at, kind);
                names.insert(format!("{member}: record {name}"));
            }
        }
    }
}

/// Which sealed block the bytes begin like.
pub fn kind_of(block: &[u8]) -> Option<BlockKind> {
    if block[..4] != imbrex_core::durability::block::MAGIC.to_le_bytes() {
        return None;
    }
    let number = u16::from_le_bytes([block[10], block[11]]);
    [
        BlockKind::Superblock,
        BlockKind::CheckpointPage,
        BlockKind::Journal,
        BlockKind::WriteIntent,
        BlockKind::ChecksumTable,
        BlockKind::Label,
    ]
    .into_iter()
    .find(|kind| *kind as u16 == number)
}

/// How busy a run kept one member's journal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct JournalActivity {
    /// Journal blocks written.
    pub blocks: u64,
    /// Times the ring was written from end to end after the first time.
    pub wraps: u64,
    /// Checkpoints that reached a superblock.
    pub checkpoints: u64,
}

/// The activity of each member's journal; a member without one has none.
pub fn activity(log: &Log, members: &[Member]) -> Vec<JournalActivity> {
    let mut found = vec![JournalActivity::default(); members.len()];
    let mut addresses = vec![BTreeSet::new(); members.len()];
    let mut generations = vec![BTreeSet::new(); members.len()];
    for write in &log.writes {
        for (at, block) in (write.start..).zip(&write.data) {
            match kind_of(&block[..]) {
                Some(BlockKind::Journal) => {
                    found[write.member].blocks += 1;
                    addresses[write.member].insert(at);
                }
                Some(BlockKind::Superblock) => {
                    let at = members[write.member].address_in_part(at);
                    if let Ok(superblock) = Superblock::decode(&block[..], at, false) {
                        generations[write.member].insert(superblock.generation);
                    }
                }
                _ => {}
            }
        }
    }
    for (member, activity) in found.iter_mut().enumerate() {
        let ring = addresses[member].len().max(1) as u64;
        activity.wraps = activity.blocks.saturating_sub(1) / ring;
        activity.checkpoints = generations[member].len() as u64;
    }
    found
}

/// What a pending write is, in words.
pub fn describe_write(write: &LoggedWrite, members: &[Member]) -> String {
    let member = &members[write.member];
    let mut names = BTreeSet::new();
    names_of(write, member, &mut names);
    let names: Vec<String> = names.into_iter().collect();
    let extent = write.extent();
    let sequence = write
        .data
        .first()
        .and_then(|block| header_of(&block[..], member.address_in_part(write.start)));
    let number = sequence.map_or(String::new(), |header| {
        format!(", number {}, epoch {}", header.sequence, header.generation)
    });
    format!(
        "{} at {}..{}{number} (events {} to {})",
        names.join(" + "),
        extent.start.0,
        extent.end().0,
        write.submitted,
        write.completed.map_or("never".to_string(), |event| event.to_string()),
    )
}

fn header_of(block: &[u8], at: u64) -> Option<Header> {
    let kind = kind_of(block)?;
    let (header, _) = unseal(block, Expected::new(kind, None, at)).ok()?;
    Some(header)
}
