//! All measurements that have something published to stand beside, in the order of
//! `docs/models/validation.md`.

use super::row::Measurement;
use super::{
    bus, conventional, drive_managed_gates, large_writes, positioning, rebuild, solid_state,
    zoned_gates,
};

/// In the order in which they are printed: measurements of one drive follow one another.
pub const MEASUREMENTS: &[Measurement] = &[
    drive_managed_gates::ST5000AS0011,
    drive_managed_gates::ST8000AS0002,
    large_writes::ST8000AS0002,
    rebuild::RESILVER,
    zoned_gates::ST8000AS0022,
    zoned_gates::HC620,
    positioning::HC620_READS,
    conventional::RANDOM_WRITES,
    positioning::RANDOM_READS,
    positioning::ATLAS_10K,
    positioning::ATLAS_10K_SEEKS,
    bus::ATLAS_10K,
    positioning::BARRACUDA_4LP,
    positioning::BARRACUDA_4LP_SEEKS,
    bus::BARRACUDA_4LP,
    positioning::CHEETAH_9LP,
    positioning::CHEETAH_9LP_SEEKS,
    bus::CHEETAH_9LP,
    positioning::IBM_18ES,
    positioning::IBM_18ES_SEEKS,
    bus::IBM_18ES,
    positioning::HP_97560,
    positioning::WD_4TB,
    positioning::AVERAGES,
    solid_state::EVO_850,
    solid_state::INTEL_320,
];
