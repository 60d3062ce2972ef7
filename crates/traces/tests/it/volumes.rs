//! Traces of many volumes from clouds and desktops: Alibaba, Tencent, SYSTOR '17.

use imbrex_traces::TraceOperation::{Read, Write};
use imbrex_traces::{Format, ReadOptions, SkipReason, Subsecond};

use crate::{read_bytes, read_fixture, record};

const GIB: u64 = 1 << 30;

fn spread(rule: Subsecond) -> ReadOptions {
    ReadOptions { subsecond: Some(rule), ..ReadOptions::default() }
}

fn message(text: &str, options: &ReadOptions) -> String {
    read_bytes(text.as_bytes(), options).expect_err("this input is bad").to_string()
}

#[test]
fn alibaba() {
    let (records, reader) = read_fixture("alibaba.csv", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Read, 126_703_644_672, 4096, None),
            record(1_000_000, 0, Write, 8192, 12_288, None)
        ]
    );
    assert_eq!(
        reader.detected(),
        "alibaba in the file: 5 comma-separated fields, R or W second, microseconds of Unix time fifth"
    );
}

/// Numbers of disks have 32 bits and more; only their count is bounded.
#[test]
fn disks_are_numbered_in_order_of_appearance() {
    let line = |disk: u64| format!("{disk},R,{GIB},4096,1577808000000000\n");
    let few: String = [4_294_967_295, 0, 4_294_967_295, 70_000].map(line).concat();
    let records = read_bytes(few.as_bytes(), &ReadOptions::default()).unwrap();
    let devices: Vec<_> = records.iter().map(|record| record.device).collect();
    assert_eq!(devices, [0, 1, 0, 2]);
    let most: String = (0..65_536).map(line).collect();
    let records = read_bytes(most.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(records.last().unwrap().device, 65_535);
    let too_many = most + &line(65_536);
    assert_eq!(
        message(&too_many, &ReadOptions::default()),
        "t, line 65537: more than 65,536 disks; accepted: at most 65,536 disks"
    );
}

#[test]
fn tencent_spreads_the_requests_of_a_second() {
    let times = |rule| {
        let (records, _) = read_fixture("tencent.csv", &spread(rule));
        records.iter().map(|record| record.time_ns).collect::<Vec<_>>()
    };
    assert_eq!(times(Subsecond::None), [0, 0, 0, 0, 3_000_000_000]);
    let evenly = [0, 250_000_000, 500_000_000, 750_000_000, 3_000_000_000];
    assert_eq!(times(Subsecond::Uniform), evenly);
    let drawn = times(Subsecond::Poisson { seed: 7 });
    assert_eq!(drawn, times(Subsecond::Poisson { seed: 7 }));
    assert_ne!(drawn, times(Subsecond::Poisson { seed: 8 }));
    // Times count from the first request, which is itself somewhere in its second.
    assert!(drawn.is_sorted() && drawn[3] < 1_000_000_000 && drawn[4] > 2_000_000_000);

    let (records, reader) = read_fixture("tencent.csv", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(evenly[0], 0, Read, 2048 * 512, 8192, None),
            record(evenly[1], 1, Write, 4096 * 512, 4096, None),
            record(evenly[2], 0, Write, 16 * 512, 512, None),
            record(evenly[3], 1, Read, 32 * 512, 4096, None),
            record(evenly[4], 1, Read, 512, 1024, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "zero length: 1");
    assert_eq!(
        reader.detected(),
        "tencent in the file: 5 comma-separated integers, seconds of 2018 first that never decrease, 0 or 1 fourth, times in \
         seconds, requests of a second spread evenly over it"
    );
}

/// A late line joins the second that is open.
#[test]
fn a_second_that_comes_too_late_is_an_inversion() {
    let options = ReadOptions { format: Some(Format::Tencent), ..ReadOptions::default() };
    let text = "5,0,8,0,1\n6,8,8,0,1\n5,16,8,0,1\n6,24,8,0,1\n";
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    let mut reader = imbrex_traces::TraceReader::from_read("t", bytes, &options).unwrap();
    let times: Vec<_> = reader.by_ref().map(|record| record.unwrap().time_ns).collect();
    assert_eq!(times, [0, 1_000_000_000, 1_333_333_333, 1_666_666_666]);
    assert_eq!(reader.counts().time_inversions, 1);
}

/// More requests in one second than a batch holds, and an error behind them: all of them come first.
#[test]
fn a_full_second_before_damage_is_returned() {
    let text = "1538352000,0,8,0,1\n".repeat(5000) + "1538352001,0,8,2,1\n";
    let options = ReadOptions { format: Some(Format::Tencent), ..ReadOptions::default() };
    let bytes = std::io::Cursor::new(text.into_bytes());
    let results: Vec<_> =
        imbrex_traces::TraceReader::from_read("t", bytes, &options).unwrap().collect();
    assert_eq!(results.len(), 5001);
    assert_eq!(results[4999].as_ref().unwrap().time_ns, 999_800_000);
    assert_eq!(
        results[5000].as_ref().unwrap_err().to_string(),
        "t, line 5001, field 4 (IOType): \"2\" is not an operation; accepted: 0 (read) or 1 (write)"
    );
}

#[test]
fn five_integers_are_tencent_only_where_nothing_else_is_likely() {
    let good = "1538352000,2048,16,0,7\n1538352000,2048,16,1,7\n";
    assert!(read_bytes(good.as_bytes(), &ReadOptions::default()).is_ok());
    for (from, to) in [
        // Another year, a time that decreases, a type that is none.
        ("1538352000", "1438352000"),
        ("1538352000,2048,16,1", "1538351999,2048,16,1"),
        ("16,1,7", "16,2,7"),
    ] {
        let other = message(&good.replace(from, to), &ReadOptions::default());
        assert!(other.contains("--format tencent") && other.contains("accepted: "), "{other}");
    }
}

#[test]
fn systor() {
    let (records, reader) = read_fixture("systor.csv", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 3, Read, 8192, 4096, Some(250_000)),
            record(100_100_300, 3, Write, 1_048_576, 65_536, None),
            record(1_499_900_000, 0, Read, 512, 512, Some(2_000_000)),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "header: 1, zero length: 1");
    assert_eq!(
        reader.detected(),
        "systor in the file: 6 comma-separated fields, decimal seconds first, R or W third"
    );
    // Files joined by `cat` keep their headers.
    let text = std::fs::read_to_string(crate::fixture("systor.csv")).unwrap().repeat(2);
    let bytes = std::io::Cursor::new(text.into_bytes());
    let mut reader =
        imbrex_traces::TraceReader::from_read("t", bytes, &ReadOptions::default()).unwrap();
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 6);
    assert_eq!(reader.skipped().of(SkipReason::Header), 2);
}

#[test]
fn fiu() {
    let (records, reader) = read_fixture("fiu.blkparse", &ReadOptions::default());
    assert_eq!(
        records,
        [
            record(0, 0, Read, 283_193_184 * 512, 4096, None),
            // The process is called `kworker 0:1 x`.
            record(1_000_250, 0, Write, 100 * 512, 512, None),
            record(1_000_250, 1, Write, 0, 8 * 512, None),
        ]
    );
    assert_eq!(reader.skipped().to_string(), "zero length: 1");
    assert_eq!(reader.counts().time_inversions, 1);
    let why =
        "fiu in the file: 9 blank-separated fields, nanoseconds first, R or W sixth, an MD5 last";
    assert_eq!(reader.detected(), why);

    let as_fiu = ReadOptions { format: Some(Format::Fiu), ..ReadOptions::default() };
    let md5 = "0123456789abcdef0123456789ABCDEF";
    for (line, wrong) in [
        ("1 2 a b 3 8 R 6 0", "t, line 1, field 4 (lba): \"b\" is not a number"),
        (
            "1 2 3 8 R 6 0",
            "t, line 1: the line ends after 7 fields; accepted: 9 fields: ts, pid, process, lba",
        ),
        (
            &format!("1 2 a b 3 8 X 6 0 {md5}"),
            "t, line 1, field 6 (op): \"X\" is not an operation; accepted: R or W",
        ),
        (&format!("1 x a 3 8 R 6 0 {md5}"), "t, line 1, field 2 (pid): \"x\" is not a number"),
        ("1 2 a 3 8 R 6 0 0123", "t, line 1, field 9 (MD5): \"0123\" is not an MD5; accepted: 32"),
        (
            &format!("1 2 a 18446744073709551615 8 R 6 0 {md5}"),
            "t, line 1: a value of the line is too large",
        ),
    ] {
        let said = message(&format!("{line}\n"), &as_fiu);
        assert!(said.starts_with(wrong), "{line}: {said}");
    }
}

#[test]
fn bad_lines_are_named() {
    let any = ReadOptions::default();
    let good = "3,R,4096,4096,1577808000000626\n";
    assert_eq!(
        message(&format!("{good}3,T,4096,4096,1577808000000626\n"), &any),
        "t, line 2, field 2 (opcode): \"T\" is not an operation; accepted: R or W"
    );
    assert_eq!(
        message(&format!("{good}3,R,4096\n"), &any),
        "t, line 2: the line ends after 3 fields; accepted: 5 fields: device_id, opcode, offset, length, timestamp"
    );
    let tencent = ReadOptions { format: Some(Format::Tencent), ..ReadOptions::default() };
    assert_eq!(
        message("1538352000.5,1,8,0,7\n", &tencent),
        "t, line 1, field 1 (Timestamp): \"1538352000.5\" is not a number; accepted: an unsigned integer, in seconds of Unix \
         time"
    );
    let good = "1455519600.1,,R,3,8192,4096\n";
    assert_eq!(
        message(&format!("{good}1455519600.1,soon,R,3,8192,4096\n"), &any),
        "t, line 2, field 2 (Response): \"soon\" is not a number; accepted: a decimal number of seconds, or nothing"
    );
    assert_eq!(
        message(&format!("{good}1455519600.1,,R,65536,8192,4096\n"), &any),
        "t, line 2, field 4 (LUN): \"65536\" is not a number; accepted: an integer from 0 to 65535"
    );
    let unused = spread(Subsecond::Uniform);
    assert_eq!(
        message(good, &unused),
        "--subsecond: the format systor has no use for it; accepted: with tencent, clf, oracle-general, lcs"
    );
    assert_eq!(
        "poisson:x".parse::<Subsecond>().unwrap_err(),
        "unknown rule \"poisson:x\"; accepted: uniform, none, poisson or poisson:SEED"
    );
}
