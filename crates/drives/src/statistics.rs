//! What a simulated disk did, by who wanted it, how and where.

use super::arm::{AccessTime, Direction};
use crate::HeatMapRecorder;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Cause, Operation};
use imbrex_core::units::{Duration, Instant};
use std::cell::{Cell, RefCell};

const CAUSES: usize = Cause::ALL.len();

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
            | Operation::ZoneReport => None,
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    operations: Cell<u64>,
    blocks: Cell<u64>,
}

/// Use of one named part of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AreaUse {
    /// As given to [`DiskStatistics::set_areas`].
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
}

/// Counters of one disk, shared between the disk and whoever reports on it.
///
/// Operations and blocks are counted when they arrive; busy time, and the blocks of areas, when
/// the medium moves them, which for cached writes is later.
#[derive(Default)]
pub struct DiskStatistics {
    tallies: [[Tally; CAUSES]; 4],
    busy_ns: [[Cell<u64>; CAUSES]; 2],
    seek_ns: Cell<u64>,
    rotation_ns: Cell<u64>,
    transfer_ns: Cell<u64>,
    cache_read_hits: Cell<u64>,
    areas: RefCell<Vec<AreaUse>>,
    write_map: RefCell<Option<WriteMap>>,
}

fn add(cell: &Cell<u64>, amount: u64) {
    cell.set(cell.get() + amount);
}

impl DiskStatistics {
    /// Operations of a kind that arrived for a cause.
    pub fn operations(&self, kind: OperationKind, cause: Cause) -> u64 {
        self.tallies[kind as usize][cause as usize].operations.get()
    }

    /// Blocks of the operations of a kind that arrived for a cause.
    pub fn blocks(&self, kind: OperationKind, cause: Cause) -> u64 {
        self.tallies[kind as usize][cause as usize].blocks.get()
    }

    /// Time the medium was busy in a direction for a cause.
    pub fn busy(&self, direction: Direction, cause: Cause) -> Duration {
        Duration(self.busy_ns[direction as usize][cause as usize].get())
    }

    /// Time the medium was busy. Where operations overlap, as on a solid-state disk, time counts
    /// once.
    pub fn busy_total(&self) -> Duration {
        Duration(self.busy_ns.iter().flatten().map(Cell::get).sum())
    }

    /// Time spent moving the arm, switching heads and settling.
    pub fn seek_time(&self) -> Duration {
        Duration(self.seek_ns.get())
    }

    /// Time spent waiting for blocks to come round.
    pub fn rotation_time(&self) -> Duration {
        Duration(self.rotation_ns.get())
    }

    /// Time blocks spent under the heads, or on the channels of a solid-state disk.
    pub fn transfer_time(&self) -> Duration {
        Duration(self.transfer_ns.get())
    }

    /// Reads served from the write cache of the drive.
    pub fn cache_read_hits(&self) -> u64 {
        self.cache_read_hits.get()
    }

    /// Names parts of the disk to be counted apart from now on. They must not overlap and must
    /// come in ascending order; an operation counts where it starts.
    pub fn set_areas(&self, areas: impl IntoIterator<Item = (String, Extent)>) {
        let areas: Vec<AreaUse> = areas
            .into_iter()
            .map(|(name, extent)| AreaUse {
                name,
                extent,
                blocks: [0; 2],
                busy: [Duration::ZERO; 2],
            })
            .collect();
        let ascending = areas.is_sorted_by(|a, b| a.extent.end() <= b.extent.start);
        assert!(ascending, "areas must be disjoint and in ascending order");
        self.areas.replace(areas);
    }

    /// The parts named by [`set_areas`](Self::set_areas) and their use.
    pub fn areas(&self) -> Vec<AreaUse> {
        self.areas.borrow().clone()
    }

    /// Records from now on where and when the medium is written inside `extent`.
    pub fn record_writes(&self, extent: Extent, recorder: HeatMapRecorder) {
        self.write_map.replace(Some(WriteMap { extent, recorder }));
    }

    /// Takes out the map of writes and ends its recording.
    pub fn take_write_map(&self) -> Option<HeatMapRecorder> {
        self.write_map.take().map(|map| map.recorder)
    }

    #[inline]
    pub(super) fn arrived(&self, kind: OperationKind, cause: Cause, blocks: u64) {
        let tally = &self.tallies[kind as usize][cause as usize];
        add(&tally.operations, 1);
        add(&tally.blocks, blocks);
    }

    #[inline]
    pub(super) fn hit(&self) {
        add(&self.cache_read_hits, 1);
    }

    /// The medium was busy for `busy_ns` without moving blocks.
    pub(super) fn waited(&self, direction: Direction, cause: Cause, busy_ns: u64) {
        add(&self.busy_ns[direction as usize][cause as usize], busy_ns);
    }

    /// The medium moved `extent` and was busy for `busy_ns` until `end`.
    #[inline]
    pub(super) fn moved(
        &self,
        direction: Direction,
        cause: Cause,
        extent: Extent,
        busy_ns: u64,
        time: AccessTime,
        end: Instant,
    ) {
        add(&self.busy_ns[direction as usize][cause as usize], busy_ns);
        add(&self.seek_ns, time.seek_ns);
        add(&self.rotation_ns, time.rotation_ns);
        add(&self.transfer_ns, time.transfer_ns);
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
            map.recorder.add(end.0, inside.start.0, inside.blocks.0);
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
        statistics.set_areas(areas.map(|(name, extent)| (name.to_string(), extent)));
        statistics.record_writes(Extent::new(20, 10), HeatMapRecorder::new(4, 2));
        let time = AccessTime {
            seek_ns: 1,
            rotation_ns: 2,
            transfer_ns: 3,
        };
        for (direction, start) in [
            (Direction::Write, 9),
            (Direction::Read, 25),
            (Direction::Write, 12),
            (Direction::Write, 29),
        ] {
            let extent = Extent::new(start, 2);
            statistics.moved(direction, Cause::Cleaning, extent, 7, time, Instant(5));
        }
        let areas = statistics.areas();
        assert_eq!(areas[0].blocks_in(Direction::Write), 2);
        assert_eq!(areas[0].busy_in(Direction::Write), Duration(7));
        assert_eq!(areas[1].blocks, [2, 2]);
        assert_eq!(statistics.busy_total(), Duration(28));
        assert_eq!(
            statistics.busy(Direction::Read, Cause::Cleaning),
            Duration(7)
        );
        assert_eq!(statistics.rotation_time(), Duration(8));
        let map = statistics.take_write_map().unwrap().heat_map(10);
        assert_eq!(map.blocks.iter().sum::<u32>(), 1);
    }

    #[test]
    #[should_panic(expected = "disjoint")]
    fn overlapping_areas_are_refused() {
        let areas = [
            (String::new(), Extent::new(0, 10)),
            (String::new(), Extent::new(9, 10)),
        ];
        DiskStatistics::default().set_areas(areas);
    }
}
