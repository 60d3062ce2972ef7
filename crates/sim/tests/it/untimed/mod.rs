//! Replacement is decided in the order of arrival: at queue depth 1 the timed stack counts exactly
//! what the untimed algorithm counts.

mod hwsr;
mod reference;
mod ride;

use crate::sample_traces::samples;
use crate::simulate::{Simulated, Totals, records, simulate, stack, workload};
use imbrex_sim::experiment::Workload;
use imbrex_traces::{TraceOperation, TraceRecord};
use reference::{Reference, Replacement};
use ride::RideReference;
use std::collections::{BTreeMap, HashMap};

const MODES: [&str; 2] = ["read-write", "write-only"];

/// The captured trace of the samples, when it is there.
fn cloudphysics() -> Option<Workload> {
    let path = samples()?.join("cloudphysics_libcachesim.csv.zst");
    Some(workload(path.to_str().expect("a readable name")))
}

/// A synthetic volume with reads, updates and locality, large enough to rewrite bands.
fn synthetic() -> Workload {
    workload("synthetic:wdev-like/16")
}

/// The blocks that a record touches, and whether it writes them.
fn blocks(record: &TraceRecord) -> (std::ops::Range<u64>, bool) {
    let end = record.offset_bytes + record.length_bytes;
    let blocks = record.offset_bytes / 4096..end.div_ceil(4096);
    (blocks, record.operation == TraceOperation::Write)
}

/// Read and write hits of a plain LRU cache: its blocks by the time of their last access.
fn lru_hits(records: &[TraceRecord], capacity: usize, caches_reads: bool) -> (u64, u64) {
    let (mut last_access, mut by_time) = (HashMap::new(), BTreeMap::new());
    let (mut read_hits, mut write_hits, mut now) = (0, 0, 0u64);
    for record in records {
        let (blocks, is_write) = blocks(record);
        for block in blocks {
            now += 1;
            let hit = last_access.get(&block).copied();
            if is_write {
                write_hits += u64::from(hit.is_some());
            } else {
                read_hits += u64::from(hit.is_some());
            }
            if !is_write && !caches_reads {
                continue;
            }
            match hit {
                Some(time) => {
                    by_time.remove(&time);
                }
                None if by_time.len() == capacity => {
                    let (_, oldest) = by_time.pop_first().expect("a full cache");
                    last_access.remove(&oldest);
                }
                None => {}
            }
            by_time.insert(now, block);
            last_access.insert(block, now);
        }
    }
    (read_hits, write_hits)
}

#[test]
fn lru_hits_are_those_of_a_plain_lru() {
    let Some(workload) = cloudphysics() else {
        return;
    };
    let records = records(&workload);
    for mode in MODES {
        for capacity in [1_500, 6_000, 24_000] {
            let settings =
                [format!("cache.mode={mode}"), format!("cache.capacity={}KiB", capacity * 4)];
            let lru = stack("lru", &settings.each_ref().map(String::as_str));
            let expected = lru_hits(&records, capacity, mode == "read-write");
            let Totals { read_hits, write_hits, .. } = simulate(&lru, &workload, 1).totals;
            assert_eq!((read_hits, write_hits), expected, "{mode}, {capacity} blocks");
            // A request that waits for an overlapping one is looked up later than it arrived.
            let deep = simulate(&lru, &workload, 32).totals;
            let (got, expected) = (deep.read_hits + deep.write_hits, expected.0 + expected.1);
            let difference = got.abs_diff(expected) as f64 / expected as f64;
            println!("{mode}, {capacity} blocks: {expected} hits, {got} at queue depth 32");
            assert!(
                difference <= 0.005,
                "{mode}, {capacity} blocks: {expected} hits, {got} at queue depth 32"
            );
        }
    }
}

#[test]
fn pore_with_all_zones_open_is_lru() {
    let workloads = cloudphysics().into_iter().chain([synthetic()]);
    for workload in workloads {
        for mode in MODES {
            let mode = format!("cache.mode={mode}");
            let lru = simulate(&stack("lru", &[&mode]), &workload, 1).totals;
            let pore = stack("pore", &[&mode, "cache.open_zones=all"]);
            assert_eq!(simulate(&pore, &workload, 1).totals, lru, "{mode}");
            assert!(lru.bands_rewritten > 0 && lru.write_hits > 0);
        }
    }
}

fn reference(
    simulated: &Simulated,
    records: &[TraceRecord],
    replacement: Option<Replacement>,
    caches_reads: bool,
) -> Totals {
    let sizes = (simulated.capacity_blocks.max(1), simulated.log_blocks);
    let of = replacement.unwrap_or(Replacement::Lru);
    let mut reference = Reference::new(of, caches_reads, sizes, &simulated.bands);
    for record in records {
        let (blocks, is_write) = blocks(record);
        for block in blocks {
            match replacement {
                Some(_) => reference.access(block, is_write),
                None if is_write => reference.append(block),
                None => {}
            }
        }
    }
    reference.totals
}

fn counts_what_the_reference_counts(workload: &Workload) {
    let records = records(workload);
    let batch = "cache.destage_batch=32";
    let cases: [(&str, &[&str], Option<Replacement>); 6] = [
        ("smr-only", &[], None),
        ("lru", &[], Some(Replacement::Lru)),
        ("lru-band", &[], Some(Replacement::LruBand { batch: usize::MAX })),
        ("lru-band", &[batch], Some(Replacement::LruBand { batch: 32 })),
        ("pore", &[], Some(Replacement::Pore)),
        ("pore", &[batch, "cache.zone=bands"], Some(Replacement::PoreBands { batch: 32 })),
    ];
    for (name, settings, replacement) in cases {
        for mode in MODES {
            if replacement.is_none() && mode == "write-only" {
                // Without a cache there is no mode.
                continue;
            }
            let with_mode = format!("cache.mode={mode}");
            let config = stack(name, &[settings, &[&with_mode]].concat());
            let simulated = simulate(&config, workload, 1);
            let caches_reads = mode == "read-write";
            let expected = reference(&simulated, &records, replacement, caches_reads);
            println!("{}, {name} {settings:?}, {mode}: {expected:?}", workload.path);
            assert_eq!(simulated.totals, expected, "{name} {settings:?}, {mode}");
            assert!(expected.bands_rewritten >= 50, "{name}, {mode}: too few bands");
            assert!(name != "pore" || expected.divisions > 3, "too few divisions");
        }
    }
}

#[test]
fn every_counter_is_that_of_the_untimed_algorithm_on_a_synthetic_volume() {
    counts_what_the_reference_counts(&synthetic());
}

#[test]
fn every_counter_is_that_of_the_untimed_algorithm_on_a_captured_trace() {
    if let Some(workload) = cloudphysics() {
        counts_what_the_reference_counts(&workload);
    }
}

fn ride_counts_what_its_reference_counts(workload: &Workload) {
    let records = records(workload);
    for mode in MODES {
        for split in ["adaptive", "two-ghosts", "fixed"] {
            let settings = [format!("cache.mode={mode}"), format!("cache.split={split}")];
            let config = stack("ride", &settings.each_ref().map(String::as_str));
            let simulated = simulate(&config, workload, 1);
            let sizes = (simulated.capacity_blocks, simulated.log_blocks);
            let caches_reads = mode == "read-write";
            let mut model = RideReference::new(caches_reads, split, sizes, &simulated.bands);
            for record in &records {
                let (blocks, is_write) = blocks(record);
                blocks.for_each(|block| model.access(block, is_write));
            }
            let expected = model.totals();
            println!("{}, ride, {mode}, {split}: {expected:?}", workload.path);
            assert_eq!(simulated.totals, expected, "{mode}, {split}");
            assert!(expected.bands_rewritten >= 20 && expected.rides > 1000);
        }
    }
}

#[test]
fn every_counter_of_ride_is_that_of_its_untimed_model_on_a_synthetic_volume() {
    ride_counts_what_its_reference_counts(&synthetic());
}

#[test]
fn every_counter_of_ride_is_that_of_its_untimed_model_on_a_captured_trace() {
    if let Some(workload) = cloudphysics() {
        ride_counts_what_its_reference_counts(&workload);
    }
}
