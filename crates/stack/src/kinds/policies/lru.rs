//! The least recently used block leaves.

use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use serde::{Deserialize, Serialize};

/// The policy has no keys of its own.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LruConfig {}

impl PolicyKeys for LruConfig {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn settings(&self, _: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Lru)
    }
}
