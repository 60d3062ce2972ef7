//! Measurements of real drives that others published.

use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::{DatasheetSeek, Drive, LIBRARY};
use imbrex_sim::bench::closed_loop::Run;
use imbrex_sim::bench::mechanics::{
    KOLMOGOROV_1_PERCENT, queued_random_reads, random_reads, sequential_rates, solved_average_ms,
    solver_error,
};

const CONVENTIONAL_BYTES: u64 = 140_660_000_000;

/// 256 KiB, 16 in flight.
fn hc620_reads(drive: &Drive, range_bytes: Option<u64>) -> Run {
    let range_blocks = range_bytes.map(|bytes| bytes / BLOCK_BYTES);
    queued_random_reads(drive, 64, 16, range_blocks, 20_000, 1).unwrap()
}

/// Validation rows V34 and V35: random reads of the HC620 over the whole disk and over its first
/// 140.66 GB (zonedstorage.io). One set of parameters for both, chosen on the first.
#[test]
fn queued_random_reads_have_the_published_latencies() {
    let drive = Drive::open("hc620-15tb").unwrap();
    for (range_bytes, iops, p50_ms, p99_ms, tolerances) in [
        (None, 118.0, 96.0, 558.0, [0.10, 0.15, 0.25]),
        (Some(CONVENTIONAL_BYTES), 215.0, 47.0, 409.0, [0.15, 0.15, 0.25]),
    ] {
        let run = hc620_reads(&drive, range_bytes);
        let seen = [run.per_second(), run.percentile_ms(50.0), run.percentile_ms(99.0)];
        let published = [iops, p50_ms, p99_ms];
        println!("{range_bytes:?} bytes: {seen:.1?}, published {published:?}");
        for ((seen, published), tolerance) in seen.iter().zip(published).zip(tolerances) {
            let error = (seen / published - 1.0).abs();
            assert!(error <= tolerance, "{seen} for {published}");
        }
    }
}

/// The ablation of V34: first come, first served gives neither the rate nor the spread.
#[test]
fn without_a_scheduler_the_published_latencies_are_missed() {
    let text = LIBRARY.iter().find(|(name, _)| *name == "hc620-15tb").unwrap().1;
    let drive = Drive::parse("fcfs", &text.replace("\"sptf\"", "\"fcfs\"")).unwrap();
    let run = hc620_reads(&drive, None);
    let (p50, p99) = (run.percentile_ms(50.0), run.percentile_ms(99.0));
    println!("FCFS: {:.1}/s, median {p50:.1} ms, 99 % {p99:.1} ms", run.per_second());
    assert!((run.per_second() / 118.0 - 1.0).abs() > 0.10);
    assert!(p99 / p50 < 2.0, "measured 5.8");
}

/// Validation row V53: the curve solved from three figures of a measured curve, against all of
/// that curve.
#[test]
fn three_figures_give_back_the_measured_seek_curves() {
    for name in ["atlas10k", "barracuda-4lp", "cheetah-9lp", "ibm-18es"] {
        let model = Drive::open(name).unwrap().model;
        let points = model.seek.unwrap().table.unwrap();
        let rms = solver_error(&points, points[points.len() - 1].0 + 1).unwrap();
        println!("{name}: {:.1} % rms", rms * 100.0);
        assert!(rms <= 0.10, "{name}: {rms}");
    }
}

/// Validation row V56: the 4 TB disk that Western Digital published with DiskSim.
#[test]
fn a_4_tb_disk_has_its_seeks_and_rates() {
    let drive = Drive::open("wd-4tb-7200").unwrap();
    let reads = random_reads(&drive, 20_000, 1).unwrap();
    let (outer, inner) = sequential_rates(&drive).unwrap();
    println!("seek {:.3} ms, {outer:.1} and {inner:.1} MB/s", reads.seek_ms);
    assert!((reads.seek_ms / 7.29 - 1.0).abs() <= 0.03);
    assert!((reads.longest_seek_ms / 15.7 - 1.0).abs() <= 0.03);
    assert!((outer / 189.0 - 1.0).abs() <= 0.03);
    assert!((inner / 94.0 - 1.0).abs() <= 0.03);
}

/// Validation row V57: the mean over all pairs of cylinders is the datasheet's average, reading and
/// writing.
#[test]
fn solved_curves_have_the_average_of_the_datasheet() {
    for (name, track_to_track_ms, averages) in [
        ("HC310", 0.23, [7.4, 8.2]),
        ("7K4000", 0.15 * 8.2, [8.2, 8.2]),
        ("15K450", 0.15 * 3.3, [3.3, 3.8]),
        ("C15K600", 0.15 * 2.9, [2.9, 3.1]),
    ] {
        for average_ms in averages {
            let figures =
                DatasheetSeek { track_to_track_ms, average_ms, full_stroke_ms: 1.9 * average_ms };
            let mean_ms = solved_average_ms(figures, 200_000).unwrap();
            println!("{name}: {mean_ms:.3} ms for {average_ms}");
            assert!((mean_ms / average_ms - 1.0).abs() <= 0.02);
        }
    }
}

/// Validation rows V58 and V59 on a drive of each kind: the wait is even over a revolution, and
/// reads per second are what seek, half a revolution, overhead and transfer leave.
#[test]
fn waits_are_even_and_reads_add_up() {
    for name in ["cmr-500gb-7200", "hc620-15tb", "st8000as0002", "ultrastar-15k450"] {
        let drive = Drive::open(name).unwrap();
        let reads = random_reads(&drive, 5_000, 3).unwrap();
        println!("{name}: {reads:?}");
        assert!((reads.wait_revolutions - 0.5).abs() <= 0.01, "{name}");
        let critical = KOLMOGOROV_1_PERCENT / (reads.requests as f64).sqrt();
        assert!(reads.wait_distance < critical, "{name}");
        let ratio = reads.per_second / reads.expected_per_second;
        assert!((ratio - 1.0).abs() <= 0.03, "{name}: {ratio}");
    }
}
