//! Measurements of disks without moving parts.

use super::row::{Accepted, Draws, Gate, Measurement, Published, Role, by_construction, gate};
use super::subject::{BenchError, Subject};
use crate::fio::{Direction, Job};

const fn datasheet(metric: &'static str, published: Published, source: &'static str) -> Gate {
    by_construction(gate(
        "V60",
        metric,
        "requests over time of random 4 KiB requests over the whole disk; the model is made of \
         datasheet figures, so this checks the queue and not a prediction",
        "IOPS",
        (published, Accepted::Share(0.1)),
        (Role::Gate, source),
    ))
}

const EVO: &str = "datasheet, by ubergizmo and AnandTech 8747";
const INTEL: &str = "datasheet, by AnandTech 4244";

/// Datasheet of the Samsung.
pub const EVO_850: Measurement = Measurement {
    drive: "850evo",
    gates: &[
        datasheet("4 KiB random reads, depth 1", Published::Number(10_000.0), EVO),
        datasheet("4 KiB random writes, depth 1", Published::Number(40_000.0), EVO),
        datasheet("4 KiB random reads, depth 32", Published::Between(94_000.0, 98_000.0), EVO),
        datasheet("4 KiB random writes, depth 32", Published::Between(88_000.0, 90_000.0), EVO),
    ],
    draws: Draws::Briefly,
    needs_traces: false,
    measure: |subject| {
        use Direction::{Read, Write};
        let cases = [(Read, 1), (Write, 1), (Read, 32), (Write, 32)];
        cases.into_iter().map(|(direction, depth)| rate(subject, direction, depth)).collect()
    },
};

/// Datasheet of the Intel.
pub const INTEL_320: Measurement = Measurement {
    drive: "intel320",
    gates: &[
        datasheet("4 KiB random reads, depth 32", Published::Number(38_000.0), INTEL),
        datasheet("4 KiB random writes, depth 32", Published::Number(14_000.0), INTEL),
    ],
    draws: Draws::Briefly,
    needs_traces: false,
    measure: |subject| {
        let cases = [Direction::Read, Direction::Write];
        cases.into_iter().map(|direction| rate(subject, direction, 32)).collect()
    },
};

fn rate(subject: &Subject, direction: Direction, depth: u32) -> Result<Option<f64>, BenchError> {
    let mut session = subject.session()?;
    let mut job = Job::simple("random", direction, true, 4096);
    job.iodepth = depth;
    job.number_ios = Some(if subject.quick { 20_000 } else { 100_000 });
    let outcome = subject.run_one(&mut session, &job)?;
    Ok(Some(outcome.direction(direction).ios_per_s()))
}
