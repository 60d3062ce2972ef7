//! A set of numbers below a bound that is known beforehand, with ranks.

const WORD_BITS: u64 = u64::BITS as u64;

/// A set of small numbers. It says how many members are below a number and which one is the n-th,
/// each in the time of the logarithm of its bound.
#[derive(Clone, Debug)]
pub struct Marks {
    words: Vec<u64>,
    /// A Fenwick tree of the members in each word; entry 0 is not used.
    tree: Vec<u64>,
}

impl Marks {
    /// An empty set of numbers below `bound`.
    pub fn new(bound: u64) -> Marks {
        let words = bound.div_ceil(WORD_BITS) as usize;
        Marks { words: vec![0; words], tree: vec![0; words + 1] }
    }

    /// True of a member.
    #[inline]
    pub fn has(&self, number: u64) -> bool {
        self.words[(number / WORD_BITS) as usize] >> (number % WORD_BITS) & 1 == 1
    }

    /// Puts a number in or takes it out.
    pub fn set(&mut self, number: u64, is_member: bool) {
        if self.has(number) == is_member {
            return;
        }
        let word = (number / WORD_BITS) as usize;
        self.words[word] ^= 1 << (number % WORD_BITS);
        let mut node = word + 1;
        while node < self.tree.len() {
            match is_member {
                true => self.tree[node] += 1,
                false => self.tree[node] -= 1,
            }
            node += node & node.wrapping_neg();
        }
    }

    /// How many members are below `number`.
    pub fn below(&self, number: u64) -> u64 {
        let word = (number / WORD_BITS) as usize;
        let mut node = word;
        let mut members = 0;
        while node > 0 {
            members += self.tree[node];
            node &= node - 1;
        }
        match number % WORD_BITS {
            0 => members,
            bits => members + u64::from((self.words[word] & ((1 << bits) - 1)).count_ones()),
        }
    }

    /// The member that has `rank` members below it, if there are so many.
    pub fn nth(&self, rank: u64) -> Option<u64> {
        let mut left = rank;
        let mut node = 0;
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            let next = node + step;
            if next < self.tree.len() && self.tree[next] <= left {
                left -= self.tree[next];
                node = next;
            }
            step /= 2;
        }
        let mut bits = *self.words.get(node)?;
        for _ in 0..left {
            bits &= bits - 1;
        }
        (bits != 0).then(|| node as u64 * WORD_BITS + u64::from(bits.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::rng::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn it_counts_and_finds_what_an_ordered_set_does() {
        let mut rng = Rng::new(5, 0);
        for bound in [1, 63, 64, 65, 1000] {
            let (mut marks, mut set) = (Marks::new(bound), BTreeSet::new());
            for _ in 0..500 {
                let number = rng.below(bound);
                let is_member = rng.below(3) > 0;
                marks.set(number, is_member);
                match is_member {
                    true => set.insert(number),
                    false => set.remove(&number),
                };
                let number = rng.below(bound + 1);
                assert_eq!(marks.below(number), set.range(..number).count() as u64);
                let rank = rng.below(bound + 1);
                assert_eq!(marks.nth(rank), set.iter().nth(rank as usize).copied());
            }
        }
    }
}
