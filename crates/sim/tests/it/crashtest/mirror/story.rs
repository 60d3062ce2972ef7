//! What happens to a mirror in a run, drawn from a seed, and what is known of each port then.

use super::operator::{Deed, Event, Mark};
use imbrex_core::command::Rate;
use imbrex_core::rng::Rng;

/// What goes on when the power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No change of the host is in flight, and no command.
    Idle,
    /// The host changes blocks.
    Write,
    /// A new disk is being taken in.
    Replace,
    /// A new disk is being filled.
    Rebuild,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::Idle, Phase::Write, Phase::Replace, Phase::Rebuild];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Write => "write",
            Phase::Replace => "replace",
            Phase::Rebuild => "rebuild",
        }
    }
}

/// What a port may be used for after a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It has everything that was promised.
    Good,
    /// It was lost and may be older than what was promised.
    Stale,
    /// It is in and has not all data yet.
    Target,
}

/// A run: requests of the host, and deeds of a person beside them.
#[derive(Clone, Debug)]
pub struct Story {
    pub requests: usize,
    pub events: Vec<Event>,
    /// Both ports are lost in the end: requests may fail.
    pub ends_lost: bool,
}

fn rate(rng: &mut Rng) -> Option<Rate> {
    let rates = [6_000_000, 30_000_000, 300_000_000];
    let drawn = rng.below(1 + rates.len() as u64) as usize;
    rates.get(drawn).map(|rate| Rate { bytes_per_s: *rate })
}

fn loss(port: usize, rng: &mut Rng) -> Deed {
    match rng.below(2) {
        0 => Deed::Fail(port),
        _ => Deed::Vanish(port, rng.below(12)),
    }
}

/// Deeds in their order, each some requests after the one before it.
struct Plot<'a> {
    rng: &'a mut Rng,
    at: u64,
    events: Vec<Event>,
}

impl Plot<'_> {
    fn then(&mut self, deed: Deed, waits: bool, requests_max: u64) {
        self.at += self.rng.below(requests_max + 1);
        self.events.push(Event { after_requests: self.at as usize, waits, deed });
    }

    fn lose(&mut self, port: usize, waits: bool) {
        let deed = loss(port, self.rng);
        self.then(deed, waits, 16);
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
}

impl Story {
    /// The first life of a device.
    pub fn draw(seed: u64) -> Story {
        let mut rng = Rng::new(seed, 201);
        let requests = 40 + rng.below(40) as usize;
        let (kind, port) = (rng.below(8), rng.below(2) as usize);
        let mut plot = Plot { rng: &mut rng, at: 4, events: Vec::new() };
        if plot.rng.below(4) == 0 {
            let rate = rate(plot.rng);
            plot.then(Deed::Scrub(rate), true, 4);
        }
        if kind > 0 {
            plot.lose(port, plot.at > 4);
        }
        if kind > 1 {
            plot.then(Deed::Replace(port), true, 12);
        }
        if kind > 3 {
            plot.rebuild();
        }
        if kind == 6 {
            plot.lose(port, false);
            plot.then(Deed::Replace(port), true, 8);
            plot.rebuild();
        }
        if kind == 7 {
            plot.lose(1 - port, false);
        }
        if kind == 5 && plot.rng.below(2) == 0 {
            plot.then(Deed::Scrub(None), true, 8);
            plot.lose(1 - port, true);
        }
        Story { requests, events: plot.events, ends_lost: kind == 7 }
    }

    /// A later life of a device, given what is known of its ports.
    pub fn later(fates: [Fate; 2], rng: &mut Rng) -> Story {
        let out = (0..2).find(|port| fates[*port] == Fate::Stale);
        let lacking = (0..2).find(|port| fates[*port] == Fate::Target);
        let requests = 8 + rng.below(16) as usize;
        let mut plot = Plot { rng, at: 0, events: Vec::new() };
        match (out, plot.rng.below(3)) {
            (Some(port), 0 | 1) => {
                plot.then(Deed::Fail(port), true, 8);
                plot.then(Deed::Replace(port), true, 4);
                plot.rebuild();
            }
            (None, 0) => {
                let port = lacking.unwrap_or(plot.rng.below(2) as usize);
                plot.lose(port, true);
            }
            (None, 1) if lacking.is_some() => plot.rebuild(),
            _ => {}
        }
        Story { requests, events: plot.events, ends_lost: false }
    }
}

/// Log indices by the phase that they are in, from the first to the last.
pub fn by_phase(marks: &[(u64, Mark)], first: u64, last: u64) -> [Vec<u64>; 4] {
    let mut found: [Vec<u64>; 4] = Default::default();
    let mut marks = marks.iter().peekable();
    let (mut writes, mut replacing, mut rebuilding) = (0, false, 0_u32);
    for index in first..=last {
        while let Some((_, mark)) = marks.next_if(|(at, _)| *at <= index) {
            match mark {
                Mark::HostWrites(count) => writes = *count,
                Mark::ReplaceBegun(_) => replacing = true,
                Mark::Replaced(_) | Mark::ReplaceGivenUp(_) => replacing = false,
                Mark::RebuildBegun => rebuilding += 1,
                Mark::Rebuilt | Mark::RebuildFailed => rebuilding -= 1,
                Mark::Lost(_) | Mark::Scrubbed => {}
            }
        }
        let phase = match (replacing, rebuilding, writes) {
            (true, ..) => Phase::Replace,
            (_, 1.., _) => Phase::Rebuild,
            (_, _, 1..) => Phase::Write,
            _ => Phase::Idle,
        };
        found[phase as usize].push(index);
    }
    found
}

/// What each port may be used for after a power cut at a log index.
pub fn fates(mut fates: [Fate; 2], marks: &[(u64, Mark)], index: u64) -> [Fate; 2] {
    for (_, mark) in marks.iter().filter(|(at, _)| *at <= index) {
        match mark {
            Mark::Lost(port) => fates[*port] = Fate::Stale,
            Mark::Replaced(port) => fates[*port] = Fate::Target,
            Mark::Rebuilt => {
                for fate in &mut fates {
                    if *fate == Fate::Target {
                        *fate = Fate::Good;
                    }
                }
            }
            _ => {}
        }
    }
    fates
}
