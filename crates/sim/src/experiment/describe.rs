//! What a report needs to know of a stack beside what the stack itself has counted.

use super::config::{DiskConfig, StackConfig};
use crate::replay::ReplayCounts;
use crate::report::{ByCause, DiskAreaUse, DiskUse, Recorder, ReplayMode, Run, ZoneUse};
use imbrex_core::counters::{Counter, Counts, Gauge};
use imbrex_core::operation::Cause;
use imbrex_core::stack::{NodeId, Stack};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use imbrex_drives::{AreaUse, Direction, DiskStatistics, Drive, OperationKind, SimulatedDisk};
use std::cell::RefCell;
use std::rc::Rc;

/// What a report needs to know of a stack.
pub struct Describe {
    system: String,
    configuration: serde_json::Value,
    /// The write-back cache.
    pub cache: Option<NodeId>,
    /// The drive-managed translation.
    pub translation: Option<NodeId>,
    /// The zones of a host-managed disk.
    pub zones: Option<NodeId>,
    /// Capacity of the cache; one without a bound has that of the device.
    pub capacity_blocks: Option<u64>,
    /// Slots of the persistent cache.
    pub persistent_cache_blocks: Option<u64>,
    /// Map entries the persistent cache may hold.
    pub entries_max: Option<u64>,
    /// Bands of the translation.
    pub bands: Option<u64>,
    /// Seed of the band layout.
    pub band_seed: Option<u64>,
    /// The disks, in the order of their ids.
    pub disks: Vec<DescribeDisk>,
}

/// How full the persistent cache of a stack is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogUse {
    /// Slots it has.
    pub blocks: u64,
    /// Slots in use, superseded ones included.
    pub used_blocks: u64,
    /// Slots with the newest block of their address.
    pub live_blocks: u64,
    /// Entries of the map it may have; none for no limit.
    pub entries_max: Option<u64>,
    /// Entries of the map it has.
    pub entries: u64,
}

/// What a report needs to know of a disk.
pub struct DescribeDisk {
    name: String,
    drive: String,
    drive_sha256: String,
    write_cache: bool,
    statistics: Rc<DiskStatistics>,
}

impl DescribeDisk {
    /// Describes a simulated disk.
    pub fn new(config: &DiskConfig, drive: &Drive, disk: &SimulatedDisk) -> DescribeDisk {
        DescribeDisk {
            name: config.name.clone(),
            drive: drive.model.name.clone(),
            drive_sha256: drive.sha256.clone(),
            write_cache: disk.write_cache(),
            statistics: disk.statistics(),
        }
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the disk counts.
    pub fn statistics(&self) -> &Rc<DiskStatistics> {
        &self.statistics
    }

    fn disk_use(&self) -> DiskUse {
        let s = &self.statistics;
        let operations = |kind| {
            Cause::ALL
                .iter()
                .map(|cause| s.operations(kind, *cause))
                .sum()
        };
        DiskUse {
            name: self.name.clone(),
            drive: self.drive.clone(),
            drive_sha256: Some(self.drive_sha256.clone()),
            write_cache: self.write_cache,
            reads: operations(OperationKind::Read),
            writes: operations(OperationKind::Write),
            read_bytes: by_cause(|cause| s.blocks(OperationKind::Read, cause) * BLOCK_BYTES),
            written_bytes: by_cause(|cause| s.blocks(OperationKind::Write, cause) * BLOCK_BYTES),
            write_amplification: ByCause::default(),
            seek_time_s: s.seek_time().as_seconds(),
            busy_time_s: s.busy_total().as_seconds(),
            busy_time_by_cause_s: by_cause(|cause| {
                (s.busy(Direction::Read, cause) + s.busy(Direction::Write, cause)).as_seconds()
            }),
            areas: s.areas().iter().map(area_use).collect(),
        }
    }
}

fn area_use(area: &AreaUse) -> DiskAreaUse {
    let bytes = |direction| area.blocks_in(direction) * BLOCK_BYTES;
    DiskAreaUse {
        name: area.name.clone(),
        read_bytes: bytes(Direction::Read),
        written_bytes: bytes(Direction::Write),
        read_time_s: area.busy_in(Direction::Read).as_seconds(),
        write_time_s: area.busy_in(Direction::Write).as_seconds(),
    }
}

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

fn by_cause<T>(value: impl Fn(Cause) -> T) -> ByCause<T> {
    ByCause {
        host: value(Cause::Host),
        destage: value(Cause::Destage),
        cleaning: value(Cause::Cleaning),
        rebuild: value(Cause::Rebuild),
        scrub: value(Cause::Scrub),
        metadata: value(Cause::Metadata),
    }
}

impl Describe {
    /// A description of a stack of which nothing is built yet.
    pub fn new(config: &StackConfig) -> Describe {
        Describe {
            system: config.name.clone(),
            configuration: serde_json::to_value(config).expect("settings have only string keys"),
            cache: None,
            translation: None,
            zones: None,
            capacity_blocks: None,
            persistent_cache_blocks: None,
            entries_max: None,
            bands: None,
            band_seed: None,
            disks: Vec::new(),
        }
    }

    /// A run with everything that was counted, without latencies and figures.
    pub fn run(&self, stack: &Stack, counts: ReplayCounts, mode: ReplayMode) -> Run {
        let mut run = Run::new(&self.system, mode);
        run.requests = counts.requests;
        run.skipped_reads = counts.skipped_reads;
        run.read_blocks = counts.read_blocks;
        run.write_blocks = counts.write_blocks;
        run.configuration = self.configuration.clone();
        run.capacity_blocks = self.capacity_blocks;
        run.bands = self.bands;
        run.band_seed = self.band_seed;
        run.persistent_cache_bytes = self.persistent_cache_blocks.map(|n| n * BLOCK_BYTES);
        if let Some(cache) = self.cache {
            let counts = stack.counts(cache);
            run.read_hits = counts.counter(Counter::ReadHits);
            run.write_hits = counts.counter(Counter::WriteHits);
            run.forced_evictions = counts.counter(Counter::ForcedEvictions);
            run.dirty_blocks_left = counts.gauge(Gauge::DirtyBlocks);
        }
        if let Some(translation) = self.translation {
            let counts = stack.counts(translation);
            let bytes = |counter| counts.counter(counter) * BLOCK_BYTES;
            run.band_bytes_read = bytes(Counter::BandBlocksRead);
            run.band_bytes_written = bytes(Counter::BandBlocksWritten);
            run.bands_rewritten = counts.counter(Counter::BandsRewritten);
            run.persistent_cache_bytes_appended = bytes(Counter::PersistentCacheAppendedBlocks);
            run.persistent_cache_bytes_merged = bytes(Counter::PersistentCacheMergedBlocks);
            run.scratch_bytes_written = bytes(Counter::ScratchBlocksWritten);
            run.persistent_cache_full_s =
                counts.counter(Counter::PersistentCacheFullNs) as f64 / 1e9;
            run.band_rewrite_time_s = counts.counter(Counter::BandRewriteNs) as f64 / 1e9;
        }
        run.no_cleaning = self.no_cleaning(stack, counts.write_blocks > 0);
        run.zones = self.zones.map(|zones| zone_use(stack.counts(zones)));
        run.disks = self.disks.iter().map(DescribeDisk::disk_use).collect();
        run.derive_ratios();
        run
    }

    /// How full the persistent cache is, in a stack that has one.
    pub fn log_use(&self, stack: &Stack) -> Option<LogUse> {
        let counts = stack.counts(self.translation?);
        Some(LogUse {
            blocks: self.persistent_cache_blocks?,
            used_blocks: counts.gauge(Gauge::PersistentCacheUsedBlocks),
            live_blocks: counts.gauge(Gauge::PersistentCacheLiveBlocks),
            entries_max: self.entries_max,
            entries: counts.gauge(Gauge::PersistentCacheEntries),
        })
    }

    /// Adds the map of writes to home bands.
    pub fn add_heat_map(&self, finished_at: Instant, run: &mut Run) {
        for disk in &self.disks {
            if let Some(mut recorder) = disk.statistics.take_write_map() {
                run.figures.band_writes = recorder.heat_map(finished_at.0);
            }
        }
    }
}

/// Feeds the fill of the persistent cache to a recorder.
pub struct FillObserver {
    translation: Option<NodeId>,
    blocks: u64,
    entries_max: Option<u64>,
    last: (u64, u64),
    recorder: Rc<RefCell<Recorder>>,
}

impl FillObserver {
    /// An observer of a stack's translation, if it has one.
    pub fn new(describe: &Describe, recorder: Rc<RefCell<Recorder>>) -> FillObserver {
        FillObserver {
            translation: describe.translation,
            blocks: describe.persistent_cache_blocks.unwrap_or(1),
            entries_max: describe.entries_max,
            last: (u64::MAX, u64::MAX),
            recorder,
        }
    }

    /// Looks at the stack and records a change.
    #[inline]
    pub fn observe(&mut self, now: Instant, stack: &Stack) {
        let Some(translation) = self.translation else {
            return;
        };
        let counts = stack.counts(translation);
        let used = counts.gauge(Gauge::PersistentCacheUsedBlocks);
        let entries = counts.gauge(Gauge::PersistentCacheEntries);
        if (used, entries) == self.last {
            return;
        }
        self.last = (used, entries);
        // Whichever of the two limits is nearer.
        let (level, limit) = match self.entries_max {
            Some(max) if entries * self.blocks > used * max => (entries, max),
            _ => (used, self.blocks),
        };
        self.recorder
            .borrow_mut()
            .persistent_cache_used(now.0, level, limit);
    }
}
