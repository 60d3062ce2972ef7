//! First-touch packing: the blocks of the sources, one behind the other in the order in which they are first touched.
//!
//! The order is source-major: every distinct block of the first source, then every distinct block of the second. Blocks of
//! different sources, and of different devices of a source, are different blocks.

use std::collections::BTreeMap;

use super::settings::{Combination, wrong};
use super::source::SourceReader;
use crate::BlockRule;
use crate::error::TraceError;
use crate::record::{TraceOperation, TraceRecord};

pub(super) const BLOCK_BYTES: u64 = 4096;

/// Runs of blocks that a packing remembers at most: about 400 MB of memory.
pub const PACKED_RUNS_MAX: usize = 8 << 20;

/// Where the blocks of every source went.
#[derive(Debug)]
pub(super) struct Packing {
    rule: BlockRule,
    sources: Vec<Runs>,
    /// Blocks of all sources.
    blocks: u64,
    /// Runs of all sources.
    runs: usize,
}

/// Device and first block of a run, to its length and its packed place. Neighbours in both are one run, unlike in the
/// extent map of the layers, which counts insertions.
type Runs = BTreeMap<(u16, u64), (u64, u64)>;

impl Packing {
    /// Reads every source to its end, in their order.
    pub(super) fn of(combination: &Combination) -> Result<Self, TraceError> {
        let mut packing = Self {
            rule: combination.blocks.unwrap_or_default(),
            sources: Vec::new(),
            blocks: 0,
            runs: 0,
        };
        for config in &combination.traces {
            let mut source = SourceReader::open(config)?;
            packing.sources.push(Runs::new());
            while let Some(record) = source.take()? {
                if record.operation != TraceOperation::Flush {
                    packing.touch(&record)?;
                }
                if packing.runs > PACKED_RUNS_MAX {
                    return Err(wrong(format!(
                        "{}: packing needs more than {PACKED_RUNS_MAX} runs of blocks by then; accepted: traces whose \
                         blocks are less scattered, or a smaller limit",
                        config.path
                    )));
                }
            }
        }
        Ok(packing)
    }

    /// Bytes of all blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// Gives a place to each block of a request of the last source that has none.
    fn touch(&mut self, record: &TraceRecord) -> Result<(), TraceError> {
        let runs = self.sources.last_mut().expect("a source is read");
        let (device, (mut block, end)) = (record.device, covered(self.rule, record));
        while block < end {
            let before = runs.range(..=(device, block)).next_back();
            let before = before.filter(|((other, _), _)| *other == device);
            let before = before.map(|((_, start), (blocks, place))| (*start, *blocks, *place));
            if let Some((start, blocks, _)) = before
                && start + blocks > block
            {
                block = start + blocks;
                continue;
            }
            let after = runs.range((device, block)..(device, end)).next();
            let gap_end = after.map_or(end, |((_, start), _)| *start);
            let gap_blocks = gap_end - block;
            match before {
                Some((start, blocks, place))
                    if start + blocks == block && place + blocks == self.blocks =>
                {
                    runs.insert((device, start), (blocks + gap_blocks, place));
                }
                _ => {
                    runs.insert((device, block), (gap_blocks, self.blocks));
                    self.runs += 1;
                }
            }
            self.blocks += gap_blocks;
            block = gap_end;
        }
        if self.blocks >= 1 << 50 {
            return Err(wrong(format!(
                "{} blocks are touched; accepted: fewer than 2^50",
                self.blocks
            )));
        }
        Ok(())
    }

    /// Appends the request of a source in pieces, each of them at blocks that lie behind each other.
    pub(super) fn place(
        &self,
        source: usize,
        mut record: TraceRecord,
        pieces: &mut Vec<TraceRecord>,
    ) {
        let (first, end) = covered(self.rule, &record);
        if self.rule == BlockRule::Size {
            // So many blocks as its size fills, from the block of its offset: it must start with that block to fit.
            record.offset_bytes = first * BLOCK_BYTES;
        }
        let record_end = record.offset_bytes + record.length_bytes;
        let runs = &self.sources[source];
        let before = runs.range(..(record.device, first)).next_back();
        let rest = runs.range((record.device, first)..(record.device, end));
        for ((device, start), (blocks, place)) in before.into_iter().chain(rest) {
            let from = record.offset_bytes.max(start * BLOCK_BYTES);
            let to = record_end.min((start + blocks) * BLOCK_BYTES);
            if *device == record.device && from < to {
                pieces.push(TraceRecord {
                    offset_bytes: place * BLOCK_BYTES + (from - start * BLOCK_BYTES),
                    length_bytes: to - from,
                    ..record
                });
            }
        }
    }
}

/// The blocks of a request, from the first to the one behind the last.
fn covered(rule: BlockRule, record: &TraceRecord) -> (u64, u64) {
    let first = record.offset_bytes / BLOCK_BYTES;
    let end = match rule {
        BlockRule::Touched => (record.offset_bytes + record.length_bytes).div_ceil(BLOCK_BYTES),
        BlockRule::Size => first + record.length_bytes.div_ceil(BLOCK_BYTES),
    };
    (first, end)
}
