//! Which node and which file an error of a layer is about.

use super::{Member, StackOnFiles};
use crate::failure::Failure;
use imbrex_core::lifecycle::{OpenError, Uuid};
use imbrex_core::stack::NodeId;
use imbrex_report::human_bytes;
use imbrex_serve::disk::Overlay;
use imbrex_stack::{Describe, StackConfig, StackMember};
use std::fmt::Display;

impl StackOnFiles {
    /// An error of a layer, with the node and the file that holds its journal.
    pub fn layer_error(&self, node: NodeId, error: &dyn Display) -> Failure {
        layer_error(&self.config, &self.describe, &self.members, node, error)
    }

    /// Why a layer could not come up, with the node and the file that is to blame: that of the
    /// member which is another one or an older one, or else the one that holds its journal.
    pub(super) fn open_error(&self, set: Uuid, node: NodeId, error: &OpenError) -> Failure {
        if let Some(overlay) = self.overlay.as_ref().filter(|it| it.is_exceeded()) {
            return too_much_to_recover(overlay).into();
        }
        let name = self.describe.name_of(node).unwrap_or_default();
        let member = match error {
            OpenError::OlderCopy { member, .. } => self.member(name, member),
            OpenError::Foreign { expected, .. } | OpenError::OtherMember { expected, .. } => {
                self.member_of(set, *expected)
            }
            _ => None,
        };
        let below = member.and_then(|member| {
            let below = self.config.node(name)?.below();
            below.get(usize::from(member.port.0)).copied()
        });
        let Some(below) = below else {
            return self.layer_error(node, error);
        };
        let path = member_path(&self.members, disk_below(&self.config, below));
        let words = match error {
            // A write-intent page knows its own name alone, not that of its image.
            OpenError::Foreign { expected, .. } if *expected != set => {
                Some(format!("it belongs to another image than {set}"))
            }
            _ => self.other_member(set, error),
        };
        let words = words.unwrap_or_else(|| error.to_string());
        format!("node `{name}`: {path}: {words}").into()
    }

    /// What a member is that lies where another one belongs, by their numbers.
    fn other_member(&self, set: Uuid, error: &OpenError) -> Option<String> {
        let OpenError::OtherMember { found, expected } = error else {
            return None;
        };
        let shown = |uuid: &Uuid| {
            let number = uuid.number_in(set)?;
            let mut members = self.numbered.iter();
            let member = members.find(|member| member.number == number);
            Some(match member {
                Some(StackMember { port_name, node, .. }) => {
                    format!("member {number} of its image (`{port_name}` of node `{node}`)")
                }
                None => format!("member {number} of its image"),
            })
        };
        let (found, expected) = (shown(found)?, shown(expected)?);
        let expected = expected.replacen(" of its image", "", 1);
        Some(format!("it is {found}, and {expected} belongs here"))
    }

    /// The member of a layer behind a port.
    fn member(&self, node: &str, port_name: &str) -> Option<&StackMember> {
        let is_it = |member: &&StackMember| member.node == node && member.port_name == port_name;
        self.numbered.iter().find(is_it)
    }

    /// The member that a name is that of.
    fn member_of(&self, set: Uuid, name: Uuid) -> Option<&StackMember> {
        let number = name.number_in(set)?;
        self.numbered.iter().find(|member| member.number == number)
    }
}

/// What is said when a recovery without writing needs more memory than it may have.
fn too_much_to_recover(overlay: &Overlay) -> String {
    format!(
        "--read-only: recovery would write more than the {} that are kept in memory; served once \
         without --read-only and ended in order, the image needs no recovery",
        human_bytes(overlay.bytes_max())
    )
}

/// An error of a layer, with the node and the file that holds its journal.
pub fn layer_error(
    config: &StackConfig,
    describe: &Describe,
    members: &[Member],
    node: NodeId,
    error: &dyn Display,
) -> Failure {
    let layer = describe.name_of(node).and_then(|name| config.node(name));
    let Some((layer, below)) = layer.and_then(|layer| Some((layer, layer.journal_below()?))) else {
        return error.to_string().into();
    };
    let path = member_path(members, disk_below(config, below));
    format!("node `{}`: {path}: {error}", layer.name()).into()
}

/// The disk that holds the data of a node in the end, or the node itself.
fn disk_below<'a>(config: &'a StackConfig, mut name: &'a str) -> &'a str {
    while let Some(below) = config.node(name).and_then(|node| node.below().pop()) {
        name = below;
    }
    name
}

/// The file of a disk, for an error.
fn member_path(members: &[Member], disk: &str) -> String {
    let member = members.iter().find(|member| member.node == disk);
    member.map_or(String::new(), |member| member.path.display().to_string())
}
