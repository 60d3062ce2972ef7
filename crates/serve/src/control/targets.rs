//! What a command can be about.

use super::Commands;
use super::message::{Asked, COMMANDS, Request};
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
    /// The node that is the device.
    pub(super) top: NodeId,
    /// The nodes below it by port, and the disks that each stands on.
    pub(super) below: Vec<(NodeId, Vec<DiskId>)>,
    /// Further commands that it takes.
    takes: Takes,
}

/// Commands that some nodes take and others do not.
#[derive(Clone, Copy, Debug)]
struct Takes {
    rebuild: bool,
    scrub: bool,
    switch: bool,
    replace: bool,
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
        let stack = &engine.stack;
        ControlNode {
            name: name.to_owned(),
            node,
            disk,
            top: stack.top(),
            below: stack.below(node).map(|node| (node, stack.disks_below(node))).collect(),
            takes: Takes {
                rebuild: stack.takes(node, CommandKind::Rebuild(None)),
                scrub: stack.takes(node, CommandKind::Scrub(None)),
                switch: stack.takes(node, CommandKind::Switch { is_on: true }),
                replace: disk.is_some_and(|disk| stack.takes_replacement(disk.disk)),
            },
        }
    }

    /// True of a command that it takes from whoever may give it.
    fn takes(&self, command: &str) -> bool {
        match command {
            "status" => true,
            "rebuild" => self.takes.rebuild,
            "scrub" => self.takes.scrub,
            "off" | "on" => self.takes.switch,
            "replace" => self.takes.replace,
            // `fail` and the faults.
            _ => self.disk.is_some(),
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

    /// The name of a node.
    pub fn name_of(&self, node: NodeId) -> Option<&str> {
        let found = self.nodes.iter().find(|known| known.node == node)?;
        Some(&found.name)
    }

    /// The name of the node of a disk.
    pub fn name_of_disk(&self, disk: DiskId) -> Option<&str> {
        let is_it = |node: &&ControlNode| node.disk.is_some_and(|known| known.disk == disk);
        Some(&self.nodes.iter().find(is_it)?.name)
    }

    /// The nodes of a request, if they are such for which the command can be: one, or all when it is
    /// for the device.
    ///
    /// # Errors
    /// In words for whoever gave the command.
    pub fn check(
        &self,
        request: &Request,
        commands: &Commands,
    ) -> Result<Vec<ControlNode>, String> {
        match &request.node {
            None if self.nodes.is_empty() => Err("no node of this device has a name".into()),
            None => Ok(self.nodes.clone()),
            Some(name) => self.check_node(name, &request.asked, commands).map(|node| vec![node]),
        }
    }

    fn check_node(
        &self,
        name: &str,
        asked: &Asked,
        commands: &Commands,
    ) -> Result<ControlNode, String> {
        let Some(node) = self.get(name) else {
            let names = self.names(|_| true);
            return Err(format!("there is no node {name:?}; accepted: {names}"));
        };
        let command = asked.name();
        if !self.nodes.iter().any(|node| node.takes(command)) {
            let offered = self.offered(commands).join(", ");
            return Err(format!("no node of this stack takes `{command}`; accepted: {offered}"));
        }
        if !node.takes(command) {
            let names = self.names(|node| node.takes(command));
            let why = match (asked, node.disk) {
                (Asked::Kind(CommandKind::Rebuild(_) | CommandKind::Scrub(_)), None)
                | (Asked::Kind(CommandKind::Switch { .. }), None)
                | (Asked::Replace(_), Some(_)) => format!("takes no `{command}`"),
                (_, None) => "is no disk".to_owned(),
                (_, Some(_)) => "is a disk".to_owned(),
            };
            return Err(format!("node `{name}` {why}; accepted by `{command}`: {names}"));
        }
        match asked {
            Asked::Kind(CommandKind::Fault(fault)) => check_fault(node, *fault, command, commands)?,
            Asked::Replace(_) if commands.replacer.is_none() => return Err(NO_REPLACER.into()),
            Asked::Kind(
                CommandKind::Status
                | CommandKind::TakeOut
                | CommandKind::Fail
                | CommandKind::Switch { .. },
            ) => {}
            _ if commands.is_read_only => {
                return Err(format!("`{command}` would write, and the device is served read-only"));
            }
            _ => {}
        }
        Ok(node.clone())
    }

    /// The commands that some node takes here and now.
    pub fn offered(&self, commands: &Commands) -> Vec<&'static str> {
        let may_be_given = |command: &str| match command {
            "status" | "fail" | "off" | "on" => true,
            "replace" => commands.replacer.is_some() && !commands.is_read_only,
            "rebuild" | "scrub" => !commands.is_read_only,
            _ => commands.faults.is_some(),
        };
        let names = COMMANDS.iter().map(|(name, _)| *name);
        names
            .filter(|name| may_be_given(name) && self.nodes.iter().any(|node| node.takes(name)))
            .collect()
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
