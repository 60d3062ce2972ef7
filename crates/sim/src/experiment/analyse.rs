//! What an experiment looks at in a trace itself, instead of running stacks on it.

use super::experiment::{Analysis, DirectWriteConfig};
use super::run::{RunError, kind_of};
use super::workload::{Until, Workload};
use crate::analysis::DirectWrite;
use crate::record_source::RecordSource;
use crate::replay::{Placement, place};
use imbrex_core::operation::Operation;
use imbrex_core::units::BlockCount;
use imbrex_drives::quantity::Size;
use imbrex_report::{MemoryUser, WorkloadKind};
use imbrex_stack::{ConfigError, lay_out};
use imbrex_traces::{BlockRule, Characterise};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;

/// One look to be taken at a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    /// What is looked at.
    pub analysis: &'a Analysis,
    /// The trace.
    pub workload: &'a Workload,
    /// The root seed.
    pub seed: u64,
    /// Size of the device that the experiment states.
    pub size: Option<Size>,
}

/// What was seen in a trace.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub kind: WorkloadKind,
    pub values: serde_json::Value,
}

impl Look<'_> {
    /// The workload and what is looked at in it.
    pub fn name(&self) -> String {
        let what = match self.analysis {
            Analysis::Characteristics => "characteristics",
            Analysis::DirectWrite(_) => "direct-write",
            Analysis::Movement(_) => "movement",
        };
        format!("{}, {what}", self.workload.path)
    }

    /// Takes the look. What it sees after it was stopped means nothing.
    pub fn take(&self, stop: &AtomicBool) -> Result<Seen, RunError> {
        // A run of the same process does not have its memory alone then.
        MemoryUser::enter();
        let workload = self.workload;
        let kind = kind_of(workload.records()?.source().kind);
        let values = match self.analysis {
            Analysis::Characteristics => characteristics(workload, stop)?,
            Analysis::DirectWrite(config) => {
                let size_bytes = match self.size {
                    Some(size) => size.bytes(),
                    None => workload.span_bytes_until(stop)?,
                };
                config.estimate(workload, size_bytes, self.seed, stop)?
            }
            Analysis::Movement(movement) => movement.count(workload, stop)?,
        };
        Ok(Seen { kind, values })
    }
}

fn characteristics(workload: &Workload, stop: &AtomicBool) -> Result<serde_json::Value, RunError> {
    let records = workload.records()?;
    let mut records = Until::first(workload.limit_records(), records, stop);
    let mut characterise = Characterise::new(BlockRule::default());
    while let Some(record) = records.next_record()? {
        characterise.add(&record);
    }
    let found = characterise.finish(&records.records);
    Ok(serde_json::to_value(found).expect("keys are strings"))
}

impl DirectWriteConfig {
    /// The estimate for a trace on a device of `size_bytes`.
    fn estimate(
        &self,
        workload: &Workload,
        size_bytes: u64,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<serde_json::Value, RunError> {
        let device = BlockCount::from_bytes_floor(size_bytes);
        let bands = lay_out(self.bands, device, seed)?;
        let footprint =
            workload.footprint_until(&bands, device, Placement::default(), true, stop)?;
        let log_bytes = footprint.bytes_of(self.persistent_cache);
        let mut estimate = DirectWrite::new(&bands, BlockCount::from_bytes_floor(log_bytes));
        let mut records = workload.until(stop)?;
        while let Some(record) = records.next_record()? {
            match place(&record, device, Placement::default()) {
                Some((Operation::Write { .. }, extent)) => estimate.write(extent),
                Some(_) => {}
                None => {
                    return Err(ConfigError::words(format!(
                        "{}: a request at offset {} ends beyond the device of {size_bytes} bytes; set a \
                         larger `size`",
                        workload.path, record.offset_bytes
                    ))
                    .into());
                }
            }
        }
        Ok(serde_json::json!({
            "footprint_bytes": footprint.touched_bytes,
            "fills": estimate.fills(),
            "band_bytes_written": estimate.band_bytes_written(),
            "write_amplification": estimate.write_amplification(),
        }))
    }
}
