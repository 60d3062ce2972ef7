//! Damage to every field of what lies on a member: which bytes are a field comes from the tables
//! of the codecs, so that a new field cannot be missed.

use super::journal_disk::{Image, block_of};
use imbrex_core::durability::block::{
    self, BlockKind, Expected, Field, HEADER_BYTES, HEADER_FIELDS, PAYLOAD_BYTES,
};
use imbrex_core::durability::{RECORD_FIELDS, records, superblock};
use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;

/// Bytes of a block that mean one thing.
#[derive(Clone, Debug)]
pub struct Target {
    /// The structure and the field.
    pub name: String,
    pub address: u64,
    pub offset: usize,
    pub bytes: usize,
}

/// What is done to a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// One bit of it is the other way round.
    Bit,
    /// One byte of it is another.
    Byte,
    /// The sector of 512 bytes that it begins in is zeroes.
    ZeroSector,
    /// The whole block is garbage.
    RandomBlock,
}

impl Damage {
    pub const ALL: [Damage; 4] =
        [Damage::Bit, Damage::Byte, Damage::ZeroSector, Damage::RandomBlock];

    /// Damages a field; false when nothing has changed by it.
    pub fn apply(self, image: &mut Image, target: &Target, rng: &mut Rng) -> bool {
        let before = block_of(image, target.address);
        let mut bytes = before.to_vec();
        let at = target.offset + rng.below(target.bytes as u64) as usize;
        match self {
            Damage::Bit => bytes[at] ^= 1 << rng.below(8),
            Damage::Byte => bytes[at] ^= 1 + rng.below(255) as u8,
            Damage::ZeroSector => {
                let sector = target.offset / 512 * 512;
                bytes[sector..sector + 512].fill(0);
            }
            Damage::RandomBlock => bytes.fill_with(|| rng.next_u64() as u8),
        }
        let is_changed = bytes[..] != before[..];
        image.insert(target.address, bytes.into());
        is_changed
    }
}

/// The name of a kind of record, and the fields that its payload has, once or again and again.
pub type RecordFields = fn(kind: u8) -> (&'static str, &'static [Field]);

/// The fields of the sealed block at an address.
pub fn fields_of_block(
    image: &Image,
    address: u64,
    kind: BlockKind,
    record_fields: RecordFields,
) -> Vec<Target> {
    let bytes = block_of(image, address);
    let expected = Expected::new(kind, None, address);
    let (_, payload) = block::unseal(&bytes, expected).expect("a good block");
    let name = kind.name();
    let mut targets = Vec::new();
    add_fields(&mut targets, name, address, 0, &HEADER_FIELDS);
    match kind {
        BlockKind::Superblock => add_fields(&mut targets, name, address, 0, &superblock::FIELDS),
        BlockKind::Journal => add_records(&mut targets, address, payload, record_fields),
        _ if payload.is_empty() => {}
        _ => targets.push(Target {
            name: format!("{name}: payload"),
            address,
            offset: HEADER_BYTES,
            bytes: payload.len(),
        }),
    }
    if payload.len() < PAYLOAD_BYTES {
        targets.push(Target {
            name: format!("{name}: padding"),
            address,
            offset: HEADER_BYTES + payload.len(),
            bytes: PAYLOAD_BYTES - payload.len(),
        });
    }
    targets
}

/// A block of data.
pub fn data(name: &str, address: u64) -> Target {
    Target { name: name.to_owned(), address, offset: 0, bytes: BLOCK_BYTES as usize }
}

/// The fields of a structure that begins `from` bytes into a block.
pub fn add_fields(
    targets: &mut Vec<Target>,
    structure: &str,
    address: u64,
    from: usize,
    fields: &[Field],
) {
    targets.extend(fields.iter().map(|field| Target {
        name: format!("{structure}: {}", field.name),
        address,
        offset: from + field.offset,
        bytes: field.bytes,
    }));
}

fn add_records(
    targets: &mut Vec<Target>,
    address: u64,
    payload: &[u8],
    record_fields: RecordFields,
) {
    let mut at = HEADER_BYTES;
    for record in records(payload) {
        let record = record.expect("a good record");
        add_fields(targets, "record", address, at, &RECORD_FIELDS);
        let head: usize = RECORD_FIELDS.iter().map(|field| field.bytes).sum();
        at += head;
        let (name, fields) = record_fields(record.kind);
        let bytes: usize = fields.iter().map(|field| field.bytes).sum();
        assert_eq!(record.payload.len() % bytes, 0, "a payload of whole fields");
        for _ in 0..record.payload.len() / bytes {
            add_fields(targets, &format!("record {name}"), address, at, fields);
            at += bytes;
        }
        let parts = [
            ("data", if record.data.is_some() { 8 } else { 0 }),
            ("checksums", record.checksums.len()),
        ];
        for (name, bytes) in parts {
            if bytes > 0 {
                targets.push(Target {
                    name: format!("record: {name}"),
                    address,
                    offset: at,
                    bytes,
                });
            }
            at += bytes;
        }
    }
    assert_eq!(at, HEADER_BYTES + payload.len(), "every byte is a field");
}
