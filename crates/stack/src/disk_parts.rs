//! What stands on which part of a disk, for whoever reads disks without the layers above.

use super::config::StackConfig;
use super::describe::Describe;
use super::kinds::{Keeps, NodeConfig};
use imbrex_core::extent::Extent;
use imbrex_core::units::BlockCount;

/// A part of a disk, or all of it, and the node that uses it.
#[derive(Clone, Copy)]
pub struct DiskPart<'a> {
    /// Where it lies on the disk.
    pub extent: Extent,
    /// The node that uses it.
    pub user: &'a NodeConfig,
    /// What the user stands on: the disk, or a slice of it.
    pub below: &'a str,
}

impl DiskPart<'_> {
    /// Whether the journal of the user lies there.
    pub fn has_journal(&self) -> bool {
        self.user.journal_below() == Some(self.below)
    }

    /// Whether the user takes writes to a block that has gone bad, by its address in the part.
    pub fn takes_writes_to_bad(&self, at: u64, describe: &Describe) -> bool {
        let facts = describe.facts_of(self.user.name());
        let has_data = self.user.below().last() == Some(&self.below);
        has_data && facts.is_some_and(|facts| facts.reported().rewrites_bad_block(at))
    }
}

impl NodeConfig {
    /// The name of a kind of record in its journal, on the page of its format.
    pub fn record_name(&self, kind: u8) -> Option<&'static str> {
        let mut kinds = self.node().record_kinds().iter();
        kinds.find(|(known, _)| *known == kind).map(|(_, name)| *name)
    }

    /// The node below with data of which the journal on another one speaks, and the kind of the records
    /// that do.
    pub fn data_off_journal(&self) -> Option<(&str, u8)> {
        self.node().data_off_journal()
    }
}

impl StackConfig {
    /// The nodes that stand on a node.
    fn users_of(&self, name: &str) -> impl Iterator<Item = &NodeConfig> {
        self.node.iter().filter(move |node| node.below().contains(&name))
    }

    /// The parts of a disk that nodes use, in the order of the nodes. A disk that is not cut has one,
    /// one that is the device none.
    pub fn parts_of<'a>(&'a self, disk: &'a str, describe: &Describe) -> Vec<DiskPart<'a>> {
        let blocks = describe.blocks_of(disk).unwrap_or(BlockCount::ZERO);
        let mut parts = Vec::new();
        self.add_parts(disk, Extent::new(0, blocks.0), describe, &mut parts);
        parts
    }

    fn add_parts<'a>(
        &'a self,
        below: &'a str,
        extent: Extent,
        describe: &Describe,
        parts: &mut Vec<DiskPart<'a>>,
    ) {
        for user in self.users_of(below) {
            if !user.node().is_clear() {
                parts.push(DiskPart { extent, user, below });
                continue;
            }
            let part = describe.facts_of(user.name()).and_then(|facts| facts.part()?.on_disk);
            self.add_parts(user.name(), part.unwrap_or(extent), describe, parts);
        }
    }

    /// Whether all that is kept on a node is checked when it is read, by the nodes above it.
    pub fn is_checked(&self, name: &str) -> bool {
        let mut users = self.users_of(name).peekable();
        let checks = |user: &NodeConfig| {
            let passes = matches!(
                user.node().keeps(),
                Ok(Keeps::Nothing | Keeps::Part | Keeps::Spanned | Keeps::Striped(_))
            );
            user.node().checks(name) || passes && self.is_checked(user.name())
        };
        users.peek().is_some() && users.all(checks)
    }
}
