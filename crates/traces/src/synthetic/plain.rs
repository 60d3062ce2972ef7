//! The plain loads that benchmarks and first experiments use.

use serde::{Deserialize, Serialize};

use super::sampling::Random;
use crate::{TraceOperation, TraceRecord};

/// Requests of one size at uniformly random aligned places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniformRandom {
    /// Number of requests.
    pub requests: u64,
    /// Range the requests fall in, bytes.
    pub footprint_bytes: u64,
    /// Size of every request, bytes.
    pub request_bytes: u64,
    /// Share of writes.
    pub write_percent: f64,
    /// Time between requests, microseconds.
    pub interval_us: u64,
}

/// Requests of one size, each starting where the previous ended, wrapping at the end of the range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequential {
    /// Number of requests.
    pub requests: u64,
    /// Range the requests cover, bytes.
    pub footprint_bytes: u64,
    /// Size of every request, bytes.
    pub request_bytes: u64,
    /// Share of writes.
    pub write_percent: f64,
    /// Time between requests, microseconds.
    pub interval_us: u64,
}

/// One-block requests of which a stated share hits any cache that holds the hot set.
///
/// A hit is a uniformly random block of the hot set; a miss is the next block of the cold range, which is so long that a
/// block has left the cache before the range wraps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneBlock {
    /// Number of requests.
    pub requests: u64,
    /// Share of requests that go to the hot set.
    pub hit_percent: f64,
    /// Size of the hot set, 4 KiB blocks.
    pub hot_blocks: u64,
    /// Size of the cold range behind it, 4 KiB blocks.
    pub cold_blocks: u64,
    /// Share of writes.
    pub write_percent: f64,
    /// Time between requests, microseconds.
    pub interval_us: u64,
}

/// One-block requests that read a hot set, at random, and write anywhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadHot {
    /// Number of requests.
    pub requests: u64,
    /// Size of the hot set, 4 KiB blocks.
    pub hot_blocks: u64,
    /// Size of the range behind it that is written, 4 KiB blocks.
    pub cold_blocks: u64,
    /// Share of writes.
    pub write_percent: f64,
    /// Time between requests, microseconds.
    pub interval_us: u64,
}

/// One of the plain loads.
#[derive(Debug, Clone, PartialEq)]
pub enum PlainLoad {
    /// Table `[uniform-random]`.
    UniformRandom(UniformRandom),
    /// Table `[sequential]`.
    Sequential(Sequential),
    /// Table `[one-block]`.
    OneBlock(OneBlock),
    /// Table `[read-hot]`.
    ReadHot(ReadHot),
}

impl PlainLoad {
    fn requests(&self) -> u64 {
        match self {
            Self::UniformRandom(load) => load.requests,
            Self::Sequential(load) => load.requests,
            Self::OneBlock(load) => load.requests,
            Self::ReadHot(load) => load.requests,
        }
    }

    fn device_bytes(&self) -> u64 {
        match self {
            Self::UniformRandom(load) => load.footprint_bytes,
            Self::Sequential(load) => load.footprint_bytes,
            Self::OneBlock(OneBlock { hot_blocks, cold_blocks, .. })
            | Self::ReadHot(ReadHot { hot_blocks, cold_blocks, .. }) => {
                (hot_blocks + cold_blocks) * 4096
            }
        }
    }

    /// The same load with requests and footprint divided by `factor`, at least one request long and large.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let divide = |value: u64, unit: u64| {
            ((value as f64 / factor / unit as f64).round() as u64).max(1) * unit
        };
        let mut scaled = self.clone();
        match &mut scaled {
            Self::UniformRandom(UniformRandom {
                requests, footprint_bytes, request_bytes, ..
            })
            | Self::Sequential(Sequential { requests, footprint_bytes, request_bytes, .. }) => {
                *requests = divide(*requests, 1);
                *footprint_bytes = divide(*footprint_bytes, *request_bytes);
            }
            Self::OneBlock(OneBlock { requests, hot_blocks, cold_blocks, .. })
            | Self::ReadHot(ReadHot { requests, hot_blocks, cold_blocks, .. }) => {
                for value in [requests, hot_blocks, cold_blocks] {
                    *value = divide(*value, 1);
                }
            }
        }
        scaled
    }

    /// What makes the load impossible: field, value and what is accepted.
    pub(super) fn problem(&self) -> Option<String> {
        let write_percent = match self {
            Self::UniformRandom(load) => load.write_percent,
            Self::Sequential(load) => load.write_percent,
            Self::OneBlock(load) => load.write_percent,
            Self::ReadHot(load) => load.write_percent,
        };
        if !(0.0..=100.0).contains(&write_percent) {
            return Some(format!("write_percent is {write_percent}; accepted: 0 to 100"));
        }
        match self {
            Self::UniformRandom(UniformRandom { footprint_bytes, request_bytes, .. })
            | Self::Sequential(Sequential { footprint_bytes, request_bytes, .. }) => {
                if *request_bytes == 0 || footprint_bytes < request_bytes {
                    return Some(format!(
                        "request_bytes is {request_bytes} and footprint_bytes {footprint_bytes}; accepted: 1 or more, and \
                         a footprint of at least one request"
                    ));
                }
            }
            Self::OneBlock(load) => {
                if !(0.0..=100.0).contains(&load.hit_percent) {
                    return Some(format!(
                        "hit_percent is {}; accepted: 0 to 100",
                        load.hit_percent
                    ));
                }
                return impossible_sets(load.hot_blocks, load.cold_blocks);
            }
            Self::ReadHot(load) => return impossible_sets(load.hot_blocks, load.cold_blocks),
        }
        None
    }
}

/// What is wrong with the sizes of a hot set and of the range behind it.
fn impossible_sets(hot_blocks: u64, cold_blocks: u64) -> Option<String> {
    let is_impossible =
        hot_blocks == 0 || cold_blocks == 0 || hot_blocks.max(cold_blocks) > 1 << 50;
    is_impossible.then(|| {
        format!(
            "hot_blocks is {hot_blocks} and cold_blocks {cold_blocks}; accepted: 1 to 2^50 each"
        )
    })
}

/// The requests of a plain load.
#[derive(Debug, Clone)]
pub(super) struct PlainRecords {
    load: PlainLoad,
    random: Random,
    issued: u64,
    cold_next: u64,
}

impl PlainRecords {
    pub(super) fn new(load: PlainLoad, seed: u64) -> Self {
        Self { load, random: Random::new(seed), issued: 0, cold_next: 0 }
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.load.device_bytes()
    }
}

impl Iterator for PlainRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        if self.issued == self.load.requests() {
            return None;
        }
        let index = self.issued;
        self.issued += 1;
        let random = &mut self.random;
        let (offset, length, write_percent, interval_us) = match &self.load {
            PlainLoad::UniformRandom(load) => {
                let place = random.below(load.footprint_bytes / load.request_bytes);
                (
                    place * load.request_bytes,
                    load.request_bytes,
                    load.write_percent,
                    load.interval_us,
                )
            }
            PlainLoad::Sequential(load) => {
                let place = index % (load.footprint_bytes / load.request_bytes);
                (
                    place * load.request_bytes,
                    load.request_bytes,
                    load.write_percent,
                    load.interval_us,
                )
            }
            PlainLoad::OneBlock(load) => {
                let block = if random.chance(load.hit_percent / 100.0) {
                    random.below(load.hot_blocks)
                } else {
                    let block = load.hot_blocks + self.cold_next;
                    self.cold_next = (self.cold_next + 1) % load.cold_blocks;
                    block
                };
                (block * 4096, 4096, load.write_percent, load.interval_us)
            }
            PlainLoad::ReadHot(load) => {
                let (block, write_percent) = match random.chance(load.write_percent / 100.0) {
                    true => (load.hot_blocks + random.below(load.cold_blocks), 100.0),
                    false => (random.below(load.hot_blocks), 0.0),
                };
                (block * 4096, 4096, write_percent, load.interval_us)
            }
        };
        let write = random.chance(write_percent / 100.0);
        let operation = if write { TraceOperation::Write } else { TraceOperation::Read };
        Some(TraceRecord::new(
            index.saturating_mul(interval_us).saturating_mul(1000),
            operation,
            offset,
            length,
        ))
    }
}
