//! Arguments of `imbrex trace`.

use super::ReadArgs;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use imbrex_sim::analysis::movement::{FirstWrite, RestExtent, RestUnit, WriteUnit};
use imbrex_traces::BlockRule;

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say what a trace holds
    Info(InfoArgs),
    /// Write a trace, or a part of it, in another format
    Convert(ConvertArgs),
    /// Generate a synthetic trace from a recipe
    Synth(SynthArgs),
    /// Count how far a trace moves the heads of four models of disks
    Movement(MovementArgs),
}

/// Arguments of `trace info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The trace
    pub path: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The trace
    pub input: String,
    /// The file to write; its name says the format (.imbrex .csv .spc .iolog) and the compression
    /// (.gz .zst .xz .bz2)
    pub output: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Skip this many records first
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: u64,
    /// Stop after this many records
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub limit: Option<u64>,
    /// Name of the workload, to be written into a recording
    #[arg(long)]
    pub name: Option<String>,
    /// How it was made, to be written into a recording
    #[arg(long)]
    pub description: Option<String>,
}

/// Arguments of `trace synth`.
#[derive(Debug, Args)]
pub struct SynthArgs {
    /// A recipe by name, or a TOML file
    #[arg(required_unless_present = "list")]
    pub recipe: Option<String>,
    /// The file to write, as for `convert`
    #[arg(required_unless_present = "list")]
    pub output: Option<String>,
    /// Divide requests and footprint by this
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub scale: f64,
    /// Seed of the generator; that of the recipe when absent
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// List the recipes
    #[arg(long)]
    pub list: bool,
}

/// Arguments of `trace movement`.
#[derive(Debug, Args)]
pub struct MovementArgs {
    /// The trace; it is read twice
    pub path: String,
    /// Models: 0 conventional, 1 log, 2 in place, 3 in place with a buffer
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "0,1,2,3"
    )]
    pub models: Vec<u8>,
    /// Blocks of 4 KiB on a track
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub track_blocks: u64,
    /// Tracks in a band
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub band_tracks: u64,
    /// Blocks of 4 KiB that the buffer of model 3 holds
    #[arg(long, value_name = "N", default_value_t = 16384)]
    pub buffer_blocks: u64,
    /// Print as well what the movement takes on this drive: a name of the library, or a TOML file
    #[arg(long, value_name = "DRIVE")]
    pub time: Option<String>,
    /// Which readings of the models are taken.
    #[command(flatten)]
    pub readings: MovementReadings,
    /// Stop after this many records
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub limit: Option<u64>,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Readings of the models that change their counts.
#[derive(Debug, Args)]
pub struct MovementReadings {
    /// Blocks of a request: every one it touches, or as many as its size fills
    #[arg(long, value_enum, value_name = "RULE", default_value = "cover")]
    pub blocks: BlocksArg,
    /// What models 2 and 3 write back: up to the last written block of the band with the gaps, only
    /// written blocks, or up to the end of the band
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "written")]
    pub rest: RestArg,
    /// Where that begins: with the next track or the next block
    #[arg(long, value_enum, value_name = "UNIT", default_value = "track")]
    pub rest_unit: RestUnitArg,
    /// First writes to a block: as all others, or nothing is written back
    #[arg(long, value_enum, value_name = "RULE", default_value = "rule")]
    pub first_write: FirstWriteArg,
    /// One write: a block, or all blocks of a request
    #[arg(long, value_enum, value_name = "UNIT", default_value = "block")]
    pub write_unit: WriteUnitArg,
}

/// A rule by which a request has blocks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum BlocksArg {
    Cover,
    Size,
}

/// What is written back.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RestArg {
    Written,
    Dense,
    Band,
}

/// Where it begins.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RestUnitArg {
    Track,
    Block,
}

/// What a first write does.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FirstWriteArg {
    Rule,
    Free,
}

/// What one write is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WriteUnitArg {
    Block,
    Request,
}

impl From<BlocksArg> for BlockRule {
    fn from(arg: BlocksArg) -> BlockRule {
        match arg {
            BlocksArg::Cover => BlockRule::Touched,
            BlocksArg::Size => BlockRule::Size,
        }
    }
}

impl From<RestArg> for RestExtent {
    fn from(arg: RestArg) -> RestExtent {
        match arg {
            RestArg::Written => RestExtent::Written,
            RestArg::Dense => RestExtent::Dense,
            RestArg::Band => RestExtent::Band,
        }
    }
}

impl From<RestUnitArg> for RestUnit {
    fn from(arg: RestUnitArg) -> RestUnit {
        match arg {
            RestUnitArg::Track => RestUnit::Track,
            RestUnitArg::Block => RestUnit::Block,
        }
    }
}

impl From<FirstWriteArg> for FirstWrite {
    fn from(arg: FirstWriteArg) -> FirstWrite {
        match arg {
            FirstWriteArg::Rule => FirstWrite::Rule,
            FirstWriteArg::Free => FirstWrite::Free,
        }
    }
}

impl From<WriteUnitArg> for WriteUnit {
    fn from(arg: WriteUnitArg) -> WriteUnit {
        match arg {
            WriteUnitArg::Block => WriteUnit::Block,
            WriteUnitArg::Request => WriteUnit::Request,
        }
    }
}
