//! A small trace with made-up but plausible sections, so that every part of the page has something to show.

use std::io::Write as _;

use imbrex_drives::HeatMapRecorder;
use imbrex_traces::characterise::{
    Activity, Adjacent, Aggregation, Bin, CdfPoint, Distribution, DriveKind, Gaps, Heat, Idle,
    LoadSeries, LruPoint, Mostly, Peak, Sections, Suits, Verdict, WorkingSetSeries,
};
use imbrex_traces::{BlockRule, ReadOptions, TraceInfo, characterise, open};

/// A trace of the lines in `text`, whose file is called `name`.
pub fn trace(name: &str, text: &str) -> TraceInfo {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).unwrap();
    let options = ReadOptions { sha256: true, ..ReadOptions::default() };
    let reader = open(path.to_str().unwrap(), &options).unwrap();
    let mut info = characterise(reader, BlockRule::default()).unwrap();
    // The folder has another name each time.
    info.path = name.to_string();
    info.label = name.to_string();
    info
}

/// Lines of an MSR trace: `(microseconds, operation, offset, length)`.
pub fn msr(requests: &[(u64, &str, u64, u64)]) -> String {
    let line = |(us, operation, offset, length): &(u64, &str, u64, u64)| {
        let time = 128_166_372_000_000_000 + us * 10;
        format!("{time},host,0,{operation},{offset},{length},100\n")
    };
    requests.iter().map(line).collect()
}

/// A trace of three requests whose sections are filled in.
pub fn full(name: &str) -> TraceInfo {
    let mut info = trace(
        name,
        &msr(&[
            (0, "Write", 0, 8192),
            (1_500_000, "Read", 4096, 4096),
            (600_000_000, "Write", 4096, 65536),
        ]),
    );
    info.duration_s = Some(100_000.0);
    info.sections = sections();
    info
}

fn distribution(step: u64) -> Distribution {
    let histogram: Vec<Bin> = (0..24)
        .map(|i: u64| {
            let from = step << i;
            Bin { from, to: from + from / 4, count: 5 + (i * 7919) % 31 }
        })
        .collect();
    Distribution {
        count: histogram.iter().map(|bin| bin.count).sum(),
        mean: step as f64 * 1000.0,
        maximum: step << 24,
        p25: step << 6,
        p50: step << 12,
        p75: step << 16,
        p90: step << 20,
        p95: step << 21,
        p99: step << 22,
        p999: step << 23,
        histogram,
    }
}

fn sections() -> Sections {
    let mut sections = Sections::default();
    let bin = |size: u64, count| Bin { from: size, to: size, count };
    sections.request_sizes.read = vec![bin(512, 3), bin(4096, 500), bin(65536, 80)];
    sections.request_sizes.write = vec![bin(4096, 900), bin(8192, 300), bin(1 << 20, 12)];
    sections.popularity.cdf = (0..8u64)
        .map(|i| {
            let share = |zero: f64| 100.0 - (100.0 - zero) / (1.0 + i as f64 * 3.0);
            CdfPoint {
                times: if i == 0 { 0 } else { 4u64.pow(i as u32 - 1) },
                accessed_written_percent: share(20.0),
                accessed_updated_percent: share(60.0),
                written_written_percent: share(0.0),
                written_updated_percent: share(45.0),
            }
        })
        .collect();
    sections.popularity.reads =
        Aggregation { blocks: 70_000, top_1_percent: 12.0, top_10_percent: 38.5 };
    sections.popularity.read_mostly = Mostly { blocks_percent: 31.0, traffic_percent: 62.0 };
    let point = |i: u32| {
        let hit = 90.0 * (1.0 - 0.7f64.powi(i as i32));
        LruPoint {
            cache_blocks: 2u64.pow(i),
            hit_percent: hit,
            read_hit_percent: hit * 0.8,
            write_hit_percent: hit * 1.1,
            read_miss_percent: 100.0 - hit * 0.8,
            write_miss_percent: 100.0 - hit * 1.1,
        }
    };
    sections.reuse.lru = (0..18).map(point).collect();
    sections.reuse.lru_at_1_percent = point(9);
    sections.reuse.lru_at_10_percent = point(13);
    sections.reuse.distance_blocks = distribution(1);
    let pairs = |step: u64| Adjacent { count: step, time_ns: Some(distribution(step)) };
    sections.adjacent_accesses.read_after_write = pairs(900);
    sections.adjacent_accesses.write_after_write = pairs(70_000);
    sections.adjacent_accesses.read_after_read = pairs(4_000);
    sections.adjacent_accesses.write_after_read = pairs(20_000);
    sections.adjacent_accesses.update_interval = pairs(50_000);
    with_times(&mut sections);
    sections.verdicts = vec![Verdict {
        drive: DriveKind::DriveManaged,
        verdict: Suits::Partly,
        words: "It would fill the cache, but rests often.".to_string(),
        evidence: vec![
            "31 % of the time is idle for 1 s or more; at least 20 % wanted".to_string(),
        ],
    }];
    sections
}

fn with_times(sections: &mut Sections) {
    sections.activity = Some(Activity {
        mean_requests_per_s: 17.5,
        peaks: [1, 60, 600]
            .map(|interval_s| Peak {
                interval_s,
                requests_per_s: 2000.0 / interval_s as f64,
                burstiness_ratio: 115.0 / interval_s as f64,
                written_bytes: 5 << 20,
            })
            .to_vec(),
        active_intervals: 90,
        read_active_intervals: 40,
        write_active_intervals: 88,
        intervals: 167,
        active_percent: 53.9,
    });
    let wave = |i: u64, most: u64| (i * i * 7919 + i * 31) % most;
    sections.load = Some(LoadSeries {
        window_s: 512.0,
        reads: (0..196).map(|i| wave(i, 9000)).collect(),
        writes: (0..196).map(|i| wave(i + 7, 30_000)).collect(),
        read_bytes: (0..196).map(|i| wave(i, 9000) * 16_384).collect(),
        written_bytes: (0..196).map(|i| wave(i + 7, 30_000) * 4096).collect(),
    });
    sections.gaps = Some(Gaps {
        inter_arrival_ns: distribution(10_000),
        idle: [0.1, 1.0, 10.0, 60.0]
            .map(|at_least_s| Idle {
                at_least_s,
                gaps: (1000.0 / at_least_s) as u64,
                total_s: 40_000.0 - 300.0 * at_least_s,
                time_percent: 40.0 - 0.3 * at_least_s,
            })
            .to_vec(),
        largest_write_burst_bytes: 300 << 20,
    });
    sections.working_set = Some(WorkingSetSeries {
        window_s: 512.0,
        blocks: (0..196).map(|i| 2000 + wave(i, 9000)).collect(),
        cumulative_blocks: (0..196).map(|i: u64| 9000 + i * 700).collect(),
        cumulative_written_blocks: (0..196).map(|i: u64| 3000 + i * 400).collect(),
    });
    let mut maps = [HeatMapRecorder::new(96, 160), HeatMapRecorder::new(96, 160)];
    for i in 0..4000u64 {
        let at_ns = i * 25_000_000_000;
        maps[(i % 3 == 0) as usize].add(at_ns, (i * i * 7919) % 4_000_000, 40);
        maps[1].add(at_ns, 5_000_000 + i * 40, 40);
    }
    let [read, write] = maps.map(|mut map| map.heat_map(100_000_000_000_000));
    sections.heat = Some(Heat { read, write });
}
