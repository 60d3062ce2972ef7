//! A stack under test.

use super::medium::Medium;
use super::workload::Shape;
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::stack::Stack;
use imbrex_core::units::Lba;
use std::rc::Rc;

/// A member of a stack under test.
#[derive(Clone)]
pub struct Member {
    /// The word used in reports.
    pub name: Rc<str>,
    /// The disk.
    pub geometry: Geometry,
    /// The disk never tears a block and never lies: no layer keeps checksums of its data.
    pub is_trusted: bool,
    /// The member with the journal that speaks of data on this one, and the kind of its records that
    /// do, where it is another.
    pub data_of: Option<(Rc<str>, u8)>,
    /// The slices that layers keep their state on, in ascending order: addresses there begin at 0.
    /// None where the member is not cut.
    pub parts: Vec<Extent>,
    /// What is known of the blocks that lie there.
    pub blocks: Rc<dyn KnownBlocks>,
}

/// What is known of the blocks of a member.
pub trait KnownBlocks {
    /// The name of a kind of record in the journal block at an address.
    fn record_name(&self, _at: u64, _kind: u8) -> Option<&'static str> {
        None
    }

    /// True when a block is data of a layer that takes every write though that block is bad.
    fn stops_nothing(&self, _at: u64) -> bool {
        false
    }
}

/// Nothing is known.
impl KnownBlocks for () {}

impl Member {
    /// A disk that is not cut, of which nothing more is known and whose data a layer checks.
    pub fn new(name: &str, geometry: Geometry) -> Member {
        Member {
            name: name.into(),
            geometry,
            is_trusted: false,
            data_of: None,
            parts: Vec::new(),
            blocks: Rc::new(()),
        }
    }

    /// The address of a block in its slice.
    pub fn address_in_part(&self, at: u64) -> u64 {
        at - part_of(&self.parts, at, self.geometry.blocks.0).start.0
    }

    /// True when a block is data of a layer that keeps checksums and takes every write though that block
    /// is bad.
    pub fn stops_nothing(&self, at: u64) -> bool {
        !self.is_trusted && self.blocks.stops_nothing(at)
    }

    /// The name of a kind of record in the journal block at an address.
    pub fn record_name(&self, at: u64, kind: u8) -> String {
        let name = self.blocks.record_name(at, kind);
        name.map_or(kind.to_string(), str::to_string)
    }
}

/// The slice of a member that holds a block; the whole member where none does.
pub fn part_of(parts: &[Extent], at: u64, blocks: u64) -> Extent {
    let part = parts.iter().find(|part| part.contains(Lba(at)));
    part.copied().unwrap_or(Extent::new(0, blocks))
}

/// A stack that was just built.
pub struct Parts {
    /// The layers.
    pub stack: Stack,
    /// Its disks, in the order of their numbers.
    pub members: Vec<Member>,
    /// A layer keeps something on them over restarts.
    pub keeps_state: bool,
    /// What a workload must know.
    pub shape: Shape,
}

/// How a stack under test is built from a seed: the same stack at every call.
pub struct Subject {
    /// The name on the command line.
    pub name: String,
    /// Builds it.
    pub build: Box<dyn Fn(u64) -> Parts + Send + Sync>,
    /// An opinion of its own on what the members hold after each recovery.
    pub check: Option<CheckMembers>,
}

/// Says what is wrong with the members of the stack of a seed, given with their names.
pub type CheckMembers = Box<dyn Fn(u64, &[(Rc<str>, Medium)]) -> Result<(), String> + Send + Sync>;

impl Subject {
    /// Members on which nothing was ever written.
    pub fn blank(&self, seed: u64) -> Vec<Medium> {
        let members = (self.build)(seed).members;
        let blank = |member: &Member| {
            let medium = Medium::new(&member.geometry).trusted_if(member.is_trusted);
            medium.in_parts(&member.parts)
        };
        members.iter().map(blank).collect()
    }
}
