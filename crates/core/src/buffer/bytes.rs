//! The bytes of a buffer, with the checksums of its blocks.

use super::BufferSlice;
use crate::crc;
use crate::units::BLOCK_BYTES;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

/// Blocks of bytes. A checksum is taken once: it is remembered until the block is lent to a writer, and
/// goes with a copy. Most blocks are summed by more than one layer on their way: what a read compares
/// goes to a store of copies, what a log has goes home.
pub(super) struct Bytes {
    storage: Box<[u8]>,
    /// The first multiple of the block size inside the allocation, for direct I/O.
    start: usize,
    /// By block; `None` where nobody has asked since it changed.
    sums: Box<[Cell<Option<u32>>]>,
}

impl Bytes {
    /// Blocks of zeroes.
    pub fn new(blocks: usize) -> Bytes {
        let align = BLOCK_BYTES as usize;
        let storage = vec![0u8; (blocks + 1) * align].into_boxed_slice();
        let start = storage.as_ptr().align_offset(align);
        let sums = vec![Cell::new(None); blocks].into_boxed_slice();
        Bytes { storage, start, sums }
    }

    /// The bytes of a slice.
    pub fn get(&self, slice: BufferSlice) -> &[u8] {
        &self.storage[self.range(slice)]
    }

    /// The bytes of a slice, to be written: their checksums are forgotten.
    pub fn get_mut(&mut self, slice: BufferSlice) -> &mut [u8] {
        for sum in &mut self.sums[blocks_of(slice)] {
            *sum.get_mut() = None;
        }
        let range = self.range(slice);
        &mut self.storage[range]
    }

    /// The bytes of several slices, as [`get_mut`](Self::get_mut): each with its number to `take`, in the order of
    /// their blocks.
    pub fn get_many_mut<'a>(
        &'a mut self,
        slices: &[(BufferSlice, usize)],
        take: &mut impl FnMut(usize, &'a mut [u8]),
    ) {
        let block = BLOCK_BYTES as usize;
        let (mut rest, mut next) = (&mut self.storage[self.start..], 0);
        for (slice, number) in slices {
            let Range { start, end } = blocks_of(*slice);
            for sum in &mut self.sums[start..end] {
                *sum.get_mut() = None;
            }
            let (_, from) = rest.split_at_mut((start - next) * block);
            let (bytes, behind) = from.split_at_mut((end - start) * block);
            (rest, next) = (behind, end);
            take(*number, bytes);
        }
    }

    /// Copies a slice of another buffer into `to`, which is as long.
    pub fn copy_from(&mut self, to: BufferSlice, source: &Bytes, from: BufferSlice) {
        let range = self.range(to);
        self.storage[range].copy_from_slice(source.get(from));
        let known = &source.sums[blocks_of(from)];
        for (sum, known) in self.sums[blocks_of(to)].iter().zip(known) {
            sum.set(known.get());
        }
    }

    /// Copies a slice into `to`, which is as long and may overlap it.
    pub fn copy_within(&mut self, from: BufferSlice, to: BufferSlice) {
        let (from, first) = (self.range(from), self.range(to).start);
        self.get_mut(to);
        self.storage.copy_within(from, first);
    }

    /// Appends the CRC-32C of each block of a slice.
    pub fn checksum(&self, slice: BufferSlice, out: &mut Vec<u32>) {
        let blocks = self.get(slice).chunks_exact(BLOCK_BYTES as usize);
        let sums = &self.sums[blocks_of(slice)];
        out.extend(blocks.zip(sums).map(|(block, sum)| {
            sum.get().unwrap_or_else(|| {
                let taken = crc::crc32c(block);
                sum.set(Some(taken));
                taken
            })
        }));
    }

    fn range(&self, slice: BufferSlice) -> Range<usize> {
        let block = BLOCK_BYTES as usize;
        let Range { start, end } = blocks_of(slice);
        self.start + start * block..self.start + end * block
    }
}

fn blocks_of(slice: BufferSlice) -> Range<usize> {
    let first = slice.first_block() as usize;
    first..first + slice.blocks as usize
}

#[cfg(test)]
mod tests {
    use crate::buffer::{BufferSlice, Buffers, ContentKind};
    use crate::rng::Rng;
    use alloc::vec::Vec;

    const BLOCKS: u64 = 16;

    #[test]
    fn many_slices_are_lent_at_once_and_their_checksums_forgotten() {
        let mut buffers = Buffers::new(ContentKind::Bytes);
        let held: [BufferSlice; 3] = core::array::from_fn(|_| buffers.allocate(BLOCKS));
        let slices = [
            (held[0].part(1, 2), 3),
            (held[0].part(3, 1), 0),
            (held[2].part(0, 1), 2),
            (held[2].part(15, 1), 1),
        ];
        let mut sums = Vec::new();
        held.iter().for_each(|whole| buffers.checksum(*whole, &mut sums));
        let mut lengths = [0; 4];
        buffers.many_bytes_mut(&slices, |number, bytes| {
            bytes.fill(number as u8 + 1);
            lengths[number] = bytes.len();
        });
        assert_eq!(lengths, [4096, 4096, 4096, 8192]);
        for whole in held {
            for block in 0..BLOCKS {
                let block = whole.part(block, 1);
                let within = |(slice, _): &&(BufferSlice, usize)| {
                    slice.buffer() == block.buffer()
                        && (slice.first_block()..slice.first_block() + slice.blocks)
                            .contains(&block.first_block())
                };
                let expected =
                    slices.iter().find(within).map_or(0, |(_, number)| *number as u8 + 1);
                let bytes = buffers.bytes(block).expect("bytes");
                assert!(bytes.iter().all(|byte| *byte == expected), "{block:?}");
                let mut sum = Vec::new();
                buffers.checksum(block, &mut sum);
                assert_eq!(sum, [crc32c::crc32c(buffers.bytes(block).expect("bytes"))]);
            }
        }
    }

    fn some_part(of: BufferSlice, blocks: u64, rng: &mut Rng) -> BufferSlice {
        of.part(rng.below(BLOCKS - blocks + 1), blocks)
    }

    #[test]
    fn a_remembered_checksum_is_that_of_the_bytes_whatever_changed_them() {
        let mut rng = Rng::new(26, 0);
        let mut buffers = Buffers::new(ContentKind::Bytes);
        let mut held: [BufferSlice; 3] = core::array::from_fn(|_| buffers.allocate(BLOCKS));
        for round in 0..4000 {
            let blocks = 1 + rng.below(BLOCKS);
            let [a, b] = [rng.below(3) as usize, rng.below(3) as usize];
            let from = some_part(held[a], blocks, &mut rng);
            let to = some_part(held[b], blocks, &mut rng);
            match rng.below(7) {
                0 => buffers.bytes_mut(to).expect("bytes").fill(round as u8),
                1 | 2 => buffers.copy(from, to),
                3 if a != b => buffers.xor(from, to),
                4 => buffers.zero(to),
                5 => buffers.fill_metadata(to, &[round as u8; 100]),
                _ => {
                    buffers.release(held[a]);
                    held[a] = buffers.allocate(BLOCKS);
                }
            }
            let slice = some_part(held[a], blocks, &mut rng);
            let mut found = Vec::new();
            buffers.checksum(slice, &mut found);
            let bytes = buffers.bytes(slice).expect("bytes");
            let taken: Vec<u32> = bytes.chunks_exact(4096).map(crc32c::crc32c).collect();
            assert_eq!(found, taken, "after {round} rounds");
        }
    }
}
