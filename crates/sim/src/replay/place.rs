//! Where a record goes on a device.

use super::Fit;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Durability, Operation};
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_traces::{TraceOperation, TraceRecord};

pub(super) fn operation_of(record: &TraceRecord) -> Operation {
    let durability = if record.fua { Durability::Durable } else { Durability::Cached };
    match record.operation {
        TraceOperation::Read => Operation::Read,
        TraceOperation::Write => Operation::Write { durability },
        TraceOperation::WriteZeroes => Operation::Zero { durability, may_unmap: false },
        TraceOperation::Trim => Operation::Zero { durability, may_unmap: true },
        TraceOperation::Flush => Operation::Flush,
    }
}

/// The operation and blocks of a record on a device: rounded outward to whole blocks. `None` when
/// it does not fit.
#[inline]
pub fn place(
    record: &TraceRecord,
    device_blocks: BlockCount,
    fit: Fit,
) -> Option<(Operation, Extent)> {
    let operation = operation_of(record);
    if operation == Operation::Flush {
        return Some((operation, Extent::EMPTY));
    }
    let offset_bytes = match fit {
        Fit::Refuse | Fit::Wrap => record.offset_bytes,
        Fit::Scale { span_bytes } => {
            let scaled = u128::from(record.offset_bytes) * u128::from(device_blocks.bytes());
            (scaled / u128::from(span_bytes.max(1))) as u64
        }
    };
    let first = offset_bytes / BLOCK_BYTES;
    let end = offset_bytes.checked_add(record.length_bytes)?.div_ceil(BLOCK_BYTES);
    let blocks = end - first;
    if end <= device_blocks.0 {
        return Some((operation, Extent::new(first, blocks)));
    }
    if fit == Fit::Refuse || blocks > device_blocks.0 {
        return None;
    }
    // A request that would cross the end is moved back to end there.
    let first = (first % device_blocks.0).min(device_blocks.0 - blocks);
    Some((operation, Extent::new(first, blocks)))
}
