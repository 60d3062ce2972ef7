//! What a simulated disk did, by who wanted it, how and where.

use super::arm::{AccessTime, Direction};
use super::tallies::{Tallies, add};
use crate::{HeatMap, HeatMapRecorder};
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Cause, Operation};
use imbrex_core::units::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

/// What the medium has moved, and how long it was busy with that.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    pub direction: Direction,
    pub cause: Cause,
    pub extent: Extent,
    pub busy_ns: u64,
    pub time: AccessTime,
    /// When it was done.
    pub end: Instant,
}

/// Kinds of operations that are counted apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum OperationKind {
    /// Reads.
    Read,
    /// Writes, cached or not.
    Write,
    /// Zeroes and trims.
    Zero,
    /// Flushes.
    Flush,
}

impl OperationKind {
    /// The kind of an operation; `None` for zone commands.
    #[inline]
    pub fn of(operation: Operation) -> Option<OperationKind> {
        match operation {
            Operation::Read => Some(OperationKind::Read),
            Operation::Write { .. } => Some(OperationKind::Write),
            Operation::Zero { .. } => Some(OperationKind::Zero),
            Operation::Flush => Some(OperationKind::Flush),
            Operation::ZoneOpen
            | Operation::ZoneClose
            | Operation::ZoneReset
            | Operation::ZoneFinish
            | Operation::ZoneReport
            | Operation::Copy(_) => None,
        }
    }
}

/// Use of one named part of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AreaUse {
    /// As given to [`DiskStatistics::add_areas`].
    pub name: String,
    /// The blocks of the area.
    pub extent: Extent,
    /// Blocks read from and written to the medium.
    pub blocks: [u64; 2],
    /// Time the medium was busy, reading and writing.
    pub busy: [Duration; 2],
}

impl AreaUse {
    /// Blocks moved in one direction.
    pub fn blocks_in(&self, direction: Direction) -> u64 {
        self.blocks[direction as usize]
    }

    /// Time busy in one direction.
    pub fn busy_in(&self, direction: Direction) -> Duration {
        self.busy[direction as usize]
    }
}

struct WriteMap {
    extent: Extent,
    recorder: HeatMapRecorder,
    /// When it begins.
    from: Instant,
}

/// Counters of one disk, shared between the disk and whoever reports on it: [`Tallies`] of all of it,
/// and what is counted apart.
#[derive(Default)]
pub struct DiskStatistics {
    all: Tallies,
    cache_read_hits: Cell<u64>,
    /// Somebody has asked for one of those below.
    counts_apart: Cell<bool>,
    parts: RefCell<Vec<(Extent, Rc<Tallies>)>>,
    areas: RefCell<Vec<AreaUse>>,
    write_map: RefCell<Option<WriteMap>>,
}

impl Deref for DiskStatistics {
    type Target = Tallies;

    fn deref(&self) -> &Tallies {
        &self.all
    }
}

impl DiskStatistics {
    /// Reads served from the write cache of the drive.
    pub fn cache_read_hits(&self) -> u64 {
        self.cache_read_hits.get()
    }

    /// Counts what is done to the blocks of a part from now on. An operation counts where it starts,
    /// a flush where the blocks start that it bears; one that bears none is in no part.
    pub fn count_part(&self, extent: Extent) -> Rc<Tallies> {
        self.counts_apart.set(true);
        let tallies = Rc::default();
        let mut parts = self.parts.borrow_mut();
        parts.push((extent, Rc::clone(&tallies)));
        tallies
    }

    fn of_parts(&self, extent: Extent, count: impl Fn(&Tallies)) {
        let parts = self.parts.borrow();
        let holds = |part: &Extent| !extent.is_empty() && part.contains(extent.start);
        let parts = parts.iter().filter(|(part, _)| holds(part));
        parts.for_each(|(_, tallies)| count(tallies));
    }

    /// Names parts of the disk to be counted apart from now on, beside those that are. They must not overlap;
    /// an operation counts where it starts.
    pub fn add_areas(&self, areas: impl IntoIterator<Item = (String, Extent)>) {
        self.counts_apart.set(true);
        let mut known = self.areas.borrow_mut();
        known.extend(areas.into_iter().map(|(name, extent)| AreaUse {
            name,
            extent,
            blocks: [0; 2],
            busy: [Duration::ZERO; 2],
        }));
        known.sort_by_key(|area| (area.extent.start, area.extent.blocks));
        let disjoint = known.is_sorted_by(|a, b| a.extent.end() <= b.extent.start);
        assert!(disjoint, "areas must be disjoint");
    }

    /// The parts named by [`add_areas`](Self::add_areas) and their use.
    pub fn areas(&self) -> Vec<AreaUse> {
        self.areas.borrow().clone()
    }

    /// Records from now on where and when the medium is written inside `extent`.
    pub fn record_writes(&self, extent: Extent, recorder: HeatMapRecorder) {
        self.counts_apart.set(true);
        self.write_map.replace(Some(WriteMap { extent, recorder, from: Instant::ZERO }));
    }

    /// The map of writes of a run that ended at an instant; none where nothing asked for it.
    pub fn write_map(&self, ended_at: Instant) -> Option<HeatMap> {
        let mut map = self.write_map.borrow_mut();
        map.as_mut().map(|map| map.recorder.heat_map(ended_at.since(map.from).0))
    }

    /// What was counted so far is forgotten, so that what comes from an instant on is counted. The map of writes
    /// begins there.
    pub fn restart(&self, from: Instant) {
        self.all.restart();
        self.cache_read_hits.set(0);
        for (_, part) in self.parts.borrow().iter() {
            part.restart();
        }
        for area in self.areas.borrow_mut().iter_mut() {
            (area.blocks, area.busy) = ([0; 2], [Duration::ZERO; 2]);
        }
        if let Some(map) = self.write_map.borrow_mut().as_mut() {
            map.recorder = map.recorder.emptied();
            map.from = from;
        }
    }

    #[inline]
    pub(super) fn arrived(&self, kind: OperationKind, cause: Cause, extent: Extent) {
        let blocks = match kind {
            OperationKind::Flush => 0,
            _ => extent.blocks.0,
        };
        self.all.arrived(kind, cause, blocks);
        if self.counts_apart.get() {
            self.of_parts(extent, |part| part.arrived(kind, cause, blocks));
        }
    }

    #[inline]
    pub(super) fn hit(&self) {
        add(&self.cache_read_hits, 1);
    }

    /// The medium was busy for `busy_ns` with an operation on `extent` that moved no blocks.
    pub(super) fn waited(&self, direction: Direction, cause: Cause, extent: Extent, busy_ns: u64) {
        self.all.waited(direction, cause, busy_ns);
        self.of_parts(extent, |part| part.waited(direction, cause, busy_ns));
    }

    /// The medium moved something.
    #[inline]
    pub(super) fn moved(&self, moved: &Moved) {
        self.all.moved(moved.direction, moved.cause, moved.busy_ns, moved.time);
        if self.counts_apart.get() {
            self.moved_apart(moved);
        }
    }

    /// What is counted apart of what the medium moved.
    fn moved_apart(&self, moved: &Moved) {
        let Moved { direction, cause, extent, busy_ns, time, end } = *moved;
        self.of_parts(extent, |part| part.moved(direction, cause, busy_ns, time));
        let mut areas = self.areas.borrow_mut();
        if !areas.is_empty() {
            let index = areas.partition_point(|area| area.extent.end() <= extent.start);
            if let Some(area) = areas.get_mut(index)
                && area.extent.contains(extent.start)
            {
                area.blocks[direction as usize] += extent.blocks.0;
                area.busy[direction as usize] += Duration(busy_ns);
            }
        }
        if direction == Direction::Write
            && let Some(map) = self.write_map.borrow_mut().as_mut()
            && let Some(inside) = extent.intersection(map.extent)
        {
            map.recorder.add(end.since(map.from).0, inside.start.0, inside.blocks.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_medium_moved_is_counted_where_it_starts() {
        let statistics = DiskStatistics::default();
        let areas = [("log", Extent::new(0, 10)), ("home", Extent::new(20, 10))];
        statistics.add_areas(areas.map(|(name, extent)| (name.to_string(), extent)));
        statistics.record_writes(Extent::new(20, 10), HeatMapRecorder::new(4, 2));
        let time = AccessTime { seek_ns: 1, rotation_ns: 2, transfer_ns: 3, seek_tracks: 4 };
        for (direction, start) in [
            (Direction::Write, 9),
            (Direction::Read, 25),
            (Direction::Write, 12),
            (Direction::Write, 29),
        ] {
            let extent = Extent::new(start, 2);
            let (cause, busy_ns, end) = (Cause::Cleaning, 7, Instant(5));
            statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end });
        }
        let areas = statistics.areas();
        assert_eq!(areas[0].blocks_in(Direction::Write), 2);
        assert_eq!(areas[0].busy_in(Direction::Write), Duration(7));
        assert_eq!(areas[1].blocks, [2, 2]);
        assert_eq!(statistics.busy_total(), Duration(28));
        assert_eq!(statistics.busy(Direction::Read, Cause::Cleaning), Duration(7));
        assert_eq!(statistics.rotation_time(), Duration(8));
        assert_eq!(statistics.seek_tracks(), 16);
        let map = statistics.write_map(Instant(10)).unwrap();
        assert_eq!(map.blocks.iter().sum::<u32>(), 1);
    }

    #[test]
    fn parts_count_what_starts_in_them_and_flushes_that_bear_their_blocks() {
        let statistics = DiskStatistics::default();
        let parts = [Extent::new(0, 10), Extent::new(10, 20)].map(|it| statistics.count_part(it));
        let time = AccessTime { seek_ns: 1, rotation_ns: 2, transfer_ns: 3, seek_tracks: 4 };
        for (kind, start, blocks) in [
            (OperationKind::Read, 9, 5),
            (OperationKind::Write, 10, 2),
            (OperationKind::Write, 29, 1),
            (OperationKind::Flush, 10, 20),
            (OperationKind::Flush, 0, 0),
        ] {
            statistics.arrived(kind, Cause::Destage, Extent::new(start, blocks));
        }
        for (start, busy_ns) in [(9, 5), (10, 7), (29, 1)] {
            let (extent, end) = (Extent::new(start, 1), Instant(9));
            let (direction, cause) = (Direction::Write, Cause::Destage);
            statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end });
        }
        statistics.waited(Direction::Write, Cause::Host, Extent::new(10, 20), 11);
        let read = |part: &Tallies| part.blocks_of(OperationKind::Read);
        let wrote = |part: &Tallies| part.operations_of(OperationKind::Write);
        let flushed = |part: &Tallies| part.operations_of(OperationKind::Flush);
        assert_eq!(parts.each_ref().map(|part| read(part)), [5, 0]);
        assert_eq!(parts.each_ref().map(|part| wrote(part)), [0, 2]);
        assert_eq!(parts.each_ref().map(|part| flushed(part)), [0, 1]);
        assert_eq!(flushed(&statistics), 2, "one of nobody");
        assert_eq!(statistics.blocks_of(OperationKind::Flush), 0);
        let busy = parts.each_ref().map(|part| part.busy_total().0);
        assert_eq!(busy, [5, 19]);
        assert_eq!(statistics.busy_total(), Duration(24));
        assert_eq!(parts.each_ref().map(|part| part.seek_time().0), [1, 2]);
    }

    #[test]
    fn what_was_counted_before_a_restart_is_forgotten_everywhere() {
        let statistics = DiskStatistics::default();
        let part = statistics.count_part(Extent::new(0, 100));
        statistics.add_areas([("home".to_string(), Extent::new(0, 100))]);
        statistics.record_writes(Extent::new(0, 100), HeatMapRecorder::new(4, 2));
        let time = AccessTime { seek_ns: 1, rotation_ns: 2, transfer_ns: 3, seek_tracks: 4 };
        let write = |start: u64, end: u64| {
            let extent = Extent::new(start, 2);
            statistics.arrived(OperationKind::Write, Cause::Host, extent);
            let (direction, cause, busy_ns) = (Direction::Write, Cause::Host, 7);
            statistics.moved(&Moved { direction, cause, extent, busy_ns, time, end: Instant(end) });
            statistics.hit();
        };
        let told = || {
            let of = |it: &Tallies| (it.operations_of(OperationKind::Write), it.busy_total().0);
            let seeks = (statistics.seek_time().0, statistics.rotation_time().0);
            let more = (statistics.seek_tracks(), statistics.transfer_time().0);
            let areas = statistics.areas()[0].blocks_in(Direction::Write);
            (of(&statistics), of(&part), areas, seeks, more, statistics.cache_read_hits())
        };
        write(0, 5);
        let once = told();
        write(10, 2_000_000_000);
        assert_ne!(told(), once);
        statistics.restart(Instant(2_000_000_000));
        write(20, 2_000_000_005);
        assert_eq!(told(), once);
        let map = statistics.write_map(Instant(2_000_000_010)).expect("a map");
        assert_eq!((map.blocks.iter().sum::<u32>(), map.time_bin_s), (2, 0.001));
    }

    #[test]
    #[should_panic(expected = "disjoint")]
    fn overlapping_areas_are_refused() {
        let areas = [(String::new(), Extent::new(0, 10)), (String::new(), Extent::new(9, 10))];
        DiskStatistics::default().add_areas(areas);
    }
}
