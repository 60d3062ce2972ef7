//! What the mechanics of a drive model come to, as numbers to set beside published ones.

use super::closed_loop::{ClosedLoop, Run};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::{DatasheetSeek, DiskOptions, Drive, DriveError, SeekCurve};

/// Critical value of the Kolmogorov-Smirnov distance times the root of the sample, at p = 0.01.
pub const KOLMOGOROV_1_PERCENT: f64 = 1.628;

/// Reads of one place after another.
#[derive(Clone, Copy)]
struct Sequence {
    /// Length of a read.
    blocks: u64,
    /// How many.
    requests: usize,
    /// How many are in flight at a time.
    depth: usize,
}

/// 256 KiB, one at a time.
const ONE_AT_A_TIME: Sequence = Sequence { blocks: 64, requests: 1500, depth: 1 };

/// 1 MiB, four in flight: long enough for the overhead of a command to be below a hundredth of the
/// transfer on a bus of 5 MB/s.
const FOUR_AT_A_TIME: Sequence = Sequence { blocks: 256, requests: 100, depth: 4 };

impl Sequence {
    /// Megabytes (10^6) per second from block `start` on.
    fn rate(self, disk: &mut ClosedLoop, start: u64) -> f64 {
        let next = |i: usize| {
            let at = start + i as u64 * self.blocks;
            (Operation::Read, Extent::new(at, self.blocks))
        };
        let run = disk.run(self.depth, self.requests, next);
        run.per_second() * (self.blocks * BLOCK_BYTES) as f64 / 1e6
    }
}

/// Random reads of 4 KiB over the whole disk, one at a time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomReads {
    /// Mean response in milliseconds.
    pub response_ms: f64,
    /// Mean time of the arm in milliseconds, head switches included.
    pub seek_ms: f64,
    /// Longest time of the arm in milliseconds.
    pub longest_seek_ms: f64,
    /// Mean wait for the block to come round, in revolutions.
    pub wait_revolutions: f64,
    /// Kolmogorov-Smirnov distance of the waits from an even distribution over a revolution.
    pub wait_distance: f64,
    /// Requests per second.
    pub per_second: f64,
    /// Requests per second that follow from mean seek, half a revolution, overhead and transfer.
    pub expected_per_second: f64,
    /// Requests made.
    pub requests: usize,
}

/// Measures random reads.
///
/// # Errors
/// When no disk can be made of the drive, or it does not rotate.
pub fn random_reads(drive: &Drive, requests: usize, seed: u64) -> Result<RandomReads, DriveError> {
    let (Some(platters), Some(queue)) = (&drive.model.platters, &drive.model.queue) else {
        return Err(does_not_rotate(drive));
    };
    let revolution_ns = (60_000_000_000 / platters.rpm) as f64;
    let overhead_ns = queue.command_overhead.0.0 as f64;
    let mut disk = ClosedLoop::new(drive, &options(seed))?;
    let blocks = disk.blocks();
    let mut rng = Rng::new(seed, 1);
    let statistics = disk.statistics.clone();
    let mut waits = Vec::with_capacity(requests);
    let (mut waited_ns, mut sought_ns, mut longest_ns) = (0, 0, 0);
    let mut sum_ns = 0.0;
    for _ in 0..requests {
        let response = disk.one(Operation::Read, Extent::new(rng.below(blocks), 1));
        sum_ns += response.0 as f64;
        let total_ns = statistics.rotation_time().0;
        waits.push((total_ns - waited_ns) as f64 / revolution_ns);
        waited_ns = total_ns;
        let total_ns = statistics.seek_time().0;
        longest_ns = longest_ns.max(total_ns - sought_ns);
        sought_ns = total_ns;
    }
    waits.sort_by(f64::total_cmp);
    let n = requests as f64;
    let distances = waits.iter().enumerate().map(|(i, wait)| {
        let (below, above) = (i as f64 / n, (i + 1) as f64 / n);
        (wait - below).abs().max((wait - above).abs())
    });
    let seek_ns = statistics.seek_time().0 as f64 / n;
    let transfer_ns = statistics.transfer_time().0 as f64 / n;
    let expected_ns = seek_ns + revolution_ns / 2.0 + overhead_ns + transfer_ns;
    Ok(RandomReads {
        response_ms: sum_ns / n / 1e6,
        seek_ms: seek_ns / 1e6,
        longest_seek_ms: longest_ns as f64 / 1e6,
        wait_revolutions: waits.iter().sum::<f64>() / n,
        wait_distance: distances.fold(0.0, f64::max),
        per_second: n / sum_ns * 1e9,
        expected_per_second: 1e9 / expected_ns,
        requests,
    })
}

/// Sequential reads at the first and the last blocks, in megabytes (10^6) per second.
///
/// # Errors
/// When no disk can be made of the drive.
pub fn sequential_rates(drive: &Drive) -> Result<(f64, f64), DriveError> {
    let mut disk = ClosedLoop::new(drive, &options(0))?;
    let reads = ONE_AT_A_TIME;
    let length = (reads.requests as u64 + 1) * reads.blocks;
    let inner = disk.blocks().saturating_sub(length);
    Ok((reads.rate(&mut disk, 0), reads.rate(&mut disk, inner)))
}

/// Sequential reads of 1 MiB at the first blocks, four in flight, in megabytes (10^6) per second.
///
/// # Errors
/// When no disk can be made of the drive.
pub fn queued_sequential_rate(drive: &Drive) -> Result<f64, DriveError> {
    let mut disk = ClosedLoop::new(drive, &options(0))?;
    Ok(FOUR_AT_A_TIME.rate(&mut disk, 0))
}

/// Random reads of `size_blocks` with `depth` in flight, over the first `range_blocks` of the disk
/// or all of it.
///
/// # Errors
/// When no disk can be made of the drive.
pub fn queued_random_reads(
    drive: &Drive,
    size_blocks: u64,
    depth: usize,
    range_blocks: Option<u64>,
    requests: usize,
    seed: u64,
) -> Result<Run, DriveError> {
    let mut disk = ClosedLoop::new(drive, &options(seed))?;
    let blocks = range_blocks.unwrap_or(u64::MAX).min(disk.blocks());
    let (mut rng, slots) = (Rng::new(seed, 2), blocks / size_blocks);
    let next = |_| {
        let start = rng.below(slots) * size_blocks;
        (Operation::Read, Extent::new(start, size_blocks))
    };
    Ok(disk.run(depth, requests, next))
}

/// How far the curve solved from track to track, average and full stroke of a measured curve is
/// from all of that curve: root mean square over pairs of cylinders, over the mean seek.
///
/// # Errors
/// When the points are no curve or no solved curve meets their three figures.
pub fn solver_error(points: &[(u64, f64)], cylinders: u64) -> Result<f64, String> {
    let measured = SeekCurve::table(points, cylinders)?;
    let average_ms = measured.mean_ns(cylinders) / 1e6;
    let figures = DatasheetSeek {
        track_to_track_ms: measured.time_ns(1) as f64 / 1e6,
        average_ms,
        full_stroke_ms: measured.time_ns(cylinders) as f64 / 1e6,
    };
    let solved = SeekCurve::solve(figures, cylinders)?;
    let squares = (1..cylinders).map(|distance| {
        let error_ns = solved.time_ns(distance) as f64 - measured.time_ns(distance) as f64;
        (error_ns / 1e6).powi(2) * (cylinders - distance) as f64
    });
    let weights = (cylinders * (cylinders - 1) / 2) as f64;
    Ok((squares.sum::<f64>() / weights).sqrt() / average_ms)
}

/// Mean over all pairs of cylinders, as vendors define the average, of the curve solved from
/// `figures`; in milliseconds.
///
/// # Errors
/// When no rising curve meets the figures.
pub fn solved_average_ms(figures: DatasheetSeek, cylinders: u64) -> Result<f64, String> {
    let curve = SeekCurve::solve(figures, cylinders)?;
    Ok(curve.mean_ns(cylinders) / 1e6)
}

fn options(seed: u64) -> DiskOptions {
    DiskOptions { seed, ..DiskOptions::default() }
}

fn does_not_rotate(drive: &Drive) -> DriveError {
    DriveError::Model {
        file: drive.file.clone(),
        reason: "has no moving parts, so no seeks to measure".to_string(),
    }
}
