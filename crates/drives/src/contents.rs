//! What the blocks of a simulated disk hold.

use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind, Stamp};
use imbrex_core::disk::TrackTable;
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::units::BLOCK_BYTES;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Bytes of a block that an overlapping track was written over.
const DESTROYED_BYTE: u8 = 0xdb;

/// Blocks that are kept together.
const CHUNK_BLOCKS: u64 = 16;

/// Bytes zeroed or destroyed in one write to a file.
const FILL_BYTES: u64 = 1 << 20;

/// The blocks of a disk.
pub enum Contents {
    /// Nothing is kept: reads leave their buffers alone.
    Nothing,
    /// A stamp per block.
    Stamps(Sparse<Stamp>),
    /// The data, in memory.
    Memory(Sparse<u8>),
    /// The data, in a sparse file as long as the disk.
    File(File),
}

impl Contents {
    /// An empty disk of `blocks` blocks whose contents fit buffers of `kind`. With a `file`, bytes
    /// are kept there; what it already holds is the contents. A new file is its owner's alone.
    ///
    /// # Errors
    /// When the file cannot be opened or made as long as the disk.
    pub fn open(kind: ContentKind, blocks: u64, file: Option<&Path>) -> io::Result<Contents> {
        Ok(match (kind, file) {
            (ContentKind::Counted, _) => Contents::Nothing,
            (ContentKind::Stamped, _) => Contents::Stamps(Sparse::new(Stamp::ZERO, 1)),
            (ContentKind::Bytes, None) => Contents::Memory(Sparse::new(0, BLOCK_BYTES)),
            (ContentKind::Bytes, Some(path)) => {
                let mut options = File::options();
                let file = options
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .mode(0o600)
                    .open(path)?;
                file.set_len(blocks * BLOCK_BYTES)?;
                Contents::File(file)
            }
        })
    }

    /// True when nothing is kept.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        matches!(self, Contents::Nothing)
    }

    /// Fills the buffer from `extent`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(
        &self,
        extent: Extent,
        buffer: BufferSlice,
        buffers: &mut Buffers,
    ) -> Result<(), IoError> {
        let start = extent.start.0;
        match self {
            Contents::Nothing => {}
            Contents::Stamps(stamps) => stamps.read(start, expect(buffers.stamps_mut(buffer))),
            Contents::Memory(bytes) => bytes.read(start, expect(buffers.bytes_mut(buffer))),
            Contents::File(file) => file
                .read_exact_at(expect(buffers.bytes_mut(buffer)), start * BLOCK_BYTES)
                .map_err(io_error)?,
        }
        Ok(())
    }

    /// Stores the buffer in `extent`, track by track in address order; where `tracks` overlap, each
    /// track destroys the same angular range of the tracks that it overlaps, those of `extent` that
    /// were stored before it among them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(
        &mut self,
        extent: Extent,
        buffer: BufferSlice,
        buffers: &Buffers,
        tracks: Option<&TrackTable>,
    ) -> Result<(), IoError> {
        if let Contents::Nothing = self {
            return Ok(());
        }
        let Some(tracks) = tracks.filter(|tracks| tracks.overlap_tracks > 0) else {
            return self.store(extent.start.0, buffer, buffers);
        };
        let mut at = extent.start.0;
        while at < extent.end().0 {
            let track = tracks.extent_of(tracks.track_of(at));
            let end = track.end().0.min(extent.end().0);
            let part = buffer.part(at - extent.start.0, end - at);
            self.store(at, part, buffers)?;
            for lost in tracks.destroyed_by(Extent::new(at, end - at)) {
                self.destroy(lost)?;
            }
            at = end;
        }
        Ok(())
    }

    fn destroy(&mut self, extent: Extent) -> Result<(), IoError> {
        match self {
            Contents::Nothing => {}
            Contents::Stamps(stamps) => stamps.fill(extent, Stamp::DESTROYED),
            Contents::Memory(bytes) => bytes.fill(extent, DESTROYED_BYTE),
            Contents::File(file) => fill_file(file, extent, DESTROYED_BYTE)?,
        }
        Ok(())
    }

    fn store(&mut self, start: u64, buffer: BufferSlice, buffers: &Buffers) -> Result<(), IoError> {
        match self {
            Contents::Nothing => {}
            Contents::Stamps(stamps) => stamps.write(start, expect(buffers.stamps(buffer))),
            Contents::Memory(bytes) => bytes.write(start, expect(buffers.bytes(buffer))),
            Contents::File(file) => file
                .write_all_at(expect(buffers.bytes(buffer)), start * BLOCK_BYTES)
                .map_err(io_error)?,
        }
        Ok(())
    }

    /// Makes `extent` read as zeroes and gives its room back.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn zero(&mut self, extent: Extent) -> Result<(), IoError> {
        match self {
            Contents::Nothing => Ok(()),
            Contents::Stamps(stamps) => {
                stamps.clear(extent);
                Ok(())
            }
            Contents::Memory(bytes) => {
                bytes.clear(extent);
                Ok(())
            }
            Contents::File(file) => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let (start, length) = (extent.start.0 * BLOCK_BYTES, extent.blocks.bytes());
                match rustix::fs::fallocate(&*file, flags, start, length) {
                    Ok(()) => Ok(()),
                    // Not every file system makes holes.
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill_file(file, extent, 0),
                    Err(errno) => Err(io_error(errno.into())),
                }
            }
        }
    }
}

/// The contents and the buffers of one engine are of one kind.
fn expect<T>(data: Option<T>) -> T {
    data.expect("the disk and the buffers hold the same kind of content")
}

fn fill_file(file: &File, extent: Extent, byte: u8) -> Result<(), IoError> {
    let fill = vec![byte; FILL_BYTES.min(extent.blocks.bytes()) as usize];
    let (mut at, end) = (extent.start.0 * BLOCK_BYTES, extent.end().0 * BLOCK_BYTES);
    while at < end {
        let length = (end - at).min(FILL_BYTES);
        file.write_all_at(&fill[..length as usize], at).map_err(io_error)?;
        at += length;
    }
    Ok(())
}

fn io_error(error: io::Error) -> IoError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => IoError::NoSpace,
        _ => IoError::Medium,
    }
}

/// Blocks of `unit` elements each, kept only where they were written.
pub struct Sparse<T> {
    zero: T,
    unit: u64,
    chunks: BTreeMap<u64, Box<[T]>>,
}

impl<T: Copy> Sparse<T> {
    fn new(zero: T, unit: u64) -> Sparse<T> {
        Sparse { zero, unit, chunks: BTreeMap::new() }
    }

    fn read(&self, start: u64, target: &mut [T]) {
        let blocks = target.len() as u64 / self.unit;
        for part in parts(Extent::new(start, blocks)) {
            let target = &mut target[part.range(self.unit, part.done)];
            match self.chunks.get(&part.chunk) {
                Some(chunk) => target.copy_from_slice(&chunk[part.range(self.unit, part.first)]),
                None => target.fill(self.zero),
            }
        }
    }

    fn write(&mut self, start: u64, source: &[T]) {
        let blocks = source.len() as u64 / self.unit;
        for part in parts(Extent::new(start, blocks)) {
            let source = &source[part.range(self.unit, part.done)];
            let inside = part.range(self.unit, part.first);
            self.chunk(part.chunk)[inside].copy_from_slice(source);
        }
    }

    fn fill(&mut self, extent: Extent, value: T) {
        for part in parts(extent) {
            let inside = part.range(self.unit, part.first);
            self.chunk(part.chunk)[inside].fill(value);
        }
    }

    /// Drops whole chunks and clears the ends; costs what is held there, not the length.
    fn clear(&mut self, extent: Extent) {
        let (first, last) = (extent.start.0 / CHUNK_BLOCKS, extent.end().0.div_ceil(CHUNK_BLOCKS));
        let held: Vec<u64> = self.chunks.range(first..last).map(|(chunk, _)| *chunk).collect();
        for chunk in held {
            let whole = Extent::new(chunk * CHUNK_BLOCKS, CHUNK_BLOCKS);
            if extent.covers(whole) {
                self.chunks.remove(&chunk);
            } else if let Some(part) = extent.intersection(whole) {
                self.fill(part, self.zero);
            }
        }
    }

    fn chunk(&mut self, chunk: u64) -> &mut [T] {
        let length = (CHUNK_BLOCKS * self.unit) as usize;
        let zero = self.zero;
        self.chunks.entry(chunk).or_insert_with(|| vec![zero; length].into_boxed_slice())
    }
}

/// The part of an extent in one chunk, in blocks.
struct Part {
    chunk: u64,
    /// First block in the chunk.
    first: u64,
    /// Blocks of the extent before it.
    done: u64,
    blocks: u64,
}

impl Part {
    fn range(&self, unit: u64, from: u64) -> std::ops::Range<usize> {
        (from * unit) as usize..((from + self.blocks) * unit) as usize
    }
}

fn parts(extent: Extent) -> impl Iterator<Item = Part> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == extent.blocks.0 {
            return None;
        }
        let at = extent.start.0 + done;
        let (chunk, first) = (at / CHUNK_BLOCKS, at % CHUNK_BLOCKS);
        let blocks = (extent.blocks.0 - done).min(CHUNK_BLOCKS - first);
        done += blocks;
        Some(Part { chunk, first, done: done - blocks, blocks })
    })
}
