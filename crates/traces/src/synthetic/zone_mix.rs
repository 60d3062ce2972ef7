//! The loads of Idler (IEEE TC 2020): writes out of sequence over a number of zones, writes in sequence, and reads.
//!
//! A write out of sequence falls anywhere in any of the zones. A write in sequence goes on where the last one ended, from
//! the start of the device to the end of its conventional zones and again: there it goes home, as at a write pointer. A
//! read falls anywhere in the zones. Each share is kept exactly: whichever lags most comes next.

use serde::{Deserialize, Serialize};

use super::sampling::Random;
use crate::{TraceOperation, TraceRecord};

const BLOCK_BYTES: u64 = 4096;
const REQUESTS_MAX: u64 = 1_000_000_000;

/// Requests to the zones of a host-aware drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneMix {
    /// Where the counts are printed.
    pub source: String,
    /// Number of requests.
    pub requests: u64,
    /// Share of the requests that write out of sequence.
    pub non_sequential_percent: f64,
    /// Share of those that write in sequence.
    pub sequential_percent: f64,
    /// Mean size of a write. A write has a whole number of blocks of 4 KiB: one of the two next to the mean.
    pub write_bytes: f64,
    /// Mean size of a read, likewise.
    pub read_bytes: f64,
    /// Zones that are written out of sequence and read.
    pub zones: u64,
    /// Size of a zone, MiB.
    pub zone_mib: u64,
    /// How much of each zone, from its start, requests fall in.
    pub used_percent: f64,
    /// The first of them.
    pub first_zone: u64,
    /// Zones at the start of the device that take the writes in sequence.
    pub conventional_zones: u64,
    /// Requests go from zone to zone; without it each falls in any.
    #[serde(default)]
    pub in_turn: bool,
    /// Shortest and longest time between two requests, microseconds; uniform between.
    pub interval_us: [u64; 2],
}

impl ZoneMix {
    /// The same load with requests and zones divided by `factor`, at least one of each.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let divide = |count: u64| ((count as f64 / factor).round() as u64).max(1);
        Self { requests: divide(self.requests), zones: divide(self.zones), ..self.clone() }
    }

    /// What makes the load impossible: field, value and what is accepted.
    pub(super) fn problem(&self) -> Option<String> {
        let shares = [
            ("non_sequential_percent", self.non_sequential_percent),
            ("sequential_percent", self.sequential_percent),
        ];
        if !(0.0..=100.0).contains(&self.used_percent) {
            return Some(format!("used_percent is {}; accepted: 0 to 100", self.used_percent));
        }
        for (name, share) in shares {
            if !(0.0..=100.0).contains(&share) {
                return Some(format!("{name} is {share}; accepted: 0 to 100"));
            }
        }
        let written: f64 = shares.iter().map(|(_, share)| share).sum();
        if written > 100.0 {
            return Some(format!(
                "non_sequential_percent and sequential_percent sum to {written}; accepted: up to 100"
            ));
        }
        let counts = [
            ("requests", self.requests, 0, REQUESTS_MAX),
            ("zones", self.zones, 1, 1 << 20),
            ("zone_mib", self.zone_mib, 1, 1 << 20),
            ("first_zone", self.first_zone, 0, 1 << 20),
            ("conventional_zones", self.conventional_zones, 1, 1 << 20),
        ];
        for (name, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                return Some(format!("{name} is {value}; accepted: {least} to {most}"));
            }
        }
        let half = self.used_bytes() as f64 / 2.0;
        for (name, bytes) in [("write_bytes", self.write_bytes), ("read_bytes", self.read_bytes)] {
            if !(BLOCK_BYTES as f64..=half).contains(&bytes) {
                return Some(format!(
                    "{name} is {bytes}; accepted: 4096 to half of the used part of a zone, {half}"
                ));
            }
        }
        let [least, most] = self.interval_us;
        (least > most || most > 1 << 40).then(|| {
            format!("interval_us is [{least}, {most}]; accepted: the shortest first, up to 2^40")
        })
    }

    fn zone_bytes(&self) -> u64 {
        self.zone_mib << 20
    }

    /// How much of a zone is used, in whole blocks.
    fn used_bytes(&self) -> u64 {
        let bytes = (self.zone_bytes() as f64 * self.used_percent / 100.0) as u64;
        bytes / BLOCK_BYTES * BLOCK_BYTES
    }

    fn first_byte(&self) -> u64 {
        self.first_zone * self.zone_bytes()
    }

    /// Size of the smallest device the requests fit on, bytes.
    pub(super) fn device_bytes(&self) -> u64 {
        (self.first_zone + self.zones).max(self.conventional_zones) * self.zone_bytes()
    }
}

/// The requests of a load.
#[derive(Debug, Clone)]
pub(super) struct ZoneMixRecords {
    load: ZoneMix,
    random: Random,
    issued: u64,
    now_us: u64,
    /// How far each kind lags: its share of the requests so far, less what it had. Out of sequence, in sequence, reads.
    lags: [f64; 3],
    /// Where the next write in sequence begins.
    next_in_sequence: u64,
}

impl ZoneMixRecords {
    pub(super) fn new(load: &ZoneMix, seed: u64) -> Self {
        let random = Random::new(seed);
        let load = load.clone();
        Self { load, random, issued: 0, now_us: 0, lags: [0.0; 3], next_in_sequence: 0 }
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.load.device_bytes()
    }

    /// A size with the mean.
    fn size(&mut self, mean_bytes: f64) -> u64 {
        let blocks = mean_bytes / BLOCK_BYTES as f64;
        let whole = blocks.floor();
        (whole as u64 + u64::from(self.random.chance(blocks - whole))) * BLOCK_BYTES
    }

    /// A place in the zones for so many bytes, in one zone.
    fn place(&mut self, bytes: u64) -> u64 {
        let load = &self.load;
        let (first, zone_bytes, zones) = (load.first_byte(), load.zone_bytes(), load.zones);
        let zone = match load.in_turn {
            true => (self.issued - 1) % zones,
            false => self.random.below(zones),
        };
        let block = self.random.below((load.used_bytes() - bytes) / BLOCK_BYTES + 1);
        first + zone * zone_bytes + block * BLOCK_BYTES
    }

    /// The kind that lags most.
    fn next_kind(&mut self) -> usize {
        let ZoneMix { non_sequential_percent, sequential_percent, .. } = self.load;
        let shares = [
            non_sequential_percent,
            sequential_percent,
            100.0 - non_sequential_percent - sequential_percent,
        ];
        for (lag, share) in self.lags.iter_mut().zip(shares) {
            *lag += share / 100.0;
        }
        let kind = (1..3).fold(0, |most, kind| match self.lags[kind] > self.lags[most] {
            true => kind,
            false => most,
        });
        self.lags[kind] -= 1.0;
        kind
    }
}

impl Iterator for ZoneMixRecords {
    type Item = TraceRecord;

    fn next(&mut self) -> Option<TraceRecord> {
        if self.issued == self.load.requests {
            return None;
        }
        if self.issued > 0 {
            let [least, most] = self.load.interval_us;
            self.now_us += least + self.random.below(most - least + 1);
        }
        self.issued += 1;
        let kind = self.next_kind();
        let mean_bytes = match kind {
            2 => self.load.read_bytes,
            _ => self.load.write_bytes,
        };
        let bytes = self.size(mean_bytes);
        let (operation, offset) = match kind {
            0 => (TraceOperation::Write, self.place(bytes)),
            1 => {
                let end = self.load.conventional_zones * self.load.zone_bytes();
                if self.next_in_sequence + bytes > end {
                    self.next_in_sequence = 0;
                }
                let offset = self.next_in_sequence;
                self.next_in_sequence += bytes;
                (TraceOperation::Write, offset)
            }
            _ => (TraceOperation::Read, self.place(bytes)),
        };
        Some(TraceRecord::new(self.now_us.saturating_mul(1000), operation, offset, bytes))
    }
}
