//! Streams, cuts and counts of a replay.

use super::*;
use imbrex_core::buffer::ContentKind;
use imbrex_core::extent::Extent;
use imbrex_report::{Dependencies, Due, Run};

fn replayer(
    records: Vec<TraceRecord>,
    mode: ReplayMode,
) -> Replayer<impl Iterator<Item = Result<TraceRecord, TraceError>>> {
    let options =
        ReplayOptions { mode, limit: None, drop_reads: false, placement: Placement::default() };
    let recorder = Rc::new(RefCell::new(Recorder::new()));
    Replayer::new(records.into_iter().map(Ok), options, BlockCount(64), recorder)
}

/// When each of four reads is issued in two streams, of which the first one takes so long and the others 1 ms.
fn issued_ms(due: Due, first_takes_ms: u64) -> Vec<u64> {
    let dependencies = Dependencies::InTurn;
    let read = |ms: u64| TraceRecord::new(ms * 1_000_000, TraceOperation::Read, 0, 4096);
    let records = [10, 11, 12, 30].map(read).to_vec();
    let mut replayer = replayer(records, ReplayMode::Streams { streams: 2, due, dependencies });
    let mut buffers = Buffers::new(ContentKind::Counted);
    let (mut issued, mut in_flight) = (Vec::new(), Vec::new());
    for ms in 0..200 {
        let now = Instant(ms * 1_000_000);
        in_flight.retain(|(tag, ends)| {
            if *ends <= ms {
                let completion = Completion { tag: *tag, result: Ok(()) };
                replayer.reply(now, completion, &mut buffers);
            }
            *ends > ms
        });
        while replayer.next_arrival().is_some_and(|at| at <= now)
            && let Some(arrival) = replayer.poll(now, &mut buffers)
        {
            let takes = if issued.is_empty() { first_takes_ms } else { 1 };
            issued.push(ms);
            in_flight.push((arrival.tag, ms + takes));
        }
    }
    assert!(replayer.finished());
    issued
}

#[test]
fn a_request_of_a_stream_is_due_at_its_time_or_after_the_one_before_it() {
    // The third is of the first stream, 2 ms behind the first; the fourth of the second, 19 ms behind the second.
    assert_eq!(issued_ms(Due::Absolute, 1), [10, 11, 12, 30]);
    assert_eq!(issued_ms(Due::Shift, 1), [10, 11, 12, 30]);
    // Where the first takes longer than the gap its successor is late, by both.
    assert_eq!(issued_ms(Due::Absolute, 50), [10, 11, 30, 60]);
    assert_eq!(issued_ms(Due::Shift, 50), [10, 11, 30, 60]);
}

#[test]
fn a_late_request_shifts_those_behind_it() {
    let at = |ms: u64| Instant(ms * 1_000_000);
    let due_ms = |due| {
        let mut streams = Streams::new(1, due, Dependencies::InTurn);
        for (record, ms) in [(1, 10), (2, 20), (3, 40)] {
            let (operation, extent) = (Operation::Read, Extent::new(0, 1));
            streams.add(Waiting { record, at: at(ms), operation, extent, window: 0, stream: 0 });
        }
        let mut due = Vec::new();
        // Each is issued when it can be; the first takes 50 ms.
        for (issued, ends) in [(10, 60), (60, 61), (200, 201)] {
            let (waiting, was_due) = streams.take(at(issued)).expect("it can be");
            streams.end(waiting.stream, at(ends));
            due.push(was_due.0 / 1_000_000);
        }
        due
    };
    assert_eq!(due_ms(Due::Absolute), [10, 20, 40]);
    assert_eq!(due_ms(Due::Shift), [10, 20, 80], "20 ms behind the one at 60");
}

/// Arrivals and response times of a trace in ms; the streams that its requests join when there are two.
fn joined(records: &[(u64, u64)]) -> Vec<Option<u32>> {
    let mut streams = Streams::new(2, Due::Absolute, Dependencies::Latency);
    let of = |(at, (ms, response_ms)): (usize, &(u64, u64))| {
        let mut record = TraceRecord::new(ms * 1_000_000, TraceOperation::Read, 0, 4096);
        record.response_ns = Some(response_ms * 1_000_000);
        streams.of(&record, at as u64 + 1)
    };
    records.iter().enumerate().map(of).collect()
}

#[test]
fn a_request_joins_the_stream_that_had_ended_latest_before_it() {
    assert_eq!(joined(&[(0, 5), (5, 1), (6, 1)]), [0, 0, 0].map(Some), "one at a time");
    // The second comes while the first is open; then both have ended, the second later.
    assert_eq!(joined(&[(0, 5), (1, 8), (20, 1), (22, 1)]), [0, 1, 1, 1].map(Some));
    // The third comes while both are open: behind the one that ends first.
    assert_eq!(joined(&[(0, 9), (1, 4), (2, 1), (9, 1)]), [0, 1, 1, 0].map(Some));
    let mut streams = Streams::new(2, Due::Absolute, Dependencies::Latency);
    assert_eq!(streams.of(&TraceRecord::new(0, TraceOperation::Read, 0, 4096), 1), None);
}

#[test]
fn a_flush_of_a_trace_that_is_cut_is_of_the_whole_device_and_the_limit_counts_records() {
    let record = |operation, first_block: u64, blocks: u64| {
        TraceRecord::new(0, operation, first_block * 4096, blocks * 4096)
    };
    let (write, flush) = (TraceOperation::Write, TraceOperation::Flush);
    // Parts of 4 blocks in windows of 32: the first record has two pieces, and the last one is beyond the limit.
    let records = [record(write, 8, 8), record(flush, 0, 0), record(write, 9, 1)];
    let window =
        |name: &str, start| StreamWindow { name: name.to_string(), extent: Extent::new(start, 32) };
    let windows = Windows::OfParts(vec![window("a", 0), window("b", 32)], Cut::new(8..16, 2));
    let mode = ReplayMode::ClosedLoop { depth: 9 };
    let placement = Placement::default();
    let options = ReplayOptions { mode, limit: Some(2), drop_reads: false, placement };
    let mut replayer = Replayer::in_windows(
        records.into_iter().map(Ok),
        options,
        BlockCount(64),
        Dealt { windows, spans_bytes: vec![] },
        Rc::new(RefCell::new(Recorder::new())),
    );
    let mut buffers = Buffers::new(ContentKind::Counted);
    let mut issued = Vec::new();
    while let Some(arrival) = replayer.poll(Instant::ZERO, &mut buffers) {
        issued.push((arrival.operation, arrival.extent));
    }
    let written = Operation::Write { durability: imbrex_core::operation::Durability::Cached };
    let expected = [
        (written, Extent::new(0, 4)),
        (written, Extent::new(32, 4)),
        (Operation::Flush, Extent::EMPTY),
    ];
    assert_eq!(issued, expected);
    let counts = replayer.counts;
    assert_eq!((counts.requests, counts.added_requests, counts.write_blocks), (3, 1, 8));
    let cut = replayer.cut().expect("it was cut");
    assert_eq!(cut.parts.iter().map(|part| part.write_blocks).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn only_writes_are_counted_as_writes() {
    let records = [
        (TraceOperation::Write, 4096),
        (TraceOperation::Flush, 0),
        (TraceOperation::Trim, 8192),
        (TraceOperation::WriteZeroes, 8192),
        (TraceOperation::Read, 4096),
    ]
    .map(|(operation, bytes)| TraceRecord::new(0, operation, 0, bytes));
    let mode = ReplayMode::ClosedLoop { depth: 1 };
    let mut replayer = replayer(records.to_vec(), mode);
    let mut buffers = Buffers::new(ContentKind::Counted);
    let mut now = Instant::ZERO;
    while !replayer.finished() {
        let arrival = replayer.poll(now, &mut buffers).expect("one at a time");
        now.0 += 1_000_000;
        let completion = Completion { tag: arrival.tag, result: Ok(()) };
        replayer.reply(now, completion, &mut buffers);
    }
    assert_eq!(replayer.counts.requests, 5);
    assert_eq!(replayer.counts.write_blocks, 1);
    let mut run = Run::new("x", mode);
    replayer.recorder.take().finish(now.0, &mut run);
    let figures = run.figures;
    let total = |series: &imbrex_report::Series| {
        (series.values.iter().sum::<f64>() * series.bucket_s * 256.0).round()
    };
    assert_eq!(total(&figures.write_mib_per_s), 1.0, "blocks written");
    assert_eq!(total(&figures.read_mib_per_s), 1.0, "blocks read");
    assert_eq!(total(&figures.requests_per_s), 5.0 * 256.0);
}

#[test]
fn an_arrival_beyond_the_end_of_time_is_an_error() {
    let record = TraceRecord::new(2_000_000_000, TraceOperation::Read, 0, 4096);
    let mode = ReplayMode::OpenLoop { speed: 1e-10 };
    let error = replayer(vec![record], mode).take_error().unwrap_err();
    assert_eq!(
        error.to_string(),
        "record 1: arrives 20000000000 s after the first at speed 0.0000000001; \
         accepted: at most 2305843009 s"
    );
}

#[test]
fn records_behind_a_number_wait_and_then_come_as_much_later_as_the_first_is_late() {
    let write = |ms: u64| TraceRecord::new(ms * 1_000_000, TraceOperation::Write, 0, 4096);
    let records = [10, 20, 30, 60].map(write).to_vec();
    let at = |ms: u64| Instant(ms * 1_000_000);
    for (answered_ms, first_ms, second_ms) in [(25, 30, 60), (45, 45, 75)] {
        let mut replayer = replayer(records.clone(), ReplayMode::OpenLoop { speed: 1.0 });
        replayer.hold_after(2);
        let mut buffers = Buffers::new(ContentKind::Counted);
        for ms in [10, 20] {
            assert_eq!(replayer.next_arrival(), Some(at(ms)));
            let arrival = replayer.poll(at(ms), &mut buffers).expect("it has arrived");
            assert!(!replayer.finished());
            let completion = Completion { tag: arrival.tag, result: Ok(()) };
            replayer.reply(at(answered_ms), completion, &mut buffers);
        }
        assert!(replayer.finished() && replayer.next_arrival().is_none());
        assert_eq!(replayer.records_before_held(), Some(2));
        replayer.begin_measuring(at(answered_ms));
        assert_eq!((replayer.counts.requests, replayer.finished()), (0, false));
        for ms in [first_ms, second_ms] {
            assert_eq!(replayer.next_arrival(), Some(at(ms)), "answered at {answered_ms}");
            assert!(replayer.poll(at(ms), &mut buffers).is_some());
        }
        assert_eq!((replayer.counts.requests, replayer.last_arrival), (2, at(second_ms)));
    }
}
