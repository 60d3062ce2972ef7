//! A stack under test.

use super::medium::Medium;
use super::workload::Shape;
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::translation::SBlockLayout;
use imbrex_core::translation::segment::codec::Identity;
use imbrex_core::translation::segment::{SegmentAreas, SegmentLayout};
use imbrex_core::units::Lba;

/// A member of a stack under test.
#[derive(Clone)]
pub struct Member {
    /// The word used in reports.
    pub name: &'static str,
    /// The disk.
    pub geometry: Geometry,
    /// The disk never tears a block and never lies: no layer keeps checksums of its data.
    pub is_trusted: bool,
    /// The member with the journal that speaks of data on this one, and the kind of its records that
    /// do, where it is another.
    pub data_of: Option<(&'static str, u8)>,
    /// The slices that layers keep their state on, in ascending order: addresses there begin at 0.
    /// None where the member is not cut.
    pub parts: Vec<Extent>,
    /// Where the layer above keeps what, if that does not stand on the member itself.
    pub kept: Option<Kept>,
}

/// Where a layer keeps what on its member, for whoever reads that without the layer.
#[derive(Clone)]
pub enum Kept {
    /// A segment layout.
    Segments(Identity, SegmentLayout, SegmentAreas),
    /// A translation by S-blocks.
    SBlocks(SBlockLayout),
    /// The log of a write buffer, of so many places.
    Log(u64),
}

impl Member {
    /// The address of a block in its slice.
    pub fn address_in_part(&self, at: u64) -> u64 {
        at - part_of(&self.parts, at, self.geometry.blocks.0).start.0
    }

    /// True when a block is data of a translation that keeps checksums and rewrites: one that is bad there
    /// stops no write.
    pub fn stops_nothing(&self, at: u64) -> bool {
        let at = self.address_in_part(at);
        match &self.kept {
            _ if self.is_trusted => false,
            Some(Kept::Segments(_, _, areas)) => at >= areas.blocks().0,
            Some(Kept::SBlocks(layout)) => (0..).zip(&layout.places).any(|(region, place)| {
                let mut positions = 0..place.shape.positions();
                positions.any(|it| layout.position(region, it).contains(Lba(at)))
            }),
            Some(Kept::Log(_)) | None => false,
        }
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
    /// The nodes that count band rewrites.
    pub translations: Vec<NodeId>,
    /// What a workload must know.
    pub shape: Shape,
}

/// How a stack under test is built from a seed: the same stack at every call.
pub struct Subject {
    /// The name on the command line.
    pub name: String,
    /// Builds it.
    pub build: Box<dyn Fn(u64) -> Parts + Send + Sync>,
    /// What the kinds of records in the journal of a member are called.
    pub record_name: fn(member: &str, kind: u8) -> String,
    /// An opinion of its own on what the members hold after each recovery.
    pub check: Option<CheckMembers>,
}

/// Says what is wrong with the members of a stack, given with their names.
pub type CheckMembers = Box<dyn Fn(&[(&'static str, Medium)]) -> Result<(), String> + Send + Sync>;

impl Subject {
    /// Members on which nothing was ever written.
    pub fn blank(&self, seed: u64) -> Vec<Medium> {
        let members = (self.build)(seed).members;
        members
            .iter()
            .map(|member| {
                let medium = Medium::new(&member.geometry).trusted_if(member.is_trusted);
                medium.in_parts(&member.parts).keeping(member.kept.clone())
            })
            .collect()
    }
}
