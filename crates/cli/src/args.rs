//! The command line.

mod bound;
mod cache_sizes;
mod control;
mod crashtest;
mod diff;
mod doctor;
mod drive;
mod examples;
mod experiments;
mod place;
mod placed_trace;
mod read;
mod reliability;
mod sweep;
mod trace;
mod verdict;

pub use bound::BoundArgs;
pub use control::{ControlArgs, NodeCommand};
pub use crashtest::CrashtestArgs;
pub use diff::DiffArgs;
pub use doctor::DoctorArgs;
pub use drive::{BenchArgs, DriveCommand, FioArgs, FitArgs};
pub use examples::command;
pub use experiments::{ReproduceArgs, RunArgs};
pub use place::PlaceArgs;
pub use placed_trace::PlacedTraceArgs;
pub use read::ReadArgs;
pub use reliability::ReliabilityArgs;
pub use sweep::{CollectArgs, JobsArgs, PlanArgs, RunJobArgs, SweepCommand, SweepRunArgs};
pub use trace::{
    CombineArgs, ConvertArgs, InfoArgs, MovementArgs, MrcArgs, SynthArgs, TraceCommand,
};

pub use verdict::VerdictArgs;

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use imbrex_report::{Dependencies, Due};
use imbrex_sim::experiment::{ROUNDS_MAX, WarmUp};
use imbrex_traces::BlockRule;
use std::path::PathBuf;
use trace::named;

/// Simulate, serve and emulate shingled (SMR) disks.
#[derive(Debug, Parser)]
#[command(name = "imbrex", version = env!("IMBREX_VERSION"), about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the ready-made stacks and the drives, or print one as TOML to start from
    Systems {
        /// Print the TOML of this stack (`imbrex drive show` prints that of a drive)
        #[arg(long, value_name = "NAME")]
        show: Option<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Replay one workload through several stacks and compare what happened
    Compare(CompareArgs),
    /// Say whether a workload survives on shingled drives, and which cache turns it
    Verdict(VerdictArgs),
    /// Say how many band rewrites and read misses no policy of a cache can do without on a trace
    Bound(BoundArgs),
    /// Say which disk should hold the log of which volume of a split stack, from the loads in a report
    Place(PlaceArgs),
    /// Say how long it takes until disks lose data, and how likely it is in some years
    Reliability(ReliabilityArgs),
    /// Run an experiment file, sweeps included
    Run(RunArgs),
    /// Run the experiments of published figures and print paper beside measured
    Reproduce(ReproduceArgs),
    /// Make the runs of an experiment as jobs, on one machine and on many
    #[command(subcommand)]
    Sweep(SweepCommand),
    /// Say what differs between two reports of the same runs
    Diff(DiffArgs),
    /// Characterise, convert or generate traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Measure drive models
    #[command(subcommand)]
    Drive(DriveCommand),
    /// Say whether a disk is shingled, and what that means: exit status 1 for a model that is not in
    /// the table of known models, and for what is no block device
    Doctor(DoctorArgs),
    /// Make the images of a stack in a data directory
    Create(CreateArgs),
    /// Serve a stack as an NBD block device
    Serve(ServeArgs),
    /// Give a command to a node of a stack that is served, such as `status` or `fail`
    Control(ControlArgs),
    /// Say what the members of an image hold
    Inspect(InspectArgs),
    /// Look for damage in an image: exit status 0 clean, 1 repaired, 4 damage left, 8 could not run,
    /// 16 wrong usage
    Check(CheckArgs),
    /// Cut the power and break disks at many points of a small device, and look for lost data
    Crashtest(CrashtestArgs),
    /// Print what a shell completes commands by, or write the manual pages
    Completions {
        /// The shell
        #[arg(required_unless_present = "man")]
        shell: Option<clap_complete::Shell>,
        /// Write the manual pages into this folder instead
        #[arg(long, value_name = "DIR", conflicts_with = "shell")]
        man: Option<PathBuf>,
    },
}

/// Where the requests come from.
#[derive(Debug, Args, Clone)]
pub struct WorkloadArgs {
    /// Trace file (any known format and compression), `-` for standard input, or
    /// `synthetic:RECIPE[/SCALE]` (see `imbrex trace synth --list`)
    #[arg(long, value_name = "PATH")]
    pub trace: String,
    /// How to read it.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Stop after this many records
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub limit: Option<u64>,
    /// Replay the trace N times over, each round a mean gap behind the last request of the one before
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<u32>::new().range(1..=u64::from(ROUNDS_MAX)))]
    pub repeat: u32,
    /// Each round of --repeat on other blocks: behind the highest of the one before, and from the start of the
    /// device again at its end
    #[arg(long)]
    pub new_blocks: bool,
    /// Leave a first part of the requests out of every figure, so that the stack is not factory-new: a count of
    /// requests, a share such as 25%, or until-full (every cache has evicted and every log has begun to clean)
    #[arg(long, value_name = "PART")]
    pub warm_up: Option<WarmUp>,
    /// What to do with addresses beyond the device
    #[arg(long, value_enum)]
    pub fit: Option<FitArg>,
    /// Which blocks of 4 KiB a request has: cover (all it touches) or size (as many as its size fills)
    #[arg(long, value_name = "RULE", default_value = "cover", value_parser = named::<BlockRule>)]
    pub blocks: BlockRule,
    /// Issue the next request when fewer than N are outstanding (the default, with N = 1)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    pub queue_depth: u32,
    /// Issue each request at its time stamp instead
    #[arg(long, conflicts_with_all = ["streams", "queue_depth"])]
    pub open_loop: bool,
    /// Replay time stamps this many times faster
    #[arg(long, value_name = "X", requires = "open_loop", default_value_t = 1.0)]
    pub speed: f64,
    /// Issue in N streams, each in order
    #[arg(long, value_name = "N", conflicts_with = "queue_depth")]
    pub streams: Option<u32>,
    /// When a request of a stream is due
    #[arg(long, value_enum, requires = "streams")]
    pub due: Option<DueArg>,
    /// Which stream a request joins
    #[arg(long, value_enum, requires = "streams")]
    pub dependencies: Option<DependenciesArg>,
}

/// Which stream a request joins.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DependenciesArg {
    /// One after the other (the default)
    InTurn,
    /// By response times in the trace: the stream whose last request had ended latest before
    Latency,
}

impl From<DependenciesArg> for Dependencies {
    fn from(dependencies: DependenciesArg) -> Dependencies {
        match dependencies {
            DependenciesArg::InTurn => Dependencies::InTurn,
            DependenciesArg::Latency => Dependencies::Latency,
        }
    }
}

/// When a request of a stream is due.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DueArg {
    /// At its time stamp (the default)
    Absolute,
    /// As long after its predecessor was issued as their time stamps are apart
    Shift,
}

impl From<DueArg> for Due {
    fn from(due: DueArg) -> Due {
        match due {
            DueArg::Absolute => Due::Absolute,
            DueArg::Shift => Due::Shift,
        }
    }
}

/// What to do with addresses beyond the device.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FitArg {
    /// Take them modulo the size of the device
    Wrap,
    /// Squeeze the whole trace into the device
    Scale,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The workload.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Stacks, by name (`pore*`: all ready-made ones with such names; `all`: all but archives), by the name of a
    /// drive that hides its shingles itself, or by TOML file; the ready-made ones on the emulator of PORE when
    /// absent
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub systems: Vec<String>,
    /// Set a key of a node in every stack that has the node, or in one of the stacks
    #[arg(long, value_name = "[STACK:]NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Run each stack that has the node with each of these values of a key. With several of these options, at every
    /// combination of their values
    #[arg(long, value_name = "NODE.KEY=A,B,C")]
    pub sweep: Vec<String>,
    /// Size of the device, such as 64GiB; the size of the drive when absent
    #[arg(long)]
    pub size: Option<String>,
    /// Divide capacity, persistent-cache bytes and entries of the drives by this, as `serve
    /// --emulate --scale` does
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub drive_scale: u64,
    /// Record a gauge of a node over time, such as cache.dirty_blocks, in every stack that has the
    /// node
    #[arg(long, value_name = "NODE.GAUGE")]
    pub series: Vec<String>,
    /// Write a line of CSV for each request of each run: when it arrived, was issued and ended, and what it waited
    /// for
    #[arg(long, value_name = "FILE", conflicts_with_all = ["untimed", "print_experiment"])]
    pub log_requests: Option<PathBuf>,
    /// Write the state of the stack at the end of the warm-up, for runs with --state: of one system, as in
    /// `--systems pore --warm-up 50% --save-state pore.state`
    #[arg(long, value_name = "FILE", requires = "warm_up", conflicts_with_all = ["untimed", "streams", "print_experiment"])]
    pub save_state: Option<PathBuf>,
    /// Begin with the stack in the state that --save-state wrote, and replay what comes behind its warm-up; all of another
    /// trace
    #[arg(long, value_name = "FILE", conflicts_with_all = ["warm_up", "save_state", "untimed", "streams", "bound", "print_experiment"])]
    pub state: Option<PathBuf>,
    /// Set the band rewrites of each system beside the least number that any policy needs (see `imbrex
    /// bound`)
    #[arg(long, conflicts_with_all = ["open_loop", "streams"])]
    pub bound: bool,
    /// Go on where the same command was stopped or killed: runs that it had finished are not made again
    #[arg(long, requires = "out", conflicts_with_all = ["log_requests", "save_state", "state"])]
    pub resume: bool,
    /// Print the experiment file (`imbrex run FILE`) that makes these runs, and run nothing
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub print_experiment: bool,
    /// Count alone, over disks that answer at once: the counters of a replay back to back, and no times
    #[arg(long, conflicts_with_all = ["open_loop", "streams", "series"])]
    pub untimed: bool,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How and where results are written.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Seed of every random choice
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Runs at the same time; the number of processors when absent
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: Option<usize>,
    /// Write report.json, CSV files and report.html into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
}

/// Whether progress is told.
#[derive(Clone, Copy, Debug, Args)]
pub struct QuietArgs {
    /// Say nothing of progress on standard error, and errors alone
    #[arg(long)]
    pub quiet: bool,
}

/// Arguments of `create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// A ready-made stack, a drive that hides its shingles itself (st5000as0011), or a TOML file
    pub stack: String,
    /// Folder for the images
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Size of the device, such as 64GiB; the size of the drive when absent
    #[arg(long)]
    pub size: Option<String>,
    /// Take the room of all images from the file system now, not as they are written
    #[arg(long)]
    pub preallocate: bool,
    /// Set a key of a node
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
}

/// Whether the files of an image are read and written round the page cache.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DirectArg {
    /// Where the file system can
    Auto,
    /// Always; an error where the file system cannot
    On,
    /// Never
    Off,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").args(["socket", "listen", "run"]).required(true).multiple(true))]
pub struct ServeArgs {
    /// A ready-made stack, a drive that hides its shingles itself (st5000as0011), or a TOML file; the
    /// one given to `create`
    pub stack: String,
    /// Folder with the images; with --emulate a folder for the contents of the drives, which are
    /// kept in memory when absent
    #[arg(long, value_name = "DIR", required_unless_present = "emulate")]
    pub data: Option<PathBuf>,
    /// Listen on a unix socket
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    pub socket: Option<PathBuf>,
    /// Listen on a loopback TCP address
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// With --listen: take an address that other machines can reach. Clients are not authenticated:
    /// everybody who reaches it may read and write
    #[arg(long, requires = "listen")]
    pub trust_network: bool,
    /// Take commands (`imbrex control`) on this socket; with --socket PATH it is PATH.control when
    /// absent, otherwise there is none
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Let commands break disks on purpose: `fail-reads`, `fail-writes`, `slow`, `hang`, `corrupt`
    #[arg(long)]
    pub allow_faults: bool,
    /// Run this shell command when a disk or a member of an array is lost, a file is deleted, a rebuild or
    /// scrub is over, and so on; it is told what has happened in $IMBREX_EVENT, $IMBREX_NODE, $IMBREX_DETAIL and others, and is
    /// not waited for
    #[arg(long, value_name = "CMD", value_parser = shell_command)]
    pub on_event: Option<String>,
    /// Write every request with its time into this file, which `compare` can replay
    #[arg(long, value_name = "OUT")]
    pub record: Option<PathBuf>,
    /// Simulate the drives and pace completions to the model, instead of using files
    #[arg(long)]
    pub emulate: bool,
    /// Divide capacity, persistent-cache bytes and entries of an emulated drive by this
    #[arg(long, value_name = "N", requires = "emulate", default_value_t = 1)]
    pub scale: u64,
    /// Size of an emulated device; the size of the drive when absent
    #[arg(long, requires = "emulate")]
    pub size: Option<String>,
    /// Set a key of a node of an emulated stack; of an image, a key that was given to `create`
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Go round the page cache (O_DIRECT)
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        conflicts_with = "emulate",
        default_value_t = DirectArg::Off
    )]
    pub direct: DirectArg,
    /// Only look: no file of the image is written, what its recovery would write is kept in memory, and
    /// clients may not write. Works on a file system that is full or read-only, and for several at once
    #[arg(long, conflicts_with = "emulate")]
    pub read_only: bool,
    /// With --read-only: show disks that do not belong together by their labels, such as another disk or
    /// an older copy in the place of one. Without: take over disks at other servers that were served from
    /// elsewhere last, and are no more
    #[arg(long, conflicts_with = "emulate")]
    pub force: bool,
    /// Run a shell command with the device (`$uri`, `$unixsocket`), then stop with its exit status.
    /// Without --socket and --listen the device is on a private socket. Standard output is the
    /// command's; the report is the last line on standard error, or in the file of --report
    #[arg(long, value_name = "CMD")]
    pub run: Option<String>,
    /// Write the report into this file instead of standard output. An earlier report is replaced,
    /// any other file refused
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// A text that a shell can run.
fn shell_command(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("accepted: a shell command, such as 'logger \"$IMBREX_DETAIL\"'".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Folder with the images
    pub dir: PathBuf,
    /// With --json, every record and every mapping as well
    #[arg(long, requires = "json")]
    pub all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Folder with the images
    pub dir: PathBuf,
    /// Read all data and compare it with its checksums
    #[arg(long)]
    pub data: bool,
    /// Write damaged copies of superblocks again from good ones
    #[arg(long)]
    pub repair: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
