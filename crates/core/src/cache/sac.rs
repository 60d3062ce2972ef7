//! SAC: dirty blocks leave from a few *open* zones, those with the most blocks that nobody has used for
//! long, until the open zones have none; then a cost model says whether clean blocks leave next, or
//! the dirty ones of other zones (Sun, Chai: SAC, ASPLOS 2020). The paper was not at hand: what is
//! here is a reading of the program that its authors published, with the constants of that program.
//! `docs/systems/policies.md` has every rule and where the reading differs.

use super::batch::{BATCH, check_batch};
use super::oldest_zones::OldestZones;
use super::policy::{AccessKind, CachedBlock, EvictionPolicy, PolicyEvents};
use super::policy_state::{restore_clocks, save_clocks};
use super::settings_error::{CacheSettingsError, error};
use super::zone_ranking::ZoneRanking;
use super::zones::{ZONES_MAX, ZoneSettings, Zones, log_for};
use crate::disk::Geometry;
use crate::map::{LruList, LruLists};
use crate::saved::{Saved, SavedValue};
use crate::state::{StateError, StateReader, StateWriter};
use crate::units::Lba;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// A block is stale once so many accesses have passed since its last: this share of the capacity.
/// (`OODstamp` in the authors' `sac.c`.)
const STALE_PERCENT: u64 = 80;
/// One by this is the share of the capacity that leaves clean before costs are compared again: the
/// program has 100,000 of 8,000,000 blocks (`NumEvict_thistime_apprx` and `NBLOCK_SSD_CACHE`).
const CLEAN_DIVISOR: u64 = 80;
/// What a band costs that is rewritten, and for each dirty block of it (`costmodel_fx_wa`).
const REWRITE_US: u64 = 435_833;
const REWRITE_BLOCK_US: u64 = 728;
/// What a read costs that a clean block would have served (`Lat_SMR_read`).
const READ_US: u64 = 14_000;

/// The options of SAC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SacSettings {
    /// The unit that is opened.
    pub zones: ZoneSettings,
    /// Blocks of the log below, which bound how much is open; the log that the device below publishes, when
    /// absent.
    pub log_blocks: Option<u64>,
    /// Dirty blocks of a zone that leave together at most, 1 or more.
    pub batch: u64,
}

impl SacSettings {
    /// The settings as numbers, which a saved state keeps.
    pub(super) fn identity(&self) -> [(&'static str, u64); 3] {
        [
            ("zone_blocks", self.zones.identity()),
            ("log_blocks", self.log_blocks.unwrap_or(0)),
            (BATCH, self.batch),
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
        check_batch("sac", self.batch)?;
        if self.log_blocks == Some(0) {
            return error("log_blocks is 0: the policy sac needs 1 or more".into());
        }
        let log = log_for("sac", self.log_blocks, backing)?;
        let zones = self.zones.of("sac", backing, ZONES_MAX)?;
        let count = zones.count();
        Ok(Box::new(Sac {
            batch: usize::try_from(self.batch).unwrap_or(usize::MAX),
            log_blocks: log.single_blocks(),
            stale_after: (u128::from(capacity_blocks) * u128::from(STALE_PERCENT) / 100) as u64,
            clean_blocks_max: (capacity_blocks / CLEAN_DIVISOR).max(1),
            clock: 0,
            phase: Phase::Over,
            map: zones,
            zones: vec![Zone::default(); count],
            ranking: ZoneRanking::new(count),
            open: Vec::new(),
            candidates: Vec::new(),
            open_dirty: 0,
            oldest_open: OldestZones::new(count),
            blocks: Vec::new(),
            recency: LruList::new(),
            fresh: None,
            clean: CleanBlocks { order: LruList::new(), blocks: 0, stale: 0 },
            dirty: LruLists::new(count),
            dirty_blocks: 0,
        }))
    }
}

/// Open zones, and a cost model between clean and dirty blocks.
#[derive(Saved)]
struct Sac {
    batch: usize,
    log_blocks: u64,
    /// Accesses after which a block is stale.
    stale_after: u64,
    /// Clean blocks that leave in a phase at most.
    clean_blocks_max: u64,
    /// Blocks looked up so far.
    clock: u64,
    phase: Phase,
    #[saved(keep)]
    map: Zones,
    zones: Vec<Zone>,
    /// The zones that may be opened, by their stale dirty blocks.
    ranking: ZoneRanking,
    /// The zones that were opened last. They are not opened twice in a row.
    open: Vec<u32>,
    /// The zones that would be opened next.
    candidates: Vec<u32>,
    /// Dirty blocks of the zones in `open`.
    open_dirty: u64,
    oldest_open: OldestZones,
    /// By entry.
    blocks: Vec<Block>,
    recency: LruList,
    /// The least recently used block that is not known to be stale. All older ones are.
    fresh: Option<u32>,
    clean: CleanBlocks,
    /// The dirty blocks of each zone.
    dirty: LruLists,
    dirty_blocks: u64,
}

/// The clean blocks, by their last use.
#[derive(SavedValue)]
struct CleanBlocks {
    order: LruList,
    blocks: u64,
    /// Those that are stale.
    stale: u64,
}

/// What leaves until the costs are compared again.
#[derive(Clone, Copy, PartialEq, Eq, SavedValue)]
enum Phase {
    /// They are to be compared now.
    Over,
    /// The dirty blocks of the open zones.
    Dirty,
    /// So many clean blocks yet.
    Clean(u64),
}

#[derive(Clone, Copy, Default, SavedValue)]
struct Zone {
    /// Its dirty blocks, and those of them that are stale.
    dirty: u32,
    stale: u32,
    /// It was opened last.
    is_open: bool,
}

impl Zone {
    /// Its weight among the zones that may be opened.
    fn weight(&self) -> u32 {
        match self.is_open || self.dirty == 0 {
            true => 0,
            false => self.stale.saturating_add(1),
        }
    }
}

/// A cached block.
#[derive(Clone, Copy, SavedValue)]
struct Block {
    /// The clock of its last access.
    clock: u64,
    zone: u32,
    is_dirty: bool,
    is_stale: bool,
}

impl Sac {
    /// Takes in a block whose last access is the newest.
    fn add(&mut self, entry: u32, lba: Lba, is_dirty: bool, clock: u64) {
        let zone = self.map.zone_of(lba);
        let block = Block { clock, zone, is_dirty, is_stale: false };
        if entry as usize >= self.blocks.len() {
            self.blocks.resize(entry as usize + 1, block);
        }
        self.blocks[entry as usize] = block;
        self.link(entry);
    }

    /// Puts a block at the newest end of its lists.
    fn link(&mut self, entry: u32) {
        let Block { clock, zone, is_dirty, .. } = self.blocks[entry as usize];
        self.recency.push_newest(entry);
        self.fresh = self.fresh.or(Some(entry));
        if !is_dirty {
            self.clean.order.push_newest(entry);
            self.clean.blocks += 1;
            return;
        }
        self.dirty.push_newest(zone as usize, entry);
        self.dirty_blocks += 1;
        let known = &mut self.zones[zone as usize];
        known.dirty += 1;
        if known.is_open {
            self.open_dirty += 1;
            self.oldest_open.add(zone, clock);
        }
        self.rank(zone);
    }

    /// Takes a block out of its lists.
    fn unlink(&mut self, entry: u32) {
        let Block { zone, is_dirty, is_stale, .. } = self.blocks[entry as usize];
        if self.fresh == Some(entry) {
            self.fresh = self.recency.next_newer(entry);
        }
        self.recency.remove(entry);
        self.blocks[entry as usize].is_stale = false;
        if !is_dirty {
            self.clean.order.remove(entry);
            self.clean.blocks -= 1;
            self.clean.stale -= u64::from(is_stale);
            return;
        }
        self.dirty.remove(zone as usize, entry);
        self.dirty_blocks -= 1;
        let known = &mut self.zones[zone as usize];
        known.dirty -= 1;
        known.stale -= u32::from(is_stale);
        self.open_dirty -= u64::from(known.is_open);
        self.rank(zone);
    }

    fn rank(&mut self, zone: u32) {
        self.ranking.set(zone, self.zones[zone as usize].weight());
    }

    /// Finds the blocks that have become stale.
    fn age(&mut self) {
        while let Some(entry) = self.fresh {
            let block = &mut self.blocks[entry as usize];
            if self.clock - block.clock < self.stale_after {
                return;
            }
            block.is_stale = true;
            let Block { zone, is_dirty, .. } = *block;
            self.fresh = self.recency.next_newer(entry);
            if is_dirty {
                self.zones[zone as usize].stale += 1;
                self.rank(zone);
            } else {
                self.clean.stale += 1;
            }
        }
    }

    /// What leaves from now on.
    fn decide(&mut self) {
        self.age();
        if self.dirty_blocks == 0 {
            self.phase = Phase::Clean(self.clean_blocks_max);
            return;
        }
        self.choose_candidates();
        let is_clean_cheaper = self.clean.blocks > 0 && self.is_clean_cheaper();
        if is_clean_cheaper {
            self.phase = Phase::Clean(self.clean_blocks_max);
        } else {
            self.open_candidates();
            self.phase = Phase::Dirty;
        }
        while let Some(zone) = self.candidates.pop() {
            self.rank(zone);
        }
    }

    /// Chooses the zones to open next: those with the most stale dirty blocks, as many as lie in the
    /// log together if it had room for nothing else, and one at least.
    fn choose_candidates(&mut self) {
        if self.ranking.first().is_none() {
            // Whatever is dirty lies in the zones that were opened last.
            self.close();
        }
        let mut blocks = 0;
        while let Some(zone) = self.ranking.first() {
            blocks += self.map.blocks_of(zone);
            if blocks > self.log_blocks && !self.candidates.is_empty() {
                return;
            }
            self.candidates.push(zone);
            self.ranking.set(zone, 0);
        }
    }

    /// Whether a stale block is got rid of at less cost by giving up clean blocks than by giving up the
    /// dirty ones of the candidates.
    fn is_clean_cheaper(&self) -> bool {
        let (mut dirty_us, mut dirty_stale) = (0, 0);
        for zone in &self.candidates {
            let zone = &self.zones[*zone as usize];
            dirty_us += REWRITE_US + REWRITE_BLOCK_US * u64::from(zone.dirty);
            dirty_stale += u64::from(zone.stale);
        }
        let leaving = self.clean.blocks.min(self.clean_blocks_max);
        let clean_stale = self.clean.stale.min(leaving);
        let clean_us = (leaving - clean_stale) * READ_US;
        let wide = |us: u64, stale: u64| u128::from(us) * u128::from(stale + 1);
        wide(clean_us, dirty_stale) < wide(dirty_us, clean_stale)
    }

    /// Closes the zones that were opened last, and opens the candidates.
    fn open_candidates(&mut self) {
        self.close();
        for at in 0..self.candidates.len() {
            self.open_zone(self.candidates[at]);
        }
    }

    fn open_zone(&mut self, number: u32) {
        let zone = &mut self.zones[number as usize];
        zone.is_open = true;
        self.open_dirty += u64::from(zone.dirty);
        self.open.push(number);
        if let Some(oldest) = self.dirty.oldest_first(number as usize).next() {
            self.oldest_open.add(number, self.blocks[oldest as usize].clock);
        }
    }

    /// Closes the zones that were opened last.
    fn close(&mut self) {
        while let Some(zone) = self.open.pop() {
            self.zones[zone as usize].is_open = false;
            self.rank(zone);
        }
        self.open_dirty = 0;
    }

    /// The oldest dirty blocks leave of the open zone whose oldest is the oldest.
    fn give_up_dirty(&mut self, victims: &mut Vec<u32>) {
        let (zones, blocks, dirty) = (&self.zones, &self.blocks, &self.dirty);
        let zone = self.oldest_open.first(|zone| {
            let oldest = dirty.oldest_first(zone as usize).next()?;
            zones[zone as usize].is_open.then(|| blocks[oldest as usize].clock)
        });
        let from = victims.len();
        if let Some(zone) = zone {
            victims.extend(self.dirty.oldest_first(zone as usize).take(self.batch));
        }
        if (victims.len() - from) as u64 >= self.open_dirty {
            self.phase = Phase::Over;
        }
    }

    /// The least recently used clean block leaves.
    fn give_up_clean(&mut self, left: u64, victims: &mut Vec<u32>) {
        victims.extend(self.clean.order.oldest());
        self.phase = match left > 1 && self.clean.blocks > 1 {
            true => Phase::Clean(left - 1),
            false => Phase::Over,
        };
    }
}

impl EvictionPolicy for Sac {
    fn on_insert(&mut self, entry: u32, lba: Lba, kind: AccessKind, _: &mut PolicyEvents) {
        self.clock += 1;
        self.add(entry, lba, kind == AccessKind::Write, self.clock);
    }

    fn on_access(&mut self, entry: u32, kind: AccessKind, _: &mut PolicyEvents) {
        self.clock += 1;
        self.unlink(entry);
        let block = &mut self.blocks[entry as usize];
        block.clock = self.clock;
        block.is_dirty |= kind == AccessKind::Write;
        self.link(entry);
    }

    fn victims(&mut self, victims: &mut Vec<u32>, _: &mut PolicyEvents) {
        let is_over = match self.phase {
            Phase::Over => true,
            // What was to leave has left for other reasons.
            Phase::Dirty => self.open_dirty == 0,
            Phase::Clean(_) => self.clean.blocks == 0,
        };
        if is_over {
            self.decide();
        }
        match self.phase {
            Phase::Clean(left) => self.give_up_clean(left, victims),
            Phase::Dirty | Phase::Over => self.give_up_dirty(victims),
        }
    }

    fn on_remove(&mut self, entry: u32) {
        self.unlink(entry);
    }

    fn save(&self, numbers: &[u32], state: &mut StateWriter) {
        let clock_of = |entry: u32| (numbers[entry as usize], self.blocks[entry as usize].clock);
        save_clocks(self.clock, self.recency.oldest_first().map(clock_of).collect(), state);
        state.put_u64(match self.phase {
            Phase::Over => 0,
            Phase::Dirty => 1,
            Phase::Clean(left) => left.saturating_add(1),
        });
        state.put_u64(self.open.len() as u64);
        self.open.iter().for_each(|zone| state.put_u64(u64::from(*zone)));
    }

    fn restore(
        &mut self,
        cached: &[CachedBlock],
        state: &mut StateReader<'_>,
    ) -> Result<(), StateError> {
        let order;
        (self.clock, order) = restore_clocks(cached, state)?;
        self.phase = match state.take_u64()? {
            0 => Phase::Over,
            1 => Phase::Dirty,
            left => Phase::Clean(left - 1),
        };
        for _ in 0..state.take_u64()? {
            let number = state.take_u64()?;
            match self.zones.get(usize::try_from(number).unwrap_or(usize::MAX)) {
                Some(zone) if !zone.is_open => self.open_zone(number as u32),
                _ => {
                    return Err(StateError::new(
                        "an open zone of the saved cache is there twice or past the end of the device",
                    ));
                }
            }
        }
        for (clock, number) in order {
            let CachedBlock { lba, dirty } = cached[number as usize];
            self.add(number, lba, dirty, clock);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{LogSize, Media};
    use crate::units::BlockCount;

    const SETTINGS: SacSettings =
        SacSettings { zones: ZoneSettings::Equal(4), log_blocks: Some(4), batch: 2 };

    /// SAC for 10 blocks over 32.
    fn sac() -> Box<dyn EvictionPolicy> {
        let backing = Geometry::plain(BlockCount(32), Media::Conventional);
        SETTINGS.build(10, &backing).expect("settings that fit")
    }

    fn victims(sac: &mut dyn EvictionPolicy) -> Vec<u32> {
        let mut victims = Vec::new();
        sac.victims(&mut victims, &mut PolicyEvents::default());
        victims.iter().for_each(|entry| sac.on_remove(*entry));
        victims
    }

    /// Writes blocks, the entry of each is its number.
    fn write(sac: &mut dyn EvictionPolicy, blocks: &[u32]) {
        for block in blocks {
            let lba = Lba(u64::from(*block));
            sac.on_insert(*block, lba, AccessKind::Write, &mut PolicyEvents::default());
        }
    }

    #[test]
    fn a_zone_is_emptied_in_batches_and_rests_while_another_is_open() {
        let mut sac = sac();
        write(&mut *sac, &[0, 4, 1, 8, 2, 5, 9, 10, 12, 13]);
        // 0 and 4 are stale: zone 0 is the lower of two, and all of it leaves.
        assert_eq!(victims(&mut *sac), [0, 1]);
        write(&mut *sac, &[3, 6]);
        assert_eq!(victims(&mut *sac), [2, 3]);
        write(&mut *sac, &[0, 1]);
        // Now it rests, whatever it has.
        assert_eq!(victims(&mut *sac), [4, 5]);
        assert_eq!(victims(&mut *sac), [6]);
        assert_eq!(victims(&mut *sac), [8, 9]);
    }

    #[test]
    fn a_zone_that_rests_is_opened_when_no_other_has_dirty_blocks() {
        let mut sac = sac();
        write(&mut *sac, &[0]);
        assert_eq!(victims(&mut *sac), [0]);
        write(&mut *sac, &[1]);
        assert_eq!(victims(&mut *sac), [1]);
    }

    #[test]
    fn what_it_needs_is_said_when_it_is_not_there() {
        let plain = Geometry::plain(BlockCount(32), Media::Conventional);
        let with_log = Geometry {
            log: Some(LogSize { blocks: BlockCount(8), entries: None }),
            ..Geometry::plain(BlockCount(32), Media::Conventional)
        };
        let (zones, log_blocks) = (ZoneSettings::Bands, None);
        for (settings, backing, message) in [
            (SacSettings { log_blocks, ..SETTINGS }, &plain, "needs the size of the log"),
            (SacSettings { zones, ..SETTINGS }, &with_log, "needs bands"),
            (SacSettings { batch: 0, ..SETTINGS }, &plain, "destage_batch is 0"),
            (SacSettings { log_blocks: Some(0), ..SETTINGS }, &plain, "log_blocks is 0"),
        ] {
            let refused = settings.build(10, backing).err().expect("a refusal").message;
            assert!(refused.contains(message), "{refused}");
        }
        assert!(SacSettings { log_blocks, ..SETTINGS }.build(10, &with_log).is_ok());
    }

    #[test]
    fn an_open_zone_past_the_end_or_there_twice_is_refused() {
        for zones in [&[8][..], &[3, 3], &[u64::MAX]] {
            let mut state = StateWriter::default();
            for word in [0, 1, zones.len() as u64].iter().chain(zones) {
                state.put_u64(*word);
            }
            let bytes = state.into_bytes();
            assert!(sac().restore(&[], &mut StateReader::new(&bytes)).is_err(), "{zones:?}");
        }
    }
}
