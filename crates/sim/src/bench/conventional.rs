//! Measurements of disks whose tracks do not overlap.

use super::row::{Accepted, Draws, Gate, Measurement, Published, Role};
use super::subject::{BenchError, Subject};
use crate::basis::Basis;
use crate::fio::{Direction, Job};

/// Random writes that fill the write buffer before the measurement.
const WARM_UP_WRITES: u64 = 4_000;

/// PORE's conventional disk (MSST 2017, figure 3).
pub const RANDOM_WRITES: Measurement = Measurement {
    drive: "cmr-500gb-7200",
    gates: &[
        Gate {
            id: "V50",
            metric: "8 KB random writes over 56 GB",
            definition: "bytes over time of 8 KiB random writes at queue depth 1, write cache on, \
                         after it has filled",
            unit: "MB/s",
            published: Published::Number(1.46),
            accepted: Accepted::Share(0.2),
            role: Role::Gate,
            basis: Basis::Calibrated,
            source: "PORE, MSST 2017, figure 3",
        },
        Gate {
            id: "V50",
            metric: "8 KB random writes over the whole disk",
            definition: "as above; the paper says 1 TB, which a 500 GB disk does not have",
            unit: "MB/s",
            published: Published::Number(1.05),
            accepted: Accepted::Share(0.2),
            role: Role::Report,
            basis: Basis::Calibrated,
            source: "PORE, MSST 2017, figure 3",
        },
    ],
    draws: Draws::Briefly,
    needs_traces: false,
    measure: random_writes,
};

fn random_writes(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let writes = if subject.quick { 10_000 } else { 40_000 };
    let rate = |range_bytes: Option<u64>| {
        let mut session = subject.session()?;
        let mut job = Job::simple("random-write", Direction::Write, true, 8192);
        job.size_bytes = range_bytes;
        job.number_ios = Some(WARM_UP_WRITES);
        // Other places than those that are measured.
        job.rand_seed = Some(subject.seed.wrapping_add(1));
        subject.run_one(&mut session, &job)?;
        job.number_ios = Some(writes);
        job.rand_seed = Some(subject.seed);
        let outcome = subject.run_one(&mut session, &job)?;
        Ok(Some(outcome.direction(Direction::Write).bytes_per_s() / 1e6))
    };
    [Some(56_000_000_000), None].into_iter().map(rate).collect()
}
