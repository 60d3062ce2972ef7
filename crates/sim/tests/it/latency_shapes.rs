//! What every histogram of a shingled drive should show (the features that the validation of the models
//! lists): the modes of its random writes, the plateau of its reads and what a scheduler does to their
//! tail, rates before and after the cliff, and what an idle gap does.

use imbrex_core::counters::Gauge;
use imbrex_core::units::Duration;
use imbrex_drives::{Drive, LIBRARY};
use imbrex_sim::bench::mechanics::queued_random_reads;
use imbrex_sim::fio::{Direction, Job, Session};
use imbrex_stack::{BuildOptions, StackConfig};

/// What is left of each drive where its cliff has to be passed.
const SCALE: u64 = 64;
const DRIVE_MANAGED: [&str; 2] = ["st5000as0011", "st8000as0002"];
/// A revolution of both, ms.
const TURN_MS: f64 = 60_000.0 / 5980.0;
/// Both begin to clean after a second without a request.
const SHORT_PAUSE: Duration = Duration::from_ms(900);
const MIB: u64 = 1 << 20;

fn session(drive: &str, scale: u64) -> Session {
    let config = StackConfig::of_drive(drive, &[]).expect("a drive of the library");
    let options = BuildOptions { scale, ..BuildOptions::simulate(1) };
    Session::open(&config, &options, &[]).expect("a session")
}

/// Latencies in ms of a job at queue depth 1, in order.
fn latencies_ms(session: &mut Session, job: &Job) -> Vec<f64> {
    let mut job = job.clone();
    job.samples = true;
    let outcome = session.run(&[job]).expect("a job that fits");
    assert!(outcome.error().is_none());
    let samples = &outcome.jobs[0].samples;
    samples.iter().map(|s| s.latency_ns as f64 / 1e6).collect()
}

fn job(direction: Direction, bytes: u64, requests: u64) -> Job {
    let mut job = Job::simple("job", direction, true, bytes);
    job.number_ios = Some(requests);
    job.random_map = false;
    job
}

fn share(values: &[f64], from_ms: f64, to_ms: f64) -> f64 {
    let inside = values.iter().filter(|ms| (from_ms..to_ms).contains(*ms));
    inside.count() as f64 / values.len() as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// Feature 1. Small random writes are quick (mode A) or wait for a clean (mode B); the drive that saves
/// its map does so every 240 records (mode C). Next to nothing lies between.
#[test]
fn random_writes_are_quick_or_wait_for_a_clean() {
    for drive in DRIVE_MANAGED {
        let mut session = session(drive, SCALE);
        let mut writes = job(Direction::Write, 4096, 20_000);
        writes.size_bytes = Some(10 << 30);
        let all = latencies_ms(&mut session, &writes);
        let quick = share(&all, 0.0, 60.0);
        let between = share(&all, 60.0, 250.0);
        let cleans: Vec<f64> = all[4000..].iter().copied().filter(|ms| *ms >= 250.0).collect();
        let (median, most) = (percentile(&cleans, 0.5), percentile(&cleans, 0.99));
        println!(
            "{drive}: {:.2} % under 60 ms, {:.3} % from 60 to 250 ms, cleans {median:.0} ms in the \
             median, 99 % within {most:.0} ms",
            quick * 100.0,
            between * 100.0
        );
        assert!(quick > 0.8, "{drive}: {quick}");
        assert!(between < 0.001, "{drive}: {between}");
        assert!(cleans.len() > 100, "{drive}: {}", cleans.len());
        assert!((300.0..=2000.0).contains(&median), "{drive}: {median}");
        assert!(most <= 2000.0, "{drive}: {most}");
    }
}

/// Mode C: before the first clean the only long writes are those that save the map, at an exact period.
#[test]
fn the_map_is_saved_every_240_records() {
    let mut session = session("st8000as0002", SCALE);
    let all = latencies_ms(&mut session, &job(Direction::Write, 4096, 2400));
    let long: Vec<usize> = (1..=all.len()).filter(|n| all[n - 1] >= 60.0).collect();
    println!("writes that took 60 ms or more: {long:?}");
    assert!(long.len() >= 9, "{long:?}");
    assert!(long.windows(2).all(|pair| pair[1] - pair[0] == 240), "{long:?}");
    assert!(long.iter().all(|n| (250.0..=1200.0).contains(&all[n - 1])));
    // A drive without such a journal has no long write at all before it cleans.
    let mut other = self::session("st5000as0011", SCALE);
    let all = latencies_ms(&mut other, &job(Direction::Write, 4096, 2400));
    assert!(all.iter().all(|ms| *ms < 60.0));
}

/// Mode A: a synced write that is appended to the log takes whole turns of the platters.
#[test]
fn synced_appends_take_whole_turns() {
    let mut session = session("st5000as0011", 1);
    let mut writes = job(Direction::Write, 4096, 500);
    writes.sync_writes = true;
    let all = latencies_ms(&mut session, &writes);
    let off = |ms: &f64| (ms / TURN_MS - (ms / TURN_MS).round()).abs();
    let whole = all.iter().filter(|ms| off(ms) < 0.05).count();
    println!("{whole} of {} synced appends take whole turns", all.len());
    assert!(whole > 490, "{whole}");
}

/// Feature 2. Reads in a narrow range at queue depth 1 differ by the angle alone: even over a turn.
#[test]
fn reads_lie_even_over_a_turn() {
    for drive in DRIVE_MANAGED {
        let mut session = session(drive, 1);
        let mut reads = job(Direction::Read, 4096, 6000);
        reads.offset_bytes = 1 << 40;
        reads.size_bytes = Some(10 << 30);
        let all = latencies_ms(&mut session, &reads);
        let low = percentile(&all, 0.01);
        // A percent at each end is left out, and a millisecond of seeks blurs the edges.
        let span = percentile(&all, 0.99) - low;
        println!(
            "{drive}: 1 % within {low:.2} ms, 99 % {span:.2} ms later, a turn is {TURN_MS:.2} ms"
        );
        assert!((0.95..=1.15).contains(&(span / TURN_MS)), "{drive}: {span}");
        for eighth in 0..8 {
            let from = low + 1.0 + f64::from(eighth) * (TURN_MS - 1.0) / 8.0;
            let part = share(&all, from, from + (TURN_MS - 1.0) / 8.0);
            let even = (TURN_MS - 1.0) / 8.0 / TURN_MS;
            assert!((part / even - 1.0).abs() < 0.2, "{drive}, {eighth}: {part}");
        }
    }
}

/// Feature 2. With 16 reads in flight the shortest positioning time first starves some; first come,
/// first served does not, and makes all of them slow.
#[test]
fn a_scheduler_trades_the_tail_for_the_median() {
    let text = LIBRARY.iter().find(|(name, _)| *name == "hc620-15tb").expect("a drive").1;
    let ratio = |scheduler: &str| {
        let drive = Drive::parse("hc620", &text.replace("\"sptf\"", scheduler)).expect("a drive");
        let run = queued_random_reads(&drive, 64, 16, None, 20_000, 1).expect("reads");
        let (p50, p99) = (run.percentile_ms(50.0), run.percentile_ms(99.0));
        println!("{scheduler}: median {p50:.0} ms, 99 % {p99:.0} ms, ratio {:.2}", p99 / p50);
        p99 / p50
    };
    let (shortest, first) = (ratio("\"sptf\""), ratio("\"fcfs\""));
    assert!((5.8 * 0.75..=5.8 * 1.25).contains(&shortest), "measured 5.8: {shortest}");
    assert!((1.0..=1.6).contains(&first), "about 1.2: {first}");
}

/// Feature 3. Until the cliff a drive is as quick as at the start; from there on a small write takes
/// longer in proportion to the range, and large writes move more the larger they are.
#[test]
fn rates_are_flat_before_the_cliff_and_fall_with_the_range_behind_it() {
    for drive in DRIVE_MANAGED {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for gib in [1u64, 2, 4, 8, 14] {
            let mut session = session(drive, SCALE);
            let mut writes = job(Direction::Write, 8192, 14_000);
            writes.size_bytes = Some(gib << 30);
            let all = latencies_ms(&mut session, &writes);
            // Whole periods of the journal, before the first of 3125 entries could be short.
            let windows: Vec<f64> = all[240..2640].chunks(480).map(mean).collect();
            let usual = mean(&windows);
            assert!(
                windows.iter().all(|window| (window / usual - 1.0).abs() < 0.1),
                "{drive}, {gib} GiB: {windows:?}"
            );
            points.push((gib as f64, mean(&all[7000..])));
        }
        // The line through the points, by least squares.
        let count = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
        let (x, y) = (x / count, y / count);
        let cross: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        let slope = cross / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
        let off = |p: &(f64, f64)| ((y + slope * (p.0 - x)) / p.1 - 1.0).abs();
        println!("{drive}: ms a write by GiB {points:.2?}, {slope:.2} ms for each GiB");
        assert!(slope > 0.0);
        // The first point lies near the intercept, where a share says little.
        assert!(points[1..].iter().all(|p| off(p) < 0.1), "{drive}: {points:?}");
    }
}

/// Feature 3. Each large write behind the cliff costs about a clean, whatever its length.
#[test]
fn behind_the_cliff_larger_writes_move_more() {
    for drive in DRIVE_MANAGED {
        let rates: Vec<f64> = [1u64, 4, 16]
            .into_iter()
            .map(|mib| {
                let mut session = session(drive, SCALE);
                let all = latencies_ms(&mut session, &job(Direction::Write, mib * MIB, 2048 / mib));
                let after = &all[all.len() / 2..];
                mib as f64 / mean(after) * 1e3
            })
            .collect();
        println!("{drive}: MiB/s in writes of 1, 4 and 16 MiB {rates:.1?}");
        assert!(rates[1] > rates[0] * 1.5 && rates[2] > rates[1] * 1.5, "{rates:?}");
    }
}

/// Feature 4. A pause longer than the trigger empties the log step by step; shorter ones leave it.
#[test]
fn only_pauses_above_the_trigger_empty_the_log() {
    for drive in DRIVE_MANAGED {
        let mut session = session(drive, SCALE);
        let translation = session.describe.translation().expect("a translation");
        let entries = |session: &Session| {
            let counts = session.engine.stack.counts(translation);
            counts.gauge(Gauge::PersistentCacheEntries)
        };
        let mut writes = job(Direction::Write, 4096, 100);
        writes.size_bytes = Some(4 << 30);
        latencies_ms(&mut session, &writes);
        let written = entries(&session);
        assert!(written > 90, "{drive}: {written}");
        let mut read = job(Direction::Read, 4096, 1);
        read.offset_bytes = 8 << 30;
        for _ in 0..50 {
            session.idle(SHORT_PAUSE);
            latencies_ms(&mut session, &read);
        }
        assert_eq!(entries(&session), written, "{drive}: after short pauses");
        let mut last = written;
        let mut steps = 0;
        for _ in 0..100_000 {
            session.idle(Duration::from_ms(100));
            let now = entries(&session);
            assert!(now <= last, "{drive}: {last} became {now}");
            steps += u32::from(now < last);
            last = now;
            if now == 0 {
                break;
            }
        }
        println!("{drive}: {written} entries went in {steps} steps");
        assert_eq!(last, 0, "{drive}");
        assert!(steps > 10, "{drive}: {steps}");
    }
}
