//! Where the addresses of the sources lie in the result.

use super::SourceSummary;
use super::pack::{BLOCK_BYTES, Packing};
use super::settings::{Combination, Place, wrong};
use super::source::{SourceConfig, SourceReader, moved};
use crate::error::TraceError;
use crate::record::{TraceOperation, TraceRecord};
use imbrex_drives::quantity::Size;
use std::sync::Arc;

/// What is done to an address of each source.
#[derive(Debug, Clone)]
pub(super) enum Placement {
    /// Nothing.
    Overlay,
    /// Source i goes to device i.
    Separate,
    /// Source i starts at byte `starts[i]`; the last entry is the end of all.
    Concatenate { starts: Vec<u64> },
    /// Every block has a place of its own.
    Pack(Arc<Packing>),
}

impl Placement {
    /// The placement of a combination, after a first pass over its sources where it needs one.
    pub(super) fn of(combination: &Combination) -> Result<Self, TraceError> {
        Ok(match combination.place {
            Place::Overlay => Self::Overlay,
            Place::Separate => Self::Separate,
            Place::Pack => Self::Pack(Arc::new(Packing::of(combination)?)),
            Place::Concatenate => {
                let align = combination.align.map_or(BLOCK_BYTES, Size::bytes);
                let mut starts = vec![0];
                for source in &combination.traces {
                    let span = span_bytes(source)?;
                    let rounded = span.div_ceil(align).checked_mul(align);
                    let start = starts[starts.len() - 1];
                    starts.push(moved(rounded.unwrap_or(u64::MAX), start, &source.path)?);
                }
                Self::Concatenate { starts }
            }
        })
    }

    /// Appends the request of a source at the place where it lies.
    pub(super) fn place(
        &self,
        source: usize,
        mut record: TraceRecord,
        pieces: &mut Vec<TraceRecord>,
    ) -> Result<(), TraceError> {
        match self {
            Self::Overlay => {}
            Self::Pack(_) if record.operation == TraceOperation::Flush => {}
            Self::Pack(packing) => {
                packing.place(source, record, pieces);
                return Ok(());
            }
            Self::Separate => {
                record.device = u16::try_from(source).expect("at most 65536 sources");
            }
            Self::Concatenate { starts } => {
                if record.operation != TraceOperation::Flush {
                    let end = record.offset_bytes + record.length_bytes;
                    if starts[source] + end > starts[source + 1] {
                        return Err(wrong(format!(
                            "source {} has changed since its span was looked up",
                            source + 1
                        )));
                    }
                    record.offset_bytes += starts[source];
                }
            }
        }
        pieces.push(record);
        Ok(())
    }

    /// Size of the device of the result, where it can be told.
    pub(super) fn device_bytes(&self, sources: &[SourceSummary]) -> Option<u64> {
        match self {
            Self::Overlay => {
                let sizes: Option<Vec<u64>> = sources.iter().map(|s| s.device_bytes).collect();
                sizes?.into_iter().max()
            }
            Self::Separate => None,
            Self::Pack(packing) => Some(packing.bytes()),
            Self::Concatenate { starts } => starts.last().copied(),
        }
    }
}

/// End of the highest request of a source.
fn span_bytes(config: &SourceConfig) -> Result<u64, TraceError> {
    let mut source = SourceReader::open(config)?;
    let mut span = 0;
    while let Some(record) = source.take()? {
        span = span.max(record.offset_bytes + record.length_bytes);
    }
    Ok(span)
}
