//! The CloudPhysics traces as they were published: vscsi versions 1 and 2, little-endian records without a header.
//!
//! Version 1 has 32 bytes: serial number, length, scatter-gather entries (4 bytes each), SCSI opcode, version (2 each), first
//! sector, time in microseconds (8 each). Version 2 has 40: opcode, version, serial number, length, entries, sector, time,
//! response time. The upper byte of the version field is the version. The unit of the response time is documented nowhere,
//! so it is left out.

use super::binary_records::{RecordProblem, u16_at, u32_at, u64_at};
use super::csv::scsi_operation;
use super::record::TraceRecord;
use super::tally::SkipReason;
use super::text::{POSSIBLE_RANGE, Parsed, range_is_possible};

const SECTOR_BYTES: u64 = 512;
/// READ(6) and WRITE(6), where a length of 0 stands for 256 blocks.
const SIX_BYTE_COMMANDS: [u8; 2] = [0x08, 0x0a];
const SIX_BYTE_BLOCKS_MAX: u64 = 256;

/// Records looked at to tell the version.
const VOTES: usize = 800;
/// Fewer records than this do not tell a format.
const VOTES_MIN: usize = 2;

/// A version of the format: where its fields are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vscsi {
    Version1,
    Version2,
}

impl Vscsi {
    /// The version that more than half of the first records name in their version field.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        [Self::Version1, Self::Version2].into_iter().find(|version| {
            let records = bytes.chunks_exact(version.record_bytes()).take(VOTES);
            let voters = records.len();
            let votes = records.filter(|record| version.fits(record)).count();
            voters >= VOTES_MIN && votes * 2 > voters
        })
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::Version1 => 1,
            Self::Version2 => 2,
        }
    }

    pub(super) fn record_bytes(self) -> usize {
        match self {
            Self::Version1 => 32,
            Self::Version2 => 40,
        }
    }

    fn version_field(self, record: &[u8]) -> u16 {
        u16_at(record, if self == Self::Version1 { 14 } else { 2 })
    }

    fn fits(self, record: &[u8]) -> bool {
        self.version_field(record) >> 8 == u16::from(self.number())
    }

    #[inline]
    pub(super) fn parse(self, record: &[u8]) -> Result<Parsed, Box<RecordProblem>> {
        if !self.fits(record) {
            return Err(RecordProblem::new(
                format!("the version field is 0x{:04x}", self.version_field(record)),
                &format!("0x{0:02x}00 to 0x{0:02x}ff", self.number()),
            ));
        }
        let (opcode_at, length_at) = match self {
            Self::Version1 => (12, 4),
            Self::Version2 => (0, 8),
        };
        let opcode = u16_at(record, opcode_at);
        let Ok(opcode) = u8::try_from(opcode) else {
            return Err(RecordProblem::new(
                format!("the opcode is 0x{opcode:04x}"),
                "a SCSI operation code, at most 0xff",
            ));
        };
        let Some(operation) = scsi_operation(opcode) else {
            return Ok(Parsed::Skip(SkipReason::ScsiOpcode(opcode)));
        };
        let sector = u64_at(record, 16);
        let time_us = u64_at(record, 24);
        let mut length_bytes = u64::from(u32_at(record, length_at));
        if length_bytes == 0 && SIX_BYTE_COMMANDS.contains(&opcode) {
            length_bytes = SIX_BYTE_BLOCKS_MAX * SECTOR_BYTES;
        }
        if length_bytes == 0 {
            return Ok(Parsed::Skip(SkipReason::ZeroLength));
        }
        let offset_bytes = sector
            .checked_mul(SECTOR_BYTES)
            .filter(|&offset| range_is_possible(offset, length_bytes))
            .ok_or_else(|| RecordProblem::new(format!("the sector is {sector}"), POSSIBLE_RANGE))?;
        let time_ns = time_us.checked_mul(1000).ok_or_else(|| {
            RecordProblem::new(format!("the time is {time_us} us"), "times within 500 years")
        })?;
        Ok(Parsed::Record(TraceRecord::new(time_ns, operation, offset_bytes, length_bytes)))
    }
}
