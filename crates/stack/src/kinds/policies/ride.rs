//! RIDE: dirty blocks leave where the rewrite of their band is already paid for.

use super::zone::Zone;
use super::{PolicyGiven, PolicyKeys};
use crate::config::ConfigError;
use crate::kinds::keys::words;
use imbrex_core::cache::{self, PolicySettings, RideSettings, ZoneSettings};
use serde::{Deserialize, Serialize};

/// The keys of RIDE.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RideConfig {
    /// Dirty blocks that leave together at most.
    #[serde(default = "batch_default")]
    pub batch: u32,
    /// Time of a band rewrite over the time of a random read.
    #[serde(default = "rewrite_over_read_default")]
    pub rewrite_over_read: u32,
    /// How the cache is shared between clean and dirty blocks.
    #[serde(default)]
    pub split: Split,
    /// Blocks of the log below; those of the persistent cache below, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_blocks: Option<u64>,
    /// The parts of the address space that are rewritten together; the bands below, when absent,
    /// or zones of their mean length where a drive hides them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<Zone>,
}

fn batch_default() -> u32 {
    32
}

fn rewrite_over_read_default() -> u32 {
    80
}

words! {
    /// How RIDE shares the cache between clean and dirty blocks.
    Split {
        /// It learns how many blocks may be dirty.
        #[default]
        Adaptive,
        /// It learns also from the dirty blocks that are wanted again.
        TwoGhosts,
        /// A clean block leaves before any dirty one.
        Fixed,
    }
}

impl PolicyKeys for RideConfig {
    fn name(&self) -> &'static str {
        "ride"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        let zones = match (self.zone, given.mean_band) {
            (Some(zone), _) => zone.settings(given.node)?,
            (None, Some(mean)) => ZoneSettings::Equal(mean.0),
            (None, None) => ZoneSettings::Bands,
        };
        Ok(PolicySettings::Ride(RideSettings {
            zones,
            log_blocks: self.log_blocks,
            batch: u64::from(self.batch),
            rewrite_over_read: u64::from(self.rewrite_over_read),
            split: match self.split {
                Split::Adaptive => cache::Split::Adaptive,
                Split::TwoGhosts => cache::Split::TwoGhosts,
                Split::Fixed => cache::Split::Fixed,
            },
        }))
    }
}
