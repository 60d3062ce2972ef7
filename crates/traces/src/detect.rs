//! Which format a trace has, judged by its content.

use super::Format;
use super::blktrace_event::Layout;
use super::error::TraceError;
use super::objects::{Evidence, looks_like_lcs, oracle_evidence};
use super::text::{split, whole_number};
use super::vscsi::Vscsi;
use super::{
    alibaba, arc, blkparse, csv, disksim, fio_reader, fiu, log_line, msr, parquet, recording, spc,
    srt, systor, tencent,
};

/// Lines looked at.
const SAMPLE_LINES: usize = 64;

/// A format and what speaks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detected {
    pub format: Format,
    pub why: &'static str,
}

const READABLE: &str = "MSR Cambridge CSV, SPC, libCacheSim CSV, DiskSim ASCII, ARC .lis, Alibaba, Tencent and SYSTOR '17 CSV, FIU, \
                        fio iolog 2 and 3, Parquet, an Imbrex \
                        recording, binary blktrace, the text of blkparse, vscsi, oracleGeneral, LCS, SRT, web logs, or any \
                        delimited columns with --format csv --map";

/// Judges by the first bytes, then by the shape of the first lines. Only a format that at least half of them have, and
/// that no other format shares, is taken.
pub(super) fn detect(path: &str, bytes: &[u8]) -> Result<Detected, TraceError> {
    let fail = |reason: String| TraceError::Format { path: path.to_owned(), reason };
    if recording::looks_like(bytes) {
        return Ok(Detected {
            format: Format::Recording,
            why: "the file starts with the magic of a recording",
        });
    }
    if fio_reader::looks_like(bytes) {
        return Ok(Detected {
            format: Format::Fio,
            why: "the first line names a version of an iolog",
        });
    }
    if parquet::looks_like(bytes) {
        return Ok(Detected {
            format: Format::Parquet,
            why: "the file starts with the magic of Parquet",
        });
    }
    if let Some(binary) = binary(bytes) {
        return Ok(binary);
    }
    if log_line::is_header(bytes) {
        return Ok(Detected {
            format: Format::Clf,
            why: "the first line names the tab-separated columns of a web log",
        });
    }
    if let Some(known) = unsupported(bytes) {
        return Err(fail(format!("this is {known}, which is not read; accepted: {READABLE}")));
    }
    let lines: Vec<&[u8]> = sample_lines(bytes).collect();
    let candidates = candidates(&lines);
    let first = first_line(&lines);
    if candidates.is_empty() && tencent::are_unmistakable(&lines) {
        return Ok(Detected {
            format: Format::Tencent,
            why: "5 comma-separated integers, seconds of 2018 first that never decrease, 0 or 1 fourth",
        });
    }
    match &candidates[..] {
        [] if oracle_evidence(bytes) == Evidence::Possible => Err(fail(
            "the format is not recognised: the records may be those of oracleGeneral, but none names another one at hand; \
             accepted: --format oracle-general, if that is what they are"
                .to_owned(),
        )),
        [] => Err(fail(unrecognised(&lines, &first))),
        [only] => {
            let is_unclear = only.format == Format::DiskSim
                && !lines.iter().any(|line| disksim::has_fraction(line));
            match is_unclear {
                true => Err(fail(five_integers(&first))),
                false => Ok(*only),
            }
        }
        several => {
            let names: Vec<_> = several
                .iter()
                .map(|candidate| candidate.format.name())
                .collect();
            Err(fail(format!(
                "cannot tell the format: {first:?} fits {}; accepted: one of them with --format",
                names.join(" and ")
            )))
        }
    }
}

/// The binary formats of other people.
fn binary(bytes: &[u8]) -> Option<Detected> {
    if Layout::of(bytes).is_some() {
        return Some(Detected {
            format: Format::Blktrace,
            why: "the file starts with the magic of blktrace",
        });
    }
    if looks_like_lcs(bytes) {
        return Some(Detected {
            format: Format::Lcs,
            why: "the file starts with the magic of LCS",
        });
    }
    if srt::looks_like(bytes) {
        return Some(Detected {
            format: Format::Srt,
            why: "the file starts with the magic of SRT",
        });
    }
    // A text has no control character where a record has its version.
    if Vscsi::of(bytes).is_some() {
        return Some(Detected {
            format: Format::Vscsi,
            why: "the first records have a vscsi version in its place",
        });
    }
    (oracle_evidence(bytes) == Evidence::Proven).then_some(Detected {
        format: Format::OracleGeneral,
        why: "records of 24 bytes in order of time name later records of the same object",
    })
}

/// The formats that at least half of some lines have.
fn candidates(lines: &[&[u8]]) -> Vec<Detected> {
    let have = |lines: &[&[u8]], looks_like: fn(&[u8]) -> bool| {
        let fitting = lines.iter().filter(|line| looks_like(line)).count();
        fitting > 0 && fitting * 2 >= lines.len()
    };
    [
        (
            Format::Msr,
            msr::looks_like as fn(&[u8]) -> bool,
            "7 comma-separated fields, a Windows file time, Read or Write fourth",
        ),
        (
            Format::Spc,
            spc::looks_like,
            "comma-separated, r or w fourth, decimal seconds fifth",
        ),
        (
            Format::LibCacheSim,
            looks_like_libcachesim,
            "5 comma-separated fields, vscsi version first, SCSI opcode third",
        ),
        (
            Format::DiskSim,
            disksim::looks_like,
            "5 blank-separated fields, a time with a decimal point first",
        ),
        (
            Format::Alibaba,
            alibaba::looks_like,
            "5 comma-separated fields, R or W second, microseconds of Unix time fifth",
        ),
        (
            Format::Systor,
            systor::looks_like,
            "6 comma-separated fields, decimal seconds first, R or W third",
        ),
        (
            Format::Fiu,
            fiu::looks_like,
            "9 blank-separated fields, nanoseconds first, R or W sixth, an MD5 last",
        ),
        (
            Format::Clf,
            log_line::looks_like,
            "host, date in brackets, request in quotes, status, bytes",
        ),
        (
            Format::Blkparse,
            blkparse::looks_like,
            "major and minor number, processor, sequence, time, process and event, as blkparse prints them",
        ),
        (Format::Arc, arc::looks_like, "4 blank-separated integers"),
    ]
    .into_iter()
    .filter(|(format, looks_like, _)| match format {
        Format::Blkparse => have(&blkparse::event_lines(lines), *looks_like),
        _ => have(lines, *looks_like),
    })
    .map(|(format, _, why)| Detected { format, why })
    .collect()
}

/// The start of the first line.
fn first_line(lines: &[&[u8]]) -> String {
    let line = lines.first().copied().unwrap_or_default();
    String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned()
}

fn five_integers(first: &str) -> String {
    format!(
        "cannot tell the format: five integers such as {first:?} may be times in ns, ms or s, and the last may mean \
         read or write when 1; accepted: --format disksim --time-unit ns (1 = read, as MQSim and SSDsim), or \
         --format csv --map"
    )
}

/// Lines worth judging: not blank, not comments, and not the last one if the sample may have cut it.
fn sample_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', bytes) {
        Some(last) => &bytes[..last],
        None => bytes,
    };
    whole
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && line[0] != b'#')
        .take(SAMPLE_LINES)
}

/// `version,time,op,size,lbn`, as a header or as values.
pub(super) fn is_libcachesim_header(line: &[u8]) -> bool {
    line.trim_ascii().eq_ignore_ascii_case(b"version,time,op,size,lbn")
}

fn looks_like_libcachesim(line: &[u8]) -> bool {
    if is_libcachesim_header(line) {
        return true;
    }
    let fields = split(line, b',');
    fields.len() == 5
        && matches!(fields[0], b"1" | b"2")
        && [fields[1], fields[3], fields[4]].iter().all(|field| whole_number(field).is_some())
        && csv::scsi_code(fields[2]).is_some()
}

/// Formats told by magic or first line that are met in the field but not read here.
fn unsupported(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        _ if bytes.starts_with(b"fio version ") => "a fio iolog of an unknown version",
        _ => return None,
    })
}

/// Time, latency, direction, block size, offset and perhaps a priority, as fio writes a latency log with `log_offset=1`:
/// with a blank behind each comma, which traces of five integers do not have.
fn is_latency_log(lines: &[&[u8]]) -> bool {
    let is_entry = |line: &&[u8]| {
        let fields: Vec<Option<u64>> =
            split(line, b',').iter().map(|field| whole_number(field.trim_ascii())).collect();
        match fields[..] {
            [Some(_), Some(_), Some(0..=2), Some(size), Some(_)]
            | [Some(_), Some(_), Some(0..=2), Some(size), Some(_), Some(_)] => {
                size >= 512 && size % 512 == 0 && line.contains(&b' ')
            }
            _ => false,
        }
    };
    !lines.is_empty() && lines.iter().all(is_entry)
}

fn unrecognised(lines: &[&[u8]], first: &str) -> String {
    let fields: Vec<&[u8]> = lines.first().map(|line| split(line, b',')).unwrap_or_default();
    let are_integers = fields.iter().all(|field| whole_number(field.trim_ascii()).is_some());
    let hint = if is_latency_log(lines) {
        "; a latency log of fio says how a drive answered: `imbrex drive fit` reads it"
    } else if fields.len() == 3 && are_integers {
        "; three integers may be a fio iolog of version 1 (--format fio-v1)"
    } else if fields.len() == 5 && are_integers {
        "; five integers may be a Tencent block trace (--format tencent) or columns of any other order (for \
         example --format csv --map 'time=1:s,off=2:sectors,len=3:sectors,op=4:0|1,dev=5')"
    } else {
        ""
    };
    format!("the format is not recognised from {first:?}{hint}; accepted: {READABLE}")
}
