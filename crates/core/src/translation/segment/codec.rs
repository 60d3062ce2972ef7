//! The records and the checkpoint of a durable segment layout, as `docs/formats/segments.md` draws
//! them: little-endian words.

use super::slots::Noted;
use crate::checksums::NOTHING;
use crate::durability::block::{Field, field};
use crate::lifecycle::OpenError;
use alloc::vec::Vec;

/// A run of a slot was written: the data of the record. Its payload is the slot.
pub const KEPT: u8 = 1;
/// The blocks of a segment that a slot holds will be written home.
pub const REWRITE: u8 = 2;
/// Whole segments will be zeroed.
pub const ZERO: u8 = 3;
/// What a slot was noted for is durable at home.
pub const DONE: u8 = 4;

/// The kinds of record with their names.
pub const RECORD_KINDS: [(u8, &str); 4] =
    [(KEPT, "kept"), (REWRITE, "rewrite"), (ZERO, "zero"), (DONE, "done")];

/// The payload of `kept` and of `done`.
pub const SLOT_FIELDS: [Field; 1] = [field("slot", 0, 8)];
/// The payload of `rewrite`; a bit for each block follows, in whole words.
pub const REWRITE_FIELDS: [Field; 2] = [field("slot", 0, 8), field("segment", 8, 8)];
/// The payload of `zero`.
pub const ZERO_FIELDS: [Field; 3] =
    [field("slot", 0, 8), field("segment", 8, 8), field("segments", 16, 8)];
/// The start of a checkpoint. A noted slot is a kind of record and its payload, a word before it
/// being the kind.
pub const HEAD_FIELDS: [Field; 7] = [
    field("words_version", 0, 8),
    field("block", 8, 8),
    field("region_tracks", 16, 8),
    field("segments", 24, 8),
    field("first_block", 32, 8),
    field("kappa", 40, 8),
    field("noted_slots", 48, 8),
];

/// What follows the head where checksums are kept.
pub const BLANK_FIELDS: [Field; 1] = [field("blank_page", 56, 8)];

const WORDS_VERSION: u64 = 1;

/// What a layout must be again when it comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Blocks of 4 KiB of a block.
    pub block: u64,
    /// Blocks of a segment.
    pub region_tracks: u64,
    /// Segments.
    pub segments: u64,
    /// Where the first block of the first segment lies.
    pub first_block: u64,
    /// How many tracks the writer is wide.
    pub kappa: u64,
}

/// Words of the mask of a segment of so many blocks.
fn mask_words(region_tracks: u64) -> u64 {
    region_tracks.div_ceil(64)
}

/// The most that a checkpoint can take.
pub(super) fn checkpoint_bytes_max(region_tracks: u64) -> u64 {
    let noted = 3 + mask_words(region_tracks).max(1);
    let head = HEAD_FIELDS.len() + BLANK_FIELDS.len();
    8 * (head as u64 + super::areas::SLOTS * noted)
}

fn push(words: &[u64], bytes: &mut Vec<u8>) {
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

/// The payload of a record about a slot: its kind goes into `bytes`' place. Clears `bytes` first.
pub(super) fn encode(slot: u32, noted: &Noted, bytes: &mut Vec<u8>) -> u8 {
    bytes.clear();
    match noted {
        Noted::Rewrite { segment, written } => {
            push(&[u64::from(slot), *segment], bytes);
            for bits in written.chunks(64) {
                let word = bits.iter().enumerate();
                let word = word.fold(0u64, |word, (at, bit)| word | u64::from(*bit) << at);
                push(&[word], bytes);
            }
            REWRITE
        }
        Noted::Zero { segment, segments } => {
            push(&[u64::from(slot), *segment, *segments], bytes);
            ZERO
        }
    }
}

/// The words of a payload or a checkpoint.
pub(super) fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))).collect()
}

/// What a record of this kind says; `None` when it says nothing that there can be.
pub(super) fn decode(kind: u8, words: &[u64], identity: &Identity) -> Option<(u32, Noted)> {
    let slot = *words.first()?;
    let slot = u32::try_from(slot).ok().filter(|slot| u64::from(*slot) < super::areas::SLOTS)?;
    let segment = *words.get(1)?;
    let noted = match kind {
        REWRITE if words.len() as u64 == 2 + mask_words(identity.region_tracks) => {
            let bit = |block: u64| words[2 + (block / 64) as usize] >> (block % 64) & 1 == 1;
            Noted::Rewrite { segment, written: (0..identity.region_tracks).map(bit).collect() }
        }
        ZERO if words.len() == 3 => Noted::Zero { segment, segments: words[2] },
        _ => return None,
    };
    let end = match noted {
        Noted::Rewrite { .. } => segment.checked_add(1)?,
        Noted::Zero { segments, .. } => segment.checked_add(segments)?,
    };
    (end <= identity.segments).then_some((slot, noted))
}

/// The map: what slots are noted for, in the order in which they were. Where checksums are kept,
/// what a page says that was never written: `blank` is the word of each block.
pub(super) fn encode_map<'a>(
    identity: &Identity,
    blank: Option<u32>,
    noted: impl Iterator<Item = (u32, &'a Noted)> + Clone,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(
        &[
            WORDS_VERSION,
            identity.block,
            identity.region_tracks,
            identity.segments,
            identity.first_block,
            identity.kappa,
            noted.clone().count() as u64,
        ],
        &mut bytes,
    );
    if let Some(blank) = blank {
        push(&[u64::from(blank)], &mut bytes);
    }
    let mut payload = Vec::new();
    for (slot, noted) in noted {
        let kind = encode(slot, noted, &mut payload);
        push(&[u64::from(kind), payload.len() as u64 / 8], &mut bytes);
        bytes.extend_from_slice(&payload);
    }
    bytes
}

/// What a map says: the word of a block of which no page was ever written (0 where no checksums are
/// kept), and what is noted.
///
/// # Errors
/// When it is of another layout, or no map at all.
pub(super) fn decode_map(
    bytes: &[u8],
    identity: &Identity,
    has_sums: bool,
) -> Result<(u32, Vec<(u32, Noted)>), OpenError> {
    let all = words(bytes);
    let damaged = || OpenError::damaged("checkpoint", "it is no map of a segment layout");
    let (head, rest) = all.split_at_checked(HEAD_FIELDS.len()).ok_or_else(damaged)?;
    let known = [
        WORDS_VERSION,
        identity.block,
        identity.region_tracks,
        identity.segments,
        identity.first_block,
        identity.kappa,
    ];
    let pairs = HEAD_FIELDS.iter().zip(head).zip(known);
    for ((field, found), expected) in pairs {
        if *found != expected {
            return Err(OpenError::Settings { name: field.name, found: *found, expected });
        }
    }
    let (blank, rest) = match has_sums {
        true => rest.split_first().ok_or_else(damaged)?,
        false => (&0, rest),
    };
    let blank = u32::try_from(*blank).ok();
    let blank = blank.filter(|it| [0, NOTHING].contains(it));
    let noted = decode_noted(head[known.len()], rest, identity);
    blank.zip(noted).ok_or_else(damaged)
}

fn decode_noted(count: u64, mut rest: &[u64], identity: &Identity) -> Option<Vec<(u32, Noted)>> {
    let mut noted = Vec::new();
    for _ in 0..count {
        let (about, behind) = rest.split_at_checked(2)?;
        let length = usize::try_from(about[1]).ok()?;
        let (payload, behind) = behind.split_at_checked(length)?;
        noted.push(decode(u8::try_from(about[0]).ok()?, payload, identity)?);
        rest = behind;
    }
    Some(noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const IDENTITY: Identity =
        Identity { block: 4, region_tracks: 70, segments: 9, first_block: 100, kappa: 3 };

    #[test]
    fn a_map_comes_back_and_another_layout_is_refused() {
        let written: Vec<bool> = (0..70).map(|block| block % 3 == 1).collect();
        let rewrite = Noted::Rewrite { segment: 8, written };
        let zero = Noted::Zero { segment: 2, segments: 7 };
        let noted = [(2, &zero), (0, &rewrite)];
        let bytes = encode_map(&IDENTITY, None, noted.into_iter());
        let expected = vec![(2, zero.clone()), (0, rewrite.clone())];
        let found = decode_map(&bytes, &IDENTITY, false);
        assert_eq!(found, Ok((0, expected.clone())));
        for blank in [0, NOTHING] {
            let bytes = encode_map(&IDENTITY, Some(blank), noted.into_iter());
            assert!(bytes.len() as u64 <= checkpoint_bytes_max(70));
            let found = decode_map(&bytes, &IDENTITY, true);
            assert_eq!(found, Ok((blank, expected.clone())));
        }
        let wrong = encode_map(&IDENTITY, Some(7), noted.into_iter());
        let wrong = decode_map(&wrong, &IDENTITY, true);
        assert!(matches!(wrong, Err(OpenError::Damaged { .. })));
        let refused =
            |other| matches!(decode_map(&bytes, &other, false), Err(OpenError::Settings { .. }));
        assert!(refused(Identity { kappa: 2, ..IDENTITY }));
        assert!(refused(Identity { segments: 8, ..IDENTITY }));
        let short = decode_map(&bytes[..bytes.len() - 8], &IDENTITY, false);
        assert!(matches!(short, Err(OpenError::Damaged { .. })));
    }
}
