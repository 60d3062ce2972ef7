//! libCacheSim's binary traces: oracleGeneral, and LCS in its versions 1 to 8.
//!
//! Both hold requests for objects, little-endian and packed: time in whole seconds, object id, size, and the number of the
//! request that comes back to the object. LCS has a header of 8192 bytes; from its version 2 on a record says operation and
//! tenant too. The layouts are those of libCacheSim's `lcs.h`.

use super::TraceError;
use super::binary_records::{RecordProblem, u32_at, u64_at};
use super::devices::Devices;
use super::options::ObjectId;
use super::record::{TraceOperation, TraceRecord};
use super::tally::SkipReason;
use super::text::{POSSIBLE_RANGE, Parsed, range_is_possible};

/// First and last eight bytes of a header.
const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 8192;
/// Bytes of the header that LCS had before it had versions.
const OLD_HEADER_BYTES: usize = 1024;
/// Bytes of a record of oracleGeneral, and of LCS by version.
const ORACLE_BYTES: usize = 24;
const LCS_BYTES: [usize; 8] = [ORACLE_BYTES, 28, 36, 40, 44, 52, 68, 100];

const SECOND_NS: u64 = 1_000_000_000;
const BLOCK_BYTES: u64 = 4096;

/// Records looked at to tell oracleGeneral.
const SAMPLE_RECORDS: usize = 4096;
/// A trace of oracleGeneral is told only within these.
const SPAN_S_MAX: u32 = 10 * 366 * 24 * 60 * 60;
const SIZE_BYTES_MAX: u32 = 1 << 30;
const REQUESTS_MAX: u64 = 1 << 40;

/// A reader of objects.
pub(super) struct Objects {
    record_bytes: usize,
    /// Version of LCS; 1 for oracleGeneral, which has the same records.
    version: u8,
    id: ObjectId,
    tenants: Devices<u32>,
}

impl Objects {
    pub(super) fn new(version: u8, id: ObjectId) -> Self {
        Self {
            record_bytes: LCS_BYTES[usize::from(version - 1)],
            version,
            id,
            tenants: Devices::default(),
        }
    }

    pub(super) fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    #[inline]
    pub(super) fn parse(&mut self, record: &[u8]) -> Result<Parsed, Box<RecordProblem>> {
        let time_ns = u64::from(u32_at(record, 0)) * SECOND_NS;
        let id = u64_at(record, 4);
        let (length_bytes, what) = match self.version {
            1 => (u64::from(u32_at(record, 12)), 0),
            2 => (u64::from(u32_at(record, 12)), u32_at(record, 16)),
            _ => (u64_at(record, 12), u32_at(record, 20)),
        };
        let operation = operation(what & 0xff)?;
        if length_bytes == 0 {
            return Ok(Parsed::Skip(SkipReason::ZeroLength));
        }
        if !range_is_possible(0, length_bytes) {
            return Err(RecordProblem::new(format!("the size is {length_bytes}"), POSSIBLE_RANGE));
        }
        let unit_bytes = match self.id {
            ObjectId::Bytes => 1,
            ObjectId::Blocks => BLOCK_BYTES,
        };
        let offset_bytes = id
            .checked_mul(unit_bytes)
            .filter(|&offset| range_is_possible(offset, length_bytes))
            .ok_or_else(|| {
                RecordProblem::new(
                    format!("the object id is {id} ({})", self.id.name()),
                    &format!("{POSSIBLE_RANGE}; ids that are hashes have no place on a disk"),
                )
            })?;
        let mut record = TraceRecord::new(time_ns, operation, offset_bytes, length_bytes);
        record.device = self.tenants.number(&(what >> 8)).ok_or_else(|| {
            RecordProblem::new("more than 65,536 tenants".to_owned(), "at most 65,536 tenants")
        })?;
        Ok(Parsed::Record(record))
    }
}

/// libCacheSim's `req_op_e`. 0 stands for a request whose operation nobody knows; caches take it for a read.
fn operation(code: u32) -> Result<TraceOperation, Box<RecordProblem>> {
    Ok(match code {
        0 | 1 | 2 | 12 => TraceOperation::Read,
        3..=8 | 10 | 11 | 13 | 14 => TraceOperation::Write,
        9 => TraceOperation::Trim,
        _ => {
            return Err(RecordProblem::new(format!("the operation is {code}"), "0 to 14"));
        }
    })
}

/// True of a file with the magic of LCS.
pub(super) fn looks_like_lcs(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The version in a header.
pub(super) fn lcs_version(path: &str, bytes: &[u8]) -> Result<u8, TraceError> {
    let fail = |reason: String| TraceError::Format { path: path.to_owned(), reason };
    let ends_at = |end: usize| bytes.get(end - MAGIC.len()..end) == Some(&MAGIC[..]);
    if !looks_like_lcs(bytes) {
        let reason = "the file does not start with the magic of LCS; accepted: LCS version 1 to 8";
        return Err(fail(reason.to_owned()));
    }
    if !ends_at(HEADER_BYTES) {
        return Err(fail(match bytes.len() {
            _ if ends_at(OLD_HEADER_BYTES) => {
                "the header has 1024 bytes, as LCS had it before its versions; accepted: a header of 8192 bytes".to_owned()
            }
            length if length < HEADER_BYTES => format!(
                "the file ends after {length} bytes of the header; accepted: a header of 8192 bytes"
            ),
            _ => "the header does not end with the magic at byte 8184; accepted: 0x123456789abcdef0".to_owned(),
        }));
    }
    match u64_at(bytes, 8) {
        version @ 1..=8 => Ok(version as u8),
        version => Err(fail(format!("LCS has version {version}; accepted: 1 to 8"))),
    }
}

/// What the first records say for oracleGeneral, which has no magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// A value is not one that such a trace has.
    Impossible,
    /// Every value may be one, but nothing proves it.
    Possible,
    /// Records name later records of the same object, and each of these is there.
    Proven,
}

/// Judges the first records.
pub(super) fn oracle_evidence(bytes: &[u8]) -> Evidence {
    let records: Vec<&[u8]> = bytes.chunks_exact(ORACLE_BYTES).take(SAMPLE_RECORDS).collect();
    let time_s = |record: &[u8]| u32_at(record, 0);
    let (Some(first), Some(last), true) = (records.first(), records.last(), records.len() > 1)
    else {
        return Evidence::Impossible;
    };
    let are_ordered = records.windows(2).all(|pair| time_s(pair[0]) <= time_s(pair[1]));
    if !are_ordered || time_s(last) - time_s(first) > SPAN_S_MAX {
        return Evidence::Impossible;
    }
    let have_possible_values = records.iter().zip(0..).all(|(record, index)| {
        let next = next_access(record);
        u32_at(record, 12) <= SIZE_BYTES_MAX
            && next.is_none_or(|next| index < next && next < REQUESTS_MAX)
    });
    if !have_possible_values {
        return Evidence::Impossible;
    }
    // Some programs count requests from 0, others from 1.
    let is_proven = (0..=1).any(|base| {
        let mut references = records.iter().enumerate().filter_map(|(index, record)| {
            let later = usize::try_from(next_access(record)? - base).ok()?;
            let target = records.get(later)?;
            Some(later > index && u64_at(target, 4) == u64_at(record, 4))
        });
        references.next() == Some(true) && references.all(|is_there| is_there)
    });
    if is_proven { Evidence::Proven } else { Evidence::Possible }
}

/// Number of the request that comes back to the object; `None` if none does.
fn next_access(record: &[u8]) -> Option<u64> {
    let next = u64_at(record, 16);
    (next != u64::MAX && next != i64::MAX as u64).then_some(next)
}
