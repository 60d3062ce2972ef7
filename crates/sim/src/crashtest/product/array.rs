//! The arrays of a stack: which nodes they are, and which disk lies behind each of their ports.

use crate::crashtest::medium::Medium;
use crate::crashtest::stacks::StackOfSeed;
use crate::crashtest::stamp::{self, Found};
use imbrex_core::command::CommandKind;
use imbrex_core::counters::Gauge;
use imbrex_core::stack::{DiskId, NodeId, Stack};
use std::rc::Rc;

/// A member of an array, or a spare.
#[derive(Clone, Debug)]
pub struct ArrayPort {
    /// The name of its disk.
    pub name: Rc<str>,
    /// The number of its disk in the stack.
    pub disk: usize,
    /// It takes the place of a member that is lost.
    pub is_spare: bool,
    /// Nothing but a slice lies between the array and the disk.
    pub is_plain: bool,
}

/// An array of a stack.
#[derive(Clone, Debug)]
pub struct ArrayOfStack {
    /// Its node.
    pub node: NodeId,
    /// What kind of node that is.
    pub kind: &'static str,
    /// The members, then the spares.
    pub ports: Vec<ArrayPort>,
    /// Every disk behind it can be replaced while it runs.
    pub takes_replacements: bool,
    /// It can be asked for a scrub.
    pub scrubs: bool,
}

/// How arrays are, as far as their counts tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Members that are not there, or wait.
    pub missing: u64,
    /// Members that are being rebuilt.
    pub rebuilding: u64,
}

impl Observed {
    /// True when every member has everything.
    pub fn is_whole(self) -> bool {
        self.missing + self.rebuilding == 0
    }
}

impl ArrayOfStack {
    /// The arrays of a stack that was built of this configuration: its nodes that take a rebuild.
    ///
    /// # Errors
    /// When a member has several disks.
    pub fn all_of(config: &StackOfSeed, stack: &Stack) -> Result<Vec<ArrayOfStack>, String> {
        let nodes = config.describe.nodes.iter();
        let arrays = nodes.filter(|it| stack.takes(it.id, CommandKind::Rebuild(None)));
        arrays.map(|it| ArrayOfStack::of(config, stack, it.id, &it.name)).collect()
    }

    fn of(
        config: &StackOfSeed,
        stack: &Stack,
        id: NodeId,
        name: &str,
    ) -> Result<ArrayOfStack, String> {
        let node = config.config.node(name).expect("a node of the stack");
        let mut ports = Vec::new();
        for port in node.ports() {
            for below in &port.nodes {
                let id = config.describe.nodes.iter().find(|it| it.name == **below);
                let disks = stack.disks_below(id.expect("a node of the stack").id);
                let [DiskId(disk)] = disks[..] else {
                    return Err(format!(
                        "node `{below}`: accepted: members of an array with one disk each"
                    ));
                };
                let disk = usize::from(disk);
                let kind = config.config.node(below).map(|it| it.kind());
                ports.push(ArrayPort {
                    name: Rc::clone(&config.members()[disk].name),
                    disk,
                    is_spare: port.key.name == "spares",
                    is_plain: matches!(kind, Some("disk" | "slice")),
                });
            }
        }
        let takes = |port: &ArrayPort| stack.takes_replacement(DiskId(port.disk as u16));
        Ok(ArrayOfStack {
            node: id,
            kind: node.kind(),
            takes_replacements: ports.iter().all(takes),
            scrubs: stack.takes(id, CommandKind::Scrub(None)),
            ports,
        })
    }

    /// How many members it has.
    pub fn columns(&self) -> usize {
        self.ports.iter().filter(|port| !port.is_spare).count()
    }

    /// True when it has spares.
    pub fn has_spares(&self) -> bool {
        self.columns() < self.ports.len()
    }

    /// Members that may lack something without a block being lost.
    pub fn may_lack(&self) -> usize {
        match self.kind {
            "raid1" => self.columns() - 1,
            _ => 1,
        }
    }

    /// The port of a disk.
    pub fn port_of(&self, disk: usize) -> Option<usize> {
        self.ports.iter().position(|port| port.disk == disk)
    }

    /// How it is, but for labels that say what its members do not yet.
    pub fn observe(&self, stack: &Stack) -> Observed {
        let counts = stack.counts(self.node);
        Observed {
            missing: counts.gauge(Gauge::MissingMembers),
            rebuilding: counts.gauge(Gauge::RebuildingMembers),
        }
    }
}

/// Where the first block of the device lies on each disk of an array of copies, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct Places {
    first: Vec<Option<u64>>,
}

impl Places {
    /// Looks at disks which hold what a host has stamped. Spares are used as the members are; where a
    /// member is a slice, nothing is known of them.
    pub fn find(array: &ArrayOfStack, media: &[Medium], have_slices: bool) -> Places {
        let first_of = |port: &ArrayPort| {
            let medium = &media[port.disk];
            let first = |at: u64| match stamp::read(&medium.block(at)[..], u64::MAX, 0) {
                Found::Foreign { lba, .. } if lba <= at => Some(at - lba),
                _ => None,
            };
            port.is_plain.then(|| (0..medium.len()).find_map(first)).flatten()
        };
        let mut first: Vec<Option<u64>> = array.ports.iter().map(first_of).collect();
        let alike = first.iter().flatten().next().copied().filter(|_| !have_slices);
        for (port, first) in array.ports.iter().zip(&mut first) {
            if port.is_spare && port.is_plain {
                *first = alike;
            }
        }
        Places { first }
    }
}

/// Checks that members which have everything agree: those behind some ports, of an array which is idle.
/// `medium_of` finds what a disk holds.
///
/// # Errors
/// Where they do not, in words. An array of another kind than copies is not compared yet.
pub fn agree<'m>(
    array: &ArrayOfStack,
    places: &Places,
    blocks: u64,
    ports: &[usize],
    medium_of: impl Fn(usize) -> &'m Medium,
) -> Result<(), String> {
    if array.kind != "raid1" {
        return Ok(());
    }
    let known = ports.iter().filter_map(|port| Some((*port, places.first.get(*port).copied()??)));
    let known: Vec<(usize, u64)> = known.collect();
    let Some((&(one, first), others)) = known.split_first() else {
        return Ok(());
    };
    for &(other, other_first) in others {
        let (mine, theirs) = (&array.ports[one], &array.ports[other]);
        let (medium, other_medium) = (medium_of(mine.disk), medium_of(theirs.disk));
        let differs = |at: &u64| medium.block(first + at) != other_medium.block(other_first + at);
        if let Some(at) = (0..blocks).find(differs) {
            return Err(format!("{} and {} differ at block {at}", mine.name, theirs.name));
        }
    }
    Ok(())
}
