//! A region: which S-block lies in which position, and which one moves to make room.

use super::layout::Shape;
use super::settings::Prefill;
use crate::saved::SavedValue;
use alloc::boxed::Box;
use alloc::vec;

/// No S-block, or no position.
pub const NONE: u16 = u16::MAX;

/// What has to be done before a slot is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// One is free.
    There,
    /// The S-block with this number lies at the tail and moves to the head.
    Move(u16),
}

/// The circular log of a region.
///
/// The positions from `tail` on, `used` of them, hold S-blocks that are valid or superseded; the next
/// one is the head. No more than `slots` are in use between two steps.
#[derive(Clone, Debug, SavedValue)]
pub struct Region {
    shape: Shape,
    slot_of: Box<[u16]>,
    owner: Box<[u16]>,
    /// Why a position cannot be written yet: reads of it that are on their way, and records that a
    /// power cut could still undo.
    holds: Box<[u16]>,
    tail: u16,
    used: u16,
}

impl Region {
    /// An empty region, or a filled one; `first` is the number of its first S-block.
    pub fn new(shape: Shape, prefill: &Prefill, first: u32) -> Region {
        let mut region = Region {
            shape,
            slot_of: vec![NONE; usize::from(shape.data)].into(),
            owner: vec![NONE; usize::from(shape.positions())].into(),
            holds: vec![0; usize::from(shape.positions())].into(),
            tail: 0,
            used: 0,
        };
        match prefill {
            Prefill::All => (0..shape.data).for_each(|segment| region.fill(segment)),
            Prefill::None => {}
            Prefill::Some(numbers) => {
                let from = numbers.partition_point(|number| *number < first);
                let numbers = numbers[from..].iter().map(|number| number - first);
                let own = numbers.take_while(|index| *index < u32::from(shape.data));
                own.for_each(|index| region.fill(index as u16));
            }
        }
        region
    }

    fn fill(&mut self, segment: u16) {
        if self.slot_of[usize::from(segment)] == NONE {
            self.append(segment, self.head());
        }
    }

    /// How its S-blocks are counted.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Where an S-block lies.
    #[inline]
    pub fn slot_of(&self, segment: u16) -> Option<u16> {
        let slot = self.slot_of[usize::from(segment)];
        (slot != NONE).then_some(slot)
    }

    /// The S-block in a position.
    pub fn owner(&self, position: u16) -> Option<u16> {
        let owner = self.owner[usize::from(position)];
        (owner != NONE).then_some(owner)
    }

    fn step(&self, position: u16, by: u16) -> u16 {
        let positions = u32::from(self.shape.positions());
        ((u32::from(position) + u32::from(by)) % positions) as u16
    }

    /// Where the next S-block goes.
    #[inline]
    pub fn head(&self) -> u16 {
        self.step(self.tail, self.used)
    }

    /// Where the log begins, and how long it is.
    pub fn log(&self) -> (u16, u16) {
        (self.tail, self.used)
    }

    /// Free slots.
    pub fn free(&self) -> u16 {
        self.shape.slots.saturating_sub(self.used)
    }

    /// True when the head can be written: neither it nor what that destroys is needed.
    pub fn may_write_head(&self) -> bool {
        let head = self.head();
        let end = (head + 1 + self.shape.guard).min(self.shape.positions());
        (head..end).all(|position| {
            assert_eq!(self.owner(position), None, "the head reaches an S-block");
            self.holds[usize::from(position)] == 0
        })
    }

    /// A position must not be written until [`release`](Self::release).
    pub fn hold(&mut self, position: u16) {
        self.holds[usize::from(position)] += 1;
    }

    /// Takes back a [`hold`](Self::hold).
    pub fn release(&mut self, position: u16) {
        self.holds[usize::from(position)] -= 1;
    }

    /// An S-block was written at a position, which is the head. Returns where it was before.
    pub fn append(&mut self, segment: u16, position: u16) -> Option<u16> {
        assert_eq!(position, self.head(), "an append beside the head");
        assert!(self.used <= self.shape.slots, "an append without room");
        let old = self.forget(segment);
        self.slot_of[usize::from(segment)] = position;
        self.owner[usize::from(position)] = segment;
        self.used += 1;
        old
    }

    /// An S-block holds nothing any more. Returns where it was.
    pub fn forget(&mut self, segment: u16) -> Option<u16> {
        let old = self.slot_of(segment)?;
        self.slot_of[usize::from(segment)] = NONE;
        self.owner[usize::from(old)] = NONE;
        Some(old)
    }

    /// Drops superseded S-blocks at the tail until a slot is free, and says what to move when one
    /// that is valid stands there. One that is `leaving` counts as superseded: its slot is free as
    /// soon as it is written elsewhere.
    pub fn make_room(&mut self, leaving: Option<u16>) -> Room {
        while self.used >= self.shape.slots {
            match self.owner(self.tail) {
                None => self.drop_tail(),
                Some(segment) if Some(segment) == leaving => return Room::There,
                Some(segment) => return Room::Move(segment),
            }
        }
        Room::There
    }

    /// Drops superseded S-blocks from the tail while there are more than slots.
    pub fn drop_surplus(&mut self) {
        while self.used > self.shape.slots && self.owner(self.tail).is_none() {
            self.drop_tail();
        }
    }

    fn drop_tail(&mut self) {
        self.tail = self.step(self.tail, 1);
        self.used -= 1;
    }

    /// How many S-blocks will be moved until a slot is free; `None` when one is.
    pub fn moves_to_come(&self, leaving: Option<u16>) -> Option<u64> {
        if self.used < self.shape.slots {
            return None;
        }
        let owners = (0..self.used).map(|by| self.owner(self.step(self.tail, by)));
        let stays = |owner: &Option<u16>| owner.is_some() && *owner != leaving;
        Some(owners.take_while(stays).count() as u64)
    }

    /// Takes back where the log begins, how long it is and what lies in it.
    pub fn restore(&mut self, tail: u16, used: u16, owners: &[u16]) {
        (self.tail, self.used) = (tail, used);
        self.slot_of.fill(NONE);
        self.owner.copy_from_slice(owners);
        for (position, owner) in owners.iter().enumerate() {
            if *owner != NONE {
                self.slot_of[usize::from(*owner)] = position as u16;
            }
        }
    }

    /// Takes back an append that was recorded together with the log before it.
    pub fn redo(&mut self, segment: u16, position: u16, used: u16) {
        let positions = u32::from(self.shape.positions());
        let tail = (u32::from(position) + positions - u32::from(used)) % positions;
        (self.tail, self.used) = (tail as u16, used);
        self.append(segment, position);
    }

    /// What lies in each position.
    pub fn owners(&self) -> &[u16] {
        &self.owner
    }

    /// True when the tables say the same, and what is valid lies inside the log.
    pub fn is_sound(&self) -> bool {
        let inside = |position: u16| {
            let positions = u32::from(self.shape.positions());
            let from_tail = u32::from(position) + positions - u32::from(self.tail);
            from_tail % positions < u32::from(self.used)
        };
        let placed = |segment: u16| {
            self.slot_of(segment)
                .is_none_or(|slot| self.owner(slot) == Some(segment) && inside(slot))
        };
        let owned = |position: u16| {
            self.owner(position).is_none_or(|segment| {
                segment < self.shape.data && self.slot_of(segment) == Some(position)
            })
        };
        self.used <= self.shape.slots + 1
            && self.tail < self.shape.positions()
            && (0..self.shape.data).all(placed)
            && (0..self.shape.positions()).all(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Appends an S-block as the layer does, and returns how many were moved; `None` without GC.
    fn rewrite(region: &mut Region, segment: u16) -> Option<u64> {
        region.append(segment, region.head());
        let told = region.moves_to_come(None);
        let mut moves = 0;
        while let Room::Move(moved) = region.make_room(None) {
            assert!(region.may_write_head());
            region.append(moved, region.head());
            region.drop_surplus();
            moves += 1;
        }
        assert_eq!(told.unwrap_or(0), moves);
        assert!(region.is_sound() && region.free() > 0);
        told
    }

    /// A region of n S-blocks and so many spare slots after so many rewrites, with the mean number of
    /// moves per run afterwards.
    fn omega(n: u16, spare: u16, runs: u64, mut next: impl FnMut() -> u16) -> f64 {
        let shape = Shape { data: n, slots: n + spare, guard: 2 };
        let mut region = Region::new(shape, &Prefill::All, 0);
        let mut count = |from: u64, to: u64| {
            let (mut moves, mut seen) = (0, 0);
            for _ in from..to {
                if let Some(moved) = rewrite(&mut region, next()) {
                    moves += moved;
                    seen += 1;
                }
            }
            moves as f64 / f64::from(seen)
        };
        count(0, runs / 4);
        count(0, runs)
    }

    #[test]
    fn four_s_blocks_and_two_spare_slots_counted_by_hand() {
        let shape = Shape { data: 4, slots: 6, guard: 0 };
        let mut region = Region::new(shape, &Prefill::All, 0);
        // 0 1 2 3 . .
        assert_eq!(rewrite(&mut region, 2), None);
        // 0 1 - 3 2 and no free slot behind the next: 0 and 1 move, 2's old copy is dropped.
        assert_eq!(rewrite(&mut region, 3), Some(2));
        let log: Vec<Option<u16>> = (0..5).map(|by| region.owner((3 + by) % 7)).collect();
        assert_eq!(log, [None, Some(2), Some(3), Some(0), Some(1)]);
        // The old copy of 3 is dropped.
        assert_eq!(rewrite(&mut region, 2), Some(0));
    }

    #[test]
    fn a_hot_head_moves_what_the_formula_says() {
        for (n, spare) in [(64, 6), (64, 1), (100, 30), (16, 8)] {
            let formula = f64::from(n - 1) / f64::from(spare + 1);
            let seen = omega(n, spare, 20_000, || 0);
            assert!((seen / formula - 1.0).abs() < 0.01, "{n} {spare}: {seen}");
        }
    }

    #[test]
    fn uniform_updates_move_what_the_formula_says() {
        let mut rng = Rng::new(3, 1);
        for spare in [50u16, 100, 300] {
            let n = 1000;
            let ratio = f64::from(n) / f64::from(n + spare);
            let (mut low, mut high) = (1e-6, 1.0 - 1e-9);
            for _ in 0..200 {
                let v: f64 = (low + high) / 2.0;
                match (1.0 - v) / -v.ln() < ratio {
                    true => low = v,
                    false => high = v,
                }
            }
            let formula = low / (1.0 - low);
            let seen = omega(n, spare, 60_000, || rng.below(1000) as u16);
            assert!((seen / formula - 1.0).abs() < 0.05, "{spare}: {seen} {formula}");
        }
    }

    #[test]
    fn a_redone_append_leaves_what_the_append_left() {
        let shape = Shape { data: 5, slots: 7, guard: 1 };
        let mut region = Region::new(shape, &Prefill::None, 0);
        let mut redone = region.clone();
        let mut rng = Rng::new(9, 1);
        for _ in 0..500 {
            let segment = rng.below(5) as u16;
            let (head, used) = (region.head(), region.log().1);
            region.append(segment, head);
            redone.redo(segment, head, used);
            assert_eq!((region.log(), region.owners()), (redone.log(), redone.owners()));
            while let Room::Move(moved) = region.make_room(None) {
                let (head, used) = (region.head(), region.log().1);
                region.append(moved, head);
                redone.redo(moved, head, used);
                region.drop_surplus();
            }
            assert!(region.is_sound() && redone.is_sound());
        }
    }
}
