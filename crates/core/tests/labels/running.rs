//! Marks that move while a stack runs.

use crate::world::{
    BLOCKS, Deed, Opening, Platter, SET, Shared, Step, TestDisk, World, created, numbers,
};
use imbrex_core::command::{
    Command, CommandError, CommandId, CommandKind, CommandReply, CommandState,
};
use imbrex_core::engine::{CommandArrival, NewLabel, Replacement};
use imbrex_core::error::IoError;
use imbrex_core::label::{Label, LabelCopy, LabelledOpenError, Mark, Reason};
use imbrex_core::rng::Rng;
use imbrex_core::stack::DiskId;
use imbrex_core::units::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Long after all that takes its time.
const LATER: Instant = Instant(1_000_000_000);
/// Random lives of each number of disks.
const LIVES: u64 = 1_500;

fn opening<'a>(seed: u64, away: &'a [usize], numbers: &'a [u16]) -> Opening<'a> {
    Opening { seed, is_creation: false, away, numbers, holds_away: true }
}

fn open(platters: &[Shared<Platter>], seed: u64, away: &[usize]) -> World {
    let numbers = numbers(platters.len());
    let world = World::open(platters, &opening(seed, away, &numbers));
    world.unwrap_or_else(|error| panic!("{error:?}"))
}

fn request(deeds: &[Deed]) -> Step {
    Step::Request(deeds.to_vec())
}

fn command(world: &World, id: u64, kind: CommandKind, disk: Option<u16>) -> Step {
    let node = match disk {
        None => world.engine.stack.top(),
        Some(disk) => {
            let nodes = world.engine.stack.bottom_up();
            let is_it = |node: &_| world.engine.stack.disk_of(*node) == Some(DiskId(disk));
            nodes.into_iter().find(is_it).expect("a disk")
        }
    };
    Step::Command(CommandArrival::Command { node, command: Command { id: CommandId(id), kind } })
}

/// The counts of the durable second copies.
fn counts(platters: &[Shared<Platter>]) -> Vec<u32> {
    let second = |platter: &Shared<Platter>| platter.borrow().mark(LabelCopy::Second);
    let counts = platters.iter().map(|platter| second(platter).map_or(0, |mark| mark.count));
    counts.collect()
}

fn ended(replies: &[(Instant, CommandReply)], id: u64) -> Option<(Instant, bool)> {
    replies.iter().find_map(|(at, reply)| match &reply.state {
        CommandState::Ended(result) if reply.id == CommandId(id) => Some((*at, result.is_ok())),
        _ => None,
    })
}

#[test]
fn an_answer_goes_out_when_the_label_is_durable_on_all_disks() {
    let platters = created(3);
    let mut world = open(&platters, 7, &[]);
    let before = counts(&platters);
    assert_eq!(before, [3; 3], "a creation, its stop and a start");
    let answered = Cell::new(0);
    let watch = &mut || {
        answered.set(answered.get() + 1);
        assert_eq!(counts(&platters), [3 + answered.get(); 3], "an answer went out early");
        let unflushed = platters.iter().any(|it| !it.borrow().unflushed.is_empty());
        assert!(!unflushed, "something is not durable");
    };
    let steps: Vec<Step> = (0..5).map(|_| request(&[Deed::Move])).collect();
    world.play(steps, watch);
    assert_eq!(answered.get(), 5);
    let reads = world.diary.borrow().reads;
    assert!(reads >= 4, "the layer works on: {reads} reads");
    // What asks for nothing waits for nothing.
    let host = world.play([request(&[])], &mut || {});
    assert_eq!(host.answers[0].0, world.clock.now);
    assert_eq!(counts(&platters), [8; 3]);
    let mark = world.diary.borrow().mark;
    assert_eq!(mark.map(|mark| mark.count), Some(8), "the layer finds the mark");
}

#[test]
fn requests_that_come_during_a_move_wait_with_it_and_one_further_move_follows() {
    let platters = created(2);
    let mut world = open(&platters, 8, &[]);
    let watch = &mut || assert_eq!(counts(&platters), [5; 2], "an answer went out early");
    // The first begins to move, the others come while it does.
    let steps = (0..6).map(|_| request(&[Deed::Move]));
    let host = world.play_as(steps, watch, true);
    assert_eq!(host.answers.len(), 6);
    assert!(host.answers.iter().all(|(_, result)| result.is_ok()));
}

#[test]
fn commands_that_end_wait_and_questions_do_not() {
    let platters = created(2);
    let mut world = open(&platters, 9, &[]);
    platters[1].borrow_mut().hangs = true;
    let steps = [
        request(&[Deed::Move]),
        command(&world, 1, CommandKind::Status, None),
        command(&world, 2, CommandKind::Scrub(None), None),
        Step::Until(LATER),
        command(&world, 3, CommandKind::Status, None),
        command(&world, 4, CommandKind::Fail, Some(1)),
        request(&[]),
    ];
    let host = world.play_as(steps, &mut || {}, true);
    assert_eq!(host.answers.len(), 2);
    assert!(host.answers.iter().all(|(at, result)| *at > LATER && result.is_ok()));
    let replies = host.replies;
    let at = |id| ended(&replies, id).expect("an end");
    assert!(at(1).0 < LATER && at(3).0 == LATER, "questions are answered");
    assert!(at(2).0 > LATER && at(4).0 > LATER, "what may have changed something waits");
    let progress = replies.iter().find(|(_, it)| matches!(it.state, CommandState::Progress { .. }));
    assert!(progress.is_some_and(|(at, _)| *at < LATER), "progress is told");
    assert_eq!(world.diary.borrow().lost, [1]);
    // A disk that has failed takes no part, and what it has written of the move does not matter.
    world.close();
    let world = open(&platters, 10, &[]);
    let found = &world.diary.borrow().found;
    assert!(!found[0].1 && found[1].1, "{found:?}");
    assert!(found[1].0 < found[0].0);
}

#[test]
fn a_disk_that_hangs_for_ever_stops_nobody_once_it_has_failed() {
    let platters = created(3);
    let mut world = open(&platters, 11, &[]);
    platters[2].borrow_mut().is_stuck = true;
    let fail = command(&world, 1, CommandKind::Fail, Some(2));
    let steps = [request(&[Deed::Move]), Step::Until(LATER), fail, request(&[Deed::Move])];
    let host = world.play_as(steps, &mut || {}, true);
    assert_eq!(host.answers.len(), 2);
    // Its label is still being written, so nothing takes its place.
    let blank = Rc::new(RefCell::new(Platter::blank()));
    let with = Box::new(TestDisk::new(blank, Rc::clone(&world.power), 1));
    let (id, disk, first_member) = (CommandId(2), DiskId(2), 9);
    let replace = CommandArrival::Replace(Replacement { id, disk, with, first_member });
    let host = world.play([Step::Command(replace), request(&[])], &mut || {});
    let reply = host.replies.iter().find(|(_, reply)| reply.id == id).expect("an answer");
    let CommandState::Ended(Err(CommandError::NotNow(words))) = &reply.1.state else {
        panic!("{reply:?}")
    };
    assert!(words.contains("have not ended yet"), "{words}");
}

#[test]
fn a_layer_fails_a_disk_that_hangs() {
    let platters = created(2);
    let mut world = open(&platters, 12, &[]);
    platters[1].borrow_mut().hangs = true;
    let steps = [request(&[Deed::Move]), Step::Until(LATER), request(&[Deed::Fail(1)])];
    let host = world.play_as(steps, &mut || {}, true);
    assert_eq!(host.answers.len(), 2);
    assert!(world.engine.stack.is_disk_lost(DiskId(1)));
    assert_eq!(world.diary.borrow().lost, [1]);
    assert!(!platters[1].borrow().hangs, "what hangs has ended");
    world.close();
}

/// It has nothing to do but its label, so that the layer cannot notice by itself.
#[test]
fn a_disk_that_hangs_with_its_label_alone_is_lost_in_time() {
    let platters = created(3);
    let mut world = open(&platters, 13, &[]);
    platters[1].borrow_mut().hangs = true;
    platters[2].borrow_mut().hangs = true;
    let at_most = Duration(LATER.0 / 4);
    let deeds =
        [Deed::WaitAtMost(LATER.since(Instant::ZERO)), Deed::WaitAtMost(at_most), Deed::Move];
    let host = world.play_as([request(&deeds), request(&[])], &mut || {}, true);
    assert_eq!(host.answers.len(), 2);
    assert!(
        host.answers.iter().all(|(at, result)| *at < LATER && result.is_ok()),
        "{:?}",
        host.answers
    );
    assert_eq!(world.diary.borrow().lost, [1, 2]);
    world.close();
    assert!(counts(&platters)[0] > counts(&platters)[1]);
}

#[test]
fn a_disk_whose_label_cannot_be_written_is_lost_and_the_move_goes_on() {
    let platters = created(3);
    let mut world = open(&platters, 13, &[]);
    platters[1].borrow_mut().fails = true;
    let host = world.play([request(&[Deed::Move])], &mut || {});
    assert_eq!(host.answers.len(), 1);
    assert_eq!(host.answers[0].1, Ok(()));
    assert_eq!(world.diary.borrow().lost, [1]);
    let [first, _, third] = counts(&platters)[..] else { panic!() };
    assert!(first == third && first > 4, "a further count for those that are left: {first}");
    platters[1].borrow_mut().cut(&mut Rng::new(1, 1));
    let world = open(&platters, 14, &[]);
    let away: Vec<bool> = world.diary.borrow().found.iter().map(|found| found.1).collect();
    assert_eq!(away, [false, true, false]);
}

#[test]
fn disks_that_are_held_out_stay_as_they_were_until_they_take_part_again() {
    let platters = created(2);
    let mut world = open(&platters, 15, &[]);
    let hold = request(&[Deed::Hold(1, true), Deed::Move]);
    world.play([hold, request(&[Deed::Move])], &mut || {});
    assert_eq!(counts(&platters), [5, 3]);
    assert_eq!(world.close(), []);
    assert_eq!(counts(&platters), [6, 3], "the stop moves the others alone");
    // It was away to the layer, which holds it out until it says otherwise.
    let mut world = open(&platters, 16, &[]);
    assert_eq!(counts(&platters), [7, 3]);
    let found = world.diary.borrow().found.clone();
    assert_eq!(found.iter().map(|found| found.1).collect::<Vec<_>>(), [false, true]);
    assert_eq!(found[0].0.map(|mark| mark.count), Some(6));
    assert_eq!(found[1].0.map(|mark| mark.count), Some(3));
    assert_eq!(world.diary.borrow().mark_at_start.map(|mark| mark.count), Some(7));
    world.play([request(&[Deed::Hold(1, false), Deed::Move])], &mut || {});
    assert_eq!(counts(&platters), [8, 8]);
    drop(world);
    let world = open(&platters, 17, &[]);
    assert!(world.diary.borrow().found.iter().all(|found| !found.1));
    assert_eq!(counts(&platters), [9, 9]);
}

#[test]
fn a_disk_that_was_away_takes_part_where_no_layer_decides() {
    let platters = created(2);
    open(&platters, 18, &[1]).close();
    assert_eq!(counts(&platters), [4, 2]);
    let numbers = numbers(2);
    let opening = Opening { holds_away: false, ..opening(19, &[], &numbers) };
    let world = World::open(&platters, &opening).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(counts(&platters), [5, 5]);
    assert!(world.diary.borrow().found[1].1, "the layer can tell all the same");
}

#[test]
fn sets_that_went_on_apart_to_the_same_count_are_refused() {
    let platters = created(2);
    open(&platters, 20, &[]).close();
    for (stays, goes) in [(0, 1), (1, 0)] {
        let mut world = open(&platters, 21 + stays as u64, &[goes]);
        world.play((0..3).map(|_| request(&[Deed::Move])), &mut || {});
        world.close();
    }
    let counts = counts(&platters);
    assert_eq!(counts[0], counts[1]);
    let numbers = numbers(2);
    let refused = World::open(&platters, &opening(23, &[], &numbers)).err();
    let Some(LabelledOpenError::Refused(refused)) = refused else {
        panic!("they were taken: {refused:?}")
    };
    assert!(refused.iter().all(|it| matches!(it.reason, Reason::Apart { .. })), "{refused:?}");
}

#[test]
fn a_new_disk_joins_with_the_move_after_its_label_is_told() {
    let platters = created(2);
    let mut world = open(&platters, 24, &[1]);
    let new = Rc::new(RefCell::new(Platter::blank()));
    let label = Label::new(SET, 9, 77);
    for copy in LabelCopy::ALL {
        new.borrow_mut().label[copy as usize] = label.seal(copy, BLOCKS).expect("a block holds it");
    }
    let with = Box::new(TestDisk::new(Rc::clone(&new), Rc::clone(&world.power), 1));
    let (id, disk, first_member) = (CommandId(1), DiskId(1), 9);
    let replace = CommandArrival::Replace(Replacement { id, disk, with, first_member });
    let host = world.play([Step::Command(replace), request(&[Deed::Move])], &mut || {});
    assert_eq!(ended(&host.replies, 1).map(|it| it.1), Some(true));
    assert_eq!(world.diary.borrow().found[1], (None, true), "it is blank");
    assert_eq!(new.borrow().mark(LabelCopy::Second).map(|mark| mark.count), Some(0));
    let told = CommandArrival::NewLabel(NewLabel { disk, number: 9, random: 77 });
    let with_it = [platters[0].clone(), Rc::clone(&new)];
    world.play([Step::Command(told), request(&[]), request(&[Deed::Move])], &mut || {});
    assert_eq!(counts(&with_it), [5, 5]);
    drop(world);
    let opened = World::open(&with_it, &opening(25, &[], &[1, 9]));
    let world = opened.unwrap_or_else(|error| panic!("{error:?}"));
    assert!(world.diary.borrow().found.iter().all(|found| !found.1));
    // The old one is none of them any more.
    let old = World::open(&platters, &opening(26, &[], &[1, 2])).err();
    assert!(matches!(old, Some(LabelledOpenError::Refused(_))), "{old:?}");
}

#[test]
fn a_new_disk_that_is_held_out_is_new_at_the_next_start() {
    let platters = created(2);
    let mut world = open(&platters, 27, &[1]);
    let label = Label::new(SET, 9, 78);
    let new = Rc::new(RefCell::new(Platter::blank()));
    for copy in LabelCopy::ALL {
        new.borrow_mut().label[copy as usize] = label.seal(copy, BLOCKS).expect("a block holds it");
    }
    let with = Box::new(TestDisk::new(Rc::clone(&new), Rc::clone(&world.power), 1));
    let (id, disk, first_member) = (CommandId(1), DiskId(1), 9);
    let replace = CommandArrival::Replace(Replacement { id, disk, with, first_member });
    let told = CommandArrival::NewLabel(NewLabel { disk, number: 9, random: 78 });
    let steps = [
        // The hold of the lost one is forgotten, that of the new one is not.
        request(&[Deed::Hold(1, true)]),
        Step::Command(replace),
        request(&[Deed::Hold(1, true)]),
        Step::Command(told),
        request(&[Deed::Move]),
    ];
    world.play(steps, &mut || {});
    world.close();
    assert_eq!(new.borrow().mark(LabelCopy::Second), Some(Mark { count: 0, random: 78 }));
    let opened = World::open(&[platters[0].clone(), new], &opening(28, &[], &[1, 9]));
    let world = opened.unwrap_or_else(|error| panic!("{error:?}"));
    let found = world.diary.borrow().found[1];
    assert_eq!(found, (Some(Mark { count: 0, random: 78 }), true));
}

#[test]
fn a_move_that_cannot_be_made_ends_what_waits_with_an_error() {
    let platters = created(1);
    for copy in LabelCopy::ALL {
        let block = &mut platters[0].borrow_mut().label[copy as usize];
        let mut label = Label::unseal(block, copy, BLOCKS).expect("a label");
        label.mark.count = u32::MAX - 3;
        label.entries[0].last = label.mark;
        *block = label.seal(copy, BLOCKS).expect("a block holds it");
    }
    let mut world = open(&platters, 29, &[]);
    let scrub = command(&world, 1, CommandKind::Scrub(None), None);
    let steps = [request(&[Deed::Move]), request(&[Deed::Move]), scrub, request(&[])];
    let host = world.play(steps, &mut || {});
    let results: Vec<Result<(), IoError>> = host.answers.iter().map(|it| it.1).collect();
    assert_eq!(results, [Ok(()), Err(IoError::Medium), Err(IoError::Medium)]);
    assert_eq!(ended(&host.replies, 1).map(|it| it.1), Some(false));
    assert_eq!(world.close(), []);
    assert_eq!(counts(&platters), [u32::MAX - 1]);
}

/// What the host was told of a disk, and what may be so beside.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Known {
    is_in: bool,
    /// A change of that was asked for, and not answered.
    may_be: bool,
}

/// Disks go, are held out and come back while the count moves, and the power goes at any operation. At the
/// next start all are there: none is refused, and each was away if and only if the host was told so.
fn life(seed: u64, disks: usize, told: &mut [u64; 3]) {
    let platters = created(disks);
    let mut rng = Rng::new(seed, 5);
    let mut known = vec![Known { is_in: true, may_be: true }; disks];
    for start in 0..6 {
        let numbers = numbers(disks);
        let opened = World::open(&platters, &opening(seed << 8 | start, &[], &numbers));
        let mut world =
            opened.unwrap_or_else(|error| panic!("life {seed}, start {start}: {error:?}"));
        let away: Vec<bool> = world.diary.borrow().found.iter().map(|found| found.1).collect();
        for (it, away) in known.iter_mut().zip(away) {
            let fits = away != it.is_in || away != it.may_be;
            assert!(fits, "life {seed}, start {start}: away {away}, and it was {it:?}");
            told[0] += u64::from(away);
            (it.is_in, it.may_be) = (!away, !away);
        }
        let is_cut = rng.below(4) > 0;
        world.power.ops_left.set(is_cut.then(|| rng.below(60)));
        let mut is_lost = vec![false; disks];
        for _ in 0..1 + rng.below(4) {
            let port = rng.below(disks as u64) as usize;
            let others = (0..disks).filter(|at| *at != port && known[*at].is_in && !is_lost[*at]);
            let can_go = known[port].is_in && others.count() > 0 && !is_lost[port];
            let at = port as u8;
            let deed = match rng.below(4) {
                0 if can_go => Deed::Hold(at, true),
                1 if can_go => Deed::Fail(at),
                2 if can_go => {
                    // It fails in the midst of the move.
                    platters[port].borrow_mut().fails = true;
                    Deed::Move
                }
                3 if !is_lost[port] => Deed::Hold(at, false),
                _ => Deed::Move,
            };
            let fails = platters[port].borrow().fails;
            let goes = fails || matches!(deed, Deed::Hold(_, true) | Deed::Fail(_));
            let comes = matches!(deed, Deed::Hold(_, false));
            is_lost[port] |= fails || matches!(deed, Deed::Fail(_));
            if goes || comes {
                known[port].may_be = comes;
            }
            // Two at once, so that moves follow each other.
            let steps = [request(&[deed, Deed::Move]), request(&[Deed::Move])];
            let hasty = rng.below(2) == 0;
            let host = world.play_as(steps, &mut || {}, hasty);
            told[1] += host.answers.len() as u64;
            if host.answers.len() == 2 {
                known[port].is_in = known[port].may_be;
            }
            if world.power.is_off.get() {
                told[2] += 1;
                break;
            }
        }
        if !world.power.is_off.get() && rng.below(2) == 0 {
            world.power.ops_left.set(None);
            world.close();
        }
        drop(world);
        for platter in &platters {
            platter.borrow_mut().cut(&mut rng);
        }
    }
}

#[test]
fn the_next_start_finds_who_was_away_wherever_the_power_goes() {
    for disks in 1..=3 {
        let mut told = [0; 3];
        for seed in 0..LIVES {
            life(seed, disks, &mut told);
        }
        let [away, answers, cuts] = told;
        assert!(answers > LIVES && cuts > LIVES, "{answers} answers, {cuts} cuts");
        assert!(disks == 1 || away > LIVES, "{away} away");
    }
}
