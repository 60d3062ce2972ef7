//! How long a lost disk of an array takes to rebuild onto a drive.
//!
//! What arrays write: mdraid copies the address space in sequence, in chunks; ZFS walks its blocks and
//! writes each as one record, a share of 128 KiB. It sorts them by address as far as its memory reaches
//! (FreeNAS since 11.1, OpenZFS since 0.8), so there are two extremes of the walk: in order of address,
//! and in runs that lie anywhere. All are synthetic, and so are the answers: hours for comparison
//! between drives, not a promise.

use super::drive_managed::rewritten;
use super::row::{
    Accepted, Draws, Gate, Measurement, Published, Role, by_construction, calibrated, gate,
};
use super::subject::{BenchError, Subject};
use crate::fio::{Access, Direction, Job, Sequencer, Session};
use imbrex_stack::NodeRole;
use serde::Serialize;

/// Chunk of mdraid, its default.
const CHUNK_BYTES: u64 = 512 << 10;
/// What one disk of a four-disk raidz1 gets of a 128 KiB record: a third, in whole 4 KiB blocks.
const RECORD_BYTES: u64 = 44 << 10;
/// Records that follow one another before the walk goes elsewhere: 4 MiB, an estimate.
const RECORDS_PER_RUN: u64 = 95;
/// Writes in flight: what ZFS keeps for a disk at most in a resilver.
const DEPTH: u32 = 3;
/// By how much a drive is divided under runs that lie anywhere: log and bands shrink alike.
const RUNS_SCALE: u64 = 128;
/// By how much it is divided under a walk in order: little, so that the log holds many bands.
const WALK_SCALE: u64 = 8;
/// Bytes of a walk that are not measured, so that the log of a drive with bands is full; and those that
/// are: four times as many give the same within a hundredth.
const WALK_BEFORE_BYTES: u64 = 4 << 30;
const WALK_BYTES: u64 = 8 << 30;
/// The short writes of which Ars Technica says that they bring the drive to its knees; its own array
/// of eight would write as short ones.
const SHORT_BYTES: u64 = 32 << 10;
/// What `badblocks` writes at a time: 64 blocks of 4 KiB.
const BADBLOCKS_BYTES: u64 = 256 << 10;
/// Over how much the rate at an edge is measured: much beside the write buffer.
const EDGE_BYTES: u64 = 4 << 30;
/// A conventional disk of the same maker and size.
const CONVENTIONAL: &str = "wd-4tb-7200";
/// More than nine days over 16 hours.
const PUBLISHED_TIMES: f64 = 13.0;
const PUBLISHED_BY: &str = "Ars Technica, June 2020, citing ServeTheHome";

/// Time of a rebuild.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rebuild {
    /// The drive of the library it was simulated on.
    pub drive: String,
    /// What is written.
    pub capacity_bytes: u64,
    /// In sequence.
    pub sequential_hours: f64,
    /// Record by record, in order of address.
    pub resilver_in_order_hours: f64,
    /// Record by record, in runs that lie anywhere.
    pub resilver_hours: f64,
    /// That over the time in sequence.
    pub resilver_over_sequential: f64,
    /// Bands rewritten in the simulation of those runs; none of a drive without bands.
    pub resilver_bands_rewritten: Option<u64>,
    /// What was published of a resilver of this drive.
    pub published: Option<PublishedResilver>,
    /// Length of a record on one disk.
    pub record_bytes: u64,
    /// What was assumed, in words.
    pub assumptions: String,
}

/// A resilver that somebody timed, and how far the model is off.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PublishedResilver {
    /// Times that of a conventional disk.
    pub times: f64,
    /// The same of the model: in order of address, and in runs that lie anywhere.
    pub model_times: [f64; 2],
    /// What was timed.
    pub what: &'static str,
    /// By whom.
    pub source: &'static str,
}

/// Simulates rebuilds onto a drive, of as many bytes as its own capacity or another. The disk is
/// full, the array serves nobody else meanwhile, and the other disks are never what it waits for.
///
/// # Errors
/// When the drive cannot be built, or fails a request.
pub fn estimate_rebuild(
    subject: &Subject,
    capacity_bytes: Option<u64>,
) -> Result<Rebuild, BenchError> {
    let full_bytes = subject.session()?.device_bytes();
    let capacity_bytes = capacity_bytes.unwrap_or(full_bytes);
    let hours = |rate: f64| capacity_bytes as f64 / rate / 3600.0;
    let (sequential_rate, _) = rate_of(subject, &sequential)?;
    let (runs_rate, resilver_bands_rewritten) = rate_of(subject, &runs_anywhere)?;
    let (sequential_hours, resilver_hours) = (hours(sequential_rate), hours(runs_rate));
    // A walk is measured on the outer tracks alone.
    let slower = walk_rate(subject, CHUNK_BYTES)? / walk_rate(subject, RECORD_BYTES)?;
    let published = match subject.drive == RESILVER.drive {
        true => Some(PublishedResilver {
            times: PUBLISHED_TIMES,
            model_times: times_a_conventional_disk(subject)?,
            what: "a four-disk raidz1 of EFAX, more than nine days beside 16 hours",
            source: PUBLISHED_BY,
        }),
        false => None,
    };
    Ok(Rebuild {
        drive: subject.drive.clone(),
        capacity_bytes,
        sequential_hours,
        resilver_in_order_hours: sequential_hours * slower,
        resilver_hours,
        resilver_over_sequential: resilver_hours / sequential_hours,
        resilver_bands_rewritten,
        published,
        record_bytes: RECORD_BYTES,
        assumptions: format!(
            "synthetic: the disk is full, nothing else uses it; runs are of {RECORDS_PER_RUN} records; \
             simulated on 1/{RUNS_SCALE} of the drive, and in order of address on a part of 1/{WALK_SCALE}"
        ),
    })
}

/// The rate of a job on the drive that is divided for runs, and the bands rewritten for it.
fn rate_of(
    subject: &Subject,
    job: &dyn Fn(&Session) -> Job,
) -> Result<(f64, Option<u64>), BenchError> {
    let mut session = subject.scaled_session(RUNS_SCALE)?;
    let job = job(&session);
    let outcome = subject.run_one(&mut session, &job)?;
    let has_bands = session.describe.has(NodeRole::Translation);
    let bands_rewritten = has_bands.then(|| rewritten(&session).0);
    let rate = outcome.direction(Direction::Write).bytes_per_s();
    Ok((rate, bands_rewritten))
}

/// The rate of writes of one length in order of address, behind so many that the log is full.
fn walk_rate(subject: &Subject, bytes: u64) -> Result<f64, BenchError> {
    let mut session = subject.scaled_session(WALK_SCALE)?;
    let device_bytes = session.device_bytes();
    let whole = |length: u64| length / bytes * bytes;
    let before = whole(WALK_BEFORE_BYTES.min(device_bytes / 8));
    let mut job = Job::simple("walk", Direction::Write, false, bytes);
    job.iodepth = DEPTH;
    job.size_bytes = Some(before);
    subject.run_one(&mut session, &job)?;
    job.offset_bytes = before;
    job.size_bytes = Some(whole(WALK_BYTES.min(device_bytes / 2)));
    let outcome = subject.run_one(&mut session, &job)?;
    Ok(outcome.direction(Direction::Write).bytes_per_s())
}

/// MB/s of writes in sequence over 4 GiB from `start_bytes` on, as `badblocks` makes them.
fn edge_mb_per_s(subject: &Subject, start_bytes: u64) -> Result<f64, BenchError> {
    let mut session = subject.session()?;
    let mut job = Job::simple("edge", Direction::Write, false, BADBLOCKS_BYTES);
    job.offset_bytes = start_bytes;
    job.size_bytes = Some(EDGE_BYTES);
    job.end_fsync = true;
    let outcome = subject.run_one(&mut session, &job)?;
    Ok(outcome.direction(Direction::Write).bytes_per_s() / 1e6)
}

/// By how much longer a resilver takes than on a conventional disk: in order of address, and in runs
/// that lie anywhere.
fn times_a_conventional_disk(subject: &Subject) -> Result<[f64; 2], BenchError> {
    let conventional =
        Subject { drive: CONVENTIONAL.to_string(), settings: Vec::new(), ..subject.clone() };
    let walk = |subject: &Subject| walk_rate(subject, RECORD_BYTES);
    let runs = |subject: &Subject| rate_of(subject, &runs_anywhere).map(|(rate, _)| rate);
    Ok([walk(&conventional)? / walk(subject)?, runs(&conventional)? / runs(subject)?])
}

fn sequential(session: &Session) -> Job {
    let mut job = Job::simple("rebuild", Direction::Write, false, CHUNK_BYTES);
    job.size_bytes = Some(session.device_bytes() / CHUNK_BYTES * CHUNK_BYTES);
    job.iodepth = DEPTH;
    job
}

fn runs_anywhere(session: &Session) -> Job {
    let mut job = Job::simple("resilver", Direction::Write, true, RECORD_BYTES);
    job.access = Access::Random { per_draw: RECORDS_PER_RUN, sequencer: Sequencer::Sequential };
    job.random_map = false;
    job.iodepth = DEPTH;
    job.size_bytes = Some(session.device_bytes() / RECORD_BYTES * RECORD_BYTES);
    job
}

/// Its tracks were chosen by these rates.
const fn edge(metric: &'static str, mb_per_s: f64) -> Gate {
    calibrated(gate(
        "edges",
        metric,
        "bytes over time of 256 KiB writes in sequence over 4 GiB, with a flush at the end; published of \
         `badblocks -w` on a WD40EFAX",
        "MB/s",
        (Published::Number(mb_per_s), Accepted::Share(0.05)),
        (Role::Gate, "openzfs/zfs issue 10214"),
    ))
}

/// The WD Red that made shingled disks known to users of ZFS.
pub const RESILVER: Measurement = Measurement {
    drive: "wd40efax",
    gates: &[
        gate(
            "V40",
            "resilver in order of address, times that of a conventional disk",
            "time of writes of 44 KiB in sequence behind 4 GiB of them, over the same on a conventional \
             disk of 4 TB, on 1/8 of both; the published figure is a four-disk raidz1 of EFAX beside \
             conventional disks, more than nine days beside 16 hours: how the pool had been filled and \
             what the host could sort is not told",
            "x",
            (Published::Number(PUBLISHED_TIMES), Accepted::Between(8.0, 20.0)),
            (Role::Report, PUBLISHED_BY),
        ),
        gate(
            "V40",
            "resilver in runs anywhere, times that of a conventional disk",
            "the same in runs of 4 MiB that lie anywhere, on 1/128 of both: nothing is sorted",
            "x",
            (Published::Number(PUBLISHED_TIMES), Accepted::Between(8.0, 20.0)),
            (Role::Report, PUBLISHED_BY),
        ),
        by_construction(gate(
            "V41",
            "rate of 32 KiB sequential writes over that of 512 KiB ones",
            "bytes over time behind 4 GiB of them, on 1/8 of the drive; the drive file has short writes \
             go to the log because of this very observation (`bypass_min`)",
            "x",
            (
                Published::Words("32 KiB collapse, the 512 KiB chunks of mdraid do not"),
                Accepted::Between(0.0, 0.5),
            ),
            (Role::Gate, "Ars Technica, June 2020, page 2"),
        )),
        edge("writes in sequence, first addresses", 180.0),
        edge("writes in sequence, last addresses", 80.0),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: |subject| {
        let [in_order, anywhere] = times_a_conventional_disk(subject)?;
        let shorter = walk_rate(subject, SHORT_BYTES)? / walk_rate(subject, CHUNK_BYTES)?;
        let last = subject.session()?.device_bytes() / EDGE_BYTES * EDGE_BYTES - EDGE_BYTES;
        let edges = [edge_mb_per_s(subject, 0)?, edge_mb_per_s(subject, last)?];
        Ok([in_order, anywhere, shorter, edges[0], edges[1]].map(Some).into())
    },
};
