//! What a trim does for a drive-managed disk: when all of a used drive was trimmed, it writes as one
//! that was never written.

use imbrex_sim::bench::Subject;
use imbrex_sim::fio::{Direction, Job, Session};
use imbrex_stack::Setting;

/// By how much the drive is divided: 3,125 entries are left of its log.
const SCALE: u64 = 64;
/// Fewer writes than the log has entries.
const BEFORE_THE_CLIFF: u64 = 2_500;
const BEHIND_IT: u64 = 1_000;
/// Quarters of a band.
const TRIMMED_BYTES: u64 = 64 << 20;
const STREAM_BYTES: u64 = 1 << 20;
const STREAMED_BYTES: u64 = 8 << 30;

/// Rates in bytes a second.
#[derive(Debug)]
struct Rates {
    fresh_random: f64,
    used_random: f64,
    trimmed_random: f64,
    fresh_stream: f64,
    used_stream: f64,
    trimmed_stream: f64,
}

/// A drive of the library and what is asked of it.
struct Rig {
    subject: Subject,
    session: Session,
}

impl Rig {
    fn new(trim: &str) -> Rig {
        let setting = Setting::parse(&format!("translation.trim={trim}")).unwrap();
        let subject = Subject {
            drive: "wd40efax".to_string(),
            settings: vec![setting],
            seed: 1,
            quick: false,
            traces: None,
        };
        let session = subject.scaled_session(SCALE).unwrap();
        Rig { subject, session }
    }

    fn run(&mut self, direction: Direction, job: &Job) -> f64 {
        let outcome = self.subject.run_one(&mut self.session, job).unwrap();
        outcome.direction(direction).bytes_per_s()
    }

    fn random(&mut self, writes: u64) -> f64 {
        let mut job = Job::simple("random", Direction::Write, true, 4096);
        job.number_ios = Some(writes);
        job.rand_repeat = false;
        self.run(Direction::Write, &job)
    }

    fn stream(&mut self, bytes: u64) -> f64 {
        let mut job = Job::simple("stream", Direction::Write, false, STREAM_BYTES);
        job.size_bytes = Some(bytes);
        self.run(Direction::Write, &job)
    }

    fn whole_bytes(&self, unit: u64) -> u64 {
        self.session.device_bytes() / unit * unit
    }

    fn trim_all(&mut self) {
        let mut job = Job::simple("trim", Direction::Trim, false, TRIMMED_BYTES);
        job.size_bytes = Some(self.whole_bytes(TRIMMED_BYTES));
        self.run(Direction::Trim, &job);
    }
}

/// A drive is streamed to from end to end, written at random beyond the cliff, trimmed, and written
/// again.
fn rates(trim: &str) -> Rates {
    let mut rig = Rig::new(trim);
    let fresh_stream = rig.stream(STREAMED_BYTES);
    rig.stream(rig.whole_bytes(STREAM_BYTES));
    let fresh_random = rig.random(BEFORE_THE_CLIFF);
    rig.random(BEFORE_THE_CLIFF);
    let used_random = rig.random(BEHIND_IT);
    let used_stream = rig.stream(STREAMED_BYTES);
    rig.random(BEFORE_THE_CLIFF);
    rig.trim_all();
    let trimmed_stream = rig.stream(STREAMED_BYTES);
    let trimmed_random = rig.random(BEFORE_THE_CLIFF);
    Rates { fresh_random, used_random, trimmed_random, fresh_stream, used_stream, trimmed_stream }
}

#[test]
fn a_trimmed_drive_writes_as_a_fresh_one() {
    let rates = rates("frees");
    println!("{rates:.0?}");
    assert!(rates.used_random < rates.fresh_random / 100.0);
    assert!(rates.used_stream < rates.fresh_stream / 2.0);
    assert!((rates.trimmed_random / rates.fresh_random - 1.0).abs() < 0.1);
    assert!((rates.trimmed_stream / rates.fresh_stream - 1.0).abs() < 0.1);
}

/// The ablations: a trim that frees the log alone, and a drive that is sent zeroes.
#[test]
fn without_what_it_frees_a_trimmed_drive_is_a_used_one() {
    let from_log = rates("from-log");
    println!("from-log: {from_log:.0?}");
    assert!((from_log.trimmed_random / from_log.fresh_random - 1.0).abs() < 0.1);
    assert!(from_log.trimmed_stream < from_log.fresh_stream / 2.0);
    let none = rates("none");
    println!("none: {none:.0?}");
    assert!(none.trimmed_stream < none.fresh_stream / 2.0);
}
