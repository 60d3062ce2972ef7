//! What a member holds: blocks that images share until one of them is written.

use super::subject::part_of;
use imbrex_core::disk::{Geometry, TrackTable};
use imbrex_core::extent::Extent;
use imbrex_core::label::LABEL_BLOCKS;
use imbrex_core::units::BLOCK_BYTES;
use std::rc::Rc;
use std::sync::Arc;

/// What a disk writes in one piece.
pub const SECTOR_BYTES: usize = 512;
/// Sectors of a block.
pub const SECTORS: usize = BLOCK_BYTES as usize / SECTOR_BYTES;
/// Bytes of a block that an overlapping track was written over.
const DESTROYED_BYTE: u8 = 0xdb;

/// The content of a block.
pub type Block = Rc<[u8; BLOCK_BYTES as usize]>;

/// A block with the given bytes.
pub fn block_of(bytes: &[u8]) -> Block {
    Rc::new(bytes.try_into().expect("the bytes of one block"))
}

/// Blocks that a medium shares with its clones until one of them is written.
const CHUNK_BLOCKS: usize = 64;

/// The contents of one member. A clone shares every block with its original.
#[derive(Clone)]
pub struct Medium {
    /// The last has more blocks than the medium where that does not end with it.
    chunks: Vec<Rc<[Block; CHUNK_BLOCKS]>>,
    len: u64,
    zero: Block,
    destroyed: Block,
    tracks: Option<Arc<TrackTable>>,
    is_trusted: bool,
    parts: Rc<[Extent]>,
}

impl Medium {
    /// A member on which nothing was ever written.
    pub fn new(geometry: &Geometry) -> Medium {
        let zero = Rc::new([0; BLOCK_BYTES as usize]);
        let tracks = geometry.tracks.as_ref();
        Medium {
            chunks: chunks_of(&zero, geometry.blocks.0),
            len: geometry.blocks.0,
            zero,
            destroyed: Rc::new([DESTROYED_BYTE; BLOCK_BYTES as usize]),
            tracks: tracks.filter(|tracks| tracks.overlap_tracks > 0).cloned(),
            is_trusted: false,
            parts: Rc::default(),
        }
    }

    /// The same on a disk that never tears a block and never lies: what must be asked of a disk
    /// whose data no layer keeps checksums of.
    pub fn trusted_if(self, is_trusted: bool) -> Medium {
        Medium { is_trusted, ..self }
    }

    /// The same, cut into slices.
    pub fn in_parts(self, parts: &[Extent]) -> Medium {
        Medium { parts: parts.into(), ..self }
    }

    /// The slice that holds a block; all blocks where none does.
    pub fn part_of(&self, at: u64) -> Extent {
        part_of(&self.parts, at, self.len())
    }

    /// The same disk with room for a label behind its last block.
    #[must_use]
    pub fn with_label(mut self) -> Medium {
        self.len += LABEL_BLOCKS;
        let more = chunks_of(&self.zero, self.len).split_off(self.chunks.len());
        self.chunks.extend(more);
        self
    }

    /// True when the disk never tears a block and never lies.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// True when a power cut leaves each block as it was or as it was written. What is on shingled
    /// tracks without checksums is made durable before anything says that it is there.
    pub fn writes_whole_blocks(&self) -> bool {
        self.is_trusted && self.tracks.is_none()
    }

    /// How many blocks it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when it has no block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A block.
    pub fn block(&self, at: u64) -> &Block {
        let at = at as usize;
        &self.chunks[at / CHUNK_BLOCKS][at % CHUNK_BLOCKS]
    }

    /// True when another one holds the same bytes.
    pub fn holds_the_same(&self, other: &Medium) -> bool {
        let chunks = self.chunks.iter().zip(&other.chunks);
        let other_chunks = chunks.filter(|(mine, theirs)| !Rc::ptr_eq(mine, theirs));
        let mut pairs = other_chunks.flat_map(|(mine, theirs)| mine.iter().zip(theirs.iter()));
        let differs =
            |(mine, theirs): (&Block, &Block)| !Rc::ptr_eq(mine, theirs) && mine != theirs;
        self.len == other.len && !pairs.any(differs)
    }

    /// Which blocks it holds, by where they lie in memory. Media that share every block hold the
    /// same, as long as the blocks live.
    pub fn identity(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len).map(|at| Rc::as_ptr(self.block(at)).addr())
    }

    /// A block of zeroes that costs nothing.
    pub fn zero(&self) -> &Block {
        &self.zero
    }

    /// The same disk with zeroes alone.
    #[must_use]
    pub fn zeroed(&self) -> Medium {
        let mut medium = self.clone();
        medium.chunks = chunks_of(&self.zero, self.len);
        medium
    }

    /// A disk of the same make that holds what another one does, as far as that goes.
    #[must_use]
    pub fn holding(&self, other: &Medium) -> Medium {
        let mut medium = self.zeroed();
        for at in 0..self.len.min(other.len) {
            medium.put(at, other.block(at));
        }
        medium
    }

    /// Changes a block without any regard for its neighbours: damage, not a write.
    pub fn damage(&mut self, at: u64, content: Block) {
        self.put(at, &content);
    }

    /// Writes blocks from `start`, track by track; each shingled track destroys the same angular
    /// range of the tracks that it overlaps.
    pub fn write(&mut self, start: u64, data: &[Block]) {
        let Some(tracks) = self.tracks.clone() else {
            self.store(start, data);
            return;
        };
        let (mut at, end) = (start, start + data.len() as u64);
        while at < end {
            // A label lies behind the last track.
            if at >= tracks.blocks() {
                return self.store(at, &data[(at - start) as usize..]);
            }
            let whole = tracks.extent_of(tracks.track_of(at));
            let stop = whole.end().0.min(end);
            self.store(at, &data[(at - start) as usize..(stop - start) as usize]);
            for lost in tracks.destroyed_by(Extent::new(at, stop - at)) {
                let destroyed = Rc::clone(&self.destroyed);
                for block in lost.start.0..lost.end().0 {
                    self.put(block, &destroyed);
                }
            }
            at = stop;
        }
    }

    /// True when the order of two writes, given by where they go, decides what they leave behind.
    pub fn conflict(&self, one: Extent, other: Extent) -> bool {
        if one.overlaps(other) {
            return true;
        }
        let reaches = |from: Extent, to: Extent| {
            let tracks = self.tracks.as_deref();
            let lost = tracks.map(|tracks| {
                let of_track = |part| tracks.destroyed_by(part).collect::<Vec<_>>();
                parts_by_track(tracks, from).into_iter().flat_map(of_track).collect::<Vec<_>>()
            });
            lost.is_some_and(|lost| lost.iter().any(|extent| extent.overlaps(to)))
        };
        reaches(one, other) || reaches(other, one)
    }

    fn store(&mut self, start: u64, data: &[Block]) {
        for (at, block) in (start..).zip(data) {
            self.put(at, block);
        }
    }

    fn put(&mut self, at: u64, block: &Block) {
        let (chunk, at) = (at as usize / CHUNK_BLOCKS, at as usize % CHUNK_BLOCKS);
        if !Rc::ptr_eq(&self.chunks[chunk][at], block) {
            Rc::make_mut(&mut self.chunks[chunk])[at] = Rc::clone(block);
        }
    }
}

/// Chunks of zeroes for so many blocks, all of them the same one.
fn chunks_of(zero: &Block, blocks: u64) -> Vec<Rc<[Block; CHUNK_BLOCKS]>> {
    let chunk = Rc::new(std::array::from_fn(|_| Rc::clone(zero)));
    vec![chunk; (blocks as usize).div_ceil(CHUNK_BLOCKS)]
}

/// The parts of an extent that lie on one track each.
fn parts_by_track(tracks: &TrackTable, extent: Extent) -> Vec<Extent> {
    let (mut at, end) = (extent.start.0, extent.end().0.min(tracks.blocks()));
    let mut parts = Vec::new();
    while at < end {
        let stop = tracks.extent_of(tracks.track_of(at)).end().0.min(end);
        parts.push(Extent::new(at, stop - at));
        at = stop;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_core::disk::Media;
    use imbrex_core::units::BlockCount;

    fn shingled() -> Medium {
        // Ten tracks of 4 blocks, 2 of them conventional; a write destroys the next track.
        let tracks = TrackTable::new([(10, 4)], BlockCount(8), 1);
        Medium::new(&Geometry {
            tracks: Some(Arc::new(tracks)),
            ..Geometry::plain(BlockCount(40), Media::Shingled)
        })
    }

    fn filled(byte: u8, blocks: usize) -> Vec<Block> {
        vec![block_of(&[byte; BLOCK_BYTES as usize]); blocks]
    }

    #[test]
    fn a_shingled_track_destroys_the_next_and_its_own_later_part_survives() {
        let mut medium = shingled();
        medium.write(0, &filled(1, 40));
        assert!((0..40).all(|at| medium.block(at)[0] == 1));
        medium.write(9, &filled(2, 2));
        let destroyed: Vec<u64> =
            (0..40).filter(|at| medium.block(*at)[0] == DESTROYED_BYTE).collect();
        assert_eq!(destroyed, [13, 14]);
        medium.write(1, &filled(3, 2));
        assert_eq!(medium.block(5)[0], 1, "conventional tracks stand apart");
    }

    #[test]
    fn writes_conflict_where_one_destroys_the_other() {
        let medium = shingled();
        assert!(medium.conflict(Extent::new(9, 1), Extent::new(13, 1)));
        assert!(medium.conflict(Extent::new(13, 1), Extent::new(9, 1)));
        assert!(!medium.conflict(Extent::new(9, 1), Extent::new(14, 1)));
        assert!(!medium.conflict(Extent::new(9, 1), Extent::new(17, 1)));
        assert!(medium.conflict(Extent::new(2, 3), Extent::new(4, 1)));
    }

    #[test]
    fn a_clone_keeps_what_its_original_loses() {
        let mut medium = shingled();
        medium.write(0, &filled(1, 1));
        let before = medium.clone();
        medium.write(0, &filled(2, 1));
        assert_eq!((before.block(0)[0], medium.block(0)[0]), (1, 2));
    }
}
