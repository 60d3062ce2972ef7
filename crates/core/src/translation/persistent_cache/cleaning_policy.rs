//! What decides when bands are cleaned, which of them, and how much: the part of cleaning that
//! another policy would replace.

use super::log::{Holds, Log};
use super::rewrite::ACCESS;
use super::settings::{BlockingCleaning, IdleCleaning, OnArrival, PersistentCacheSettings, Victim};
use super::shape::Shape;
use crate::map::BandId;
use crate::units::Duration;

/// What becomes of a rewrite in idle time when a request arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// It stops at the next chunk.
    Stops,
    /// It stops at once: chunks in flight are done anew.
    StopsAtOnce,
    /// It finishes its band.
    Finishes,
}

/// How much of the log is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LogUse {
    pub used_blocks: u64,
    pub blocks: u64,
    pub entries: u64,
    pub entries_max: Option<u64>,
}

impl LogUse {
    /// How much of a log is in use.
    pub fn of(log: &Log, settings: &PersistentCacheSettings) -> LogUse {
        LogUse {
            used_blocks: log.used(),
            blocks: settings.log_blocks.0,
            entries: log.map().entries(),
            entries_max: settings.entries_max,
        }
    }
}

/// Cleaning as the settings of a drive describe it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CleaningPolicy {
    idle: Option<IdleCleaning>,
    blocking: BlockingCleaning,
}

impl CleaningPolicy {
    /// The policy that the settings describe.
    pub fn new(settings: &PersistentCacheSettings) -> CleaningPolicy {
        CleaningPolicy { idle: settings.idle, blocking: settings.blocking }
    }

    /// How long no request must have been served before cleaning begins; `None` cleans for want of
    /// room only.
    pub fn idle_after(&self) -> Option<Duration> {
        self.idle.map(|idle| idle.after)
    }

    /// What becomes of a rewrite in idle time when a request arrives; `rest` estimates how long it
    /// would still take.
    pub fn on_arrival(&self, rest: impl FnOnce(&IdleCleaning) -> Duration) -> Arrival {
        let Some(idle) = &self.idle else {
            return Arrival::Stops;
        };
        match idle.on_arrival {
            OnArrival::FinishChunk => Arrival::Stops,
            OnArrival::FinishBand => Arrival::Finishes,
            OnArrival::FinishIfShort if rest(idle) <= idle.finish_within => Arrival::Finishes,
            OnArrival::FinishIfShort => Arrival::Stops,
            OnArrival::Abort => Arrival::StopsAtOnce,
        }
    }

    /// Whether the next idle period goes on where a request has stopped a rewrite.
    pub fn resumes(&self) -> bool {
        self.idle.is_none_or(|idle| idle.resumes)
    }

    /// The band to be cleaned next in idle time; none when the log holds nothing. `end_of` says where what was written to a
    /// band ends, in blocks from its start.
    pub fn idle_victim(
        &self,
        log: &mut Log,
        holds: Holds,
        shape: &Shape,
        end_of: impl Fn(BandId) -> u64,
    ) -> Option<BandId> {
        let idle = self.idle?;
        match idle.victim {
            Victim::Fifo => {
                log.free_superseded(holds);
                self.oldest_band(log, shape)
            }
            Victim::Lba => {
                let lowest = log.map().pieces(shape.whole()).next();
                lowest.map(|piece| shape.bands.band_of(piece.extent.start))
            }
            Victim::MostDirty => most_dirty_band(log, shape),
            Victim::Cheapest => cheapest_band(log, shape, &idle, end_of),
        }
    }

    /// The band to be cleaned next for want of room; none when enough of the log is free.
    pub fn victim_for_room(&self, log: &mut Log, shape: &Shape) -> Option<BandId> {
        match self.wants_more_room(LogUse::of(log, &shape.settings)) {
            true => self.oldest_band(log, shape),
            false => None,
        }
    }

    fn oldest_band(&self, log: &mut Log, shape: &Shape) -> Option<BandId> {
        log.oldest_live().map(|lba| shape.bands.band_of(lba))
    }

    /// True when cleaning for want of room goes on behind the band that a write needs.
    pub fn cleans_beyond_need(&self) -> bool {
        self.blocking.low_permille < 1000
    }

    /// True when more of the slots or of the entries are in use than cleaning for want of room
    /// leaves.
    fn wants_more_room(&self, log: LogUse) -> bool {
        let low = u128::from(self.blocking.low_permille);
        let is_above = |used: u64, of: u64| u128::from(used) * 1000 > u128::from(of) * low;
        is_above(log.used_blocks, log.blocks)
            || log.entries_max.is_some_and(|max| is_above(log.entries, max))
    }

    /// The longest cleaning for want of room between two requests that can be served; with `None`
    /// they are served at once.
    pub fn slice(&self) -> Option<Duration> {
        self.blocking.slice
    }
}

/// The band that takes the least time for each entry that it frees; of several the lowest.
fn cheapest_band(
    log: &Log,
    shape: &Shape,
    idle: &IdleCleaning,
    end_of: impl Fn(BandId) -> u64,
) -> Option<BandId> {
    // A band is read and written from its lowest block in the log to the end of what was written.
    let time_ns = |band: BandId, from: u64, entries: u64| {
        let chunks = (2 * end_of(band).saturating_sub(from)).div_ceil(shape.chunk_blocks);
        chunks * idle.chunk_time.0 + (entries + 2) * ACCESS.0
    };
    let mut cheapest: Option<(BandId, u64, u64)> = None;
    let mut offer = |(band, from, entries): (BandId, u64, u64)| {
        let time_ns = time_ns(band, from, entries);
        let is_less = |(_, least_ns, of): (BandId, u64, u64)| {
            u128::from(time_ns) * u128::from(of) < u128::from(least_ns) * u128::from(entries)
        };
        if cheapest.is_none_or(is_less) {
            cheapest = Some((band, time_ns, entries));
        }
    };
    let mut of_band: Option<(BandId, u64, u64)> = None;
    for piece in log.map().pieces(shape.whole()) {
        let (band, offset) = shape.band_and_offset(piece.extent.start);
        match &mut of_band {
            Some((current, _, entries)) if *current == band => *entries += 1,
            _ => of_band.replace((band, offset, 1)).into_iter().for_each(&mut offer),
        }
    }
    of_band.into_iter().for_each(&mut offer);
    cheapest.map(|(band, ..)| band)
}

/// The band with the most live blocks in the log; of several the lowest.
fn most_dirty_band(log: &Log, shape: &Shape) -> Option<BandId> {
    let (mut most, mut of_band) = (None, (BandId(0), 0));
    for piece in log.map().pieces(shape.whole()) {
        let band = shape.bands.band_of(piece.extent.start);
        if of_band.0 != band {
            of_band = (band, 0);
        }
        of_band.1 += piece.extent.blocks.0;
        if most.is_none_or(|(_, blocks)| blocks < of_band.1) {
            most = Some(of_band);
        }
    }
    most.map(|(band, _)| band)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Geometry, Media};
    use crate::extent::Extent;
    use crate::map::BandTable;
    use crate::translation::persistent_cache::conduct::Conduct;
    use crate::translation::persistent_cache::disks::Disks;
    use crate::translation::persistent_cache::layout::Layout;
    use crate::units::BlockCount;
    use alloc::sync::Arc;

    /// Four bands of 64 blocks and a log of 32.
    fn shape() -> Shape {
        let settings = PersistentCacheSettings::new(BlockCount(32));
        let bands = Arc::new(BandTable::new([64; 4].map(BlockCount)));
        let disk = Geometry::plain(BlockCount(8192), Media::SolidState);
        let layout = Layout::new(&settings, &bands, Disks::One(&disk)).expect("a layout");
        let conduct = Conduct::of_a_drive(&settings);
        Shape::new(settings, conduct, bands, layout)
    }

    fn policy(victim: Victim, on_arrival: OnArrival) -> CleaningPolicy {
        let ms = Duration::from_ms;
        let mut settings = PersistentCacheSettings::new(BlockCount(32));
        settings.idle = Some(IdleCleaning {
            victim,
            on_arrival,
            ..IdleCleaning::new(ms(250), BlockCount(8), ms(1))
        });
        settings.blocking.low_permille = 500;
        CleaningPolicy::new(&settings)
    }

    /// Band 2 has the oldest block and one, band 3 the most, band 1 the lowest.
    fn log() -> Log {
        let mut log = Log::new(BlockCount(32), BlockCount(8), None);
        for extent in [
            Extent::new(2 * 64, 2),
            Extent::new(3 * 64, 6),
            Extent::new(64, 4),
            Extent::new(2 * 64 + 1, 1),
        ] {
            log.append(extent);
        }
        log
    }

    #[test]
    fn each_victim_is_the_one_its_name_says() {
        let shape = shape();
        for (victim, band) in [(Victim::Fifo, 2), (Victim::MostDirty, 3), (Victim::Lba, 1)] {
            let policy = policy(victim, OnArrival::Abort);
            let chosen = policy.idle_victim(&mut log(), Holds::default(), &shape, |_| 64);
            assert_eq!(chosen, Some(BandId(band)), "{victim:?}");
            let mut empty = Log::new(BlockCount(32), BlockCount(8), None);
            let none = policy.idle_victim(&mut empty, Holds::default(), &shape, |_| 64);
            assert_eq!(none, None);
        }
    }

    /// Two entries each: band 0 from its start on, band 1 near its end, band 2 in its middle: 64, 4 and 32 blocks.
    #[test]
    fn the_cheapest_takes_the_least_time_for_an_entry() {
        let shape = shape();
        let cheapest = policy(Victim::Cheapest, OnArrival::Abort);
        let mut log = Log::new(BlockCount(32), BlockCount(8), None);
        for start in [0, 4, 64 + 60, 64 + 62, 128 + 32, 128 + 40] {
            log.append(Extent::new(start, 1));
        }
        let chosen = |log: &mut Log, end| {
            cheapest.idle_victim(log, Holds::default(), &shape, |_| end).map(|band| band.0)
        };
        assert_eq!(chosen(&mut log, 64), Some(1));
        log.supersede(Extent::new(64, 64));
        assert_eq!(chosen(&mut log, 64), Some(2));
        // Where little was written accesses are all; those of one entry cost more of them, and of equal ones it is the lowest.
        log.append(Extent::new(192, 1));
        assert_eq!(chosen(&mut log, 0), Some(0));
    }

    #[test]
    fn cleaning_for_room_ends_at_its_share() {
        let (shape, policy) = (shape(), policy(Victim::Fifo, OnArrival::Abort));
        let mut log = log();
        assert_eq!(log.used(), 13);
        assert_eq!(policy.victim_for_room(&mut log, &shape), None);
        log.append(Extent::new(0, 4));
        assert_eq!(log.used(), 17, "more than half of 32");
        assert_eq!(policy.victim_for_room(&mut log, &shape), Some(BandId(2)));
    }

    #[test]
    fn a_request_stops_a_clean_unless_little_is_left() {
        let arrival = |on_arrival, rest_ms| {
            let rest = Duration::from_ms(rest_ms);
            policy(Victim::Fifo, on_arrival).on_arrival(|_| rest)
        };
        assert_eq!(arrival(OnArrival::FinishIfShort, 100), Arrival::Finishes);
        assert_eq!(arrival(OnArrival::FinishIfShort, 101), Arrival::Stops);
        assert_eq!(arrival(OnArrival::FinishChunk, 1), Arrival::Stops);
        assert_eq!(arrival(OnArrival::FinishBand, 9999), Arrival::Finishes);
        assert_eq!(arrival(OnArrival::Abort, 1), Arrival::StopsAtOnce);
    }
}
