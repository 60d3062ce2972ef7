//! The files that a stack stands on when it is created and served.

use super::create::IMAGE_SEED;
use crate::Failure;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_core::error::IoError;
use imbrex_core::lifecycle::OpenError;
use imbrex_core::stack::NodeId;
use imbrex_serve::clock::Waker;
use imbrex_serve::disk::{DirectIo, FileDisk, HeldWrites};
use imbrex_sim::disk::MeasuredDisk;
use imbrex_sim::experiment::config::{DiskConfig, NodeConfig};
use imbrex_sim::experiment::{BuildOptions, Built, ConfigError, Describe, Plan, StackConfig};
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A disk of a stack over files.
pub struct Member {
    /// The name of the node.
    pub node: String,
    /// Its file or block device.
    pub path: PathBuf,
    /// Whether operations go round the page cache.
    pub is_direct: bool,
    /// What the file is, whatever it is called.
    identity: (u64, u64),
}

/// A stack over files.
pub struct StackOnFiles {
    /// The stack with its disks. What these are told to write is held back at first.
    pub engine: Engine,
    /// What reports need to know of it.
    pub describe: Describe,
    /// The disks, in the order of their ids.
    pub members: Vec<Member>,
    /// What the disks hold back.
    pub held: HeldWrites,
    config: StackConfig,
}

/// How the stack of an image is built: the same at its creation and at every opening.
pub fn image_options() -> BuildOptions {
    BuildOptions {
        seed: IMAGE_SEED,
        size_bytes: None,
        scale: 1,
        trim_disks: true,
        contents_dir: None,
        durable: true,
    }
}

impl StackOnFiles {
    /// Builds the stack over its files, each opened and locked. `path_of` knows the files of the
    /// disks that have no backing of their own. Nothing is written.
    pub fn build(
        config: &StackConfig,
        plan: &Plan,
        path_of: &dyn Fn(&str) -> Option<PathBuf>,
        direct: DirectIo,
        waker: &Waker,
    ) -> Result<StackOnFiles, Failure> {
        let mut members: Vec<Member> = Vec::new();
        let held = HeldWrites::default();
        let built = plan.build_on(
            Some(plan.blocks().bytes()),
            None,
            ContentKind::Counted,
            &mut |disk: &DiskConfig, model| {
                let wrong = |error: &dyn Display| {
                    ConfigError::words(format!("node `{}`: {error}", disk.name))
                };
                let path = match &disk.backing {
                    Some(path) => PathBuf::from(path),
                    None => {
                        path_of(&disk.name).ok_or_else(|| wrong(&"the image has no such disk"))?
                    }
                };
                let identity = identity(&path).unwrap_or_default();
                let same = |member: &&Member| member.identity == identity && identity != (0, 0);
                if let Some(other) = members.iter().find(same) {
                    return Err(wrong(&format_args!(
                        "{} is the disk of node `{}` already",
                        path.display(),
                        other.node
                    )));
                }
                let file = FileDisk::open(&path, model.geometry().clone(), direct, waker.clone())
                    .map_err(|error| wrong(&error))?;
                members.push(Member {
                    node: disk.name.clone(),
                    path,
                    is_direct: file.is_direct(),
                    identity,
                });
                let file = Box::new(held.hold(file));
                Ok(Box::new(MeasuredDisk::new(file, model.statistics())))
            },
        )?;
        let Built {
            stack,
            disks,
            describe,
        } = built;
        Ok(StackOnFiles {
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: u32::MAX,
            },
            describe,
            members,
            held,
            config: config.clone(),
        })
    }

    /// An error of a layer, with the node and the file that holds its journal.
    pub fn layer_error(&self, node: NodeId, error: &dyn Display) -> Failure {
        layer_error(&self.config, &self.describe, &self.members, node, error)
    }

    /// Why a layer could not come up, with the node and the file that is to blame: the one that
    /// holds its journal, unless what a cache stands on is an older copy of itself.
    pub fn open_error(&self, node: NodeId, error: &OpenError) -> Failure {
        let stale_backing =
            matches!(error, OpenError::OlderCopy { member, .. } if *member == "backing");
        match self.config.cache() {
            Some(cache) if stale_backing => {
                let path = member_path(&self.members, self.disk_below(&cache.below.backing));
                format!("node `{}`: {path}: {error}", cache.name).into()
            }
            _ => self.layer_error(node, error),
        }
    }

    /// The disk that a node stands on, or the node itself.
    fn disk_below<'a>(&'a self, mut name: &'a str) -> &'a str {
        while let Some(below) = self.config.node(name).and_then(|node| node.below().pop()) {
            name = below;
        }
        name
    }

    /// Lets the held writes through.
    pub fn release(held: HeldWrites, members: &[Member]) -> Result<(), Failure> {
        held.release().map_err(|(disk, error): (usize, IoError)| {
            let Member { node, path, .. } = &members[disk];
            format!("node `{node}`: cannot write {}: {error}", path.display()).into()
        })
    }
}

/// An error of a layer, with the node and the file that holds its journal.
pub fn layer_error(
    config: &StackConfig,
    describe: &Describe,
    members: &[Member],
    node: NodeId,
    error: &dyn Display,
) -> Failure {
    let layers = config.node.iter().filter_map(|layer| match layer {
        NodeConfig::WriteBackCache(cache) => {
            Some((describe.cache, &cache.name, &cache.below.flash))
        }
        NodeConfig::PersistentCache(cache) => {
            Some((describe.translation, &cache.name, &cache.below))
        }
        NodeConfig::Disk(_) | NodeConfig::HostManaged(_) => None,
    });
    let mut layers = layers.filter(|(id, ..)| *id == Some(node));
    let Some((_, name, disk)) = layers.next() else {
        return error.to_string().into();
    };
    let path = member_path(members, disk);
    format!("node `{name}`: {path}: {error}").into()
}

/// The file of a disk, for an error.
fn member_path(members: &[Member], disk: &str) -> String {
    let member = members.iter().find(|member| member.node == disk);
    member.map_or(String::new(), |member| member.path.display().to_string())
}

/// What a file is, whatever it is called: its device and number, or, of a block device, its own.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some(if metadata.file_type().is_block_device() {
        (u64::MAX, metadata.rdev())
    } else {
        (metadata.dev(), metadata.ino())
    })
}
