//! How long a lost disk of an array takes to rebuild onto a drive.
//!
//! Two extremes of what arrays write: mdraid copies the address space in sequence; ZFS walks its
//! blocks, sorted as far as its memory reaches, and writes each as one record, a share of 128 KiB.
//! Both are synthetic, and so are the answers: hours for comparison between drives, not a promise.

use super::drive_managed::rewritten;
use super::row::{Accepted, Gate, Measurement, Published, Role};
use super::subject::{BenchError, Subject};
use crate::basis::Basis;
use crate::fio::{Access, Direction, Job, Sequencer, Session};
use serde::Serialize;

/// Chunk of mdraid, its default.
const CHUNK_BYTES: u64 = 512 << 10;
/// What one disk of a four-disk raidz1 gets of a 128 KiB record: a third, in whole 4 KiB blocks.
const RECORD_BYTES: u64 = 44 << 10;
/// Records that follow one another before the walk goes elsewhere: 4 MiB, an estimate.
const RECORDS_PER_RUN: u64 = 95;
/// Writes in flight: what ZFS keeps for a disk at most in a resilver.
const DEPTH: u32 = 3;
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
    /// Record by record.
    pub resilver_hours: f64,
    /// The second over the first.
    pub resilver_over_sequential: f64,
    /// Bands rewritten in the simulation of the second; none of a drive without bands.
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
    /// The model's figure over that one.
    pub model_over_published: f64,
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
    let scale = if subject.quick { 1024 } else { 128 };
    let hours = |job: &dyn Fn(&Session) -> Job| -> Result<(f64, Option<u64>), BenchError> {
        let mut session = subject.scaled_session(scale)?;
        let job = job(&session);
        let outcome = subject.run_one(&mut session, &job)?;
        let rate = outcome.direction(Direction::Write).bytes_per_s();
        let has_bands = session.describe.translation().is_some();
        let bands_rewritten = has_bands.then(|| rewritten(&session).0);
        Ok((capacity_bytes as f64 / rate / 3600.0, bands_rewritten))
    };
    let (sequential_hours, _) = hours(&sequential)?;
    let (resilver_hours, resilver_bands_rewritten) = hours(&resilver)?;
    let resilver_over_sequential = resilver_hours / sequential_hours;
    let published = (subject.drive == RESILVER.drive).then_some(PublishedResilver {
        times: PUBLISHED_TIMES,
        model_over_published: resilver_over_sequential / PUBLISHED_TIMES,
        what: "a four-disk raidz1 of EFAX, more than nine days beside 16 hours",
        source: PUBLISHED_BY,
    });
    Ok(Rebuild {
        drive: subject.drive.clone(),
        capacity_bytes,
        sequential_hours,
        resilver_hours,
        resilver_over_sequential,
        resilver_bands_rewritten,
        published,
        record_bytes: RECORD_BYTES,
        assumptions: format!(
            "synthetic: the disk is full, nothing else uses it; records come in runs of {} that lie \
             anywhere; simulated on 1/{scale} of the drive",
            RECORDS_PER_RUN
        ),
    })
}

fn sequential(session: &Session) -> Job {
    let mut job = Job::simple("rebuild", Direction::Write, false, CHUNK_BYTES);
    job.size_bytes = Some(session.device_bytes() / CHUNK_BYTES * CHUNK_BYTES);
    job.iodepth = DEPTH;
    job
}

fn resilver(session: &Session) -> Job {
    let mut job = Job::simple("resilver", Direction::Write, true, RECORD_BYTES);
    job.access = Access::Random {
        per_draw: RECORDS_PER_RUN,
        sequencer: Sequencer::Sequential,
    };
    job.random_map = false;
    job.iodepth = DEPTH;
    job.size_bytes = Some(session.device_bytes() / RECORD_BYTES * RECORD_BYTES);
    job
}

/// The WD Red that made shingled disks known to users of ZFS.
pub const RESILVER: Measurement = Measurement {
    drive: "wd40efax",
    gates: &[Gate {
        id: "V40",
        metric: "resilver, times that of a conventional disk",
        definition: "time of a resilver of a full disk in records of 44 KiB over that of the \
                     sequential rebuild of the same disk; the published figure is a four-disk raidz1 of \
                     EFAX beside one of conventional disks, more than nine days beside 16 hours",
        unit: "x",
        published: Published::Number(PUBLISHED_TIMES),
        accepted: Accepted::Between(8.0, 20.0),
        role: Role::Report,
        basis: Basis::Published,
        source: PUBLISHED_BY,
    }],
    needs_traces: false,
    measure: |subject| {
        let rebuild = estimate_rebuild(subject, None)?;
        Ok(vec![Some(rebuild.resilver_over_sequential)])
    },
};
