//! Stack files under test: those that ship, and any other that `create` takes. The planner builds them as
//! it does for an image, with what the seed draws of their table `[draw]`.

use super::medium::Medium;
use super::subject::{KnownBlocks, Member, Parts, Subject};
use super::workload::Shape;
use imbrex_core::buffer::ContentKind;
use imbrex_core::extent::Extent;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;
use imbrex_core::stack::Stack;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Lba};
use imbrex_stack::{
    BuildOptions, ConfigError, Describe, Designed, DiskPart, DrawnStack, Footprint, ListedMember,
    MemberNumbers, NodeConfig, Plan, Setting, StackConfig, StackMember,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stack {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../stacks/crash/", $name, ".toml")))
    };
}

/// The stacks that ship for the search, by name; the first is the default. Their disks have a few hundred
/// blocks.
const READY_MADE: [(&str, &str); 27] = [
    stack!("pore"),
    stack!("lru"),
    stack!("lru-band"),
    stack!("rivals"),
    stack!("band-rivals"),
    stack!("ride"),
    stack!("smr-only"),
    stack!("smr-two-ports"),
    stack!("split"),
    stack!("lru-cmr"),
    stack!("cache-over-cache"),
    stack!("zone-lru-buffer"),
    stack!("two-on-one"),
    stack!("hwsr"),
    stack!("s-block"),
    stack!("segments-only"),
    stack!("s-block-only"),
    stack!("striped"),
    stack!("spanned"),
    stack!("cmr-only"),
    stack!("raid1"),
    stack!("raid1-three"),
    stack!("raid1-four"),
    stack!("raid4smr"),
    stack!("raid4smr-spare"),
    stack!("raid4smr-chain"),
    stack!("idler"),
];

/// The names of the stacks that ship for the search.
pub fn ready_made() -> impl Iterator<Item = &'static str> {
    READY_MADE.iter().map(|(name, _)| *name)
}

/// The text of a stack that ships for the search, with the name errors should give it.
pub fn text(name: &str) -> Option<(String, String)> {
    let (_, text) = READY_MADE.iter().find(|(known, _)| *known == name)?;
    Some((format!("stacks/crash/{name}.toml"), (*text).to_string()))
}

/// Blocks of a band, where the device has none of its own that requests can be about.
const BAND_BLOCKS: u64 = 24;
/// Blocks of a device at most: the search reads all of them after each point. 64 MiB.
pub const DEVICE_BLOCKS_MAX: BlockCount = BlockCount(1 << 14);

/// The stack that a bug is looked for on when it shows on few; none where it shows on most.
pub fn stack_of(bug: PlantedBug) -> Option<&'static str> {
    match bug {
        PlantedBug::SliceGuardLeftOut | PlantedBug::SliceFlushFailureForgotten => {
            Some("two-on-one")
        }
        PlantedBug::StripeFlushesFirstAlone => Some("striped"),
        PlantedBug::MapBeforeData | PlantedBug::EvictionForgotten => Some("zone-lru-buffer"),
        // Its cache is large enough for checkpoints of several pages and parts.
        PlantedBug::CheckpointPageLeftOut | PlantedBug::ChangeLeftOut => Some("lru"),
        PlantedBug::UpOverLostNode => Some("s-block"),
        // Its places for checkpoints have several pages, so there is room behind a map.
        PlantedBug::RecordLeftOut => Some("smr-only"),
        PlantedBug::LabelNotCompared | PlantedBug::CountMovedAfterFirstWrite => Some("spanned"),
        PlantedBug::SumOfWhatWasRead => Some("segments-only"),
        PlantedBug::HomeFlushSkipped => Some("smr-two-ports"),
        PlantedBug::SBlockRecordedUnflushed
        | PlantedBug::SBlockRingLeftOut
        | PlantedBug::SBlockReadsIgnored => Some("s-block-only"),
        PlantedBug::SegmentTailLeftOut
        | PlantedBug::SegmentWrittenBeforeSlot
        | PlantedBug::SegmentSlotFreedEarly
        | PlantedBug::StaleCopyKept
        | PlantedBug::FillOverWritten => Some("hwsr"),
        _ => None,
    }
}

/// A stack that ships for the search, by name.
pub fn ready_made_stack(name: &str) -> Option<SearchedStack> {
    let (file, text) = text(name)?;
    let stack = SearchedStack::from_text(name, &file, &text, &[], None);
    Some(stack.unwrap_or_else(|error| panic!("{error}")))
}

/// The same as it is searched.
pub fn subject(name: &str) -> Option<Subject> {
    ready_made_stack(name).map(|stack| Arc::new(stack).subject())
}

/// A stack file whose stacks are searched, one for each seed.
pub struct SearchedStack {
    /// Tells it from the others of this process.
    number: u64,
    /// The name, or the path, by which it was asked for.
    name: String,
    drawn: DrawnStack,
    size_bytes: Option<u64>,
    check: Option<CheckStack>,
}

/// Says what is wrong with the members of a stack, given with their names. One that is not among them is lost. The list
/// has their numbers.
pub type CheckStack =
    fn(&StackOfSeed, Vec<ListedMember>, &[(Rc<str>, Medium)]) -> Result<(), String>;

/// The stack of a seed.
pub struct StackOfSeed {
    /// The stack file with what was drawn.
    pub config: StackConfig,
    /// The stack as it is when it is built.
    pub describe: Rc<Describe>,
    plan: Plan,
    options: BuildOptions,
    /// The same stack where its members have other numbers.
    renumbered: RefCell<BTreeMap<Vec<u16>, Rc<Plan>>>,
    members: Vec<Member>,
    shape: Shape,
}

thread_local! {
    /// The stack of the seed that this thread has built last: a seed has many trials.
    static LAST: RefCell<Option<(u64, u64, Rc<StackOfSeed>)>> = const { RefCell::new(None) };
}

impl SearchedStack {
    /// The stack of a text that came from `file`, with settings over it and another size of the device.
    ///
    /// # Errors
    /// As [`DrawnStack::from_text`], and when `create` takes no such stack.
    pub fn from_text(
        name: &str,
        file: &str,
        text: &str,
        settings: &[Setting],
        size_bytes: Option<u64>,
    ) -> Result<SearchedStack, ConfigError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let stack = SearchedStack {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            name: name.to_string(),
            drawn: DrawnStack::from_text(file, text, settings)?,
            size_bytes,
            check: None,
        };
        let config = stack.drawn.draw(|_| 0)?;
        let refused = config.node.iter().find_map(NodeConfig::refused_by_serving);
        refused.map_or(Ok(stack), |reason| Err(ConfigError::words(reason)))
    }

    /// The stack with an opinion of its own on what the members hold.
    #[must_use]
    pub fn checked_by(self, check: CheckStack) -> SearchedStack {
        SearchedStack { check: Some(check), ..self }
    }

    /// The opinion on what the members hold, if there is one.
    pub fn check(&self) -> Option<CheckStack> {
        self.check
    }

    /// The name that the file gives it.
    pub fn name(&self) -> &str {
        self.drawn.name()
    }

    /// The name, or the path, by which it was asked for.
    pub fn asked_as(&self) -> &str {
        &self.name
    }

    /// Whether it is a disk without a layer. Nothing but the file that serves it remembers there that a
    /// flush has failed, so only what happens between two starts is tried with it.
    ///
    /// # Errors
    /// As [`of_seed`](Self::of_seed).
    pub fn is_bare(&self) -> Result<bool, ConfigError> {
        Ok(self.of_seed(0)?.config.top().disk().is_some())
    }

    /// The stack of a seed.
    ///
    /// # Errors
    /// When what was drawn does not go together, or the device is too long to be read again and again.
    pub fn of_seed(&self, seed: u64) -> Result<Rc<StackOfSeed>, ConfigError> {
        let known = LAST.with_borrow(|last| match last {
            Some((number, of, stack)) if (*number, *of) == (self.number, seed) => {
                Some(Rc::clone(stack))
            }
            _ => None,
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let mut rng = Rng::new(seed, 71);
        let config = self.drawn.draw(|choices| rng.below(choices))?;
        let stack = StackOfSeed::new(config, seed, self.size_bytes);
        let stack = Rc::new(stack.map_err(|error| {
            ConfigError::words(format!("{}, as seed {seed} draws it: {error}", self.name))
        })?);
        LAST.set(Some((self.number, seed, Rc::clone(&stack))));
        Ok(stack)
    }

    /// The stack as it is searched.
    pub fn subject(self: Arc<Self>) -> Subject {
        Subject {
            name: self.name.clone(),
            build: Box::new(move |seed| {
                let stack = self.of_seed(seed).unwrap_or_else(|error| panic!("{error}"));
                stack.build().unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            }),
            check: None,
        }
    }
}

impl StackOfSeed {
    fn new(
        config: StackConfig,
        seed: u64,
        size_bytes: Option<u64>,
    ) -> Result<StackOfSeed, ConfigError> {
        let options =
            BuildOptions { size_bytes, ..BuildOptions::image(seed, MemberNumbers::Counted) };
        let plan = Plan::new(&config, &options)?;
        let blocks = plan.blocks();
        if blocks > DEVICE_BLOCKS_MAX {
            return Err(ConfigError::words(format!(
                "size: {} B is too long for a search that reads all of the device after each point; \
                 accepted: at most {} B, as `size` in the file or --size",
                blocks.bytes(),
                DEVICE_BLOCKS_MAX.bytes()
            )));
        }
        let Designed { disks, describe, .. } = design(&plan)?;
        let describe = Rc::new(describe);
        let geometries = disks.iter().map(|disk| disk.geometry());
        let members = config.disks().zip(geometries).map(|(disk, geometry)| {
            let parts = parts_of(&config, &disk.name, &describe);
            let cut: Vec<Extent> = parts.iter().map(|part| part.extent).collect();
            let is_cut = cut.iter().any(|part| part.blocks < geometry.blocks);
            Member {
                is_trusted: !config.is_checked(&disk.name),
                data_of: data_of(&config, &parts),
                parts: if is_cut { cut } else { Vec::new() },
                blocks: Rc::new(BlocksOfParts::new(&parts, &describe)),
                ..Member::new(&disk.name, geometry.clone())
            }
        });
        let members = members.collect();
        let shape = Shape {
            blocks: blocks.0,
            band_blocks: band_blocks(&plan),
            border: match config.top().exports()[..] {
                [first, _, ..] => describe.blocks_of(first).map(|blocks| blocks.0),
                _ => None,
            },
        };
        let renumbered = RefCell::default();
        Ok(StackOfSeed { config, describe, plan, options, renumbered, members, shape })
    }

    /// Its disks.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What a workload must know of it.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The stack, whose members have these numbers, in the order of [`numbers`](Self::numbers).
    ///
    /// # Errors
    /// When the sizes do not fit.
    pub fn built_with(&self, numbers: &[u16]) -> Result<Stack, ConfigError> {
        let known = self.renumbered.borrow().get(numbers).map(Rc::clone);
        let plan = match known {
            Some(plan) => plan,
            None => {
                let listed = self.numbers().into_iter().zip(numbers);
                let listed =
                    listed.map(|(member, number)| ListedMember { number: *number, ..member });
                let members = MemberNumbers::Listed(listed.collect());
                let options = BuildOptions { members, ..self.options.clone() };
                let plan = Rc::new(Plan::new(&self.config, &options)?);
                self.renumbered.borrow_mut().insert(numbers.to_vec(), Rc::clone(&plan));
                plan
            }
        };
        Ok(design(&plan)?.stack)
    }

    /// The numbers of what lies behind the ports of layers.
    pub fn numbers(&self) -> Vec<ListedMember> {
        let listed = |member: &StackMember| ListedMember {
            number: member.number,
            node: member.node.clone(),
            port: member.port_name.to_string(),
        };
        self.plan.members().iter().map(listed).collect()
    }

    fn keeps_state(&self) -> bool {
        !self.plan.members().is_empty()
    }

    fn build(&self) -> Result<Parts, ConfigError> {
        let Designed { stack, .. } = design(&self.plan)?;
        Ok(Parts {
            stack,
            members: self.members.clone(),
            keeps_state: self.keeps_state(),
            shape: self.shape,
        })
    }
}

fn design(plan: &Plan) -> Result<Designed, ConfigError> {
    let whole = Footprint::whole_device(plan.blocks().0 * BLOCK_BYTES);
    plan.design_all(Some(whole), None, ContentKind::Bytes)
}

/// Blocks of a band of the device; of a device without bands, or with bands that are nearly as short as a
/// request or longer than half of it, those of a device that suits the requests of the search.
fn band_blocks(plan: &Plan) -> u64 {
    let blocks = plan.blocks().0;
    let mean = plan.bands().map(|bands| blocks / u64::from(bands.bands()).max(1));
    let longest = (blocks / 2).max(1);
    let suits = mean.filter(|mean| (BAND_BLOCKS / 2..=longest).contains(mean));
    suits.unwrap_or(BAND_BLOCKS.min(longest))
}

/// The parts of a disk in ascending order.
fn parts_of<'a>(config: &'a StackConfig, disk: &'a str, describe: &Describe) -> Vec<DiskPart<'a>> {
    let mut parts = config.parts_of(disk, describe);
    parts.sort_by_key(|part| part.extent.start);
    parts
}

/// The disk with the journal that speaks of data on parts of another one, and the kind of its records.
fn data_of(config: &StackConfig, parts: &[DiskPart<'_>]) -> Option<(Rc<str>, u8)> {
    parts.iter().find_map(|part| {
        let (node, kind) = part.user.data_off_journal()?;
        let mut journal = config.node(part.user.journal_below()?)?;
        while journal.disk().is_none() {
            journal = config.node(journal.below().last()?)?;
        }
        (node == part.below).then(|| (journal.name().into(), kind))
    })
}

/// What is known of the blocks of the parts of a disk.
struct BlocksOfParts {
    describe: Rc<Describe>,
    parts: Vec<(Extent, UserOfPart)>,
}

/// The node that uses a part.
struct UserOfPart {
    node: NodeConfig,
    below: String,
}

impl BlocksOfParts {
    fn new(parts: &[DiskPart<'_>], describe: &Rc<Describe>) -> BlocksOfParts {
        let owned = |part: &DiskPart<'_>| {
            let user = UserOfPart { node: part.user.clone(), below: part.below.to_string() };
            (part.extent, user)
        };
        BlocksOfParts { describe: Rc::clone(describe), parts: parts.iter().map(owned).collect() }
    }

    fn part_at(&self, at: u64) -> Option<DiskPart<'_>> {
        let (extent, user) = self.parts.iter().find(|(extent, _)| extent.contains(Lba(at)))?;
        Some(DiskPart { extent: *extent, user: &user.node, below: &user.below })
    }
}

impl KnownBlocks for BlocksOfParts {
    fn record_name(&self, at: u64, kind: u8) -> Option<&'static str> {
        let part = self.part_at(at).filter(DiskPart::has_journal)?;
        part.user.record_name(kind)
    }

    fn stops_nothing(&self, at: u64) -> bool {
        let part = self.part_at(at);
        part.is_some_and(|part| part.takes_writes_to_bad(at - part.extent.start.0, &self.describe))
    }
}
