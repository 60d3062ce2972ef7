//! The order in which policies serve.

use crate::world::{Asked, World};
use imbrex_core::counters::Counter;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Cause, Operation};
use imbrex_core::scheduler::{AreaCLook, Deadline, Policy, Quota};
use imbrex_core::units::{Duration, Instant, Lba};

fn reads(rounds: &[(u64, &[u64])]) -> Vec<Asked> {
    let of_round = |(at, blocks): &(u64, &[u64])| {
        let at = Instant(*at);
        let read = move |block: &u64| Asked::new(at, Operation::Read, Extent::new(*block, 1));
        blocks.iter().map(read).collect::<Vec<_>>()
    };
    rounds.iter().flat_map(of_round).collect()
}

/// The first blocks of what was served, in order.
fn order(world: &World, script: &[Asked]) -> Vec<u64> {
    let (log, _) = world.play(script);
    log.order.iter().map(|number| script[*number].extent.start.0).collect()
}

fn areas(quota: Quota) -> Policy {
    Policy::AreaCLook(AreaCLook::new(Lba(500), quota))
}

const FIRST: &[u64] = &[10, 20, 35, 50, 70, 800, 820, 900];

/// Figure 4.4: the second round comes while 900 is served, which begins at 700 and ends at 800.
#[test]
fn the_head_stays_in_an_area_until_nothing_waits_there() {
    let script = reads(&[(0, FIRST), (750, &[860, 875, 28])]);
    let world = World::of(areas(Quota::Requests(32)));
    assert_eq!(order(&world, &script), [10, 20, 35, 50, 70, 800, 820, 900, 860, 875, 28]);
    let (_, count) = world.play(&script);
    let counters = [
        Counter::Dispatched,
        Counter::Reordered,
        Counter::ForcedByAge,
        Counter::Conflicts,
        Counter::Sweeps,
        Counter::Switches,
        Counter::QuotaSwitches,
    ];
    // Back to 860; to the second area and back.
    assert_eq!(counters.map(count), [11, 0, 0, 0, 3, 2, 0]);
}

/// Figure 4.5.
#[test]
fn an_area_that_has_had_its_quota_waits_for_the_other_one() {
    let script = reads(&[(0, FIRST), (50, &[90, 95])]);
    let world = World::of(areas(Quota::Requests(5)));
    assert_eq!(order(&world, &script), [10, 20, 35, 50, 70, 800, 820, 900, 90, 95]);
    let (_, count) = world.play(&script);
    assert_eq!([Counter::Switches, Counter::QuotaSwitches].map(count), [2, 1]);
    let world = World::of(areas(Quota::None));
    assert_eq!(order(&world, &script), [10, 20, 35, 50, 70, 90, 95, 800, 820, 900]);
    // The same in bytes: five blocks.
    let world = World::of(areas(Quota::Bytes(5 * 4096)));
    assert_eq!(order(&world, &script), [10, 20, 35, 50, 70, 800, 820, 900, 90, 95]);
}

#[test]
fn a_quota_of_what_waits_serves_those_that_the_head_has_found() {
    // 90 and 95 come while 10 is served: they are not among the five that were found.
    let script = reads(&[(0, FIRST), (50, &[90, 95]), (750, &[860, 875])]);
    let world = World::of(areas(Quota::Waiting));
    // The first request finds itself alone, and the head goes on to the three behind the boundary; of those that
    // come meanwhile none is among the six that it finds when it is back.
    let expected = [10, 800, 820, 900, 20, 35, 50, 70, 90, 95, 860, 875];
    assert_eq!(order(&world, &script), expected);
}

#[test]
fn what_cleans_goes_when_nothing_else_waits_or_when_it_has_waited() {
    let mut script = reads(&[(0, &[10, 20, 30, 40, 50, 60, 70])]);
    script[1].cause = Cause::Cleaning;
    script[2].cause = Cause::Cleaning;
    let wait = |ns| Some(Duration(ns));
    for policy in [Policy::Fcfs, Policy::CLook, areas(Quota::Requests(2))] {
        let world = |clean_wait| World { clean_wait, ..World::of(policy.clone()) };
        assert_eq!(order(&world(None), &script), [10, 20, 30, 40, 50, 60, 70]);
        assert_eq!(order(&world(wait(5000)), &script), [10, 40, 50, 60, 70, 20, 30]);
        // From 200 on they are as good as any other. Those that go upwards have passed them by then.
        let late = match policy {
            Policy::Fcfs => [10, 40, 20, 30, 50, 60, 70],
            _ => [10, 40, 50, 60, 70, 20, 30],
        };
        assert_eq!(order(&world(wait(200)), &script), late);
        // Whoever has waited for as long as any may is put off no longer.
        if matches!(policy, Policy::CLook) {
            let world = World { max_wait: wait(300), ..world(wait(5000)) };
            assert_eq!(order(&world, &script), [10, 40, 50, 20, 30, 60, 70]);
        }
    }
}

#[test]
fn one_area_is_plain_c_look() {
    let rounds: [(u64, &[u64]); 3] = [(0, FIRST), (250, &[15, 36, 990]), (750, &[860, 1, 28])];
    let script = reads(&rounds);
    let one = World::of(Policy::AreaCLook(AreaCLook::new(Lba(1000), Quota::Requests(2))));
    let c_look = order(&World::of(Policy::CLook), &script);
    assert_eq!(order(&one, &script), c_look);
    assert_eq!(c_look, [10, 20, 35, 36, 50, 70, 800, 820, 860, 900, 990, 1, 15, 28]);
}

#[test]
fn look_turns_round_and_sstf_goes_to_the_nearest() {
    let script = reads(&[(0, &[500, 510, 490, 520, 100, 900])]);
    let order_of = |policy| order(&World::of(policy), &script);
    assert_eq!(order_of(Policy::Fcfs), [500, 510, 490, 520, 100, 900]);
    assert_eq!(order_of(Policy::Look { is_upwards: true }), [500, 510, 520, 900, 490, 100]);
    // From 501: 510 is nearer than 490. From 491: 100 is nearer than 900.
    assert_eq!(order_of(Policy::Sstf), [500, 510, 520, 490, 100, 900]);
}

#[test]
fn one_that_has_waited_for_too_long_goes_first_and_changes_no_area() {
    // 5 waits while the head is kept busy behind it; it is 300 ns old when the request at 50 has ended.
    let script = reads(&[(0, &[10, 5, 20, 30, 40, 800, 50, 60])]);
    let world = World { max_wait: Some(Duration(300)), ..World::of(areas(Quota::None)) };
    let (log, count) = world.play(&script);
    let blocks: Vec<u64> = log.order.iter().map(|at| script[*at].extent.start.0).collect();
    // From 300 on everything is old enough, so all go in the order in which they came.
    assert_eq!(blocks, [10, 20, 30, 5, 40, 800, 50, 60]);
    assert_eq!([Counter::ForcedByAge, Counter::Switches].map(count), [5, 0]);
}

/// mq-deadline: batches of 16, reads before writes but for every third batch.
#[test]
fn batches_of_reads_go_before_a_batch_of_writes() {
    let mut script = reads(&[(0, &[0])]);
    let mut ask = |operation, first, blocks| {
        let extents = (first..first + blocks).map(|block| Extent::new(block, 1));
        script.extend(extents.map(|extent| Asked::new(Instant(0), operation, extent)));
    };
    ask(Operation::Read, 300, 80);
    ask(Operation::WRITE, 600, 40);
    let (log, _) = World::of(Policy::Deadline(Deadline::default())).play(&script);
    let is_read = |number: &usize| script[*number].operation == Operation::Read;
    let runs: Vec<(bool, usize)> = log
        .order
        .chunk_by(|one, other| is_read(one) == is_read(other))
        .map(|run| (is_read(&run[0]), run.len()))
        .collect();
    // The first batch began before a write had come.
    let expected = [(true, 48), (false, 16), (true, 32), (false, 16), (true, 1), (false, 8)];
    assert_eq!(runs, expected);
}

#[test]
fn a_write_that_is_due_begins_its_batch() {
    let ms = 1_000_000;
    // Reads keep the disk busy for longer than a write may wait; each third batch is one of writes all the same.
    let mut script = reads(&[(0, &[0])]);
    for block in [900, 100] {
        let (at, operation) = (Instant(0), Operation::WRITE);
        script.push(Asked::new(at, operation, Extent::new(block, 1)));
    }
    let world = |ms_each: u64| World {
        service_ns: (ms_each * ms, ms_each * ms),
        ..World::of(Policy::Deadline(Deadline::default()))
    };
    // In order of addresses; and the oldest first, where the one at 0 took longer than five seconds.
    assert_eq!(order(&world(10), &script), [0, 100, 900]);
    assert_eq!(order(&world(5001), &script), [0, 900, 100]);
}
