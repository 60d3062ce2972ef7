//! Footprints by what they depend on.

use crate::replay::Placement;
use imbrex_stack::Footprint;
use imbrex_traces::TraceError;
use std::sync::{Arc, Mutex, OnceLock};

/// Footprints by what they depend on, so that many cases over one workload make one first pass.
#[derive(Default)]
pub(super) struct Footprints {
    known: Mutex<Vec<(FootprintKey, Arc<OnceLock<Footprint>>)>>,
}

/// What a footprint depends on.
#[derive(Clone, PartialEq)]
pub(super) struct FootprintKey {
    /// The workload, in words.
    pub workload: String,
    /// The layout of the bands, in words.
    pub bands: String,
    /// Whether reads touch nothing.
    pub writes_only: bool,
    /// Where the records go on the device.
    pub placement: Placement,
}

impl Footprints {
    /// The footprint under a key, which `pass` finds if nobody has yet.
    pub(super) fn get(
        &self,
        key: FootprintKey,
        pass: impl FnOnce() -> Result<Footprint, TraceError>,
    ) -> Result<Footprint, TraceError> {
        let cell = {
            let mut known = self.known.lock().expect("no holder panics");
            match known.iter().find(|(other, _)| *other == key) {
                Some((_, cell)) => Arc::clone(cell),
                None => {
                    let cell = Arc::new(OnceLock::new());
                    known.push((key, Arc::clone(&cell)));
                    cell
                }
            }
        };
        // Two cases may make the pass at once; both find the same numbers.
        match cell.get() {
            Some(footprint) => Ok(*footprint),
            None => {
                let footprint = pass()?;
                Ok(*cell.get_or_init(|| footprint))
            }
        }
    }
}
