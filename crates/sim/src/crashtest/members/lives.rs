//! Three lives of a stack, the last with everything recorded, and those of another set beside them.

use crate::crashtest::image::{Cut, Mode};
use crate::crashtest::medium::Medium;
use crate::crashtest::oracle::{Leniency, Oracle};
use crate::crashtest::recording_disk::World;
use crate::crashtest::trial::{NotUp, Opening, Setting, Trial, catching, set_of};
use crate::crashtest::workload;
use imbrex_core::lifecycle::Start;
use imbrex_core::rng::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// Requests of each life.
const STEPS: [usize; 3] = [60, 60, 100];
/// Writes of a life have numbers from this one times the number of the life on.
const VERSIONS: u64 = 1 << 20;
/// Draws of a log index before one without pending writes is taken.
const DRAWS_MAX: u64 = 4;

/// What a stack was like when it had stopped in order.
pub struct Stop {
    /// What its disks held.
    pub media: Vec<Medium>,
    /// What the device holds, and has held.
    pub left: Oracle,
}

/// The lives of a stack.
pub struct Lives {
    /// The orderly ends of all lives but the last.
    pub stops: Vec<Stop>,
    /// What the disks of another set with the same stack held at its last stop.
    pub foreign: Vec<Medium>,
    /// What the host was told in the last life.
    pub oracle: Oracle,
    world: Rc<RefCell<World>>,
    /// The log index at its end.
    last: u64,
    promises: Vec<u64>,
}

/// How the stack comes up again as what it is. `random` decides the random numbers of its labels.
pub fn recovering(setting: Setting<'_>, lost: Option<usize>, random: u64) -> Opening {
    Opening {
        start: Start::Recover(Some(set_of(setting.seed))),
        lost,
        stamps: setting.seed,
        labels: Some(random),
    }
}

/// A life that was ended in order.
struct Life {
    world: Rc<RefCell<World>>,
    oracle: Oracle,
    stop: Stop,
}

/// Comes up, serves the requests of a life and goes down in order.
fn live(
    setting: Setting<'_>,
    stamps: u64,
    number: usize,
    before: Option<&Stop>,
) -> Result<Life, String> {
    let set = set_of(stamps);
    let opening = Opening {
        start: match before {
            None => Start::Format(set),
            Some(_) => Start::Recover(Some(set)),
        },
        lost: None,
        stamps,
        labels: Some(stamps ^ (number as u64 + 1)),
    };
    let blank = || {
        let disks = setting.subject.blank(setting.seed).into_iter();
        disks.map(Medium::with_label).collect()
    };
    let media = before.map_or_else(blank, |stop| stop.media.clone());
    let world = World::new(media, None);
    let failed = |not_up: NotUp| format!("life {number} does not begin: {}", not_up.words());
    let mut trial = Trial::come_up(setting, &world, opening).map_err(failed)?;
    let mut oracle = match before {
        None => Oracle::empty(trial.shape.blocks),
        Some(stop) => stop.left.clone(),
    };
    let steps = workload::ordinary(
        setting.seed * STEPS.len() as u64 + number as u64,
        STEPS[number],
        trial.shape,
        VERSIONS * number as u64,
    );
    let in_words = |what: &str| format!("life {number}: {what}");
    trial
        .play(&steps, &mut oracle, Leniency::default())
        .map_err(|violation| in_words(&violation.detail))?;
    if !oracle.is_settled() {
        return Err(in_words("a request was never answered"));
    }
    let reads = trial.read_all();
    trial.close().map_err(|error| in_words(&format!("it does not go down: {error}")))?;
    let end = world.borrow().log.events;
    oracle.closed(end);
    oracle
        .judge_recovered(end, &reads, Leniency::default())
        .map_err(|violation| in_words(&violation.detail))?;
    let media = world.borrow().media.clone();
    let left = oracle.left_by(end, &reads);
    Ok(Life { world, oracle, stop: Stop { media, left } })
}

impl Lives {
    /// Lives through them.
    ///
    /// # Errors
    /// When one of them is not in order.
    pub fn make(setting: Setting<'_>) -> Result<Lives, String> {
        let work = || {
            let mut stops: Vec<Stop> = Vec::new();
            let last = STEPS.len() - 1;
            for number in 0..last {
                let life = live(setting, setting.seed, number, stops.last())?;
                stops.push(life.stop);
            }
            let other = !setting.seed;
            let mut foreign: Option<Stop> = None;
            for number in 0..last {
                foreign = Some(live(setting, other, number, foreign.as_ref())?.stop);
            }
            let life = live(setting, setting.seed, last, stops.last())?;
            let end = life.world.borrow().log.events;
            Ok(Lives {
                stops,
                foreign: foreign.map(|stop| stop.media).unwrap_or_default(),
                promises: life.oracle.promises(),
                oracle: life.oracle,
                world: life.world,
                last: end,
            })
        };
        catching(work).and_then(|result| result)
    }

    /// What the disks held when the last life began.
    fn base(&self) -> &[Medium] {
        &self.stops.last().expect("a life before the last").media
    }

    /// Draws a power cut of the last life. Its start and its orderly end are parts of it.
    pub fn draw(&self, mode: Mode, rng: &mut Rng) -> Cut {
        let log = &self.world.borrow().log;
        let mut index = 0;
        for _ in 0..DRAWS_MAX {
            let near_promise = rng.below(2) == 0 && !self.promises.is_empty();
            index = match near_promise {
                true => self.promises[rng.below(self.promises.len() as u64) as usize],
                false => rng.below(self.last + 1),
            };
            if !log.window(index).pending.is_empty() {
                break;
            }
        }
        Cut::draw(log, self.base(), index, mode, rng.next_u64())
    }

    /// What a power cut leaves on the disks.
    pub fn image(&self, cut: &Cut) -> Vec<Medium> {
        cut.image(&self.world.borrow().log, self.base())
    }
}
