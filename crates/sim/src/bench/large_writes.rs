//! What was published of the largest synced writes to a drive-managed disk, and the copy beside which
//! these must go to the log.

use super::drive_managed::{Writes, mean_of_rates, writes_at};
use super::drive_managed_gates::{AICODIX, SYNCED};
use super::row::{Accepted, Draws, Gate, Measurement, Published, Role, gate, own_bound};
use super::streams::copy_mib_per_s;
use super::subject::{BenchError, Subject};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Lengths of the writes.
const LENGTHS: [u64; 4] = [128 * MIB, 256 * MIB, 512 * MIB, GIB];
/// What is written in each length, as for the plots.
const WRITTEN_BYTES: u64 = 60 * GIB;
/// By how much `quick` divides the drive: the first write goes around the log, and that must stay
/// little beside the log.
const QUICK_SCALE: u64 = 2;

const CLIFF: &str = "as before: GiB written when the first band is cleaned";

const fn cliff(metric: &'static str) -> Gate {
    gate(
        "V13b",
        metric,
        CLIFF,
        "GiB",
        (Published::Between(33.0, 35.0), Accepted::Share(0.15)),
        (Role::Gate, AICODIX),
    )
}

const fn rate(metric: &'static str, mib_per_s: f64, share: f64) -> Gate {
    gate(
        "V13b",
        metric,
        SYNCED,
        "MiB/s",
        (Published::Number(mib_per_s), Accepted::Share(share)),
        (Role::Gate, AICODIX),
    )
}

/// Seagate's Archive disk of 8 TB.
pub const ST8000AS0002: Measurement = Measurement {
    drive: "st8000as0002",
    gates: &[
        rate("128 MiB synced random writes", 76.0, 0.25),
        rate("256 MiB synced random writes", 82.0, 0.25),
        rate("512 MiB synced random writes", 90.0, 0.25),
        rate("1 GiB synced random writes", 92.0, 0.25),
        cliff("cliff, 128 MiB"),
        cliff("cliff, 256 MiB"),
        cliff("cliff, 512 MiB"),
        cliff("cliff, 1 GiB"),
        // The rates are read from plots of few writes.
        rate("128 MiB synced random writes after the cliff", 43.0, 0.35),
        rate("256 MiB synced random writes after the cliff", 34.0, 0.25),
        rate("512 MiB synced random writes after the cliff", 28.0, 0.25),
        rate("1 GiB synced random writes after the cliff", 33.0, 0.25),
        own_bound(gate(
            "copy",
            "a copy that is flushed after each 0.9 GiB",
            "bytes over time of 64 GiB of 1 MiB writes in sequence at queue depth 1 with a flush after each 922, as a file \
             system makes them: it must not go to the log because synced writes of as much do",
            "MiB/s",
            (Published::Nothing, Accepted::Between(140.0, f64::INFINITY)),
            (Role::Gate, "ours"),
        )),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: st8000as0002,
};

fn st8000as0002(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let scale = if subject.quick { QUICK_SCALE } else { 1 };
    let synced: Vec<Writes> = LENGTHS
        .into_iter()
        .map(|length| writes_at(subject, scale, (true, true), length, WRITTEN_BYTES))
        .collect::<Result<_, _>>()?;
    let mut values: Vec<Option<f64>> = Vec::new();
    values.extend(synced.iter().map(|it| mean_of_rates(it.before())));
    values.extend(synced.iter().map(Writes::cliff_gib));
    values.extend(synced.iter().map(|it| mean_of_rates(it.after())));
    values.push(Some(copy_mib_per_s(subject)?));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that fail with these settings, by metric.
    fn fail(settings: &[&str]) -> Vec<String> {
        let rows = ST8000AS0002.rows_of_one_seed(&Subject::quick("st8000as0002", settings));
        let rows = rows.unwrap();
        for row in &rows {
            println!("{}: {:.1?} {:?}", row.metric, row.model, row.pass);
        }
        let fail = rows.into_iter().filter(|row| row.fails());
        fail.map(|row| row.metric).collect()
    }

    #[test]
    fn the_largest_synced_writes_go_to_the_log_and_a_flushed_copy_does_not() {
        assert_eq!(fail(&[]), [""; 0]);
    }

    #[test]
    fn neither_a_short_nor_a_long_start_of_a_stream_does_for_both() {
        let short = fail(&["translation.bypass_after_max=64MiB"]);
        assert!(short.contains(&"cliff, 1 GiB".to_string()), "{short:?}");
        let long = fail(&["translation.bypass_after=2GiB"]);
        assert_eq!(long, ["a copy that is flushed after each 0.9 GiB"]);
    }
}
