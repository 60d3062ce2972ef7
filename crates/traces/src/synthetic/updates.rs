//! A load with the published request sizes, distinct data and number of updates of a real trace.
//!
//! Data lies in files of equal size at random places of the device. A file that is written or read for the first time is
//! passed over from front to back, so the part of it that exists is always a prefix. A first write takes the next blocks of
//! a file that writes fill; an update and a repeated read fall in a prefix that exists; a first read takes the next bytes
//! of a file that reads fill. How many of each there are follows from the published counts.

use serde::{Deserialize, Serialize};

use super::layout::{BLOCK_BYTES, percent};
use super::sampling::Random;
use crate::{TraceOperation, TraceRecord};

const SECTOR_BYTES: u64 = 512;

/// A recipe for one trace: what was published, which is met, and what is assumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Updates {
    /// The published counts this load reproduces.
    pub published: PublishedUpdates,
    /// Assumed behaviour; not fitted to any cache policy.
    pub locality: UpdateLocality,
}

/// Counts printed by a paper for a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedUpdates {
    /// Paper and table.
    pub source: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of writes among them.
    pub write_percent: f64,
    /// Distinct data read or written, GB of 10^9 bytes.
    pub unique_gb: f64,
    /// Mean size of a read, bytes.
    pub mean_read_bytes: f64,
    /// Mean size of a write, bytes.
    pub mean_write_bytes: f64,
    /// Writes to at least one 4 KiB block written before.
    pub updates: u64,
}

/// How requests cluster in address and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateLocality {
    /// Mean time between requests, microseconds; gaps are exponential.
    pub interval_us: u64,
    /// Size of a file, KiB, a multiple of 4.
    pub file_kib: u64,
    /// Space of the device over the space of all files.
    pub device_to_files: f64,
    /// Files that are being filled side by side.
    pub open_files: u64,
    /// Popularity of files and of places in them: a draw takes the fraction `u^skew` of the ranks, u uniform in 0..1.
    pub skew: f64,
    /// Share of updates and repeated reads that follow on the request before them, if there is data.
    pub sequential_percent: f64,
    /// Share of the repeated reads that read written files; the others read again what was only read.
    pub reads_of_written_percent: f64,
}

impl Updates {
    /// The same load with requests, updates and distinct data divided by `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let divide = |count: u64| (count as f64 / factor).round() as u64;
        let mut scaled = self.clone();
        scaled.published.requests = divide(self.published.requests).max(1);
        scaled.published.updates = divide(self.published.updates);
        scaled.published.unique_gb /= factor;
        scaled
    }

    fn writes(&self) -> u64 {
        percent(self.published.write_percent, self.published.requests)
    }

    /// What makes the recipe impossible: field, value and what is accepted.
    pub(super) fn problem(&self) -> Option<String> {
        let (published, locality) = (&self.published, &self.locality);
        for (name, value) in [
            ("published.write_percent", published.write_percent),
            ("locality.sequential_percent", locality.sequential_percent),
            ("locality.reads_of_written_percent", locality.reads_of_written_percent),
        ] {
            if !(0.0..=100.0).contains(&value) {
                return Some(format!("{name} is {value}; accepted: 0 to 100"));
            }
        }
        for (name, value, least, most) in [
            ("published.requests", published.requests as f64, 1.0, 1e12),
            ("published.mean_read_bytes", published.mean_read_bytes, 512.0, 1e7),
            ("published.mean_write_bytes", published.mean_write_bytes, 512.0, 1e7),
            ("published.unique_gb", published.unique_gb, 1e-6, 1e6),
            ("locality.device_to_files", locality.device_to_files, 1.0, 1e3),
            ("locality.open_files", locality.open_files as f64, 1.0, 1e4),
            ("locality.skew", locality.skew, 1.0, 100.0),
            ("locality.file_kib", locality.file_kib as f64, 4.0, 1e9),
        ] {
            if !(least..=most).contains(&value) {
                return Some(format!("{name} is {value}; accepted: {least} to {most}"));
            }
        }
        if !locality.file_kib.is_multiple_of(4) {
            return Some(format!(
                "locality.file_kib is {}; accepted: a multiple of 4",
                locality.file_kib
            ));
        }
        let writes = self.writes();
        if published.updates > 0 && published.updates >= writes {
            return Some(format!(
                "published.updates is {}; accepted: less than the {writes} writes, because the first is none",
                published.updates
            ));
        }
        let first_written = (writes - published.updates) as f64 * published.mean_write_bytes;
        let readable = (published.requests - writes) as f64 * published.mean_read_bytes;
        if published.unique_gb * 1e9 > first_written + readable {
            return Some(format!(
                "published.unique_gb is {}; accepted: at most the {:.3} that first writes and all reads cover",
                published.unique_gb,
                (first_written + readable) / 1e9
            ));
        }
        None
    }
}

/// Files of one kind and how far each exists.
#[derive(Debug, Clone, Default)]
struct Files {
    /// Start and existing length of each file, bytes, in order of creation.
    files: Vec<(u64, u64)>,
    /// The files being filled, by index.
    open: Vec<usize>,
    /// Where the request before ended: file and offset in it.
    last: (usize, u64),
}

/// The requests of the load, in order of time.
#[derive(Debug, Clone)]
pub(super) struct UpdateRecords {
    recipe: Updates,
    random: Random,
    /// Places of files not created yet, in random order.
    places: Vec<u64>,
    device_bytes: u64,
    written: Files,
    only_read: Files,
    writes_left: u64,
    reads_left: u64,
    first_writes_left: u64,
    /// Bytes the remaining writes and reads should have in all, so that the mean sizes come out.
    write_bytes_left: f64,
    read_bytes_left: f64,
    unique_bytes: u64,
    time_us: u64,
}

impl UpdateRecords {
    pub(super) fn new(recipe: &Updates, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let file_bytes = recipe.locality.file_kib << 10;
        let writes = recipe.writes();
        let reads_left = recipe.published.requests - writes;
        let first_writes = writes - recipe.published.updates;
        // A file's tail that a request does not fit in stays empty: room for twice the data, and the open files.
        let mean_write =
            recipe.published.mean_write_bytes.max(BLOCK_BYTES as f64) + BLOCK_BYTES as f64;
        let most = first_writes as f64 * mean_write * 2.0 + recipe.published.unique_gb * 2e9;
        let files = (most / file_bytes as f64) as u64 + 4 * recipe.locality.open_files + 16;
        let slots = (files as f64 * recipe.locality.device_to_files) as u64;
        let mut places: Vec<u64> = (0..slots).map(|slot| slot * file_bytes).collect();
        random.shuffle(&mut places);
        Self {
            device_bytes: slots * file_bytes,
            places,
            written: Files::default(),
            only_read: Files::default(),
            writes_left: writes,
            reads_left,
            first_writes_left: first_writes,
            write_bytes_left: writes as f64 * recipe.published.mean_write_bytes,
            read_bytes_left: reads_left as f64 * recipe.published.mean_read_bytes,
            unique_bytes: 0,
            time_us: 0,
            recipe: recipe.clone(),
            random,
        }
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// A geometric number of units with the given mean, as bytes, at most a file.
    fn size(&mut self, mean_bytes: f64, unit_bytes: u64) -> u64 {
        let units = self.random.geometric(mean_bytes / unit_bytes as f64);
        (units * unit_bytes).min(self.recipe.locality.file_kib << 10)
    }

    fn write(&mut self) -> (u64, u64) {
        let mean_bytes = self.write_bytes_left / self.writes_left as f64;
        let first = self.written.files.is_empty()
            || self.random.below(self.writes_left) < self.first_writes_left;
        self.writes_left -= 1;
        let (offset, length) = if first {
            self.first_writes_left -= 1;
            // Whole blocks: no part of a block is left over that an update could be the first to touch.
            let length = self.size(self.recipe.published.mean_write_bytes, BLOCK_BYTES);
            self.unique_bytes += length;
            self.extend(true, length)
        } else {
            let length = self.size(mean_bytes, SECTOR_BYTES);
            self.repeat(true, length)
        };
        self.write_bytes_left -= length as f64;
        (offset, length)
    }

    fn read(&mut self) -> (u64, u64) {
        let length = self.size(self.read_bytes_left / self.reads_left as f64, SECTOR_BYTES);
        let first_write_bytes =
            self.first_writes_left as f64 * self.recipe.published.mean_write_bytes;
        // What first writes will still add to the distinct data is theirs; the rest grows evenly over the reads.
        let missing =
            self.recipe.published.unique_gb * 1e9 - first_write_bytes - self.unique_bytes as f64;
        let first = missing > 0.0 && self.random.unit() * self.read_bytes_left < missing;
        self.reads_left -= 1;
        let written = self.random.chance(self.recipe.locality.reads_of_written_percent / 100.0);
        let written =
            (written || self.only_read.files.is_empty()) && !self.written.files.is_empty();
        let (offset, length) = if first || (!written && self.only_read.files.is_empty()) {
            self.unique_bytes += length;
            self.extend(false, length)
        } else {
            self.repeat(written, length)
        };
        self.read_bytes_left -= length as f64;
        (offset, length)
    }

    /// The next `length` bytes of a file that is being filled.
    fn extend(&mut self, write: bool, length: u64) -> (u64, u64) {
        let open_max = self.recipe.locality.open_files as usize;
        let file_bytes = self.recipe.locality.file_kib << 10;
        let files = if write { &mut self.written } else { &mut self.only_read };
        let choice = self.random.below(open_max as u64) as usize;
        let fits =
            files.open.get(choice).is_some_and(|&file| files.files[file].1 + length <= file_bytes);
        if !fits {
            let start = self.places.pop().expect("the device has room for twice the data");
            files.files.push((start, 0));
            let index = files.files.len() - 1;
            match files.open.get_mut(choice) {
                Some(slot) => *slot = index,
                None => files.open.push(index),
            }
        }
        let choice = choice.min(files.open.len() - 1);
        let file = files.open[choice];
        let (start, exists) = files.files[file];
        files.files[file].1 = exists + length;
        files.last = (file, exists + length);
        (start + exists, length)
    }

    /// A place for `length` bytes in the existing part of a file, by popularity; shorter if none is as long.
    fn repeat(&mut self, write: bool, length: u64) -> (u64, u64) {
        let skew = self.recipe.locality.skew;
        let follow = self.random.chance(self.recipe.locality.sequential_percent / 100.0);
        let files = if write { &mut self.written } else { &mut self.only_read };
        let (file, offset) = files.last;
        if follow && offset + length <= files.files[file].1 {
            files.last = (file, offset + length);
            return (files.files[file].0 + offset, length);
        }
        // A request longer than the file's existing part is tried elsewhere; the longest of the tries takes it.
        let mut best = 0;
        for attempt in 0..16 {
            let rank = skewed(&mut self.random, files.files.len() as u64, skew) as usize;
            if attempt == 0 || files.files[rank].1 > files.files[best].1 {
                best = rank;
            }
            if files.files[best].1 >= length {
                break;
            }
        }
        let (start, exists) = files.files[best];
        let length = length.min(exists);
        let room = (exists - length) / SECTOR_BYTES;
        let sector = skewed(&mut self.random, room + 1, skew);
        let block_sectors = BLOCK_BYTES / SECTOR_BYTES;
        // Most real requests start at a block boundary of the file system.
        let offset = (sector / block_sectors * block_sectors) * SECTOR_BYTES;
        files.last = (best, offset + length);
        (start + offset, length)
    }
}

/// A rank below `ranks`, low ranks preferred: the fraction u^skew of them.
fn skewed(random: &mut Random, ranks: u64, skew: f64) -> u64 {
    let mut fraction = random.unit();
    let mut left = skew - 1.0;
    let draw = fraction;
    while left >= 1.0 {
        fraction *= draw;
        left -= 1.0;
    }
    // A fractional power is interpolated between its neighbours: no library function, the same on every platform.
    fraction *= 1.0 - left + left * draw;
    ((fraction * ranks as f64) as u64).min(ranks - 1)
}

impl Iterator for UpdateRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        let left = self.writes_left + self.reads_left;
        if left == 0 {
            return None;
        }
        let time_ns = self.time_us * 1000;
        self.time_us += self.random.geometric(self.recipe.locality.interval_us as f64);
        let write = self.random.below(left) < self.writes_left;
        let operation = if write { TraceOperation::Write } else { TraceOperation::Read };
        let (offset, length) = if write { self.write() } else { self.read() };
        Some(TraceRecord::new(time_ns, operation, offset, length))
    }
}
