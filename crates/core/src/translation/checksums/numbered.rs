//! Things that an operation below names by number.

use alloc::vec::Vec;

/// Things by number. The number of a thing that was taken out is given to another one, so nothing is
/// allocated once as many were there as ever are.
#[derive(Debug)]
pub(in crate::translation) struct Numbered<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered {
            things: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Copy> Numbered<T> {
    /// The number of a new thing.
    #[inline]
    pub fn add(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.things[number as usize] = thing;
            return number;
        }
        self.things.push(thing);
        (self.things.len() - 1) as u32
    }

    /// A thing that is there.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.things[number as usize]
    }

    /// Takes a thing out.
    #[inline]
    pub fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.things[number as usize]
    }
}
