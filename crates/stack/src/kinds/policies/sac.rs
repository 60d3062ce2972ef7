//! SAC: clean blocks or the dirty ones of open zones leave, whichever costs less.

use super::zone::{Zone, bands_or};
use super::{PolicyGiven, PolicyKeys, batch_of};
use crate::config::ConfigError;
use imbrex_core::cache::{PolicySettings, SacSettings};
use imbrex_drives::keys;

keys! {
    /// The keys of SAC.
    pub struct SacConfig {
        /// Dirty blocks of a zone that leave together at most, the least recently used first.
        destage_batch: u32 = 64 => "a whole number above 0";
        /// Blocks of the log below: as many zones are open as are no larger together. Needed where no
        /// persistent cache is below.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_blocks: Option<u64> => "a whole number above 0", "those, or the `entries` where they are fewer, of the persistent cache below, or of a drive that cleans by itself";
        /// The unit of addresses that is opened and closed.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<Zone> => r#"a size of at least 4 KiB, or `"bands"`: the bands of the translation below"#, r#"`"bands"`, over a drive that cleans by itself the mean length of its bands"#;
    }
}

impl PolicyKeys for SacConfig {
    fn name(&self) -> &str {
        "sac"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Sac(SacSettings {
            zones: bands_or(self.zone, given)?,
            log_blocks: self.log_blocks,
            batch: batch_of(given.node, self.destage_batch)?,
        }))
    }
}
