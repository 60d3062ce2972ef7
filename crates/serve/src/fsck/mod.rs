//! Reading what durable layers keep on their members, without the layers: for `imbrex check` and
//! `imbrex inspect`.
//!
//! It lives beside the images because it reads files, and shares with the layers only the codecs of
//! the format: sealed blocks, superblocks, records. What a layer makes of them is worked out here a
//! second time, so that a mistake in one of the two is noticed. It always comes to an end, whatever
//! the members hold, in memory that is bounded by a constant and by what good blocks say.

mod array;
mod array_blocks;
mod array_member;
mod buffer;
mod cache;
mod copies;
mod data;
mod disks;
mod findings;
mod intent;
mod journal;
mod kinds;
mod member;
mod mirror;
mod mirrored;
mod parity_array;
mod parity_blocks;
mod parity_disks;
mod parity_doubt;
mod parity_missed;
mod parity_records;
mod parity_replay;
mod parity_sums;
mod parity_words;
mod ranges;
mod ring;
mod s_blocks;
mod scratch;
mod segment_sums;
mod segments;
mod superblocks;
mod tables;
mod translation;
mod words;

pub use array::ArrayState;
pub use array_member::{ArrayMember, Has};
pub use buffer::{BufferState, LogPlace};
pub use cache::{CacheState, Place};
pub use findings::{Finding, Findings};
pub use intent::{IntentPage, IntentState};
pub use journal::{JournalRecord, JournalState, checkpoint_start, ring};
pub use member::Member;
pub use parity_array::ParityArrayState;
pub use ranges::Ranges;
pub use ring::{Ring, RingPlace};
pub use s_blocks::{SBlockPart, SBlockRegion, SBlocksState};
pub use scratch::Scratch;
pub use segments::{Noted, Place as SegmentPlace, SegmentGeometry, SegmentsState};
pub use superblocks::{Copy, NoSuperblock, Superblocks};
pub use translation::{Band, Logged, TranslationState, Where};

use disks::{Disks, Elsewhere};
use imbrex_core::array::raid1::Raid1Layout;
use imbrex_core::array::raid4smr::Raid4SmrShape;
use imbrex_core::durability::LayerKind;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::SBlockLayout;
use kinds::Device;
pub use kinds::joined::Joint;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Segments that are rewritten in place.
    Segments {
        /// The disk.
        disk: Box<Shape>,
        /// What takes the journal and the slots instead of the disk.
        journal: Option<Box<Shape>>,
        /// Blocks that it offers.
        blocks: u64,
        /// Where everything lies.
        geometry: Box<SegmentGeometry>,
    },
    /// A translation by S-blocks.
    SBlocks {
        /// The disk.
        disk: Box<Shape>,
        /// Blocks that it offers.
        blocks: u64,
        /// Where everything lies.
        layout: Box<SBlockLayout>,
    },
    /// A write buffer in memory.
    MemoryBuffer {
        /// What its log lies on, and the places of it; none where it keeps no log.
        log: Option<(Box<Shape>, u64)>,
        /// Where it hands blocks down.
        below: Box<Shape>,
        /// Blocks that it offers.
        blocks: u64,
    },
    /// A durable array of copies.
    Raid1 {
        /// The members and behind them the spares, with the names of their nodes.
        below: Vec<(String, Shape)>,
        /// How many are members.
        columns: usize,
        /// Where everything lies.
        layout: Box<Raid1Layout>,
    },
    /// A durable parity array.
    Raid4Smr {
        /// The homes, the data disk and the parity disk, with the names of their nodes.
        below: Vec<(String, Shape)>,
        /// Blocks that it offers.
        blocks: u64,
        /// Where everything lies.
        shape: Box<Raid4SmrShape>,
    },
    /// What is not there, with the reason: an array may do without.
    Missing(String),
    /// A store of copies, under the name of its node.
    ReadCache(String, Box<Shape>),
    /// A node beside which a store of copies stands, which comes first.
    WithCopies(Box<Shape>, Box<Shape>),
    /// A part of a node that is no disk.
    Slice(Extent, Box<Shape>),
    /// A node of this name that several nodes stand on: it is read once.
    Shared(String, Rc<Shape>),
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
    /// The noted slots of a segment layout.
    Segments(Rc<SegmentsState>),
    /// The map of a translation by S-blocks.
    SBlocks(Rc<SBlocksState>),
    /// The members of an array, on the one whose journal is gone by.
    Array(Rc<ArrayState>),
    /// Where the blocks of a parity array are, on the one whose journal is gone by.
    ParityArray(Rc<ParityArrayState>),
    /// The map of the log of a write buffer.
    Buffer(Rc<BufferState>),
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
    let mut bare = BTreeSet::new();
    find_bare(shape, &mut bare);
    for name in bare {
        let words = "no layer keeps anything on it that could be checked";
        reading.findings.note(name, words);
    }
    let mut reader =
        Reader { set, numbers: Vec::new(), shared: BTreeMap::new(), checks, reading: &mut reading };
    walk(shape, &mut reader);
    reading
}

/// Finds the disks that no layer keeps anything on.
fn find_bare<'a>(shape: &'a Shape, into: &mut BTreeSet<&'a str>) {
    match shape {
        Shape::Disk(member) => {
            into.insert(member.name());
        }
        Shape::Joined { below, .. } => below.iter().for_each(|shape| find_bare(shape, into)),
        Shape::MemoryBuffer { below, .. } => find_bare(below, into),
        Shape::WithCopies(_, layer) | Shape::Numbered(_, layer) => find_bare(layer, into),
        Shape::Slice(_, below) => find_bare(below, into),
        Shape::Shared(_, shape) => find_bare(shape, into),
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
        Shape::Segments { disk, journal, blocks, geometry } => {
            let on = (&**disk, journal.as_deref());
            kinds::segments::read(on, *blocks, geometry, reader)
        }
        Shape::SBlocks { disk, blocks, layout } => {
            kinds::s_blocks::read(disk, *blocks, layout, reader)
        }
        Shape::MemoryBuffer { log, below, blocks } => {
            let log = log.as_ref().map(|(log, places)| (&**log, *places));
            kinds::memory_buffer::read(log, below, *blocks, reader)
        }
        Shape::Raid1 { below, columns, layout } => {
            kinds::raid1::read(below, *columns, layout, reader)
        }
        Shape::Raid4Smr { below, blocks, shape } => {
            kinds::raid4smr::read(below, *blocks, shape, reader)
        }
        Shape::Missing(_) => None,
        Shape::ReadCache(node, flash) => kinds::read_cache::read(node, flash, reader),
        Shape::WithCopies(copies, layer) => {
            walk(copies, reader);
            walk(layer, reader)
        }
        Shape::Slice(part, below) => Some(kinds::slice::of(walk(below, reader)?, *part)),
        Shape::Shared(node, shape) => reader.once(node, shape),
        Shape::Numbered(numbers, layer) => {
            reader.numbers.clone_from(numbers);
            walk(layer, reader)
        }
        Shape::Joined { joint, blocks, below } => {
            // Also those behind one that cannot be read are read.
            let devices = below.iter().map(|shape| walk(shape, reader)).collect();
            kinds::joined::of(devices, *joint, *blocks)
        }
    }
}

/// How a stack is read, and what was read so far.
struct Reader<'a> {
    set: Option<Uuid>,
    /// The numbers of the members of the layer that is read next; empty where they are not known.
    numbers: Vec<u16>,
    /// What the nodes offer that several stand on, by name.
    shared: BTreeMap<String, Option<Device>>,
    checks: Checks,
    reading: &'a mut Reading,
}

impl Reader<'_> {
    fn findings(&mut self) -> &mut Findings {
        &mut self.reading.findings
    }

    /// Reads a node that several stand on when the first of them asks.
    fn once(&mut self, node: &str, shape: &Shape) -> Option<Device> {
        if let Some(known) = self.shared.get(node) {
            return known.clone();
        }
        let device = walk(shape, self);
        self.shared.insert(node.to_owned(), device.clone());
        device
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
    MemberState { name: member.name().to_owned(), blocks: member.blocks(), journal, layer }
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
