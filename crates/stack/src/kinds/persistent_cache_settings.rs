//! From the settings of a translation as a stack states them to those of the layer.

use imbrex_core::translation::{
    BypassSettings, MapJournalSettings, PersistentCacheSettings, StreamClasses,
};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration};
use imbrex_drives::quantity::{Size, Span};
use imbrex_drives::{EntryLimit, MergeBuffer, OnOff, TranslationSettings, Word};

/// The gap within a stream where nobody says it: 64 KiB.
const GAP: BlockCount = BlockCount(16);
/// The length of a long write where nobody says it: 256 KiB.
const LARGE: BlockCount = BlockCount(64);

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
    settings.update = Word::or(from.update, settings.update);
    settings.trim = Word::or(from.trim, settings.trim);
    let rewrite = &mut settings.rewrite;
    rewrite.method = Word::or(from.rewrite, rewrite.method);
    rewrite.extent = Word::or(from.rewrite_extent, rewrite.extent);
    rewrite.covered = Word::or(from.rewrite_covered, rewrite.covered);
    rewrite.gather = Word::or(from.gather, rewrite.gather);
    rewrite.merge_buffer_blocks = match from.merge_buffer {
        Some(MergeBuffer::Of(size)) => Some(BlockCount::from_bytes_floor(size.0)),
        Some(MergeBuffer::None) | None => None,
    };
    let time = |span: Option<Span>| span.map_or(Duration::ZERO, |span| span.0);
    let blocks = |size: Size| BlockCount::from_bytes_floor(size.0);
    // 0 is another thing than little, and turns these off.
    let at_least = |size: Size| BlockCount(size.0.div_ceil(BLOCK_BYTES));
    rewrite.overhead = time(from.rewrite_overhead);
    if from.bypass == Some(Word(OnOff::On)) {
        let usual = BypassSettings::default();
        let after_blocks = from.bypass_after.map_or(usual.after_blocks, blocks);
        settings.bypass = Some(BypassSettings {
            after_blocks,
            after_max_blocks: from.bypass_after_max.map_or(after_blocks, blocks),
            min_blocks: from.bypass_min.map_or(usual.min_blocks, at_least),
            classes: from.bypass_streams.map(|streams| StreamClasses {
                streams: streams as u32,
                gap_blocks: from.bypass_gap.map_or(GAP, blocks),
                large_blocks: from.bypass_large.map_or(LARGE, at_least),
            }),
        });
    }
    settings.in_place_blocks =
        from.in_place.map_or(BlockCount::ZERO, |size| BlockCount(at_least(size).0.div_ceil(scale)));
    settings.map_journal = MapJournalSettings {
        every_records: from.journal_every_records.unwrap_or(0),
        stall: time(from.journal_stall),
        stall_per_mib: time(from.journal_stall_per_mib),
        log_per_flush: from.log_per_flush.map_or(BlockCount::ZERO, blocks),
        transaction: from.log_transaction.map_or(BlockCount::ZERO, at_least),
        flush_overhead: time(from.flush_overhead),
    };
    settings
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Plan, Setting, StackConfig};
    use imbrex_core::buffer::ContentKind;

    /// Builds the ST5000AS0011, which has a merge buffer, with a setting of its translation.
    fn build(setting: Option<&str>, durable: bool) -> Result<(), String> {
        let settings: Vec<Setting> = setting
            .map(|text| Setting::parse(&format!("translation.{text}")).unwrap())
            .into_iter()
            .collect();
        let options = BuildOptions { durable, scale: 1024, ..BuildOptions::simulate(1) };
        let config = StackConfig::of_drive("st5000as0011", &settings).unwrap();
        Plan::new(&config, &options)
            .and_then(|plan| plan.build(None, None, ContentKind::Counted))
            .map_err(|error| error.to_string())
            .map(|_| ())
    }

    #[test]
    fn writes_that_are_judged_by_themselves_have_keys_of_their_own() {
        let build = |drive: &str, settings: &[&str]| {
            let parse = |text: &&str| Setting::parse(&format!("translation.{text}")).unwrap();
            let settings: Vec<Setting> = settings.iter().map(parse).collect();
            let options = BuildOptions { scale: 1024, ..BuildOptions::simulate(1) };
            let config = StackConfig::of_drive(drive, &settings).unwrap();
            let plan = Plan::new(&config, &options).map(|_| ());
            plan.map_err(|error| error.to_string())
        };
        // The file of this drive has `bypass_after`.
        assert_eq!(build("st8000as0002", &["bypass_streams=32", "bypass_gap=0"]), Ok(()));
        for (settings, expected) in [
            (
                &["bypass_streams=32", "bypass_after=1MiB"][..],
                "`bypass_after` is about streams that have lasted",
            ),
            (&["bypass_gap=4KiB"], "`bypass_gap` says which writes are sequential by themselves"),
            (&["bypass_large=4KiB"], "`bypass_large` says which writes"),
            (&["bypass_streams=0"], "bypass_streams = 0: accepted are 1 to 1024"),
            (&["bypass_streams=1025"], "accepted are 1 to 1024"),
            (&["bypass_streams=4", "bypass=off"], "accepted with bypass = \"on\""),
        ] {
            let error = build("st5000as0011", settings).unwrap_err();
            assert!(error.contains(expected), "{settings:?}: {error}");
        }
    }

    #[test]
    fn a_merge_buffer_is_refused_where_it_cannot_be_used() {
        for durable in [false, true] {
            assert_eq!(build(None, durable), Ok(()));
            assert_eq!(build(Some("merge_buffer=none"), durable), Ok(()));
            let error = build(Some("merge_buffer=1MiB"), durable).unwrap_err();
            assert!(error.contains("node `translation`: "), "{error}");
            assert!(
                error.contains("merge_buffer = 1024 KiB is too small; accepted: 37"),
                "{error}"
            );
        }
    }
}
