//! The data plane: layers move handles, the engine owns what they name.
//!
//! Three kinds of content share one implementation. *Counted* holds sizes only, for performance
//! simulation. *Stamped* holds one [`Stamp`] per block, so that a test can tell lost, stale and
//! misplaced data apart. *Bytes* holds the data itself, for serving.

mod bytes;

use crate::crc;
use crate::saved::{Saved, SavedReader, SavedValue, SavedWriter};
use crate::state::StateError;
use crate::units::{BLOCK_BYTES, Lba};
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// Names a buffer of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, SavedValue)]
pub struct BufferId(u32);

/// A run of blocks in a buffer.
// The compiler copies these twelve bytes as a word and half a word. A processor waits where it reads a word that was just
// written as two halves, so the fields are the pieces that are copied. Without `packed` a slice would take 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(Rust, packed(4))]
pub struct BufferSlice {
    /// The buffer, and in the lower half the first block of the run in it.
    place: u64,
    /// Blocks in the run.
    pub blocks: u32,
}

impl Default for BufferSlice {
    fn default() -> BufferSlice {
        BufferSlice::EMPTY
    }
}

impl BufferSlice {
    /// No data, for operations that move none.
    pub const EMPTY: BufferSlice = BufferSlice { place: (u32::MAX as u64) << 32, blocks: 0 };

    /// The first blocks of a buffer.
    #[inline]
    fn of(buffer: BufferId, blocks: u32) -> BufferSlice {
        BufferSlice { place: u64::from(buffer.0) << 32, blocks }
    }

    /// The buffer.
    #[inline]
    pub fn buffer(self) -> BufferId {
        BufferId((self.place >> 32) as u32)
    }

    /// First block of the run in the buffer.
    #[inline]
    pub fn first_block(self) -> u32 {
        self.place as u32
    }

    /// Where it lies among all slices: sorted by this they are in the order of buffers and blocks.
    pub fn place(self) -> u64 {
        self.place
    }

    /// The `blocks` blocks from `first` of this slice. Panics when they are not all inside.
    #[inline]
    pub fn part(self, first: u64, blocks: u64) -> BufferSlice {
        assert!(first + blocks <= u64::from(self.blocks), "a part outside its slice");
        // A run ends within its buffer, so the lower half does not overflow.
        BufferSlice { place: self.place + first, blocks: blocks as u32 }
    }
}

/// As the two numbers: nothing may refer to the first where it lies.
impl SavedValue for BufferSlice {
    fn put_into(&self, to: &mut SavedWriter) {
        (self.place, self.blocks).put_into(to);
    }

    fn take_from(from: &mut SavedReader<'_>) -> Result<BufferSlice, StateError> {
        let (place, blocks) = SavedValue::take_from(from)?;
        Ok(BufferSlice { place, blocks })
    }
}

impl fmt::Debug for BufferSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, buffer, blocks) = (self.first_block(), self.buffer(), self.blocks);
        write!(f, "{blocks} blocks from {first} of {buffer:?}")
    }
}

/// What a block of a stamped buffer or medium holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// Where the writer meant it to go.
    pub lba: Lba,
    /// Which write of that address it was; 0 is a block of zeroes.
    pub version: u64,
}

impl Stamp {
    /// A block of zeroes, as an unwritten or zeroed block reads.
    pub const ZERO: Stamp = Stamp { lba: Lba(0), version: 0 };
    /// What is left of a block that an overlapping track was written over.
    pub const DESTROYED: Stamp = Stamp { lba: Lba(u64::MAX), version: u64::MAX };
}

/// What the buffers of an engine hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentKind {
    /// Sizes only.
    Counted,
    /// A stamp per block.
    Stamped,
    /// The data.
    Bytes,
}

enum Content {
    Counted,
    Stamps(Vec<Stamp>),
    Bytes(Bytes),
}

#[derive(SavedValue)]
struct Buffer {
    /// As many as were asked for.
    blocks: u32,
    /// Issued operations that still hold a part of it.
    lent: u32,
    /// Those of them that a disk has.
    at_disk: u32,
    allocated: bool,
    content: Content,
}

/// The state of a stack is saved where sizes alone are simulated.
impl SavedValue for Content {
    fn put_into(&self, _to: &mut SavedWriter) {}

    fn take_from(_from: &mut SavedReader<'_>) -> Result<Content, StateError> {
        Ok(Content::Counted)
    }
}

/// The buffers of one engine.
#[derive(Saved)]
pub struct Buffers {
    #[saved(keep)]
    kind: ContentKind,
    slab: Vec<Buffer>,
    /// Free buffers by the power of two of their capacity.
    free: [Vec<u32>; SIZE_CLASSES],
    /// Places in the slab whose content was given back to the system.
    vacant: Vec<u32>,
    /// Capacity of the free buffers.
    free_blocks: u64,
}

/// Capacities are powers of two up to 2^30 blocks.
const SIZE_CLASSES: usize = 31;
/// Free buffers of bytes are kept up to this capacity (64 MiB), so that a burst of large requests
/// does not hold its memory for ever.
const FREE_BLOCKS_MAX: u64 = 16_384;

/// The power of two of the capacity of a buffer of so many blocks, at least one.
#[inline(always)]
fn class_of(blocks: u32) -> usize {
    (u32::BITS - (blocks - 1).leading_zeros()) as usize
}

impl Buffers {
    /// Buffers of the given kind, none allocated yet.
    pub fn new(kind: ContentKind) -> Buffers {
        Buffers {
            kind,
            slab: Vec::new(),
            free: core::array::from_fn(|_| Vec::new()),
            vacant: Vec::new(),
            free_blocks: 0,
        }
    }

    /// What the buffers hold.
    pub fn kind(&self) -> ContentKind {
        self.kind
    }

    /// A buffer of `blocks` blocks, its content unspecified. Returns [`BufferSlice::EMPTY`] for
    /// none. Reuses released buffers, so a steady state allocates nothing.
    #[inline]
    pub fn allocate(&mut self, blocks: u64) -> BufferSlice {
        if blocks == 0 {
            return BufferSlice::EMPTY;
        }
        assert!(blocks <= 1 << (SIZE_CLASSES - 1), "a buffer of {blocks} blocks");
        let class = class_of(blocks as u32);
        let index = match self.free[class].pop() {
            Some(index) => {
                self.free_blocks -= 1 << class;
                index
            }
            None => self.add_buffer(1 << class),
        };
        let buffer = &mut self.slab[index as usize];
        assert!(!buffer.allocated && buffer.lent == 0, "a free buffer is in use");
        buffer.allocated = true;
        buffer.blocks = blocks as u32;
        BufferSlice::of(BufferId(index), blocks as u32)
    }

    /// A place in the slab with new content.
    #[cold]
    fn add_buffer(&mut self, blocks: usize) -> u32 {
        let buffer = Buffer {
            blocks: 0,
            lent: 0,
            at_disk: 0,
            allocated: false,
            content: self.new_content(blocks),
        };
        match self.vacant.pop() {
            Some(index) => {
                self.slab[index as usize] = buffer;
                index
            }
            None => {
                self.slab.push(buffer);
                (self.slab.len() - 1) as u32
            }
        }
    }

    fn new_content(&self, blocks: usize) -> Content {
        match self.kind {
            ContentKind::Counted => Content::Counted,
            ContentKind::Stamped => Content::Stamps(vec![Stamp::ZERO; blocks]),
            ContentKind::Bytes => Content::Bytes(Bytes::new(blocks)),
        }
    }

    /// Gives a buffer back. Takes the whole slice that [`allocate`](Self::allocate) returned;
    /// panics while an issued operation holds a part of it.
    #[inline(always)]
    pub fn release(&mut self, slice: BufferSlice) {
        if slice.blocks == 0 {
            return;
        }
        let buffer = &mut self.slab[slice.buffer().0 as usize];
        assert!(buffer.allocated, "a buffer was released twice");
        assert!(buffer.lent == 0, "a buffer was released while an operation held it");
        assert!(slice.first_block() == 0 && slice.blocks == buffer.blocks, "a part was released");
        buffer.allocated = false;
        let class = class_of(slice.blocks);
        if matches!(buffer.content, Content::Bytes(_)) && !self.keeps_bytes(slice.buffer(), class) {
            return;
        }
        self.free_blocks += 1 << class;
        self.free[class].push(slice.buffer().0);
    }

    /// Whether a buffer of bytes that was released is kept for the next one who asks. One that held a report is another one
    /// by then.
    fn keeps_bytes(&mut self, buffer: BufferId, class: usize) -> bool {
        if self.kind != ContentKind::Bytes {
            self.slab[buffer.0 as usize].content = self.new_content(1 << class);
            return true;
        }
        let keeps = self.free_blocks + (1 << class) <= FREE_BLOCKS_MAX;
        if !keeps {
            self.slab[buffer.0 as usize].content = Content::Counted;
            self.vacant.push(buffer.0);
        }
        keeps
    }

    /// How many buffers are allocated: none when a stack is quiet.
    pub fn allocated(&self) -> usize {
        self.slab.iter().filter(|buffer| buffer.allocated).count()
    }

    /// How many blocks the allocated buffers hold together.
    pub fn allocated_blocks(&self) -> u64 {
        let allocated = self.slab.iter().filter(|buffer| buffer.allocated);
        allocated.map(|buffer| u64::from(buffer.blocks)).sum()
    }

    /// An operation goes to a layer with the slice.
    #[inline]
    pub(crate) fn lend_to_layer(&mut self, slice: BufferSlice) {
        self.lend(slice);
    }

    /// Lends a slice to an operation, and answers its buffer; none where there is no data.
    #[inline(always)]
    fn lend(&mut self, slice: BufferSlice) -> Option<&mut Buffer> {
        if slice.blocks == 0 {
            return None;
        }
        let buffer = &mut self.slab[slice.buffer().0 as usize];
        assert!(buffer.allocated, "an operation was issued with a released buffer");
        assert!(slice.first_block() + slice.blocks <= buffer.blocks, "a slice past its buffer");
        buffer.lent += 1;
        Some(buffer)
    }

    #[inline]
    pub(crate) fn give_back(&mut self, slice: BufferSlice) {
        if slice.blocks > 0 {
            self.slab[slice.buffer().0 as usize].lent -= 1;
        }
    }

    /// An operation goes to a disk with the slice.
    #[inline]
    pub(crate) fn lend_to_disk(&mut self, slice: BufferSlice) {
        if let Some(buffer) = self.lend(slice) {
            buffer.at_disk += 1;
        }
    }

    /// The disk is done with it.
    #[inline]
    pub(crate) fn take_from_disk(&mut self, slice: BufferSlice) {
        if slice.blocks > 0 {
            self.slab[slice.buffer().0 as usize].at_disk -= 1;
        }
    }

    /// True when a disk holds a part of the slice's buffer.
    #[inline]
    pub(crate) fn is_at_disk(&self, slice: BufferSlice) -> bool {
        slice.blocks > 0 && self.slab[slice.buffer().0 as usize].at_disk > 0
    }

    /// The data of a slice; `None` unless the buffers hold bytes.
    pub fn bytes(&self, slice: BufferSlice) -> Option<&[u8]> {
        if slice.blocks == 0 {
            return (self.kind == ContentKind::Bytes).then_some(&[]);
        }
        match &self.slab[slice.buffer().0 as usize].content {
            Content::Bytes(bytes) => Some(bytes.get(slice)),
            _ => None,
        }
    }

    /// The data of a slice, to be written; `None` unless the buffers hold bytes.
    pub fn bytes_mut(&mut self, slice: BufferSlice) -> Option<&mut [u8]> {
        if slice.blocks == 0 {
            return (self.kind == ContentKind::Bytes).then_some(&mut []);
        }
        match &mut self.slab[slice.buffer().0 as usize].content {
            Content::Bytes(bytes) => Some(bytes.get_mut(slice)),
            _ => None,
        }
    }

    /// The data of several slices, to be written at once: gives each with its number to `take`. The slices are in
    /// the order of buffers and blocks, and none overlaps another. Panics when that is not so, and unless the
    /// buffers hold bytes.
    pub fn many_bytes_mut<'a>(
        &'a mut self,
        slices: &[(BufferSlice, usize)],
        mut take: impl FnMut(usize, &'a mut [u8]),
    ) {
        let (mut rest, mut first) = (&mut self.slab[..], 0);
        for slices in slices.chunk_by(|(a, _), (b, _)| a.buffer() == b.buffer()) {
            let buffer = slices[0].0.buffer().0 as usize;
            let (here, behind) = rest.split_at_mut(buffer + 1 - first);
            (rest, first) = (behind, buffer + 1);
            match here.last_mut().map(|buffer| &mut buffer.content) {
                Some(Content::Bytes(bytes)) => bytes.get_many_mut(slices, &mut take),
                _ => panic!("bytes of buffers that hold none"),
            }
        }
    }

    /// The stamps of a slice; `None` unless the buffers hold stamps.
    pub fn stamps(&self, slice: BufferSlice) -> Option<&[Stamp]> {
        if slice.blocks == 0 {
            return (self.kind == ContentKind::Stamped).then_some(&[]);
        }
        match &self.slab[slice.buffer().0 as usize].content {
            Content::Stamps(stamps) => {
                let from = slice.first_block() as usize;
                Some(&stamps[from..from + slice.blocks as usize])
            }
            _ => None,
        }
    }

    /// The stamps of a slice, to be written; `None` unless the buffers hold stamps.
    pub fn stamps_mut(&mut self, slice: BufferSlice) -> Option<&mut [Stamp]> {
        if slice.blocks == 0 {
            return (self.kind == ContentKind::Stamped).then_some(&mut []);
        }
        match &mut self.slab[slice.buffer().0 as usize].content {
            Content::Stamps(stamps) => {
                let from = slice.first_block() as usize;
                Some(&mut stamps[from..from + slice.blocks as usize])
            }
            _ => None,
        }
    }

    /// Copies `from` into `to`, which is as long. Panics when it is not.
    pub fn copy(&mut self, from: BufferSlice, to: BufferSlice) {
        if from.buffer() == to.buffer() && from.blocks > 0 {
            return self.copy_within(from, to);
        }
        self.combine(
            from,
            to,
            |_, source| source,
            |target, source| target.copy_from(to, source, from),
        );
    }

    /// Copies a part of a buffer over another part of it.
    fn copy_within(&mut self, from: BufferSlice, to: BufferSlice) {
        assert_eq!(from.blocks, to.blocks, "source and target differ in length");
        let (a, b) = (from.first_block() as usize, to.first_block() as usize);
        match &mut self.slab[from.buffer().0 as usize].content {
            Content::Counted => {}
            Content::Stamps(stamps) => stamps.copy_within(a..a + from.blocks as usize, b),
            Content::Bytes(bytes) => bytes.copy_within(from, to),
        }
    }

    /// Adds `from` into `to` without carry: the parity of the two.
    pub(crate) fn xor(&mut self, from: BufferSlice, to: BufferSlice) {
        self.combine(
            from,
            to,
            |a, b| Stamp { lba: Lba(a.lba.0 ^ b.lba.0), version: a.version ^ b.version },
            |target, source| {
                let bytes = target.get_mut(to).iter_mut().zip(source.get(from));
                bytes.for_each(|(t, s)| *t ^= s);
            },
        );
    }

    fn combine(
        &mut self,
        from: BufferSlice,
        to: BufferSlice,
        stamp: impl Fn(Stamp, Stamp) -> Stamp,
        bytes: impl Fn(&mut Bytes, &Bytes),
    ) {
        assert_eq!(from.blocks, to.blocks, "source and target differ in length");
        if from.blocks == 0 {
            return;
        }
        assert_ne!(from.buffer(), to.buffer(), "source and target are in one buffer");
        let indices = [from.buffer().0 as usize, to.buffer().0 as usize];
        let [source, target] =
            self.slab.get_disjoint_mut(indices).expect("two buffers of the slab");
        match (&source.content, &mut target.content) {
            (Content::Counted, Content::Counted) => {}
            (Content::Stamps(source), Content::Stamps(target)) => {
                let (a, b) = (from.first_block() as usize, to.first_block() as usize);
                for i in 0..from.blocks as usize {
                    target[b + i] = stamp(target[b + i], source[a + i]);
                }
            }
            (Content::Bytes(source), Content::Bytes(target)) => bytes(target, source),
            _ => unreachable!("buffers of one engine are of one kind"),
        }
    }

    /// Fills a slice with zeroes.
    pub(crate) fn zero(&mut self, slice: BufferSlice) {
        if slice.blocks == 0 {
            return;
        }
        if let Some(stamps) = self.stamps_mut(slice) {
            stamps.fill(Stamp::ZERO);
        } else if let Some(bytes) = self.bytes_mut(slice) {
            bytes.fill(0);
        }
    }

    /// Puts `record` at the start of a slice and zeroes after it.
    pub(crate) fn fill_metadata(&mut self, slice: BufferSlice, record: &[u8]) {
        assert!(record.len() as u64 <= u64::from(slice.blocks) * BLOCK_BYTES, "a record too long");
        self.zero(slice);
        if let Some(bytes) = self.bytes_mut(slice) {
            bytes[..record.len()].copy_from_slice(record);
        } else if let Some(stamps) = self.stamps_mut(slice) {
            let sum = u64::from(crc::crc32c(record));
            stamps[0] = Stamp { lba: Stamp::DESTROYED.lba, version: sum };
        }
    }

    /// Puts what a disk says of itself at the start of a whole buffer, as bytes whatever the buffers hold otherwise, and
    /// zeroes after it.
    pub(crate) fn fill_report(&mut self, slice: BufferSlice, report: &[u8]) {
        if self.kind != ContentKind::Bytes && slice.blocks > 0 {
            let capacity = slice.blocks.next_power_of_two() as usize;
            let buffer = &mut self.slab[slice.buffer().0 as usize];
            assert!(
                slice.first_block() == 0 && slice.blocks == buffer.blocks,
                "a part of a buffer"
            );
            if !matches!(buffer.content, Content::Bytes(_)) {
                buffer.content = Content::Bytes(Bytes::new(capacity));
            }
        }
        self.fill_metadata(slice, report);
    }

    /// One checksum per block of the slice, appended to `out`: CRC-32C of the bytes, a hash of the
    /// stamp, or a constant where nothing is held.
    pub(crate) fn checksum(&self, slice: BufferSlice, out: &mut Vec<u32>) {
        match self.kind {
            ContentKind::Counted => out.extend((0..slice.blocks).map(|_| 0)),
            ContentKind::Stamped => {
                let stamps = self.stamps(slice).unwrap_or(&[]);
                out.extend(stamps.iter().map(|stamp| {
                    let word = crc::crc32c(&stamp.lba.0.to_le_bytes());
                    crc::crc32c_append(word, &stamp.version.to_le_bytes())
                }));
            }
            ContentKind::Bytes => {
                if slice.blocks > 0
                    && let Content::Bytes(bytes) = &self.slab[slice.buffer().0 as usize].content
                {
                    bytes.checksum(slice, out);
                }
            }
        }
    }
}
