//! What jobs do, built in code.

use imbrex_core::counters::Counter;
use imbrex_core::units::Duration;
use imbrex_drives::OperationKind;
use imbrex_sim::fio::{
    Direction, Job, JobOutcome, Mix, Outcome, RateLimit, Session, SessionError, Think,
};
use imbrex_stack::{BuildOptions, StackConfig};

const CMR: &str = r#"
name = "disk"
[[node]]
kind = "disk"
name = "disk"
drive = "cmr-500gb-7200"
"#;

fn session_of(text: &str, seed: u64, jobs: &[Job]) -> Session {
    let config = StackConfig::from_text("test", text, &[]).expect("a stack");
    Session::open(&config, &BuildOptions::simulate(seed), jobs).expect("a session")
}

fn cmr() -> Session {
    session_of(CMR, 1, &[])
}

fn reads(block: u64, random: bool) -> Job {
    Job::simple("job", Direction::Read, random, block)
}

fn writes(block: u64, random: bool) -> Job {
    Job::simple("job", Direction::Write, random, block)
}

fn run(session: &mut Session, jobs: &[Job]) -> Outcome {
    let outcome = session.run(jobs).expect("jobs that fit");
    assert!(outcome.error().is_none());
    outcome
}

fn of(job: &JobOutcome, direction: Direction) -> (u64, u64) {
    let of = job.direction(direction);
    (of.ios, of.bytes)
}

#[test]
fn a_job_moves_what_it_says_and_no_more() {
    let mut job = reads(8192, true);
    job.size_bytes = Some(1 << 20);
    let outcome = run(&mut cmr(), &[job.clone()]);
    assert_eq!(of(&outcome.jobs[0], Direction::Read), (128, 1 << 20));
    job.loops = 3;
    let outcome = run(&mut cmr(), &[job.clone()]);
    assert_eq!(of(&outcome.jobs[0], Direction::Read), (384, 3 << 20));
    job.io_bytes = Some(100_000);
    job.loops = 1;
    let outcome = run(&mut cmr(), &[job.clone()]);
    assert_eq!(of(&outcome.jobs[0], Direction::Read).0, 13);
    job.number_ios = Some(5);
    let outcome = run(&mut cmr(), &[job]);
    assert_eq!(of(&outcome.jobs[0], Direction::Read), (5, 5 * 8192));
}

#[test]
fn a_mixed_job_has_its_share_of_reads() {
    let mut job = reads(4096, true);
    job.mix = Mix::ReadWrite { read_percent: 30 };
    job.number_ios = Some(4000);
    job.size_bytes = Some(1 << 30);
    let outcome = run(&mut cmr(), &[job]);
    let (read, _) = of(&outcome.jobs[0], Direction::Read);
    let (write, _) = of(&outcome.jobs[0], Direction::Write);
    assert_eq!(read + write, 4000);
    assert!((1100..1300).contains(&read), "{read}");
}

#[test]
fn deeper_queues_make_more_requests_a_second_with_longer_latencies() {
    let rate = |depth: u32, numjobs: u32| {
        let mut job = reads(4096, true);
        job.number_ios = Some(2000 / u64::from(numjobs));
        job.iodepth = depth;
        job.numjobs = numjobs;
        job.group_reporting = true;
        let jobs = [job];
        let outcome = run(&mut cmr(), &jobs);
        let reported = outcome.reported(&jobs);
        assert_eq!(reported.len(), 1);
        assert_eq!(reported[0].jobs, numjobs);
        let read = reported[0].direction(Direction::Read);
        assert_eq!(read.ios, 2000);
        (read.ios_per_s(), read.latency.spread.mean / 1e6)
    };
    let (one, one_ms) = rate(1, 1);
    let (deep, deep_ms) = rate(16, 1);
    let (wide, _) = rate(1, 16);
    assert!((one * one_ms / 1000.0 - 1.0).abs() < 0.01, "Little's law: {one} {one_ms}");
    assert!((deep * deep_ms / 16_000.0 - 1.0).abs() < 0.02, "{deep} {deep_ms}");
    assert!(deep > 1.5 * one, "{deep} {one}");
    assert!((wide / deep - 1.0).abs() < 0.1, "{wide} {deep}");
}

#[test]
fn flushes_come_after_every_so_many_writes() {
    let mut job = writes(4096, false);
    job.size_bytes = Some(256 << 10);
    job.fsync = 4;
    job.end_fsync = true;
    let mut session = cmr();
    let outcome = run(&mut session, &[job]);
    // Real fio 3.33 counts 15 here too: the job is over before the last one is due, and the flush at
    // the end is not counted.
    assert_eq!(outcome.jobs[0].flushes.spread.count, 15);
    let statistics = &session.describe.disks().next().expect("a disk").statistics();
    let flushes = statistics.operations(OperationKind::Flush, imbrex_core::operation::Cause::Host);
    assert_eq!(flushes, 16);
}

#[test]
fn a_synced_write_takes_as_long_as_write_and_flush() {
    let mut job = writes(4096, true);
    job.number_ios = Some(200);
    let cached = run(&mut cmr(), &[job.clone()]);
    job.sync_writes = true;
    let mut session = cmr();
    let synced = run(&mut session, &[job]);
    let statistics = &session.describe.disks().next().expect("a disk").statistics();
    let flushes = statistics.operations(OperationKind::Flush, imbrex_core::operation::Cause::Host);
    assert_eq!(flushes, 200);
    let mean = |outcome: &Outcome| outcome.jobs[0].direction(Direction::Write).latency.spread.mean;
    assert!(mean(&synced) > 4e6, "a seek and a turn: {}", mean(&synced));
    assert!(mean(&cached) < mean(&synced));
    assert_eq!(synced.jobs[0].flushes.spread.count, 0);
}

#[test]
fn runtime_ramp_and_delay_are_kept_to() {
    let mut job = reads(4096, true);
    job.size_bytes = Some(1 << 20);
    job.runtime = Some(Duration::from_ms(2000));
    job.time_based = true;
    job.ramp_time = Duration::from_ms(1000);
    job.start_delay = Duration::from_ms(500);
    job.samples = true;
    let outcome = run(&mut cmr(), &[job.clone()]);
    let done = &outcome.jobs[0];
    assert_eq!(done.started.0, 500_000_000);
    assert!(done.ended.0.abs_diff(3_500_000_000) < 50_000_000, "{:?}", done.ended);
    assert!(done.runtime.0.abs_diff(2_000_000_000) < 50_000_000, "{:?}", done.runtime);
    assert!(done.samples.iter().all(|sample| sample.time_ns >= 1_000_000_000));
    assert_eq!(done.samples.len() as u64, done.ios());
    // Without `time_based` the job ends with its region.
    job.time_based = false;
    job.ramp_time = Duration::ZERO;
    let outcome = run(&mut cmr(), &[job]);
    assert_eq!(outcome.jobs[0].ios(), 256);
}

#[test]
fn thinking_and_rates_slow_a_job_down() {
    let mut job = writes(4096, false);
    job.number_ios = Some(101);
    job.think = Some(Think { pause: Duration::from_ms(50), every: 10, counts_issued: false });
    let outcome = run(&mut cmr(), &[job.clone()]);
    let s = outcome.jobs[0].runtime.as_seconds();
    assert!((0.5..0.6).contains(&s), "{s}");
    job.think = None;
    job.rate = [RateLimit::None, RateLimit::Requests(50), RateLimit::None];
    let outcome = run(&mut cmr(), &[job.clone()]);
    let s = outcome.jobs[0].runtime.as_seconds();
    assert!((1.99..2.1).contains(&s), "{s}");
    job.rate = [RateLimit::Bytes(409_600); 3];
    let outcome = run(&mut cmr(), &[job.clone()]);
    let s = outcome.jobs[0].runtime.as_seconds();
    assert!((0.99..1.1).contains(&s), "{s}");
    job.rate_poisson = true;
    job.number_ios = Some(2001);
    let outcome = run(&mut cmr(), &[job]);
    let s = outcome.jobs[0].runtime.as_seconds();
    assert!((18.0..22.0).contains(&s), "{s}");
}

#[test]
fn a_stonewall_waits_and_an_exit_ends_the_others() {
    let mut first = reads(4096, true);
    first.number_ios = Some(50);
    let mut second = first.clone();
    second.stonewall = true;
    let mut beside = second.clone();
    beside.stonewall = false;
    let outcome = run(&mut cmr(), &[first.clone(), second, beside]);
    let [a, b, c] = &outcome.jobs[..] else { panic!("three jobs") };
    assert_eq!((a.group, b.group, c.group), (0, 1, 1));
    assert_eq!(b.started, a.ended);
    assert_eq!(c.started, a.ended);
    let mut endless = first.clone();
    endless.number_ios = None;
    first.exit_all = true;
    let outcome = run(&mut cmr(), &[endless, first]);
    assert_eq!(outcome.jobs[1].ios(), 50);
    assert!((40..70).contains(&outcome.jobs[0].ios()));
}

#[test]
fn runs_are_repeatable_and_seeds_matter_where_they_should() {
    let offsets = |seed: u64, repeat: bool, rand_seed: Option<u64>| {
        let mut job = reads(4096, true);
        job.number_ios = Some(50);
        job.samples = true;
        job.rand_repeat = repeat;
        job.rand_seed = rand_seed;
        let outcome = run(&mut session_of(CMR, seed, &[]), &[job]);
        let samples = outcome.jobs[0].samples.iter();
        samples.map(|sample| sample.offset).collect::<Vec<_>>()
    };
    assert_eq!(offsets(1, true, None), offsets(2, true, None));
    assert_eq!(offsets(1, false, None), offsets(1, false, None));
    assert_ne!(offsets(1, false, None), offsets(2, false, None));
    assert_ne!(offsets(1, true, Some(5)), offsets(1, true, Some(6)));
}

#[test]
fn a_session_keeps_the_state_of_the_stack_and_time_goes_on() {
    let mut fill = writes(1 << 20, false);
    fill.size_bytes = Some(64 << 20);
    let mut overwrite = writes(8192, true);
    overwrite.size_bytes = Some(64 << 20);
    overwrite.number_ios = Some(500);
    let jobs = [fill, overwrite];
    let config = StackConfig::load("st5000as0011", &[]).expect("a drive of the library");
    let mut session = Session::open(&config, &BuildOptions::simulate(3), &jobs).expect("a session");
    let translation = session.describe.translation().expect("a translation");
    let appended = |session: &Session| {
        let counts = session.engine.stack.counts(translation);
        counts.counter(Counter::PersistentCacheAppendedBlocks)
    };
    run(&mut session, &jobs[..1]);
    let after_fill = appended(&session);
    let now = session.now();
    session.idle(Duration::from_ms(10_000));
    assert_eq!(session.now().since(now), Duration::from_ms(10_000));
    let outcome = run(&mut session, &jobs[1..]);
    assert!(outcome.started.since(now) == Duration::from_ms(10_000));
    assert_eq!(appended(&session) - after_fill, 1000);
}

#[test]
fn a_share_of_touched_bands_is_of_what_the_jobs_touch() {
    let mut job = writes(8192, true);
    job.size_bytes = Some(10 << 30);
    job.number_ios = Some(10);
    let config = StackConfig::load("pore", &[]).expect("a ready-made stack");
    let session = Session::open(&config, &BuildOptions::simulate(1), &[job]).expect("a session");
    let blocks = session.describe.persistent_cache_blocks().expect("a log");
    // 1/256 of 10 GiB and a part of a band.
    assert!((10_240..10_300).contains(&blocks), "{blocks}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut session = cmr();
    let mut refuse = |change: &dyn Fn(&mut Job), words: &str| {
        let mut job = reads(4096, true);
        change(&mut job);
        let error = match session.run(&[job]) {
            Err(SessionError::Job(error)) => error.to_string(),
            other => panic!("{words}: {:?}", other.map(|_| "ran")),
        };
        assert!(error.contains(words), "{error}");
    };
    refuse(&|job| job.size_bytes = Some(1 << 50), "size=1125899906842624");
    refuse(&|job| job.offset_bytes = 1 << 50, "size=");
    refuse(&|job| job.iodepth = 0, "iodepth=0");
    refuse(&|job| job.numjobs = 0, "numjobs=0");
    refuse(&|job| job.time_based = true, "time_based=1");
    refuse(&|job| job.size_bytes = Some(100), "size=100");
    refuse(
        &|job| {
            job.iodepth = 40_000;
            job.numjobs = 2;
        },
        "iodepth=80000",
    );
}

#[test]
fn durable_layers_are_up_before_the_first_job() {
    const CACHED: &str = r#"
name = "cached"
[[node]]
kind = "disk"
name = "disk"
drive = "cmr-500gb-7200"
[[node]]
kind = "disk"
name = "ssd"
drive = "pblaze4"
[[node]]
kind = "write-back-cache"
name = "cache"
below = { flash = "ssd", backing = "disk" }
capacity = "4 MiB"
policy = "lru"
durable = true
"#;
    let mut job = writes(4096, true);
    job.number_ios = Some(100);
    let outcome = run(&mut session_of(CACHED, 1, &[]), &[job]);
    assert_eq!(of(&outcome.jobs[0], Direction::Write), (100, 100 * 4096));
}
