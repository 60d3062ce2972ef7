//! What a table that may be blank says of a block: a word for each.
//!
//! The word of a block of zeroes is 0, so a page on which nothing was ever written speaks of blocks
//! of zeroes.

/// CRC-32C of a block of zeroes.
pub const ZERO_SUM: u32 = 0x98f9_4189;
/// The word of a block of which nobody knows what it must be.
pub const NOTHING: u32 = u32::MAX - 1;
/// The word that no block has: whatever is read there is wrong.
pub const BAD: u32 = u32::MAX;

/// The word of a block with this checksum.
#[inline]
pub(crate) fn word_of(sum: u32) -> u32 {
    match sum ^ ZERO_SUM {
        // No block has the two words that mean something else.
        word if word >= NOTHING => word - 2,
        word => word,
    }
}

/// True when a block with this checksum is what a table says, or the table does not say.
#[inline]
pub(crate) fn is_right(word: u32, sum: u32) -> bool {
    word == NOTHING || word == word_of(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BLOCK_BYTES;

    #[test]
    fn zeroes_have_the_word_of_a_blank_page_and_nothing_has_the_bad_one() {
        assert_eq!(crc32c::crc32c(&[0; BLOCK_BYTES as usize]), ZERO_SUM);
        assert_eq!(word_of(ZERO_SUM), 0);
        for word in [0, 1, NOTHING - 2, NOTHING - 1, NOTHING, BAD] {
            let sum = word ^ ZERO_SUM;
            assert!(is_right(word_of(sum), sum) && is_right(NOTHING, sum));
            assert!(!is_right(BAD, sum));
        }
    }
}
