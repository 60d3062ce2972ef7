//! `imbrex drive fit`: the parameters of a drive-managed disk from fio's latency logs of it.
//!
//! Each log tells something else, and which is which is recognised: random small reads the seek curve
//! and the length of a revolution, random small writes until long after the persistent cache is full
//! the entry limit, the bands and the time of a clean, random large writes the size of the persistent
//! cache. The methods are those of the published reverse engineering of such disks (Skylight, FAST
//! 2015): watch when stalls begin and how often they come. `docs/fit.md` has the jobs to run.

mod cliff;
mod entries;
mod log;
mod seek;
mod toml;

pub use cliff::Cliff;
pub use entries::SmallWrites;
pub use log::{Log, LogEntry, Role};
pub use seek::SeekFit;

use serde::Serialize;

/// Why nothing can be fitted.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// A file cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// A line is not one of a latency log.
    #[error(
        "{path}:{line}: `{text}` is not a line of a latency log; accepted: time, latency, direction, \
         length, offset, as fio writes them with write_lat_log and log_offset=1"
    )]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A log says nothing that can be used.
    #[error("{path}: {reason}")]
    Log {
        /// The file.
        path: String,
        /// Why, and what would do.
        reason: String,
    },
}

impl FitError {
    pub(crate) fn log(path: &str, reason: impl Into<String>) -> FitError {
        FitError::Log { path: path.to_string(), reason: reason.into() }
    }
}

/// What the logs say about a drive.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Fitted {
    /// From random small reads.
    pub seek: Option<SeekFit>,
    /// From random small writes.
    pub small_writes: Option<SmallWrites>,
    /// Size of the persistent cache, bytes, from random large writes.
    pub persistent_cache_bytes: Option<u64>,
}

/// Fits what the logs allow. `capacity_bytes` is the size of the drive; without it the highest offset
/// of a random read counts as its end.
///
/// # Errors
/// When a log has no known role, two have the same, or one is too short.
pub fn fit(logs: &[Log], capacity_bytes: Option<u64>) -> Result<Fitted, FitError> {
    let mut fitted = Fitted::default();
    let taken = |path: &str, what: &str| {
        FitError::log(path, format!("a second log of {what}; accepted: one of each kind"))
    };
    for log in logs {
        match log.role()? {
            Role::RandomReads => {
                if fitted.seek.is_some() {
                    return Err(taken(&log.path, "random reads"));
                }
                fitted.seek = Some(SeekFit::of(log, capacity_bytes)?);
            }
            Role::SmallWrites => {
                if fitted.small_writes.is_some() {
                    return Err(taken(&log.path, "random small writes"));
                }
                fitted.small_writes = Some(SmallWrites::of(log)?);
            }
            Role::LargeWrites => {
                if fitted.persistent_cache_bytes.is_some() {
                    return Err(taken(&log.path, "random large writes"));
                }
                let cliff = Cliff::find(log)?;
                let before = &log.entries[..cliff.at];
                fitted.persistent_cache_bytes = Some(before.iter().map(|e| e.bytes).sum());
            }
        }
    }
    fitted.forget_unproven_entries();
    Ok(fitted)
}

impl Fitted {
    /// Small writes that filled the persistent cache with bytes met its size, not a limit of entries.
    fn forget_unproven_entries(&mut self) {
        if let (Some(cache_bytes), Some(small)) =
            (self.persistent_cache_bytes, &mut self.small_writes)
        {
            small.entries_are_limit = small.appended_bytes < cache_bytes / 10 * 9;
        }
    }
}
