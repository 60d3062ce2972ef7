//! From a configuration to a stack: first a plan, in which the needs of all nodes have gone down
//! and the workload is not yet known, then the stack, for which geometries come up and every share
//! is a number of blocks.

use super::areas::Footprint;
use super::config::{ConfigError, StackConfig};
use super::describe::{Describe, DescribeNode};
use super::durability;
use super::kinds::{
    Asked, Below, Body, DiskConfig, Known, Offer, Planned, PlannedBands, TimeKey, World, Writer,
    wrong,
};
use super::members::{StackMember, members};
use super::options::BuildOptions;
use super::resolved::resolved;
use imbrex_core::buffer::ContentKind;
use imbrex_core::disk::{Disk, Geometry, Survival};
use imbrex_core::extent::Extent;
use imbrex_core::map::BandTable;
use imbrex_core::stack::{NodeId, Stack, StackBuilder};
use imbrex_core::units::{BlockCount, Lba};
use imbrex_drives::{DiskDesign, Drive};
use std::collections::BTreeMap;

/// A stack about to be built.
pub struct Plan {
    config: StackConfig,
    options: BuildOptions,
    /// Drive model of each disk node.
    drives: BTreeMap<String, Drive>,
    /// The nodes in the order of the file.
    nodes: Vec<Box<dyn Planned>>,
    members: Vec<StackMember>,
    /// Size of the device.
    blocks: BlockCount,
}

/// Makes a disk of its design.
pub type PlaceDisk<'a> =
    dyn FnMut(&DiskConfig, DiskDesign) -> Result<Box<dyn Disk>, ConfigError> + 'a;

/// A stack of which the disks are still to be made.
pub struct Designed {
    /// The layers.
    pub stack: Stack,
    /// The designs of the disks, in the order of their ids: that of the nodes.
    pub disks: Vec<DiskDesign>,
    /// What reports need to know of it.
    pub describe: Describe,
}

/// A stack that is ready to run.
pub struct Built {
    /// The layers.
    pub stack: Stack,
    /// The disks, in the order of their ids.
    pub disks: Vec<Box<dyn Disk>>,
    /// What reports need to know of it.
    pub describe: Describe,
}

impl Plan {
    /// Loads the drives, finds the size of the device and lets the needs go down.
    ///
    /// # Errors
    /// When a drive is unknown or the sizes do not fit.
    pub fn new(config: &StackConfig, options: &BuildOptions) -> Result<Plan, ConfigError> {
        durability::check_use(&config.node, options.durable)?;
        let drives = load_drives(config)?;
        let mut world = World { config, options, drives: &drives, device: BlockCount::ZERO };
        world.device = device_blocks(&world)?;
        let (nodes, blocks) = (needs_go_down(&world)?, world.device);
        check_shares(config, &nodes)?;
        Ok(Plan {
            config: config.clone(),
            options: options.clone(),
            members: members(config, &options.members)?,
            drives,
            nodes,
            blocks,
        })
    }

    /// Size of the device.
    pub fn blocks(&self) -> BlockCount {
        self.blocks
    }

    /// The members, in the order of the nodes and of their ports.
    pub fn members(&self) -> &[StackMember] {
        &self.members
    }

    /// The bands of the first translation on the way of the data from the top, whose addresses are
    /// those of the device; none where a slice, a span or a stripe lies between.
    fn planned_bands(&self) -> Option<&PlannedBands> {
        let mut node = self.config.top();
        loop {
            let planned = &self.nodes[self.index_of(node.name())];
            if let Some(bands) = planned.bands() {
                return Some(bands);
            }
            if node.node().moves_addresses() {
                return None;
            }
            node = self.config.node(node.below().last()?)?;
        }
    }

    fn index_of(&self, name: &str) -> usize {
        let mut nodes = self.config.node.iter();
        let index = nodes.position(|node| node.name() == name);
        index.expect("a node of a checked stack")
    }

    /// The bands in the addresses of the device, if it has any: touched bands are these.
    pub fn bands(&self) -> Option<&BandTable> {
        self.planned_bands().map(|bands| &*bands.table)
    }

    /// What the band layout depends on, in words; empty without bands.
    pub fn bands_key(&self) -> &str {
        self.planned_bands().map_or("", |bands| &bands.key)
    }

    /// True when a cache serves writes only.
    pub fn is_write_only(&self) -> bool {
        self.config.is_write_only()
    }

    /// True when a size is a share of the bands of the workload.
    pub fn needs_footprint(&self) -> bool {
        self.nodes.iter().any(|node| node.has_share())
    }

    /// True when a log is a share of the written bands.
    pub fn has_log_of_written_bands(&self) -> bool {
        let mut bands = self.nodes.iter().filter_map(|node| node.bands());
        bands.any(|bands| bands.log_is_of_written)
    }

    /// True when a cache must know the future.
    pub fn needs_lookups(&self) -> bool {
        self.nodes.iter().any(|node| node.needs_lookups())
    }

    /// Refuses a stack whose counters depend on how long things take.
    ///
    /// # Errors
    /// When a node of it depends on time; names the key.
    pub fn check_untimed(&self) -> Result<(), ConfigError> {
        for (node, planned) in self.config.node.iter().zip(&self.nodes) {
            let is_durable =
                node.journal_keys().is_some_and(|journal| journal.durable == Some(true));
            let of_journal = is_durable.then(|| TimeKey {
                key: "durable = true".to_string(),
                does: "writes a mark when nothing was written for some time",
                instead: "durable = false",
            });
            if let Some(TimeKey { key, does, instead }) =
                of_journal.or_else(|| planned.depends_on_time())
            {
                return Err(ConfigError::words(format!(
                    "--untimed: system `{}`: node `{}`: {key} {does}, so its counters depend on time; accepted: {instead}",
                    self.config.name,
                    node.name()
                )));
            }
        }
        Ok(())
    }

    /// Builds the stack over disks that answer at once and count what they are asked for.
    ///
    /// # Errors
    /// When the sizes do not fit.
    pub fn build_untimed(
        &self,
        footprint: Option<Footprint>,
        lookups: Option<&[Lba]>,
    ) -> Result<Built, ConfigError> {
        self.build_on(footprint, lookups, ContentKind::Counted, &mut |_, design| {
            Ok(Box::new(design.untimed()))
        })
    }

    /// The drive of a disk node.
    pub fn drive(&self, node: &str) -> Option<&Drive> {
        self.drives.get(node)
    }

    /// Builds the stack over simulated disks. `footprint` is what shares are shares of;
    /// `lookups` the future of a clairvoyant cache.
    ///
    /// # Errors
    /// When the sizes do not fit.
    pub fn build(
        &self,
        footprint: Option<Footprint>,
        lookups: Option<&[Lba]>,
        contents: ContentKind,
    ) -> Result<Built, ConfigError> {
        self.build_on(footprint, lookups, contents, &mut |_, design| {
            let disk = design.simulate();
            Ok(Box::new(disk.map_err(|error| ConfigError::words(error.to_string()))?))
        })
    }

    /// Builds the stack over the disks that `place` makes, each of the design that it is given.
    ///
    /// # Errors
    /// When the sizes do not fit, or as `place` says.
    pub fn build_on(
        &self,
        footprint: Option<Footprint>,
        lookups: Option<&[Lba]>,
        contents: ContentKind,
        place: &mut PlaceDisk<'_>,
    ) -> Result<Built, ConfigError> {
        let Designed { stack, disks, describe } = self.design_all(footprint, lookups, contents)?;
        let disks = (self.config.disks())
            .zip(disks)
            .map(|(config, disk)| place(config, disk))
            .collect::<Result<_, _>>()?;
        Ok(Built { stack, disks, describe })
    }

    /// Builds the stack, and its disks as far as their designs.
    ///
    /// # Errors
    /// When the sizes do not fit.
    pub fn design_all(
        &self,
        footprint: Option<Footprint>,
        lookups: Option<&[Lba]>,
        contents: ContentKind,
    ) -> Result<Designed, ConfigError> {
        let known = Known { options: &self.options, footprint, lookups, contents };
        let conventional = self.conventional(&known)?;
        let mut builder = StackBuilder::new(self.options.seed);
        let mut describe = Describe::new(&self.config);
        let mut disks: Vec<DiskDesign> = Vec::new();
        let mut built: BTreeMap<&str, (NodeId, Offer)> = BTreeMap::new();
        for (config, planned) in self.config.node.iter().zip(&self.nodes) {
            let ports = config.below();
            let below = Below {
                offers: ports.iter().map(|name| &built[name].1).collect(),
                conventional: conventional.get(config.name()).map_or(&[], |parts| &parts[..]),
            };
            let part = planned.build(&known, &below)?;
            let id = match part.body {
                Body::Disk(disk) => {
                    disks.push(*disk);
                    builder.disk(part.offer.geometry.clone())
                }
                Body::Layer(layer) => {
                    let below: Vec<NodeId> = ports.iter().map(|name| built[name].0).collect();
                    builder.layer(layer, part.offer.geometry.clone(), &below)
                }
                Body::Part(layer) => {
                    let below = built[ports[0]].0;
                    builder.part(layer, part.offer.geometry.clone(), below)
                }
            };
            describe.nodes.push(DescribeNode {
                name: config.name().to_string(),
                id,
                blocks: part.offer.geometry.blocks,
                resolved: resolved(config, part.facts.reported(), &self.options),
                facts: part.facts,
            });
            built.insert(config.name(), (id, part.offer));
        }
        for member in &self.members {
            builder.number_member(built[member.node.as_str()].0, member.port, member.number);
        }
        let top = built[self.config.top().name()].0;
        self.check_survival(&built[self.config.top().name()].1.geometry)?;
        Ok(Designed { stack: builder.build(top), disks, describe })
    }

    /// Refuses an image whose device would not keep what was flushed: it is what the top says of
    /// itself that counts, whatever lies below.
    fn check_survival(&self, top: &Geometry) -> Result<(), ConfigError> {
        if !self.options.durable || top.survives == Survival::Power {
            return Ok(());
        }
        let weak = (self.config.disks()).find(|disk| disk.survival() < Survival::Power);
        let (name, survives) = weak.map_or((self.config.top().name(), "less"), |disk| {
            let survives = match disk.survival() {
                Survival::Nothing => "nothing",
                Survival::Process => "process",
                Survival::Power => "power",
            };
            (disk.name.as_str(), survives)
        });
        Err(wrong(
            name,
            &format_args!(
                "survives = \"{survives}\", and no layer above keeps elsewhere what was flushed; accepted \
                 in a stack that is served from files: \"power\""
            ),
        ))
    }

    /// The design of a disk, of a stack that is built with the same arguments.
    ///
    /// # Errors
    /// When the sizes do not fit, or the node is no disk.
    pub fn design(
        &self,
        node: &str,
        footprint: Option<Footprint>,
        contents: ContentKind,
    ) -> Result<DiskDesign, ConfigError> {
        if !self.drives.contains_key(node) {
            return Err(wrong(node, &"is no disk"));
        }
        let known = Known { options: &self.options, footprint, lookups: None, contents };
        let conventional = self.conventional(&known)?;
        let conventional = conventional.get(node).map_or(&[][..], |it| it);
        let below = Below { offers: vec![], conventional };
        match self.nodes[self.index_of(node)].build(&known, &below)?.body {
            Body::Disk(design) => Ok(*design),
            Body::Layer(_) | Body::Part(_) => unreachable!("a disk is built as one"),
        }
    }

    /// By node: blocks that must not overlap where the disk is shingled.
    fn conventional(&self, known: &Known<'_>) -> Result<BTreeMap<&str, Vec<Extent>>, ConfigError> {
        let mut conventional: BTreeMap<&str, Vec<Extent>> = BTreeMap::new();
        for (config, planned) in self.config.node.iter().zip(&self.nodes).rev() {
            let own = conventional.get(config.name()).map_or(&[][..], |own| own);
            let (below, ports) = (planned.conventional(known, own)?, config.below());
            for (port, part) in below.into_iter().filter(|(_, part)| !part.is_empty()) {
                conventional.entry(ports[port]).or_default().push(part);
            }
        }
        Ok(conventional)
    }
}

/// Refuses a size that is a share of touched bands, where these are not those of the device.
fn check_shares(config: &StackConfig, nodes: &[Box<dyn Planned>]) -> Result<(), ConfigError> {
    let planned = |name: &str| {
        let mut nodes = config.node.iter().zip(nodes);
        nodes.find(|(node, _)| node.name() == name)
    };
    let mut at = Some(config.top().name());
    while let Some((node, its)) = at.and_then(planned) {
        if its.bands().is_some() {
            return Ok(());
        }
        if node.node().moves_addresses() {
            let shares = config.node.iter().zip(nodes);
            let share = shares.into_iter().find(|(_, planned)| planned.has_share());
            return share.map_or(Ok(()), |(share, _)| {
                Err(ConfigError::words(format!(
                    "node `{}`: a size of it is a share of the bands of the device, and `{}` moves \
                     addresses between the device and the bands; accepted: sizes in bytes",
                    share.name(),
                    node.name()
                )))
            });
        }
        at = node.below().pop();
    }
    Ok(())
}

fn load_drives(config: &StackConfig) -> Result<BTreeMap<String, Drive>, ConfigError> {
    let mut drives = BTreeMap::new();
    for disk in config.disks() {
        if disk.name == "total" {
            return Err(ConfigError::words(
                "a disk cannot be named `total`: reports use that name for the sum",
            ));
        }
        let drive = disk.open_drive().map_err(ConfigError::words)?;
        drives.insert(disk.name.clone(), drive);
    }
    Ok(drives)
}

/// The size of the device: what was asked for, or all that the nodes can offer.
fn device_blocks(world: &World<'_>) -> Result<BlockCount, ConfigError> {
    let options = world.options;
    let room = world.room(world.config.top().name(), options.scale)?;
    let asked = options.size_bytes.or(world.config.size.map(|size| size.bytes()));
    match asked.map(|bytes| (bytes, BlockCount::from_bytes_floor(bytes))) {
        Some((bytes, BlockCount::ZERO)) => Err(ConfigError::words(format!(
            "size: {bytes} B; accepted: one block (4096 B) or more"
        ))),
        Some((bytes, blocks)) if blocks > room => Err(ConfigError::words(format!(
            "size: {bytes} B is more than the drive below holds ({} B)",
            room.bytes()
        ))),
        Some((_, blocks)) => Ok(blocks),
        None if room == BlockCount::ZERO => Err(ConfigError::words(format!(
            "scale {}: leaves less than one block (4096 B) of the drive",
            options.scale
        ))),
        None => Ok(room),
    }
}

/// Plans each node for what the node above asks of it; the answer is in the order of the file, in
/// which a node comes after those it stands on.
fn needs_go_down(world: &World<'_>) -> Result<Vec<Box<dyn Planned>>, ConfigError> {
    let device = Asked {
        blocks: world.device,
        scale: world.options.scale,
        writer: Writer::Host,
        is_part: false,
    };
    let mut asked = BTreeMap::from([(world.config.top().name(), device)]);
    let mut nodes = Vec::new();
    for node in world.config.node.iter().rev() {
        let (planned, needs) = node.node().plan(asked[node.name()], world)?;
        for (below, need) in node.below().into_iter().zip(needs) {
            let together = match asked.get(below) {
                Some(known) => need.with(*known).ok_or_else(|| divided_in_two_ways(below))?,
                None => need,
            };
            asked.insert(below, together);
        }
        nodes.push(planned);
    }
    nodes.reverse();
    Ok(nodes)
}

fn divided_in_two_ways(node: &str) -> ConfigError {
    ConfigError::words(format!(
        "node `{node}`: some slices of it are for the flash of caches, which no --drive-scale divides, \
         and others are not; accepted: --drive-scale 1"
    ))
}
