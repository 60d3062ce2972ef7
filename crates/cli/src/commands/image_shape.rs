//! The stack of an image as a reader of its members must know it.

use super::members::{image_options, listed_members};
use crate::failure::Failure;
use imbrex_core::buffer::ContentKind;
use imbrex_core::cache::CacheSettings;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::extent::Extent;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_serve::fsck::{Joint, Member, SegmentGeometry, Shape};
use imbrex_serve::image::{Image, ImageError};
use imbrex_stack::{Describe, DiskConfig, Facts, Footprint, NodeConfig, Plan, StackConfig};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

/// Why an image cannot be opened by who only reads it.
pub fn refusal(error: ImageError) -> Failure {
    match error {
        ImageError::InUse { .. } => format!(
            "{error}; while it is served, `imbrex control SOCKET status` says what its nodes hold"
        )
        .into(),
        error => error.into(),
    }
}

/// Opens the members of an image.
pub fn shape_of(image: &Image, for_repair: bool) -> Result<Shape, Failure> {
    let config = StackConfig::from_image(&image.description().stack_toml)?;
    let nodes = Nodes {
        config: &config,
        image,
        for_repair,
        described: OnceCell::new(),
        opened: RefCell::default(),
        shared: RefCell::default(),
    };
    nodes.shape(config.top(), Some(image.description().size_bytes / BLOCK_BYTES))
}

/// The nodes of an image.
struct Nodes<'a> {
    config: &'a StackConfig,
    image: &'a Image,
    for_repair: bool,
    described: OnceCell<Describe>,
    /// The members that are open: several slices stand on one.
    opened: RefCell<BTreeMap<String, Member>>,
    /// The nodes that several nodes stand on, as far as they are known.
    shared: RefCell<BTreeMap<String, Rc<Shape>>>,
}

impl Nodes<'_> {
    /// A node that offers `blocks`; `None` where that is as many as there are. The file or block
    /// device of a disk may be longer.
    fn shape(&self, node: &NodeConfig, blocks: Option<u64>) -> Result<Shape, Failure> {
        let name = node.name();
        let users = self.config.node.iter().flat_map(NodeConfig::below);
        if users.filter(|below| *below == name).count() < 2 {
            return self.shape_of_one(node, blocks);
        }
        let known = self.shared.borrow().get(name).cloned();
        let shape = match known {
            Some(known) => known,
            None => {
                let shape = Rc::new(self.shape_of_one(node, blocks)?);
                let mut shared = self.shared.borrow_mut();
                shared.insert(name.to_owned(), Rc::clone(&shape));
                shape
            }
        };
        Ok(Shape::Shared(name.to_owned(), shape))
    }

    fn shape_of_one(&self, node: &NodeConfig, blocks: Option<u64>) -> Result<Shape, Failure> {
        let name = node.name();
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
                match below.is_two() {
                    false => self.numbered(name, &["below"], Shape::PersistentCache(home)),
                    true => {
                        let log = Box::new(self.shape(self.node(below.log())?, None)?);
                        let shape = Shape::PersistentCacheOnTwo { log, home };
                        self.numbered(name, &["log", "home"], shape)
                    }
                }
            }
            NodeConfig::Slice(slice) => self.slice(name, &slice.below, blocks)?,
            NodeConfig::Span(span) => self.joined(name, &span.below, Joint::Span)?,
            NodeConfig::Stripe(stripe) => {
                self.joined(name, &stripe.below, Joint::Stripe(stripe.chunk()?))?
            }
            NodeConfig::Dedicated(_) => {
                return Err(format!("node `{name}` is dedicated, which no image is").into());
            }
            NodeConfig::HostManaged(_) => {
                return Err(format!("node `{name}` is host-managed, which no image is").into());
            }
            NodeConfig::ReadCache(cache) => {
                let flash = self.whole(&cache.below.flash)?;
                Shape::ReadCache(name.to_owned(), Box::new(flash))
            }
            NodeConfig::Segments(segments) => {
                let below = &segments.below;
                let beside = (below.copies(), below.journal());
                self.segments(name, below.disk(), beside)?
            }
            NodeConfig::SBlock(translation) => {
                let below = &translation.below;
                self.s_blocks(name, below.disk(), below.copies())?
            }
            NodeConfig::MemoryBuffer(buffer) => {
                let below = &buffer.below;
                let beside = (below.copies.as_deref(), below.log.as_deref());
                self.buffer(name, &below.below, beside)?
            }
            NodeConfig::WriteBackCache(cache) => {
                // What it keeps for itself lies behind what it offers.
                let reserved = CacheSettings::reserved_blocks(Some(DurabilitySettings::default()));
                let backing = blocks.map(|blocks| blocks + reserved);
                let shape = Shape::Cache {
                    flash: Box::new(self.shape(self.node(&cache.below.flash)?, None)?),
                    backing: Box::new(self.shape(self.node(&cache.below.backing)?, backing)?),
                };
                self.numbered(name, &["flash", "backing"], shape)
            }
        })
    }

    /// A part of a disk, or of another node.
    fn slice(&self, name: &str, below: &str, blocks: Option<u64>) -> Result<Shape, Failure> {
        let Facts::Slice(facts) = self.facts_of(name)? else {
            return Err(other_kind(name));
        };
        let Some(Extent { start, blocks: all }) = facts.on_disk else {
            return Ok(Shape::Slice(facts.part, Box::new(self.whole(below)?)));
        };
        // A slice may be cut from a slice: what is known is where it lies on the disk.
        let mut node = self.node(below)?;
        while let NodeConfig::Slice(slice) = node {
            node = self.node(&slice.below)?;
        }
        let NodeConfig::Disk(disk) = node else {
            return Err(other_kind(node.name()));
        };
        let blocks = blocks.unwrap_or(all.0).min(all.0);
        Ok(Shape::Disk(self.member(disk)?.window(name, start.0, blocks)))
    }

    fn segments(
        &self,
        name: &str,
        disk: &str,
        (copies, journal): (Option<&str>, Option<&str>),
    ) -> Result<Shape, Failure> {
        let Facts::Segments(facts) = self.facts_of(name)? else {
            return Err(other_kind(name));
        };
        let port = if journal.is_some() { "journal" } else { "disk" };
        let journal = journal.map(|journal| self.whole(journal)).transpose()?;
        let layer = Shape::Segments {
            disk: Box::new(self.whole(disk)?),
            journal: journal.map(Box::new),
            blocks: self.blocks_of(name)?,
            geometry: Box::new(SegmentGeometry {
                identity: facts.identity,
                layout: facts.layout.clone(),
                areas: facts.areas,
            }),
        };
        self.beside(copies, self.numbered(name, &[port], layer))
    }

    fn s_blocks(&self, name: &str, disk: &str, copies: Option<&str>) -> Result<Shape, Failure> {
        let Facts::SBlock(facts) = self.facts_of(name)? else {
            return Err(other_kind(name));
        };
        let layer = Shape::SBlocks {
            disk: Box::new(self.whole(disk)?),
            blocks: self.blocks_of(name)?,
            layout: Box::new(facts.layout.clone()),
        };
        self.beside(copies, self.numbered(name, &["below"], layer))
    }

    fn buffer(
        &self,
        name: &str,
        below: &str,
        (copies, log): (Option<&str>, Option<&str>),
    ) -> Result<Shape, Failure> {
        let Facts::MemoryBuffer(facts) = self.facts_of(name)? else {
            return Err(other_kind(name));
        };
        let layer = |log| -> Result<Shape, Failure> {
            Ok(Shape::MemoryBuffer {
                log,
                below: Box::new(self.whole(below)?),
                blocks: self.blocks_of(name)?,
            })
        };
        let layer = match log.filter(|_| facts.has_log) {
            Some(log) => {
                let log = (Box::new(self.whole(log)?), facts.log_places);
                self.numbered(name, &["log"], layer(Some(log))?)
            }
            None => layer(None)?,
        };
        self.beside(copies, layer)
    }

    /// A layer beside which a store of copies may stand.
    fn beside(&self, copies: Option<&str>, layer: Shape) -> Result<Shape, Failure> {
        Ok(match copies {
            Some(copies) => Shape::WithCopies(Box::new(self.whole(copies)?), Box::new(layer)),
            None => layer,
        })
    }

    /// A node with all that it offers.
    fn whole(&self, name: &str) -> Result<Shape, Failure> {
        self.shape(self.node(name)?, Some(self.blocks_of(name)?))
    }

    fn facts_of(&self, name: &str) -> Result<&Facts, Failure> {
        let facts = self.describe()?.facts_of(name);
        facts.ok_or_else(|| format!("the image has no node `{name}`").into())
    }

    fn blocks_of(&self, name: &str) -> Result<u64, Failure> {
        let blocks = self.describe()?.blocks_of(name);
        let blocks = blocks.ok_or_else(|| format!("the image has no node `{name}`"))?;
        Ok(blocks.0)
    }

    fn joined(&self, name: &str, below: &[String], joint: Joint) -> Result<Shape, Failure> {
        let describe = self.describe()?;
        let blocks = |name: &str| describe.blocks_of(name).map(|blocks| blocks.0);
        let shapes = below.iter().map(|name| self.shape(self.node(name)?, blocks(name)));
        let offered = blocks(name);
        Ok(Shape::Joined { joint, blocks: offered, below: shapes.collect::<Result<_, Failure>>()? })
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
    fn describe(&self) -> Result<&Describe, Failure> {
        if let Some(known) = self.described.get() {
            return Ok(known);
        }
        let members = listed_members(self.image.description().members.as_ref());
        let plan = Plan::new(self.config, &image_options(members))?;
        let whole = Footprint::whole_device(plan.blocks().bytes());
        let built = plan.build(Some(whole), None, ContentKind::Counted)?;
        Ok(self.described.get_or_init(|| built.describe))
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

fn other_kind(name: &str) -> Failure {
    format!("node `{name}` is not what the stack of the image says").into()
}
