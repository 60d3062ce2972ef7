//! The block that is used again last leaves: a bound.

use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use crate::kinds::wrong;
use imbrex_core::cache::{PolicySettings, next_uses};
use imbrex_drives::keys;

keys! {
    /// The policy has no keys of its own.
    pub struct OptConfig {}
}

impl PolicyKeys for OptConfig {
    fn name(&self) -> &str {
        "opt"
    }

    fn foresees(&self) -> bool {
        true
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        let Some(lookups) = given.lookups else {
            let words = "policy `opt` must know the future, so it needs a trace";
            return Err(wrong(given.node, &words));
        };
        Ok(PolicySettings::Opt { next_uses: next_uses(lookups).into() })
    }
}
