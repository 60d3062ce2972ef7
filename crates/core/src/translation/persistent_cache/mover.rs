//! Live blocks that go from the tail of the log to its head instead of home, once before their band is
//! rewritten (`clean_to = "log"`; Lin's thesis of 2025 lets merged data go to the persistent cache too).
//!
//! A move reads a part of the log from its oldest live block on, writes what is live of it behind the
//! tail, and has the map point there when that is written: no earlier, so that whoever reads meanwhile
//! finds the blocks where they were. What was written, zeroed or lost meanwhile stays as it is now.
//! Each block moves once. When it is at the tail again, its band is rewritten.
//!
//! A write leaves so many slots free that a move always has room. A crash forgets what has moved: it
//! may do so once more.

use super::areas::DATA_BLOCKS_MAX;
use super::log::Log;
use super::settings::{CleanTo, PersistentCacheSettings};
use crate::buffer::BufferSlice;
use crate::extent::Extent;
use crate::map::Piece;
use crate::saved::SavedValue;
use crate::units::BlockCount;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Share of the log that moves at a time at most: one in so many of its slots.
const LOG_PARTS: u64 = 4;

/// Slots that a log keeps free for moves, and the most that move at a time; none where cleaning writes
/// home only.
pub(super) fn moved_at_a_time(settings: &PersistentCacheSettings) -> BlockCount {
    let longest = settings.packet_blocks_max.0.min(DATA_BLOCKS_MAX);
    match settings.blocking.to {
        CleanTo::Home => BlockCount::ZERO,
        CleanTo::Log => BlockCount(longest.min((settings.log_blocks.0 / LOG_PARTS).max(1))),
    }
}

/// A run of live blocks on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub(super) struct Moving {
    pub extent: Extent,
    /// The position it is read from ...
    pub from: u64,
    /// ... and the one it is written to.
    pub to: u64,
}

/// A move in progress.
#[derive(Clone, Copy, Debug, SavedValue)]
pub(super) struct Move {
    /// The part of the log that is read.
    pub from: u64,
    pub slots: u64,
    /// Where the live blocks of it go, and how many they are.
    pub to: u64,
    pub blocks: u64,
    /// What was read, then what is written.
    pub read: BufferSlice,
    pub written: BufferSlice,
    pub is_writing: bool,
}

/// The move in progress, and which blocks have moved.
#[derive(Debug, Default, SavedValue)]
pub(super) struct Mover {
    slots_max: u64,
    current: Option<Move>,
    /// The runs of it, in log order.
    runs: Vec<Moving>,
    /// The pieces that count of the move that ended last.
    placed: Vec<Piece>,
    /// Positions, from and to, of blocks that do not move again; ascending.
    moved: VecDeque<(u64, u64)>,
    /// The layer goes down when the move has ended.
    pub closes: bool,
}

impl Mover {
    /// Nothing has moved yet.
    pub fn new(settings: &PersistentCacheSettings) -> Mover {
        Mover { slots_max: moved_at_a_time(settings).0, ..Mover::default() }
    }

    /// True where blocks move at all.
    pub fn moves(&self) -> bool {
        self.slots_max > 0
    }

    /// True while blocks are on their way.
    pub fn is_moving(&self) -> bool {
        self.current.is_some()
    }

    /// The move; only called while there is one.
    pub fn get(&self) -> Move {
        self.current.expect("a move in progress")
    }

    /// What is on its way, in log order.
    pub fn runs(&self) -> &[Moving] {
        &self.runs
    }

    /// The lowest position of the log that is still to be read.
    #[inline]
    pub fn hold(&self) -> Option<u64> {
        self.current.as_ref().filter(|it| !it.is_writing).map(|it| it.from)
    }

    /// Decides what moves next, in at most so many runs, and takes the slots for it. False when nothing
    /// does: the oldest block has moved before, or cannot, and its band must be rewritten.
    #[must_use]
    pub fn start(&mut self, log: &mut Log, runs_max: u64) -> bool {
        let head = log.head();
        while self.moved.front().is_some_and(|(_, end)| *end <= head) {
            self.moved.pop_front();
        }
        if !self.moves() || log.lacks_entries() {
            // A block that moves frees no entry.
            return false;
        }
        let from = log.superseded_before();
        let ends_at = self.moved.front().map_or(u64::MAX, |(start, _)| *start);
        let slots = self.slots_max.min(ends_at.saturating_sub(from));
        let room = log.room_to_move();
        self.runs.clear();
        let mut blocks = 0;
        for piece in log.live_pieces(from, slots) {
            if blocks == room || self.runs.len() as u64 == runs_max {
                break;
            }
            let taken = piece.extent.blocks.0.min(room - blocks);
            let extent = Extent::new(piece.extent.start.0, taken);
            self.runs.push(Moving { extent, from: piece.position, to: log.tail() + blocks });
            blocks += taken;
        }
        let Some(last) = self.runs.last() else {
            return false;
        };
        let slots = last.from + last.extent.blocks.0 - from;
        let to = log.tail();
        for run in &self.runs {
            log.reserve(run.extent);
        }
        self.current = Some(Move {
            from,
            slots,
            to,
            blocks,
            read: BufferSlice::EMPTY,
            written: BufferSlice::EMPTY,
            is_writing: false,
        });
        true
    }

    /// The move has memory for what it reads and for what it writes.
    pub fn use_memory(&mut self, read: BufferSlice, written: BufferSlice) {
        if let Some(current) = &mut self.current {
            (current.read, current.written) = (read, written);
        }
    }

    /// All of it has been read.
    pub fn begin_writing(&mut self) {
        if let Some(current) = &mut self.current {
            current.is_writing = true;
        }
    }

    /// For each run the part of what was read, and its place in what is written.
    pub fn copies(&self) -> impl Iterator<Item = (BufferSlice, BufferSlice)> + '_ {
        let it = self.get();
        self.runs.iter().map(move |run| {
            let blocks = run.extent.blocks.0;
            let place = it.written.part(run.to - it.to, blocks);
            (it.read.part(run.from - it.from, blocks), place)
        })
    }

    /// What counts of the move that ended last.
    pub fn placed(&self) -> &[Piece] {
        &self.placed
    }

    /// The move is written: has the map point to what counts of it, at most as many pieces as there were
    /// runs; the rest stays where it was. With `ignores_overwrites` everything counts, whatever has become of
    /// it: a planted bug.
    pub fn end(&mut self, log: &mut Log, ignores_overwrites: bool) {
        let Some(ended) = self.current.take() else {
            return;
        };
        let placed = &mut self.placed;
        placed.clear();
        for run in &self.runs {
            if ignores_overwrites {
                placed.push(Piece { extent: run.extent, position: run.to });
                continue;
            }
            let stands = log.map().pieces(run.extent).filter_map(|piece| {
                let offset = piece.extent.start.offset_from(run.extent.start);
                let is_there = piece.position == run.from + offset;
                is_there.then(|| Piece { extent: piece.extent, position: run.to + offset })
            });
            placed.extend(stands);
        }
        placed.truncate(self.runs.len());
        log.give_up(ended.to, ended.blocks);
        for piece in placed.iter() {
            log.point_to(piece.extent, piece.position);
        }
        self.moved.push_back((ended.to, ended.to + ended.blocks));
    }

    /// The move has failed, of which nothing counts: what it was to move must go home.
    pub fn fail(&mut self, log: &mut Log) {
        if let Some(failed) = self.current.take() {
            log.give_up(failed.to, failed.blocks);
            self.moved.push_front((failed.from, failed.from + failed.slots));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translation::persistent_cache::log::{Holds, Room};
    use crate::translation::persistent_cache::settings::BlockingCleaning;
    use crate::units::Lba;

    fn mover_and_log(slots: u64) -> (Mover, Log) {
        let settings = PersistentCacheSettings {
            packet_blocks_max: BlockCount(4),
            blocking: BlockingCleaning { low_permille: 1000, slice: None, to: CleanTo::Log },
            ..PersistentCacheSettings::new(BlockCount(slots))
        };
        let log = Log::new(BlockCount(slots), settings.packet_blocks_max, None);
        let log = log.with_reserve(moved_at_a_time(&settings));
        (Mover::new(&settings), log)
    }

    fn append(log: &mut Log, start: u64, blocks: u64) -> Room {
        let extent = Extent::new(start, blocks);
        let room = log.make_room(extent, Holds::default());
        if let Room::For(blocks) = room {
            log.append(Extent { start: extent.start, blocks });
        }
        room
    }

    /// Moves what moves next, all of which counts.
    fn move_on(mover: &mut Mover, log: &mut Log) -> Option<Vec<Moving>> {
        mover.start(log, u64::MAX).then(|| {
            let runs = mover.runs().to_vec();
            mover.begin_writing();
            mover.end(log, false);
            runs
        })
    }

    #[test]
    fn each_block_moves_once_and_then_its_band_must_be_rewritten() {
        let (mut mover, mut log) = mover_and_log(16);
        for start in [0, 10, 20] {
            assert_eq!(append(&mut log, start, 4), Room::For(BlockCount(4)));
        }
        // Four slots are kept for what moves.
        assert_eq!(append(&mut log, 30, 1), Room::AfterRewrite(Lba(0)));
        log.supersede(Extent::new(1, 1));
        let runs = move_on(&mut mover, &mut log).expect("never moved");
        let run = |start, blocks, from, to| Moving { extent: Extent::new(start, blocks), from, to };
        assert_eq!(runs, [run(0, 1, 0, 12), run(2, 2, 2, 13)]);
        assert_eq!(log.map().get(Lba(2)), Some(13));
        // The move has made room for the block that was superseded.
        assert_eq!(append(&mut log, 30, 2), Room::For(BlockCount(1)));
        for start in [10, 20] {
            assert_eq!(append(&mut log, 40, 1), Room::AfterRewrite(Lba(start)));
            let runs = move_on(&mut mover, &mut log).expect("never moved");
            assert_eq!(runs.iter().map(|run| run.extent.blocks.0).sum::<u64>(), 4);
        }
        assert_eq!(append(&mut log, 40, 1), Room::AfterRewrite(Lba(0)));
        assert_eq!(move_on(&mut mover, &mut log), None, "it has moved before");
        log.supersede(Extent::new(0, 4));
        assert_eq!(append(&mut log, 40, 1), Room::For(BlockCount(1)));
    }

    #[test]
    fn what_is_written_meanwhile_stays_where_it_was_written() {
        let (mut mover, mut log) = mover_and_log(32);
        append(&mut log, 0, 4);
        assert!(mover.start(&mut log, u64::MAX));
        assert_eq!(mover.hold(), Some(0));
        append(&mut log, 1, 1);
        log.supersede(Extent::new(3, 1));
        mover.begin_writing();
        assert_eq!(mover.hold(), None);
        mover.end(&mut log, false);
        // Of three pieces that stand, as many are noted as runs were announced.
        assert_eq!(mover.placed(), [Piece { extent: Extent::new(0, 1), position: 4 }]);
        assert_eq!(log.map().get(Lba(1)), Some(8));
        assert_eq!(log.map().get(Lba(2)), Some(2), "it has not moved");
        assert_eq!(log.map().get(Lba(3)), None);
    }

    #[test]
    fn slots_on_the_way_are_neither_freed_nor_taken_for_superseded() {
        let (mut mover, mut log) = mover_and_log(16);
        append(&mut log, 0, 4);
        assert!(mover.start(&mut log, u64::MAX));
        log.supersede(Extent::new(0, 4));
        assert_eq!(log.superseded_before(), 4);
        log.free_superseded(Holds::default());
        assert_eq!((log.head(), log.tail()), (4, 8));
        mover.fail(&mut log);
        log.free_superseded(Holds::default());
        assert_eq!(log.used(), 0);
    }

    #[test]
    fn what_could_not_be_moved_goes_home() {
        let (mut mover, mut log) = mover_and_log(16);
        append(&mut log, 0, 4);
        append(&mut log, 8, 4);
        assert!(mover.start(&mut log, u64::MAX));
        mover.fail(&mut log);
        assert!(!mover.start(&mut log, u64::MAX));
        log.supersede(Extent::new(0, 4));
        log.free_superseded(Holds::default());
        let runs = move_on(&mut mover, &mut log).expect("another block");
        assert_eq!(runs[0].extent.start, Lba(8));
    }

    #[test]
    fn a_move_does_not_go_across_the_end_of_the_ring() {
        let (mut mover, mut log) = mover_and_log(16);
        append(&mut log, 0, 4);
        append(&mut log, 10, 4);
        append(&mut log, 20, 3);
        log.supersede(Extent::new(0, 4));
        append(&mut log, 30, 3);
        assert_eq!(log.slot(log.tail()), 14);
        let runs = move_on(&mut mover, &mut log).expect("never moved");
        assert_eq!(runs, [Moving { extent: Extent::new(10, 2), from: 4, to: 14 }]);
    }
}
