//! The stack of an image as a reader of its members must know it.

use super::members::{image_options, listed_members};
use crate::Failure;
use imbrex_core::buffer::ContentKind;
use imbrex_core::cache::CacheSettings;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::extent::Extent;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_serve::fsck::{Joint, Member, Shape};
use imbrex_serve::image::Image;
use imbrex_sim::experiment::config::{DiskConfig, NodeConfig};
use imbrex_sim::experiment::{Describe, Footprint, Plan, StackConfig};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Opens the members of an image.
pub fn shape_of(image: &Image, for_repair: bool) -> Result<Shape, Failure> {
    let config = StackConfig::from_image(&image.description().stack_toml)?;
    let nodes = Nodes {
        config: &config,
        image,
        for_repair,
        opened: RefCell::default(),
    };
    nodes.shape(
        config.top(),
        Some(image.description().size_bytes / BLOCK_BYTES),
    )
}

/// The nodes of an image.
struct Nodes<'a> {
    config: &'a StackConfig,
    image: &'a Image,
    for_repair: bool,
    /// The members that are open: several slices stand on one.
    opened: RefCell<BTreeMap<String, Member>>,
}

impl Nodes<'_> {
    /// A node that offers `blocks`; `None` where that is as many as there are. The file or block
    /// device of a disk may be longer.
    fn shape(&self, node: &NodeConfig, blocks: Option<u64>) -> Result<Shape, Failure> {
        Ok(match node {
            NodeConfig::Disk(disk) => {
                let member = self.member(disk)?;
                Shape::Disk(match blocks {
                    Some(blocks) => member.of_disk(blocks),
                    None => member,
                })
            }
            NodeConfig::PersistentCache(translation) => {
                let below = &translation.below;
                let home = match self.shape(self.node(below.home())?, None)? {
                    Shape::Disk(member) => member,
                    _ => return Err(format!("node `{}` is no disk", below.home()).into()),
                };
                let name = &translation.name;
                match below.is_two() {
                    false => self.numbered(name, &["below"], Shape::PersistentCache(home)),
                    true => {
                        let log = Box::new(self.shape(self.node(below.log())?, None)?);
                        let shape = Shape::PersistentCacheOnTwo { log, home };
                        self.numbered(name, &["log", "home"], shape)
                    }
                }
            }
            NodeConfig::Slice(slice) => {
                let Shape::Disk(member) = self.shape(self.node(&slice.below)?, None)? else {
                    let reason = format!("node `{}`: only slices of disks can be read", slice.name);
                    return Err(reason.into());
                };
                let extent = self.describe()?.slice_on_disk(&slice.name);
                let Some(Extent { start, blocks: all }) = extent else {
                    return Err(format!("node `{}` is on no disk", slice.name).into());
                };
                let blocks = blocks.unwrap_or(all.0).min(all.0);
                Shape::Disk(member.window(&slice.name, start.0, blocks))
            }
            NodeConfig::Span(span) => self.joined(&span.name, &span.below, Joint::Span)?,
            NodeConfig::Stripe(stripe) => {
                self.joined(&stripe.name, &stripe.below, Joint::Stripe(stripe.chunk()?))?
            }
            NodeConfig::Dedicated(span) => {
                return Err(format!("node `{}` is dedicated, which no image is", span.name).into());
            }
            NodeConfig::ReadCache(_) | NodeConfig::SBlock(_) | NodeConfig::Segments(_) => {
                let reason = format!(
                    "node `{}`: what it keeps cannot be read yet; `imbrex serve` recovers it",
                    node.name()
                );
                return Err(reason.into());
            }
            NodeConfig::HostManaged(zones) => {
                let reason = format!("node `{}` is host-managed, which no image is", zones.name);
                return Err(reason.into());
            }
            NodeConfig::MemoryBuffer(buffer) => {
                let reason = format!(
                    "node `{}` is a memory-buffer, whose log cannot be read without serving the image",
                    buffer.name
                );
                return Err(reason.into());
            }
            NodeConfig::WriteBackCache(cache) => {
                // What it keeps for itself lies behind what it offers.
                let reserved = CacheSettings::reserved_blocks(Some(DurabilitySettings::default()));
                let backing = blocks.map(|blocks| blocks + reserved);
                let shape = Shape::Cache {
                    flash: Box::new(self.shape(self.node(&cache.below.flash)?, None)?),
                    backing: Box::new(self.shape(self.node(&cache.below.backing)?, backing)?),
                };
                self.numbered(&cache.name, &["flash", "backing"], shape)
            }
        })
    }

    fn joined(&self, name: &str, below: &[String], joint: Joint) -> Result<Shape, Failure> {
        let describe = self.describe()?;
        let blocks = |name: &str| describe.blocks_of(name).map(|blocks| blocks.0);
        let shapes = below
            .iter()
            .map(|name| self.shape(self.node(name)?, blocks(name)));
        let offered = blocks(name);
        Ok(Shape::Joined {
            joint,
            blocks: offered,
            below: shapes.collect::<Result<_, Failure>>()?,
        })
    }

    /// A layer with the numbers of its members, if the image lists them all.
    fn numbered(&self, node: &str, ports: &[&str], layer: Shape) -> Shape {
        let members = self.image.description().members.as_ref();
        let number = |port: &&str| {
            let mut list = members?.list.iter();
            let member = list.find(|it| it.node == node && it.port == *port)?;
            Some(member.number)
        };
        let numbers: Option<Vec<u16>> = ports.iter().map(number).collect();
        match numbers {
            Some(numbers) => Shape::Numbered(numbers, Box::new(layer)),
            None => layer,
        }
    }

    fn node(&self, name: &str) -> Result<&NodeConfig, Failure> {
        let node = self.config.node(name);
        node.ok_or_else(|| format!("the image has no node `{name}`").into())
    }

    /// The nodes as they are when the stack is built.
    fn describe(&self) -> Result<Describe, Failure> {
        let members = listed_members(self.image.description().members.as_ref());
        let plan = Plan::new(self.config, &image_options(members))?;
        let whole = Footprint::whole_device(plan.blocks().bytes());
        Ok(plan
            .build(Some(whole), None, ContentKind::Counted)?
            .describe)
    }

    fn member(&self, disk: &DiskConfig) -> Result<Member, Failure> {
        if let Some(member) = self.opened.borrow().get(&disk.name) {
            return Ok(member.clone());
        }
        let member = self.open(disk)?;
        let mut opened = self.opened.borrow_mut();
        Ok(opened.entry(disk.name.clone()).or_insert(member).clone())
    }

    fn open(&self, disk: &DiskConfig) -> Result<Member, Failure> {
        let own = || self.image.node_path(&disk.name);
        let path = disk.backing.as_ref().map(PathBuf::from).or_else(own);
        let path = path.ok_or_else(|| format!("the image has no disk `{}`", disk.name))?;
        Member::open(&disk.name, &path, self.for_repair)
            .map_err(|error| format!("cannot open {}: {error}", path.display()).into())
    }
}
