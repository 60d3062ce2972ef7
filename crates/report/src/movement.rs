//! Movement of the heads of the disks.

use super::by_cause::ByCause;
use imbrex_core::operation::Cause;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far the heads of the disks were moved by a model; nothing when no model was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberMovement {
    /// Of each disk, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement: Option<BTreeMap<String, MovementCounts>>,
    /// Sums over the disks; of several models that of the first disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement_total: Option<MovementCounts>,
}

/// What a model counted. Lists are by block, track and band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovementCounts {
    /// The number of the model (docs/models/movement.md).
    pub model: u8,
    /// Blocks visited.
    pub visits: u64,
    /// Blocks moved over.
    pub block: u64,
    /// Tracks moved over.
    pub track: u64,
    /// Bands moved over.
    pub band: u64,
    /// Moves by anything but 0 or +1.
    pub discontinuities: [u64; 3],
    /// Changes of direction.
    pub reversals: [u64; 3],
    /// Writes to blocks written before.
    pub updates: u64,
    /// Writes behind which blocks were written back.
    pub rewrites: u64,
    /// Blocks written back.
    pub rewritten_blocks: u64,
    /// Blocks written to the spill area.
    pub spilled: u64,
    /// Blocks visited, by the cause of the visit; what a model writes back is of the cause of the write.
    #[serde(default)]
    pub visits_by_cause: ByCause<u64>,
    /// Blocks moved over, by the cause of the visit that the move leads to.
    #[serde(default)]
    pub by_cause: ByCause<u64>,
}

impl MovementCounts {
    fn plus(&self, other: &MovementCounts) -> Option<MovementCounts> {
        let mut sum = *self;
        let pairs = [
            (&mut sum.visits, other.visits),
            (&mut sum.block, other.block),
            (&mut sum.track, other.track),
            (&mut sum.band, other.band),
            (&mut sum.updates, other.updates),
            (&mut sum.rewrites, other.rewrites),
            (&mut sum.rewritten_blocks, other.rewritten_blocks),
            (&mut sum.spilled, other.spilled),
        ];
        let lists = sum.discontinuities.iter_mut().zip(other.discontinuities);
        let lists = lists.chain(sum.reversals.iter_mut().zip(other.reversals));
        for (count, more) in lists.chain(pairs) {
            *count = count.checked_add(more)?;
        }
        for cause in Cause::ALL {
            // None has more bits than the sums above.
            sum.visits_by_cause[cause] += other.visits_by_cause[cause];
            sum.by_cause[cause] += other.by_cause[cause];
        }
        Some(sum)
    }
}

impl MemberMovement {
    /// True when it was counted.
    pub fn is_counted(&self) -> bool {
        self.movement.is_some()
    }

    /// Adds a disk; false when a sum has more than 64 bits.
    #[must_use]
    pub fn add(&mut self, disk: &str, counts: MovementCounts) -> bool {
        let total = match &self.movement_total {
            None => Some(counts),
            Some(total) => total.plus(&counts),
        };
        let disks = self.movement.get_or_insert_default();
        disks.insert(disk.to_string(), counts);
        self.movement_total = total;
        total.is_some()
    }
}
