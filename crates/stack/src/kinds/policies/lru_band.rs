//! With the least recently used block its whole band leaves.

use super::{PolicyGiven, PolicyKeys, batch_of};
use crate::config::ConfigError;
use imbrex_core::cache::PolicySettings;
use serde::{Deserialize, Serialize};

/// The keys of LRU-band.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LruBandConfig {
    /// Dirty blocks of the band that leave together at most; all of them when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destage_batch: Option<u32>,
}

impl PolicyKeys for LruBandConfig {
    fn name(&self) -> &'static str {
        "lru-band"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        let batch = self.destage_batch.map(|batch| batch_of(given.node, batch));
        Ok(PolicySettings::LruBand { bands: None, batch: batch.transpose()? })
    }
}
