//! Reads of a file that were asked for together, made in few calls of the system.

use super::bounce::Bounce;
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::operation::RequestId;
use imbrex_core::units::BLOCK_BYTES;
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags};
use std::fs::File;
use std::ops::Range;

/// Most bytes between two reads of a call, which are read and thrown away. On a tmpfs a call takes as long as the
/// copy of a block or two.
const GAP_MAX: u64 = 3 * BLOCK_BYTES;
/// Most bytes of a call.
const STRETCH_MAX: u64 = 1 << 20;
/// Most pieces of memory of a call: reads and gaps.
const PIECES_MAX: usize = 128;

/// A read that waits for the others of its round.
#[derive(Clone, Copy)]
pub(super) struct GatheredRead {
    pub id: RequestId,
    pub offset: u64,
    pub buffer: BufferSlice,
}

impl GatheredRead {
    fn bytes(&self) -> u64 {
        u64::from(self.buffer.blocks) * BLOCK_BYTES
    }

    /// The offset behind it.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes()
    }
}

/// Reads that wait to be made, and the memory with which they are.
#[derive(Default)]
pub(super) struct Gathered {
    reads: Vec<GatheredRead>,
    /// Used within one call only: the buffers of its reads, each with the number of its piece.
    buffers: Vec<(BufferSlice, usize)>,
    /// What lies between reads.
    gaps: Bounce,
}

impl Gathered {
    /// Has a read wait.
    pub fn push(&mut self, read: GatheredRead) {
        self.reads.push(read);
    }

    /// True when no read waits.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// The reads that wait.
    pub fn reads(&self) -> &[GatheredRead] {
        &self.reads
    }

    /// All of them have been made.
    pub fn clear(&mut self) {
        self.reads.clear();
    }

    /// Puts the reads into the order of their offsets.
    pub fn sort(&mut self) {
        self.reads.sort_unstable_by_key(|read| read.offset);
    }

    /// The sorted reads from `first` on that one call can make.
    pub fn stretch(&self, first: usize) -> Range<usize> {
        let start = self.reads[first].offset;
        let (mut end, mut pieces) = (first + 1, 1);
        while let Some(read) = self.reads.get(end) {
            let before = self.reads[end - 1].end();
            let Some(gap) = read.offset.checked_sub(before) else { break };
            pieces += 1 + usize::from(gap > 0);
            if gap > GAP_MAX || read.end() - start > STRETCH_MAX || pieces > PIECES_MAX {
                break;
            }
            end += 1;
        }
        first..end
    }

    /// Makes the reads of a stretch with one call. Answers up to which offset all bytes are there.
    pub fn make(
        &mut self,
        stretch: Range<usize>,
        file: &File,
        flags: ReadWriteFlags,
        buffers: &mut Buffers,
    ) -> Result<u64, Errno> {
        let reads = &self.reads[stretch];
        let (start, end) = (reads[0].offset, reads[reads.len() - 1].end());
        let wanted: u64 = reads.iter().map(GatheredRead::bytes).sum();
        self.gaps.resize((end - start - wanted) as usize);
        let mut gaps = self.gaps.bytes_mut();
        let mut pieces: [IoSliceMut<'_>; PIECES_MAX] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        self.buffers.clear();
        let (mut next, mut at) = (0, start);
        for read in reads {
            if read.offset > at {
                let (gap, others) = gaps.split_at_mut((read.offset - at) as usize);
                gaps = others;
                pieces[next] = IoSliceMut::new(gap);
                next += 1;
            }
            self.buffers.push((read.buffer, next));
            next += 1;
            at = read.end();
        }
        self.buffers.sort_unstable_by_key(|(buffer, _)| buffer.place());
        buffers.many_bytes_mut(&self.buffers, |piece, bytes| {
            pieces[piece] = IoSliceMut::new(bytes);
        });
        let pieces = &mut pieces[..next];
        let filled = match flags.is_empty() {
            true => rustix::io::preadv(file, pieces, start),
            false => rustix::io::preadv2(file, pieces, start, flags),
        }?;
        Ok(start + filled as u64)
    }
}
