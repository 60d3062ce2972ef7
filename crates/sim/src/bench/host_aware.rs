//! Measurements of host-aware drives: Seagate ST8000AS0022 (Idler, IEEE TC 69(6), 2020).

use super::zoned_host::{Latencies, Step, Stream, ZonedDrive};
use imbrex_core::buffer::ContentKind;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::rng::Rng;
use imbrex_core::units::{BLOCK_BYTES, Duration};
use imbrex_core::zone::descriptors;
use imbrex_stack::{BuildOptions, ConfigError, Setting};

const MIB_BLOCKS: u64 = (1 << 20) / BLOCK_BYTES;
/// Zones of the idle trigger (Idler, table 1).
const ZONES_OF_TRIGGER: u32 = 8;
/// Zones with something to clean while the drive is asked in idle time.
const ZONES_TO_CLEAN: u32 = 64;
/// Reads in idle time.
const READS_IN_IDLE_TIME: u32 = 2_000;
/// Zones under blocking cleaning, each half full: those of the base workload of Idler.
pub const ZONES_HALF_FULL: u32 = 1_024;
/// Zones that take forced writes.
const ZONES_FORCED: u32 = 256;
/// Writes sent at a time until one waits for room.
const WRITES_PER_BATCH: usize = 1_000;
/// Requests measured under blocking cleaning: fewer than it takes to end.
const REQUESTS_BLOCKED: u32 = 60;
/// A write that takes longer has waited for room.
const WAITED_NS: u64 = 100_000_000;
/// Zones that the host rewrites.
const ZONES_REWRITTEN: u32 = 5;
/// Forced writes measured.
const FORCED_WRITES: u32 = 1_000;

fn open(
    drive: &str,
    settings: &[Setting],
    seed: u64,
    contents: ContentKind,
) -> Result<ZonedDrive, ConfigError> {
    let options = BuildOptions::simulate(seed);
    ZonedDrive::open(drive, settings, &options, contents)
}

fn run(
    drive: &mut ZonedDrive,
    steps: impl Iterator<Item = Step>,
) -> Result<Latencies, ConfigError> {
    drive.run(vec![Stream::new(1, steps)]).map_err(|error| ConfigError::words(error.to_string()))
}

/// An operation for each piece of an extent, in order.
fn through(extent: Extent, blocks: u64, operation: Operation) -> impl Iterator<Item = Step> {
    let starts = (extent.start.0..=extent.end().0 - blocks).step_by(blocks as usize);
    starts.map(move |start| Step::new(operation, Extent::new(start, blocks)))
}

/// Sequential zones, each in the middle of one of as many equal parts of the drive.
fn spread(drive: &ZonedDrive, zones: u32) -> Vec<Extent> {
    let first = drive.zones.conventional_zones;
    let apart = (drive.zones.zones() - 1 - first) / zones;
    (0..zones).map(|zone| drive.zone(first + zone * apart + apart / 2)).collect()
}

/// The first sequential zones.
fn first(drive: &ZonedDrive, zones: u32) -> Vec<Extent> {
    let first = drive.zones.conventional_zones;
    (first..first + zones).map(|zone| drive.zone(zone)).collect()
}

/// V21 and V22: eight zones hold 1 MiB each; each gets one write of `bytes` out of sequence, and the
/// drive has nothing to do for `idle` after each. How many zones a report then calls non-sequential.
///
/// # Errors
/// When there is no such drive, or it fails.
pub fn left_after_idle(
    drive: &str,
    settings: &[Setting],
    seed: u64,
    bytes: u64,
    idle: Duration,
) -> Result<usize, ConfigError> {
    let mut drive = open(drive, settings, seed, ContentKind::Bytes)?;
    let zones = first(&drive, ZONES_OF_TRIGGER);
    let fill = zones.iter().flat_map(|zone| {
        let filled = Extent::new(zone.start.0, MIB_BLOCKS);
        through(filled, MIB_BLOCKS / 4, Operation::WRITE)
    });
    let update = zones.iter().enumerate().map(|(number, zone)| Step {
        pause: if number == 0 { Duration::ZERO } else { idle },
        ..Step::new(Operation::WRITE, Extent::new(zone.start.0, bytes / BLOCK_BYTES))
    });
    let report =
        Step { pause: idle, ..Step::new(Operation::ZoneReport, Extent::new(zones[0].start.0, 1)) };
    let steps = fill.chain(update).chain(std::iter::once(report));
    let mut reported = Vec::new();
    drive
        .run_observed(vec![Stream::new(1, steps)], &mut |bytes| {
            reported = bytes.to_vec();
        })
        .map_err(|error| ConfigError::words(error.to_string()))?;
    let first_zones = descriptors(&reported).take(ZONES_OF_TRIGGER as usize);
    Ok(first_zones.filter(|zone| zone.non_sequential).count())
}

/// V23: random 4 KiB reads, each 20 ms after idle cleaning has begun, with and without zones that
/// are to be cleaned: the medians in milliseconds, with first.
///
/// # Errors
/// When there is no such drive, or it fails.
pub fn reads_in_idle_time(
    drive: &str,
    settings: &[Setting],
    seed: u64,
) -> Result<(f64, f64), ConfigError> {
    let median = |with_zones: bool| {
        let mut drive = open(drive, settings, seed, ContentKind::Counted)?;
        // Next to one another: otherwise the arm comes from the zone that is cleaned instead of from
        // the last read, and what is measured is where that zone lies.
        let zones = first(&drive, ZONES_TO_CLEAN);
        let fill = zones.iter().flat_map(|zone| {
            let half = Extent::new(zone.start.0, zone.blocks.0 / 2);
            through(half, MIB_BLOCKS, Operation::WRITE)
        });
        let update = zones
            .iter()
            .filter(|_| with_zones)
            .map(|zone| Step::new(Operation::WRITE, Extent::new(zone.start.0, 1)));
        let filled: Vec<Step> = fill.chain(update).collect();
        let writes = filled.len();
        let mut rng = Rng::new(seed, 23);
        let reads = (0..READS_IN_IDLE_TIME).map(|_| {
            let zone = zones[rng.below(zones.len() as u64) as usize];
            let start = zone.start.0 + rng.below(zone.blocks.0 / 2);
            Step {
                pause: Duration::from_ms(270),
                ..Step::new(Operation::Read, Extent::new(start, 1))
            }
        });
        let mut run = run(&mut drive, filled.into_iter().chain(reads))?;
        run.ns.drain(..writes);
        Ok::<f64, ConfigError>(run.percentile_ms(0.5))
    };
    Ok((median(true)?, median(false)?))
}

/// What requests took while the drive had to clean to make room.
#[derive(Clone, Copy, Debug)]
pub struct Blocked {
    /// Mean response time of reads in milliseconds.
    pub read_ms: f64,
    /// Mean response time of writes in milliseconds.
    pub write_ms: f64,
    /// Longest response time in milliseconds.
    pub max_ms: f64,
}

/// V24: so many zones half full; 4 KiB writes out of sequence until one has to wait for room, and
/// from that one on as many 4 KiB reads as writes, one at a time, while the drive goes on cleaning.
///
/// # Errors
/// When there is no such drive, or it fails.
pub fn blocking_cleaning(
    drive: &str,
    settings: &[Setting],
    seed: u64,
    zones: u32,
) -> Result<Blocked, ConfigError> {
    // The drive cleans until it is content as soon as nobody asks for anything: so the write that
    // waits is found on a drive of its own, and then everything comes without a pause.
    let new_drive = || half_full(open(drive, settings, seed, ContentKind::Counted)?, zones);
    let (mut drive, zones) = new_drive()?;
    let mut places = Places::new(seed, &zones);
    let mut writes = 0;
    loop {
        let batch: Vec<Step> = (0..WRITES_PER_BATCH).map(|_| places.write()).collect();
        let ns = run(&mut drive, batch.into_iter())?.ns;
        match ns.iter().position(|ns| *ns >= WAITED_NS) {
            Some(waits) => {
                writes += waits;
                break;
            }
            None => writes += ns.len(),
        }
    }
    let (mut drive, zones) = new_drive()?;
    let mut places = Places::new(seed, &zones);
    let mut steps: Vec<Step> = (0..writes).map(|_| places.write()).collect();
    steps.extend((0..REQUESTS_BLOCKED).map(|number| match number % 2 {
        0 => places.write(),
        _ => places.read(),
    }));
    let mut run = run(&mut drive, steps.into_iter())?;
    run.ns.drain(..writes);
    let mean = |from: usize| {
        let ns: Vec<u64> = run.ns.iter().skip(from).step_by(2).copied().collect();
        ns.iter().sum::<u64>() as f64 / ns.len() as f64 / 1e6
    };
    Ok(Blocked { write_ms: mean(0), read_ms: mean(1), max_ms: run.percentile_ms(1.0) })
}

/// A drive of which so many zones were written up to the middle.
fn half_full(mut drive: ZonedDrive, zones: u32) -> Result<(ZonedDrive, Vec<Extent>), ConfigError> {
    let zones = first(&drive, zones);
    let fill = zones.iter().flat_map(|zone| {
        let half = Extent::new(zone.start.0, zone.blocks.0 / 2);
        through(half, MIB_BLOCKS, Operation::WRITE)
    });
    run(&mut drive, fill)?;
    Ok((drive, zones))
}

/// Random places in the first halves of zones.
struct Places<'a> {
    rng: Rng,
    zones: &'a [Extent],
}

impl Places<'_> {
    fn new(seed: u64, zones: &[Extent]) -> Places<'_> {
        Places { rng: Rng::new(seed, 24), zones }
    }

    fn next(&mut self) -> Extent {
        let zone = self.zones[self.rng.below(self.zones.len() as u64) as usize];
        Extent::new(zone.start.0 + self.rng.below(zone.blocks.0 / 2), 1)
    }

    fn write(&mut self) -> Step {
        Step::new(Operation::WRITE, self.next())
    }

    fn read(&mut self) -> Step {
        Step::new(Operation::Read, self.next())
    }
}

/// V26: random 4 KiB writes out of sequence with forced unit access, one at a time: the mean
/// response time in milliseconds.
///
/// # Errors
/// When there is no such drive, or it fails.
pub fn forced_writes(drive: &str, settings: &[Setting], seed: u64) -> Result<f64, ConfigError> {
    let mut drive = open(drive, settings, seed, ContentKind::Counted)?;
    let zones = spread(&drive, ZONES_FORCED);
    let mut rng = Rng::new(seed, 26);
    let steps: Vec<Step> = (0..FORCED_WRITES)
        .map(|_| {
            let zone = zones[rng.below(zones.len() as u64) as usize];
            // Never the first block, where an empty zone takes a write in sequence.
            let start = zone.start.0 + 1 + rng.below(zone.blocks.0 - 1);
            Step::new(Operation::WRITE_DURABLE, Extent::new(start, 1))
        })
        .collect();
    Ok(run(&mut drive, steps.into_iter())?.mean_ms())
}

/// The host reads a full zone, resets it and writes it again, 1 MiB at a time: how long that takes,
/// in seconds, as the mean over five zones, each in the middle of a fifth of the drive.
///
/// # Errors
/// When there is no such drive, or it fails.
pub fn rewrite_by_host(drive: &str, settings: &[Setting], seed: u64) -> Result<f64, ConfigError> {
    let mut drive = open(drive, settings, seed, ContentKind::Counted)?;
    let zones = spread(&drive, ZONES_REWRITTEN);
    let mut sum_s = 0.0;
    for zone in &zones {
        run(&mut drive, through(*zone, MIB_BLOCKS, Operation::WRITE))?;
        let reset = std::iter::once(Step::new(Operation::ZoneReset, *zone));
        let steps = through(*zone, MIB_BLOCKS, Operation::Read)
            .chain(reset)
            .chain(through(*zone, MIB_BLOCKS, Operation::WRITE))
            .chain(std::iter::once(Step::new(Operation::Flush, Extent::EMPTY)));
        sum_s += run(&mut drive, steps)?.took.as_seconds();
    }
    Ok(sum_s / zones.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: &str = "st8000as0022";

    #[test]
    fn a_request_waits_the_longer_the_fewer_zones_share_the_entries() {
        let longest_s = |zones| blocking_cleaning(DRIVE, &[], 1, zones).unwrap().max_ms / 1e3;
        let (few, published) = (longest_s(256), longest_s(ZONES_HALF_FULL));
        println!(
            "the longest request takes {few:.2} s with 256 zones and {published:.2} s with 1,024"
        );
        assert!((1.0..=3.0).contains(&published) && few > 3.0);
    }

    /// The ablation of `blocking_slice`: in a slice without an end, a request waits for all of the
    /// cleaning.
    #[test]
    fn a_request_waits_for_a_slice_of_blocking_cleaning_and_not_for_its_end() {
        let longest_s = |settings: &[Setting]| {
            let blocked = blocking_cleaning(DRIVE, settings, 1, ZONES_HALF_FULL).unwrap();
            blocked.max_ms / 1e3
        };
        let endless = Setting::parse("translation.blocking_slice=1000 s").unwrap();
        let (in_slices, at_once) = (longest_s(&[]), longest_s(&[endless]));
        println!("the longest request takes {in_slices:.2} s, {at_once:.0} s without slices");
        assert!((1.0..=3.0).contains(&in_slices) && at_once > 3.0);
    }

    #[test]
    fn without_its_write_cache_a_disk_loses_a_turn_for_each_write_of_a_zone() {
        let off = Setting::parse("smr.write_cache=false").unwrap();
        let (with, without) =
            (rewrite_by_host(DRIVE, &[], 1).unwrap(), rewrite_by_host(DRIVE, &[off], 1).unwrap());
        println!("a zone takes {with:.2} s with the write cache and {without:.2} s without");
        assert!(with < 3.5 && (3.5..=7.0).contains(&without));
        // 256 writes of 1 MiB.
        let turn_s = 60.0 / 5980.0;
        assert!((without - with) / 256.0 > 0.8 * turn_s);
    }
}
