//! `imbrex drive fit` on drives it has not seen: jobs run on a drive model in virtual time, and what is
//! fitted to their latencies has to be what the drive file says.

use imbrex_core::rng::Rng;
use imbrex_drives::{DatasheetSeek, SeekCurve};
use imbrex_sim::fio::{Direction, Job, Session};
use imbrex_sim::fit::{Fitted, Log, LogEntry, fit};
use imbrex_stack::{BuildOptions, StackConfig};

/// What is left of each drive for the jobs that fill its persistent cache.
const SCALE: u64 = 16;
/// How near a fitted parameter has to be.
const TOLERANCE: f64 = 0.1;

/// Parameters that are put into the file of the ST5000AS0011.
struct Unseen {
    entries: u64,
    persistent_cache_bytes: u64,
    /// Mean size of a band, and how the file says it.
    band_bytes: f64,
    bands: &'static str,
    /// To the next track, average, full stroke.
    seek_ms: [f64; 3],
    rpm: f64,
    seed: u64,
}

impl Unseen {
    /// The drive file.
    fn file(&self, folder: &std::path::Path) -> String {
        let path = folder.join("unseen.toml");
        let [near, average, full] = self.seek_ms;
        let values = [
            ("entries", self.entries.to_string()),
            ("persistent_cache", format!("\"{} B\"", self.persistent_cache_bytes)),
            ("bands", format!("\"{}\"", self.bands)),
            ("track_to_track", format!("\"{near} ms\"")),
            ("average", format!("\"{average} ms\"")),
            ("full_stroke", format!("\"{full} ms\"")),
            ("rpm", format!("{}", self.rpm)),
        ];
        let text = imbrex_drives::Drive::text_of_library("st5000as0011").expect("the drive");
        let lines = text.lines().map(|line| {
            let key = line.split('=').next().unwrap_or_default().trim();
            match values.iter().find(|(name, _)| *name == key) {
                Some((name, value)) => format!("{name} = {value}"),
                None => line.to_string(),
            }
        });
        let text: Vec<String> = lines.collect();
        for (name, value) in &values {
            assert!(text.contains(&format!("{name} = {value}")), "{name} is in the file");
        }
        std::fs::write(&path, text.join("\n")).expect("a file");
        path.to_string_lossy().into_owned()
    }

    fn log(&self, drive: &str, scale: u64, job: &Job) -> Log {
        let config = StackConfig::of_drive(drive, &[]).expect("a drive");
        let options = BuildOptions { scale, ..BuildOptions::simulate(self.seed) };
        let jobs = [job.clone()];
        let mut session = Session::open(&config, &options, &jobs).expect("it fits");
        let outcome = session.run(&jobs).expect("it runs");
        let samples = &outcome.jobs[0].samples;
        assert!(outcome.error().is_none() && !samples.is_empty());
        let entries = samples.iter().map(|sample| LogEntry {
            latency_ns: sample.latency_ns,
            is_write: sample.direction == Direction::Write,
            bytes: u64::from(sample.bytes),
            offset: sample.offset,
        });
        Log { path: format!("{}.log", job.name), entries: entries.collect() }
    }

    /// The three jobs of `docs/fit.md`, on a drive that is smaller but for the seeks.
    fn fitted(&self) -> Fitted {
        let folder = tempfile::tempdir().expect("a folder");
        let drive = self.file(folder.path());
        let job = |name: &str, direction, bytes, count| {
            let mut job = Job::simple(name, direction, true, bytes);
            job.number_ios = Some(count);
            job.random_map = false;
            job.rand_seed = Some(self.seed);
            job.samples = true;
            job
        };
        let reads = job("seek", Direction::Read, 4096, 12_000);
        let entries = self.entries / SCALE;
        let mut small = job("small-writes", Direction::Write, 8192, entries * 5 / 2);
        small.size_bytes = Some(56_000_000_000 / SCALE / 8192 * 8192);
        let fills = (self.persistent_cache_bytes / SCALE) >> 20;
        let large = job("large-writes", Direction::Write, 1 << 20, fills + 200);
        let logs = [
            self.log(&drive, 1, &reads),
            self.log(&drive, SCALE, &small),
            self.log(&drive, SCALE, &large),
        ];
        fit(&logs, None).expect("logs of three kinds")
    }
}

fn near(what: &str, fitted: f64, truth: f64) {
    let error = fitted / truth - 1.0;
    println!("{what}: fitted {fitted:.4}, in the file {truth:.4}, {:+.1} %", error * 100.0);
    assert!(error.abs() <= TOLERANCE, "{what}: {fitted} is not {truth}");
}

#[test]
fn the_parameters_of_drives_it_has_not_seen_come_back() {
    // Drawn anew, so that nobody can have tuned the fit on them; the same on every run.
    let mut rng = Rng::new(20_261_121, 3);
    let mut between = |low: u64, high: u64| low + rng.below(high - low);
    for (bands, mean_mib) in
        [("uniform:17MiB..36MiB", 26.5), ("fixed:20MiB", 20.0), ("fixed:40MiB", 40.0)]
    {
        let average_ms = between(800, 1100) as f64 / 100.0;
        let unseen = Unseen {
            entries: between(90_000, 260_000),
            persistent_cache_bytes: between(15_000_000_000, 33_000_000_000) / 65_536 * 65_536,
            band_bytes: mean_mib * f64::from(1 << 20),
            bands,
            seek_ms: [between(70, 130) as f64 / 100.0, average_ms, average_ms * 2.0],
            rpm: [5400.0, 5980.0, 7200.0][between(0, 3) as usize],
            seed: between(1, 1000),
        };
        let fitted = unseen.fitted();
        let small = fitted.small_writes.as_ref().expect("small writes");
        let scale = SCALE as f64;
        near("entries", small.entries as f64 * scale, unseen.entries as f64);
        assert!(small.entries_are_limit);
        near("mean band", small.band_bytes as f64, unseen.band_bytes);
        let cache = fitted.persistent_cache_bytes.expect("large writes") as f64;
        near("persistent cache", cache * scale, unseen.persistent_cache_bytes as f64);
        let seek = fitted.seek.as_ref().expect("reads");
        near("revolution", seek.revolution_ms, 60_000.0 / unseen.rpm);
        near("average seek", seek.average_ms, unseen.seek_ms[1]);
        let [track_to_track_ms, average_ms, full_stroke_ms] = unseen.seek_ms;
        let figures = DatasheetSeek { track_to_track_ms, average_ms, full_stroke_ms };
        let cylinders = 100_000;
        let truth = SeekCurve::solve(figures, cylinders).expect("a curve");
        for share in [0.02, 0.1, 0.3, 0.6, 1.0] {
            let true_ms = truth.time_ns((share * cylinders as f64) as u64) as f64 / 1e6;
            near(&format!("seek over {share} of the stroke"), seek.at(share), true_ms);
        }
    }
}
