//! The arguments of `crashtest`.

use super::QuietArgs;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use imbrex_drives::quantity::Size;

const POINTS: u64 = 500;

/// Arguments of `crashtest`.
#[derive(Debug, Args)]
pub struct CrashtestArgs {
    /// The stack: one that ships for the search on tiny disks (pore, lru, lru-band, rivals, band-rivals, ride, smr-only,
    /// smr-two-ports, split, lru-cmr, cache-over-cache, two-on-one, hwsr, s-block, segments-only, s-block-only,
    /// striped, spanned, raid1, raid1-three, raid1-four, raid4smr, raid4smr-spare, idler; with --members cmr-only too), or the path of any stack file that `create` takes,
    /// in which a table [draw] may list values of keys of which each seed draws one
    #[arg(long, value_name = "NAME|FILE", default_value = "pore")]
    pub stack: String,
    /// Size of the device, at most 64 MiB, where the stack does not say it
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Set a key of a node, over the stack file and over what is drawn
    #[arg(long, value_name = "NODE.KEY=VALUE")]
    pub set: Vec<String>,
    /// Run one seed
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = RangedU64ValueParser::<u64>::new().range(..u64::MAX))]
    pub seed: Option<u64>,
    /// Run the seeds from A up to but without B; 0..20 when neither is given
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<String>,
    /// Instead of breaking disks while they run, let something happen to a disk between two starts: it is
    /// lost, zeroed, swapped, foreign, old, or one of its bits is another one; then it is put back
    #[arg(long, conflicts_with_all = ["mode", "short", "soak"])]
    pub members: bool,
    /// Instead of breaking disks while they run, let members of an array go: each in each phase of its life
    /// or with the power cut; they are replaced and rebuilt, and what is there at the next start is the
    /// same, less, or something else
    #[arg(long, conflicts_with_all = ["members", "mode", "short", "soak"])]
    pub product: bool,
    /// Points of each seed; with --members and --product cases
    #[arg(long, value_name = "N", default_value_t = POINTS, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub points: u64,
    /// Try this point of --seed alone, counted from 0, and make it as small as it can be when it fails
    #[arg(long, value_name = "I", requires = "seed", conflicts_with_all = ["json", "jobs"])]
    pub point: Option<u64>,
    /// Crashes of this mode alone: none, all, prefix, subset, reordered, torn-512, torn-garbage or
    /// exhaustive
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Instead of seeds, run every workload of up to N requests from a small alphabet, and try every
    /// moment and every subset of the pending writes
    #[arg(long, value_name = "N", conflicts_with_all = ["seed", "seeds", "point", "mode", "plant", "plant_all", "json", "points"], value_parser = RangedU64ValueParser::<u32>::new().range(1..=4))]
    pub short: Option<u32>,
    /// Try all subsets of up to 12 pending writes instead of 8
    #[arg(long)]
    pub soak: bool,
    /// Plant a bug, which the campaign should find
    #[arg(long, value_name = "BUG")]
    pub plant: Option<String>,
    /// Plant one bug after the other and say how many points it takes to find each
    #[arg(long, conflicts_with_all = ["plant", "seed", "seeds", "point", "mode", "points", "soak", "json", "jobs"])]
    pub plant_all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Whether progress is told.
    #[command(flatten)]
    pub quiet: QuietArgs,
    /// Seeds run at the same time; the number of processors when absent
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub jobs: Option<usize>,
}
