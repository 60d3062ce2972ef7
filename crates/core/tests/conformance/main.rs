//! What every layer and every stack must do: read what was written, answer exactly once, honour
//! flush on every disk, and leave no buffer behind.
//!
//! A new layer gets all rules with one line in [`kinds`].

#[allow(dead_code, reason = "each family of tests uses a part of it")]
#[path = "../common/mod.rs"]
mod common;
mod disk;
mod kinds;
mod lost;
mod suite;
mod workload;
mod wrong;

use common::check::{check, disk_geometry, memory_disk};
use imbrex_core::stack::StackBuilder;

#[test]
fn a_bare_disk() {
    check(
        "a bare disk",
        &|seed| {
            let disk = memory_disk(200, seed);
            let mut builder = StackBuilder::new(seed);
            let node = builder.disk(disk_geometry(&disk));
            (builder.build(node), vec![disk])
        },
        200,
        0,
    );
}

/// The tests of each kind of layer.
macro_rules! conformance {
    ($($name:ident: $kind:expr,)+) => {
        $(mod $name {
            use crate::kinds::made::$name;
            use crate::lost::with_lost_disks;
            use crate::suite::{EVERYDAY, SOAK, When};
            use crate::suite::{with_failures, without_failures};

            #[test]
            fn keeps_every_rule() {
                let most = without_failures(&$name(), EVERYDAY, None).unwrap();
                println!("at most {most} blocks in its buffers");
            }

            #[test]
            fn keeps_every_rule_when_any_operation_fails() {
                let failures = with_failures(&$name(), EVERYDAY, When::Serving, None).unwrap();
                assert!(failures > 20, "only {failures} failures");
            }

            #[test]
            fn keeps_every_rule_when_any_operation_of_its_opening_fails() {
                let failures = with_failures(&$name(), EVERYDAY, When::Reopening, None).unwrap();
                assert!($name().is_durable == (failures > 10), "only {failures} failures");
            }

            #[test]
            fn keeps_every_rule_with_a_disk_lost_before_it_opens() {
                let starts = with_lost_disks(&$name(), EVERYDAY, None).unwrap();
                println!("{starts:?}");
            }

            #[test]
            #[ignore = "long: for the soak"]
            fn keeps_every_rule_in_many_runs() {
                without_failures(&$name(), SOAK, None).unwrap();
                with_failures(&$name(), SOAK, When::Serving, None).unwrap();
                with_failures(&$name(), SOAK, When::Reopening, None).unwrap();
                with_lost_disks(&$name(), SOAK, None).unwrap();
            }
        })+
    };
}
kinds::every_kind!(conformance);

/// Plays a RAID 4SMR with a journal: with all of its members over power cuts, and without one after an orderly end
/// and behind a power cut.
fn play_durable_raid4smrs(amount: suite::Amount, lives: u64) {
    let (mut starts, mut changed) = (0, [0, 0]);
    for kind in kinds::durable_raid4smrs() {
        suite::without_failures(&kind, amount, None).unwrap();
        for seed in 0..lives {
            for port in 0..kind.disks.len() {
                let depth = [1, 4][(seed % 2) as usize];
                let case =
                    suite::Case { seed, depth, asks: 60, fault: None, closes: true, bug: None };
                for lose in [suite::lose, suite::lose_after_a_cut] {
                    let was_served = lose(&kind, case, port).unwrap();
                    assert!(was_served, "seed {seed}, without member {port}");
                }
                let cut = suite::Case { closes: false, ..case };
                let was_served = suite::lose(&kind, cut, port).unwrap();
                assert!(was_served, "seed {seed}, cut and without member {port}");
                starts += 1;
                let others = kind.disks.len() - 1;
                let then = (port + 1 + seed as usize / 2 % others) % kind.disks.len();
                let case = suite::Case { closes: seed % 3 == 0, ..case };
                let was_served = suite::lose_in_turn(&kind, case, port, then).unwrap();
                assert!(was_served, "seed {seed}, cut and without {port}, then without {then}");
                let of_case = suite::change_blocks(&kind, case, port, then).unwrap();
                suite::change_blocks_without(&kind, case, then, port).unwrap();
                changed = [changed[0] + of_case[0], changed[1] + of_case[1]];
            }
        }
    }
    let [changed, found] = changed;
    assert!(found > starts && found < changed, "{found} of {changed} changed blocks");
    println!("{changed} blocks were changed while nobody looked, and a scrub has found {found}");
    println!(
        "{starts} starts behind a cut and without a member, and as many with another one then"
    );
}

#[test]
fn a_durable_raid4smr_keeps_every_rule() {
    play_durable_raid4smrs(suite::EVERYDAY, 4);
}

#[test]
#[ignore = "long: for the soak"]
fn a_durable_raid4smr_keeps_every_rule_in_many_runs() {
    play_durable_raid4smrs(suite::SOAK, 60);
}

/// Draws a translation for each seed, and lets some operations fail of those that lose nothing then.
fn play_any_translation(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let kind = kinds::variants::any_translation(seed);
        let mut rng = imbrex_core::rng::Rng::new(seed, 72);
        for turn in 0..6 {
            let hows = [disk::How::Once, disk::How::FromThenOn, disk::How::PowerCut];
            let fault = disk::Fault {
                port: rng.below(kind.disks.len() as u64) as usize,
                after: rng.below(120),
                how: hows[rng.below(2 + u64::from(kind.is_durable)) as usize],
            };
            let case = suite::Case {
                seed: 10 * seed + turn,
                depth: [1, 2, 4][rng.below(3) as usize],
                asks: if turn < 3 { 120 } else { 40 },
                fault: (turn >= 3 && !kind.loses_on_failure)
                    .then_some((suite::When::Serving, fault)),
                closes: rng.below(2) == 0,
                bug: None,
            };
            if let Err(mistake) = suite::run(&kind, case) {
                let settings = kinds::variants::describe(seed);
                panic!("translation {seed}: {mistake}; {settings}");
            }
        }
    }
}

#[test]
fn any_translation_keeps_every_rule() {
    play_any_translation(0..150);
}

#[test]
#[ignore = "long: for the soak"]
fn any_translation_keeps_every_rule_in_many_runs() {
    play_any_translation(150..6_000);
}

/// Plays a kind of layer without stepping around a fault.
fn plays_through(known: kinds::KnownFault, kind: kinds::Kind) {
    assert_eq!(kind.known, Some(known));
    let kind = kinds::Kind { known: None, ..kind };
    suite::without_failures(&kind, suite::SOAK, None).unwrap();
    suite::with_failures(&kind, suite::SOAK, suite::When::Reopening, None).unwrap();
}

#[test]
fn a_block_of_data_that_is_read_at_the_second_try_while_a_cache_opens_is_not_rolled_back() {
    for after in 0..20 {
        let fault = disk::Fault { port: 0, after, how: disk::How::Once };
        let case = suite::Case {
            seed: 0,
            depth: 1,
            asks: 40,
            fault: Some((suite::When::Reopening, fault)),
            closes: false,
            bug: None,
        };
        suite::run(&kinds::made::durable_cache_pore_bl(), case).unwrap();
    }
}

#[test]
#[ignore = "a fault of the simulated map: at queue depth 4 two of its records are written to one \
            page at once, so that the older may be the last"]
fn two_records_of_the_map_are_not_on_their_way_to_one_page() {
    let known = kinds::KnownFault::OwnBlocksOverlap;
    plays_through(known, kinds::made::translation_map_journal());
}

#[test]
#[ignore = "a fault of cleaning in idle time that is aborted: the note of the next rewrite is written \
            while that of the aborted one is in flight"]
fn two_notes_of_rewrites_are_not_on_their_way_to_one_block() {
    let known = kinds::KnownFault::OwnBlocksOverlap;
    plays_through(known, kinds::made::translation_idle_aborting());
}

#[test]
fn a_block_that_cannot_be_read_when_a_cache_opens_rolls_no_other_back() {
    let fault = disk::Fault { port: 0, after: 15, how: disk::How::FromThenOn };
    let case = suite::Case {
        seed: 1,
        depth: 1,
        asks: 30,
        fault: Some((suite::When::Serving, fault)),
        closes: false,
        bug: None,
    };
    suite::run(&kinds::made::durable_cache_write_only(), case).unwrap();
}

#[test]
fn bugs_planted_in_a_translation_by_s_blocks_are_found() {
    use imbrex_core::planted::PlantedBug;
    let (with_ring, without) = (
        kinds::made::durable_s_block_on_tracks_kappa_3,
        kinds::made::durable_s_block_on_tracks_kappa_2,
    );
    let mut unnoticed = Vec::new();
    for bug in [
        PlantedBug::SBlockRecordedUnflushed,
        PlantedBug::SBlockRingLeftOut,
        PlantedBug::SBlockReadsIgnored,
        PlantedBug::OldLocationReusedEarly,
        PlantedBug::DanglingRecordKept,
        PlantedBug::FuaAsPlain,
        PlantedBug::SmrFlushSkipped,
    ] {
        let found = [with_ring, without].into_iter().find_map(|kind| {
            let quiet = suite::without_failures(&kind(), suite::SOAK, Some(bug)).err();
            let fails = || {
                let serving = suite::When::Serving;
                suite::with_failures(&kind(), suite::SOAK, serving, Some(bug)).err()
            };
            quiet.or_else(fails)
        });
        println!("{}: {found:?}", bug.name());
        if found.is_none() {
            unnoticed.push(bug.name());
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}

#[test]
fn a_flush_of_the_first_disk_of_a_stripe_alone_is_found() {
    let bug = Some(imbrex_core::planted::PlantedBug::StripeFlushesFirstAlone);
    for kind in [kinds::made::stripe_of_blocks, kinds::made::stripe_of_chunks] {
        let found = suite::without_failures(&kind(), suite::EVERYDAY, bug);
        println!("{}", found.expect_err("a flush that lies"));
    }
}
