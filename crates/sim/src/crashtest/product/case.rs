//! One case: a power cut in a phase of a life, what is there when the device is opened again, and perhaps
//! another life, another cut and another opening.

use super::array::agree;
use super::door::Description;
use super::fates::Fate;
use super::life::{Life, Opening};
use super::presence::Presence;
use super::reached::Reached;
use super::recorded::{Recorded, Up, Wreck, disks_of, recovering};
use super::site::Wrong;
use super::story::Phase;
use crate::crashtest::image::{Cut, Mode};
use crate::crashtest::medium::Medium;
use crate::crashtest::oracle::Leniency;
use crate::crashtest::recorded::any_mode;
use crate::crashtest::recording_disk::World;
use crate::crashtest::trial::{NotUp, set_of};
use imbrex_core::lifecycle::Start;
use imbrex_core::rng::Rng;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One case in so many cuts the power behind the orderly stop.
const AFTER_STOP_EVERY: u64 = 32;
/// The same of a life that more was lost in than the array can lack: it ends with that.
const AFTER_LOSS_EVERY: u64 = 2;

/// A case that was drawn.
pub struct Case {
    /// The phase.
    pub phase: Phase,
    /// Which pending writes reach the medium.
    pub mode: Mode,
    /// What the cut leaves.
    pub wreck: Wreck,
    /// What is there then.
    pub presence: Presence,
    /// The member was lost before the cut, or lacks something.
    pub is_gone_before: bool,
    rng: Rng,
}

impl Case {
    /// Tells it from others of the same life.
    pub fn identity(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.wreck.cut, self.phase, &self.presence).hash(&mut hasher);
        hasher.finish()
    }

    /// In words.
    pub fn describe(&self, port: &str) -> String {
        let Case { phase, mode, wreck, presence, .. } = self;
        format!(
            "{port} in {}, {} at {}, {presence:?}, ports {:?}",
            phase.name(),
            mode.name(),
            wreck.index,
            wreck.fates.of
        )
    }
}

impl<'a> Recorded<'a> {
    /// The case with a number: about the port of this life, in a phase, drawn the n-th time. `None` where the
    /// life has none of the phase.
    pub fn draw(&self, number: u64, draw: u64, phase: Phase, mode: Mode) -> Option<Case> {
        let mut rng = Rng::new(self.site.seed, 300 + number + (draw << 32));
        // It has gone in the phase, or goes with the cut.
        let is_gone = rng.below(2) == 0;
        let (every, is_of_end) = match self.ends_lost {
            true => (AFTER_LOSS_EVERY, matches!(phase, Phase::Idle | Phase::Write)),
            false => (AFTER_STOP_EVERY, phase == Phase::Idle),
        };
        let (index, mode) = match rng.below(every) {
            0 if is_of_end => (self.last, any_mode(&mut rng)),
            _ => (self.index(phase, is_gone, &mut rng)?, mode),
        };
        let wreck = self.cut(index, mode, &mut rng);
        let lacks = self.moments.iter().find(|it| it.index == index);
        let is_gone_before = lacks.is_some_and(|it| it.lacking & 1 << self.port != 0);
        let presence = match is_gone && is_gone_before {
            true => self.presence_of_all(&mut rng),
            false => self.presence_about(&wreck, self.port, false, &mut rng),
        };
        Some(Case { phase, mode, wreck, presence, is_gone_before, rng })
    }

    /// Plays a case.
    ///
    /// # Errors
    /// When the device does not come up where it must, takes a disk that it must not, or holds what it must
    /// not.
    pub fn try_case(&self, case: Case, reached: &mut Reached) -> Result<(), String> {
        let member = &self.site.array.ports[self.port].name;
        let what = case.describe(member);
        let Case { phase, mode, wreck, presence, is_gone_before, mut rng } = case;
        reached.cases += 1;
        reached.count_pair(member, phase);
        reached.by_mode[mode as usize] += 1;
        reached.gone_before += u64::from(is_gone_before);
        let used = self.door.at(wreck.index).next_number > self.door.at(0).next_number;
        reached.undescribed += u64::from(phase == Phase::Replace && used);
        let told = |error: String| format!("{what}: {error}");
        let opened = self.reopen(&wreck, &presence, &mut rng, reached).map_err(told)?;
        if let Some(disk) = self.other_that_may_go(&wreck, &presence, &mut rng) {
            let told = |error| told(format!("without {}: {error}", self.site.disk_name(disk)));
            return self.reopen_without(disk, &wreck, &presence, &mut rng, reached).map_err(told);
        }
        match opened {
            Some(up) if presence.is_honest() && rng.below(2) == 0 => {
                self.later(up, &wreck, &mut rng, reached).map_err(told)
            }
            _ => Ok(()),
        }
    }

    /// A disk that only another array has and that may be missing too: each array can lack a disk of its own.
    fn other_that_may_go(
        &self,
        wreck: &Wreck,
        presence: &Presence,
        rng: &mut Rng,
    ) -> Option<usize> {
        let others = self.site.disks_of_others();
        let is_shared = |port: &usize| self.site.is_shared(self.site.array.ports[*port].disk);
        let mut shared = (0..self.site.array.ports.len()).filter(is_shared);
        let may_go = match presence {
            Presence::AsDescribed => true,
            Presence::Missing(ports) => !ports.iter().any(is_shared),
            _ => false,
        };
        let have_all = shared.all(|port| wreck.fates.of[port] == Fate::Good);
        let may_go = may_go && have_all && !others.is_empty() && rng.below(2) == 0;
        may_go.then(|| others[rng.below(others.len() as u64) as usize])
    }

    /// Opens what a cut has left without a disk of another array, and judges it.
    fn reopen_without(
        &self,
        disk: usize,
        wreck: &Wreck,
        presence: &Presence,
        rng: &mut Rng,
        reached: &mut Reached,
    ) -> Result<(), String> {
        let site = self.site;
        let mut disks = match presence {
            Presence::Missing(ports) => disks_of(site, ports),
            _ => Vec::new(),
        };
        disks.push(disk);
        site.check(&wreck.description, &wreck.media, &disks)?;
        let world = World::new(wreck.media.clone(), None);
        let opening = recovering(site, &disks, rng.next_u64());
        let mut life = Life::start(site, &world, &wreck.description, opening)
            .map_err(|it| format!("it does not come up: {}", it.words()))?;
        if life.lacking() < disks.len() as u64 {
            return Err("a disk that is missing counts as having everything".to_string());
        }
        let reads = life.read_all();
        reached.blocks_judged += reads.len() as u64;
        reached.without_other += 1;
        let judged = self.oracle().judge_recovered(wreck.index, &reads, Leniency::default());
        judged.map(|_| ()).map_err(|violation| violation.detail)
    }

    /// Another life, another cut, another opening.
    fn later(
        &self,
        up: Up<'a>,
        wreck: &Wreck,
        rng: &mut Rng,
        reached: &mut Reached,
    ) -> Result<(), String> {
        let in_later = |error: String| format!("in a later life: {error}");
        reached.later_lives += 1;
        let mut recorded = self.next_life(up, wreck, rng).map_err(in_later)?;
        recorded.port = rng.below(self.site.array.ports.len() as u64) as usize;
        let index = match rng.below(4) {
            0 => recorded.last,
            _ => {
                let at = rng.below(recorded.moments.len() as u64) as usize;
                let phase = recorded.moments[at].phase;
                recorded.index(phase, false, rng).unwrap_or(recorded.last)
            }
        };
        let mode = any_mode(rng);
        let wreck = recorded.cut(index, mode, rng);
        let presence = match rng.below(2) {
            0 => recorded.presence_of_all(rng),
            _ => recorded.presence_about(&wreck, recorded.port, true, rng),
        };
        let told = |error| {
            let ports = &wreck.fates.of;
            in_later(format!("{} at {index}, {presence:?}, ports {ports:?}: {error}", mode.name()))
        };
        let up = recorded.reopen(&wreck, &presence, rng, reached).map_err(told)?;
        match up {
            Some(up) if presence.is_honest() && rng.below(3) == 0 => {
                // A third life is played to its end.
                reached.later_lives += 1;
                recorded.next_life(up, &wreck, rng).map(|_| ()).map_err(told)
            }
            _ => Ok(()),
        }
    }

    /// Opens what a cut has left behind and judges it; `None` where it was right to refuse.
    fn reopen(
        &self,
        wreck: &Wreck,
        presence: &Presence,
        rng: &mut Rng,
        reached: &mut Reached,
    ) -> Result<Option<Up<'a>>, String> {
        let site = self.site;
        let disk = |port: usize| site.array.ports[port].disk;
        let mut media = wreck.media.clone();
        let mut description = wreck.description.clone();
        let mut missing = Vec::new();
        match presence {
            Presence::AsDescribed => {}
            Presence::AfterCrashedOpenings => {
                for _ in 0..1 + rng.below(2) {
                    media = self.crashed_opening(media, &description, rng)?;
                }
            }
            Presence::Missing(ports) | Presence::MissingTooMany(ports) => missing.clone_from(ports),
            Presence::Swapped(one, other) => {
                let [one, other] = [*one, *other].map(|port| description.media[disk(port)]);
                let (first, second) = (media[one].clone(), media[other].clone());
                media[one] = first.holding(&second);
                media[other] = second.holding(&first);
            }
            Presence::Foreign(port) => {
                let at = description.media[disk(*port)];
                media[at] = media[at].holding(&self.foreign(disk(*port))?);
            }
            Presence::Former(port) | Presence::FormerGoneOn(port) => {
                let former = self.former(wreck, *port).expect("a former disk");
                let from = former.media[disk(*port)];
                if matches!(presence, Presence::FormerGoneOn(_)) {
                    media[from] = self.gone_on(media.clone(), &former, *port)[from].clone();
                }
                let at = description.media[disk(*port)];
                media[at] = media[at].holding(&media[from]);
            }
            Presence::Older(port) => {
                let at = description.media[disk(*port)];
                media[at] = self.base[at].clone();
            }
        }
        reached.by_presence[presence.number()] += 1;
        // A check says what it must only of disks that belong together.
        let is_checked = presence.is_honest();
        let disks = disks_of(site, &missing);
        let before = match is_checked {
            true => site.check(&wreck.description, &media, &disks),
            false => Ok(()),
        };
        let world = World::new(media.clone(), None);
        let opened =
            Life::start(site, &world, &description, recovering(site, &disks, rng.next_u64()));
        description.numbers.clone_from(&wreck.description.numbers);
        match opened {
            Ok(life) => {
                let up =
                    Up { life, media, contents: Vec::new(), fates: wreck.fates.clone(), missing };
                let up = self.judge(up, wreck, presence, reached)?;
                before.map_err(|what| format!("check before the opening: {what}"))?;
                if is_checked {
                    let media = &up.life.world.borrow().media;
                    let after = site.check(&wreck.description, media, &disks);
                    after.map_err(|what| format!("check after the opening: {what}"))?;
                }
                Ok(Some(up))
            }
            Err(not_up) => {
                self.judge_refusal(wreck, presence, &not_up, rng, reached)?;
                reached.refused[presence.number()] += 1;
                Ok(None)
            }
        }
    }

    /// Opens a device, loses the power meanwhile and returns what is left.
    fn crashed_opening(
        &self,
        media: Vec<Medium>,
        description: &Description,
        rng: &mut Rng,
    ) -> Result<Vec<Medium>, String> {
        let world = World::new(media.clone(), None);
        let opening = recovering(self.site, &[], rng.next_u64());
        Life::start(self.site, &world, description, opening)
            .map_err(|it| format!("it does not come up the first time: {}", it.words()))?;
        let log = &world.borrow().log;
        let index = rng.below(log.events + 1);
        let cut = Cut::draw(log, &media, index, any_mode(rng), rng.next_u64());
        Ok(cut.image(log, &media))
    }

    /// Opens the disk in a place by itself, again and again.
    fn gone_on(&self, mut media: Vec<Medium>, then: &Description, port: usize) -> Vec<Medium> {
        const OPENINGS: u64 = 6;
        let others: Vec<usize> =
            (0..self.site.array.ports.len()).filter(|it| *it != port).collect();
        let missing = disks_of(self.site, &others);
        for number in 0..OPENINGS {
            let world = World::new(media, None);
            // It may lack data or know that it is out. Then it stays as it is.
            let opening = recovering(self.site, &missing, 900 + number);
            let _ = Life::start(self.site, &world, then, opening);
            media = world.borrow().media.clone();
        }
        media
    }

    /// A disk of another device with the same stack.
    fn foreign(&self, disk: usize) -> Result<Medium, String> {
        let set = set_of(self.site.seed + 1_000_000);
        let world = World::new(self.site.blank(set), None);
        let opening = Opening {
            start: Start::Format(set),
            missing: &[],
            random: self.site.seed + 1,
            wrong: Wrong::default(),
        };
        Life::start(self.site, &world, &Description::first(self.site), opening)
            .map_err(|it| format!("an empty device cannot be made: {}", it.words()))?;
        Ok(world.borrow().media[disk].clone())
    }

    fn judge_refusal(
        &self,
        wreck: &Wreck,
        presence: &Presence,
        not_up: &NotUp,
        rng: &mut Rng,
        reached: &mut Reached,
    ) -> Result<(), String> {
        let words = not_up.words();
        match presence {
            Presence::AsDescribed | Presence::AfterCrashedOpenings | Presence::Missing(_) => {
                Err(format!("it does not come up: {words}"))
            }
            Presence::MissingTooMany(_) => Ok(()),
            // Who has no labels goes on without a disk that does not belong.
            Presence::Foreign(_)
            | Presence::Former(_)
            | Presence::FormerGoneOn(_)
            | Presence::Older(_)
                if !self.site.is_labelled =>
            {
                Err(format!("it does not come up with the others: {words}"))
            }
            // Nothing has changed: with the disks as they were, all is there.
            _ => {
                let again = self.reopen(wreck, &Presence::AsDescribed, rng, reached);
                let told = |what| format!("refused ({words}), then as it was: {what}");
                again.map(|_| ()).map_err(told)
            }
        }
    }

    fn judge(
        &self,
        mut up: Up<'a>,
        wreck: &Wreck,
        presence: &Presence,
        reached: &mut Reached,
    ) -> Result<Up<'a>, String> {
        let array = &self.site.array;
        let lacking = up.life.lacking();
        let is_mixed = !presence.is_honest();
        if self.labels_tell(wreck, presence) {
            return Err("disks that do not belong were taken".to_string());
        }
        if matches!(presence, Presence::Swapped(..)) && array.ports.len() == 2 {
            return Err("swapped members were taken".to_string());
        }
        if is_mixed && lacking == 0 && !array.has_spares() {
            return Err("a disk that does not belong counts as having everything".to_string());
        }
        let must_be_whole = wreck.fates.good() == array.columns()
            && matches!(presence, Presence::AsDescribed | Presence::AfterCrashedOpenings);
        if must_be_whole && lacking > 0 {
            return Err(format!("what was rebuilt is forgotten: {lacking} lack something"));
        }
        match lacking {
            0 => reached.whole += 1,
            _ => reached.degraded[presence.number()] += 1,
        }
        up.fates = wreck.fates.started(array, &up.missing, lacking == 0);
        self.agree(&up, wreck, is_mixed)?;
        let reads = up.life.read_all();
        reached.blocks_judged += reads.len() as u64;
        let leniency = Leniency {
            // More is missing than the array can lack: what cannot be found must be told.
            errors: matches!(presence, Presence::MissingTooMany(_)),
            ..Leniency::default()
        };
        up.contents = self
            .oracle()
            .judge_recovered(wreck.index, &reads, leniency)
            .map_err(|violation| violation.detail)?;
        // What was rebuilt while all was read counts.
        let is_whole = up.life.lacking() == 0;
        if is_whole && lacking > 0 {
            let missing = up.missing.clone();
            up.fates = up.fates.started(array, &missing, true);
            self.agree(&up, wreck, is_mixed)?;
        }
        Ok(up)
    }

    /// Checks that those who have everything agree.
    fn agree(&self, up: &Up<'a>, wreck: &Wreck, is_mixed: bool) -> Result<(), String> {
        if is_mixed {
            return Ok(());
        }
        let good: Vec<usize> = up.fates.good_ports().collect();
        let media = &up.life.world.borrow().media;
        let medium = |disk: usize| &media[wreck.description.media[disk]];
        let blocks = self.site.stack.shape().blocks;
        agree(&self.site.array, &self.site.places, blocks, &good, medium)
    }
}
