//! Arguments of `imbrex trace`.

use super::cache_sizes::{CacheSizes, sample_rate};
use super::{QuietArgs, ReadArgs};
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use imbrex_drives::quantity::Size;
use imbrex_sim::analysis::movement::{FirstWrite, RestExtent, RestUnit, WriteUnit};
use imbrex_traces::BlockRule;
use imbrex_traces::combine::{BurstRequests, Order, Place, SourceConfig, SplitBy};
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say what a trace holds
    Info(InfoArgs),
    /// Write a trace, or a part of it, in another format
    Convert(ConvertArgs),
    /// Make one trace of several
    Combine(CombineArgs),
    /// Generate a synthetic trace from a recipe
    Synth(SynthArgs),
    /// Count how far a trace moves the heads of four models of disks
    Movement(MovementArgs),
    /// Say what an LRU cache of any size would hit, from one pass
    Mrc(MrcArgs),
}

/// Arguments of `trace info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The trace
    pub path: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which blocks of 4 KiB a request covers: cover (all it touches) or size (as many as its size fills)
    #[arg(long, value_name = "RULE", default_value = "cover", value_parser = named::<BlockRule>)]
    pub blocks: BlockRule,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Whether it tells how much of the trace was read.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The trace
    pub input: String,
    /// The file to write; its name says the format (.imbrex .csv .spc .iolog .parquet) and the compression
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
    /// Whether it tells how much of the trace was read.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Arguments of `trace combine`.
#[derive(Debug, Args)]
pub struct CombineArgs {
    /// The traces, each a file or `synthetic:RECIPE`, with what is taken of it and where it goes behind
    /// it: PATH,limit=30000,skip=10,offset=1GiB,delay=10s,devices=0-3,stride=1GiB,format=csv,map=...
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<SourceConfig>,
    /// The file to write, as for `convert`
    #[arg(short, long, value_name = "OUT")]
    pub output: String,
    /// In what order requests follow each other: bursts, merge (by time), concatenate or shuffle
    #[arg(long, value_name = "ORDER", default_value = "bursts", value_parser = named::<Order>)]
    pub order: Order,
    /// Requests of a burst, or `all`; 1 when absent
    #[arg(long, value_name = "N")]
    pub burst_requests: Option<BurstRequests>,
    /// Where the addresses of the traces lie: overlay, concatenate, pack (by first
    /// touch) or separate
    #[arg(long, value_name = "PLACE", default_value = "overlay", value_parser = named::<Place>)]
    pub place: Place,
    /// Round the span of each trace up to this when they are concatenated, such as the size of a disk
    #[arg(long, value_name = "SIZE")]
    pub align: Option<Size>,
    /// Which blocks a request covers when they are packed: cover (all it touches) or size (as many as
    /// its size fills); cover when absent
    #[arg(long, value_name = "RULE", value_parser = named::<BlockRule>)]
    pub blocks: Option<BlockRule>,
    /// Seed of what is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write so many parts instead of one trace; the names of the outputs get a number: out-1.csv
    #[arg(long, value_name = "K", requires = "by")]
    pub split: Option<u32>,
    /// By what the parts differ: round-robin, device (its number modulo K) or address (equal ranges)
    #[arg(long, value_name = "WAY", value_parser = named::<SplitBy>, requires = "split")]
    pub by: Option<SplitBy>,
    /// Name of the workload, to be written into a recording
    #[arg(long)]
    pub name: Option<String>,
}

/// A value that a file calls by the same name.
pub(super) fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error| error.to_string())
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
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "0,1,2,3")]
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

/// Arguments of `trace mrc`.
#[derive(Debug, Args)]
pub struct MrcArgs {
    /// The trace
    pub path: String,
    /// Sizes of the cache, such as 64MiB, and shares of what is read or written, such as 1%; when absent
    /// powers of two that the longest request fits, up to a cache that holds everything
    #[arg(long, value_name = "SIZE,...")]
    pub sizes: Option<CacheSizes>,
    /// Follow so large a share of the blocks, above 0 and at most 1 (SHARDS); 1 is exact
    #[arg(long, value_name = "RATE", default_value = "1", value_parser = sample_rate)]
    pub sample: f64,
    /// Stop after this many records
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub limit: Option<u64>,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which blocks of 4 KiB a request covers: cover (all it touches) or size (as many as its size fills)
    #[arg(long, value_name = "RULE", default_value = "cover", value_parser = named::<BlockRule>)]
    pub blocks: BlockRule,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the table to this file as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write a page with the chart to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Whether it tells how much of the trace was read.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Readings of the models that change their counts.
#[derive(Debug, Args)]
pub struct MovementReadings {
    /// Blocks of a request: every one it touches, or as many as its size fills
    #[arg(long, value_name = "RULE", default_value = "cover", value_parser = named::<BlockRule>)]
    pub blocks: BlockRule,
    /// What models 2 and 3 write back: up to the last written block of the band with the gaps, only
    /// written blocks, or up to the end of the band
    #[arg(long, value_name = "EXTENT", default_value = "written", value_parser = named::<RestExtent>)]
    pub rest: RestExtent,
    /// Where that begins: with the next track or the next block
    #[arg(long, value_name = "UNIT", default_value = "track", value_parser = named::<RestUnit>)]
    pub rest_unit: RestUnit,
    /// First writes to a block: as all others, or nothing is written back
    #[arg(long, value_name = "RULE", default_value = "rule", value_parser = named::<FirstWrite>)]
    pub first_write: FirstWrite,
    /// One write: a block, or all blocks of a request
    #[arg(long, value_name = "UNIT", default_value = "block", value_parser = named::<WriteUnit>)]
    pub write_unit: WriteUnit,
}
