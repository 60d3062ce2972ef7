//! PORE: the least recently used block that is clean or in an open zone leaves.

use super::zone::Zone;
use super::{PolicyGiven, PolicyKeys, batch_of};
use crate::config::ConfigError;
use crate::kinds::wrong;
use imbrex_core::cache::{
    OpenZones, PeriodCounter, PolicySettings, PopularityWindow, PoreSettings,
};
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, Word};

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
        open_zones: Word<OpenZones> = Word(OpenZones::Bl) => r#"`"cf"`: highest coverage (share of dirty blocks; of bands, each for its own length); `"pf"`: lowest popularity (accesses a dirty block); `"bl"`: lowest popularity over coverage; `"all"`: every zone, which is plain LRU"#;
        /// What counts towards a period.
        period_counter: Word<PeriodCounter> = Word(PeriodCounter::WriteMiss) => AnyWord;
        /// Which accesses count for popularity.
        popularity_window: Word<PopularityWindow> = Word(PopularityWindow::Period) => r#"`"period"`: those of the last period; `"lifetime"`: all since the block came in"#;
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

impl PolicyKeys for PoreConfig {
    fn name(&self) -> &str {
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
            period_counter: self.period_counter.0,
            popularity_window: self.popularity_window.0,
            access_floor: u64::from(self.access_floor),
            open_zones: self.open_zones.0,
        }))
    }
}
