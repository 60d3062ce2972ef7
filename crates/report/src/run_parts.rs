//! The parts of a run: groups of keys that stand side by side in the document.

use super::by_cause::ByCause;
use super::no_cleaning::NoCleaning;
use super::report::{IoTime, ReplayMode, ResponseTimes, WriteAmplification};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::ops::{Deref, DerefMut};

/// Keys about one node that do not name it. In a stack with several nodes of its kind, none of
/// which has the name that belongs to the keys, nothing can be said: all of them are null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfOne<T> {
    values: T,
    is_one_of_several: bool,
}

/// What is known of a node.
pub trait OfNode: Default + Serialize + DeserializeOwned {
    /// A key that is null only where it is not known which node is meant.
    const COUNTED: &'static str;
}

impl<T: Default> OfOne<T> {
    /// What stands where several nodes could be meant.
    pub fn several() -> OfOne<T> {
        OfOne { values: T::default(), is_one_of_several: true }
    }
}

impl<T> Deref for OfOne<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.values
    }
}

impl<T> DerefMut for OfOne<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.values
    }
}

impl<T: OfNode> Serialize for OfOne<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !self.is_one_of_several {
            return self.values.serialize(to);
        }
        let mut values = serde_json::to_value(&self.values).map_err(S::Error::custom)?;
        for value in values.as_object_mut().into_iter().flat_map(|it| it.values_mut()) {
            // The values inside of an object are null already.
            if !value.is_object() {
                *value = Value::Null;
            }
        }
        values.serialize(to)
    }
}

impl<'de, T: OfNode> Deserialize<'de> for OfOne<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OfOne<T>, D::Error> {
        let keys = Value::deserialize(from)?;
        if keys[T::COUNTED].is_null() {
            return Ok(OfOne::several());
        }
        Ok(OfOne {
            values: serde_json::from_value(keys).map_err(D::Error::custom)?,
            is_one_of_several: false,
        })
    }
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

/// What the host found in the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hits {
    /// Read blocks found in the cache.
    pub read_hits: u64,
    /// Written blocks found in the cache.
    pub write_hits: u64,
    /// `read_hits / read_blocks`; null without reads.
    pub read_hit_ratio: Option<f64>,
    /// `write_hits / write_blocks`; null without writes.
    pub write_hit_ratio: Option<f64>,
}

impl OfNode for Hits {
    const COUNTED: &'static str = "read_hits";
}

/// What the translation rewrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewrites {
    /// Bytes read from home bands to rewrite them.
    pub band_bytes_read: u64,
    /// Bytes written to home bands; scratch copies are counted apart.
    pub band_bytes_written: u64,
    /// Band rewrites completed.
    pub bands_rewritten: u64,
    /// The least number of band rewrites that any policy needs; absent unless it was asked for and
    /// where no bound holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands_rewritten_bound: Option<u64>,
    /// Band bytes written, over three denominators.
    pub write_amplification: WriteAmplification,
}

impl OfNode for Rewrites {
    const COUNTED: &'static str = "band_bytes_read";
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
    /// Instant of the last host completion, from the first arrival.
    pub finish_s: f64,
}

/// How the workload was given to the stack, and what shares were shares of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// How requests were issued.
    pub replay: ReplayMode,
    /// Bytes of the bands touched by any request (read-write) or by writes (write-only); null when
    /// nothing asked for it, as in serving.
    pub footprint_bytes: Option<u64>,
    /// Bytes of the bands touched by writes; absent unless the log is a share of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_footprint_bytes: Option<u64>,
}

/// The cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheUse {
    /// Capacity of the cache in blocks, shares resolved; null without a cache or without a bound.
    pub capacity_blocks: Option<u64>,
    /// Blocks still dirty in the cache at the end; nothing is drained.
    pub dirty_blocks_left: u64,
    /// Evictions for which PORE had to choose a new open region before its period was over, because
    /// the one in force held no block that might leave. The victim is inside the new region.
    pub forced_evictions: u64,
}

impl OfNode for CacheUse {
    const COUNTED: &'static str = "dirty_blocks_left";
}

/// The bands and the log of the translation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogUse {
    /// Bands of the translation layer; null for a stack without bands.
    pub bands: Option<u64>,
    /// Seed of the band layout; null when the layout is not random or there are no bands.
    pub band_seed: Option<u64>,
    /// Capacity of the persistent cache; null without one.
    pub persistent_cache_bytes: Option<u64>,
    /// Bytes of host data appended to the persistent cache.
    pub persistent_cache_bytes_appended: u64,
    /// Bytes written over entries of the persistent cache in place. A report has them among the
    /// counters of the node.
    #[serde(skip)]
    pub persistent_cache_bytes_updated: u64,
    /// Bytes of live blocks merged out of the persistent cache by band rewrites.
    pub persistent_cache_bytes_merged: u64,
    /// Time the persistent cache had no room for the next write.
    pub persistent_cache_full_s: f64,
    /// Bytes written to scratch bands before the copy home.
    pub scratch_bytes_written: u64,
    /// Time spent in band rewrites, from the first read to the release of the entries.
    pub band_rewrite_time_s: f64,
    /// What to know of a run in which nothing was cleaned although it should have been sooner or
    /// later; absent when bands were rewritten, without bands and without writes to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_cleaning: Option<NoCleaning>,
}

impl OfNode for LogUse {
    const COUNTED: &'static str = "persistent_cache_bytes_appended";
}
