//! One case: a run, a power cut in one of its phases, and what is there when the device is opened
//! again. Then perhaps another life, another cut and another opening.

use super::door::{Description, Door};
use super::life::{BLOCKS, Life, Wrong, blank, block_on_disk, set_of};
use super::operator::Mark;
use super::story::{Fate, Phase, Story, by_phase, fates};
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::rng::Rng;
use imbrex_sim::crashtest::image::{Cut, Mode};
use imbrex_sim::crashtest::medium::Medium;
use imbrex_sim::crashtest::oracle::{Content, Leniency, Oracle};
use imbrex_sim::crashtest::recording_disk::World;
use imbrex_sim::crashtest::workload::{Shape, ordinary};
use std::cell::RefCell;
use std::rc::Rc;

/// Disks that lie ready for replacements in one life.
const SPARES: usize = 12;
/// Requests of the second life have versions that none of the first had.
const SECOND_VERSION: u64 = 1 << 32;

/// What is there when a device is opened after a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// The described members. A lost one is back.
    AsDescribed,
    /// The same, and the first openings lose the power too.
    AfterCrashedOpenings,
    /// The described member of this port alone, which has everything.
    Alone(usize),
    /// The described member of this port alone, which lacks data.
    AloneLacking(usize),
    /// Each member is where the other one belongs.
    Swapped,
    /// The member of another device is behind this port.
    Foreign(usize),
    /// A member that was replaced is behind this port.
    Former(usize),
    /// The same, and somebody has opened it by itself in between.
    FormerGoneOn(usize),
    /// The member of this port as it was before the last life.
    Older(usize),
}

impl Presence {
    pub const NAMES: [&str; 9] = [
        "as-described",
        "after-crashed-openings",
        "alone",
        "alone-lacking",
        "swapped",
        "foreign",
        "former",
        "former-gone-on",
        "older",
    ];

    pub fn number(self) -> usize {
        match self {
            Presence::AsDescribed => 0,
            Presence::AfterCrashedOpenings => 1,
            Presence::Alone(_) => 2,
            Presence::AloneLacking(_) => 3,
            Presence::Swapped => 4,
            Presence::Foreign(_) => 5,
            Presence::Former(_) => 6,
            Presence::FormerGoneOn(_) => 7,
            Presence::Older(_) => 8,
        }
    }
}

/// What the cases have reached, so that none of it is vacuous.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    pub cases: u64,
    pub by_phase: [u64; 4],
    /// Cuts with the first port lost before, and with the second.
    pub by_lost_port: [u64; 2],
    pub by_mode: [u64; Mode::ALL.len()],
    pub by_presence: [u64; Presence::NAMES.len()],
    /// Openings that were refused, by presence.
    pub refused: [u64; Presence::NAMES.len()],
    /// Openings that went on with one port, by presence.
    pub degraded: [u64; Presence::NAMES.len()],
    /// Openings with both ports in, and all blocks on both.
    pub whole: u64,
    /// Openings with both ports in, and a part of the blocks on one of them.
    pub half_rebuilt: u64,
    /// Cuts after a number was used up and before the new member was described.
    pub undescribed: u64,
    /// Lives after the first.
    pub later_lives: u64,
    /// Runs in which both ports were lost.
    pub ends_lost: u64,
    pub blocks_judged: u64,
}

impl Reached {
    pub fn add(&mut self, other: &Reached) {
        fn sum<const N: usize>(mine: &mut [u64; N], more: &[u64; N]) {
            mine.iter_mut().zip(more).for_each(|(mine, more)| *mine += more);
        }
        self.cases += other.cases;
        sum(&mut self.by_phase, &other.by_phase);
        sum(&mut self.by_lost_port, &other.by_lost_port);
        sum(&mut self.by_mode, &other.by_mode);
        sum(&mut self.by_presence, &other.by_presence);
        sum(&mut self.refused, &other.refused);
        sum(&mut self.degraded, &other.degraded);
        self.whole += other.whole;
        self.half_rebuilt += other.half_rebuilt;
        self.undescribed += other.undescribed;
        self.later_lives += other.later_lives;
        self.ends_lost += other.ends_lost;
        self.blocks_judged += other.blocks_judged;
    }
}

/// A life of a device that was recorded.
pub struct Recorded {
    seed: u64,
    wrong: Wrong,
    world: Rc<RefCell<World>>,
    base: Vec<Medium>,
    oracle: Oracle,
    door: Door,
    marks: Vec<(u64, Mark)>,
    phases: [Vec<u64>; 4],
    last: u64,
    /// What was known of the ports before.
    fates: [Fate; 2],
    pub ends_lost: bool,
}

/// What a power cut leaves behind.
struct Wreck {
    index: u64,
    media: Vec<Medium>,
    description: Description,
    fates: [Fate; 2],
}

/// A device that was opened after a cut.
struct Reopened {
    life: Life,
    /// What the members held before.
    media: Vec<Medium>,
    contents: Vec<Content>,
    fates: [Fate; 2],
}

fn shape() -> Shape {
    Shape { blocks: BLOCKS, band_blocks: 16, border: None }
}

impl Recorded {
    /// The first life of a device, drawn from a seed.
    ///
    /// # Errors
    /// When anything in it is wrong.
    pub fn first_life(seed: u64, wrong: Wrong) -> Result<Recorded, String> {
        let base = vec![blank(); 2 + SPARES];
        let world = World::new(base.clone(), None);
        let start = Start::Format(set_of(seed));
        let life = Life::start(&world, Description::FIRST, None, start, seed, wrong)
            .map_err(|error| format!("an empty device cannot be made: {error}"))?;
        let door = Door::new(Description::FIRST, 2, wrong.reuses_numbers);
        let story = Story::draw(seed);
        Recorded::play(
            life,
            base,
            story,
            (door, [Fate::Good; 2]),
            Oracle::empty(BLOCKS),
            (seed, 0),
            wrong,
        )
    }

    fn play(
        mut life: Life,
        base: Vec<Medium>,
        story: Story,
        (door, fates): (Door, [Fate; 2]),
        mut oracle: Oracle,
        (seed, first_version): (u64, u64),
        wrong: Wrong,
    ) -> Result<Recorded, String> {
        let world = Rc::clone(&life.world);
        let first = world.borrow().log.events;
        let steps = ordinary(seed, story.requests, shape(), first_version);
        let leniency = Leniency {
            errors: story.ends_lost,
            failed_writes: story.ends_lost,
            ..Leniency::default()
        };
        let played = life.play(&steps, story.events, door, &mut oracle, leniency);
        if let Some(violation) = played.violation {
            return Err(format!("in the run: {}", violation.detail));
        }
        if let Some(words) = played.refused {
            return Err(format!("in the run: {words}"));
        }
        if !oracle.is_settled() {
            return Err("a request was never answered".to_string());
        }
        let is_lost = life.is_lost();
        if is_lost && !story.ends_lost {
            return Err("the mirror was lost with a good port".to_string());
        }
        match life.close() {
            Ok(()) => oracle.closed(world.borrow().log.events),
            Err(_) if is_lost => {}
            Err(error) => return Err(format!("the device does not go down: {error}")),
        }
        let last = world.borrow().log.events;
        let phases = by_phase(&played.marks, first, last);
        Ok(Recorded {
            seed,
            wrong,
            world,
            base,
            oracle,
            door: played.door,
            marks: played.marks,
            phases,
            last,
            fates,
            ends_lost: is_lost,
        })
    }

    /// A log index in a phase, or in any other where the run has none of it.
    fn index(&self, phase: Phase, rng: &mut Rng) -> (Phase, u64) {
        let order = (0..4).map(|by| Phase::ALL[(phase as usize + by) % 4]);
        let mut some = order.filter(|phase| !self.phases[*phase as usize].is_empty());
        let phase = some.next().expect("a run has a first index");
        let indices = &self.phases[phase as usize];
        (phase, indices[rng.below(indices.len() as u64) as usize])
    }

    fn cut(&self, index: u64, mode: Mode, rng: &mut Rng) -> Wreck {
        let log = &self.world.borrow().log;
        let cut = Cut::draw(log, &self.base, index, mode, rng.next_u64());
        Wreck {
            index,
            media: cut.image(log, &self.base),
            description: self.door.at(index),
            fates: fates(self.fates, &self.marks, index),
        }
    }

    /// What may be there after a cut, drawn.
    fn presence(&self, wreck: &Wreck, is_later: bool, rng: &mut Rng) -> Presence {
        let mut all = vec![Presence::AsDescribed; 3];
        all.extend([Presence::AfterCrashedOpenings, Presence::Swapped]);
        for port in 0..2 {
            match wreck.fates[port] {
                Fate::Good => all.extend([Presence::Alone(port); 2]),
                Fate::Target => all.push(Presence::AloneLacking(port)),
                Fate::Stale => {}
            }
            if wreck.fates[1 - port] != Fate::Good {
                continue;
            }
            all.push(Presence::Foreign(port));
            if self.former(wreck, port).is_some() {
                all.extend([Presence::Former(port), Presence::FormerGoneOn(port)]);
            }
            if is_later && wreck.fates[port] != Fate::Stale && self.fates[port] != Fate::Stale {
                all.extend([Presence::Older(port); 3]);
            }
        }
        all[rng.below(all.len() as u64) as usize]
    }

    /// The last description with another member behind a port.
    fn former(&self, wreck: &Wreck, port: usize) -> Option<Description> {
        let now = wreck.description.media[port];
        let mut before = (0..=wreck.index).rev().map(|index| self.door.at(index));
        before.find(|then| then.media[port] != now)
    }

    /// Opens the member behind a port by itself, again and again.
    fn gone_on(&self, mut media: Vec<Medium>, then: Description, port: usize) -> Vec<Medium> {
        const OPENINGS: usize = 6;
        for _ in 0..OPENINGS {
            let world = World::new(media, None);
            let start = Start::Recover(Some(set_of(self.seed)));
            // It may lack data or know that it is out. Then it stays as it is.
            let _ = Life::start(&world, then, Some(1 - port), start, self.seed, self.wrong);
            media = world.borrow().media.clone();
        }
        media
    }

    /// Plays case `number` of this run.
    ///
    /// # Errors
    /// When the device does not come up where it must, takes a member that it must not, or holds
    /// what it must not.
    pub fn case(&self, number: u64, reached: &mut Reached) -> Result<(), String> {
        let mut rng = Rng::new(self.seed, 300 + number);
        let (phase, index) = match rng.below(16) {
            0 => (Phase::Idle, self.last),
            _ => self.index(Phase::ALL[number as usize % 4], &mut rng),
        };
        let mode = (number / 4 + self.seed) % (Mode::ALL.len() as u64 - 1);
        let wreck = self.cut(index, Mode::ALL[mode as usize], &mut rng);
        let presence = self.presence(&wreck, false, &mut rng);
        reached.cases += 1;
        reached.by_phase[phase as usize] += 1;
        reached.by_mode[mode as usize] += 1;
        for (mark_at, mark) in &self.marks {
            if let (Mark::Lost(port), true) = (mark, *mark_at <= index) {
                reached.by_lost_port[*port] += 1;
                break;
            }
        }
        let after_number = self.door.at(index).next_number > self.door.at(0).next_number;
        let is_undescribed = phase == Phase::Replace && after_number;
        reached.undescribed += u64::from(is_undescribed);
        reached.ends_lost += u64::from(self.ends_lost);
        let what = format!(
            "seed {}, case {number}, {} at {index}, {} pending, {presence:?}, ports {:?}",
            self.seed,
            phase.name(),
            Mode::ALL[mode as usize].name(),
            wreck.fates,
        );
        let told = |error: String| format!("{what}: {error}");
        let reopened = self.reopen(&wreck, presence, &mut rng, reached).map_err(told)?;
        let goes_on = matches!(
            presence,
            Presence::AsDescribed | Presence::AfterCrashedOpenings | Presence::Alone(_)
        );
        match reopened {
            Some(reopened) if goes_on && rng.below(2) == 0 => {
                self.later(reopened, &wreck, &mut rng, reached).map_err(told)
            }
            _ => Ok(()),
        }
    }

    /// Another life, another cut, another opening.
    fn later(
        &self,
        reopened: Reopened,
        wreck: &Wreck,
        rng: &mut Rng,
        reached: &mut Reached,
    ) -> Result<(), String> {
        let in_later = |error: String| format!("in a later life: {error}");
        reached.later_lives += 1;
        let story = Story::later(reopened.fates, rng);
        // What was made under a temporary name is forgotten, and its number is used up.
        let door = Door::new(wreck.description, self.door.next_medium(), self.wrong.reuses_numbers);
        let recorded = Recorded::play(
            reopened.life,
            reopened.media,
            story,
            (door, reopened.fates),
            Oracle::known(reopened.contents),
            (self.seed, SECOND_VERSION),
            self.wrong,
        )
        .map_err(in_later)?;
        let phase = Phase::ALL[rng.below(4) as usize];
        let (_, index) = match rng.below(4) {
            0 => (Phase::Idle, recorded.last),
            _ => recorded.index(phase, rng),
        };
        let mode = Mode::ALL[rng.below(Mode::ALL.len() as u64 - 1) as usize];
        let wreck = recorded.cut(index, mode, rng);
        let presence = recorded.presence(&wreck, true, rng);
        let told = |error| {
            let ports = wreck.fates;
            in_later(format!("{} at {index}, {presence:?}, ports {ports:?}: {error}", mode.name()))
        };
        recorded.reopen(&wreck, presence, rng, reached).map_err(told)?;
        Ok(())
    }

    /// Opens what a cut has left behind and judges it; `None` where it was right to refuse.
    fn reopen(
        &self,
        wreck: &Wreck,
        presence: Presence,
        rng: &mut Rng,
        reached: &mut Reached,
    ) -> Result<Option<Reopened>, String> {
        let mut media = wreck.media.clone();
        let mut description = wreck.description;
        let mut missing = None;
        match presence {
            Presence::AsDescribed => {}
            Presence::AfterCrashedOpenings => {
                for _ in 0..1 + rng.below(2) {
                    media = self.crashed_opening(media, description, rng)?;
                }
            }
            Presence::Alone(port) | Presence::AloneLacking(port) => missing = Some(1 - port),
            Presence::Swapped => description.media.swap(0, 1),
            Presence::Foreign(port) => media[description.media[port]] = foreign(self.seed)?,
            Presence::Former(port) | Presence::FormerGoneOn(port) => {
                let former = self.former(wreck, port).expect("a former member");
                if presence == Presence::FormerGoneOn(port) {
                    let medium = former.media[port];
                    media[medium] = self.gone_on(media.clone(), former, port)[medium].clone();
                }
                description.media[port] = former.media[port];
            }
            Presence::Older(port) => {
                let medium = description.media[port];
                media[medium] = self.base[medium].clone();
            }
        }
        reached.by_presence[presence.number()] += 1;
        let world = World::new(media.clone(), None);
        let start = Start::Recover(Some(set_of(self.seed)));
        let opened = Life::start(&world, description, missing, start, self.seed, self.wrong);
        match opened {
            Ok(mut life) => {
                let (contents, fates) =
                    self.judge(&mut life, wreck, description, presence, reached)?;
                Ok(Some(Reopened { life, media, contents, fates }))
            }
            Err(error) => {
                self.judge_refusal(wreck, presence, &error)?;
                reached.refused[presence.number()] += 1;
                Ok(None)
            }
        }
    }

    /// Opens a device, loses the power meanwhile and returns what is left.
    fn crashed_opening(
        &self,
        media: Vec<Medium>,
        description: Description,
        rng: &mut Rng,
    ) -> Result<Vec<Medium>, String> {
        let world = World::new(media.clone(), None);
        let start = Start::Recover(Some(set_of(self.seed)));
        Life::start(&world, description, None, start, self.seed, self.wrong)
            .map_err(|error| format!("it does not come up the first time: {error}"))?;
        let log = &world.borrow().log;
        let index = rng.below(log.events + 1);
        let mode = Mode::ALL[rng.below(Mode::ALL.len() as u64 - 1) as usize];
        let cut = Cut::draw(log, &media, index, mode, rng.next_u64());
        Ok(cut.image(log, &media))
    }

    fn judge_refusal(
        &self,
        wreck: &Wreck,
        presence: Presence,
        error: &OpenError,
    ) -> Result<(), String> {
        let _ = wreck;
        match presence {
            Presence::AsDescribed | Presence::AfterCrashedOpenings | Presence::Alone(_) => {
                Err(format!("it does not come up: {error}"))
            }
            _ => Ok(()),
        }
    }

    fn judge(
        &self,
        life: &mut Life,
        wreck: &Wreck,
        description: Description,
        presence: Presence,
        reached: &mut Reached,
    ) -> Result<(Vec<Content>, [Fate; 2]), String> {
        let status = life.status();
        let whole = status.rebuilt_blocks == BLOCKS;
        let must_be_in = match presence {
            Presence::AsDescribed | Presence::AfterCrashedOpenings => {
                match wreck.fates.contains(&Fate::Stale) {
                    true => None,
                    false => Some(2),
                }
            }
            Presence::Swapped => return Err("swapped members were taken".to_string()),
            _ => Some(1),
        };
        if must_be_in.is_some_and(|ports| ports != status.ports_in) {
            return Err(format!("it came up with {status:?}"));
        }
        if wreck.fates == [Fate::Good; 2] && status.ports_in == 2 && !whole {
            return Err(format!("what was rebuilt is forgotten: {status:?}"));
        }
        match (status.ports_in, whole) {
            (2, true) => reached.whole += 1,
            (2, false) => reached.half_rebuilt += 1,
            _ => reached.degraded[presence.number()] += 1,
        }
        if status.ports_in == 2 {
            agree(life, description, status.rebuilt_blocks)?;
        }
        let reads = life.read_all();
        reached.blocks_judged += reads.len() as u64;
        let contents = self
            .oracle
            .judge_recovered(wreck.index, &reads, Leniency::default())
            .map_err(|violation| violation.detail)?;
        let mut fates = wreck.fates;
        match (status.ports_in, presence) {
            (1, Presence::Alone(port)) => fates[1 - port] = Fate::Stale,
            (2, _) if whole => fates = [Fate::Good; 2],
            (2, _) => {
                // The source of a rebuild that was lost is good; any other lost port was found to
                // lack data, though nobody was told anything since.
                let lost = match fates.contains(&Fate::Target) {
                    true => Fate::Good,
                    false => Fate::Target,
                };
                for fate in fates.iter_mut().filter(|fate| **fate == Fate::Stale) {
                    *fate = lost;
                }
            }
            _ => {}
        }
        Ok((contents, fates))
    }
}

/// Whether both ports have the same data, which no order of reads may tell apart.
fn agree(life: &Life, description: Description, blocks: u64) -> Result<(), String> {
    let media = &life.world.borrow().media;
    let [one, other] = description.media.map(|medium| &media[medium]);
    let differs = |block: &u64| {
        let at = block_on_disk(*block);
        one.block(at) != other.block(at)
    };
    match (0..blocks).find(differs) {
        Some(block) => Err(format!("the ports differ at block {block}")),
        None => Ok(()),
    }
}

/// The first member of another device.
fn foreign(seed: u64) -> Result<Medium, String> {
    let other = seed + 1_000_000;
    let world = World::new(vec![blank(); 2], None);
    let start = Start::Format(set_of(other));
    let wrong = Wrong::default();
    Life::start(&world, Description::FIRST, None, start, other, wrong)
        .map_err(|error| format!("an empty device cannot be made: {error}"))?;
    Ok(world.borrow().media[0].clone())
}
