//! Measurements of real drives that others published.

use super::rig::Rig;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_sim::disk::{DatasheetSeek, DiskOptions, Drive, SeekCurve};
use std::path::PathBuf;

/// HGST HC620, 15 TB, as far as the two measurements below depend on it. Seek times are the
/// datasheet's, tracks follow from 235 to 237 MiB/s of sequential writes.
const HC620: &str = r#"
name = "HGST HC620"
media = "conventional"
capacity = "15000173281280 B"
interface = "600 MB/s"
write_cache = true

[platters]
rpm = 7200
heads = 16
zones = 24
outer_track = "2308 KiB"
inner_track = "1152 KiB"
layout = "surface-by-surface"
head_switch = "0.8 ms"
write_settle = "0.3 ms"

[seek]
track_to_track = "1 ms"
average = "7.7 ms"
full_stroke = "16 ms"

[queue]
command_overhead = "0.2 ms"
depth = 32
scheduler = "sptf"
guard = "0.5 ms"
age_window = 0

[cache]
latency = "0.1 ms"
write_buffer = "16 MiB"
write_segments = 8
destage_after = "2 ms"
read_ahead = "1 MiB"
"#;

/// Validation rows V34 and V35: random 256 KiB reads, 16 in flight, over the whole disk and over
/// its first 140.66 GB (zonedstorage.io, fio on the HC620). One set of parameters for both.
#[test]
fn queued_random_reads_have_the_published_latencies() {
    let drive = Drive::parse("hc620", HC620).unwrap();
    for (range_bytes, iops, p50_ms, p99_ms, tolerances) in [
        (15_000_173_281_280, 118.0, 96.0, 558.0, [0.10, 0.15, 0.25]),
        (140_660_000_000u64, 215.0, 47.0, 409.0, [0.15, 0.15, 0.25]),
    ] {
        let mut rig = Rig::of(&drive, DiskOptions::default());
        let (mut rng, size) = (Rng::new(1, 2), 64);
        let slots = range_bytes / BLOCK_BYTES / size;
        let next = |_| (Operation::Read, Extent::new(rng.below(slots) * size, size));
        let measured = rig.closed_loop(16, 20_000, next);
        let mut latencies_ns = measured.latencies_ns.clone();
        latencies_ns.sort_unstable();
        let percentile = |q: usize| latencies_ns[latencies_ns.len() * q / 100] as f64 / 1e6;
        let seen = [measured.per_second(), percentile(50), percentile(99)];
        println!(
            "{range_bytes} bytes: {seen:.1?}, published {:?}",
            [iops, p50_ms, p99_ms]
        );
        for ((seen, published), tolerance) in
            seen.iter().zip([iops, p50_ms, p99_ms]).zip(tolerances)
        {
            assert!(
                (seen / published - 1.0).abs() <= tolerance,
                "{seen} for {published}"
            );
        }
    }
}

/// Where the reference drives are, or `None` after saying so.
fn shared_drives() -> Option<PathBuf> {
    let named = std::env::var_os("IMBREX_SHARED").map(PathBuf::from);
    let above = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut candidates = named
        .into_iter()
        .chain(above.ancestors().map(|folder| folder.join("shared")))
        .map(|shared| shared.join("drives"));
    let found = candidates.find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no folder shared/drives above the repository and no IMBREX_SHARED");
    }
    found
}

/// A drive as DiskSim's authors measured it.
#[derive(serde::Deserialize)]
struct MeasuredDrive {
    name: String,
    cylinders: u64,
    mechanics: MeasuredMechanics,
}

#[derive(serde::Deserialize)]
struct MeasuredMechanics {
    seek_curve: Vec<(u64, f64)>,
}

/// Validation row V53: the curve solved from three figures of a measured curve, against all of
/// that curve. Root mean square of the difference, relative to the mean seek.
#[test]
fn three_figures_give_back_the_measured_seek_curves() {
    let Some(folder) = shared_drives() else {
        return;
    };
    for drive in ["atlas10k", "barracuda", "cheetah9lp", "ibm18es"] {
        let path = folder.join(format!("disksim-{drive}.toml"));
        let text = std::fs::read_to_string(path).unwrap();
        let drive: MeasuredDrive = toml::from_str(&text).unwrap();
        let points = &drive.mechanics.seek_curve;
        let cylinders = drive.cylinders;
        let measured = SeekCurve::table(points, cylinders).unwrap();
        let average_ms = measured.mean_ns(cylinders) / 1e6;
        let figures = DatasheetSeek {
            track_to_track_ms: points[0].1,
            average_ms,
            full_stroke_ms: points[points.len() - 1].1,
        };
        let solved = SeekCurve::solve(figures, cylinders).unwrap();
        let squares = (1..cylinders).map(|distance| {
            let error = solved.time_ns(distance) as f64 - measured.time_ns(distance) as f64;
            let weight = (cylinders - distance) as f64;
            (error / 1e6).powi(2) * weight
        });
        let weights = (cylinders * (cylinders - 1) / 2) as f64;
        let rms = (squares.sum::<f64>() / weights).sqrt() / average_ms;
        println!("{}: {:.1} % rms", drive.name, rms * 100.0);
        assert!(rms <= 0.10, "{}: {rms}", drive.name);
    }
}
