//! Where each block is: the policy of RAID 4SMR. It knows nothing of time, so that its counts are those of
//! blocks one by one.

mod kept;

use super::bands::HomeBands;
use super::settings::{FirstWrite, Placement, Raid4SmrSettings};
use super::slots::Slots;
use crate::array::bits::Bits;
use crate::extent::Extent;
use crate::map::{AddressMap, ExtentMap, address_map};
use crate::saved::{Saved, SavedValue};
use crate::units::Lba;
use alloc::vec;
use alloc::vec::Vec;

/// A place is a number of a home's block: place p is on home p modulo their number, at row p div that
/// number, before band rows change theirs.
pub type Place = u64;

/// Where a block is, or goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Nowhere: it was never written, and reads as zeroes.
    Nowhere,
    /// It was never written and has its place all the same, where it is looked for.
    Unwritten(Place),
    /// To its home.
    Home(Place),
    /// To a slot of the data disk.
    Slot {
        /// The slot.
        slot: u64,
        /// The place of its home.
        place: Place,
        /// It had no slot before.
        is_new: bool,
        /// It was written before.
        was_live: bool,
    },
    /// To a slot, and there is none.
    NoSlot,
}

/// What was counted since it was asked last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, SavedValue)]
pub struct Counted {
    pub first_writes: u64,
    pub updates: u64,
    pub unsafe_first_writes: u64,
    pub redirected: u64,
    pub collections: u64,
    pub forced_collections: u64,
    pub collected_blocks: u64,
}

/// What a write has changed of where a block is, to be undone if it comes to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Change {
    /// The block of the host.
    pub block: u64,
    /// Which change of a block it is, in the order in which they were asked for.
    pub stamp: u64,
    pub place: Place,
    /// The slot that it is written to; none of one that goes home.
    pub slot: Option<u64>,
    /// It got the slot for this write.
    pub is_new: bool,
    /// It was written before.
    pub was_live: bool,
}

/// Of each block of a write, in the order of its rows, home after home.
pub type Changes = Vec<Change>;

/// The decision to collect a band row: what it holds goes to the spare one.
#[derive(Debug, SavedValue)]
pub struct Decision {
    /// The band row, as places number it.
    pub band_row: u64,
    /// Where it was, and is as long as nothing has been moved.
    pub from: u64,
    /// Where it goes.
    pub to: u64,
    /// Blocks that were on the data disk, in the order of their places, with their slots.
    pub saved: Vec<(Place, u64)>,
    /// For each place of the band row whether it has a block.
    pub live: Vec<bool>,
    /// For each home the end of what had been written of its band.
    pub written_ends: Vec<u64>,
    /// The last change of a block that it takes into account.
    pub stamp: u64,
}

impl Decision {
    /// The first place of the band row.
    pub fn first_place(&self, homes: u64, band_blocks: u64) -> Place {
        self.band_row * homes * band_blocks
    }

    /// The slot where a block was when the decision was made.
    pub fn slot_of(&self, place: Place) -> Option<u64> {
        let found = self.saved.binary_search_by_key(&place, |(place, _)| *place);
        found.ok().map(|at| self.saved[at].1)
    }
}

/// Where each block is.
#[derive(Debug, Saved)]
pub struct Directory {
    #[saved(keep)]
    settings: Raid4SmrSettings,
    homes: u64,
    band_blocks: u64,
    collect_at: u64,
    /// Blocks in the order of their first writes, where places are given out so.
    places: ExtentMap,
    /// The last of these runs, which may grow: its blocks, and the place of the first.
    last_run: (Extent, Place),
    next_place: Place,
    /// Places whose block was written.
    live: Bits,
    /// Slots of the blocks that are on the data disk, by place.
    slot_of: AddressMap<u64>,
    slots: Slots,
    /// For each band row, as places number it, where it lies on the homes.
    band_rows: Vec<u64>,
    /// The band row of the homes that is spare.
    spare: u64,
    /// For each band row its blocks on the data disk.
    mapped: Vec<u64>,
    /// For each band row and home the end of what was written of the band.
    written_ends: Vec<u64>,
    slots_peak: u64,
    /// Changes of blocks, counted.
    stamp: u64,
    counted: Counted,
    /// Decisions that nobody has taken yet.
    decided: Vec<Decision>,
}

impl Directory {
    /// Nothing written, over bands and so many slots.
    pub fn new(settings: Raid4SmrSettings, bands: &HomeBands, slots: u64) -> Directory {
        let (homes, band_blocks) = (settings.homes as u64, bands.band_blocks());
        let band_rows = bands.band_rows() - 1;
        Directory {
            collect_at: settings.collect_at.unwrap_or(u64::MAX),
            slots: Slots::new(slots, settings.slots),
            homes,
            band_blocks,
            places: ExtentMap::new(),
            last_run: (Extent::EMPTY, 0),
            next_place: 0,
            live: Bits::default(),
            slot_of: address_map(0),
            band_rows: (1..=band_rows).collect(),
            spare: 0,
            mapped: vec![0; band_rows as usize],
            written_ends: vec![0; (band_rows * homes) as usize],
            slots_peak: 0,
            stamp: 0,
            counted: Counted::default(),
            decided: Vec::new(),
            settings,
        }
    }

    /// Blocks that are on the data disk.
    pub fn map_entries(&self) -> u64 {
        self.slot_of.len() as u64
    }

    /// Slots that are free, and all.
    pub fn slots(&self) -> (u64, u64) {
        (self.slots.left(), self.slots.capacity())
    }

    /// Most of them at once.
    pub fn slots_peak(&self) -> u64 {
        self.slots_peak
    }

    /// What was counted since the last call.
    pub fn take_counted(&mut self) -> Counted {
        core::mem::take(&mut self.counted)
    }

    /// Which change of a block the last one was.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The decisions to collect band rows since the last call.
    pub fn take_decisions(&mut self) -> impl Iterator<Item = Decision> + '_ {
        self.decided.drain(..)
    }

    /// True when homes are written from their first place to their last.
    pub fn appends(&self) -> bool {
        self.settings.appends()
    }

    /// The home of a place.
    #[inline]
    pub fn home_of(&self, place: Place) -> usize {
        (place % self.homes) as usize
    }

    /// The band row of a place.
    #[inline]
    pub fn band_row_of(&self, place: Place) -> u64 {
        place / self.homes / self.band_blocks
    }

    /// The place in its band of a place.
    #[inline]
    pub fn offset_of(&self, place: Place) -> u64 {
        place / self.homes % self.band_blocks
    }

    /// The places of a band row.
    pub fn places_of(&self, band_row: u64) -> Extent {
        let blocks = self.band_blocks * self.homes;
        Extent::new(band_row * blocks, blocks)
    }

    fn place_of(&self, block: u64) -> Option<Place> {
        match self.settings.placement {
            Placement::Static => Some(block),
            Placement::Append => {
                let (run, first) = self.last_run;
                match run.contains(Lba(block)) {
                    true => Some(first + (block - run.start.0)),
                    false => self.places.get(Lba(block)),
                }
            }
        }
    }

    fn places_in_all(&self) -> u64 {
        self.band_rows.len() as u64 * self.band_blocks * self.homes
    }

    /// Gives a block the next place, and says whether that is at the end of what was written of its home.
    ///
    /// A crash leaves places behind that were given to blocks which were not written. They are given when no others
    /// are left, and no block can go home there any more.
    fn append(&mut self, block: u64) -> (Place, bool) {
        if self.next_place == self.places_in_all() {
            let place = self.first_left_behind();
            self.places.insert(Extent::new(block, 1), place);
            return (place, false);
        }
        let place = self.next_place;
        self.next_place += 1;
        let (run, first) = &mut self.last_run;
        match !run.is_empty() && run.end().0 == block {
            true => run.blocks.0 += 1,
            false => {
                self.places.insert(*run, *first);
                (*run, *first) = (Extent::new(block, 1), place);
            }
        }
        (place, true)
    }

    /// The first place that no block has. There are as many places as blocks, or more.
    fn first_left_behind(&self) -> Place {
        let pieces = self.places.pieces(Extent::new(0, u64::MAX));
        let mut taken: Vec<(Place, u64)> =
            pieces.map(|it| (it.position, it.extent.blocks.0)).collect();
        taken.push((self.last_run.1, self.last_run.0.blocks.0));
        taken.sort_unstable();
        taken.iter().fold(0, |free, (first, blocks)| match *first <= free {
            true => free.max(first + blocks),
            false => free,
        })
    }

    /// Where a block is.
    #[inline]
    pub fn find(&self, block: u64) -> Target {
        let place = match self.place_of(block) {
            Some(place) if self.live.get(place) => place,
            Some(place) if !self.settings.appends() => return Target::Unwritten(place),
            _ => return Target::Nowhere,
        };
        match self.slot_of.get(&place) {
            None => Target::Home(place),
            Some(&slot) => Target::Slot { slot, place, is_new: false, was_live: true },
        }
    }

    /// A block is written: where it goes. Band rows are collected for it when `can_collect`.
    pub fn write(&mut self, block: u64, bands: &HomeBands, can_collect: bool) -> Target {
        let place = match self.place_of(block) {
            Some(place) => place,
            None => match self.append(block) {
                (place, true) => return self.write_home(place),
                (place, false) => place,
            },
        };
        if self.live.get(place) {
            let target = self.redirect(place, true, can_collect);
            self.counted.updates += u64::from(target != Target::NoSlot);
            return target;
        }
        if self.goes_home(place, bands) {
            return self.write_home(place);
        }
        let target = self.redirect(place, false, can_collect);
        self.counted.unsafe_first_writes += u64::from(target != Target::NoSlot);
        target
    }

    /// Collections that a write of blocks can be the cause of at most.
    pub fn collections_most(&self, blocks: Extent) -> u64 {
        let all = blocks.start.0..blocks.end().0;
        let mut redirected: Vec<u64> = all
            .map(|block| self.place_of(block).map_or(u64::MAX, |place| self.band_row_of(place)))
            .collect();
        redirected.sort_unstable();
        let fresh = self.places_in_all().saturating_sub(self.next_place);
        let of_band_row = |blocks: &[u64]| {
            let Some(mapped) = self.mapped.get(blocks[0] as usize) else {
                // Those that have no place yet go home, as long as there are places that nobody had. Any other one may be
                // the last that its band row lacks.
                return (blocks.len() as u64).saturating_sub(fresh);
            };
            let missing = self.collect_at.saturating_sub(*mapped).max(1);
            match (blocks.len() as u64).checked_sub(missing) {
                Some(behind) => 1 + behind / self.collect_at,
                None => 0,
            }
        };
        let due: u64 = redirected.chunk_by(|one, other| one == other).map(of_band_row).sum();
        due + blocks.blocks.0.saturating_sub(self.slots.left())
    }

    /// True when nothing is destroyed by writing a block of a home that has none.
    fn goes_home(&self, place: Place, bands: &HomeBands) -> bool {
        match (self.settings.placement, self.settings.first_write) {
            // It was appended and has been zeroed since: what came after it is behind it.
            (Placement::Append, _) => false,
            (Placement::Static, FirstWrite::Free) => true,
            (Placement::Static, FirstWrite::Rule) => {
                let (home, band_row) = (self.home_of(place), self.band_row_of(place));
                let end = self.written_ends[self.end_index(place)];
                let first = self.band_rows[band_row as usize] * self.band_blocks;
                let track = |offset: u64| bands.track_of(home, first + offset);
                end == 0 || track(self.offset_of(place)) >= track(end - 1)
            }
        }
    }

    fn end_index(&self, place: Place) -> usize {
        (self.band_row_of(place) * self.homes + place % self.homes) as usize
    }

    fn write_home(&mut self, place: Place) -> Target {
        self.counted.first_writes += 1;
        self.stamp += 1;
        self.live.set(place, true);
        let (index, end) = (self.end_index(place), self.offset_of(place) + 1);
        self.written_ends[index] = self.written_ends[index].max(end);
        Target::Home(place)
    }

    /// A block goes to the data disk: to the slot that it has, or to a new one.
    fn redirect(&mut self, place: Place, was_live: bool, can_collect: bool) -> Target {
        if let Some(&slot) = self.slot_of.get(&place) {
            self.counted.redirected += 1;
            self.stamp += 1;
            return Target::Slot { slot, place, is_new: false, was_live };
        }
        let slot = match self.slots.take() {
            Some(slot) => slot,
            None if can_collect => {
                let most = self.most_mapped();
                self.counted.forced_collections += 1;
                self.collect(most);
                self.slots.take().expect("a slot that was freed")
            }
            None => return Target::NoSlot,
        };
        self.counted.redirected += 1;
        let band_row = self.put_in_slot(place, slot);
        if can_collect && self.mapped[band_row as usize] >= self.collect_at {
            self.counted.collections += 1;
            self.collect(band_row);
        }
        Target::Slot { slot, place, is_new: true, was_live }
    }

    /// The band row with the most blocks on the data disk, of several the first.
    fn most_mapped(&self) -> u64 {
        let rows = self.mapped.iter().enumerate();
        let most = rows.max_by_key(|(row, mapped)| (**mapped, core::cmp::Reverse(*row)));
        most.map_or(0, |(row, _)| row as u64)
    }

    /// Decides that a band row goes to the spare one.
    fn collect(&mut self, band_row: u64) {
        let places = self.places_of(band_row);
        let mut decision = Decision {
            band_row,
            from: self.band_rows[band_row as usize],
            to: self.spare,
            saved: Vec::new(),
            live: Vec::with_capacity(places.blocks.0 as usize),
            written_ends: vec![0; self.homes as usize],
            stamp: self.stamp,
        };
        let ends = (band_row * self.homes) as usize;
        let ends = &mut self.written_ends[ends..ends + self.homes as usize];
        decision.written_ends.copy_from_slice(ends);
        if !self.settings.appends() {
            ends.fill(0);
        }
        for place in places.start.0..places.end().0 {
            let is_live = self.live.get(place);
            decision.live.push(is_live);
            if is_live {
                self.counted.collected_blocks += 1;
                let offset = place / self.homes % self.band_blocks;
                let end = &mut ends[(place % self.homes) as usize];
                *end = (*end).max(offset + 1);
            }
        }
        let mut left = self.mapped[band_row as usize];
        for place in places.start.0..places.end().0 {
            if left == 0 {
                break;
            }
            if let Some(slot) = self.slot_of.remove(&place) {
                decision.saved.push((place, slot));
                self.slots.free(slot);
                left -= 1;
            }
        }
        self.mapped[band_row as usize] = 0;
        self.spare = core::mem::replace(&mut self.band_rows[band_row as usize], self.spare);
        self.decided.push(decision);
    }

    /// Decides to collect the next band row that was due while nothing could be collected. False when there is none.
    pub fn collect_next_due(&mut self) -> bool {
        let mut all = 0..self.mapped.len() as u64;
        let due = all.find(|band_row| self.mapped[*band_row as usize] >= self.collect_at);
        if let Some(band_row) = due {
            self.counted.collections += 1;
            self.collect(band_row);
        }
        due.is_some()
    }

    /// Decides to collect a band row whatever is on the data disk of it.
    pub fn collect_again(&mut self, band_row: u64) {
        self.counted.collections += 1;
        self.collect(band_row);
    }

    /// The place that has a slot.
    pub fn place_of_slot(&self, slot: u64) -> Option<Place> {
        self.slot_of.iter().find(|(_, of)| **of == slot).map(|(place, _)| *place)
    }

    /// The block of the host that has a place.
    pub fn block_at(&self, place: Place) -> Option<u64> {
        if self.settings.placement == Placement::Static {
            return Some(place);
        }
        let pieces = self.places.pieces(Extent::new(0, u64::MAX));
        let runs = pieces.map(|it| (it.extent, it.position)).chain([self.last_run]);
        let mut runs = runs.filter_map(|(run, first)| Some((run, place.checked_sub(first)?)));
        runs.find(|(run, at)| *at < run.blocks.0).map(|(run, at)| run.start.0 + at)
    }

    /// A block reads as zeroes from now on.
    pub fn zero(&mut self, block: u64) {
        self.stamp += 1;
        let Some(place) = self.place_of(block) else { return };
        self.live.set(place, false);
        if let Some(slot) = self.slot_of.remove(&place) {
            self.slots.free(slot);
            self.mapped[(place / self.homes / self.band_blocks) as usize] -= 1;
        }
    }

    /// A block that was to have a new slot is not written: it is where it was before.
    pub fn undo(&mut self, place: Place, slot: u64, was_live: bool) {
        if self.slot_of.get(&place) == Some(&slot) {
            self.slot_of.remove(&place);
            self.slots.free(slot);
            let band_row = self.band_row_of(place);
            self.mapped[band_row as usize] -= 1;
        }
        if !was_live {
            self.live.set(place, false);
        }
    }

    /// The slot of a place, if it has one.
    pub fn slot_of(&self, place: Place) -> Option<u64> {
        self.slot_of.get(&place).copied()
    }

    /// True of a place whose block was written and not zeroed since.
    pub fn is_live(&self, place: Place) -> bool {
        self.live.get(place)
    }

    /// A block that was to be written, and was counted, gets a slot after all, if there is one.
    pub fn place_again(&mut self, of: &Change) -> Option<Change> {
        let place = of.place;
        let was_live = self.live.get(place);
        if let Some(slot) = self.slot_of(place) {
            self.stamp += 1;
            let stamp = self.stamp;
            return Some(Change { stamp, slot: Some(slot), is_new: false, was_live, ..*of });
        }
        let slot = self.slots.take()?;
        self.put_in_slot(place, slot);
        let stamp = self.stamp;
        Some(Change { stamp, slot: Some(slot), is_new: true, was_live, ..*of })
    }

    /// A block is in a slot from now on. Returns its band row.
    fn put_in_slot(&mut self, place: Place, slot: u64) -> u64 {
        self.stamp += 1;
        self.live.set(place, true);
        self.slot_of.insert(place, slot);
        self.slots_peak = self.slots_peak.max(self.map_entries());
        let band_row = self.band_row_of(place);
        self.mapped[band_row as usize] += 1;
        band_row
    }

    /// A block that was to go home is not written.
    pub fn undo_home(&mut self, place: Place) {
        self.live.set(place, false);
    }

    /// Everything is durable: slots that were set aside are free.
    pub fn free_aside(&mut self) {
        self.slots.free_aside();
    }

    /// A band row is not collected after all: of the decisions that were not carried out the last one is
    /// taken back first.
    pub fn take_back(&mut self, decision: &Decision, keeps: bool) {
        let band_row = decision.band_row;
        self.band_rows[band_row as usize] = decision.from;
        self.spare = decision.to;
        let ends = (band_row * self.homes) as usize;
        for (end, before) in self.written_ends[ends..].iter_mut().zip(&decision.written_ends) {
            *end = (*end).max(*before);
        }
        for &(place, slot) in &decision.saved {
            if self.live.get(place) && !self.slot_of.contains_key(&place) {
                self.slots.take_back(slot);
                self.slot_of.insert(place, slot);
                self.mapped[band_row as usize] += 1;
            } else if keeps {
                // It was written elsewhere since, which may not be durable: after a crash it may be here still.
                self.slots.set_aside(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::raid4smr::settings::{BandSource, SlotOrder};
    use crate::disk::{Geometry, Media};
    use crate::rng::Rng;
    use crate::units::BlockCount;

    /// Two homes with band rows of 12 places, so many of them and a spare one, and so many slots.
    fn directory(band_rows: u64, slots: u64, collect_at: u64) -> (Directory, HomeBands) {
        directory_of(Placement::Append, band_rows, slots, collect_at)
    }

    fn directory_of(
        placement: Placement,
        band_rows: u64,
        slots: u64,
        collect_at: u64,
    ) -> (Directory, HomeBands) {
        let settings = Raid4SmrSettings {
            homes: 2,
            spares: 0,
            bands: BandSource::Assumed,
            track_blocks: 3,
            band_tracks: 2,
            placement,
            first_write: FirstWrite::Rule,
            collect_at: Some(collect_at),
            slots: SlotOrder::Lowest,
            data_capacity: None,
            offered: None,
        };
        let home = Geometry::plain(BlockCount(6 * (band_rows + 1)), Media::Shingled);
        let bands = HomeBands::new(&settings, &[&home, &home]).expect("bands");
        (Directory::new(settings, &bands, slots), bands)
    }

    #[test]
    fn a_place_that_a_crash_has_left_behind_gets_a_slot_when_no_other_is_left() {
        let (mut directory, bands) = directory(1, 4, 9);
        // The record of the block with place 3 was not written, and the next ones were.
        for (block, place) in [(20, 0), (21, 1), (22, 2), (24, 4)] {
            directory.replay_write((block, place), None, true).expect("a place");
        }
        for block in 30..37 {
            assert!(matches!(directory.write(block, &bands, true), Target::Home(_)), "{block}");
        }
        let last = directory.write(40, &bands, true);
        assert_eq!(last, Target::Slot { slot: 0, place: 3, is_new: true, was_live: false });
        assert_eq!(
            directory.find(40),
            Target::Slot { slot: 0, place: 3, is_new: false, was_live: true }
        );
    }

    /// Of a collection the homes have what was live when it was decided. Who writes before a block of it that was
    /// zeroed since would destroy it, and it is in the parity.
    #[test]
    fn a_block_zeroed_while_it_was_collected_is_not_written_over_after_a_crash() {
        let written = || {
            let (mut directory, bands) = directory_of(Placement::Static, 1, 4, 2);
            (0..12).for_each(|block| _ = directory.write(block, &bands, true));
            (directory, bands)
        };
        let zero_all = |directory: &mut Directory| (0..12).for_each(|block| directory.zero(block));
        let (mut served, bands) = written();
        for block in [3, 5] {
            assert!(matches!(served.write(block, &bands, true), Target::Slot { .. }));
        }
        let decided: Vec<Decision> = served.take_decisions().collect();
        assert_eq!((decided.len(), decided[0].live.iter().all(|it| *it)), (1, true));
        zero_all(&mut served);

        let (mut found, bands) = written();
        for (block, slot) in [(3, 0), (5, 1)] {
            found.replay_write((block, block), Some(slot), true).expect("a slot");
        }
        zero_all(&mut found);
        let held: Vec<Place> = (0..12).collect();
        found.replay_collected((0, 0), &held, |_| false).expect("a collection");
        for block in 0..12 {
            let of_both = [&mut served, &mut found].map(|it| it.write(block, &bands, false));
            assert_eq!(of_both[0], of_both[1], "block {block}");
            let is_on_last_track = block >= 6;
            assert_eq!(matches!(of_both[1], Target::Home(_)), is_on_last_track, "block {block}");
        }
        assert!(found.replay_collected((0, 1), &[12], |_| false).is_err());
    }

    #[test]
    fn no_write_is_the_cause_of_more_collections_than_was_said() {
        let mut rng = Rng::new(4, 9);
        let mut most_seen = 0;
        for turn in 0..200 {
            let (slots, collect_at) = (1 + rng.below(12), 1 + rng.below(11));
            let (mut directory, bands) = directory(3, slots, collect_at);
            // Of some a crash has left places behind.
            let kept: Vec<Place> = (0..36).filter(|_| turn % 2 == 1 && rng.below(2) == 0).collect();
            for (block, place) in (0..).zip(kept) {
                directory.replay_write((block, place), None, true).expect("a place");
            }
            for _ in 0..60 {
                let start = rng.below(36);
                let blocks = Extent::new(start, 1 + rng.below(36 - start));
                let most = directory.collections_most(blocks);
                let all = blocks.start.0..blocks.end().0;
                all.for_each(|block| _ = directory.write(block, &bands, true));
                let decided = directory.take_decisions().count() as u64;
                assert!(decided <= most, "{turn}: {decided} of {most} for {blocks:?}");
                most_seen = most_seen.max(decided);
            }
        }
        assert!(most_seen > 10, "at most {most_seen} at once");
    }
}
