//! Rotating disks against datasheets, published measurements and theory.

use super::rig::{Measured, Rig};
use imbrex_core::disk::Disk;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Cause, Operation};
use imbrex_core::rng::Rng;
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Instant};
use imbrex_drives::{Direction, DiskOptions, Drive, LIBRARY, OperationKind};

const CMR: &str = "cmr-500gb-7200";
const SMR: &str = "st5000as0011";
/// Nanoseconds of a revolution.
const CMR_REVOLUTION_NS: u64 = 60_000_000_000 / 7200;

fn options(write_cache: bool) -> DiskOptions {
    DiskOptions { write_cache: Some(write_cache), ..DiskOptions::default() }
}

/// A drive of the library with a line of its file replaced.
fn changed(drive: &str, from: &str, to: &str) -> Drive {
    let (_, text) = LIBRARY.iter().find(|(name, _)| *name == drive).unwrap();
    let (start, _) =
        text.match_indices('\n').find(|(at, _)| text[at + 1..].starts_with(from)).unwrap();
    let end = start + 1 + text[start + 1..].find('\n').unwrap();
    Drive::parse(drive, &format!("{}\n{to}{}", &text[..start], &text[end..])).unwrap()
}

fn random(
    rig: &mut Rig,
    depth: usize,
    count: usize,
    range_blocks: u64,
    size_blocks: u64,
    operation: Operation,
) -> Measured {
    let mut rng = Rng::new(7, 0);
    let slots = range_blocks / size_blocks;
    let next = |_| (operation, Extent::new(rng.below(slots) * size_blocks, size_blocks));
    rig.closed_loop(depth, count, next)
}

/// Validation row V59: at queue depth 1 a random read takes the average seek, half a revolution,
/// the overhead and the transfer.
#[test]
fn random_reads_take_seek_half_a_turn_and_overhead() {
    for (drive, average_ms, rpm, mean_track_blocks) in
        [(CMR, 8.9, 7200.0, 232.0), (SMR, 10.0, 5980.0, 352.0)]
    {
        let mut rig = Rig::new(drive, options(true));
        let blocks = rig.blocks();
        let measured = random(&mut rig, 1, 20_000, blocks, 1, Operation::Read);
        let revolution_ms = 60_000.0 / rpm;
        let expected_ms = average_ms + revolution_ms * (0.5 + 1.0 / mean_track_blocks) + 0.2;
        println!("{drive}: mean {:.3} ms, expected {expected_ms:.3} ms", measured.mean_ms());
        assert!((measured.mean_ms() / expected_ms - 1.0).abs() < 0.03);
    }
}

fn sequential_mb_per_s(rig: &mut Rig, depth: usize, start: u64, operation: Operation) -> f64 {
    let (count, size) = (1500, 64);
    let next = |i: usize| (operation, Extent::new(start + i as u64 * size, size));
    rig.closed_loop(depth, count, next).per_second() * (size * BLOCK_BYTES) as f64 / 1e6
}

/// The 126 MB/s of the datasheet at the outer edge, however the requests come; half of it inside.
#[test]
fn sequential_rates_follow_the_datasheet_and_the_zones() {
    for (depth, operation, write_cache) in [
        (1, Operation::Read, true),
        (4, Operation::Read, true),
        (1, Operation::WRITE, true),
        (4, Operation::WRITE, false),
    ] {
        let mut rig = Rig::new(CMR, options(write_cache));
        let outer = sequential_mb_per_s(&mut rig, depth, 0, operation);
        let inside = rig.blocks() - 1500 * 64 - 5000;
        let inner = sequential_mb_per_s(&mut rig, depth, inside, operation);
        println!("{operation:?} depth {depth}: {outer:.1} MB/s outside, {inner:.1} inside");
        assert!((outer / 126.0 - 1.0).abs() < 0.03);
        assert!((outer / inner / (1236.0 / 620.0) - 1.0).abs() < 0.03);
    }
}

/// Validation row V19b (aicodix, ST8000AS0002): the first 73.8 GiB are 12 plateaus of 6.1 GiB, one per
/// head, at 187 to 200 MiB/s.
#[test]
fn heads_of_different_density_make_plateaus() {
    let mut rig = Rig::new("st8000as0002", options(true));
    let runs: Vec<_> = {
        let tracks = rig.disk().geometry().tracks.clone().unwrap();
        tracks.runs()[..12].to_vec()
    };
    let (mut lowest, mut highest) = (f64::MAX, 0.0f64);
    for run in runs {
        let gib = (run.tracks * run.blocks_per_track) as f64 / 262_144.0;
        assert!((5.1..7.1).contains(&gib), "{gib} GiB");
        let start = run.first_block + 1000;
        let next = |i: usize| (Operation::WRITE, Extent::new(start + i as u64 * 256, 256));
        let rate = rig.closed_loop(4, 1000, next).per_second();
        println!("{gib:.2} GiB at {rate:.1} MiB/s");
        (lowest, highest) = (lowest.min(rate), highest.max(rate));
    }
    assert!((lowest / 187.0 - 1.0).abs() < 0.03, "{lowest}");
    assert!((highest / 200.0 - 1.0).abs() < 0.03, "{highest}");
}

/// A write that is neither cached nor queued comes too late for the next block and waits a turn.
#[test]
fn synchronous_sequential_writes_lose_a_revolution_each() {
    let mut rig = Rig::new(CMR, options(false));
    let next = |i: usize| (Operation::WRITE, Extent::new(i as u64, 1));
    let measured = rig.closed_loop(1, 1000, next);
    let turns = measured.mean_ms() * 1e6 / CMR_REVOLUTION_NS as f64;
    assert!((turns - 1.0).abs() < 0.05, "{turns}");
}

#[test]
fn shortest_positioning_first_beats_first_come_first_served() {
    let run = |scheduler: &str| {
        let drive = changed(CMR, "scheduler", &format!("scheduler = \"{scheduler}\""));
        let mut rig = Rig::of(&drive, options(true));
        let blocks = rig.blocks();
        random(&mut rig, 32, 10_000, blocks, 1, Operation::Read)
    };
    let (sptf, fcfs) = (run("sptf"), run("fcfs"));
    println!("SPTF {:.0}/s, FCFS {:.0}/s at depth 32", sptf.per_second(), fcfs.per_second());
    assert!(sptf.per_second() > 1.8 * fcfs.per_second());
    let spread = |measured: Measured| {
        let mut latencies = measured.latencies_ns;
        latencies.sort_unstable();
        latencies[latencies.len() * 99 / 100] as f64 / latencies[latencies.len() / 2] as f64
    };
    let (sptf, fcfs) = (spread(sptf), spread(fcfs));
    println!("p99/p50: SPTF {sptf:.2}, FCFS {fcfs:.2}");
    assert!(sptf > 2.5 && fcfs < 1.5, "greed shows in the tail");
}

#[test]
fn an_age_window_bounds_the_tail() {
    let run = |window: u32| {
        let drive = changed(CMR, "age_window", &format!("age_window = {window}"));
        let mut rig = Rig::of(&drive, options(true));
        let blocks = rig.blocks();
        let measured = random(&mut rig, 32, 10_000, blocks, 1, Operation::Read);
        *measured.latencies_ns.iter().max().unwrap()
    };
    let (free, bounded) = (run(0), run(16));
    println!("longest: {} ms without, {} ms with a window", free / 1_000_000, bounded / 1_000_000);
    assert!(bounded * 3 < free * 2);
}

/// Validation row V50 (PORE, figure 3): 1.46 MB/s of 8 KB random writes over 56 GB, 1.05 over all.
#[test]
fn cached_random_writes_reach_the_published_rate() {
    let run = |range_blocks: Option<u64>| {
        let mut rig = Rig::new(CMR, options(true));
        let blocks = range_blocks.unwrap_or(rig.blocks());
        let measured = random(&mut rig, 1, 8_000, blocks, 2, Operation::WRITE);
        measured.per_second() * 8192.0 / 1e6
    };
    let (near, all) = (run(Some(56_000_000_000 / BLOCK_BYTES)), run(None));
    println!(
        "8 KB random writes: {near:.3} MB/s over 56 GB (published 1.46), {all:.3} over the whole disk (1.05)"
    );
    assert!((near / 1.46 - 1.0).abs() < 0.2);
    assert!((all / 1.05 - 1.0).abs() < 0.2);
}

#[test]
fn the_write_cache_answers_early_and_a_flush_waits_for_the_medium() {
    let mut rig = Rig::new(CMR, options(true));
    let far = rig.blocks() / 2;
    let write = rig.one(Operation::WRITE, Extent::new(far, 2), 0);
    assert!(write.latency_ns < 200_000, "{}", write.latency_ns);
    assert_eq!(rig.statistics.busy_total().0, 0, "nothing has moved yet");
    let hit = rig.one(Operation::Read, Extent::new(far + 1, 1), 0);
    assert!(hit.latency_ns < 200_000, "{}", hit.latency_ns);
    assert_eq!(rig.statistics.cache_read_hits(), 1);
    let flush = rig.one(Operation::Flush, Extent::EMPTY, 0);
    assert!(flush.latency_ns > 2_000_000, "{}", flush.latency_ns);
    assert_eq!(rig.statistics.busy(Direction::Write, Cause::Host).0, flush.latency_ns);
    let again = rig.one(Operation::Flush, Extent::EMPTY, 0);
    assert_eq!(again.latency_ns, 200_000, "nothing is left to wait for");
    let forced = rig.one(Operation::WRITE_DURABLE, Extent::new(0, 2), 0);
    assert!(forced.latency_ns > 5_000_000, "{}", forced.latency_ns);

    let mut without = Rig::new(CMR, options(false));
    let write = without.one(Operation::WRITE, Extent::new(far, 2), 0);
    assert!(write.latency_ns > 5_000_000, "{}", write.latency_ns);
}

#[test]
fn cached_writes_reach_the_medium_by_themselves() {
    let mut rig = Rig::new(CMR, options(true));
    for i in 0..3 {
        rig.write(Extent::new(i * 1_000_000, 2), 0);
    }
    assert!(rig.disk().next_event().is_none(), "nobody waits for the medium");
    rig.now = Instant(1_000_000_000);
    rig.one(Operation::Read, Extent::new(9_000_000, 1), 0);
    assert!(rig.statistics.busy(Direction::Write, Cause::Host).0 > 0);
    let flush = rig.one(Operation::Flush, Extent::EMPTY, 0);
    assert_eq!(flush.latency_ns, 200_000, "all was written in the quiet second");
}

#[test]
fn zeroes_cost_a_command() {
    let mut rig = Rig::new(SMR, options(true));
    let zero = Operation::Zero {
        durability: imbrex_core::operation::Durability::Durable,
        may_unmap: true,
    };
    let answer = rig.one(zero, Extent::new(0, 1_000_000), 0);
    assert_eq!(answer.latency_ns, 200_000);
    assert_eq!(rig.statistics.blocks(OperationKind::Zero, Cause::Host), 1_000_000);
    assert_eq!(rig.statistics.busy_total().0, 0);
}

#[test]
fn the_same_run_twice_gives_the_same_times() {
    let run = |seed| {
        let mut rig = Rig::new(SMR, DiskOptions { seed, ..options(true) });
        let (blocks, mut rng) = (rig.blocks(), Rng::new(5, 5));
        let next = |i: usize| {
            let extent = Extent::new(rng.below(blocks - 64), 1 + rng.below(64));
            match i % 7 {
                0..3 => (Operation::Read, extent),
                3..6 => (Operation::WRITE, extent),
                _ => (Operation::Flush, Extent::EMPTY),
            }
        };
        rig.closed_loop(8, 3000, next).latencies_ns
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2), "the seed turns the spindle");
}

#[test]
fn a_scaled_disk_keeps_its_mechanics() {
    let scaled = |scale| DiskOptions { scale, ..options(true) };
    let mut whole = Rig::new(CMR, scaled(1));
    let mut small = Rig::new(CMR, scaled(64));
    assert_eq!(small.blocks(), 500_107_862_016 / 64 / BLOCK_BYTES);
    let mean_ms = |rig: &mut Rig| {
        let blocks = rig.blocks();
        random(rig, 1, 5000, blocks, 1, Operation::Read).mean_ms()
    };
    let (whole_ms, small_ms) = (mean_ms(&mut whole), mean_ms(&mut small));
    assert!((small_ms / whole_ms - 1.0).abs() < 0.03, "{small_ms} and {whole_ms}");
    let rate = sequential_mb_per_s(&mut small, 1, 0, Operation::Read);
    assert!((rate / 126.0 - 1.0).abs() < 0.03, "{rate}");
}

/// The medium of a drive-managed disk holds the user's capacity in bands of whole tracks with a
/// guard each, the persistent cache and two scratch bands, whichever of the three ways to cut bands
/// is chosen.
#[test]
fn the_medium_of_a_drive_managed_disk_has_room_for_its_bands() {
    for scale in [1, 256] {
        for smallest_mib in [17, 18] {
            let drive = Drive::open(SMR).unwrap();
            let conventional = BlockCount(20_000_000_000 / scale / BLOCK_BYTES);
            let options = DiskOptions {
                scale,
                conventional: vec![Extent::new(0, conventional.0)],
                ..DiskOptions::default()
            };
            let rig = Rig::of(&drive, options);
            let tracks = rig.disk().geometry().tracks.clone().unwrap();
            assert!(tracks.conventional_prefix() >= conventional);
            let mut rng = Rng::new(1, 0);
            let mut track = tracks.track_of(tracks.conventional_prefix().0);
            let user = drive.model.user_blocks(scale).0;
            let mut placed = 0;
            while placed < user + 2 * (36 << 8) {
                // All of 18 MiB is the worst that the fixed and the ascending bands come to.
                let mib = if smallest_mib == 17 { 17 + rng.below(20) } else { 18 };
                let band = mib << 8;
                let mut held = 0;
                while held < band {
                    held += tracks.extent_of(track).blocks.0;
                    track += 1;
                }
                track += tracks.overlap_tracks;
                placed += band;
                assert!(track < tracks.tracks(), "scale {scale}: {placed} of {user} blocks fit");
            }
        }
    }
}
