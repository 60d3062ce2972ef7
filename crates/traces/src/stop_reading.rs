//! Somebody who may want no more of a trace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the reading of a trace with [`Stopped`](super::TraceError::Stopped) once it is set, from any thread.
#[derive(Clone, Default)]
pub struct StopReading(Arc<AtomicBool>);

impl StopReading {
    /// Ends it once this is set.
    pub fn when(is_set: &Arc<AtomicBool>) -> StopReading {
        StopReading(Arc::clone(is_set))
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for StopReading {
    /// The same for all: who may stop changes nothing of what is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopReading")
    }
}
