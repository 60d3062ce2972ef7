//! Where a record goes on a device.

use super::{Fit, Placement};
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::units::BlockCount;
use imbrex_traces::TraceRecord;
use std::ops::Range;

/// What a record asks for, in the order of [`TraceOperation`]: without forced unit access, and with it.
// Reads and writes come in no order that a processor could guess, so there is no branch.
const OPERATIONS: [[Operation; 2]; 5] = [
    [Operation::Read; 2],
    [Operation::WRITE, Operation::WRITE_DURABLE],
    [zero(Durability::Cached, false), zero(Durability::Durable, false)],
    [zero(Durability::Cached, true), zero(Durability::Durable, true)],
    [Operation::Flush; 2],
];

const fn zero(durability: Durability, may_unmap: bool) -> Operation {
    Operation::Zero { durability, may_unmap }
}

#[inline]
pub(super) fn operation_of(record: &TraceRecord) -> Operation {
    OPERATIONS[record.operation as usize][usize::from(record.fua)]
}

/// The operation and blocks of a record on a device. `None` when it does not fit.
#[inline(always)]
pub fn place(
    record: &TraceRecord,
    device_blocks: BlockCount,
    placement: Placement,
) -> Option<(Operation, Extent)> {
    let operation = operation_of(record);
    if operation == Operation::Flush {
        return Some((operation, Extent::EMPTY));
    }
    let offset_bytes = match placement.fit {
        Fit::Refuse | Fit::Wrap => record.offset_bytes,
        Fit::Scale { span_bytes } => {
            let scaled = u128::from(record.offset_bytes) * u128::from(device_blocks.bytes());
            (scaled / u128::from(span_bytes.max(1))) as u64
        }
    };
    offset_bytes.checked_add(record.length_bytes)?;
    let Range { start: first, end } = placement.blocks.blocks(offset_bytes, record.length_bytes);
    let blocks = end - first;
    if end <= device_blocks.0 {
        return Some((operation, Extent::new(first, blocks)));
    }
    if placement.fit == Fit::Refuse || blocks > device_blocks.0 {
        return None;
    }
    // A request that would cross the end is moved back to end there.
    let first = (first % device_blocks.0).min(device_blocks.0 - blocks);
    Some((operation, Extent::new(first, blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_traces::{BlockRule, TraceOperation};

    #[test]
    fn a_record_asks_for_the_operation_of_its_name() {
        let of = |operation, fua| {
            operation_of(&TraceRecord { fua, ..TraceRecord::new(0, operation, 0, 4096) })
        };
        for fua in [false, true] {
            let durability = if fua { Durability::Durable } else { Durability::Cached };
            assert_eq!(of(TraceOperation::Read, fua), Operation::Read);
            assert_eq!(of(TraceOperation::Write, fua), Operation::Write { durability });
            assert_eq!(of(TraceOperation::WriteZeroes, fua), zero(durability, false));
            assert_eq!(of(TraceOperation::Trim, fua), zero(durability, true));
            assert_eq!(of(TraceOperation::Flush, fua), Operation::Flush);
        }
    }

    /// First block and blocks on a device of 8 blocks.
    fn placed(fit: Fit, blocks: BlockRule, offset: u64, length: u64) -> Option<(u64, u64)> {
        let record = TraceRecord::new(0, TraceOperation::Write, offset, length);
        let (_, extent) = place(&record, BlockCount(8), Placement { fit, blocks })?;
        Some((extent.start.0, extent.blocks.0))
    }

    #[test]
    fn a_request_has_the_blocks_it_covers_or_as_many_as_its_size_fills() {
        // Two halves of a block, on a border: two blocks are touched, one is filled.
        let request = (3 * 4096 - 2048, 4096);
        let of = |rule| placed(Fit::Refuse, rule, request.0, request.1);
        assert_eq!(of(BlockRule::Touched), Some((2, 2)));
        assert_eq!(of(BlockRule::Size), Some((2, 1)));
        assert_eq!(placed(Fit::Refuse, BlockRule::Size, 4095, 4097), Some((0, 2)));
        for rule in [BlockRule::Touched, BlockRule::Size] {
            assert_eq!(placed(Fit::Refuse, rule, 5000, 0), Some((1, 0)), "no bytes, no blocks");
        }
    }

    #[test]
    fn sizes_are_placed_by_every_fit() {
        let by_size = |fit, offset, length| placed(fit, BlockRule::Size, offset, length);
        // Half a block beyond the end is no block beyond it.
        assert_eq!(by_size(Fit::Refuse, 8 * 4096 - 2048, 4096), Some((7, 1)));
        assert_eq!(placed(Fit::Refuse, BlockRule::Touched, 8 * 4096 - 2048, 4096), None);
        assert_eq!(by_size(Fit::Wrap, 9 * 4096 + 2048, 4096), Some((1, 1)));
        assert_eq!(by_size(Fit::Wrap, 7 * 4096, 8192), Some((6, 2)), "moved back to the end");
        let halved = Fit::Scale { span_bytes: 16 * 4096 };
        assert_eq!(by_size(halved, 6 * 4096 + 100, 4096), Some((3, 1)));
        assert_eq!(by_size(halved, 15 * 4096, 4096), Some((7, 1)));
        assert_eq!(by_size(Fit::Wrap, u64::MAX - 100, 4096), None);
    }
}
