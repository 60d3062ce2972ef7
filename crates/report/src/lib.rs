//! Reports: what happened, as JSON, a table, CSV files and one HTML page.
//!
//! A simulation and a served device fill the same [`Run`]; everything else in this crate only
//! formats it. [`Recorder`] collects what needs memory while a run lasts: latencies and series.

mod activity_recorder;
mod activity_use;
mod brought;
mod by_cause;
mod columns;
mod counted;
mod cut;
mod diff;
mod drawn;
mod event_use;
mod files;
mod form_table;
pub mod format;
mod hardware;
mod headline;
mod heads;
mod histogram;
mod html;
mod keeping_up;
mod kind_tables;
mod left;
mod movement;
mod no_cleaning;
mod no_spare_slots;
mod node_table;
pub mod page;
mod pareto;
mod peak_memory;
mod phase_recorder;
mod phases;
mod recorder;
mod report;
mod request_rows;
mod request_series;
mod response_times;
mod results;
mod run_parts;
mod segment_use;
mod series;
mod speed;
mod status;
mod sweep_page;
mod swept;
mod table;
mod tables;
mod warm_up;
mod window_recorder;
mod windows;
mod zone_use;

pub use activity_recorder::ActivityState;
pub use activity_use::{ActivityFigures, ActivityUse, GhostUse, ResponseByActivity};
pub use by_cause::ByCause;
pub use columns::{Column as TableColumn, Columns, csv_cell};
pub use diff::ReportDiff;
pub use event_use::EventUse;
pub use files::REPORT_FILES;
pub use form_table::{FORM_FILES, FormPoint, FormTable};
pub use format::bytes as human_bytes;
pub use heads::{HEADS_MAX, Head, Heads};
pub use histogram::LatencyHistogram;
pub use imbrex_drives::HeatMap;
pub use movement::{MemberMovement, MovementCounts};
pub use no_cleaning::NoCleaning;
pub use node_table::{Cell, Column, NodeTable, TableOfKind};
pub use peak_memory::{MemoryUser, peak_rss_bytes};
pub use phases::{Phase, PhaseUse, Phases};
pub use recorder::{Ended, Recorder, SERIES_BUCKETS};
pub use report::label;
pub use report::{
    Combination, CombinedSource, Dependencies, DiskAreaUse, DiskUse, Due, Figures, IoTime,
    LatencyCdf, ReplayMode, Report, Run, SCHEMA, SimulationCost, UNKNOWN_COMMIT, Workload,
    WorkloadKind, WriteAmplification, ratio,
};
pub use request_rows::{RequestRow, RequestTable};
pub use request_series::{RequestKind, ResponseSeries};
pub use response_times::ResponseTimes;
pub use results::{FailedRun, ResultsPart, ResultsTable, results};
pub use run_parts::{
    CacheUse, Costs, Hardware, Hits, Inputs, LogUse, RequestCounts, Rewrites, WarmUpUse,
};
pub use series::{GaugeSeries, Series, rates};
pub use status::{device_status, node_status};
pub use sweep_page::SweepPage;
pub use table::TableStyle;
pub use windows::{CutPart, CutUse, OverDisks, WindowUse, WindowsUse};
pub use zone_use::ZoneUse;
