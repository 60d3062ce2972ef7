//! Streams that have a part of the device as their device.

use super::{Fit, place};
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_traces::TraceRecord;

/// A named part of the device that holds the addresses of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamWindow {
    /// The name of its node.
    pub name: String,
    /// The blocks of the device.
    pub extent: Extent,
}

impl StreamWindow {
    /// The operation and blocks of a record, in the addresses of the device. A flush is one of the
    /// blocks of the window. `None` when the record does not fit.
    pub(super) fn place(&self, record: &TraceRecord, fit: Fit) -> Option<(Operation, Extent)> {
        let (operation, inside) = place(record, self.extent.blocks, fit)?;
        let extent = match operation {
            Operation::Flush => self.extent,
            _ => Extent::new(self.extent.start.0 + inside.start.0, inside.blocks.0),
        };
        Some((operation, extent))
    }
}
