//! fio's latency logs.

use super::FitError;
use imbrex_traces::ReadWatch;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Requests up to this length cost a seek and a turn, not a transfer.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Requests from this length on fill the space of a persistent cache before its entries.
const LARGE_BYTES_MIN: u64 = 512 << 10;
/// Requests of a log at least, so that a statistic means something.
const ENTRIES_MIN: usize = 200;

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// From submission to answer, ns.
    pub latency_ns: u64,
    /// It was a write.
    pub is_write: bool,
    /// Length, bytes.
    pub bytes: u64,
    /// First byte.
    pub offset: u64,
}

/// A latency log.
#[derive(Clone, Debug)]
pub struct Log {
    /// For errors.
    pub path: String,
    /// In the order of the file, which is that of completion.
    pub entries: Vec<LogEntry>,
}

/// What a log tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The seek curve.
    RandomReads,
    /// Entries, bands, cleaning.
    SmallWrites,
    /// Space.
    LargeWrites,
}

impl Log {
    /// Reads a file. `watch` hears how much of it.
    ///
    /// # Errors
    /// When it cannot be read or a line is not one of a latency log with offsets.
    pub fn open(path: &str, watch: Option<&ReadWatch>) -> Result<Log, FitError> {
        let file = File::open(path);
        let file = file.map_err(|error| FitError::Read { path: path.to_string(), error })?;
        let file: Box<dyn Read> = match watch {
            Some(watch) => Box::new(watch.watched(file)),
            None => Box::new(file),
        };
        Log::read(path, BufReader::new(file))
    }

    /// Reads text that came from `path`.
    ///
    /// # Errors
    /// As [`open`](Log::open).
    pub fn parse(path: &str, text: &str) -> Result<Log, FitError> {
        Log::read(path, text.as_bytes())
    }

    fn read(path: &str, from: impl BufRead) -> Result<Log, FitError> {
        let mut entries = Vec::new();
        for (index, line) in from.lines().enumerate() {
            let line = line.map_err(|error| FitError::Read { path: path.to_string(), error })?;
            if line.trim().is_empty() {
                continue;
            }
            let entry = entry_of(&line).ok_or_else(|| FitError::Line {
                path: path.to_string(),
                line: index + 1,
                text: line.chars().take(80).collect(),
            })?;
            entries.extend(entry);
        }
        let log = Log { path: path.to_string(), entries };
        // Some versions of fio write the priority, 0 or 1, where the offset would be.
        if !log.entries.is_empty() && log.entries.iter().all(|entry| entry.offset < 2) {
            let reason = "no line has an offset; accepted: a log that fio wrote with log_offset=1";
            return Err(FitError::log(path, reason));
        }
        if log.entries.len() < ENTRIES_MIN {
            let reason = format!(
                "{} requests are too few; accepted: {ENTRIES_MIN} or more, each with its offset \
                 (log_offset=1, log_avg_msec=0)",
                log.entries.len()
            );
            return Err(FitError::log(path, reason));
        }
        Ok(log)
    }

    /// What the log tells.
    ///
    /// # Errors
    /// When it tells nothing that is wanted here.
    pub fn role(&self) -> Result<Role, FitError> {
        let writes = self.entries.iter().filter(|entry| entry.is_write).count();
        let mut lengths: Vec<u64> = self.entries.iter().map(|entry| entry.bytes).collect();
        lengths.sort_unstable();
        let length = lengths[lengths.len() / 2];
        let follows = self.entries.windows(2).filter(|w| w[1].offset == w[0].offset + w[0].bytes);
        let is_random = follows.count() * 2 < self.entries.len();
        match (writes, is_random) {
            (0, true) if length <= SMALL_BYTES_MAX => Ok(Role::RandomReads),
            (w, true) if w == self.entries.len() && length <= SMALL_BYTES_MAX => {
                Ok(Role::SmallWrites)
            }
            (w, true) if w == self.entries.len() && length >= LARGE_BYTES_MIN => {
                Ok(Role::LargeWrites)
            }
            _ => Err(FitError::log(
                &self.path,
                format!(
                    "{writes} of {} requests are writes, the median length is {length} bytes, the order \
                     is {}; accepted: random reads up to 64 KiB, random writes up to 64 KiB, random \
                     writes from 512 KiB on, at queue depth 1",
                    self.entries.len(),
                    if is_random { "random" } else { "sequential" }
                ),
            )),
        }
    }
}

/// One line: time, latency, direction, length, offset and, in newer versions, a priority in
/// hexadecimal. `Some(None)` for a trim.
fn entry_of(line: &str) -> Option<Option<LogEntry>> {
    let mut fields = line.split(',').map(str::trim);
    let _time_ms: u64 = fields.next()?.parse().ok()?;
    let latency_ns = fields.next()?.parse().ok()?;
    let direction: u8 = fields.next()?.parse().ok()?;
    let bytes: u64 = fields.next()?.parse().ok()?;
    // Without log_offset=1 the next field is the priority, which newer versions write 0x0000.
    let offset: u64 = fields.next()?.parse().ok()?;
    offset.checked_add(bytes)?;
    Some(match direction {
        0 | 1 => Some(LogEntry { latency_ns, is_write: direction == 1, bytes, offset }),
        2 => None,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(line: impl Fn(u64) -> String) -> String {
        (0..400).map(|i| line(i * 7919 % 400) + "\n").collect()
    }

    #[test]
    fn a_log_is_known_by_what_was_done() {
        let rows = [
            (0, 4096, Role::RandomReads),
            (1, 4096, Role::SmallWrites),
            (1, 1 << 20, Role::LargeWrites),
        ];
        for (direction, bytes, role) in rows {
            let text = lines(|i| format!("1, 5000000, {direction}, {bytes}, {}, 0x0000", i << 22));
            let log = Log::parse("x.log", &text).unwrap();
            assert_eq!(log.entries.len(), 400);
            assert_eq!(log.role().unwrap(), role);
        }
        let without_offsets = lines(|i| format!("1, 5000000, 1, 8192, {}", i % 2));
        let error = Log::parse("x.log", &without_offsets).unwrap_err().to_string();
        assert!(error.contains("no line has an offset"), "{error}");
        let beyond = lines(|i| format!("1, 5000000, 1, 8192, {}", u64::MAX - i));
        assert!(Log::parse("x.log", &beyond).is_err());
        let sequential: String =
            (0..400).map(|i| format!("1, 5, 1, 4096, {}\n", i * 4096)).collect();
        let error = Log::parse("x.log", &sequential).unwrap().role().unwrap_err();
        assert!(error.to_string().starts_with("x.log: 400 of 400 requests are writes"), "{error}");
    }

    #[test]
    fn a_log_without_offsets_is_refused_with_its_line() {
        let text = lines(|_| "1, 5000000, 0, 4096, 0x0000".to_string());
        let error = Log::parse("x.log", &text).unwrap_err().to_string();
        assert!(error.starts_with("x.log:1: `1, 5000000, 0, 4096, 0x0000` is not"), "{error}");
        assert!(error.ends_with("log_offset=1"), "{error}");
        let error = Log::parse("x.log", "1, 5, 0, 4096, 8192\n").unwrap_err().to_string();
        assert!(error.contains("1 requests are too few"), "{error}");
    }
}
