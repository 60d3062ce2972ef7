//! Experiments: from TOML to stacks, runs and reports.

mod analyse;
mod areas;
mod bound;
mod closed_form;
mod combined;
pub mod config;
mod describe;
mod drive_stack;
mod durability;
mod events;
mod execute;
#[allow(clippy::module_inception)]
mod experiment;
mod expression;
mod member_movement;
mod members;
mod movement_analysis;
mod no_cleaning;
mod nodes;
mod observers;
mod plan;
mod reproduce;
mod rows;
mod run;
mod stated;
mod sweep;
mod tasks;
mod workload;

pub use areas::Footprint;
pub use bound::{Bound, BoundOptions, ReadBound, Room};
pub use closed_form::{ClosedForm, Form};
pub use config::{ConfigError, Setting, StackConfig, compared, ready_made, stack_text};
pub use describe::{Describe, DescribeNode};
pub use drive_stack::library_drives;
pub use events::{EventCommand, EventConfig};
pub use execute::{Found, Left, Outcome, WorkloadOutcome, execute};
pub use experiment::{Analysis, DirectWriteConfig, Experiment, FitConfig, WorkloadConfig};
pub use member_movement::MovementConfig;
pub use members::{ListedMember, MemberNumbers, StackMember};
pub use movement_analysis::MovementAnalysis;
pub use no_cleaning::PastRun;
pub use nodes::{DescribeDisk, Facts, LogUse};
pub use observers::{FillObserver, GaugeObserver, check_series};
pub use plan::{BuildOptions, Built, Plan};
pub use reproduce::{Figure, figures};
pub use run::{Batch, Case, RunError, Task};
pub use stated::{Comparison, Over, Row, Stated, StatedValue};
pub use sweep::{Point, SweptStack, check_taken, points};
pub use tasks::Watch;
pub use workload::Workload;
pub(crate) use workload::{NEVER, Until};

/// The largest resident set of this process so far, in bytes; 0 where the system does not say.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|text| text.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
