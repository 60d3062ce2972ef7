//! Arguments of `imbrex trace`.

use super::ReadArgs;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use imbrex_traces::BlockRule;
use std::path::PathBuf;

/// What to do with traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say what a trace holds
    Info(InfoArgs),
    /// Write a trace, or a part of it, in another format
    Convert(ConvertArgs),
    /// Generate a synthetic trace from a recipe
    Synth(SynthArgs),
}

/// Arguments of `trace info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The trace
    pub path: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which 4 KiB blocks a request covers
    #[arg(long, value_name = "RULE", value_enum, default_value_t = BlocksArg::Cover)]
    pub blocks: BlocksArg,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Which 4 KiB blocks a request covers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum BlocksArg {
    /// Every block it touches
    Cover,
    /// As many as its size fills, from the block of its offset
    Size,
}

impl From<BlocksArg> for BlockRule {
    fn from(blocks: BlocksArg) -> Self {
        match blocks {
            BlocksArg::Cover => Self::Touched,
            BlocksArg::Size => Self::Size,
        }
    }
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
