//! Several traces made one: orders, placements and splits of hand-made sources.

use std::collections::BTreeMap;
use std::path::Path;

use imbrex_traces::combine::{
    BurstRequests, Combination, Combined, Order, Place, SourceConfig, Split, SplitBy,
};
use imbrex_traces::{
    BlockRule, RecordingHeader, RecordingWriter, SourceKind, TraceOperation, TraceReader,
    TraceRecord, WriteFormat, WriteOptions, write_to,
};
use proptest::prelude::*;

const BLOCK: u64 = 4096;

/// A recording of requests, given as time in microseconds, offset and length in blocks.
fn source(folder: &Path, name: &str, requests: &[(u64, u64, u64)]) -> SourceConfig {
    let header = RecordingHeader {
        kind: SourceKind::Captured,
        name: name.to_owned(),
        description: String::new(),
        device_bytes: 0,
        has_times: true,
    };
    let mut writer = RecordingWriter::new(Vec::new(), &header).unwrap();
    for (time_us, block, blocks) in requests {
        let operation = TraceOperation::Write;
        let record = TraceRecord::new(time_us * 1000, operation, block * BLOCK, blocks * BLOCK);
        writer.write(&record).unwrap();
    }
    let path = folder.join(name);
    std::fs::write(&path, writer.finish().unwrap()).unwrap();
    SourceConfig { path: path.display().to_string(), ..SourceConfig::default() }
}

/// The requests of a reader, as they are given to [`source`].
fn requests(reader: TraceReader) -> Vec<(u64, u64, u64)> {
    let plain = |record: Result<TraceRecord, _>| {
        let record: TraceRecord = record.unwrap();
        (record.time_ns / 1000, record.offset_bytes / BLOCK, record.length_bytes / BLOCK)
    };
    reader.map(plain).collect()
}

fn combined(combination: &Combination) -> Vec<(u64, u64, u64)> {
    let combined = Combined::new(combination.clone()).unwrap_or_else(|error| panic!("{error}"));
    let first = requests(combined.records().unwrap());
    assert_eq!(first, requests(combined.records().unwrap()), "a second pass");
    first
}

fn error(combination: Combination) -> String {
    Combined::new(combination).unwrap_err().to_string()
}

/// Two sources: blocks 0 to 4 each 10 us apart, and blocks 100 to 102 each 25 us apart.
fn two(folder: &Path) -> Combination {
    let first = [(0, 0, 1), (10, 1, 1), (20, 2, 1), (30, 3, 1), (40, 4, 1)];
    let second = [(0, 100, 1), (25, 101, 1), (50, 102, 1)];
    Combination::of(vec![source(folder, "first", &first), source(folder, "second", &second)])
}

#[test]
fn merge_goes_by_time_and_then_by_source() {
    let folder = tempfile::tempdir().unwrap();
    let mut merge = two(folder.path());
    merge.order = Order::Merge;
    let expected = [
        (0, 0, 1),
        (0, 100, 1),
        (10, 1, 1),
        (20, 2, 1),
        (25, 101, 1),
        (30, 3, 1),
        (40, 4, 1),
        (50, 102, 1),
    ];
    assert_eq!(combined(&merge), expected);
    merge.traces[0].delay = Some("30us".parse().unwrap());
    let expected = [
        (0, 100, 1),
        (25, 101, 1),
        (30, 0, 1),
        (40, 1, 1),
        (50, 2, 1),
        (50, 102, 1),
        (60, 3, 1),
        (70, 4, 1),
    ];
    assert_eq!(combined(&merge), expected);
}

#[test]
fn concatenation_is_a_burst_of_all_requests() {
    let folder = tempfile::tempdir().unwrap();
    let mut bursts = two(folder.path());
    bursts.traces[1].delay = Some("7us".parse().unwrap());
    bursts.traces[0].skip = Some(1);
    bursts.traces[0].limit = Some(3);
    bursts.traces[1].offset = Some("1MiB".parse().unwrap());
    let mut concatenation = bursts.clone();
    bursts.burst_requests = Some(BurstRequests::All);
    concatenation.order = Order::Concatenate;
    // The second starts 7 us behind the end of the first; 1 MiB is 256 blocks.
    let expected = [(0, 1, 1), (10, 2, 1), (20, 3, 1), (27, 356, 1), (52, 357, 1), (77, 358, 1)];
    assert_eq!(combined(&concatenation), expected);
    assert_eq!(combined(&bursts), expected);
}

#[test]
fn bursts_have_their_length_and_keep_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let mut bursts = two(folder.path());
    bursts.burst_requests = Some(BurstRequests::Count(2));
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        bursts.seed = Some(seed);
        let found = combined(&bursts);
        let sources: Vec<u64> = found.iter().map(|(_, block, _)| block / 100).collect();
        // The first has bursts of 2, 2 and 1, the second of 2 and 1; bursts of one source may adjoin.
        let text: String = sources.iter().map(|source| source.to_string()).collect();
        let mut rest = text.as_str();
        let mut left = [5usize, 3];
        while let Some(first) = rest.chars().next() {
            let of = first.to_digit(10).unwrap() as usize;
            let burst = left[of].min(2);
            let run = rest.chars().take_while(|&other| other == first).count();
            assert!(run >= burst, "{text}: a burst of {run} instead of {burst}");
            left[of] -= burst;
            rest = &rest[burst..];
        }
        assert_eq!(left, [0, 0]);
        // Gaps add up whatever the order: 4 of 10 us and 2 of 25.
        assert_eq!(found.last().unwrap().0, 90);
        seen.insert(text);
    }
    assert!(seen.len() > 3, "every seed draws {seen:?}");
}

#[test]
fn a_shuffle_is_a_permutation_at_the_merged_instants() {
    let folder = tempfile::tempdir().unwrap();
    let mut shuffle = two(folder.path());
    shuffle.order = Order::Shuffle;
    let found = combined(&shuffle);
    let instants: Vec<u64> = found.iter().map(|(time, ..)| *time).collect();
    assert_eq!(instants, [0, 0, 10, 20, 25, 30, 40, 50]);
    let mut blocks: Vec<u64> = found.iter().map(|(_, block, _)| *block).collect();
    shuffle.seed = Some(2);
    let other: Vec<u64> = combined(&shuffle).iter().map(|(_, block, _)| *block).collect();
    assert_ne!(blocks, other);
    blocks.sort_unstable();
    assert_eq!(blocks, [0, 1, 2, 3, 4, 100, 101, 102]);
}

#[test]
fn spans_are_rounded_up_when_sources_lie_behind_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut placed = two(folder.path());
    placed.order = Order::Concatenate;
    placed.place = Place::Concatenate;
    let blocks = |placed: &Combination| -> Vec<u64> {
        combined(placed).iter().map(|(_, block, _)| *block).collect()
    };
    assert_eq!(blocks(&placed), [0, 1, 2, 3, 4, 105, 106, 107]);
    placed.align = Some("1MiB".parse().unwrap());
    assert_eq!(blocks(&placed), [0, 1, 2, 3, 4, 356, 357, 358]);
    placed.traces[0].limit = Some(2);
    placed.align = None;
    assert_eq!(blocks(&placed), [0, 1, 102, 103, 104]);
}

#[test]
fn separate_sources_have_devices_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut separate = two(folder.path());
    separate.place = Place::Separate;
    let combined = Combined::new(separate).unwrap();
    for record in combined.records().unwrap() {
        let record = record.unwrap();
        assert_eq!(u64::from(record.device), record.offset_bytes / BLOCK / 100);
    }
}

/// By hand: source one touches 10 11, then 9 10 11 12, then 11; so 10 is packed at 0, 11 at 1, 9 at 2 and 12 at 3.
#[test]
fn packing_goes_by_first_touch_and_cuts_what_it_tears() {
    let folder = tempfile::tempdir().unwrap();
    let first = source(folder.path(), "a", &[(0, 10, 2), (1, 9, 4), (2, 11, 1)]);
    let second = source(folder.path(), "b", &[(0, 10, 1)]);
    let mut pack = Combination::of(vec![first, second]);
    pack.order = Order::Concatenate;
    pack.place = Place::Pack;
    let expected = [(0, 0, 2), (1, 2, 1), (1, 0, 2), (1, 3, 1), (2, 1, 1), (2, 4, 1)];
    assert_eq!(combined(&pack), expected);
    let device = Combined::new(pack).unwrap().records().unwrap();
    assert_eq!(device.source().device_bytes, Some(5 * BLOCK));
}

#[test]
fn packed_requests_keep_their_bytes_by_either_rule() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    // Two blocks touched by 4096 bytes from byte 9 * 4096 + 512 on; as many as the size fills is one.
    std::fs::write(&path, "0,h,0,Write,37376,4096,0\n1,h,0,Read,40960,100,0\n").unwrap();
    let mut pack = Combination::of(vec![SourceConfig {
        path: path.display().to_string(),
        format: Some("msr".to_owned()),
        ..SourceConfig::default()
    }]);
    pack.place = Place::Pack;
    let bytes = |pack: &Combination| -> Vec<(u64, u64)> {
        let reader = Combined::new(pack.clone()).unwrap().records().unwrap();
        let plain = reader.map(|record| record.unwrap());
        plain.map(|record| (record.offset_bytes, record.length_bytes)).collect()
    };
    assert_eq!(bytes(&pack), [(512, 4096), (4096, 100)]);
    pack.blocks = Some(BlockRule::Size);
    assert_eq!(bytes(&pack), [(0, 4096), (4096, 100)]);
}

#[test]
fn a_mix_is_called_after_its_weakest_part_and_names_them_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut mix = two(folder.path());
    mix.traces.push("synthetic:one-block,limit=2".parse().unwrap());
    mix.seed = Some(9);
    let reader = Combined::new(mix).unwrap().records().unwrap();
    assert_eq!(reader.source().kind, SourceKind::Synthetic);
    let label = reader.source().label.clone();
    for part in [
        "3 traces combined, order bursts, burst_requests 1, place overlay, seed 9",
        "captured ",
        "synthetic synthetic:one-block,limit=2 sha256 ",
    ] {
        assert!(label.contains(part), "{label}");
    }
    let options = WriteOptions::from(WriteFormat::Recording);
    let (bytes, summary) = write_to(reader, Vec::new(), "out", &options).unwrap();
    assert_eq!(summary.records, 10);
    let again = std::io::Cursor::new(bytes);
    let again = TraceReader::from_read("out", again, &Default::default()).unwrap();
    assert_eq!(again.source().kind, SourceKind::Synthetic);
    assert!(again.source().label.ends_with(&label));
}

#[test]
fn parts_join_to_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let long = [(0, 0, 3), (5, 3, 9), (6, 11, 1), (9, 1, 1), (30, 6, 1)];
    let whole = Combined::new(Combination::of(vec![source(folder.path(), "w", &long)])).unwrap();
    // Twelve blocks in three parts are four blocks each.
    let split = Split::new(&whole, 3, SplitBy::Address).unwrap();
    let parts: Vec<_> = (0..3).map(|part| split.part(part).unwrap().unwrap()).collect();
    assert_eq!(parts.iter().map(|part| part.delay_ns / 1000).collect::<Vec<_>>(), [0, 5, 5]);
    let parts: Vec<_> = parts.into_iter().map(|part| requests(part.reader)).collect();
    assert_eq!(parts[0], [(0, 0, 3), (5, 3, 1), (9, 1, 1)]);
    assert_eq!(parts[1], [(0, 4, 4), (25, 6, 1)]);
    assert_eq!(parts[2], [(0, 8, 4), (1, 11, 1)]);
    let split = Split::new(&whole, 2, SplitBy::RoundRobin).unwrap();
    let parts: Vec<_> = (0..2).map(|part| split.part(part).unwrap().unwrap()).collect();
    let mut joined = Combination::of(Vec::new());
    joined.order = Order::Merge;
    for (number, part) in parts.into_iter().enumerate() {
        let delay = part.delay_ns;
        let mut config = source(folder.path(), &number.to_string(), &requests(part.reader));
        config.delay = Some(format!("{delay}ns").parse().unwrap());
        joined.traces.push(config);
    }
    assert_eq!(combined(&joined), long);
    let split = Split::new(&whole, 2, SplitBy::Device).unwrap();
    assert_eq!(requests(split.part(0).unwrap().unwrap().reader), long);
    assert!(split.part(1).unwrap().is_none(), "all is device 0");
}

#[test]
fn a_source_is_a_path_with_keys_behind_it() {
    let text = "a.csv,limit=30,offset=1GiB,map=time=2:us,op=3:scsi,len=4:bytes,off=5:sectors,delay=10s,devices=0-3";
    let parsed: SourceConfig = text.parse().unwrap();
    assert_eq!(parsed.limit, Some(30));
    assert_eq!(parsed.map.as_deref(), Some("time=2:us,op=3:scsi,len=4:bytes,off=5:sectors"));
    assert_eq!(parsed.devices.as_deref(), Some("0-3"));
    assert_eq!(parsed.to_string().parse::<SourceConfig>().unwrap(), parsed);
    for (text, reason) in [
        ("a,limt=3", "a,limt=3: `limt=3` behind the path; accepted: skip, limit, "),
        ("a,limit", "a,limit: `limit` has no value; accepted: limit=VALUE"),
        ("a,limit=x", "a,limit=x: limit=x; accepted: a number of requests"),
        ("a,limit=1,limit=2", "a,limit=1,limit=2: `limit` stands there twice"),
        ("a,delay=3", "a,delay=3: `3` has no unit: a time is written like"),
    ] {
        let error = text.parse::<SourceConfig>().unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = || two(folder.path());
    let set = |change: &dyn Fn(&mut Combination)| {
        let mut combination = good();
        change(&mut combination);
        error(combination)
    };
    let said = [
        (set(&|c| c.traces.clear()), "0 traces; accepted: 1 to 65536"),
        (
            set(&|c| (c.order, c.burst_requests) = (Order::Merge, Some(BurstRequests::All))),
            "burst_requests = all: the order merge has no bursts; accepted: the order bursts",
        ),
        (
            set(&|c| c.align = Some("1MiB".parse().unwrap())),
            "align: the placement overlay has no use for it; accepted: the placement concatenate",
        ),
        (
            set(&|c| c.blocks = Some(BlockRule::Size)),
            "blocks = size: the placement overlay has no use for it; accepted: the placement pack",
        ),
    ];
    for (found, expected) in said {
        assert_eq!(found, expected);
    }
    let skipped = set(&|c| (c.traces[0].skip, c.place) = (Some(9), Place::Pack));
    assert!(skipped.contains("skip = 9: the trace has 5 requests; accepted"), "{skipped}");
    let far = set(&|c| {
        (c.traces[0].offset, c.place) = (Some("4200000TiB".parse().unwrap()), Place::Pack);
    });
    assert!(
        far.contains(
            "accepted: an offset, a stride and an align with which all addresses are below 2^62"
        ),
        "{far}"
    );
    let folder = tempfile::tempdir().unwrap();
    let lis = folder.path().join("t.lis");
    std::fs::write(&lis, "5 1 0 0\n6 1 0 1\n").unwrap();
    let mut timeless = two(folder.path());
    timeless.traces[1] = SourceConfig {
        path: lis.display().to_string(),
        format: Some("arc".to_owned()),
        ..SourceConfig::default()
    };
    assert!(combined(&timeless).iter().all(|(time, ..)| *time == 0));
    timeless.order = Order::Merge;
    assert!(error(timeless).contains("says nothing of times, by which the order merge goes"));
}

fn many() -> impl Strategy<Value = Vec<Vec<(u64, u64, u64)>>> {
    let request = (0u64..50, 0u64..60, 1u64..9);
    let sources = prop::collection::vec(prop::collection::vec(request, 1..40), 1..5);
    sources.prop_map(|sources| {
        let in_time = |requests: Vec<(u64, u64, u64)>| {
            let mut now = 0;
            let mut later = |gap: u64| {
                now += gap;
                now
            };
            let timed = requests.into_iter().enumerate().map(|(number, (gap, block, blocks))| {
                (later(if number == 0 { 0 } else { gap }), block, blocks)
            });
            timed.collect()
        };
        sources.into_iter().map(in_time).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every request of every source appears once, in the order of its source.
    #[test]
    fn every_request_appears_once(sources in many(), length in 1u64..12, seed in 0u64..1000) {
        let folder = tempfile::tempdir().unwrap();
        let configs: Vec<_> = sources
            .iter()
            .enumerate()
            .map(|(number, requests)| source(folder.path(), &number.to_string(), requests))
            .collect();
        for order in [Order::Bursts, Order::Merge, Order::Concatenate, Order::Shuffle] {
            let mut combination = Combination::of(configs.clone());
            combination.order = order;
            combination.place = Place::Separate;
            combination.seed = Some(seed);
            if order == Order::Bursts {
                combination.burst_requests = Some(BurstRequests::Count(length));
            }
            let mut by_source = vec![Vec::new(); sources.len()];
            let mut last_ns = 0;
            for record in Combined::new(combination).unwrap().records().unwrap() {
                let record = record.unwrap();
                prop_assert!(record.time_ns >= last_ns);
                last_ns = record.time_ns;
                by_source[usize::from(record.device)]
                    .push((record.offset_bytes / BLOCK, record.length_bytes / BLOCK));
            }
            for (found, requests) in by_source.iter_mut().zip(&sources) {
                let mut expected: Vec<_> =
                    requests.iter().map(|(_, block, blocks)| (*block, *blocks)).collect();
                if order == Order::Shuffle {
                    found.sort_unstable();
                    expected.sort_unstable();
                }
                prop_assert_eq!(&*found, &expected);
            }
        }
    }

    /// Packing agrees with one entry for each block, given in the order of first touch.
    #[test]
    fn packing_is_a_bijection_by_first_touch(sources in many()) {
        let folder = tempfile::tempdir().unwrap();
        let mut places = BTreeMap::new();
        for (number, requests) in sources.iter().enumerate() {
            for (_, block, blocks) in requests {
                for touched in *block..block + blocks {
                    let next = places.len() as u64;
                    places.entry((number, touched)).or_insert(next);
                }
            }
        }
        let mut pack = Combination::of(
            sources
                .iter()
                .enumerate()
                .map(|(number, requests)| source(folder.path(), &number.to_string(), requests))
                .collect(),
        );
        pack.place = Place::Pack;
        pack.order = Order::Concatenate;
        let mut expected = Vec::new();
        for (number, requests) in sources.iter().enumerate() {
            for (_, block, blocks) in requests {
                expected.extend((*block..block + blocks).map(|touched| places[&(number, touched)]));
            }
        }
        let found: Vec<u64> = combined(&pack)
            .into_iter()
            .flat_map(|(_, block, blocks)| block..block + blocks)
            .collect();
        prop_assert_eq!(found, expected);
    }
}
