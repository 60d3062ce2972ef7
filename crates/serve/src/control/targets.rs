//! What a command can be about.

use super::Commands;
use super::message::{Asked, Request};
use imbrex_core::command::{CommandKind, Fault};
use imbrex_core::engine::Engine;
use imbrex_core::extent::Extent;
use imbrex_core::stack::{DiskId, NodeId};
use imbrex_core::units::BlockCount;

/// A node that takes commands.
#[derive(Clone, Debug)]
pub struct ControlNode {
    /// Its name in commands.
    pub name: String,
    /// What the stack calls it.
    pub node: NodeId,
    /// Set for a disk.
    pub disk: Option<ControlDisk>,
}

/// What a command to a disk needs to know of it.
#[derive(Clone, Copy, Debug)]
pub struct ControlDisk {
    /// What the engine calls it.
    pub disk: DiskId,
    /// Its addressable blocks.
    pub blocks: BlockCount,
}

impl ControlNode {
    /// A node of an engine under a name.
    pub fn of(engine: &Engine, name: &str, node: NodeId) -> ControlNode {
        let disk = engine.stack.disk_of(node).map(|disk| ControlDisk {
            disk,
            blocks: engine.disks[usize::from(disk.0)].geometry().blocks,
        });
        ControlNode {
            name: name.to_owned(),
            node,
            disk,
        }
    }
}

pub(super) const NO_REPLACER: &str =
    "the disks of this device cannot be replaced while it is served";

/// The nodes of a stack by name.
pub(super) struct Targets {
    nodes: Vec<ControlNode>,
}

impl Targets {
    pub fn new(nodes: Vec<ControlNode>) -> Targets {
        Targets { nodes }
    }

    pub fn get(&self, name: &str) -> Option<&ControlNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The node of a request, if it is one for which the command can be.
    ///
    /// # Errors
    /// In words for whoever gave the command.
    pub fn check(&self, request: &Request, commands: &Commands) -> Result<ControlNode, String> {
        let Request { node: name, .. } = request;
        let Some(node) = self.get(name) else {
            let names = self.names(|_| true);
            return Err(format!("there is no node {name:?}; accepted: {names}"));
        };
        let command = request.asked.name();
        let is_for_disks = match request.asked {
            Asked::Replace(_) | Asked::Kind(CommandKind::Fail | CommandKind::Fault(_)) => true,
            Asked::Kind(CommandKind::Rebuild(_) | CommandKind::Scrub(_)) => false,
            Asked::Kind(CommandKind::Status) => return Ok(node.clone()),
        };
        if is_for_disks != node.disk.is_some() {
            let (is, names) = match is_for_disks {
                true => ("no disk", self.names(|node| node.disk.is_some())),
                false => ("a disk", self.names(|node| node.disk.is_none())),
            };
            return Err(format!(
                "node `{name}` is {is}; accepted by `{command}`: {names}"
            ));
        }
        match request.asked {
            Asked::Kind(CommandKind::Fault(fault)) => check_fault(node, fault, command, commands)?,
            Asked::Replace(_) if commands.replacer.is_none() => return Err(NO_REPLACER.into()),
            Asked::Kind(CommandKind::Fail) => {}
            _ if commands.is_read_only => {
                return Err(format!(
                    "`{command}` would write, and the device is served read-only"
                ));
            }
            _ => {}
        }
        Ok(node.clone())
    }

    /// Why a node has not taken a command.
    pub fn not_taken(&self, request: &Request) -> String {
        let command = request.asked.name();
        let of_arrays = match request.asked {
            Asked::Kind(CommandKind::Rebuild(_) | CommandKind::Scrub(_)) => {
                "; it is for arrays and mirrors"
            }
            _ => "",
        };
        format!("node `{}` takes no `{command}`{of_arrays}", request.node)
    }

    fn names(&self, is_meant: impl Fn(&ControlNode) -> bool) -> String {
        let names = self.nodes.iter().filter(|node| is_meant(node));
        let names: Vec<&str> = names.map(|node| node.name.as_str()).collect();
        match names.is_empty() {
            true => "none of this stack".into(),
            false => names.join(", "),
        }
    }
}

/// Faults need the permission of whoever started the server, and blocks that the disk has.
fn check_fault(
    node: &ControlNode,
    fault: Fault,
    command: &str,
    commands: &Commands,
) -> Result<(), String> {
    if commands.faults.is_none() {
        return Err(format!(
            "`{command}` breaks a disk on purpose, which the server was not started for; accepted: \
             a server that was started with --allow-faults"
        ));
    }
    let (Fault::FailReads(Some(extent)) | Fault::FailWrites(Some(extent)) | Fault::Corrupt(extent)) =
        fault
    else {
        return Ok(());
    };
    let blocks = node.disk.map_or(0, |disk| disk.blocks.0);
    if extent.end().0 > blocks {
        let Extent { start, .. } = extent;
        return Err(format!(
            "blocks {}..{}: the disk of node `{}` has {blocks} blocks of 4096 bytes; accepted: \
             blocks from 0 to {blocks}, the last one not counted",
            start.0,
            extent.end().0,
            node.name
        ));
    }
    Ok(())
}
