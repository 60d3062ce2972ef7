//! One case: a power cut, what happens to a disk, a start, the disk as it was, and another start.

use super::happening::{Happened, Happening};
use super::lives::{Lives, recovering};
use crate::crashtest::image::{Cut, Mode};
use crate::crashtest::medium::Medium;
use crate::crashtest::oracle::{Leniency, Oracle, ReadBack, Violation};
use crate::crashtest::recorded::any_mode;
use crate::crashtest::recording_disk::World;
use crate::crashtest::subject::Member;
use crate::crashtest::trial::{NotUp, Setting, Trial, catching};
use crate::crashtest::workload;
use imbrex_core::error::IoError;
use imbrex_core::label::LabelledOpenError;
use imbrex_core::lifecycle::OpenError;
use imbrex_core::rng::Rng;
use std::cell::RefCell;

/// Most requests that are served while something is wrong with a disk.
const STEPS_MAX: u64 = 30;
/// Their writes have numbers that no write before them had.
const FIRST_VERSION: u64 = 1 << 32;

/// A case.
pub struct Case {
    /// Which pending writes reach the medium.
    pub mode: Mode,
    /// The power cut of the last life.
    pub cut: Cut,
    /// What happens then.
    pub happened: Happened,
    /// Decides what is served afterwards.
    pub seed: u64,
}

/// How the first start has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    /// Refused, with the name of the disk.
    Refused,
    /// Served, and every block could be read.
    Whole,
    /// Served, and some blocks could not be read.
    Errors,
}

/// What has come of a case in which nothing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The start with what has happened.
    pub first: First,
    /// The disk as it was before was refused, because the others had gone on with the one that was there.
    pub is_back_refused: bool,
}

/// What a start leaves, in whatever way it ended.
struct Left<'a> {
    media: Vec<Medium>,
    /// Knows what the blocks may hold.
    oracle: Known<'a>,
    /// When the power went, in the log of what the oracle has seen.
    index: u64,
}

/// An oracle of the lives, or one of a start.
enum Known<'a> {
    Before(&'a Oracle),
    Since(Oracle),
}

impl Known<'_> {
    fn oracle(&self) -> &Oracle {
        match self {
            Known::Before(oracle) => oracle,
            Known::Since(oracle) => oracle,
        }
    }
}

const STRICT: Leniency =
    Leniency { errors: false, failed_writes: false, older: false, older_is_told: false };

fn found(when: &str) -> impl Fn(Violation) -> String {
    move |violation| format!("{when}: {}", violation.detail)
}

/// A case that is played.
pub struct Play<'a> {
    /// The stack.
    pub setting: Setting<'a>,
    /// Its disks.
    pub members: &'a [Member],
    /// Its lives.
    pub lives: &'a Lives,
    /// What happens.
    pub case: &'a Case,
}

impl Play<'_> {
    /// Plays it.
    ///
    /// # Errors
    /// When a start is refused that should not be or for something else, or a block is neither right nor
    /// an error; also a panic.
    pub fn play(&self) -> Result<Outcome, String> {
        let work = || {
            let image = self.lives.image(&self.case.cut);
            let before = match self.case.happened.backup {
                None => (&self.lives.oracle, self.case.cut.index),
                Some(stop) => (&self.lives.stops[stop].left, 0),
            };
            let Some((first, left)) = self.first(before)? else {
                self.untouched(image)?;
                return Ok(Outcome { first: First::Refused, is_back_refused: false });
            };
            Ok(Outcome { first, is_back_refused: self.put_back(image, &left)? })
        };
        catching(work).and_then(|result| result)
    }

    /// The start with what has happened, which knows what the disks held before. `None`: refused.
    fn first<'b>(&self, before: (&'b Oracle, u64)) -> Result<Option<(First, Left<'b>)>, String> {
        let happened = &self.case.happened;
        let world = World::new(happened.media.clone(), None);
        let when = happened.describe(self.members);
        let opening = recovering(self.setting, happened.lost, self.case.seed);
        let mut trial = match Trial::come_up(self.setting, &world, opening) {
            Ok(trial) => trial,
            Err(not_up) => {
                self.is_to_blame(&not_up).map_err(|what| format!("{when}: {what}"))?;
                return Ok(None);
            }
        };
        let up_at = world.borrow().log.events;
        let reads = trial.read_all();
        self.judge_first(&trial, before, &reads).map_err(|what| format!("{when}: {what}"))?;
        let outcome = match reads.iter().any(Result::is_err) {
            true => First::Errors,
            false => First::Whole,
        };
        let (oracle, index) = before;
        let since = oracle.left_by(index, &reads);
        let mut rng = Rng::new(self.case.seed, 49);
        let closes = rng.below(2) == 0;
        let since = self.serve(trial, since, &world, closes, &mut rng)?;
        let log = &world.borrow().log;
        let (known, known_at, end) = match (closes, rng.below(6)) {
            (true, _) => (Known::Since(since), log.events, log.events),
            // The power goes while the stack comes up.
            (false, 0) => (Known::Before(oracle), index, rng.below(up_at + 1)),
            (false, _) => {
                let end = up_at + rng.below(log.events - up_at + 1);
                (Known::Since(since), end, end)
            }
        };
        let cut = Cut::draw(log, &happened.media, end, any_mode(&mut rng), rng.next_u64());
        let left = Left { media: cut.image(log, &happened.media), oracle: known, index: known_at };
        Ok(Some((outcome, left)))
    }

    /// Serves requests while something is wrong with a disk; then the stack goes down, or nothing more is
    /// asked. What the host was told is added to what was known.
    fn serve(
        &self,
        mut trial: Trial,
        mut since: Oracle,
        world: &RefCell<World>,
        closes: bool,
        rng: &mut Rng,
    ) -> Result<Oracle, String> {
        let when = self.case.happened.describe(self.members);
        let when = format!("{when}, while it is served");
        let lenient = Leniency {
            errors: true,
            failed_writes: !self.case.happened.stops_no_write(self.members),
            ..STRICT
        };
        let steps = rng.below(STEPS_MAX + 1) as usize;
        let steps = workload::ordinary(self.case.seed, steps, trial.shape, FIRST_VERSION);
        trial.play(&steps, &mut since, lenient).map_err(found(&when))?;
        if !since.is_settled() {
            return Err(format!("{when}: a request was never answered"));
        }
        since.judge_now(&trial.read_all(), lenient).map_err(found(&when))?;
        if closes && trial.close().is_ok() {
            since.closed(world.borrow().log.events);
        }
        Ok(since)
    }

    /// A start that was refused has changed nothing: a door lets no write through before all layers are
    /// up. With the disk as it was, all must be there.
    fn untouched(&self, image: Vec<Medium>) -> Result<(), String> {
        let when = "with the disk as it was";
        let oracle = &self.lives.oracle;
        let reads = self
            .read(image, 2)
            .map_err(|not_up| format!("{when} it does not come up: {}", not_up.words()))?;
        let judged = oracle.judge_recovered(self.case.cut.index, &reads, STRICT);
        judged.map(|_| ()).map_err(found(when))
    }

    /// The disk is put back as it was, beside others that went on. True when it was refused, and all is
    /// there with the one that was there meanwhile.
    fn put_back(&self, image: Vec<Medium>, left: &Left<'_>) -> Result<bool, String> {
        let happened = &self.case.happened;
        if self.members.len() == 1 {
            // The only disk: nothing beside it is newer or older. After that the one that was there.
            self.untouched(image)?;
            return self.once_more(left).map(|()| false);
        }
        let mut media = left.media.clone();
        for at in &happened.touched {
            media[*at] = image[*at].clone();
        }
        let when = format!("{}, put back as it was", happened.describe(self.members));
        match self.read(media, 2) {
            Ok(reads) => self.judge_left(left, &reads, &when).map(|()| false),
            Err(not_up) if happened.happening == Happening::Lost => {
                Err(format!("{when}, it does not come up: {}", not_up.words()))
            }
            Err(not_up) => {
                self.is_to_blame(&not_up).map_err(|what| format!("{when}: {what}"))?;
                self.once_more(left).map(|()| true)
            }
        }
    }

    /// The disks come up again as the first start has left them.
    fn once_more(&self, left: &Left<'_>) -> Result<(), String> {
        let when = format!("{}, once more", self.case.happened.describe(self.members));
        match self.read(left.media.clone(), 3) {
            Ok(reads) => self.judge_left(left, &reads, &when),
            Err(not_up) => self.is_to_blame(&not_up).map_err(|what| format!("{when}: {what}")),
        }
    }

    /// Judges what is there after the first start: nothing that was flushed is lost, and a block that was
    /// damaged may fail.
    fn judge_left(&self, left: &Left<'_>, reads: &[ReadBack], when: &str) -> Result<(), String> {
        let leniency = Leniency {
            errors: self.case.happened.happening != Happening::Lost,
            older: self.case.happened.older,
            ..STRICT
        };
        let oracle = left.oracle.oracle();
        let judged = oracle.judge_recovered(left.index, reads, leniency);
        judged.map(|_| ()).map_err(found(when))
    }

    /// Comes up with all disks and reads the whole device.
    fn read(&self, media: Vec<Medium>, start: u64) -> Result<Vec<ReadBack>, NotUp> {
        let world = World::new(media, None);
        let opening = recovering(self.setting, None, self.case.seed ^ start);
        let mut trial = Trial::come_up(self.setting, &world, opening)?;
        Ok(trial.read_all())
    }

    /// Checks that a refusal is about a disk to which something has happened.
    fn is_to_blame(&self, not_up: &NotUp) -> Result<(), String> {
        let happened = &self.case.happened;
        let NotUp { error, members } = not_up;
        let is_lost = matches!(error, LabelledOpenError::Layer(_, OpenError::Io(IoError::Lost)));
        let error = not_up.words();
        if happened.lost.is_some() && !is_lost {
            return Err(format!("refused for something else: {error}"));
        }
        match members.iter().any(|it| happened.touched.contains(it)) {
            true => Ok(()),
            false => {
                let names: Vec<&str> = members.iter().map(|it| &*self.members[*it].name).collect();
                let names = names.join(", ");
                Err(format!("refused for another disk, {names}: {error}"))
            }
        }
    }

    /// Judges what the first start serves: each block is right or an error.
    fn judge_first(
        &self,
        trial: &Trial,
        (oracle, index): (&Oracle, u64),
        reads: &[ReadBack],
    ) -> Result<(), String> {
        let happened = &self.case.happened;
        let strict = Leniency { errors: true, ..STRICT };
        let lenient = Leniency { older: happened.older, ..strict };
        let judged = oracle.judge_recovered(index, reads, lenient);
        judged.map_err(|violation| violation.detail)?;
        let is_silent = happened.older_is_told && trial.rolled_back_blocks_max() == 0;
        match oracle.judge_recovered(index, reads, strict) {
            Err(violation) if is_silent => Err(format!(
                "nothing is said of the damaged block at the end of the journal, and {}",
                violation.detail
            )),
            _ => Ok(()),
        }
    }
}

/// The mode of the cut of the cases of a happening, by turns.
pub(super) fn mode_of(happening: Happening, turn: u64) -> Mode {
    // The last is the exhaustive one, which needs a window that is small.
    let modes = match happening {
        // What a damaged journal can still tell is known where no block before its end is missing.
        Happening::Flipped => &[Mode::None, Mode::All],
        _ => &Mode::ALL[..Mode::ALL.len() - 1],
    };
    modes[(turn % modes.len() as u64) as usize]
}
