//! What a trace is like: counts, sizes, footprint, updates, randomness.

mod accesses;
mod arrivals;
mod method;
mod requests;
mod sections;
mod verdicts;
mod working_set;

pub use accesses::{
    Adjacent, AdjacentAccesses, Aggregation, CdfPoint, LruPoint, Mostly, Popularity, Reuse,
};
pub use arrivals::{Activity, Gaps, Idle, LoadSeries, Peak};
pub use method::{Method, Methods};
pub use requests::{Randomness, RequestSizes, Share, Shares};
pub use sections::{Bin, Distribution, Heat, Sections};
pub use verdicts::{DriveKind, Suits, Verdict};
pub use working_set::WorkingSetSeries;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;

use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::record::{SourceKind, TraceOperation, TraceRecord};
use crate::tally::ReadCounts;

const BLOCK_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
/// Blocks whose marks are kept together: 16 MiB of address space.
const CHUNK_BLOCKS: u64 = 4096;
/// Band of the PORE paper's emulator, by which its Table I counts footprints.
const BAND_BYTES: u64 = 18 << 20;

/// Which 4 KiB blocks a request covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockRule {
    /// Every block it touches: offset and end rounded outward.
    #[default]
    Touched,
    /// As many as its size fills, from the block of its offset: floor(offset), ceil(size). Le's thesis counts so.
    Size,
}

/// One direction of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DirectionInfo {
    /// Number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their 4 KiB blocks, counted each time.
    pub blocks: u64,
    /// Mean size, bytes.
    pub mean_bytes: f64,
    /// Median size (the lower one of two), bytes.
    pub median_bytes: u64,
    /// Distinct bytes, in units of 512-byte sectors.
    pub unique_bytes: u64,
    /// Distinct 4 KiB blocks.
    pub unique_blocks: u64,
}

/// The characteristics of a trace, as `imbrex trace info` prints them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceInfo {
    /// File, or name of the recipe.
    pub path: String,
    /// What it was taken for, and why.
    pub detected: String,
    /// Captured, recorded or synthetic.
    pub kind: SourceKind,
    /// What it is, for people.
    pub label: String,
    /// SHA-256 of the file as stored, if it was asked for.
    pub sha256: Option<String>,
    /// All requests.
    pub requests: u64,
    /// Reads.
    pub read: DirectionInfo,
    /// Writes, writes of zeroes among them.
    pub write: DirectionInfo,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Requests with forced unit access.
    pub fua: u64,
    /// Writes among reads and writes, per cent.
    pub write_percent: f64,
    /// Writes to at least one block written before.
    pub updates: u64,
    /// The same as a share of the writes, per cent.
    pub update_percent: f64,
    /// Distinct blocks written at least once, per cent of the distinct blocks accessed.
    pub written_blocks_percent: f64,
    /// Distinct blocks written at least twice, per cent of the distinct blocks accessed.
    pub updated_blocks_percent: f64,
    /// Distinct bytes read or written, in units of 512-byte sectors.
    pub unique_bytes: u64,
    /// Distinct blocks read or written.
    pub unique_blocks: u64,
    /// End of the highest range read or written.
    pub footprint_bytes: u64,
    /// Size of the 18 MiB bands that writes touch.
    pub written_band_bytes: u64,
    /// Size of the 18 MiB bands that reads or writes touch.
    pub accessed_band_bytes: u64,
    /// Reads and writes that do not start where the one before on the same device ended, per cent of those that have one
    /// before.
    pub random_percent: f64,
    /// Number of devices.
    pub devices: u64,
    /// Time of the last request after the first, seconds; `None` if the trace has no times.
    pub duration_s: Option<f64>,
    /// Lines, skipped lines by reason, time inversions, unaligned requests.
    pub counts: ReadCounts,
    /// Everything else; in JSON each section is a key beside those above.
    #[serde(flatten)]
    pub sections: Sections,
}

/// Reads a trace to its end and says what it is like. Memory grows with the distinct blocks (3 bytes each), not with the
/// length of the trace.
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

/// Marks of 4096 neighbouring blocks.
struct Chunk {
    /// A bit for each sector of the block that was read.
    read: [u8; CHUNK_BLOCKS as usize],
    /// A bit for each sector of the block that was written.
    written: [u8; CHUNK_BLOCKS as usize],
    /// 1 if the block was written at least twice.
    updated: [u8; CHUNK_BLOCKS as usize],
}

/// Gathers the characteristics record by record.
pub struct Characterise {
    rule: BlockRule,
    read: DirectionInfo,
    write: DirectionInfo,
    read_sizes: BTreeMap<u64, u64>,
    write_sizes: BTreeMap<u64, u64>,
    trims: u64,
    flushes: u64,
    fua: u64,
    updates: u64,
    footprint_bytes: u64,
    followed: u64,
    random: u64,
    last_time_ns: u64,
    ends: BTreeMap<u16, u64>,
    /// Place in `chunks` by device and chunk number.
    places: HashMap<(u16, u64), usize>,
    chunks: Vec<Box<Chunk>>,
    last_chunk: Option<((u16, u64), usize)>,
}

impl Characterise {
    /// Starts with nothing seen.
    pub fn new(rule: BlockRule) -> Self {
        Self {
            rule,
            read: DirectionInfo::default(),
            write: DirectionInfo::default(),
            read_sizes: BTreeMap::new(),
            write_sizes: BTreeMap::new(),
            trims: 0,
            flushes: 0,
            fua: 0,
            updates: 0,
            footprint_bytes: 0,
            followed: 0,
            random: 0,
            last_time_ns: 0,
            ends: BTreeMap::new(),
            places: HashMap::new(),
            chunks: Vec::new(),
            last_chunk: None,
        }
    }

    /// Counts one record.
    pub fn add(&mut self, record: &TraceRecord) {
        self.last_time_ns = record.time_ns;
        self.fua += u64::from(record.fua);
        let write = match record.operation {
            TraceOperation::Trim => {
                self.trims += 1;
                return;
            }
            TraceOperation::Flush => {
                self.flushes += 1;
                return;
            }
            TraceOperation::Read => false,
            TraceOperation::Write | TraceOperation::WriteZeroes => true,
        };
        let end_bytes = record.offset_bytes + record.length_bytes;
        self.footprint_bytes = self.footprint_bytes.max(end_bytes);
        if let Some(previous_end) = self.ends.insert(record.device, end_bytes) {
            self.followed += 1;
            self.random += u64::from(previous_end != record.offset_bytes);
        }
        let (first_sector, sectors) = match self.rule {
            BlockRule::Touched => {
                let first = record.offset_bytes / SECTOR_BYTES;
                (first, end_bytes.div_ceil(SECTOR_BYTES) - first)
            }
            BlockRule::Size => {
                let first = record.offset_bytes / BLOCK_BYTES * (BLOCK_BYTES / SECTOR_BYTES);
                (
                    first,
                    record.length_bytes.div_ceil(BLOCK_BYTES) * (BLOCK_BYTES / SECTOR_BYTES),
                )
            }
        };
        let (direction, sizes) = if write {
            (&mut self.write, &mut self.write_sizes)
        } else {
            (&mut self.read, &mut self.read_sizes)
        };
        direction.requests += 1;
        direction.bytes += record.length_bytes;
        *sizes.entry(record.length_bytes).or_default() += 1;
        let blocks = if sectors == 0 {
            0
        } else {
            (first_sector + sectors).div_ceil(8) - first_sector / 8
        };
        direction.blocks += blocks;
        let updated = self.mark(record.device, first_sector, sectors, write);
        self.updates += u64::from(updated);
    }

    /// Marks sectors as read or written; true if a write met a block written before.
    fn mark(&mut self, device: u16, first_sector: u64, sectors: u64, write: bool) -> bool {
        let end_sector = first_sector + sectors;
        let (mut sector, mut updated) = (first_sector, false);
        while sector < end_sector {
            let block = sector / 8;
            let block_end = end_sector.min((block + 1) * 8);
            let mask =
                (0xffu16 << (sector % 8)) as u8 & (0xffu16 >> (7 - (block_end - 1) % 8)) as u8;
            let chunk = self.chunk((device, block / CHUNK_BLOCKS));
            let slot = (block % CHUNK_BLOCKS) as usize;
            if write {
                if chunk.written[slot] != 0 {
                    chunk.updated[slot] = 1;
                    updated = true;
                }
                chunk.written[slot] |= mask;
            } else {
                chunk.read[slot] |= mask;
            }
            sector = block_end;
        }
        updated
    }

    fn chunk(&mut self, key: (u16, u64)) -> &mut Chunk {
        let place = match self.last_chunk {
            Some((last, place)) if last == key => place,
            _ => {
                let chunks = &mut self.chunks;
                let place = *self.places.entry(key).or_insert_with(|| {
                    let none = [0; CHUNK_BLOCKS as usize];
                    chunks.push(Box::new(Chunk {
                        read: none,
                        written: none,
                        updated: none,
                    }));
                    chunks.len() - 1
                });
                self.last_chunk = Some((key, place));
                place
            }
        };
        &mut self.chunks[place]
    }

    /// Sums up; `reader` is the trace the records came from, read to its end.
    pub fn finish(mut self, reader: &TraceReader) -> TraceInfo {
        for (direction, sizes) in [
            (&mut self.read, &self.read_sizes),
            (&mut self.write, &self.write_sizes),
        ] {
            direction.mean_bytes = ratio(direction.bytes, direction.requests);
            direction.median_bytes = median(sizes, direction.requests);
        }
        let (mut unique_sectors, mut unique_blocks, mut updated_blocks) = (0, 0, 0);
        let (mut read_sectors, mut write_sectors) = (0, 0);
        let mut bands = [BTreeSet::new(), BTreeSet::new()];
        for (&(device, number), &place) in &self.places {
            let chunk = &self.chunks[place];
            for slot in 0..CHUNK_BLOCKS as usize {
                let (read, written) = (chunk.read[slot], chunk.written[slot]);
                if read | written == 0 {
                    continue;
                }
                unique_blocks += 1;
                unique_sectors += u64::from((read | written).count_ones());
                read_sectors += u64::from(read.count_ones());
                write_sectors += u64::from(written.count_ones());
                self.read.unique_blocks += u64::from(read != 0);
                self.write.unique_blocks += u64::from(written != 0);
                updated_blocks += u64::from(chunk.updated[slot]);
                let block = number * CHUNK_BLOCKS + slot as u64;
                bands[0].insert((device, block / (BAND_BYTES / BLOCK_BYTES)));
                if written != 0 {
                    bands[1].insert((device, block / (BAND_BYTES / BLOCK_BYTES)));
                }
            }
        }
        self.read.unique_bytes = read_sectors * SECTOR_BYTES;
        self.write.unique_bytes = write_sectors * SECTOR_BYTES;
        TraceInfo {
            path: reader.path().to_owned(),
            detected: reader.detected().to_owned(),
            kind: reader.source().kind,
            label: reader.source().label.clone(),
            sha256: reader.sha256(),
            requests: self.read.requests + self.write.requests + self.trims + self.flushes,
            write_percent: percent(
                self.write.requests,
                self.read.requests + self.write.requests,
            ),
            updates: self.updates,
            update_percent: percent(self.updates, self.write.requests),
            written_blocks_percent: percent(self.write.unique_blocks, unique_blocks),
            updated_blocks_percent: percent(updated_blocks, unique_blocks),
            unique_bytes: unique_sectors * SECTOR_BYTES,
            unique_blocks,
            footprint_bytes: self.footprint_bytes,
            accessed_band_bytes: bands[0].len() as u64 * BAND_BYTES,
            written_band_bytes: bands[1].len() as u64 * BAND_BYTES,
            random_percent: percent(self.random, self.followed),
            devices: self.ends.len() as u64,
            duration_s: reader.has_times().then_some(self.last_time_ns as f64 / 1e9),
            counts: reader.counts().clone(),
            sections: Sections::default(),
            trims: self.trims,
            flushes: self.flushes,
            fua: self.fua,
            read: self.read,
            write: self.write,
        }
    }
}

fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum as f64 / count as f64
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * ratio(part, whole)
}

fn median(sizes: &BTreeMap<u64, u64>, requests: u64) -> u64 {
    let mut below = 0;
    for (&size, &count) in sizes {
        below += count;
        if below * 2 >= requests {
            return size;
        }
    }
    0
}

impl fmt::Display for TraceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what_it_is = self.rows_of_the_trace();
        let all = what_it_is.into_iter().chain(self.rows_of_requests());
        for (name, value) in all.chain(self.rows_of_blocks()) {
            writeln!(f, "{name:<22}{value}")?;
        }
        Ok(())
    }
}

/// A name and what is said of it.
type Row = (&'static str, String);

impl TraceInfo {
    /// What the trace is, and how long.
    fn rows_of_the_trace(&self) -> Vec<Row> {
        let mut rows = vec![
            ("trace", self.path.clone()),
            ("workload", format!("{} ({})", self.kind, self.label)),
            ("format", self.detected.clone()),
        ];
        let sha256 = self.sha256.iter();
        rows.extend(sha256.map(|sha256| ("sha256", sha256.clone())));
        let duration = |seconds: f64| format!("{seconds:.3} s ({:.2} days)", seconds / 86_400.0);
        rows.extend([
            (
                "requests",
                format!("{} on {} device(s)", self.requests, self.devices),
            ),
            (
                "duration",
                self.duration_s
                    .map_or_else(|| "no times in this format".to_owned(), duration),
            ),
        ]);
        rows
    }

    /// The requests by kind.
    fn rows_of_requests(&self) -> Vec<Row> {
        let mut rows = vec![
            ("reads", self.read.described()),
            ("writes", self.write.described()),
        ];
        if self.trims + self.flushes + self.fua > 0 {
            rows.push((
                "other",
                format!(
                    "{} trims, {} flushes, {} with forced unit access",
                    self.trims, self.flushes, self.fua
                ),
            ));
        }
        rows.extend([
            (
                "write share",
                format!("{:.2} % of reads and writes", self.write_percent),
            ),
            (
                "updates",
                format!(
                    "{} ({:.2} % of the writes)",
                    self.updates, self.update_percent
                ),
            ),
        ]);
        rows
    }

    /// What of the device was touched, and what was odd about it.
    fn rows_of_blocks(&self) -> [Row; 6] {
        let counts = &self.counts;
        [
            (
                "blocks of 4 KiB",
                format!(
                    "{} read, {} written, {} distinct ({:.3} % of them written, {:.3} % updated)",
                    self.read.blocks,
                    self.write.blocks,
                    self.unique_blocks,
                    self.written_blocks_percent,
                    self.updated_blocks_percent
                ),
            ),
            (
                "accessed",
                format!(
                    "{:.4} GB distinct, up to byte {}",
                    self.unique_bytes as f64 / 1e9,
                    self.footprint_bytes
                ),
            ),
            (
                "bands of 18 MiB",
                format!(
                    "{:.2} GiB written, {:.2} GiB accessed",
                    gib(self.written_band_bytes),
                    gib(self.accessed_band_bytes)
                ),
            ),
            (
                "random",
                format!(
                    "{:.2} % do not start where the previous ended",
                    self.random_percent
                ),
            ),
            ("skipped lines", counts.skipped.to_string()),
            (
                "oddities",
                format!(
                    "{} time inversions, {} requests unaligned to 512 B, {} to 4 KiB",
                    counts.time_inversions, counts.unaligned_to_sector, counts.unaligned_to_block
                ),
            ),
        ]
    }
}

impl DirectionInfo {
    fn described(&self) -> String {
        let DirectionInfo {
            requests,
            bytes,
            mean_bytes,
            median_bytes,
            unique_bytes,
            ..
        } = self;
        format!(
            "{requests}, {:.3} GiB, {:.3} GiB distinct, mean {mean_bytes:.0} B, median {median_bytes} B",
            gib(*bytes),
            gib(*unique_bytes)
        )
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}
