//! `imbrex create`.

use super::console::{emit, remark};
use super::members::{
    FileUse, Place, StackOnFiles, disks_without_labels, image_options, is_same_file, member_blocks,
};
use super::serve::is_name;
use super::stack::{refuse_unservable, stack_with_settings};
use crate::args::CreateArgs;
use crate::failure::Failure;
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::Survival;
use imbrex_core::label::{DISKS_MAX, LABEL_BLOCKS};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::OnOff;
use imbrex_drives::quantity::{Size, parse_size};
use imbrex_drives::shell_word;
use imbrex_report::human_bytes;
use imbrex_serve::clock::WallClock;
use imbrex_serve::disk::DirectIo;
use imbrex_serve::image::{
    Image, ImageDescription, ImageDisks, ImageError, ImageMember, ImageMembers, ImageNode,
    NewImage, free_bytes, new_seed, new_uuid,
};
use imbrex_serve::remote::RemoteAddress;
use imbrex_serve::storage::Storage;
use imbrex_stack::{DiskConfig, Footprint, MemberNumbers, NodeConfig, Plan, StackConfig};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Root seed of the band layout of every image.
pub const IMAGE_SEED: u64 = 1;
/// Start of a backing file that must be blank before it is formatted: no file system or partition
/// table leaves it so.
const BLANK_BYTES: u64 = 256 * BLOCK_BYTES;

/// Makes the images of a stack.
pub fn run(args: &CreateArgs) -> Result<(), Failure> {
    let mut config = stack_with_settings(&args.stack, &args.set)?;
    if let Some(size) = &args.size {
        config.size = Some(Size(parse_size(size)?));
    }
    if config.destages_into_caches() {
        return Err(
            "destage = \"cached\" can lose blocks that were durable and is for simulation only; \
                    accepted here: \"durable\""
                .into(),
        );
    }
    refuse_unservable(&config)?;
    refuse_wrong_uris(&config)?;
    measure_backings(&mut config)?;
    config.state_checksums(OnOff::On);
    config.state_spare_slots();
    let plan = Plan::new(&config, &image_options(MemberNumbers::Counted))?;
    config.size = Some(Size(plan.blocks().bytes()));
    // Before the backings, which it may stand on: the answer to that error would destroy it.
    if Image::is_in(&args.data) {
        let dir = args.data.clone();
        return Err(ImageError::Exists { dir }.into());
    }
    refuse_used_backings(&config)?;
    let description = ImageDescription {
        uuid: new_uuid().map_err(|error| format!("no random name for the image: {error}"))?,
        stack_toml: toml::to_string(&config)?,
        size_bytes: plan.blocks().bytes(),
        nodes: image_nodes(&config, &plan)?,
        members: image_members(&plan),
        disks: Some(image_disks(&config)?),
    };
    let (uuid, disks) = (description.uuid, description.disks.clone());
    let image = NewImage::begin(&args.data, description, &backings(&config))?;
    let grown_bytes = image.file_bytes();
    if args.preallocate {
        let free_bytes = free_bytes(&args.data);
        let failure = |error| failure_of_room(error, &args.data, grown_bytes, free_bytes);
        image.preallocate().map_err(failure)?;
    }
    let place = Place::of(&config, &args.data, true)?;
    format(&config, &plan, &image, place, (uuid, disks.as_ref()))?;
    image.finish()?;
    if !args.preallocate {
        warn_of_little_room(&args.data, grown_bytes);
    }
    let set_aside = match args.preallocate {
        true => format!(", {} set aside", human_bytes(grown_bytes)),
        false => String::new(),
    };
    emit(&format!(
        "created {}: {} of {}{set_aside}; next: imbrex serve {} --data {} --socket PATH{}\n",
        args.data.display(),
        config.name,
        human_bytes(plan.blocks().bytes()),
        shell_word(&args.stack),
        shell_word(&args.data.to_string_lossy()),
        settings_to_repeat(args, &config)
    ));
    Ok(())
}

/// Says why `--preallocate` has failed. Where the file system has too little room, it also says how much the files of the
/// image take and how much was free before.
fn failure_of_room(
    error: ImageError,
    data: &Path,
    grown_bytes: u64,
    free_bytes: Option<u64>,
) -> Failure {
    let ImageError::System { source, .. } = &error else { return error.into() };
    if source.kind() != ErrorKind::StorageFull {
        return error.into();
    }
    let left = free_bytes.map_or(String::new(), |bytes| {
        format!(", and its file system has {} left", human_bytes(bytes))
    });
    format!(
        "{error}; the files of {} take {} together{left}; accepted: a smaller device (--size), a stack with less flash, or \
         files that grow (no --preallocate)",
        data.display(),
        human_bytes(grown_bytes)
    )
    .into()
}

/// Says so when the files of an image, which are sparse, may grow beyond what the file system has left. A served
/// device then fails writes although it has room itself.
fn warn_of_little_room(data: &Path, grown_bytes: u64) {
    let Some(free_bytes) = free_bytes(data) else { return };
    if grown_bytes > free_bytes {
        remark!(
            "imbrex: warning: the files of {} may grow to {}, and its file system has {} left; writes fail when \
             it is full. A smaller device: --size",
            data.display(),
            human_bytes(grown_bytes),
            human_bytes(free_bytes)
        );
    }
}

/// The settings that `serve` must be given again, for a shell: those over a stack file.
fn settings_to_repeat(args: &CreateArgs, config: &StackConfig) -> String {
    if is_name(&args.stack, config) {
        return String::new();
    }
    let word = |setting: &String| format!(" --set {}", shell_word(setting));
    args.set.iter().map(word).collect()
}

/// What begins as the address of a disk at another server must be one.
fn refuse_wrong_uris(config: &StackConfig) -> Result<(), Failure> {
    for disk in config.disks() {
        let address = disk.backing.as_ref().map(|place| RemoteAddress::of(place.as_ref()));
        if let Some(Err(words)) = address {
            return Err(format!("node `{}`: {words}", disk.name).into());
        }
    }
    Ok(())
}

/// Measures every file, block device and export that is named in the stack, once: the image is planned for
/// these lengths whenever it is opened.
fn measure_backings(config: &mut StackConfig) -> Result<(), Failure> {
    for disk in config.node.iter_mut().filter_map(NodeConfig::disk_mut) {
        if let Some(blocks) = disk.measured_blocks {
            return Err(format!(
                "node `{}`: measured_blocks = {blocks} is what create itself measures; accepted: no \
                 such key",
                disk.name
            )
            .into());
        }
        if let Some(path) = &disk.backing {
            let blocks = member_blocks(path.as_ref())
                .map_err(|error| format!("node `{}`: {path}: {error}", disk.name))?;
            // The last blocks are for the label.
            let offered = blocks.0.checked_sub(LABEL_BLOCKS);
            disk.measured_blocks = Some(offered.ok_or_else(|| {
                format!(
                    "node `{}`: {path} has {} bytes; accepted: more than the 8 KiB of a label",
                    disk.name,
                    blocks.bytes()
                )
            })?);
        }
    }
    Ok(())
}

/// The disks, all of which get a label before the image is one.
fn image_disks(config: &StackConfig) -> Result<ImageDisks, Failure> {
    let mut disks = disks_without_labels(config);
    if disks.list.len() > DISKS_MAX {
        let found = disks.list.len();
        return Err(format!("the stack has {found} disks; accepted: at most {DISKS_MAX}").into());
    }
    for disk in &mut disks.list {
        disk.is_labelled = true;
    }
    Ok(disks)
}

/// The members, numbered as the plan does it.
fn image_members(plan: &Plan) -> ImageMembers {
    let numbered = plan.members().iter().map(|member| ImageMember {
        number: member.number,
        node: member.node.clone(),
        port: member.port_name.to_string(),
    });
    let list: Vec<ImageMember> = numbered.collect();
    let last = list.iter().map(|member| member.number).max();
    ImageMembers { next: last.unwrap_or(0) + 1, list }
}

/// The disks that live in the directory.
fn image_nodes(config: &StackConfig, plan: &Plan) -> Result<Vec<ImageNode>, Failure> {
    let footprint = Footprint::whole_device(plan.blocks().bytes());
    // The whole stack is built, so that one that cannot be is refused before anything is made.
    let designed = plan.design_all(Some(footprint), None, ContentKind::Counted)?;
    let designs = config.disks().zip(designed.disks);
    // Memory that survives less is in no folder.
    let kept =
        designs.filter(|(disk, _)| disk.backing.is_none() && disk.survival() == Survival::Power);
    let nodes = kept.map(|(disk, design)| ImageNode {
        name: disk.name.clone(),
        blocks: design.geometry().blocks,
        replacement: 0,
    });
    Ok(nodes.collect())
}

/// Writes an empty device over the members.
fn format(
    config: &StackConfig,
    plan: &Plan,
    image: &NewImage,
    place: Place,
    (uuid, disks): (Uuid, Option<&ImageDisks>),
) -> Result<(), Failure> {
    let (mut clock, waker) =
        WallClock::alone().map_err(|error| format!("cannot wait for events: {error}"))?;
    let path_of = |name: &str| image.node_path(name);
    let direct = DirectIo::Off;
    let files = FileUse { disks, image: uuid, place, direct, overlay_bytes_max: None };
    let mut stack = StackOnFiles::build(config, plan, &path_of, files, &waker)?;
    stack.refuse_lost()?;
    let held = std::mem::take(&mut stack.held);
    StackOnFiles::release(held, &stack.members)?;
    stack.labels = stack.labels.anew();
    let seed = new_seed().map_err(|error| format!("no random number: {error}"))?;
    stack.come_up(uuid, |engine, labels| {
        engine.open_labelled(&mut clock, Start::Format(uuid), labels, seed)
    })?;
    stack.engine.close(&mut clock).map_err(|(node, error)| stack.layer_error(node, &error))
}

/// The files and block devices that are named in the stack.
fn backings(config: &StackConfig) -> Vec<PathBuf> {
    let named = config.disks().filter_map(|disk| disk.backing.as_ref());
    named.map(PathBuf::from).collect()
}

/// A file or block device that is named in the stack may hold something that somebody needs.
fn refuse_used_backings(config: &StackConfig) -> Result<(), Failure> {
    config.disks().try_for_each(refuse_used_backing)?;
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for disk in config.disks() {
        let Some(path) = disk.backing.as_deref() else { continue };
        let is_it = |(_, other): &&(&str, &str)| is_same_file(other.as_ref(), path.as_ref());
        if let Some((node, _)) = seen.iter().find(is_it) {
            let words = format!(
                "node `{}`: {path} is the disk of node `{node}` already; accepted: a file or block device of its own",
                disk.name
            );
            return Err(words.into());
        }
        seen.push((&disk.name, path));
    }
    Ok(())
}

/// The same for one disk.
pub fn refuse_used_backing(disk: &DiskConfig) -> Result<(), Failure> {
    let Some(path) = &disk.backing else {
        return Ok(());
    };
    let named = |error| format!("node `{}`: {path}: {error}", disk.name);
    let storage = Storage::open(Path::new(path)).map_err(named)?;
    let length = storage.length().map_err(named)?;
    let mut start = vec![0; length.min(BLANK_BYTES) as usize];
    storage.read_exact_at(&mut start, 0).map_err(named)?;
    if start.iter().any(|byte| *byte != 0) {
        let destroy = match disk.is_remote() {
            true => format!("qemu-io -f raw -c 'write -z 0 1M' {}", shell_word(path)),
            false => format!("dd if=/dev/zero of={path} bs=1M count=1 conv=notrunc,fsync"),
        };
        return Err(format!(
            "node `{}`: {path} holds data; accepted: a file, block device or export whose first {} are \
             zeroes; to destroy what is there, such as the rest of an interrupted create: {destroy}",
            disk.name,
            human_bytes(BLANK_BYTES)
        )
        .into());
    }
    Ok(())
}
