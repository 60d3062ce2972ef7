//! Tables of checksums of what is written in place: a word for each block.

use super::member::Member;
use imbrex_core::durability::block::{self, BlockKind, Expected, PAYLOAD_BYTES};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::{BAD, NOTHING, ZERO_SUM};

/// Words in a page.
pub(super) const WORDS_PER_PAGE: u64 = PAYLOAD_BYTES as u64 / 4;

/// A page of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    /// The member that it lies on.
    pub member: Uuid,
    /// Its block.
    pub address: u64,
    /// Of its table.
    pub generation: u64,
    /// Its number in the table.
    pub index: u64,
}

impl Page {
    /// Its words.
    pub fn read(&self, disk: &Member) -> Result<Vec<u32>, String> {
        let named = |words: String| format!("page {} of its checksums: {words}", self.index);
        let mut bytes = Vec::new();
        let read = disk.read(self.address, 1, &mut bytes);
        read.map_err(|error| named(error.to_string()))?;
        let kind = BlockKind::ChecksumTable;
        let expected = Expected::new(kind, Some(self.member), self.address);
        let (header, payload) =
            block::unseal(&bytes, expected).map_err(|error| named(error.message()))?;
        let found = (header.generation, header.sequence);
        if found != (self.generation, self.index) {
            let (generation, index) = found;
            let words = format!("it is page {index} of generation {generation}");
            return Err(named(words));
        }
        let words = payload.chunks_exact(4);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
        Ok(words.map(word).collect())
    }
}

/// Compares a block with its word.
pub(super) fn compare(word: u32, block: &[u8]) -> Result<(), String> {
    let own = match crc32c::crc32c(block) ^ ZERO_SUM {
        own if own >= NOTHING => own - 2,
        own => own,
    };
    match word {
        NOTHING => Ok(()),
        BAD => Err("what it was could not be read any more".to_owned()),
        word if word == own => Ok(()),
        _ => Err("its data does not match its checksum".to_owned()),
    }
}
