//! PORE rewrites less than LRU-band, and LRU-band less than LRU, on every real workload at hand
//! that makes LRU rewrite bands at all, but for one where PORE and LRU-band change places.

use crate::sample_traces::samples;
use crate::simulate::{back_to_back, stack, workload};
use imbrex_report::Run;
use imbrex_sim::experiment::{Batch, Case, Workload};
use imbrex_stack::StackConfig;
use std::collections::BTreeMap;
use std::path::Path;

/// With fewer rewrites by LRU the order says nothing.
const BANDS_REWRITTEN_MIN: u64 = 100;

/// The three caches in the order of what they rewrite, least first.
const SYSTEMS: [&str; 3] = ["pore", "lru-band", "lru"];

/// Recording and mode in which LRU-band amplifies less than PORE, in the window that ships and on the whole recording.
const LRU_BAND_IS_FIRST: [(&str, &str); 1] = [("hwsr-tpcc", "write-only")];

fn runs(workload: &Workload, mode: &str) -> Vec<Run> {
    let settings = [format!("cache.mode={mode}"), "cache.capacity=2 %".into()];
    let settings = settings.each_ref().map(String::as_str);
    let stacks = SYSTEMS.map(|name| stack(name, &settings));
    run_stacks(workload, &stacks, mode == "write-only")
}

fn run_stacks(workload: &Workload, stacks: &[StackConfig], drop_reads: bool) -> Vec<Run> {
    let case = |config: &StackConfig| Case {
        config: config.clone(),
        parameters: BTreeMap::new(),
        replay: imbrex_sim::replay::ReplayOptions { drop_reads, ..back_to_back(1) },
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: 1,
        series: vec![],
        movement: None,
        drive_scale_option: None,
    };
    let batch = Batch {
        workload: workload.clone(),
        seed: 1,
        cases: stacks.iter().map(case).collect(),
        jobs: 2,
    };
    batch.run(&|_| ()).unwrap_or_else(|error| panic!("{error}")).runs
}

/// Panics when the order is wrong; false when the workload says nothing.
fn check(path: &str) -> bool {
    let mut conclusive = true;
    for mode in ["read-write", "write-only"] {
        let mut runs = runs(&workload(path), mode);
        let host = |run: &Run| run.rewrites.write_amplification.host.expect("bands and writes");
        let rewritten = runs[2].rewrites.bands_rewritten;
        let is_exception = |(name, at): &(&str, &str)| path.contains(name) && mode == *at;
        if LRU_BAND_IS_FIRST.iter().any(is_exception) {
            runs.swap(0, 1);
        }
        let figures: Vec<String> =
            runs.iter().map(|run| format!("{} {:.2}", run.system, host(run))).collect();
        let line = format!("{path}, {mode}: {}", figures.join(" < "));
        if rewritten < BANDS_REWRITTEN_MIN {
            println!("{line}: inconclusive, LRU rewrote {rewritten} bands");
            conclusive = false;
            continue;
        }
        println!("{line}, LRU rewrote {rewritten} bands");
        assert!(runs.windows(2).all(|w| host(&w[0]) < host(&w[1])), "{line}");
    }
    conclusive
}

#[test]
fn on_a_captured_trace() {
    let Some(folder) = samples() else {
        return;
    };
    let path = folder.join("cloudphysics_libcachesim.csv.zst");
    assert!(check(path.to_str().expect("a readable name")));
}

#[test]
fn on_every_shipped_recording() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let mut paths: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder of workloads")
        .map(|entry| entry.expect("a readable folder").path())
        .map(|path| path.to_str().expect("a readable name").to_string())
        .filter(|path| path.contains(".imbrex"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no recording ships");
    for path in paths {
        check(&path);
    }
}

/// PORE (MSST 2017, figure 13) has LRU above the drive alone on five volumes. Its emulator counts every write to the log,
/// also one that takes the place of an entry, and the drive alone has most of those. Counted by what leaves the
/// log, which its text names, the order is the other one.
#[test]
fn lru_amplifies_more_than_the_drive_alone_only_where_updates_in_place_count() {
    let emulator = ["translation.bands=fixed:18MiB", "translation.update=in-place"];
    let cached = [&emulator[..], &["cache.mode=write-only"]].concat();
    let stacks = [stack("smr-only", &emulator), stack("lru", &cached)];
    let runs = run_stacks(&workload("synthetic:wdev-like/16"), &stacks, true);
    let [alone, lru] = [0, 1].map(|at| runs[at].rewrites.write_amplification);
    assert!(lru.log_in > alone.log_in, "{lru:?}, {alone:?}");
    assert!(lru.evicted < alone.evicted, "{lru:?}, {alone:?}");
}
