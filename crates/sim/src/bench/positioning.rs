//! Measurements of arms and platters: seeks, waits, queued reads, and the traces of DiskSim.

use super::disksim::{read_trace, validate};
use super::mechanics::{
    KOLMOGOROV_1_PERCENT, queued_random_reads, random_reads, sequential_rates, solved_average_ms,
    solver_error,
};
use super::row::{Accepted, Draws, Gate, Measurement, Published, Role};
use super::subject::{BenchError, Subject};
use crate::basis::Basis;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::{DatasheetSeek, Drive, SeekCurve, SeekFormula};

type Values = Result<Vec<Option<f64>>, BenchError>;

const DISKSIM: &str = "validation data of DiskSim (benh/disksim)";

const fn of_trace(metric: &'static str, mean_ms: f64, role: Role) -> Gate {
    Gate {
        id: "V52",
        metric,
        definition: "mean response over DiskSim's validation trace: operation, sector, sectors and \
                     gap are given, request i + 1 arrives a gap after the simulated end of i",
        unit: "ms",
        published: Published::Number(mean_ms),
        accepted: Accepted::Share(0.05),
        role,
        basis: Basis::Published,
        source: DISKSIM,
    }
}

const fn rms(disksim_ms: f64, max_ms: f64) -> Gate {
    Gate {
        id: "V52",
        metric: "rms difference of response times",
        definition: "root mean square over quantiles p = 0.0001 to 1 of model minus measurement on \
                     DiskSim's validation trace; the published figure is DiskSim's own",
        unit: "ms",
        published: Published::Number(disksim_ms),
        accepted: Accepted::Between(0.0, max_ms),
        role: Role::Gate,
        basis: Basis::Published,
        source: DISKSIM,
    }
}

const SOLVER: Gate = Gate {
    id: "V53",
    metric: "seek curve from three figures",
    definition: "rms difference, over pairs of cylinders, of the curve solved from track to track, \
                 average and full stroke from the measured one; share of the average",
    unit: "%",
    published: Published::Nothing,
    accepted: Accepted::Between(0.0, 10.0),
    role: Role::Gate,
    basis: Basis::Own,
    source: DISKSIM,
};

/// Quantum Atlas 10K.
pub const ATLAS_10K: Measurement = Measurement {
    drive: "atlas10k",
    gates: &[
        rms(0.2675, 0.80),
        of_trace("mean response", 3.8931, Role::Gate),
        of_trace("mean response of reads", 5.4627, Role::Report),
        of_trace("mean response of writes", 0.8879, Role::Report),
    ],
    draws: Draws::Nothing,
    needs_traces: true,
    measure: |subject| disksim(subject, "atlas10k"),
};

/// Seagate Barracuda 4LP.
pub const BARRACUDA_4LP: Measurement = Measurement {
    drive: "barracuda-4lp",
    gates: &[
        rms(0.3479, 1.05),
        of_trace("mean response", 6.6274, Role::Gate),
        of_trace("mean response of reads", 9.2697, Role::Report),
        of_trace("mean response of writes", 1.6964, Role::Report),
    ],
    draws: Draws::Nothing,
    needs_traces: true,
    measure: |subject| disksim(subject, "barracuda"),
};

/// Seagate Cheetah 9LP.
pub const CHEETAH_9LP: Measurement = Measurement {
    drive: "cheetah-9lp",
    gates: &[
        rms(0.1071, 0.32),
        of_trace("mean response", 4.2729, Role::Gate),
        of_trace("mean response of reads", 5.8045, Role::Report),
        of_trace("mean response of writes", 1.3077, Role::Report),
    ],
    draws: Draws::Nothing,
    needs_traces: true,
    measure: |subject| disksim(subject, "cheetah9LP"),
};

/// IBM Ultrastar 18ES.
pub const IBM_18ES: Measurement = Measurement {
    drive: "ibm-18es",
    gates: &[
        rms(0.1361, 0.41),
        of_trace("mean response", 5.2605, Role::Gate),
        of_trace("mean response of reads", 7.6129, Role::Report),
        of_trace("mean response of writes", 0.7306, Role::Report),
    ],
    draws: Draws::Nothing,
    needs_traces: true,
    measure: |subject| disksim(subject, "ibm18es"),
};

fn disksim(subject: &Subject, trace: &str) -> Values {
    let drive = Drive::open(&subject.drive)?;
    let folder = subject.traces.as_ref().expect("it is not done without");
    let packed = folder.join(format!("disksim_validate_{trace}.trace.zst"));
    let path = match packed.exists() {
        true => packed,
        false => packed.with_extension(""),
    };
    let requests = read_trace(&path).map_err(BenchError::Words)?;
    let result = validate(&drive, &requests, subject.seed)?;
    Ok(vec![
        Some(result.all.rms_ms),
        Some(result.all.model_mean_ms),
        Some(result.reads.model_mean_ms),
        Some(result.writes.model_mean_ms),
    ])
}

/// How near the seek curve of a disk is to the one that three of its figures give.
const fn solver(drive: &'static str) -> Measurement {
    Measurement {
        drive,
        gates: &[SOLVER],
        draws: Draws::Nothing,
        needs_traces: false,
        measure: |subject| {
            let table = Drive::open(&subject.drive)?.model.seek.and_then(|seek| seek.table);
            let Some(points @ [.., last]) = table.as_deref() else {
                return Ok(vec![None]);
            };
            let error = solver_error(points, last.0 + 1).map_err(BenchError::Words)?;
            Ok(vec![Some(error * 100.0)])
        },
    }
}

/// The measured seek curves of the disks of DiskSim.
pub const ATLAS_10K_SEEKS: Measurement = solver("atlas10k");
/// See [`ATLAS_10K_SEEKS`].
pub const BARRACUDA_4LP_SEEKS: Measurement = solver("barracuda-4lp");
/// See [`ATLAS_10K_SEEKS`].
pub const CHEETAH_9LP_SEEKS: Measurement = solver("cheetah-9lp");
/// See [`ATLAS_10K_SEEKS`].
pub const IBM_18ES_SEEKS: Measurement = solver("ibm-18es");

const fn smr_fio(
    id: &'static str,
    metric: &'static str,
    published: f64,
    unit: &'static str,
    share: f64,
    role: Role,
) -> Gate {
    Gate {
        id,
        metric,
        definition: "random 256 KiB reads, 16 in flight: V34 over the whole disk, V35 over the \
                     conventional zones at its start (140.66 GB); one set of parameters for both",
        unit,
        published: Published::Number(published),
        accepted: Accepted::Share(share),
        role,
        basis: match id.as_bytes() {
            b"V34" => Basis::Calibrated,
            _ => Basis::Published,
        },
        source: "zonedstorage.io, fio on an HC620 of 15 TB",
    }
}

/// Queued random reads of the HC620.
pub const HC620_READS: Measurement = Measurement {
    drive: "hc620-15tb",
    gates: &[
        smr_fio("V34", "random reads", 118.0, "IOPS", 0.10, Role::Gate),
        smr_fio("V34", "median latency", 96.0, "ms", 0.15, Role::Gate),
        smr_fio("V34", "90 % latency", 296.0, "ms", 0.25, Role::Report),
        smr_fio("V34", "99 % latency", 558.0, "ms", 0.25, Role::Gate),
        smr_fio("V35", "random reads", 215.0, "IOPS", 0.15, Role::Gate),
        smr_fio("V35", "median latency", 47.0, "ms", 0.25, Role::Report),
        smr_fio("V35", "90 % latency", 174.0, "ms", 0.25, Role::Report),
        smr_fio("V35", "99 % latency", 409.0, "ms", 0.25, Role::Gate),
    ],
    draws: Draws::AtLength,
    needs_traces: false,
    measure: |subject| {
        let drive = Drive::open(&subject.drive)?;
        let mut values = Vec::new();
        for range_bytes in [None, Some(140_660_000_000)] {
            let range_blocks = range_bytes.map(|bytes: u64| bytes / BLOCK_BYTES);
            let run = queued_random_reads(&drive, 64, 16, range_blocks, 20_000, subject.seed)?;
            values.push(Some(run.per_second()));
            let percentiles = [50.0, 90.0, 99.0];
            values.extend(percentiles.map(|percent| Some(run.percentile_ms(percent))));
        }
        Ok(values)
    },
};

/// The HP 97560 of Ruemmler and Wilkes: its seek curve alone.
pub const HP_97560: Measurement = Measurement {
    drive: "hp97560",
    gates: &[
        seek_of_97560("seek over 1 cylinder", 3.64),
        seek_of_97560("seek over 382 cylinders", 11.057928),
        seek_of_97560("seek over 383 cylinders", 11.064),
        seek_of_97560("seek over 1961 cylinders", 23.688),
    ],
    draws: Draws::Nothing,
    needs_traces: false,
    measure: |_| {
        let curve = SeekCurve::formula(&FORMULA_97560, FORMULA_97560.cylinders);
        let curve = curve.map_err(BenchError::Words)?;
        let distances = [1, 382, 383, 1961];
        Ok(distances.map(|distance| Some(curve.time_ns(distance) as f64 / 1e6)).to_vec())
    },
};

const FORMULA_97560: SeekFormula =
    SeekFormula { cylinders: 1962, root: (3.24, 0.400), line: (8.00, 0.008), knee: 383.0 };

const fn seek_of_97560(metric: &'static str, ms: f64) -> Gate {
    Gate {
        id: "V54",
        metric,
        definition: "the seek curve alone: 3.24 + 0.400 sqrt(d) below 383 cylinders, 8.00 + 0.008 d \
                     from there on",
        unit: "ms",
        published: Published::Number(ms),
        accepted: Accepted::Exactly,
        role: Role::Gate,
        basis: Basis::Construction,
        source: "Ruemmler and Wilkes, IEEE Computer 27(3), 1994",
    }
}

/// The 4 TB disk that Western Digital published with DiskSim.
pub const WD_4TB: Measurement = Measurement {
    drive: "wd-4tb-7200",
    gates: &[
        of_4tb("mean random seek", 7.29, "ms"),
        of_4tb("longest seek", 15.7, "ms"),
        of_4tb("sequential reads, outer edge", 189.0, "MB/s"),
        of_4tb("sequential reads, inner edge", 94.0, "MB/s"),
    ],
    draws: Draws::Briefly,
    needs_traces: false,
    measure: |subject| {
        let drive = Drive::open(&subject.drive)?;
        let requests = if subject.quick { 5_000 } else { 20_000 };
        let reads = random_reads(&drive, requests, subject.seed)?;
        let (outer, inner) = sequential_rates(&drive)?;
        let values = [reads.seek_ms, reads.longest_seek_ms, outer, inner];
        Ok(values.map(Some).to_vec())
    },
};

const fn of_4tb(metric: &'static str, published: f64, unit: &'static str) -> Gate {
    Gate {
        id: "V56",
        metric,
        definition: "random 4 KiB reads over the whole disk at queue depth 1: time of the arm; \
                     sequential 256 KiB reads at the first and last blocks",
        unit,
        published: Published::Number(published),
        accepted: Accepted::Share(0.03),
        role: Role::Gate,
        basis: Basis::Construction,
        source: "model G4_LBA_64bit_4T of westerndigitalcorporation/DiskSim",
    }
}

const fn average(metric: &'static str, published: f64) -> Gate {
    Gate {
        id: "V57",
        metric,
        definition: "mean over all pairs of cylinders of the seek curve solved from this average, a \
                     track to track of 0.15 and a full stroke of 1.9 times it",
        unit: "ms",
        published: Published::Number(published),
        accepted: Accepted::Share(0.02),
        role: Role::Gate,
        basis: Basis::Construction,
        source: "manuals of the vendors",
    }
}

/// Average seeks of four datasheets.
pub const AVERAGES: Measurement = Measurement {
    drive: "ultrastar-15k450",
    gates: &[
        average("average seek of an HC310, reading", 7.4),
        average("average seek of an HC310, writing", 8.2),
        average("average seek of a 7K4000", 8.2),
        average("average seek of a 15K450, reading", 3.3),
        average("average seek of a 15K450, writing", 3.8),
        average("average seek of a C15K600, reading", 2.9),
        average("average seek of a C15K600, writing", 3.1),
    ],
    draws: Draws::Nothing,
    needs_traces: false,
    measure: |_| {
        let solved = |average_ms: f64| {
            let figures = DatasheetSeek {
                track_to_track_ms: 0.15 * average_ms,
                average_ms,
                full_stroke_ms: 1.9 * average_ms,
            };
            solved_average_ms(figures, 100_000).map(Some).map_err(BenchError::Words)
        };
        let averages = [7.4, 8.2, 8.2, 3.3, 3.8, 2.9, 3.1];
        averages.into_iter().map(solved).collect()
    },
};

/// Waits and rate of random reads, from theory.
pub const RANDOM_READS: Measurement = Measurement {
    drive: "cmr-500gb-7200",
    gates: &[
        Gate {
            id: "V58",
            metric: "mean rotational wait",
            definition: "random 4 KiB reads over the whole disk at queue depth 1",
            unit: "revolutions",
            published: Published::Number(0.5),
            accepted: Accepted::Share(0.02),
            role: Role::Gate,
            basis: Basis::Construction,
            source: "theory",
        },
        Gate {
            id: "V58",
            metric: "waits are even over a revolution",
            definition: "Kolmogorov-Smirnov distance of the waits from an even distribution, over \
                         its critical value at p = 0.01",
            unit: "",
            published: Published::Nothing,
            accepted: Accepted::Between(0.0, 1.0),
            role: Role::Gate,
            basis: Basis::Construction,
            source: "theory",
        },
        Gate {
            id: "V59",
            metric: "random reads over what seek, half a revolution and overhead leave",
            definition: "requests per second over 1 / (mean seek + half a revolution + command \
                         overhead + transfer)",
            unit: "",
            published: Published::Number(1.0),
            accepted: Accepted::Share(0.03),
            role: Role::Gate,
            basis: Basis::Construction,
            source: "identity",
        },
    ],
    draws: Draws::Briefly,
    needs_traces: false,
    measure: |subject| {
        let drive = Drive::open(&subject.drive)?;
        let reads = random_reads(&drive, 20_000, subject.seed)?;
        let critical = KOLMOGOROV_1_PERCENT / (reads.requests as f64).sqrt();
        let values = [
            reads.wait_revolutions,
            reads.wait_distance / critical,
            reads.per_second / reads.expected_per_second,
        ];
        Ok(values.map(Some).to_vec())
    },
};
