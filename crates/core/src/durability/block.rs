//! The sealed block: the frame of every metadata block that is written to a member.

use crate::crc;
use crate::lifecycle::Uuid;
use crate::saved::SavedValue;
use crate::units::BLOCK_BYTES;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The version of everything that is drawn in `docs/formats/journal.md`.
pub const FORMAT_VERSION: u16 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of a block that are its payload.
pub const PAYLOAD_BYTES: usize = BLOCK_BYTES as usize - HEADER_BYTES;
/// First bytes of a sealed block: "ImBx".
pub const MAGIC: u32 = u32::from_le_bytes(*b"ImBx");

/// What a sealed block is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, SavedValue)]
#[repr(u16)]
pub enum BlockKind {
    /// The root of a member.
    Superblock = 1,
    /// A page of a checkpoint.
    CheckpointPage = 2,
    /// A block of the journal.
    Journal = 3,
    /// The regions of a backing member that a cache may hold dirty data of.
    WriteIntent = 4,
    /// A page of the table of checksums of a band.
    ChecksumTable = 5,
    /// Which copies of a mirrored journal count.
    Membership = 6,
    /// A copy of the label of a disk.
    Label = 7,
}

impl BlockKind {
    /// The words used in errors.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Superblock => "superblock",
            BlockKind::CheckpointPage => "checkpoint page",
            BlockKind::Journal => "journal block",
            BlockKind::WriteIntent => "write-intent page",
            BlockKind::ChecksumTable => "checksum page",
            BlockKind::Membership => "membership page",
            BlockKind::Label => "label",
        }
    }
}

/// A field of a structure: its name, first byte and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name in the format's page.
    pub name: &'static str,
    /// First byte, from the start of the block.
    pub offset: usize,
    /// Bytes, little-endian.
    pub bytes: usize,
}

/// The fields of the header, in order and without gaps.
pub const HEADER_FIELDS: [Field; 10] = [
    field("magic", 0, 4),
    field("checksum", 4, 4),
    field("version", 8, 2),
    field("kind", 10, 2),
    field("payload_bytes", 12, 4),
    field("member", 16, 16),
    field("address", 32, 8),
    field("generation", 40, 8),
    field("sequence", 48, 8),
    field("mark", 56, 8),
];

pub(crate) const fn field(name: &'static str, offset: usize, bytes: usize) -> Field {
    Field { name, offset, bytes }
}

/// What the header of a sealed block says beside its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, SavedValue)]
pub struct Header {
    /// What the block is.
    pub kind: BlockKind,
    /// The member it was written to.
    pub member: Uuid,
    /// The block of the port it was written to.
    pub address: u64,
    /// Of a superblock or a checkpoint page, the generation of the checkpoint; of a journal block,
    /// the epoch.
    pub generation: u64,
    /// Of a journal block, its number; of a page, its index.
    pub sequence: u64,
    /// Of a journal block, the number before which every journal block was durable when it was
    /// written; of a page, how many pages there are.
    pub mark: u64,
}

/// Puts a header and a payload together, to be written to `header.address`.
pub fn seal(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    seal_into(header, payload, &mut block);
    block
}

/// Puts a header and a payload together in the memory of a block.
pub fn seal_into(header: &Header, payload: &[u8], block: &mut [u8]) {
    assert!(payload.len() <= PAYLOAD_BYTES, "a payload too long");
    block.fill(0);
    block[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    block[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    block[10..12].copy_from_slice(&(header.kind as u16).to_le_bytes());
    block[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    block[16..32].copy_from_slice(&header.member.0);
    block[32..40].copy_from_slice(&header.address.to_le_bytes());
    block[40..48].copy_from_slice(&header.generation.to_le_bytes());
    block[48..56].copy_from_slice(&header.sequence.to_le_bytes());
    block[56..64].copy_from_slice(&header.mark.to_le_bytes());
    block[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
    let checksum = checksum_of(block);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// CRC-32C of a whole block with its checksum field taken as zero.
pub fn checksum_of(block: &[u8]) -> u32 {
    let sum = crc::crc32c(&block[0..4]);
    let sum = crc::crc32c_append(sum, &[0; 4]);
    crc::crc32c_append(sum, &block[8..])
}

/// What is wrong with a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockError {
    /// Every byte is zero: nothing was ever written.
    Zero,
    /// It does not begin as a sealed block does.
    Magic(u32),
    /// Its bytes have changed.
    Checksum,
    /// A build with another format wrote it.
    Version(u16),
    /// It is another kind of block.
    Kind(u16),
    /// It belongs to another member.
    Member(Uuid),
    /// It was written for another address.
    Address(u64),
    /// It says its payload is longer than a block.
    Length(u32),
}

impl BlockError {
    /// In words.
    pub fn message(&self) -> String {
        match self {
            BlockError::Zero => String::from("it is all zeroes"),
            BlockError::Magic(found) => format!("it begins with {found:#010x}"),
            BlockError::Checksum => String::from("its checksum does not match its bytes"),
            BlockError::Version(found) => {
                format!("it has format version {found}, the newest known is {FORMAT_VERSION}")
            }
            BlockError::Kind(found) => format!("it is of kind {found}"),
            BlockError::Member(found) => format!("it belongs to member {found}"),
            BlockError::Address(found) => format!("it was written for block {found}"),
            BlockError::Length(found) => format!("it says it holds {found} bytes"),
        }
    }
}

/// What a block is expected to be.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Its kind.
    pub kind: BlockKind,
    /// Its member; `None` takes any.
    pub member: Option<Uuid>,
    /// Where it was read.
    pub address: u64,
    /// A planted bug leaves the checksum out.
    pub ignore_checksum: bool,
    /// A planted bug leaves the address out.
    pub ignore_address: bool,
}

impl Expected {
    /// A block with everything checked.
    pub fn new(kind: BlockKind, member: Option<Uuid>, address: u64) -> Expected {
        Expected { kind, member, address, ignore_checksum: false, ignore_address: false }
    }
}

/// Takes a sealed block apart.
///
/// # Errors
/// When it is not the block that was expected, or not whole.
pub fn unseal(block: &[u8], expected: Expected) -> Result<(Header, &[u8]), BlockError> {
    assert_eq!(block.len() as u64, BLOCK_BYTES, "a block of another size");
    let u16_at = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    let u32_at = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("8 bytes"));
    if u32_at(0) != MAGIC {
        let zero = block.iter().all(|byte| *byte == 0);
        return Err(if zero { BlockError::Zero } else { BlockError::Magic(u32_at(0)) });
    }
    if u32_at(4) != checksum_of(block) && !expected.ignore_checksum {
        return Err(BlockError::Checksum);
    }
    if u16_at(8) != FORMAT_VERSION {
        return Err(BlockError::Version(u16_at(8)));
    }
    if u16_at(10) != expected.kind as u16 {
        return Err(BlockError::Kind(u16_at(10)));
    }
    let header = Header {
        kind: expected.kind,
        member: Uuid(block[16..32].try_into().expect("16 bytes")),
        address: u64_at(32),
        generation: u64_at(40),
        sequence: u64_at(48),
        mark: u64_at(56),
    };
    if expected.member.is_some_and(|member| member != header.member) {
        return Err(BlockError::Member(header.member));
    }
    if header.address != expected.address && !expected.ignore_address {
        return Err(BlockError::Address(header.address));
    }
    let length = u32_at(12) as usize;
    if length > PAYLOAD_BYTES {
        return Err(BlockError::Length(u32_at(12)));
    }
    Ok((header, &block[HEADER_BYTES..HEADER_BYTES + length]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: BlockKind::Journal,
            member: Uuid([7; 16]),
            address: 99,
            generation: 3,
            sequence: 1 << 40,
            mark: 12,
        }
    }

    fn expected() -> Expected {
        Expected::new(BlockKind::Journal, Some(Uuid([7; 16])), 99)
    }

    #[test]
    fn a_sealed_block_comes_apart_again() {
        let block = seal(&header(), b"payload");
        assert_eq!(unseal(&block, expected()), Ok((header(), &b"payload"[..])));
    }

    #[test]
    fn the_header_fields_leave_no_gap() {
        let mut next = 0;
        for field in HEADER_FIELDS {
            assert_eq!(field.offset, next, "{}", field.name);
            next += field.bytes;
        }
        assert_eq!(next, HEADER_BYTES);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let block = seal(&header(), b"payload");
        for at in 0..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 0x10;
            assert!(unseal(&damaged, expected()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_block_of_another_place_or_member_is_refused() {
        let block = seal(&header(), b"");
        let elsewhere = Expected { address: 98, ..expected() };
        assert_eq!(unseal(&block, elsewhere), Err(BlockError::Address(99)));
        let foreign = Expected { member: Some(Uuid([8; 16])), ..expected() };
        assert_eq!(unseal(&block, foreign), Err(BlockError::Member(Uuid([7; 16]))));
        assert_eq!(unseal(&[0; BLOCK_BYTES as usize], expected()), Err(BlockError::Zero));
    }
}
