//! Bits by number, of which long runs are never set.

use crate::saved::SavedValue;
use crate::state::{StateError, StateReader, StateWriter};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Words of a page: 32,768 bits.
const PAGE_WORDS: usize = 512;
const PAGE_BITS: u64 = PAGE_WORDS as u64 * 64;

/// Bits by number. A page of them takes memory when one is set there.
#[derive(Debug, Default, SavedValue)]
pub struct Bits {
    pages: Vec<Option<Box<[u64; PAGE_WORDS]>>>,
}

impl Bits {
    /// Whether a bit is set.
    #[inline]
    pub fn get(&self, at: u64) -> bool {
        let page = self.pages.get((at / PAGE_BITS) as usize);
        let (word, bit) = ((at % PAGE_BITS / 64) as usize, at % 64);
        page.and_then(Option::as_ref).is_some_and(|page| page[word] >> bit & 1 == 1)
    }

    /// Sets a bit, or clears it.
    #[inline]
    pub fn set(&mut self, at: u64, value: bool) {
        let index = (at / PAGE_BITS) as usize;
        if index >= self.pages.len() {
            if !value {
                return;
            }
            self.pages.resize_with(index + 1, || None);
        }
        let (word, bit) = ((at % PAGE_BITS / 64) as usize, at % 64);
        match (&mut self.pages[index], value) {
            (Some(page), true) => page[word] |= 1 << bit,
            (Some(page), false) => page[word] &= !(1 << bit),
            (None, false) => {}
            (none, true) => {
                let page = vec![0; PAGE_WORDS].into_boxed_slice();
                let page = none.insert(page.try_into().expect("as long as a page"));
                page[word] |= 1 << bit;
            }
        }
    }

    /// The end of the pages in which a bit was set.
    pub fn end(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BITS
    }

    /// The runs of bits that are set: where each begins and how long it is.
    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = self.next_set(at)?;
            let mut end = start + 1;
            while self.get(end) {
                end += 1;
            }
            at = end;
            Some((start, end - start))
        })
    }

    /// Adds the bits to a checkpoint: the runs of those that are set, or all of them where that is shorter.
    pub fn put(&self, words: &mut StateWriter) {
        let end = self.runs().last().map_or(0, |(start, length)| start + length);
        let (runs, all) = (self.runs().count() as u64, end.div_ceil(64));
        if 2 * runs < all {
            words.put_u64(runs << 1);
            for (start, length) in self.runs() {
                words.put_u64(start);
                words.put_u64(length);
            }
            return;
        }
        words.put_u64(all << 1 | 1);
        for word in 0..all {
            let bit = |at: u64| u64::from(self.get(word * 64 + at)) << at;
            words.put_u64((0..64).map(bit).sum());
        }
    }

    /// Takes bits back from a checkpoint, none of them at or behind `end`.
    ///
    /// # Errors
    /// When one is.
    pub fn take(end: u64, words: &mut StateReader<'_>) -> Result<Bits, StateError> {
        let mut bits = Bits::default();
        let behind = || StateError::new("a bit of something that is not there");
        let head = words.take_u64()?;
        for number in 0..head >> 1 {
            if head & 1 == 1 {
                let word = words.take_u64()?;
                for at in (0..64).filter(|at| word >> at & 1 == 1) {
                    let at = number.checked_mul(64).and_then(|first| first.checked_add(at));
                    let at = at.filter(|at| *at < end).ok_or_else(behind)?;
                    bits.set(at, true);
                }
                continue;
            }
            let (start, length) = (words.take_u64()?, words.take_u64()?);
            if start.checked_add(length).is_none_or(|last| last > end) {
                return Err(behind());
            }
            (start..start + length).for_each(|at| bits.set(at, true));
        }
        Ok(bits)
    }

    /// Bytes of so many bits in a checkpoint at most.
    pub fn bytes_max(bits: u64) -> u64 {
        8 * (1 + bits.div_ceil(64))
    }

    /// The first bit from `at` on that is set.
    pub fn next_set(&self, mut at: u64) -> Option<u64> {
        loop {
            let index = (at / PAGE_BITS) as usize;
            let page = self.pages.get(index)?;
            if let Some(page) = page {
                let first = (at % PAGE_BITS / 64) as usize;
                for word in first..PAGE_WORDS {
                    let mask = if word == first { u64::MAX << (at % 64) } else { u64::MAX };
                    let left = page[word] & mask;
                    if left != 0 {
                        let bit = u64::from(left.trailing_zeros());
                        return Some(index as u64 * PAGE_BITS + word as u64 * 64 + bit);
                    }
                }
            }
            at = (index as u64 + 1) * PAGE_BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_where_they_were_set() {
        let mut bits = Bits::default();
        assert_eq!(bits.next_set(0), None);
        for at in [3, 64, 40_000, 200_000] {
            bits.set(at, true);
        }
        bits.set(64, false);
        bits.set(1 << 30, false);
        assert!(bits.get(3) && !bits.get(64) && !bits.get(1 << 40));
        let found: Vec<u64> =
            core::iter::successors(bits.next_set(0), |at| bits.next_set(at + 1)).collect();
        assert_eq!(found, [3, 40_000, 200_000]);
        bits.set(4, true);
        let runs: Vec<(u64, u64)> = bits.runs().collect();
        assert_eq!(runs, [(3, 2), (40_000, 1), (200_000, 1)]);
    }

    #[test]
    fn bits_come_back_and_are_no_longer_than_they_may_be() {
        let few = [3, 4, 5, 90_000].to_vec();
        let many: Vec<u64> = (0..3000).filter(|at| at % 2 == 0).collect();
        for set in [few, many, Vec::new()] {
            let mut bits = Bits::default();
            set.iter().for_each(|at| bits.set(*at, true));
            let mut words = StateWriter::default();
            bits.put(&mut words);
            let bytes = words.into_bytes();
            let last = set.last().copied().unwrap_or_default();
            assert!(bytes.len() as u64 <= Bits::bytes_max(last + 1));
            let found = Bits::take(last + 1, &mut StateReader::new(&bytes)).expect("bits");
            assert_eq!(found.runs().collect::<Vec<_>>(), bits.runs().collect::<Vec<_>>());
            assert_eq!(Bits::take(last, &mut StateReader::new(&bytes)).is_err(), !set.is_empty());
        }
    }
}
