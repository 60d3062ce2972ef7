//! Any drive on a bus, under any requests: each is answered once, in the time it needs at the least,
//! the bus carries one request at a time, and the same requests take the same time again.

use super::bus_tests::{Rig, text};
use imbrex_core::operation::{Durability, Operation};
use proptest::prelude::*;

/// Longer than 60 requests of 200 sectors at 4 turns of 10 ms a sector.
const LONG_NS: u64 = 500_000_000_000;

/// One request of a host: when it comes after the one before, what it is, and where.
#[derive(Clone, Copy, Debug)]
struct Request {
    after_us: u64,
    operation: Operation,
    start: u64,
    sectors: u64,
}

fn any_request() -> impl Strategy<Value = Request> {
    let through = Operation::Write { durability: Durability::Durable };
    let operation = prop_oneof![
        4 => Just(Operation::Read),
        4 => Just(Operation::WRITE),
        1 => Just(through),
        1 => Just(Operation::Flush),
    ];
    // Some requests come at the same moment, some continue what others began.
    let after_us = prop_oneof![Just(0), 0..500u64, 0..40_000u64];
    let start = prop_oneof![0..7_000u64, (0..6u64).prop_map(|i| i * 40)];
    let sectors = prop_oneof![Just(40), 1..12u64, 1..200u64];
    (after_us, operation, start, sectors).prop_map(|(after_us, operation, start, sectors)| {
        Request { after_us, operation, start, sectors }
    })
}

/// Lines of a drive file in the place of others, and lines more for its table `[bus]`.
#[derive(Clone, Debug)]
struct AnyDrive {
    changes: Vec<(&'static str, String)>,
    bus: String,
    read_sector_ns: u64,
    write_sector_ns: u64,
}

impl AnyDrive {
    fn text(&self) -> String {
        let changes: Vec<(&str, &str)> =
            self.changes.iter().map(|(from, to)| (*from, to.as_str())).collect();
        text(&changes, &self.bus)
    }
}

fn us(key: &str, us: u64) -> String {
    format!("{key} = \"{us} us\"\n")
}

fn any_bus() -> impl Strategy<Value = String> {
    let flag = |key: &'static str| any::<bool>().prop_map(move |on| format!("{key} = {on}\n"));
    let span = |key: &'static str| prop_oneof![Just(0), 0..900u64].prop_map(move |n| us(key, n));
    let common = (
        flag("held_for_whole_read"),
        flag("held_for_whole_write"),
        flag("takes_writes_early"),
        prop_oneof![Just("0"), Just("0.3"), Just("1")]
            .prop_map(|s| format!("read_watermark = {s}\n")),
        (0..300u64).prop_map(|n| format!("write_head_start = {n}\n")),
        span("prepare_data"),
        span("complete_read"),
        span("complete_write"),
    );
    let leaving = (
        span("leave_read_after_read"),
        span("leave_read_after_write"),
        span("leave_write"),
        span("reselect"),
        any::<bool>(),
    );
    (common, proptest::option::weighted(0.7, leaving)).prop_map(|(common, leaving)| {
        let (a, b, c, d, e, f, g, h) = common;
        let text = [a, b, c, d, e, f, g, h].concat();
        match leaving {
            None => text + "never_released = true\n",
            Some((a, b, c, d, splits)) => {
                let split = match splits {
                    true => {
                        "[bus.write_after_write]\ncommand = \"0.3 ms\"\nleave = \"0.1 ms\"\n\
                         away = \"0.4 ms\"\nleave_again = \"0.1 ms\"\nreselect_again = \"0.2 ms\"\n\
                         seek_after = \"0.7 ms\"\n"
                    }
                    false => "",
                };
                [&text, &a, &b, &c, &d, split].concat()
            }
        }
    })
}

fn any_drive() -> impl Strategy<Value = AnyDrive> {
    let ns = || prop_oneof![Just(50_000u64), 1..300_000u64];
    let cache = (
        prop_oneof![Just(512u64), Just(20_480), Just(51_200)],
        1..4u64,
        any::<bool>(),
        any::<bool>(),
    );
    let segments = (
        2..5u64,
        prop_oneof![Just("segment"), Just("track"), Just("track-end"), Just("cylinder-end")],
        any::<[bool; 2]>(),
        prop_oneof![
            Just("keeps_written = true"),
            Just("keeps_written = false"),
            Just("keeps_written = false\nseparate_write_segment = true"),
        ],
    );
    let queue = (1..6u64, prop_oneof![Just("fcfs"), Just("sptf")]);
    (any_bus(), ns(), ns(), cache, segments, queue).prop_map(
        |(bus, read_sector_ns, write_sector_ns, cache, segments, queue)| {
            let (buffer, writes, write_cache, reads_ahead) = cache;
            let (count, to, [after_hit, keeps_passed], written) = segments;
            let (depth, scheduler) = queue;
            let read_ahead = if reads_ahead { 25_600 } else { 0 };
            let changes = vec![
                ("4096000 B", "3686400 B".to_string()),
                ("read_sector = \"0.05 ms\"", format!("read_sector = \"{read_sector_ns} ns\"")),
                ("write_sector = \"0.05 ms\"", format!("write_sector = \"{write_sector_ns} ns\"")),
                ("write_buffer = \"25600 B\"", format!("write_buffer = \"{buffer} B\"")),
                ("write_segments = 1", format!("write_segments = {writes}")),
                ("write_cache = true", format!("write_cache = {write_cache}")),
                ("read_ahead = \"25600 B\"", format!("read_ahead = \"{read_ahead} B\"")),
                ("count = 3", format!("count = {count}")),
                ("read_ahead_to = \"segment\"", format!("read_ahead_to = \"{to}\"")),
                ("after_hit = false", format!("after_hit = {after_hit}")),
                ("keeps_passed = false", format!("keeps_passed = {keeps_passed}")),
                ("keeps_written = true", written.to_string()),
                ("depth = 1", format!("depth = {depth}")),
                ("\"fcfs\"", format!("\"{scheduler}\"")),
            ];
            AnyDrive { changes, bus, read_sector_ns, write_sector_ns }
        },
    )
}

/// When each request came and when it was answered, in the order of the answers.
fn play(drive: &AnyDrive, requests: &[Request]) -> Vec<(usize, u64, u64)> {
    let mut rig = Rig::of(&drive.text(), true);
    let mut submitted = Vec::new();
    let mut answers = Vec::new();
    for request in requests {
        let at = rig.now + request.after_us * 1000;
        rig.answers_until(at, &mut answers);
        submitted.push(at);
        rig.submit(request.operation, request.start, request.sectors);
    }
    rig.answers_until(LONG_NS, &mut answers);
    answers
        .into_iter()
        .map(|(tag, at)| (tag as usize - 1, submitted[tag as usize - 1], at))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_drive_on_a_bus_answers_any_requests(
        drive in any_drive(),
        requests in proptest::collection::vec(any_request(), 1..60),
    ) {
        let answers = play(&drive, &requests);
        let mut answered: Vec<usize> = answers.iter().map(|(index, ..)| *index).collect();
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..requests.len()).collect::<Vec<_>>());
        let crossing_ns = |index: usize| {
            let sectors = requests[index].sectors;
            match requests[index].operation {
                Operation::Read => sectors * drive.read_sector_ns,
                Operation::Flush => 0,
                _ => sectors * drive.write_sector_ns,
            }
        };
        for (index, submitted, at) in &answers {
            let least = submitted + crossing_ns(*index);
            prop_assert!(*at >= least, "{index} answered at {at}, at the earliest {least}");
        }
        // One at a time: what was answered by a moment has crossed by then.
        let first = answers.iter().map(|(_, submitted, _)| *submitted).min().unwrap();
        let mut crossed_ns = 0;
        for (index, _, at) in &answers {
            crossed_ns += crossing_ns(*index);
            prop_assert!(*at >= first + crossed_ns, "{index}: {crossed_ns} ns had to cross by {at}");
        }
        prop_assert_eq!(answers, play(&drive, &requests), "again");
    }
}
