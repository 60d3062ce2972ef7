//! Cleaning on a drive with mechanics. In idle time: when it begins, what it costs a request that
//! interrupts it, and how long it takes to empty a log. For want of room: what requests wait.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::counters::{Counter, Gauge};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::rng::Rng;
use imbrex_core::stack::{Arrival, NodeId};
use imbrex_core::units::{Duration, Instant};
use imbrex_sim::simulation::VirtualClock;
use imbrex_stack::{BuildOptions, Plan, Setting, StackConfig};

const GB: u64 = 1_000_000_000;
const BLOCK: u64 = 4096;

/// A request that is sent so long after the last answer.
type Step = (Duration, Operation, Extent);

/// One host thread that waits between its requests.
struct Thread {
    steps: Vec<Step>,
    next: usize,
    due: Instant,
    sent: Option<Instant>,
    buffer: BufferSlice,
    responses_ns: Vec<u64>,
}

impl Frontend for Thread {
    fn next_arrival(&self) -> Option<Instant> {
        (self.sent.is_none() && self.next < self.steps.len()).then_some(self.due)
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.sent.is_some() || self.next == self.steps.len() || now < self.due {
            return None;
        }
        let (_, operation, extent) = self.steps[self.next];
        self.next += 1;
        self.sent = Some(now);
        self.buffer = buffers.allocate(extent.blocks.0);
        Some(Arrival { tag: Tag(0), operation, extent, buffer: self.buffer })
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        completion.result.unwrap();
        buffers.release(self.buffer);
        let sent = self.sent.take().expect("one request is in flight");
        self.responses_ns.push(now.since(sent).0);
        let gap = self.steps.get(self.next).map_or(Duration::ZERO, |it| it.0);
        self.due = now + gap;
    }

    fn finished(&self) -> bool {
        self.sent.is_none() && self.next == self.steps.len()
    }
}

/// The ST5000AS0011 with settings of its translation.
struct Drive {
    engine: Engine,
    clock: VirtualClock,
    translation: NodeId,
    now: Instant,
}

impl Drive {
    fn new(settings: &[&str]) -> Drive {
        let settings: Vec<Setting> = settings
            .iter()
            .map(|text| Setting::parse(&format!("translation.{text}")).unwrap())
            .collect();
        let config = StackConfig::of_drive("st5000as0011", &settings).unwrap();
        let built = Plan::new(&config, &BuildOptions::simulate(1))
            .unwrap()
            .build(None, None, ContentKind::Counted)
            .unwrap();
        Drive {
            translation: built.describe.translation().expect("a translation"),
            engine: Engine {
                stack: built.stack,
                disks: built.disks,
                buffers: Buffers::new(ContentKind::Counted),
                in_flight_max: 1,
            },
            clock: VirtualClock::default(),
            now: Instant::ZERO,
        }
    }

    /// Sends requests and returns their response times.
    fn send(&mut self, steps: Vec<Step>) -> Vec<u64> {
        let mut thread = Thread {
            due: self.now + steps.first().map_or(Duration::ZERO, |it| it.0),
            steps,
            next: 0,
            sent: None,
            buffer: BufferSlice::EMPTY,
            responses_ns: Vec::new(),
        };
        self.engine.run(&mut self.clock, &mut thread, &mut |_, _| {});
        self.now = thread.due;
        thread.responses_ns
    }

    fn counter(&self, counter: Counter) -> u64 {
        self.engine.stack.counts(self.translation).counter(counter)
    }

    fn entries(&self) -> u64 {
        let counts = self.engine.stack.counts(self.translation);
        counts.gauge(Gauge::PersistentCacheEntries)
    }
}

fn write(gap: Duration, start: u64, blocks: u64) -> Step {
    (gap, Operation::WRITE, Extent::new(start, blocks))
}

fn read(gap: Duration, start: u64) -> Step {
    (gap, Operation::Read, Extent::new(start, 1))
}

/// Row V21 in the words of a drive-managed disk: one write to each of eight bands and a pause after
/// each.
#[test]
fn eight_bands_are_cleaned_in_gaps_above_the_trigger_and_in_none_below() {
    let bands_left = |gap_ms| {
        let mut drive = Drive::new(&["idle_after=250 ms", "rewrite_overhead=0 ms"]);
        let gap = Duration::from_ms(gap_ms);
        let steps = (0..8).map(|band| write(gap, band * 20_000, 1));
        drive.send(steps.collect());
        drive.send(vec![read(gap, 1 << 20)]);
        assert_eq!(8 - drive.entries(), drive.counter(Counter::BandsRewritten));
        drive.entries()
    };
    let left = [240, 249, 260, 600, 2_000].map(bands_left);
    println!("idle cleaning: bands left of 8 after gaps of 240, 249, 260, 600, 2000 ms: {left:?}");
    assert_eq!(left[..2], [8, 8]);
    assert!(left.is_sorted_by(|a, b| a >= b), "{left:?}");
    assert_eq!(left[4], 0);
}

/// As in row V23: reads that arrive while bands are being cleaned take about as long as without
/// cleaning. The row itself is measured on the host-aware sibling, which merges a zone at once; here
/// a clean in stretches has the arm away from the reads more often.
#[test]
fn a_request_that_interrupts_cleaning_does_not_wait_for_it() {
    let mut medians_ms = Vec::new();
    for setting in ["idle_after=off", "idle_after=250 ms"] {
        let mut drive = Drive::new(&[setting]);
        let mut places = Rng::new(3, 1);
        let writes = (0..4_000).map(|_| write(Duration::ZERO, places.below(20 * GB / BLOCK), 2));
        drive.send(writes.collect());
        let mut gaps = Rng::new(4, 1);
        let mut gap = || Duration::from_ms(300 + gaps.below(600));
        let reads = (0..1_000).map(|_| read(gap(), places.below(20 * GB / BLOCK)));
        let mut responses = drive.send(reads.collect());
        responses.sort_unstable();
        let rewritten = drive.counter(Counter::BandsRewritten);
        println!(
            "idle cleaning: {setting}: p50 {:.2} ms, p99 {:.2} ms, {rewritten} bands",
            responses[500] as f64 / 1e6,
            responses[990] as f64 / 1e6
        );
        assert_eq!(rewritten > 50, setting != "idle_after=off");
        medians_ms.push(responses[500] as f64 / 1e6);
    }
    assert!(medians_ms[1] < 1.15 * medians_ms[0], "{medians_ms:?}");
}

/// As in row V24, whose zones are ten times as long as these bands: while bands are cleaned for want
/// of room a read of one thread waits for a slice, and a write for a band and longer.
#[test]
fn requests_wait_for_slices_of_cleaning_when_there_is_no_room() {
    let settings = ["entries=2000", "blocking_low=0.9", "blocking_slice=0.5 s"];
    let mut drive = Drive::new(&settings);
    let mut rng = Rng::new(6, 1);
    let mut step = |reads: bool| {
        let place = rng.below(20 * GB / BLOCK);
        match reads && rng.below(2) == 0 {
            true => read(Duration::ZERO, place),
            false => write(Duration::ZERO, place, 2),
        }
    };
    drive.send((0..2_000).map(|_| step(false)).collect());
    assert_eq!(drive.counter(Counter::BandsRewritten), 0);
    let steps: Vec<Step> = (0..400).map(|_| step(true)).collect();
    let responses = drive.send(steps.clone());
    let seconds = |is_read: bool| {
        let of_kind = steps.iter().zip(&responses);
        let of_kind = of_kind.filter(|(step, _)| (step.1 == Operation::Read) == is_read);
        let of_kind: Vec<f64> = of_kind.map(|(_, ns)| *ns as f64 / 1e9).collect();
        let longest = of_kind.iter().copied().fold(0.0, f64::max);
        (of_kind.iter().sum::<f64>() / of_kind.len() as f64, longest)
    };
    let (reads, writes) = (seconds(true), seconds(false));
    println!(
        "blocking cleaning: reads {:.2} s on average and at most {:.2} s, writes {:.2} and {:.2} s, \
         {} bands",
        reads.0,
        reads.1,
        writes.0,
        writes.1,
        drive.counter(Counter::BandsRewritten)
    );
    assert!((0.4..0.6).contains(&reads.1), "{reads:?}");
    assert!((0.6..3.0).contains(&writes.1), "{writes:?}");
}

/// Row V19h is of a larger sibling: more than an hour to drain its log after 14 GB in segments of
/// 5 MB. And row V10: a clean takes 0.3 to 1.6 s.
#[test]
fn a_log_of_segments_takes_a_good_part_of_an_hour_to_drain() {
    let mut drive = Drive::new(&["idle_after=1 s"]);
    let mut rng = Rng::new(5, 1);
    let (segment, range) = (5_000_000 / BLOCK, 1_000 * GB / BLOCK);
    let segments = 14 * GB / 5_000_000;
    let writes = (0..segments).map(|_| write(Duration::ZERO, rng.below(range), segment));
    drive.send(writes.collect());
    let before = drive.counter(Counter::BandsRewritten);
    let mut left = vec![drive.entries()];
    let minute = Duration::from_ms(60_000);
    while left.last() != Some(&0) && left.len() < 600 {
        drive.send(vec![read(minute, 0)]);
        left.push(drive.entries());
    }
    let cleans = drive.counter(Counter::BandsRewritten) - before;
    let clean_s = drive.counter(Counter::BandRewriteNs) as f64 / 1e9 / cleans as f64;
    let hours = (left.len() - 1) as f64 / 60.0;
    println!("idle cleaning: 14 GB drain in {hours:.2} h, {cleans} cleans of {clean_s:.2} s");
    assert!(left.is_sorted_by(|a, b| a > b), "the log does not empty steadily");
    assert!((0.4..2.5).contains(&hours), "{hours} h");
    assert!((0.3..1.6).contains(&clean_s), "{clean_s} s");
}
