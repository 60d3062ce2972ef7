//! The most recent sequential streams of writes: a long one may go around the log.

use crate::extent::Extent;
use crate::units::Lba;

/// Streams followed at once.
const STREAMS_MAX: usize = 16;

/// The most recent sequential streams of writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    streams: [Stream; STREAMS_MAX],
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    next: Lba,
    blocks: u64,
    used: u64,
}

impl Streams {
    /// Follows none of them any further.
    pub fn forget(&mut self) {
        self.streams = Default::default();
    }

    /// Takes note of a write and returns by how many blocks its stream had come before it: none
    /// when it continues no stream.
    pub fn follow(&mut self, extent: Extent) -> u64 {
        self.clock += 1;
        let continued = self
            .streams
            .iter_mut()
            .find(|stream| stream.blocks > 0 && stream.next == extent.start);
        let (stream, before) = match continued {
            Some(stream) => {
                let before = stream.blocks;
                (stream, before)
            }
            None => {
                let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used);
                (oldest.expect("there are streams"), 0)
            }
        };
        *stream = Stream {
            next: extent.end(),
            blocks: before + extent.blocks.0,
            used: self.clock,
        };
        before
    }
}
