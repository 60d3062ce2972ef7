//! The sections of a characterisation on tiny traces, counted by hand.

use imbrex_traces::characterise::{Bin, Sections};
use imbrex_traces::{BlockRule, Characterise, ReadOptions, TraceInfo, TraceReader, characterise};

/// Lines of device, sector, bytes, operation, second.
fn info(text: &str) -> TraceInfo {
    let reader = TraceReader::from_read(
        "t",
        std::io::Cursor::new(text.as_bytes().to_vec()),
        &ReadOptions::default(),
    );
    characterise(reader.unwrap(), BlockRule::Touched).unwrap()
}

fn sections(text: &str) -> Sections {
    info(text).sections
}

/// Blocks 0, 1, 2: W0 W0 R0 W1 R2 R2 W0 W2, a second apart.
const BLOCKS: &str = "0,0,4096,w,0\n0,0,4096,w,1\n0,0,4096,r,2\n0,8,4096,w,3\n\
    0,16,4096,r,4\n0,16,4096,r,5\n0,0,4096,w,6\n0,16,4096,w,7\n";

#[test]
fn shares_by_request_access_and_block() {
    let shares = sections(BLOCKS).shares;
    // Five writes of eight; the second and the third to block 0 are updates.
    let requests = &shares.of_requests;
    assert_eq!(
        (requests.read_percent, requests.write_percent, requests.update_percent),
        (37.5, 62.5, 25.0)
    );
    assert_eq!(shares.of_requests, shares.of_accesses);
    let third = 100.0 / 3.0;
    let blocks = &shares.of_distinct_blocks;
    assert!((blocks.read_percent - 2.0 * third).abs() < 1e-9);
    assert_eq!(blocks.write_percent, 100.0);
    assert!((blocks.update_percent - third).abs() < 1e-9);
    assert!((shares.update_coverage_percent - third).abs() < 1e-9);
}

#[test]
fn distributions_of_writes_and_updates() {
    // Block 0 is written three times, blocks 1 and 2 once; block 3 is read.
    let found = sections(&format!("{BLOCKS}0,24,4096,r,8\n")).popularity;
    let points: Vec<_> = found
        .cdf
        .iter()
        .map(|point| {
            let percents = [
                point.accessed_written_percent,
                point.accessed_updated_percent,
                point.written_written_percent,
                point.written_updated_percent,
            ];
            (point.times, percents.map(|percent| percent.round() as u64))
        })
        .collect();
    assert_eq!(
        points,
        [
            (0, [25, 75, 0, 67]),
            (1, [75, 75, 67, 67]),
            (2, [75, 100, 67, 100]),
            (3, [100, 100, 100, 100]),
        ]
    );
    // The hottest block of four: 4 of 9 accesses, 2 of 4 reads (block 2), 3 of 5 writes.
    assert!((found.accesses.top_1_percent - 400.0 / 9.0).abs() < 1e-9);
    assert_eq!((found.reads.top_10_percent, found.reads.blocks), (50.0, 3));
    assert_eq!((found.writes.top_1_percent, found.writes.blocks), (60.0, 3));
    // Block 3 is only read, block 1 only written.
    assert_eq!((found.read_mostly.blocks_percent, found.read_mostly.traffic_percent), (25.0, 25.0));
    assert_eq!(
        (found.write_mostly.blocks_percent, found.write_mostly.traffic_percent),
        (25.0, 20.0)
    );
}

#[test]
fn adjacent_accesses_and_their_times() {
    let pairs = sections(BLOCKS).adjacent_accesses;
    let mean = |pair: &imbrex_traces::characterise::Adjacent| {
        (pair.count, pair.time_ns.as_ref().unwrap().mean / 1e9)
    };
    // Block 0: W-W 1 s, W-R 1 s, R-W 4 s; block 2: R-R 1 s, R-W 2 s.
    assert_eq!(mean(&pairs.write_after_write), (1, 1.0));
    assert_eq!(mean(&pairs.read_after_write), (1, 1.0));
    assert_eq!(mean(&pairs.write_after_read), (2, 3.0));
    assert_eq!(mean(&pairs.read_after_read), (1, 1.0));
    // Writes of block 0 at 0, 1 and 6 s.
    assert_eq!(mean(&pairs.update_interval), (2, 3.0));
    assert_eq!(pairs.update_interval.time_ns.unwrap().maximum, 5_000_000_000);
}

#[test]
fn stack_distances_and_hit_ratios() {
    let reuse = sections(BLOCKS).reuse;
    // Distances: W0 1, R0 1, R2 1, W0 3 (0, 1, 2), W2 2 (2, 0); three accesses are first ones.
    assert_eq!(reuse.cold_accesses, 3);
    let bars: Vec<_> =
        reuse.distance_blocks.histogram.iter().map(|bar| (bar.from, bar.count)).collect();
    assert_eq!(bars, [(1, 3), (2, 1), (3, 1)]);
    let hits: Vec<_> = reuse
        .lru
        .iter()
        .map(|point| (point.cache_blocks, point.hit_percent, point.write_hit_percent))
        .collect();
    assert_eq!(hits, [(1, 37.5, 20.0), (2, 50.0, 40.0), (3, 62.5, 60.0)]);
    assert_eq!(reuse.lru_at_1_percent, reuse.lru[0]);
    assert!((reuse.lru[0].read_miss_percent - 100.0 / 3.0).abs() < 1e-9);
}

#[test]
fn distinct_blocks_over_time() {
    let series = sections(BLOCKS).working_set.unwrap();
    // 512 windows of 1 ms double until they hold 7 s.
    assert_eq!(series.window_s, 0.016);
    assert_eq!(series.blocks.len(), 438);
    assert_eq!(series.blocks.iter().sum::<u64>(), 8);
    assert_eq!(series.cumulative_blocks[437], 3);
    assert_eq!(series.cumulative_written_blocks[300], 2);
    // Ten hours later the eight requests fall in one window, which had three blocks.
    let series = sections(&format!("{BLOCKS}0,0,4096,r,36000\n")).working_set.unwrap();
    assert_eq!((series.blocks[0], series.cumulative_blocks[0]), (3, 3));
    assert_eq!(series.blocks.last(), Some(&1));
    assert_eq!(series.cumulative_blocks.last(), Some(&3));
}

#[test]
fn random_requests_are_far_from_the_last_32() {
    // 128 KiB is 256 sectors: the second request is near, the third one sector too far from both.
    let text = "0,1000,4096,w,0\n0,1256,4096,w,1\n0,1513,4096,r,2\n0,1008,4096,w,3\n1,0,4096,w,4\n";
    let found = sections(text).randomness;
    assert!((found.random_percent - 100.0 / 3.0).abs() < 1e-9);
    assert_eq!((found.random_reads_percent, found.random_writes_percent), (100.0, 0.0));
    // The fourth starts where the first ended; five requests, four of them writes.
    assert_eq!(
        (found.sequential_writes_percent, found.sequential_write_bytes_percent),
        (25.0, 25.0)
    );
    // A stream of requests of 1 MiB: each offset is far from the others, and none is random.
    let stream = |direction: char| {
        let line = |at: u64| format!("0,{},1048576,{direction},{at}\n", at * 2048);
        sections(&(0..40).map(line).collect::<String>()).randomness
    };
    for found in [stream('r'), stream('w')] {
        assert_eq!(found.random_percent, 0.0);
        assert_eq!(found.random_reads_percent, 0.0);
        assert_eq!(found.random_writes_percent, 0.0);
    }
    // After 32 requests elsewhere the first is forgotten.
    let mut text = "0,0,512,w,0\n".to_owned();
    for request in 1..=32u64 {
        text.push_str(&format!("0,{},512,w,{request}\n", request * 1_000_000));
    }
    text.push_str("0,0,512,w,33\n");
    assert_eq!(sections(&text).randomness.random_percent, 100.0);
}

#[test]
fn rates_peaks_and_active_periods() {
    // Four requests in 1200 s, three of them in the second that follows 600 s.
    let text =
        "0,0,4096,r,0\n0,0,4096,w,600\n0,0,4096,w,600.5\n0,0,8192,w,600.9\n0,0,4096,r,1200\n";
    let activity = sections(text).activity.unwrap();
    assert_eq!(activity.mean_requests_per_s, 5.0 / 1200.0);
    let second = &activity.peaks[0];
    assert_eq!((second.interval_s, second.requests_per_s, second.written_bytes), (1, 3.0, 16_384));
    assert!((second.burstiness_ratio - 720.0).abs() < 1e-9);
    assert_eq!(activity.peaks[1].requests_per_s, 0.05);
    assert_eq!(
        (activity.active_intervals, activity.intervals, activity.active_percent),
        (3, 3, 100.0)
    );
    assert_eq!((activity.read_active_intervals, activity.write_active_intervals), (2, 1));
}

#[test]
fn gaps_and_bursts() {
    let text = "0,0,4096,w,0\n0,0,4096,w,0.5\n0,0,4096,w,2\n0,0,4096,r,2.05\n0,0,4096,w,100\n";
    let gaps = sections(text).gaps.unwrap();
    let idle: Vec<_> = gaps.idle.iter().map(|idle| (idle.at_least_s, idle.gaps)).collect();
    assert_eq!(idle, [(0.1, 3), (1.0, 2), (10.0, 1), (60.0, 1)]);
    assert!((gaps.idle[1].total_s - 99.45).abs() < 1e-9);
    assert!((gaps.idle[3].time_percent - 97.95).abs() < 1e-9);
    // The gaps of 1.5 s and 97.95 s end bursts of 8, 4 and 4 KiB.
    assert_eq!(gaps.largest_write_burst_bytes, 8192);
    assert_eq!(gaps.inter_arrival_ns.count, 4);
}

#[test]
fn sizes_series_and_heat() {
    let found = sections(BLOCKS);
    let bar = |count| Bin { from: 4096, to: 4096, count };
    assert_eq!(found.request_sizes.read, [bar(3)]);
    assert_eq!(found.request_sizes.write, [bar(5)]);
    let load = found.load.unwrap();
    assert_eq!(load.writes.iter().sum::<u64>(), 5);
    assert_eq!(load.read_bytes.iter().sum::<u64>(), 12_288);
    let heat = found.heat.unwrap();
    assert_eq!(heat.read.blocks.iter().sum::<u32>(), 3);
    assert_eq!(heat.write.blocks.iter().sum::<u32>(), 5);
}

#[test]
fn a_trace_without_times_has_no_sections_of_time() {
    let options =
        ReadOptions { format: Some(imbrex_traces::Format::Arc), ..ReadOptions::default() };
    let bytes = std::io::Cursor::new(b"1 2 0 0\n1 2 0 1\n".to_vec());
    let reader = TraceReader::from_read("t", bytes, &options).unwrap();
    let found = characterise(reader, BlockRule::Touched).unwrap().sections;
    assert!(found.activity.is_none() && found.gaps.is_none() && found.heat.is_none());
    assert!(found.working_set.is_none() && found.load.is_none());
    // Two pages of 512 bytes are a part of one block.
    assert_eq!(found.adjacent_accesses.read_after_read.count, 1);
    assert!(found.adjacent_accesses.read_after_read.time_ns.is_none());
}

#[test]
fn an_empty_trace_is_all_zero() {
    let bytes = std::io::Cursor::new(b"0,8,4096,w,0.0\n".to_vec());
    let reader = TraceReader::from_read("t", bytes, &ReadOptions::default()).unwrap();
    let info = Characterise::new(BlockRule::Touched).finish(&reader);
    assert_eq!((info.requests, info.unique_blocks), (0, 0));
    let found = info.sections;
    assert_eq!(found.reuse.lru, []);
    assert!(found.popularity.cdf.iter().all(|point| point.times == 0));
}

#[test]
fn hit_ratios_are_exact_beyond_the_cells_of_the_histogram() {
    // 1361 blocks are read in a circle: every distance is 1361, so a cache of one block less never hits.
    let text: String = (0..10)
        .flat_map(|round| (0..1361).map(move |block| (round * 1361 + block, block * 8)))
        .map(|(second, sector)| format!("0,{sector},4096,r,{second}\n"))
        .collect();
    let reuse = sections(&text).reuse;
    let whole = reuse.lru.last().unwrap();
    assert_eq!((whole.cache_blocks, whole.hit_percent), (1361, 90.0));
    let smaller = &reuse.lru[..reuse.lru.len() - 1];
    assert!(smaller.iter().all(|point| point.hit_percent == 0.0));
}
