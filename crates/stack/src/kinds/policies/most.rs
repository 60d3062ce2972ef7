//! MOST: the zone of which the most blocks are cached leaves whole.

use super::zone::{Zone, bands_or};
use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use imbrex_drives::keys;

keys! {
    /// The keys of MOST.
    pub struct MostConfig {
        /// The unit of addresses that leaves whole.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<Zone> => r#"a size of at least 4 KiB, or `"bands"`: the bands of the translation below"#, r#"`"bands"`, over a drive that cleans by itself the mean length of its bands"#;
    }
}

impl PolicyKeys for MostConfig {
    fn name(&self) -> &str {
        "most"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Most(bands_or(self.zone, given)?))
    }
}
