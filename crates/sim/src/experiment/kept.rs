//! The records of a workload in memory: decoded once, for everybody who reads them again.

use crate::record_source::RecordSource;
use imbrex_traces::{SourceKind, TraceError, TraceOperation, TraceReader, TraceRecord};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory that the records of one workload may take. A longer one is decoded whenever it is read.
pub const KEPT_BYTES_MAX: usize = 256 << 20;

/// A record in 24 bytes. The response times of a trace that has any stand beside.
#[derive(Clone, Copy)]
struct Packed {
    time_ns: u64,
    offset_bytes: u64,
    length_bytes: u32,
    device: u16,
    operation: TraceOperation,
    fua: bool,
}

/// What a report says of a trace beside its records.
#[derive(Clone, Debug)]
pub struct Told {
    /// How the workload came to be.
    pub kind: SourceKind,
    /// What the trace was taken for, and why.
    pub detected: String,
    /// Whether the format has times.
    pub has_times: bool,
    /// Lines skipped so far, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Records so far that were earlier than the one before.
    pub time_inversions: u64,
    /// SHA-256 of the file as stored, where all of it was read for the records.
    pub sha256: Option<String>,
}

impl Told {
    fn of(records: &TraceReader) -> Told {
        let skipped = records.skipped().iter();
        Told {
            kind: records.source().kind,
            detected: records.detected().to_string(),
            has_times: records.has_times(),
            skipped: skipped.map(|(reason, count)| (reason.to_string(), count)).collect(),
            time_inversions: records.counts().time_inversions,
            sha256: records.sha256(),
        }
    }
}

/// The records of a workload, as far as its limit.
pub(crate) struct Decoded {
    /// The workload in words.
    key: String,
    records: Vec<Packed>,
    /// One for each record; none where no record has any.
    responses: Vec<Option<u64>>,
    told: Told,
}

impl Decoded {
    /// All records; none when they are too many or too large, when the trace is damaged, and when `stop` is set.
    fn new(
        key: String,
        mut reader: TraceReader,
        limit: usize,
        bytes_max: usize,
        stop: &AtomicBool,
    ) -> Option<Decoded> {
        let (mut records, mut responses) = (Vec::new(), Vec::new());
        let mut batch = Vec::new();
        while records.len() < limit && reader.next_batch(&mut batch).ok()? {
            for record in batch.iter().take(limit - records.len()) {
                if record.response_ns.is_some() && responses.is_empty() {
                    responses.resize(records.len(), None);
                }
                if record.response_ns.is_some() || !responses.is_empty() {
                    responses.push(record.response_ns);
                }
                records.push(Packed {
                    time_ns: record.time_ns,
                    offset_bytes: record.offset_bytes,
                    length_bytes: u32::try_from(record.length_bytes).ok()?,
                    device: record.device,
                    operation: record.operation,
                    fua: record.fua,
                });
            }
            let bytes = size_of_val(&records[..]) + size_of_val(&responses[..]);
            if bytes > bytes_max || stop.load(Ordering::Relaxed) {
                return None;
            }
        }
        records.shrink_to_fit();
        Some(Decoded { key, records, responses, told: Told::of(&reader) })
    }

    /// Puts a record into `record`. False behind the last.
    #[inline(always)]
    fn get_into(&self, index: usize, record: &mut TraceRecord) -> bool {
        let Some(packed) = self.records.get(index) else { return false };
        *record = TraceRecord {
            time_ns: packed.time_ns,
            offset_bytes: packed.offset_bytes,
            length_bytes: u64::from(packed.length_bytes),
            response_ns: self.responses.get(index).copied().flatten(),
            device: packed.device,
            operation: packed.operation,
            fua: packed.fua,
        };
        true
    }
}

#[derive(Default)]
enum State {
    #[default]
    Unknown,
    Decoded(Arc<Decoded>),
    /// They are not kept.
    Refused,
}

#[derive(Default)]
struct Shared {
    /// Passes over the records that somebody has announced.
    wanted: AtomicUsize,
    state: Mutex<State>,
}

/// The records of a workload while somebody will read them again. Clones of a workload share them.
#[derive(Clone, Default)]
pub struct Kept(Arc<Shared>);

impl fmt::Debug for Kept {
    // What a workload is does not depend on whether somebody has read it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

/// Passes over a workload that were announced. The records are dropped with the last.
pub struct Wanted {
    kept: Kept,
    passes: usize,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        let before = self.kept.0.wanted.fetch_sub(self.passes, Ordering::Relaxed);
        if before == self.passes {
            *self.kept.state() = State::Unknown;
        }
    }
}

impl Kept {
    /// Announces so many passes. Records are kept where there is more than one.
    pub fn want(&self, passes: usize) -> Wanted {
        self.0.wanted.fetch_add(passes, Ordering::Relaxed);
        Wanted { kept: self.clone(), passes }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records from the start. They come from memory where they are kept or will be read again; `open`
    /// opens the trace.
    pub(super) fn records(
        &self,
        key: String,
        limit: usize,
        open: impl Fn() -> Result<TraceReader, TraceError>,
        stop: &AtomicBool,
    ) -> Result<Records, TraceError> {
        let is_wanted = self.0.wanted.load(Ordering::Relaxed) > 1;
        // Others who need the records wait here until they are decoded.
        let mut state = self.state();
        if matches!(*state, State::Unknown) && is_wanted {
            *state = match Decoded::new(key.clone(), open()?, limit, KEPT_BYTES_MAX, stop) {
                Some(decoded) => State::Decoded(Arc::new(decoded)),
                None => State::Refused,
            };
        }
        match &*state {
            State::Decoded(decoded) if decoded.key == key => {
                Ok(Records::Kept { decoded: Arc::clone(decoded), next: 0 })
            }
            _ => {
                drop(state);
                Ok(Records::Read(Box::new(open()?)))
            }
        }
    }
}

/// The records of a workload, from memory or as they are read.
pub(crate) enum Records {
    /// As they are read.
    Read(Box<TraceReader>),
    /// From memory.
    Kept {
        /// All of them.
        decoded: Arc<Decoded>,
        /// The next one.
        next: usize,
    },
}

impl Records {
    /// What a report says of them, as far as they were read.
    pub fn told(&self) -> Told {
        match self {
            // The file may go on behind the last record that was asked for.
            Records::Read(records) => Told { sha256: None, ..Told::of(records) },
            Records::Kept { decoded, .. } => decoded.told.clone(),
        }
    }
}

impl RecordSource for Records {
    #[inline(always)]
    fn next_into(&mut self, record: &mut TraceRecord) -> Result<bool, TraceError> {
        match self {
            Records::Kept { decoded, next } => {
                let is_there = decoded.get_into(*next, record);
                *next += usize::from(is_there);
                Ok(is_there)
            }
            Records::Read(records) => read_into(records, record),
        }
    }
}

// Not inlined: loops over kept records would carry the code of the reader with them.
#[inline(never)]
fn read_into(reader: &mut TraceReader, record: &mut TraceRecord) -> Result<bool, TraceError> {
    reader.next_into(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::NEVER;
    use imbrex_traces::ReadOptions;
    use std::cell::Cell;

    /// Five requests of two devices with response times, and one of a device that is left out.
    const TRACE: &str = "128166386787582087,host,0,Read,4096,512,1331\n\
                         128166386787582187,host,1,Write,8192,4096,7\n\
                         128166386787582200,host,5,Read,0,4096,9\n\
                         128166386787582287,host,0,Write,0,8192,0\n\
                         128166386787582387,host,1,Read,4096,4096,20\n\
                         128166386787582487,host,0,Write,12288,1024,31\n";

    fn open() -> Result<TraceReader, TraceError> {
        let options = ReadOptions { sha256: true, devices: Some(0..=1), ..ReadOptions::default() };
        TraceReader::from_read("trace.csv", TRACE.as_bytes(), &options)
    }

    fn decoded(limit: usize, bytes_max: usize) -> Option<Decoded> {
        Decoded::new("it".into(), open().expect("a trace"), limit, bytes_max, &NEVER)
    }

    #[test]
    fn records_from_memory_are_those_of_the_trace() {
        let mut reader = open().expect("a trace");
        let read: Vec<TraceRecord> = reader.by_ref().map(|record| record.expect("one")).collect();
        assert!(read.iter().any(|record| record.response_ns.is_some() && record.device == 1));
        let decoded = decoded(usize::MAX, KEPT_BYTES_MAX).expect("a short trace");
        let (told, sha256) = (decoded.told.clone(), reader.sha256());
        assert_eq!(told.skipped, Told::of(&reader).skipped);
        assert!(!told.skipped.is_empty() && told.sha256 == sha256 && sha256.is_some());
        let mut kept = Records::Kept { decoded: Arc::new(decoded), next: 0 };
        let mut next = || kept.next_record().expect("a sound trace");
        assert_eq!(std::iter::from_fn(&mut next).collect::<Vec<_>>(), read);
        assert_eq!(next(), None, "the end stays the end");
    }

    #[test]
    fn a_trace_that_takes_more_memory_is_not_kept() {
        let bytes = size_of::<Packed>() + size_of::<Option<u64>>();
        assert_eq!(bytes, 24 + 16);
        assert!(decoded(usize::MAX, 5 * bytes).is_some());
        assert!(decoded(usize::MAX, 5 * bytes - 1).is_none());
        let part = decoded(3, 3 * bytes).expect("as far as the limit");
        assert_eq!(part.records.len(), 3);
    }

    #[test]
    fn a_trace_is_opened_once_for_all_that_were_announced() {
        let kept = Kept::default();
        let opened = Cell::new(0);
        let open = || {
            opened.set(opened.get() + 1);
            open()
        };
        let pass = |key: &str| {
            let mut records = kept.records(key.into(), usize::MAX, open, &NEVER).expect("records");
            let next = || records.next_record().expect("a sound trace");
            assert_eq!(std::iter::from_fn(next).count(), 5);
            opened.get()
        };
        let one = kept.want(1);
        assert_eq!([pass("it"), pass("it")], [1, 2], "nobody will read it again");
        let two = kept.clone().want(1);
        assert_eq!([pass("it"), pass("it"), pass("other")], [3, 3, 4]);
        drop(one);
        assert_eq!(pass("it"), 4, "it is still wanted");
        drop(two);
        assert_eq!(pass("it"), 5, "it was dropped");
    }
}
