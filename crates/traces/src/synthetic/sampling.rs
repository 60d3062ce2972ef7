//! Random draws that give the same stream on every platform.
//!
//! `f64::ln` and `f64::powf` come from the platform's math library and may differ in the last bit, which would change a
//! workload silently. The two functions needed here are written out with IEEE additions, products and quotients only.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A seeded PCG-64 stream with the few draws the generators need.
#[derive(Debug, Clone)]
pub(crate) struct Random(Pcg64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// Uniform in `0..bound`. `bound` must not be 0. The bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `[0, 1)` with 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Geometric on 1, 2, 3, ... with the given mean; a mean of 1 or less always gives 1.
    pub(super) fn geometric(&mut self, mean: f64) -> u64 {
        if mean <= 1.0 {
            return 1;
        }
        let draw = ln(1.0 - self.unit()) / ln(1.0 - 1.0 / mean);
        1 + draw.min(1e9) as u64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Ranks `0..n` with probability proportional to `1 / (rank + 1)^exponent`.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// `ranks` must not be 0.
    pub(super) fn new(ranks: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let cumulative = (0..ranks)
            .map(|rank| {
                sum += zipf_weight(rank, exponent);
                sum
            })
            .collect();
        Self { cumulative }
    }

    pub(super) fn sample(&self, random: &mut Random) -> usize {
        let total = self.cumulative[self.cumulative.len() - 1];
        let draw = random.unit() * total;
        self.cumulative.partition_point(|&upto| upto <= draw).min(self.cumulative.len() - 1)
    }
}

/// `1 / (rank + 1)^exponent`.
pub(super) fn zipf_weight(rank: usize, exponent: f64) -> f64 {
    exp(-exponent * ln(rank as f64 + 1.0))
}

/// Natural logarithm of a positive normal number, within a few units of the last place.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); |t| <= 0.172, so the term t^21 / 21 is below the last bit.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut series = 0.0;
    for odd in (1..=21).rev().step_by(2) {
        series = series * square + 1.0 / f64::from(odd);
    }
    2.0 * t * series + exponent as f64 * std::f64::consts::LN_2
}

/// Exponential of a number in about -700..700.
pub fn exp(x: f64) -> f64 {
    let scaled = x / std::f64::consts::LN_2;
    let power = (scaled + if scaled < 0.0 { -0.5 } else { 0.5 }) as i64;
    let rest = x - power as f64 * std::f64::consts::LN_2;
    let mut series = 1.0;
    for term in (1..=14).rev() {
        series = 1.0 + series * rest / f64::from(term);
    }
    series * f64::from_bits(((power + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_and_exp_agree_with_the_platform() {
        for x in [1e-9, 0.3, 0.9999, 1.0, 1.5, 2.0, 10.0, 12345.678, 1e15] {
            assert!((ln(x) - f64::ln(x)).abs() <= 1e-14 * f64::ln(x).abs().max(1.0), "ln {x}");
        }
        for x in [-40.0, -1.0, -0.001, 0.0, 0.5, 3.0, 20.0] {
            assert!((exp(x) / f64::exp(x) - 1.0).abs() < 1e-13, "exp {x}");
        }
    }

    #[test]
    fn zipf_favours_low_ranks_by_the_exponent() {
        let zipf = Zipf::new(100, 1.0);
        let mut random = Random::new(1);
        let mut counts = [0u32; 100];
        for _ in 0..200_000 {
            counts[zipf.sample(&mut random)] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[9]);
        assert!((8.5..11.5).contains(&ratio), "rank 1 over rank 10 is {ratio}, should be near 10");
    }

    #[test]
    fn geometric_has_its_mean() {
        let mut random = Random::new(2);
        let sum: u64 = (0..100_000).map(|_| random.geometric(8.0)).sum();
        let mean = sum as f64 / 1e5;
        assert!((7.85..8.15).contains(&mean), "mean {mean}");
        assert_eq!(random.geometric(1.0), 1);
    }
}
