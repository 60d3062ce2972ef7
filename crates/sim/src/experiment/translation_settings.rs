//! From the settings of a translation as a stack states them to those of the layer.

use crate::disk::{self, Bypass, EntryLimit, TranslationSettings};
use imbrex_core::translation::{
    PersistentCacheSettings, RewriteExtent, RewriteMethod, UpdateMethod,
};
use imbrex_core::units::{BlockCount, Duration};

/// Settings of a layer with so many slots, on a drive that is shrunk `scale` times.
pub(super) fn layer_settings(
    from: &TranslationSettings,
    log_blocks: BlockCount,
    scale: u64,
) -> PersistentCacheSettings {
    let mut settings = PersistentCacheSettings::new(log_blocks);
    settings.entries_max = match from.entries {
        Some(EntryLimit::Entries(entries)) => Some((entries / scale).max(1)),
        Some(EntryLimit::Unlimited) | None => None,
    };
    settings.update = match from.update {
        Some(disk::Update::InPlace) => UpdateMethod::InPlace,
        Some(disk::Update::Append) | None => UpdateMethod::Append,
    };
    settings.bypass = from.bypass == Some(Bypass::On);
    settings.rewrite = match from.rewrite {
        Some(disk::Rewrite::InPlace) => RewriteMethod::InPlace,
        Some(disk::Rewrite::CopyThenHome) | None => RewriteMethod::CopyThenHome,
    };
    settings.rewrite_extent = match from.rewrite_extent {
        Some(disk::RewriteExtent::FromFirstDirty) => RewriteExtent::FromFirstDirty,
        Some(disk::RewriteExtent::Band) | None => RewriteExtent::Band,
    };
    settings.rewrite_overhead = from.rewrite_overhead.map_or(Duration::ZERO, |span| span.0);
    settings
}
