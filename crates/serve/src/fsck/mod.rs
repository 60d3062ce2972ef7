//! Reading what durable layers keep on their members, without the layers: for `imbrex check` and
//! `imbrex inspect`.
//!
//! It lives beside the images because it reads files, and shares with the layers only the codecs of
//! the format: sealed blocks, superblocks, records. What a layer makes of them is worked out here a
//! second time, so that a mistake in one of the two is noticed. It always comes to an end, whatever
//! the members hold, in memory that is bounded by a constant and by what good blocks say.

mod cache;
mod data;
mod findings;
mod intent;
mod journal;
mod member;
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

use data::Through;
use imbrex_core::durability::LayerKind;
use imbrex_core::lifecycle::Uuid;

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
    /// A write-back cache.
    Cache {
        /// Its flash.
        flash: Member,
        /// What it caches.
        backing: Box<Shape>,
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
    Cache(CacheState, IntentState),
    /// The map of a translation.
    Translation(TranslationState),
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
    if let Shape::Disk(member) = shape {
        let words = "no layer keeps anything on it that could be checked".to_owned();
        reading.findings.note(member.name(), words);
    }
    walk(shape, set, checks, &mut reading);
    reading
}

fn walk(shape: &Shape, set: Option<Uuid>, checks: Checks, reading: &mut Reading) {
    match shape {
        Shape::Disk(_) => {}
        Shape::PersistentCache(disk) => {
            let layer = LayerKind::PersistentCache;
            let journal = read_journal(disk, set, layer, checks, &mut reading.findings);
            let state = journal.as_ref().and_then(|journal| {
                let state = TranslationState::read(journal, disk, &mut reading.findings)?;
                let mut through = Through::new(&state, disk, journal.superblock.member);
                through.check_tables(&mut reading.findings);
                if checks.data {
                    through.check_data(&mut reading.findings);
                }
                Some(state)
            });
            let layer = state.map_or(LayerState::Unknown, LayerState::Translation);
            reading.members.push(member_state(disk, journal, layer));
        }
        Shape::Cache { flash, backing } => {
            walk(backing, set, checks, reading);
            let into = &mut reading.findings;
            let journal = read_journal(flash, set, LayerKind::Cache, checks, into);
            let state = journal
                .as_ref()
                .and_then(|journal| CacheState::read(journal, flash, into));
            if checks.data
                && let Some(state) = &state
            {
                state.check_data(flash, into);
            }
            let below = reading.members.last();
            let intent = read_intent(backing, below);
            if let Some((intent, name)) = &intent {
                let generation = journal
                    .as_ref()
                    .map(|journal| journal.superblock.generation);
                let cache = state.as_ref().zip(generation);
                intent.check(cache, name, &mut reading.findings);
            }
            let intent = intent.map(|(intent, _)| intent).unwrap_or_default();
            let layer = match state {
                Some(state) => LayerState::Cache(state, intent),
                None => LayerState::Unknown,
            };
            reading.members.push(member_state(flash, journal, layer));
        }
    }
}

fn member_state(member: &Member, journal: Option<JournalState>, layer: LayerState) -> MemberState {
    MemberState {
        name: member.name().to_owned(),
        blocks: member.blocks(),
        journal,
        layer,
    }
}

/// The write-intent pages on a backing, and the name of the disk that they are on. `below` is what
/// was read of the backing.
fn read_intent<'a>(
    backing: &'a Shape,
    below: Option<&MemberState>,
) -> Option<(IntentState, &'a str)> {
    match backing {
        Shape::Disk(disk) => {
            let read = |address, bytes: &mut Vec<u8>| {
                disk.read(address, 1, bytes)
                    .map_err(|error| error.to_string())
            };
            Some((IntentState::read(disk.disk_blocks(), read), disk.name()))
        }
        Shape::PersistentCache(disk) => {
            let below = below?;
            let LayerState::Translation(state) = &below.layer else {
                return None;
            };
            let member = below.journal.as_ref()?.superblock.member;
            let mut through = Through::new(state, disk, member);
            let blocks = through.blocks();
            let read = |address, bytes: &mut Vec<u8>| through.read(address, bytes);
            Some((IntentState::read(blocks, read), disk.name()))
        }
        Shape::Cache { .. } => None,
    }
}

/// Reads the journal of a member and checks it: `None` when nothing can be said of its layer.
fn read_journal(
    member: &Member,
    set: Option<Uuid>,
    layer: LayerKind,
    checks: Checks,
    into: &mut Findings,
) -> Option<JournalState> {
    const STRUCTURE: &str = "superblock";
    let superblocks = match Superblocks::find(member) {
        Ok(superblocks) => superblocks,
        Err(reason) => {
            into.damage(member.name(), STRUCTURE, reason.to_string());
            return None;
        }
    };
    let state = JournalState::read(superblocks, member, checks.repair, into)?;
    journal::check_set(&state.superblock, set, member.name(), into);
    if state.superblock.layer_kind() != Some(layer) {
        let found = state.superblock.layer;
        let words = format!("it is of layer {found}, not of layer {}", layer as u32);
        into.damage(member.name(), STRUCTURE, words);
        return None;
    }
    Some(state)
}
