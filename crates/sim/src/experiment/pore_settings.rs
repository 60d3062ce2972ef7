//! From the configuration of a PORE cache to its settings in blocks.

use super::config::{CacheConfig, ConfigError, OpenZones, PeriodCounter, PopularityWindow};
use imbrex_core::cache::{self, PoreSettings};
use imbrex_core::units::{BLOCK_BYTES, BlockCount};
use imbrex_drives::quantity::Size;

/// The settings of PORE in `config`, over a persistent cache of `log_blocks` (zero without one).
///
/// # Errors
/// When a zone or a period would be empty.
pub(super) fn pore_settings(
    config: &CacheConfig,
    log_blocks: BlockCount,
) -> Result<PoreSettings, ConfigError> {
    let wrong = |message: &str| {
        Err(ConfigError::words(format!(
            "node `{}`: {message}",
            config.name
        )))
    };
    let multiple = config.period_persistent_caches;
    if !(multiple > 0.0 && multiple.is_finite()) {
        return wrong(&format!(
            "period_persistent_caches = {multiple}; accepted: a number above 0"
        ));
    }
    let period_blocks = match config.period_blocks {
        Some(0) => return wrong("period_blocks = 0; accepted: 1 or more"),
        Some(blocks) => blocks,
        None if log_blocks == BlockCount::ZERO => {
            return wrong(
                "a period is a multiple of the persistent cache, and there is none below; set \
                 period_blocks",
            );
        }
        // A tiny multiple of a small persistent cache is one block.
        None => ((log_blocks.0 as f64 * multiple) as u64).max(1),
    };
    Ok(PoreSettings {
        zone_blocks: BlockCount::from_bytes_floor(
            at_least_a_block(config, "zone", config.zone)?.bytes(),
        )
        .0,
        period_blocks,
        period_counter: match config.period_counter {
            PeriodCounter::WriteMiss => cache::PeriodCounter::WriteMiss,
            PeriodCounter::DirtyEvict => cache::PeriodCounter::DirtyEvict,
            PeriodCounter::DirtyInsert => cache::PeriodCounter::DirtyInsert,
        },
        popularity_window: match config.popularity_window {
            PopularityWindow::Period => cache::PopularityWindow::Period,
            PopularityWindow::Lifetime => cache::PopularityWindow::Lifetime,
        },
        access_floor: u64::from(config.access_floor),
        open_zones: match config.open_zones {
            OpenZones::Cf => cache::OpenZones::Cf,
            OpenZones::Pf => cache::OpenZones::Pf,
            OpenZones::Bl => cache::OpenZones::Bl,
            OpenZones::All => cache::OpenZones::All,
        },
    })
}

/// A size of a cache that must hold something.
///
/// # Errors
/// When it is less than one block.
pub(super) fn at_least_a_block(
    config: &CacheConfig,
    key: &str,
    size: Size,
) -> Result<Size, ConfigError> {
    if size.bytes() < BLOCK_BYTES {
        return Err(ConfigError::words(format!(
            "node `{}`: {key} = \"{size}\"; accepted: one block (4096 B) or more",
            config.name
        )));
    }
    Ok(size)
}
