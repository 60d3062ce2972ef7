//! A workload that was run once with everything recorded, from which points are drawn.

use super::image::{Cut, Mode};
use super::log::Log;
use super::medium::Medium;
use super::oracle::{Content, Leniency, Oracle, ReadBack};
use super::recording_disk::World;
use super::trial::{Setting, Trial, catching};
use super::workload::Step;
use imbrex_core::rng::Rng;
use std::cell::{Ref, RefCell};
use std::rc::Rc;

/// Draws of a log index before one without pending writes is taken.
const DRAWS_MAX: u64 = 6;

/// A run from an empty device to its end, closed in good order.
pub struct Recorded {
    world: Rc<RefCell<World>>,
    /// What the members held before.
    pub base: Vec<Medium>,
    /// What the host was told.
    pub oracle: Oracle,
    /// The log index at which the device came up.
    pub first: u64,
    /// The last log index.
    pub last: u64,
    /// Bands rewritten in the run.
    pub bands_rewritten: u64,
    promises: Vec<u64>,
}

impl Recorded {
    /// Formats a device, plays the steps and closes it.
    ///
    /// # Errors
    /// When it does not do so in good order.
    pub fn make(setting: Setting<'_>, steps: &[Step]) -> Result<Recorded, String> {
        let base = setting.subject.blank(setting.seed);
        let world = World::new(base.clone(), None);
        let run = || {
            let mut trial = Trial::format(setting, &world)
                .map_err(|error| format!("an empty device cannot be made: {error}"))?;
            let first = world.borrow().log.events;
            let mut oracle = Oracle::empty(trial.shape.blocks);
            trial
                .play(steps, &mut oracle, Leniency::default())
                .map_err(|violation| violation.detail)?;
            if !oracle.is_settled() {
                return Err("a request was never answered".to_string());
            }
            trial.close().map_err(|error| format!("the device does not go down: {error}"))?;
            oracle.closed(world.borrow().log.events);
            Ok((first, oracle, trial.bands_rewritten()))
        };
        let (first, oracle, bands_rewritten) = catching(run).and_then(|result| result)?;
        let last = world.borrow().log.events;
        let promises = oracle.promises();
        Ok(Recorded { world, base, oracle, first, last, bands_rewritten, promises })
    }

    /// The log.
    pub fn log(&self) -> Ref<'_, Log> {
        Ref::map(self.world.borrow(), |world| &world.log)
    }

    /// Draws the power cut of a point.
    pub fn draw(&self, mode: Mode, rng: &mut Rng) -> Cut {
        let log = self.log();
        let mut index = 0;
        for _ in 0..DRAWS_MAX {
            let near_promise = rng.below(2) == 0 && !self.promises.is_empty();
            index = match near_promise {
                true => self.promises[rng.below(self.promises.len() as u64) as usize],
                false => self.first + rng.below(self.last - self.first + 1),
            };
            if !log.window(index).pending.is_empty() {
                break;
            }
        }
        Cut::draw(&log, &self.base, index, mode, rng.next_u64())
    }

    /// The first `count` points of the exhaustive mode: every subset of one window after the
    /// other, of windows with at most `pending_max` pending writes.
    pub fn exhaustive(&self, seed: u64, pending_max: usize, count: usize) -> Vec<(u64, u64)> {
        /// Draws without any window that is small enough before the search ends.
        const DRAWS_MAX: usize = 10_000;
        let log = self.log();
        let mut rng = Rng::new(seed, 83);
        let mut points = Vec::new();
        for _ in 0..DRAWS_MAX {
            if points.len() >= count {
                break;
            }
            let index = self.first + rng.below(self.last - self.first + 1);
            let pending = log.window(index).pending.len();
            if (1..=pending_max).contains(&pending) {
                points.extend((0..1 << pending).map(|subset| (index, subset)));
            }
        }
        points.truncate(count);
        points
    }
}

/// What happens at and after a cut, beside one recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Afterwards {
    /// Recoveries that are crashed before one may end, each at a place drawn from the seed.
    pub crashed_recoveries: u64,
    /// Requests served after the recovery, before another cut and another recovery.
    pub steps: usize,
    /// Decides all that.
    pub seed: u64,
}

/// What a point has found out, for the totals.
#[derive(Clone, Copy, Debug, Default)]
pub struct PointReport {
    /// Blocks that were read and judged.
    pub blocks_judged: u64,
}

/// Recovers from members as a power cut left them and judges what the device holds.
///
/// # Errors
/// When the device does not come up, or holds what it must not; also a panic.
pub fn recover_and_judge(
    setting: Setting<'_>,
    media: Vec<Medium>,
    oracle: &Oracle,
    index: u64,
    afterwards: Afterwards,
) -> Result<PointReport, String> {
    let work = || {
        let mut report = PointReport::default();
        let mut rng = Rng::new(afterwards.seed, 47);
        let mut media = media;
        for depth in 1..=afterwards.crashed_recoveries {
            media = crash_recovery(setting, media, &mut rng)
                .map_err(|error| format!("at recovery {depth}, which is crashed: {error}"))?;
        }
        let (trial, world, contents) = judged(setting, media.clone(), oracle, index, &mut report)?;
        if afterwards.steps > 0 {
            go_on(setting, media, trial, &world, contents, afterwards, &mut report)?;
        }
        Ok(report)
    };
    catching(work).and_then(|result| result)
}

/// Crashes a recovery at any place and returns what it leaves behind.
fn crash_recovery(
    setting: Setting<'_>,
    media: Vec<Medium>,
    rng: &mut Rng,
) -> Result<Vec<Medium>, String> {
    let world = World::new(media.clone(), None);
    Trial::recover(setting, &world).map_err(|error| format!("it does not come up: {error}"))?;
    let log = &world.borrow().log;
    let index = rng.below(log.events + 1);
    let mode = any_mode(rng);
    let cut = Cut::draw(log, &media, index, mode, rng.next_u64());
    Ok(cut.image(log, &media))
}

/// A mode at random.
pub(super) fn any_mode(rng: &mut Rng) -> Mode {
    // The last is the exhaustive one, which is not drawn.
    Mode::ALL[rng.below(Mode::ALL.len() as u64 - 1) as usize]
}

type Recovered = (Trial, Rc<RefCell<World>>, Vec<ReadBack>);

/// Recovers from members as a power cut left them and reads the whole device.
fn recovered(setting: Setting<'_>, media: Vec<Medium>) -> Result<Recovered, String> {
    let world = World::new(media, None);
    let mut trial =
        Trial::recover(setting, &world).map_err(|error| format!("it does not come up: {error}"))?;
    let reads = trial.read_all();
    Ok((trial, world, reads))
}

/// Checks the members after a recovery, where the subject has a check.
fn check_members(
    setting: Setting<'_>,
    trial: &Trial,
    world: &RefCell<World>,
) -> Result<(), String> {
    let Some(check) = &setting.subject.check else {
        return Ok(());
    };
    let names = trial.members.iter().map(|member| Rc::clone(&member.name));
    let media = world.borrow().media.clone();
    let members: Vec<_> = names.zip(media).collect();
    check(setting.seed, &members).map_err(|what| format!("check after the recovery: {what}"))
}

/// What the device holds after a recovery from members as a power cut left them. The same members
/// give the same answer every time.
///
/// # Errors
/// When the device does not come up, or its members are not sound then; also a panic.
pub fn recover_and_read(setting: Setting<'_>, media: Vec<Medium>) -> Result<Vec<ReadBack>, String> {
    let work = || {
        let (trial, world, reads) = recovered(setting, media)?;
        check_members(setting, &trial, &world)?;
        Ok(reads)
    };
    catching(work).and_then(|result| result)
}

type Judged = (Trial, Rc<RefCell<World>>, Vec<Content>);

fn judged(
    setting: Setting<'_>,
    media: Vec<Medium>,
    oracle: &Oracle,
    index: u64,
    report: &mut PointReport,
) -> Result<Judged, String> {
    let (trial, world, reads) = recovered(setting, media)?;
    report.blocks_judged += reads.len() as u64;
    let contents = oracle
        .judge_recovered(index, &reads, Leniency::default())
        .map_err(|violation| violation.detail)?;
    check_members(setting, &trial, &world)?;
    Ok((trial, world, contents))
}

/// Serves requests after a recovery, cuts the power once more and recovers again: what was read
/// once may not go back.
fn go_on(
    setting: Setting<'_>,
    base: Vec<Medium>,
    mut trial: Trial,
    world: &Rc<RefCell<World>>,
    contents: Vec<Content>,
    afterwards: Afterwards,
    report: &mut PointReport,
) -> Result<(), String> {
    /// Writes after a recovery have numbers that no write before it had.
    const FIRST_VERSION: u64 = 1 << 32;
    let mut rng = Rng::new(afterwards.seed, 48);
    let first = world.borrow().log.events;
    let mut oracle = Oracle::known(contents);
    let steps =
        super::workload::ordinary(afterwards.seed, afterwards.steps, trial.shape, FIRST_VERSION);
    trial
        .play(&steps, &mut oracle, Leniency::default())
        .map_err(|violation| format!("after a recovery: {}", violation.detail))?;
    if rng.below(2) == 0 {
        trial.close().map_err(|error| format!("after a recovery: it does not go down: {error}"))?;
        oracle.closed(world.borrow().log.events);
    }
    drop(trial);
    let log = &world.borrow().log;
    let index = first + rng.below(log.events - first + 1);
    let cut = Cut::draw(log, &base, index, any_mode(&mut rng), rng.next_u64());
    judged(setting, cut.image(log, &base), &oracle, index, report)
        .map_err(|error| format!("after a second cut: {error}"))?;
    Ok(())
}
