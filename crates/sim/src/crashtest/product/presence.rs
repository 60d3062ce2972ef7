//! What is there when a device is opened after a power cut.

use super::fates::Fate;
use super::recorded::{Recorded, Wreck};
use imbrex_core::rng::Rng;

/// What is there when a device is opened after a power cut. Ports have numbers.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Presence {
    /// The described disks. A lost one is back.
    AsDescribed,
    /// The same, and the first openings lose the power too.
    AfterCrashedOpenings,
    /// These are not there, and the others have everything.
    Missing(Vec<usize>),
    /// These are not there, and none of the others has everything.
    MissingTooMany(Vec<usize>),
    /// Two are in each other's place.
    Swapped(usize, usize),
    /// The disk of another device is in this place.
    Foreign(usize),
    /// A disk that was replaced is in this place.
    Former(usize),
    /// The same, and somebody has opened it by itself in between.
    FormerGoneOn(usize),
    /// The disk of this place is as it was before the last life.
    Older(usize),
}

impl Presence {
    /// The words used in reports.
    pub const NAMES: [&str; 9] = [
        "as-described",
        "after-crashed-openings",
        "missing",
        "missing-too-many",
        "swapped",
        "foreign",
        "former",
        "former-gone-on",
        "older",
    ];

    /// Which it is.
    pub fn number(&self) -> usize {
        match self {
            Presence::AsDescribed => 0,
            Presence::AfterCrashedOpenings => 1,
            Presence::Missing(_) => 2,
            Presence::MissingTooMany(_) => 3,
            Presence::Swapped(..) => 4,
            Presence::Foreign(_) => 5,
            Presence::Former(_) => 6,
            Presence::FormerGoneOn(_) => 7,
            Presence::Older(_) => 8,
        }
    }

    /// True when it is about a port.
    pub fn is_about(&self, port: usize) -> bool {
        match self {
            Presence::AsDescribed | Presence::AfterCrashedOpenings => false,
            Presence::Missing(ports) | Presence::MissingTooMany(ports) => ports.contains(&port),
            Presence::Swapped(one, other) => [*one, *other].contains(&port),
            Presence::Foreign(at)
            | Presence::Former(at)
            | Presence::FormerGoneOn(at)
            | Presence::Older(at) => *at == port,
        }
    }

    /// True when all disks are where they belong, or are not there.
    pub fn is_honest(&self) -> bool {
        self.number() <= 3
    }
}

impl Recorded<'_> {
    /// What may be there after a cut that takes nothing more away.
    pub(super) fn presence_of_all(&self, rng: &mut Rng) -> Presence {
        match rng.below(4) {
            0 => Presence::AfterCrashedOpenings,
            _ => Presence::AsDescribed,
        }
    }

    /// What may be there after a cut with which a port goes, drawn.
    pub(super) fn presence_about(
        &self,
        wreck: &Wreck,
        port: usize,
        is_later: bool,
        rng: &mut Rng,
    ) -> Presence {
        let array = &self.site.array;
        let mut all = Vec::new();
        if let Some(missing) = self.missing(wreck, port, rng) {
            all.extend(vec![missing; 6]);
        }
        let others: Vec<usize> = (0..array.ports.len()).filter(|it| *it != port).collect();
        let other = others[rng.below(others.len() as u64) as usize];
        // Without labels those that are in their place go on, if they know that they have everything.
        let is_known = |good: usize| good != port && good != other;
        let is_known = wreck.fates.good_ports().any(is_known);
        if is_known || self.site.is_labelled || others.len() == 1 {
            all.push(Presence::Swapped(port, other));
        }
        // The others must have everything: what is in the place is no help.
        let others_have_all = wreck.fates.good_ports().any(|good| good != port);
        if others_have_all && self.may_lack(wreck, &[port]) {
            all.push(Presence::Foreign(port));
            if self.former(wreck, port).is_some() {
                all.extend([Presence::Former(port), Presence::FormerGoneOn(port)]);
            }
            let was_in = |fate: Fate| fate != Fate::Stale;
            if is_later && was_in(wreck.fates.of[port]) && was_in(self.before.of[port]) {
                all.extend(vec![Presence::Older(port); 3]);
            }
        }
        match all.len() {
            0 => self.presence_of_all(rng),
            some => all.swap_remove(rng.below(some as u64) as usize),
        }
    }

    /// True when labels tell that something is not what it must be. An older copy beside a disk that has taken
    /// its place since is not told by them: the label of that one is new.
    pub(super) fn labels_tell(&self, wreck: &Wreck, presence: &Presence) -> bool {
        let are_same = self.door.at(0).media == wreck.description.media;
        let is_older = matches!(presence, Presence::Older(_));
        self.site.is_labelled && !presence.is_honest() && (are_same || !is_older)
    }

    /// True when the array has all blocks without these ports.
    fn may_lack(&self, wreck: &Wreck, missing: &[usize]) -> bool {
        let there = wreck.fates.good_ports().filter(|port| !missing.contains(port)).count();
        there + self.site.array.may_lack() >= self.site.array.columns()
    }

    /// The port is not there, and perhaps others. `None` where nobody could tell that something is missing:
    /// those that are left were lost themselves, and may not know it.
    fn missing(&self, wreck: &Wreck, port: usize, rng: &mut Rng) -> Option<Presence> {
        let array = &self.site.array;
        let mut missing = vec![port];
        if self.may_lack(wreck, &missing) {
            for other in (0..array.ports.len()).filter(|other| *other != port) {
                let more = [&missing[..], &[other]].concat();
                if rng.below(3) == 0 && self.may_lack(wreck, &more) {
                    missing = more;
                }
            }
            return Some(Presence::Missing(missing));
        }
        let knows = |fate: Fate| fate != Fate::Stale;
        let mut left = (0..array.ports.len()).filter(|it| !missing.contains(it));
        left.any(|it| knows(wreck.fates.of[it])).then_some(Presence::MissingTooMany(missing))
    }
}
