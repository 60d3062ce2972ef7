//! A volume with the published request counts and footprint of a real one, and stated locality.
//!
//! Requests are single 4 KiB blocks, as in the published counts, that come in sequential runs. Writes and reads each
//! divide into components with fixed shares: a small *hot* set with Zipf popularity that slides through the data over
//! time; *streams* that rewrite long files in dense bands from front to back, again and again; *scatter*, small runs in
//! the extents of a few active bands that change with time; and for reads a *scan* that passes over everything in
//! address order, as a backup does. The shares are kept exactly, by always serving the component that lags most.

use serde::{Deserialize, Serialize};

use super::layout::{BLOCK_BYTES, Layout, Run, percent};
use super::sampling::{Random, Zipf};
use crate::{TraceOperation, TraceRecord};

const GIB: f64 = (1u64 << 30) as f64;

/// A recipe for one volume: what was published, which is met exactly or to the band, and what is assumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// The published counts this volume reproduces.
    pub published: PublishedVolume,
    /// Assumed behaviour; not fitted to any cache policy.
    pub locality: Locality,
}

/// Counts printed by a paper for a volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedVolume {
    /// Paper and table.
    pub source: String,
    /// Number of 4 KiB block requests.
    pub requests: u64,
    /// Share of writes among them.
    pub write_percent: f64,
    /// Size of all bands that writes touch, GiB.
    pub written_gib: f64,
    /// Size of all bands that any request touches, GiB.
    pub accessed_gib: f64,
    /// Size of one band, MiB.
    pub band_mib: u64,
}

/// How requests cluster in address and time. Percentages of blocks are of the writable blocks unless stated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// Length of the trace, seconds.
    pub duration_s: u64,
    /// Device size over touched size: how much untouched space lies between touched bands.
    pub device_to_touched: f64,
    /// Mean number of adjacent touched bands.
    pub touched_run_bands: f64,
    /// Share of the written bands' blocks that can be written at all.
    pub written_coverage_percent: f64,
    /// Share of the written bands that hold one long file.
    pub dense_bands_percent: f64,
    /// Share of a dense band that its file fills.
    pub dense_coverage_percent: f64,
    /// Exponent by which the fill of the other bands falls with their rank.
    pub density_skew: f64,
    /// Mean extent length in the other bands, blocks.
    pub extent_blocks: f64,
    /// Size of the hot set at any time.
    pub hot_blocks_percent: f64,
    /// Share of the sparse bands that hold hot data.
    pub hot_bands_percent: f64,
    /// Blocks written or read together in the hot set.
    pub hot_item_blocks: u64,
    /// Zipf exponent of the popularity of hot items.
    pub hot_zipf: f64,
    /// How many times the whole hot set is replaced during the trace.
    pub hot_replacements: f64,
    /// Share of the written blocks that go to the hot set.
    pub hot_writes_percent: f64,
    /// Share of the read blocks that come from the hot set.
    pub hot_reads_percent: f64,
    /// Share of the written blocks that belong to streams; the rest scatters.
    pub stream_writes_percent: f64,
    /// Mean sequential run of a stream, blocks.
    pub stream_run_blocks: f64,
    /// Mean sequential run of scattered requests, blocks.
    pub scatter_run_blocks: f64,
    /// Zipf exponent of the popularity of bands and streams.
    pub band_zipf: f64,
    /// Share of the sparse bands that are active at a time.
    pub active_bands_percent: f64,
    /// Share of the scattered bursts that go to the active bands; the others go to any written band.
    pub active_percent: f64,
    /// Scattered bursts between two changes of the active set; each replaces one band.
    pub active_turnover_bursts: u64,
    /// Share of the read blocks that a scan in address order reads.
    pub scan_reads_percent: f64,
    /// Share of every accessed band that the scan covers, from its start.
    pub scan_coverage_percent: f64,
    /// Mean sequential run of the scan, blocks.
    pub scan_run_blocks: f64,
    /// Mean number of runs of one component that arrive together.
    pub burst_runs: f64,
    /// Time between two blocks of a burst, microseconds.
    pub block_gap_us: u64,
}

/// Derived whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub writes: u64,
    pub written_bands: u64,
    pub accessed_bands: u64,
    pub band_blocks: u64,
}

impl Volume {
    pub(super) fn counts(&self) -> Counts {
        let published = &self.published;
        let band_bytes = published.band_mib << 20;
        let bands = |gib: f64| ((gib * GIB / band_bytes as f64).round() as u64).max(1);
        let written_bands = bands(published.written_gib);
        Counts {
            writes: percent(published.write_percent, published.requests),
            written_bands,
            accessed_bands: bands(published.accessed_gib).max(written_bands),
            band_blocks: band_bytes / BLOCK_BYTES,
        }
    }

    /// The same volume with requests, footprint and duration divided by `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        scaled.published.requests =
            ((self.published.requests as f64 / factor).round() as u64).max(1);
        scaled.published.written_gib /= factor;
        scaled.published.accessed_gib /= factor;
        scaled.locality.duration_s =
            ((self.locality.duration_s as f64 / factor).round() as u64).max(1);
        scaled
    }
}

/// A component of the load; the index of its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Component {
    Hot,
    Stream,
    Scatter,
    Scan,
}

/// Shares and progress of the components of one direction.
#[derive(Debug, Clone)]
struct Direction {
    total: u64,
    done: u64,
    shares: [(Component, f64); 3],
    done_by_component: [u64; 3],
    /// Bands that must be touched in this direction, in order, so that the footprint is exact.
    forced: std::ops::Range<usize>,
}

impl Direction {
    /// `total` blocks of which two components have their percentages and scattered requests the
    /// rest.
    fn new(
        total: u64,
        first: (Component, f64),
        second: (Component, f64),
        forced: std::ops::Range<usize>,
    ) -> Self {
        let rest = 100.0 - first.1 - second.1;
        Self {
            total,
            done: 0,
            shares: [first, second, (Component::Scatter, rest)],
            done_by_component: [0; 3],
            forced,
        }
    }

    fn left(&self) -> u64 {
        self.total - self.done
    }

    /// The component that lags its share most.
    fn lagging(&self) -> usize {
        let lag = |index: usize| {
            self.shares[index].1 * (self.done + 1) as f64 / 100.0
                - self.done_by_component[index] as f64
        };
        let mut most = 0;
        for index in 1..self.shares.len() {
            if lag(index) > lag(most) {
                most = index;
            }
        }
        most
    }

    /// The next band to touch for the footprint's sake, if it is due: evenly over the direction, and none left out.
    fn due(&mut self, bands: usize) -> Option<usize> {
        let first = self.forced.end - bands;
        let index = (self.forced.start - first) as u64;
        let due = !self.forced.is_empty()
            && (self.done >= index * self.total / bands as u64
                || self.left() <= self.forced.len() as u64);
        if due { self.forced.next() } else { None }
    }
}

/// The requests of a volume, in order of time.
#[derive(Debug, Clone)]
pub(super) struct VolumeRecords {
    volume: Volume,
    layout: Layout,
    random: Random,
    writes: Direction,
    reads: Direction,
    band_popularity: Zipf,
    stream_popularity: Zipf,
    hot_popularity: Zipf,
    active: Vec<usize>,
    bursts_to_turnover: u64,
    stream_cursors: Vec<u64>,
    scan_band: usize,
    scan_block: u64,
    burst: Burst,
    run: Run,
    time_ns: u64,
}

/// What the current burst does.
#[derive(Debug, Clone, Copy)]
struct Burst {
    write: bool,
    component_index: usize,
    /// Band of a scattered burst, or index of the stream.
    place: usize,
    runs_left: u64,
}

impl VolumeRecords {
    pub(super) fn new(volume: &Volume, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let layout = Layout::new(volume, &mut random);
        let counts = volume.counts();
        let locality = &volume.locality;
        let writes = Direction::new(
            counts.writes,
            (Component::Hot, locality.hot_writes_percent),
            (Component::Stream, locality.stream_writes_percent),
            0..layout.written_bands,
        );
        let reads = Direction::new(
            volume.published.requests - counts.writes,
            (Component::Hot, locality.hot_reads_percent),
            (Component::Scan, locality.scan_reads_percent),
            layout.written_bands..layout.bands.len(),
        );
        let band_popularity = Zipf::new(layout.scatter.len().max(1), locality.band_zipf);
        let mut records = Self {
            stream_popularity: Zipf::new(layout.dense.len().max(1), locality.band_zipf),
            hot_popularity: Zipf::new(layout.hot_items, locality.hot_zipf),
            stream_cursors: vec![0; layout.dense.len()],
            active: Vec::new(),
            bursts_to_turnover: locality.active_turnover_bursts,
            scan_band: 0,
            scan_block: 0,
            burst: Burst { write: true, component_index: 0, place: 0, runs_left: 0 },
            run: Run { first_block: 0, blocks: 0 },
            time_ns: 0,
            band_popularity,
            volume: volume.clone(),
            layout,
            random,
            writes,
            reads,
        };
        for _ in
            0..percent(locality.active_bands_percent, records.layout.scatter.len() as u64).max(1)
        {
            let band = records.any_band();
            records.active.push(band);
        }
        records
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.layout.device_blocks * BLOCK_BYTES
    }

    fn any_band(&mut self) -> usize {
        let rank = self.band_popularity.sample(&mut self.random);
        // Without sparse bands everything written is a dense band.
        self.layout.scatter.get(rank).copied().unwrap_or(0)
    }

    fn progress(&self) -> f64 {
        (self.writes.done + self.reads.done) as f64 / self.volume.published.requests as f64
    }

    /// Chooses direction and component of the next burst and moves time to its start.
    fn start_burst(&mut self) {
        let lag = |direction: &Direction| direction.left() as f64 / direction.total.max(1) as f64;
        let write = self.reads.left() == 0
            || (self.writes.left() > 0 && lag(&self.writes) >= lag(&self.reads));
        let direction = if write { &self.writes } else { &self.reads };
        let component_index = direction.lagging();
        let component = direction.shares[component_index].0;
        let place = match component {
            Component::Scatter => self.scatter_band(),
            Component::Stream => self.stream_popularity.sample(&mut self.random),
            Component::Hot | Component::Scan => 0,
        };
        let runs_left = self.random.geometric(self.volume.locality.burst_runs);
        self.burst = Burst { write, component_index, place, runs_left };
        let start_ns = (self.progress() * self.volume.locality.duration_s as f64 * 1e9) as u64;
        self.time_ns = self.time_ns.max(start_ns);
    }

    fn scatter_band(&mut self) -> usize {
        self.bursts_to_turnover -= 1;
        if self.bursts_to_turnover == 0 {
            self.bursts_to_turnover = self.volume.locality.active_turnover_bursts;
            let slot = self.random.below(self.active.len() as u64) as usize;
            self.active[slot] = self.any_band();
        }
        if self.random.chance(self.volume.locality.active_percent / 100.0) {
            self.active[self.random.below(self.active.len() as u64) as usize]
        } else {
            self.any_band()
        }
    }

    fn start_run(&mut self) {
        if self.burst.runs_left == 0 {
            self.start_burst();
        }
        self.burst.runs_left -= 1;
        let bands =
            (self.layout.written_bands, self.layout.bands.len() - self.layout.written_bands);
        let (direction, bands) =
            if self.burst.write { (&mut self.writes, bands.0) } else { (&mut self.reads, bands.1) };
        let forced = if bands == 0 { None } else { direction.due(bands) };
        let component = direction.shares[self.burst.component_index].0;
        // What is left after the bands that still have to be touched, at least one block each.
        let most = direction.left() - direction.forced.len() as u64;
        let mut run = match forced {
            Some(band) => self.forced_run(band),
            None => match component {
                Component::Hot => self.hot_run(),
                Component::Stream => self.stream_run(),
                Component::Scatter => self.scatter_run(self.burst.place),
                Component::Scan => self.scan_run(),
            },
        };
        run.blocks = run.blocks.min(most);
        let direction = if self.burst.write { &mut self.writes } else { &mut self.reads };
        direction.done += run.blocks;
        direction.done_by_component[self.burst.component_index] += run.blocks;
        if direction.left() == 0 {
            self.burst.runs_left = 0;
        }
        self.run = run;
    }

    fn forced_run(&mut self, band: usize) -> Run {
        if self.layout.bands[band].extents.is_empty() {
            return Run { first_block: self.layout.bands[band].first_block, blocks: 1 };
        }
        Run { blocks: 1, ..self.scatter_run(band) }
    }

    fn hot_run(&mut self) -> Run {
        let rank = self.hot_popularity.sample(&mut self.random);
        let items = self.layout.hot_items;
        // Each place in the set is replaced `hot_replacements` times, at moments spread evenly over the places.
        let replaced = (self.progress() * self.volume.locality.hot_replacements
            + rank as f64 / items as f64) as usize;
        self.layout.hot[(rank + items * replaced) % self.layout.hot.len()]
    }

    fn stream_run(&mut self) -> Run {
        let Some(&band) = self.layout.dense.get(self.burst.place) else {
            let band = self.any_band();
            return self.scatter_run(band);
        };
        let file = self.layout.bands[band].extents[0];
        let cursor = &mut self.stream_cursors[self.burst.place];
        let blocks = self
            .random
            .geometric(self.volume.locality.stream_run_blocks)
            .min(file.blocks - *cursor);
        let run = Run { first_block: file.first_block + *cursor, blocks };
        *cursor = (*cursor + blocks) % file.blocks;
        run
    }

    fn scatter_run(&mut self, band: usize) -> Run {
        let extents = &self.layout.bands[band].extents;
        let extent = extents[self.random.below(extents.len() as u64) as usize];
        let start = self.random.below(extent.blocks);
        let blocks = self
            .random
            .geometric(self.volume.locality.scatter_run_blocks)
            .min(extent.blocks - start);
        Run { first_block: extent.first_block + start, blocks }
    }

    fn scan_run(&mut self) -> Run {
        let covered =
            percent(self.volume.locality.scan_coverage_percent, self.volume.counts().band_blocks)
                .max(1);
        let band = self.layout.scan_order[self.scan_band];
        let blocks = self
            .random
            .geometric(self.volume.locality.scan_run_blocks)
            .min(covered - self.scan_block);
        let run =
            Run { first_block: self.layout.bands[band].first_block + self.scan_block, blocks };
        self.scan_block += blocks;
        if self.scan_block == covered {
            self.scan_block = 0;
            self.scan_band = (self.scan_band + 1) % self.layout.scan_order.len();
        }
        run
    }
}

impl Iterator for VolumeRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        if self.run.blocks == 0 {
            if self.writes.left() + self.reads.left() == 0 {
                return None;
            }
            self.start_run();
        }
        let operation = if self.burst.write { TraceOperation::Write } else { TraceOperation::Read };
        let record = TraceRecord::new(
            self.time_ns,
            operation,
            self.run.first_block * BLOCK_BYTES,
            BLOCK_BYTES,
        );
        self.run.first_block += 1;
        self.run.blocks -= 1;
        self.time_ns += self.volume.locality.block_gap_us * 1000;
        Some(record)
    }
}
