//! What happens to an array in a life, drawn: requests of the host, and deeds of a person beside them.

use super::array::ArrayOfStack;
use super::fates::{Fate, Fates};
use imbrex_core::command::Rate;
use imbrex_core::rng::Rng;

/// What goes on when the power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Phase {
    /// No change of the host is in flight, and no command.
    Idle,
    /// The host changes blocks.
    Write,
    /// The array moves blocks of its own to other places.
    Collect,
    /// The members are compared.
    Scrub,
    /// A new disk is being taken in.
    Replace,
    /// A member is being filled.
    Rebuild,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 6] =
        [Phase::Idle, Phase::Write, Phase::Collect, Phase::Scrub, Phase::Replace, Phase::Rebuild];

    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Write => "write",
            Phase::Collect => "collect",
            Phase::Scrub => "scrub",
            Phase::Replace => "replace",
            Phase::Rebuild => "rebuild",
        }
    }

    /// Those that an array can be in.
    pub fn of(array: &ArrayOfStack) -> Vec<Phase> {
        let can_be = |phase: &Phase| match phase {
            Phase::Idle | Phase::Write => true,
            Phase::Collect => array.kind == "raid4smr",
            Phase::Scrub => array.scrubs,
            Phase::Replace | Phase::Rebuild => array.takes_replacements,
        };
        Phase::ALL.into_iter().filter(can_be).collect()
    }
}

/// What the person does.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// Tells a disk to fail.
    Fail(usize),
    /// Pulls a disk out, which shows after so many more operations.
    Vanish(usize, u64),
    /// Puts a new disk in a place.
    Replace(usize),
    /// Asks for a rebuild.
    Rebuild(Option<Rate>),
    /// Asks for a scrub.
    Scrub(Option<Rate>),
}

/// What a deed waits for, beside the requests before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum During {
    /// A phase.
    Phase(Phase),
    /// A member of the array lacks something.
    Lacking,
}

/// A deed, and when it is done.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// How many of the host's requests come before it.
    pub after_requests: usize,
    /// It waits until the commands before it were answered.
    pub waits: bool,
    /// It waits for this, and is left out where that does not come.
    pub during: Option<During>,
    /// What is done.
    pub deed: Deed,
}

/// A life: requests of the host, and deeds of a person beside them.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// So many requests.
    pub requests: usize,
    /// The deeds.
    pub events: Vec<Event>,
    /// More is lost in the end than the array can lack: requests may fail.
    pub ends_lost: bool,
    /// Every write is promised when it is answered, so that what one member has taken alone is promised soon.
    pub is_forced: bool,
    /// So often the host asks for nothing for a while, in which the array puts things in order.
    pub pauses: u64,
}

fn rate(rng: &mut Rng) -> Option<Rate> {
    let rates = [6_000_000, 30_000_000, 300_000_000];
    let drawn = rng.below(1 + rates.len() as u64) as usize;
    rates.get(drawn).map(|rate| Rate { bytes_per_s: *rate })
}

/// Deeds in their order, each some requests after the one before it.
struct Plot<'a> {
    rng: &'a mut Rng,
    array: &'a ArrayOfStack,
    at: u64,
    events: Vec<Event>,
}

impl Plot<'_> {
    fn then(&mut self, deed: Deed, waits: bool, requests_max: u64) {
        self.at += self.rng.below(requests_max + 1);
        let after_requests = self.at as usize;
        self.events.push(Event { after_requests, waits, during: None, deed });
    }

    fn then_during(&mut self, deed: Deed, during: During) {
        let after_requests = self.at as usize;
        self.events.push(Event { after_requests, waits: false, during: Some(during), deed });
    }

    fn loss(&mut self, port: usize) -> Deed {
        let disk = self.array.ports[port].disk;
        match self.rng.below(2) {
            0 => Deed::Fail(disk),
            _ => Deed::Vanish(disk, self.rng.below(12)),
        }
    }

    fn lose(&mut self, port: usize, waits: bool) {
        let deed = self.loss(port);
        self.then(deed, waits, 12);
    }

    /// Loses a port in a phase that something before has begun.
    fn lose_during(&mut self, port: usize, phase: Phase) {
        let deed = self.loss(port);
        self.then_during(deed, During::Phase(phase));
    }

    fn replace(&mut self, port: usize) {
        if self.array.takes_replacements {
            let disk = self.array.ports[port].disk;
            self.then(Deed::Replace(disk), true, 8);
        }
    }

    fn rebuild(&mut self) {
        let rate = rate(self.rng);
        self.then(Deed::Rebuild(rate), true, 6);
        // To ask again is harmless, while it runs and when it is over.
        if self.rng.below(3) == 0 {
            let waits = self.rng.below(2) == 0;
            self.then(Deed::Rebuild(rate), waits, 6);
        }
    }

    fn scrub(&mut self) {
        if self.array.scrubs {
            let rate = rate(self.rng);
            self.then(Deed::Scrub(rate), true, 6);
        }
    }

    /// The port is lost, a new disk takes its place and is filled.
    fn go_and_come(&mut self, port: usize) {
        self.replace(port);
        self.rebuild();
    }

    /// A spare is lost while it waits, or while it is filled in the place of another one.
    fn spare(&mut self, port: usize) {
        let is_lost_early = self.rng.below(2) == 0;
        if self.rng.below(2) == 0 {
            self.scrub();
        }
        if is_lost_early {
            self.lose(port, true);
            self.scrub();
            self.replace(port);
        }
        let other = self.another(port);
        self.lose(other, true);
        if !is_lost_early || self.rng.below(2) == 0 {
            self.lose_during(port, Phase::Rebuild);
        }
        self.go_and_come(port);
        self.go_and_come(other);
        self.scrub();
    }

    /// Without a spare a new disk in the place of a member is filled, where otherwise a spare would be. Of an array that
    /// can lack one member that is drawn; others have lives enough in which two are lost.
    fn may_lose_spare_first(&mut self, port: usize) {
        let spare = self.array.ports.iter().position(|it| it.is_spare);
        if let Some(spare) = spare.filter(|it| *it != port && self.array.may_lack() == 1)
            && self.rng.below(2) == 0
        {
            self.lose(spare, true);
        }
    }

    /// All are lost, this one first.
    fn lose_all(&mut self, port: usize) {
        let mut order: Vec<usize> = (0..self.array.ports.len()).collect();
        order.rotate_left(port);
        // One after the other, all but together, or each while the loss of the one before it is being recorded.
        let manner = self.rng.below(4);
        for (place, port) in order.into_iter().enumerate() {
            let disk = self.array.ports[port].disk;
            match (manner, place) {
                (0, _) => self.lose(port, false),
                (_, 0) => {
                    let vanishes = Deed::Vanish(disk, self.rng.below(3));
                    self.then(vanishes, false, 0);
                }
                (1, _) => {
                    let vanishes = Deed::Vanish(disk, self.rng.below(8));
                    self.then(vanishes, false, 0);
                }
                _ => {
                    let vanishes = Deed::Vanish(disk, self.rng.below(4));
                    self.then_during(vanishes, During::Lacking);
                }
            }
        }
    }

    /// Another port than this one that is no spare.
    fn another(&mut self, than: usize) -> usize {
        let others = |port: &usize| *port != than && !self.array.ports[*port].is_spare;
        let others: Vec<usize> = (0..self.array.ports.len()).filter(others).collect();
        others[self.rng.below(others.len() as u64) as usize]
    }
}

/// In one life in so many every write of the host is forced.
const FORCED_EVERY: u64 = 3;
/// How many stories there are for a first life.
const KINDS: u64 = 8;

impl Story {
    /// The first life of a device, which is about one of its ports. It may be one that comes back.
    pub fn draw(array: &ArrayOfStack, port: usize, returns: bool, rng: &mut Rng) -> Story {
        let requests = 40 + rng.below(40) as usize;
        let kind = match rng.below(KINDS) {
            // No other one may go before it has everything.
            1 if returns && array.may_lack() == 1 => KINDS,
            kind => kind,
        };
        let mut plot = Plot { rng, array, at: 4, events: Vec::new() };
        let mut ends_lost = false;
        plot.may_lose_spare_first(port);
        match kind {
            _ if array.ports[port].is_spare => plot.spare(port),
            // It is lost while the members are compared.
            0 => {
                plot.scrub();
                plot.lose_during(port, Phase::Scrub);
                plot.go_and_come(port);
            }
            // Another one is lost and rebuilt; this one goes in that, where the array can lack two.
            1 => {
                plot.scrub();
                let other = plot.another(port);
                plot.lose(other, true);
                plot.go_and_come(other);
                if array.may_lack() > 1 {
                    plot.lose_during(port, Phase::Rebuild);
                    plot.go_and_come(port);
                }
            }
            // It is lost again while it is rebuilt.
            2 => {
                plot.lose(port, true);
                plot.replace(port);
                plot.rebuild();
                plot.lose_during(port, Phase::Rebuild);
                plot.go_and_come(port);
                plot.scrub();
            }
            // In the end more is lost than may be.
            3 => {
                plot.scrub();
                plot.lose(port, true);
                plot.go_and_come(port);
                plot.lose_all(port);
                ends_lost = true;
            }
            // The same while all members have everything.
            6 => {
                plot.scrub();
                plot.at += 15 + plot.rng.below(20);
                plot.lose_all(port);
                ends_lost = true;
            }
            // The members are compared while it is out.
            4 => {
                plot.lose(port, true);
                plot.scrub();
                plot.go_and_come(port);
            }
            // It is lost with another one, where the array can lack two.
            5 => {
                let other = plot.another(port);
                plot.scrub();
                plot.lose(port, true);
                if array.may_lack() > 1 {
                    plot.lose(other, false);
                    plot.replace(other);
                }
                plot.go_and_come(port);
            }
            _ => {
                plot.scrub();
                plot.lose(port, plot.at > 4);
                plot.go_and_come(port);
            }
        }
        let events = plot.events;
        let pauses = rng.below(3);
        let is_forced = ends_lost || rng.below(FORCED_EVERY) == 0;
        Story { requests, events, ends_lost, is_forced, pauses }
    }

    /// A first life in which all disks are lost, this one first, while the host writes most blocks for the first time: what
    /// only a record has of them shows.
    pub fn loses_all(array: &ArrayOfStack, port: usize, rng: &mut Rng) -> Story {
        let requests = 40 + rng.below(40) as usize;
        let mut plot = Plot { rng, array, at: 4, events: Vec::new() };
        plot.at += plot.rng.below(24);
        plot.lose_all(port);
        let (events, pauses) = (plot.events, rng.below(3));
        Story { requests, events, ends_lost: true, is_forced: true, pauses }
    }

    /// A life in which a port is not there, before the first one that is recorded.
    pub fn without(rng: &mut Rng) -> Story {
        Story { requests: 6 + rng.below(16) as usize, ..Story::default() }
    }

    /// A later life of a device, given what is known of its ports. Some are not there.
    pub fn later(array: &ArrayOfStack, fates: &Fates, missing: &[usize], rng: &mut Rng) -> Story {
        let requests = 8 + rng.below(16) as usize;
        let mut plot = Plot { rng, array, at: 0, events: Vec::new() };
        let lacking = |port: &usize| matches!(fates.of[*port], Fate::Stale | Fate::Target);
        let lacking = (0..array.ports.len()).find(lacking);
        let may_lack_more = fates.good() + array.may_lack() > array.columns();
        // Where nobody has told who has everything, it may be any.
        let lacking = lacking.filter(|_| fates.good() + array.may_lack() >= array.columns());
        match (missing.first(), plot.rng.below(4)) {
            (Some(port), 0 | 1) => {
                let disk = array.ports[*port].disk;
                plot.then(Deed::Fail(disk), true, 8);
                plot.go_and_come(*port);
            }
            (None, 0) => {
                let drawn = plot.rng.below(array.ports.len() as u64) as usize;
                // One that is being filled, or else any, as long as the others have everything.
                if let Some(port) = lacking.or(may_lack_more.then_some(drawn)) {
                    plot.lose(port, true);
                }
            }
            (None, 1) if lacking.is_some() => plot.rebuild(),
            (None, 2) => plot.scrub(),
            _ => {}
        }
        let events = plot.events;
        let pauses = rng.below(2);
        let is_forced = rng.below(FORCED_EVERY) == 0;
        Story { requests, events, ends_lost: false, is_forced, pauses }
    }
}
