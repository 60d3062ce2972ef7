//! Sequential reads over a SCSI bus: requests in flight share it, so they are as fast as it is.

use super::mechanics::queued_sequential_rate;
use super::row::{Accepted, Draws, Gate, Measurement, Published, Role};
use super::subject::{BenchError, Subject};
use crate::basis::Basis;
use imbrex_drives::Drive;

/// Bytes of a sector over `read_sector`, in MB/s.
const fn rate(mb_per_s: f64) -> Gate {
    Gate {
        id: "bus",
        metric: "sequential reads over the bus",
        definition: "bytes over time of 1 MiB reads at the first blocks, four in flight; beside it \
                     512 bytes over DiskSim's time of a sector on the bus",
        unit: "MB/s",
        published: Published::Number(mb_per_s),
        accepted: Accepted::Share(0.03),
        role: Role::Gate,
        basis: Basis::Construction,
        source: "models of DiskSim (bulk sector transfer time)",
    }
}

/// Quantum Atlas 10K: 0.099 ms a sector.
pub const ATLAS_10K: Measurement = Measurement {
    drive: "atlas10k",
    gates: &[rate(5.172)],
    draws: Draws::Nothing,
    needs_traces: false,
    measure: reads,
};

/// Seagate Barracuda 4LP: 0.134 ms.
pub const BARRACUDA_4LP: Measurement = Measurement {
    drive: "barracuda-4lp",
    gates: &[rate(3.821)],
    draws: Draws::Nothing,
    needs_traces: false,
    measure: reads,
};

/// Seagate Cheetah 9LP: 0.105 ms.
pub const CHEETAH_9LP: Measurement = Measurement {
    drive: "cheetah-9lp",
    gates: &[rate(4.876)],
    draws: Draws::Nothing,
    needs_traces: false,
    measure: reads,
};

/// IBM Ultrastar 18ES: 0.101 ms.
pub const IBM_18ES: Measurement = Measurement {
    drive: "ibm-18es",
    gates: &[rate(5.069)],
    draws: Draws::Nothing,
    needs_traces: false,
    measure: reads,
};

fn reads(subject: &Subject) -> Result<Vec<Option<f64>>, BenchError> {
    let drive = Drive::open(&subject.drive)?;
    Ok(vec![Some(queued_sequential_rate(&drive)?)])
}
