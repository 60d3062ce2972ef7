//! Of some zones, the one whose oldest dirty block is the oldest.

use crate::saved::SavedValue;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The zones that may have a block to give, in a heap by the clock of their oldest dirty block.
///
/// The oldest block of a zone only ever becomes a younger one. So a clock in the heap is at most the
/// true one, and is put right when it comes to the top.
#[derive(SavedValue)]
pub(super) struct OldestZones {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// By zone, whether it is in the heap.
    is_in: Vec<bool>,
}

impl OldestZones {
    /// None of so many zones.
    pub fn new(zones: usize) -> OldestZones {
        OldestZones { heap: BinaryHeap::new(), is_in: vec![false; zones] }
    }

    /// A zone may have a block to give from now on; its oldest dirty block is no older than `clock`.
    pub fn add(&mut self, zone: u32, clock: u64) {
        if !core::mem::replace(&mut self.is_in[zone as usize], true) {
            self.heap.push(Reverse((clock, zone)));
        }
    }

    /// The zone whose oldest dirty block is the oldest. `oldest` tells the clock of a zone's; none when
    /// it has none to give, and then the zone leaves the heap.
    pub fn first(&mut self, oldest: impl Fn(u32) -> Option<u64>) -> Option<u32> {
        while let Some(mut top) = self.heap.peek_mut() {
            let Reverse((known, zone)) = *top;
            match oldest(zone) {
                Some(clock) if clock == known => return Some(zone),
                Some(clock) => *top = Reverse((clock, zone)),
                None => {
                    alloc::collections::binary_heap::PeekMut::pop(top);
                    self.is_in[zone as usize] = false;
                }
            }
        }
        None
    }
}
