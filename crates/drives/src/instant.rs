//! A disk that answers at once: for stacks of which only the counters are wanted.

use super::design::DiskDesign;
use super::statistics::{DiskStatistics, OperationKind};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::units::Instant;
use std::collections::VecDeque;
use std::rc::Rc;

/// Does everything at the instant at which it is given it, keeps nothing, and counts what arrives.
pub struct InstantDisk {
    geometry: Geometry,
    /// None where nobody counts.
    statistics: Option<Rc<DiskStatistics>>,
    done: VecDeque<DiskCompletion>,
}

impl InstantDisk {
    /// A disk of a geometry that counts nothing.
    pub fn uncounted(geometry: Geometry) -> InstantDisk {
        InstantDisk { geometry, statistics: None, done: VecDeque::new() }
    }
}

impl DiskDesign {
    /// The disk as one that answers at once and counts operations and blocks. Its medium is never busy.
    pub fn untimed(self) -> InstantDisk {
        let DiskDesign { geometry, statistics, .. } = self;
        InstantDisk { geometry, statistics: Some(statistics), done: VecDeque::new() }
    }
}

impl Disk for InstantDisk {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn submit(&mut self, _now: Instant, op: DiskOp, _buffers: &mut Buffers) {
        if let (Some(statistics), Some(kind)) = (&self.statistics, OperationKind::of(op.operation))
        {
            statistics.arrived(kind, op.cause, op.extent);
        }
        self.done.push_back(DiskCompletion { id: op.id, result: Ok(()) });
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<DiskCompletion> {
        self.done.pop_front()
    }

    fn next_event(&self) -> Option<Instant> {
        self.done.front().map(|_| Instant::ZERO)
    }

    fn is_signalled(&self) -> bool {
        false
    }

    fn is_settled_at_once(&self) -> bool {
        true
    }
}
