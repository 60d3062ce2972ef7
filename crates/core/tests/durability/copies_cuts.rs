//! What is left of a journal with copies when the power is cut, members are lost, and old ones come
//! back.

use crate::common::journal_disk::{ALL_SECTORS, Happening, Image, after_power_cut};
use crate::common::journal_world::{allowed, wrong};
use crate::copies_world::{Event, Host, Inserted, Step, World, reopen};
use imbrex_core::ledger::CopyState;
use imbrex_core::planted::PlantedBug;
use imbrex_core::rng::Rng;

/// What was done to a pair of copies, with the moments of what matters.
struct Life {
    happenings: Vec<Happening>,
    events: Vec<(usize, Event)>,
    planted: Option<PlantedBug>,
}

/// Writes, with losses and replacements of one copy and then of the other.
fn live(seed: u64, planted: Option<PlantedBug>) -> Life {
    let mut rng = Rng::new(seed, 3);
    let mut steps = Vec::new();
    let mut write = |steps: &mut Vec<Step>, count: u64| {
        for _ in 0..count {
            let block = rng.below(crate::copies_toy::BLOCKS);
            steps.push(match rng.below(8) {
                0..=4 => Step::Write(block),
                5..=6 => Step::WriteDurable(block),
                _ => Step::Flush,
            });
        }
    };
    let first = (seed % 2) as u8;
    for port in [first, 1 - first] {
        write(&mut steps, 10);
        steps.push(Step::Lose(port));
        write(&mut steps, 12);
        steps.push(Step::Replace(port));
        write(&mut steps, 24);
        steps.push(Step::Settle);
    }
    write(&mut steps, 6);
    let mut world = World::formatted(2, seed, planted);
    let mut host = Host::new([1, 4, 16][seed as usize % 3]);
    world.play(&mut host, &steps);
    assert_eq!(host.failures, [], "seed {seed}");
    assert_eq!(host.refused, [], "seed {seed}");
    let happenings = world.medium.borrow().happenings.clone();
    Life { happenings, events: host.events, planted }
}

/// What is known of one port at a moment.
#[derive(Clone, Debug)]
struct Standing {
    /// The disks that were there, oldest first.
    disks: Vec<Inserted>,
    /// The newest disk has every record that anybody was told of, as far as the host knows.
    is_whole: bool,
    /// It was lost, and the host was told of something since: the other copy must know.
    is_recorded_out: bool,
    /// The same of the disk before.
    is_old_recorded_out: bool,
}

impl Life {
    fn standing(&self, moment: usize, port: u8) -> Standing {
        let mut it = Standing {
            disks: vec![Inserted { disk: u64::from(port), number: u16::from(port) }],
            is_whole: true,
            is_recorded_out: false,
            is_old_recorded_out: false,
        };
        let mut is_offered = false;
        for (_, event) in self.events.iter().filter(|(at, _)| *at <= moment) {
            match event {
                Event::Lost(at) if *at == port => it.is_whole = false,
                Event::Answered => it.is_recorded_out = !it.is_whole && !is_offered,
                Event::Offered(at, new) if *at == port => {
                    it.disks.push(*new);
                    it.is_old_recorded_out |= it.is_recorded_out;
                    it.is_recorded_out = false;
                    is_offered = true;
                }
                Event::Admitted(at) if *at == port => {
                    it.is_whole = true;
                    it.is_old_recorded_out = true;
                    is_offered = false;
                }
                _ => {}
            }
        }
        it
    }

    /// Cuts the power at a moment and opens what is left, with one port missing, or an old disk
    /// back behind a port, or all as it was.
    fn cut(&self, moment: usize, mode: u64, rng: &mut Rng) -> Result<u32, String> {
        let so_far = &self.happenings[..moment];
        let image = after_power_cut(&Image::new(), so_far, fate_of(mode, rng));
        let standing = [0, 1].map(|port| self.standing(moment, port));
        let newest = [0, 1].map(|port: usize| standing[port].disks.last().copied());
        let mut cases = 0;
        for present in [[true, true], [true, false], [false, true]] {
            let inserted = [0, 1].map(|port| newest[port].filter(|_| present[port]));
            let say = |what: String| format!("moment {moment}, mode {mode}, {inserted:?}: {what}");
            self.open(&image, &inserted, &standing, so_far, rng).map_err(say)?;
            cases += 1;
        }
        for port in 0..2 {
            for old in standing[port].disks.iter().rev().skip(1) {
                let mut inserted = newest;
                inserted[port] = Some(*old);
                let what = format!("moment {moment}, mode {mode}, old {inserted:?}");
                let (world, opened) = reopen(image.clone(), &inserted, 5, self.planted);
                let other = &standing[1 - port];
                if !other.is_whole {
                    continue;
                }
                opened.map_err(|error| format!("{what}: {error}"))?;
                if standing[port].is_old_recorded_out && world.opened()[port] != CopyState::Out {
                    return Err(format!("{what}: a replaced member is in"));
                }
                cases += 1;
            }
        }
        Ok(cases)
    }

    fn open(
        &self,
        image: &Image,
        inserted: &[Option<Inserted>; 2],
        standing: &[Standing; 2],
        so_far: &[Happening],
        rng: &mut Rng,
    ) -> Result<(), String> {
        let is_there = |port: usize| inserted[port].is_some();
        let has_whole = (0..2).any(|port| is_there(port) && standing[port].is_whole);
        let (mut second, opened) = reopen(image.clone(), inserted, 6, self.planted);
        if !has_whole {
            // Nobody is there who could tell.
            return Ok(());
        }
        opened.map_err(|error| error.to_string())?;
        let states = second.opened();
        for port in 0..2 {
            let (state, it) = (states[port], &standing[port]);
            let other_tells = is_there(1 - port) && standing[1 - port].is_whole;
            if it.is_whole && is_there(port) && state != CopyState::In {
                return Err(format!("copy {port} is whole and not in"));
            }
            if it.is_recorded_out && other_tells && state != CopyState::Out {
                return Err(format!("copy {port} was recorded out and is in"));
            }
        }
        let found = second.read_all();
        let allowed = allowed(so_far);
        if let Some(what) = wrong(&found, &allowed, false) {
            return Err(what);
        }
        self.live_on(image, inserted, standing, so_far, second, rng)
    }

    /// Writes something more, cuts the power again, at any moment of the recovery or later, and
    /// opens what is left with every choice of disks.
    fn live_on(
        &self,
        image: &Image,
        inserted: &[Option<Inserted>; 2],
        standing: &[Standing; 2],
        so_far: &[Happening],
        mut second: World,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let states = second.opened();
        let mut host = Host::new(2).after(so_far);
        let steps = [Step::Write(1), Step::WriteDurable(2), Step::Write(3)];
        second.play(&mut host, &steps);
        let later = second.medium.borrow().happenings.clone();
        let moment = rng.below(later.len() as u64 + 1) as usize;
        let image = after_power_cut(image, &later[..moment], fate_of(rng.below(4), rng));
        let allowed = allowed(&[so_far, &later[..moment]].concat());
        let has_answered = host.events.iter().any(|(at, _)| *at <= moment);
        for missing in [None, Some(0), Some(1)] {
            let mut again = [0, 1].map(|port: usize| standing[port].disks.last().copied());
            if let Some(port) = missing {
                again[port] = None;
            }
            let is_whole = |port: usize| {
                again[port].is_some()
                    && inserted[port].is_some()
                    && standing[port].is_whole
                    && states[port] == CopyState::In
            };
            if !is_whole(0) && !is_whole(1) {
                continue;
            }
            let say = |what: String| format!("cut again at {moment}, then {again:?}: {what}");
            let (mut third, opened) = reopen(image.clone(), &again, 7, self.planted);
            opened.map_err(|error| say(error.to_string()))?;
            for port in 0..2 {
                let was_missing = inserted[port].is_none() && again[port].is_some();
                if was_missing && has_answered && third.opened()[port] != CopyState::Out {
                    return Err(say(format!("copy {port} has missed an opening and is in")));
                }
            }
            if let Some(what) = wrong(&third.read_all(), &allowed, false) {
                return Err(say(what));
            }
        }
        Ok(())
    }
}

/// What becomes of a write that no flush covers: none, all, some or torn.
fn fate_of(mode: u64, rng: &mut Rng) -> impl FnMut(u64) -> u8 + use<> {
    let mut rng = Rng::new(rng.next_u64(), 2);
    move |_| match mode {
        0 => 0,
        1 => ALL_SECTORS,
        2 => [0, ALL_SECTORS][rng.below(2) as usize],
        _ => rng.below(256) as u8,
    }
}

/// The first moment at which something is wrong, of the lives of some seeds; each moment in so many
/// is tried.
fn campaign(
    seeds: core::ops::Range<u64>,
    stride: usize,
    planted: Option<PlantedBug>,
) -> Result<u32, String> {
    let mut cases = 0;
    for seed in seeds {
        let life = live(seed, planted);
        let mut rng = Rng::new(seed, 4);
        let formatted = (life.events.first()).map_or(0, |(moment, _)| *moment);
        let from = formatted + seed as usize % stride;
        for moment in (from..=life.happenings.len()).step_by(stride) {
            let mode = rng.below(4);
            let cut = life.cut(moment, mode, &mut rng);
            cases += cut.map_err(|what| format!("seed {seed}, {what}"))?;
        }
    }
    Ok(cases)
}

/// Every moment of a life with losses and admissions of both copies, with both there, one missing,
/// or a replaced one back.
#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_one_whole_copy_has() {
    let cases = campaign(0..6, 1, None).unwrap_or_else(|what| panic!("{what}"));
    println!("{cases} cases");
    assert!(cases > 5_000, "{cases} cases");
}

/// The same at length.
#[test]
#[ignore = "minutes long"]
fn a_power_cut_loses_nothing_in_many_lives() {
    let cases = campaign(100..300, 1, None).unwrap_or_else(|what| panic!("{what}"));
    println!("{cases} cases");
    assert!(cases > 200_000, "{cases} cases");
}

#[test]
fn planted_bugs_of_copies_are_found() {
    for bug in [
        PlantedBug::LostCopyUnrecorded,
        PlantedBug::RecordedOutCopyTaken,
        PlantedBug::OlderCopyTaken,
        PlantedBug::ReplacementUnrecorded,
    ] {
        match campaign(0..6, 7, Some(bug)) {
            Err(what) => println!("{}: {what}", bug.name()),
            Ok(cases) => panic!("{}: not noticed in {cases} cases", bug.name()),
        }
    }
}
