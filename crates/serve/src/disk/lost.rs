//! What stands in the place of a disk that cannot be opened.

use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::operation::RequestId;
use imbrex_core::units::Instant;
use std::collections::VecDeque;

/// A disk that is lost: every operation ends at once and says so.
pub struct LostDisk {
    geometry: Geometry,
    done: VecDeque<RequestId>,
}

impl LostDisk {
    /// Stands for a disk of that geometry.
    pub fn new(geometry: Geometry) -> LostDisk {
        LostDisk { geometry, done: VecDeque::new() }
    }
}

impl Disk for LostDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, _now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        self.done.push_back(op.id);
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        let result = Err(IoError::Lost);
        let id = self.done.pop_front()?;
        Some(DiskCompletion { id, result })
    }

    fn next_event(&self) -> Option<Instant> {
        (!self.done.is_empty()).then_some(Instant::ZERO)
    }
}
