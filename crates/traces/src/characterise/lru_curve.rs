//! Hits of an LRU cache at every size, from one pass.
//!
//! The counts are those of the simulated cache with `policy = "lru"` and `mode = "read-write"`: the blocks of a read or write
//! are looked up one after another and a missing one is inserted; a trim or a write of zeroes drops what is cached. Devices
//! overlay each other, as they do in a replay. A request that is longer than a cache goes around it, and a stack of all sizes
//! cannot say what that leaves in the smaller ones: there is no count for caches smaller than the longest request.

use std::ops::Range;

use super::percent;
use super::reuse::{Estimate, ReuseCounts};
use super::sample_groups::{SampleGroups, Trust};
use super::sampled::{Sampled, hash};
use super::stack::Stack;
use crate::BlockRule;
use crate::error::TraceError;
use crate::reader::TraceReader;
use crate::record::{SourceKind, TraceOperation, TraceRecord};
use serde::Serialize;

/// The schema identifier of a [`LruCurve`].
pub const LRU_CURVE_SCHEMA: &str = "imbrex.lru-curve/1";
/// Sizes of [`LruHits::default_sizes`] at most.
const DEFAULT_SIZES_MAX: usize = 20;
/// Positions of a stack that is empty.
const POSITIONS_AT_FIRST: usize = 1 << 16;
/// Distinct blocks that positions of 32 bits have room for.
const BLOCKS_MAX: usize = 1 << 30;
/// The device of all blocks.
const DEVICE: u16 = 0;

/// Where the last access to a block is in the stack.
struct Last(u32);

impl Last {
    /// Of a block that is not in the stack.
    const NONE: Last = Last(u32::MAX);
}

impl Default for Last {
    fn default() -> Self {
        Self::NONE
    }
}

/// Follows the blocks of a trace.
pub struct LruCounts {
    rule: BlockRule,
    /// Share of the blocks that is followed.
    rate: f64,
    /// Their hashes are at most this.
    hash_max: u64,
    table: Sampled<Last>,
    stack: Stack,
    reuse: ReuseCounts,
    /// Reads and writes of a sample.
    groups: Option<[SampleGroups; 2]>,
    records: u64,
    longest_blocks: u64,
}

impl LruCounts {
    /// Follows `rate` of all blocks, which is above 0 and at most 1: all of them, or a spatially hashed sample (SHARDS).
    pub fn new(rule: BlockRule, rate: f64) -> Self {
        Self {
            rule,
            rate,
            // The largest double below 2^64 and 2^64 itself become integers without wrapping.
            hash_max: (rate * 2f64.powi(64)) as u64,
            table: Sampled::new(BLOCKS_MAX),
            stack: Stack::new(POSITIONS_AT_FIRST),
            reuse: ReuseCounts::new(usize::MAX),
            groups: (rate < 1.0).then(|| [SampleGroups::new(), SampleGroups::new()]),
            records: 0,
            longest_blocks: 0,
        }
    }

    /// Follows one record; false if all blocks so far are too many to follow.
    pub fn add(&mut self, record: &TraceRecord) -> bool {
        self.records += 1;
        let blocks = self.rule.blocks(record.offset_bytes, record.length_bytes);
        let direction = match record.operation {
            TraceOperation::Read => 0,
            TraceOperation::Write => 1,
            TraceOperation::WriteZeroes | TraceOperation::Trim => {
                self.forget(blocks);
                return true;
            }
            TraceOperation::Flush => return true,
        };
        let count = blocks.end - blocks.start;
        self.longest_blocks = self.longest_blocks.max(count);
        self.reuse.expect(direction, count);
        blocks.into_iter().all(|block| self.access(direction, block))
    }

    /// Follows a block; false if there is no room for it.
    #[inline]
    fn access(&mut self, direction: usize, block: u64) -> bool {
        let hash = hash(DEVICE, block);
        if hash > self.hash_max {
            return true;
        }
        if self.stack.is_full() {
            self.pack();
        }
        let place = match self.table.find(DEVICE, block, hash) {
            Some(place) => place,
            None if self.table.is_full() => return false,
            None => self.table.insert(DEVICE, block, hash),
        };
        let last = &mut self.table.slots_mut()[place].value;
        if last.0 == Last::NONE.0 {
            last.0 = self.stack.push();
            self.reuse.cold(direction, 1);
            if let Some(groups) = &mut self.groups {
                groups[direction].cold(hash);
            }
        } else {
            let (since, now) = self.stack.touch(last.0);
            last.0 = now;
            self.reuse.again(direction, u64::from(since) + 1, 1);
            if let Some(groups) = &mut self.groups {
                groups[direction].again(hash, u64::from(since) + 1);
            }
        }
        true
    }

    /// Drops the blocks, if they are there.
    fn forget(&mut self, blocks: Range<u64>) {
        // A whole device may be trimmed at once.
        if blocks.end - blocks.start > self.table.slots().len() as u64 {
            let slots = self.table.slots_mut().iter_mut();
            for slot in slots.filter(|slot| blocks.contains(&slot.number)) {
                drop_last(&mut slot.value, &mut self.stack);
            }
            return;
        }
        for block in blocks {
            if let Some(place) = self.table.find(DEVICE, block, hash(DEVICE, block)) {
                drop_last(&mut self.table.slots_mut()[place].value, &mut self.stack);
            }
        }
    }

    fn pack(&mut self) {
        let last = self.table.slots_mut().iter_mut().map(|slot| &mut slot.value.0);
        self.stack.pack(last.filter(|last| **last != Last::NONE.0));
    }

    /// What was counted, without what was kept to count it.
    pub fn finish(self) -> LruHits {
        let sampled_blocks = self.table.slots().len() as u64;
        LruHits {
            touched_blocks: (sampled_blocks as f64 / self.rate).round() as u64,
            sampled_blocks,
            records: self.records,
            longest_blocks: self.longest_blocks,
            rate: self.rate,
            reuse: self.reuse,
            groups: self.groups,
        }
    }
}

fn drop_last(last: &mut Last, stack: &mut Stack) {
    if last.0 != Last::NONE.0 {
        stack.forget(last.0);
        *last = Last::NONE;
    }
}

/// What a cache of any size hits.
pub struct LruHits {
    /// Distinct blocks read or written, of a sample an estimate.
    pub touched_blocks: u64,
    /// Those that were followed.
    pub sampled_blocks: u64,
    /// Blocks of the longest read or write.
    pub longest_blocks: u64,
    records: u64,
    rate: f64,
    reuse: ReuseCounts,
    groups: Option<[SampleGroups; 2]>,
}

impl LruHits {
    /// Powers of two that the longest request fits, the largest 19 of them that hold less than everything, and one cache that
    /// holds everything.
    pub fn default_sizes(&self) -> Vec<u64> {
        let all = self.touched_blocks.max(self.longest_blocks).max(1);
        let powers = (0..u64::BITS - 1).map(|power| 1 << power);
        let mut sizes: Vec<u64> =
            powers.filter(|&size| size >= self.longest_blocks && size < all).collect();
        sizes.drain(..sizes.len().saturating_sub(DEFAULT_SIZES_MAX - 1));
        sizes.push(all);
        sizes
    }

    /// The hits of caches of these sizes, in blocks.
    pub fn points(&self, sizes: &[u64]) -> Vec<LruCurvePoint> {
        // Of a sample, each block stands for several between two accesses, and none for the block itself.
        let distance = |&size: &u64| (size.saturating_sub(1) as f64 * self.rate) as u64 + 1;
        let distances: Vec<u64> = match self.rate < 1.0 {
            true => sizes.iter().map(distance).collect(),
            false => sizes.to_vec(),
        };
        let trust = |direction: usize, distance| match &self.groups {
            Some(groups) => groups[direction].trust(distance),
            None => Trust::ALL,
        };
        let hits = self.reuse.hits(self.rate, &distances, trust);
        sizes.iter().zip(hits).map(|(&size, hits)| self.point(size, hits)).collect()
    }

    fn point(&self, cache_blocks: u64, [of_reads, of_writes]: [Estimate; 2]) -> LruCurvePoint {
        let (read_hits, write_hits) = (of_reads.hits, of_writes.hits);
        let [reads, writes] = self.reuse.accesses();
        let fits = cache_blocks >= self.longest_blocks;
        let share = |hits, of| (fits && of > 0).then(|| percent(hits, of));
        LruCurvePoint {
            cache_blocks,
            read_hits: fits.then_some(read_hits),
            write_hits: fits.then_some(write_hits),
            read_hit_percent: share(read_hits, reads),
            write_hit_percent: share(write_hits, writes),
            hit_percent: share(read_hits + write_hits, reads + writes),
            standard_error_percent: (fits && self.groups.is_some()).then(|| {
                let error = of_reads.error + of_writes.error;
                100.0 * error / (reads + writes).max(1) as f64
            }),
        }
    }
}

/// An LRU cache of one size. There are no hits where the longest request goes around it, and no share of nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LruCurvePoint {
    /// Size, 4 KiB blocks.
    pub cache_blocks: u64,
    /// Blocks of reads that are found; of a sample an estimate.
    pub read_hits: Option<u64>,
    /// Blocks of writes that are found.
    pub write_hits: Option<u64>,
    /// Of the blocks of all reads, per cent.
    pub read_hit_percent: Option<f64>,
    /// Of the blocks of all writes, per cent.
    pub write_hit_percent: Option<f64>,
    /// Of the blocks of both, per cent.
    pub hit_percent: Option<f64>,
    /// Standard error of `hit_percent` in a sample, points; the errors of reads and writes are added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error_percent: Option<f64>,
}

/// Hits of LRU caches of several sizes over a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LruCurve {
    /// Always [`LRU_CURVE_SCHEMA`].
    pub schema: &'static str,
    /// File, or recipe.
    pub path: String,
    /// Captured, recorded or synthetic.
    pub kind: SourceKind,
    /// What it is, for people.
    pub label: String,
    /// SHA-256 of the file as stored, where all of it was read.
    pub sha256: Option<String>,
    /// Records read.
    pub requests: u64,
    /// Which blocks a request covers: `cover` or `size`.
    pub blocks: &'static str,
    /// Blocks of all reads.
    pub read_blocks: u64,
    /// Blocks of all writes.
    pub write_blocks: u64,
    /// Distinct blocks read or written, of a sample an estimate.
    pub touched_blocks: u64,
    /// Blocks of the longest read or write.
    pub longest_request_blocks: u64,
    /// Share of the distinct blocks that was followed; 1 is exact.
    pub sample: f64,
    /// Distinct blocks that were followed.
    pub sampled_blocks: u64,
    /// A cache of each size, in the order asked for.
    pub points: Vec<LruCurvePoint>,
}

impl LruCurve {
    /// How the hits were found, for people.
    pub fn method(&self) -> String {
        match self.sample < 1.0 {
            true => format!(
                "from a hash sample of blocks at rate {} (SHARDS), {} of them",
                self.sample, self.sampled_blocks
            ),
            false => "exactly".to_owned(),
        }
    }
}

/// Reads a trace, `limit` records of it at most, and says what LRU caches hit whose sizes in blocks `sizes` tells when the
/// trace is known. `rate` is as in [`LruCounts::new`].
///
/// # Errors
/// The trace is damaged, has no reads and writes, or has more distinct blocks than can be followed.
pub fn lru_curve(
    mut reader: TraceReader,
    rule: BlockRule,
    rate: f64,
    limit: Option<u64>,
    sizes: impl FnOnce(&LruHits) -> Vec<u64>,
) -> Result<LruCurve, TraceError> {
    let refused = |reader: &TraceReader, reason: String| TraceError::Format {
        path: reader.path().to_owned(),
        reason,
    };
    let mut counts = LruCounts::new(rule, rate);
    let mut left = limit.unwrap_or(u64::MAX);
    let mut batch = Vec::new();
    while left > 0 && reader.next_batch(&mut batch)? {
        let wanted = left.min(batch.len() as u64);
        left -= wanted;
        if !batch[..wanted as usize].iter().all(|record| counts.add(record)) {
            let reason = format!(
                "more than {BLOCKS_MAX} distinct blocks of 4 KiB; accepted: fewer, or a --sample of them"
            );
            return Err(refused(&reader, reason));
        }
    }
    let hits = counts.finish();
    let [read_blocks, write_blocks] = hits.reuse.accesses();
    if read_blocks + write_blocks == 0 {
        let reason =
            "no block is read or written; accepted: a trace with at least one read or write";
        return Err(refused(&reader, reason.to_owned()));
    }
    if hits.sampled_blocks == 0 {
        let reason = format!("{rate} has no block of this trace; accepted: more, 1 is all blocks");
        return Err(TraceError::Option { option: "--sample", reason });
    }
    Ok(LruCurve {
        schema: LRU_CURVE_SCHEMA,
        path: reader.path().to_owned(),
        kind: reader.source().kind,
        label: reader.source().label.clone(),
        sha256: reader.sha256(),
        requests: hits.records,
        blocks: rule.name(),
        read_blocks,
        write_blocks,
        touched_blocks: hits.touched_blocks,
        longest_request_blocks: hits.longest_blocks,
        sample: rate,
        sampled_blocks: hits.sampled_blocks,
        points: hits.points(&sizes(&hits)),
    })
}
