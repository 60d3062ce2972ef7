//! Disks that fail and are repaired, drawn one event after another; with importance splitting where losses are rare.
//!
//! **Splitting.** A path that comes closer to a loss, because one disk more of a group is missing, goes on as so many copies, each
//! with its share of the weight, its future drawn anew. A copy that comes back to where it was split ends; the first one goes on
//! with the whole weight. What is counted has the same mean as without (RESTART: Villen-Altamirano, 1991); it varies less, because
//! a loss is seen many times with little weight in the place of once in a long while.

use super::layout::{Group, Layout};
use super::lives::{Lives, Repairs, share};
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Model {
    /// The disks.
    pub layout: Layout,
    /// Bytes of a disk.
    pub capacity_bytes: f64,
    /// How long one lives.
    pub lives: Lives,
    /// How long a repair takes.
    pub repairs: Repairs,
    /// How many failures take each other disk of their group along.
    pub correlated: f64,
    /// Of each disk: with what probability its rebuild finds something that cannot be read.
    pub read_errors: Vec<f64>,
}

/// What became of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Outcome {
    /// The weight of losses by missing disks: 0 or 1 without splitting.
    pub losses: f64,
    /// The weight of losses of either kind: a read error in a rebuild counts as one.
    pub losses_or_errors: f64,
    /// Bytes lost.
    pub bytes_lost: f64,
    /// Losses by missing disks that were seen, whatever their weight.
    pub seen: u64,
    /// When the first loss of each kind came, of a path without copies.
    pub at_h: Option<f64>,
    /// When the first loss of either kind came.
    pub at_or_error_h: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Disk {
    /// When this one was put in.
    born_h: f64,
    /// When it fails, or failed.
    fails_h: f64,
    /// When its repair ends, while it is missing.
    repaired_h: Option<f64>,
}

/// One path: all disks at a time.
#[derive(Clone, Debug)]
struct Path {
    now_h: f64,
    disks: Vec<Disk>,
    /// It has lost a block already.
    has_error: bool,
}

/// A loss by missing disks.
struct Loss {
    bytes: f64,
}

/// Draws runs.
#[derive(Debug)]
pub struct Drawing<'a> {
    model: &'a Model,
    groups: Vec<Group>,
    /// For each disk its groups.
    groups_of: Vec<Vec<usize>>,
    /// Copies of a path that comes closer to a loss; 1 draws plainly.
    copies: u32,
    until_h: f64,
}

impl<'a> Drawing<'a> {
    /// Runs of a model until a loss or a time.
    pub fn new(model: &'a Model, until_h: f64, copies: u32) -> Drawing<'a> {
        let groups = model.layout.groups();
        let has = |group: &Group, disk: usize| group.members.iter().any(|it| it.disk == disk);
        let of = |disk: usize| (0..groups.len()).filter(|at| has(&groups[*at], disk)).collect();
        let groups_of = (0..model.layout.disks() as usize).map(of).collect();
        Drawing { model, groups, groups_of, copies, until_h }
    }

    /// One run, of new disks.
    pub fn run(&self, rng: &mut Rng) -> Outcome {
        let disk = |rng: &mut Rng| Disk {
            born_h: 0.0,
            fails_h: self.model.lives.draw(0.0, rng),
            repaired_h: None,
        };
        let disks = (0..self.model.layout.disks()).map(|_| disk(rng)).collect();
        let path = Path { now_h: 0.0, disks, has_error: false };
        let mut outcome = Outcome::default();
        self.follow(path, 1.0, 0, rng, &mut outcome);
        outcome
    }

    /// Follows a path to a loss, to the end of time, or until fewer disks of a group are missing than `level`. Returns it
    /// where it goes on below that.
    fn follow(
        &self,
        mut path: Path,
        weight: f64,
        level: u32,
        rng: &mut Rng,
        outcome: &mut Outcome,
    ) -> Option<Path> {
        let mut at_level = level;
        loop {
            let (at, event_h, is_repair) = next_event(&path.disks);
            if event_h >= self.until_h {
                return None;
            }
            path.now_h = event_h;
            match is_repair {
                true => self.repair(&mut path, at, weight, rng, outcome),
                false => {
                    if let Some(loss) = self.fail(&mut path, at, rng) {
                        outcome.seen += 1;
                        outcome.losses += weight;
                        outcome.bytes_lost += weight * loss.bytes;
                        outcome.at_h.get_or_insert(path.now_h);
                        if !path.has_error {
                            outcome.losses_or_errors += weight;
                            outcome.at_or_error_h.get_or_insert(path.now_h);
                        }
                        return None;
                    }
                }
            }
            let reached = self.missing(&path);
            if reached < level {
                return Some(path);
            }
            if reached > at_level && self.copies > 1 {
                path = self.split(path, (weight, reached), rng, outcome)?;
                at_level = self.missing(&path);
                if at_level < level {
                    return Some(path);
                }
            } else {
                at_level = reached;
            }
        }
    }

    /// Follows the copies of a path until they are back below a level; the first one comes back.
    fn split(
        &self,
        path: Path,
        (weight, level): (f64, u32),
        rng: &mut Rng,
        outcome: &mut Outcome,
    ) -> Option<Path> {
        let part = weight / f64::from(self.copies);
        for _ in 1..self.copies {
            let mut copy = path.clone();
            self.draw_again(&mut copy, rng);
            self.follow(copy, part, level, rng, outcome);
        }
        self.follow(path, part, level, rng, outcome)
    }

    /// Draws what is to come of a path anew.
    fn draw_again(&self, path: &mut Path, rng: &mut Rng) {
        let now_h = path.now_h;
        for disk in &mut path.disks {
            match &mut disk.repaired_h {
                None => {
                    let age_h = now_h - disk.born_h;
                    disk.fails_h = disk.born_h + self.model.lives.draw(age_h, rng);
                }
                Some(repaired_h) => {
                    let passed_h = now_h - disk.fails_h;
                    *repaired_h = disk.fails_h + self.model.repairs.draw(passed_h, rng);
                }
            }
        }
    }

    /// The most disks of any group that are missing.
    fn missing(&self, path: &Path) -> u32 {
        if path.disks.iter().all(|disk| disk.repaired_h.is_none()) {
            return 0;
        }
        let of = |group: &Group| {
            let is_missing = |disk: usize| path.disks[disk].repaired_h.is_some();
            group.members.iter().filter(|member| is_missing(member.disk)).count() as u32
        };
        self.groups.iter().map(of).max().unwrap_or(0)
    }

    /// A disk fails, and may take others of its groups along.
    fn fail(&self, path: &mut Path, disk: usize, rng: &mut Rng) -> Option<Loss> {
        self.lose_disk(path, disk, rng);
        if self.model.correlated > 0.0 {
            let mut others: Vec<usize> = self.groups_of[disk]
                .iter()
                .flat_map(|group| self.groups[*group].members.iter().map(|member| member.disk))
                .filter(|other| *other != disk)
                .collect();
            others.sort_unstable();
            others.dedup();
            for other in others {
                if share(rng) <= self.model.correlated && path.disks[other].repaired_h.is_none() {
                    self.lose_disk(path, other, rng);
                }
            }
        }
        let lost: Vec<f64> =
            self.groups.iter().filter_map(|group| lost_share(group, path)).collect();
        (!lost.is_empty())
            .then(|| Loss { bytes: lost.iter().sum::<f64>() * self.model.capacity_bytes })
    }

    fn lose_disk(&self, path: &mut Path, disk: usize, rng: &mut Rng) {
        let now_h = path.now_h;
        let disk = &mut path.disks[disk];
        disk.fails_h = now_h;
        disk.repaired_h = Some(now_h + self.model.repairs.draw(0.0, rng));
    }

    /// A disk is whole again. Where nothing could stand in for what was not to be read, a block is lost.
    fn repair(
        &self,
        path: &mut Path,
        at: usize,
        weight: f64,
        rng: &mut Rng,
        outcome: &mut Outcome,
    ) {
        let is_last = |group: &usize| {
            let group = &self.groups[*group];
            let missing = |disk: usize| path.disks[disk].repaired_h.is_some();
            let count = group.members.iter().filter(|member| missing(member.disk)).count();
            count as u32 == group.tolerance
        };
        let is_exposed = self.groups_of[at].iter().any(is_last);
        let has_error = is_exposed && share(rng) <= self.model.read_errors[at];
        if has_error {
            outcome.bytes_lost += weight * BLOCK_BYTES as f64;
            if !path.has_error {
                path.has_error = true;
                outcome.losses_or_errors += weight;
                outcome.at_or_error_h.get_or_insert(path.now_h);
            }
        }
        let now_h = path.now_h;
        let life = self.model.lives.draw(0.0, rng);
        path.disks[at] = Disk { born_h: now_h, fails_h: now_h + life, repaired_h: None };
    }
}

/// What a group has lost, in capacities of a disk; none while no more are missing than it can do without. Rows that one of the
/// missing disks has again can be read.
fn lost_share(group: &Group, path: &Path) -> Option<f64> {
    let missing = group.members.iter().filter(|it| path.disks[it.disk].repaired_h.is_some());
    let count = missing.clone().count() as u32;
    if count <= group.tolerance {
        return None;
    }
    let rebuilt = |disk: &Disk| {
        let all_h = disk.repaired_h.unwrap_or(path.now_h) - disk.fails_h;
        if all_h > 0.0 { ((path.now_h - disk.fails_h) / all_h).clamp(0.0, 1.0) } else { 1.0 }
    };
    let most = missing.clone().map(|it| rebuilt(&path.disks[it.disk])).fold(0.0, f64::max);
    let rows = missing.clone().map(|it| it.extent).fold(1.0, f64::min);
    Some(missing.map(|it| rows * (1.0 - most) * it.holds).sum())
}

/// The next disk to which something happens, when, and whether it is repaired.
fn next_event(disks: &[Disk]) -> (usize, f64, bool) {
    let mut next = (0, f64::INFINITY, false);
    for (at, disk) in disks.iter().enumerate() {
        let (event_h, is_repair) = match disk.repaired_h {
            None => (disk.fails_h, false),
            Some(repaired_h) => (repaired_h, true),
        };
        if event_h < next.1 {
            next = (at, event_h, is_repair);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::super::layout::Kind;
    use super::super::markov::{Chain, Rates};
    use super::*;

    fn model(kind: Kind, homes: u32, arrays: u32, repair_h: f64) -> Model {
        let layout = Layout { kind, homes, arrays, log_share: 0.1 };
        Model {
            layout,
            capacity_bytes: 1e12,
            lives: Lives::new(1.0, 1000.0),
            repairs: Repairs::Exponential(repair_h),
            correlated: 0.0,
            read_errors: vec![0.0; layout.disks() as usize],
        }
    }

    fn rates(model: &Model) -> Rates {
        let (Repairs::Exponential(hours) | Repairs::Measured(hours)) = model.repairs;
        Rates {
            failure: 1e-3,
            repair: 1.0 / hours,
            correlated: model.correlated,
            read_error: [model.read_errors[0], model.read_errors[model.read_errors.len() - 1]],
        }
    }

    /// The mean of runs to a loss, with the share of it that is one standard error.
    fn mean_time(model: &Model, is_or_error: bool) -> (f64, f64) {
        let (drawing, runs) = (Drawing::new(model, f64::INFINITY, 1), 20_000);
        let time = |run: u64| {
            let outcome = drawing.run(&mut Rng::new(7, run));
            let at = if is_or_error { outcome.at_or_error_h } else { outcome.at_h };
            at.expect("a loss comes")
        };
        let times: Vec<f64> = (0..runs).map(time).collect();
        let mean = times.iter().sum::<f64>() / runs as f64;
        let variance = times.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / runs as f64;
        (mean, (variance / runs as f64).sqrt() / mean)
    }

    #[test]
    fn runs_to_a_loss_take_as_long_as_the_exact_chain_says() {
        let mut correlated = model(Kind::Raid1, 3, 1, 100.0);
        correlated.correlated = 0.1;
        for model in [
            model(Kind::Raid4smr, 3, 1, 10.0),
            model(Kind::Chain, 3, 3, 10.0),
            model(Kind::Raid1, 3, 1, 100.0),
            correlated,
        ] {
            let exact = Chain::of(&model.layout, &rates(&model)).mean_time();
            let (found, error) = mean_time(&model, false);
            let off = (found / exact - 1.0).abs();
            assert!(off < 0.03 && off < 4.0 * error, "{:?}: {found} {exact}", model.layout);
        }
        let mut with_errors = model(Kind::Raid4smr, 3, 1, 10.0);
        with_errors.read_errors = vec![0.9227; 5];
        let (found, _) = mean_time(&with_errors, true);
        assert!((found / 226.45 - 1.0).abs() < 0.03, "{found}");
    }

    /// Weight of losses by a time: its mean, its standard error, and how many were seen.
    fn losses(model: &Model, until_h: f64, copies: u32, runs: u64) -> (f64, f64, u64) {
        let drawing = Drawing::new(model, until_h, copies);
        let outcomes: Vec<Outcome> =
            (0..runs).map(|run| drawing.run(&mut Rng::new(u64::from(copies), run))).collect();
        let mean = outcomes.iter().map(|it| it.losses).sum::<f64>() / runs as f64;
        let squares = outcomes.iter().map(|it| (it.losses - mean).powi(2)).sum::<f64>();
        let seen = outcomes.iter().map(|it| it.seen).sum();
        (mean, (squares / runs as f64 / runs as f64).sqrt(), seen)
    }

    #[test]
    fn splitting_and_plain_runs_agree() {
        let worn = Model { lives: Lives::new(1.5, 1000.0), ..model(Kind::Raid4smr, 3, 1, 5.0) };
        let measured = Model { repairs: Repairs::Measured(20.0), ..model(Kind::Raid4, 3, 1, 20.0) };
        let models = [
            model(Kind::Raid4smr, 3, 1, 5.0),
            model(Kind::Chain, 3, 3, 2.0),
            model(Kind::Raid1, 3, 1, 50.0),
            worn,
            measured,
        ];
        for model in models {
            let (plain, plain_error, plain_seen) = losses(&model, 1_000.0, 1, 40_000);
            let (split, split_error, split_seen) = losses(&model, 1_000.0, 20, 5_000);
            assert!(plain_seen >= 100 && split_seen >= 100, "{plain_seen} {split_seen}");
            let error = (plain_error.powi(2) + split_error.powi(2)).sqrt();
            let found = (plain - split).abs() / error;
            assert!(found < 3.0, "{:?}: {plain} {split}, {found} standard errors", model.layout);
        }
    }

    #[test]
    fn rows_that_are_rebuilt_are_not_lost() {
        let model = model(Kind::Chain, 3, 2, 10.0);
        let disk =
            |fails_h: f64, repaired_h: Option<f64>| Disk { born_h: 0.0, fails_h, repaired_h };
        let whole = disk(1e9, None);
        let groups = model.layout.groups();
        let mut path = Path { now_h: 100.0, disks: vec![whole; 9], has_error: false };
        path.disks[0] = disk(98.0, Some(106.0));
        assert_eq!(lost_share(&groups[0], &path), None, "one is missing");
        path.disks[1] = disk(100.0, Some(110.0));
        assert_eq!(lost_share(&groups[0], &path), Some(1.5), "three quarters of two disks");
        path.disks[1] = whole;
        path.disks[3] = disk(100.0, Some(110.0));
        assert_eq!(lost_share(&groups[0], &path), Some(0.75), "one of them is a parity");
        path.disks[3] = whole;
        path.disks[8] = disk(100.0, Some(110.0));
        assert_eq!(lost_share(&groups[0], &path), Some(0.75), "half the rows have a data disk");
        assert_eq!(lost_share(&groups[1], &path), None);
    }
}
