//! What has happened, in words and by the names of the nodes.

use crate::control::ControlNode;
use imbrex_core::notice::Notice;
use imbrex_core::stack::{NodeId, Stack};

/// A node, what it is called, and what is behind its ports.
struct Named {
    node: NodeId,
    name: String,
    below: Vec<NodeId>,
}

/// What the nodes of a stack are called.
#[derive(Default)]
pub(crate) struct Names {
    nodes: Vec<Named>,
}

impl Names {
    /// The names that commands know them by. A node without one has its number.
    pub fn of(stack: &Stack, known: &[ControlNode]) -> Names {
        let nodes = stack.bottom_up().enumerate().map(|(number, node)| {
            let known = known.iter().find(|known| known.node == node);
            Named {
                node,
                name: known.map_or_else(|| format!("#{number}"), |known| known.name.clone()),
                below: stack.below(node).collect(),
            }
        });
        Names { nodes: nodes.collect() }
    }

    fn get(&self, node: NodeId) -> Option<&Named> {
        self.nodes.iter().find(|known| known.node == node)
    }

    fn name(&self, node: NodeId) -> String {
        self.get(node).map_or_else(|| "?".to_owned(), |known| known.name.clone())
    }

    /// The node behind a port, or the number of the port.
    fn behind(&self, node: NodeId, port: u8) -> String {
        let below = self.get(node).and_then(|known| known.below.get(usize::from(port)));
        below.map_or_else(|| format!("#{port}"), |below| self.name(*below))
    }
}

/// Something that has happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Event {
    /// What a command is told that it is.
    pub word: &'static str,
    /// The name of the node.
    pub node: String,
    /// The name of the member that it is about.
    pub member: Option<String>,
    /// The name of the spare that takes its place.
    pub spare: Option<String>,
    /// The line of the log.
    pub detail: String,
    /// Further numbers, by the names of the variables that they are in.
    pub numbers: Vec<(&'static str, u64)>,
}

impl Event {
    /// The file of a disk has lost its name.
    pub fn of_file(node: String, detail: String) -> Event {
        let (member, spare, numbers) = (None, None, Vec::new());
        Event { word: "file-deleted", node, member, spare, detail, numbers }
    }

    /// What a layer or the stack has said.
    pub fn of_notice(names: &Names, node: NodeId, notice: Notice) -> Event {
        let name = names.name(node);
        let behind = |port| names.behind(node, port);
        let (mut member, mut spare) = (None, None);
        let mut numbers = Vec::new();
        let (word, words) = match notice {
            Notice::DiskLost => {
                let words = "the disk is lost; the nodes above go on without it where they can (`imbrex \
                             control SOCKET status` tells)";
                ("disk-lost", words.to_owned())
            }
            Notice::MemberLost { member: port } => {
                let lost = member.insert(behind(port));
                let words = format!("its member `{lost}` is lost, and it goes on without");
                ("member-lost", words)
            }
            Notice::SecondLoss { member: port } => {
                let lost = member.insert(behind(port));
                let words = format!(
                    "its member `{lost}` is lost too, which is more than it can do without: there are \
                     blocks that cannot be found any more"
                );
                ("second-loss", words)
            }
            Notice::SpareTaken { member: port, port: of_spare } => {
                let lost = member.insert(behind(port));
                let taken = spare.insert(behind(of_spare));
                ("spare-taken", format!("the spare `{taken}` takes the place of member `{lost}`"))
            }
            Notice::RebuildEnded { member: port, is_whole } => {
                numbers.push(("IMBREX_IS_WHOLE", u64::from(is_whole)));
                let rebuilt = member.insert(behind(port));
                let outcome = match is_whole {
                    true => "it has all of its blocks again",
                    false => "it does not have all of its blocks",
                };
                ("rebuild-ended", format!("the rebuild of member `{rebuilt}` is over: {outcome}"))
            }
            Notice::ScrubEnded { wrong, repaired, unreadable } => {
                numbers.push(("IMBREX_WRONG", wrong));
                numbers.push(("IMBREX_REPAIRED", repaired));
                numbers.push(("IMBREX_UNREADABLE", unreadable));
                let words = format!(
                    "the scrub is over; blocks that were wrong: {wrong}, of them repaired: {repaired}; \
                     blocks that could not be read: {unreadable}"
                );
                ("scrub-ended", words)
            }
            Notice::ScrubFound { member: port, block, is_repaired } => {
                numbers.push(("IMBREX_BLOCK", block));
                numbers.push(("IMBREX_IS_REPAIRED", u64::from(is_repaired)));
                let of = member.insert(behind(port));
                let outcome = match is_repaired {
                    true => "it was repaired",
                    false => "it could not be repaired",
                };
                ("scrub-found", format!("block {block} of member `{of}` was wrong: {outcome}"))
            }
            Notice::MemberReturned { member: port, resynced_bytes } => {
                numbers.push(("IMBREX_RESYNCED_BYTES", resynced_bytes));
                let back = member.insert(behind(port));
                let words =
                    format!("its member `{back}` is back and was given {resynced_bytes} bytes");
                ("member-returned", words)
            }
        };
        let detail = format!("node `{name}`: {words}");
        Event { word, node: name, member, spare, detail, numbers }
    }
}
