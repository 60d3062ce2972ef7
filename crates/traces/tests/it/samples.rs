//! The sample traces beside the repository: the figures of their table.

use imbrex_traces::{BlockRule, Format, ReadOptions, TimeUnit, TraceInfo, characterise, open};

use crate::samples;

fn info(name: &str, options: &ReadOptions, rule: BlockRule) -> Option<TraceInfo> {
    let path = samples()?.join(name);
    let reader = open(path.to_str().unwrap(), options).unwrap_or_else(|error| panic!("{error}"));
    Some(characterise(reader, rule).unwrap_or_else(|error| panic!("{error}")))
}

fn near(value: f64, expected: f64, digits: i32) {
    assert!((value - expected).abs() <= 0.5001 * 10f64.powi(-digits), "{value} is not {expected}");
}

#[test]
fn msr_rsrch_1() {
    let options = ReadOptions { sha256: true, ..ReadOptions::default() };
    let Some(found) = info("msr_rsrch_1.csv.zst", &options, BlockRule::Touched) else {
        return;
    };
    assert_eq!(found.requests, 13_780);
    near(found.write_percent, 99.70, 2);
    near(found.duration_s.unwrap(), 576_558.0, 0);
    near(found.unique_bytes as f64 / 1e9, 0.1160, 4);
    assert_eq!(
        found.sha256.as_deref(),
        Some("0d39ea988f775aa71db48a9dae2907e2ede5f5c13d787333c94cb1421cbd7f94")
    );
    assert_eq!(found.counts.skipped.total(), 0);
    // Le's thesis: 99.98 % of the blocks written, 4.57 % updated, with blocks counted by size.
    let by_size = info("msr_rsrch_1.csv.zst", &options, BlockRule::Size).unwrap();
    near(by_size.written_blocks_percent, 99.979, 3);
    near(by_size.updated_blocks_percent, 4.573, 3);
}

#[test]
fn msr_wdev_1() {
    let Some(found) = info("msr_wdev_1.csv.zst", &ReadOptions::default(), BlockRule::Touched)
    else {
        return;
    };
    assert_eq!((found.requests, found.write.requests), (1055, 1055));
    near(found.duration_s.unwrap(), 595_003.0, 0);
    near(found.unique_bytes as f64 / 1e9, 0.0015, 4);
}

#[test]
fn cloudphysics() {
    let Some(found) =
        info("cloudphysics_libcachesim.csv.zst", &ReadOptions::default(), BlockRule::Touched)
    else {
        return;
    };
    assert_eq!(found.requests, 113_872);
    near(found.write_percent, 58.75, 2);
    near(found.duration_s.unwrap(), 7200.09, 2);
    near(found.unique_bytes as f64 / 1e9, 1.0881, 4);
    near(found.write.unique_bytes as f64 / 1e9, 0.8449, 4);
}

#[test]
fn financial1_as_spc_and_as_ssdsim() {
    let Some(spc) =
        info("umass_Financial1_first949.spc.zst", &ReadOptions::default(), BlockRule::Touched)
    else {
        return;
    };
    assert_eq!(spc.requests, 949);
    near(spc.write_percent, 80.72, 2);
    near(spc.duration_s.unwrap(), 28.44, 2);
    near(spc.unique_bytes as f64 / 1e9, 0.0016, 4);
    let nanoseconds = ReadOptions {
        format: Some(Format::DiskSim),
        time_unit: Some(TimeUnit::Nanoseconds),
        ..ReadOptions::default()
    };
    let ssdsim =
        info("umass_Financial1_first10k.ssdsim.ascii.zst", &nanoseconds, BlockRule::Touched)
            .unwrap();
    assert_eq!((ssdsim.requests, ssdsim.devices), (10_000, 22));
    near(ssdsim.write_percent, 59.23, 2);
    near(ssdsim.duration_s.unwrap(), 259.6, 1);
    near(ssdsim.unique_bytes as f64 / 1e9, 0.0284, 4);
}

#[test]
fn websearch_as_mqsim() {
    let nanoseconds = ReadOptions {
        format: Some(Format::DiskSim),
        time_unit: Some(TimeUnit::Nanoseconds),
        ..ReadOptions::default()
    };
    let Some(found) = info("mqsim_wsrch-small.trace.zst", &nanoseconds, BlockRule::Touched) else {
        return;
    };
    assert_eq!((found.requests, found.devices), (24_783, 6));
    near(found.write_percent, 0.02, 2);
    near(found.unique_bytes as f64 / 1e9, 0.3810, 4);
}

#[test]
fn arc_pages() {
    let Some(oltp) = info("arc_OLTP.lis.zst", &ReadOptions::default(), BlockRule::Touched) else {
        return;
    };
    assert_eq!((oltp.requests, oltp.read.bytes / 512), (914_145, 914_145));
    assert_eq!(oltp.duration_s, None);
    let p3 = info("arc_P3.lis.zst", &ReadOptions::default(), BlockRule::Touched).unwrap();
    assert_eq!((p3.requests, p3.read.bytes / 512), (238_578, 3_912_296));
}

#[test]
fn hplajw_as_srt() {
    let Some(found) =
        info("hplajw_1992_1week.srt.zst", &ReadOptions::default(), BlockRule::Touched)
    else {
        return;
    };
    assert_eq!(found.requests, 44_519);
    near(found.write_percent, 70.71, 2);
    near(found.duration_s.unwrap(), 603_065.0, 0);
    near(found.unique_bytes as f64 / 1e9, 0.0273, 4);
}
