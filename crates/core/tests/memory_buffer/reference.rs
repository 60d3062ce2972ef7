//! An untimed write buffer: lists that are searched, and nothing that takes time.

use crate::common::harness::Step;
use imbrex_core::extent::Extent;
use imbrex_core::memory_buffer::{BufferPolicy, MemoryBufferSettings, PartialRead, Scope};
use std::collections::BTreeSet;

/// What an untimed buffer has counted and written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    pub block_reads: u64,
    pub block_writes: u64,
    pub hit_block_reads: u64,
    pub hit_block_writes: u64,
    pub partial_reads: u64,
    pub evictions: u64,
    pub evicted_blocks: u64,
    pub destages: u64,
    pub fill_blocks_read: u64,
    pub dirty_blocks: u64,
    /// Blocks of 4 KiB that went down, in order.
    pub written_below: Vec<u64>,
}

/// A block in memory: its number, its segment, and its valid parts.
#[derive(Clone)]
struct Block {
    number: u64,
    segment: u64,
    valid: BTreeSet<u64>,
}

pub struct Reference {
    settings: MemoryBufferSettings,
    device: u64,
    segment_blocks: u64,
    /// The least recently used first.
    list: Vec<Block>,
    outcome: Outcome,
}

impl Reference {
    pub fn run(
        settings: MemoryBufferSettings,
        device: u64,
        segment_blocks: u64,
        steps: &[Step],
    ) -> Outcome {
        let mut it = Reference {
            settings,
            device,
            segment_blocks,
            list: Vec::new(),
            outcome: Outcome::default(),
        };
        steps.iter().for_each(|step| it.step(*step));
        it.outcome.dirty_blocks = it.list.len() as u64;
        it.outcome
    }

    fn parts(&self) -> u64 {
        self.settings.block.0
    }

    fn parts_of(&self, number: u64) -> u64 {
        self.parts().min(self.device - number * self.parts())
    }

    /// The blocks of an extent, with the parts of each that are asked for.
    fn pieces(&self, extent: Extent) -> Vec<(u64, Vec<u64>)> {
        let mut pieces: Vec<(u64, Vec<u64>)> = Vec::new();
        for lba in extent.start.0..extent.end().0 {
            let (number, part) = (lba / self.parts(), lba % self.parts());
            match pieces.last_mut() {
                Some((last, parts)) if *last == number => parts.push(part),
                _ => pieces.push((number, vec![part])),
            }
        }
        pieces
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Read(extent) => {
                for (number, parts) in self.pieces(extent) {
                    self.read(number, &parts);
                }
            }
            Step::Write(extent) | Step::WriteDurable(extent) => {
                for (number, parts) in self.pieces(extent) {
                    self.write(number, &parts);
                }
            }
            Step::Zero(extent) => {
                for (number, parts) in self.pieces(extent) {
                    for block in self.list.iter_mut().filter(|it| it.number == number) {
                        block.valid.retain(|part| !parts.contains(part));
                    }
                }
                self.list.retain(|block| !block.valid.is_empty());
            }
            Step::Flush => {}
        }
    }

    fn read(&mut self, number: u64, parts: &[u64]) {
        self.outcome.block_reads += 1;
        let whole = 0..self.parts_of(number);
        let Some(at) = self.list.iter().position(|it| it.number == number) else {
            return;
        };
        let mut block = self.list.remove(at);
        if parts.iter().all(|part| block.valid.contains(part)) {
            self.outcome.hit_block_reads += 1;
        } else {
            self.outcome.partial_reads += 1;
            if self.settings.partial_read == PartialRead::Memory {
                block.valid.extend(whole);
            }
        }
        self.list.push(block);
    }

    fn write(&mut self, number: u64, parts: &[u64]) {
        self.outcome.block_writes += 1;
        let block = match self.list.iter().position(|it| it.number == number) {
            Some(at) => {
                self.outcome.hit_block_writes += 1;
                self.list.remove(at)
            }
            None => {
                if self.list.len() == self.settings.capacity_blocks as usize {
                    self.evict();
                }
                Block { number, segment: number / self.segment_blocks, valid: BTreeSet::new() }
            }
        };
        self.list.push(block);
        let block = self.list.last_mut().expect("a block");
        block.valid.extend(parts);
    }

    fn evict(&mut self) {
        let window = (self.settings.window_blocks as usize).min(self.list.len());
        let of = |list: &[Block], segment: u64| -> Vec<u64> {
            let mine = list.iter().filter(|it| it.segment == segment);
            mine.map(|it| it.number).collect()
        };
        let most = |list: &[Block]| {
            let counts = list.iter().map(|it| of(list, it.segment).len());
            let greatest = counts.max().expect("a block");
            let mut nearest = list.iter().map(|it| it.segment);
            nearest.find(|segment| of(list, *segment).len() == greatest)
        };
        let inside = &self.list[..window];
        let mut leaving = match self.settings.policy {
            BufferPolicy::LruBlock => vec![self.list[0].number],
            BufferPolicy::Lwa(Scope::Window) => of(inside, most(inside).expect("a segment")),
            BufferPolicy::Lwa(Scope::WholeBuffer) => {
                of(&self.list, most(inside).expect("a segment"))
            }
            BufferPolicy::Most => of(&self.list, most(&self.list).expect("a segment")),
            BufferPolicy::LruSegment => {
                let newest = |segment| self.list.iter().rposition(|it| it.segment == segment);
                let oldest = self.list.iter().min_by_key(|it| newest(it.segment));
                of(&self.list, oldest.expect("a block").segment)
            }
        };
        leaving.sort_unstable();
        self.outcome.evictions += 1;
        self.outcome.destages += 1;
        for number in leaving {
            let at = self.list.iter().position(|it| it.number == number);
            let block = self.list.remove(at.expect("a block that leaves"));
            self.outcome.evicted_blocks += 1;
            let parts = self.parts_of(number);
            self.outcome.fill_blocks_read += u64::from((block.valid.len() as u64) < parts);
            let start = number * self.parts();
            self.outcome.written_below.extend(start..start + parts);
        }
    }
}
