//! Many runs, on all processors. The sums are the same however many there are.

use super::monte_carlo::{Drawing, Model, Outcome};
use crate::progress::Piece;
use imbrex_core::rng::Rng;
use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Losses of plain runs below which splitting takes over.
const LOSSES_MIN: u64 = 100;
/// Losses that splitting is to see.
const LOSSES_WANTED: f64 = 1000.0;
/// Failures and repairs at most that are drawn to find a mean time.
const EVENTS_MAX: f64 = 1e8;
/// Copies at most that are followed in all.
const COPIES_MAX: f64 = 1e7;
/// Copies of a path in plain runs.
const PLAIN: u32 = 1;
/// Runs that one processor draws at a time at least, and how many times it is asked to at most.
const CHUNK_MIN: u64 = 500;
const CHUNKS_MAX: u64 = 10_000;

/// A mean, and how far it may be off.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// What was drawn of one shape of lives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Drawn {
    /// The shape.
    pub shape: f64,
    /// Runs.
    pub runs: u64,
    /// Copies of a path that came closer to a loss; 1 of plain runs.
    pub copies: u32,
    /// Losses by missing disks that were seen.
    pub losses_seen: u64,
    /// The probability of a loss in the years, by missing disks.
    pub loss: Estimate,
    /// The same of a loss of either kind.
    pub loss_or_error: Estimate,
    /// Bytes lost in the years.
    pub bytes_lost: Estimate,
    /// Hours to a loss by missing disks; absent where it takes too long to wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_h: Option<Estimate>,
    /// Hours to a loss of either kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_or_error_h: Option<Estimate>,
}

/// A sum and that of the squares.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    squares: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
    }

    fn merge(&mut self, other: &Sum) {
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn estimate(&self, runs: u64) -> Estimate {
        let runs = runs as f64;
        let mean = self.sum / runs;
        let variance = (self.squares / runs - mean * mean).max(0.0);
        Estimate { mean, standard_error: (variance / runs).sqrt() }
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    seen: u64,
    loss: Sum,
    loss_or_error: Sum,
    bytes_lost: Sum,
    at_h: Sum,
    at_or_error_h: Sum,
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        self.seen += outcome.seen;
        self.loss.add(outcome.losses);
        self.loss_or_error.add(outcome.losses_or_errors);
        self.bytes_lost.add(outcome.bytes_lost);
        self.at_h.add(outcome.at_h.unwrap_or(0.0));
        self.at_or_error_h.add(outcome.at_or_error_h.unwrap_or(0.0));
    }

    fn merge(&mut self, other: &Sums) {
        self.seen += other.seen;
        self.loss.merge(&other.loss);
        self.loss_or_error.merge(&other.loss_or_error);
        self.bytes_lost.merge(&other.bytes_lost);
        self.at_h.merge(&other.at_h);
        self.at_or_error_h.merge(&other.at_or_error_h);
    }
}

/// How runs are drawn.
#[derive(Clone, Copy)]
pub struct Plan {
    /// How many.
    pub runs: u64,
    /// From what.
    pub seed: u64,
    /// Hours of a run.
    pub until_h: f64,
    /// Hours to a loss, about: so it is known what can be waited for.
    pub about_h: f64,
    /// Mean life of a disk in hours.
    pub mttf_h: f64,
}

/// Runs that are drawn together, one time after another: nobody knows how often, so each time takes half of what
/// is left of the piece.
struct Times<'a> {
    piece: &'a Piece<'a>,
    left: f64,
}

impl Times<'_> {
    fn draw_all(&mut self, model: &Model, until_h: f64, copies: u32, plan: &Plan) -> Sums {
        let (before, all) = (1.0 - self.left, self.left / 2.0);
        self.left -= all;
        draw_all(model, until_h, copies, plan, &|share| self.piece.reach(before + share * all))
    }
}

/// Draws runs of a model. The piece is told how many are drawn.
pub fn draw(model: &Model, shape: f64, plan: &Plan, piece: &Piece<'_>) -> Drawn {
    let mut times = Times { piece, left: 1.0 };
    let failures_per_h = f64::from(model.layout.disks()) / plan.mttf_h;
    let (mut copies, mut sums) = (PLAIN, times.draw_all(model, plan.until_h, PLAIN, plan));
    let levels = model.layout.tolerance();
    if sums.seen < LOSSES_MIN && levels > 0 {
        let failures = plan.runs as f64 * failures_per_h * plan.until_h;
        let most = (COPIES_MAX / failures.max(1.0)).clamp(2.0, 1e5);
        // Lives of another shape may lose less often than the exponential ones by which the first number is found.
        let mut expected = plan.runs as f64 * (plan.until_h / plan.about_h).min(1.0);
        for _ in 0..3 {
            let more = libm::pow(LOSSES_WANTED / expected, 1.0 / f64::from(levels));
            let wanted = (f64::from(copies) * more).clamp(2.0, most).ceil() as u32;
            if wanted <= copies {
                break;
            }
            copies = wanted;
            sums = times.draw_all(model, plan.until_h, copies, plan);
            if sums.seen >= LOSSES_MIN {
                break;
            }
            expected = (sums.seen as f64).max(1.0);
        }
    }
    let events = 2.0 * plan.runs as f64 * failures_per_h * plan.about_h;
    let to_loss = match events <= EVENTS_MAX {
        true => Some(times.draw_all(model, f64::INFINITY, PLAIN, plan)),
        false => None,
    };
    Drawn {
        shape,
        runs: plan.runs,
        copies,
        losses_seen: sums.seen,
        loss: sums.loss.estimate(plan.runs),
        loss_or_error: sums.loss_or_error.estimate(plan.runs),
        bytes_lost: sums.bytes_lost.estimate(plan.runs),
        mean_h: to_loss.map(|it| it.at_h.estimate(plan.runs)),
        mean_or_error_h: to_loss.map(|it| it.at_or_error_h.estimate(plan.runs)),
    }
}

/// `reached` hears which share is drawn.
fn draw_all(
    model: &Model,
    until_h: f64,
    copies: u32,
    plan: &Plan,
    reached: &(dyn Fn(f64) + Sync),
) -> Sums {
    let drawing = Drawing::new(model, until_h, copies);
    let chunk_runs = CHUNK_MIN.max(plan.runs.div_ceil(CHUNKS_MAX));
    let chunks = plan.runs.div_ceil(chunk_runs);
    let (next, done) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            if chunk >= chunks {
                return;
            }
            let mut sums = Sums::default();
            for run in chunk * chunk_runs..plan.runs.min((chunk + 1) * chunk_runs) {
                sums.add(&drawing.run(&mut Rng::new(plan.seed, run)));
            }
            let mut done = done.lock().expect("nobody panics");
            done.push((chunk, sums));
            reached(done.len() as f64 / chunks as f64);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let mut all = done.into_inner().expect("nobody panics");
    // Sums depend on their order in the last digits.
    all.sort_unstable_by_key(|(chunk, _)| *chunk);
    let mut sums = Sums::default();
    all.iter().for_each(|(_, part)| sums.merge(part));
    sums
}
