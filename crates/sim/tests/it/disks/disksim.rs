//! Validation rows V52 and bus: the four disks that DiskSim was validated with, against their
//! measurements and the rate of their bus.

use crate::shared_traces::shared_traces;
use imbrex_drives::Drive;
use imbrex_sim::bench::disksim::{Agreement, read_trace, validate};
use imbrex_sim::bench::mechanics::queued_sequential_rate;

/// The files of the library without the table `[bus]`, as other drives are.
fn without_bus(name: &str) -> Drive {
    let text = Drive::text_of_library(name).unwrap();
    let (begin, _) = text.split_once("[bus]").expect("a drive on a bus");
    let begin = begin.to_string();
    Drive::parse("without-bus.toml", &begin).unwrap()
}

#[test]
fn response_times_agree_with_the_validation_traces() {
    let Some(folder) = shared_traces() else {
        return;
    };
    for (name, trace, rms_ms) in [
        ("atlas10k", "atlas10k", 0.80),
        ("barracuda-4lp", "barracuda", 1.05),
        ("cheetah-9lp", "cheetah9LP", 0.32),
        ("ibm-18es", "ibm18es", 0.41),
    ] {
        let path = folder.join(format!("disksim_validate_{trace}.trace.zst"));
        let requests = read_trace(&path).unwrap();
        let drive = Drive::open(name).unwrap();
        for seed in [0, 1] {
            let result = validate(&drive, &requests, seed).unwrap();
            let show = |name: &str, part: Agreement| {
                println!(
                    "{} {name}: {} requests, rms {:.3} ms, mean {:.3} ms for {:.3} ({:+.1} %)",
                    drive.file,
                    part.requests,
                    part.rms_ms,
                    part.model_mean_ms,
                    part.measured_mean_ms,
                    part.mean_error() * 100.0
                );
            };
            show("all", result.all);
            show("reads", result.reads);
            show("writes", result.writes);
            assert!(result.all.rms_ms <= rms_ms);
            assert!(result.all.mean_error().abs() <= 0.05);
            let without = validate(&without_bus(name), &requests, seed).unwrap();
            show("without [bus]", without.all);
            assert!(result.all.rms_ms < without.all.rms_ms);
        }
    }
}

/// Sequential reads are as fast as sectors cross the bus, and without it as fast as they pass the
/// head.
#[test]
fn sequential_reads_share_the_bus() {
    for name in ["atlas10k", "barracuda-4lp", "cheetah-9lp", "ibm-18es"] {
        let drive = Drive::open(name).unwrap();
        let bus = drive.model.bus.as_ref().expect("a drive on a bus");
        let (bytes, ns) = (drive.model.sector_bytes(), bus.read_sector.0.0);
        let expected = bytes as f64 / ns as f64 * 1e3;
        let rate = queued_sequential_rate(&drive).unwrap();
        let without = queued_sequential_rate(&without_bus(name)).unwrap();
        println!("{name}: {rate:.3} MB/s over a bus of {expected:.3}, {without:.3} without");
        assert!((rate / expected - 1.0).abs() <= 0.03);
        assert!(without > 1.03 * expected, "the ablation: no bus");
    }
}
