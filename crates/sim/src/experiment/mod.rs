//! Experiments: from TOML to stacks, runs and reports.

mod analyse;
mod batch;
mod bound;
mod closed_form;
mod combined;
mod counting;
mod events;
mod execute;
#[allow(clippy::module_inception)]
mod experiment;
mod expression;
mod finished;
mod footprints;
mod heads;
mod identity;
mod index_page;
mod jobs;
mod kept;
mod known;
mod logged;
mod member_movement;
mod movement_analysis;
mod plot;
mod plotted;
mod reproduce;
mod request_logs;
mod rounds;
mod rows;
mod run;
mod saved_state;
mod state_file;
mod stated;
mod sweep;
mod tasks;
mod warm_up;
mod warming;
mod workload;

pub use batch::Batch;
pub use bound::{Bound, BoundOptions, ReadBound, Room};
pub use closed_form::{ClosedForm, Form};
pub use events::{EventCommand, EventConfig};
pub(crate) use execute::make_runs;
pub use execute::{Found, Left, Outcome, WorkloadOutcome, execute};
pub use experiment::{
    Analysis, DirectWriteConfig, Experiment, FitConfig, QUICK_DIVISOR, QUICK_REQUESTS,
    SWEEP_POINTS_MAX, WorkloadConfig,
};
pub use finished::{Aside, FinishedRuns};
pub use heads::HeadsConfig;
pub use index_page::{IndexFigure, IndexPage};
pub use jobs::{
    Collected, Crew, CrewTally, Input, JOB_SCHEMA, JOBS_MAX, Job, JobError, JobFolder, collect,
    read_jobs,
};
pub use kept::{KEPT_BYTES_MAX, Kept, Wanted};
pub use member_movement::MovementConfig;
pub use movement_analysis::MovementAnalysis;
pub use plot::{Across, LogAxes, Plot, PlotKind, PlotSeries};
pub use reproduce::{Figure, figures, paper_name};
pub use request_logs::RequestSink;
pub use rounds::ROUNDS_MAX;
pub use run::{Case, RunError, RunFiles, Task};
pub use state_file::StateFileError;
pub use stated::{Comparison, Over, Row, Stated, StatedValue};
pub use sweep::{BaseStack, Point, Sweep, SweptStack, parameters, points};
pub use tasks::Watch;
pub use warm_up::WarmUp;
pub use workload::Workload;
pub(crate) use workload::{NEVER, Until};
