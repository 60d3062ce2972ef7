//! Reading what durable layers keep on their members, without the layers: for `imbrex check` and
//! `imbrex inspect`.
//!
//! It lives beside the images because it reads files, and shares with the layers only the codecs of
//! the format: sealed blocks, superblocks, records. What a layer makes of them is worked out here a
//! second time, so that a mistake in one of the two is noticed. It always comes to an end, whatever
//! the members hold, in memory that is bounded by a constant and by what good blocks say.

mod cache;
mod data;
mod disks;
mod findings;
mod intent;
mod journal;
mod kinds;
mod member;
mod mirror;
mod ranges;
mod scratch;
mod superblocks;
mod translation;
mod words;

pub use cache::{CacheState, Place};
pub use findings::{Finding, Findings};
pub use intent::{IntentPage, IntentState};
pub use journal::{JournalRecord, JournalState, checkpoint_start, ring};
pub use member::Member;
pub use ranges::Ranges;
pub use scratch::Scratch;
pub use superblocks::{Copy, NoSuperblock, Superblocks};
pub use translation::{Band, Logged, TranslationState, Where};

use disks::{Disks, Elsewhere};
use imbrex_core::durability::LayerKind;
use imbrex_core::lifecycle::Uuid;
use kinds::Device;
pub use kinds::joined::Joint;
use std::rc::Rc;

/// What is to be done beside looking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    /// Read all data and compare it with its checksums.
    pub data: bool,
    /// Write damaged copies of superblocks again.
    pub repair: bool,
}

/// A stack as far as a reader of its members must know it.
#[derive(Debug)]
pub enum Shape {
    /// A disk: a layer above may keep its state on it.
    Disk(Member),
    /// A persistent cache over bands on a disk.
    PersistentCache(Member),
    /// A persistent cache with its log on one node and its bands on a disk.
    PersistentCacheOnTwo {
        /// What the log lies on.
        log: Box<Shape>,
        /// The disk of the bands.
        home: Member,
    },
    /// A write-back cache.
    Cache {
        /// Its flash.
        flash: Box<Shape>,
        /// What it caches.
        backing: Box<Shape>,
    },
    /// A layer whose members have numbers in their set, in the order of its ports.
    Numbered(Vec<u16>, Box<Shape>),
    /// Nodes that are joined to one.
    Joined {
        /// How.
        joint: Joint,
        /// Blocks that they offer together; `None` where that is as many as there are.
        blocks: Option<u64>,
        /// The nodes.
        below: Vec<Shape>,
    },
}

/// What was read of a member with a journal.
#[derive(Debug)]
pub struct MemberState {
    /// The member.
    pub name: String,
    /// Blocks that are there.
    pub blocks: u64,
    /// Its journal; `None` when nothing can be said of it.
    pub journal: Option<JournalState>,
    /// What the journal says.
    pub layer: LayerState,
}

/// What the journal of a member says.
#[derive(Debug)]
pub enum LayerState {
    /// Nothing that can be read.
    Unknown,
    /// The map of a cache, and what its backing knows of it.
    Cache(Rc<CacheState>, IntentState),
    /// The map of a translation.
    Translation(Rc<TranslationState>),
}

/// What was read of a stack, from the bottom up.
#[derive(Debug, Default)]
pub struct Reading {
    /// Every member with a journal.
    pub members: Vec<MemberState>,
    /// What was found.
    pub findings: Findings,
}

/// Reads a stack and checks it. `set` is the set that the members must belong to.
pub fn read(shape: &Shape, set: Option<Uuid>, checks: Checks) -> Reading {
    let mut reading = Reading::default();
    note_bare(shape, &mut reading.findings);
    let mut reader = Reader {
        set,
        numbers: Vec::new(),
        checks,
        reading: &mut reading,
    };
    walk(shape, &mut reader);
    reading
}

/// Notes the disks that no layer keeps anything on.
fn note_bare(shape: &Shape, into: &mut Findings) {
    match shape {
        Shape::Disk(member) => {
            let words = "no layer keeps anything on it that could be checked".to_owned();
            into.note(member.name(), words);
        }
        Shape::Joined { below, .. } => below.iter().for_each(|shape| note_bare(shape, into)),
        _ => {}
    }
}

/// Reads a node and all below it; answers what the node above may read of it, if that is known.
fn walk(shape: &Shape, reader: &mut Reader<'_>) -> Option<Device> {
    match shape {
        Shape::Disk(disk) => Some(kinds::disk::device(disk)),
        Shape::PersistentCache(disk) => {
            let names = reader.take_names();
            let disks = Disks::One(disk.clone());
            kinds::persistent_cache::read(disks, names.first(), reader)
        }
        Shape::PersistentCacheOnTwo { log, home } => {
            let names = reader.take_names();
            let (log, home) = (walk(log, reader)?.member(), home.clone());
            let disks = Disks::Two { log, home };
            kinds::persistent_cache::read(disks, names.first(), reader)
        }
        Shape::Cache { flash, backing } => kinds::cache::read(flash, backing, reader),
        Shape::Numbered(numbers, layer) => {
            reader.numbers.clone_from(numbers);
            walk(layer, reader)
        }
        Shape::Joined {
            joint,
            blocks,
            below,
        } => kinds::joined::read(below, *joint, *blocks, reader),
    }
}

/// How a stack is read, and what was read so far.
struct Reader<'a> {
    set: Option<Uuid>,
    /// The numbers of the members of the layer that is read next; empty where they are not known.
    numbers: Vec<u16>,
    checks: Checks,
    reading: &'a mut Reading,
}

impl Reader<'_> {
    fn findings(&mut self) -> &mut Findings {
        &mut self.reading.findings
    }

    /// The name that the member behind each port of the layer must have; nothing where it is not
    /// known. A layer asks before those below it are read.
    fn take_names(&mut self) -> Vec<Uuid> {
        let numbers = std::mem::take(&mut self.numbers);
        let names = |set: Uuid| numbers.iter().map(|number| set.member(*number)).collect();
        self.set.map_or_else(Vec::new, names)
    }

    /// Reads the journal of a member, of whose records some may speak of data elsewhere, and checks
    /// that it is the one of that name.
    fn journal(
        &mut self,
        member: &Member,
        elsewhere: Option<Elsewhere<'_>>,
        layer: LayerKind,
        name: Option<&Uuid>,
    ) -> Option<JournalState> {
        let (set, checks) = (self.set, self.checks);
        let state = read_journal((member, elsewhere), set, layer, checks, self.findings())?;
        let found = state.superblock.member;
        if let Some(words) = other_member(self.set, found, name) {
            self.findings().damage(member.name(), STRUCTURE, words);
        }
        Some(state)
    }

    /// Keeps what was read of a member.
    fn keep(&mut self, member: &Member, journal: Option<JournalState>, layer: LayerState) {
        let state = member_state(member, journal, layer);
        self.reading.members.push(state);
    }
}

const STRUCTURE: &str = "superblock";

/// What is wrong when a member of the set is not the one that belongs there.
fn other_member(set: Option<Uuid>, found: Uuid, expected: Option<&Uuid>) -> Option<String> {
    let (set, expected) = (set?, *expected?);
    let (found, expected) = (found.number_in(set)?, expected.number_in(set)?);
    (found != expected)
        .then(|| format!("it is member {found} of the image, and member {expected} belongs here"))
}

fn member_state(member: &Member, journal: Option<JournalState>, layer: LayerState) -> MemberState {
    MemberState {
        name: member.name().to_owned(),
        blocks: member.blocks(),
        journal,
        layer,
    }
}

/// Reads the journal of a member and checks it: `None` when nothing can be said of its layer.
fn read_journal(
    (member, elsewhere): (&Member, Option<Elsewhere<'_>>),
    set: Option<Uuid>,
    layer: LayerKind,
    checks: Checks,
    into: &mut Findings,
) -> Option<JournalState> {
    let superblocks = match Superblocks::find(member) {
        Ok(superblocks) => superblocks,
        Err(reason) => {
            into.damage(member.name(), STRUCTURE, reason.to_string());
            return None;
        }
    };
    let state = JournalState::read(superblocks, (member, elsewhere), checks.repair, into)?;
    journal::check_set(&state.superblock, set, member.name(), into);
    if state.superblock.layer_kind() != Some(layer) {
        let found = state.superblock.layer;
        let words = format!("it is of layer {found}, not of layer {}", layer as u32);
        into.damage(member.name(), STRUCTURE, words);
        return None;
    }
    Some(state)
}
