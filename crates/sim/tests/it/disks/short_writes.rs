//! Validation row V41: writes in sequence that are too short for a drive-managed disk to take them
//! around its log (Ars Technica, June 2020, page 2).

use imbrex_sim::bench::Subject;
use imbrex_sim::fio::{Direction, Job};
use imbrex_stack::Setting;

/// The rate of writes in sequence behind 4 GiB of them, on an eighth of the drive.
fn rate(settings: &[&str], bytes: u64) -> f64 {
    let settings = settings.iter().map(|text| Setting::parse(text).unwrap());
    let subject = Subject {
        drive: "wd40efax".to_string(),
        settings: settings.collect(),
        seed: 1,
        quick: false,
        traces: None,
    };
    let mut session = subject.scaled_session(8).unwrap();
    let mut job = Job::simple("walk", Direction::Write, false, bytes);
    job.iodepth = 3;
    job.size_bytes = Some(4 << 30);
    subject.run_one(&mut session, &job).unwrap();
    job.offset_bytes = 4 << 30;
    let outcome = subject.run_one(&mut session, &job).unwrap();
    outcome.direction(Direction::Write).bytes_per_s()
}

#[test]
fn short_writes_in_sequence_collapse_and_long_ones_do_not() {
    let (short, long) = (rate(&[], 32 << 10), rate(&[], 512 << 10));
    println!("{short:.0} and {long:.0} bytes/s");
    assert!(short < long / 3.0);
    // The ablation: any stream goes around the log.
    let short = rate(&["translation.bypass_min=0"], 32 << 10);
    println!("{short:.0} bytes/s where any write may go around the log");
    assert!(short > 0.9 * long);
}
