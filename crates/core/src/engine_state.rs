//! The state of an engine whose stack is at rest, as bytes, and back.

use crate::buffer::ContentKind;
use crate::engine::Engine;
use crate::saved::{Saved, SavedReader, SavedWriter};
use crate::stack::NodeId;
use crate::state::StateError;
use alloc::vec::Vec;
use core::fmt;

/// Why a state cannot be saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSaved {
    /// The stack moves data, and not only sizes.
    MovesData,
    /// Requests are under way.
    Busy,
    /// This layer or disk does not say what its state is.
    Node(NodeId),
    /// Something is there that is not saved, by the name of its field.
    Holds(&'static str),
}

impl fmt::Display for NotSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSaved::MovesData => f.write_str("the stack moves data, and not only sizes"),
            NotSaved::Busy => f.write_str("requests are under way"),
            NotSaved::Node(node) => write!(f, "the state of node {} cannot be saved", node.0),
            NotSaved::Holds(field) => write!(f, "the stack holds what cannot be saved: {field}"),
        }
    }
}

impl Engine {
    /// The state of the stack, its disks and its buffers, while nothing is under way.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub fn save_state(&mut self) -> Result<Vec<u8>, NotSaved> {
        if self.buffers.kind() != ContentKind::Counted {
            return Err(NotSaved::MovesData);
        }
        if !self.stack.is_quiet() {
            return Err(NotSaved::Busy);
        }
        let mut state = SavedWriter::default();
        self.stack.save_into(&mut state);
        for (node, layer) in self.stack.layers_mut() {
            layer.saved().ok_or(NotSaved::Node(node))?.save_into(&mut state);
        }
        for (disk, node) in self.disks.iter_mut().zip(self.stack.disk_nodes()) {
            disk.saved().ok_or(NotSaved::Node(node))?.save_into(&mut state);
        }
        self.buffers.save_into(&mut state);
        match state.obstacle() {
            Some(field) => Err(NotSaved::Holds(field)),
            None => Ok(state.into_bytes()),
        }
    }

    /// Takes back a state that was saved of an engine built as this one was, after its layers have come up.
    ///
    /// # Errors
    /// When the state is damaged or of another stack. The engine is of no use then.
    pub fn load_state(&mut self, state: &[u8]) -> Result<(), StateError> {
        let other = || StateError::new("the stack has a node that cannot take back a state");
        let mut state = SavedReader::new(state);
        self.stack.load_from(&mut state)?;
        for (_, layer) in self.stack.layers_mut() {
            layer.saved().ok_or_else(other)?.load_from(&mut state)?;
        }
        for disk in &mut self.disks {
            disk.saved().ok_or_else(other)?.load_from(&mut state)?;
        }
        self.buffers.load_from(&mut state)?;
        match state.is_at_end() {
            true => Ok(()),
            false => Err(StateError::new("the saved state goes on behind its end")),
        }
    }
}
