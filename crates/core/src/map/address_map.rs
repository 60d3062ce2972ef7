//! A hash map over addresses that goes the same way in every run.

use core::hash::{BuildHasherDefault, Hasher};
use hashbrown::HashMap;

/// Spreads block addresses over the index: Fibonacci hashing (Knuth, vol. 3, 6.4), and fixed, so
/// that every run goes the same way.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

/// A map from addresses. Its order means nothing: nobody goes through it.
pub(crate) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// An empty map with room for so many addresses, come and gone as they may: half of it stays empty, so
/// that it is tidied in place.
pub(crate) fn address_map<V>(addresses: usize) -> AddressMap<V> {
    AddressMap::with_capacity_and_hasher(2 * addresses, BuildHasherDefault::default())
}
