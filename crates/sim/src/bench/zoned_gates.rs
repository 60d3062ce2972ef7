//! What was published of disks with zones, beside the models.

use super::host_managed::{mib_per_s, percentile_ms};
use super::row::{
    Accepted, Draws, Gate, Measurement, Published, Role, by_construction, calibrated, gate,
};
use super::streams::reads_with_gaps_ms;
use super::subject::{BenchError, Subject};
use super::{host_aware, host_managed};
use imbrex_core::error::IoError;
use imbrex_core::units::Duration;
use imbrex_stack::Setting;

const FIO: &str = "fio 3.13 with libaio on a 15 TB HC620, zonedstorage.io";
const IDLER: &str = "Idler, IEEE TC 69(6), 2020";

const SEQUENTIAL: &str =
    "256 KiB at queue depth 8, in order through the first four sequential zones";
const UNWRITTEN: &str = "256 KiB reads at queue depth 8 in zones that hold nothing";

/// Western Digital's host-managed disk.
pub const HC620: Measurement = Measurement {
    drive: "hc620-15tb",
    gates: &[
        calibrated(gate(
            "V31",
            "sequential writes",
            SEQUENTIAL,
            "MiB/s",
            (Published::Between(235.0, 237.0), Accepted::Share(0.05)),
            (Role::Gate, FIO),
        )),
        calibrated(gate(
            "V31",
            "sequential writes, median latency",
            SEQUENTIAL,
            "ms",
            (Published::Number(8.23), Accepted::Share(0.05)),
            (Role::Gate, FIO),
        )),
        by_construction(gate(
            "V33",
            "reads past the write pointer",
            UNWRITTEN,
            "MiB/s",
            (Published::Number(353.0), Accepted::Share(0.05)),
            (Role::Gate, FIO),
        )),
        by_construction(gate(
            "V33",
            "reads past the write pointer, median latency",
            UNWRITTEN,
            "ms",
            (Published::Number(5.67), Accepted::Share(0.05)),
            (Role::Gate, FIO),
        )),
        gate(
            "V38",
            "64 KiB writes to four zones at random",
            "eight at a time, each at the write pointer of its zone",
            "MiB/s",
            (Published::Number(125.0), Accepted::Share(0.25)),
            (Role::Report, FIO),
        ),
        gate(
            "V39",
            "four streams of 512 KiB writes",
            "one zone each, one write at a time each",
            "MiB/s",
            (Published::Number(143.0), Accepted::Share(0.2)),
            (Role::Report, FIO),
        ),
        by_construction(gate(
            "V39b",
            "zones that can be opened by command",
            "the next is refused with CHECK CONDITION, DATA PROTECT, INSUFFICIENT ZONE RESOURCES; none is counted when it is refused otherwise",
            "zones",
            (Published::Number(128.0), Accepted::Exactly),
            (Role::Gate, "ZBC-2, 4.5.3.4.2; published kernel log of the drive"),
        )),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: hc620,
};

fn hc620(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let written = host_managed::measure(subject, host_managed::sequential_write)?;
    let unwritten = host_managed::measure(subject, host_managed::read_beyond)?;
    let random = host_managed::measure(subject, host_managed::random_write)?;
    let streams = host_managed::measure(subject, host_managed::four_streams)?;
    let (opened, error) = host_managed::open_past_limit(subject)?;
    let refused = error == IoError::ZoneResources;
    Ok(vec![
        Some(mib_per_s(&written)),
        Some(percentile_ms(&written, 50.0)),
        Some(mib_per_s(&unwritten)),
        Some(percentile_ms(&unwritten, 50.0)),
        Some(mib_per_s(&random)),
        Some(mib_per_s(&streams)),
        Some(if refused { f64::from(opened) } else { 0.0 }),
    ])
}

const TRIGGER: &str = "eight zones hold 1 MiB; each gets one 4 KiB write out of sequence, with so much \
                       idle time after each; a report of zones is then asked which are non-sequential";
const LENGTHS: &str = "as V21, with writes of 64 KiB, 256 KiB, 512 KiB and 1 MiB: most that are left \
                       after 260 ms";
const SHORTER: &str = "as V21, with writes of 64 KiB, 256 KiB, 512 KiB and 1 MiB: fewest that are left \
                       after 240 ms";
const LEFT: &str = "zones";

/// Where an 8 TB host-aware disk was read by fenggangwu/fio-scripts: at the first sequential zone, in the
/// middle, and at the end.
const READ_FROM_BYTES: [u64; 3] = [17_179_869_184, 4_000_762_036_224, 8_001_255_636_992];

const fn reads(metric: &'static str, ms: f64) -> Gate {
    gate(
        "V24b",
        metric,
        "mean of 4 KiB reads in sequence at queue depth 1 over 128 MiB that were written in sequence, and then \
         every other 4 KiB of them again (`rw=write:4k`): so half of the reads go to the media cache and half home; \
         that the disk was written before is ours",
        "ms",
        (Published::Number(ms), Accepted::Share(0.25)),
        (Role::Gate, "github.com/fenggangwu/fio-scripts, disk-cache-location-and-layout"),
    )
}

/// Seagate's host-aware disk.
pub const ST8000AS0022: Measurement = Measurement {
    drive: "st8000as0022",
    gates: &[
        by_construction(gate(
            "V21",
            "zones left after idle times of 240 ms",
            TRIGGER,
            LEFT,
            (Published::Number(8.0), Accepted::Exactly),
            (Role::Gate, IDLER),
        )),
        by_construction(gate(
            "V21",
            "zones left after idle times of 245 ms",
            TRIGGER,
            LEFT,
            (Published::Number(8.0), Accepted::Exactly),
            (Role::Gate, IDLER),
        )),
        by_construction(gate(
            "V21",
            "zones left after idle times of 250 ms",
            TRIGGER,
            LEFT,
            (Published::Between(6.0, 7.0), Accepted::Between(6.0, 7.0)),
            (Role::Report, IDLER),
        )),
        by_construction(gate(
            "V21",
            "zones left after idle times of 260 ms",
            TRIGGER,
            LEFT,
            (Published::Number(0.0), Accepted::Exactly),
            (Role::Gate, IDLER),
        )),
        by_construction(gate(
            "V22",
            "zones left, longer writes, 240 ms",
            SHORTER,
            LEFT,
            (Published::Number(8.0), Accepted::Exactly),
            (Role::Gate, IDLER),
        )),
        by_construction(gate(
            "V22",
            "zones left, longer writes, 260 ms",
            LENGTHS,
            LEFT,
            (Published::Number(0.0), Accepted::Exactly),
            (Role::Gate, IDLER),
        )),
        gate(
            "V23",
            "reads in idle cleaning over reads without",
            "median of random 4 KiB reads, each 20 ms after idle cleaning has begun, in the first 64 sequential zones, half full, which are being cleaned, over the same where nothing is to be cleaned",
            "x",
            (Published::Words("no increase"), Accepted::Between(0.9, 1.1)),
            (Role::Gate, IDLER),
        ),
        gate(
            "V24",
            "longest request in blocking cleaning",
            "4 KiB reads and writes in turn, one at a time, over the first 1,024 sequential zones (those of the base workload of the paper), half full, from the first write that waits for room in the media cache on",
            "s",
            (Published::Words("up to about 2"), Accepted::Between(1.0, 3.0)),
            (Role::Gate, IDLER),
        ),
        gate(
            "V24",
            "writes over reads in blocking cleaning",
            "mean response times of the same requests",
            "x",
            (Published::Words("writes are slower"), Accepted::Between(1.0, f64::INFINITY)),
            (Role::Gate, IDLER),
        ),
        gate(
            "V26",
            "forced 4 KiB writes",
            "mean response of 4 KiB writes out of sequence with forced unit access at queue depth 1, nothing cleaned",
            "ms",
            (Published::Number(10.0), Accepted::Share(0.3)),
            (Role::Gate, IDLER),
        ),
        gate(
            "zone",
            "a zone read, reset and written again by the host",
            "1 MiB at a time at queue depth 1 without the write cache (as the scripts of the same laboratory, github.com/fenggangwu/fio-scripts, measure this disk), mean over five full zones, each in the middle of a fifth of the disk",
            "s",
            (Published::Between(4.0, 6.0), Accepted::Between(3.5, 7.0)),
            (Role::Gate, IDLER),
        ),
        reads("successive reads, first sequential zone", 7.67),
        reads("successive reads, middle of the disk", 14.13),
        calibrated(reads("successive reads, end of the disk", 21.3)),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: st8000as0022,
};

fn st8000as0022(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let (drive, settings, seed) = (&subject.drive, &subject.settings, subject.seed);
    let left = |bytes: u64, idle_ms: u64| {
        let idle = Duration::from_ms(idle_ms);
        Ok::<f64, BenchError>(
            host_aware::left_after_idle(drive, settings, seed, bytes, idle)? as f64
        )
    };
    let longer = |idle_ms: u64| {
        let lengths = [64 << 10, 256 << 10, 512 << 10, 1 << 20];
        lengths.into_iter().map(|bytes| left(bytes, idle_ms)).collect::<Result<Vec<f64>, _>>()
    };
    let mut values = Vec::new();
    for idle_ms in [240, 245, 250, 260] {
        values.push(Some(left(4096, idle_ms)?));
    }
    values.push(longer(240)?.into_iter().reduce(f64::min));
    values.push(longer(260)?.into_iter().reduce(f64::max));
    let (with_zones_ms, without_ms) = host_aware::reads_in_idle_time(drive, settings, seed)?;
    values.push(Some(with_zones_ms / without_ms));
    let zones = host_aware::ZONES_HALF_FULL;
    let blocked = host_aware::blocking_cleaning(drive, settings, seed, zones)?;
    values.push(Some(blocked.max_ms / 1e3));
    values.push(Some(blocked.write_ms / blocked.read_ms));
    values.push(Some(host_aware::forced_writes(drive, settings, seed)?));
    let mut without_cache = settings.clone();
    without_cache.push(Setting::parse("smr.write_cache=false")?);
    let zone_s = host_aware::rewrite_by_host(drive, &without_cache, seed)?;
    values.push(Some(zone_s));
    for start_bytes in READ_FROM_BYTES {
        values.push(Some(reads_with_gaps_ms(subject, start_bytes)?));
    }
    Ok(values)
}
