//! PORE: the least recently used block that is clean or in an open zone leaves.

use super::zone::Zone;
use super::{PolicyGiven, PolicyKeys, batch_of};
use crate::config::ConfigError;
use crate::kinds::keys::words;
use crate::kinds::wrong;
use imbrex_core::cache::{self, PolicySettings, PoreSettings};
use imbrex_drives::quantity::Size;
use serde::{Deserialize, Serialize};

/// The keys of PORE.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PoreConfig {
    /// The unit of address space that is opened.
    #[serde(default = "zone_default")]
    pub zone: Zone,
    /// Length of a period, as a multiple of the blocks that fill the persistent cache below when
    /// each is a write of its own: its blocks, or its map entries where they are fewer.
    #[serde(default = "one")]
    pub period_persistent_caches: f64,
    /// Length of a period in blocks, instead.
    pub period_blocks: Option<u64>,
    /// Which zones are opened first.
    #[serde(default)]
    pub open_zones: OpenZones,
    /// What a period counts.
    #[serde(default)]
    pub period_counter: PeriodCounter,
    /// Which accesses count for a zone's popularity.
    #[serde(default)]
    pub popularity_window: PopularityWindow,
    /// Accesses that every dirty block is credited with at a division.
    #[serde(default = "access_floor_default")]
    pub access_floor: u32,
    /// Dirty blocks of a zone that leave together at most; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destage_batch: Option<u32>,
}

fn zone_default() -> Zone {
    Zone::Of(Size(20 << 20))
}

fn one() -> f64 {
    1.0
}

fn access_floor_default() -> u32 {
    1
}

words! {
    /// Which zones PORE opens first.
    OpenZones {
        /// Highest coverage.
        Cf,
        /// Lowest popularity.
        Pf,
        /// Lowest popularity over coverage.
        #[default]
        Bl,
        /// All of them, which makes PORE plain LRU.
        All,
    }
}

/// What a PORE period counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeriodCounter {
    /// Write misses.
    #[default]
    WriteMiss,
    /// Dirty evictions.
    DirtyEvict,
    /// Blocks that become dirty.
    DirtyInsert,
}

words! {
    /// Which accesses count for a zone's popularity.
    PopularityWindow {
        /// Those of the last period.
        #[default]
        Period,
        /// All since the block entered the cache.
        Lifetime,
    }
}

impl PolicyKeys for PoreConfig {
    fn name(&self) -> &'static str {
        "pore"
    }

    fn settings(&self, given: &PolicyGiven<'_>) -> Result<PolicySettings, ConfigError> {
        let refuse = |message: &str| Err(wrong(given.node, &message));
        let multiple = self.period_persistent_caches;
        if !(multiple > 0.0 && multiple.is_finite()) {
            return refuse(&format!(
                "period_persistent_caches = {multiple}; accepted: a number above 0"
            ));
        }
        let period_blocks = match (self.period_blocks, given.log) {
            (Some(0), _) => return refuse("period_blocks = 0; accepted: 1 or more"),
            (Some(blocks), _) => blocks,
            (None, None) => {
                return refuse(
                    "a period is a multiple of the persistent cache, and there is none below; set \
                     period_blocks",
                );
            }
            // A tiny multiple of a small persistent cache is one block.
            (None, Some(log)) => ((log.single_blocks() as f64 * multiple) as u64).max(1),
        };
        Ok(PolicySettings::Pore(PoreSettings {
            zones: self.zone.settings(given.node)?,
            batch: batch_of(given.node, self.destage_batch.unwrap_or(1))?,
            period_blocks,
            period_counter: match self.period_counter {
                PeriodCounter::WriteMiss => cache::PeriodCounter::WriteMiss,
                PeriodCounter::DirtyEvict => cache::PeriodCounter::DirtyEvict,
                PeriodCounter::DirtyInsert => cache::PeriodCounter::DirtyInsert,
            },
            popularity_window: match self.popularity_window {
                PopularityWindow::Period => cache::PopularityWindow::Period,
                PopularityWindow::Lifetime => cache::PopularityWindow::Lifetime,
            },
            access_floor: u64::from(self.access_floor),
            open_zones: match self.open_zones {
                OpenZones::Cf => cache::OpenZones::Cf,
                OpenZones::Pf => cache::OpenZones::Pf,
                OpenZones::Bl => cache::OpenZones::Bl,
                OpenZones::All => cache::OpenZones::All,
            },
        }))
    }
}
