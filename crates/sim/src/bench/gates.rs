//! All measurements that have something published to stand beside, in the order of
//! `docs/models/validation.md`.

use super::row::Measurement;
use super::{conventional, positioning, rebuild, solid_state};

/// In the order in which they are printed: measurements of one drive follow one another.
pub const MEASUREMENTS: &[Measurement] = &[
    rebuild::RESILVER,
    positioning::HC620_READS,
    conventional::RANDOM_WRITES,
    positioning::RANDOM_READS,
    positioning::ATLAS_10K,
    positioning::BARRACUDA_4LP,
    positioning::CHEETAH_9LP,
    positioning::IBM_18ES,
    positioning::HP_97560,
    positioning::WD_4TB,
    positioning::AVERAGES,
    solid_state::EVO_850,
    solid_state::INTEL_320,
];

/// The drives with a published figure, in that order.
pub fn drives_measured() -> Vec<&'static str> {
    let mut drives: Vec<&str> = MEASUREMENTS
        .iter()
        .map(|measurement| measurement.drive)
        .collect();
    drives.dedup();
    drives
}
