//! From the settings of a translation as a stack states them to those of the layer.

use crate::disk::{self, Bypass, EntryLimit, TranslationSettings};
use crate::quantity::{Size, Span};
use imbrex_core::translation::{
    MapJournalSettings, PersistentCacheSettings, RewriteExtent, RewriteMethod, UpdateMethod,
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
    let time = |span: Option<Span>| span.map_or(Duration::ZERO, |span| span.0);
    let blocks = |size: Size| BlockCount::from_bytes_floor(size.0);
    settings.rewrite_overhead = time(from.rewrite_overhead);
    if let Some(after) = from.bypass_after {
        settings.bypass_after_blocks = blocks(after);
    }
    settings.map_journal = MapJournalSettings {
        every_records: from.journal_every_records.unwrap_or(0),
        stall: time(from.journal_stall),
        stall_per_mib: time(from.journal_stall_per_mib),
        log_per_flush: from.log_per_flush.map_or(BlockCount::ZERO, blocks),
        flush_overhead: time(from.flush_overhead),
    };
    settings
}
