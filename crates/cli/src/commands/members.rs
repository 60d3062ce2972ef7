//! The files that a stack stands on when it is created and served.

mod blame;
mod labels;

pub use blame::layer_error;
pub use labels::{disks_without_labels, labels_of_nodes, tell_of_labels, words_of};

use super::create::IMAGE_SEED;
use crate::commands::console::remark;
use crate::failure::Failure;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry, Survival};
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::label::{LABEL_BLOCKS, LabelledOpenError, Labels};
use imbrex_core::layer::Port;
use imbrex_core::lifecycle::{OpenError, Uuid};
use imbrex_core::stack::{DiskId, NodeId};
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::Size;
use imbrex_drives::{DiskDesign, MeasuredDisk};
use imbrex_serve::clock::Waker;
use imbrex_serve::disk::{
    BackedDisk, DirectIo, DiskError, FileDisk, HeldWrites, LostDisk, Memory, OpenFiles, Overlay,
};
use imbrex_serve::file_kind::{Accepted, open_to_read};
use imbrex_serve::image::{ImageDisks, ImageMembers, place_of};
use imbrex_serve::remote::{RemoteAddress, RemoteDisk, RemoteSettings};
use imbrex_serve::storage::Storage;
use imbrex_stack::{
    BuildOptions, Built, ConfigError, Describe, DiskConfig, Footprint, ListedMember, MemberNumbers,
    Plan, StackConfig, StackMember,
};
use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A disk of a stack over files.
pub struct Member {
    /// The name of the node.
    pub node: String,
    /// Its file or block device.
    pub path: PathBuf,
    /// Whether operations go round the page cache.
    pub is_direct: bool,
    /// What it is, whatever it is called.
    identity: Option<Identity>,
    /// Of memory that survives a power cut, what becomes durable at the end.
    dump: Option<File>,
    /// Why it is lost, if it could not be opened.
    pub lost: Option<String>,
}

impl Member {
    /// True of the file that holds it, whatever that is called.
    pub fn is(&self, file: &Metadata) -> bool {
        self.identity == Some(identity_of(file))
    }
}

/// A stack over files.
pub struct StackOnFiles {
    /// The labels of the disks, until the stack comes up.
    pub labels: Labels,
    /// The stack with its disks. What these are told to write is held back at first.
    pub engine: Engine,
    /// What reports need to know of it.
    pub describe: Describe,
    /// The disks, in the order of their ids.
    pub members: Vec<Member>,
    /// What the disks hold back.
    pub held: HeldWrites,
    /// The files of the disks, for who looks after them.
    pub files: OpenFiles,
    /// Where the disks keep what they are told to write, when they are only read.
    overlay: Option<Overlay>,
    config: StackConfig,
    /// What lies behind the ports of the layers.
    numbered: Vec<StackMember>,
}

/// How the files of a stack are used.
#[derive(Clone, Copy)]
pub struct FileUse<'a> {
    /// The disks that have labels, or may get some; `None`: nobody is to compare them.
    pub disks: Option<&'a ImageDisks>,
    /// The image that they belong to.
    pub image: Uuid,
    /// The place that they are served from, for disks that nobody can lock.
    pub place: Place,
    /// Whether operations go round the page cache.
    pub direct: DirectIo,
    /// Most bytes that are kept in memory of what would be written to them: they are only read, and
    /// so is the stack. `None`: they are written.
    pub overlay_bytes_max: Option<u64>,
}

/// A place that a stack is served from.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// Its number; 0 of a stack whose disks can all be locked.
    number: u64,
    /// Disks that another place had last are taken over.
    takes_over: bool,
}

impl Place {
    /// The place that a stack of an image in a folder is served from.
    pub fn of(config: &StackConfig, folder: &Path, takes_over: bool) -> Result<Place, Failure> {
        if !config.disks().any(DiskConfig::is_remote) {
            return Ok(Place::default());
        }
        let number = place_of(folder);
        let number = number.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Place { number, takes_over })
    }

    /// Labels of disks that are served from here.
    pub fn of_labels(self, labels: Labels) -> Labels {
        labels.served_from(self.number, self.takes_over)
    }
}

/// How the stack of an image is built: the same at its creation and at every opening.
pub fn image_options(members: MemberNumbers) -> BuildOptions {
    BuildOptions::image(IMAGE_SEED, members)
}

/// The numbers that an image lists.
pub fn listed_members(members: &ImageMembers) -> Vec<ListedMember> {
    let listed = members.list.iter().map(|member| ListedMember {
        number: member.number,
        node: member.node.clone(),
        port: member.port.clone(),
    });
    listed.collect()
}

/// The files of a stack while they are opened.
struct Opening<'a> {
    members: Vec<Member>,
    held: HeldWrites,
    files: OpenFiles,
    overlay: Option<Overlay>,
    /// The files of the disks that have no backing of their own.
    path_of: &'a dyn Fn(&str) -> Option<PathBuf>,
    disks: Option<&'a ImageDisks>,
    /// What shared memory is named after.
    image: Uuid,
    direct: DirectIo,
    waker: &'a Waker,
}

impl Opening<'_> {
    /// Opens and locks the file of a disk, which takes the place of a simulated one. Where it cannot
    /// be used the disk is lost, and the layers decide.
    fn open(
        &mut self,
        disk: &DiskConfig,
        design: DiskDesign,
    ) -> Result<Box<dyn Disk>, ConfigError> {
        let wrong =
            |error: &dyn Display| ConfigError::words(format!("node `{}`: {error}", disk.name));
        let path = match &disk.backing {
            Some(path) => Some(PathBuf::from(path)),
            None => (self.path_of)(&disk.name),
        };
        let memory = memory_of(disk, self.image, path.clone());
        let path = match (&memory, path) {
            (Some(Memory::Anonymous), _) => PathBuf::new(),
            (Some(Memory::Shared(path)), _) => path.clone(),
            (_, Some(path)) => path,
            (_, None) => return Err(wrong(&"the image has no such disk")),
        };
        let identity = identity(&path);
        let same = |member: &&Member| member.identity == identity && identity.is_some();
        if let Some(other) = self.members.iter().find(same) {
            return Err(wrong(&format_args!(
                "{} is the disk of node `{}` already; accepted: a file or block device of its own",
                path.display(),
                other.node
            )));
        }
        let geometry = design.geometry().clone();
        let opened = self.open_file(disk, &path, memory.as_ref(), geometry.clone());
        let opened = opened.map_err(|error| wrong(&error))?;
        let (is_direct, lost) = match &opened {
            Ok(file) => (file.is_direct(), None),
            Err(reason) => (false, Some(reason.clone())),
        };
        let dump = match &memory {
            Some(Memory::Dumped(path)) if lost.is_none() && self.overlay.is_none() => {
                let file = open_to_read(path, Accepted::Storage);
                Some(file.map_err(|error| wrong(&error))?)
            }
            _ => None,
        };
        self.members.push(Member {
            node: disk.name.clone(),
            path,
            is_direct,
            identity,
            dump,
            lost,
        });
        let disk: Box<dyn Disk> = match (opened, &self.overlay) {
            (Err(_), _) => Box::new(LostDisk::new(geometry)),
            (Ok(file), Some(overlay)) => Box::new(overlay.over(file)),
            (Ok(file), None) => Box::new(self.held.hold(file)),
        };
        Ok(Box::new(MeasuredDisk::new(disk, design.statistics())))
    }

    /// What holds a disk, or why that is lost. An error is one of whoever has asked.
    fn open_file(
        &self,
        disk: &DiskConfig,
        path: &Path,
        memory: Option<&Memory>,
        geometry: Geometry,
    ) -> Result<Result<BackedDisk, String>, DiskError> {
        let waker = self.waker.clone();
        if disk.is_remote() {
            return Ok(self.open_remote(disk, path, geometry));
        }
        let file = match (memory, &self.overlay) {
            (Some(memory), overlay) => memory.open(geometry, overlay.is_some(), waker),
            (None, Some(_)) => FileDisk::open_read_only(path, geometry, self.direct, waker),
            (None, None) => FileDisk::open(path, geometry, self.direct, waker),
        };
        let listed = self.disks.and_then(|disks| disks.of_node(&disk.name));
        let is_labelled = listed.is_some_and(|disk| disk.is_labelled);
        let file = match is_labelled {
            true => file.and_then(|file| file.with_label(path)),
            false => file,
        };
        match file {
            Ok(file) => {
                let named = |error: io::Error| format!("{}: {error}", path.display());
                let found = member_blocks(path).map_err(named);
                let checked = found.and_then(|it| check_length(disk, path, it, is_labelled));
                Ok(checked.map(|()| file.of_node(&disk.name).listed_in(&self.files).into()))
            }
            Err(error @ DiskError::NotDirect { .. }) => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// A disk at another server, or why that is lost.
    fn open_remote(
        &self,
        disk: &DiskConfig,
        path: &Path,
        geometry: Geometry,
    ) -> Result<BackedDisk, String> {
        let listed = self.disks.and_then(|disks| disks.of_node(&disk.name));
        let is_labelled = listed.is_some_and(|disk| disk.is_labelled);
        let is_read_only = self.overlay.is_some();
        let waker = self.waker.clone();
        let remote = open_remote(disk, path, geometry, is_labelled, is_read_only, waker)?;
        let found = BlockCount::from_bytes_floor(remote.export_bytes());
        check_length(disk, path, found, is_labelled)?;
        Ok(BackedDisk::Remote(Box::new(remote.listed_in(&self.files))))
    }
}

/// Connects to a disk at another server.
pub fn open_remote(
    disk: &DiskConfig,
    uri: &Path,
    geometry: Geometry,
    is_labelled: bool,
    is_read_only: bool,
    waker: Waker,
) -> Result<RemoteDisk, String> {
    let address = RemoteAddress::of(uri)?.expect("a URI");
    let usual = RemoteSettings::default();
    let reconnect = disk.reconnect_s.map(|s| Duration::from_secs(s.into()));
    let settings = RemoteSettings {
        reconnect: reconnect.unwrap_or(usual.reconnect),
        resend_bytes_max: disk.resend_max.map_or(usual.resend_bytes_max, |Size(bytes)| bytes),
    };
    let opened = RemoteDisk::open(&address, geometry, is_labelled, is_read_only, settings, waker);
    opened.map(|opened| opened.of_node(&disk.name)).map_err(|error| error.to_string())
}

impl StackOnFiles {
    /// Builds the stack over its files, each opened and locked. `path_of` knows the files of the
    /// disks that have no backing of their own. Nothing is written.
    pub fn build(
        config: &StackConfig,
        plan: &Plan,
        path_of: &dyn Fn(&str) -> Option<PathBuf>,
        files: FileUse<'_>,
        waker: &Waker,
    ) -> Result<StackOnFiles, Failure> {
        let mut opening = Opening {
            members: Vec::new(),
            held: HeldWrites::default(),
            files: OpenFiles::default(),
            overlay: files.overlay_bytes_max.map(Overlay::new),
            path_of,
            disks: files.disks,
            image: files.image,
            direct: files.direct,
            waker,
        };
        let built = plan.build_on(
            Some(Footprint::whole_device(plan.blocks().bytes())),
            None,
            ContentKind::Counted,
            &mut |disk: &DiskConfig, design| opening.open(disk, design),
        )?;
        let Opening { members, held, files: open_files, overlay, .. } = opening;
        let Built { mut stack, disks, describe } = built;
        if overlay.is_some() {
            stack.set_read_only();
        }
        for (disk, member) in (0..).zip(&members) {
            if member.lost.is_some() {
                stack.lose_disk(DiskId(disk));
            }
        }
        Ok(StackOnFiles {
            labels: files.place.of_labels(labels_of_nodes(
                files.image,
                members.iter().map(|member| member.node.as_str()),
                files.disks,
            )),
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: u32::MAX,
            },
            describe,
            members,
            held,
            files: open_files,
            overlay,
            config: config.clone(),
            numbered: plan.members().to_vec(),
        })
    }

    /// Lets the layers come up as members of a set, by `open`. Lost disks are told of, unless they
    /// are the error: a device is not served when its top is lost.
    pub fn come_up(
        &mut self,
        set: Uuid,
        open: impl FnOnce(&mut Engine, Labels) -> Result<(), LabelledOpenError>,
    ) -> Result<(), Failure> {
        let result = match open(&mut self.engine, self.labels.clone()) {
            Ok(()) => Ok(()),
            Err(LabelledOpenError::Layer(node, error)) => Err((node, error)),
            Err(LabelledOpenError::Refused(refused)) => return Err(self.refused(&refused)),
            Err(LabelledOpenError::Label(disk, error)) => {
                return Err(self.unwritten_label(disk, error));
            }
        };
        if let Err((_, OpenError::Io(IoError::Lost))) = &result {
            self.refuse_lost()?;
        }
        for lost in self.lost() {
            remark!("imbrex: warning: {lost}; the disk counts as lost");
        }
        result.map_err(|(node, error)| self.open_error(set, node, &error))
    }

    /// An error that names every disk that is lost, if one is.
    pub fn refuse_lost(&self) -> Result<(), Failure> {
        let lost: Vec<String> = self.lost().collect();
        match lost.is_empty() {
            true => Ok(()),
            false => Err(lost.join("; ").into()),
        }
    }

    /// The disks that could not be opened, with the reason, and those that have gone since.
    fn lost(&self) -> impl Iterator<Item = String> {
        let lost = |(disk, member): (u16, &Member)| {
            let Member { node, path, lost, .. } = member;
            let has_gone = self.engine.stack.is_disk_lost(DiskId(disk));
            let gone =
                || has_gone.then(|| format!("{} was lost while it was opened", path.display()));
            let reason = lost.clone().or_else(gone)?;
            Some(format!("node `{node}`: {reason}"))
        };
        (0..).zip(&self.members).filter_map(lost)
    }

    /// The stack as the image describes it.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// The member behind a port of a layer: the name of the layer, and that of the port.
    pub fn member_behind(&self, layer: NodeId, port: Port) -> Option<(String, String)> {
        let layer = self.describe.name_of(layer)?;
        let is_it = |member: &&StackMember| member.node == layer && member.port == port;
        let member = self.numbered.iter().find(is_it)?;
        Some((member.node.clone(), member.port_name.to_string()))
    }

    /// Lets the held writes through.
    pub fn release(held: HeldWrites, members: &[Member]) -> Result<(), Failure> {
        held.release().map_err(|(disk, error): (usize, IoError)| {
            let mut held = members.iter().filter(|member| member.lost.is_none());
            let Member { node, path, .. } = held.nth(disk).expect("a disk that was opened");
            let path = path.display();
            let way_out = match error {
                IoError::NoSpace => "; `--read-only` serves what is there without writing",
                _ => "",
            };
            format!("node `{node}`: cannot write {path}: {error}{way_out}").into()
        })
    }
}

/// Makes durable what was only in memory until now.
///
/// # Errors
/// With the node, as the system says.
pub fn dump(members: &[Member]) -> Result<(), Failure> {
    for Member { node, path, dump, .. } in members {
        let dumped = dump.as_ref().map_or(Ok(()), File::sync_data);
        dumped.map_err(|error| {
            let path = path.display();
            format!("node `{node}`: {path}: cannot write what was in memory: {error}")
        })?;
    }
    Ok(())
}

/// The memory of a disk that is memory; `file` is the one of the image.
fn memory_of(disk: &DiskConfig, image: Uuid, file: Option<PathBuf>) -> Option<Memory> {
    disk.media?;
    let survives = disk.survival();
    match (survives, file) {
        (Survival::Power, None) => None,
        (_, file) => Some(Memory::of_node(survives, image, &disk.name, file.unwrap_or_default())),
    }
}

/// The blocks of what holds a disk.
pub fn member_blocks(path: &Path) -> io::Result<BlockCount> {
    Storage::open(path)?.length().map(BlockCount::from_bytes_floor)
}

/// Refuses what has become shorter since the image was created.
fn check_length(
    disk: &DiskConfig,
    path: &Path,
    found: BlockCount,
    is_labelled: bool,
) -> Result<(), String> {
    let Some(measured) = disk.measured_blocks else {
        return Ok(());
    };
    let label = if is_labelled { LABEL_BLOCKS } else { 0 };
    let measured = BlockCount(measured + label);
    if found < measured {
        return Err(format!(
            "{} has {} bytes; when the image was created it had {}",
            path.display(),
            found.bytes(),
            measured.bytes()
        ));
    }
    Ok(())
}

/// What holds a disk, whatever it is called.
#[derive(Clone, PartialEq, Eq)]
enum Identity {
    /// A file by its device and number, or a block device by its own.
    File(u64, u64),
    /// An export, by its address.
    Remote(RemoteAddress),
}

/// True of two names of one file, block device or export.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

fn identity(path: &Path) -> Option<Identity> {
    match RemoteAddress::of(path).ok()? {
        Some(address) => Some(Identity::Remote(address)),
        None => Some(identity_of(&fs::metadata(path).ok()?)),
    }
}

fn identity_of(file: &Metadata) -> Identity {
    match file.file_type().is_block_device() {
        true => Identity::File(u64::MAX, file.rdev()),
        false => Identity::File(file.dev(), file.ino()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CreateArgs;
    use crate::commands::create;
    use imbrex_core::lifecycle::Start;
    use imbrex_serve::clock::WallClock;
    use imbrex_serve::image::Image;

    #[test]
    fn a_recovery_without_writing_that_needs_more_than_it_may_have_says_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        let args = CreateArgs {
            stack: "pore".to_owned(),
            data: data.clone(),
            preallocate: false,
            size: Some("64MiB".to_owned()),
            set: Vec::new(),
        };
        create::run(&args).expect("an image");
        let image = Image::open_read_only(&data).expect("an image");
        let config = StackConfig::from_image(&image.description().stack_toml).expect("a stack");
        let members = MemberNumbers::Listed(listed_members(&image.description().members));
        let plan = Plan::new(&config, &image_options(members)).expect("a plan");
        let set = image.description().uuid;
        let opened = |overlay_bytes_max| {
            let (mut clock, waker) = WallClock::alone().expect("an epoll instance");
            let files = FileUse {
                disks: image.description().disks.as_ref(),
                image: set,
                place: Place::default(),
                direct: DirectIo::Off,
                overlay_bytes_max,
            };
            let path_of = |name: &str| image.node_path(name);
            let stack = StackOnFiles::build(&config, &plan, &path_of, files, &waker);
            let mut stack = stack.unwrap_or_else(|error| panic!("{error}"));
            let open = |engine: &mut Engine, labels: Labels| {
                engine.open_labelled(&mut clock, Start::Recover(None), labels, 1)
            };
            stack.come_up(set, open).map_err(|error| error.to_string())
        };
        assert_eq!(opened(Some(1 << 20)), Ok(()));
        let expected = "--read-only: recovery would write more than the 12.0 KiB that are kept in memory; \
                        served once without --read-only and ended in order, the image needs no recovery";
        assert_eq!(opened(Some(3 << 12)), Err(expected.to_owned()));
    }
}
