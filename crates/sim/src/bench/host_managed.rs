//! Measurements of host-managed drives: HGST HC620, with fio 3.13, libaio and direct I/O
//! (zonedstorage.io, "SMR fio benchmark"). The jobs are those of `experiments/zoned`, which
//! `imbrex drive fio` runs.

use super::subject::{BenchError, Subject};
use super::zoned_host::{Step, Stream, ZonedDrive};
use crate::fio::{Direction, Job, JobOutcome, ZonedAccess};
use imbrex_core::buffer::ContentKind;
use imbrex_core::error::IoError;
use imbrex_core::operation::Operation;
use imbrex_stack::{BuildOptions, ConfigError};

const KIB: u64 = 1024;
/// Zones that are written.
const ZONES_WRITTEN: u64 = 4;

/// The first four zones with a write pointer.
#[derive(Clone, Copy, Debug)]
pub struct FirstZones {
    start_bytes: u64,
    zone_bytes: u64,
}

impl FirstZones {
    /// A job in them, by the rules of zones.
    fn job(self, name: &str, direction: Direction, random: bool, block_bytes: u64) -> Job {
        let mut job = Job::simple(name, direction, random, block_bytes);
        job.zones = Some(ZonedAccess::default());
        job.offset_bytes = self.start_bytes;
        job.size_bytes = Some(ZONES_WRITTEN * self.zone_bytes);
        job
    }
}

/// V31: 256 KiB writes at queue depth 8, one after another through four zones.
pub fn sequential_write(zones: FirstZones) -> Job {
    let mut job = zones.job("sequential-write", Direction::Write, false, 256 * KIB);
    job.iodepth = 8;
    job
}

/// V33: 256 KiB reads at queue depth 8 where nothing was written.
pub fn read_beyond(zones: FirstZones) -> Job {
    let mut job = zones.job("read-beyond", Direction::Read, false, 256 * KIB);
    job.iodepth = 8;
    job.zones = Some(ZonedAccess { read_beyond_pointer: true, ..ZonedAccess::default() });
    job
}

/// V38: 64 KiB writes of eight writers to random zones of four, each at its write pointer; a full
/// zone is reset first.
pub fn random_write(zones: FirstZones) -> Job {
    let mut job = zones.job("random-write", Direction::Write, true, 64 * KIB);
    job.numjobs = 8;
    job.group_reporting = true;
    job
}

/// V39: four writers, each through a zone of its own, 512 KiB at a time and waiting for each.
pub fn four_streams(zones: FirstZones) -> Job {
    let mut job = zones.job("four-streams", Direction::Write, false, 512 * KIB);
    job.size_bytes = Some(zones.zone_bytes);
    job.offset_increment_bytes = zones.zone_bytes;
    job.numjobs = ZONES_WRITTEN as u32;
    job.group_reporting = true;
    job
}

/// What a job does.
///
/// # Errors
/// When there is no such drive, it has fewer zones, or it fails a request.
pub fn measure(subject: &Subject, job: fn(FirstZones) -> Job) -> Result<JobOutcome, BenchError> {
    let mut session = subject.session()?;
    let Some(zones) = session.engine.stack.geometry().zones.clone() else {
        let reason = format!("`{}` has no zones", subject.drive);
        return Err(ConfigError::words(reason).into());
    };
    let zone_bytes = zones.zone_blocks.bytes();
    let jobs = [job(FirstZones {
        start_bytes: u64::from(zones.conventional_zones) * zone_bytes,
        zone_bytes,
    })];
    let outcome = subject.run(&mut session, &jobs)?;
    Ok(outcome.reported(&jobs).swap_remove(0))
}

/// Bytes over time, in MiB/s.
pub fn mib_per_s(outcome: &JobOutcome) -> f64 {
    let bytes: f64 = [Direction::Read, Direction::Write]
        .map(|direction| outcome.direction(direction).bytes_per_s())
        .iter()
        .sum();
    bytes / (KIB * KIB) as f64
}

/// The latency that `percent` of the reads and of the writes do not exceed, whichever there are.
pub fn percentile_ms(outcome: &JobOutcome, percent: f64) -> f64 {
    let of = |direction| outcome.direction(direction).latency.percentile_ns(percent);
    of(Direction::Read).max(of(Direction::Write)) as f64 / 1e6
}

/// V39b: opens zones by command until one is refused: how many were open, and the error.
///
/// # Errors
/// When there is no such drive, or it never refuses.
pub fn open_past_limit(subject: &Subject) -> Result<(u32, IoError), ConfigError> {
    let options = BuildOptions::simulate(subject.seed);
    let (drive, settings) = (&subject.drive, &subject.settings);
    let mut drive = ZonedDrive::open(drive, settings, &options, ContentKind::Counted)?;
    let first = drive.zones.conventional_zones;
    for zone in first..drive.zones.zones() {
        let step = Step::new(Operation::ZoneOpen, drive.zone(zone));
        let stream = Stream::new(1, std::iter::once(step));
        if let Err(error) = drive.run(vec![stream]) {
            return Ok((zone - first, error));
        }
    }
    Err(ConfigError::words("every zone could be open at once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::JobFile;

    /// Bytes of the drive for which the job files are written, and of its conventional zones.
    const HC620_15TB_BYTES: u64 = 55_880 * (256 << 20);
    const CONVENTIONAL_BYTES: u64 = 524 * (256 << 20);

    macro_rules! job_file {
        ($name:literal) => {
            ($name, include_str!(concat!("../../../../experiments/zoned/", $name, ".fio")))
        };
    }

    #[test]
    fn the_job_files_are_what_is_measured() {
        let zones = FirstZones { start_bytes: CONVENTIONAL_BYTES, zone_bytes: 256 << 20 };
        let rows = [
            (job_file!("sequential-write"), sequential_write(zones)),
            (job_file!("read-beyond"), read_beyond(zones)),
            (job_file!("random-write"), random_write(zones)),
            (job_file!("four-streams"), four_streams(zones)),
        ];
        for ((name, text), job) in rows {
            let file = JobFile::parse(name, text, HC620_15TB_BYTES).expect("a job file");
            assert_eq!(file.jobs, [job], "{name}");
        }
    }
}
