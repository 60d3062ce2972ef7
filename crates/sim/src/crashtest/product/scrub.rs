//! Blocks that go bad by themselves: rotted at rest, or unreadable where they are needed for a rebuild.

use super::array::agree;
use super::door::{Description, Door};
use super::life::{Life, Opening};
use super::operator::Mark;
use super::recorded::recovering;
use super::site::{Site, Wrong};
use super::story::{Deed, Event};
use crate::crashtest::fault_points::{FaultClass, damage};
use crate::crashtest::medium::Medium;
use crate::crashtest::oracle::{Leniency, Oracle, ReadBack};
use crate::crashtest::recording_disk::World;
use crate::crashtest::stacks::SearchedStack;
use crate::crashtest::stamp::{self, Found};
use crate::crashtest::trial::catching;
use crate::crashtest::workload::ordinary;
use imbrex_core::counters::Counter;
use imbrex_core::lifecycle::Start;
use imbrex_core::rng::Rng;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Requests before something goes bad.
const STEPS: usize = 80;
/// Blocks that go bad at most.
const BAD_MAX: u64 = 12;

/// What such cases have come to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Repaired {
    /// Cases.
    pub cases: u64,
    /// Blocks that went bad.
    pub bad: u64,
    /// Of them those that were written again by the array, or were an error.
    pub noticed: u64,
}

impl Repaired {
    /// Adds another case.
    pub fn add(&mut self, other: Repaired) {
        self.cases += other.cases;
        self.bad += other.bad;
        self.noticed += other.noticed;
    }
}

/// A device that was written and has stopped in order.
pub(super) struct Stopped {
    pub media: Vec<Medium>,
    pub oracle: Oracle,
    pub end: u64,
    /// What was read before.
    pub reads: Vec<ReadBack>,
}

pub(super) fn site_of(stack: &SearchedStack, seed: u64, wrong: Wrong) -> Result<Site, String> {
    let site = Site::new(stack, seed, wrong)?;
    site.ok_or_else(|| "accepted: a stack with an array that can be rebuilt".to_string())
}

pub(super) fn stopped(site: &Site) -> Result<Stopped, String> {
    let world = World::new(site.blank(site.set()), None);
    let start = Start::Format(site.set());
    let opening = Opening { start, missing: &[], random: 1, wrong: Wrong::default() };
    let mut life = Life::start(site, &world, &Description::first(site), opening)
        .map_err(|it| format!("an empty device cannot be made: {}", it.words()))?;
    let shape = site.stack.shape();
    let mut oracle = Oracle::empty(shape.blocks);
    let steps = ordinary(site.seed, STEPS, shape, 0);
    life.play_alone(&steps, &mut oracle, Leniency::default()).map_err(|it| it.detail)?;
    let reads = life.read_all();
    life.close().map_err(|error| format!("it does not go down: {error}"))?;
    let end = world.borrow().log.events;
    oracle.closed(end);
    let media = world.borrow().media.clone();
    Ok(Stopped { media, oracle, end, reads })
}

/// Opens a device that has stopped, without some disks.
pub(super) fn come_up<'a>(
    site: &'a Site,
    world: &Rc<RefCell<World>>,
    missing: &[usize],
) -> Result<Life<'a>, String> {
    let opening = recovering(site, missing, 3);
    let opened = Life::start(site, world, &Description::first(site), opening);
    opened.map_err(|it| format!("it does not come up without {missing:?}: {}", it.words()))
}

/// Blocks of the host's data on a disk, with their addresses on the device.
pub(super) fn data_on(medium: &Medium) -> Vec<(u64, u64)> {
    let lba = |at: u64| match stamp::read(&medium.block(at)[..], u64::MAX, 0) {
        Found::Foreign { lba, .. } => Some((at, lba)),
        _ => None,
    };
    (0..medium.len()).filter_map(lba).collect()
}

/// Some of a list, drawn.
pub(super) fn some_of<T: Copy>(mut all: Vec<T>, rng: &mut Rng) -> Vec<T> {
    let wanted = 1 + rng.below(BAD_MAX) as usize;
    while all.len() > wanted {
        all.swap_remove(rng.below(all.len() as u64) as usize);
    }
    all
}

pub(super) fn play(
    life: &mut Life<'_>,
    site: &Site,
    deeds: &[Deed],
) -> Result<Vec<(u64, Mark)>, String> {
    let door = Door::new(site, Description::first(site), vec![0; site.disks()]);
    let event = |deed: &Deed| Event { after_requests: 0, waits: true, during: None, deed: *deed };
    let events = deeds.iter().map(event).collect();
    // There is no host beside it.
    let mut oracle = Oracle::empty(site.stack.shape().blocks);
    let played = life.play(&[], events, door, &mut oracle, Leniency::default());
    played.refused.map_or(Ok(played.marks), Err)
}

/// Bits of blocks of one member rot while the device is down; a scrub finds and mends all of them.
///
/// # Errors
/// When one is left, or a block of the device is lost.
pub fn scrub_repairs(stack: &SearchedStack, seed: u64) -> Result<Repaired, String> {
    let work = || {
        let site = site_of(stack, seed, Wrong::default())?;
        let Stopped { mut media, oracle, end, .. } = stopped(&site)?;
        let mut rng = Rng::new(seed, 211);
        let members: Vec<_> = site.array.ports.iter().filter(|port| !port.is_spare).collect();
        let disk = members[rng.below(members.len() as u64) as usize].disk;
        let bad = some_of(data_on(&media[disk]), &mut rng);
        let before = media[disk].clone();
        for (at, _) in &bad {
            damage(FaultClass::BitFlip, &mut media[disk], *at, &mut rng);
        }
        let world = World::new(media, None);
        let mut life = come_up(&site, &world, &[])?;
        play(&mut life, &site, &[Deed::Scrub(None)])?;
        let repaired = life.counted(Counter::RepairedBlocks);
        let left =
            bad.iter().filter(|(at, _)| world.borrow().media[disk].block(*at) != before.block(*at));
        let left = left.count();
        if left > 0 || repaired != bad.len() as u64 {
            return Err(format!("{left} of {} are left, {repaired} were repaired", bad.len()));
        }
        let reads = life.read_all();
        let judged = oracle.judge_recovered(end, &reads, Leniency::default());
        judged.map_err(|violation| violation.detail)?;
        let ports: Vec<usize> =
            (0..site.array.ports.len()).filter(|port| !site.array.ports[*port].is_spare).collect();
        let media = &world.borrow().media;
        let blocks = site.stack.shape().blocks;
        agree(&site.array, &site.places, blocks, &ports, |disk| &media[disk])?;
        Ok(Repaired { cases: 1, bad: bad.len() as u64, noticed: repaired })
    };
    catching(work).and_then(|result| result).map_err(|what| format!("seed {seed}: {what}"))
}

/// A member is lost, and blocks of another one cannot be read while a new disk is filled. The rebuild goes on,
/// and what no member has is an error; nothing else is, and it is right again when it is written.
///
/// # Errors
/// When anything else comes of it.
pub fn unreadable_while_rebuilding(stack: &SearchedStack, seed: u64) -> Result<Repaired, String> {
    let work = || {
        let site = site_of(stack, seed, Wrong::default())?;
        let Stopped { media, oracle, end, .. } = stopped(&site)?;
        let mut rng = Rng::new(seed, 212);
        let members: Vec<_> = site.array.ports.iter().filter(|port| !port.is_spare).collect();
        let first = rng.below(members.len() as u64) as usize;
        let (lost, other) = (members[first].disk, members[(first + 1) % members.len()].disk);
        let bad = some_of(data_on(&media[other]), &mut rng);
        let world = World::new(media, None);
        let mut life = come_up(&site, &world, &[])?;
        life.strings[other].unreadable.borrow_mut().extend(bad.iter().map(|(at, _)| *at));
        let deeds = [Deed::Fail(lost), Deed::Replace(lost), Deed::Rebuild(None)];
        let marks = play(&mut life, &site, &deeds)?;
        if !marks.iter().any(|(_, mark)| *mark == Mark::RebuildEnded(true)) {
            return Err("the rebuild has stopped".to_string());
        }
        // A third copy has them.
        let is_lost = site.array.may_lack() == 1;
        let bad: BTreeSet<u64> = bad.iter().map(|(_, lba)| *lba).filter(|_| is_lost).collect();
        let reads = life.read_all();
        errors_are(&reads, &bad)?;
        let lenient = Leniency { errors: true, ..Leniency::default() };
        let judged = oracle.judge_recovered(end, &reads, lenient);
        judged.map_err(|violation| violation.detail)?;
        mended(&mut life, &site, &oracle.left_by(end, &reads))?;
        let count = bad.len() as u64;
        Ok(Repaired { cases: 1, bad: count, noticed: count })
    };
    catching(work).and_then(|result| result).map_err(|what| format!("seed {seed}: {what}"))
}

fn errors_are(reads: &[ReadBack], expected: &BTreeSet<u64>) -> Result<(), String> {
    let failed = (0..).zip(reads).filter(|(_, read)| read.is_err()).map(|(lba, _)| lba);
    let failed: BTreeSet<u64> = failed.collect();
    match failed == *expected {
        true => Ok(()),
        false => Err(format!("errors at {failed:?}; expected: {expected:?}")),
    }
}

/// Everything is written, and can be read then.
pub(super) fn mended(life: &mut Life<'_>, site: &Site, oracle: &Oracle) -> Result<(), String> {
    use crate::crashtest::workload::{Action, REQUEST_BLOCKS_MAX, Step};
    use imbrex_core::extent::Extent;
    let blocks = site.stack.shape().blocks;
    let write = |start: u64| Step {
        connection: 0,
        action: Action::Write { durable: false },
        extent: Extent::new(start, REQUEST_BLOCKS_MAX.min(blocks - start)),
        version: (1 << 32) + start,
        delay_ns: 0,
    };
    let starts = (0..blocks).step_by(REQUEST_BLOCKS_MAX as usize);
    let steps: Vec<Step> = starts.map(write).collect();
    let mut oracle = oracle.clone();
    life.play_alone(&steps, &mut oracle, Leniency::default()).map_err(|it| it.detail)?;
    let reads = life.read_all();
    oracle.judge_now(&reads, Leniency::default()).map_err(|violation| violation.detail)
}
