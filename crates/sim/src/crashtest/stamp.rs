//! What the host writes into a block, and what it makes of the blocks it reads.

use imbrex_core::rng::Rng;
use imbrex_core::units::BLOCK_BYTES;

/// Bytes of a stamp; a block is this many bytes again and again.
const STAMP_BYTES: usize = 32;

/// What a block holds, as far as the host can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Zeroes.
    Zero,
    /// The data of the host's write with this number.
    Version(u64),
    /// A whole stamp of another address or another run.
    Foreign {
        /// The address in the stamp.
        lba: u64,
        /// The number of the write in the stamp.
        version: u64,
    },
    /// Parts of different writes, or no stamps at all.
    Mixed,
}

fn stamp(lba: u64, version: u64, seed: u64) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    bytes[..8].copy_from_slice(&lba.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes[16..24].copy_from_slice(&seed.to_le_bytes());
    // Not a CRC: with its own CRC inside, every stamp would have the same CRC, and the layers that
    // are tested check data by CRC.
    let sum = [version, seed].iter().fold(lba, |sum, word| Rng::new(sum, *word).next_u64());
    bytes[24..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Fills a block with stamps.
pub fn fill(block: &mut [u8], lba: u64, version: u64, seed: u64) {
    let stamp = stamp(lba, version, seed);
    for target in block.chunks_exact_mut(STAMP_BYTES) {
        target.copy_from_slice(&stamp);
    }
}

/// Says what a block that was read at `lba` holds.
pub fn read(block: &[u8], lba: u64, seed: u64) -> Found {
    debug_assert_eq!(block.len() as u64, BLOCK_BYTES);
    let (first, rest) = block.split_at(STAMP_BYTES);
    // The block repeats itself exactly when it equals itself moved by one stamp.
    if rest != &block[..block.len() - STAMP_BYTES] {
        return Found::Mixed;
    }
    if first.iter().all(|byte| *byte == 0) {
        return Found::Zero;
    }
    let word = |at: usize| u64::from_le_bytes(first[at..at + 8].try_into().expect("8 bytes"));
    let (found, version) = (word(0), word(8));
    if first != stamp(found, version, word(16)) {
        return Found::Mixed;
    }
    if found != lba || word(16) != seed {
        return Found::Foreign { lba: found, version };
    }
    Found::Version(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_block_depends_on_its_stamp() {
        let sum = |lba, version| {
            let mut block = vec![0; BLOCK_BYTES as usize];
            fill(&mut block, lba, version, 1);
            crc32c::crc32c(&block)
        };
        assert_ne!(sum(5, 9), sum(5, 10));
        assert_ne!(sum(5, 9), sum(6, 9));
    }

    #[test]
    fn lost_stale_misplaced_and_mixed_blocks_are_told_apart() {
        let mut block = vec![0; BLOCK_BYTES as usize];
        assert_eq!(read(&block, 5, 1), Found::Zero);
        fill(&mut block, 5, 9, 1);
        assert_eq!(read(&block, 5, 1), Found::Version(9));
        let foreign = Found::Foreign { lba: 5, version: 9 };
        assert_eq!(read(&block, 6, 1), foreign);
        assert_eq!(read(&block, 5, 2), foreign);
        for at in [0, 511, 512, 4095] {
            let mut damaged = block.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged, 5, 1), Found::Mixed, "byte {at}");
        }
        block[2048..].fill(0);
        assert_eq!(read(&block, 5, 1), Found::Mixed);
        assert_eq!(read(&[0xdb; BLOCK_BYTES as usize], 5, 1), Found::Mixed);
    }
}
