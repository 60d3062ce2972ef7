//! Lives of arrays: requests, members that are lost, new disks, rebuilds, spares, and a second loss.

use crate::host::{Deed, Host, Known};
use crate::naive::Naive;
use crate::raid4smr::{BAND, geometries, random_extent, settings};
use crate::worlds::{World, for_zones, plain};
use imbrex_core::array::raid4smr::Placement;
use imbrex_core::array::{Level, RaidRows};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::rng::Rng;
use imbrex_core::units::BlockCount;
use std::collections::BTreeSet;

const LEVELS: [Level; 3] = [Level::Raid1, Level::Raid4, Level::Raid5];

fn requests(rng: &mut Rng, count: u64, blocks: u64) -> Vec<Deed> {
    let request = |_| {
        let extent = random_extent(rng, blocks);
        match rng.below(12) {
            0..=3 => Deed::Read(extent),
            4 => Deed::Zero(extent),
            5 => Deed::Flush,
            _ => Deed::Write(extent),
        }
    };
    (0..count).map(request).collect()
}

/// Every block, one by one.
fn look(blocks: u64) -> Vec<Deed> {
    (0..blocks).map(|block| Deed::Read(Extent::new(block, 1))).collect()
}

fn play(world: &mut World, known: &mut Known, deeds: Vec<Deed>, depth: usize, told: &str) {
    let World { engine, clock, .. } = world;
    let played = Host::play(engine, clock, known, deeds, depth);
    played.unwrap_or_else(|mistake| panic!("{told}: {mistake}"));
}

/// Loses members one after another, each with requests before, meanwhile and during its rebuild.
fn live(world: &mut World, members: u64, spares: u64, rng: &mut Rng, told: &str) {
    let mut known = Known::may_fail(&[IoError::NoSpace]);
    let blocks = world.blocks();
    for _ in 0..3 {
        let depth = 1 + rng.below(5) as usize;
        let member = rng.below(members) as usize;
        let mut deeds = requests(rng, 20, blocks);
        deeds.push(Deed::Fail(world.nodes[member]));
        deeds.extend(requests(rng, 10, blocks));
        if spares > 0 {
            // A spare steps in at once; what was lost stays lost.
            deeds.extend(requests(rng, 10, blocks));
            deeds.push(Deed::Settle);
            play(world, &mut known, deeds, depth, told);
            play(world, &mut known, look(blocks), 3, told);
            break;
        }
        deeds.push(Deed::Settle);
        let (disk, new) = world.new_disk(member);
        deeds.push(Deed::Replace(disk, new));
        deeds.extend(requests(rng, 5, blocks));
        deeds.push(Deed::Rebuild(world.array));
        deeds.extend(requests(rng, 10, blocks));
        deeds.push(Deed::Settle);
        play(world, &mut known, deeds, depth, told);
        assert_eq!(known.refused, Vec::<String>::new(), "{told}");
        play(world, &mut known, look(blocks), 3, told);
    }
    assert!(known.lost.is_empty(), "{told}: {:?} were lost", known.lost);
    let status = world.engine.stack.status_of(world.array);
    let lacking = status.facts.iter().find(|(name, _)| *name == "members_lacking");
    assert_eq!(lacking, Some(&("members_lacking", 0)), "{told}");
}

fn raid_lives(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut rng = Rng::new(seed, 1);
        let level = LEVELS[(seed % 3) as usize];
        let members = match level {
            Level::Raid1 => 2 + rng.below(3),
            _ => 3 + rng.below(3),
        };
        let spares = rng.below(2);
        // Of some more is rebuilt than at once.
        let rows = if seed % 20 == 0 { 2500 } else { 60 };
        let disks: Vec<u64> = (0..members + spares).map(|_| rows + rng.below(3)).collect();
        let disks: Vec<u64> = disks
            .iter()
            .enumerate()
            .map(|(at, blocks)| if (at as u64) < members { *blocks } else { rows + 2 })
            .collect();
        let mut world = World::raid(level, &disks, spares as usize, seed);
        live(&mut world, members, spares, &mut rng, &format!("seed {seed}, {level:?}"));
    }
}

fn raid4smr_lives(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut rng = Rng::new(seed, 2);
        let mut settings = settings(&mut rng);
        let mut geometries = geometries(&settings);
        settings.spares = rng.below(2) as usize;
        geometries.extend(core::iter::repeat_n(plain(200), settings.spares));
        let members = settings.columns() as u64;
        let mut world = World::raid4smr(&settings, geometries, seed);
        let told = format!("seed {seed}, {settings:?}");
        live(&mut world, members, settings.spares as u64, &mut rng, &told);
    }
}

/// Writes of rows on both sides of where a rebuild has come to.
#[test]
fn writes_across_the_end_of_what_is_rebuilt_are_on_the_new_disk() {
    for seed in 0..120 {
        let mut rng = Rng::new(seed, 6);
        let level = LEVELS[(seed % 3) as usize];
        let members = if level == Level::Raid1 { 2 } else { 3 + rng.below(2) };
        let mut world = World::raid(level, &vec![5200; members as usize], 0, seed);
        let told = format!("seed {seed}, {level:?}");
        let (mut known, of_row) = (Known::default(), world.blocks() / 5200);
        let member = rng.below(members) as usize;
        let (disk, new) = world.new_disk(member);
        let mut deeds = vec![Deed::Fail(world.nodes[member]), Deed::Settle];
        deeds.extend([Deed::Replace(disk, new), Deed::Rebuild(world.array)]);
        // One for each part of it: whatever comes later must not mend it.
        for part in 1..=5 {
            let (end, before) = (1024 * part * of_row, 1 + rng.below(4 * of_row));
            deeds.push(Deed::Write(Extent::new(end - before, before + rng.below(4 * of_row))));
        }
        deeds.push(Deed::Settle);
        play(&mut world, &mut known, deeds, 1 + rng.below(5) as usize, &told);
        // The new disk answers alone where another member is lost.
        let other = world.nodes[(member + 1) % members as usize];
        play(&mut world, &mut known, vec![Deed::Fail(other)], 1, &told);
        let blocks = world.blocks();
        play(&mut world, &mut known, look(blocks), 3, &told);
        assert!(known.lost.is_empty(), "{told}: {:?}", known.lost);
    }
}

/// Members are drives that manage their tracks themselves: what is rebuilt goes through their logs.
fn lives_of_drives(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut rng = Rng::new(seed, 5);
        let level = LEVELS[(seed % 3) as usize];
        let (members, spares) = (3 + rng.below(2), rng.below(2));
        let mut world = World::raid_of_drives(level, members as usize, spares as usize, seed);
        live(&mut world, members, spares, &mut rng, &format!("seed {seed}, drives, {level:?}"));
    }
}

/// The same over homes of zones that must be written in sequence.
fn zoned_lives(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let mut rng = Rng::new(seed, 4);
        let mut settings = settings(&mut rng);
        settings.placement = Placement::Append;
        settings.spares = rng.below(2) as usize;
        let homes = core::iter::repeat_n(for_zones(), settings.homes);
        let others = core::iter::repeat_n(plain(200), 2 + settings.spares);
        let geometries = homes.chain(others).collect();
        let members = settings.columns() as u64;
        let mut world = World::raid4smr_over(&settings, geometries, settings.homes, seed);
        let told = format!("seed {seed}, zones, {settings:?}");
        live(&mut world, members, settings.spares as u64, &mut rng, &told);
    }
}

#[test]
fn nothing_is_lost_with_one_member_missing_at_a_time() {
    zoned_lives(0..300);
    lives_of_drives(0..300);
    raid_lives(0..300);
    raid4smr_lives(0..300);
    // A slot in the spare band row is written while the row is added to the parity.
    raid4smr_lives(2365..2366);
}

#[test]
#[ignore = "long: for the soak"]
fn nothing_is_lost_with_one_member_missing_at_a_time_in_many_lives() {
    raid_lives(1000..9000);
    raid4smr_lives(1000..9000);
    zoned_lives(1000..3000);
    lives_of_drives(1000..3000);
}

/// Loses two members and reads everything: the blocks that cannot be read are exactly those expected.
fn lose_two(
    world: &mut World,
    lost: [usize; 2],
    known: &mut Known,
    expected: &BTreeSet<u64>,
    told: &str,
) {
    let blocks = world.blocks();
    let fails = lost.map(|member| Deed::Fail(world.nodes[member]));
    play(world, known, fails.into_iter().chain([Deed::Settle]).collect(), 1, told);
    known.may_fail = vec![IoError::Lost];
    play(world, known, look(blocks), 3, told);
    assert_eq!(&known.lost, expected, "{told}: lost {lost:?}");
    known.refused.clear();
    play(world, known, vec![Deed::Rebuild(world.array), Deed::Settle], 1, told);
    let says = |it: &String| it.contains("two members are missing");
    assert!(known.refused.iter().any(says), "{told}: {:?}", known.refused);
}

fn two(rng: &mut Rng, members: u64) -> [usize; 2] {
    let first = rng.below(members);
    let second = (first + 1 + rng.below(members - 1)) % members;
    [first as usize, second as usize]
}

fn second_losses(seeds: std::ops::Range<u64>) {
    let mut spared = 0;
    for seed in seeds {
        let mut rng = Rng::new(seed, 3);
        let settings = settings(&mut rng);
        let mut world = World::raid4smr(&settings, geometries(&settings), seed);
        let slots = settings.data_capacity.expect("slots").0;
        let mut naive = Naive::new(settings.clone(), BAND, slots);
        let (mut known, blocks) = (Known::default(), world.blocks());
        let mut deeds = Vec::new();
        for _ in 0..20 {
            let extent = random_extent(&mut rng, blocks);
            (extent.start.0..extent.end().0).for_each(|block| naive.write(block));
            deeds.push(Deed::Write(extent));
        }
        let told = format!("seed {seed}, {settings:?}");
        play(&mut world, &mut known, deeds, 1, &told);
        let lost = two(&mut rng, settings.columns() as u64);
        let is_lost = |block: &u64| {
            let Some((column, row)) = naive.find(*block) else { return false };
            lost.contains(&column) && lost.iter().all(|it| naive.has(*it, row))
        };
        let expected: BTreeSet<u64> = (0..blocks).filter(is_lost).collect();
        let on_lost = |block: &u64| naive.find(*block).is_some_and(|(it, _)| lost.contains(&it));
        spared += (0..blocks).filter(on_lost).count() - expected.len();
        lose_two(&mut world, lost, &mut known, &expected, &told);

        let level = [Level::Raid4, Level::Raid5][(seed % 2) as usize];
        let members = 3 + rng.below(3);
        let disks = vec![60u64; members as usize];
        let mut world = World::raid(level, &disks, 0, seed);
        let (mut known, blocks) = (Known::default(), world.blocks());
        let told = format!("seed {seed}, {level:?}");
        let deeds = requests(&mut rng, 20, blocks);
        play(&mut world, &mut known, deeds, 3, &told);
        let lost = two(&mut rng, members);
        let rows = RaidRows::new(level, disks.iter().map(|it| BlockCount(*it))).expect("rows");
        let is_lost = |block: &u64| lost.contains(&rows.place(*block).0);
        let expected = (0..blocks).filter(is_lost).collect();
        lose_two(&mut world, lost, &mut known, &expected, &told);
    }
    assert!(spared > 0, "no block on a lost member was found from the others");
}

#[test]
fn a_second_loss_costs_exactly_what_both_members_are_needed_for() {
    second_losses(0..200);
}

#[test]
#[ignore = "long: for the soak"]
fn a_second_loss_costs_exactly_what_both_members_are_needed_for_in_many_lives() {
    second_losses(1000..3000);
}

#[test]
fn a_member_that_is_lost_while_another_is_rebuilt_makes_no_wrong_data() {
    for seed in 0..150 {
        let mut rng = Rng::new(seed, 4);
        let settings = settings(&mut rng);
        let mut world = World::raid4smr(&settings, geometries(&settings), seed);
        let mut known = Known::may_fail(&[IoError::NoSpace, IoError::Lost]);
        let blocks = world.blocks();
        let [first, second] = two(&mut rng, settings.columns() as u64);
        let mut deeds = requests(&mut rng, 20, blocks);
        deeds.extend([Deed::Fail(world.nodes[first]), Deed::Settle]);
        let (disk, new) = world.new_disk(first);
        deeds.extend([Deed::Replace(disk, new), Deed::Rebuild(world.array)]);
        let before = rng.below(6);
        deeds.extend(requests(&mut rng, before, blocks));
        deeds.push(Deed::Fail(world.nodes[second]));
        deeds.extend(requests(&mut rng, 20, blocks));
        deeds.push(Deed::Settle);
        deeds.extend(look(blocks));
        play(&mut world, &mut known, deeds, 3, &format!("seed {seed}, {settings:?}"));
    }
}
