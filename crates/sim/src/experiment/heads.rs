//! The table `[heads]` of an experiment: a time in which it is told what schedulers hand down.

use crate::events::AT_S_MAX;
use imbrex_core::units::Instant;
use serde::{Deserialize, Serialize};

/// A time of the replay.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HeadsConfig {
    /// When it begins, in seconds from the start of the replay.
    #[serde(default)]
    pub from_s: f64,
    /// How long it is, in seconds.
    pub for_s: f64,
}

impl HeadsConfig {
    /// Finds a time that cannot be.
    ///
    /// # Errors
    /// Words that name the key, the value and what is accepted.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(0.0..=AT_S_MAX).contains(&self.from_s) {
            return Err(format!("from_s = {}; accepted: 0 to {AT_S_MAX}", self.from_s));
        }
        if !(self.for_s > 0.0 && self.for_s <= AT_S_MAX) {
            return Err(format!(
                "for_s = {}; accepted: more than 0, at most {AT_S_MAX}",
                self.for_s
            ));
        }
        Ok(())
    }

    /// The instant at which it begins.
    pub(super) fn from(&self) -> Instant {
        Instant((self.from_s * 1e9) as u64)
    }

    /// The instant at which it is over.
    pub(super) fn until(&self) -> Instant {
        Instant(((self.from_s + self.for_s) * 1e9) as u64)
    }
}
