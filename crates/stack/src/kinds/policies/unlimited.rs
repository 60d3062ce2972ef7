//! No block leaves: a bound.

use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use imbrex_drives::keys;

keys! {
    /// The policy has no keys of its own.
    pub struct UnlimitedConfig {}
}

impl PolicyKeys for UnlimitedConfig {
    fn name(&self) -> &'static str {
        "unlimited"
    }

    fn is_unbounded(&self) -> bool {
        true
    }

    fn settings(&self, _: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Unlimited)
    }
}
