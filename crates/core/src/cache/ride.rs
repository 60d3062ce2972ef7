//! RIDE: dirty blocks leave where the rewrite is already paid for. Imbrex's own policy;
//! `docs/systems/ride.md` has the reasoning and the measurements.
//!
//! The first block of a band that enters the log below opens a *window*. It lasts until the log has
//! taken in as much as it holds; then the translation rewrites the band. Every block of the band that
//! is appended inside the window is merged by that same rewrite: it *rides*. What a policy costs is
//! therefore the number of windows that it opens. RIDE sends down the blocks whose window is open.
//! When there are none, it opens the band that frees the most for the longest: the one with the
//! greatest product of how many dirty blocks it has and how long they have been idle in sum, for its
//! length.

mod ripeness;
mod share;

use crate::saved::{Saved, SavedValue};

#[cfg(test)]
mod tests;
mod windows;

use super::entries::NONE;
use super::oldest_zones::OldestZones;
use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::policy_state::{restore_clocks, save_clocks};
use super::settings_error::{CacheSettingsError, error};
use super::zones::{ZONES_MAX, ZoneSettings, Zones, log_for};
use crate::counters::{Counter, Gauge, RIDE};
use crate::disk::{Geometry, LogSize};
use crate::extent::Extent;
use crate::map::LruList;
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use ripeness::Ripeness;
use share::Share;
use windows::Windows;

const WINDOWS_OPENED: usize = RIDE.place(Counter::WindowsOpened);
const RIDES: usize = RIDE.place(Counter::Rides);

/// The options of RIDE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RideSettings {
    /// The parts of the address space that are rewritten together.
    pub zones: ZoneSettings,
    /// Blocks of the log below; the log that the device below publishes, when absent.
    pub log_blocks: Option<u64>,
    /// Dirty blocks that leave together at most, 1 or more.
    pub batch: u64,
    /// Time of a band rewrite over the time of a random read, 1 or more: what decides between clean
    /// and dirty blocks.
    pub rewrite_over_read: u64,
    /// How the cache is shared between clean and dirty blocks.
    pub split: Split,
}

crate::words! {
    /// How RIDE shares the cache between clean and dirty blocks.
    pub enum Split {
        /// It learns how many blocks may be dirty, from the clean blocks that are wanted again soon after
        /// they left and from the windows that dirty ones opened.
        Adaptive = "adaptive",
        /// The same, also from the dirty blocks that are wanted again soon after they left.
        TwoGhosts = "two-ghosts",
        /// A clean block leaves before any dirty one.
        Fixed = "fixed",
    }
}

impl RideSettings {
    /// The settings as numbers, which a saved state keeps.
    pub(super) fn identity(&self) -> [(&'static str, u64); 5] {
        let split = match self.split {
            Split::Adaptive => 0,
            Split::Fixed => 1,
            Split::TwoGhosts => 2,
        };
        [
            ("zone_blocks", self.zones.identity()),
            ("log_blocks", self.log_blocks.unwrap_or(0)),
            ("batch", self.batch),
            ("rewrite_over_read", self.rewrite_over_read),
            ("split number", split),
        ]
    }

    /// The policy over a device, for a cache of so many blocks.
    ///
    /// # Errors
    /// When a setting is out of range, or neither it nor the device below says how large the log or
    /// where the bands are.
    pub(super) fn build(
        &self,
        capacity_blocks: u64,
        backing: &Geometry,
    ) -> Result<Box<dyn EvictionPolicy>, CacheSettingsError> {
        for (name, value) in [
            ("batch", self.batch),
            ("rewrite_over_read", self.rewrite_over_read),
            ("log_blocks", self.log_blocks.unwrap_or(1)),
        ] {
            if value == 0 {
                return error(format!("{name} is 0: the policy ride needs 1 or more"));
            }
        }
        let log = log_for("ride", self.log_blocks, backing)?;
        let zones = self.zones.of("ride", backing, ZONES_MAX)?;
        Ok(Box::new(Ride::new(self, capacity_blocks, log, zones)))
    }
}

/// Evict where the rewrite is already paid for.
#[derive(Saved)]
pub(super) struct Ride {
    batch: u64,
    /// Blocks looked up so far.
    clock: u64,
    #[saved(keep)]
    zones: Zones,
    bands: Vec<Band>,
    blocks: Vec<Block>,
    clean: LruList,
    clean_blocks: u64,
    dirty_blocks: u64,
    windows: Windows,
    riders: OldestZones,
    ripeness: Ripeness,
    share: Share,
}

/// The dirty cached blocks of a band, in a list from the least to the most recently used.
#[derive(Clone, Copy, SavedValue)]
struct Band {
    oldest: u32,
    newest: u32,
    /// How many.
    dirty: u32,
    /// Sum of the clocks of their last accesses. It may wrap: only its distance from as many times the
    /// clock counts, which is how long they have been idle in sum.
    clocks: u64,
}

impl Band {
    /// How many dirty blocks it has, times the time for which they have been idle in sum, for its
    /// length of so many blocks.
    fn ripeness(&self, clock: u64, blocks: u64) -> f64 {
        let idle = u64::from(self.dirty).wrapping_mul(clock).wrapping_sub(self.clocks);
        f64::from(self.dirty) * idle as f64 / blocks as f64
    }

    /// By how much its ripeness grows while the clock grows by one.
    fn slope(&self, blocks: u64) -> f64 {
        f64::from(self.dirty) * f64::from(self.dirty) / blocks as f64
    }
}

/// What is known of a cached block.
#[derive(Clone, Copy, SavedValue)]
struct Block {
    lba: Lba,
    /// The clock of its last access.
    clock: u64,
    /// The band of a dirty block; [`NONE`] of a clean one.
    band: u32,
    /// Of a dirty block: its neighbours in the list of its band.
    older: u32,
    newer: u32,
}

impl Ride {
    fn new(settings: &RideSettings, capacity_blocks: u64, log: LogSize, zones: Zones) -> Ride {
        let count = zones.count();
        let none = Band { oldest: NONE, newest: NONE, dirty: 0, clocks: 0 };
        Ride {
            batch: settings.batch,
            clock: 0,
            bands: vec![none; count],
            blocks: Vec::new(),
            clean: LruList::new(),
            clean_blocks: 0,
            dirty_blocks: 0,
            windows: Windows::new(log, count),
            riders: OldestZones::new(count),
            ripeness: Ripeness::new(count),
            share: Share::new(settings, capacity_blocks),
            zones,
        }
    }

    /// Takes in a block whose last access is the newest.
    fn add(&mut self, entry: u32, lba: Lba, dirty: bool, clock: u64) {
        let block = Block { lba, clock, band: NONE, older: NONE, newer: NONE };
        if entry as usize >= self.blocks.len() {
            self.blocks.resize(entry as usize + 1, block);
        }
        self.blocks[entry as usize] = block;
        match dirty {
            true => self.add_dirty(entry),
            false => {
                self.clean.push_newest(entry);
                self.clean_blocks += 1;
            }
        }
    }

    /// A block is dirty from now on.
    fn add_dirty(&mut self, entry: u32) {
        let Block { lba, clock, .. } = self.blocks[entry as usize];
        let number = self.zones.zone_of(lba);
        self.blocks[entry as usize].band = number;
        self.link_newest(entry);
        let band = &mut self.bands[number as usize];
        band.dirty += 1;
        band.clocks = band.clocks.wrapping_add(clock);
        self.dirty_blocks += 1;
        let (band, blocks) = (*band, self.zones.blocks_of(number));
        let ripeness = band.ripeness(self.clock, blocks);
        self.ripeness.raise(number, self.clock, ripeness, band.slope(blocks));
        if self.windows.is_open(number) {
            let oldest = self.blocks[band.oldest as usize].clock;
            self.riders.add(number, oldest);
        }
    }

    /// A dirty block is used now. Its band has as many of them as before, and is no riper.
    fn touch_dirty(&mut self, entry: u32) {
        let Block { band, clock, newer, .. } = self.blocks[entry as usize];
        let band = &mut self.bands[band as usize];
        band.clocks = band.clocks.wrapping_add(self.clock - clock);
        self.blocks[entry as usize].clock = self.clock;
        if newer != NONE {
            self.unlink(entry);
            self.link_newest(entry);
        }
    }

    /// A block is dirty no more.
    fn remove_dirty(&mut self, entry: u32) {
        self.unlink(entry);
        let Block { clock, band, .. } = self.blocks[entry as usize];
        let band = &mut self.bands[band as usize];
        band.dirty -= 1;
        band.clocks = band.clocks.wrapping_sub(clock);
        self.blocks[entry as usize].band = NONE;
        self.dirty_blocks -= 1;
    }

    /// Puts a block at the newest end of the list of its band.
    fn link_newest(&mut self, entry: u32) {
        let band = &mut self.bands[self.blocks[entry as usize].band as usize];
        let older = core::mem::replace(&mut band.newest, entry);
        match older {
            NONE => band.oldest = entry,
            _ => self.blocks[older as usize].newer = entry,
        }
        let block = &mut self.blocks[entry as usize];
        (block.older, block.newer) = (older, NONE);
    }

    /// Takes a block out of the list of its band.
    fn unlink(&mut self, entry: u32) {
        let Block { band, older, newer, .. } = self.blocks[entry as usize];
        let band = &mut self.bands[band as usize];
        match older {
            NONE => band.oldest = newer,
            _ => self.blocks[older as usize].newer = newer,
        }
        match newer {
            NONE => band.newest = older,
            _ => self.blocks[newer as usize].older = older,
        }
    }

    /// The dirty blocks of a band, the least recently used first.
    fn dirty_of(&self, band: &Band) -> impl Iterator<Item = u32> + '_ {
        let exists = |entry: u32| (entry != NONE).then_some(entry);
        core::iter::successors(exists(band.oldest), move |entry| {
            exists(self.blocks[*entry as usize].newer)
        })
    }

    /// The band with an open window whose oldest dirty block is the oldest.
    fn rider(&mut self) -> Option<u32> {
        let (bands, blocks, windows) = (&self.bands, &self.blocks, &self.windows);
        self.riders.first(|number| {
            let band = &bands[number as usize];
            let rides = band.dirty > 0 && windows.is_open(number);
            rides.then(|| blocks[band.oldest as usize].clock)
        })
    }

    /// The band whose opening frees the most, when none that is open has a dirty block.
    fn ripest(&mut self) -> Option<u32> {
        let (bands, zones) = (&self.bands, &self.zones);
        self.ripeness.ripest(self.clock, |number| {
            let (band, blocks) = (&bands[number], zones.blocks_of(number as u32));
            (band.dirty > 0).then(|| (band.ripeness(self.clock, blocks), band.slope(blocks)))
        })
    }

    /// The least recently used clean block leaves.
    fn give_up_clean(&mut self, victims: &mut Vec<u32>) {
        if let Some(entry) = self.clean.oldest() {
            self.share.left_clean(self.blocks[entry as usize].lba);
            victims.push(entry);
        }
    }

    /// The oldest dirty blocks of a band leave.
    fn give_up_dirty(&mut self, number: u32, victims: &mut Vec<u32>, events: &mut PolicyEvents) {
        let Band { oldest, dirty, .. } = self.bands[number as usize];
        let mut entry = oldest;
        self.windows.end_run();
        for _ in 0..self.batch.min(u64::from(dirty)) {
            let Block { lba, newer, .. } = self.blocks[entry as usize];
            let opens = self.windows.append(number, lba);
            self.share.left_dirty(lba, opens);
            events.count(RIDE.counters, if opens { WINDOWS_OPENED } else { RIDES });
            victims.push(entry);
            entry = newer;
        }
        self.riders.add(number, self.blocks[oldest as usize].clock);
    }

    /// An access has been dealt with.
    fn end_access(&mut self, events: &mut PolicyEvents) {
        self.share.learn(self.clock, self.dirty_blocks);
        events.gauge = Some((Gauge::DirtyAllowed, self.share.dirty_allowed));
    }
}

impl EvictionPolicy for Ride {
    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, events: &mut PolicyEvents) {
        self.clock += 1;
        self.share.came_in(lba, kind);
        self.add(entry, lba, kind == AccessKind::Write, self.clock);
        self.end_access(events);
    }

    fn on_access(&mut self, entry: u32, kind: AccessKind, events: &mut PolicyEvents) {
        self.clock += 1;
        let block = &mut self.blocks[entry as usize];
        if block.band != NONE {
            self.touch_dirty(entry);
        } else {
            block.clock = self.clock;
            match kind {
                AccessKind::Read => self.clean.touch(entry),
                AccessKind::Write => {
                    self.clean.remove(entry);
                    self.clean_blocks -= 1;
                    self.add_dirty(entry);
                }
            }
        }
        self.end_access(events);
    }

    fn on_write_around(&mut self, extent: Extent, events: &mut PolicyEvents) {
        self.windows.end_run();
        for lba in (extent.start.0..extent.end().0).map(Lba) {
            let band = self.zones.zone_of(lba);
            let opens = self.windows.append(band, lba);
            events.count(RIDE.counters, if opens { WINDOWS_OPENED } else { RIDES });
            if opens {
                // Whatever is dirty in the band rides from now on.
                self.riders.add(band, 0);
            }
        }
    }

    fn victims(&mut self, victims: &mut Vec<u32>, events: &mut PolicyEvents) {
        if self.clean_blocks > 0 && self.dirty_blocks <= self.share.dirty_allowed {
            return self.give_up_clean(victims);
        }
        match self.rider().or_else(|| self.ripest()) {
            Some(band) => self.give_up_dirty(band, victims, events),
            None => self.give_up_clean(victims),
        }
    }

    fn on_remove(&mut self, entry: u32) {
        match self.blocks[entry as usize].band {
            NONE => {
                self.clean.remove(entry);
                self.clean_blocks -= 1;
            }
            _ => self.remove_dirty(entry),
        }
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        let entries = self.clean.oldest_first();
        let entries = entries.chain(self.bands.iter().flat_map(|band| self.dirty_of(band)));
        let clock_of = |entry: u32| (numbers[entry as usize], self.blocks[entry as usize].clock);
        save_clocks(self.clock, entries.map(clock_of).collect(), state);
        self.share.save(state);
        let room = self.share.capacity_blocks - self.share.remembered_blocks();
        self.windows.save(room, state);
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        let order;
        (self.clock, order) = restore_clocks(cached, state)?;
        self.share.restore(self.clock, state)?;
        self.windows.restore(state)?;
        for (clock, number) in order {
            let CachedBlock { lba, dirty } = cached[number as usize];
            self.add(number, lba, dirty, clock);
        }
        Ok(())
    }
}
