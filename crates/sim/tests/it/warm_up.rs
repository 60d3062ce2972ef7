//! What comes behind a warm-up is what all of it is without the warm-up.

use crate::report::schema_violations;
use imbrex_core::counters::{Kind, Unit, declared};
use imbrex_report::{Report, Run};
use imbrex_sim::experiment::{Experiment, Found, RunError, Watch, execute};
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment with keys of its workload, of random writes one at a time.
fn report(systems: &[&str], of_workload: &str, more: &str) -> Result<Report, RunError> {
    let text = format!(
        "name = 'warm-up'\ntitle = 'Warm-up.'\nsystems = {systems:?}\n[workload]\n\
         path = 'synthetic:uniform-random-write/200'\nfit = 'wrap'\n{of_workload}\n{more}"
    );
    let experiment = Experiment::parse("warm-up.toml", &text, Path::new("")).expect("a file");
    let mut outcomes = execute(&[experiment], &[], None, 2, &Watch::nobody())?;
    match outcomes.remove(0).workloads.remove(0).found {
        Found::Runs(report) => Ok(*report),
        _ => panic!("no report"),
    }
}

fn runs(systems: &[&str], of_workload: &str, more: &str) -> Vec<Run> {
    report(systems, of_workload, more).unwrap_or_else(|error| panic!("{error}")).runs
}

/// What nodes have counted, by node and counter; present values and times are left out.
fn counted(run: &Run) -> BTreeMap<(String, String), u64> {
    let is_count =
        |name: &str| declared(name).is_some_and(|it| it.kind == Kind::Count && it.unit != Unit::Ns);
    let of_node = |(node, counts): (&String, &BTreeMap<String, u64>)| {
        let counts = counts.iter().filter(|(name, _)| is_count(name));
        let named = counts.map(|(name, value)| ((node.clone(), name.clone()), *value));
        named.collect::<Vec<_>>()
    };
    run.nodes.iter().flat_map(of_node).collect()
}

/// Stacks whose decisions do not depend on time: it makes little difference to them that a request waits until
/// nothing is under way.
const SYSTEMS: [&str; 7] = ["cmr-only", "hdd", "smr-only", "lru", "pore", "ride", "raid4smr"];

#[test]
fn a_warm_up_and_what_is_behind_it_are_all_of_the_run() {
    let of = |keys: &str| runs(&SYSTEMS, keys, "");
    let (all, first, behind) =
        (of("limit = 4000"), of("limit = 1000"), of("limit = 4000\nwarm_up = 1000"));
    for (all, (first, behind)) in all.iter().zip(first.iter().zip(&behind)) {
        let system = &all.system;
        let (before, after) = (counted(first), counted(behind));
        let sums = before.iter().map(|(name, value)| (name.clone(), value + after[name]));
        assert_eq!(counted(all), sums.collect(), "{system}");
        assert_eq!(behind.host.requests, 3000);
        assert_eq!(all.host.write_blocks, first.host.write_blocks + behind.host.write_blocks);
        let sum = |of: fn(&Run) -> f64| {
            let (whole, parts) = (of(all), of(first) + of(behind));
            assert!((whole - parts).abs() <= 1e-3 * whole, "{system}: {whole} and {parts}");
        };
        sum(|run| run.costs.io_time_s.total);
        sum(|run| run.rewrites.bands_rewritten as f64);
        let rate = &behind.figures.requests_per_s;
        let recorded = rate.values.iter().sum::<f64>() * rate.bucket_s;
        // The last bucket is longer or shorter than the others.
        assert!((recorded - 3000.0).abs() < 30.0, "{system}: {recorded} requests");
        let told = behind.inputs.warm_up.expect("it is told");
        assert_eq!(told.requests, 1000);
        let lasted_s = told.duration_s + behind.costs.finish_s;
        let of_all_s = all.costs.finish_s;
        assert!(
            (lasted_s - of_all_s).abs() <= 1e-3 * of_all_s,
            "{system}: {lasted_s} s, {of_all_s} s"
        );
    }
}

#[test]
fn a_share_is_of_all_requests_in_all_rounds() {
    let behind = runs(&["cmr-only"], "limit = 1000\nrepeat = 2\nwarm_up = '75%'", "");
    let told = behind[0].inputs.warm_up.expect("it is told");
    assert_eq!((told.requests, behind[0].host.requests), (1500, 500));
}

#[test]
fn until_full_ends_when_each_cache_has_evicted_and_each_log_has_cleaned() {
    let small = "[set]\n'cache.capacity' = '1MiB'\n";
    let report = report(&["lru", "cmr-only"], "warm_up = 'until-full'", small).expect("a report");
    let [lru, plain] = &report.runs[..] else { panic!("two runs") };
    let told = |run: &Run| run.inputs.warm_up.expect("it is told").requests;
    assert_eq!(told(plain), 0, "there is nothing to fill");
    // A little more than fills the log, which is less than half of all.
    assert!((256..2500).contains(&told(lru)), "{}", told(lru));
    assert!(lru.log.no_cleaning.is_none() && lru.rewrites.bands_rewritten > 0);
    assert_eq!(schema_violations(&report), Vec::<String>::new());
    assert_eq!(report.workload.requests, 5000);
    let table = report.to_table(imbrex_report::TableStyle::Plain);
    assert!(table.contains("measured on different requests"), "{table}");
}

#[test]
fn a_warm_up_that_leaves_nothing_says_what_is_missing() {
    let words = |keys: &str| report(&["pore"], keys, "").expect_err("an error").to_string();
    let long = words("limit = 1000\nwarm_up = 1000");
    assert!(long.contains("warm-up 1000: there is no request behind it"), "{long}");
    let empty = words("limit = 10\nwarm_up = 'until-full'");
    let lacks = "node `translation` of system `pore` is not full (its log has not gone round";
    assert!(empty.contains(lacks), "{empty}");
}

#[test]
fn what_comes_late_after_a_warm_up_shifts_what_follows() {
    // Far too fast for the disk: all have arrived before the warm-up has ended.
    let behind = runs(&["cmr-only"], "limit = 100\nwarm_up = 40\nopen_loop_speed = 1e6", "");
    let run = &behind[0];
    assert_eq!(run.host.requests, 60);
    let last_arrival_s = run.costs.last_arrival_s.expect("by time stamps");
    assert!(last_arrival_s < 0.01 && run.costs.finish_s > 0.1, "{last_arrival_s}");
    // The longest waits for no more than those behind the warm-up.
    let longest_s = run.costs.response_ms.max.expect("requests") / 1e3;
    assert!(longest_s <= run.costs.finish_s + 1e-9, "{longest_s}");
}

#[test]
fn times_of_series_and_events_count_from_the_end_of_the_warm_up() {
    let more = "series = ['cache.dirty_blocks']\n[set]\n'cache.capacity' = '4MiB'\n\
                [[event]]\nat_s = 0.5\nnode = 'cache'\ncommand = 'status'\n\
                [[event]]\nafter_requests = 100\nnode = 'cache'\ncommand = 'status'\n";
    // Tables of the file come before those of the workload.
    let text = format!(
        "name = 'warm-up'\ntitle = 'Warm-up.'\nsystems = ['lru']\n{more}[[workload]]\n\
         path = 'synthetic:uniform-random-write/200'\nfit = 'wrap'\nlimit = 4000\nwarm_up = 3000\n"
    );
    let experiment = Experiment::parse("warm-up.toml", &text, Path::new("")).expect("a file");
    let outcome = execute(&[experiment], &[], None, 1, &Watch::nobody()).expect("runs").remove(0);
    let Found::Runs(report) = &outcome.workloads[0].found else { panic!("no report") };
    let run = &report.runs[0];
    let finish_s = run.costs.finish_s;
    assert!(finish_s > 1.0 && run.inputs.warm_up.expect("it is told").duration_s > finish_s);
    let dirty = &run.figures.series["cache.dirty_blocks"];
    assert!(dirty.values[0] > 900.0, "the cache is full at the start: {:?}", &dirty.values[..3]);
    assert!(dirty.values.len() as f64 * dirty.bucket_s <= finish_s + dirty.bucket_s);
    let [at, after] = &run.events[..] else { panic!("two events") };
    assert!((at.at_s - 0.5).abs() < 1e-9, "{}", at.at_s);
    assert!(after.at_s < finish_s / 2.0, "behind a tenth of what is measured: {}", after.at_s);
    assert_eq!(schema_violations(report), Vec::<String>::new());
}
