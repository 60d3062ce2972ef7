//! A trace of one device, cut into parts that lie in windows of their own.

use imbrex_core::operation::Operation;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::{CutPart, CutUse};
use imbrex_traces::{BlockRule, TraceOperation, TraceRecord};
use std::collections::VecDeque;
use std::ops::Range;

/// A range of blocks, cut into parts of the same length; the last ones are shorter where it does not go up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The blocks from the first to the last that the trace touches.
    range: Range<u64>,
    /// How many parts there are, at least 1.
    parts: u64,
}

impl Cut {
    /// A range of blocks in so many parts.
    pub fn new(range: Range<u64>, parts: usize) -> Cut {
        Cut { range, parts: (parts as u64).max(1) }
    }

    /// Blocks of a part.
    pub fn part_blocks(&self) -> u64 {
        (self.range.end - self.range.start).div_ceil(self.parts).max(1)
    }

    /// The blocks of a part by its number.
    fn part(&self, number: u64) -> Range<u64> {
        let border =
            |number: u64| (self.range.start + number * self.part_blocks()).min(self.range.end);
        border(number)..border(number + 1)
    }

    /// The number of the part that has a block. Blocks beyond the range are in the parts at its ends.
    fn part_of(&self, block: u64) -> u64 {
        (block.saturating_sub(self.range.start) / self.part_blocks()).min(self.parts - 1)
    }

    /// The pieces of a record, one for each part that has blocks of it, in the order of their addresses. The device of a
    /// piece is the number of its part, and its addresses start there.
    fn pieces(&self, record: TraceRecord, rule: BlockRule) -> impl Iterator<Item = TraceRecord> {
        let blocks = rule.blocks(record.offset_bytes, record.length_bytes);
        let (first, last) =
            (self.part_of(blocks.start), self.part_of(blocks.end.max(blocks.start + 1) - 1));
        (first..=last).map(move |number| {
            let start_bytes = self.part(number).start * BLOCK_BYTES;
            let device = number as u16;
            if first == last {
                // It keeps its bytes, so that the rule finds the same blocks.
                let offset_bytes = record.offset_bytes.saturating_sub(start_bytes);
                return TraceRecord { device, offset_bytes, ..record };
            }
            let part = self.part(number);
            let inside = blocks.start.max(part.start)..match number == last {
                true => blocks.end,
                false => part.end,
            };
            TraceRecord {
                device,
                offset_bytes: (inside.start - part.start) * BLOCK_BYTES,
                length_bytes: (inside.end - inside.start) * BLOCK_BYTES,
                ..record
            }
        })
    }
}

/// The blocks that records touch, as far as they were seen, and whether all are of one device.
#[derive(Default)]
pub struct Touched {
    device: Option<u16>,
    is_of_several: bool,
    blocks: Option<Range<u64>>,
}

impl Touched {
    /// Takes in a record. A flush touches nothing.
    pub fn add(&mut self, record: &TraceRecord, rule: BlockRule) {
        self.is_of_several |= *self.device.get_or_insert(record.device) != record.device;
        let blocks = rule.blocks(record.offset_bytes, record.length_bytes);
        if record.operation == TraceOperation::Flush || blocks.is_empty() {
            return;
        }
        self.blocks = Some(match self.blocks.take() {
            Some(known) => known.start.min(blocks.start)..known.end.max(blocks.end),
            None => blocks,
        });
    }

    /// The blocks from the first to the last that is touched, of records of one device; none where there are none, or
    /// several devices.
    pub fn of_one_device(self) -> Option<Range<u64>> {
        self.blocks.filter(|_| !self.is_of_several)
    }
}

/// Cuts the records of a replay, and counts what came of it.
pub(super) struct Cutter {
    cut: Cut,
    rule: BlockRule,
    /// The rest of the record that was cut last.
    pending: VecDeque<TraceRecord>,
    divided_requests: u64,
    /// What each part was asked for.
    parts: Vec<CutPart>,
}

impl Cutter {
    /// One whose parts lie in windows of these names, for records that have blocks by a rule.
    pub fn new(cut: &Cut, windows: &[String], rule: BlockRule) -> Cutter {
        let part = |(number, window): (u64, &String)| {
            let blocks = cut.part(number);
            CutPart {
                window: window.clone(),
                first_block: blocks.start,
                blocks: blocks.end - blocks.start,
                read_blocks: 0,
                write_blocks: 0,
            }
        };
        Cutter {
            cut: cut.clone(),
            rule,
            pending: VecDeque::new(),
            divided_requests: 0,
            parts: (0..).zip(windows).map(part).collect(),
        }
    }

    /// The first piece of a record; the others are pending.
    pub fn first_piece(&mut self, record: TraceRecord) -> TraceRecord {
        if record.operation == TraceOperation::Flush
            || record.offset_bytes.checked_add(record.length_bytes).is_none()
        {
            return record;
        }
        self.pending.extend(self.cut.pieces(record, self.rule));
        let first = self.pending.pop_front();
        self.divided_requests += u64::from(!self.pending.is_empty());
        first.unwrap_or(record)
    }

    /// The next piece of the record that was cut last.
    pub fn next_piece(&mut self) -> Option<TraceRecord> {
        self.pending.pop_front()
    }

    /// Blocks of a part are read or written.
    pub fn count(&mut self, part: usize, operation: Operation, blocks: u64) {
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        match operation {
            Operation::Read => part.read_blocks += blocks,
            Operation::Write { .. } => part.write_blocks += blocks,
            _ => {}
        }
    }

    /// What came of it so far is forgotten.
    pub fn restart(&mut self) {
        self.divided_requests = u64::from(!self.pending.is_empty());
        for part in &mut self.parts {
            (part.read_blocks, part.write_blocks) = (0, 0);
        }
    }

    /// What came of it, as reports tell it.
    pub fn told(&self) -> CutUse {
        CutUse { divided_requests: self.divided_requests, parts: self.parts.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operation: TraceOperation, offset: u64, length: u64) -> TraceRecord {
        TraceRecord::new(0, operation, offset, length)
    }

    /// Device, first block and blocks of each piece of a write.
    fn pieces(cut: &Cut, rule: BlockRule, offset: u64, length: u64) -> Vec<(u16, u64, u64)> {
        let pieces = cut.pieces(record(TraceOperation::Write, offset, length), rule);
        let told = |piece: TraceRecord| {
            let blocks = rule.blocks(piece.offset_bytes, piece.length_bytes);
            (piece.device, blocks.start, blocks.end - blocks.start)
        };
        pieces.map(told).collect()
    }

    #[test]
    fn a_request_that_crosses_cuts_is_divided_and_loses_no_block() {
        // Parts from 100 to 103, 103 to 106, 106 to 109 and 109 to 110.
        let cut = Cut::new(100..110, 4);
        let of =
            |first: u64, blocks: u64| pieces(&cut, BlockRule::Touched, first * 4096, blocks * 4096);
        assert_eq!(of(100, 3), [(0, 0, 3)]);
        assert_eq!(of(102, 2), [(0, 2, 1), (1, 0, 1)]);
        assert_eq!(of(100, 10), [(0, 0, 3), (1, 0, 3), (2, 0, 3), (3, 0, 1)]);
        assert_eq!(of(109, 1), [(3, 0, 1)]);
        for first in 100..110 {
            for blocks in 1..=110 - first {
                let sum: u64 = of(first, blocks).iter().map(|(_, _, blocks)| blocks).sum();
                assert_eq!(sum, blocks, "{blocks} from {first}");
            }
        }
    }

    #[test]
    fn bytes_that_fill_no_block_are_divided_by_the_blocks_of_their_rule() {
        let cut = Cut::new(0..4, 2);
        // Two halves of a block on both sides of the cut: two blocks are touched, one is filled.
        let of = |rule| pieces(&cut, rule, 2 * 4096 - 2048, 4096);
        assert_eq!(of(BlockRule::Touched), [(0, 1, 1), (1, 0, 1)]);
        assert_eq!(of(BlockRule::Size), [(0, 1, 1)]);
        assert_eq!(pieces(&cut, BlockRule::Touched, 3 * 4096 + 5, 10), [(1, 1, 1)]);
        assert_eq!(pieces(&cut, BlockRule::Touched, 2 * 4096, 0), [(1, 0, 0)], "no blocks");
    }

    #[test]
    fn a_range_of_fewer_blocks_than_windows_leaves_windows_empty() {
        let cut = Cut::new(7..9, 4);
        assert_eq!((0..4).map(|part| cut.part(part)).collect::<Vec<_>>(), [7..8, 8..9, 9..9, 9..9]);
        assert_eq!(
            pieces(&cut, BlockRule::Touched, 7 * 4096, 2 * 4096),
            [(0, 0, 1), (1, 0, 1)],
            "each has its block"
        );
    }

    #[test]
    fn a_trace_is_of_one_device_when_all_its_records_are() {
        let touched = |records: &[(u16, TraceOperation, u64)]| {
            let mut touched = Touched::default();
            for (device, operation, block) in records {
                let record = record(*operation, block * 4096, 4096);
                touched.add(&TraceRecord { device: *device, ..record }, BlockRule::Touched);
            }
            touched.of_one_device()
        };
        let (read, flush) = (TraceOperation::Read, TraceOperation::Flush);
        assert_eq!(touched(&[(5, read, 9), (5, TraceOperation::Trim, 20)]), Some(9..21));
        assert_eq!(touched(&[(5, read, 9), (5, flush, 90)]), Some(9..10), "a flush has no blocks");
        assert_eq!(touched(&[(5, read, 9), (6, read, 20)]), None, "two devices");
        assert_eq!(touched(&[(5, flush, 0)]), None, "nothing");
    }
}
