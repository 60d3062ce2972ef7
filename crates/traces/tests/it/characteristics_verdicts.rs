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
    let capacity = Capacity { blocks: 1 << 16, groups: 1 << 18 };
    let mut characterise = Characterise::with_capacity(BlockRule::Touched, capacity);
    for (time_ns, operation, offset, length) in requests {
        characterise.add(&TraceRecord::new(time_ns, operation, offset, length));
    }
    characterise.finish(&reader).sections.verdicts
}

fn of(verdicts: &[Verdict], drive: DriveKind) -> &Verdict {
    verdicts.iter().find(|verdict| verdict.drive == drive).unwrap()
}

/// Whether the rule named so speaks for the drive.
fn speaks_for(verdict: &Verdict, rule: &str) -> bool {
    let said = verdict.evidence.iter().find(|said| said.contains(rule));
    said.unwrap_or_else(|| panic!("no rule {rule}: {:?}", verdict.evidence)).starts_with("for:")
}

/// An offset far from its neighbours in the sequence.
fn scattered(index: u64) -> u64 {
    index * 7919 % 20_011 * 16 * MIB
}

#[test]
fn a_fast_stream_of_large_requests_is_not_random() {
    // 200 a second of 256 KiB, four reads to a write.
    let operation = |i: u64| if i.is_multiple_of(5) { Write } else { Read };
    let found = verdicts((0..4000).map(|i| (i * S / 200, operation(i), i * MIB / 4, MIB / 4)));
    assert_eq!(of(&found, DriveKind::Plain).verdict, Suits::Well);
    let managed = of(&found, DriveKind::HostManaged);
    assert!(!speaks_for(managed, "random reads"), "{managed:?}");
}

#[test]
fn a_quiet_sequential_writer_suits_every_shingled_disk() {
    let found = verdicts((0..2000).map(|i| (i * 2 * S, Write, i * MIB, MIB)));
    for drive in [DriveKind::Plain, DriveKind::DriveManaged, DriveKind::HostManaged] {
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
        let block = if i % 5 == 0 { 100 + i / 5 % 100 } else { i % 10 };
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
    assert!(found.iter().all(|verdict| verdict.verdict == Suits::Unknown));
    assert!(found[0].evidence.last().unwrap().contains("999"));
}

#[test]
fn a_rule_gives_a_reason_for_the_side_that_it_takes() {
    let says = |requests_per_s: u64| {
        let found = verdicts((0..2000).map(|i| (i * S / requests_per_s, Read, scattered(i), 4096)));
        let plain = of(&found, DriveKind::Plain);
        (plain.words.clone(), plain.evidence[0].clone())
    };
    let (words, evidence) = says(4);
    assert_eq!(words, "It suits a disk without shingles well: both rules speak for it.");
    assert_eq!(
        evidence,
        "for: on average 4.0 random requests/s (at most 80): one disk serves them, at 12 ms each"
    );
    let (words, evidence) = says(200);
    assert_eq!(words, "It suits a disk without shingles partly: 1 of 2 rules speaks for it.");
    assert!(
        evidence.ends_with("(at most 80): one disk does not serve them, at 12 ms each"),
        "{evidence}"
    );
}

#[test]
fn small_numbers_and_those_near_a_threshold_keep_their_side() {
    // A burst of 4 KiB is not "0.0 GB".
    let found = verdicts((0..2000).map(|i| (i * 2 * S, Write, i % 7 * MIB, 4096)));
    let managed = of(&found, DriveKind::DriveManaged);
    let burst = managed.evidence.iter().find(|said| said.contains("burst"));
    assert!(burst.unwrap().contains("writes 0.000004 GB (at most 20)"), "{burst:?}");
    // 1000 of 2001 accesses that write are updates, then 1001: 49.98 and 50.02 %.
    for (updates, said) in [(1001, "for: updates 49.98 %"), (1002, "against: updates 50.02 %")] {
        let found = verdicts((0..2001).map(|i| {
            let block = if i < updates { 0 } else { i };
            (i * S, Write, block * 4096, 4096)
        }));
        let log = of(&found, DriveKind::HostManaged);
        assert!(log.evidence[0].starts_with(said), "{:?}", log.evidence);
    }
}
