//! Streams and sources that have a part of the device as their device.

use super::cut::Cut;
use imbrex_core::extent::Extent;
use imbrex_core::operation::Operation;

/// Which records have a part of the device as their device, and how their addresses fit into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dealt {
    /// Whose addresses start at a part of the device.
    pub windows: Windows,
    /// With [`Fit::Scale`](super::Fit::Scale): the end of the highest request of each device of the trace, in bytes, so that the
    /// addresses of each fill a window. Empty where the trace is scaled as one.
    pub spans_bytes: Vec<u64>,
}

/// Whose addresses start at a part of the device, and not at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// None: all records are for the device.
    #[default]
    None,
    /// Those of stream k start in window k modulo their number.
    OfStreams(Vec<StreamWindow>),
    /// Record k is for window k modulo their number.
    InTurn(Vec<StreamWindow>),
    /// Those of the records of source k, which is their device number, start in window k.
    OfSources(Vec<StreamWindow>),
    /// The records are of one source, which is cut: those of part k start in window k. A flush is of the whole device.
    OfParts(Vec<StreamWindow>, Cut),
}

impl Windows {
    /// All of them.
    pub fn all(&self) -> &[StreamWindow] {
        match self {
            Windows::None => &[],
            Windows::OfStreams(all)
            | Windows::InTurn(all)
            | Windows::OfSources(all)
            | Windows::OfParts(all, _) => all,
        }
    }
}

/// A named part of the device that holds the addresses of streams or of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamWindow {
    /// The name of its node.
    pub name: String,
    /// The blocks of the device.
    pub extent: Extent,
}

impl StreamWindow {
    /// An operation and blocks in the addresses of the window, in those of the device. A flush is one of the blocks
    /// of the window.
    pub(super) fn on_device(
        &self,
        (operation, inside): (Operation, Extent),
    ) -> (Operation, Extent) {
        let extent = match operation {
            Operation::Flush => self.extent,
            _ => Extent::new(self.extent.start.0 + inside.start.0, inside.blocks.0),
        };
        (operation, extent)
    }
}
