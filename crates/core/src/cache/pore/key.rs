//! Which zone PORE opens first.

use super::OpenZones;
use core::cmp::Ordering;

/// What a zone is chosen by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Accesses to its dirty blocks.
    pub accesses: u64,
    /// Its dirty blocks, 1 or more.
    pub dirty: u32,
    /// Its length, in any unit that all zones share.
    pub blocks: u64,
}

impl Key {
    /// The order of two zones: the lesser is opened first. With `a` accesses, `d` dirty blocks and
    /// `n` blocks in all, coverage is `d / n`, popularity is `a / d` and the balance of both
    /// `a n / d²`; fractions are compared exactly, by multiplying crosswise.
    pub fn compare(&self, open_zones: OpenZones, other: &Key) -> Ordering {
        let (dirty, other_dirty) = (u64::from(self.dirty), u64::from(other.dirty));
        let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
        match open_zones {
            OpenZones::Cf => wide(other_dirty, self.blocks).cmp(&wide(dirty, other.blocks)),
            OpenZones::Pf => wide(self.accesses, other_dirty).cmp(&wide(other.accesses, dirty)),
            OpenZones::Bl => {
                let weight = |key: &Key| wide(key.accesses, key.blocks);
                let own = product(weight(self), other_dirty * other_dirty);
                own.cmp(&product(weight(other), dirty * dirty))
            }
            OpenZones::All => Ordering::Equal,
        }
    }
}

/// A product of up to 192 bits: those above the lowest 64, and these.
fn product(a: u128, b: u64) -> (u128, u64) {
    let low = u128::from(a as u64) * u128::from(b);
    let high = (a >> 64) * u128::from(b) + (low >> 64);
    (high, low as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Digits of a product in base 2³², the highest first, by long multiplication.
    fn digits(factors: [u64; 4]) -> [u64; 9] {
        let mut digits = [0u64; 9];
        digits[8] = 1;
        for factor in factors {
            digits = times(digits, factor);
        }
        digits
    }

    /// A number in base 2³² times a factor.
    fn times(digits: [u64; 9], factor: u64) -> [u64; 9] {
        let mut carry = 0u128;
        let mut result = [0; 9];
        for (digit, result) in digits.iter().zip(&mut result).rev() {
            carry += u128::from(*digit) * u128::from(factor);
            *result = carry as u64 & 0xffff_ffff;
            carry >>= 32;
        }
        result
    }

    fn key() -> impl Strategy<Value = Key> {
        let accesses = prop_oneof![0..5u64, any::<u64>()];
        let dirty = prop_oneof![1..5u32, 1..=u32::MAX];
        let blocks = prop_oneof![1..5u64, 1..=u64::MAX];
        (accesses, dirty, blocks).prop_map(|(accesses, dirty, blocks)| Key {
            accesses,
            dirty,
            blocks,
        })
    }

    proptest! {
        #[test]
        fn keys_are_compared_exactly(a in key(), b in key()) {
            let (d, e) = (u64::from(a.dirty), u64::from(b.dirty));
            let bl = digits([a.accesses, a.blocks, e, e]).cmp(&digits([b.accesses, b.blocks, d, d]));
            prop_assert_eq!(a.compare(OpenZones::Bl, &b), bl);
            let cf = digits([e, a.blocks, 1, 1]).cmp(&digits([d, b.blocks, 1, 1]));
            prop_assert_eq!(a.compare(OpenZones::Cf, &b), cf);
            let pf = digits([a.accesses, e, 1, 1]).cmp(&digits([b.accesses, d, 1, 1]));
            prop_assert_eq!(a.compare(OpenZones::Pf, &b), pf);
        }
    }
}
