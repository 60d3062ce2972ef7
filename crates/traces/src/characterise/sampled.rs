//! A table of places on a disk that never grows beyond a fixed number of entries.
//!
//! It holds every place until it is full. Then it keeps those whose hash is small: half of what there was, and half again
//! whenever it is full (spatially hashed sampling: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015).
//! A place that is kept was kept from the start, so what is counted for it is exact, and each stands for `weight` places.

/// What is kept for the place `number` of a device.
pub(super) struct Slot<E> {
    pub(super) number: u64,
    pub(super) device: u16,
    pub(super) value: E,
}

/// The table; `E` is what is kept for a place.
pub(super) struct Sampled<E> {
    slots: Vec<Slot<E>>,
    /// Open addressing: the low half of the hash in the upper bits, the place in `slots` plus 1 in the lower. 0 is empty.
    index: Vec<u64>,
    capacity: usize,
    /// One in 2^shift places is kept.
    shift: u32,
}

/// Mixes all bits of a place (the finaliser of SplitMix64).
#[inline]
pub(super) fn hash(device: u16, number: u64) -> u64 {
    let mut mixed =
        number.wrapping_add((u64::from(device) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl<E: Default> Sampled<E> {
    /// A table that keeps at most `capacity` places, at least one.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::new(),
            index: vec![0; 1024],
            capacity: capacity.clamp(1, 1 << 30),
            shift: 0,
        }
    }

    /// True if a place with this hash belongs to the sample.
    #[inline]
    pub(super) fn takes(&self, hash: u64) -> bool {
        hash.leading_zeros() >= self.shift
    }

    /// How many places each kept one stands for.
    pub(super) fn weight(&self) -> u64 {
        1 << self.shift
    }

    /// True if there is no room for another place.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= self.capacity
    }

    pub(super) fn slots(&self) -> &[Slot<E>] {
        &self.slots
    }

    pub(super) fn slots_mut(&mut self) -> &mut [Slot<E>] {
        &mut self.slots
    }

    /// Where a place with this hash is in `slots` if no other was there first; any number otherwise.
    #[inline]
    pub(super) fn likely(&self, hash: u64) -> usize {
        let entry = self.index[hash as usize & (self.index.len() - 1)];
        (entry as u32).wrapping_sub(1) as usize
    }

    /// True if the place is there in `slots`.
    #[inline]
    pub(super) fn is_at(&self, at: usize, device: u16, number: u64) -> bool {
        let slot = self.slots.get(at);
        slot.is_some_and(|slot| slot.number == number && slot.device == device)
    }

    /// Where the place is in `slots`, if it is kept.
    #[inline]
    pub(super) fn find(&self, device: u16, number: u64, hash: u64) -> Option<usize> {
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = self.index[at];
            if entry == 0 {
                return None;
            }
            if entry >> 32 == hash & 0xffff_ffff {
                let place = (entry as u32 - 1) as usize;
                let slot = &self.slots[place];
                if slot.number == number && slot.device == device {
                    return Some(place);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a place that is not kept yet; the table must have room and take it.
    pub(super) fn insert(&mut self, device: u16, number: u64, hash: u64) -> usize {
        if (self.slots.len() + 1) * 2 > self.index.len() {
            self.fill_index(self.index.len() * 2);
        }
        self.slots.push(Slot { number, device, value: E::default() });
        put(&mut self.index, (hash << 32) | self.slots.len() as u64);
        self.slots.len() - 1
    }

    /// Finds the place or adds it, with room made as needed; `None` if the sample does not take it (any more).
    #[inline]
    pub(super) fn entry(&mut self, device: u16, number: u64) -> Option<&mut E> {
        let hash = hash(device, number);
        if !self.takes(hash) {
            return None;
        }
        let place = match self.find(device, number, hash) {
            Some(place) => place,
            None => {
                while self.is_full() {
                    self.halve();
                }
                if !self.takes(hash) {
                    return None;
                }
                self.insert(device, number, hash)
            }
        };
        Some(&mut self.slots[place].value)
    }

    /// Keeps half of the places: those with the smaller hashes, in the order in which they came.
    pub(super) fn halve(&mut self) {
        // One place of a table of one may survive every halving; 2^62 places do not exist.
        assert!(self.shift < 62, "a hash cannot be this small");
        self.shift += 1;
        let shift = self.shift;
        self.slots.retain(|slot| hash(slot.device, slot.number).leading_zeros() >= shift);
        self.fill_index(self.index.len());
    }

    /// Makes the index of all slots, with so many cells. The old one is gone before there is a new one.
    fn fill_index(&mut self, cells: usize) {
        self.index = Vec::new();
        self.index = vec![0; cells];
        for (place, slot) in self.slots.iter().enumerate() {
            let entry = (hash(slot.device, slot.number) << 32) | (place as u64 + 1);
            put(&mut self.index, entry);
        }
    }

    /// Standard error of an estimated number of places, per cent of it.
    pub(super) fn error_percent(&self) -> f64 {
        let left_out = 1.0 - 1.0 / self.weight() as f64;
        100.0 * (left_out / self.slots.len().max(1) as f64).sqrt()
    }
}

/// Puts an entry into the first free cell from that of its hash.
fn put(index: &mut [u64], entry: u64) {
    let mask = index.len() - 1;
    let mut at = (entry >> 32) as usize & mask;
    while index[at] != 0 {
        at = (at + 1) & mask;
    }
    index[at] = entry;
}
