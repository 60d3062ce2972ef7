//! RIDE: dirty blocks leave where the rewrite of their band is already paid for.

use super::zone::{Zone, bands_or};
use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use imbrex_core::cache::{PolicySettings, RideSettings, Split};
use imbrex_drives::Word;
use imbrex_drives::keys;

keys! {
    /// The keys of RIDE.
    pub struct RideConfig {
        /// Dirty blocks of a band that leave together at most.
        #[serde(rename = "batch")]
        destage_batch (once batch): u32 = 32 => "a whole number above 0";
        /// Time of a band rewrite over the time of a random read, by which it weighs clean
        /// against dirty blocks.
        rewrite_over_read: u32 = 80 => "a whole number above 0";
        /// How the cache is shared between clean and dirty blocks.
        split: Word<Split> = Word(Split::Adaptive) => r#"`"adaptive"`: it learns how many may be dirty, from clean blocks that are wanted again; `"two-ghosts"`: also from dirty ones; `"fixed"`: a clean block leaves before any dirty one"#;
        /// Blocks of the log below; needed where no persistent cache is below.
        #[serde(skip_serializing_if = "Option::is_none")]
        log_blocks: Option<u64> => "a whole number above 0", "those, and the `entries`, of the persistent cache below, or of a drive that cleans by itself";
        /// The unit of addresses that is taken to be rewritten together.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<Zone> => r#"a size of at least 4 KiB, or `"bands"`: the bands of the translation below"#, r#"`"bands"`, over a drive that cleans by itself the mean length of its bands"#;
    }
}

impl PolicyKeys for RideConfig {
    fn name(&self) -> &str {
        "ride"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        Ok(PolicySettings::Ride(RideSettings {
            zones: bands_or(self.zone, given)?,
            log_blocks: self.log_blocks,
            batch: u64::from(self.destage_batch),
            rewrite_over_read: u64::from(self.rewrite_over_read),
            split: self.split.0,
        }))
    }
}
