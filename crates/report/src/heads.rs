//! Which request went to which disk, and when: the way of the heads.

use serde::{Deserialize, Serialize};

/// Dispatches of one disk that a report keeps at most.
pub const HEADS_MAX: usize = 5_000;

/// What schedulers handed down in the time that was asked for; nothing when nobody asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Heads {
    /// The dispatches, disk by disk, in their order.
    #[serde(default, rename = "heads", skip_serializing_if = "Vec::is_empty")]
    pub dispatches: Vec<Head>,
    /// Dispatches of the time beyond [`HEADS_MAX`] of a disk, which are left out; absent when there were none.
    #[serde(default, rename = "heads_left_out", skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A request that went to a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// When it had come to the scheduler, from the start of the run.
    pub arrived_s: f64,
    /// When it went to the disk.
    pub dispatched_s: f64,
    /// The name of the disk.
    pub disk: String,
    /// Its first block, in the addresses of the disk.
    pub address_block: u64,
    /// Its blocks.
    pub blocks: u64,
    /// `read` or `write`.
    pub operation: String,
    /// `front` or `back`, of a scheduler with areas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<String>,
    /// What it is for.
    pub cause: String,
    /// Why it was its turn: `next`, `wrap`, `switch`, `quota` or `age`.
    pub why: String,
}
