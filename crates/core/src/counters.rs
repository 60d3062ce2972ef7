//! What layers count. Counts are kept by the router, one row per node, and read by reports; a
//! layer never reads them back.

/// A quantity that only grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Counter {
    /// Blocks of reads found in the cache.
    ReadHits,
    /// Blocks of writes found in the cache.
    WriteHits,
    /// Blocks of reads looked up in the cache.
    ReadLookups,
    /// Blocks of writes looked up in the cache.
    WriteLookups,
    /// Dirty blocks evicted, each written below.
    DirtyEvictions,
    /// Clean blocks evicted.
    CleanEvictions,
    /// Evictions that found the region of the policy empty, so that it chose a new region first.
    ForcedEvictions,
    /// Blocks of requests that went around the cache.
    CacheBypassedBlocks,
    /// Times a partially-open-region policy chose a new region.
    RegionDivisions,
    /// Blocks appended to the persistent cache.
    PersistentCacheAppendedBlocks,
    /// Live blocks merged out of the persistent cache into their bands.
    PersistentCacheMergedBlocks,
    /// Blocks overwritten in place in the persistent cache.
    PersistentCacheUpdatedBlocks,
    /// Blocks written straight to their band by the sequential bypass.
    BypassedBlocks,
    /// Bands rewritten.
    BandsRewritten,
    /// Blocks read from bands by rewrites.
    BandBlocksRead,
    /// Blocks written home to bands, by rewrites and by the bypass.
    BandBlocksWritten,
    /// Blocks written to the scratch band by rewrites.
    ScratchBlocksWritten,
    /// Nanoseconds from the start of band rewrites to the release of what they merged.
    BandRewriteNs,
    /// Nanoseconds in which a write waited for room in the persistent cache.
    PersistentCacheFullNs,
    /// Writes refused because they did not start at the write pointer of their zone.
    WritesOffPointer,
    /// Writes refused because they went past the end of their zone.
    WritesAcrossZones,
    /// Writes refused because their zone was full.
    WritesToFullZones,
    /// Writes refused because no further zone could be open.
    WritesWithoutZoneResources,
    /// Writes refused because their zone was read-only or offline.
    WritesToLostZones,
    /// Reads refused by the rules of zones.
    ZoneReadsRefused,
    /// Reads that reached past a write pointer and were answered there without the medium.
    ReadsPastPointer,
    /// Zones closed by the drive so that another could be open.
    ZonesClosedForOthers,
    /// Zones set back to empty.
    ZonesReset,
    /// Reports of zones.
    ZoneReports,
    /// Slots of the persistent cache that the records of flushes took.
    PersistentCacheSkippedBlocks,
    /// Times the writes waited until the drive had written out its map.
    MapStalls,
    /// Nanoseconds in all those times.
    MapStallNs,
    /// Blocks written elsewhere than at the write pointer of a sequential zone.
    BlocksOutOfSequence,
    /// Dirty blocks evicted, or written around the cache, that opened a window of their band: each is a band rewrite to come.
    WindowsOpened,
    /// Dirty blocks evicted, or written around the cache, in an open window of their band: the rewrite to come serves them too.
    Rides,
    /// Blocks of a write buffer in memory that reads have looked up.
    BlockReads,
    /// Blocks of a write buffer in memory that writes have looked up.
    BlockWrites,
    /// Those that reads found there with all that was asked of them.
    HitBlockReads,
    /// Those that writes found there.
    HitBlockWrites,
    /// Those that reads found there without some of what was asked of them.
    PartialReads,
    /// Times a write buffer in memory made room.
    Evictions,
    /// Blocks that left it.
    EvictedBlocks,
    /// Segments of which it handed blocks down together.
    Destages,
    /// Blocks that it read because it had a part of them when it handed them down.
    FillBlocksRead,
    /// Blocks of reads that a read cache had.
    HitBlocks,
    /// Blocks of reads that it had not.
    MissBlocks,
    /// Blocks that it took in.
    FillBlocks,
    /// Blocks that it forgot because they were written.
    DroppedBlocks,
    /// Blocks that a store of copies did not take in, because no place was free.
    SkippedFillBlocks,
    /// Segments rewritten, whatever part of them, and S-blocks written, destaged or migrated.
    SegmentsRewritten,
    /// Blocks that rewrites read from the disk.
    RewriteBlocksRead,
    /// Blocks of segments that were handed down and written home.
    DestagedBlocks,
    /// Blocks that rewrites wrote home beside those.
    RewriteBlocksWritten,
    /// Bytes that rewrites wrote elsewhere first, so that a power cut loses nothing.
    JournalBytesWritten,
    /// Times a circular log of S-blocks made room.
    GcRuns,
    /// S-blocks that were moved for that.
    GcMigrations,
}

impl Counter {
    /// How many counters there are.
    pub const COUNT: usize = Counter::NAMES.len();

    /// All counters with the names that reports call them by, in the order of the enum.
    pub const NAMES: [(Counter, &'static str); Counter::GcMigrations as usize + 1] = [
        (Counter::ReadHits, "read_hits"),
        (Counter::WriteHits, "write_hits"),
        (Counter::ReadLookups, "read_lookups"),
        (Counter::WriteLookups, "write_lookups"),
        (Counter::DirtyEvictions, "dirty_evictions"),
        (Counter::CleanEvictions, "clean_evictions"),
        (Counter::ForcedEvictions, "forced_evictions"),
        (Counter::CacheBypassedBlocks, "cache_bypassed_blocks"),
        (Counter::RegionDivisions, "region_divisions"),
        (Counter::PersistentCacheAppendedBlocks, "persistent_cache_appended_blocks"),
        (Counter::PersistentCacheMergedBlocks, "persistent_cache_merged_blocks"),
        (Counter::PersistentCacheUpdatedBlocks, "persistent_cache_updated_blocks"),
        (Counter::BypassedBlocks, "bypassed_blocks"),
        (Counter::BandsRewritten, "bands_rewritten"),
        (Counter::BandBlocksRead, "band_blocks_read"),
        (Counter::BandBlocksWritten, "band_blocks_written"),
        (Counter::ScratchBlocksWritten, "scratch_blocks_written"),
        (Counter::BandRewriteNs, "band_rewrite_ns"),
        (Counter::PersistentCacheFullNs, "persistent_cache_full_ns"),
        (Counter::WritesOffPointer, "writes_off_pointer"),
        (Counter::WritesAcrossZones, "writes_across_zones"),
        (Counter::WritesToFullZones, "writes_to_full_zones"),
        (Counter::WritesWithoutZoneResources, "writes_without_zone_resources"),
        (Counter::WritesToLostZones, "writes_to_lost_zones"),
        (Counter::ZoneReadsRefused, "zone_reads_refused"),
        (Counter::ReadsPastPointer, "reads_past_pointer"),
        (Counter::ZonesClosedForOthers, "zones_closed_for_others"),
        (Counter::ZonesReset, "zones_reset"),
        (Counter::ZoneReports, "zone_reports"),
        (Counter::PersistentCacheSkippedBlocks, "persistent_cache_skipped_blocks"),
        (Counter::MapStalls, "map_stalls"),
        (Counter::MapStallNs, "map_stall_ns"),
        (Counter::BlocksOutOfSequence, "blocks_out_of_sequence"),
        (Counter::WindowsOpened, "windows_opened"),
        (Counter::Rides, "rides"),
        (Counter::BlockReads, "block_reads"),
        (Counter::BlockWrites, "block_writes"),
        (Counter::HitBlockReads, "hit_block_reads"),
        (Counter::HitBlockWrites, "hit_block_writes"),
        (Counter::PartialReads, "partial_reads"),
        (Counter::Evictions, "evictions"),
        (Counter::EvictedBlocks, "evicted_blocks"),
        (Counter::Destages, "destages"),
        (Counter::FillBlocksRead, "fill_blocks_read"),
        (Counter::HitBlocks, "hit_blocks"),
        (Counter::MissBlocks, "miss_blocks"),
        (Counter::FillBlocks, "fill_blocks"),
        (Counter::DroppedBlocks, "dropped_blocks"),
        (Counter::SkippedFillBlocks, "skipped_fill_blocks"),
        (Counter::SegmentsRewritten, "segments_rewritten"),
        (Counter::RewriteBlocksRead, "rewrite_blocks_read"),
        (Counter::DestagedBlocks, "destaged_blocks"),
        (Counter::RewriteBlocksWritten, "rewrite_blocks_written"),
        (Counter::JournalBytesWritten, "journal_bytes_written"),
        (Counter::GcRuns, "gc_runs"),
        (Counter::GcMigrations, "gc_migrations"),
    ];

    /// The name that reports call it by.
    pub const fn name(self) -> &'static str {
        Counter::NAMES[self as usize].1
    }
}

/// A quantity that goes up and down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Gauge {
    /// Dirty blocks in a write-back cache.
    DirtyBlocks,
    /// Blocks in a cache.
    CachedBlocks,
    /// Log blocks in use in the persistent cache, superseded ones included.
    PersistentCacheUsedBlocks,
    /// Live entries in the persistent cache's map.
    PersistentCacheEntries,
    /// Zones that are open, implicitly or explicitly.
    OpenZones,
    /// Zones that were written and closed before they were full.
    ClosedZones,
    /// Zones that are not sequential.
    NonSequentialZones,
    /// Most blocks of data that the newest journal block, found damaged or torn when the layer came
    /// up, may have spoken of: they are what they were before. 0 when the block was whole.
    RolledBackBlocksMax,
    /// Blocks of the persistent cache that are the newest of their address.
    PersistentCacheLiveBlocks,
    /// Blocks that may be dirty before clean ones stay and dirty ones leave.
    DirtyAllowed,
    /// Bytes of the disk in no whole block or region of a segment layout.
    UnusedBytes,
    /// Bytes of memory that the lookup tables of a node take.
    TableBytes,
}

impl Gauge {
    /// How many gauges there are.
    pub const COUNT: usize = Gauge::NAMES.len();

    /// All gauges with the names that reports call them by, in the order of the enum.
    pub const NAMES: [(Gauge, &'static str); Gauge::TableBytes as usize + 1] = [
        (Gauge::DirtyBlocks, "dirty_blocks"),
        (Gauge::CachedBlocks, "cached_blocks"),
        (Gauge::PersistentCacheUsedBlocks, "persistent_cache_used_blocks"),
        (Gauge::PersistentCacheEntries, "persistent_cache_entries"),
        (Gauge::OpenZones, "open_zones"),
        (Gauge::ClosedZones, "closed_zones"),
        (Gauge::NonSequentialZones, "non_sequential_zones"),
        (Gauge::RolledBackBlocksMax, "rolled_back_blocks_max"),
        (Gauge::PersistentCacheLiveBlocks, "persistent_cache_live_blocks"),
        (Gauge::DirtyAllowed, "dirty_allowed"),
        (Gauge::UnusedBytes, "unused_bytes"),
        (Gauge::TableBytes, "table_bytes"),
    ];

    /// The name that reports call it by.
    pub const fn name(self) -> &'static str {
        Gauge::NAMES[self as usize].1
    }
}

/// The counters and gauges of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts {
    counters: [u64; Counter::COUNT],
    gauges: [u64; Gauge::COUNT],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { counters: [0; Counter::COUNT], gauges: [0; Gauge::COUNT] }
    }
}

impl Counts {
    /// The value of a counter.
    #[inline]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// The present value of a gauge.
    #[inline]
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.gauges[gauge as usize]
    }

    #[inline]
    pub(crate) fn add(&mut self, counter: Counter, amount: u64) {
        self.counters[counter as usize] += amount;
    }

    #[inline]
    pub(crate) fn set(&mut self, gauge: Gauge, value: u64) {
        self.gauges[gauge as usize] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_at_the_place_of_its_counter() {
        let counters = Counter::NAMES.iter().map(|(counter, _)| *counter as usize);
        assert!(counters.eq(0..Counter::COUNT));
        let gauges = Gauge::NAMES.iter().map(|(gauge, _)| *gauge as usize);
        assert!(gauges.eq(0..Gauge::COUNT));
    }
}
