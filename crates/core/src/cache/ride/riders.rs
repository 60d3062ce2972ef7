//! Of the bands with an open window, the one whose oldest dirty block is the oldest.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The bands that may have a rider, in a heap by the clock of their oldest dirty block.
///
/// The oldest block of a band only ever becomes a younger one. So a clock in the heap is at most the
/// true one, and is put right when it comes to the top.
pub(super) struct Riders {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// By band, whether it is in the heap.
    is_in: Vec<bool>,
}

impl Riders {
    /// No riders in so many bands.
    pub fn new(bands: usize) -> Riders {
        Riders { heap: BinaryHeap::new(), is_in: vec![false; bands] }
    }

    /// A band may have a rider from now on; its oldest dirty block is no older than `clock`.
    pub fn add(&mut self, band: u32, clock: u64) {
        if !core::mem::replace(&mut self.is_in[band as usize], true) {
            self.heap.push(Reverse((clock, band)));
        }
    }

    /// The band whose oldest rider is the oldest. `oldest` tells the clock of a band's; none when it
    /// has no rider, and then the band leaves the heap.
    pub fn first(&mut self, oldest: impl Fn(u32) -> Option<u64>) -> Option<u32> {
        while let Some(mut top) = self.heap.peek_mut() {
            let Reverse((known, band)) = *top;
            match oldest(band) {
                Some(clock) if clock == known => return Some(band),
                Some(clock) => *top = Reverse((clock, band)),
                None => {
                    alloc::collections::binary_heap::PeekMut::pop(top);
                    self.is_in[band as usize] = false;
                }
            }
        }
        None
    }
}
