//! Things by number, for operations below and lists that name them so.

use crate::saved::SavedValue;
use alloc::vec::Vec;

/// Numbered things. The number of the one that has left last is given to the next, and a new one where
/// there is none: 0, 1 and so on. So nothing is allocated once as many were there as ever are.
///
/// A thing that has left stays where it was until another has its number: who may name one that is not
/// there keeps an [`Option`].
#[derive(Debug, SavedValue)]
pub struct Slab<T> {
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
    #[inline]
    pub fn reuse_or(&mut self, new: impl FnOnce() -> T) -> u32 {
        match self.free.pop() {
            Some(number) => number,
            None => self.grow(new),
        }
    }

    #[cold]
    fn grow(&mut self, new: impl FnOnce() -> T) -> u32 {
        self.add(new())
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

    /// How many are there.
    #[inline]
    pub fn len(&self) -> u32 {
        (self.things.len() - self.free.len()) as u32
    }

    /// True when none is there.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that are there, and those that have left as they were then.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.things.iter()
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
        assert_eq!(slab.len(), 1);
        assert!(slab.iter().eq(&['c', 'd']), "one has left");
        assert_eq!(slab.reuse_or(|| 'e'), b);
        assert_eq!(slab[b], 'd', "as it was");
        let e = slab.reuse_or(|| 'e');
        assert_eq!(slab.take(e), 'e');
        slab.remove(b);
        slab.remove(c);
        assert!(slab.is_empty());
    }
}
