//! With the least recently used block its whole band leaves.

use super::{PolicyGiven, PolicyKeys};
use crate::experiment::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use serde::{Deserialize, Serialize};

/// The policy has no keys of its own.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LruBandConfig {}

impl PolicyKeys for LruBandConfig {
    fn name(&self) -> &'static str {
        "lru-band"
    }

    fn settings(&self, _: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::LruBand { bands: None })
    }
}
