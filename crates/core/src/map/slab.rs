//! Things by number, for operations below and lists that name them so.

use alloc::vec::Vec;

/// Numbered things. The number of one that has left is given to another, so nothing is allocated once
/// as many were there as ever are.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { things: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Gives a thing a number.
    #[inline]
    pub fn add(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.things[number as usize] = thing;
                number
            }
            None => {
                self.things.push(thing);
                (self.things.len() - 1) as u32
            }
        }
    }

    /// The number of a thing that has left, which is there again as it was, with its memory; that of a
    /// new thing where there is none.
    pub fn reuse_or(&mut self, new: impl FnOnce() -> T) -> u32 {
        match self.free.pop() {
            Some(number) => number,
            None => self.add(new()),
        }
    }

    /// A thing leaves.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Takes a thing out.
    #[inline]
    pub fn take(&mut self, number: u32) -> T
    where
        T: Copy,
    {
        self.remove(number);
        self.things[number as usize]
    }

    /// True when none is there.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.things.len()
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.things[number as usize]
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.things[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again_and_names_one_thing_at_a_time() {
        let mut slab = Slab::default();
        let (a, b) = (slab.add('a'), slab.add('b'));
        assert_eq!((slab[a], slab[b]), ('a', 'b'));
        assert_eq!(slab.take(a), 'a');
        let c = slab.add('c');
        assert_eq!((c, slab[b], slab[c]), (a, 'b', 'c'));
        slab[b] = 'd';
        slab.remove(b);
        assert!(!slab.is_empty());
        assert_eq!(slab.reuse_or(|| 'e'), b);
        assert_eq!(slab[b], 'd', "as it was");
        let e = slab.reuse_or(|| 'e');
        assert_eq!(slab.take(e), 'e');
        slab.remove(b);
        slab.remove(c);
        assert!(slab.is_empty());
    }
}
