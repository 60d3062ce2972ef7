//! Solid-state disks against their datasheets (validation row V60).

use super::rig::Rig;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::DiskOptions;

fn random_iops(drive: &str, depth: usize, operation: Operation) -> f64 {
    let mut rig = Rig::new(drive, DiskOptions::default());
    let (blocks, mut rng) = (rig.blocks(), Rng::new(1, 2));
    let next = |_| (operation, Extent::new(rng.below(blocks), 1));
    rig.closed_loop(depth, 20_000, next).per_second()
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    println!("{what}: {value:.1}, expected {expected}");
    let error = value / expected - 1.0;
    assert!(error.abs() <= tolerance, "{what}: {value} instead of {expected}");
}

#[test]
fn random_iops_are_those_of_the_datasheet() {
    let (read, write) = (Operation::Read, Operation::WRITE);
    for (depth, operation, expected) in
        [(1, read, 10_000.0), (1, write, 40_000.0), (32, read, 96_000.0), (32, write, 89_000.0)]
    {
        let iops = random_iops("850evo", depth, operation);
        assert_near(&format!("850 EVO, depth {depth}, {operation:?}"), iops, expected, 0.1);
    }
}

#[test]
fn sequential_rates_are_those_of_the_datasheet() {
    for (drive, operation, expected_mb) in [
        ("850evo", Operation::Read, 540.0),
        ("850evo", Operation::WRITE, 520.0),
        ("pblaze4", Operation::Read, 2800.0),
        ("pblaze4", Operation::WRITE, 950.0),
    ] {
        let mut rig = Rig::new(drive, DiskOptions::default());
        let next = |i: usize| (operation, Extent::new(i as u64 * 64, 64));
        let rate = rig.closed_loop(16, 5000, next).per_second() * (64 * BLOCK_BYTES) as f64 / 1e6;
        assert_near(&format!("{drive} {operation:?} MB/s"), rate, expected_mb, 0.03);
    }
}

#[test]
fn a_forced_write_takes_a_flush_longer() {
    let latency = |write_cache, operation| {
        let options = DiskOptions { write_cache, ..DiskOptions::default() };
        let mut rig = Rig::new("850evo", options);
        rig.one(operation, Extent::new(0, 1), 0).latency_ns
    };
    assert_eq!(latency(None, Operation::WRITE), 25_000);
    assert_eq!(latency(None, Operation::WRITE_DURABLE), 1_025_000);
    assert_eq!(latency(Some(false), Operation::WRITE), 1_025_000);
    let mut rig = Rig::new("850evo", DiskOptions::default());
    assert_eq!(rig.one(Operation::Flush, Extent::EMPTY, 0).latency_ns, 1_000_000);
}

#[test]
fn busy_time_counts_once_where_operations_overlap() {
    let mut rig = Rig::new("850evo", DiskOptions::default());
    let next = |i: usize| (Operation::Read, Extent::new(i as u64 * 7919, 1));
    let measured = rig.closed_loop(32, 10_000, next);
    let busy_s = rig.statistics.busy_total().as_seconds();
    assert!((busy_s / measured.elapsed_s - 1.0).abs() < 1e-6);
}
