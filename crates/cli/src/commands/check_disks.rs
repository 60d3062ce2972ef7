//! What `imbrex check` says of the disks themselves: whether they are long enough, and belong together by
//! their labels. What they need and what labels say is judged by the code that `serve` uses.

use super::members::{
    Place, disks_without_labels, image_options, labels_of_nodes, listed_members, words_of,
};
use crate::failure::Failure;
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::Survival;
use imbrex_core::label::LabelCopy;
use imbrex_core::units::BlockCount;
use imbrex_serve::fsck::Findings;
use imbrex_serve::image::{Image, LabelFiles, needed_bytes};
use imbrex_serve::storage::Storage;
use imbrex_stack::{DiskConfig, Footprint, MemberNumbers, Plan, StackConfig};
use std::path::{Path, PathBuf};

/// A disk, and what holds it if that can be opened.
struct Disk<'a> {
    config: &'a DiskConfig,
    path: PathBuf,
    blocks: BlockCount,
    is_labelled: bool,
    storage: Option<Storage>,
}

/// Compares lengths, labels and the size in `image`.
pub fn check_disks(image: &Image, folder: &Path, findings: &mut Findings) -> Result<(), Failure> {
    let description = image.description();
    let config = StackConfig::from_image(&description.stack_toml)?;
    let members = MemberNumbers::Listed(listed_members(&description.members));
    let plan = Plan::new(&config, &image_options(members))?;
    if let Some(problem) = description.size_problem(plan.blocks()) {
        findings.damage("image", "size of the device", problem);
    }
    let whole = Footprint::whole_device(plan.blocks().bytes());
    let built = plan.build(Some(whole), None, ContentKind::Counted)?;
    let disks = (config.disks()).filter(|disk| disk.survival() == Survival::Power);
    let disks = disks.filter_map(|config| {
        let own = || image.node_path(&config.name);
        let path = config.backing.as_ref().map(PathBuf::from).or_else(own)?;
        Some(Disk {
            config,
            blocks: built.describe.blocks_of(&config.name)?,
            is_labelled: description.is_labelled(&config.name),
            storage: Storage::open(&path).ok(),
            path,
        })
    });
    let mut disks: Vec<Disk<'_>> = disks.collect();
    for disk in &mut disks {
        check_length(disk, findings);
    }
    // An image of version 3 has no labels, and is as clean as it was.
    let place = Place::of(&config, folder, false)?;
    check_labels(image, &config, place, disks, findings);
    Ok(())
}

fn check_length(disk: &mut Disk<'_>, findings: &mut Findings) {
    let Some(storage) = disk.storage.as_ref() else {
        return;
    };
    let needed = needed_bytes(disk.blocks, disk.is_labelled);
    let Ok(bytes) = storage.length() else {
        return;
    };
    if bytes < needed {
        let path = disk.path.display();
        findings.damage(
            &disk.config.name,
            "length",
            format!("{path} holds {bytes} bytes, the disk needs {needed}"),
        );
        // Its label lies behind the end.
        disk.storage = None;
    }
}

fn check_labels(
    image: &Image,
    config: &StackConfig,
    place: Place,
    disks: Vec<Disk<'_>>,
    findings: &mut Findings,
) {
    let description = image.description();
    let listed = description.disks.clone();
    let listed = listed.unwrap_or_else(|| disks_without_labels(config));
    let nodes: Vec<&str> = disks.iter().map(|disk| disk.config.name.as_str()).collect();
    let labels = labels_of_nodes(description.uuid, nodes.iter().copied(), Some(&listed));
    let mut labels = place.of_labels(labels);
    let names: Vec<String> = nodes.into_iter().map(str::to_owned).collect();
    let files = disks.into_iter();
    let files = files.map(|disk| Some((disk.storage?, disk.blocks)));
    let mut files = LabelFiles(files.collect());
    if let Err(refused) = labels.check(&mut files) {
        for refusal in refused {
            let problem = words_of(&refusal);
            findings.damage(&names[refusal.index], "label", problem);
        }
        return;
    }
    for (index, name) in names.iter().enumerate() {
        for (copy, error) in labels.unreadable(index) {
            let copy = match copy {
                LabelCopy::First => "first",
                LabelCopy::Second => "second",
            };
            findings.note(
                name,
                format!("the {copy} copy of the label: {error}; the next start writes it anew"),
            );
        }
        let is_listed = listed.of_node(name).is_some_and(|disk| disk.is_labelled);
        if description.disks.is_some() && !is_listed {
            findings.note(name, "it has no label");
        }
    }
}
