//! Blocks of an array with parity that go bad by themselves.

use super::life::Life;
use super::operator::Mark;
use super::scrub::{Repaired, Stopped, come_up, data_on, mended, play, site_of, some_of, stopped};
use super::site::{Site, Wrong};
use super::story::Deed;
use crate::crashtest::fault_points::{FaultClass, damage};
use crate::crashtest::image::Cut;
use crate::crashtest::medium::Medium;
use crate::crashtest::oracle::{Leniency, ReadBack};
use crate::crashtest::recorded::any_mode;
use crate::crashtest::recording_disk::World;
use crate::crashtest::stacks::SearchedStack;
use crate::crashtest::trial::catching;
use crate::crashtest::workload::ordinary;
use imbrex_core::counters::Counter;
use imbrex_core::rng::Rng;

/// Requests when something has gone bad.
const STEPS: usize = 20;

/// Disks of the members.
fn members(site: &Site) -> Vec<usize> {
    let ports = site.array.ports.iter().filter(|port| !port.is_spare);
    ports.map(|port| port.disk).collect()
}

/// Has the device scrubbed twice. Returns how many blocks the first scrub has made right.
///
/// # Errors
/// When the second one finds something.
fn scrub_twice(life: &mut Life<'_>, site: &Site) -> Result<u64, String> {
    play(life, site, &[Deed::Scrub(None)])?;
    let repaired = life.counted(Counter::RepairedBlocks);
    play(life, site, &[Deed::Scrub(None)])?;
    match life.counted(Counter::RepairedBlocks) - repaired {
        0 => Ok(repaired),
        again => Err(format!("a second scrub repairs {again}, the first one {repaired}")),
    }
}

/// Bits of blocks of one member rot while the device is down, and some blocks are written then. Behind a scrub a
/// second one finds nothing, and any member may be missing.
///
/// # Errors
/// When a block of the device is lost, or the second scrub finds something.
pub fn scrub_repairs_parity(
    stack: &SearchedStack,
    seed: u64,
    wrong: Wrong,
) -> Result<Repaired, String> {
    let work = || {
        let site = site_of(stack, seed, wrong)?;
        let Stopped { mut media, oracle, end, reads } = stopped(&site)?;
        let mut oracle = oracle.left_by(end, &reads);
        let mut rng = Rng::new(seed, 213);
        let disk = members(&site)[rng.below(members(&site).len() as u64) as usize];
        for (at, _) in some_of(data_on(&media[disk]), &mut rng) {
            damage(FaultClass::BitFlip, &mut media[disk], at, &mut rng);
        }
        let world = World::new(media, None);
        let mut life = come_up(&site, &world, &[])?;
        let steps = ordinary(site.seed, STEPS, site.stack.shape(), 1);
        life.play_alone(&steps, &mut oracle, Leniency::default()).map_err(|it| it.detail)?;
        let repaired = scrub_twice(&mut life, &site)?;
        let reads = life.read_all();
        oracle.judge_now(&reads, Leniency::default()).map_err(|violation| violation.detail)?;
        life.close().map_err(|error| format!("it does not go down: {error}"))?;
        drop(life);
        let end = world.borrow().log.events;
        oracle.closed(end);
        let media = world.borrow().media.clone();
        for missing in members(&site) {
            let world = World::new(media.clone(), None);
            let mut life = come_up(&site, &world, &[missing])?;
            let judged = oracle.judge_recovered(end, &life.read_all(), Leniency::default());
            judged.map_err(|it| format!("without disk {missing:?}: {}", it.detail))?;
        }
        Ok(Repaired { cases: 1, bad: repaired, noticed: repaired })
    };
    catching(work).and_then(|result| result).map_err(|what| format!("seed {seed}: {what}"))
}

/// A member is lost, and blocks of another one cannot be read while a new disk is filled. The rebuild goes on. What
/// both were needed for is an error and listed, all else is right, and it is right again when it is written.
///
/// # Errors
/// When anything else comes of it.
pub fn unreadable_beside_parity(stack: &SearchedStack, seed: u64) -> Result<Repaired, String> {
    let work = || {
        let site = site_of(stack, seed, Wrong::default())?;
        let Stopped { media, oracle, end, .. } = stopped(&site)?;
        let mut rng = Rng::new(seed, 214);
        let members = members(&site);
        let first = rng.below(members.len() as u64) as usize;
        let other = (first + 1 + rng.below(members.len() as u64 - 1) as usize) % members.len();
        let (lost, other) = (members[first], members[other]);
        let bad = some_of(data_on(&media[other]), &mut rng);
        let world = World::new(media, None);
        let mut life = come_up(&site, &world, &[])?;
        life.strings[other].unreadable.borrow_mut().extend(bad.iter().map(|(at, _)| *at));
        let deeds = [Deed::Fail(lost), Deed::Replace(lost), Deed::Rebuild(None)];
        let marks = play(&mut life, &site, &deeds)?;
        if !marks.iter().any(|(_, mark)| *mark == Mark::RebuildEnded(true)) {
            return Err("the rebuild has stopped".to_string());
        }
        let reads = life.read_all();
        let errors = reads.iter().filter(|read| read.is_err()).count() as u64;
        // Of each bad block its own, and that of the lost member in its row.
        if errors > 2 * bad.len() as u64 {
            return Err(format!("{errors} errors, of {} bad blocks", bad.len()));
        }
        let lenient = Leniency { errors: true, ..Leniency::default() };
        let judged = oracle.judge_recovered(end, &reads, lenient);
        judged.map_err(|violation| violation.detail)?;
        mended(&mut life, &site, &oracle.left_by(end, &reads))?;
        Ok(Repaired { cases: 1, bad: errors, noticed: errors })
    };
    catching(work).and_then(|result| result).map_err(|what| format!("seed {seed}: {what}"))
}

/// Blocks of one home have rotted, and all of another one: what both had in a row nobody can give. Band rows are collected
/// meanwhile, and then the power goes.
///
/// # Errors
/// When a write fails, a block is wrong instead of an error, or more blocks are errors than can be lost.
pub fn unreadable_while_collecting(stack: &SearchedStack, seed: u64) -> Result<Repaired, String> {
    let work = || {
        let site = site_of(stack, seed, Wrong::default())?;
        let Stopped { mut media, oracle, end, reads } = stopped(&site)?;
        let mut oracle = oracle.left_by(end, &reads);
        let mut rng = Rng::new(seed, 215);
        let bad = rot_two_homes(&site, &mut media, &mut rng);
        let world = World::new(media.clone(), None);
        let mut life = come_up(&site, &world, &[])?;
        let lenient = Leniency { errors: true, ..Leniency::default() };
        let steps = ordinary(site.seed, STEPS, site.stack.shape(), 1);
        life.play_alone(&steps, &mut oracle, lenient).map_err(|it| it.detail)?;
        let reads = life.read_all();
        errors_of(&reads, bad)?;
        oracle.judge_now(&reads, lenient).map_err(|violation| violation.detail)?;
        let log = &world.borrow().log;
        let cut = Cut::draw(log, &media, log.events, any_mode(&mut rng), rng.next_u64());
        let world = World::new(cut.image(log, &media), None);
        let reads = come_up(&site, &world, &[])?.read_all();
        let errors = errors_of(&reads, bad).map_err(|what| format!("behind the cut: {what}"))?;
        let judged = oracle.judge_recovered(log.events, &reads, lenient);
        judged.map_err(|violation| format!("behind the cut: {}", violation.detail))?;
        Ok(Repaired { cases: 1, bad: errors, noticed: errors })
    };
    catching(work).and_then(|result| result).map_err(|what| format!("seed {seed}: {what}"))
}

/// Blocks of one home have rotted, and all of another one: what both had in a row nobody can give. A scrub lists that, and
/// makes the parity right for the others, so that a second one finds nothing and any member may be missing.
///
/// # Errors
/// When anything else comes of it.
pub fn unreadable_while_scrubbing(stack: &SearchedStack, seed: u64) -> Result<Repaired, String> {
    let work = || {
        let site = site_of(stack, seed, Wrong::default())?;
        let Stopped { mut media, oracle, end, .. } = stopped(&site)?;
        let mut rng = Rng::new(seed, 216);
        let bad = rot_two_homes(&site, &mut media, &mut rng);
        let world = World::new(media, None);
        let mut life = come_up(&site, &world, &[])?;
        scrub_twice(&mut life, &site)?;
        let lenient = Leniency { errors: true, ..Leniency::default() };
        let reads = life.read_all();
        let errors = errors_of(&reads, bad)?;
        life.close().map_err(|error| format!("it does not go down: {error}"))?;
        drop(life);
        let media = world.borrow().media.clone();
        for missing in members(&site).into_iter().map(Some).chain([None]) {
            let world = World::new(media.clone(), None);
            let mut life = come_up(&site, &world, missing.as_slice())?;
            let reads = life.read_all();
            let judged = oracle.judge_recovered(end, &reads, lenient);
            judged.map_err(|it| format!("without disk {missing:?}: {}", it.detail))?;
            let now = errors_of(&reads, bad)?;
            if now != errors {
                return Err(format!("without disk {missing:?}: {now} errors, {errors} before"));
            }
        }
        Ok(Repaired { cases: 1, bad: errors, noticed: errors })
    };
    catching(work).and_then(|result| result).map_err(|what| format!("seed {seed}: {what}"))
}

/// Bits of some blocks of the first home rot, and of all of the second one. Returns how many of the first.
fn rot_two_homes(site: &Site, media: &mut [Medium], rng: &mut Rng) -> u64 {
    let (one, other) = (members(site)[0], members(site)[1]);
    let bad = some_of(data_on(&media[one]), rng);
    let of_other = data_on(&media[other]);
    for (disk, blocks) in [(one, &bad), (other, &of_other)] {
        for (at, _) in blocks {
            damage(FaultClass::BitFlip, &mut media[disk], *at, rng);
        }
    }
    bad.len() as u64
}

/// How many blocks were errors.
///
/// # Errors
/// When there are more than can be lost of so many rotten blocks: of each its own, and that of the other home in its row.
fn errors_of(reads: &[ReadBack], bad: u64) -> Result<u64, String> {
    let errors = reads.iter().filter(|read| read.is_err()).count() as u64;
    match errors <= 2 * bad {
        true => Ok(errors),
        false => Err(format!("{errors} errors, of {bad} bad blocks")),
    }
}
