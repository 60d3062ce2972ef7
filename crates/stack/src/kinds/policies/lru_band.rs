//! With the least recently used block its whole band leaves.

use super::{PolicyGiven, PolicyKeys, batch_of};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use imbrex_drives::keys;

keys! {
    /// The keys of LRU-band.
    pub struct LruBandConfig {
        /// Dirty blocks that leave together at most, the least recently used first: those of the band of the victim; all
        /// clean blocks of that band leave with them, as they do without a limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        destage_batch: Option<u32> => "a whole number above 0", "no limit, the whole band";
    }
}

impl PolicyKeys for LruBandConfig {
    fn name(&self) -> &str {
        "lru-band"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        let batch = self.destage_batch.map(|batch| batch_of(given.node, batch));
        Ok(PolicySettings::LruBand { bands: None, batch: batch.transpose()? })
    }
}
