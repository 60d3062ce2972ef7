//! The ghost media cache: what the host believes the drive to hold in its media cache (Idler, IEEE TC 2020).
//!
//! A host-aware drive says which of its zones are sequential and not how full its media cache is. So the host keeps
//! books of its own. A write at the write pointer of a sequential zone goes home; any other takes room and an entry, and so
//! do all later ones to that zone. A report takes out the zones that are sequential again. What is cleaned and written
//! again between two reports is missed: the ghost only ever takes the drive to be fuller than it is.
//!
//! A drive that shows no zones has none of it: every write takes room, and zones are freed by the idle time that it
//! was given.

use crate::extent::Extent;
use crate::saved::{Saved, SavedValue};
use crate::units::{BlockCount, Duration, Lba};
use crate::zone::{ZoneCondition, descriptors};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Blocks of a map entry at most: a longer write takes several. *Estimated*: the 512 KiB packets of published drives (Skylight, FAST 2015);
/// a host cannot know.
const ENTRY_BLOCKS_MAX: u64 = 128;

/// What the ghost knows of the drive.
#[derive(Clone, PartialEq, Debug)]
pub struct GhostSettings {
    /// Blocks of the media cache.
    pub blocks: BlockCount,
    /// Entries of its map; none where it has room for any number.
    pub entries: Option<u64>,
    /// Blocks of the device.
    pub device: BlockCount,
    /// Blocks of a zone, or of what is taken for one.
    pub zone_blocks: BlockCount,
    /// The drive reports its zones.
    pub has_reports: bool,
    /// How full a used drive is at the start, 0 to 1.
    pub used_at_start: f64,
    /// Without reports: how long the drive waits before it cleans ...
    pub trigger: Duration,
    /// ... and how long it takes for a zone.
    pub zone_clean: Duration,
}

/// A zone in the books. A drive has 30,000 and more of them.
#[derive(Clone, Copy, Debug, SavedValue)]
struct GhostZone {
    /// What it has in the media cache.
    blocks: u32,
    entries: u32,
    /// Where the next write goes home, from the start of the zone; [`NO_POINTER`] where nothing does.
    pointer: u32,
    is_conventional: bool,
    /// It has data in the media cache.
    is_non_sequential: bool,
}

/// Of a zone to which nothing goes home.
const NO_POINTER: u32 = u32::MAX;

/// A share of the media cache, by both of its resources.
#[derive(Clone, Copy, PartialEq, Default, Debug, SavedValue)]
pub struct Used {
    /// Of its blocks.
    pub blocks: f64,
    /// Of its entries.
    pub entries: f64,
}

impl Used {
    /// The share that counts, and at most 1.
    pub fn most(self) -> f64 {
        self.blocks.max(self.entries).min(1.0)
    }

    /// The same of what is compared with it: of the resource of which more is used, the entries when both are equal.
    pub fn of_the_scarcer(self, scarcer: Used) -> f64 {
        match scarcer.blocks > scarcer.entries {
            true => self.blocks,
            false => self.entries,
        }
    }

    fn plus(self, other: Used) -> Used {
        Used { blocks: self.blocks + other.blocks, entries: self.entries + other.entries }
    }
}

/// What has happened to a zone in the books.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub enum GhostEvent {
    /// Blocks were written out of sequence, in so many entries.
    Taken {
        /// The zone.
        zone: u32,
        /// Its blocks.
        blocks: u64,
        /// Its entries.
        entries: u64,
    },
    /// All that it had is gone.
    Freed {
        /// The zone; none of what a used drive held at the start.
        zone: Option<u32>,
        /// Its blocks.
        blocks: u64,
        /// Its entries.
        entries: u64,
    },
}

/// The books.
#[derive(Debug, Saved)]
pub struct Ghost {
    #[saved(keep)]
    settings: GhostSettings,
    zones: Vec<GhostZone>,
    blocks: u64,
    entries: u64,
    /// What a used drive holds, of no zone.
    unknown: (u64, u64),
    /// Without reports: zones with data, the first that got some first.
    oldest: VecDeque<u32>,
    /// Without reports: time to clean that is not used up.
    credit: Duration,
    /// What was freed since the last period ended.
    freed: Used,
    events: Vec<GhostEvent>,
    /// All zones were reported once.
    knows_pointers: bool,
}

impl Ghost {
    /// Books of a drive of which nothing is known but how full it is.
    pub fn new(settings: GhostSettings) -> Ghost {
        let zones = settings.device.0.div_ceil(settings.zone_blocks.0.max(1)) as usize;
        let share = |of: u64| (of as f64 * settings.used_at_start) as u64;
        let unknown = (share(settings.blocks.0), share(settings.entries.unwrap_or(0)));
        let unwritten = GhostZone {
            blocks: 0,
            entries: 0,
            pointer: if settings.has_reports { 0 } else { NO_POINTER },
            is_conventional: false,
            is_non_sequential: false,
        };
        Ghost {
            zones: vec![unwritten; zones],
            blocks: unknown.0,
            entries: unknown.1,
            unknown,
            oldest: VecDeque::new(),
            credit: Duration::ZERO,
            freed: Used::default(),
            events: Vec::new(),
            knows_pointers: false,
            settings,
        }
    }

    /// How much of the media cache is in use, as far as the host can know.
    pub fn used(&self) -> Used {
        self.share(self.blocks, self.entries)
    }

    /// The drive reports its zones.
    pub fn has_reports(&self) -> bool {
        self.settings.has_reports
    }

    fn share(&self, blocks: u64, entries: u64) -> Used {
        let of = |count: u64, all: u64| count as f64 / all.max(1) as f64;
        Used {
            blocks: of(blocks, self.settings.blocks.0),
            entries: self.settings.entries.map_or(0.0, |all| of(entries, all)),
        }
    }

    /// Takes note of a write; returns the share that it takes.
    pub fn write(&mut self, extent: Extent) -> Used {
        let zone_blocks = self.settings.zone_blocks.0.max(1);
        let mut taken = Used::default();
        let mut next = extent.start.0;
        while next < extent.end().0 {
            let zone = next / zone_blocks;
            let end = extent.end().0.min((zone + 1) * zone_blocks);
            taken = taken.plus(self.write_to_zone(zone as u32, next % zone_blocks, end - next));
            next = end;
        }
        taken
    }

    fn write_to_zone(&mut self, number: u32, offset: u64, blocks: u64) -> Used {
        let Some(zone) = self.zones.get_mut(number as usize) else {
            return Used::default();
        };
        if zone.is_conventional {
            return Used::default();
        }
        if !zone.is_non_sequential && u64::from(zone.pointer) == offset {
            zone.pointer = pointer_at(offset + blocks, self.settings.zone_blocks);
            return Used::default();
        }
        // A zone that is never cleaned has at most so much in the books.
        let blocks = blocks.min(u64::from(u32::MAX - zone.blocks));
        let entries = blocks.div_ceil(ENTRY_BLOCKS_MAX);
        if !core::mem::replace(&mut zone.is_non_sequential, true) && !self.settings.has_reports {
            self.oldest.push_back(number);
        }
        zone.blocks += blocks as u32;
        zone.entries += entries as u32;
        self.blocks += blocks;
        self.entries += entries;
        self.events.push(GhostEvent::Taken { zone: number, blocks, entries });
        self.share(blocks, entries)
    }

    /// A zone is reset: nothing of it is in the media cache, and its first block is next.
    pub fn reset(&mut self, zone: Extent) {
        let number = zone.start.0 / self.settings.zone_blocks.0.max(1);
        let Some(zone) = self.zones.get_mut(number as usize) else {
            return;
        };
        if !zone.is_conventional {
            zone.pointer = 0;
            self.free(number as u32);
        }
    }

    /// The zones that a report is to be of: all at first, for their pointers, then from the first to the last that has data in
    /// the media cache, as far as is known. No other can have been cleaned.
    pub fn to_report(&self) -> Range<u32> {
        if !self.knows_pointers {
            return 0..self.zones.len() as u32;
        }
        let first = self.zones.iter().position(|zone| zone.is_non_sequential);
        let last = self.zones.iter().rposition(|zone| zone.is_non_sequential);
        match (first, last) {
            (Some(first), Some(last)) => first as u32..last as u32 + 1,
            _ => 0..0,
        }
    }

    /// All that was [to be reported](Self::to_report) was.
    pub fn report_ended(&mut self) {
        self.knows_pointers = true;
    }

    /// The drive has reported some zones: those that are sequential again were cleaned.
    pub fn report(&mut self, report: &[u8]) {
        self.free_unknown();
        let zone_blocks = self.settings.zone_blocks.0.max(1);
        for reported in descriptors(report) {
            let number = (reported.extent.start.0 / zone_blocks) as u32;
            let Some(zone) = self.zones.get_mut(number as usize) else {
                return;
            };
            zone.is_conventional = reported.condition == ZoneCondition::NoWritePointer;
            let pointer = reported.write_pointer.map(|Lba(at)| at - reported.extent.start.0);
            zone.pointer =
                pointer.map_or(NO_POINTER, |at| pointer_at(at, self.settings.zone_blocks));
            if zone.is_non_sequential && !reported.non_sequential {
                self.free(number);
            }
        }
    }

    /// The drive, which reports nothing, was given so much idle time at once.
    pub fn idled(&mut self, idle: Duration) {
        if self.settings.has_reports || idle <= self.settings.trigger {
            return;
        }
        self.credit = Duration(self.credit.0 + idle.0 - self.settings.trigger.0);
        while self.credit >= self.settings.zone_clean {
            if !self.free_unknown_zone() {
                let Some(zone) = self.oldest.pop_front() else {
                    // It has nothing to do.
                    self.credit = Duration::ZERO;
                    return;
                };
                self.free(zone);
            }
            self.credit.0 -= self.settings.zone_clean.0.max(1).min(self.credit.0);
        }
    }

    /// Forgets what a used drive held.
    fn free_unknown(&mut self) {
        let (blocks, entries) = core::mem::take(&mut self.unknown);
        self.take_out(None, blocks, entries);
    }

    /// As much of it as a zone holds at most; false where nothing is left.
    fn free_unknown_zone(&mut self) -> bool {
        let (blocks, entries) = self.unknown;
        if (blocks, entries) == (0, 0) {
            return false;
        }
        let of_zone = self.settings.zone_blocks.0;
        let (blocks, entries) = (blocks.min(of_zone), entries.min(of_zone));
        self.unknown = (self.unknown.0 - blocks, self.unknown.1 - entries);
        self.take_out(None, blocks, entries);
        true
    }

    fn free(&mut self, number: u32) {
        let zone = &mut self.zones[number as usize];
        let (blocks, entries) = (u64::from(zone.blocks), u64::from(zone.entries));
        (zone.blocks, zone.entries, zone.is_non_sequential) = (0, 0, false);
        self.take_out(Some(number), blocks, entries);
    }

    fn take_out(&mut self, zone: Option<u32>, blocks: u64, entries: u64) {
        if (blocks, entries) == (0, 0) {
            return;
        }
        self.blocks -= blocks;
        self.entries -= entries;
        self.freed = self.freed.plus(self.share(blocks, entries));
        self.events.push(GhostEvent::Freed { zone, blocks, entries });
    }

    /// What was freed since this was asked last.
    pub fn take_freed(&mut self) -> Used {
        core::mem::take(&mut self.freed)
    }

    /// What has happened since this was asked last, in order.
    pub fn take_events(&mut self) -> alloc::vec::Drain<'_, GhostEvent> {
        self.events.drain(..)
    }
}

/// The pointer of a zone behind so many blocks of it; none behind the last.
fn pointer_at(offset: u64, zone_blocks: BlockCount) -> u32 {
    match offset < zone_blocks.0.min(u64::from(NO_POINTER)) {
        true => offset as u32,
        false => NO_POINTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::{ZoneDescriptor, ZoneGeometry, ZoneId, ZoneModel, report};

    fn settings(has_reports: bool) -> GhostSettings {
        GhostSettings {
            blocks: BlockCount(1000),
            entries: Some(10),
            device: BlockCount(1000),
            zone_blocks: BlockCount(100),
            has_reports,
            used_at_start: 0.0,
            trigger: Duration::from_ms(250),
            zone_clean: Duration::from_ms(100),
        }
    }

    /// What a drive says whose zones hold so many blocks, those out of sequence named.
    fn reported(pointer: u64, non_sequential: &[u32]) -> Vec<u8> {
        let geometry = ZoneGeometry {
            model: ZoneModel::HostAware,
            blocks: BlockCount(1000),
            zone_blocks: BlockCount(100),
            conventional_zones: 1,
            open_max: None,
            active_max: None,
            optimal_open: None,
            optimal_non_sequential: None,
        };
        report(&geometry, ZoneId(0), BlockCount(1), |zone| {
            let extent = geometry.extent_of(zone);
            let is_conventional = geometry.is_conventional(zone);
            ZoneDescriptor {
                condition: match is_conventional {
                    true => ZoneCondition::NoWritePointer,
                    false => ZoneCondition::Closed,
                },
                non_sequential: non_sequential.contains(&zone.0),
                extent,
                write_pointer: (!is_conventional).then_some(extent.start + BlockCount(pointer)),
            }
        })
    }

    #[test]
    fn what_starts_at_a_pointer_goes_home_and_all_else_takes_room() {
        let mut ghost = Ghost::new(settings(true));
        ghost.report(&reported(10, &[]));
        assert_eq!(ghost.write(Extent::new(50, 9)).most(), 0.0, "the first zone is conventional");
        assert_eq!(ghost.write(Extent::new(110, 5)).most(), 0.0);
        assert_eq!(ghost.write(Extent::new(115, 5)).most(), 0.0, "the pointer has moved");
        let taken = ghost.write(Extent::new(130, 5));
        assert_eq!((taken.blocks, taken.entries), (0.005, 0.1));
        // Now nothing of the zone goes home.
        assert_eq!(ghost.write(Extent::new(120, 1)).entries, 0.1);
        // A write over two zones takes an entry of the first and goes home in neither.
        assert_eq!(ghost.write(Extent::new(198, 4)).entries, 0.2);
        assert_eq!(ghost.used().most(), 0.4);
        assert_eq!(ghost.write(Extent::new(310, 90)).most(), 0.0, "to the end of its zone");
        assert_eq!(ghost.write(Extent::new(310, 1)).entries, 0.1, "which is full");
    }

    #[test]
    fn a_report_takes_out_the_zones_that_are_sequential_again() {
        let mut ghost = Ghost::new(settings(true));
        ghost.report(&reported(0, &[]));
        ghost.write(Extent::new(150, 5));
        ghost.write(Extent::new(150, 5));
        ghost.write(Extent::new(250, 5));
        ghost.report(&reported(60, &[1, 2]));
        assert_eq!(ghost.used().most(), 0.3);
        assert_eq!(ghost.take_freed(), Used::default());
        ghost.report(&reported(60, &[2]));
        assert_eq!(ghost.used().most(), 0.1);
        let freed = ghost.take_freed();
        assert_eq!((freed.blocks, freed.entries), (0.01, 0.2));
        assert_eq!(ghost.write(Extent::new(160, 1)).most(), 0.0, "it is at the pointer again");
        let events: Vec<GhostEvent> = ghost.take_events().collect();
        let freed = GhostEvent::Freed { zone: Some(1), blocks: 10, entries: 2 };
        assert_eq!(events.last(), Some(&freed));
    }

    #[test]
    fn after_all_zones_only_those_are_asked_for_that_can_have_been_cleaned() {
        let mut ghost = Ghost::new(settings(true));
        ghost.report(&reported(0, &[]));
        assert_eq!(ghost.to_report(), 0..10, "not all have come");
        ghost.report_ended();
        assert_eq!(ghost.to_report(), 0..0);
        ghost.write(Extent::new(350, 5));
        ghost.write(Extent::new(750, 5));
        assert_eq!(ghost.to_report(), 3..8);
        ghost.report(&reported(60, &[3]));
        assert_eq!(ghost.to_report(), 3..4);
    }

    #[test]
    fn a_zone_that_is_reset_begins_anew() {
        let mut ghost = Ghost::new(settings(true));
        ghost.report(&reported(50, &[]));
        ghost.write(Extent::new(100, 10));
        assert_eq!(ghost.used().most(), 0.1);
        ghost.reset(Extent::new(100, 100));
        assert_eq!(ghost.used().most(), 0.0);
        assert_eq!(ghost.write(Extent::new(100, 100)).most(), 0.0, "all of it goes home");
        assert_eq!(ghost.write(Extent::new(100, 1)).most(), 0.1, "it is full");
        ghost.reset(Extent::new(0, 100));
        assert_eq!(ghost.write(Extent::new(50, 1)).most(), 0.0, "conventional as before");
    }

    #[test]
    fn a_used_drive_is_full_until_the_first_report() {
        let mut ghost = Ghost::new(GhostSettings { used_at_start: 0.5, ..settings(true) });
        assert_eq!(ghost.used().most(), 0.5);
        ghost.report(&reported(0, &[]));
        assert_eq!(ghost.used().most(), 0.0);
    }

    #[test]
    fn without_reports_idle_time_frees_the_oldest() {
        let mut ghost = Ghost::new(settings(false));
        for start in [0, 500, 0, 700] {
            ghost.write(Extent::new(start, 1));
        }
        assert_eq!(ghost.used().most(), 0.4);
        ghost.idled(Duration::from_ms(250));
        assert_eq!(ghost.used().most(), 0.4, "the drive had not begun");
        ghost.idled(Duration::from_ms(400));
        // 150 ms: a zone with two entries, and half of the next.
        assert_eq!(ghost.used().most(), 0.2);
        ghost.idled(Duration::from_ms(300));
        assert_eq!(ghost.used().most(), 0.1);
        ghost.idled(Duration::from_ms(2000));
        assert_eq!(ghost.used().most(), 0.0);
        ghost.write(Extent::new(0, 1));
        ghost.idled(Duration::from_ms(300));
        assert_eq!(ghost.used().most(), 0.1, "time with nothing to do is not kept");
    }

    #[test]
    fn more_than_everything_is_everything() {
        let mut ghost = Ghost::new(settings(false));
        for _ in 0..12 {
            ghost.write(Extent::new(0, 1));
        }
        assert_eq!(ghost.used().most(), 1.0);
        // Of equal shares the entries count.
        let equal = Used { blocks: 0.5, entries: 0.5 };
        assert_eq!(Used { blocks: 0.1, entries: 0.2 }.of_the_scarcer(equal), 0.2);
        let blocks = Used { blocks: 0.6, ..equal };
        assert_eq!(Used { blocks: 0.1, entries: 0.2 }.of_the_scarcer(blocks), 0.1);
    }
}
