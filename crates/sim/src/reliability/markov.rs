//! Markov chains that end: how long until the end is reached, and how likely it is by some time. Both are computed
//! without a subtraction, so that a rate of 1e-12 beside one of 1 costs no digit.

use super::layout::{Kind, Layout};

/// Rates per hour, and shares.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Failures of a disk.
    pub failure: f64,
    /// Repairs of a disk.
    pub repair: f64,
    /// How many failures take each other disk of their group along.
    pub correlated: f64,
    /// Of a rebuild that ends: with what probability something could not be read. Of a disk of an array, and of the
    /// disk that all arrays share.
    pub read_error: [f64; 2],
}

/// A chain of states 0 and up, and one that is never left.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// For each state where it leads, each with its rate.
    to: Vec<Vec<(usize, f64)>>,
    /// For each state the rate of the end.
    ends: Vec<f64>,
}

impl Chain {
    /// The states of a layout: how many disks are missing.
    pub fn of(layout: &Layout, rates: &Rates) -> Chain {
        match layout.kind {
            Kind::Chain => Chain::of_arrays(layout, rates),
            _ => Chain::of_one_group(layout.disks(), layout.tolerance(), rates),
        }
    }

    fn with_states(states: usize) -> Chain {
        Chain { to: vec![Vec::new(); states], ends: vec![0.0; states] }
    }

    fn add(&mut self, from: usize, to: usize, rate: f64) {
        if rate > 0.0 {
            self.to[from].push((to, rate));
        }
    }

    /// State k: k disks are missing.
    fn of_one_group(disks: u32, tolerance: u32, rates: &Rates) -> Chain {
        let mut chain = Chain::with_states(tolerance as usize + 1);
        for missing in 0..=tolerance {
            let state = missing as usize;
            let left = disks - missing;
            let failures = f64::from(left) * rates.failure;
            for (along, share) in binomial(left - 1, rates.correlated).into_iter().enumerate() {
                match missing + 1 + along as u32 {
                    more if more <= tolerance => chain.add(state, more as usize, failures * share),
                    _ => chain.ends[state] += failures * share,
                }
            }
            if missing > 0 {
                let repairs = f64::from(missing) * rates.repair;
                let [error, _] = if missing == tolerance { rates.read_error } else { [0.0; 2] };
                chain.add(state, state - 1, repairs * (1.0 - error));
                chain.ends[state] += repairs * error;
            }
        }
        chain
    }

    /// State k: k arrays miss a disk of their own; the last state: the disk that all share is missing.
    fn of_arrays(layout: &Layout, rates: &Rates) -> Chain {
        let (arrays, own) = (layout.arrays as usize, f64::from(layout.own()));
        let without_shared = arrays + 1;
        let mut chain = Chain::with_states(arrays + 2);
        let alone = |others: f64| (1.0 - rates.correlated).powf(others);
        let fail = |chain: &mut Chain, from: usize, to: usize, rate: f64, others: f64| {
            chain.add(from, to, rate * alone(others));
            chain.ends[from] += rate * (1.0 - alone(others));
        };
        for missing in 0..=arrays {
            let (whole, degraded) = ((arrays - missing) as f64, missing as f64);
            if missing < arrays {
                fail(&mut chain, missing, missing + 1, whole * own * rates.failure, own);
            }
            chain.ends[missing] += degraded * (own - 1.0) * rates.failure;
            match missing {
                0 => fail(&mut chain, 0, without_shared, rates.failure, arrays as f64 * own),
                _ => {
                    chain.ends[missing] += rates.failure;
                    let repairs = degraded * rates.repair;
                    chain.add(missing, missing - 1, repairs * (1.0 - rates.read_error[0]));
                    chain.ends[missing] += repairs * rates.read_error[0];
                }
            }
        }
        chain.ends[without_shared] += arrays as f64 * own * rates.failure;
        chain.add(without_shared, 0, rates.repair * (1.0 - rates.read_error[1]));
        chain.ends[without_shared] += rates.repair * rates.read_error[1];
        chain
    }

    /// The mean time from state 0 to the end: states are taken out one by one from the last on, and what led through one
    /// leads where it led (Grassmann, Taksar and Heyman, Operations Research 33, 1985).
    pub fn mean_time(&self) -> f64 {
        let states = self.ends.len();
        let mut rate = vec![vec![0.0; states]; states];
        for (from, to) in self.to.iter().enumerate() {
            to.iter().for_each(|(to, more)| rate[from][*to] += more);
        }
        let (mut ends, mut spent) = (self.ends.clone(), vec![1.0; states]);
        for gone in (1..states).rev() {
            let leaves: f64 = rate[gone][..gone].iter().sum::<f64>() + ends[gone];
            for from in 0..gone {
                let share = rate[from][gone] / leaves;
                if share == 0.0 {
                    continue;
                }
                for to in (0..gone).filter(|to| *to != from) {
                    rate[from][to] += share * rate[gone][to];
                }
                ends[from] += share * ends[gone];
                spent[from] += share * spent[gone];
            }
        }
        spent[0] / ends[0]
    }

    /// The probability that the end is reached from state 0 within a time, by uniformization.
    pub fn ended_by(&self, time: f64) -> f64 {
        let leaves = |state: usize| {
            self.to[state].iter().map(|(_, rate)| rate).sum::<f64>() + self.ends[state]
        };
        let fastest = (0..self.ends.len()).map(leaves).fold(0.0, f64::max);
        let steps = PoissonWeights::new(fastest * time);
        let (mut at, mut ended, mut result) = (vec![0.0; self.ends.len()], 0.0, 0.0);
        at[0] = 1.0;
        for step in 0..steps.end {
            if let Some(weight) = steps.weight(step) {
                result += weight * ended;
            }
            let mut next = vec![0.0; at.len()];
            for (state, share) in at.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let stays = (1.0 - leaves(state) / fastest).max(0.0);
                next[state] += share * stays;
                for (to, rate) in &self.to[state] {
                    next[*to] += share * rate / fastest;
                }
                ended += share * self.ends[state] / fastest;
            }
            at = next;
        }
        result
    }
}

/// The share of each number of successes among so many trials.
fn binomial(trials: u32, share: f64) -> Vec<f64> {
    let mut all = vec![1.0];
    for _ in 0..trials {
        let mut next = vec![0.0; all.len() + 1];
        for (count, of) in all.iter().enumerate() {
            next[count] += of * (1.0 - share);
            next[count + 1] += of * share;
        }
        all = next;
    }
    all
}

/// The weights of a Poisson distribution that matter.
struct PoissonWeights {
    first: usize,
    weights: Vec<f64>,
    end: usize,
}

impl PoissonWeights {
    /// Of this mean. From the most likely number on both ways, until nothing is left.
    fn new(mean: f64) -> PoissonWeights {
        const LEAST: f64 = 1e-30;
        let most_likely = mean.floor() as usize;
        let (mut below, mut at, mut weight) = (Vec::new(), most_likely, 1.0);
        while at > 0 && weight > LEAST {
            weight *= at as f64 / mean;
            at -= 1;
            below.push(weight);
        }
        let first = at;
        below.reverse();
        let mut weights = below;
        weights.push(1.0);
        let (mut at, mut weight) = (most_likely, 1.0);
        while weight > LEAST {
            at += 1;
            weight *= mean / at as f64;
            weights.push(weight);
        }
        let all: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= all);
        PoissonWeights { first, end: first + weights.len(), weights }
    }

    fn weight(&self, at: usize) -> Option<f64> {
        self.weights.get(at.checked_sub(self.first)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> Rates {
        Rates { failure: 1e-3, repair: 0.1, correlated: 0.0, read_error: [0.0; 2] }
    }

    fn mean_time(kind: Kind, homes: u32, arrays: u32, rates: &Rates) -> f64 {
        Chain::of(&Layout { kind, homes, arrays, log_share: 0.0 }, rates).mean_time()
    }

    /// The figures that independent models found.
    #[test]
    fn mean_times_are_those_of_other_models() {
        let near = |kind, homes, arrays, expected: f64, within: f64| {
            let found = mean_time(kind, homes, arrays, &rates());
            assert!((found - expected).abs() <= within, "{kind:?} of {homes}, {arrays}: {found}");
        };
        near(Kind::Raid4smr, 3, 1, 5450.0, 1e-6);
        near(Kind::Chain, 3, 1, 5450.0, 1e-6);
        near(Kind::Raid4, 3, 1, 8916.0 + 2.0 / 3.0, 1e-6);
        near(Kind::Raid0, 4, 1, 250.0, 1e-9);
        near(Kind::Raid1, 2, 1, (3e-3 + 0.1) / 2e-6, 1e-6);
        near(Kind::Chain, 3, 3, 1883.5, 0.05);
        near(Kind::Chain, 3, 20, 344.1, 0.05);
        let with_errors = Rates { read_error: [0.9227; 2], ..rates() };
        let found = mean_time(Kind::Raid4smr, 3, 1, &with_errors);
        assert!((found - 226.45).abs() < 0.01, "{found}");
    }

    /// Three copies, all rates 1: m0 = 1/3 + m1, 3 m1 = 1 + m0 + 2 m2, 3 m2 = 1 + 2 m1, so m1 = 3 and m0 = 10/3.
    #[test]
    fn copies_are_repaired_side_by_side() {
        let ones = Rates { failure: 1.0, repair: 1.0, ..rates() };
        let found = mean_time(Kind::Raid1, 3, 1, &ones);
        assert!((found - 10.0 / 3.0).abs() < 1e-12, "{found}");
    }

    #[test]
    fn a_failure_that_takes_others_along_ends_an_array_at_once() {
        let all = Rates { correlated: 1.0, ..rates() };
        assert!((mean_time(Kind::Raid4smr, 3, 1, &all) - 200.0).abs() < 1e-9);
        assert!((mean_time(Kind::Chain, 3, 3, &all) - 1000.0 / 13.0).abs() < 1e-9);
        let some = Rates { correlated: 0.01, ..rates() };
        let chained = mean_time(Kind::Chain, 3, 1, &some);
        assert!((mean_time(Kind::Raid4smr, 3, 1, &some) - chained).abs() < 1e-9);
    }

    /// Of one state the end is exponential, of rare ones nearly.
    #[test]
    fn the_probability_of_an_end_is_exact_and_keeps_its_digits() {
        let chain =
            Chain::of(&Layout { kind: Kind::Raid0, homes: 4, arrays: 1, log_share: 0.0 }, &rates());
        for time in [1e-6, 1.0, 250.0, 10_000.0] {
            let expected = -libm::expm1(-time / 250.0);
            let found = chain.ended_by(time);
            assert!((found / expected - 1.0).abs() < 1e-9, "{time}: {found} {expected}");
        }
        let rare = Rates { failure: 1.8e-6, repair: 0.05, ..rates() };
        let five = Layout { kind: Kind::Raid4smr, homes: 3, arrays: 1, log_share: 0.0 };
        let chain = Chain::of(&five, &rare);
        let years = 5.0 * 8760.0;
        let expected = -libm::expm1(-years / chain.mean_time());
        let found = chain.ended_by(years);
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
    }
}
