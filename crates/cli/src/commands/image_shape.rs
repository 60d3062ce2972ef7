//! The stack of an image as a reader of its members must know it.

use crate::Failure;
use imbrex_core::cache::CacheSettings;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_serve::fsck::{Member, Shape};
use imbrex_serve::image::Image;
use imbrex_sim::experiment::StackConfig;
use imbrex_sim::experiment::config::NodeConfig;
use std::path::PathBuf;

/// Opens the members of an image.
pub fn shape_of(image: &Image, for_repair: bool) -> Result<Shape, Failure> {
    let config: StackConfig = toml::from_str(&image.description().stack_toml)?;
    let top = config
        .node
        .iter()
        .find(|node| {
            let is_below = |other: &NodeConfig| other.below().contains(&node.name());
            !config.node.iter().any(is_below)
        })
        .ok_or("the image describes a stack without a top")?;
    node_shape(top, &config, image, for_repair)
}

fn node_shape(
    node: &NodeConfig,
    config: &StackConfig,
    image: &Image,
    for_repair: bool,
) -> Result<Shape, Failure> {
    let below = |name: &str| {
        let node = config.node.iter().find(|node| node.name() == name);
        let node = node.ok_or_else(|| format!("the image has no node `{name}`"))?;
        node_shape(node, config, image, for_repair)
    };
    let disk = |name: &str| match below(name)? {
        Shape::Disk(member) => Ok(member),
        _ => Err(Failure::from(format!("node `{name}` is no disk"))),
    };
    Ok(match node {
        NodeConfig::Disk(disk) => {
            let own = || image.node_path(&disk.name);
            let path = disk.backing.as_ref().map(PathBuf::from).or_else(own);
            let path = path.ok_or_else(|| format!("the image has no disk `{}`", disk.name))?;
            let member = Member::open(&disk.name, &path, for_repair)
                .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
            Shape::Disk(member)
        }
        NodeConfig::PersistentCache(translation) => {
            Shape::PersistentCache(disk(&translation.below)?)
        }
        NodeConfig::HostManaged(zones) => {
            let reason = format!("node `{}` is host-managed, which no image is", zones.name);
            return Err(reason.into());
        }
        NodeConfig::WriteBackCache(cache) => Shape::Cache {
            flash: disk(&cache.below.flash)?,
            backing: Box::new(match below(&cache.below.backing)? {
                Shape::Disk(member) => Shape::Disk(member.of_disk(backing_blocks(image))),
                layer => layer,
            }),
        },
    })
}

/// Blocks of the disk below the cache of an image: what is served, and what the cache keeps for
/// itself behind it. The file or block device may be longer.
fn backing_blocks(image: &Image) -> u64 {
    let reserved = CacheSettings::reserved_blocks(Some(DurabilitySettings::default()));
    image.description().size_bytes / BLOCK_BYTES + reserved
}
