//! CRC-32C (RFC 3720, appendix B.4), the checksum of blocks and of all that is recorded.

use crc_fast::CrcAlgorithm::Crc32Iscsi;
use crc_fast::Digest;

/// The checksum of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The checksum of bytes that have the checksum `before` and are followed by `bytes`. That of no bytes is 0.
pub fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    // A checksum is the state of the register, inverted.
    let mut digest = Digest::new_with_init_state(Crc32Iscsi, u64::from(!before));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn the_checksums_are_those_of_the_standard() {
        // RFC 3720, B.4: 32 bytes of zeroes, of ones, and counted up.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let counted: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&counted), 0x46dd_794e);
        assert_eq!(crc32c(&[]), 0);
    }

    proptest! {
        /// Whatever the length, the place in memory and the pieces, another library says the same.
        #[test]
        fn another_library_says_the_same(
            bytes in prop::collection::vec(any::<u8>(), 0..9000), from in 0usize..64, cut in any::<prop::sample::Index>(),
        ) {
            let bytes = &bytes[from.min(bytes.len())..];
            let expected = ::crc32c::crc32c(bytes);
            prop_assert_eq!(crc32c(bytes), expected);
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(crc32c_append(crc32c(head), tail), expected);
        }
    }
}
