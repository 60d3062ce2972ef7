//! A load whose requests repeat their own history: most addresses are those of an earlier request, rather recent ones.
//!
//! Independent models are compared by it, so every draw has its place. For each request, in this order:
//!
//! 1. one draw says whether it writes, one which size it has;
//! 2. the history of a write is the start addresses of all earlier writes, that of a read those of all earlier requests;
//!    unless it is empty, one draw says whether the address is new;
//! 3. an address that is not new is the entry `floor(len d^2)` before the newest one, `d` a draw;
//! 4. for a new one a draw says where it lies: where the last new request of its direction ended (at first at 0 for reads,
//!    in the middle of the span for writes), or near an entry of the history (two draws), or anywhere (one draw).
//!
//! An address whose end lies beyond the span is moved back until it fits.

use serde::{Deserialize, Serialize};

use crate::{TraceOperation, TraceRecord};

const SECTOR_BYTES: u64 = 512;
/// How far from an earlier request a near one lies, sectors: less than this, of which half may be before it.
const NEAR_SECTORS: f64 = 4096.0;
const NEAR_BACK_SECTORS: u64 = 2048;
const REQUESTS_MAX: u64 = 1_000_000_000;

/// Requests that go back to the places of earlier ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Number of requests.
    pub requests: u64,
    /// Range the requests fall in, MiB.
    pub span_mib: u64,
    /// Time between requests, microseconds.
    pub interval_us: u64,
    /// Share of writes, 0 to 1.
    pub write_share: f64,
    /// Sizes of writes in sectors of 512 bytes, each with its share; the last one takes what is left of 1.
    pub write_sectors: Vec<(u64, f64)>,
    /// Sizes of reads, likewise.
    pub read_sectors: Vec<(u64, f64)>,
    /// Share of writes to a new address.
    pub new_write_share: f64,
    /// Share of reads from a new address.
    pub new_read_share: f64,
    /// Share of the new addresses that follow on.
    pub follow_share: f64,
    /// Share of the new addresses that follow on or lie near an earlier request.
    pub follow_or_near_share: f64,
}

impl History {
    /// The same load with requests and span divided by `factor`, at least one of each.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let divide = |count: u64| ((count as f64 / factor).round() as u64).max(1);
        Self { requests: divide(self.requests), span_mib: divide(self.span_mib), ..self.clone() }
    }

    /// What makes the load impossible: field, value and what is accepted.
    pub(super) fn problem(&self) -> Option<String> {
        for (name, value) in [
            ("write_share", self.write_share),
            ("new_write_share", self.new_write_share),
            ("new_read_share", self.new_read_share),
            ("follow_share", self.follow_share),
            ("follow_or_near_share", self.follow_or_near_share),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Some(format!("{name} is {value}; accepted: 0 to 1"));
            }
        }
        if self.requests > REQUESTS_MAX {
            let requests = self.requests;
            return Some(format!("requests is {requests}; accepted: 0 to 10^9"));
        }
        if !(1..=1 << 40).contains(&self.span_mib) {
            let span = self.span_mib;
            return Some(format!("span_mib is {span}; accepted: 1 to 2^40"));
        }
        [("write_sectors", &self.write_sectors), ("read_sectors", &self.read_sectors)]
            .into_iter()
            .find_map(|(name, sizes)| impossible_sizes(name, sizes))
    }

    fn span_sectors(&self) -> u64 {
        (self.span_mib << 20) / SECTOR_BYTES
    }
}

/// What is wrong with a list of sizes and their shares.
fn impossible_sizes(name: &str, sizes: &[(u64, f64)]) -> Option<String> {
    if sizes.is_empty() {
        return Some(format!("{name} is empty; accepted: at least one [sectors, share]"));
    }
    let of_size = |&&(sectors, share): &&(u64, f64)| {
        !(1..=2048).contains(&sectors) || !(0.0..=1.0).contains(&share)
    };
    if let Some((sectors, share)) = sizes.iter().find(of_size) {
        return Some(format!(
            "{name} has [{sectors}, {share}]; accepted: 1 to 2048 sectors and a share of 0 to 1"
        ));
    }
    let sum: f64 = sizes.iter().map(|(_, share)| share).sum();
    (sum > 1.0 + 1e-9).then(|| format!("the shares of {name} sum to {sum:.3}; accepted: at most 1"))
}

/// The generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), which any language writes in five lines.
#[derive(Debug, Clone)]
struct SplitMix64(u64);

impl SplitMix64 {
    /// Uniform in `[0, 1)` with 53 bits.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `bound`.
    fn below(&mut self, bound: f64) -> u64 {
        (bound * self.unit()) as u64
    }
}

/// The requests of the load, in order of time.
#[derive(Debug, Clone)]
pub(super) struct HistoryRecords {
    recipe: History,
    random: SplitMix64,
    issued: u64,
    /// Start addresses in sectors, in order: of the writes, and of all requests.
    writes: Vec<u64>,
    all: Vec<u64>,
    /// Where the last new write and the last new read ended, sectors.
    write_end: u64,
    read_end: u64,
}

impl HistoryRecords {
    pub(super) fn new(recipe: &History, seed: u64) -> Self {
        Self {
            random: SplitMix64(seed),
            issued: 0,
            writes: Vec::new(),
            all: Vec::new(),
            write_end: recipe.span_sectors() / 2,
            read_end: 0,
            recipe: recipe.clone(),
        }
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.recipe.span_mib << 20
    }

    /// Start and length in sectors.
    fn place(&mut self, is_write: bool) -> (u64, u64) {
        let recipe = &self.recipe;
        let random = &mut self.random;
        let (history, end, sizes, new_share) = match is_write {
            true => {
                (&self.writes, &mut self.write_end, &recipe.write_sectors, recipe.new_write_share)
            }
            false => (&self.all, &mut self.read_end, &recipe.read_sectors, recipe.new_read_share),
        };
        let length = size(sizes, random.unit());
        let known = history.len() as f64;
        let last = recipe.span_sectors() - length;
        if !history.is_empty() && random.unit() >= new_share {
            let draw = random.unit();
            let back = (known * draw * draw) as usize;
            return (history[history.len() - 1 - back].min(last), length);
        }
        let kind = random.unit();
        let start = if kind < recipe.follow_share {
            *end
        } else if kind < recipe.follow_or_near_share && !history.is_empty() {
            let near = history[random.below(known) as usize] + random.below(NEAR_SECTORS);
            match near > NEAR_BACK_SECTORS {
                true => near - NEAR_BACK_SECTORS,
                false => near,
            }
        } else {
            random.below(recipe.span_sectors() as f64)
        };
        let start = start.min(last);
        *end = start + length;
        (start, length)
    }
}

/// The size whose share of the cumulative shares `draw` falls in.
fn size(sizes: &[(u64, f64)], draw: f64) -> u64 {
    let mut upto = 0.0;
    let mut length = 0;
    for &(sectors, share) in sizes {
        upto += share;
        length = sectors;
        if draw < upto {
            break;
        }
    }
    length
}

impl Iterator for HistoryRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        if self.issued == self.recipe.requests {
            return None;
        }
        let time_us = self.issued.saturating_mul(self.recipe.interval_us);
        self.issued += 1;
        let is_write = self.random.unit() < self.recipe.write_share;
        let (start, length) = self.place(is_write);
        self.all.push(start);
        let mut operation = TraceOperation::Read;
        if is_write {
            self.writes.push(start);
            operation = TraceOperation::Write;
        }
        Some(TraceRecord::new(
            time_us.saturating_mul(1000),
            operation,
            start * SECTOR_BYTES,
            length * SECTOR_BYTES,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the generator from seed 0, as its authors' C code prints them.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = SplitMix64(0);
        let top = |value: u64| (value >> 11) as f64 / (1u64 << 53) as f64;
        assert_eq!(random.unit(), top(0xe220_a839_7b1d_cdaf));
        assert_eq!(random.unit(), top(0x6e78_9e6a_a1b9_65f4));
    }

    #[test]
    fn the_last_size_takes_what_rounding_leaves() {
        let sizes = [(8, 0.25), (16, 0.25)];
        assert_eq!(size(&sizes, 0.2499), 8);
        assert_eq!(size(&sizes, 0.25), 16);
        assert_eq!(size(&sizes, 0.9), 16);
    }
}
