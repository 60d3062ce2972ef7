//! One stack on one workload, with the counts of its nodes.

use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::engine::Engine;
use imbrex_core::map::BandTable;
use imbrex_report::{Recorder, ReplayMode, Report};
use imbrex_sim::experiment::{Batch, Case, Workload};
use imbrex_sim::replay::{Fit, Placement, ReplayOptions, Replayer};
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Plan, Setting, StackConfig};
use imbrex_traces::{ReadOptions, TraceRecord};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What the replacement and the translation did, counted in blocks; all zero without a cache or a
/// translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub read_hits: u64,
    pub write_hits: u64,
    pub dirty_evictions: u64,
    pub clean_evictions: u64,
    pub forced_evictions: u64,
    pub divisions: u64,
    pub windows_opened: u64,
    pub rides: u64,
    pub dirty_allowed: u64,
    pub appended: u64,
    pub merged: u64,
    pub bands_rewritten: u64,
    pub band_blocks_written: u64,
}

impl Totals {
    fn of(cache: &Counts, translation: &Counts) -> Totals {
        Totals {
            read_hits: cache.counter(Counter::ReadHits),
            write_hits: cache.counter(Counter::WriteHits),
            dirty_evictions: cache.counter(Counter::DirtyEvictions),
            clean_evictions: cache.counter(Counter::CleanEvictions),
            forced_evictions: cache.counter(Counter::ForcedEvictions),
            divisions: cache.counter(Counter::RegionDivisions),
            windows_opened: cache.counter(Counter::WindowsOpened),
            rides: cache.counter(Counter::Rides),
            dirty_allowed: cache.gauge(Gauge::DirtyAllowed),
            appended: translation.counter(Counter::PersistentCacheAppendedBlocks),
            merged: translation.counter(Counter::PersistentCacheMergedBlocks),
            bands_rewritten: translation.counter(Counter::BandsRewritten),
            band_blocks_written: translation.counter(Counter::BandBlocksWritten),
        }
    }
}

/// A stack that was run.
pub struct Simulated {
    pub totals: Totals,
    pub capacity_blocks: u64,
    pub log_blocks: u64,
    pub bands: BandTable,
}

/// A ready-made stack with settings such as `cache.capacity=40MiB`.
pub fn stack(name: &str, settings: &[&str]) -> StackConfig {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    StackConfig::load(name, &settings).unwrap_or_else(|error| panic!("{error}"))
}

/// A trace file or `synthetic:RECIPE/SCALE`.
pub fn workload(path: &str) -> Workload {
    Workload::of_trace(path, ReadOptions::default(), None)
}

/// Its records.
pub fn records(workload: &Workload) -> Vec<TraceRecord> {
    let reader = workload.records().unwrap_or_else(|error| panic!("{error}"));
    reader.map(|record| record.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Back to back.
pub fn back_to_back(depth: u32) -> ReplayOptions {
    ReplayOptions {
        mode: ReplayMode::ClosedLoop { depth },
        limit: None,
        drop_reads: false,
        placement: Placement::default(),
    }
}

/// The report of a stack on random writes, with the gauges of `series` over time.
pub fn random_writes(config: StackConfig, depth: u32, series: &[&str]) -> Report {
    let mut replay = back_to_back(depth);
    replay.placement.fit = Fit::Wrap;
    let case = Case {
        config,
        parameters: BTreeMap::new(),
        replay,
        series: series.iter().map(|name| (*name).to_string()).collect(),
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: 1,
        movement: None,
        drive_scale_option: None,
    };
    let batch = Batch {
        workload: workload("synthetic:uniform-random-write/1000"),
        seed: 3,
        cases: vec![case],
        jobs: 1,
    };
    batch.run(&|_| ()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a stack that has a cache and a translation; reads are replayed in both modes.
pub fn simulate(config: &StackConfig, workload: &Workload, depth: u32) -> Simulated {
    let plan = Plan::new(config, &BuildOptions::simulate(1)).expect("a plan");
    let bands = plan.bands().expect("a translation");
    let footprint = workload
        .footprint(bands, plan.blocks(), Placement::default(), plan.is_write_only())
        .expect("a trace");
    let built = plan
        .build(Some(footprint), None, ContentKind::Counted)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut engine = Engine {
        stack: built.stack,
        disks: built.disks,
        buffers: Buffers::new(ContentKind::Counted),
        in_flight_max: depth,
    };
    let records = records(workload).into_iter().map(Ok);
    let recorder = Rc::new(RefCell::new(Recorder::new()));
    let mut replayer = Replayer::new(records, back_to_back(depth), plan.blocks(), recorder);
    let mut clock = VirtualClock::default();
    engine.run(&mut clock, &mut replayer, &mut |_, _| {});
    replayer.take_error().unwrap_or_else(|error| panic!("{error}"));
    let counts = |node| engine.stack.counts(node);
    Simulated {
        totals: Totals::of(
            built.describe.cache().map_or(&Counts::default(), counts),
            built.describe.translation().map_or(&Counts::default(), counts),
        ),
        capacity_blocks: built.describe.capacity_blocks().unwrap_or(0),
        log_blocks: built.describe.persistent_cache_blocks().unwrap_or(0),
        bands: bands.clone(),
    }
}
