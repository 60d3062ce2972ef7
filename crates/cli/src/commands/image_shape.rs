//! A stack as a reader of its members must know it: that of an image, or one in memory.

use super::members::{image_options, listed_members};
use crate::failure::Failure;
use imbrex_core::buffer::ContentKind;
use imbrex_core::cache::CacheSettings;
use imbrex_core::durability::DurabilitySettings;
use imbrex_core::extent::Extent;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_serve::fsck::{Joint, Member, SegmentGeometry, Shape};
use imbrex_serve::image::{Image, ImageError};
use imbrex_serve::storage::Storage;
use imbrex_stack::{
    Describe, DiskConfig, Facts, Footprint, Keeps, ListedMember, MemberNumbers, NodeConfig, Plan,
    StackConfig,
};
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
        numbers: listed_members(&image.description().members),
        open: &|disk| open_file(image, disk, for_repair),
        missing: &|disk| missing_file(image, disk),
        described: OnceCell::new(),
        opened: RefCell::default(),
        shared: RefCell::default(),
    };
    nodes.shape(config.top(), Some(image.description().size_bytes / BLOCK_BYTES))
}

/// A stack whose disks `open` finds, with the numbers of its members.
pub fn shape_in_memory(
    config: &StackConfig,
    describe: Rc<Describe>,
    numbers: Vec<ListedMember>,
    (open, missing): (&OpenDisk<'_>, &MissingDisk<'_>),
) -> Result<Shape, Failure> {
    let nodes = Nodes {
        config,
        numbers,
        open,
        missing,
        described: OnceCell::from(describe),
        opened: RefCell::default(),
        shared: RefCell::default(),
    };
    nodes.shape(config.top(), None)
}

/// Opens what holds a disk.
type OpenDisk<'a> = dyn Fn(&DiskConfig) -> Result<Member, Failure> + 'a;
/// Says why a disk is not there, if it is not.
type MissingDisk<'a> = dyn Fn(&DiskConfig) -> Option<String> + 'a;

/// Opens the file or block device of a disk of an image.
fn open_file(image: &Image, disk: &DiskConfig, for_repair: bool) -> Result<Member, Failure> {
    let path =
        path_of(image, disk).ok_or_else(|| format!("the image has no disk `{}`", disk.name))?;
    Member::open(&disk.name, &path, for_repair)
        .map_err(|error| format!("cannot open {}: {error}", path.display()).into())
}

/// Where a disk of an image lies.
fn path_of(image: &Image, disk: &DiskConfig) -> Option<PathBuf> {
    let own = || image.node_path(&disk.name);
    disk.backing.as_ref().map(PathBuf::from).or_else(own)
}

/// Says so when there is no file or block device of a disk.
fn missing_file(image: &Image, disk: &DiskConfig) -> Option<String> {
    let path = path_of(image, disk)?;
    if disk.is_remote() {
        let error = Storage::open(&path).err()?;
        return Some(format!("{} cannot be reached: {error}", path.display()));
    }
    let is_missing = matches!(path.try_exists(), Ok(false));
    is_missing.then(|| format!("there is no {}", path.display()))
}

/// The nodes of a stack.
struct Nodes<'a> {
    config: &'a StackConfig,
    /// The numbers of the members, as far as the image lists them.
    numbers: Vec<ListedMember>,
    open: &'a OpenDisk<'a>,
    /// Why a disk is not there, if it is not.
    missing: &'a MissingDisk<'a>,
    described: OnceCell<Rc<Describe>>,
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
        // A store of copies stands beside the node and is no part of its data.
        let layer = match node.keeps()? {
            Keeps::Disk => self.disk(node, blocks)?,
            Keeps::Nothing => self.whole(data_of(node)?)?,
            Keeps::Part => self.slice(name, data_of(node)?, blocks)?,
            Keeps::Spanned => self.joined(node, Joint::Span)?,
            Keeps::Striped(chunk) => self.joined(node, Joint::Stripe(chunk))?,
            Keeps::Copies => {
                Shape::ReadCache(name.to_owned(), Box::new(self.whole(data_of(node)?)?))
            }
            Keeps::Translation => self.translation(node)?,
            Keeps::Cache => self.cache(node, blocks)?,
            Keeps::Segments => self.segments(node)?,
            Keeps::SBlocks => self.s_blocks(node)?,
            Keeps::BufferLog => self.buffer(node)?,
            Keeps::ArrayOfCopies => self.array_of_copies(node)?,
            Keeps::ParityArray => self.parity_array(node)?,
            Keeps::Unreadable(why) => return Err(format!("node `{name}` {why}").into()),
        };
        Ok(match node.port("copies") {
            Some(copies) => Shape::WithCopies(Box::new(self.whole(copies)?), Box::new(layer)),
            None => layer,
        })
    }

    fn disk(&self, node: &NodeConfig, blocks: Option<u64>) -> Result<Shape, Failure> {
        let member = self.member(node.disk().ok_or_else(|| other_kind(node.name()))?)?;
        Ok(Shape::Disk(match blocks {
            Some(blocks) => member.of_disk(blocks),
            None => member,
        }))
    }

    fn translation(&self, node: &NodeConfig) -> Result<Shape, Failure> {
        let below = node.below();
        let (log, home) = match below[..] {
            [home] => (None, home),
            [log, home] => (Some(log), home),
            _ => return Err(other_kind(node.name())),
        };
        let home = match self.shape(self.node(home)?, None)? {
            Shape::Disk(member) => member,
            _ => return Err(format!("node `{home}` is no disk").into()),
        };
        let shape = match log {
            None => Shape::PersistentCache(home),
            Some(log) => {
                let log = Box::new(self.shape(self.node(log)?, None)?);
                Shape::PersistentCacheOnTwo { log, home }
            }
        };
        Ok(self.numbered(node, shape))
    }

    fn cache(&self, node: &NodeConfig, blocks: Option<u64>) -> Result<Shape, Failure> {
        let [flash, backing] = node.below()[..] else {
            return Err(other_kind(node.name()));
        };
        // What it keeps for itself lies behind what it offers.
        let reserved = CacheSettings::reserved_blocks(Some(DurabilitySettings::default()));
        let blocks = blocks.map(|blocks| blocks + reserved);
        let shape = Shape::Cache {
            flash: Box::new(self.shape(self.node(flash)?, None)?),
            backing: Box::new(self.shape(self.node(backing)?, blocks)?),
        };
        Ok(self.numbered(node, shape))
    }

    /// A part of a disk, or of another node.
    fn slice(&self, name: &str, below: &str, blocks: Option<u64>) -> Result<Shape, Failure> {
        let Some(facts) = self.facts_of(name)?.part() else {
            return Err(other_kind(name));
        };
        let Some(Extent { start, blocks: all }) = facts.on_disk else {
            return Ok(Shape::Slice(facts.part, Box::new(self.whole(below)?)));
        };
        // A slice may be cut from a slice, or lie above a scheduler: what is known is where it lies on the disk.
        let mut node = self.node(below)?;
        while node.disk().is_none() {
            node = self.node(data_of(node)?)?;
        }
        let disk = node.disk().ok_or_else(|| other_kind(node.name()))?;
        let blocks = blocks.unwrap_or(all.0).min(all.0);
        Ok(Shape::Disk(self.member(disk)?.window(name, start.0, blocks)))
    }

    fn segments(&self, node: &NodeConfig) -> Result<Shape, Failure> {
        let name = node.name();
        let Some(facts) = self.facts_of(name)?.segments() else {
            return Err(other_kind(name));
        };
        let journal = node.port("journal").map(|journal| self.whole(journal)).transpose()?;
        let layer = Shape::Segments {
            disk: Box::new(self.whole(data_of(node)?)?),
            journal: journal.map(Box::new),
            blocks: self.blocks_of(name)?,
            geometry: Box::new(SegmentGeometry {
                identity: facts.identity,
                layout: facts.layout.clone(),
                areas: facts.areas,
            }),
        };
        Ok(self.numbered(node, layer))
    }

    fn s_blocks(&self, node: &NodeConfig) -> Result<Shape, Failure> {
        let name = node.name();
        let Some(facts) = self.facts_of(name)?.s_blocks() else {
            return Err(other_kind(name));
        };
        let layer = Shape::SBlocks {
            disk: Box::new(self.whole(data_of(node)?)?),
            blocks: self.blocks_of(name)?,
            layout: Box::new(facts.layout.clone()),
        };
        Ok(self.numbered(node, layer))
    }

    fn buffer(&self, node: &NodeConfig) -> Result<Shape, Failure> {
        let name = node.name();
        let Some(facts) = self.facts_of(name)?.buffer() else {
            return Err(other_kind(name));
        };
        let log = node.port("log").filter(|_| facts.has_log);
        let log = log.map(|log| self.whole(log)).transpose()?;
        let layer = Shape::MemoryBuffer {
            log: log.map(|log| (Box::new(log), facts.log_places)),
            below: Box::new(self.whole(data_of(node)?)?),
            blocks: self.blocks_of(name)?,
        };
        Ok(match facts.has_log {
            true => self.numbered(node, layer),
            false => layer,
        })
    }

    /// An array that may do without some of the nodes below.
    fn array_of_copies(&self, node: &NodeConfig) -> Result<Shape, Failure> {
        let name = node.name();
        let Some(facts) = self.facts_of(name)?.array_of_copies() else {
            return Err(other_kind(name));
        };
        let Some(layout) = facts.layout else {
            return Err(format!("node `{name}` keeps nothing over restarts").into());
        };
        let layer = Shape::Raid1 {
            below: self.members_below(node)?,
            columns: facts.columns,
            layout: Box::new(layout),
        };
        Ok(self.numbered(node, layer))
    }

    fn parity_array(&self, node: &NodeConfig) -> Result<Shape, Failure> {
        let name = node.name();
        let Some(facts) = self.facts_of(name)?.parity_array() else {
            return Err(other_kind(name));
        };
        let Some(shape) = &facts.shape else {
            return Err(format!("node `{name}` keeps nothing over restarts").into());
        };
        let layer = Shape::Raid4Smr {
            below: self.members_below(node)?,
            blocks: self.blocks_of(name)?,
            shape: Box::new(shape.clone()),
        };
        Ok(self.numbered(node, layer))
    }

    /// The nodes below an array, each with its name.
    fn members_below(&self, node: &NodeConfig) -> Result<Vec<(String, Shape)>, Failure> {
        let below = node.below().into_iter().map(|below| {
            let shape = match self.missing_below(below)? {
                Some(why) => Shape::Missing(why),
                None => self.whole(below)?,
            };
            Ok((below.to_owned(), shape))
        });
        below.collect()
    }

    /// Which disk under a node is not there, if one is.
    fn missing_below(&self, name: &str) -> Result<Option<String>, Failure> {
        let node = self.node(name)?;
        if let Some(disk) = node.disk() {
            return Ok((self.missing)(disk));
        }
        for below in node.below() {
            if let Some(why) = self.missing_below(below)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
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

    fn joined(&self, node: &NodeConfig, joint: Joint) -> Result<Shape, Failure> {
        let describe = self.describe()?;
        let blocks = |name: &str| describe.blocks_of(name).map(|blocks| blocks.0);
        let below = node.below().into_iter();
        let shapes = below.map(|name| self.shape(self.node(name)?, blocks(name)));
        let offered = blocks(node.name());
        Ok(Shape::Joined { joint, blocks: offered, below: shapes.collect::<Result<_, Failure>>()? })
    }

    /// A layer with the numbers of its members, if the image lists them all. A segment layout with its
    /// journal elsewhere has a second member, and no journal there.
    fn numbered(&self, node: &NodeConfig, layer: Shape) -> Shape {
        let number = |(port, _): (std::borrow::Cow<'_, str>, _)| {
            let mut list = self.numbers.iter();
            let member = list.find(|it| it.node == node.name() && port == *it.port)?;
            Some(member.number)
        };
        let numbers: Option<Vec<u16>> = node.members().into_iter().map(number).collect();
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
        let numbers = MemberNumbers::Listed(self.numbers.clone());
        let plan = Plan::new(self.config, &image_options(numbers))?;
        let whole = Footprint::whole_device(plan.blocks().bytes());
        let designed = plan.design_all(Some(whole), None, ContentKind::Counted)?;
        Ok(self.described.get_or_init(|| Rc::new(designed.describe)))
    }

    fn member(&self, disk: &DiskConfig) -> Result<Member, Failure> {
        if let Some(member) = self.opened.borrow().get(&disk.name) {
            return Ok(member.clone());
        }
        let member = (self.open)(disk)?;
        let mut opened = self.opened.borrow_mut();
        Ok(opened.entry(disk.name.clone()).or_insert(member).clone())
    }
}

/// The node behind the last port, which holds the data.
fn data_of(node: &NodeConfig) -> Result<&str, Failure> {
    node.below().pop().ok_or_else(|| other_kind(node.name()))
}

fn other_kind(name: &str) -> Failure {
    format!("node `{name}` is not what the stack of the image says").into()
}
