//! The bytes of a checkpoint on their way to its pages.

use super::block::PAYLOAD_BYTES;
use super::superblock::{FEATURE_PARTS, FEATURES_OF_CHECKPOINT};
use crate::saved::SavedValue;
use alloc::vec::Vec;
use core::ops::Range;

/// What a layer hands over as a checkpoint.
#[derive(Debug)]
pub(super) struct Content {
    /// As much as there is yet.
    bytes: Vec<u8>,
    /// Bytes that the layer hands over later.
    missing: u64,
    /// The features of a checkpoint that ends with it: none of a whole one.
    pub features: u32,
}

impl Content {
    /// All of it, at once.
    pub fn whole(bytes: Vec<u8>) -> Content {
        Content { bytes, missing: 0, features: 0 }
    }

    /// A part of records.
    pub fn records(bytes: Vec<u8>) -> Content {
        Content { bytes, missing: 0, features: FEATURES_OF_CHECKPOINT }
    }

    /// So many bytes, which come in pieces.
    pub fn in_pieces(bytes: u64, is_part: bool) -> Content {
        let features = if is_part { FEATURE_PARTS } else { 0 };
        Content { bytes: Vec::new(), missing: bytes, features }
    }

    /// True when it is a part behind the newest checkpoint, and takes nothing's place.
    pub fn is_part(&self) -> bool {
        self.features != 0
    }

    /// Bytes that are there.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.missing
    }
}

/// What can be done about the pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// The page with this number is to be written, with these of the [bytes](Pages::bytes).
    Page(u64, Range<usize>),
    /// The layer has to hand over the next piece.
    Piece,
    /// The layer has been asked for the next piece.
    Wait,
    /// Every page is written or on its way.
    End,
}

/// The pages of a checkpoint, written one after another.
#[derive(Debug, SavedValue)]
pub(super) struct Pages {
    /// What the layer has handed over and what of it is not in a page yet.
    pub bytes: Vec<u8>,
    at: usize,
    missing: u64,
    is_asked: bool,
    next: u64,
    end: u64,
}

impl Pages {
    /// The pages of some content; `first` is the number of the first one.
    pub fn new(content: Content, first: u64) -> Pages {
        let pages = content.len().div_ceil(PAYLOAD_BYTES as u64).max(1);
        Pages {
            bytes: content.bytes,
            at: 0,
            missing: content.missing,
            is_asked: false,
            next: first,
            end: first + pages,
        }
    }

    /// The number of the page behind the last one.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// What can be done now.
    pub fn next(&mut self) -> Next {
        if self.next == self.end {
            return Next::End;
        }
        let to = (self.at + PAYLOAD_BYTES).min(self.bytes.len());
        if self.missing > 0 && to - self.at < PAYLOAD_BYTES {
            return match core::mem::replace(&mut self.is_asked, true) {
                true => Next::Wait,
                false => Next::Piece,
            };
        }
        let range = core::mem::replace(&mut self.at, to)..to;
        self.next += 1;
        Next::Page(self.next - 1, range)
    }

    /// Takes the next piece. Panics when it is more than is missing.
    pub fn take(&mut self, piece: &[u8]) {
        let left = self.missing.checked_sub(piece.len() as u64);
        self.missing = left.expect("a checkpoint longer than it was said to be");
        self.is_asked = false;
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_whole_checkpoint_fills_its_pages_one_after_another() {
        let mut pages = Pages::new(Content::whole(vec![1; PAYLOAD_BYTES + 5]), 0);
        assert_eq!(pages.next(), Next::Page(0, 0..PAYLOAD_BYTES));
        assert_eq!(pages.next(), Next::Page(1, PAYLOAD_BYTES..PAYLOAD_BYTES + 5));
        assert_eq!(pages.next(), Next::End);
        let mut empty = Pages::new(Content::whole(vec![]), 0);
        assert_eq!(empty.next(), Next::Page(0, 0..0));
        assert_eq!(empty.next(), Next::End);
    }

    #[test]
    fn pieces_are_asked_for_once_and_a_page_goes_out_when_it_is_full() {
        let mut pages = Pages::new(Content::in_pieces(PAYLOAD_BYTES as u64 + 5, true), 7);
        assert_eq!(pages.next(), Next::Piece);
        assert_eq!(pages.next(), Next::Wait);
        pages.take(&[1; 30]);
        assert_eq!(pages.next(), Next::Piece);
        pages.take(&[2; PAYLOAD_BYTES - 30]);
        assert_eq!(pages.next(), Next::Page(7, 0..PAYLOAD_BYTES));
        assert_eq!(pages.bytes[29..31], [1, 2]);
        assert_eq!(pages.next(), Next::Piece);
        pages.take(&[3; 5]);
        assert_eq!(pages.next(), Next::Page(8, 0..5));
        assert_eq!((pages.next(), pages.end()), (Next::End, 9));
    }
}
