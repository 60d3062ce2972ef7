//! The only source of randomness: one seed per run, split into a stream per node.

use crate::saved::SavedValue;

/// A small deterministic generator (SplitMix64, Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug, SavedValue)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The stream number `stream` of the run's `seed`.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng { state: seed ^ stream.wrapping_mul(0xa076_1d64_78bd_642f) };
        rng.next_u64();
        rng
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, uniform to within 2^-64 x `bound`. Panics when `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below zero was asked for");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}
