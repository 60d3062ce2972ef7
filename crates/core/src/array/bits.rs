//! Bits by number, of which long runs are never set.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Words of a page: 32,768 bits.
const PAGE_WORDS: usize = 512;
const PAGE_BITS: u64 = PAGE_WORDS as u64 * 64;

/// Bits by number. A page of them takes memory when one is set there.
#[derive(Debug, Default)]
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
    }
}
