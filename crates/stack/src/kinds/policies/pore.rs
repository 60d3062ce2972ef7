//! PORE: the least recently used block that is clean or in an open zone leaves.

use super::zone::Zone;
use super::{PolicyGiven, PolicyKeys, batch_of};
use crate::config::ConfigError;
use crate::kinds::keys::words;
use crate::kinds::wrong;
use imbrex_core::cache::{self, PolicySettings, PoreSettings};
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use serde::{Deserialize, Serialize};

keys! {
    /// The keys of PORE.
    pub struct PoreConfig {
        /// The unit of addresses that is opened and closed.
        zone: Zone = Zone::Of(Size(20 << 20)) => r#"a size of at least 4 KiB, or `"bands"`: the bands of the translation below"#;
        /// Length of a period, as a multiple of the persistent cache below: of its blocks, or of
        /// its map entries where they are fewer, since a block that is written alone takes an entry;
        /// as many dirty blocks the open zones hold together at its start.
        period_persistent_caches: f64 = 1.0 => "a number above 0";
        /// The same in blocks, instead; needed where no persistent cache is below.
        period_blocks: Option<u64> => "a whole number above 0", "none";
        /// Which zones are opened first.
        open_zones: OpenZones = OpenZones::default() => r#"`"cf"`: highest coverage (share of dirty blocks; of bands, each for its own length); `"pf"`: lowest popularity (accesses a dirty block); `"bl"`: lowest popularity over coverage; `"all"`: every zone, which is plain LRU"#;
        /// What counts towards a period.
        period_counter: PeriodCounter = PeriodCounter::default() => r#"`"write_miss"`, `"dirty_evict"`, `"dirty_insert"`"#;
        /// Which accesses count for popularity.
        popularity_window: PopularityWindow = PopularityWindow::default() => r#"`"period"`: those of the last period; `"lifetime"`: all since the block came in"#;
        /// Accesses that every dirty block is credited with when zones are chosen. With 0, and
        /// the window of a period, a zone that nothing accessed in the last one is opened first,
        /// however few blocks of it are dirty.
        access_floor: u32 = 1 => "`0`, `1`";
        /// Dirty blocks that leave together at most, the least recently used first: those of the
        /// zone of a dirty victim.
        #[serde(skip_serializing_if = "Option::is_none")]
        destage_batch: Option<u32> => "a whole number above 0", "`1`";
    }
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
