//! The least recently used block leaves.

use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use imbrex_drives::keys;

keys! {
    /// The policy has no keys of its own.
    pub struct LruConfig {}
}

impl PolicyKeys for LruConfig {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn settings(&self, _: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Lru)
    }
}
