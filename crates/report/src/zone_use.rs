//! What a report says of zones.

use serde::{Deserialize, Serialize};

/// What was done to the zones of a zoned disk, and what it refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneUse {
    /// Writes refused because they did not start at the write pointer of their zone.
    pub writes_off_pointer: u64,
    /// Writes refused because they went past the end of their zone.
    pub writes_across_zones: u64,
    /// Writes refused because their zone was full.
    pub writes_to_full_zones: u64,
    /// Writes refused because no further zone could be open.
    pub writes_without_resources: u64,
    /// Writes refused because their zone was read-only or offline.
    pub writes_to_lost_zones: u64,
    /// Reads refused by the rules of zones.
    pub reads_refused: u64,
    /// Reads that reached past a write pointer and were answered there without the medium.
    pub reads_past_pointer: u64,
    /// Zones the drive closed so that another could be open.
    pub closed_for_others: u64,
    /// Zones set back to empty.
    pub resets: u64,
    /// Reports of zones.
    pub reports: u64,
    /// Zones open at the end.
    pub open: u64,
    /// Zones written in part and closed at the end.
    pub closed: u64,
    /// Host-aware: blocks written elsewhere than at the write pointer of a sequential zone.
    pub blocks_out_of_sequence: u64,
    /// Host-aware: zones that are not sequential at the end.
    pub non_sequential: u64,
}
