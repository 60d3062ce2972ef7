//! Movement over the requests of a trace.

use super::{Footprint, Model, ModelMovement, Movement, MovementError, MovementSettings};
use crate::experiment::{NEVER, Until, Workload};
use crate::record_source::RecordSource;
use imbrex_drives::{Drive, DriveError, Mechanism};
use imbrex_traces::{
    BlockRule, Source, SourceKind, TraceError, TraceOperation, TraceReader, TraceRecord,
};
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// The schema identifier of [`TraceMovement`].
pub const TRACE_MOVEMENT_SCHEMA: &str = "imbrex.movement/1";

/// How far each model is moved by a trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceMovement {
    /// Always [`TRACE_MOVEMENT_SCHEMA`].
    pub schema: &'static str,
    /// File, or recipe.
    pub path: String,
    /// Captured, recorded or synthetic.
    pub kind: SourceKind,
    /// What it is, for people.
    pub label: String,
    /// SHA-256 of the file as stored; none for a recipe.
    pub sha256: Option<String>,
    /// Records read, after `--limit`.
    pub requests: u64,
    /// Distinct blocks read or written.
    pub touched_blocks: u64,
    /// Which blocks a request covers: `cover` or `size`.
    pub blocks: &'static str,
    /// Geometry and readings.
    #[serde(flatten)]
    pub settings: MovementSettings,
    /// File or name of the drive that gives the times; absent when movement was only counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// SHA-256 of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_sha256: Option<String>,
    /// The models in the order asked for.
    pub models: Vec<ModelMovement>,
}

/// Why movement of a trace cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum TraceMovementError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A setting or the trace does not fit the models.
    #[error(transparent)]
    Movement(#[from] MovementError),
    /// The drive that is to give the times has no arm, or contradicts itself.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The trace can be read only once.
    #[error(
        "-: the models read a trace twice, because the log begins behind its last band; accepted: a \
         file or a recipe"
    )]
    Stream,
}

/// Counts how far each model is moved by a trace, which is read twice, and with a drive what that
/// takes on it.
///
/// # Errors
/// When the trace is damaged, is a stream, or a setting is out of range.
pub fn trace_movement(
    workload: &Workload,
    rule: BlockRule,
    models: &[Model],
    settings: MovementSettings,
    drive: Option<&Drive>,
) -> Result<TraceMovement, TraceMovementError> {
    let moved = moved(workload, rule, models, settings, drive, &NEVER)?;
    Ok(TraceMovement {
        schema: TRACE_MOVEMENT_SCHEMA,
        path: workload.path.clone(),
        kind: moved.source.kind,
        label: moved.source.label,
        sha256: workload.sha256()?,
        requests: moved.requests,
        touched_blocks: moved.touched_blocks,
        blocks: rule.name(),
        settings,
        drive: drive.map(|drive| drive.file.clone()),
        drive_sha256: drive.map(|drive| drive.sha256.clone()),
        models: moved.models,
    })
}

/// What was counted over a trace.
pub(crate) struct Moved {
    source: Source,
    requests: u64,
    touched_blocks: u64,
    /// The models in the order asked for.
    pub models: Vec<ModelMovement>,
}

/// Counts over a trace; once `stop` is set it means nothing.
///
/// # Errors
/// As [`trace_movement`].
pub(crate) fn moved(
    workload: &Workload,
    rule: BlockRule,
    models: &[Model],
    settings: MovementSettings,
    drive: Option<&Drive>,
    stop: &AtomicBool,
) -> Result<Moved, TraceMovementError> {
    settings.check()?;
    if workload.is_stream() {
        return Err(TraceMovementError::Stream);
    }
    let mechanism = drive.map(Mechanism::new).transpose()?;
    let records = || -> Result<Until<'_, TraceReader>, TraceError> {
        let records = workload.records()?;
        Ok(Until::first(workload.limit_records(), records, stop))
    };
    let mut footprint = Footprint::default();
    let mut requests = 0;
    let mut first_pass = records()?;
    while let Some(record) = first_pass.next_record()? {
        let (_, first, blocks) = blocks_of(rule, &record);
        footprint.add(first, first + blocks);
        requests += 1;
    }
    let mut movement = Movement::new(models, settings, footprint)?;
    if let Some(mechanism) = &mechanism {
        movement.time_on(mechanism);
    }
    let touched_blocks = movement.written.touched_blocks();
    let mut second_pass = records()?;
    while let Some(record) = second_pass.next_record()? {
        match blocks_of(rule, &record) {
            (true, first, blocks) => movement.write(first, blocks),
            (false, first, blocks) => movement.read(first, blocks),
        }
    }
    Ok(Moved {
        source: second_pass.records.source().clone(),
        requests,
        touched_blocks,
        models: movement.finish()?,
    })
}

/// Whether a record writes, its first block and how many blocks it visits.
fn blocks_of(rule: BlockRule, record: &TraceRecord) -> (bool, u64, u64) {
    let is_write = match record.operation {
        TraceOperation::Read => false,
        TraceOperation::Write | TraceOperation::WriteZeroes => true,
        TraceOperation::Trim | TraceOperation::Flush => return (false, 0, 0),
    };
    let blocks = rule.blocks(record.offset_bytes, record.length_bytes);
    (is_write, blocks.start, blocks.end - blocks.start)
}
