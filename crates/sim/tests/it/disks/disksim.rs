//! Validation row V52: the four disks that DiskSim was validated with, against their measurements.

use crate::shared_traces::shared_traces;
use imbrex_drives::Drive;
use imbrex_sim::bench::disksim::{Agreement, read_trace, validate};

#[test]
fn response_times_agree_with_the_validation_traces() {
    let Some(folder) = shared_traces() else {
        return;
    };
    for (drive, trace, rms_ms) in [
        ("atlas10k", "atlas10k", 0.80),
        ("barracuda-4lp", "barracuda", 1.05),
        ("cheetah-9lp", "cheetah9LP", 0.32),
        ("ibm-18es", "ibm18es", 0.41),
    ] {
        let path = folder.join(format!("disksim_validate_{trace}.trace.zst"));
        let requests = read_trace(&path).unwrap();
        let drive = Drive::open(drive).unwrap();
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
        }
    }
}
