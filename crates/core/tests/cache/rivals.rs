//! The well-known policies count and write exactly what models of their papers do, on a thousand random
//! traces of reads, writes and trims each.

use crate::common::harness::{Step, random_steps};
use crate::exact::{BLOCKS, MODES, capacity, run, with_final_reads};
use crate::naive::{Model, model};
use crate::reference::Outcome;
use crate::stacks::{rival, settings};
use imbrex_core::cache::CacheMode;
use imbrex_core::extent::Extent;
use std::collections::BTreeSet;

const TRACES: u64 = 1000;

/// A model with what a cache counts around it.
pub struct Counted {
    model: Box<dyn Model>,
    capacity: u64,
    mode: CacheMode,
    cached: BTreeSet<u64>,
    dirty: BTreeSet<u64>,
    outcome: Outcome,
}

impl Counted {
    pub fn run(model: Box<dyn Model>, capacity: u64, mode: CacheMode, steps: &[Step]) -> Outcome {
        let mut counted = Counted {
            model,
            capacity,
            mode,
            cached: BTreeSet::new(),
            dirty: BTreeSet::new(),
            outcome: Outcome::default(),
        };
        steps.iter().for_each(|step| counted.step(*step));
        counted.outcome.cached = counted.cached.len() as u64;
        counted.outcome.dirty = counted.dirty.len() as u64;
        counted.outcome
    }

    fn step(&mut self, step: Step) {
        let (extent, is_write) = match step {
            Step::Read(extent) => (extent, false),
            Step::Write(extent) | Step::WriteDurable(extent) => (extent, true),
            Step::Zero(extent) => return self.drop(extent),
            Step::Flush => return,
        };
        let blocks = extent.start.0..extent.end().0;
        if extent.blocks.0 > self.capacity {
            self.outcome.bypassed += extent.blocks.0;
            if is_write {
                self.drop(extent);
                self.outcome.written_below.extend(blocks);
            }
            return;
        }
        blocks.for_each(|block| self.access(block, is_write));
    }

    fn drop(&mut self, extent: Extent) {
        for block in extent.start.0..extent.end().0 {
            self.model.forget(block);
            self.cached.remove(&block);
            self.dirty.remove(&block);
        }
    }

    fn access(&mut self, block: u64, is_write: bool) {
        let hit = self.model.holds(block);
        assert_eq!(hit, self.cached.contains(&block));
        let Outcome { read_lookups, read_hits, write_lookups, write_hits, .. } = &mut self.outcome;
        let (lookups, hits) = match is_write {
            true => (write_lookups, write_hits),
            false => (read_lookups, read_hits),
        };
        *lookups += 1;
        *hits += u64::from(hit);
        let is_used = match self.mode {
            CacheMode::ReadWrite => true,
            CacheMode::WriteOnly => is_write,
            CacheMode::WriteAllocate => is_write || hit,
        };
        if !is_used {
            return;
        }
        for victim in self.model.request_to(block, is_write) {
            assert!(self.cached.remove(&victim));
            if self.dirty.remove(&victim) {
                self.outcome.dirty_evictions += 1;
                self.outcome.written_below.push(victim);
            } else {
                self.outcome.clean_evictions += 1;
            }
        }
        self.cached.insert(block);
        if is_write {
            self.dirty.insert(block);
        }
    }
}

/// Counts and writes the same, and has enough to decide.
fn agrees(word: &str) {
    let mut hits = 0;
    for seed in 0..TRACES {
        let (capacity, mode) = (capacity(seed), MODES[(seed / 6 % 3) as usize]);
        let steps = random_steps(seed, 400, BLOCKS, 6);
        let settings = settings(capacity, (seed % 4) as u32, mode, rival(word));
        let found = run(settings, seed, steps.clone());
        let expected =
            Counted::run(model(word, capacity as usize), capacity, mode, &with_final_reads(steps));
        assert_eq!(found, expected, "{word}, seed {seed}");
        hits += found.read_hits + found.write_hits;
    }
    println!("{word}: {hits} hits");
    assert!(hits > 100_000, "{word}: {hits}");
}

#[test]
fn fifo_agrees_with_its_model() {
    agrees("fifo");
}

#[test]
fn clock_agrees_with_its_model() {
    agrees("clock");
}

#[test]
fn sieve_agrees_with_its_model() {
    agrees("sieve");
}

#[test]
fn s3_fifo_agrees_with_its_model() {
    agrees("s3-fifo");
}

#[test]
fn two_q_agrees_with_its_model() {
    agrees("2q");
}

#[test]
fn arc_agrees_with_its_model() {
    agrees("arc");
}
