//! Damaged traces of every format: each gives records or one clear error, never a panic and never an endless reading.
//!
//! The runs are drawn from a seed, so that a run that fails can be named and played again. The everyday suite plays a few;
//! `IMBREX_FUZZ_RUNS` says how many for each format, `IMBREX_FUZZ_FORMAT` plays one format alone.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use imbrex_traces::{
    Format, HttpWrites, ObjectId, ReadOptions, TimeUnit, TraceError, TraceReader, WriteFormat,
    open, write_to,
};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::{fixture, parquet, tar, zip};

/// Runs of each format when nobody asks for more.
const EVERYDAY_RUNS: u64 = 1000;
/// Bytes of the header of the SRT fixtures.
const SRT_HEADER_BYTES: usize = 314;
const SEED: u64 = 0x0069_6d62_7265_7800;
/// Random bytes behind the head of a format, and copies of a piece of a fixture, at most.
const INSERTED_BYTES_MAX: usize = 300;

/// What is damaged.
struct Subject {
    /// Whole good traces.
    good: Vec<Vec<u8>>,
    /// What all of them are read with.
    options: ReadOptions,
    /// Bytes that make a file one of this format: its magic or its first line. Random bytes follow them.
    head_bytes: Head,
}

enum Head {
    FirstLine,
    Magic(usize),
}

/// The fixtures of a format. The match has no default, so that a new format without a fixture does not compile.
fn subject(format: Format) -> Subject {
    let mut options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let mut head_bytes = Head::FirstLine;
    let names: &[&str] = match format {
        Format::Msr => &["msr.csv"],
        Format::Spc => &["spc.spc"],
        Format::LibCacheSim => &["libcachesim.csv"],
        Format::Csv => {
            let columns =
                "time=when:ms,op=kind:read|write|trim,off=start:blocks,len=count:kib,resp=took:ms";
            options.columns = Some(columns.to_owned());
            options.delimiter = Some(b';');
            &["named.csv"]
        }
        Format::DiskSim => {
            options.time_unit = Some(TimeUnit::Nanoseconds);
            &["disksim.trace", "disksim_ns.trace"]
        }
        Format::Arc => &["arc.lis"],
        Format::Alibaba => &["alibaba.csv"],
        Format::Tencent => &["tencent.csv"],
        Format::Systor => &["systor.csv"],
        Format::Fiu => &["fiu.blkparse"],
        Format::Clf => {
            options.http_writes = Some(HttpWrites::Log { bytes: 4096 });
            &["access.log", "access.tsv"]
        }
        Format::Fio => &["fio3.iolog", "fio2.iolog"],
        Format::Blkparse => &["blkparse.txt"],
        Format::FioV1 => &["fio1.iolog"],
        Format::Blktrace => {
            head_bytes = Head::Magic(4);
            &["blktrace7.bin", "blktrace8_big_endian.bin", "sdx.blktrace.2"]
        }
        Format::OracleGeneral => {
            head_bytes = Head::Magic(24);
            options.object_id = Some(ObjectId::Bytes);
            &["oracle_general.bin"]
        }
        Format::Lcs => {
            head_bytes = Head::Magic(8192);
            options.object_id = Some(ObjectId::Blocks);
            &[]
        }
        Format::Vscsi => {
            head_bytes = Head::Magic(40);
            &["vscsi1.bin", "vscsi2.bin"]
        }
        Format::Srt => {
            // All of the header, so that records follow.
            head_bytes = Head::Magic(SRT_HEADER_BYTES);
            &["srt4.bin", "srt2.bin"]
        }
        Format::Parquet => {
            head_bytes = Head::Magic(4);
            &["foreign.parquet"]
        }
        Format::Recording => {
            head_bytes = Head::Magic(12);
            &[]
        }
    };
    let mut good: Vec<_> = names
        .iter()
        .map(|name| std::fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect();
    match format {
        Format::Tencent => {
            let packed = tar::member("trace", b'0', &good[0]);
            good.push(tar::archive(&[packed]));
        }
        Format::Recording => good.push(recording()),
        Format::Parquet => {
            good.push(parquet::every_operation());
            good.extend(parquet::plain_tables());
        }
        Format::Lcs => good.extend(["lcs2.bin.gz", "lcs5.bin.gz"].map(unpacked)),
        _ => {}
    }
    Subject { good, options, head_bytes }
}

/// A fixture that is stored compressed: a wound of the compressed bytes would be one of gzip alone.
fn unpacked(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(fixture(name)).expect("a fixture");
    let mut bytes = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(file);
    std::io::Read::read_to_end(&mut decoder, &mut bytes).expect("a good fixture");
    bytes
}

/// A recording of the SPC fixture.
fn recording() -> Vec<u8> {
    let reader = open(&fixture("spc.spc"), &ReadOptions::default()).expect("a good fixture");
    let written = write_to(reader, Vec::new(), "out", &WriteFormat::Recording.into());
    written.expect("memory takes every byte").0
}

/// Text traces in a zip archive.
fn zipped() -> Subject {
    let options = ReadOptions { format: Some(Format::Tencent), ..ReadOptions::default() };
    Subject { good: vec![zip::days()], options, head_bytes: Head::Magic(4) }
}

#[test]
fn no_damage_makes_a_reader_panic() {
    let runs = match std::env::var("IMBREX_FUZZ_RUNS") {
        Ok(runs) => runs.parse().expect("IMBREX_FUZZ_RUNS is a number"),
        Err(_) => EVERYDAY_RUNS,
    };
    let only = std::env::var("IMBREX_FUZZ_FORMAT").ok();
    let subjects = Format::ALL.into_iter().map(|format| (format.name(), subject(format)));
    for (name, subject) in subjects.chain([("zip", zipped())]) {
        if only.as_deref().is_none_or(|only| only == name) {
            play_all(name, &subject, runs);
        }
    }
}

/// What others decode for us, and records of a size of their own.
#[test]
#[ignore = "long: for the soak"]
fn a_million_damaged_files_make_no_reader_panic() {
    for (name, subject) in
        [("srt", subject(Format::Srt)), ("parquet", subject(Format::Parquet)), ("zip", zipped())]
    {
        play_all(name, &subject, 1_000_000);
    }
}

/// So many damaged traces of one kind.
fn play_all(name: &str, subject: &Subject, runs: u64) {
    for good in &subject.good {
        let records = read(good, &subject.options);
        assert!(records.expect("a good trace") > 0, "{name} has no good trace with a request");
    }
    let (mut accepted, mut refused) = (0, 0);
    for run in 0..runs {
        match play(name, subject, run) {
            Ok(_) => accepted += 1,
            Err(_) => refused += 1,
        }
    }
    eprintln!("{name}: {runs} runs, {accepted} read, {refused} refused");
}

/// One damaged trace, read to its end or to its error.
fn play(name: &str, subject: &Subject, run: u64) -> Result<u64, TraceError> {
    let bytes = damaged(subject, &mut Random::of(name, run));
    // Three times of four the reader is told the format; otherwise the detection sees the damage.
    let detected = ReadOptions::default();
    let options = if run % 4 == 3 { &detected } else { &subject.options };
    let outcome = catch_unwind(AssertUnwindSafe(|| read(&bytes, options)));
    outcome.unwrap_or_else(|_| {
        panic!("{name}, run {run}: the reader panics on \"{}\"", bytes.escape_ascii())
    })
}

/// Reads bytes to the end or to the first error; the number of records. Checks what every trace and every error promises.
fn read(bytes: &[u8], options: &ReadOptions) -> Result<u64, TraceError> {
    let mut reader = match TraceReader::from_read("t", Cursor::new(bytes.to_vec()), options) {
        Ok(reader) => reader,
        Err(error) => return Err(checked(error)),
    };
    let mut last_ns = 0;
    let mut records = 0;
    while let Some(record) = reader.next() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                assert!(reader.next().is_none(), "nothing follows an error");
                return Err(checked(error));
            }
        };
        assert!(record.time_ns >= last_ns, "times never decrease");
        last_ns = record.time_ns;
        let end = record.offset_bytes.checked_add(record.length_bytes);
        assert!(end.is_some(), "a request ends within 64 bits: {record:?}");
        records += 1;
        assert!(records <= 64 * bytes.len() as u64 + 64, "few bytes hold few requests");
    }
    Ok(records)
}

/// An error is one line.
fn checked(error: TraceError) -> TraceError {
    let text = error.to_string();
    assert!(
        !text.contains(char::is_control) && text.len() < 8000,
        "an error is one printable line: {text:?}"
    );
    error
}

/// The choices of one run.
struct Random(Pcg64);

impl Random {
    fn of(name: &str, run: u64) -> Self {
        let name = name.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        Self(Pcg64::seed_from_u64(SEED ^ (name << 32) ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % (end.max(1) as u64)) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.0.next_u64() as u8).collect()
    }

    /// A range of `bytes`, possibly empty.
    fn range(&mut self, bytes: &[u8], length_max: usize) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        start..start + self.below(length_max.min(bytes.len() - start) + 1)
    }
}

/// A good trace with one to four wounds, or random bytes behind the head of one.
fn damaged(subject: &Subject, random: &mut Random) -> Vec<u8> {
    let which = random.below(subject.good.len());
    let mut bytes = subject.good[which].clone();
    if random.below(8) == 0 {
        let head = match subject.head_bytes {
            Head::FirstLine => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1),
            Head::Magic(length) => length.min(bytes.len()),
        };
        bytes.truncate(head);
        let tail = random.below(INSERTED_BYTES_MAX);
        bytes.extend(random.bytes(tail));
        return bytes;
    }
    for _ in 0..=random.below(4) {
        wound(&mut bytes, random);
    }
    bytes
}

/// Bytes that mean something to one format or another.
const SPECIAL: &[u8] = b" ,\t\r\n#.-+\"[]\0\xff/:0RW";

fn wound(bytes: &mut Vec<u8>, random: &mut Random) {
    match random.below(8) {
        0 => {
            let at = random.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            let at = random.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = SPECIAL[random.below(SPECIAL.len())];
            }
        }
        2 => bytes.truncate(random.below(bytes.len() + 1)),
        3 => {
            let range = random.range(bytes, 40);
            bytes.drain(range);
        }
        4 => {
            let at = random.below(bytes.len() + 1);
            let count = random.below(24);
            let inserted = random.bytes(count);
            bytes.splice(at..at, inserted);
        }
        5 => {
            let range = random.range(bytes, INSERTED_BYTES_MAX);
            let copy = bytes[range].to_vec();
            let at = random.below(bytes.len() + 1);
            bytes.splice(at..at, copy);
        }
        6 => extreme_number(bytes, random),
        _ => extreme_word(bytes, random),
    }
}

/// Replaces a run of digits by a number at the edge of something.
fn extreme_number(bytes: &mut Vec<u8>, random: &mut Random) {
    const EXTREMES: [&str; 16] = [
        "",
        "0",
        "-1",
        "1e308",
        "0.0000000001",
        "65535",
        "65536",
        "4294967295",
        "4294967296",
        "1099511627776",
        "4611686018427387903",
        "4611686018427387904",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999",
    ];
    let numbers: Vec<_> = bytes
        .iter()
        .enumerate()
        .filter(|&(at, byte)| byte.is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_digit()))
        .map(|(at, _)| at)
        .collect();
    let Some(&start) = numbers.get(random.below(numbers.len())) else {
        return;
    };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let extreme = EXTREMES[random.below(EXTREMES.len())];
    bytes.splice(start..start + length, extreme.bytes());
}

/// Replaces the bytes of a binary number by those of one at the edge of something.
fn extreme_word(bytes: &mut [u8], random: &mut Random) {
    let width = [1, 2, 4, 8][random.below(4)];
    let value = [0, 1, u64::MAX, u64::MAX >> 1, 1 << 31, 1 << 40, 1 << 63][random.below(7)];
    let at = random.below(bytes.len());
    for (index, byte) in bytes.iter_mut().skip(at).take(width).enumerate() {
        *byte = value.to_le_bytes()[index];
    }
}
