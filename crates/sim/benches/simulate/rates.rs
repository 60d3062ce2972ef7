//! Blocks a second: the parser alone, the router alone, and whole stacks with both.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry, Media};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::operation::{Completion, Operation, Request, RequestId, Tag};
use imbrex_core::stack::{Arrival, StackBuilder};
use imbrex_core::units::{BlockCount, Instant};
use imbrex_drives::OperationKind;
use imbrex_report::{Recorder, ReplayMode};
use imbrex_sim::experiment::Workload;
use imbrex_sim::replay::{Placement, ReplayOptions, Replayer};
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Built, FillObserver, Plan, Setting, StackConfig};
use imbrex_traces::{
    self, ReadOptions, TraceError, TraceReader, TraceRecord, WriteFormat, WriteOptions,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const SEED: u64 = 1;
const BLOCK_BYTES: u64 = 4096;
/// Requests of the one-block trace.
const ONE_BLOCK_REQUESTS: u64 = 10_000_000;
/// Requests of the same in Parquet.
const PARQUET_REQUESTS: u64 = 5_000_000;
/// Blocks the looped trace is replayed for.
const LOOPED_BLOCKS: u64 = 20_000_000;

/// Blocks of the synthetic load of HWSR: those of its million requests, about.
const DENSE_BLOCKS: u64 = 1_700_000;

/// What a rate was measured over.
struct Measured {
    requests: u64,
    blocks: u64,
    /// Operations of all disks.
    operations: u64,
    cpu_s: f64,
}

/// Time this process has had a core for: others on the machine do not enter.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The argument of a child that reads one trace.
pub const READER: &str = "read-trace";

/// Reads a trace once. Prints as JSON how many requests it has, and the seconds of processor time that took.
pub fn read_trace(path: &str) {
    let begun = cpu_s();
    let (mut reader, mut batch, mut requests) = (open(path), Vec::new(), 0);
    while reader.next_batch(&mut batch).expect("a sound trace") {
        requests += batch.len();
    }
    println!("[{requests}, {}]", cpu_s() - begun);
}

/// Prints the rates whose name is wanted.
pub fn print(wanted: &dyn Fn(&str) -> bool) {
    println!(
        "{:<34}{:>12}{:>12}{:>9}{:>15}{:>15}{:>15}",
        "rate", "requests", "blocks", "CPU s", "requests/s", "blocks/s", "all operations/s"
    );
    let line = |name: &str, measure: &dyn Fn() -> Measured| {
        if wanted(name) {
            let Measured { requests, blocks, operations, cpu_s } = measure();
            println!(
                "{name:<34}{requests:>12}{blocks:>12}{cpu_s:>9.2}{:>15.0}{:>15.0}{:>15.0}",
                requests as f64 / cpu_s,
                blocks as f64 / cpu_s,
                (requests + operations) as f64 / cpu_s
            );
        }
    };
    let folder = std::env::temp_dir().join(format!("imbrex-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the synthetic trace");
    let recording = || one_block(&folder, "imbrex", "synthetic:one-block/2");
    line("parser, one-block recording", &|| parse(&mut looped(&recording(), ONE_BLOCK_REQUESTS)));
    line("parser, one-block in Parquet", &|| {
        let path = one_block(&folder, "parquet", "synthetic:one-block/4");
        parse(&mut looped(&path, PARQUET_REQUESTS))
    });
    let (long, label) = long_trace();
    line(&format!("parser, {label}"), &|| parse(&mut looped(&long, LOOPED_BLOCKS)));
    line("router, one layer, no disk time", &|| router(4_000_000));
    line("lru, one-block recording", &|| {
        let settings = ["cache.capacity=32MiB", "translation.persistent_cache=64MiB"];
        simulate("lru", &settings, &recording(), ONE_BLOCK_REQUESTS)
    });
    for system in ["smr-only", "lru", "pore"] {
        line(&format!("{system}, {label}"), &|| simulate(system, &[], &long, LOOPED_BLOCKS));
    }
    line("hwsr, financial1-dense", &|| {
        let path = "synthetic:financial1-dense";
        simulate("hwsr", &["translation.journal=off"], path, DENSE_BLOCKS)
    });
    std::fs::remove_dir_all(&folder).expect("the folder of the synthetic trace");
}

/// The shipped recipe `one-block` as a file of a format, so that parsing is part of what is measured.
fn one_block(folder: &Path, extension: &str, recipe: &str) -> String {
    let path = folder.join(format!("one-block.{extension}")).display().to_string();
    if !Path::new(&path).exists() {
        let reader =
            imbrex_traces::open(recipe, &ReadOptions::default()).expect("a shipped recipe");
        let format = WriteFormat::of_name(&path).expect("the name of a format");
        let options = WriteOptions::from(format);
        imbrex_traces::write(reader, &path, &options).expect("room for the synthetic trace");
    }
    path
}

/// The CloudPhysics trace where it is at hand, the shipped recording of pgbench where it is not.
fn long_trace() -> (String, &'static str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = match std::env::var_os("IMBREX_SHARED") {
        Some(given) => vec![PathBuf::from(given)],
        None => here.ancestors().map(|folder| folder.join("shared")).collect(),
    };
    let found = shared
        .into_iter()
        .map(|shared| shared.join("traces/cloudphysics_libcachesim.csv.zst"))
        .find(|path| path.is_file());
    match found {
        Some(path) => (path.display().to_string(), "CloudPhysics looped"),
        None => {
            eprintln!(
                "the CloudPhysics trace is not here: the recording of pgbench stands in for it"
            );
            let path = here.join("../../workloads/pgbench.imbrex.xz");
            (path.display().to_string(), "pgbench looped (recorded)")
        }
    }
}

/// A trace from its start again and again, parsed anew each time, until it has given `blocks_left`
/// blocks.
struct Looped {
    path: String,
    reader: TraceReader,
    blocks_left: u64,
}

fn looped(path: &str, blocks: u64) -> Looped {
    Looped { path: path.to_string(), reader: open(path), blocks_left: blocks }
}

fn open(path: &str) -> TraceReader {
    imbrex_traces::open(path, &ReadOptions::default()).expect("a trace that was found")
}

fn blocks_of(record: &TraceRecord) -> u64 {
    let end = (record.offset_bytes + record.length_bytes).div_ceil(BLOCK_BYTES);
    end - record.offset_bytes / BLOCK_BYTES
}

impl Iterator for Looped {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.blocks_left == 0 {
            return None;
        }
        let record = self.reader.next().unwrap_or_else(|| {
            self.reader = open(&self.path);
            self.reader.next().expect("a trace with requests")
        });
        if let Ok(record) = &record {
            self.blocks_left = self.blocks_left.saturating_sub(blocks_of(record));
        }
        Some(record)
    }
}

fn parse(records: &mut Looped) -> Measured {
    let begun = cpu_s();
    let (mut requests, mut blocks) = (0, 0);
    for record in records {
        requests += 1;
        blocks += blocks_of(&record.expect("a sound trace"));
    }
    Measured { operations: 0, requests, blocks, cpu_s: cpu_s() - begun }
}

/// What `imbrex compare` does for one system, on a trace repeated until it has given `blocks`.
fn simulate(system: &str, settings: &[&str], path: &str, blocks: u64) -> Measured {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    let config = StackConfig::load(system, &settings).expect("a ready-made stack");
    let plan = Plan::new(&config, &BuildOptions::simulate(SEED)).expect("a sound stack");
    let footprint = plan.needs_footprint().then(|| {
        let workload = Workload::of_trace(path, ReadOptions::default(), None);
        let bands = plan.bands().expect("a share of bands needs bands");
        workload
            .footprint(bands, plan.blocks(), Placement::default(), false)
            .expect("a sound trace")
    });
    let built = plan.build(footprint, None, ContentKind::Counted).expect("a sound stack");
    let disks = built.describe.disks().map(|disk| Rc::clone(disk.statistics()));
    let disks: Vec<_> = disks.collect();
    let begun = cpu_s();
    let options = ReplayOptions {
        mode: ReplayMode::ClosedLoop { depth: 1 },
        limit: None,
        drop_reads: false,
        placement: Placement::default(),
    };
    let recorder = Rc::new(RefCell::new(Recorder::new()));
    let device = built.stack.geometry().blocks;
    let mut replayer = Replayer::new(looped(path, blocks), options, device, Rc::clone(&recorder));
    let mut fill = FillObserver::new(&built.describe, recorder);
    let mut engine = engine(built);
    engine.run(&mut VirtualClock::default(), &mut replayer, &mut |now, stack| {
        fill.observe(now, stack)
    });
    replayer.take_error().expect("a trace that fits the disk");
    let counts = replayer.counts;
    let operations = disks.iter().map(|disk| {
        disk.operations_of(OperationKind::Read) + disk.operations_of(OperationKind::Write)
    });
    Measured {
        operations: operations.sum(),
        requests: counts.requests,
        blocks: counts.read_blocks + counts.write_blocks,
        cpu_s: cpu_s() - begun,
    }
}

/// An engine of a built stack, one request at a time.
pub fn engine(built: Built) -> Engine {
    Engine {
        stack: built.stack,
        disks: built.disks,
        buffers: Buffers::new(ContentKind::Counted),
        in_flight_max: 1,
    }
}

/// One-block writes through a layer that only passes them on to a disk that takes no time.
fn router(requests: u64) -> Measured {
    let geometry = Geometry::plain(BlockCount(1 << 30), Media::Conventional);
    let mut builder = StackBuilder::new(SEED);
    let disk = builder.disk(geometry.clone());
    let top = builder.layer(Box::new(PassOn::default()), geometry.clone(), &[disk]);
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(InstantDisk { geometry, done: VecDeque::new() })],
        buffers: Buffers::new(ContentKind::Counted),
        in_flight_max: 1,
    };
    let mut writes =
        Writes { left: requests, next: 0, stride: 1, buffer: BufferSlice::EMPTY, busy: false };
    let begun = cpu_s();
    engine.run(&mut VirtualClock::default(), &mut writes, &mut |_, _| {});
    Measured { operations: requests, requests, blocks: requests, cpu_s: cpu_s() - begun }
}

/// A closed loop of one-block writes, `stride` blocks apart.
pub struct Writes {
    /// Writes to come.
    pub left: u64,
    /// Block of the next one.
    pub next: u64,
    /// Blocks from one to the next.
    pub stride: u64,
    /// Lent to the write in flight.
    pub buffer: BufferSlice,
    /// A write is in flight.
    pub busy: bool,
}

impl Frontend for Writes {
    fn next_arrival(&self) -> Option<Instant> {
        (self.left > 0 && !self.busy).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.left == 0 || self.busy {
            return None;
        }
        self.left -= 1;
        self.busy = true;
        self.buffer = buffers.allocate(1);
        let extent = Extent::new(self.next, 1);
        self.next = (self.next + self.stride) % (1 << 30);
        Some(Arrival { tag: Tag(0), operation: Operation::WRITE, extent, buffer: self.buffer })
    }

    fn reply(&mut self, _: Instant, completion: Completion, buffers: &mut Buffers) {
        completion.result.expect("a sound disk");
        buffers.release(self.buffer);
        self.busy = false;
    }

    fn finished(&self) -> bool {
        self.left == 0 && !self.busy
    }
}

/// Passes one request on at a time.
#[derive(Default)]
struct PassOn {
    request: Option<RequestId>,
}

impl Layer for PassOn {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.request = Some(request.id);
        ctx.issue(Issue {
            port: Port(0),
            operation: request.operation,
            extent: request.extent,
            buffer: request.buffer,
            cause: request.cause,
            tag: Tag(0),
        });
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        let request = self.request.take().expect("a request in flight");
        ctx.finish(request, completion.result);
    }
}

struct InstantDisk {
    geometry: Geometry,
    done: VecDeque<DiskCompletion>,
}

impl Disk for InstantDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, _: Instant, op: DiskOp, _: &mut Buffers) {
        self.done.push_back(DiskCompletion { id: op.id, result: Ok(()) });
    }

    fn poll(&mut self, _: Instant, _: &mut Buffers) -> Option<DiskCompletion> {
        self.done.pop_front()
    }

    fn next_event(&self) -> Option<Instant> {
        self.done.front().map(|_| Instant::ZERO)
    }
}
