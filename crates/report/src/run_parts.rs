//! The parts of a run: groups of keys that stand side by side in the document.

use super::by_cause::ByCause;
use super::no_cleaning::NoCleaning;
use super::report::{IoTime, ReplayMode, WriteAmplification};
use super::response_times::ResponseTimes;
use serde::{Deserialize, Deserializer, Serialize};

/// Reads a key that older reports leave null where several nodes could be meant.
fn or_zero<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// What the host asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests replayed or served; a skipped read is not one.
    pub requests: u64,
    /// Reads left out of the replay because the cache mode is write-only.
    pub skipped_reads: u64,
    /// Blocks of 4 KiB the host read.
    pub read_blocks: u64,
    /// Blocks of 4 KiB the host wrote.
    pub write_blocks: u64,
}

/// What the host found in the caches that are below no other one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hits {
    /// Read blocks found there.
    #[serde(deserialize_with = "or_zero")]
    pub read_hits: u64,
    /// Written blocks found there.
    #[serde(deserialize_with = "or_zero")]
    pub write_hits: u64,
    /// `read_hits / read_blocks`; null without reads.
    pub read_hit_ratio: Option<f64>,
    /// `write_hits / write_blocks`; null without writes.
    pub write_hit_ratio: Option<f64>,
}

/// What the translations rewrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewrites {
    /// Bytes read from home bands to rewrite them.
    #[serde(deserialize_with = "or_zero")]
    pub band_bytes_read: u64,
    /// Bytes written to home bands; scratch copies are counted apart.
    #[serde(deserialize_with = "or_zero")]
    pub band_bytes_written: u64,
    /// Band rewrites completed.
    #[serde(deserialize_with = "or_zero")]
    pub bands_rewritten: u64,
    /// The least number of band rewrites that any policy needs; absent unless it was asked for and
    /// where no bound holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands_rewritten_bound: Option<u64>,
    /// Band bytes written, over three denominators.
    pub write_amplification: WriteAmplification,
}

impl Rewrites {
    /// Band rewrites over the least number that any policy needs; none where that is 0 or not known.
    pub fn over_bound(&self) -> Option<f64> {
        super::ratio(self.bands_rewritten, self.bands_rewritten_bound?)
    }
}

/// What the requests cost the disks and the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Device bytes written by each cause over the bytes the host wrote, all disks together.
    pub write_amplification_by_cause: ByCause<Option<f64>>,
    /// Time the disks were busy.
    pub io_time_s: IoTime,
    /// Time the heads of all disks spent seeking.
    pub seek_time_s: f64,
    /// Response time of all host requests.
    pub response_ms: ResponseTimes,
    /// Response time of host reads.
    pub read_response_ms: ResponseTimes,
    /// Response time of host writes.
    pub write_response_ms: ResponseTimes,
    /// Time from when a request of a stream was due to its answer; absent without streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_due_ms: Option<ResponseTimes>,
    /// Instant of the last host completion, from the first arrival.
    pub finish_s: f64,
    /// Instant of the last arrival, from the first; absent unless requests were issued at their time stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_arrival_s: Option<f64>,
    /// The last answer came soon enough after the last arrival: within a hundredth of the recording, which
    /// counts as 1 s at least and as 60 s at most. Absent unless requests were issued at their time stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_up: Option<bool>,
}

/// How the workload was given to the stack, and what shares were shares of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// How requests were issued.
    pub replay: ReplayMode,
    /// Which blocks a request has, `size`; absent where it has every block it covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<String>,
    /// Bytes of the bands touched by any request (read-write) or by writes (write-only); null when
    /// nothing asked for it, as in serving.
    pub footprint_bytes: Option<u64>,
    /// Bytes of the bands touched by writes; absent unless the log is a share of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_footprint_bytes: Option<u64>,
    /// What the stack was replayed before anything was measured; absent where all was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpUse>,
}

/// A first part of a workload that is in no figure. It gives the stack something to hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmUpUse {
    /// Requests of the workload in it, skipped reads included.
    pub requests: u64,
    /// Seconds of the replay from its start until nothing was under way any more. All times of the run count from
    /// there.
    pub duration_s: f64,
}

/// The hardware that a stack is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// Drives that rotate.
    pub disks: u64,
    /// Bytes of SSD in which layers buffer or cache data. An SSD that is no cache counts whole; journals do not count.
    pub flash_bytes: u64,
    /// Bytes of memory in which layers buffer or cache data. That of the drives themselves and tables do not count.
    pub memory_bytes: u64,
    /// Capacity of the drives that rotate, together, in bytes.
    pub raw_bytes: u64,
}

/// The caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheUse {
    /// Capacity of the caches in blocks, shares resolved; one without a bound has that of its device.
    /// Null without a cache.
    pub capacity_blocks: Option<u64>,
    /// Blocks still dirty in the caches at the end; nothing is drained.
    #[serde(deserialize_with = "or_zero")]
    pub dirty_blocks_left: u64,
    /// Evictions for which PORE had to choose a new open region before its period was over, because
    /// the one in force held no block that might leave. The victim is inside the new region.
    #[serde(deserialize_with = "or_zero")]
    pub forced_evictions: u64,
    /// The policies of the caches that the program brought with it which simulated, by their names; absent where there
    /// is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought_policies: Vec<String>,
}

/// The bands and the logs of the translations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogUse {
    /// Bands of the translations; null for a stack without bands.
    pub bands: Option<u64>,
    /// Seed of the band layout; null when the layout is not random, there are no bands, or several
    /// layouts.
    pub band_seed: Option<u64>,
    /// Capacity of the persistent caches; null without one.
    pub persistent_cache_bytes: Option<u64>,
    /// Bytes of host data appended to the persistent cache.
    #[serde(deserialize_with = "or_zero")]
    pub persistent_cache_bytes_appended: u64,
    /// Bytes written over entries of the persistent cache in place. A report has them among the
    /// counters of the node.
    #[serde(skip)]
    pub persistent_cache_bytes_updated: u64,
    /// Bytes of live blocks merged out of the persistent cache by band rewrites.
    #[serde(deserialize_with = "or_zero")]
    pub persistent_cache_bytes_merged: u64,
    /// The largest share of the log that was in use at once (slots or map entries, whichever was nearer its limit);
    /// absent without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_fill_max: Option<f64>,
    /// Time the persistent cache had no room for the next write.
    #[serde(deserialize_with = "or_zero")]
    pub persistent_cache_full_s: f64,
    /// Bytes written to scratch bands before the copy home.
    #[serde(deserialize_with = "or_zero")]
    pub scratch_bytes_written: u64,
    /// Time spent in band rewrites, from the first read to the release of the entries.
    #[serde(deserialize_with = "or_zero")]
    pub band_rewrite_time_s: f64,
    /// What to know of a run in which nothing was cleaned although it should have been sooner or
    /// later; absent when bands were rewritten, without bands and without writes to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_cleaning: Option<NoCleaning>,
}
