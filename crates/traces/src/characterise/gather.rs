//! The gatherer: it hands each record to the parts and puts together what they found.

use imbrex_drives::HeatMapRecorder;

use super::access::{Access, BLOCK_BYTES};
use super::blocks::Blocks;
use super::coverage::{Coverage, Covered};
use super::info::{DirectionInfo, TraceInfo};
use super::intensity::Arrivals;
use super::method::{Method, Methods};
use super::recent::RecentRequests;
use super::requests::{RequestSizes, Share, Shares};
use super::sections::{Heat, Sections};
use super::sizes::Sizes;
use super::{percent, ratio, verdicts};
use crate::BlockRule;
use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::record::{TraceOperation, TraceRecord};

/// Cells of a heat map: addresses, times.
const HEAT_CELLS: (usize, usize) = (128, 256);

/// How many places on the disk are kept before a sample takes their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Blocks of 4 KiB with their history, about 70 bytes each.
    pub blocks: usize,
    /// Groups of 64 neighbouring blocks with what was read and written of them, about 75 bytes each.
    pub groups: usize,
}

impl Default for Capacity {
    /// About 300 MiB: histories of up to 8 GiB of distinct blocks, and coverage of 1/8 (scattered blocks) to 512 GiB.
    fn default() -> Self {
        Self { blocks: 1 << 21, groups: 1 << 21 }
    }
}

/// Reads a trace to its end and says what it is like. Memory is bounded by the default [`Capacity`], whatever the length of
/// the trace.
///
/// # Errors
/// The trace is damaged.
pub fn characterise(mut reader: TraceReader, rule: BlockRule) -> Result<TraceInfo, TraceError> {
    let mut characterise = Characterise::new(rule);
    let mut batch = Vec::new();
    while reader.next_batch(&mut batch)? {
        for record in &batch {
            characterise.add(record);
        }
    }
    Ok(characterise.finish(&reader))
}

/// Gathers the characteristics record by record.
pub struct Characterise {
    rule: BlockRule,
    /// Reads, writes.
    directions: [DirectionInfo; 2],
    sizes: [Sizes; 2],
    trims: u64,
    flushes: u64,
    fua: u64,
    footprint_bytes: u64,
    last_time_ns: u64,
    recent: RecentRequests,
    arrivals: Arrivals,
    coverage: Coverage,
    blocks: Blocks,
    heat: [HeatMapRecorder; 2],
}

impl Characterise {
    /// Starts with nothing seen and the default capacity.
    pub fn new(rule: BlockRule) -> Self {
        Self::with_capacity(rule, Capacity::default())
    }

    /// Starts with nothing seen; figures are exact as long as the places seen fit `capacity`.
    pub fn with_capacity(rule: BlockRule, capacity: Capacity) -> Self {
        let heat = || HeatMapRecorder::new(HEAT_CELLS.0, HEAT_CELLS.1);
        Self {
            rule,
            directions: Default::default(),
            sizes: Default::default(),
            trims: 0,
            flushes: 0,
            fua: 0,
            footprint_bytes: 0,
            last_time_ns: 0,
            recent: RecentRequests::default(),
            arrivals: Arrivals::new(),
            coverage: Coverage::new(capacity.groups),
            blocks: Blocks::new(capacity.blocks),
            heat: [heat(), heat()],
        }
    }

    /// Counts one record.
    pub fn add(&mut self, record: &TraceRecord) {
        self.last_time_ns = record.time_ns;
        self.fua += u64::from(record.fua);
        self.trims += u64::from(record.operation == TraceOperation::Trim);
        self.flushes += u64::from(record.operation == TraceOperation::Flush);
        self.arrivals.arrive(record.time_ns);
        let Some(access) = Access::of(record, self.rule) else {
            return;
        };
        let end_bytes = record.offset_bytes + record.length_bytes;
        self.footprint_bytes = self.footprint_bytes.max(end_bytes);
        let direction = &mut self.directions[access.direction()];
        direction.requests += 1;
        direction.bytes += record.length_bytes;
        direction.blocks += access.blocks;
        self.sizes[access.direction()].add(record.length_bytes);
        self.recent.add(&access);
        self.arrivals.add(&access);
        self.heat[access.direction()].add(access.time_ns, access.first_block, access.blocks);
        self.coverage.add(&access);
        self.blocks.add(&access);
    }

    /// Sums up; `reader` is the trace the records came from, read to its end.
    pub fn finish(mut self, reader: &TraceReader) -> TraceInfo {
        let covered = self.coverage.finish();
        for (direction, sizes) in self.directions.iter_mut().zip(&self.sizes) {
            direction.mean_bytes = ratio(direction.bytes, direction.requests);
            direction.median_bytes = sizes.median(direction.requests);
        }
        let [read, write] = &mut self.directions;
        (read.unique_bytes, read.unique_blocks) = (covered.read_bytes, covered.read_blocks);
        (write.unique_bytes, write.unique_blocks) = (covered.written_bytes, covered.written_blocks);
        let [read, write] = self.directions.clone();
        let updates = covered.updates.min(write.requests);
        let mut info = TraceInfo {
            path: reader.path().to_owned(),
            detected: reader.detected().to_owned(),
            kind: reader.source().kind,
            label: reader.source().label.clone(),
            sha256: reader.sha256(),
            requests: read.requests + write.requests + self.trims + self.flushes,
            write_percent: percent(write.requests, read.requests + write.requests),
            updates,
            update_percent: percent(updates, write.requests),
            written_blocks_percent: percent(covered.written_blocks, covered.blocks),
            updated_blocks_percent: percent(covered.updated_blocks, covered.blocks),
            unique_bytes: covered.bytes,
            unique_blocks: covered.blocks,
            footprint_bytes: self.footprint_bytes,
            accessed_band_bytes: covered.band_bytes,
            written_band_bytes: covered.written_band_bytes,
            random_percent: self.recent.apart_percent(),
            devices: self.recent.devices(),
            duration_s: reader.has_times().then_some(self.last_time_ns as f64 / 1e9),
            counts: reader.counts().clone(),
            trims: self.trims,
            flushes: self.flushes,
            fua: self.fua,
            read,
            write,
            sections: Sections::default(),
        };
        info.sections = self.sections(&info, &covered, reader.has_times());
        info.sections.verdicts = verdicts::of(&info);
        info
    }

    /// Everything but the plain figures and the verdicts.
    fn sections(self, info: &TraceInfo, covered: &Covered, has_times: bool) -> Sections {
        let Self {
            sizes: [read_sizes, write_sizes],
            recent,
            mut arrivals,
            coverage,
            blocks,
            heat: [mut read_heat, mut write_heat],
            last_time_ns: end_ns,
            ..
        } = self;
        let of_blocks = blocks.finish(has_times, end_ns);
        Sections {
            methods: Methods {
                distinct: coverage.method(),
                blocks: of_blocks.method,
                requests: Method::default(),
            },
            shares: shares(info, covered, of_blocks.adjacent.update_interval.count),
            request_sizes: RequestSizes { read: read_sizes.bins(), write: write_sizes.bins() },
            randomness: recent.finish(),
            popularity: of_blocks.popularity,
            reuse: of_blocks.reuse,
            adjacent_accesses: of_blocks.adjacent,
            activity: has_times.then(|| arrivals.activity(end_ns)),
            load: has_times.then(|| arrivals.load(end_ns)),
            gaps: has_times.then(|| arrivals.gaps(end_ns)),
            working_set: has_times.then_some(of_blocks.working_set),
            heat: has_times.then(|| Heat {
                read: read_heat.heat_map(end_ns.saturating_add(1)),
                write: write_heat.heat_map(end_ns.saturating_add(1)),
            }),
            verdicts: Vec::new(),
        }
    }
}

/// Shares of requests, accesses and distinct blocks. `block_updates` are the accesses that write a block again.
fn shares(info: &TraceInfo, covered: &Covered, block_updates: u64) -> Shares {
    let (read, write) = (&info.read, &info.write);
    let requests = read.requests + write.requests;
    let accesses = read.blocks + write.blocks;
    Shares {
        of_requests: Share {
            read_percent: percent(read.requests, requests),
            write_percent: percent(write.requests, requests),
            update_percent: percent(info.updates, requests),
        },
        of_accesses: Share {
            read_percent: percent(read.blocks, accesses),
            write_percent: percent(write.blocks, accesses),
            update_percent: percent(block_updates.min(write.blocks), accesses),
        },
        of_distinct_blocks: Share {
            read_percent: percent(covered.read_blocks, covered.blocks),
            write_percent: percent(covered.written_blocks, covered.blocks),
            update_percent: percent(covered.updated_blocks, covered.blocks),
        },
        update_coverage_percent: percent(
            covered.updated_blocks * BLOCK_BYTES,
            covered.written_blocks * BLOCK_BYTES,
        ),
    }
}
