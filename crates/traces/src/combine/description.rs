//! What a combination says about itself and its sources.

use serde::{Deserialize, Serialize};

use super::settings::Combination;
use super::source::SourceConfig;
use crate::error::TraceError;
use crate::reader::{open, stored_sha256};
use crate::record::{Source, SourceKind};
use crate::synthetic::PATH_PREFIX;

/// What a source of a combination is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceSummary {
    /// File, or `synthetic:RECIPE`.
    pub path: String,
    /// Captured, recorded or synthetic.
    pub kind: SourceKind,
    /// SHA-256 of the file as stored (of the text of a recipe), in hex.
    pub sha256: Option<String>,
    /// What it is, for people.
    #[serde(skip)]
    pub(super) label: String,
    /// Size of its device, with the shift of its addresses, where the trace says.
    #[serde(skip)]
    pub(super) device_bytes: Option<u64>,
    /// False for formats without times.
    #[serde(skip)]
    pub(super) has_times: bool,
}

impl SourceSummary {
    /// Looks at a source.
    pub(super) fn of(config: &SourceConfig) -> Result<Self, TraceError> {
        let options = config.options()?;
        let reader = open(&config.path, &options)?;
        let source = reader.source();
        let offset = config.offset.map_or(0, |offset| offset.bytes());
        Ok(Self {
            path: config.path.clone(),
            kind: source.kind,
            sha256: match config.path.as_str() {
                path if path.starts_with(PATH_PREFIX) => reader.sha256(),
                path => Some(stored_sha256(path, &options)?),
            },
            label: source.label.clone(),
            device_bytes: source.device_bytes.map(|bytes| bytes.saturating_add(offset)),
            has_times: reader.has_times(),
        })
    }
}

impl Combination {
    /// A name for it: those of its sources.
    pub fn label(&self) -> String {
        let names = self.traces.iter().map(|source| match source.path.strip_prefix(PATH_PREFIX) {
            Some(recipe) => recipe,
            None => source.path.rsplit('/').next().unwrap_or(&source.path),
        });
        names.collect::<Vec<_>>().join("+")
    }
}

/// What a mix is. It is never called better than its weakest part.
pub(super) fn source_of(
    combination: &Combination,
    sources: &[SourceSummary],
    device_bytes: Option<u64>,
) -> Source {
    let kind = sources.iter().map(|source| source.kind).max_by_key(weakness);
    let parts = sources.iter().zip(&combination.traces).map(|(source, config)| {
        let sha256 = source.sha256.as_deref().unwrap_or("unknown");
        format!("{} {} sha256 {sha256}", source.kind, config)
    });
    Source {
        kind: kind.unwrap_or(SourceKind::Synthetic),
        label: format!("{}: {}", combination.parameters(), parts.collect::<Vec<_>>().join("; ")),
        device_bytes,
    }
}

/// How far a kind is from a production system.
fn weakness(kind: &SourceKind) -> u8 {
    match kind {
        SourceKind::Captured => 0,
        SourceKind::Recorded => 1,
        SourceKind::Synthetic => 2,
    }
}
