//! Random small writes over the cliff: how many entries fit, how large bands are, how long one is
//! cleaned.

use super::FitError;
use super::cliff::Cliff;
use super::log::{Log, LogEntry};
use serde::Serialize;
use std::collections::{HashMap, HashSet, VecDeque};

/// Bands between which the size is looked for.
const BAND_BYTES: [u64; 2] = [1 << 20, 2 << 30];
/// Cleans at least, so that their number says something about bands.
const CLEANS_MIN: usize = 50;

/// What random small writes tell.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SmallWrites {
    /// Different blocks written when the drive began to clean: its entries, if they are the limit.
    pub entries: u64,
    /// Whether they are: the persistent cache was not full of bytes.
    pub entries_are_limit: bool,
    /// Bytes written when the drive began to clean.
    pub appended_bytes: u64,
    /// Mean size of a band, bytes.
    pub band_bytes: u64,
    /// Median time of a write that waited for a clean, beyond that of others, seconds.
    pub clean_s: f64,
    /// Cleans seen.
    pub cleans: usize,
}

impl SmallWrites {
    /// Fits a log of random small writes at queue depth 1 from an empty persistent cache.
    ///
    /// # Errors
    /// When the drive never had to clean, or too rarely.
    pub fn of(log: &Log) -> Result<SmallWrites, FitError> {
        let cliff = Cliff::find(log)?;
        let cleans = cliff.stalls.len();
        if cleans < CLEANS_MIN {
            return Err(FitError::log(
                &log.path,
                format!(
                    "{cleans} cleans are too few to tell bands; accepted: {CLEANS_MIN} or more"
                ),
            ));
        }
        let before = &log.entries[..cliff.at];
        let different: HashSet<u64> = before.iter().map(|entry| entry.offset).collect();
        let entries = different.len() as u64;
        let usual_ns = median_ns(before.iter());
        let stalled_ns = median_ns(cliff.stalls.iter().map(|index| &log.entries[*index]));
        Ok(SmallWrites {
            entries,
            entries_are_limit: true,
            appended_bytes: before.iter().map(|entry| entry.bytes).sum(),
            band_bytes: band_bytes(log, entries, cleans)?,
            clean_s: stalled_ns.saturating_sub(usual_ns) as f64 / 1e9,
            cleans,
        })
    }
}

fn median_ns<'a>(entries: impl Iterator<Item = &'a LogEntry>) -> u64 {
    let mut sorted: Vec<u64> = entries.map(|entry| entry.latency_ns).collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// The size of bands with which a drive that cleans the band of its oldest entry would have cleaned as
/// often as this one did: larger bands give more entries back at a time.
fn band_bytes(log: &Log, entries: u64, cleans: usize) -> Result<u64, FitError> {
    let writes = &log.entries;
    let [mut low, mut high] = BAND_BYTES;
    let cleans_with = |bytes: u64| cleaning_writes(writes, entries, bytes).len();
    if cleans_with(low) < cleans || cleans_with(high) > cleans {
        let reason = format!(
            "{cleans} cleans fit no size of bands from {low} to {high} bytes; accepted: random writes \
             from an empty persistent cache"
        );
        return Err(FitError::log(&log.path, reason));
    }
    while high - low > low / 200 {
        // The middle of the ratio, as the number of cleans falls with the ratio.
        let middle = ((low as f64 * high as f64).sqrt()) as u64;
        match cleans_with(middle) > cleans {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high)
}

/// The writes at which a drive with `entries` entries and bands of `band_bytes` cleans.
fn cleaning_writes(writes: &[LogEntry], entries: u64, band_bytes: u64) -> Vec<usize> {
    // When each block was written last, and by band which blocks have an entry.
    let mut written: HashMap<u64, usize> = HashMap::new();
    let mut of_band: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut oldest: VecDeque<(u64, usize)> = VecDeque::new();
    let mut cleaning = Vec::new();
    for (index, write) in writes.iter().enumerate() {
        let offset = write.offset;
        if written.len() as u64 >= entries && !written.contains_key(&offset) {
            while let Some((block, at)) = oldest.pop_front() {
                if written.get(&block) == Some(&at) {
                    let blocks = of_band.remove(&(block / band_bytes)).unwrap_or_default();
                    for block in blocks {
                        written.remove(&block);
                    }
                    cleaning.push(index);
                    break;
                }
            }
        }
        if written.insert(offset, index).is_none() {
            of_band.entry(offset / band_bytes).or_default().push(offset);
        }
        oldest.push_back((offset, index));
    }
    cleaning
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::rng::Rng;

    /// A drive as the fit believes it to be, with bands of other sizes than it tries.
    #[test]
    fn the_parameters_of_a_drive_come_back() {
        for (entries, band_bytes, seed) in [(3_000u64, 20_500_000u64, 1), (5_000, 31_000_000, 2)] {
            let mut rng = Rng::new(seed, 0);
            let places = 2_000_000_000 / 4096;
            let mut writes: Vec<LogEntry> = (0..12_000)
                .map(|_| LogEntry {
                    latency_ns: 4_000_000,
                    is_write: true,
                    bytes: 4096,
                    offset: rng.below(places) * 4096,
                })
                .collect();
            for index in cleaning_writes(&writes, entries, band_bytes) {
                writes[index].latency_ns = 900_000_000;
            }
            let log = Log { path: "x.log".to_string(), entries: writes };
            let fitted = SmallWrites::of(&log).unwrap();
            let error = |found: f64, truth: f64| (found / truth - 1.0).abs();
            assert!(error(fitted.entries as f64, entries as f64) < 0.01, "{fitted:?}");
            assert!(error(fitted.band_bytes as f64, band_bytes as f64) < 0.1, "{fitted:?}");
            assert!(error(fitted.clean_s, 0.896) < 0.01, "{fitted:?}");
        }
    }
}
