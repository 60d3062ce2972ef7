//! Durability changes what is written beside the data and when, and nothing else: at queue depth 1
//! every request looks up, hits, evicts, appends and rewrites the same in a stack that keeps
//! journals and in one that does not.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::command::{Command, CommandId, CommandKind, CommandReply, CommandState};
use imbrex_core::counters::{Counter, Counts, GROUPS};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::engine::{CommandArrival, Engine, Frontend, Replacement};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, DiskId, NodeId};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Built, Facts, Plan, Setting, StackConfig, compared};
use std::cell::RefCell;
use std::mem::take;
use std::rc::Rc;

const DEVICE_BLOCKS: u64 = 32 * 256;
const REQUESTS: u64 = 250;
/// What one record of a journal covers, so that a longer request is several.
const LONGEST: u64 = 960;
/// Log and cache hold a few of the longest requests, so that both are full soon.
const TINY: [&str; 4] = [
    "cache.capacity=5MiB",
    "cache.zone=2MiB",
    "translation.persistent_cache=8MiB",
    "translation.bands=uniform:1MiB..3MiB",
];
/// Bands of which some are collected soon.
const SHORT_BANDS: [&str; 3] =
    ["array.track_blocks=8", "array.band_tracks=8", "array.collect_at=40"];
/// Decisions of caches, translations and arrays.
const DECISIONS: [Counter; 20] = [
    Counter::ReadLookups,
    Counter::WriteLookups,
    Counter::ReadHits,
    Counter::WriteHits,
    Counter::DirtyEvictions,
    Counter::CleanEvictions,
    Counter::ForcedEvictions,
    Counter::RegionDivisions,
    Counter::PersistentCacheAppendedBlocks,
    Counter::PersistentCacheUpdatedBlocks,
    Counter::PersistentCacheMergedBlocks,
    Counter::BandsRewritten,
    Counter::BypassedBlocks,
    Counter::FirstWrites,
    Counter::Updates,
    Counter::UnsafeFirstWrites,
    Counter::Redirected,
    Counter::Collections,
    Counter::ForcedCollections,
    Counter::CollectedBlocks,
];

/// Sends one request, or one command, and waits for its answer.
#[derive(Default)]
struct One {
    arrival: Option<Arrival>,
    command: Option<CommandArrival>,
    is_answered: bool,
}

impl Frontend for One {
    fn next_arrival(&self) -> Option<Instant> {
        self.arrival.is_some().then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        self.arrival.take()
    }

    fn reply(&mut self, _now: Instant, completion: Completion, _buffers: &mut Buffers) {
        assert_eq!(completion.result, Ok(()));
        self.is_answered = true;
    }

    fn finished(&self) -> bool {
        self.is_answered
    }

    fn next_command(&self) -> Option<Instant> {
        self.command.is_some().then_some(Instant::ZERO)
    }

    fn poll_command(&mut self, _now: Instant) -> Option<CommandArrival> {
        self.command.take()
    }

    fn reply_to_command(&mut self, _now: Instant, reply: CommandReply) {
        if let CommandState::Ended(result) = reply.state {
            assert!(result.is_ok(), "{result:?}");
            self.is_answered = true;
        }
    }
}

/// Carries a request out, with everything that it causes.
fn carry_out(engine: &mut Engine, clock: &mut VirtualClock, operation: Operation, extent: Extent) {
    let buffer = match operation {
        Operation::Flush => BufferSlice::EMPTY,
        _ => engine.buffers.allocate(extent.blocks.0),
    };
    let arrival = Some(Arrival { tag: Tag(0), operation, extent, buffer });
    engine.run(clock, &mut One { arrival, ..One::default() }, &mut |_, _| {});
    engine.buffers.release(buffer);
}

/// Reads, writes, forced writes and flushes, most of them short.
fn requests() -> Vec<(Operation, Extent)> {
    let mut rng = Rng::new(3, 1);
    let mut request = |_| {
        let longest = [LONGEST, 24, 24, 24, 24, 24][rng.below(6) as usize];
        let length = 1 + rng.below(longest);
        let within = DEVICE_BLOCKS / [1, 4][rng.below(2) as usize];
        let extent = Extent::new(rng.below(within - length), length);
        match rng.below(20) {
            0..5 => (Operation::Read, extent),
            5 => (Operation::Flush, Extent::EMPTY),
            6 | 7 => (Operation::WRITE_DURABLE, extent),
            _ => (Operation::WRITE, extent),
        }
    };
    (0..REQUESTS).map(&mut request).collect()
}

/// What the layers in question have decided after each request, in a stack of which some nodes are
/// durable.
fn decisions(stack: &str, durable: &[&str], of: &[&str]) -> Vec<Vec<u64>> {
    let durable = durable.iter().map(|node| format!("{node}.durable=true"));
    let sizes = if of == ["array"] { &SHORT_BANDS[..] } else { &TINY[..] };
    let settings = sizes.iter().map(|text| text.to_string()).chain(durable);
    let settings: Vec<Setting> =
        settings.map(|text| Setting::parse(&text).expect("a setting")).collect();
    let config = StackConfig::load(stack, &settings).expect("a stack");
    let options =
        BuildOptions { size_bytes: Some(DEVICE_BLOCKS * BLOCK_BYTES), ..BuildOptions::simulate(1) };
    let plan = Plan::new(&config, &options).expect("a plan");
    // Journals are bytes.
    let built = plan.build(None, None, ContentKind::Bytes);
    let built = built.expect("a stack that fits");
    let nodes: Vec<NodeId> = of
        .iter()
        .filter_map(|name| match *name {
            "cache" => built.describe.cache(),
            "array" => built.describe.nodes.iter().find(|it| it.name == *name).map(|it| it.id),
            _ => built.describe.translation(),
        })
        .collect();
    let mut engine = Engine {
        stack: built.stack,
        disks: built.disks,
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    let mut clock = VirtualClock::default();
    let start = Start::Format(Uuid([4; 16]));
    engine.open(&mut clock, start).expect("it opens");
    let mut decisions = Vec::new();
    for (operation, extent) in requests() {
        carry_out(&mut engine, &mut clock, operation, extent);
        let counted = nodes.iter().flat_map(|node| {
            let counts = engine.stack.counts(*node);
            DECISIONS.map(|counter| counts.counter(counter))
        });
        decisions.push(counted.collect());
    }
    decisions
}

/// What was counted at the end, over all layers in question.
fn total(decisions: &[Vec<u64>], counter: Counter) -> u64 {
    let last = decisions.last().expect("requests");
    let at = DECISIONS.iter().position(|decision| *decision == counter);
    let counts = last.iter().skip(at.expect("a decision"));
    counts.step_by(DECISIONS.len()).sum()
}

fn decides_the_same(stack: &str, durable: &[&str], of: &[&str]) -> Vec<Vec<u64>> {
    let volatile = decisions(stack, &[], of);
    let with_journals = decisions(stack, durable, of);
    for (index, request) in requests().iter().enumerate() {
        assert_eq!(
            with_journals[index], volatile[index],
            "{stack} with a durable {durable:?}, request {index}, {request:?}"
        );
    }
    volatile
}

fn stacks_with(node: &'static str) -> impl Iterator<Item = &'static str> {
    compared().filter(move |stack| {
        let config = StackConfig::load(stack, &[]).expect("a stack");
        config.has_node(node)
    })
}

#[test]
fn a_durable_translation_appends_and_rewrites_as_a_volatile_one_does() {
    for stack in stacks_with("translation") {
        let decisions = decides_the_same(stack, &["translation"], &["translation", "cache"]);
        let rewritten = total(&decisions, Counter::BandsRewritten);
        // RIDE rewrites the fewest.
        assert!(rewritten > 10, "{stack}: {rewritten} bands were rewritten");
    }
}

/// The translation below gets the write-intent pages of a durable cache beside its data, so its own
/// decisions are others.
#[test]
fn a_durable_cache_looks_up_and_evicts_as_a_volatile_one_does() {
    for stack in stacks_with("cache") {
        let decisions = decides_the_same(stack, &["cache", "translation"], &["cache"]);
        let evicted = total(&decisions, Counter::DirtyEvictions);
        assert!(evicted > 1000, "{stack}: {evicted} blocks were evicted");
    }
}

#[test]
fn a_durable_raid4smr_redirects_and_collects_as_a_volatile_one_does() {
    let decisions = decides_the_same("raid4smr", &["array"], &["array"]);
    let collected = total(&decisions, Counter::Collections);
    assert!(collected > 100, "{collected} band rows were collected");
}

/// Two disks with the same blocks. With the smallest regions the tables of checksums before the blocks take 2,048
/// rows. After every 1,024 rows the other member is read first, so that the tables change no choice.
const COPIES: &str = r#"
name = "copies"

[[node]]
name = "disk-0"
kind = "disk"
drive = "cmr-500gb-7200"

[[node]]
name = "disk-1"
kind = "disk"
drive = "cmr-500gb-7200"

[[node]]
name = "array"
kind = "raid1"
below = ["disk-0", "disk-1"]
"#;
const SMALL_REGIONS: &str = "array.region=16KiB";
/// One of so many blocks cannot be read, where some cannot.
const ONE_IS_BAD_OF: u64 = 64;

/// What is asked of an array of copies, or happens to it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Request(Operation, Extent),
    Fail(usize),
    Replace(usize),
    Rebuild,
    /// From now on some blocks of this disk cannot be read, whatever is written there.
    HaveBadBlocks(usize),
}

/// What the host's requests ask of the disks: which disk, whether to read, and which blocks.
type Asked = (usize, bool, Extent);

/// What a disk and the test both know.
#[derive(Default)]
struct Watch {
    asked: Vec<Asked>,
    /// The disk that cannot read some blocks.
    has_bad_blocks: Option<usize>,
}

/// Notes what the host's requests ask of a disk, which cannot read some blocks from some time on.
struct Watched {
    disk: Box<dyn Disk>,
    index: usize,
    /// Where the blocks begin, behind the journal and the tables.
    first: u64,
    watch: Rc<RefCell<Watch>>,
    failures: Vec<DiskCompletion>,
}

impl Disk for Watched {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        let is_read = op.operation == Operation::Read;
        if let Some(start) = op.extent.start.0.checked_sub(self.first)
            && op.operation != Operation::Flush
        {
            let extent = Extent::new(start, op.extent.blocks.0);
            let mut watch = self.watch.borrow_mut();
            if op.cause == Cause::Host {
                watch.asked.push((self.index, is_read, extent));
            }
            let next_bad = start.next_multiple_of(ONE_IS_BAD_OF);
            if is_read && watch.has_bad_blocks == Some(self.index) && next_bad < extent.end().0 {
                self.failures.push(DiskCompletion { id: op.id, result: Err(IoError::Medium) });
                return;
            }
        }
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.failures.pop().or_else(|| self.disk.poll(now, buffers))
    }

    fn next_event(&self) -> Option<Instant> {
        let at_once = (!self.failures.is_empty()).then_some(Instant::ZERO);
        at_once.or(self.disk.next_event())
    }
}

/// A life in which one member goes and comes back, and then the other one cannot read some blocks.
fn life() -> Vec<Step> {
    let requests = requests();
    let mut requests =
        requests.iter().map(|(operation, extent)| Step::Request(*operation, *extent));
    let mut steps: Vec<Step> = requests.by_ref().take(60).collect();
    steps.push(Step::Fail(1));
    steps.extend(requests.by_ref().take(60));
    steps.extend([Step::Replace(1), Step::Rebuild]);
    steps.extend(requests.by_ref().take(30));
    steps.push(Step::HaveBadBlocks(0));
    steps.extend(requests);
    steps
}

/// A mirror, and what of it the test watches.
struct Copies {
    engine: Engine,
    clock: VirtualClock,
    array: NodeId,
    nodes: Vec<NodeId>,
    /// Disks that take the place of lost ones.
    fresh: Vec<Option<Box<dyn Disk>>>,
    watch: Rc<RefCell<Watch>>,
    /// Rows of the tables of checksums.
    table_rows: u64,
}

impl Copies {
    fn new(is_durable: bool) -> Copies {
        let texts: &[&str] = if is_durable { &[SMALL_REGIONS, "array.durable=true"] } else { &[] };
        let settings: Vec<Setting> =
            texts.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
        let config = StackConfig::from_text("copies.toml", COPIES, &settings).expect("a stack");
        let options = BuildOptions {
            size_bytes: Some(DEVICE_BLOCKS * BLOCK_BYTES),
            ..BuildOptions::simulate(1)
        };
        let plan = Plan::new(&config, &options).expect("a plan");
        let build = || plan.build(None, None, ContentKind::Bytes).expect("a stack that fits");
        let Built { stack, disks, describe } = build();
        let facts = describe.facts_of("array").and_then(Facts::array_of_copies);
        let layout = facts.expect("an array of copies").layout;
        let table_rows = layout.map_or(0, |layout| layout.shape.table_rows());
        let first = layout.map_or(0, |layout| layout.journal_blocks + table_rows);
        let watch = Rc::new(RefCell::new(Watch::default()));
        let watched = |(index, disk): (usize, Box<dyn Disk>)| {
            let watch = Rc::clone(&watch);
            let failures = Vec::new();
            Box::new(Watched { disk, index, first, watch, failures }) as Box<dyn Disk>
        };
        let all = |disks: Vec<Box<dyn Disk>>| disks.into_iter().enumerate().map(watched);
        let node = |name: &str| {
            let found = describe.nodes.iter().find(|it| it.name == name);
            found.expect("a node").id
        };
        let mut copies = Copies {
            engine: Engine {
                stack,
                disks: all(disks).collect(),
                buffers: Buffers::new(ContentKind::Bytes),
                in_flight_max: 1,
            },
            clock: VirtualClock::default(),
            array: node("array"),
            nodes: vec![node("disk-0"), node("disk-1")],
            fresh: all(build().disks).map(Some).collect(),
            watch: Rc::clone(&watch),
            table_rows,
        };
        let start = Start::Format(Uuid([4; 16]));
        copies.engine.open(&mut copies.clock, start).expect("it opens");
        copies
    }

    fn counts(&self) -> &Counts {
        self.engine.stack.counts(self.array)
    }

    fn command(&mut self, command: CommandArrival) {
        let mut one = One { command: Some(command), ..One::default() };
        self.engine.run(&mut self.clock, &mut one, &mut |_, _| {});
    }

    fn order(&mut self, node: NodeId, kind: CommandKind) {
        let command = Command { id: CommandId(0), kind };
        self.command(CommandArrival::Command { node, command });
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Request(operation, extent) => {
                carry_out(&mut self.engine, &mut self.clock, operation, extent);
            }
            Step::Fail(disk) => self.order(self.nodes[disk], CommandKind::Fail),
            Step::Replace(disk) => {
                let with = self.fresh[disk].take().expect("it is replaced once");
                let first_member = self.engine.stack.next_member();
                let (id, disk) = (CommandId(0), DiskId(disk as u16));
                self.command(CommandArrival::Replace(Replacement { id, disk, with, first_member }));
            }
            Step::Rebuild => self.order(self.array, CommandKind::Rebuild(None)),
            Step::HaveBadBlocks(disk) => self.watch.borrow_mut().has_bad_blocks = Some(disk),
        }
    }
}

/// All that a node counts, and how it stands.
fn values(counts: &Counts) -> Vec<(&'static str, u64)> {
    let counters = GROUPS.iter().flat_map(|group| group.counters);
    let gauges = GROUPS.iter().flat_map(|group| group.gauges);
    let counters = counters.map(|it| (it.name(), counts.counter(*it)));
    counters.chain(gauges.map(|it| (it.name(), counts.gauge(*it)))).collect()
}

/// What a durable array of copies counts beside that: it rebuilds its tables of checksums too, and knows what a block
/// must be, so that it writes again what a member could not read. For that it compares what was read.
#[derive(Default)]
struct Beside {
    rebuilt: u64,
    repaired: u64,
    compared: u64,
}

impl Beside {
    /// The counts of a durable array without it.
    fn taken_off(&self, durable: &Counts) -> Vec<(&'static str, u64)> {
        let mut values = values(durable);
        for (counter, beside) in [
            (Counter::RebuiltBlocks, self.rebuilt),
            (Counter::RepairedBlocks, self.repaired),
            (Counter::ComparedBlocks, self.compared),
        ] {
            let entry = values.iter_mut().find(|(name, _)| *name == counter.name());
            let (_, value) = entry.expect("a counter");
            *value = value.checked_sub(beside).unwrap_or_else(|| panic!("{counter:?}: {value}"));
        }
        values
    }
}

#[test]
fn a_durable_raid1_reads_writes_and_rebuilds_as_a_volatile_one_does() {
    let [mut volatile, mut durable] = [false, true].map(Copies::new);
    assert!(volatile.table_rows == 0 && durable.table_rows.is_multiple_of(2048));
    let mut beside = Beside::default();
    let mut asked_of = [0; 2];
    for (index, step) in life().into_iter().enumerate() {
        let degraded_before = volatile.counts().counter(Counter::DegradedReadBlocks);
        volatile.play(step);
        durable.play(step);
        let degraded = volatile.counts().counter(Counter::DegradedReadBlocks) - degraded_before;
        match step {
            Step::Request(_, extent) if degraded > 0 => {
                beside.repaired += degraded;
                beside.compared += extent.blocks.0;
            }
            Step::Rebuild => beside.rebuilt += durable.table_rows,
            _ => {}
        }
        let counted = [values(volatile.counts()), beside.taken_off(durable.counts())];
        assert_eq!(counted[1], counted[0], "step {index}, {step:?}");
        let [asked, of_durable] =
            [&volatile, &durable].map(|it| take(&mut it.watch.borrow_mut().asked));
        assert_eq!(of_durable, asked, "step {index}, {step:?}");
        let reads = asked.iter().filter(|(_, is_read, _)| *is_read);
        reads.for_each(|(disk, ..)| asked_of[*disk] += 1);
    }
    let counts = volatile.counts();
    assert_eq!(counts.counter(Counter::RebuiltBlocks), DEVICE_BLOCKS);
    let degraded = counts.counter(Counter::DegradedReadBlocks);
    assert!(degraded > 10, "{degraded} blocks were read from the other member");
    assert!(asked_of.iter().all(|reads| *reads > 20), "the members were read {asked_of:?} times");
}
