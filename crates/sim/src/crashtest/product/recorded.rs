//! A life of a device that was recorded, and what a power cut leaves of it.

use super::array::agree;
use super::door::{Description, Door};
use super::fates::{Fates, Moment, moments};
use super::life::{Life, Opening};
use super::operator::Mark;
use super::site::Site;
use super::story::{Phase, Story};
use crate::crashtest::image::{Cut, Mode};
use crate::crashtest::medium::Medium;
use crate::crashtest::oracle::{Content, Leniency, Oracle};
use crate::crashtest::recording_disk::World;
use crate::crashtest::workload::{Action, Step, ordinary};
use imbrex_core::lifecycle::Start;
use imbrex_core::operation::Cause;
use imbrex_core::rng::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// Writes of a life have numbers from this one times the number of the life on.
const VERSIONS: u64 = 1 << 20;
/// How long a host pauses at least, so that what it has written is put in order.
const PAUSE_NS: u64 = 1_100_000_000;
/// So many log indices behind something are near it.
const NEAR: u64 = 16;
/// One first life in so many begins with a member that had been away.
const RETURNS_EVERY: u64 = 3;

/// A life of a device that was recorded.
pub struct Recorded<'a> {
    /// The stack.
    pub site: &'a Site,
    /// The port that it is about.
    pub port: usize,
    /// What was known of the ports before.
    pub before: Fates,
    /// The door.
    pub door: Door,
    /// The last log index.
    pub last: u64,
    /// More was lost in the end than the array can lack.
    pub ends_lost: bool,
    /// A member came back in it that had been away.
    pub has_returned: bool,
    /// Every log index from the first on.
    pub moments: Vec<Moment>,
    /// What the disks held before.
    pub base: Vec<Medium>,
    world: Rc<RefCell<World>>,
    oracle: Oracle,
    marks: Vec<(u64, Mark)>,
    /// Log indices just after the host was promised something.
    promises: Vec<u64>,
    /// Which life it is.
    number: u64,
}

/// What a power cut leaves behind.
pub struct Wreck {
    /// When.
    pub index: u64,
    /// What the disks hold.
    pub media: Vec<Medium>,
    /// What the door has.
    pub description: Description,
    /// What is known of the ports.
    pub fates: Fates,
    /// The cut.
    pub cut: Cut,
}

/// A device that is up, and from which a life goes on.
pub struct Up<'a> {
    /// It.
    pub life: Life<'a>,
    /// What the disks held before.
    pub media: Vec<Medium>,
    /// What the blocks of the device hold.
    pub contents: Vec<Content>,
    /// What is known of the ports.
    pub fates: Fates,
    /// Ports that are not there.
    pub missing: Vec<usize>,
}

/// How a site recovers.
pub fn recovering<'a>(site: &Site, missing: &'a [usize], random: u64) -> Opening<'a> {
    let start = Start::Recover(Some(site.set()));
    Opening { start, missing, random, wrong: site.wrong }
}

/// The disks behind some ports.
pub fn disks_of(site: &Site, ports: &[usize]) -> Vec<usize> {
    ports.iter().map(|port| site.array.ports[*port].disk).collect()
}

/// An empty device.
///
/// # Errors
/// When it cannot be made.
fn format(site: &Site) -> Result<Up<'_>, String> {
    let base = site.blank(site.set());
    let world = World::new(base.clone(), None);
    let start = Start::Format(site.set());
    let opening = Opening { start, missing: &[], random: site.seed, wrong: site.wrong };
    let life = Life::start(site, &world, &Description::first(site), opening)
        .map_err(|it| format!("an empty device cannot be made: {}", it.words()))?;
    Ok(Up {
        life,
        media: base,
        contents: vec![Content::Zero; site.stack.shape().blocks as usize],
        fates: Fates::first(&site.array),
        missing: Vec::new(),
    })
}

impl<'a> Recorded<'a> {
    /// The first life of a device, drawn from its seed; it is about a port.
    ///
    /// # Errors
    /// When anything in it is wrong.
    pub fn first_life(site: &'a Site, port: usize) -> Result<Recorded<'a>, String> {
        let mut rng = Rng::new(site.seed, 201);
        let mut up = format(site)?;
        let door = Door::new(site, Description::first(site), vec![0; site.disks()]);
        let returns = rng.below(RETURNS_EVERY) == 0 && !site.array.ports[port].is_spare;
        let story = match site.wrong.loses_all {
            true => Story::loses_all(&site.array, port, &mut rng),
            false => Story::draw(&site.array, port, returns, &mut rng),
        };
        if returns {
            up = without_a_port(site, up, port, &mut rng)?;
        }
        Recorded::play(site, up, story, door, port, if returns { 3 } else { 0 })
    }

    /// Plays a life from a device that is up.
    ///
    /// # Errors
    /// When anything in it is wrong.
    pub fn play(
        site: &'a Site,
        up: Up<'a>,
        story: Story,
        door: Door,
        port: usize,
        number: u64,
    ) -> Result<Recorded<'a>, String> {
        let Up { mut life, media: base, contents, fates, .. } = up;
        let world = Rc::clone(&life.world);
        let first = world.borrow().log.events;
        let rebuilding = life.observed().rebuilding;
        let mut oracle = Oracle::known(contents);
        let seed = site.seed ^ number << 40;
        let shape = site.stack.shape();
        let mut steps = ordinary(seed, story.requests, shape, VERSIONS * (1 + number));
        let mut rng = Rng::new(seed, 202);
        for _ in 0..story.pauses {
            let at = rng.below(steps.len() as u64) as usize;
            steps[at].delay_ns = PAUSE_NS + rng.below(PAUSE_NS);
        }
        if story.is_forced {
            steps.iter_mut().for_each(force);
        }
        let leniency = Leniency {
            errors: story.ends_lost,
            failed_writes: story.ends_lost,
            ..Leniency::default()
        };
        let played = life.play(&steps, story.events, door, &mut oracle, leniency);
        if let Some(violation) = played.violation {
            return Err(format!("in the run: {}", violation.detail));
        }
        if let Some(words) = played.refused.filter(|_| !story.ends_lost) {
            return Err(format!("in the run: {words}"));
        }
        if !oracle.is_settled() {
            return Err("a request was never answered".to_string());
        }
        let is_lost = life.is_lost();
        if is_lost && !story.ends_lost {
            return Err("the array was lost with all blocks there".to_string());
        }
        let at_end = fates.at(&site.array, &played.marks, u64::MAX);
        match life.close() {
            Ok(()) => oracle.closed(world.borrow().log.events),
            Err(_) if is_lost || story.ends_lost => {}
            Err(error) => return Err(format!("the device does not go down: {error}")),
        }
        if !story.ends_lost {
            let good: Vec<usize> = at_end.good_ports().collect();
            let (media, now) = (&world.borrow().media, played.door.now());
            let blocks = site.stack.shape().blocks;
            agree(&site.array, &site.places, blocks, &good, |disk| &media[now.media[disk]])
                .map_err(|what| format!("after an orderly stop: {what}"))?;
        }
        let last = world.borrow().log.events;
        let moments = {
            let log = &world.borrow().log;
            let writes = log.writes.iter().filter(|write| write.cause == Cause::Cleaning);
            let spans = writes.map(|it| (it.submitted, it.completed.unwrap_or(u64::MAX)));
            let spans: Vec<(u64, u64)> = spans.collect();
            let is_collecting = |index| spans.iter().any(|it| it.0 < index && index <= it.1);
            let range = (first, last);
            moments(&fates, &site.array, &played.marks, range, rebuilding, is_collecting)
        };
        Ok(Recorded {
            site,
            port,
            before: fates,
            door: played.door,
            last,
            ends_lost: is_lost,
            has_returned: number == 3,
            moments,
            base,
            world,
            promises: oracle.promises(),
            oracle,
            marks: played.marks,
            number,
        })
    }

    /// Another life, of a device that was opened after a cut in this one.
    ///
    /// # Errors
    /// When anything in it is wrong.
    pub fn next_life(
        &self,
        up: Up<'a>,
        wreck: &Wreck,
        rng: &mut Rng,
    ) -> Result<Recorded<'a>, String> {
        let story = Story::later(&self.site.array, &up.fates, &up.missing, rng);
        // What was made under a temporary name is forgotten, and its numbers are used up.
        let now =
            Description { next_number: self.door.now().next_number, ..wreck.description.clone() };
        let door = Door::new(self.site, now, self.door.used().to_vec());
        Recorded::play(self.site, up, story, door, self.port, self.number + 1)
    }

    /// What the host was told.
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// A log index in a phase, in which the port has not everything where `is_gone`; any in the phase where
    /// there is none such. `None`: the life has none of the phase.
    pub fn index(&self, phase: Phase, is_gone: bool, rng: &mut Rng) -> Option<u64> {
        let bit = 1 << self.port;
        let in_phase = self.moments.iter().filter(|it| it.phase == phase);
        let gone = in_phase.clone().filter(|it| it.lacking & bit != 0).map(|it| it.index);
        let gone: Vec<u64> = gone.collect();
        let found = match is_gone && !gone.is_empty() {
            true => gone,
            false => in_phase.map(|it| it.index).collect(),
        };
        let is_promise = |index: &u64| self.promises.binary_search(index).is_ok();
        let is_behind_loss = |index: &u64| self.is_behind_loss(*index);
        let all = found.iter().copied();
        let near: Vec<u64> = match rng.below(4) {
            0 => all.filter(is_behind_loss).collect(),
            1 => all.filter(is_promise).collect(),
            2 => all.filter(is_promise).filter(is_behind_loss).collect(),
            _ => Vec::new(),
        };
        let found = if near.is_empty() { found } else { near };
        (!found.is_empty()).then(|| found[rng.below(found.len() as u64) as usize])
    }

    /// True of a log index shortly after a disk was lost, or was missed.
    fn is_behind_loss(&self, index: u64) -> bool {
        let is_loss = |mark: &Mark| match mark {
            Mark::Lost(_) => true,
            Mark::Observed(now) => now.missing > 0,
            _ => false,
        };
        let near = |(at, mark): &(u64, Mark)| (*at..*at + NEAR).contains(&index) && is_loss(mark);
        self.marks.iter().any(near)
    }

    /// The power goes.
    pub fn cut(&self, index: u64, mode: Mode, rng: &mut Rng) -> Wreck {
        let log = &self.world.borrow().log;
        let cut = Cut::draw(log, &self.base, index, mode, rng.next_u64());
        Wreck {
            index,
            media: cut.image(log, &self.base),
            description: self.door.at(index).clone(),
            fates: self.before.at(&self.site.array, &self.marks, index),
            cut,
        }
    }

    /// The last description with another disk behind a port.
    pub fn former(&self, wreck: &Wreck, port: usize) -> Option<Description> {
        let disk = self.site.array.ports[port].disk;
        let now = wreck.description.media[disk];
        let mut before = (0..=wreck.index).rev().map(|index| self.door.at(index));
        before.find(|then| then.media[disk] != now).cloned()
    }
}

/// Makes a write one that is durable when it is answered.
fn force(step: &mut Step) {
    if let Action::Write { durable } = &mut step.action {
        *durable = true;
    }
}

/// A life in which a port is not there, and the start at which it is back.
fn without_a_port<'a>(
    site: &'a Site,
    first: Up<'a>,
    port: usize,
    rng: &mut Rng,
) -> Result<Up<'a>, String> {
    let told = |what: &str| format!("before the first life: {what}");
    let mut oracle = Oracle::known(first.contents);
    let mut life = first.life;
    let shape = site.stack.shape();
    let mut media = Vec::new();
    let description = Description::first(site);
    let mut contents = Vec::new();
    for number in 0..3 {
        let story = Story::without(rng);
        let steps = ordinary(site.seed ^ number, story.requests, shape, VERSIONS * number);
        life.play_alone(&steps, &mut oracle, Leniency::default())
            .map_err(|violation| told(&violation.detail))?;
        let reads = life.read_all();
        let end = life.world.borrow().log.events;
        life.close().map_err(|error| told(&format!("it does not go down: {error}")))?;
        oracle.closed(end);
        contents = oracle
            .judge_recovered(end, &reads, Leniency::default())
            .map_err(|violation| told(&violation.detail))?;
        media.clone_from(&life.world.borrow().media);
        if number == 2 {
            break;
        }
        let disks = disks_of(site, &[port]);
        // It is away at the first start; at the second one its rebuild may just begin.
        let missing = if number == 0 { &disks[..] } else { &[] };
        if number == 1 && rng.below(4) > 0 {
            break;
        }
        let world = World::new(media.clone(), None);
        life = Life::start(site, &world, &description, recovering(site, missing, 7 + number))
            .map_err(|it| told(&format!("it does not come up: {}", it.words())))?;
        oracle = Oracle::known(contents.clone());
    }
    let world = World::new(media.clone(), None);
    let life = Life::start(site, &world, &description, recovering(site, &[], 17))
        .map_err(|it| told(&format!("it does not come up: {}", it.words())))?;
    let is_whole = life.lacking() == 0;
    let away = first.fates.started(&site.array, &[port], false);
    let fates = away.started(&site.array, &[], is_whole);
    Ok(Up { life, media, contents, fates, missing: Vec::new() })
}
