//! A run that begins with a saved state is the rest of the run that has saved it.

use crate::report::schema_violations;
use crate::simulate::{back_to_back, stack, workload};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::engine::Engine;
use imbrex_core::rng::Rng;
use imbrex_report::{ReplayMode, Report};
use imbrex_sim::experiment::{Batch, Case, RunError, RunFiles, WarmUp, Watch};
use imbrex_sim::replay::{Fit, ReplayOptions};
use imbrex_sim::simulation::format;
use imbrex_stack::{BuildOptions, Plan, StackConfig, ready_made};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The stacks of the crash search, which have layers of every kind and are small. Those of copies are too small to be
/// simulated.
fn small_stacks() -> Vec<StackConfig> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stacks/crash");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let config = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("a file");
        // What is drawn is for the crash search.
        let text = text.split("[draw]").next().unwrap_or_default();
        let name = file.display().to_string();
        StackConfig::from_text(&name, text, &[]).unwrap_or_else(|error| panic!("{error}"))
    };
    files.iter().filter(|file| !file.to_string_lossy().contains("/raid1")).map(config).collect()
}

/// Random writes on one stack.
struct Replay<'a> {
    config: &'a StackConfig,
    trace: &'a str,
    mode: ReplayMode,
    limit: u64,
}

impl Replay<'_> {
    fn run(&self, warm_up: Option<u64>, files: RunFiles<'_>) -> Result<Report, RunError> {
        let mut replay = ReplayOptions { limit: Some(self.limit), ..back_to_back(1) };
        replay.mode = self.mode;
        replay.placement.fit = Fit::Wrap;
        let mut workload = workload(self.trace);
        workload.warm_up = warm_up.map(WarmUp::Requests);
        workload.limit = Some(self.limit);
        let case = Case {
            config: self.config.clone(),
            parameters: BTreeMap::new(),
            replay,
            series: vec![],
            events: vec![],
            windows: vec![],
            cut_into_windows: true,
            heads: None,
            drive_scale: 1,
            movement: None,
            drive_scale_option: None,
        };
        Batch { workload, seed: 3, cases: vec![case], jobs: 1 }.run_with(&files, &Watch::nobody())
    }

    /// The report in one go, that of the run which saves, and that of the run from there on.
    fn reports(&self, warm_up: u64, file: &Path) -> [String; 3] {
        let text = |report: Result<Report, RunError>| {
            let report = report.unwrap_or_else(|error| panic!("{}: {error}", self.config.name));
            assert_eq!(schema_violations(&report), Vec::<String>::new());
            report.without_simulation().to_json()
        };
        let program = "a build";
        let saves = RunFiles { save_state: Some(file), program, ..RunFiles::default() };
        let begins = RunFiles { state: Some(file), program, ..RunFiles::default() };
        [
            text(self.run(Some(warm_up), RunFiles::default())),
            text(self.run(Some(warm_up), saves)),
            text(self.run(None, begins)),
        ]
    }

    /// Compares them.
    fn check(&self, warm_up: u64) {
        let folder = tempfile::tempdir().expect("a folder");
        let [whole, saved, rest] = self.reports(warm_up, &folder.path().join("x.state"));
        assert!(whole == saved, "{}: it matters that the state is saved", self.config.name);
        assert!(whole == rest, "{}: {}", self.config.name, first_difference(&whole, &rest));
    }
}

fn first_difference<'a>(one: &'a str, other: &'a str) -> String {
    let mut lines = one.lines().zip(other.lines());
    let found = lines.find(|(one, other)| one != other);
    found.map_or("one is longer".into(), |(one, other)| format!("{one} and {other}"))
}

const ONE_BY_ONE: ReplayMode = ReplayMode::ClosedLoop { depth: 1 };

#[test]
fn the_rest_of_a_run_is_the_same_in_all_ready_made_stacks() {
    let trace = "synthetic:uniform-random-write/200";
    for name in ready_made() {
        let config = stack(name, &[]);
        Replay { config: &config, trace, mode: ONE_BY_ONE, limit: 1_500 }.check(900);
    }
}

#[test]
fn the_rest_of_a_run_is_the_same_where_caches_are_full_and_logs_clean() {
    let trace = "synthetic:uniform-random-write/20";
    let settings: [(&str, &[&str]); 5] = [
        ("pore", &["cache.capacity=4MiB"]),
        ("ride-archive", &["cache.capacity=4MiB"]),
        ("hwsr", &["buffer.capacity=2MiB"]),
        ("raid4smr", &[]),
        ("idler", &[]),
    ];
    for (name, settings) in settings {
        let config = stack(name, settings);
        for mode in [ReplayMode::ClosedLoop { depth: 8 }, ReplayMode::OpenLoop { speed: 3.0 }] {
            Replay { config: &config, trace, mode, limit: 6_000 }.check(4_500);
        }
    }
}

#[test]
fn the_rest_of_a_run_is_the_same_in_small_stacks_that_have_gone_round_often() {
    let trace = "synthetic:uniform-random-write/20";
    for config in &small_stacks() {
        for mode in [ONE_BY_ONE, ReplayMode::ClosedLoop { depth: 5 }] {
            Replay { config, trace, mode, limit: 900 }.check(600);
        }
    }
}

#[test]
fn durable_layers_have_a_state_too() {
    let trace = "synthetic:uniform-random-write/200";
    for (name, key) in [
        ("pore", "cache.durable=true"),
        ("pore", "translation.durable=true"),
        ("hwsr", "buffer.durable=true"),
        ("s-block", "translation.durable=true"),
        ("raid1", "array.durable=true"),
        ("raid4smr", "array.durable=true"),
    ] {
        let config = stack(name, &[key]);
        Replay { config: &config, trace, mode: ONE_BY_ONE, limit: 900 }.check(500);
    }
}

#[test]
fn all_of_another_trace_is_replayed_unless_the_stack_depends_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.state");
    let of = |name: &str, trace, warm_up, files| {
        let config = stack(name, &[]);
        Replay { config: &config, trace, mode: ONE_BY_ONE, limit: 700 }.run(warm_up, files)
    };
    let saves = RunFiles { save_state: Some(&file), ..RunFiles::default() };
    let begins = RunFiles { state: Some(&file), ..RunFiles::default() };
    let (random, other) = ("synthetic:uniform-random-write/200", "synthetic:wdev-like/64");
    let first = of("idler", random, Some(500), saves).expect("a report");
    let next = of("idler", other, None, begins).expect("a report");
    let told = |report: &Report| report.runs[0].inputs.warm_up.expect("it is told");
    assert_eq!((told(&first).requests, told(&next).requests), (500, 0));
    assert_eq!(told(&next).duration_s, told(&first).duration_s);
    assert_eq!((next.runs[0].host.requests, next.workload.requests), (700, 700));
    let table = next.to_table(imbrex_report::TableStyle::Plain);
    assert!(table.contains("no request of this workload is a warm-up"), "{table}");
    of("pore", random, Some(500), saves).expect("a report");
    let words = of("pore", other, None, begins).map(|_| ()).expect_err("an error").to_string();
    assert!(words.contains("it is of a system `pore` that was built in another way"), "{words}");
}

#[test]
fn damaged_states_are_refused_and_nothing_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.state");
    let saves = RunFiles { save_state: Some(&file), ..RunFiles::default() };
    let trace = "synthetic:uniform-random-write/20";
    let mut rng = Rng::new(7, 0);
    let mut refused = 0;
    let stacks = small_stacks();
    for config in &stacks {
        let replay = Replay { config, trace, mode: ONE_BY_ONE, limit: 500 };
        replay.run(Some(300), saves).expect("a report");
        let state = state_in(&std::fs::read(&file).expect("a file"));
        let mut engine = engine(config);
        engine.load_state(&state).expect("the state of this stack");
        for _ in 0..10_000 / stacks.len() + 1 {
            // As if whoever has damaged it had computed the checksum anew.
            let mut damaged = state.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(damaged.len() as u64) as usize;
                match rng.below(3) {
                    0 => damaged[at] ^= 1 << rng.below(8),
                    1 => damaged[at] = rng.next_u64() as u8,
                    _ => damaged.truncate(at.max(1)),
                }
            }
            refused += u32::from(engine.load_state(&damaged).is_err());
        }
    }
    assert!(refused > 5_000, "{refused}");
}

/// What is in the file of a state between its header and the checksum.
fn state_in(bytes: &[u8]) -> Vec<u8> {
    let header = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
    bytes[16 + header + 8..bytes.len() - 32].to_vec()
}

fn engine(config: &StackConfig) -> Engine {
    let plan = Plan::new(config, &BuildOptions::simulate(3)).expect("a plan");
    let built = plan.build(None, None, ContentKind::Counted).expect("a stack");
    let buffers = Buffers::new(ContentKind::Counted);
    let mut engine = Engine { stack: built.stack, disks: built.disks, buffers, in_flight_max: 1 };
    format(&mut engine);
    engine
}
