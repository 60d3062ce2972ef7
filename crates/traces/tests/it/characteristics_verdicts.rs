//! The verdicts: each rule for and against, on loads made for it.

use imbrex_traces::characterise::{DriveKind, Suits, Verdict};
use imbrex_traces::{
    BlockRule, Capacity, Characterise, ReadOptions, TraceOperation, TraceReader, TraceRecord,
};

use TraceOperation::{Read, Write};

const S: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// Verdicts on requests of nanosecond, operation, offset and length.
fn verdicts(requests: impl Iterator<Item = (u64, TraceOperation, u64, u64)>) -> Vec<Verdict> {
    let bytes = std::io::Cursor::new(b"0,8,4096,w,0.0\n".to_vec());
    let reader = TraceReader::from_read("t", bytes, &ReadOptions::default()).unwrap();
    let capacity = Capacity {
        blocks: 1 << 16,
        groups: 1 << 18,
    };
    let mut characterise = Characterise::with_capacity(BlockRule::Touched, capacity);
    for (time_ns, operation, offset, length) in requests {
        characterise.add(&TraceRecord::new(time_ns, operation, offset, length));
    }
    characterise.finish(&reader).sections.verdicts
}

fn of(verdicts: &[Verdict], drive: DriveKind) -> &Verdict {
    verdicts
        .iter()
        .find(|verdict| verdict.drive == drive)
        .unwrap()
}

/// Whether the rule named so speaks for the drive.
fn speaks_for(verdict: &Verdict, rule: &str) -> bool {
    let said = verdict.evidence.iter().find(|said| said.contains(rule));
    said.unwrap_or_else(|| panic!("no rule {rule}: {:?}", verdict.evidence))
        .starts_with("for:")
}

/// An offset far from its neighbours in the sequence.
fn scattered(index: u64) -> u64 {
    index * 7919 % 20_011 * 16 * MIB
}

#[test]
fn a_quiet_sequential_writer_suits_every_shingled_disk() {
    let found = verdicts((0..2000).map(|i| (i * 2 * S, Write, i * MIB, MIB)));
    for drive in [
        DriveKind::Plain,
        DriveKind::DriveManaged,
        DriveKind::HostManaged,
    ] {
        assert_eq!(of(&found, drive).verdict, Suits::Well, "{drive:?}");
    }
    // Nothing is accessed twice.
    assert_eq!(of(&found, DriveKind::SsdCache).verdict, Suits::Badly);
}

#[test]
fn scattered_bursts_suit_no_drive_managed_disk() {
    // 24 GB in 15 s, to places far apart.
    let found = verdicts((0..1500).map(|i| (i * S / 100, Write, scattered(i), 16 * MIB)));
    let verdict = of(&found, DriveKind::DriveManaged);
    assert_eq!(verdict.verdict, Suits::Badly, "{verdict:?}");
    for rule in ["largest burst", "gaps of 1 s", "written in sequence"] {
        assert!(!speaks_for(verdict, rule), "{rule}");
    }
    // A log takes them as they come, but finds no time to clean.
    let log = of(&found, DriveKind::HostManaged);
    assert_eq!(log.verdict, Suits::Partly);
    assert!(speaks_for(log, "updates") && !speaks_for(log, "gaps of 1 s"));
    assert!(!speaks_for(of(&found, DriveKind::Plain), "on average"));
}

#[test]
fn updates_speak_against_a_log_and_for_a_cache() {
    let found = verdicts((0..5000).map(|i| {
        // Each of ten blocks is written again and again, among a hundred that are read in sequence.
        let operation = if i % 5 == 0 { Read } else { Write };
        let block = if i % 5 == 0 {
            100 + i / 5 % 100
        } else {
            i % 10
        };
        (i * S / 1000, operation, block * 4096, 4096)
    }));
    let log = of(&found, DriveKind::HostManaged);
    assert_eq!(log.verdict, Suits::Badly, "{log:?}");
    assert!(!speaks_for(log, "updates") && !speaks_for(log, "random reads"));
    assert_eq!(of(&found, DriveKind::SsdCache).verdict, Suits::Well);
}

#[test]
fn readers_suit_shingles_and_few_requests_suit_nothing() {
    let found = verdicts((0..2000).map(|i| (i * S, Read, scattered(i), 4096)));
    for drive in [DriveKind::DriveManaged, DriveKind::HostManaged] {
        let verdict = of(&found, drive);
        assert_eq!(verdict.verdict, Suits::Well);
        assert!(speaks_for(verdict, "writes 0.0 % of the requests"));
    }
    let found = verdicts((0..999).map(|i| (i * S, Write, i * MIB, MIB)));
    assert!(
        found
            .iter()
            .all(|verdict| verdict.verdict == Suits::Unknown)
    );
    assert!(found[0].evidence.last().unwrap().contains("999"));
}
