//! A ledger with copies of its journal: what happens when copies fail, are missing, or are not what
//! they should be.

use crate::common::journal_disk::{ByteMedium, Happening, Image, after_power_cut};
use crate::common::journal_world::{allowed, newest, wrong};
use crate::copies_toy::{BLOCKS, journal_at};
use crate::copies_world::{Event, Host, Inserted, SET, Step, World, at_disk, reopen};
use imbrex_core::durability::JournalSettings;
use imbrex_core::durability::membership::{Listed, Membership};
use imbrex_core::durability::superblock::FEATURE_MIRRORED;
use imbrex_core::error::IoError;
use imbrex_core::layer::Port;
use imbrex_core::ledger::CopyState::{self, In, Out};
use imbrex_core::lifecycle::{OpenError, Start, Uuid};
use imbrex_core::rng::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// The disk that was behind a port from the start.
fn first(port: u8) -> Option<Inserted> {
    Some(Inserted { disk: u64::from(port), number: u16::from(port) })
}

fn pair() -> [Option<Inserted>; 2] {
    [first(0), first(1)]
}

fn writes(seed: u64, count: u64) -> Vec<Step> {
    let mut rng = Rng::new(seed, 8);
    let mut steps = Vec::new();
    for _ in 0..count {
        let block = rng.below(BLOCKS);
        steps.push(match rng.below(8) {
            0..=4 => Step::Write(block),
            5..=6 => Step::WriteDurable(block),
            _ => Step::Flush,
        });
    }
    steps
}

/// A layer that has played steps and was not closed: what is left, and what happened.
fn after(ports: u8, steps: &[Step]) -> (Image, Vec<Happening>, Host) {
    let mut world = World::formatted(ports, 3, None);
    let mut host = Host::new(4);
    world.play(&mut host, steps);
    let medium = world.medium.borrow();
    (medium.image.clone(), medium.happenings.clone(), host)
}

/// What a page of a disk says.
fn page_of(image: &Image, port: u8, disk: u64, page: usize) -> Membership {
    // The feature decides where the ring lies, not where these pages do.
    let address = journal_at(port).membership_addresses()[page];
    let block = image.get(&at_disk(disk, address)).expect("a page");
    let found = Membership::decode(block, address).expect("a whole page");
    assert_eq!(found.index, u64::from(port));
    found.membership
}

fn opens(image: &Image, inserted: &[Option<Inserted>]) -> Vec<CopyState> {
    let (world, opened) = reopen(image.clone(), inserted, 9, None);
    assert_eq!(opened, Ok(()), "{inserted:?}");
    world.opened()
}

fn refuses(image: &Image, inserted: &[Option<Inserted>]) -> OpenError {
    let (world, opened) = reopen(image.clone(), inserted, 9, None);
    let happenings = &world.medium.borrow().happenings;
    let wrote = happenings.iter().any(|it| matches!(it, Happening::Write { .. }));
    assert!(!wrote, "a refused opening has written");
    opened.expect_err("refused")
}

#[test]
fn both_copies_say_that_both_are_in() {
    let (image, happenings, _) = after(2, &writes(1, 30));
    for (port, page) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let membership = page_of(&image, port, u64::from(port), page);
        let listed = |number| Listed { number, is_in: true };
        assert_eq!(membership.copies, [listed(0), listed(1)]);
        assert_eq!(membership.changes, 1);
    }
    for inserted in [pair(), [first(0), None], [None, first(1)]] {
        let (mut world, opened) = reopen(image.clone(), &inserted, 4, None);
        assert_eq!(opened, Ok(()), "{inserted:?}");
        let states = inserted.map(|it| if it.is_some() { In } else { Out });
        assert_eq!(world.opened(), states);
        assert_eq!(wrong(&world.read_all(), &newest(&happenings), false), None);
    }
}

#[test]
fn a_clean_close_is_clean_on_both() {
    let mut world = World::formatted(2, 3, None);
    let mut host = Host::new(4);
    world.play(&mut host, &writes(2, 30));
    assert!(world.close());
    let medium = world.medium.borrow();
    for inserted in [pair(), [first(0), None], [None, first(1)]] {
        let (mut reborn, opened) = reopen(medium.image.clone(), &inserted, 4, None);
        assert_eq!(opened, Ok(()), "{inserted:?}");
        let found = reborn.read_all();
        assert_eq!(wrong(&found, &newest(&medium.happenings), false), None);
    }
}

/// Every operation fails in turn, from the format on: the host sees nothing of it, the copy is out
/// and stays out, and the other one has everything.
#[test]
fn any_operation_of_a_copy_may_fail() {
    let steps = writes(4, 60);
    let mut taken_out = 0;
    for index in 0.. {
        let medium = ByteMedium { fails: Some(index), ..ByteMedium::default() };
        let medium = Rc::new(RefCell::new(medium));
        let mut world = World::over(&pair(), &medium, 5, None);
        let opened = world.open(Start::Format(SET));
        assert_eq!(opened, Ok(()), "operation {index}");
        let mut host = Host::new(4);
        world.play(&mut host, &steps);
        assert_eq!(host.failures, [], "operation {index}");
        if medium.borrow().operations.len() <= index {
            break;
        }
        let known = world.known.borrow().clone();
        let [Port(lost)] = known.out[..] else {
            panic!("operation {index}: copies are out: {known:?}");
        };
        taken_out += 1;
        let states = [0, 1].map(|port| if port == lost { Out } else { In });
        assert_eq!(known.now, states, "operation {index}");
        let medium = medium.borrow();
        let survivor = [0, 1].map(|port| first(port).filter(|_| port != lost));
        for inserted in [pair(), survivor] {
            let (mut reborn, opened) = reopen(medium.image.clone(), &inserted, 6, None);
            assert_eq!(opened, Ok(()), "operation {index}");
            assert_eq!(reborn.opened(), states, "operation {index}");
            let wrong = wrong(&reborn.read_all(), &newest(&medium.happenings), false);
            assert_eq!(wrong, None, "operation {index}");
        }
    }
    assert!(taken_out > 200, "{taken_out} copies were taken out");
}

/// The same while a copy comes up.
#[test]
fn any_operation_of_a_recovery_may_fail() {
    let (image, happenings, _) = after(2, &writes(5, 40));
    for index in 0.. {
        let medium =
            ByteMedium { image: image.clone(), fails: Some(index), ..ByteMedium::default() };
        let medium = Rc::new(RefCell::new(medium));
        let mut world = World::over(&pair(), &medium, 5, None);
        let opened = world.open(Start::Recover(Some(SET)));
        assert_eq!(opened, Ok(()), "operation {index}");
        let found = world.read_all();
        assert_eq!(wrong(&found, &newest(&happenings), false), None);
        if medium.borrow().operations.len() <= index {
            break;
        }
        let after = world.known.borrow().now.clone();
        assert!(after.contains(&In), "operation {index}");
        let states = opens(&medium.borrow().image, &pair());
        assert_eq!(states, after, "operation {index}");
    }
}

#[test]
fn the_last_copy_is_not_given_up() {
    let steps = [Step::Write(1), Step::Lose(0), Step::WriteDurable(2), Step::Settle];
    let mut world = World::formatted(2, 3, None);
    let mut host = Host::new(1);
    world.play(&mut host, &steps);
    assert_eq!(host.failures, []);
    let more = [Step::Lose(1), Step::Write(3), Step::Flush, Step::Settle];
    world.play(&mut host, &more);
    assert_eq!(host.failures, [Step::Write(3), Step::Flush]);
    let medium = world.medium.borrow();
    assert_eq!(opens(&medium.image, &pair()), [Out, In]);
}

#[test]
fn the_last_copy_beside_the_data_is_not_given_up() {
    let with_data = |world: &World| world.known.borrow_mut().with_data = Some(vec![Port(0)]);
    let mut world = World::formatted(2, 3, None);
    with_data(&world);
    let mut host = Host::new(1);
    let steps = [Step::Write(1), Step::Settle, Step::Lose(0), Step::Write(2), Step::Settle];
    world.play(&mut host, &steps);
    assert_eq!(host.failures, [Step::Write(2)]);
    assert_eq!(opens(&world.medium.borrow().image, &pair()), [In, In]);
    // Nor does a start without it record anything.
    let mut without = World::over(&[None, first(1)], &world.medium, 4, None);
    with_data(&without);
    assert_eq!(without.open(Start::Recover(Some(SET))), Err(OpenError::Io(IoError::Lost)));
    assert_eq!(opens(&world.medium.borrow().image, &pair()), [In, In]);
}

#[test]
fn two_copies_that_went_on_without_each_other_are_refused() {
    let (image, ..) = after(2, &writes(6, 20));
    let mut both = image.clone();
    for alone in [[first(0), None], [None, first(1)]] {
        let (world, opened) = reopen(image.clone(), &alone, 4, None);
        assert_eq!(opened, Ok(()));
        let disk = alone.iter().flatten().next().expect("a disk").disk;
        let medium = world.medium.borrow();
        both.extend(crate::copies_world::of_disk(&medium.image, disk));
    }
    let error = refuses(&both, &pair()).to_string();
    let (one, other) = (SET.member(0), SET.member(1));
    let expected = format!(
        "its membership is damaged: members {one} and {other} have each gone on without the other \
         and recorded it out; accepted: one of them alone"
    );
    assert_eq!(error, expected);
    assert_eq!(opens(&both, &[first(0), None]), [In, Out]);
}

/// The power went twice while an opening recorded that another member is out: nothing was answered since.
#[test]
fn what_was_only_being_recorded_does_not_part_copies() {
    let (image, happenings, _) = after(3, &writes(6, 20));
    let pages_after = |inserted: [Option<Inserted>; 3], pages: &[(u8, usize)]| -> Image {
        let (world, opened) = reopen(image.clone(), &inserted, 4, None);
        assert_eq!(opened, Ok(()));
        let medium = world.medium.borrow();
        let page = |(port, page): &(u8, usize)| {
            let at = at_disk(u64::from(*port), journal_at(*port).membership_addresses()[*page]);
            (at, medium.image[&at].clone())
        };
        pages.iter().map(page).collect()
    };
    let [zero, one, two] = [first(0), first(1), first(2)];
    let all = [zero, one, two];
    let only_zero = pages_after([zero, one, None], &[(0, 0)]);
    let only_two = pages_after([None, one, two], &[(2, 0)]);
    let recorded = pages_after([None, one, two], &[(1, 0), (2, 0), (2, 1)]);
    let with = |pages: [&Image; 2]| {
        let mut image = image.clone();
        pages.into_iter().for_each(|it| image.extend(it.clone()));
        image
    };
    for (pages, states) in
        [([&only_zero, &only_two], [In, In, Out]), ([&only_zero, &recorded], [Out, In, In])]
    {
        let (mut world, opened) = reopen(with(pages), &all, 9, None);
        assert_eq!(opened, Ok(()));
        assert_eq!(world.opened(), states);
        assert_eq!(wrong(&world.read_all(), &newest(&happenings), false), None);
    }
    let zero_went_on = pages_after([zero, one, None], &[(0, 0), (0, 1)]);
    let two_went_on = pages_after([None, one, two], &[(2, 0), (2, 1)]);
    refuses(&with([&zero_went_on, &two_went_on]), &all);
}

#[test]
fn members_that_do_not_belong_there_are_out() {
    let (image, happenings, _) = after(2, &writes(7, 20));
    let blank = Some(Inserted { disk: 5, number: 1 });
    assert_eq!(opens(&image, &[first(0), blank]), [In, Out], "blank");
    // Of another set.
    let (mut other, _) = reopen(Image::new(), &[None, None], 4, None);
    let mut both = image.clone();
    both.retain(|at, _| *at < at_disk(1, 0));
    other = World::over(&pair(), &other.medium, 4, None);
    other.open(Start::Format(Uuid([7; 16]))).expect("a format");
    both.extend(crate::copies_world::of_disk(&other.medium.borrow().image, 1));
    assert_eq!(opens(&both, &pair()), [In, Out], "foreign");
    // Both in the wrong place, and one with the number of the other.
    let swapped = [first(1), first(0)];
    assert!(matches!(
        refuses(&image, &swapped),
        OpenError::Settings { .. } | OpenError::OtherMember { .. } | OpenError::NotFormatted
    ));
    assert_eq!(refuses(&image, &[None, None]), OpenError::Io(IoError::Lost));
    // Damaged: all superblocks, both membership pages, the checkpoint.
    let settings = journal_at(1);
    let structures = [
        settings.superblock_addresses().to_vec(),
        settings.membership_addresses().to_vec(),
        vec![settings.area.start.0 + 3, settings.area.start.0 + 6],
    ];
    for addresses in structures {
        let mut image = image.clone();
        for address in &addresses {
            image.insert(at_disk(1, *address), vec![0x77; 4096].into());
        }
        let (mut world, opened) = reopen(image, &pair(), 4, None);
        assert_eq!(opened, Ok(()));
        assert_eq!(world.opened(), [In, Out], "{addresses:?}");
        assert_eq!(wrong(&world.read_all(), &newest(&happenings), false), None);
    }
}

#[test]
fn of_two_membership_pages_the_newer_one_counts_when_the_other_is_damaged() {
    let mut steps = writes(8, 10);
    steps.extend([Step::Lose(0), Step::Settle, Step::WriteDurable(1)]);
    let (image, ..) = after(2, &steps);
    for address in journal_at(1).membership_addresses() {
        let mut image = image.clone();
        image.insert(at_disk(1, address), vec![0x77; 4096].into());
        assert_eq!(opens(&image, &pair()), [Out, In]);
        // The opening writes both pages again.
        let (world, _) = reopen(image, &pair(), 4, None);
        let image = &world.medium.borrow().image;
        assert_eq!(page_of(image, 1, 1, 0), page_of(image, 1, 1, 1));
    }
}

#[test]
fn a_new_member_that_fails_is_out_and_can_be_replaced_again() {
    let mut refused = 0;
    for delay in 0..200 {
        let mut world = World::formatted(2, 3, None);
        let mut host = Host::new(4);
        let mut steps = writes(9, 20);
        steps.extend([Step::Lose(1), Step::Settle]);
        world.play(&mut host, &steps);
        let operations = world.medium.borrow().operations.len();
        world.medium.borrow_mut().fails = Some(operations + delay);
        let mut steps = vec![Step::Replace(1)];
        steps.extend(writes(10, 30));
        steps.push(Step::Settle);
        world.play(&mut host, &steps);
        // An operation of the last copy that is in is the end, whatever the new one may have.
        if world.known.borrow().now == [In, Out] && host.failures.is_empty() {
            refused += host.refused.len();
            world.play(&mut host, &[Step::Lose(1), Step::Replace(1), Step::Settle]);
            assert_eq!(world.known.borrow().now, [In, In], "operation {delay}");
            let newest_disk = host.events.iter().rev().find_map(|(_, event)| match event {
                Event::Offered(1, disk) => Some(*disk),
                _ => None,
            });
            let medium = world.medium.borrow();
            let (mut reborn, opened) = reopen(medium.image.clone(), &[None, newest_disk], 4, None);
            assert_eq!(opened, Ok(()), "operation {delay}");
            let wrong = wrong(&reborn.read_all(), &newest(&medium.happenings), false);
            assert_eq!(wrong, None, "operation {delay}");
        }
    }
    assert!(refused > 10, "{refused} new members were refused");
}

#[test]
fn a_copy_that_was_missing_once_is_out() {
    let (image, happenings, _) = after(2, &writes(13, 20));
    for present in 0..2 {
        let inserted = [0, 1].map(|port| first(port).filter(|_| port == present));
        let (mut alone, opened) = reopen(image.clone(), &inserted, 4, None);
        assert_eq!(opened, Ok(()));
        let mut host = Host::new(1).after(&happenings);
        alone.play(&mut host, &[Step::Write(1), Step::Write(2)]);
        let later = alone.medium.borrow().happenings.clone();
        let (mut world, opened) = reopen(alone.medium.borrow().image.clone(), &pair(), 4, None);
        assert_eq!(opened, Ok(()));
        let states = [0, 1].map(|port| if port == present { In } else { Out });
        assert_eq!(world.opened(), states);
        let all = [happenings.clone(), later].concat();
        assert_eq!(wrong(&world.read_all(), &newest(&all), false), None);
    }
}

/// No record was ever written, so that the journal never says that one is.
#[test]
fn answers_without_a_record_wait_until_a_change_of_copies_is_recorded() {
    for (seed, lost) in (0..20).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut world = World::formatted(2, seed, None);
        let mut host = Host::reading(2);
        let reads = [Step::Write(1), Step::Write(2), Step::Write(3), Step::Settle];
        for command in [Step::Lose(lost), Step::Replace(lost)] {
            world.play(&mut host, &[&[command], &reads[..]].concat());
        }
        assert_eq!((&host.failures[..], &host.refused[..]), (&[][..], &[][..]));
        assert_eq!(world.known.borrow().now, [In, In]);
        let happenings = &world.medium.borrow().happenings;
        let left = 1 - lost;
        let required_features = FEATURE_MIRRORED;
        let ring = JournalSettings { required_features, ..journal_at(left) }.ring();
        let first = at_disk(u64::from(left), ring.start.0);
        let is_record = |happening: &Happening| match happening {
            Happening::Write { address, block, .. } => {
                let is_in_ring = (first..first + ring.blocks.0).contains(address);
                is_in_ring && block.iter().any(|byte| *byte != 0)
            }
            _ => false,
        };
        assert!(!happenings.iter().any(is_record), "seed {seed}: a record was written");
        // What the disk that is left says when the power goes at a moment.
        let says = |moment: usize, page: usize| {
            let image = after_power_cut(&Image::new(), &happenings[..moment], |_| 0);
            page_of(&image, left, u64::from(left), page).copies[usize::from(lost)]
        };
        let answers = host.events.iter().filter(|(_, event)| *event == Event::Answered);
        assert_eq!(answers.count(), 6);
        let mut before = Listed { number: u16::from(lost), is_in: true };
        for (at, (moment, event)) in host.events.iter().enumerate() {
            let recorded = match event {
                Event::Lost(_) => Listed { is_in: false, ..before },
                Event::Offered(_, new) => Listed { number: new.number, is_in: false },
                _ => continue,
            };
            assert_eq!([0, 1].map(|page| says(*moment, page)), [before; 2], "seed {seed}");
            let mut later = host.events[at..].iter();
            let answered = later.find(|(_, event)| *event == Event::Answered);
            let (answered, _) = answered.expect("an answer");
            assert_eq!([0, 1].map(|page| says(*answered, page)), [recorded; 2], "seed {seed}");
            before = recorded;
        }
    }
}

/// A member is never taken for one whose number nobody has written down.
#[test]
fn the_number_of_a_new_member_is_recorded_before_anything_is_written_to_it() {
    let steps = [Step::Write(1), Step::Lose(1), Step::Settle, Step::Replace(1), Step::Settle];
    let (_, happenings, host) = after(2, &steps);
    let new = host.events.iter().find_map(|(_, event)| match event {
        Event::Offered(1, disk) => Some(*disk),
        _ => None,
    });
    let new = new.expect("a new disk");
    let is_on_new = |happening: &Happening| match happening {
        Happening::Write { address, .. } => *address >= at_disk(new.disk, 0),
        _ => false,
    };
    let first_write = happenings.iter().position(is_on_new).expect("a write");
    let image = after_power_cut(&Image::new(), &happenings[..first_write], |_| 0);
    let listed = [(0, true), (new.number, false)].map(|(number, is_in)| Listed { number, is_in });
    for page in 0..2 {
        assert_eq!(page_of(&image, 0, 0, page).copies, listed);
    }
    let image = after_power_cut(&Image::new(), &happenings, |_| 0);
    for (port, disk) in [(0, 0), (1, new.disk)] {
        assert!(page_of(&image, port, disk, 0).copies.iter().all(|it| it.is_in));
    }
}

#[test]
fn of_three_copies_two_may_go_one_while_another_is_admitted() {
    let mut steps = writes(11, 20);
    steps.extend([Step::Lose(2), Step::WriteDurable(3), Step::Replace(2), Step::Write(4)]);
    steps.push(Step::Lose(0));
    steps.extend(writes(12, 40));
    steps.push(Step::Settle);
    let (image, happenings, host) = after(3, &steps);
    assert_eq!((host.failures, host.refused.len()), (vec![], 0));
    let new = host.events.iter().find_map(|(_, event)| match event {
        Event::Offered(2, disk) => Some(*disk),
        _ => None,
    });
    for (inserted, states) in [
        ([first(0), first(1), new], [Out, In, In]),
        ([first(0), first(1), first(2)], [Out, In, Out]),
        ([first(0), None, new], [Out, Out, In]),
    ] {
        let (mut world, opened) = reopen(image.clone(), &inserted, 4, None);
        assert_eq!(opened, Ok(()), "{inserted:?}");
        assert_eq!(world.opened(), states, "{inserted:?}");
        assert_eq!(wrong(&world.read_all(), &newest(&happenings), false), None);
    }
    assert!(!allowed(&happenings).is_empty());
}
