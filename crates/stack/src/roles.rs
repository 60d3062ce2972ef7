//! What keys of a report are about that name no node.

use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::{Run, ZoneUse};

/// What a node is to the keys of a run that name no node. They are about all nodes of the role
/// together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeRole {
    /// A write-back cache.
    Cache,
    /// A translation with a log and bands.
    Translation,
    /// Zones that the host sees.
    Zones,
}

impl NodeRole {
    /// Every role.
    pub const ALL: [NodeRole; 3] = [NodeRole::Cache, NodeRole::Translation, NodeRole::Zones];

    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            NodeRole::Cache => "cache",
            NodeRole::Translation => "translation",
            NodeRole::Zones => "zones",
        }
    }

    /// Fills in what the nodes of the role have counted together.
    pub(crate) fn tell(self, counts: &Counts, run: &mut Run) {
        match self {
            NodeRole::Cache => tell_of_caches(counts, run),
            NodeRole::Translation => tell_of_translations(counts, run),
            NodeRole::Zones => run.zones = Some(zone_use(counts)),
        }
    }
}

fn tell_of_caches(counts: &Counts, run: &mut Run) {
    run.hits.read_hits = counts.counter(Counter::ReadHits);
    run.hits.write_hits = counts.counter(Counter::WriteHits);
    run.cache.forced_evictions = counts.counter(Counter::ForcedEvictions);
    run.cache.dirty_blocks_left = counts.gauge(Gauge::DirtyBlocks);
}

fn tell_of_translations(counts: &Counts, run: &mut Run) {
    let bytes = |counter| counts.counter(counter) * BLOCK_BYTES;
    let seconds = |counter| counts.counter(counter) as f64 / 1e9;
    run.rewrites.band_bytes_read = bytes(Counter::BandBlocksRead);
    run.rewrites.band_bytes_written = bytes(Counter::BandBlocksWritten);
    run.rewrites.bands_rewritten = counts.counter(Counter::BandsRewritten);
    run.log.persistent_cache_bytes_appended = bytes(Counter::PersistentCacheAppendedBlocks);
    run.log.persistent_cache_bytes_updated = bytes(Counter::PersistentCacheUpdatedBlocks);
    run.log.persistent_cache_bytes_merged = bytes(Counter::PersistentCacheMergedBlocks);
    run.log.scratch_bytes_written = bytes(Counter::ScratchBlocksWritten);
    run.log.persistent_cache_full_s = seconds(Counter::PersistentCacheFullNs);
    run.log.band_rewrite_time_s = seconds(Counter::BandRewriteNs);
}

/// What was done to zones.
fn zone_use(counts: &Counts) -> ZoneUse {
    ZoneUse {
        writes_off_pointer: counts.counter(Counter::WritesOffPointer),
        writes_across_zones: counts.counter(Counter::WritesAcrossZones),
        writes_to_full_zones: counts.counter(Counter::WritesToFullZones),
        writes_without_resources: counts.counter(Counter::WritesWithoutZoneResources),
        writes_to_lost_zones: counts.counter(Counter::WritesToLostZones),
        reads_refused: counts.counter(Counter::ZoneReadsRefused),
        reads_past_pointer: counts.counter(Counter::ReadsPastPointer),
        closed_for_others: counts.counter(Counter::ZonesClosedForOthers),
        resets: counts.counter(Counter::ZonesReset),
        reports: counts.counter(Counter::ZoneReports),
        open: counts.gauge(Gauge::OpenZones),
        closed: counts.gauge(Gauge::ClosedZones),
        blocks_out_of_sequence: counts.counter(Counter::BlocksOutOfSequence),
        non_sequential: counts.gauge(Gauge::NonSequentialZones),
    }
}
