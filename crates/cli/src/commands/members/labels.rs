//! The labels of the disks of a stack over files.

use super::{Member, StackOnFiles};
use crate::commands::console::remark;
use crate::failure::Failure;
use imbrex_core::disk::Survival;
use imbrex_core::error::IoError;
use imbrex_core::label::{Labels, ListedDisk, Reason, Refusal};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::stack::DiskId;
use imbrex_core::units::BlockCount;
use imbrex_serve::image::{Image, ImageDisks, can_hold_label, make_room};
use imbrex_stack::StackConfig;

/// What can be done about a disk that is refused.
const WAY_OUT: &str = "put the right disk back; or take this one away, so that it counts as lost where the \
                       stack can do without it; `--read-only --force` shows what is there";

/// The labels of disks by the names of their nodes, as an image lists them.
pub fn labels_of_nodes<'a>(
    set: Uuid,
    nodes: impl Iterator<Item = &'a str>,
    disks: Option<&ImageDisks>,
) -> Labels {
    let listed = nodes.map(|node| {
        let disk = disks?.of_node(node)?;
        Some(ListedDisk { number: disk.number, is_labelled: disk.is_labelled })
    });
    Labels::new(set, &listed.collect::<Vec<_>>())
}

/// The disks of a stack that can have labels, without any yet: what no power cut survives has none.
pub fn disks_without_labels(config: &StackConfig) -> ImageDisks {
    let disks = (config.disks()).filter(|disk| disk.survival() == Survival::Power);
    ImageDisks::without_labels(disks.map(|disk| disk.name.as_str()))
}

/// Why a disk is refused, and which one belongs in its place.
pub fn words_of(refusal: &Refusal) -> String {
    match &refusal.reason {
        reason @ (Reason::Foreign(_) | Reason::OtherDisk(_)) => {
            format!("{reason}; expected: disk {} of this image", refusal.disk)
        }
        reason => reason.to_string(),
    }
}

impl StackOnFiles {
    /// Finds the disks that have no label and cannot get one, and tells of them. They are left out.
    pub fn leave_out_full_disks(&mut self, set: Uuid, disks: &ImageDisks) {
        for (index, member) in self.members.iter().enumerate() {
            let listed = disks.of_node(&member.node);
            if member.lost.is_some() || listed.is_none_or(|disk| disk.is_labelled) {
                continue;
            }
            if let Err(reason) = can_hold_label(&member.path, self.blocks(index), set) {
                let (node, path) = (&member.node, member.path.display());
                remark!(
                    "imbrex: warning: node `{node}`: {path} has no label: {reason}; another disk or an \
                     older copy in its place goes unnoticed"
                );
                self.labels.leave_out(index);
            }
        }
    }

    /// Makes room for the labels that are to be written to disks without one. The layers are up.
    pub fn make_room(&self, disks: &ImageDisks) -> Result<(), Failure> {
        for index in self.labelled_now() {
            let member = &self.members[index];
            let listed = disks.of_node(&member.node);
            if listed.is_some_and(|disk| !disk.is_labelled) {
                make_room(&member.path, self.blocks(index))
                    .map_err(|error| format!("node `{}`: {error}", member.node))?;
            }
        }
        Ok(())
    }

    /// The disks of the image, with the labels that they have now.
    pub fn labelled(&self, mut disks: ImageDisks) -> ImageDisks {
        for index in self.labelled_now() {
            let node = &self.members[index].node;
            let mut list = disks.list.iter_mut();
            if let Some(disk) = list.find(|disk| disk.node == *node) {
                disk.is_labelled = true;
            }
        }
        disks
    }

    /// The disks that have a label now, by their places. The layers are up.
    fn labelled_now(&self) -> impl Iterator<Item = usize> {
        let labels = self.engine.stack.labels();
        labels.into_iter().flat_map(|labels| labels.labelled())
    }

    fn blocks(&self, index: usize) -> BlockCount {
        self.engine.disks[index].geometry().blocks
    }

    /// One error that names every disk that is refused by its label.
    pub(super) fn refused(&self, refused: &[Refusal]) -> Failure {
        let each = refused.iter().map(|refusal| {
            let member = &self.members[refusal.index];
            let (node, path) = (&member.node, member.path.display());
            format!("node `{node}`: {path}: {}", words_of(refusal))
        });
        let each = each.collect::<Vec<String>>().join("; ");
        // Where all of them are the right ones, they say themselves what to do.
        let is_elsewhere = |it: &Refusal| matches!(it.reason, Reason::ServedElsewhere { .. });
        match refused.iter().all(is_elsewhere) {
            true => each.into(),
            false => format!("{each}; {WAY_OUT}").into(),
        }
    }

    pub(super) fn unwritten_label(&self, disk: DiskId, error: IoError) -> Failure {
        let Member { node, path, .. } = &self.members[usize::from(disk.0)];
        let path = path.display();
        format!("node `{node}`: cannot write the label of {path}: {error}").into()
    }
}

/// Tells that the labels of an image are new.
pub fn tell_of_labels(image: &Image, data: &dyn std::fmt::Display) {
    let version = image.version();
    remark!(
        "imbrex: {data}: its disks have labels from now on (format version {version}), which older \
         builds do not know"
    );
}
