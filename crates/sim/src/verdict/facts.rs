//! What a workload asks for.

use crate::analysis::movement::Footprint;
use crate::experiment::{NEVER, RunError, Workload};
use crate::record_source::RecordSource;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_traces::{BlockRule, TraceOperation};
use serde::Serialize;

/// Seconds of a day.
pub(super) const DAY_S: f64 = 86_400.0;

/// What a workload asks for, before any drive is looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// Requests, flushes and trims among them.
    pub requests: u64,
    /// From the first request to the last.
    pub duration_s: f64,
    /// Bytes that it writes.
    pub write_bytes: u64,
    /// Distinct blocks of 4 KiB that it reads or writes, in bytes: what shares for caches are shares of.
    pub touched_bytes: u64,
    /// Bytes that it writes in a day at this pace; null for a workload that lasts no time.
    pub write_bytes_per_day: Option<f64>,
}

impl Facts {
    /// One pass over a workload.
    pub(super) fn of(workload: &Workload, rule: BlockRule) -> Result<Facts, RunError> {
        let (mut requests, mut write_bytes) = (0, 0);
        let (mut first_ns, mut last_ns) = (None, 0);
        let mut footprint = Footprint::default();
        let mut records = workload.until(&NEVER)?;
        while let Some(record) = records.next_record()? {
            requests += 1;
            first_ns.get_or_insert(record.time_ns);
            last_ns = record.time_ns;
            match record.operation {
                TraceOperation::Read => {}
                TraceOperation::Write => write_bytes += record.length_bytes,
                _ => continue,
            }
            let blocks = rule.blocks(record.offset_bytes, record.length_bytes);
            footprint.add(blocks.start, blocks.end);
        }
        let duration_s = (last_ns - first_ns.unwrap_or(last_ns)) as f64 / 1e9;
        let per_day = (duration_s > 0.0).then(|| write_bytes as f64 / duration_s * DAY_S);
        Ok(Facts {
            requests,
            duration_s,
            write_bytes,
            touched_bytes: footprint.finish().blocks() * BLOCK_BYTES,
            write_bytes_per_day: per_day,
        })
    }
}
