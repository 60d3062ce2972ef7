//! Every short workload, every moment, every subset of the pending writes; and an error at every
//! call of a workload.

use super::fault::{CallKind, Fault, FaultKind};
use super::fault_points::{FaultClass, Faulty};
use super::image::{Cut, Mode};
use super::log::Log;
use super::medium::Medium;
use super::oracle::{Content, Leniency, Oracle, ReadBack};
use super::recorded::recover_and_read;
use super::recording_disk::World;
use super::subject::Subject;
use super::trial::{Setting, Trial, catching};
use super::workload::{self, Step};
use crate::progress::{Pieces, Progress};
use imbrex_core::rng::Rng;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Writes of a short workload have numbers that its prologue has not.
const FIRST_VERSION: u64 = 1_000;
/// Writes in a row that find no room below: as many as a band rewrite sends and a few more.
const NO_SPACE_WRITES: u64 = 12;

/// What short workloads have found.
#[derive(Clone, Default, Debug)]
pub struct ShortTotals {
    /// Workloads run.
    pub workloads: u64,
    /// Moments with another set of pending writes than the one before.
    pub windows: u64,
    /// Moments left out, because more writes were pending than are tried in full.
    pub windows_left_out: u64,
    /// Subsets tried: images judged, each by what the host had been told at its moment.
    pub points: u64,
    /// Recoveries, one for each different image of a workload.
    pub recoveries: u64,
    /// The first failure of each workload that failed.
    pub failures: Vec<String>,
}

/// The workloads of every length up to `length_max`, and `more` of the length after it drawn from
/// a seed.
pub fn workloads(subject: &Subject, length_max: u32, more: u64) -> Vec<Vec<Step>> {
    let letters = workload::alphabet((subject.build)(0).shape);
    let base = letters.len() as u64;
    let spell = |length: u32, number: u64| {
        let places = (0..length).map(|place| number / base.pow(place) % base);
        let letters = places.map(|letter| letters[letter as usize]);
        workload::spelled(letters, FIRST_VERSION)
    };
    let mut workloads = Vec::new();
    for length in 1..=length_max {
        workloads.extend((0..base.pow(length)).map(|number| spell(length, number)));
    }
    let mut rng = Rng::new(0, 97);
    let longer = length_max + 1;
    workloads.extend((0..more).map(|_| spell(longer, rng.below(base.pow(longer)))));
    workloads
}

/// Runs workloads on several threads, each from a device that holds the prologue; tries every
/// subset of at most `pending_max` pending writes.
pub fn run_short(
    subject: &Subject,
    workloads: &[Vec<Step>],
    pending_max: usize,
    jobs: usize,
    progress: Progress<'_>,
) -> ShortTotals {
    let next = AtomicUsize::new(0);
    let pieces = Pieces::begin(progress, 0, workloads.len());
    let totals = Mutex::new((ShortTotals::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let setting = Setting { subject, seed: 0, plant: None };
                let start = Start::make(setting);
                let mut mine = ShortTotals::default();
                let mut failures = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(steps) = workloads.get(number) else {
                        break;
                    };
                    mine.workloads += 1;
                    let result = start.as_ref().map_err(Clone::clone);
                    let result =
                        result.and_then(|start| start.run(setting, steps, pending_max, &mut mine));
                    let words: Vec<String> = steps.iter().map(Step::describe).collect();
                    let words = words.join("; ");
                    if let Err(what) = result {
                        failures.push((number, format!("{words}: {what}")));
                    }
                    pieces.end(&words);
                }
                let mut totals = totals.lock().expect("no holder panics");
                totals.0.workloads += mine.workloads;
                totals.0.windows += mine.windows;
                totals.0.windows_left_out += mine.windows_left_out;
                totals.0.points += mine.points;
                totals.0.recoveries += mine.recoveries;
                totals.1.extend(failures);
            });
        }
    });
    let (mut totals, mut failures) = totals.into_inner().expect("no holder panics");
    failures.sort();
    totals.failures = failures.into_iter().map(|(_, what)| what).collect();
    totals
}

/// A device that holds the prologue.
struct Start {
    media: Vec<Medium>,
    contents: Vec<Content>,
}

impl Start {
    fn make(setting: Setting<'_>) -> Result<Start, String> {
        let work = || {
            let world = World::new(setting.subject.blank(setting.seed), None);
            let mut trial = Trial::format(setting, &world).map_err(|it| it.to_string())?;
            let mut oracle = Oracle::empty(trial.shape.blocks);
            let steps = workload::prologue(trial.shape);
            let played = trial.play(&steps, &mut oracle, Leniency::default());
            played.map_err(|violation| violation.detail)?;
            let reads = trial.read_all();
            trial.close().map_err(|error| error.to_string())?;
            let world = world.borrow();
            let judged = oracle.judge_recovered(world.log.events, &reads, Leniency::default());
            Ok(Start {
                media: world.media.clone(),
                contents: judged.map_err(|violation| violation.detail)?,
            })
        };
        catching(work).and_then(|result| result)
    }

    fn run(
        &self,
        setting: Setting<'_>,
        steps: &[Step],
        pending_max: usize,
        totals: &mut ShortTotals,
    ) -> Result<(), String> {
        let world = World::new(self.media.clone(), None);
        let mut oracle = Oracle::known(self.contents.clone());
        let work = || {
            let mut trial = Trial::recover(setting, &world).map_err(|it| it.to_string())?;
            let first = world.borrow().log.events;
            let played = trial.play(steps, &mut oracle, Leniency::default());
            played.map_err(|violation| violation.detail)?;
            Ok::<u64, String>(first)
        };
        let first = catching(work).and_then(|result| result)?;
        let log = &world.borrow().log;
        // Moments that follow each other share most of their images.
        let mut read_back: HashMap<Vec<usize>, Vec<ReadBack>> = HashMap::new();
        for index in moments(log, first) {
            totals.windows += 1;
            let pending = log.window(index).pending.len();
            if pending > pending_max {
                totals.windows_left_out += 1;
                continue;
            }
            for subset in 0..1 << pending {
                totals.points += 1;
                let cut = Cut::draw(log, &self.media, index, Mode::Exhaustive, subset);
                let image = cut.image(log, &self.media);
                let failed = |what| format!("log index {index}, subset {subset:#b}: {what}");
                // Every block of it is one of the log's or of the first media's, which stay.
                let identity = image.iter().flat_map(Medium::identity).collect();
                let reads = match read_back.entry(identity) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => {
                        totals.recoveries += 1;
                        unknown.insert(recover_and_read(setting, image).map_err(failed)?)
                    }
                };
                oracle
                    .judge_recovered(index, reads, Leniency::default())
                    .map_err(|violation| failed(violation.detail))?;
            }
        }
        Ok(())
    }
}

/// The last log index of each run of indices at which the same writes are pending and durable: the
/// host has been told the most there.
fn moments(log: &Log, first: u64) -> Vec<u64> {
    let state = |index: u64| {
        let window = log.window(index);
        let pending: Vec<usize> = window.pending.iter().map(|at| window.writes[*at]).collect();
        (window.writes.len(), pending)
    };
    (first..=log.events)
        .filter(|index| *index == log.events || state(*index) != state(index + 1))
        .collect()
}

/// Lets the calls of the workload fail, one after the other, writes in each of their ways, and returns
/// how many trials there were. Of so many trials in a row, `every`, it makes one.
///
/// # Errors
/// When a request that should not fail does, or anything lies afterwards.
pub fn error_at_calls(faulty: &Faulty<'_>, seed: u64, every: u64) -> Result<u64, String> {
    let (mut number, mut tried) = (0_u64, 0);
    for member in 0..faulty.members() {
        for (call, class, kind) in [
            (CallKind::Read, FaultClass::ReadError, FaultKind::Error),
            (CallKind::Write, FaultClass::WriteError, FaultKind::Error),
            (CallKind::Write, FaultClass::ShortWrite, FaultKind::Short),
            (CallKind::Write, FaultClass::NoSpace, FaultKind::NoSpace(NO_SPACE_WRITES)),
            (CallKind::Flush, FaultClass::FlushError, FaultKind::Error),
        ] {
            for nth in 0..faulty.calls(member, call) {
                number += 1;
                if !(number - 1).is_multiple_of(every) {
                    continue;
                }
                let fault = Fault { member, call, nth, kind };
                let mut rng = Rng::new(seed, number - 1);
                faulty
                    .try_fault(fault, class, &mut rng)
                    .map_err(|what| format!("{} of member {member}: {what}", class.name()))?;
                tried += 1;
            }
        }
    }
    Ok(tried)
}
