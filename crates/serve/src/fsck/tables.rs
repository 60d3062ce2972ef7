//! Tables of checksums of what is written in place: a word for each block.

use super::findings::Findings;
use super::member::Member;
use imbrex_core::crc;
use imbrex_core::durability::block::{self, BlockError, BlockKind, Expected, PAYLOAD_BYTES};
use imbrex_core::lifecycle::Uuid;
use imbrex_core::translation::{BAD, NOTHING, ZERO_SUM};
use std::ops::Range;

/// Words in a page.
pub(super) const WORDS_PER_PAGE: u64 = PAYLOAD_BYTES as u64 / 4;
/// The structure of a finding about a page.
const STRUCTURE: &str = "table of checksums";

/// A page of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    /// The member that it was written for.
    pub member: Uuid,
    /// The block that it was written for.
    pub address: u64,
    /// The block where it lies: in a slot while that is not yet home.
    pub lies_at: u64,
    /// Of its table.
    pub generation: u64,
    /// Its number in the table.
    pub index: u64,
    /// Its words.
    pub words: u64,
    /// The word of each block where the page was never written, if that may be.
    pub blank: Option<u32>,
}

impl Page {
    /// The page with this number of a table of so many words. It lies where it belongs.
    pub fn of_table(member: Uuid, (start, words): (u64, u64), index: u64) -> Page {
        Page {
            member,
            address: start + index,
            lies_at: start + index,
            generation: 0,
            index,
            words: (words - index * WORDS_PER_PAGE).min(WORDS_PER_PAGE),
            blank: None,
        }
    }

    /// Its words, of the member that has it.
    pub fn read(&self, on: &Member) -> Result<Vec<u32>, String> {
        let named = |words: String| format!("page {} of its checksums: {words}", self.index);
        let mut bytes = Vec::new();
        let read = on.read(self.lies_at, 1, &mut bytes);
        read.map_err(|error| named(error.to_string()))?;
        let expected = Expected::new(BlockKind::ChecksumTable, Some(self.member), self.address);
        let (header, payload) = match (block::unseal(&bytes, expected), self.blank) {
            (Ok(found), _) => found,
            (Err(BlockError::Zero), Some(word)) => return Ok(vec![word; self.words as usize]),
            (Err(error), _) => return Err(named(error.message())),
        };
        let (generation, index) = (header.generation, header.sequence);
        if (generation, index) != (self.generation, self.index) {
            let words = format!("it is page {index} of generation {generation}");
            return Err(named(words));
        }
        if payload.len() as u64 != 4 * self.words {
            return Err(named("it is not as long as its table".to_owned()));
        }
        let words = payload.chunks_exact(4);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes"));
        Ok(words.map(word).collect())
    }

    /// Says what is wrong with the page, of which `whose` names the owner.
    pub fn check(&self, on: &Member, whose: impl FnOnce() -> String, into: &mut Findings) {
        if let Err(problem) = self.read(on) {
            into.damage(on.name(), STRUCTURE, format!("{}: {problem}", whose()));
        }
    }
}

/// The page that was read last.
#[derive(Clone, Debug, Default)]
pub(super) struct LastPage(Option<(Page, Vec<u32>)>);

impl LastPage {
    /// The words of a page.
    pub fn words(&mut self, page: Page, on: &Member) -> Result<&[u32], String> {
        if self.0.as_ref().is_none_or(|(known, _)| *known != page) {
            self.0 = Some((page, page.read(on)?));
        }
        Ok(&self.0.as_ref().expect("a page that was read").1)
    }
}

/// Compares a block with its word.
pub(super) fn compare(word: u32, block: &[u8]) -> Result<(), String> {
    let own = match crc::crc32c(block) ^ ZERO_SUM {
        own if own >= NOTHING => own - 2,
        own => own,
    };
    match word {
        NOTHING => Ok(()),
        BAD => Err("it could not be read when it was to be written anew".to_owned()),
        word if word == own => Ok(()),
        _ => Err("its data does not match its checksum".to_owned()),
    }
}

/// The holes of a file, which read as zeroes.
pub(super) struct Holes<'a> {
    /// The member, where its blocks are those of a file.
    member: Option<&'a Member>,
    last: Range<u64>,
}

impl<'a> Holes<'a> {
    /// Those of a member; none of what is no file.
    pub fn new(member: Option<&'a Member>) -> Holes<'a> {
        let last = 0..0;
        Holes { member, last }
    }

    /// True when a block, which must read as zeroes by its word, is in a hole and does.
    pub fn has_zeroes(&mut self, word: u32, at: u64) -> bool {
        if word != 0 {
            return false;
        }
        if !self.last.contains(&at) {
            let end = self.member.map_or(at, |member| member.hole_end(at));
            self.last = at..end;
        }
        self.last.contains(&at)
    }
}
