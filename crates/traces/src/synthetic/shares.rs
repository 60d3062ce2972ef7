//! A load with the published shares of written and updated blocks of a real trace.
//!
//! Data lies in files, and files in folders: the files of a folder follow each other on the device, and folders lie apart.
//! Every access takes a whole file. A written file is written when it comes into being, the files of a folder one after
//! another. An updated file is written again later, and files are read, the popular ones more often. So the shares of
//! distinct blocks are those of the files, to the block: a file at a border is cut in two.

use serde::{Deserialize, Serialize};

use super::layout::{BLOCK_BYTES, percent};
use super::sampling::{Random, Zipf, exp, ln};
use crate::{TraceOperation, TraceRecord};

const BLOCKS_MAX: u64 = 1 << 32;
/// Accesses at most; each takes 16 bytes of memory.
const ACCESSES_MAX: f64 = 2e8;
/// The length of the load on the clock by which accesses are put in order; no more than an order, times come later.
const HORIZON: u64 = 1 << 40;

/// A recipe for one trace: what was published, which is met, and what is assumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// The published shares this load reproduces.
    pub published: PublishedShares,
    /// Assumed sizes and behaviour; not fitted to any disk model.
    pub locality: ShareLocality,
}

/// Shares printed by a paper for a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedShares {
    /// Paper and figure.
    pub source: String,
    /// Distinct blocks written at least once, per cent of the distinct blocks accessed.
    pub written_percent: f64,
    /// Distinct blocks written at least twice, per cent of the distinct blocks accessed.
    pub updated_percent: f64,
}

/// How much data there is, and how it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareLocality {
    /// Distinct blocks accessed.
    pub blocks: u64,
    /// Mean length of a file, blocks.
    pub file_blocks: f64,
    /// Mean number of files in a folder.
    pub folder_files: f64,
    /// Space of the device over that of the files.
    pub device_to_files: f64,
    /// Reads of written files, for each of them on average.
    pub reads_of_written: f64,
    /// Reads of the other files, for each of them on average; the first one is certain.
    pub reads_of_others: f64,
    /// How often an updated file is written again, on average; at least once.
    pub updates_of_updated: f64,
    /// Popularity: the file of rank r is drawn with a weight of `1 / r^popularity`.
    pub popularity: f64,
    /// Where an access falls between the birth of its file and the end: at the fraction `u^recency`, u uniform in 0..1.
    pub recency: f64,
    /// Longest request, blocks; a longer file takes several.
    pub request_blocks_max: u64,
    /// Mean time between requests, microseconds; gaps are exponential.
    pub interval_us: u64,
}

impl Shares {
    /// The same load with `factor` times fewer blocks.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let mut scaled = self.clone();
        scaled.locality.blocks = (self.locality.blocks as f64 / factor).round() as u64;
        scaled
    }

    /// What makes the recipe impossible: field, value and what is accepted.
    pub(super) fn problem(&self) -> Option<String> {
        let (published, locality) = (&self.published, &self.locality);
        let written = published.written_percent;
        for (name, value, least, most) in [
            ("published.written_percent", written, 0.0, 100.0),
            ("published.updated_percent", published.updated_percent, 0.0, written),
            ("locality.blocks", locality.blocks as f64, 1.0, BLOCKS_MAX as f64),
            ("locality.file_blocks", locality.file_blocks, 1.0, 1e9),
            ("locality.folder_files", locality.folder_files, 1.0, 1e9),
            ("locality.device_to_files", locality.device_to_files, 1.0, 1e3),
            ("locality.reads_of_written", locality.reads_of_written, 0.0, 1e6),
            ("locality.reads_of_others", locality.reads_of_others, 1.0, 1e6),
            ("locality.updates_of_updated", locality.updates_of_updated, 1.0, 1e6),
            ("locality.popularity", locality.popularity, 0.0, 10.0),
            ("locality.recency", locality.recency, 0.01, 100.0),
            ("locality.request_blocks_max", locality.request_blocks_max as f64, 1.0, 65536.0),
            ("locality.interval_us", locality.interval_us as f64, 0.0, 1e12),
        ] {
            if !(least..=most).contains(&value) {
                return Some(format!("{name} is {value}; accepted: {least} to {most}"));
            }
        }
        let files = locality.blocks as f64 / locality.file_blocks;
        let most_each = 1.0
            + locality.reads_of_written
            + locality.reads_of_others
            + locality.updates_of_updated;
        (files * most_each > ACCESSES_MAX).then(|| {
            format!(
                "locality.blocks is {}: up to {:.0} accesses; accepted: at most {ACCESSES_MAX:.0}",
                locality.blocks,
                files * most_each
            )
        })
    }
}

/// A run of blocks that is always accessed as a whole.
#[derive(Debug, Clone, Copy)]
struct File {
    first_block: u64,
    blocks: u64,
    birth: u64,
    use_: Use,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    OnlyRead,
    WrittenOnce,
    Updated,
}

/// One access to a file; the order of the fields is that of the accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    at: u64,
    file: u32,
    is_write: bool,
}

/// The requests of the load, in order of time.
#[derive(Debug, Clone)]
pub(super) struct ShareRecords {
    random: Random,
    device_bytes: u64,
    files: Vec<File>,
    accesses: Vec<Access>,
    /// The access under way, and how many blocks of it were requested.
    next: usize,
    blocks_done: u64,
    request_blocks_max: u64,
    interval_us: u64,
    time_us: u64,
}

impl ShareRecords {
    pub(super) fn new(recipe: &Shares, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (mut files, device_blocks) = laid_out(&recipe.locality, &mut random);
        give_uses(&mut files, recipe, &mut random);
        let accesses = accesses(&files, &recipe.locality, &mut random);
        Self {
            random,
            device_bytes: device_blocks * BLOCK_BYTES,
            files,
            accesses,
            next: 0,
            blocks_done: 0,
            request_blocks_max: recipe.locality.request_blocks_max,
            interval_us: recipe.locality.interval_us,
            time_us: 0,
        }
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.device_bytes
    }
}

/// The files in the order of their addresses, born folder by folder in a random order, and the blocks of the device.
fn laid_out(locality: &ShareLocality, random: &mut Random) -> (Vec<File>, u64) {
    let mut files = Vec::new();
    // Index of the first file of each folder.
    let mut folders = Vec::new();
    let (mut at, mut left) = (0, locality.blocks);
    let gap_mean = locality.file_blocks * locality.folder_files * (locality.device_to_files - 1.0);
    while left > 0 {
        folders.push(files.len());
        for _ in 0..random.geometric(locality.folder_files) {
            let blocks = random.geometric(locality.file_blocks).min(left);
            files.push(File { first_block: at, blocks, birth: 0, use_: Use::OnlyRead });
            at += blocks;
            left -= blocks;
            if left == 0 {
                break;
            }
        }
        if gap_mean >= 1.0 {
            at += random.geometric(gap_mean);
        }
    }
    folders.push(files.len());
    let count = folders.len() - 1;
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let turn = HORIZON / count as u64;
    for (rank, &folder) in order.iter().enumerate() {
        let members = &mut files[folders[folder]..folders[folder + 1]];
        let step = (turn / members.len() as u64).max(1);
        for (index, file) in members.iter_mut().enumerate() {
            file.birth = rank as u64 * turn + index as u64 * step;
        }
    }
    (files, at)
}

/// Chooses the files that are written and those that are updated, to the block.
fn give_uses(files: &mut Vec<File>, recipe: &Shares, random: &mut Random) {
    let blocks = recipe.locality.blocks;
    let written = percent(recipe.published.written_percent, blocks);
    let updated = percent(recipe.published.updated_percent, blocks);
    let mut order: Vec<usize> = (0..files.len()).collect();
    random.shuffle(&mut order);
    let (mut written_left, mut updated_left) = (written, updated);
    for index in order {
        for (left, use_) in
            [(&mut updated_left, Use::Updated), (&mut written_left, Use::WrittenOnce)]
        {
            let file = files[index];
            if *left == 0 || file.use_ != Use::OnlyRead {
                continue;
            }
            let taken = file.blocks.min(*left);
            *left -= taken;
            if taken < file.blocks {
                files.push(File {
                    first_block: file.first_block + taken,
                    blocks: file.blocks - taken,
                    ..file
                });
            }
            files[index].blocks = taken;
            files[index].use_ = use_;
        }
        if written_left + updated_left == 0 {
            break;
        }
        // What is updated is written too.
        if updated_left == 0 && written_left == written {
            written_left = written - updated;
        }
    }
}

/// Every access, in order.
fn accesses(files: &[File], locality: &ShareLocality, random: &mut Random) -> Vec<Access> {
    let mut accesses: Vec<Access> = Vec::new();
    let of = |use_: fn(Use) -> bool, random: &mut Random| {
        let mut chosen: Vec<u32> =
            (0..files.len() as u32).filter(|&file| use_(files[file as usize].use_)).collect();
        random.shuffle(&mut chosen);
        chosen
    };
    let updated = of(|it| it == Use::Updated, random);
    let written = of(|it| it != Use::OnlyRead, random);
    let others = of(|it| it == Use::OnlyRead, random);
    for (file, &File { birth, use_, .. }) in files.iter().enumerate() {
        accesses.push(Access { at: birth, file: file as u32, is_write: use_ != Use::OnlyRead });
    }
    let mut later = Later { files, locality, accesses: &mut accesses };
    for &file in &updated {
        later.add(file, true, random);
    }
    later.draw(&updated, locality.updates_of_updated - 1.0, true, random);
    later.draw(&written, locality.reads_of_written, false, random);
    later.draw(&others, locality.reads_of_others - 1.0, false, random);
    accesses.sort_unstable();
    accesses
}

/// Adds the accesses that follow the birth of a file.
struct Later<'a> {
    files: &'a [File],
    locality: &'a ShareLocality,
    accesses: &'a mut Vec<Access>,
}

impl Later<'_> {
    fn add(&mut self, file: u32, is_write: bool, random: &mut Random) {
        let birth = self.files[file as usize].birth;
        let share = match random.unit() {
            0.0 => 0.0,
            unit => exp(self.locality.recency * ln(unit)),
        };
        let after = (share * (HORIZON - birth) as f64) as u64;
        self.accesses.push(Access { at: birth + after.max(1), file, is_write });
    }

    /// Adds `mean` accesses for each of the files, to the popular ones more.
    fn draw(&mut self, files: &[u32], mean: f64, is_write: bool, random: &mut Random) {
        if files.is_empty() {
            return;
        }
        let zipf = Zipf::new(files.len(), self.locality.popularity);
        for _ in 0..(mean * files.len() as f64).round() as u64 {
            let file = files[zipf.sample(random)];
            self.add(file, is_write, random);
        }
    }
}

impl Iterator for ShareRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        let access = *self.accesses.get(self.next)?;
        let file = self.files[access.file as usize];
        let blocks = (file.blocks - self.blocks_done).min(self.request_blocks_max);
        let record = TraceRecord::new(
            self.time_us * 1000,
            match access.is_write {
                true => TraceOperation::Write,
                false => TraceOperation::Read,
            },
            (file.first_block + self.blocks_done) * BLOCK_BYTES,
            blocks * BLOCK_BYTES,
        );
        self.blocks_done += blocks;
        if self.blocks_done == file.blocks {
            self.next += 1;
            self.blocks_done = 0;
        }
        let gap = -ln(1.0 - self.random.unit()) * self.interval_us as f64;
        self.time_us += gap as u64;
        Some(record)
    }
}
