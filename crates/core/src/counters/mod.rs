//! What layers count. Counts are kept by the router, one row per node, and read by reports; a
//! layer never reads them back. Disks keep theirs themselves.
//!
//! A counter or a gauge is declared once, in its row of `counters!` below. Reports, their files and
//! pages, the schema and the document of reports follow.

mod declared;

pub use declared::{Declared, Kind, Together, Unit};

/// Counters and gauges that belong together: whoever has one of them has all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The kinds of node that have them, in Markdown.
    pub of: &'static str,
    /// The counters.
    pub counters: &'static [Counter],
    /// The gauges.
    pub gauges: &'static [Gauge],
}

impl Group {
    /// The place of a counter of the group.
    pub(crate) const fn place(self, counter: Counter) -> usize {
        let mut place = 0;
        while self.counters[place] as usize != counter as usize {
            place += 1;
        }
        place
    }

    /// All of it, as it was declared.
    pub fn declared(self) -> impl Iterator<Item = &'static Declared> {
        let counters = self.counters.iter().map(|it| it.declared());
        counters.chain(self.gauges.iter().map(|it| it.declared()))
    }
}

/// Declares groups. A row of a counter is its variant, name, unit and how nodes add up, that of a
/// gauge has its kind before the last. Their sentences are the comments; that of a group says who
/// has it.
macro_rules! counters {
    ($(
        $(#[doc = $of:literal])+
        $group:ident {
            $(counters { $(
                $(#[doc = $counter_says:literal])+
                $counter:ident($counter_name:literal, $counter_unit:ident, $counter_together:ident),
            )+ })?
            $(gauges { $(
                $(#[doc = $gauge_says:literal])+
                $gauge:ident($gauge_name:literal, $gauge_unit:ident, $kind:ident, $gauge_together:ident),
            )+ })?
        }
    )+) => {
        /// A quantity that only grows.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Counter {
            $($($($(#[doc = $counter_says])+ $counter,)+)?)+
        }

        /// A quantity that goes up and down.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Gauge {
            $($($($(#[doc = $gauge_says])+ $gauge,)+)?)+
        }

        const COUNTERS: &[Declared] = &[$($($(Declared {
            name: $counter_name,
            unit: Unit::$counter_unit,
            kind: Kind::Count,
            together: Together::$counter_together,
            sentence: concat!($($counter_says),+).trim_ascii(),
        },)+)?)+];

        const GAUGES: &[Declared] = &[$($($(Declared {
            name: $gauge_name,
            unit: Unit::$gauge_unit,
            kind: Kind::$kind,
            together: Together::$gauge_together,
            sentence: concat!($($gauge_says),+).trim_ascii(),
        },)+)?)+];

        $(
            $(#[doc = $of])+
            pub const $group: Group = Group {
                of: concat!($($of),+).trim_ascii(),
                counters: &[$($(Counter::$counter),+)?],
                gauges: &[$($(Gauge::$gauge),+)?],
            };
        )+

        /// All groups.
        pub const GROUPS: &[Group] = &[$($group),+];
    };
}

counters! {
    /// `disk`, and `slice` of a disk: the operations that start there. The values of all slices of a disk add
    /// up to those of the disk.
    DISK {
        counters {
            /// Reads that arrived.
            Reads("reads", Number, Sum),
            /// Writes that arrived.
            Writes("writes", Number, Sum),
            /// Blocks of those reads.
            ReadBlocks("read_blocks", Blocks, Sum),
            /// Blocks of those writes.
            WrittenBlocks("written_blocks", Blocks, Sum),
            /// Time the arm was moved.
            SeekNs("seek_ns", Ns, Sum),
            /// Cylinders that the arm passed in it.
            SeekTracks("seek_tracks", Number, Sum),
            /// Time the medium was busy.
            BusyNs("busy_ns", Ns, Sum),
        }
    }
    /// `scheduler`.
    SCHEDULER {
        counters {
            /// Requests that went to the disk, flushes apart.
            Dispatched("dispatched", Number, Sum),
            /// Those that went while an older one waited.
            Reordered("reordered", Number, Sum),
            /// Those that went because they had waited for too long.
            ForcedByAge("forced_by_age", Number, Sum),
            /// Requests that had to wait for an older one, because one of both changes a block that they share.
            Conflicts("conflicts", Number, Sum),
            /// Times the head went back, turned round or changed the area.
            Sweeps("sweeps", Number, Sum),
            /// Times it changed the area.
            Switches("switches", Number, Sum),
            /// Those of them that came because the area had had its quota.
            QuotaSwitches("quota_switches", Number, Sum),
        }
        gauges {
            /// The longest time that a request has waited before it went to the disk.
            LongestWaitNs("longest_wait_ns", Ns, Greatest, Greatest),
        }
    }
    /// `slice` of a disk.
    SLICE {
        counters {
            /// Flushes through the slice.
            Flushes("flushes", Number, Sum),
        }
    }
    /// `write-back-cache`, whatever its policy, and `zone-lru-buffer`.
    WRITE_BACK_CACHE {
        counters {
            /// Blocks of reads looked up in the cache.
            ReadLookups("read_lookups", Blocks, Topmost),
            /// Blocks of reads found in the cache.
            ReadHits("read_hits", Blocks, Topmost),
            /// Blocks of writes looked up in the cache.
            WriteLookups("write_lookups", Blocks, Topmost),
            /// Blocks of writes found in the cache.
            WriteHits("write_hits", Blocks, Topmost),
            /// Clean blocks evicted.
            CleanEvictions("clean_evictions", Blocks, Sum),
            /// Dirty blocks evicted, each written below.
            DirtyEvictions("dirty_evictions", Blocks, Sum),
            /// Blocks of requests that went around the cache.
            CacheBypassedBlocks("cache_bypassed_blocks", Blocks, Sum),
        }
        gauges {
            /// Slots of the flash beyond those that its blocks need, which let blocks that come together lie together.
            SpareSlots("spare_slots", Blocks, Present, Sum),
        }
    }
    /// `write-back-cache` with `policy = "pore"`.
    PORE {
        counters {
            /// Times a partially-open-region policy chose a new region.
            RegionDivisions("region_divisions", Number, Sum),
            /// Evictions that found the region of the policy empty, so that it chose a new region first.
            ForcedEvictions("forced_evictions", Number, Sum),
        }
    }
    /// `write-back-cache` with `policy = "ride"`.
    RIDE {
        counters {
            /// Dirty blocks evicted, or written around the cache, that opened a window of their band: each is a
            /// band rewrite to come.
            WindowsOpened("windows_opened", Blocks, Sum),
            /// Dirty blocks evicted, or written around the cache, in an open window of their band: the rewrite
            /// to come serves them too.
            Rides("rides", Blocks, Sum),
        }
        gauges {
            /// Blocks that may be dirty before clean ones stay and dirty ones leave.
            DirtyAllowed("dirty_allowed", Blocks, Present, Sum),
        }
    }
    /// `zone-lru-buffer`.
    ZONE_BUFFER {
        counters {
            /// Zones of which all buffered blocks left together.
            ZonesEvicted("zones_evicted", Number, Sum),
            /// Of these, zones that were put together in flash, reset and rewritten.
            ZonesRewritten("zones_rewritten", Number, Sum),
            /// Blocks that were read below because their zone was to be rewritten.
            RewriteFetchedBlocks("rewrite_fetched_blocks", Blocks, Sum),
        }
    }
    /// `write-back-cache`, `zone-lru-buffer` and `read-cache`.
    CACHED {
        gauges {
            /// Blocks in the cache.
            CachedBlocks("cached_blocks", Blocks, Present, Sum),
        }
    }
    /// `write-back-cache`, `zone-lru-buffer` and `memory-buffer`.
    DIRTY {
        gauges {
            /// Blocks that are newer than the copy below.
            DirtyBlocks("dirty_blocks", Blocks, Present, Sum),
        }
    }
    /// `idle-control` and `zone-lru-buffer`, which ask what is below for its zones.
    ZONES_ASKED {
        counters {
            /// Reports of zones that have failed: what they would have said is not known.
            ZoneReportsFailed("zone_reports_failed", Number, Sum),
        }
    }
    /// `idle-control`.
    IDLE_CONTROL {
        counters {
            /// Times the drive was left idle.
            Idles("idles", Number, Sum),
            /// How long in all.
            IdleNs("idle_ns", Ns, Sum),
            /// Requests that were held back.
            HeldRequests("held_requests", Number, Sum),
            /// Times it was decided how long the drive is left idle, not at all included.
            Decisions("decisions", Number, Sum),
            /// Those with the media cache between both limits (equation 1).
            DecisionsMid("decisions_mid", Number, Sum),
            /// Those with the media cache above the upper limit (equation 2).
            DecisionsHigh("decisions_high", Number, Sum),
            /// Reports of zones that the books were compared with, or periods without one.
            ReportPeriods("report_periods", Number, Sum),
        }
        gauges {
            /// Requests that are held back now.
            Held("held", Number, Present, Sum),
            /// U at the last report, in millionths.
            GhostUsed("ghost_used", Millionths, Share, Greatest),
            /// The longest time for which a request was held back.
            HoldMaxNs("hold_max_ns", Ns, Greatest, Greatest),
        }
    }
    /// `persistent-cache` that cleans in idle time or in slices, or has zones.
    CLEANING {
        counters {
            /// Bands that were cleaned in idle time from begin to end.
            IdleCleanings("idle_cleanings", Number, Sum),
            /// Times a request has stopped a clean in idle time.
            IdleCleaningsCut("idle_cleanings_cut", Number, Sum),
            /// Bands that were cleaned for want of room, those among them whose clean had begun in idle time.
            BlockingCleanings("blocking_cleanings", Number, Sum),
            /// Times a write had no room.
            BlockingPeriods("blocking_periods", Number, Sum),
            /// Time from then on until enough was cleaned.
            BlockingNs("blocking_ns", Ns, Sum),
            /// Requests that were answered in that time.
            ServedInBlocking("served_in_blocking", Number, Sum),
        }
    }
    /// `persistent-cache` with `in_place`.
    IN_PLACE {
        counters {
            /// Blocks written home where every write goes home.
            InPlaceBlocks("in_place_blocks", Blocks, Sum),
        }
    }
    /// `persistent-cache` whose `clean_to` is `"log"`.
    MOVES {
        counters {
            /// Live blocks that cleaning has moved from the tail of the persistent cache to its head.
            MovedBlocks("moved_blocks", Blocks, Sum),
        }
    }
    /// `persistent-cache`.
    PERSISTENT_CACHE {
        counters {
            /// Blocks appended to the persistent cache.
            PersistentCacheAppendedBlocks("persistent_cache_appended_blocks", Blocks, Sum),
            /// Live blocks merged out of the persistent cache into their bands.
            PersistentCacheMergedBlocks("persistent_cache_merged_blocks", Blocks, Sum),
            /// Blocks overwritten in place in the persistent cache.
            PersistentCacheUpdatedBlocks("persistent_cache_updated_blocks", Blocks, Sum),
            /// Slots of the persistent cache that the records of flushes took.
            PersistentCacheSkippedBlocks("persistent_cache_skipped_blocks", Blocks, Sum),
            /// Time in which a write waited for room in the persistent cache.
            PersistentCacheFullNs("persistent_cache_full_ns", Ns, Sum),
            /// Blocks written straight to their band by the sequential bypass.
            BypassedBlocks("bypassed_blocks", Blocks, Sum),
            /// Bands rewritten.
            BandsRewritten("bands_rewritten", Number, Sum),
            /// Blocks read from bands by rewrites.
            BandBlocksRead("band_blocks_read", Blocks, Sum),
            /// Blocks written home to bands, by rewrites and by the bypass.
            BandBlocksWritten("band_blocks_written", Blocks, Sum),
            /// Blocks written to the scratch band by rewrites.
            ScratchBlocksWritten("scratch_blocks_written", Blocks, Sum),
            /// Time from the start of band rewrites to the release of what they merged.
            BandRewriteNs("band_rewrite_ns", Ns, Sum),
            /// Times the writes waited until the drive had written out its map.
            MapStalls("map_stalls", Number, Sum),
            /// Time of all those.
            MapStallNs("map_stall_ns", Ns, Sum),
        }
        gauges {
            /// Log blocks in use in the persistent cache, superseded ones included.
            PersistentCacheUsedBlocks("persistent_cache_used_blocks", Blocks, Present, Sum),
            /// Blocks of the persistent cache that are the newest of their address.
            PersistentCacheLiveBlocks("persistent_cache_live_blocks", Blocks, Present, Sum),
            /// Live entries in the persistent cache's map.
            PersistentCacheEntries("persistent_cache_entries", Number, Present, Sum),
        }
    }
    /// `persistent-cache` with `bypass_streams`.
    STREAM_CLASSES {
        counters {
            /// Writes that are random.
            RandomRequests("random_requests", Number, Sum),
            /// Writes that are sequential: they go on with a stream, or are long.
            SequentialRequests("sequential_requests", Number, Sum),
            /// Those of them of which blocks went to the log all the same, because their band would not take them.
            SequentialToLog("sequential_to_log", Number, Sum),
        }
    }
    /// `host-managed`, and `persistent-cache` over a host-aware drive.
    ZONES {
        counters {
            /// Writes refused because they did not start at the write pointer of their zone.
            WritesOffPointer("writes_off_pointer", Number, Sum),
            /// Writes refused because they went past the end of their zone.
            WritesAcrossZones("writes_across_zones", Number, Sum),
            /// Writes refused because their zone was full.
            WritesToFullZones("writes_to_full_zones", Number, Sum),
            /// Writes refused because no further zone could be open.
            WritesWithoutZoneResources("writes_without_zone_resources", Number, Sum),
            /// Writes refused because their zone was read-only or offline.
            WritesToLostZones("writes_to_lost_zones", Number, Sum),
            /// Reads refused by the rules of zones.
            ZoneReadsRefused("zone_reads_refused", Number, Sum),
            /// Reads that reached past a write pointer and were answered there without the medium.
            ReadsPastPointer("reads_past_pointer", Number, Sum),
            /// Zones closed by the drive so that another could be open.
            ZonesClosedForOthers("zones_closed_for_others", Number, Sum),
            /// Zones set back to empty.
            ZonesReset("zones_reset", Number, Sum),
            /// Reports of zones.
            ZoneReports("zone_reports", Number, Sum),
            /// Blocks written elsewhere than at the write pointer of a sequential zone.
            BlocksOutOfSequence("blocks_out_of_sequence", Blocks, Sum),
        }
        gauges {
            /// Zones that are open, implicitly or explicitly.
            OpenZones("open_zones", Number, Present, Sum),
            /// Zones that were written and closed before they were full.
            ClosedZones("closed_zones", Number, Present, Sum),
            /// Zones that are not sequential.
            NonSequentialZones("non_sequential_zones", Number, Present, Sum),
        }
    }
    /// `memory-buffer`, in blocks of its own size.
    MEMORY_BUFFER {
        counters {
            /// Blocks that reads have looked up.
            BlockReads("block_reads", Blocks, Sum),
            /// Blocks that writes have looked up.
            BlockWrites("block_writes", Blocks, Sum),
            /// Those that reads found there with all that was asked of them.
            HitBlockReads("hit_block_reads", Blocks, Sum),
            /// Those that writes found there.
            HitBlockWrites("hit_block_writes", Blocks, Sum),
            /// Those that reads found there without some of what was asked of them.
            PartialReads("partial_reads", Blocks, Sum),
            /// Times it made room.
            Evictions("evictions", Number, Sum),
            /// Blocks that left it.
            EvictedBlocks("evicted_blocks", Blocks, Sum),
            /// Segments of which it handed blocks down together.
            Destages("destages", Number, Sum),
            /// Blocks that left and had to be read first, from a copy or from below.
            FillBlocksRead("fill_blocks_read", Blocks, Sum),
        }
    }
    /// `read-cache`.
    READ_CACHE {
        counters {
            /// Blocks of reads that it had.
            HitBlocks("hit_blocks", Blocks, Sum),
            /// Blocks of reads that it had not.
            MissBlocks("miss_blocks", Blocks, Sum),
            /// Blocks that it took in.
            FillBlocks("fill_blocks", Blocks, Sum),
            /// Blocks that it forgot because they were written.
            DroppedBlocks("dropped_blocks", Blocks, Sum),
            /// Blocks that it did not take in, because all places beside those of the copies were in use.
            SkippedFillBlocks("skipped_fill_blocks", Blocks, Sum),
        }
    }
    /// `segments` and `s-block`, in blocks of the `block` of the node.
    REWRITES {
        counters {
            /// Segments rewritten, whatever part of them, or S-blocks written at a head, destaged and migrated.
            SegmentsRewritten("segments_rewritten", Number, Sum),
            /// Blocks that rewrites read from the disk; not those from a ring.
            RewriteBlocksRead("rewrite_blocks_read", Blocks, Sum),
            /// Blocks that were handed down, or lay in a ring, and were written home.
            DestagedBlocks("destaged_blocks", Blocks, Sum),
            /// Blocks that rewrites wrote home beside those.
            RewriteBlocksWritten("rewrite_blocks_written", Blocks, Sum),
        }
    }
    /// `segments`.
    SEGMENTS {
        counters {
            /// Bytes that rewrites wrote elsewhere first, so that a power cut loses nothing.
            JournalBytesWritten("journal_bytes_written", Bytes, Sum),
        }
    }
    /// `s-block`.
    S_BLOCK {
        counters {
            /// Times a circular log made room.
            GcRuns("gc_runs", Number, Sum),
            /// S-blocks that were moved for that.
            GcMigrations("gc_migrations", Number, Sum),
        }
    }
    /// `raid1`, `raid4`, `raid5` and `raid4smr`.
    ARRAY {
        counters {
            /// Blocks that were read from the other members because their own is missing.
            DegradedReadBlocks("degraded_read_blocks", Blocks, Sum),
            /// Blocks that rebuilds wrote to members.
            RebuiltBlocks("rebuilt_blocks", Blocks, Sum),
        }
        gauges {
            /// Members that are missing and not being rebuilt.
            MissingMembers("missing_members", Number, Present, Sum),
            /// Members that are being rebuilt.
            RebuildingMembers("rebuilding_members", Number, Present, Sum),
            /// How much of the member that is being rebuilt is done.
            RebuildProgress("rebuild_progress", Millionths, Share, Apart),
        }
    }
    /// `raid1`.
    ARRAY_CONTENTS {
        counters {
            /// Blocks of members that were read and are not what was written there.
            WrongBlocks("wrong_blocks", Blocks, Sum),
            /// Wrong or unreadable blocks of members that were written again from the other members.
            RepairedBlocks("repaired_blocks", Blocks, Sum),
            /// Blocks that were compared between members after a crash or by a scrub.
            ComparedBlocks("compared_blocks", Blocks, Sum),
        }
        gauges {
            /// Blocks that no member can give any more, until they are written.
            UnreadableBlocks("unreadable_blocks", Blocks, Present, Sum),
        }
    }
    /// `raid4smr`.
    RAID4SMR {
        counters {
            /// Blocks that were written for the first time, to their home.
            FirstWrites("first_writes", Blocks, Sum),
            /// Blocks of writes that had been written before.
            Updates("updates", Blocks, Sum),
            /// Blocks that were written for the first time, to the data disk, because a later track of their band
            /// was written.
            UnsafeFirstWrites("unsafe_first_writes", Blocks, Sum),
            /// Blocks of writes that went to the data disk: updates and unsafe first writes.
            Redirected("redirected", Blocks, Sum),
            /// Rows of bands that were collected because so many of their blocks were on the data disk.
            Collections("collections", Number, Sum),
            /// Rows of bands that were collected because an update needed room on the data disk.
            ForcedCollections("forced_collections", Number, Sum),
            /// Live blocks that collections wrote to homes.
            CollectedBlocks("collected_blocks", Blocks, Sum),
        }
        gauges {
            /// Blocks that are on the data disk.
            MapEntries("map_entries", Blocks, Present, Sum),
            /// Most blocks that were on the data disk at once.
            SlotsPeak("slots_peak", Blocks, Greatest, Sum),
        }
    }
    /// `stripe`, `raid1`, `raid4`, `raid5`, `raid4smr`, `segments` and `s-block`.
    UNUSED {
        gauges {
            /// Bytes of the nodes below that are in no chunk, block or region.
            UnusedBytes("unused_bytes", Bytes, Present, Sum),
        }
    }
    /// `memory-buffer`, `read-cache`, `segments` and `s-block`.
    TABLES {
        gauges {
            /// Bytes of memory that the lookup tables take; of S-blocks, when all rings are in use.
            TableBytes("table_bytes", Bytes, Present, Sum),
        }
    }
    /// Whatever keeps a journal.
    JOURNAL {
        gauges {
            /// Most blocks of data that the newest journal block, found damaged or torn when the layer came up,
            /// may have spoken of: they are what they were before. 0 when the block was whole.
            RolledBackBlocksMax("rolled_back_blocks_max", Blocks, Greatest, Sum),
        }
    }
}

impl Counter {
    /// How many counters there are.
    pub const COUNT: usize = COUNTERS.len();

    /// How it was declared.
    pub const fn declared(self) -> &'static Declared {
        &COUNTERS[self as usize]
    }

    /// The name that reports call it by.
    pub const fn name(self) -> &'static str {
        self.declared().name
    }
}

impl Gauge {
    /// How many gauges there are.
    pub const COUNT: usize = GAUGES.len();

    /// How it was declared.
    pub const fn declared(self) -> &'static Declared {
        &GAUGES[self as usize]
    }

    /// The name that reports call it by.
    pub const fn name(self) -> &'static str {
        self.declared().name
    }
}

/// The counter or gauge of a name in reports.
pub fn declared(name: &str) -> Option<&'static Declared> {
    COUNTERS.iter().chain(GAUGES).find(|known| known.name == name)
}

/// The counters and gauges of one node, or of several together.
#[derive(Clone, PartialEq, Eq, Debug, crate::saved::SavedValue)]
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

    /// Adds those of one more node, as each was declared to add up. `is_topmost` says that the node
    /// is below no other one of them.
    pub fn add_node(&mut self, node: &Counts, is_topmost: bool) {
        let values = self.counters.iter_mut().chain(&mut self.gauges);
        let more = node.counters.iter().chain(&node.gauges);
        for ((all, value), declared) in values.zip(more).zip(COUNTERS.iter().chain(GAUGES)) {
            declared.together.add(all, *value, is_topmost);
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, counter: Counter, amount: u64) {
        self.counters[counter as usize] += amount;
    }

    #[inline]
    pub(crate) fn set(&mut self, gauge: Gauge, value: u64) {
        self.gauges[gauge as usize] = value;
    }

    #[inline]
    pub(crate) fn raise(&mut self, gauge: Gauge, value: u64) {
        let greatest = &mut self.gauges[gauge as usize];
        *greatest = value.max(*greatest);
    }

    /// Counters begin at 0 again, and so do the longest times. What else a gauge tells is so now.
    pub(crate) fn restart(&mut self) {
        self.counters = [0; Counter::COUNT];
        for (gauge, declared) in self.gauges.iter_mut().zip(GAUGES) {
            if (declared.kind, declared.unit) == (Kind::Greatest, Unit::Ns) {
                *gauge = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a variant in snake case.
    fn snake(variant: &str) -> String {
        let mut name = String::new();
        for letter in variant.chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.extend(letter.to_lowercase());
        }
        name
    }

    #[test]
    fn every_name_is_that_of_its_variant_and_there_is_one_of_it() {
        let mut names = Vec::new();
        for group in GROUPS {
            let counters = group.counters.iter().map(|it| (format!("{it:?}"), it.name()));
            let gauges = group.gauges.iter().map(|it| (format!("{it:?}"), it.name()));
            for (variant, name) in counters.chain(gauges) {
                assert_eq!(snake(&variant), name);
                assert_eq!(declared(name).map(|it| it.name), Some(name));
                names.push(name);
            }
        }
        assert_eq!(names.len(), Counter::COUNT + Gauge::COUNT);
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "a name stands twice: {names:?}");
        assert_eq!(declared("reads_of_nobody"), None);
    }

    #[test]
    fn a_share_is_of_millionths_and_all_else_is_not() {
        for declared in COUNTERS.iter().chain(GAUGES) {
            let is_share = declared.kind == Kind::Share;
            assert_eq!(is_share, declared.unit == Unit::Millionths, "{declared:?}");
            let adds_up = matches!(declared.together, Together::Sum | Together::Topmost);
            assert!(!is_share || !adds_up, "{declared:?}");
        }
    }

    #[test]
    fn a_restart_forgets_counts_and_longest_times_and_keeps_what_is_there() {
        let mut counts = Counts::default();
        counts.add(Counter::DirtyEvictions, 7);
        counts.set(Gauge::DirtyBlocks, 5);
        counts.set(Gauge::SlotsPeak, 9);
        counts.raise(Gauge::LongestWaitNs, 30);
        counts.raise(Gauge::LongestWaitNs, 20);
        assert_eq!(counts.gauge(Gauge::LongestWaitNs), 30);
        counts.restart();
        let gauges = [Gauge::DirtyBlocks, Gauge::SlotsPeak, Gauge::LongestWaitNs];
        assert_eq!(gauges.map(|gauge| counts.gauge(gauge)), [5, 9, 0]);
        assert_eq!(counts.counter(Counter::DirtyEvictions), 0);
    }

    #[test]
    fn values_of_nodes_add_up_as_they_say() {
        for (together, all) in [
            (Together::Sum, 12),
            (Together::Topmost, 9),
            (Together::Greatest, 7),
            (Together::Apart, 0),
        ] {
            let mut sum = 0;
            for (value, is_topmost) in [(2, true), (7, true), (3, false)] {
                together.add(&mut sum, value, is_topmost);
            }
            assert_eq!(sum, all, "{together:?}");
        }
        let mut node = Counts::default();
        node.add(Counter::ReadHits, 5);
        node.add(Counter::DirtyEvictions, 6);
        node.set(Gauge::DirtyBlocks, 7);
        let mut all = Counts::default();
        all.add_node(&node, true);
        all.add_node(&node, false);
        assert_eq!(all.counter(Counter::ReadHits), 5);
        assert_eq!(all.counter(Counter::DirtyEvictions), 12);
        assert_eq!(all.gauge(Gauge::DirtyBlocks), 14);
    }
}
