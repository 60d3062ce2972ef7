//! What keeping its map over a power cut costs a drive: stalls, and room in the log.

use crate::common::harness::{Step, play};
use crate::persistent_cache::{LOG_BLOCKS, build, check_with, settings, with_bypass};
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::extent::Extent;
use imbrex_core::map::BandId;
use imbrex_core::translation::{
    BypassSettings, LayoutError, MapJournalSettings, PersistentCacheSettings,
};
use imbrex_core::units::{BlockCount, Duration};

const EVERY: u64 = 5;
const PER_FLUSH: u64 = 3;
const STALL: Duration = Duration::from_ms(300);

fn journaled() -> PersistentCacheSettings {
    PersistentCacheSettings {
        map_journal: MapJournalSettings {
            every_records: EVERY,
            stall: STALL,
            stall_per_mib: Duration::from_ms(256),
            log_per_flush: BlockCount(PER_FLUSH),
            transaction: BlockCount::ZERO,
            flush_overhead: Duration::from_us(3),
        },
        ..settings()
    }
}

fn counts_after(settings: &PersistentCacheSettings, steps: Vec<Step>) -> Counts {
    let (stack, disk, node) = build(1, settings);
    let engine = play(stack, vec![disk], steps, 1).expect("correct");
    engine.stack.counts(node).clone()
}

fn write(at: u64, blocks: u64) -> Step {
    Step::Write(Extent::new(at, blocks))
}

/// Writes of a length, one behind the other, each flushed.
fn flushed(writes: u64, blocks: u64) -> Vec<Step> {
    (0..writes).flat_map(|i| [write(i * blocks % 64, blocks), Step::Flush]).collect()
}

#[test]
fn writes_wait_after_every_so_many_flushes_whatever_their_length() {
    // 5 records of 3 blocks of 4 KiB are 15 / 256 MiB.
    let one = STALL.0 + 15_000_000;
    for blocks in [1, 8, 16] {
        let counts = counts_after(&journaled(), flushed(EVERY * 4, blocks));
        assert_eq!(counts.counter(Counter::MapStalls), 3, "{blocks} blocks");
        assert_eq!(counts.counter(Counter::MapStallNs), 3 * one);
        let counts = counts_after(&journaled(), flushed(EVERY * 4 + 1, blocks));
        assert_eq!(counts.counter(Counter::MapStalls), 4, "{blocks} blocks");
    }
    let none = PersistentCacheSettings {
        map_journal: MapJournalSettings { every_records: 0, ..journaled().map_journal },
        ..journaled()
    };
    let counts = counts_after(&none, flushed(EVERY * 4, 1));
    assert_eq!(counts.counter(Counter::MapStallNs), 0);
}

#[test]
fn packets_are_records_where_nothing_flushes() {
    let unflushed = |blocks: u64| (0..=EVERY * 4).map(move |i| write(i % 20, blocks));
    let counts = counts_after(&journaled(), unflushed(1).collect());
    assert_eq!(counts.counter(Counter::MapStalls), 4);
    assert_eq!(counts.counter(Counter::MapStallNs), 4 * STALL.0);
    // A packet holds eight blocks.
    let counts = counts_after(&journaled(), unflushed(16).collect());
    assert_eq!(counts.counter(Counter::MapStalls), 8);
}

#[test]
fn a_record_takes_room_and_a_flush_without_news_none() {
    let mut steps = flushed(10, 1);
    steps.extend([Step::Flush, Step::Flush]);
    let counts = counts_after(&journaled(), steps);
    // The room of the newest record is skipped with the next write.
    let skipped = 9 * PER_FLUSH;
    assert_eq!(counts.counter(Counter::PersistentCacheSkippedBlocks), skipped);
    assert_eq!(counts.gauge(Gauge::PersistentCacheUsedBlocks), 10 + skipped);
}

#[test]
fn cleaning_begins_when_writes_and_records_have_filled_the_log() {
    let writes = LOG_BLOCKS / (1 + PER_FLUSH);
    let before = counts_after(&journaled(), flushed(writes, 1));
    assert_eq!(before.counter(Counter::BandsRewritten), 0);
    let after = counts_after(&journaled(), flushed(writes + 1, 1));
    assert_eq!(after.counter(Counter::BandsRewritten), 1);
}

#[test]
fn a_stream_that_is_flushed_does_not_go_around_the_log() {
    let settings =
        PersistentCacheSettings { map_journal: journaled().map_journal, ..with_bypass() };
    let (stack, ..) = build(1, &settings);
    let blocks = stack.geometry().blocks.0 / 4;
    let stream = || (0..blocks).map(|at| write(at, 1));
    let counts = counts_after(&settings, stream().collect());
    assert!(counts.counter(Counter::BypassedBlocks) > 0);
    let flushed = stream().flat_map(|step| [step, Step::Flush]).collect();
    let counts = counts_after(&settings, flushed);
    assert_eq!(counts.counter(Counter::BypassedBlocks), 0);
}

#[test]
fn a_stream_that_goes_on_over_a_flush_goes_around_the_log_and_one_that_ends_there_does_not() {
    let with = |after_max| PersistentCacheSettings {
        map_journal: journaled().map_journal,
        bypass: Some(BypassSettings {
            after_max_blocks: BlockCount(after_max),
            ..BypassSettings::after(BlockCount(4))
        }),
        ..settings()
    };
    let (stack, ..) = build(1, &with(4));
    let bands = stack.geometry().bands.clone().expect("bands");
    // Two bands in a piece, and a flush behind it: the log takes the first, of which it has the start.
    let piece = |first: u32| {
        let (start, end) = (first, first + 1);
        let blocks = bands.extent_of(BandId(start)).start.0..bands.extent_of(BandId(end)).end().0;
        blocks.map(|at| write(at, 1)).chain([Step::Flush])
    };
    let bypassed = |after_max: u64, pieces: [u32; 3]| {
        let steps = pieces.into_iter().flat_map(piece).collect();
        counts_after(&with(after_max), steps).counter(Counter::BypassedBlocks)
    };
    let blocks = |of: &[u32]| -> u64 {
        let extents = of.iter().map(|band| bands.extent_of(BandId(*band)));
        extents.map(|extent| extent.blocks.0).sum()
    };
    assert_eq!(bypassed(10_000, [0, 2, 4]), blocks(&[1, 2, 3, 4, 5]));
    assert_eq!(bypassed(10_000, [0, 3, 6]), blocks(&[1]));
    assert_eq!(bypassed(4, [0, 3, 6]), blocks(&[1, 4, 7]));
}

#[test]
fn the_most_that_a_stream_must_bring_is_no_less_than_the_least() {
    let mut settings = with_bypass();
    settings.bypass = Some(BypassSettings {
        after_max_blocks: BlockCount(3),
        ..BypassSettings::after(BlockCount(4))
    });
    let expected = "bypass_after_max = 12 KiB is less than bypass_after = 16 KiB; accepted";
    let error = settings.check().unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn keeps_data_when_records_take_room_and_writes_stall() {
    let short = MapJournalSettings { stall: Duration::from_us(4), ..journaled().map_journal };
    for (name, settings) in [("log", settings()), ("bypass", with_bypass())] {
        let settings = PersistentCacheSettings { map_journal: short, ..settings };
        check_with(name, settings);
    }
}

#[test]
fn keeps_data_when_the_log_takes_it_in_transactions() {
    for blocks in [1, 5, 64] {
        for (name, settings) in [("log", settings()), ("bypass", with_bypass())] {
            let settings = PersistentCacheSettings {
                map_journal: MapJournalSettings {
                    transaction: BlockCount(blocks),
                    flush_overhead: Duration::from_us(3),
                    ..MapJournalSettings::default()
                },
                ..settings
            };
            check_with(name, settings);
        }
    }
}

#[test]
fn records_of_full_transactions_take_no_room_and_count_for_no_stall() {
    let settings = PersistentCacheSettings {
        map_journal: MapJournalSettings { transaction: BlockCount(8), ..journaled().map_journal },
        ..journaled()
    };
    // The longest is two transactions.
    for blocks in [1, 8, 16] {
        let counts = counts_after(&settings, flushed(EVERY * 4 + 1, blocks));
        assert_eq!(counts.counter(Counter::MapStalls), 4, "{blocks} blocks");
    }
    let counts = counts_after(&settings, flushed(10, 16));
    assert_eq!(counts.counter(Counter::PersistentCacheSkippedBlocks), 9 * PER_FLUSH);
}

#[test]
fn a_record_that_fills_the_log_is_refused() {
    let mut settings = journaled();
    settings.map_journal.log_per_flush = settings.log_blocks;
    let error = settings.check().expect_err("nothing is left for data");
    assert_eq!(error, LayoutError::LogPerFlush(BlockCount(LOG_BLOCKS)));
    assert!(error.to_string().contains("less than the persistent cache"));
}

#[test]
fn a_stall_longer_than_an_hour_is_refused() {
    let check = |every_records, stall_per_mib| {
        let mut settings = journaled();
        settings.map_journal = MapJournalSettings {
            every_records,
            stall: Duration::from_ms(1),
            stall_per_mib,
            log_per_flush: BlockCount(256),
            ..settings.map_journal
        };
        settings.log_blocks = BlockCount(512);
        settings.check()
    };
    // A record takes 1 MiB.
    let second = Duration::from_ms(1000);
    assert_eq!(check(3599, second), Ok(()));
    let too_long = LayoutError::MapStall(Duration::from_ms(3_600_001));
    assert_eq!(check(3600, second), Err(too_long));
    assert_eq!(check(0, Duration(u64::MAX)), Ok(()), "none ever");
    let error = check(u64::MAX, Duration(u64::MAX)).unwrap_err();
    let expected = "accepted: at most 1 h of `journal_stall`";
    assert!(error.to_string().contains(expected), "{error}");
}
