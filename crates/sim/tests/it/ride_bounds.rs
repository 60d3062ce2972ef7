//! What RIDE must not lose again, what no policy can pass, and for which stacks that is known.

use crate::simulate::{back_to_back, random_writes, stack, workload};
use imbrex_report::Run;
use imbrex_sim::experiment::{Batch, Bound, BoundOptions, Case, RunError, Task};
use imbrex_stack::{BuildOptions, Plan, StackConfig};
use std::collections::BTreeMap;

fn case(config: StackConfig) -> Case {
    Case {
        config,
        parameters: BTreeMap::new(),
        replay: back_to_back(1),
        series: vec![],
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        movement: None,
        drive_scale: 1,
        drive_scale_option: None,
    }
}

/// A run of a stack on a workload, and with `is_bounded` its bound.
fn run(config: StackConfig, path: &str, is_bounded: bool) -> Run {
    let batch = Batch { workload: workload(path), seed: 1, cases: vec![case(config)], jobs: 1 };
    let mut report = batch.run(&|_| ()).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut run = report.runs.remove(0);
    if is_bounded {
        let bounds = batch.rewrite_bounds().expect("a bound holds");
        run.rewrites.bands_rewritten_bound = bounds[0];
    }
    run
}

/// Bands rewritten and I/O time in s of the shipped recordings, at a cache of 2 %, read-write.
const RECORDINGS: [(&str, u64, f64); 4] = [
    ("pgbench", 650, 1475.0),
    ("sysbench", 480, 2155.0),
    ("file-churn", 520, 1450.0),
    ("compile", 260, 221.0),
];

#[test]
fn ride_on_the_recordings_needs_no_more_than_it_did() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let config = stack("ride", &["cache.capacity=2 %"]);
    std::thread::scope(|scope| {
        for (name, bands_max, io_time_s_max) in RECORDINGS {
            let (path, config) = (format!("{folder}/{name}.imbrex.xz"), config.clone());
            scope.spawn(move || {
                let run = run(config, &path, false);
                let bands = run.rewrites.bands_rewritten;
                let io_time_s = run.costs.io_time_s.total;
                println!("{name}: {bands} bands, {io_time_s:.0} s");
                assert!(bands <= bands_max, "{name}: {bands} bands");
                assert!(io_time_s <= io_time_s_max, "{name}: {io_time_s} s");
                // Less than half of that would be another workload.
                assert!(bands > bands_max / 2, "{name}: {bands} bands");
            });
        }
    });
}

/// A log that holds far less than is written to a band: there RIDE is nearest to what is possible.
#[test]
fn over_a_short_log_ride_is_near_the_bound() {
    let settings = ["cache.capacity=1 %", "translation.persistent_cache=256KiB"];
    for scale in [1, 4, 16] {
        let path = format!("synthetic:raid4smr-web3/{scale}");
        let run = run(stack("ride", &settings), &path, true);
        let over = run.rewrites.over_bound().expect("a bound above 0");
        println!("{path}: {} bands, {over:.3}", run.rewrites.bands_rewritten);
        assert!((1.0..=1.25).contains(&over), "{path}: {over}");
    }
}

const TRANSLATION: &str = r#"
name = "tower"
description = "a translation with something above it"

[[node]]
name = "smr"
kind = "disk"
drive = "st5000as0011"

[[node]]
name = "translation"
kind = "persistent-cache"
below = "smr"
bands = "uniform:17MiB..36MiB"
persistent_cache = "16KiB"
entries = "unlimited"
update = "append"
bypass = "off"
rewrite = "copy-then-home"
rewrite_extent = "band"
merge_buffer = "none"
rewrite_overhead = "0 ms"
idle_after = "off"
"#;

/// A cache over a node.
fn cache(name: &str, below: &str) -> String {
    format!(
        r#"
        [[node]]
        name = "ssd-of-{name}"
        kind = "disk"
        drive = "pblaze4"

        [[node]]
        name = "{name}"
        kind = "write-back-cache"
        below = {{ flash = "ssd-of-{name}", backing = "{below}" }}
        capacity = "64KiB"
        destage_slots = 8
        policy = "lru"
        "#
    )
}

/// A node of a kind over another one.
fn node(kind: &str, below: &str) -> String {
    format!("\n[[node]]\nname = \"{kind}\"\nkind = \"{kind}\"\n{below}\n")
}

fn tower(above: &str) -> StackConfig {
    let text = format!("{TRANSLATION}{above}");
    StackConfig::from_text("tower.toml", &text, &[]).expect("a sound stack")
}

fn bound(config: StackConfig) -> Result<Bound, RunError> {
    let workload = workload("synthetic:uniform-random-write/1000");
    let case = case(config);
    let task = Task::new(&workload, 1, &case);
    task.bound(&BoundOptions { cells: 32, is_drained: false }, &|_| {})
}

#[test]
fn a_bound_counts_the_room_of_every_cache_above_the_translation() {
    let room = |above: &str| bound(tower(above)).expect("a bound").room;
    let alone = room("");
    assert_eq!((alone.cache_blocks, alone.destage_slots), (0, 0));
    let two = room(&(cache("lower", "translation") + &cache("upper", "lower")));
    assert_eq!((two.cache_blocks, two.destage_slots), (2 * 16, 2 * 8));
    assert_eq!(two.log_blocks, alone.log_blocks);
    assert!(alone.log_blocks > 0);
}

/// The memory holds all that is written: what was printed for the translation alone was no bound.
#[test]
fn no_bound_is_given_where_nodes_hold_blocks_that_are_not_counted() {
    let memory = "below = { below = \"translation\" }\ncapacity = \"64MiB\"\nblock = \"64KiB\"\npolicy = \"lwa\"";
    let below = "below = \"translation\"";
    let memory_over_cache = memory.replace("translation", "cache");
    for (culprit, above) in [
        ("memory-buffer", node("memory-buffer", memory)),
        ("s-block", node("s-block", below)),
        ("segments", node("segments", below)),
        (
            "memory-buffer",
            cache("cache", "translation") + &node("memory-buffer", &memory_over_cache),
        ),
        ("segments", node("segments", below) + &cache("cache", "segments")),
    ] {
        let config = tower(&above);
        Plan::new(&config, &BuildOptions::simulate(1)).expect("it can be built");
        let error = bound(config).expect_err(culprit).to_string();
        let expected = format!(
            "system `tower`: node `{culprit}`: it stands above the translation, and what it holds is not \
             counted, so no bound holds; accepted: nodes of kind \"write-back-cache\" and no others there"
        );
        assert_eq!(error, expected);
    }
    let rewritten = |above: &str| {
        let report = random_writes(tower(above), 1, &[]);
        report.runs[0].rewrites.bands_rewritten
    };
    let of_translation = bound(tower("")).expect("a bound").bands_rewritten.bound;
    assert!(rewritten("") >= of_translation && of_translation > 0);
    assert!(rewritten(&node("memory-buffer", memory)) < of_translation);
}
