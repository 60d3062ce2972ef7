//! A uniform permutation of requests in bounded memory.
//!
//! Each request goes to one of 64 files, drawn at random; each file is then read back and shuffled in memory, or dealt out
//! once more when it is too long for that. The result is one of all permutations, each with the same chance (Sanders,
//! "Random permutations on distributed, external and hierarchical memory", Information Processing Letters 67, 1998).
//! The instants of arrival stay in their order: the k-th request arrives at the k-th instant.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use crate::error::TraceError;
use crate::record::{TraceOperation, TraceRecord};
use crate::synthetic::Random;

/// Requests that are shuffled in memory at most: about 60 MB.
const IN_MEMORY_MAX: u64 = 1 << 20;
/// Files among which the requests are dealt.
const FILES: u64 = 64;
/// Bytes of a request in a file.
const REQUEST_BYTES: usize = 32;
/// Bytes of an instant in its file.
const INSTANT_BYTES: usize = 8;

/// A request and its source.
type Item = (usize, TraceRecord);

/// The requests in their drawn order.
pub(super) struct Shuffled {
    random: Random,
    in_memory_max: u64,
    /// Files that are still to be shuffled, the next one last.
    files: Vec<Spill>,
    /// Requests that are shuffled; the next one is the last.
    ready: Vec<Item>,
    instants: BufReader<File>,
}

/// Requests in a file that no name leads to.
struct Spill {
    file: BufWriter<File>,
    requests: u64,
}

impl Shuffled {
    /// Takes every request that `next` gives.
    pub(super) fn of(
        seed: u64,
        next: impl FnMut() -> Result<Option<Item>, TraceError>,
    ) -> Result<Self, TraceError> {
        Self::within(IN_MEMORY_MAX, seed, next)
    }

    /// The same, with at most so many requests in memory.
    fn within(
        in_memory_max: u64,
        seed: u64,
        mut next: impl FnMut() -> Result<Option<Item>, TraceError>,
    ) -> Result<Self, TraceError> {
        let mut random = Random::new(seed);
        let mut instants = BufWriter::new(tempfile::tempfile().map_err(failed)?);
        let mut files = spills()?;
        while let Some((source, record)) = next()? {
            let bytes = record.time_ns.to_le_bytes();
            instants.write_all(&bytes).map_err(failed)?;
            files[random.below(FILES) as usize].push(&(source, record))?;
        }
        let mut instants = instants.into_inner().map_err(|error| failed(error.into_error()))?;
        instants.rewind().map_err(failed)?;
        Ok(Self {
            random,
            in_memory_max,
            files,
            ready: Vec::new(),
            instants: BufReader::new(instants),
        })
    }

    /// The next request, at the next instant.
    pub(super) fn next(&mut self) -> Result<Option<Item>, TraceError> {
        while self.ready.is_empty() {
            let Some(spill) = self.files.pop() else {
                return Ok(None);
            };
            let requests = spill.requests;
            let mut file = spill.rewound()?;
            if requests > self.in_memory_max {
                let mut dealt = spills()?;
                for _ in 0..requests {
                    let item = pull(&mut file)?;
                    dealt[self.random.below(FILES) as usize].push(&item)?;
                }
                self.files.append(&mut dealt);
            } else {
                for _ in 0..requests {
                    self.ready.push(pull(&mut file)?);
                }
                self.random.shuffle(&mut self.ready);
            }
        }
        let mut instant = [0; INSTANT_BYTES];
        self.instants.read_exact(&mut instant).map_err(failed)?;
        let item = self.ready.pop();
        Ok(item.map(|(source, mut record)| {
            record.time_ns = u64::from_le_bytes(instant);
            (source, record)
        }))
    }
}

fn spills() -> Result<Vec<Spill>, TraceError> {
    let spill =
        |_| Ok(Spill { file: BufWriter::new(tempfile::tempfile().map_err(failed)?), requests: 0 });
    (0..FILES).map(spill).collect()
}

impl Spill {
    fn push(&mut self, (source, record): &Item) -> Result<(), TraceError> {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..8].copy_from_slice(&record.offset_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&record.length_bytes.to_le_bytes());
        // All bits set stand for none: 584 years.
        let response_ns = record.response_ns.unwrap_or(u64::MAX);
        bytes[16..24].copy_from_slice(&response_ns.to_le_bytes());
        bytes[24..26].copy_from_slice(&record.device.to_le_bytes());
        bytes[26..30].copy_from_slice(&(*source as u32).to_le_bytes());
        bytes[30] = record.operation as u8;
        bytes[31] = u8::from(record.fua);
        self.requests += 1;
        self.file.write_all(&bytes).map_err(failed)
    }

    fn rewound(self) -> Result<BufReader<File>, TraceError> {
        let mut file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.rewind().map_err(failed)?;
        Ok(BufReader::new(file))
    }
}

/// The next request of a file, without its instant.
fn pull(file: &mut BufReader<File>) -> Result<Item, TraceError> {
    const OPERATIONS: [TraceOperation; 5] = [
        TraceOperation::Read,
        TraceOperation::Write,
        TraceOperation::WriteZeroes,
        TraceOperation::Trim,
        TraceOperation::Flush,
    ];
    let mut bytes = [0; REQUEST_BYTES];
    file.read_exact(&mut bytes).map_err(failed)?;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let record = TraceRecord {
        time_ns: 0,
        offset_bytes: number(0),
        length_bytes: number(8),
        response_ns: Some(number(16)).filter(|&ns| ns != u64::MAX),
        device: u16::from_le_bytes([bytes[24], bytes[25]]),
        operation: OPERATIONS[usize::from(bytes[30])],
        fua: bytes[31] != 0,
    };
    let source = u32::from_le_bytes(bytes[26..30].try_into().expect("four bytes"));
    Ok((source as usize, record))
}

fn failed(source: io::Error) -> TraceError {
    TraceError::Open {
        path: format!("a temporary file of the shuffle in {}", std::env::temp_dir().display()),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses of `count` requests shuffled with so many in memory, and whether the instants are in order.
    fn shuffled(count: u64, in_memory_max: u64, seed: u64) -> Vec<u64> {
        let mut made = 0..count;
        let next = || {
            let number = made.next();
            Ok(number.map(|n| {
                let operation = TraceOperation::Write;
                (7, TraceRecord::new(10 * n, operation, 4096 * n, 512))
            }))
        };
        let mut shuffled = Shuffled::within(in_memory_max, seed, next).unwrap();
        let mut addresses = Vec::new();
        while let Some((source, record)) = shuffled.next().unwrap() {
            assert_eq!((source, record.length_bytes), (7, 512));
            assert_eq!(record.time_ns, 10 * addresses.len() as u64);
            addresses.push(record.offset_bytes / 4096);
        }
        addresses
    }

    #[test]
    fn files_that_are_too_long_are_dealt_out_again() {
        // 5000 requests in 64 files are 78 in each: more than 20, so every file is dealt out once more.
        let mut once = shuffled(5000, 20, 3);
        assert_eq!(once, shuffled(5000, 20, 3));
        assert_ne!(once, shuffled(5000, 20, 4));
        assert_ne!(once, (0..5000).collect::<Vec<_>>());
        once.sort_unstable();
        assert_eq!(once, (0..5000).collect::<Vec<_>>());
    }

    /// Each of the 24 orders of four requests comes up about as often.
    #[test]
    fn every_permutation_has_the_same_chance() {
        for in_memory_max in [1, 100] {
            let mut counts = std::collections::BTreeMap::new();
            for seed in 0..2400 {
                *counts.entry(shuffled(4, in_memory_max, seed)).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), 24);
            // The standard deviation of a count is 9.8.
            assert!(counts.values().all(|count| (55..=145).contains(count)), "{counts:?}");
        }
    }
}
