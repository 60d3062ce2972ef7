//! Arguments of `control`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `control`.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// The socket for commands: `DATASOCKET.control`, or the one of `serve --control`
    pub socket: PathBuf,
    /// The name of the node in the stack file; `status` without it is about the whole device
    pub node: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: NodeCommand,
    /// Print the answer as one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// Names the command: given again with the same number while it is under way, it is joined and
    /// not begun a second time
    #[arg(long, value_name = "N", global = true)]
    pub id: Option<u64>,
}

/// What a node is asked to do.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Any node, or the whole device: say how it is
    Status,
    /// A disk: take it out, as if it had failed
    Fail {
        /// Also where an array would lose data with it
        #[arg(long)]
        force: bool,
    },
    /// A disk below an array: put a new one in the place of one that is lost
    Replace {
        /// A file or block device for it, whose start must be zeroes; a new image beside the others
        /// when absent
        path: Option<PathBuf>,
    },
    /// An array: bring what a replaced disk lacks back onto it
    Rebuild(RateArgs),
    /// An array: read everything and compare it
    Scrub(RateArgs),
    /// A controller: let all requests pass, those that are held too, until `on` or the next start
    Off,
    /// A controller that is off: hold requests again as its policy says
    On,
    /// A disk, with `serve --allow-faults`: fail reads of these blocks, or all
    FailReads {
        /// Blocks of 4096 bytes of the disk, the last one not counted
        #[arg(value_name = "FROM..TO", value_parser = blocks)]
        blocks: Option<(u64, u64)>,
    },
    /// A disk, with `serve --allow-faults`: fail writes of these blocks, or all
    FailWrites {
        /// Blocks of 4096 bytes of the disk, the last one not counted
        #[arg(value_name = "FROM..TO", value_parser = blocks)]
        blocks: Option<(u64, u64)>,
    },
    /// A disk, with `serve --allow-faults`: let every operation take so much longer
    Slow {
        /// Milliseconds
        ms: u64,
    },
    /// A disk, with `serve --allow-faults`: take operations and do not answer them
    Hang,
    /// A disk, with `serve --allow-faults`: return something else than these blocks hold
    Corrupt {
        /// Blocks of 4096 bytes of the disk, the last one not counted
        #[arg(value_name = "FROM..TO", value_parser = blocks)]
        blocks: (u64, u64),
    },
    /// A disk, with `serve --allow-faults`: end all faults, and carry out what hangs
    Heal,
}

/// How fast work of a command may go.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// Work through no more than this in a second, such as 50MiB/s
    #[arg(long)]
    pub rate: Option<String>,
}

/// A range such as `10..20`.
fn blocks(text: &str) -> Result<(u64, u64), String> {
    let range = text.split_once("..").and_then(|(from, to)| {
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (from < to).then_some((from, to))
    });
    range.ok_or_else(|| {
        "accepted: FROM..TO, two whole numbers, FROM below TO, such as 10..20".to_owned()
    })
}
