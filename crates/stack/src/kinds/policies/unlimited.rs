//! No block leaves: a bound.

use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use serde::{Deserialize, Serialize};

/// The policy has no keys of its own.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UnlimitedConfig {}

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
