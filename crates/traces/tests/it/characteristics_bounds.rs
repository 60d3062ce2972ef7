//! Memory and speed of a characterisation of a hundred million requests:
//! `cargo test --release -p imbrex-traces --test it a_hundred_million -- --ignored --nocapture --test-threads 1`.

use imbrex_traces::synthetic::Recipe;
use imbrex_traces::{BlockRule, TraceReader, characterise};

const REQUESTS: u64 = 100_000_000;
const MIB: u64 = 1 << 20;
/// What the whole process may hold.
const RESIDENT_MAX: u64 = 512 * MIB;

/// CPU seconds of this thread, where Linux says so.
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(ns / 1e9)
}

/// The most memory this process has held, bytes.
fn peak_resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Random requests of one size at multiples of it.
fn measure(name: &str, footprint_bytes: u64, request_bytes: u64) {
    let text = format!(
        "name = \"{name}\"\ndescription = \"random requests\"\nseed = 1\n[uniform-random]\n\
         requests = {REQUESTS}\nfootprint_bytes = {footprint_bytes}\n\
         request_bytes = {request_bytes}\nwrite_percent = 60.0\ninterval_us = 100\n"
    );
    let recipe = Recipe::parse(name, &text).unwrap();
    let before = cpu_s();
    let info = characterise(TraceReader::from_recipe(&recipe), BlockRule::Touched).unwrap();
    assert_eq!(info.requests, REQUESTS);
    let peak = peak_resident();
    if let (Some(before), Some(after), Some(peak)) = (before, cpu_s(), peak) {
        let rate = REQUESTS as f64 / (after - before) / 1e6;
        let methods = &info.sections.methods;
        println!(
            "{name}: {rate:.1} million requests a CPU second, {} MiB; blocks {}, distinct {}",
            peak / MIB,
            methods.blocks.method,
            methods.distinct.method
        );
        assert!(peak < RESIDENT_MAX, "{name}: {} MiB", peak / MIB);
    }
}

/// Nearly every request a new block: the worst case for what is kept.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_million_distinct_blocks() {
    measure("distinct", 4096 * (1 << 35), 4096);
}

/// Every block touched in part, so its sectors are kept as well.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_million_sectors() {
    measure("sectors", 512 * (1 << 38), 512);
}

/// Everything fits, so each access is looked up: the worst case for the time.
#[test]
#[ignore = "takes minutes"]
fn a_hundred_million_requests_that_fit() {
    measure("fits", 8 << 30, 4096);
}
