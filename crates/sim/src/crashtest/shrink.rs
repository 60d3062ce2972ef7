//! Makes a failure small: the fewest requests, and the fewest pending writes that do not reach the
//! medium whole, with which it still fails.

use super::campaign::{Failure, Options, Point, SeedCampaign};
use super::coverage::describe_write;
use super::image::Fate;
use super::recorded::Afterwards;
use super::subject::Subject;
use super::workload::Step;

/// Points that are tried on a smaller workload before it counts as sound.
const POINTS_OF_TRY: u64 = 60;
/// Points tried in all.
const POINTS_MAX: u64 = 20_000;

/// A failure made small.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The requests that are left.
    pub steps: Vec<String>,
    /// The pending writes that do not reach the medium whole, when the power goes.
    pub lost_writes: Vec<String>,
    /// What goes wrong with them.
    pub what: String,
}

struct Shrinker<'a> {
    subject: &'a Subject,
    seed: u64,
    options: Options,
    /// The kind of point that fails: its place in a turn.
    place: Option<u64>,
    /// Nothing happens after the cut but one recovery.
    plain: bool,
    tried: u64,
}

/// Makes a failure small.
pub fn shrink(subject: &Subject, failure: &Failure, options: Options, steps: Vec<Step>) -> Shrunk {
    let turn = match options.mode {
        Some(_) => 1,
        None => super::campaign::TURN,
    };
    let mut shrinker = Shrinker {
        subject,
        seed: failure.seed,
        options,
        place: failure.point.map(|point| point % turn),
        plain: true,
        tried: 0,
    };
    // Most failures need no crashed recovery and no requests after it.
    shrinker.plain = shrinker.first_failure(&steps, turn, failure.point).is_some();
    let steps = shrinker.fewest_steps(steps, turn);
    shrinker.tried = 0;
    let found = shrinker.first_failure(&steps, turn, failure.point);
    let described = steps.iter().map(Step::describe).collect();
    let Some((number, what)) = found else {
        return Shrunk { steps: described, lost_writes: Vec::new(), what: failure.what.clone() };
    };
    match (number, SeedCampaign::new(subject, failure.seed, options, &steps)) {
        (Some(number), Ok(campaign)) => {
            let (lost_writes, what) = shrinker.fewest_losses(&campaign, number, what);
            Shrunk { steps: described, lost_writes, what }
        }
        _ => Shrunk { steps: described, lost_writes: Vec::new(), what },
    }
}

impl Shrinker<'_> {
    /// Leaves out ever smaller runs of steps as long as it fails.
    fn fewest_steps(&mut self, mut steps: Vec<Step>, turn: u64) -> Vec<Step> {
        let mut length = steps.len().div_ceil(2);
        while length > 0 && self.tried < POINTS_MAX {
            let mut at = 0;
            while at < steps.len() && self.tried < POINTS_MAX {
                let mut fewer = steps.clone();
                fewer.drain(at..(at + length).min(steps.len()));
                if self.first_failure(&fewer, turn, None).is_some() {
                    steps = fewer;
                } else {
                    at += length;
                }
            }
            length /= 2;
        }
        steps
    }

    /// The first point of the same kind that fails: its number, `None` when the workload fails by
    /// itself, and why.
    fn first_failure(
        &mut self,
        steps: &[Step],
        turn: u64,
        first: Option<u64>,
    ) -> Option<(Option<u64>, String)> {
        self.tried += 1;
        let campaign = match SeedCampaign::new(self.subject, self.seed, self.options, steps) {
            Ok(campaign) => campaign,
            Err(failure) => return self.place.is_none().then_some((None, failure.what)),
        };
        let place = self.place?;
        let others = (0..POINTS_OF_TRY).map(|number| place + number * turn);
        for number in first.into_iter().chain(others) {
            self.tried += 1;
            if let Err(what) = campaign.outcome(&self.point(&campaign, number)) {
                return Some((Some(number), what));
            }
        }
        None
    }

    fn point(&self, campaign: &SeedCampaign<'_>, number: u64) -> Point {
        match campaign.point(number) {
            Point::Crash { mode, cut, .. } if self.plain => {
                Point::Crash { mode, cut, afterwards: Afterwards::default() }
            }
            point => point,
        }
    }

    /// Lets as many pending writes as possible reach the medium and says which do not.
    fn fewest_losses(
        &self,
        campaign: &SeedCampaign<'_>,
        number: u64,
        mut what: String,
    ) -> (Vec<String>, String) {
        let Point::Crash { mode, mut cut, afterwards } = self.point(campaign, number) else {
            return (Vec::new(), what);
        };
        for at in 0..cut.fates.len() {
            if cut.fates[at].1 == Fate::Whole {
                continue;
            }
            let mut milder = cut.clone();
            milder.fates[at].1 = Fate::Whole;
            let point = Point::Crash { mode, cut: milder.clone(), afterwards };
            if let Err(still) = campaign.outcome(&point) {
                cut = milder;
                what = still;
            }
        }
        let log = campaign.recorded.log();
        let lost = cut.fates.iter().filter(|(_, fate)| *fate != Fate::Whole);
        let words = lost.map(|(write, fate)| {
            let write = &log.writes[*write];
            let write = describe_write(write, &campaign.members);
            match fate {
                Fate::Torn(tear) => format!(
                    "torn at sector {}{}: {write}",
                    tear.sector,
                    if tear.noise.is_some() { ", with noise" } else { "" }
                ),
                _ => format!("lost: {write}"),
            }
        });
        (words.collect(), what)
    }
}
