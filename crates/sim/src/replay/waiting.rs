//! A request on its way from the trace to the stack.

use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;
use imbrex_core::units::Instant;

/// A request that is placed on the device and not issued.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    /// Number of its record, from 1.
    pub record: u64,
    /// When it arrives, as far as its record says.
    pub at: Instant,
    /// What it asks for.
    pub operation: Operation,
    /// Its blocks on the device.
    pub extent: Extent,
    /// The window that is its device, or that of the whole.
    pub window: u16,
    /// The stream that it joins; 0 without streams.
    pub stream: u32,
}
