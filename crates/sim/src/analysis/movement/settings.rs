//! What the models are to be taken for.

use serde::{Deserialize, Serialize};

/// The greatest number of blocks of 4 KiB that addresses of 64 bits reach.
pub const ADDRESS_BLOCKS_MAX: u64 = 1 << 52;

/// Touched blocks at most: 8 TiB.
pub const TOUCHED_BLOCKS_MAX: u64 = 1 << 31;

/// A model of a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Model {
    /// 0: every block at its place, and nothing else is moved.
    Conventional,
    /// 1: writes are appended to a log that is never cleaned.
    Log,
    /// 2: writes in place; a buffer holds what must be written back.
    InPlace,
    /// 3: the same with a buffer that may be too small.
    Buffered,
}

impl Model {
    /// All of them, by number.
    pub const ALL: [Model; 4] = [Model::Conventional, Model::Log, Model::InPlace, Model::Buffered];

    /// What it is, in few words.
    pub fn label(self) -> &'static str {
        match self {
            Model::Conventional => "conventional",
            Model::Log => "log",
            Model::InPlace => "in place",
            Model::Buffered => "in place, buffer",
        }
    }
}

impl From<Model> for u8 {
    fn from(model: Model) -> u8 {
        model as u8
    }
}

impl TryFrom<u8> for Model {
    type Error = MovementError;

    fn try_from(number: u8) -> Result<Model, MovementError> {
        let model = Model::ALL.get(usize::from(number)).copied();
        model.ok_or(MovementError::Model(number))
    }
}

/// Which blocks behind a write are read and written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestExtent {
    /// Up to the last written block of the band, gaps included.
    #[default]
    Written,
    /// Only written blocks.
    Dense,
    /// Up to the end of the band.
    Band,
}

/// Where the rest begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestUnit {
    /// With the track after the written one: a write damages no block of its own track.
    #[default]
    Track,
    /// With the block after the written one.
    Block,
}

/// What the first write to a block does to written blocks behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstWrite {
    /// The same as any other write.
    #[default]
    Rule,
    /// Nothing.
    Free,
}

/// What is one write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteUnit {
    /// Each block of a request.
    #[default]
    Block,
    /// All blocks of a request.
    Request,
}

/// Geometry, buffer and readings of the models.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MovementSettings {
    /// Blocks on a track.
    pub track_blocks: u64,
    /// Tracks in a band.
    pub band_tracks: u64,
    /// Blocks that the buffer of model 3 holds.
    pub buffer_blocks: u64,
    /// Which blocks models 2 and 3 write back.
    pub rest: RestExtent,
    /// Where these begin.
    pub rest_unit: RestUnit,
    /// Whether a first write writes anything back.
    pub first_write: FirstWrite,
    /// What is one write.
    pub write_unit: WriteUnit,
}

impl Default for MovementSettings {
    fn default() -> MovementSettings {
        MovementSettings {
            track_blocks: 200,
            band_tracks: 200,
            buffer_blocks: 16384,
            rest: RestExtent::default(),
            rest_unit: RestUnit::default(),
            first_write: FirstWrite::default(),
            write_unit: WriteUnit::default(),
        }
    }
}

/// Why movement cannot be counted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MovementError {
    /// A number that stands for no model.
    #[error("model {0}; accepted: 0, 1, 2, 3")]
    Model(u8),
    /// No band, or one beyond all addresses.
    #[error(
        "track_blocks {0} and band_tracks {1}; accepted: 1 or more each, and at most {max} blocks in \
         a band",
        max = ADDRESS_BLOCKS_MAX
    )]
    Geometry(u64, u64),
    /// No buffer.
    #[error("buffer_blocks 0; accepted: 1 or more")]
    Buffer,
    /// A model goes where the drive that gives the times has no blocks.
    #[error(
        "model {number} visits block {block} and the drive has {blocks} blocks of 4 KiB; accepted: a \
         larger drive, or models that stay on it (log and spill area lie behind the last touched band)",
        number = u8::from(*model)
    )]
    Beyond {
        /// Which one.
        model: Model,
        /// The block.
        block: u64,
        /// Blocks of the drive.
        blocks: u64,
    },
    /// More blocks than are kept account of.
    #[error("the requests touch {0} blocks of 4 KiB; accepted: at most {max}", max = TOUCHED_BLOCKS_MAX)]
    Touched(u64),
}
