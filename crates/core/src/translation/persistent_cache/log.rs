//! The books of the log: a ring of one-block slots, freed in the order they were filled.
//!
//! Positions count appended blocks from the start of time, so a position is a sequence number as
//! well; the slot is the position modulo the capacity. A superseded slot stays in use until the
//! head of the ring passes it: nothing is compacted (PORE, MSST 2017, section III, lazy reading). Where space is freed
//! by zones, [`ZoneSlots`] says which slots are in use instead: see there.

use super::zone_slots::ZoneSlots;
use crate::extent::Extent;
use crate::map::{ExtentMap, Piece};
use crate::saved::SavedValue;
use crate::units::{BlockCount, Lba};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Longest run one record of the log can hold.
pub const PACKET_BLOCKS_MAX: u64 = (1 << RUN_BITS) - 1;
/// First address a record of the log cannot hold (4 PiB).
pub const LBA_MAX: u64 = 1 << (64 - RUN_BITS);

/// Bits of a record that hold its length; the others hold its address.
const RUN_BITS: u32 = 24;

/// Whether a run can be appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// This many blocks can, as one entry in adjoining slots.
    For(BlockCount),
    /// Nothing can until the band of the block in the oldest slot has been rewritten.
    AfterRewrite(Lba),
    /// Nothing can until a read of the oldest slot has finished.
    AfterRead,
    /// Nothing can until what superseded the oldest slot is durable.
    AfterFlush,
}

/// What keeps slots from being freed, beside their being live.
#[derive(Clone, Copy, Default, Debug)]
pub struct Holds {
    /// No slot at or after this position may be freed: it is being read.
    pub position: Option<u64>,
    /// Frees live slots and held ones as well: a planted bug.
    pub ignored: bool,
}

/// The ring, the map from addresses to positions, and which slots are live.
#[derive(Debug, SavedValue)]
pub struct Log {
    pub(super) capacity: u64,
    packet_max: u64,
    entries_max: u64,
    /// Slots that [`make_room`](Self::make_room) leaves free: what moves to the head needs them.
    reserve: u64,
    pub(super) head: u64,
    pub(super) tail: u64,
    pub(super) map: ExtentMap,
    /// One bit per slot: the map points to it.
    live: Vec<u64>,
    /// What was appended from `head` to `tail`, runs packed as address and length.
    runs: VecDeque<u64>,
    /// Slots before this position may be used again: what superseded them is durable. All of them
    /// in a log that outlives nothing.
    released: u64,
    /// Every slot in use before this position is superseded.
    superseded_before: u64,
    /// Which slots are in use, where they are freed by zones and not at the head.
    of_zones: Option<ZoneSlots>,
}

impl Log {
    /// An empty log of `capacity` slots whose map holds `entries_max` entries, each a run of at
    /// most `packet_max` blocks.
    pub fn new(capacity: BlockCount, packet_max: BlockCount, entries_max: Option<u64>) -> Log {
        Log {
            capacity: capacity.0,
            packet_max: packet_max.0,
            entries_max: entries_max.unwrap_or(u64::MAX),
            reserve: 0,
            head: 0,
            tail: 0,
            map: ExtentMap::new(),
            live: vec![0; capacity.0.div_ceil(64) as usize],
            runs: VecDeque::new(),
            released: u64::MAX,
            superseded_before: 0,
            of_zones: None,
        }
    }

    /// An empty log whose slots are used again only when they are [released](Self::release).
    pub fn new_durable(
        capacity: BlockCount,
        packet_max: BlockCount,
        entries_max: Option<u64>,
    ) -> Log {
        Log { released: 0, ..Log::new(capacity, packet_max, entries_max) }
    }

    /// The same log, with so many slots, fewer than it has, that only what moves to its head may use.
    pub fn with_reserve(self, reserve: BlockCount) -> Log {
        Log { reserve: reserve.0, ..self }
    }

    /// The same log, empty, whose slots are free when the zone of their blocks is cleaned. Nothing moves in it, none of
    /// it is skipped and it outlives nothing.
    pub(super) fn freed_by_zones(self, zone_blocks: BlockCount, zones: u32) -> Log {
        let slots = ZoneSlots::new(BlockCount(self.capacity), zone_blocks, zones);
        Log { of_zones: Some(slots), ..self }
    }

    /// Where the live blocks are.
    #[inline]
    pub fn map(&self) -> &ExtentMap {
        &self.map
    }

    /// Slots in use, superseded ones included.
    #[inline]
    pub fn used(&self) -> u64 {
        match &self.of_zones {
            None => self.tail - self.head,
            Some(zones) => zones.used(),
        }
    }

    /// The position the next block appended will have.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// The position of the oldest slot in use.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The slot of a position.
    #[inline]
    pub fn slot(&self, position: u64) -> u64 {
        position % self.capacity
    }

    /// True when `second` follows `first` both in address and in slot, so that one operation
    /// reads both.
    #[inline]
    pub fn adjoin(&self, first: &Piece, second: &Piece) -> bool {
        first.extent.end() == second.extent.start
            && first.position + first.extent.blocks.0 == second.position
            && self.slot(second.position) != 0
    }

    /// Longest run that is appended as one entry.
    pub fn packet_max(&self) -> u64 {
        self.packet_max
    }

    /// The first position whose slot is not superseded. What superseded those before it need not
    /// be durable.
    pub fn superseded_before(&mut self) -> u64 {
        self.superseded_before = self.superseded_before.max(self.head);
        while self.superseded_before < self.tail && !self.is_live(self.superseded_before) {
            self.superseded_before += 1;
        }
        self.superseded_before
    }

    /// Frees the oldest slots, or those of cleaned zones, as far as they are superseded and may be used again.
    pub fn free_superseded(&mut self, holds: Holds) {
        if let Some(zones) = &mut self.of_zones {
            return zones.settle(holds);
        }
        while self.head < self.tail
            && !self.is_live(self.head)
            && holds.position != Some(self.head)
            && self.head < self.released
        {
            self.free_oldest(1);
        }
    }

    /// The address in the oldest live slot, or the first one of its zone.
    pub fn oldest_live(&mut self) -> Option<Lba> {
        if let Some(zones) = &self.of_zones {
            return zones.oldest();
        }
        let first = self.superseded_before();
        let mut at = self.head;
        self.runs.iter().find_map(|run| {
            let (lba, blocks) = unpack(*run);
            at += blocks;
            (first < at).then(|| Lba(lba + blocks - (at - first)))
        })
    }

    /// True when a superseded slot may be used again at once.
    pub fn frees_at_once(&self) -> bool {
        self.released == u64::MAX
    }

    /// Every position before which slots may be used again.
    pub fn released(&self) -> u64 {
        self.released
    }

    /// What superseded the slots before a position has become durable.
    pub fn release(&mut self, position: u64) {
        self.released = self.released.max(position);
    }

    /// Makes room for the first blocks of `extent`, which is about to be appended, and says for
    /// how many. Slots are freed one by one as the blocks need them, and only superseded ones,
    /// among them, unless slots must be released, those whose block is rewritten by an earlier
    /// block of the same run.
    pub fn make_room(&mut self, extent: Extent, holds: Holds) -> Room {
        if self.of_zones.is_some() {
            return self.make_room_by_zones(extent, holds);
        }
        let is_held = |position: u64| !holds.ignored && holds.position == Some(position);
        while self.lacks_entries() {
            let oldest = self.oldest();
            if self.is_live(self.head) && !holds.ignored {
                return Room::AfterRewrite(oldest);
            }
            if is_held(self.head) {
                return Room::AfterRead;
            }
            if self.head >= self.released {
                return Room::AfterFlush;
            }
            self.free_oldest(1);
        }
        let wanted = extent.blocks.0.min(self.packet_max).min(self.slots_before_wrap());
        let mut free = self.free_beside_reserve();
        while free < wanted && self.used() > 0 {
            let superseded = self.superseded_at_head(wanted - free, holds);
            if superseded > 0 {
                self.free_oldest(superseded);
                free = self.free_beside_reserve();
                continue;
            }
            let oldest = self.oldest();
            let own =
                extent.start <= oldest && oldest.0 < extent.start.0 + free && self.frees_at_once();
            if self.is_live(self.head) && !own && !holds.ignored {
                break;
            }
            if is_held(self.head) {
                if free == 0 {
                    return Room::AfterRead;
                }
                break;
            }
            if self.head >= self.released {
                if free == 0 {
                    return Room::AfterFlush;
                }
                break;
            }
            self.free_oldest(1);
            free = self.free_beside_reserve();
        }
        match free.min(wanted) {
            0 => Room::AfterRewrite(self.oldest()),
            blocks => Room::For(BlockCount(blocks)),
        }
    }

    fn make_room_by_zones(&mut self, extent: Extent, holds: Holds) -> Room {
        let lacks_entries = self.lacks_entries();
        let zones = self.of_zones.as_mut().expect("asked where zones free slots");
        zones.settle(holds);
        if lacks_entries || zones.used() == self.capacity {
            return match zones.oldest() {
                _ if !lacks_entries && zones.waits_for_read() => Room::AfterRead,
                Some(oldest) => Room::AfterRewrite(oldest),
                None => unreachable!("the log is full of blocks of no zone"),
            };
        }
        let (position, free) = zones.next_free(self.tail, extent.blocks.0.min(self.packet_max));
        self.tail = position;
        Room::For(BlockCount(free))
    }

    /// Appends `extent`, for which there is room, as one entry, superseding older copies. Returns
    /// its position.
    pub fn append(&mut self, extent: Extent) -> u64 {
        let Log { map, live, capacity, .. } = self;
        let (position, blocks) = (self.tail, extent.blocks.0);
        map.replace(extent, position, |old| {
            set_bits(live, old.position % *capacity, old.extent.blocks.0, false);
        });
        set_bits(live, position % *capacity, blocks, true);
        match &mut self.of_zones {
            None => self.runs.push_back(pack(extent.start.0, blocks)),
            Some(zones) => zones.take(extent, position),
        }
        self.tail += blocks;
        assert!(self.used() <= self.capacity, "appended without room");
        position
    }

    /// Takes the next slots, for which there is [room](Self::room_to_move), for a copy of `extent` that is
    /// on its way; returns their position. They count as live, and the map does not point to them yet.
    pub fn reserve(&mut self, extent: Extent) -> u64 {
        let (position, blocks) = (self.tail, extent.blocks.0);
        set_bits(&mut self.live, position % self.capacity, blocks, true);
        self.runs.push_back(pack(extent.start.0, blocks));
        self.tail += blocks;
        assert!(self.used() <= self.capacity, "reserved without room");
        position
    }

    /// The copy of `extent` in slots that were [reserved](Self::reserve) is what counts from now on.
    pub fn point_to(&mut self, extent: Extent, position: u64) {
        let Log { map, live, capacity, .. } = self;
        map.replace(extent, position, |old| {
            set_bits(live, old.position % *capacity, old.extent.blocks.0, false);
        });
        set_bits(live, position % *capacity, extent.blocks.0, true);
    }

    /// Slots that were reserved hold nothing that counts, unless the map is made to point there.
    pub fn give_up(&mut self, position: u64, blocks: u64) {
        set_bits(&mut self.live, position % self.capacity, blocks, false);
    }

    /// The live blocks in so many slots from a position in use on, in log order; none of a run behind the
    /// end of the ring.
    pub fn live_pieces(&self, from: u64, slots: u64) -> impl Iterator<Item = Piece> + '_ {
        let to_wrap = self.capacity - self.slot(from);
        let end = (from + slots.min(to_wrap)).min(self.tail);
        let mut at = self.head;
        let runs = self.runs.iter().map(move |run| {
            let (lba, blocks) = unpack(*run);
            at += blocks;
            (lba, at - blocks, blocks)
        });
        let runs = runs.skip_while(move |(_, start, blocks)| start + blocks <= from);
        runs.take_while(move |(_, start, _)| *start < end).flat_map(move |(lba, start, blocks)| {
            let (mut next, stop) = (start.max(from), end.min(start + blocks));
            core::iter::from_fn(move || {
                let first = (next..stop).find(|position| self.is_live(*position))?;
                let behind = (first..stop).find(|position| !self.is_live(*position));
                next = behind.unwrap_or(stop);
                let extent = Extent::new(lba + (first - start), next - first);
                Some(Piece { extent, position: first })
            })
        })
    }

    /// How many slots can be [reserved](Self::reserve) as one run.
    pub fn room_to_move(&self) -> u64 {
        (self.capacity - self.used()).min(self.slots_before_wrap())
    }

    /// True when the map has no room for another entry.
    pub fn lacks_entries(&self) -> bool {
        self.map.entries() >= self.entries_max
    }

    /// Leaves the next slots, for which there is room, unused.
    pub fn skip(&mut self, blocks: BlockCount) {
        self.runs.push_back(pack(0, blocks.0));
        self.tail += blocks.0;
        assert!(self.used() <= self.capacity, "skipped without room");
    }

    /// Takes the blocks of `extent` out of the log; their slots are superseded.
    pub fn supersede(&mut self, extent: Extent) {
        let Log { map, live, capacity, .. } = self;
        map.remove(extent, |old| {
            set_bits(live, old.position % *capacity, old.extent.blocks.0, false);
        });
        // There is nothing left of such a zone that could be cleaned.
        if let Some(zones) = &mut self.of_zones {
            for zone in zones.zones_of(extent) {
                let is_empty = || self.map.pieces(zones.extent_of(zone)).next().is_none();
                if zones.has_slots(zone) && is_empty() {
                    zones.clean(zone, u64::MAX);
                }
            }
        }
    }

    /// Takes the blocks of `extent`, whole bands, appended before `position` out of the log. `pieces` is
    /// scratch space.
    pub fn supersede_before(&mut self, extent: Extent, position: u64, pieces: &mut Vec<Piece>) {
        pieces.clear();
        let old = |piece: &Piece| piece.position < position;
        pieces.extend(self.map.pieces(extent).filter(old));
        for piece in pieces.drain(..) {
            self.supersede(piece.extent);
        }
        if let Some(zones) = &mut self.of_zones {
            zones.zones_of(extent).for_each(|zone| zones.clean(zone, position));
        }
    }

    /// Slots from the tail to the end of the ring.
    #[inline]
    fn slots_before_wrap(&self) -> u64 {
        self.capacity - self.slot(self.tail)
    }

    /// Free slots that need not be kept for what moves.
    #[inline]
    fn free_beside_reserve(&self) -> u64 {
        (self.capacity - self.used()).saturating_sub(self.reserve)
    }

    /// The address in the oldest slot in use.
    #[inline]
    fn oldest(&self) -> Lba {
        Lba(unpack(*self.runs.front().expect("a slot in use")).0)
    }

    #[inline]
    fn is_live(&self, position: u64) -> bool {
        let slot = self.slot(position);
        self.live[(slot / 64) as usize] >> (slot % 64) & 1 == 1
    }

    /// How many of the oldest slots, at most `most` and those of one run, are superseded, not held
    /// and may be used again. There are slots in use.
    #[inline]
    fn superseded_at_head(&self, most: u64, holds: Holds) -> u64 {
        let (_, blocks) = unpack(*self.runs.front().expect("a slot in use"));
        let slot = self.slot(self.head);
        let live = self.live[(slot / 64) as usize] >> (slot % 64);
        // The bits that were shifted in say nothing.
        let dead = u64::from(live.trailing_zeros()).min(64 - slot % 64);
        let held = holds.position.filter(|position| *position >= self.head);
        let to_held = held.map_or(u64::MAX, |position| position - self.head);
        let released = self.released.saturating_sub(self.head);
        dead.min(blocks).min(most).min(to_held).min(released)
    }

    /// Frees so many of the oldest slots, all of one run.
    #[inline]
    fn free_oldest(&mut self, slots: u64) {
        let front = self.runs.front_mut().expect("a slot in use");
        let (lba, blocks) = unpack(*front);
        if blocks == slots {
            self.runs.pop_front();
        } else {
            *front = pack(lba + slots, blocks - slots);
        }
        self.head += slots;
    }

    /// Sets an empty log to the given head, appended runs and live entries; false when they
    /// contradict each other.
    #[must_use]
    pub fn restore(&mut self, head: u64, runs: &[Extent], entries: &[Piece]) -> bool {
        self.head = head;
        self.tail = head;
        self.superseded_before = head;
        if !self.frees_at_once() {
            self.released = head;
        }
        for run in runs {
            let fits = (1..=PACKET_BLOCKS_MAX).contains(&run.blocks.0)
                && run.blocks.0 <= self.capacity - self.used();
            if !fits {
                return false;
            }
            self.runs.push_back(pack(run.start.0, run.blocks.0));
            self.tail += run.blocks.0;
        }
        for entry in entries {
            let end = entry.position.saturating_add(entry.extent.blocks.0);
            if entry.position < self.head || end > self.tail {
                return false;
            }
            if self.map.insert(entry.extent, entry.position).0 != 0 {
                return false;
            }
            let slot = self.slot(entry.position);
            if slot + entry.extent.blocks.0 > self.capacity {
                return false;
            }
            set_bits(&mut self.live, slot, entry.extent.blocks.0, true);
        }
        true
    }
}

fn pack(lba: u64, blocks: u64) -> u64 {
    lba << RUN_BITS | blocks
}

fn unpack(run: u64) -> (u64, u64) {
    (run >> RUN_BITS, run & PACKET_BLOCKS_MAX)
}

/// Sets or clears `count` bits from `first`.
pub(super) fn set_bits(words: &mut [u64], first: u64, count: u64, value: bool) {
    let end = first + count;
    let mut at = first;
    while at < end {
        let offset = at % 64;
        let bits = (64 - offset).min(end - at);
        let mask = (u64::MAX >> (64 - bits)) << offset;
        let word = &mut words[(at / 64) as usize];
        *word = if value { *word | mask } else { *word & !mask };
        at += bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(capacity: u64) -> Log {
        Log::new(BlockCount(capacity), BlockCount(4), None)
    }

    fn append(log: &mut Log, start: u64, blocks: u64) -> u64 {
        let extent = Extent::new(start, blocks);
        assert_eq!(log.make_room(extent, Holds::default()), Room::For(BlockCount(blocks)));
        log.append(extent)
    }

    #[test]
    fn a_run_ends_at_the_packet_the_wrap_and_the_last_free_slot() {
        let mut log = log(10);
        let long = Extent::new(100, 9);
        assert_eq!(log.make_room(long, Holds::default()), Room::For(BlockCount(4)));
        append(&mut log, 0, 4);
        append(&mut log, 4, 4);
        assert_eq!(
            log.make_room(long, Holds::default()),
            Room::For(BlockCount(2)),
            "the ring ends"
        );
        append(&mut log, 8, 2);
        assert_eq!(log.make_room(long, Holds::default()), Room::AfterRewrite(Lba(0)));
        log.supersede(Extent::new(0, 3));
        assert_eq!(log.make_room(long, Holds::default()), Room::For(BlockCount(3)));
        assert_eq!((log.used(), log.head()), (7, 3));
    }

    #[test]
    fn a_slot_that_the_same_run_supersedes_is_room_for_it() {
        let mut log = log(4);
        append(&mut log, 7, 1);
        append(&mut log, 5, 2);
        append(&mut log, 8, 1);
        // Block 5 goes to the slot of the superseded 7; by then its own old slot is free for 6.
        log.supersede(Extent::new(7, 1));
        assert_eq!(append(&mut log, 5, 3), 4);
        assert_eq!(log.map().get(Lba(5)), Some(4));
        assert_eq!(log.map().get(Lba(6)), Some(5));
        assert_eq!(
            log.make_room(Extent::new(0, 1), Holds::default()),
            Room::AfterRewrite(Lba(8)),
            "the new copies are live"
        );
    }

    #[test]
    fn a_slot_being_read_is_not_freed() {
        let mut log = log(4);
        append(&mut log, 0, 4);
        log.supersede(Extent::new(0, 4));
        let held = Holds { position: Some(1), ignored: false };
        let long = Extent::new(50, 4);
        assert_eq!(log.make_room(long, held), Room::For(BlockCount(1)));
        log.append(Extent::new(50, 1));
        assert_eq!(log.make_room(long, held), Room::AfterRead);
        assert_eq!(log.make_room(long, Holds::default()), Room::For(BlockCount(3)));
    }

    #[test]
    fn a_durable_log_uses_a_slot_again_when_it_is_released() {
        let mut log = Log::new_durable(BlockCount(4), BlockCount(4), None);
        append(&mut log, 0, 4);
        let first = Extent::new(0, 1);
        let live = log.make_room(first, Holds::default());
        assert_eq!(live, Room::AfterRewrite(Lba(0)), "not even by its own run");
        log.supersede(Extent::new(0, 2));
        assert_eq!(log.make_room(first, Holds::default()), Room::AfterFlush);
        assert_eq!(log.superseded_before(), 2);
        log.release(1);
        let room = log.make_room(Extent::new(9, 4), Holds::default());
        assert_eq!(room, Room::For(BlockCount(1)));
        log.release(2);
        let room = log.make_room(Extent::new(9, 4), Holds::default());
        assert_eq!(room, Room::For(BlockCount(2)));
    }

    #[test]
    fn the_entry_limit_frees_superseded_slots_and_then_asks_for_a_rewrite() {
        let mut log = Log::new(BlockCount(100), BlockCount(4), Some(2));
        append(&mut log, 0, 1);
        append(&mut log, 10, 1);
        log.supersede(Extent::new(0, 1));
        append(&mut log, 20, 4);
        assert_eq!(log.used(), 6, "below the limit nothing is freed");
        assert_eq!(
            log.make_room(Extent::new(30, 1), Holds::default()),
            Room::AfterRewrite(Lba(10))
        );
        assert_eq!(log.head(), 1);
    }

    #[test]
    fn a_log_freed_by_zones_asks_for_the_zone_that_has_had_slots_longest() {
        let mut log = log(8).freed_by_zones(BlockCount(100), 2);
        append(&mut log, 0, 2);
        append(&mut log, 100, 4);
        append(&mut log, 0, 2);
        let next = Extent::new(150, 4);
        assert_eq!(log.make_room(next, Holds::default()), Room::AfterRewrite(Lba(0)));
        assert_eq!(log.oldest_live(), Some(Lba(0)));
        log.supersede(Extent::new(100, 3));
        assert_eq!(log.used(), 8, "one of its blocks is left");
        log.supersede_before(Extent::new(0, 100), log.tail(), &mut Vec::new());
        let held = Holds { position: Some(1), ignored: false };
        assert_eq!(log.make_room(next, held), Room::AfterRead);
        // Two slots, then those of the other zone, then two more.
        assert_eq!(log.make_room(next, Holds::default()), Room::For(BlockCount(2)));
        assert_eq!(log.append(Extent::new(150, 2)), 8);
        assert_eq!(log.make_room(next, Holds::default()), Room::For(BlockCount(2)));
        assert_eq!(log.append(Extent::new(152, 2)), 14);
        log.supersede(Extent::new(0, 200));
        log.free_superseded(Holds::default());
        assert_eq!((log.used(), log.oldest_live()), (0, None));
    }

    #[test]
    fn only_blocks_appended_before_a_position_are_taken_out() {
        let mut log = log(16);
        append(&mut log, 0, 4);
        let gathered = log.tail();
        append(&mut log, 2, 1);
        log.supersede_before(Extent::new(0, 8), gathered, &mut Vec::new());
        assert_eq!(log.map().get(Lba(2)), Some(4));
        assert_eq!(log.map().mapped_blocks(), BlockCount(1));
    }

    #[test]
    fn bits_are_set_across_words() {
        let mut words = [0u64; 3];
        set_bits(&mut words, 60, 70, true);
        assert_eq!(words, [0xf << 60, u64::MAX, 0b11]);
        set_bits(&mut words, 64, 64, false);
        assert_eq!(words, [0xf << 60, 0, 0b11]);
    }
}
