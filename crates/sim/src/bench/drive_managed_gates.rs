//! What was published of drive-managed disks, beside the models.

use super::backup::backup;
use super::drive_managed::{
    Writes, full_flush_s, mean_of_rates, mixed_latencies_ms, percentile_ms, read_variance_ratio,
    rewritten, stalls, writes,
};
use super::row::{
    Accepted, Draws, Gate, Measurement, Published, Role, by_construction, calibrated, gate,
    own_bound,
};
use super::streams::{before_over_after, plateaus, plot, streaming_mb_per_s};
use super::subject::{BenchError, Subject};
use crate::fio::{Direction, Job};
use imbrex_stack::Setting;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const PORE: &str = "PORE, MSST 2017, figure 3";
const PLOTTER: &str = "bhamon/gpuPlotGenerator issue 45";
const SKYLIGHT: &str = "Skylight, FAST 2015";
pub(super) const AICODIX: &str = "plots of github.com/aicodix/smr";
const BORG: &str = "borgbackup/borg issue 2252";

/// Random writes over two ranges: 56 GB and 1 TB, as PORE measured.
const RANGES_BYTES: [u64; 2] = [56_000_000_000, 1_000_000_000_000];
/// Writes after the persistent cache has filled that are not counted, and that are: each entry is
/// turned over half, and twice.
const TURN_OVER_WRITES: u64 = 100_000;
const COUNTED_WRITES: u64 = 400_000;
const QUICK_SCALE: u64 = 8;

const STEADY: &str = "bytes over time of 8 KiB random writes at queue depth 1 after the persistent cache \
                      has filled and turned over half, over two turns of its entries";

const RANGE: &str = "as V01 over this range, on an eighth of the drive; the published figure is interpolated with a \
                     FIFO model of the cache, not measured";

const fn range(metric: &'static str, low: f64, high: f64) -> Gate {
    gate(
        "V04",
        metric,
        RANGE,
        "MB/s",
        (Published::Between(low, high), Accepted::Share(0.3)),
        (Role::Report, PORE),
    )
}

/// The disk of PORE.
pub const ST5000AS0011: Measurement = Measurement {
    drive: "st5000as0011",
    gates: &[
        calibrated(gate(
            "V01",
            "8 KiB random writes over 56 GB",
            STEADY,
            "MB/s",
            (Published::Number(1.36), Accepted::Share(0.25)),
            (Role::Gate, PORE),
        )),
        calibrated(gate(
            "V02",
            "8 KiB random writes over 1 TB",
            STEADY,
            "MB/s",
            (Published::Number(0.09), Accepted::Share(0.25)),
            (Role::Gate, PORE),
        )),
        calibrated(gate(
            "V03",
            "ratio of V01 and V02",
            STEADY,
            "x",
            (Published::Number(15.1), Accepted::Share(0.3)),
            (Role::Gate, PORE),
        )),
        calibrated(gate(
            "V10",
            "time to clean a band over 56 GB",
            "mean over the writes of V01",
            "s",
            (Published::Between(0.6, 1.6), Accepted::Between(0.6, 1.6)),
            (Role::Gate, SKYLIGHT),
        )),
        calibrated(gate(
            "V10",
            "time to clean a band over 1 TB",
            "mean over the writes of V02",
            "s",
            (Published::Between(0.6, 1.6), Accepted::Between(0.6, 1.6)),
            (Role::Gate, SKYLIGHT),
        )),
        gate(
            "V11",
            "small writes until cleaning begins",
            "8 KiB random writes over 1 TB into an empty persistent cache",
            "writes",
            (Published::Number(182_270.0), Accepted::Share(0.1)),
            (Role::Report, SKYLIGHT),
        ),
        own_bound(gate(
            "V05",
            "V02 without a limit of entries",
            "ablation: space alone must not give the 0.09 MB/s that were measured; counted as V02, on an \
             eighth of the disk, before the head of the log has turned over once",
            "MB/s",
            (Published::Words("not 0.09"), Accepted::Between(0.27, f64::INFINITY)),
            (Role::Gate, "follows from V02"),
        )),
        range("8 KiB random writes over 112 GB", 0.73, 0.80),
        range("8 KiB random writes over 250 GB", 0.32, 0.38),
        range("8 KiB random writes over 500 GB", 0.16, 0.19),
        own_bound(gate(
            "V46",
            "random writes before the cliff over those behind it",
            "rate of the first 10,000 random 8 KiB writes over 1 TB, over the highest of ten rates behind the cliff, of \
             5,000 writes each; on an eighth of the drive",
            "x",
            (Published::Words("high, then low for good"), Accepted::Between(3.0, f64::INFINITY)),
            (Role::Report, "Aghayev et al., FAST 2017 (ext4-lazy), abstract"),
        )),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: st5000as0011,
};

struct Steady {
    mb_per_s: f64,
    clean_s: f64,
    writes_before_cleaning: f64,
}

fn steady(subject: &Subject, scale: u64, range_bytes: u64) -> Result<Steady, BenchError> {
    let mut session = subject.scaled_session(scale)?;
    let mut job = Job::simple("steady", Direction::Write, true, 8192);
    job.size_bytes = Some(range_bytes / scale / 8192 * 8192);
    job.random_map = false;
    job.rand_repeat = false;
    job.number_ios = Some(1000 / scale.min(10));
    let mut before = 0;
    while rewritten(&session).0 == 0 {
        before += subject.run_one(&mut session, &job)?.ios();
    }
    job.number_ios = Some(TURN_OVER_WRITES / scale);
    subject.run_one(&mut session, &job)?;
    let from = rewritten(&session);
    job.number_ios = Some(COUNTED_WRITES / scale);
    let outcome = subject.run_one(&mut session, &job)?;
    let to = rewritten(&session);
    Ok(Steady {
        mb_per_s: outcome.direction(Direction::Write).bytes_per_s() / 1e6,
        clean_s: (to.1 - from.1) as f64 / (to.0 - from.0).max(1) as f64 / 1e9,
        writes_before_cleaning: (before * scale) as f64,
    })
}

fn st5000as0011(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let scale = if subject.quick { QUICK_SCALE } else { 1 };
    let near = steady(subject, scale, RANGES_BYTES[0])?;
    let far = steady(subject, scale, RANGES_BYTES[1])?;
    let mut unlimited = subject.clone();
    unlimited.settings.push(Setting::parse("translation.entries=unlimited")?);
    // Space alone is full only after 20 GB, so this one is always on a part of the drive.
    let ablated = steady(&unlimited, QUICK_SCALE, RANGES_BYTES[1])?;
    Ok(vec![
        Some(near.mb_per_s),
        Some(far.mb_per_s),
        Some(near.mb_per_s / far.mb_per_s),
        Some(near.clean_s),
        Some(far.clean_s),
        Some(far.writes_before_cleaning),
        Some(ablated.mb_per_s),
        Some(steady(subject, QUICK_SCALE, 112_000_000_000)?.mb_per_s),
        Some(steady(subject, QUICK_SCALE, 250_000_000_000)?.mb_per_s),
        Some(steady(subject, QUICK_SCALE, 500_000_000_000)?.mb_per_s),
        Some(before_over_after(subject, RANGES_BYTES[1])?),
    ])
}

pub(super) const SYNCED: &str = "random writes with O_SYNC at queue depth 1 to an empty disk, a flush after each; \
                      mean over the writes of size / latency";
const CLIFF: &str = "as V12: GiB written when the first band is cleaned";
const LATENCY: &str =
    "latency of the writes of V12 before the cliff, those that met a stall left out";
const SEQUENTIAL: &str = "1 MiB sequential writes from address 0 at queue depth 1; mean over the writes of \
                          size / latency";

const BACKUP: &str = "a synthetic backup on ext4: 5 MiB segments at random places, each made durable by a \
                      transaction of the journal with its two flushes; bitmaps in place 300 segments \
                      later; bytes of segments over time, over the first 14 GB";

const PLATEAUS: &str =
    "1 MiB sequential writes, not synced, from address 0; rates of half a GiB, the first left out";
const PLOT: &str = "a plot as large as the disk, written in steps, each of which adds 512 KiB to each of its 4,096 \
                    parts, at queue depth 1 to an empty disk; the length of the writes is ours (8,192 nonces)";

/// How a plot file in strides is written: bytes that a step adds to each part.
const PLOT_BYTES: u64 = MIB / 2;

const fn plotted(metric: &'static str, unit: &'static str, low: f64, high: f64) -> Gate {
    gate(
        "V19i",
        metric,
        PLOT,
        unit,
        (Published::Between(low, high), Accepted::Factor(1.5)),
        (Role::Report, PLOTTER),
    )
}

const fn cliff(metric: &'static str, gib: f64) -> Gate {
    calibrated(gate(
        "V14",
        metric,
        CLIFF,
        "GiB",
        (Published::Number(gib), Accepted::Share(0.2)),
        (Role::Gate, AICODIX),
    ))
}

const fn large(metric: &'static str, mib_per_s: f64, role: Role) -> Gate {
    gate(
        "V13",
        metric,
        "as V12, before the cliff",
        "MiB/s",
        (Published::Number(mib_per_s), Accepted::Share(0.2)),
        (role, AICODIX),
    )
}

const fn full_flush(metric: &'static str) -> Gate {
    gate(
        "flush",
        metric,
        "median time of a flush after each 32 of random 8 KiB writes, once the entries are used up, on 1/64 of the drive; depth is ours, the source tells neither it nor the drive",
        "s",
        (Published::Between(1.0, 1.9), Accepted::Share(0.5)),
        (Role::Report, "koverstreet/bcachefs-tools issue 813"),
    )
}

/// Seagate's Archive disk of 8 TB, synced writes.
pub const ST8000AS0002: Measurement = Measurement {
    drive: "st8000as0002",
    gates: &[
        calibrated(gate(
            "V12",
            "1 MiB synced random writes",
            SYNCED,
            "MiB/s",
            (Published::Number(46.5), Accepted::Share(0.15)),
            (Role::Gate, AICODIX),
        )),
        calibrated(gate(
            "V12",
            "cliff, 1 MiB",
            CLIFF,
            "GiB",
            (Published::Number(17.0), Accepted::Share(0.2)),
            (Role::Gate, AICODIX),
        )),
        by_construction(gate(
            "V17",
            "writes from stall to stall, fewest",
            "as V12, before the cliff: a stall is a write of 200 ms or more",
            "writes",
            (Published::Number(240.0), Accepted::Exactly),
            (Role::Gate, AICODIX),
        )),
        by_construction(gate(
            "V17",
            "writes from stall to stall, most",
            "as V12, before the cliff",
            "writes",
            (Published::Number(240.0), Accepted::Exactly),
            (Role::Gate, AICODIX),
        )),
        by_construction(gate(
            "V17",
            "length of a stall",
            "mean, as V12, before the cliff",
            "s",
            (Published::Number(0.81), Accepted::Between(0.4, 1.2)),
            (Role::Gate, AICODIX),
        )),
        own_bound(gate(
            "V17",
            "stalls without the journal",
            "ablation: writes from stall to stall without `journal_every_records`; 0 for none",
            "writes",
            (Published::Words("not 240"), Accepted::Between(0.0, 0.0)),
            (Role::Gate, "follows from V17"),
        )),
        gate(
            "V18",
            "5 % latency before the cliff",
            LATENCY,
            "ms",
            (Published::Number(17.0), Accepted::Between(14.0, 20.0)),
            (Role::Gate, AICODIX),
        ),
        gate(
            "V18",
            "95 % latency before the cliff",
            LATENCY,
            "ms",
            (Published::Number(32.0), Accepted::Between(28.0, 36.0)),
            (Role::Gate, AICODIX),
        ),
        large("2 MiB synced random writes", 69.0, Role::Report),
        large("4 MiB synced random writes", 90.6, Role::Gate),
        large("8 MiB synced random writes", 88.1, Role::Gate),
        large("16 MiB synced random writes", 81.4, Role::Gate),
        large("32 MiB synced random writes", 82.9, Role::Gate),
        cliff("cliff, 2 MiB", 23.0),
        cliff("cliff, 4 MiB", 27.5),
        cliff("cliff, 8 MiB", 28.0),
        cliff("cliff, 16 MiB", 30.8),
        cliff("cliff, 32 MiB", 30.7),
        gate(
            "V16",
            "2 MiB synced random writes after the cliff",
            SYNCED,
            "MiB/s",
            (Published::Number(4.0), Accepted::Share(0.3)),
            (Role::Report, AICODIX),
        ),
        by_construction(gate(
            "V19",
            "sequential writes, not synced",
            SEQUENTIAL,
            "MiB/s",
            (Published::Between(187.0, 200.0), Accepted::Share(0.1)),
            (Role::Gate, AICODIX),
        )),
        gate(
            "V19",
            "sequential writes, synced, before the cliff",
            SEQUENTIAL,
            "MiB/s",
            (Published::Number(53.2), Accepted::Share(0.15)),
            (Role::Gate, AICODIX),
        ),
        gate(
            "V19",
            "sequential writes, synced, after it",
            SEQUENTIAL,
            "MiB/s",
            (Published::Number(42.3), Accepted::Share(0.15)),
            (Role::Gate, AICODIX),
        ),
        own_bound(gate(
            "V19e",
            "sequential reads after random writes",
            "variance of the rates over their mean of 8 MiB sequential reads after 64 KiB random writes to a hundredth of what is read, over that before them",
            "x",
            (Published::Words("oscillates"), Accepted::Between(3.0, f64::INFINITY)),
            (Role::Gate, "Tom's Hardware, review of the ST8000AS0002"),
        )),
        own_bound(gate(
            "V19f",
            "a mix with 20 % writes, end over start",
            "mean latency of 8 KiB random requests in the last tenth of a run over the first, on 1/64 of the drive",
            "x",
            (Published::Words("jumps and stays"), Accepted::Between(1.5, f64::INFINITY)),
            (Role::Gate, "Tom's Hardware, review of the ST8000AS0002"),
        )),
        gate(
            "V19h",
            "14 GB of 5 MB segments drain in idle time",
            "hours of silence until nothing is cleaned any more, after 14 GB of the backup",
            "h",
            (Published::Words("more than 1"), Accepted::Between(0.7, 2.5)),
            (Role::Gate, BORG),
        ),
        gate(
            "V10",
            "time to clean a band in idle time",
            "mean over the cleans of the V19h drain",
            "s",
            (Published::Between(0.6, 1.6), Accepted::Between(0.6, 1.6)),
            (Role::Gate, SKYLIGHT),
        ),
        gate(
            "V19h",
            "5 MB segments before the cliff",
            BACKUP,
            "MB/s",
            (Published::Number(40.0), Accepted::Share(0.3)),
            (Role::Report, BORG),
        ),
        gate(
            "V19h",
            "5 MB segments, cliff",
            "GB of segments written when the first band is cleaned",
            "GB",
            (Published::Number(14.0), Accepted::Share(0.3)),
            (Role::Report, BORG),
        ),
        full_flush("flush with a full log, depth 1"),
        full_flush("flush with a full log, depth 32"),
        gate(
            "V16",
            "4 MiB synced random writes after the cliff",
            SYNCED,
            "MiB/s",
            (Published::Between(8.0, 9.3), Accepted::Share(0.3)),
            (Role::Report, AICODIX),
        ),
        by_construction(gate(
            "V19b",
            "length of a plateau of the first zone",
            PLATEAUS,
            "GiB",
            (Published::Number(6.1), Accepted::Between(5.1, 7.1)),
            (Role::Report, AICODIX),
        )),
        by_construction(gate(
            "V19b",
            "plateaus of the first zone, half of the spread",
            PLATEAUS,
            "%",
            (Published::Number(3.5), Accepted::Between(2.5, 4.5)),
            (Role::Report, AICODIX),
        )),
        gate(
            "V19g",
            "large files",
            "bytes over time of 1 MiB sequential writes, not synced, 4 GiB at the start of each tenth of the disk; \
             where the files lay is not told",
            "MB/s",
            (Published::Number(165.0), Accepted::Share(0.1)),
            (Role::Report, BORG),
        ),
        plotted("a plot in strides, before the cliff", "MB/s", 20.0, 30.0),
        plotted("a plot in strides, cliff", "GB", 40.0, 80.0),
        plotted("a plot in strides, slowest step", "MB/s", 1.0, 2.0),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: st8000as0002,
};

fn st8000as0002(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let synced = |chunk: u64, bytes: u64| writes(subject, true, true, chunk, bytes);
    let one = synced(MIB, 24 * GIB)?;
    let stall = stalls(one.before());
    let mut no_journal = subject.clone();
    no_journal.settings.push(Setting::parse("translation.journal_every_records=0")?);
    let ablated = writes(&no_journal, true, true, MIB, 8 * GIB)?;
    let two = synced(2 * MIB, 40 * GIB)?;
    let mut values = vec![
        mean_of_rates(one.before()),
        one.cliff_gib(),
        stall.map(|stall| stall.period_min as f64),
        stall.map(|stall| stall.period_max as f64),
        stall.map(|stall| stall.mean_s),
        Some(stalls(ablated.before()).map_or(0.0, |stall| stall.period_min as f64)),
        percentile_ms(one.before(), 0.05),
        percentile_ms(one.before(), 0.95),
    ];
    let mut large = vec![two];
    for chunk in [4, 8, 16, 32] {
        large.push(synced(chunk * MIB, 44 * GIB)?);
    }
    values.extend(large.iter().map(|writes| mean_of_rates(writes.before())));
    values.extend(large.iter().map(Writes::cliff_gib));
    let two = &large[0];
    values.push(mean_of_rates(two.after()));
    values.push(mean_of_rates(writes(subject, false, false, MIB, 64 * GIB)?.before()));
    let in_sequence = writes(subject, false, true, MIB, 24 * GIB)?;
    values.push(mean_of_rates(in_sequence.before()));
    values.push(mean_of_rates(in_sequence.after()));
    values.push(Some(read_variance_ratio(subject)?));
    let mix = mixed_latencies_ms(subject, 20)?;
    values.push(mix.first().zip(mix.last()).map(|(first, last)| last / first));
    let backup = backup(subject)?;
    values.push(backup.drain_hours);
    values.push(backup.clean_s);
    values.push(Some(backup.burst_mb_per_s));
    values.push(backup.burst_gb);
    values.push(full_flush_s(subject, 1)?);
    values.push(full_flush_s(subject, 32)?);
    values.push(mean_of_rates(large[1].after()));
    values.extend(streams(subject)?);
    Ok(values)
}

/// V19b, V19g and V19i.
fn streams(subject: &Subject) -> Result<[Option<f64>; 6], BenchError> {
    const HEADS: u64 = 12;
    let plateaus = plateaus(subject, HEADS)?;
    let plot = plot(subject, PLOT_BYTES)?;
    Ok([
        plateaus.map(|it| it.gib),
        plateaus.map(|it| it.spread_percent),
        Some(streaming_mb_per_s(subject)?),
        Some(plot.before_mb_per_s),
        Some(plot.cliff_gb),
        Some(plot.slowest_mb_per_s),
    ])
}
